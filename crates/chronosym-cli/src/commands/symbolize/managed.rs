//! Resolves locations in managed code: IL offsets of methods, and RVAs of precompiled code.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;
use chronosym::symbols::{ManagedModule, OpenError, StoreConfig, SymbolOptions};
use chronosym::{IlOffset, LineReason, NameReason, SourceLine};
use chronosym_symbols::log::method_token;
use chronosym_symbols::style::OTHER_BUILD;
use chronosym_types::json::{FrameObject, HexNumber, Token};

use super::shown::{self, Layout, Unknown, Why};
use super::source::{Answers, Source};
use crate::args::Symbolize;
use crate::request::{AddressRequest, At, Method, Target};

const NO_METHOD: Why = ("no such method", NameReason::NoName);
const SEVERAL: Why = (
    "several methods have this name: use a token, 0x06……+0x…",
    NameReason::Ambiguous,
);

pub struct ManagedSource {
    module: ManagedModule,
    name: String,
    back: u64,
    rva: bool,
    notes: BTreeSet<String>,
}

/// A location in a module.
enum Located {
    Il(u32, u32),
    Native { rva: u64, address: u64 },
}

/// A frame, as far as it is known.
#[derive(Default)]
struct ManagedFrame {
    label: String,
    name: Option<String>,
    signature: Option<std::sync::Arc<str>>,
    address: Option<u64>,
    token: Option<u32>,
    offset: Option<u64>,
    il: Option<u32>,
    evidence: Option<&'static str>,
    line: Option<Result<SourceLine, LineReason>>,
}

impl ManagedSource {
    /// Opens the module of an image or a PDB; `None` if it holds no managed code.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the PDB belongs to another build.
    pub fn open(
        image: Option<&Path>,
        pdb: Option<&Path>,
        config: &StoreConfig,
        args: &Symbolize,
    ) -> Result<Option<Self>> {
        let mut options = SymbolOptions::within(&crate::limits::get());
        options.lines = !args.symbols.no_lines;
        options.any_pdb = args.any_pdb;
        let module = match (image, pdb) {
            (Some(image), pdb) => {
                let mut config = config.clone();
                // The user named the file, so the paths in it are trusted.
                config.trust_trace_paths |= !args.no_recorded_paths;
                ManagedModule::of_image(image, pdb, config, &options)
            }
            (None, Some(pdb)) => ManagedModule::of_pdb(pdb, &options),
            (None, None) => return Ok(None),
        };
        let module = match module {
            Ok(module) => module,
            Err(OpenError::NotManaged { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut notes = BTreeSet::from_iter(module.other_build().map(str::to_owned));
        // A composite has no PDB of its own.
        let image_of_one = image.filter(|_| !module.is_composite());
        if let (Err(reason), Some(image)) = (&module.pdb().found, image_of_one) {
            let attempts = module.pdb().attempts.iter();
            let tried: String = attempts.map(|attempt| format!("; {attempt}")).collect();
            notes.insert(format!("no PDB of {}: {reason}{tried}", image.display()));
        }
        let path = image.or(pdb).unwrap_or(Path::new(""));
        Ok(Some(ManagedSource {
            module,
            name: chronosym::symbols::module_name(path),
            back: u64::from(args.query.caller),
            rva: args.rva,
            notes,
        }))
    }

    fn asked(&self, place: Target<'_>) -> Result<Located, Why> {
        // `Type.Method+0x1a` looks like `module+0x1a`.
        if let (Some(name), At::Rva(offset)) = (place.file, place.at)
            && let Ok(il) = u32::try_from(offset)
            && let named @ (Ok(_) | Err(SEVERAL)) = self.named(name, il)
        {
            return named;
        }
        match (place.at, self.module.precompiled_base()) {
            (At::Il(Method::Token(token), il), _) => Ok(Located::Il(token, il)),
            (At::Il(Method::Named(name), il), _) => self.named(name, il),
            (At::Symbol(_) | At::Listed(..), _) => Err(shown::OTHER_KIND),
            (At::Rva(rva), Some(_)) => Ok(Located::Native { rva, address: rva }),
            (At::Address(address), Some(base)) => {
                // No code is below the base: a smaller value can only be an RVA.
                let base = if self.rva || address < base { 0 } else { base };
                let rva = address - base;
                Ok(Located::Native { rva, address })
            }
            (At::Address(number), None) => match method_token(&format!("{number:#x}")) {
                Some(token) => Ok(Located::Il(token, 0)),
                None => Err(shown::OTHER_KIND),
            },
            _ => Err(shown::OTHER_KIND),
        }
    }

    fn named(&self, method: &str, il: u32) -> Result<Located, Why> {
        match *self.module.methods_named(method) {
            [] => Err(NO_METHOD),
            [token] => Ok(Located::Il(token, il)),
            _ => Err(SEVERAL),
        }
    }

    fn method_name(&self, token: u32) -> Option<String> {
        let (owner, name) = self.module.method_name(token)?;
        Some(match &*owner {
            "" => name,
            owner => format!("{owner}.{name}"),
        })
    }

    fn of_il(&self, token: u32, il: u32) -> ManagedFrame {
        let name = self.method_name(token);
        let text = name.clone().unwrap_or_else(|| format!("{token:#010x}"));
        ManagedFrame {
            label: format!("{text}+IL_{il:04x}"),
            name,
            token: Some(token),
            il: Some(il),
            line: Some(self.module.line(token, IlOffset::mapped(il))),
            ..ManagedFrame::default()
        }
    }

    fn of_native(&self, rva: u64, address: u64) -> Option<ManagedFrame> {
        let code = self.module.precompiled(rva.checked_sub(self.back)?)?;
        let name = code.name.as_deref().map(str::to_owned);
        let offset = u64::from(code.offset) + self.back;
        let text = name.as_deref().unwrap_or("??");
        let line = self.module.precompiled_line(rva - self.back, &code);
        Some(ManagedFrame {
            label: format!("{text}+{offset:#x}"),
            name,
            signature: code.signature,
            address: Some(address),
            token: None,
            offset: Some(offset),
            il: code.il.map(|il| il.offset),
            evidence: Some(code.evidence.as_str()),
            line: Some(line),
        })
    }

    fn write(
        &self,
        question: &AddressRequest<'_>,
        layout: Layout,
        out: &mut Vec<u8>,
    ) -> Option<Unknown> {
        let asked = question.target.ok_or(shown::NO_ADDRESS);
        let asked = asked.and_then(|place| self.asked(place));
        let mut unknown = |why| layout.write_unknown(question, question.text, why, out);
        let (known, text) = match asked {
            Err(why) => return unknown(why),
            Ok(Located::Il(token, il)) => (self.of_il(token, il), question.text.to_owned()),
            Ok(Located::Native { rva, address }) => {
                let text = format!("{address:#x}");
                match self.of_native(rva, address) {
                    Some(known) => (known, text),
                    None => {
                        let frame = self.no_name(rva, address);
                        return layout.write(question, &text, [frame], out);
                    }
                }
            }
        };
        if known.name.is_none() && !matches!(known.line, Some(Ok(_))) && known.offset.is_none() {
            let why = match known.line {
                Some(Err(LineReason::SymbolFileDamaged)) => {
                    ("debug information damaged", NameReason::SymbolFileDamaged)
                }
                _ => NO_METHOD,
            };
            return unknown(why);
        }
        layout.write(question, &text, [self.text(&known)], out)
    }

    fn text<'k>(&'k self, known: &'k ManagedFrame) -> FrameObject<'k> {
        let line = known.line.as_ref().and_then(|line| line.as_ref().ok());
        let mut object = FrameObject::default();
        object.address = known.address.map(HexNumber);
        object.token = known.token.map(Token);
        object.name = known.name.as_deref();
        object.signature = known.signature.as_deref();
        object.module = Some(&self.name);
        object.offset = known.offset;
        object.il_offset = known.il;
        object.file = line.map(|line| &*line.file);
        object.line = line.map(|line| line.line);
        object.column = line.and_then(|line| line.column);
        object.evidence = known.evidence;
        if self.module.other_build().is_some() {
            object.certainty = Some("Approximate");
            object.mark = OTHER_BUILD;
        }
        if known.name.is_none() {
            object.pdb_id = self.pdb_id().map(Into::into);
            object.name_reason = Some(NameReason::NoName.as_str());
        } else if let Some(Err(reason)) = known.line {
            object.line_reason = Some(reason.as_str());
        }
        object.label = Some(known.label.as_str().into());
        object
    }

    fn no_name(&self, rva: u64, address: u64) -> FrameObject<'_> {
        let mut object = FrameObject::at(address);
        object.module = Some(&self.name);
        object.rva = Some(rva);
        object.pdb_id = self.pdb_id().map(Into::into);
        object.name_reason = Some(NameReason::NoName.as_str());
        object.meaning = Some("no name".into());
        object
    }

    fn pdb_id(&self) -> Option<String> {
        let id = self.module.pdb_id()?;
        Some(format!("{id:#}"))
    }
}

impl Source for ManagedSource {
    fn answer<'s>(
        &'s mut self,
        questions: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>> {
        let own: &Self = self;
        Ok(Box::new(move |index, out| {
            own.write(&questions[index], layout, out)
        }))
    }

    fn ids(&self) -> Vec<String> {
        let mvid = self.module.mvid().map(|id| id.to_string());
        let pdb = self.module.pdb_id().map(|id| id.guid.to_string());
        mvid.into_iter().chain(pdb).collect()
    }

    fn has_part(&self, name: &str) -> bool {
        !self.module.methods_named(name).is_empty()
    }

    fn notes(&mut self) -> Vec<String> {
        self.notes.iter().cloned().collect()
    }
}
