//! Timelines: the recorded lifetimes of all code.

use std::ffi::c_char;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::sync::Arc;

use chronosym::{Diagnostic, Diagnostics, SaveOptions, Timeline};

use crate::boundary::call;
use crate::handles::{self, handle};
use crate::names;
use crate::pointers::{self, Versioned};
use crate::status::{Failure, chronosym_status};
use crate::text::{self, chronosym_text};

/// A handle of a timeline, which never changes: any number of threads can use it at once.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct chronosym_timeline {
    /// Zero is the null handle.
    pub id: u64,
}

handle!(chronosym_timeline, 1, "timeline", TimelineObject);

pub struct TimelineObject {
    pub timeline: Arc<Timeline>,
    pub diagnostics: Diagnostics,
}

impl TimelineObject {
    /// A timeline without diagnostics of a reader.
    pub fn of(timeline: Arc<Timeline>) -> Self {
        let mut diagnostics = Diagnostics::default();
        diagnostics.list = timeline.diagnostics();
        TimelineObject {
            timeline,
            diagnostics,
        }
    }
}

/// Frees a handle. Resolvers that use the timeline, and other handles of it, keep it.
#[unsafe(no_mangle)]
pub extern "C" fn chronosym_timeline_free(timeline: chronosym_timeline) -> chronosym_status {
    call(|| handles::free(timeline))
}

/// Creates another handle of a timeline, so that each owner can free its own.
///
/// # Safety
///
/// `shared` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_timeline_share(
    timeline: chronosym_timeline,
    shared: *mut chronosym_timeline,
) -> chronosym_status {
    call(|| {
        // SAFETY: as the caller states.
        let shared = unsafe { pointers::check_out(shared, "shared")? };
        shared.write(handles::share(handles::get(timeline)?)?);
        Ok(())
    })
}

/// Figures of a timeline.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_timeline_info {
    /// Set to `sizeof(chronosym_timeline_info)`.
    pub size: usize,
    /// Number of processes, for `chronosym_timeline_processes`.
    pub processes: usize,
    /// Number of diagnostics, for `chronosym_timeline_diagnostics`.
    pub diagnostics: usize,
    /// Number of samples.
    pub samples: u64,
    /// Number of events that the recorder reported as lost.
    pub lost_events: u64,
    /// Time of the last event, in ns since the trace began.
    pub duration_ns: u64,
    /// Time up to which answers that name code are final, in ns; `UINT64_MAX` if no event follows.
    pub watermark_ns: u64,
}

impl Versioned for chronosym_timeline_info {}

/// Returns the figures of a timeline.
///
/// # Safety
///
/// `info` is null or points to a `chronosym_timeline_info` whose `size` is set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_timeline_summary(
    timeline: chronosym_timeline,
    info: *mut chronosym_timeline_info,
) -> chronosym_status {
    call(|| {
        let object = handles::get(timeline)?;
        let timeline = &object.timeline;
        let value = chronosym_timeline_info {
            size: 0,
            processes: timeline.processes().count(),
            diagnostics: object.diagnostics.list.len(),
            samples: timeline.samples().len(),
            lost_events: object.diagnostics.lost_events(),
            duration_ns: timeline.facts().duration_ns,
            watermark_ns: timeline.watermark(),
        };
        // SAFETY: as the caller states.
        unsafe { pointers::write_versioned(info, value) }
    })
}

/// A process of a timeline. Texts are valid until the last handle of the timeline is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_process {
    /// The program's name, or the empty text.
    pub name: chronosym_text,
    /// The command line, or the empty text.
    pub command_line: chronosym_text,
    /// When it started, in ns since the trace began; 0 if no event states it.
    pub start_ns: u64,
    /// When it stopped, in ns since the trace began; `UINT64_MAX` if no event states it.
    pub end_ns: u64,
    /// The process id, or `UINT32_MAX` if it is unknown.
    pub pid: u32,
    /// 1 if a CLR runs in it, else 0.
    pub is_managed: u32,
    /// Zero.
    pub reserved: [u64; 2],
}

/// Writes the processes of a timeline, at most `capacity`, and their total number to `count`.
/// `processes` may be null if `capacity` is 0.
///
/// # Safety
///
/// `processes` has room for `capacity` elements; `count` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_timeline_processes(
    timeline: chronosym_timeline,
    processes: *mut chronosym_process,
    capacity: usize,
    count: *mut usize,
) -> chronosym_status {
    call(|| {
        let object = handles::get(timeline)?;
        let lent = |text: Option<&str>| chronosym_text::lent(text.unwrap_or_default());
        let all = object
            .timeline
            .processes()
            .map(|process| chronosym_process {
                name: lent(process.name),
                command_line: lent(process.command_line),
                start_ns: process.start_ns.unwrap_or(0),
                end_ns: process.end_ns.unwrap_or(u64::MAX),
                pid: process.pid.unwrap_or(u32::MAX),
                is_managed: process.is_managed.into(),
                reserved: [0; 2],
            });
        let all: Vec<_> = all.collect();
        // SAFETY: as the caller states.
        unsafe {
            pointers::write(count, "count", all.len())?;
            pointers::fill(processes, capacity, "processes", &all)
        }
    })
}

/// A defect of a recording. The text is valid until the last handle of the timeline is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct chronosym_diagnostic {
    /// What happened, with the count and the file.
    pub text: chronosym_text,
    /// The file, or the empty text.
    pub path: chronosym_text,
    /// Number of occurrences, or the amount lost.
    pub count: u64,
    /// A value of `CHRONOSYM_LIST_DIAGNOSTIC`.
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
}

/// Writes the diagnostics of a recording, at most `capacity`, and their total number to `count`.
/// `diagnostics` may be null if `capacity` is 0.
///
/// # Safety
///
/// `diagnostics` has room for `capacity` elements; `count` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_timeline_diagnostics(
    timeline: chronosym_timeline,
    diagnostics: *mut chronosym_diagnostic,
    capacity: usize,
    count: *mut usize,
) -> chronosym_status {
    call(|| {
        let object = handles::get(timeline)?;
        let list = &object.diagnostics.list;
        let lend = |diagnostic: &Diagnostic| chronosym_diagnostic {
            text: chronosym_text::lent(&diagnostic.text),
            path: chronosym_text::lent(diagnostic.file.as_deref().unwrap_or_default()),
            count: diagnostic.count,
            kind: names::diagnostic(diagnostic.kind),
            reserved: 0,
        };
        let all: Vec<_> = list.iter().map(lend).collect();
        // SAFETY: as the caller states.
        unsafe {
            pointers::write(count, "count", all.len())?;
            pointers::fill(diagnostics, capacity, "diagnostics", &all)
        }
    })
}

/// Saves a timeline in a small file, which `chronosym_open` reads like a trace. An existing file is
/// replaced.
///
/// # Safety
///
/// `path` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn chronosym_timeline_save(
    timeline: chronosym_timeline,
    path: *const c_char,
    with_samples: bool,
) -> chronosym_status {
    call(|| {
        let object = handles::get(timeline)?;
        // SAFETY: as the caller states.
        let path = unsafe { text::path(path, "path")? };
        let mut options = SaveOptions::new().with_diagnostics(&object.diagnostics);
        options.samples = with_samples;
        let save = || {
            let out = BufWriter::new(File::create(&path)?);
            object.timeline.save(out, &options)?.flush()
        };
        save().map_err(|error| {
            // A partial file is useless; if it cannot be removed either, report the first error.
            if path.is_file() {
                let _ = fs::remove_file(&path);
            }
            Failure::of_file(&path.display().to_string(), &error)
        })
    })
}
