//! Resolves addresses in one or several files, and selects the file that a request refers to.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Result;
use chronosym::file_name;
use chronosym::symbols::StoreConfig;
use chronosym_pdb::portable::PortablePdb;
use chronosym_pdb::windows::WindowsPdb;
use chronosym_symbols::ObjectPath;
use chronosym_symbols::identity::{BuildId, PdbId, Wanted};
use chronosym_symbols::store::{Request, Stores, read_identity};
use chronosym_symbols::style::Style;

use super::file_names::{
    IMAGE_ENDINGS, below, in_common, in_folder, is_file_name, names, symbol_file_of,
};
use super::managed::ManagedSource;
use super::native::NativeSource;
use super::shown::{self, Layout, Why};
use super::source::{Answers, Source};
use crate::args::{Symbolize, Usage};
use crate::request::{AddressRequest, At, Method, Target};
use crate::symbols;

/// Maximum number of files opened because a text names them.
const MAX_FOUND: usize = 256;

/// Maximum number of missing modules: no others are searched for.
const MAX_MISSED: usize = 4096;
const MAX_NOTED: usize = 20;

/// The files that the user names, and those that texts name in folders that the user names.
pub struct Modules<'a> {
    args: &'a Symbolize,
    config: StoreConfig,
    open: Vec<Module>,
    /// The number of files that the user named.
    given: usize,
    /// Names and ids for which no file was found.
    missed: BTreeMap<(String, String), Missing>,
    /// Number of a log's addresses in modules that were not searched for.
    unsearched: usize,
    /// Number of a log's addresses without a module.
    without_module: usize,
    /// Whether addresses came from a log, whose missing modules are reported.
    is_log: bool,
    notes: Vec<String>,
}

/// A module that is not available.
struct Missing {
    /// The reason, and where it was searched for.
    why: String,
    /// Number of the log's addresses in it.
    addresses: usize,
}

struct Module {
    path: PathBuf,
    names: Vec<String>,
    ids: Vec<String>,
    source: Box<dyn Source>,
}

impl Module {
    /// Opens an image, a PDB, or both.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is in no known format.
    fn open(
        image: Option<&Path>,
        pdb: Option<&Path>,
        config: &StoreConfig,
        args: &Symbolize,
    ) -> Result<Self> {
        let object = image.map(ObjectPath::parse);
        let file = object.as_ref().map(|object| object.file.as_path());
        let path = file.or(pdb).unwrap_or(Path::new(""));
        let source: Box<dyn Source> = match ManagedSource::open(file, pdb, config, args)? {
            Some(source) => Box::new(source),
            None => Box::new(NativeSource::open(image, pdb, config, args)?),
        };
        let named = [Some(path), pdb].into_iter().flatten();
        let images = IMAGE_ENDINGS.iter().filter(|_| image.is_none());
        let images = images.flat_map(|ending| names(&path.with_extension(ending)));
        Ok(Module {
            path: path.to_owned(),
            names: named.flat_map(names).chain(images).collect(),
            ids: source.ids().iter().flat_map(|id| forms_of(id)).collect(),
            source,
        })
    }

    /// Returns whether the file belongs to a build, as far as a request identifies one.
    fn is_of(&self, id: Option<&str>) -> bool {
        id.is_none_or(|id| {
            let id = plain_id(id);
            // A PDB's id ends with its age, which some tools omit.
            let is_guid = id.len() == 32;
            let mut own = self.ids.iter();
            own.any(|own| *own == id || is_guid && own.starts_with(&id))
        })
    }

    fn is_called(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }
}

/// Returns whether a file starts as a PDB does; false if it cannot be read.
fn is_pdb(path: &Path) -> bool {
    // Opening a pipe would wait for a writer.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(32).read_to_end(&mut start));
    read.is_ok() && (WindowsPdb::sniff(&start) || PortablePdb::sniff(&start))
}

/// Returns the forms of an id: plain, and as Breakpad and Sentry write build IDs and UUIDs, a GUID
/// with an age.
fn forms_of(id: &str) -> Vec<String> {
    let plain = plain_id(id);
    let mut forms = vec![];
    // The first fields of a GUID are little-endian numbers.
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let bytes = order.map(|at| plain.get(2 * at..2 * at + 2).unwrap_or_default());
    if plain.len() >= 32 {
        forms.push(format!("{}0", bytes.concat()));
        forms.push(format!("{}0", &plain[..32]));
    }
    forms.push(plain);
    forms
}

/// Removes separators from an id.
fn plain_id(id: &str) -> String {
    let digits = id.chars().filter(char::is_ascii_hexdigit);
    digits.map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns the images and PDBs that the user names. An image and a PDB of one name belong together,
/// also if both are given as `--obj`.
fn named(args: &Symbolize) -> Vec<(Option<&Path>, Option<&Path>)> {
    let objects = args.obj.iter().map(PathBuf::as_path);
    if let Some(pdb) = args.pdb.as_deref() {
        return vec![(args.obj.first().map(PathBuf::as_path), Some(pdb))];
    }
    let (pdbs, images): (Vec<&Path>, Vec<&Path>) = objects.partition(|path| is_pdb(path));
    let is_of = |image: &Path, pdb: &Path| image.file_stem() == pdb.file_stem();
    let of_image = |image| pdbs.iter().copied().find(|pdb| is_of(image, pdb));
    let alone = pdbs
        .iter()
        .filter(|pdb| !images.iter().any(|image| is_of(image, pdb)));
    let with_image = images.iter().map(|&image| (Some(image), of_image(image)));
    with_image
        .chain(alone.map(|&pdb| (None, Some(pdb))))
        .collect()
}

impl<'a> Modules<'a> {
    /// Opens the files that the user names.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn open(args: &'a Symbolize) -> Result<Self> {
        if args.pdb.is_some() && args.obj.len() > 1 {
            let usage = "--pdb belongs to one --obj, but several are given";
            return Err(Usage(usage.to_owned()).into());
        }
        let config = symbols::config(&args.symbols)?;
        let open = named(args).into_iter();
        let open = open.map(|(image, pdb)| Module::open(image, pdb, &config, args));
        let open: Vec<Module> = open.collect::<Result<_>>()?;
        let perf_map = "--perf-map applies only to addresses of a trace: ignored";
        let perf_map = (!args.symbols.perf_map.is_empty()).then(|| perf_map.to_owned());
        if args.base.is_some() && open.len() != 1 {
            let usage = "--base needs exactly one --obj or --pdb";
            return Err(Usage(usage.to_owned()).into());
        }
        Ok(Modules {
            args,
            config,
            given: open.len(),
            open,
            missed: BTreeMap::new(),
            unsearched: 0,
            without_module: 0,
            is_log: false,
            notes: Vec::from_iter(perf_map),
        })
    }

    /// Treats `name+0x10` as an offset in a file if an open file has the name, in input in which it
    /// could also be a function.
    fn prefer_files(&self, request: &mut AddressRequest<'_>) {
        let Some(target) = request
            .target
            .as_mut()
            .filter(|target| target.file.is_none())
        else {
            return;
        };
        let At::Symbol(symbol) = target.at else {
            return;
        };
        let name = symbol.name.to_lowercase();
        let is_file = symbol.size.is_none() && self.open.iter().any(|m| m.is_called(&name));
        if is_file && symbol.offset > 0 {
            (target.file, target.at) = (Some(symbol.name), At::Rva(symbol.offset));
        }
    }

    /// Returns the module that contains a target.
    fn choose(&mut self, request: &AddressRequest<'_>) -> Result<usize, Why> {
        let target = request.target.ok_or(shown::NO_ADDRESS)?;
        let part = match target.at {
            // A target with an id is matched by the id only.
            _ if target.id.is_some() => None,
            At::Il(Method::Named(name), _) if target.file.is_none() => Some(name),
            // `Type.Method+0x1a`, `f+0x1a` and `.text+0x1a` look like `module+0x1a`.
            At::Rva(_) if target.is_ambiguous => target.file.filter(|name| !is_file_name(name)),
            At::Symbol(symbol) if target.file.is_none() => Some(symbol.name),
            _ => None,
        };
        // Memory without a file, in lists of mappings.
        if target.file.is_some_and(|file| file.starts_with('[')) {
            return Err(shown::NO_FILE_THERE);
        }
        if target.file.is_some() || target.id.is_some() {
            if let Some(module) = self.opened(target) {
                return Ok(module);
            }
        } else if self.given == 1 {
            return Ok(0);
        }
        let has_part = |module: &Module| part.is_some_and(|name| module.source.has_part(name));
        let mut with_part = self.open.iter().enumerate().filter(|(_, m)| has_part(m));
        match (with_part.next(), with_part.next()) {
            (Some((module, _)), None) => return Ok(module),
            (Some(_), Some(_)) => return Err(shown::WHICH_FILE),
            (None, _) => {}
        }
        if target.file.is_none() && target.id.is_none() {
            return Err(match target.at {
                At::Symbol(_) if self.given > 0 => shown::NO_FUNCTION,
                _ => shown::WHICH_FILE,
            });
        }
        self.search(target, request.symbol_file)
            .ok_or(shown::OTHER_FILE)
    }

    /// Returns the open file that a target names; if there are several, the one whose path shares
    /// the most components with the name.
    fn opened(&self, place: Target<'_>) -> Option<usize> {
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
        // Prefer the first of those that share the same number.
        let best = found.max_by_key(|(at, module)| (in_common(&module.path, file), Reverse(*at)));
        best.map(|(index, _)| index)
    }

    /// Opens the file that a target names: in the folders that the user names, at its own path only
    /// if that is trusted, or by its identity wherever the options allow.
    fn search(&mut self, target: Target<'_>, symbol_file: Option<&str>) -> Option<usize> {
        let (file, id) = (
            target.file.unwrap_or_default(),
            target.id.unwrap_or_default(),
        );
        let key = (file.to_owned(), plain_id(id));
        if let Some(missing) = self.missed.get_mut(&key) {
            missing.addresses += 1;
            return None;
        }
        // A log may name any number of files.
        if self.missed.len() >= MAX_MISSED {
            self.unsearched += 1;
            return None;
        }
        let mut why = Vec::from_iter(self.other_build(target));
        if self.open.len() - self.given >= MAX_FOUND {
            why.push(format!(
                "only {MAX_FOUND} of the files named in the text are opened"
            ));
        } else {
            let build_id = BuildId::parse(&key.1);
            for mut path in self.paths(file) {
                if let Some(id) = &build_id {
                    path = ObjectPath::with_uuid(path, id);
                }
                let (image, pdb) = match is_pdb(&path) {
                    true => (None, Some(&*path)),
                    false => (Some(&*path), None),
                };
                match Module::open(image, pdb, &self.config, self.args) {
                    Ok(module) if module.is_of(target.id) => {
                        self.open.push(module);
                        return Some(self.open.len() - 1);
                    }
                    Ok(_) => why.push(format!("{} is another build", path.display())),
                    Err(error) => why.push(format!("{error:#}")),
                }
            }
            let name = symbol_file.map_or_else(|| symbol_file_of(file), str::to_owned);
            match self.stored(&key.1, file, &name) {
                Ok(mut module) => {
                    module.names.extend(names(Path::new(file_name(file))));
                    // The store has verified it.
                    module.ids.push(key.1);
                    self.open.push(module);
                    return Some(self.open.len() - 1);
                }
                Err(reasons) => why.extend(reasons),
            }
        }
        let why = why.join("; ");
        let addresses = 1;
        self.missed.insert(key, Missing { why, addresses });
        None
    }

    /// Returns the possible paths of a file that a text names.
    fn paths(&self, file: &str) -> Vec<PathBuf> {
        if file.is_empty() {
            return Vec::new();
        }
        let symbols = &self.args.symbols;
        let mut paths = Vec::new();
        for folder in &symbols.symbols {
            paths.extend(below(folder, file));
            paths.extend(in_folder(folder, file));
        }
        // Opening a network share would reveal the user to its server.
        let is_local = !file.starts_with(r"\\") && !file.starts_with("//");
        // Input lines of llvm-symbolizer are written by the user.
        let is_trusted = symbols.trust_trace_paths || self.opens_named_files();
        if is_trusted && is_local {
            paths.push(PathBuf::from(file));
        }
        if let Some(pid) = self.args.process_maps {
            let root = Path::new("/proc").join(pid.to_string()).join("root");
            paths.extend(below(&root, file));
        }
        paths.retain(|path| path.is_file());
        paths
    }

    /// Returns whether paths in the input come from the user, as in the input of llvm-symbolizer.
    fn opens_named_files(&self) -> bool {
        self.args.style == Style::Llvm && !self.is_log
    }

    /// Returns the file of an identity from the stores, or why there is none and where it was
    /// searched for.
    fn stored(&self, id: &str, file: &str, symbol_file: &str) -> Result<Module, Vec<String>> {
        let stores = Stores::new(self.config.clone());
        let build_id = BuildId::parse(id);
        let is_pdb = symbol_file.to_lowercase().ends_with(".pdb");
        let pdb = pdb_id(id);
        let mut wanted = Vec::new();
        match (&pdb, &build_id) {
            (Some(pdb), _) if is_pdb => wanted.push((Wanted::pdb(*pdb), symbol_file)),
            (_, Some(id)) => {
                wanted.push((Wanted::ElfDebug(id.clone()), file_name(file)));
                wanted.push((Wanted::ElfImage(id.clone()), file_name(file)));
            }
            _ => {}
        }
        let breakpad = match (&pdb, &build_id) {
            (Some(pdb), _) if id.len() > 32 && id.len() < 40 => vec![Wanted::Breakpad(*pdb)],
            (_, Some(id)) => Wanted::breakpad(id),
            _ => Vec::new(),
        };
        let named = breakpad.into_iter().map(|breakpad| (breakpad, symbol_file));
        wanted.extend(named);
        let mut why: Vec<String> = Vec::new();
        for (wanted, name) in wanted {
            let is_breakpad = matches!(wanted, Wanted::Breakpad(_));
            let outcome = stores.acquire(&Request::new(wanted, name), &read_identity);
            match outcome.file {
                Ok(found) => {
                    let path = match BuildId::parse(id).filter(|_| !is_pdb && !is_breakpad) {
                        Some(id) => ObjectPath::with_uuid(found.path, &id),
                        None => found.path,
                    };
                    let path = Some(&*path);
                    let is_pdb = is_pdb && !is_breakpad;
                    let (image, pdb) = if is_pdb { (None, path) } else { (path, None) };
                    let module = Module::open(image, pdb, &self.config, self.args);
                    return module.map_err(|error| vec![format!("{error:#}")]);
                }
                Err(reason) => {
                    let first = why.is_empty().then(|| reason.to_string());
                    why.extend(first);
                    let attempts = outcome.attempts.iter().map(ToString::to_string);
                    let new: Vec<_> = attempts.filter(|text| !why.contains(text)).collect();
                    why.extend(new);
                }
            }
        }
        Err(why)
    }

    /// Returns a note if an open file has the name of a target, but another id.
    fn other_build(&self, target: Target<'_>) -> Option<String> {
        let id = target.id?;
        let name = file_name(target.file?).to_lowercase();
        let other = self.open.iter().find(|module| module.is_called(&name))?;
        let path = other.path.display();
        Some(format!(
            "{path} is another build than {name} with id {id} in the text"
        ))
    }

    /// Returns notes on the files that a log's addresses lack, and how to supply them.
    fn missing(&self) -> Vec<String> {
        let mut missing: Vec<_> = self.missed.iter().collect();
        missing.sort_by_key(|(_, missing)| Reverse(missing.addresses));
        let mut notes: Vec<String> = missing
            .iter()
            .take(MAX_NOTED)
            .map(|((file, id), missing)| {
                let name = match file_name(file) {
                    "" => "a module",
                    name => name,
                };
                let id = if id.is_empty() { String::new() } else { format!(" (id {id})") };
                let why = match &*missing.why {
                    "" => String::new(),
                    why => format!(": {why}"),
                };
                format!(
                    "{name}{id}: {} not resolved, no file found{why}; add --obj FILE, its folder with --symbols DIR, or a \
                     symbol server with --symbol-path or DEBUGINFOD_URLS",
                    addresses(missing.addresses)
                )
            })
            .collect();
        let more = missing.len().saturating_sub(MAX_NOTED);
        if more > 0 {
            notes.push(format!("{more} more modules have no file"));
        }
        if self.unsearched > 0 {
            notes.push(format!(
                "{} not resolved, whose modules were not searched for: {MAX_MISSED} others have no file",
                addresses(self.unsearched)
            ));
        }
        if self.without_module > 0 {
            notes.push(format!(
                "{} not resolved: neither the line nor a list of images states the module; add --obj FILE with --base, or \
                 --maps",
                addresses(self.without_module)
            ));
        }
        notes
    }
}

fn addresses(count: usize) -> String {
    match count {
        1 => "1 address".to_owned(),
        count => format!("{count} addresses"),
    }
}

/// Parses a GUID of 32 digits with an age, or the GUID alone, whose age is usually 1.
fn pdb_id(id: &str) -> Option<PdbId> {
    let (guid, age) = id.split_at_checked(32)?;
    let age = match age {
        "" => 1,
        age => u32::from_str_radix(age, 16).ok()?,
    };
    Some(PdbId {
        guid: guid.parse().ok()?,
        age,
    })
}

impl Source for Modules<'_> {
    fn answer<'s>(
        &'s mut self,
        mut questions: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>> {
        if layout.is_list() {
            let requests = questions.iter_mut();
            requests.for_each(|request| self.prefer_files(request));
        }
        self.is_log |= !layout.is_list();
        // Each module resolves all of its requests in one batch.
        let mut of_module: Vec<Vec<AddressRequest<'s>>> = Vec::new();
        let mut turns = Vec::with_capacity(questions.len());
        for question in &questions {
            let chosen = self.choose(question);
            if matches!(chosen, Err(shown::WHICH_FILE)) {
                self.without_module += 1;
            }
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
        let answers = answers.map(|(module, asked)| module.source.answer(asked, layout));
        let answers: Vec<Answers<'s>> = answers.collect::<Result<_>>()?;
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
        if self.is_log || self.args.style == Style::Llvm {
            notes.extend(self.missing());
        }
        for module in &mut self.open {
            notes.extend(module.source.notes());
        }
        notes
    }

    fn convert(&self) {
        self.open.iter().for_each(|module| module.source.convert());
    }
}
