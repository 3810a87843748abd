//! Traces in files.

use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use chronosym::open::Progress;
use chronosym::{Input, Limits, Opener, Options, SampleSelection};

use crate::boundary::call;
use crate::handles::{self, Handle};
use crate::pointers::{self, Versioned};
use crate::status::{Failure, chronosym_status};
use crate::symbols::chronosym_symbols;
use crate::text;
use crate::timeline::{TimelineObject, chronosym_timeline};

/// Receives the progress of reading: bytes read, and bytes of all inputs or `UINT64_MAX` if that is
/// unknown. Returning false stops the reading. It may run on another thread than the caller's, and
/// must return normally: no exception may leave it.
pub type chronosym_progress =
    Option<unsafe extern "C" fn(data: *mut c_void, read: u64, total: u64) -> bool>;

/// Bits of `chronosym_open_options.flags`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum chronosym_open_flags {
    /// Open files at the paths in the trace; use for traces recorded on this machine.
    TrustTracePaths = 1,
    /// Do not keep samples; the timeline still names addresses.
    WithoutSamples = 2,
}

/// Options for reading a trace. Zero bytes are the defaults.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_open_options {
    /// Set to `sizeof(chronosym_open_options)`.
    pub size: usize,
    /// Called about once every few hundred KB, or null.
    pub progress: chronosym_progress,
    /// Passed to `progress`.
    pub progress_data: *mut c_void,
    /// Source of the image files with which stack copies are unwound, or the null handle.
    pub symbols: chronosym_symbols,
    /// Maximum number of bytes that archives may unpack to; 0 for the default.
    pub unpacked_bytes: u64,
    /// Maximum number of bytes of memory for the timeline; 0 for the default.
    pub memory_bytes: u64,
    /// `chronosym_open_flags`.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

impl Versioned for chronosym_open_options {}

const FLAGS: u32 = 3;

/// A callback with its data.
struct Watch {
    progress: unsafe extern "C" fn(*mut c_void, u64, u64) -> bool,
    data: *mut c_void,
}

// SAFETY: the interface states that the callback is called by any thread.
unsafe impl Send for Watch {}

impl Watch {
    fn call(&mut self, progress: Progress) -> ControlFlow<()> {
        let total = progress.total.unwrap_or(u64::MAX);
        // SAFETY: the caller of `chronosym_open` states that the callback is valid during the call.
        match unsafe { (self.progress)(self.data, progress.read, total) } {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
}

fn opener(options: &chronosym_open_options) -> Result<Opener, Failure> {
    if options.flags & !FLAGS != 0 || options.reserved != 0 {
        return Err(Failure::argument("unknown flags of chronosym_open_options"));
    }
    let mut limits = Limits::default();
    if options.unpacked_bytes > 0 {
        limits.unpacked_bytes = options.unpacked_bytes;
    }
    if options.memory_bytes > 0 {
        limits.memory = Some(options.memory_bytes);
    }
    let mut opener = Opener::new().limits(limits);
    if options.flags & chronosym_open_flags::TrustTracePaths as u32 != 0 {
        opener = opener.trust_trace_paths();
    }
    if options.symbols.id() != 0 {
        opener = opener.unwind_with((*handles::get(options.symbols)?).clone());
    }
    if let Some(progress) = options.progress {
        // Reading threads call it one at a time.
        let watch = Mutex::new(Watch {
            progress,
            data: options.progress_data,
        });
        opener = opener.watch(move |progress| {
            let watch = watch.lock();
            watch.unwrap_or_else(PoisonError::into_inner).call(progress)
        });
    }
    Ok(opener)
}

/// Reads a trace, a saved timeline, or several files of one recording into a timeline. The format
/// is detected from the content. Null `options` are the defaults. Free the timeline with
/// `chronosym_timeline_free`.
///
/// # Safety
///
/// `paths` points to `count` texts that end with a zero; `options` is null or points to options; `timeline` is null or can
/// be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_open(
    paths: *const *const c_char,
    count: usize,
    options: *const chronosym_open_options,
    timeline: *mut chronosym_timeline,
) -> chronosym_status {
    call(|| {
        // SAFETY: as the caller states.
        let timeline = unsafe { pointers::check_out(timeline, "timeline")? };
        // SAFETY: as the caller states.
        let paths = unsafe { pointers::array(paths, count, "paths")? };
        // SAFETY: as the caller states.
        let options = unsafe { pointers::read_versioned(options)? };
        let mut inputs = Vec::with_capacity(paths.len());
        for &path in paths {
            // SAFETY: as the caller states.
            inputs.push(Input::file(unsafe { text::path(path, "a path")? }));
        }
        let mut selection = SampleSelection::default();
        let mut reader = Opener::new();
        if let Some(options) = options {
            reader = opener(&options)?;
            if options.flags & chronosym_open_flags::WithoutSamples as u32 != 0 {
                selection = SampleSelection::None;
            }
        }
        let recording = reader.open(inputs)?;
        let (read, diagnostics) = recording.timeline(Options::from(selection))?;
        timeline.write(handles::add(TimelineObject {
            timeline: read,
            diagnostics,
        })?);
        Ok(())
    })
}
