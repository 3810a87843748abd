//! Addresses of a Windows PDB.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result, bail};
use chronosym::{LineReason, NameReason};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::windows::{Frame, Frames, Function, FunctionKind, WindowsPdb};
use chronosym_symbols::demangle::{Dialect, demangle, demangle_as};
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::style::{FrameText, Style};
use chronosym_types::json::FrameObject;

use super::companion::no_file;
use super::question::{At, Place, Question};
use super::shown::{self, Layout};
use super::{Answers, Source, ordered};
use crate::args::Symbolize;

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
    damage: BTreeSet<String>,
    /// Bytes of module streams that had been read when the mapping was trimmed last.
    trimmed_at: AtomicU64,
}

/// What a thread keeps from question to question.
#[derive(Default)]
struct Scratch {
    frames: Frames,
    damage: BTreeSet<String>,
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
            module: super::simple_name(image.unwrap_or(path)),
            id: format!("{:#}{:x}", id.guid, id.age),
            name,
            layout: Layout::new(args.style, args.filter),
            back: u32::from(args.caller),
            lines: !args.symbols.no_lines,
            base: if args.rva { 0 } else { base },
            damage: BTreeSet::new(),
            trimmed_at: AtomicU64::new(0),
        })
    }

    /// The RVA and the address to show; or why there is none.
    fn rva(&self, question: &Question<'_>) -> Result<(u64, u64), shown::Why> {
        match question.place.map(|place: Place<'_>| place.at) {
            Some(At::Address(address)) => match address.checked_sub(self.base) {
                Some(rva) => Ok((rva, address)),
                None => Err(shown::OUTSIDE),
            },
            Some(At::Rva(rva)) => Ok((rva, rva)),
            Some(At::FileOffset(_) | At::Il(..)) => Err(shown::OTHER_KIND),
            None => Err(shown::NO_ADDRESS),
        }
    }

    /// Appends the answer to one question.
    fn write(
        &self,
        pdb: &WindowsPdb<'_>,
        question: &Question<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) {
        let (rva, address) = match self.rva(question) {
            Ok(found) => found,
            Err(why) => return self.layout.write_unknown(question, question.text, why, out),
        };
        let text = format!("{address:#x}");
        let mut unnamed = |place, why| {
            let frames = [self.unnamed(address, place, why)];
            self.layout.write(question, &text, frames, out);
        };
        let looked_up = u32::try_from(rva).ok();
        let Some(looked_up) = looked_up.and_then(|rva| rva.checked_sub(self.back)) else {
            return unnamed(None, shown::OUTSIDE.0);
        };
        match pdb.find(looked_up, &mut scratch.frames) {
            Ok(Some(function)) => {
                let names = self.names(pdb, &function, &scratch.frames);
                let frames = scratch.frames.iter().zip(&names);
                let frames = frames.map(|(frame, name)| {
                    self.text(address, rva, function.rva, frame, name.as_deref())
                });
                self.layout.write(question, &text, frames, out);
            }
            Ok(None) => unnamed(Some((rva, NameReason::NoName)), "no name"),
            Err(error) => {
                scratch.damage.insert(format!("{}: {error}", self.name));
                let place = Some((rva, NameReason::SymbolFileDamaged));
                unnamed(place, "debug information damaged");
            }
        }
    }

    /// What the frames are called.
    fn names(
        &self,
        pdb: &WindowsPdb<'_>,
        function: &Function,
        frames: &Frames,
    ) -> Vec<Option<String>> {
        // LLVM prints a function's linkage name, which says what it takes, where it is public.
        let public = match self.layout {
            Layout::Lines(Style::Llvm) => pdb.symbol(function.rva).ok().flatten(),
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
            let linkage = linkage.and_then(|symbol| demangle_as(&symbol.name, Dialect::Llvm));
            let text = frame.name.as_ref()?.to_string();
            let readable = || decorated.then(|| demangle(&text)).flatten();
            Some(linkage.or_else(readable).unwrap_or(text))
        };
        frames.iter().map(name).collect()
    }

    fn text<'f>(
        &'f self,
        address: u64,
        rva: u64,
        start: u32,
        frame: &'f Frame,
        name: Option<&'f str>,
    ) -> FrameText<'f> {
        let offset = rva.saturating_sub(u64::from(start));
        let mut text = FrameText::default();
        let label = name.unwrap_or("??");
        text.label = match frame.inlined {
            true => label.into(),
            false => format!("{label}+{offset:#x}").into(),
        };
        text.name = name;
        if self.lines {
            text.file = frame.file.as_deref();
            text.line = frame.line;
            text.column = frame.column.map(u32::from);
        }
        text.object = self.layout.is_json().then(|| {
            let place = name.is_none().then_some((rva, NameReason::NoName));
            let mut object = self.object(address, place);
            object.name = name;
            object.offset = Some(offset);
            object.file = text.file;
            object.line = text.line;
            object.column = text.column;
            object.inlined = frame.inlined;
            let no_line = if self.lines {
                LineReason::NoLineInfo
            } else {
                LineReason::LinesDisabled
            };
            let is_missing = name.is_some() && text.line.is_none();
            object.line_reason = is_missing.then(|| no_line.as_str());
            object
        });
        text
    }

    /// A frame without a name, and why: at an RVA of the image, or outside it.
    fn unnamed(
        &self,
        address: u64,
        place: Option<(u64, NameReason)>,
        why: &'static str,
    ) -> FrameText<'_> {
        let object = self.layout.is_json().then(|| {
            let mut object = self.object(address, place);
            let outside = NameReason::InvalidAddress.as_str();
            object.name_reason.get_or_insert(outside);
            object
        });
        FrameText::unknown(why, object)
    }

    /// Where in the image a frame without a name is, and why it has none.
    fn object(&self, address: u64, place: Option<(u64, NameReason)>) -> FrameObject<'_> {
        let mut object = FrameObject::at(address);
        if let Some((rva, reason)) = place {
            object.module = Some(&self.module);
            object.rva = Some(rva);
            object.pdb_id = Some((&*self.id).into());
            object.name_reason = Some(reason.as_str());
        }
        object
    }

    /// The answers to questions that are sorted, and where each one's is.
    fn write_sorted(
        &self,
        pdb: &WindowsPdb<'_>,
        questions: &[Question<'_>],
        order: &[(Option<u64>, u32)],
    ) -> Written {
        let mut scratch = Scratch::default();
        let mut text = Vec::new();
        let mut places: Vec<Range<usize>> = Vec::with_capacity(order.len());
        let mut last = None;
        for &(_, index) in order {
            let question = &questions[index as usize];
            // The same question has the same answer.
            if last == Some(question) {
                places.extend(places.last().cloned());
                continue;
            }
            let start = text.len();
            self.write(pdb, question, &mut scratch, &mut text);
            places.push(start..text.len());
            last = Some(question);
            self.trim(pdb);
        }
        Written {
            text,
            places,
            damage: scratch.damage,
        }
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

/// What one thread wrote.
struct Written {
    text: Vec<u8>,
    places: Vec<Range<usize>>,
    damage: BTreeSet<String>,
}

impl Source for PdbSource {
    /// Looks addresses up in their order, so that each part of the file is read once.
    fn answer<'s>(&'s mut self, questions: Vec<Question<'s>>) -> Result<Answers<'s>> {
        let own: &Self = self;
        let questions = questions.as_slice();
        let mut order: Vec<(Option<u64>, u32)> = questions
            .iter()
            .zip(0..)
            .map(|(question, i)| (own.rva(question).ok().map(|(rva, _)| rva), i))
            .collect();
        order.sort_unstable();
        // Each thread takes a part of the image.
        let threads = (order.len() / QUESTIONS_PER_THREAD).clamp(1, ordered::threads());
        let parts: Vec<_> = order.chunks(order.len().div_ceil(threads).max(1)).collect();
        let mut written: Vec<Written> = own.pdb.with_dependent(|_, pdb| {
            std::thread::scope(|scope| {
                let others: Vec<_> = parts
                    .iter()
                    .skip(1)
                    .map(|part| scope.spawn(|| own.write_sorted(pdb, questions, part)))
                    .collect();
                let first = parts.first();
                let first = first.map(|part| own.write_sorted(pdb, questions, part));
                let others = others.into_iter().map(|other| match other.join() {
                    Ok(written) => written,
                    Err(panic) => std::panic::resume_unwind(panic),
                });
                first.into_iter().chain(others).collect()
            })
        });
        let mut places = vec![(0, 0..0); questions.len()];
        for (number, (part, written)) in parts.iter().zip(&written).enumerate() {
            for ((_, index), place) in part.iter().zip(&written.places) {
                places[*index as usize] = (number, place.clone());
            }
        }
        for written in &mut written {
            self.damage.append(&mut written.damage);
        }
        Ok(Box::new(move |index, out| {
            let (number, place) = &places[index];
            out.extend_from_slice(&written[*number].text[place.clone()]);
        }))
    }

    fn ids(&self) -> Vec<String> {
        vec![self.id.clone()]
    }

    fn notes(&mut self) -> Vec<String> {
        // The first says most: what it tells of implies the others.
        let limit = self.pdb.with_dependent(|_, pdb| pdb.limits().next());
        let limit = limit.map(|limit| format!("{}: {limit}", self.name));
        limit
            .into_iter()
            .chain(self.damage.iter().cloned())
            .collect()
    }
}
