//! Lists the symbol files that a profile lacks.

use chronosym_symbols::store::{NoFile, server_paths};
use rustc_hash::FxHashMap;

use crate::search::{SymbolFile, distinct, full};
use crate::symbolizer::Symbolizer;
use chronosym_core::BinaryId;
use chronosym_core::ImageRef;
use chronosym_core::ProcessIndex;
use chronosym_core::Profile;
use chronosym_core::{Code, Frame};
use chronosym_core::{ImageIndex, file_name};
use chronosym_core::{LineReason, NameReason};
use {chronosym_core::ModuleIndex, chronosym_core::ModuleRef};

/// A module or image whose symbol file is not available, and the samples that lack names or lines
/// because of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MissingSymbols {
    /// Simple name of the module or image.
    pub name: String,
    /// Samples whose innermost frame the file would name.
    pub unnamed: u64,
    /// Thread time of those samples, in ns, as far as it is known.
    pub unnamed_ns: u64,
    /// Samples whose innermost frame has a name but no line, which the file would add.
    pub without_line: u64,
    /// Thread time of those samples, in ns, as far as it is known.
    pub without_line_ns: u64,
    /// The identity that the file must have, where it was searched for, and why there is none.
    pub file: SymbolFile,
    /// Paths of the file in the trace, or those of the image to which it belongs.
    pub trace_paths: Vec<String>,
    /// Paths on a symbol server or a debuginfod server, relative to its address, the likeliest
    /// first. Empty if the trace states no identity.
    pub server_paths: Vec<String>,
}

/// The owner of a symbol file.
#[derive(Clone, Copy)]
enum Of {
    Image(ProcessIndex, ImageIndex),
    Module(ProcessIndex, ModuleIndex),
}

#[derive(Clone, Copy)]
struct Lack {
    of: Of,
    /// Number of samples, and their time in ns.
    unnamed: (u64, u64),
    without_line: (u64, u64),
}

impl Symbolizer {
    /// Returns the symbol files that would name the innermost frames of a profile or add their
    /// lines, in descending order of the samples they would name. A file that is available but does
    /// not cover an address is not missing.
    pub fn missing(&self, profile: &Profile) -> Vec<MissingSymbols> {
        let resolver = &profile.resolver;
        let mut lacks: FxHashMap<(BinaryId, bool), Lack> = FxHashMap::default();
        for entry in &profile.entries {
            let frame = resolver.frame(resolver.leaf(entry.stack));
            let (Some(binary), Some(of)) = (frame.function.binary(), of(frame, profile)) else {
                continue;
            };
            let (unnamed, without_line) = match frame.name() {
                Err(NameReason::NoName) => (matches!(of, Of::Image(..)), false),
                Err(reason) => (lacks_file(reason.as_str()), false),
                Ok(_) => {
                    let reason = frame.line_reason().map(LineReason::as_str);
                    (false, reason.is_some_and(lacks_file))
                }
            };
            if unnamed || without_line {
                let key = (binary.id(), matches!(of, Of::Image(..)));
                let lack = lacks.entry(key).or_insert(Lack {
                    of,
                    unnamed: (0, 0),
                    without_line: (0, 0),
                });
                let (samples, time) = match unnamed {
                    true => &mut lack.unnamed,
                    false => &mut lack.without_line,
                };
                *samples += entry.samples;
                *time = time.saturating_add(entry.time_ns);
            }
        }
        let missing = |((binary, _), lack): ((BinaryId, bool), Lack)| {
            let name = resolver.binaries()[binary.index()].name();
            self.lacking(profile, name, lack)
        };
        let mut all = joined(lacks.into_iter().filter_map(missing));
        let is_timed = profile.time_ns().is_some_and(|time| time > 0);
        let cost = |missing: &MissingSymbols| match is_timed {
            true => (missing.unnamed_ns, missing.without_line_ns),
            false => (missing.unnamed, missing.without_line),
        };
        all.sort_by(|a, b| cost(b).cmp(&cost(a)).then_with(|| a.name.cmp(&b.name)));
        all
    }

    fn lacking(&self, profile: &Profile, name: &str, lack: Lack) -> Option<MissingSymbols> {
        let timeline = profile.resolver.timeline();
        let (file, names, trace_paths) = match lack.of {
            Of::Image(process, image) => {
                let image = timeline.image_ref(process, image)?;
                let (names, paths) = of_image(&image);
                (self.image_symbols(&image), names, paths)
            }
            Of::Module(process, module) => {
                let module = timeline.module_ref(process, module)?;
                let (names, paths) = of_module(&module);
                (self.module_pdb(&module), names, paths)
            }
        };
        (file.found.is_err() || file.is_stripped()).then(|| MissingSymbols {
            name: name.to_owned(),
            unnamed: lack.unnamed.0,
            unnamed_ns: lack.unnamed.1,
            without_line: lack.without_line.0,
            without_line_ns: lack.without_line.1,
            server_paths: file
                .wanted
                .as_ref()
                .map_or_else(Vec::new, |wanted| server_paths(wanted, &names)),
            file,
            trace_paths,
        })
    }
}

/// Joins the lacks of one file: names that a recorder wrote have another binary than its image.
fn joined(missing: impl Iterator<Item = MissingSymbols>) -> Vec<MissingSymbols> {
    let mut all: Vec<MissingSymbols> = Vec::new();
    for own in missing {
        let is_same = |it: &&mut MissingSymbols| {
            own.file.wanted.is_some()
                && (&it.name, &it.file.wanted) == (&own.name, &own.file.wanted)
        };
        match all.iter_mut().find(is_same) {
            Some(same) => same.add(&own),
            None => all.push(own),
        }
    }
    all
}

impl MissingSymbols {
    fn add(&mut self, other: &Self) {
        self.unnamed += other.unnamed;
        self.unnamed_ns = self.unnamed_ns.saturating_add(other.unnamed_ns);
        self.without_line += other.without_line;
        self.without_line_ns = self.without_line_ns.saturating_add(other.without_line_ns);
    }

    /// Returns the reason in the frames' terms. An available file may be a stripped image.
    pub fn reason(&self) -> &'static str {
        let none = self.file.found.as_ref().err();
        none.unwrap_or(&NoFile::NoSymbolFile).name()
    }
}

fn of(frame: &Frame, profile: &Profile) -> Option<Of> {
    match frame.code {
        Code::Image { process, image, .. } => Some(Of::Image(process, image)),
        Code::Body(process, body) => {
            let body = profile.resolver.timeline().body_view(process, body)?;
            Some(Of::Module(process, body.module_index?))
        }
        Code::Precompiled(process, module) => Some(Of::Module(process, module)),
        // A recorder named it: a symbol file adds its line.
        Code::Untimed(process, _) => {
            let mut images = profile
                .resolver
                .timeline()
                .images_at(process, frame.address);
            Some(Of::Image(process, images.next()?.index))
        }
        _ => None,
    }
}

fn of_image(image: &ImageRef<'_>) -> (Vec<String>, Vec<String>) {
    let pdb = image.pdb.map_or("", |pdb| &pdb.path);
    // If there is a PDB, its name is the one to search for.
    let name = file_name(if pdb.is_empty() { image.path } else { pdb });
    (distinct([name]), distinct([image.path, full(pdb)]))
}

fn of_module(module: &ModuleRef<'_>) -> (Vec<String>, Vec<String>) {
    let pdb = module.managed_pdb.map_or("", |pdb| &pdb.path);
    let paths = distinct([module.il_path, full(pdb)]);
    (distinct([file_name(pdb)]), paths)
}

/// Returns whether a reason means that a file is not available.
fn lacks_file(reason: &str) -> bool {
    matches!(
        reason,
        "NoSymbolFile" | "SymbolFileMismatch" | "SymbolFileDamaged" | "PathNotTrusted" | "Offline"
    )
}
