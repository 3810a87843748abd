//! Places of one file or of several: which of them a question is about.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym_symbols::ObjectPath;
use chronosym_symbols::identity::{BuildId, Wanted};
use chronosym_symbols::store::{FileName, Request, Stores, read_identity};

use super::managed::ManagedSource;
use super::mappings::Mappings;
use super::native::NativeSource;
use super::shown::{self, Layout};
use super::source::{Answers, Source};
use crate::args::{Symbolize, Usage};
use crate::request::{AddressRequest, At, Method, Target};
use crate::symbols;

/// The most files that are opened because a text names them.
const MAX_FOUND: usize = 256;

/// What the user names, and what texts name of the folders that the user names.
pub struct Modules<'a> {
    args: &'a Symbolize,
    mappings: &'a Mappings,
    layout: Layout,
    open: Vec<Module>,
    /// How many of them the user named.
    given: usize,
    /// Names and ids that led to nothing.
    missed: HashSet<(String, String)>,
    notes: Vec<String>,
}

struct Module {
    path: PathBuf,
    names: Vec<String>,
    ids: Vec<String>,
    source: Box<dyn Source>,
}

impl Module {
    /// # Errors
    /// The file cannot be read, or is in no known format.
    fn open(image: Option<&Path>, pdb: Option<&Path>, args: &Symbolize) -> Result<Self> {
        let object = image.map(ObjectPath::parse);
        let file = object.as_ref().map(|object| object.file.as_path());
        let path = file.or(pdb).unwrap_or(Path::new(""));
        let config = symbols::config(&args.symbols)?;
        let source: Box<dyn Source> = match ManagedSource::open(file, pdb, &config, args)? {
            Some(source) => Box::new(source),
            None => Box::new(NativeSource::open(image, pdb, &config, args)?),
        };
        let named = [Some(path), pdb].into_iter().flatten();
        Ok(Module {
            path: path.to_owned(),
            names: named.flat_map(names).collect(),
            ids: source.ids().iter().map(|id| plain_id(id)).collect(),
            source,
        })
    }

    /// Whether it is of that build, as far as a question says which.
    fn is_of(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| {
            let id = plain_id(id);
            // A PDB's id ends with its age, which not everybody writes.
            let is_guid = id.len() == 32;
            let mut own = self.ids.iter();
            own.any(|own| *own == id || is_guid && own.starts_with(&id))
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

/// What a question may call a file: its name with and without its ending, in lower case.
fn names(path: &Path) -> [String; 2] {
    [path.file_name(), path.file_stem()]
        .map(|part| part.map_or(String::new(), |p| p.to_string_lossy().to_lowercase()))
}

/// An id without what people write between its digits.
fn plain_id(id: &str) -> String {
    let digits = id.chars().filter(char::is_ascii_hexdigit);
    digits.map(|c| c.to_ascii_lowercase()).collect()
}

impl<'a> Modules<'a> {
    /// Opens the files that the user names.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn open(args: &'a Symbolize, mappings: &'a Mappings) -> Result<Self> {
        if args.pdb.is_some() && args.obj.len() > 1 {
            let usage = "--pdb is the PDB of one --obj, and there are several";
            return Err(Usage(usage.to_owned()).into());
        }
        let pdb = args.pdb.as_deref();
        let mut open = Vec::new();
        for image in &args.obj {
            open.push(Module::open(Some(image), pdb, args)?);
        }
        if open.is_empty() && pdb.is_some() {
            open.push(Module::open(None, pdb, args)?);
        }
        let perf_map = "--perf-map is for the addresses of a trace: it is not read";
        let perf_map = (!args.symbols.perf_map.is_empty()).then(|| perf_map.to_owned());
        if args.base.is_some() && open.len() != 1 {
            let usage = "--base is the load address of one --obj or --pdb";
            return Err(Usage(usage.to_owned()).into());
        }
        Ok(Modules {
            args,
            mappings,
            layout: Layout::new(args.style, args.in_text()),
            given: open.len(),
            open,
            missed: HashSet::new(),
            notes: Vec::from_iter(perf_map),
        })
    }

    /// Makes an address of a process one of a file, as far as load addresses are stated.
    fn relocate<'s>(&self, request: &mut AddressRequest<'s>)
    where
        'a: 's,
    {
        let Some(target) = &mut request.target else {
            return;
        };
        let At::Address(address) = target.at else {
            return;
        };
        let rva = self.args.base.and_then(|base| address.checked_sub(base));
        if let Some(rva) = rva {
            target.at = At::Rva(rva);
        } else if let Some((path, offset)) = self.mappings.find(address)
            && target
                .file
                .is_none_or(|file| file_name(file).eq_ignore_ascii_case(file_name(path)))
        {
            // What is mapped without a file is in none.
            target.file = Some(if path.is_empty() { "[anonymous]" } else { path });
            target.at = At::FileOffset(offset);
        } else {
            return;
        }
        request.address = Some(address);
    }

    /// The module that a place is in.
    fn choose(&mut self, place: Target<'_>) -> Result<usize, shown::Why> {
        let part = match place.at {
            // What is of another build is not of this one.
            _ if place.id.is_some() => None,
            At::Il(Method::Named(name), _) if place.file.is_none() => Some(name),
            // `Type.Method+0x1a` and `.text+0x1a` look like `module+0x1a`.
            At::Rva(_) => place.file,
            _ => None,
        };
        let known = match (place.file, place.id) {
            (None, None) => None,
            _ => self.known(place),
        };
        let of_part = || {
            let has = |module: &Module| part.is_some_and(|name| module.source.has_part(name));
            self.open.iter().position(has)
        };
        match known.or_else(of_part) {
            Some(module) => Ok(module),
            None if place.file.is_some() || place.id.is_some() => {
                self.note_other_build(place);
                self.search(place).ok_or(shown::OTHER_FILE)
            }
            None if self.given == 1 => Ok(0),
            None => Err(shown::WHICH_FILE),
        }
    }

    /// Notes that an open file has the name that a text states, and another id.
    fn note_other_build(&mut self, place: Target<'_>) {
        let (Some(file), Some(id)) = (place.file, place.id) else {
            return;
        };
        let name = file_name(file).to_lowercase();
        let other = self.open.iter().find(|module| module.is_called(&name));
        let note = other.map(|module| {
            let path = module.path.display();
            format!("{path} is another build than {file} with id {id} in the text")
        });
        self.notes
            .extend(note.filter(|note| !self.notes.contains(note)));
    }

    /// Of the open files the one that a place names; of several the one whose path has most in common with the name.
    fn known(&self, place: Target<'_>) -> Option<usize> {
        let name = place.file.map(|file| file_name(file).to_lowercase());
        let is_it = |module: &Module| {
            let is_called = name.as_ref().is_none_or(|name| module.is_called(name));
            is_called && module.is_of(place.id)
        };
        let file = place.file.unwrap_or_default();
        let found = self
            .open
            .iter()
            .enumerate()
            .filter(|(_, module)| is_it(module));
        // Of those that have as much in common the first.
        let best = found.max_by_key(|(at, module)| (in_common(&module.path, file), Reverse(*at)));
        best.map(|(index, _)| index)
    }

    /// Opens the file that a place names: in the folders that the user names, at its own path only if that is trusted, or by its
    /// build id wherever the options say.
    fn search(&mut self, place: Target<'_>) -> Option<usize> {
        let (file, id) = (place.file.unwrap_or_default(), place.id.unwrap_or_default());
        let key = (file.to_owned(), plain_id(id));
        if self.missed.contains(&key) {
            return None;
        }
        if self.open.len() - self.given >= MAX_FOUND {
            let full = format!("only {MAX_FOUND} files that the text names are opened");
            if !self.notes.contains(&full) {
                self.notes.push(full);
            }
            return None;
        }
        let symbols = &self.args.symbols;
        let mut places = Vec::new();
        for folder in &symbols.symbols {
            places.extend(below(folder, file));
            let name = FileName::from_untrusted(file);
            places.extend(name.map(|name| folder.join(name.as_str())));
        }
        // A share would be told who asks.
        let is_local = !file.starts_with(r"\\") && !file.starts_with("//");
        if symbols.trust_trace_paths && is_local {
            places.push(PathBuf::from(file));
        }
        if let Some(pid) = self.args.process_maps {
            let root = Path::new("/proc").join(pid.to_string()).join("root");
            places.extend(below(&root, file));
        }
        let is_named = !file.is_empty();
        places.retain(|path| is_named && path.is_file());
        let id = BuildId::parse(&key.1);
        places.extend(id.clone().and_then(|id| self.stored(id, file)));
        for mut path in places {
            if let Some(id) = &id {
                path = ObjectPath::with_uuid(path, id);
            }
            match Module::open(Some(&path), None, self.args) {
                Ok(module) if module.is_of(place.id) => {
                    self.open.push(module);
                    return Some(self.open.len() - 1);
                }
                Ok(_) => {}
                Err(error) => self.notes.push(format!("{error:#}")),
            }
        }
        self.missed.insert(key);
        None
    }

    fn stored(&self, id: BuildId, file: &str) -> Option<PathBuf> {
        let config = symbols::config(&self.args.symbols).ok()?;
        let request = Request::new(Wanted::ElfDebug(id), file_name(file));
        let outcome = Stores::new(config).acquire(&request, &read_identity);
        outcome.file.ok().map(|found| found.path)
    }
}

/// The path below a folder that a file has in the system it comes from.
fn below(folder: &Path, file: &str) -> Option<PathBuf> {
    let parts = file.split(['/', '\\']).filter(|part| !part.is_empty());
    let mut path = folder.to_owned();
    for part in parts {
        path.push(FileName::from_untrusted(part)?.as_str());
    }
    Some(path)
}

/// How many components two paths have in common, from the end.
fn in_common(path: &Path, file: &str) -> usize {
    let own = path.to_string_lossy();
    let parts = |path| str::rsplit(path, ['/', '\\']);
    parts(&own)
        .zip(parts(file))
        .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
        .count()
}

impl Source for Modules<'_> {
    fn answer<'s>(&'s mut self, mut questions: Vec<AddressRequest<'s>>) -> Result<Answers<'s>> {
        if self.args.base.is_some() || !self.mappings.is_empty() {
            questions
                .iter_mut()
                .for_each(|question| self.relocate(question));
        }
        // Each module is asked once for all that is its.
        let mut of_module: Vec<Vec<AddressRequest<'s>>> = Vec::new();
        let mut turns = Vec::with_capacity(questions.len());
        for question in &questions {
            let chosen = match question.target {
                Some(place) => self.choose(place),
                None => Err(shown::NO_ADDRESS),
            };
            turns.push(chosen.map(|module| {
                if of_module.len() <= module {
                    of_module.resize_with(module + 1, Vec::new);
                }
                let asked = &mut of_module[module];
                asked.push(question.clone());
                (module, asked.len() - 1)
            }));
        }
        let answers = self.open.iter_mut().zip(of_module);
        let answers = answers.map(|(module, asked)| module.source.answer(asked));
        let answers: Vec<Answers<'s>> = answers.collect::<Result<_>>()?;
        let layout = self.layout;
        Ok(Box::new(move |index, out| {
            let question = &questions[index];
            match turns[index] {
                Ok((module, turn)) => answers[module](turn, out),
                Err(why) => layout.write_unknown(question, question.text, why, out),
            }
        }))
    }

    fn notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        for module in &mut self.open {
            notes.extend(module.source.notes());
        }
        notes
    }
}
