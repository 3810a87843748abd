//! Addresses of a Windows PDB.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result, bail};
use chronosym::{LineReason, NameReason};
use chronosym_export::{FrameObject, Hex, raw_json};
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::windows::{Frames, FunctionKind, WindowsPdb};
use chronosym_symbols::demangle::{Dialect, demangle, demangle_as};
use chronosym_symbols::mmap::FileData;
use serde_json::value::RawValue;

use super::object::{names, no_file, unread};
use super::question::{Place, Question};
use super::shown::{self, Shown};
use super::{Source, ordered};
use crate::args::{Style, Symbolize};

const OUTSIDE: shown::Why = ("outside the image", NameReason::InvalidAddress);

/// A PDB and, where it is given, its image, which knows at which address it wants to be loaded.
pub struct Files {
    pdb: FileData,
    names: Vec<String>,
    name: String,
    module: String,
    base: u64,
    identity: Option<([u8; 16], u32)>,
}

impl Files {
    pub fn open(pdb: &Path, image: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| FileData::map(path).map_err(|error| no_file(error, path));
        let mut files = Files {
            pdb: open(pdb)?,
            names: names(pdb).to_vec(),
            name: pdb.display().to_string(),
            module: simple_name(image.unwrap_or(pdb)),
            base: 0,
            identity: None,
        };
        if files.pdb.starts_with(b"BSJB") {
            files.refuse("a portable PDB")?;
        }
        if let Some(image) = image {
            let data = open(image)?;
            let pe = PeImage::parse(&data).with_context(|| image.display().to_string())?;
            files.base = pe.image_base();
            files.names.extend(names(image));
            files.identity = pe
                .native_codeview()
                .map(|codeview| (codeview.id.guid.0, codeview.id.age));
        }
        Ok(files)
    }

    fn refuse(&self, what: &str) -> Result<()> {
        bail!(
            "{} is {what}, which knows IL offsets, not addresses: use --trace, with --symbols for the folder it is in",
            self.name
        );
    }

    /// Reads the PDB's directory.
    pub fn parse(&self) -> Result<WindowsPdb<'_>> {
        let pdb = WindowsPdb::open(&self.pdb).with_context(|| self.name.clone())?;
        if let Some((guid, age)) = self.identity
            && !pdb.matches(guid, age)
        {
            bail!(
                "{} is the PDB of another build: the image asks for {} age {age}, the file is {} age {}",
                self.name,
                chronosym_pdb::Guid(guid),
                chronosym_pdb::Guid(pdb.guid()),
                pdb.age()
            );
        }
        if pdb.is_managed() {
            self.refuse("a PDB of managed code")?;
        }
        Ok(pdb)
    }
}

/// The name that frames give an image: without folder and ending.
fn simple_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.strip_suffix(".pdb") {
        Some(name) => name.to_owned(),
        None => chronosym::simple_name(&name).to_owned(),
    }
}

pub struct PdbSource<'p> {
    files: &'p Files,
    pdb: &'p WindowsPdb<'p>,
    style: Style,
    caller: bool,
    lines: bool,
    base: u64,
    damage: BTreeSet<String>,
    /// Bytes of module streams that had been read when the mapping was trimmed last.
    trimmed_at: AtomicU64,
}

/// What a thread keeps from question to question.
#[derive(Default)]
struct Scratch<'p> {
    frames: Frames<'p>,
    damage: BTreeSet<String>,
}

/// Bytes of module streams after whose reading the mapping gives its pages back.
const TRIM_AFTER: u64 = 96 << 20;

/// Fewer questions than this are not worth a thread.
const QUESTIONS_PER_THREAD: usize = 1000;

impl<'p> PdbSource<'p> {
    pub fn new(files: &'p Files, pdb: &'p WindowsPdb<'p>, args: &Symbolize) -> Self {
        PdbSource {
            files,
            pdb,
            style: args.style,
            caller: args.caller,
            lines: !args.symbols.no_lines,
            base: if args.rva { 0 } else { files.base },
            damage: unread(args).into_iter().collect(),
            trimmed_at: AtomicU64::new(0),
        }
    }

    /// The RVA and the address to show; `None` if it is none of this image.
    fn rva(&self, place: Place<'_>) -> Option<(u64, u64)> {
        match place {
            Place::Address(address) => Some((address.checked_sub(self.base)?, address)),
            Place::Rva(name, rva) => self
                .files
                .names
                .contains(&name.to_lowercase())
                .then_some((rva, rva)),
        }
    }

    /// The frames at an RVA, innermost first; where there are none, one that says why.
    fn find(&self, rva: u64, address: u64, scratch: &mut Scratch<'p>) -> Vec<Shown> {
        let looked_up = u32::try_from(rva)
            .ok()
            .and_then(|rva| rva.checked_sub(u32::from(self.caller)));
        let Some(looked_up) = looked_up else {
            return vec![self.unnamed(address, None, OUTSIDE.0)];
        };
        let function = match self.pdb.find(looked_up, &mut scratch.frames) {
            Ok(Some(function)) => function,
            Ok(None) => {
                let reason = NameReason::NoName;
                return vec![self.unnamed(address, Some((rva, reason)), "no name")];
            }
            Err(error) => {
                let error = format!("{}: {error}", self.files.name);
                scratch.damage.insert(error);
                let reason = NameReason::SymbolFileDamaged;
                let why = "debug information damaged";
                return vec![self.unnamed(address, Some((rva, reason)), why)];
            }
        };
        let offset = rva.saturating_sub(u64::from(function.rva));
        // LLVM prints a function's linkage name, which says what it takes, where it is public.
        let public = match self.style {
            Style::Llvm => self.pdb.symbol(function.rva).ok().flatten(),
            _ => None,
        };
        let public = public.filter(|symbol| symbol.rva == function.rva);
        // These are linkers' names, of what no compiler recorded.
        let decorated = matches!(
            function.kind,
            FunctionKind::Public | FunctionKind::Thunk | FunctionKind::Trampoline
        );
        let shown = |frame: &chronosym_pdb::windows::Frame<'_>| {
            let linkage = public.as_ref().filter(|_| !frame.inlined);
            let linkage = linkage.and_then(|symbol| demangle_as(&symbol.name, Dialect::Llvm));
            let name = frame.name.as_ref().map(|name| {
                if let Some(linkage) = linkage {
                    return linkage;
                }
                let text = name.to_string();
                if decorated {
                    demangle(&text).unwrap_or(text)
                } else {
                    text
                }
            });
            let mut label = name.clone().unwrap_or("??".to_owned());
            if !frame.inlined {
                label.push_str(&format!("+{offset:#x}"));
            }
            let file = frame.file.as_deref().filter(|_| self.lines);
            let line = frame.line.filter(|_| self.lines);
            let column = frame.column.filter(|_| self.lines);
            let place = name.is_none().then_some((rva, NameReason::NoName));
            let no_line = if self.lines {
                LineReason::NoLineInfo
            } else {
                LineReason::LinesDisabled
            };
            let no_line = Some(no_line).filter(|_| name.is_some() && line.is_none());
            let object = self.object(FrameObject {
                name: name.as_deref(),
                offset: Some(offset),
                file,
                line,
                column: column.map(u32::from),
                inlined: frame.inlined,
                line_reason: no_line.map(LineReason::as_str),
                ..self.at(address, place)
            });
            Shown {
                label,
                name,
                file: file.map(str::to_owned),
                line,
                column: column.map(u32::from),
                reason: None,
                object,
            }
        };
        scratch.frames.iter().map(shown).collect()
    }

    /// A frame without a name, and why: at an RVA of the image, or outside it.
    fn unnamed(&self, address: u64, place: Option<(u64, NameReason)>, why: &str) -> Shown {
        let reason = place.map_or(NameReason::InvalidAddress, |(_, reason)| reason);
        let object = self.object(FrameObject {
            name_reason: Some(reason.as_str()),
            ..self.at(address, place)
        });
        Shown {
            label: "??".to_owned(),
            reason: Some(why.to_owned()),
            object,
            ..Shown::default()
        }
    }

    /// Where in the image a frame without a name is, and why it has none.
    fn at(&self, address: u64, place: Option<(u64, NameReason)>) -> FrameObject<'_> {
        let guid = chronosym_pdb::Guid(self.pdb.guid());
        let id = || format!("{guid:#}{:x}", self.pdb.age());
        FrameObject {
            address: Hex(address),
            module: place.map(|_| self.files.module.as_str()),
            rva: place.map(|(rva, _)| rva),
            pdb_id: place.map(|_| id()),
            name_reason: place.map(|(_, reason)| reason.as_str()),
            ..FrameObject::default()
        }
    }

    /// What `--style json` prints.
    fn object(&self, frame: FrameObject<'_>) -> Option<Box<RawValue>> {
        let wanted = Some(frame).filter(|_| self.style == Style::Json)?;
        raw_json(&wanted).ok()
    }

    /// Appends the answer to one question.
    fn print_one(&self, question: &Question<'_>, scratch: &mut Scratch<'p>, out: &mut Vec<u8>) {
        let mut unknown = |why| shown::print_unknown(self.style, question.text, why, out);
        let _infallible = match question.place.map(|place| (place, self.rva(place))) {
            None => unknown(shown::NO_ADDRESS),
            Some((Place::Rva(..), None)) => unknown(shown::OTHER_FILE),
            Some((Place::Address(_), None)) => unknown(OUTSIDE),
            Some((_, Some((rva, address)))) => {
                let frames = self.find(rva, address, scratch);
                shown::print(self.style, &format!("{address:#x}"), &frames, out)
            }
        };
    }

    /// The answers to questions that are sorted, and where each one's is.
    fn print_sorted(&self, questions: &[Question<'_>], order: &[(Option<u64>, u32)]) -> Printed {
        let mut scratch = Scratch::default();
        let mut text = Vec::new();
        let mut places: Vec<Range<usize>> = Vec::with_capacity(order.len());
        let mut last = None;
        for &(_, index) in order {
            let question = &questions[index as usize];
            // The same text has the same answer.
            if last == Some(question.text) {
                places.extend(places.last().cloned());
                continue;
            }
            let start = text.len();
            self.print_one(question, &mut scratch, &mut text);
            places.push(start..text.len());
            last = Some(question.text);
            self.trim();
        }
        Printed {
            text,
            places,
            damage: scratch.damage,
        }
    }

    /// Lets go of what was mapped, once much of it was: answers to come seldom need the same pages.
    fn trim(&self) {
        let read = self.pdb.bytes_read();
        let before = self.trimmed_at.load(Relaxed);
        if read - before.min(read) > TRIM_AFTER
            && self
                .trimmed_at
                .compare_exchange(before, read, Relaxed, Relaxed)
                .is_ok()
        {
            self.files.pdb.release(0..self.files.pdb.len());
        }
    }
}

/// What one thread printed.
struct Printed {
    text: Vec<u8>,
    places: Vec<Range<usize>>,
    damage: BTreeSet<String>,
}

impl Source for PdbSource<'_> {
    /// Looks addresses up in their order, so that each part of the file is read once, and prints in the order asked.
    fn print(&mut self, questions: &[Question<'_>], out: &mut dyn Write) -> Result<()> {
        let rva = |question: &Question<'_>| {
            question
                .place
                .and_then(|place| self.rva(place))
                .map(|(rva, _)| rva)
        };
        let mut order: Vec<(Option<u64>, u32)> = questions
            .iter()
            .enumerate()
            .map(|(i, question)| (rva(question), i as u32))
            .collect();
        order.sort_unstable();
        // Each thread takes a part of the image.
        let threads = (order.len() / QUESTIONS_PER_THREAD).clamp(1, ordered::threads());
        let parts: Vec<_> = order.chunks(order.len().div_ceil(threads).max(1)).collect();
        let printed: Vec<Printed> = std::thread::scope(|scope| {
            let others: Vec<_> = parts
                .iter()
                .skip(1)
                .map(|part| scope.spawn(|| self.print_sorted(questions, part)))
                .collect();
            let own = parts.first().map(|part| self.print_sorted(questions, part));
            let others = others.into_iter().map(|other| match other.join() {
                Ok(printed) => printed,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            own.into_iter().chain(others).collect()
        });
        let mut answers: Vec<&[u8]> = vec![&[]; questions.len()];
        for (part, printed) in parts.iter().zip(&printed) {
            for ((_, index), place) in part.iter().zip(&printed.places) {
                answers[*index as usize] = &printed.text[place.clone()];
            }
        }
        for answer in answers {
            out.write_all(answer)?;
        }
        for mut printed in printed {
            self.damage.append(&mut printed.damage);
        }
        Ok(())
    }

    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>> {
        let mut scratch = Scratch::default();
        let mut label = |question: &Question<'_>| {
            let (rva, address) = self.rva(question.place?)?;
            shown::in_text(&self.find(rva, address, &mut scratch))
        };
        let labels = questions.iter().map(&mut label).collect();
        self.damage.append(&mut scratch.damage);
        Ok(labels)
    }

    fn notes(&self) -> Vec<String> {
        // The first says most: what it tells of implies the others.
        let limit = self.pdb.limits().next();
        let limit = limit.map(|limit| format!("{}: {limit}", self.files.name));
        limit
            .into_iter()
            .chain(self.damage.iter().cloned())
            .collect()
    }
}
