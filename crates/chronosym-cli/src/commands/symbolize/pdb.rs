//! Addresses of a Windows PDB.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result, bail};
use chronosym::{LineReason, NameReason};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::windows::{Frame, Frames, Function, FunctionKind, WindowsPdb};
use chronosym_symbols::demangle::{Dialect, Unreadable, demangle, demangle_as};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::style::Style;
use chronosym_types::json::FrameObject;

use super::companion::no_file;
use super::ordered;
use super::shown::{self, Layout};
use super::source::{self, Answers, Source};
use crate::args::Symbolize;
use crate::request::{AddressRequest, At};

self_cell::self_cell! {
    struct Open {
        owner: FileData,
        #[not_covariant]
        dependent: WindowsPdb,
    }
}

pub struct PdbSource {
    pdb: Open,
    name: String,
    module: String,
    /// `0x…` of the PDB in symbol stores.
    id: String,
    layout: Layout,
    back: u32,
    lines: bool,
    /// Where the image wants to be loaded, where it is at hand.
    base: u64,
    damage: Mutex<BTreeSet<String>>,
    /// Bytes of module streams that had been read when the mapping was trimmed last.
    trimmed_at: AtomicU64,
}

/// Bytes of module streams after whose reading the mapping gives its pages back.
const TRIM_AFTER: u64 = 96 << 20;

/// Fewer questions than this are not worth a thread.
const QUESTIONS_PER_THREAD: usize = 1000;

impl PdbSource {
    /// A PDB and, where it is given, its image, which knows at which address it wants to be loaded.
    pub fn open(path: &Path, image: Option<&Path>, args: &Symbolize) -> Result<Self> {
        let open = |path: &Path| FileData::map(path).map_err(|error| no_file(error, path));
        let name = path.display().to_string();
        let pdb = Open::try_new(open(path)?, |data| WindowsPdb::open(data));
        let pdb = pdb.with_context(|| name.clone())?;
        let id = pdb.with_dependent(|_, pdb| pdb.id());
        let mut base = 0;
        if let Some(image) = image {
            let data = open(image)?;
            let pe = PeImage::parse(&data).with_context(|| image.display().to_string())?;
            base = pe.image_base();
            if let Some(wanted) = pe.native_codeview().map(|codeview| codeview.id)
                && wanted != id
            {
                bail!(
                    "{name} is the PDB of another build: the image asks for {wanted}, the file is {id}"
                );
            }
        }
        Ok(PdbSource {
            pdb,
            module: source::simple_name(image.unwrap_or(path)),
            id: format!("{id:#}"),
            name,
            layout: Layout::new(args.style, args.filter),
            back: u32::from(args.query.caller),
            lines: !args.symbols.no_lines,
            base: if args.rva { 0 } else { base },
            damage: Mutex::default(),
            trimmed_at: AtomicU64::new(0),
        })
    }

    /// The RVA and the address to show; or why there is none.
    fn rva(&self, question: &AddressRequest<'_>) -> Result<(u64, u64), shown::Why> {
        match question.target.ok_or(shown::NO_ADDRESS)?.at {
            At::Address(address) => match address.checked_sub(self.base) {
                Some(rva) => Ok((rva, address)),
                None => Err(shown::OUTSIDE),
            },
            At::Rva(rva) => Ok((rva, rva)),
            At::FileOffset(_) | At::Il(..) => Err(shown::OTHER_KIND),
        }
    }

    /// Appends the answer to one question.
    fn write(
        &self,
        pdb: &WindowsPdb<'_>,
        question: &AddressRequest<'_>,
        frames: &mut Frames,
        out: &mut Vec<u8>,
    ) {
        let (rva, address) = match self.rva(question) {
            Ok(found) => found,
            Err(why) => return self.layout.write_unknown(question, question.text, why, out),
        };
        let text = format!("{address:#x}");
        let looked_up = u32::try_from(rva).ok();
        let found = match looked_up.and_then(|rva| rva.checked_sub(self.back)) {
            Some(looked_up) => pdb.find(looked_up, frames),
            None => {
                let mut object = FrameObject::at(address);
                object.name_reason = Some(NameReason::InvalidAddress.as_str());
                object.meaning = Some(shown::OUTSIDE.0.into());
                return self.layout.write(question, &text, [object], out);
            }
        };
        let (why, reason) = match found {
            Ok(Some(function)) => {
                let names = self.names(pdb, &function, frames);
                let frames = frames.iter().zip(&names);
                let frames = frames.map(|(frame, name)| {
                    self.text(address, rva, function.rva, frame, name.as_ref())
                });
                return self.layout.write(question, &text, frames, out);
            }
            Ok(None) => ("no name", NameReason::NoName),
            Err(error) => {
                if let Ok(mut damage) = self.damage.lock() {
                    damage.insert(format!("{}: {error}", self.name));
                }
                ("debug information damaged", NameReason::SymbolFileDamaged)
            }
        };
        let mut object = self.object(address, rva, reason);
        object.meaning = Some(why.into());
        self.layout.write(question, &text, [object], out);
    }

    /// What the frames are called, and why that is not all of the name.
    fn names(
        &self,
        pdb: &WindowsPdb<'_>,
        function: &Function,
        frames: &Frames,
    ) -> Vec<Option<(String, Option<NameReason>)>> {
        // LLVM prints a function's linkage name, which says what it takes, where it is public.
        let public = match self.layout {
            Layout::Lines(Style::Llvm) => pdb.public_symbol(function.rva).ok().flatten(),
            _ => None,
        };
        let public = public.filter(|symbol| symbol.rva == function.rva);
        // These are linkers' names, of what no compiler recorded.
        let decorated = matches!(
            function.kind,
            FunctionKind::Public | FunctionKind::Thunk | FunctionKind::Trampoline
        );
        let name = |frame: &Frame| {
            let linkage = public.as_ref().filter(|_| !frame.inlined);
            let linkage = linkage.and_then(|symbol| demangle_as(&symbol.name, Dialect::Llvm).ok());
            let text = frame.name.as_ref()?.to_string();
            Some(match (linkage, decorated.then(|| demangle(&text))) {
                (Some(name), _) | (None, Some(Ok(name))) => (name, None),
                (None, Some(Err(why @ Unreadable::LimitReached))) => {
                    let reason = Some(NameReason::LimitReached);
                    (why.shown(&text).to_owned(), reason)
                }
                _ => (text, None),
            })
        };
        frames.iter().map(name).collect()
    }

    fn text<'f>(
        &'f self,
        address: u64,
        rva: u64,
        start: u32,
        frame: &'f Frame,
        name: Option<&'f (String, Option<NameReason>)>,
    ) -> FrameObject<'f> {
        let limited = name.and_then(|(_, why)| *why);
        let name = name.map(|(name, _)| name.as_str());
        let offset = rva.saturating_sub(u64::from(start));
        let label = name.unwrap_or("??");
        let label = match frame.inlined {
            true => label.into(),
            false => Cow::from(format!("{label}+{offset:#x}")),
        };
        let mut object = match name {
            Some(_) => FrameObject::at(address),
            None => self.object(address, rva, NameReason::NoName),
        };
        object.name = name;
        object.offset = Some(offset);
        object.inlined = frame.inlined;
        let mut no_line = LineReason::LinesDisabled;
        if self.lines {
            object.file = frame.file.as_deref();
            object.line = frame.line;
            object.column = frame.column.map(u32::from);
            no_line = LineReason::NoLineInfo;
        }
        if let Some(why) = limited {
            object.name_reason = Some(why.as_str());
        }
        let is_missing = name.is_some() && object.line.is_none();
        object.line_reason = is_missing.then(|| no_line.as_str());
        object.label = Some(label);
        object
    }

    /// Where in the image code without a name is, and why it has none.
    fn object(&self, address: u64, rva: u64, reason: NameReason) -> FrameObject<'_> {
        let mut object = FrameObject::at(address);
        object.module = Some(&self.module);
        object.rva = Some(rva);
        object.pdb_id = Some((&*self.id).into());
        object.name_reason = Some(reason.as_str());
        object
    }

    /// The answers to questions that are sorted, and where each one's is.
    fn write_sorted(
        &self,
        pdb: &WindowsPdb<'_>,
        questions: &[AddressRequest<'_>],
        order: &[(Option<u64>, u32)],
    ) -> (Vec<u8>, Vec<Range<usize>>) {
        let (mut frames, mut text) = (Frames::default(), Vec::new());
        let mut places: Vec<Range<usize>> = Vec::with_capacity(order.len());
        let mut last = None;
        for &(_, index) in order {
            let question = &questions[index as usize];
            // The same question has the same answer.
            if last.replace(question) == Some(question) {
                places.extend(places.last().cloned());
                continue;
            }
            let start = text.len();
            self.write(pdb, question, &mut frames, &mut text);
            places.push(start..text.len());
            self.trim(pdb);
        }
        (text, places)
    }

    /// Lets go of what was mapped, once much of it was: answers to come seldom need the same pages.
    fn trim(&self, pdb: &WindowsPdb<'_>) {
        let read = pdb.bytes_read();
        let before = self.trimmed_at.load(Relaxed);
        if read - before.min(read) > TRIM_AFTER
            && self
                .trimmed_at
                .compare_exchange(before, read, Relaxed, Relaxed)
                .is_ok()
        {
            let data = self.pdb.borrow_owner();
            data.release(0..data.len());
        }
    }
}

impl Source for PdbSource {
    /// Looks addresses up in their order, so that each part of the file is read once.
    fn answer<'s>(&'s mut self, questions: Vec<AddressRequest<'s>>) -> Result<Answers<'s>> {
        let own: &Self = self;
        let rva = |question| own.rva(question).ok().map(|(rva, _)| rva);
        let mut order: Vec<(Option<u64>, u32)> = questions.iter().map(rva).zip(0..).collect();
        order.sort_unstable();
        // Each thread takes a part of the image.
        let threads = (order.len() / QUESTIONS_PER_THREAD).clamp(1, ordered::threads());
        let parts: Vec<_> = order.chunks(order.len().div_ceil(threads).max(1)).collect();
        let written = own.pdb.with_dependent(|_, pdb| {
            ordered::in_parallel(&parts, |part| own.write_sorted(pdb, &questions, part))
        });
        let mut places = vec![(0, 0..0); questions.len()];
        for (number, (part, (_, ranges))) in parts.iter().zip(&written).enumerate() {
            for ((_, index), range) in part.iter().zip(ranges) {
                places[*index as usize] = (number, range.clone());
            }
        }
        Ok(Box::new(move |index, out| {
            let (number, range) = &places[index];
            out.extend_from_slice(&written[*number].0[range.clone()]);
        }))
    }

    fn ids(&self) -> Vec<String> {
        vec![self.id.clone()]
    }

    fn notes(&mut self) -> Vec<String> {
        // The first says most: what it tells of implies the others.
        let limit = self.pdb.with_dependent(|_, pdb| pdb.limitations().next());
        let limit = limit.map(|limit| format!("{}: {limit}", self.name));
        let damage = self.damage.get_mut().into_iter();
        let damage = damage.flat_map(|damage| damage.iter().cloned());
        limit.into_iter().chain(damage).collect()
    }
}
