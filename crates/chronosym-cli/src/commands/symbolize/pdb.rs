//! Addresses of a Windows PDB.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use chronosym_export::JsonObject;
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::windows::{Frames, FunctionKind, WindowsPdb};
use chronosym_symbols::demangle::demangle;
use chronosym_symbols::mmap::FileData;

use super::Source;
use super::object::names;
use super::question::{Place, Question};
use super::shown::{self, Shown};
use crate::args::{Style, Symbolize};

/// A PDB and, where it is given, its image, which knows at which address it wants to be loaded.
pub struct Files {
    pdb: FileData,
    names: Vec<String>,
    name: String,
    base: u64,
    identity: Option<([u8; 16], u32)>,
}

impl Files {
    pub fn open(pdb: &Path, image: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            FileData::map(path).with_context(|| format!("cannot open {}", path.display()))
        };
        let mut files = Files {
            pdb: open(pdb)?,
            names: names(pdb).to_vec(),
            name: pdb.display().to_string(),
            base: 0,
            identity: None,
        };
        if files.pdb.starts_with(b"BSJB") {
            bail!(
                "{} is a portable PDB, which knows IL offsets, not addresses: use --trace, with --symbols for the folder it is in",
                files.name
            );
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
        Ok(pdb)
    }
}

pub struct PdbSource<'p> {
    files: &'p Files,
    pdb: &'p WindowsPdb<'p>,
    frames: Frames<'p>,
    style: Style,
    caller: bool,
    base: u64,
    damage: Vec<String>,
    /// Bytes of module streams that had been read when the mapping was trimmed last.
    trimmed_at: u64,
}

impl<'p> PdbSource<'p> {
    pub fn new(files: &'p Files, pdb: &'p WindowsPdb<'p>, args: &Symbolize) -> Self {
        PdbSource {
            files,
            pdb,
            frames: Frames::new(),
            style: args.style,
            caller: args.caller,
            base: if args.rva { 0 } else { files.base },
            damage: Vec::new(),
            trimmed_at: 0,
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

    /// The frames at an RVA, innermost first.
    fn find(&mut self, rva: u64, address: u64) -> Result<Vec<Shown>, &'static str> {
        let looked_up = u32::try_from(rva)
            .ok()
            .and_then(|rva| rva.checked_sub(u32::from(self.caller)));
        let Some(looked_up) = looked_up else {
            return Err("outside the image");
        };
        let function = match self.pdb.find(looked_up, &mut self.frames) {
            Ok(Some(function)) => function,
            Ok(None) => return Err("no name"),
            Err(error) => {
                let error = format!("{}: {error}", self.files.name);
                if !self.damage.contains(&error) {
                    self.damage.push(error);
                }
                return Err("debug information damaged");
            }
        };
        let offset = rva.saturating_sub(u64::from(function.rva));
        let is_public = function.kind == FunctionKind::Public;
        let shown = |frame: &chronosym_pdb::windows::Frame<'_>| {
            let name = frame.name.as_ref().map(|name| {
                let text = name.to_string();
                if is_public {
                    demangle(&text).unwrap_or(text)
                } else {
                    text
                }
            });
            let mut label = name.clone().unwrap_or("??".to_owned());
            if !frame.inlined {
                label.push_str(&format!("+{offset:#x}"));
            }
            let mut json = String::new();
            if self.style == Style::Json {
                let mut object = JsonObject::begin(&mut json);
                object
                    .text("address", Some(&format!("{address:#x}")))
                    .text("name", name.as_deref())
                    .value("offset", Some(offset))
                    .text("file", frame.file.as_deref())
                    .value("line", frame.line)
                    .value("column", frame.column)
                    .value("inlined", frame.inlined.then_some(true))
                    .text("name_reason", name.is_none().then_some("NoName"))
                    .text(
                        "line_reason",
                        (name.is_some() && frame.line.is_none()).then_some("NoLineInfo"),
                    );
                object.end();
            }
            Shown {
                label,
                name,
                file: frame.file.as_ref().map(|file| file.to_string()),
                line: frame.line,
                column: frame.column.map(u32::from),
                reason: None,
                json,
            }
        };
        Ok(self.frames.iter().map(shown).collect())
    }
}

/// Bytes of module streams after whose reading the mapping gives its pages back.
const TRIM_AFTER: u64 = 96 << 20;

impl PdbSource<'_> {
    /// Prints one answer.
    fn print_one(&mut self, question: &Question<'_>, out: &mut dyn Write) -> Result<()> {
        let mut out = out;
        let Some(place) = question.place else {
            return Ok(shown::print_unknown(
                self.style,
                question.text,
                "not an address",
                &mut out,
            )?);
        };
        let found = self.rva(place).ok_or("outside the image");
        match found
            .and_then(|(rva, address)| self.find(rva, address).map(|frames| (address, frames)))
        {
            Ok((address, frames)) => {
                shown::print(self.style, &format!("{address:#x}"), &frames, &mut out)?
            }
            Err(why) => shown::print_unknown(self.style, question.text, why, &mut out)?,
        }
        Ok(())
    }

    /// Lets go of what was mapped, once much of it was: answers to come seldom need the same pages.
    fn trim(&mut self) {
        let read = self.pdb.bytes_read();
        if read - self.trimmed_at > TRIM_AFTER {
            self.trimmed_at = read;
            self.files.pdb.release(0..self.files.pdb.len());
        }
    }
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
        let mut printed = Vec::new();
        let mut parts = vec![0..0; questions.len()];
        let mut last: Option<u32> = None;
        for (_, index) in order {
            let question = &questions[index as usize];
            // The same text has the same answer.
            if let Some(last) = last.filter(|&last| questions[last as usize].text == question.text)
            {
                parts[index as usize] = parts[last as usize].clone();
                continue;
            }
            let start = printed.len();
            self.print_one(question, &mut printed)?;
            parts[index as usize] = start..printed.len();
            last = Some(index);
            self.trim();
        }
        for part in parts {
            out.write_all(&printed[part])?;
        }
        Ok(())
    }

    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>> {
        let mut label = |question: &Question<'_>| {
            let (rva, address) = self.rva(question.place?)?;
            shown::in_text(&self.find(rva, address).ok()?)
        };
        Ok(questions.iter().map(&mut label).collect())
    }

    fn notes(&self) -> Vec<String> {
        self.damage.clone()
    }
}
