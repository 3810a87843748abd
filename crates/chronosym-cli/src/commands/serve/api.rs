//! The viewer's JSON API: symbols of addresses, source files, machine code. Requests and responses
//! are those of samply's API, which follows Mozilla's symbol server.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use chronosym::symbols::{NoSource, Symbolizer};
use chronosym::{Code, FrameId, ImageIndex, ImageRef, ProcessIndex, Resolver, SymbolSource};
use chronosym_export::{firefox_address, module_of};
use chronosym_pdb::pe::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;

use super::assembly;

/// Maximum size of a shown function, in bytes.
const MAX_CODE: usize = 1 << 16;

/// Responses from one profile only.
pub struct Api {
    resolver: Resolver,
    symbols: Arc<Symbolizer>,
    /// Folders with source files.
    folders: Vec<PathBuf>,
    /// Binaries by name and identity, as in the profile.
    binaries: HashMap<(String, String), usize>,
    /// The innermost frame at an address of a binary, with the profile's addresses.
    frames: HashMap<(usize, u64), FrameId>,
    /// For each source file that a frame of a binary names, one such frame.
    files: HashMap<(usize, Arc<str>), FrameId>,
    /// For each binary that is an image, one such image.
    images: HashMap<usize, (ProcessIndex, ImageIndex)>,
}

/// A library in the viewer's terms: name and id.
type Library = (String, String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Symbolicate {
    Jobs { jobs: Vec<Job> },
    Job(Job),
}

#[derive(Deserialize)]
struct Job {
    #[serde(rename = "memoryMap")]
    memory_map: Vec<Library>,
    /// (library, address in it); −1 is no library.
    stacks: Vec<Vec<(i64, u64)>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    debug_name: String,
    debug_id: String,
    file: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assembly {
    debug_name: String,
    debug_id: String,
    start_address: Hex,
    size: Hex,
    #[serde(default)]
    continue_until_function_end: bool,
}

/// A number as `0x…`.
#[derive(Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
struct Hex(u64);

impl TryFrom<String> for Hex {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        let number = u64::from_str_radix(digits, 16);
        number
            .map(Hex)
            .with_context(|| format!("'{text}' is not a hexadecimal number"))
    }
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Symbol<'a> {
    frame: usize,
    module_offset: String,
    module: Option<&'a str>,
    function: Option<&'a str>,
    function_offset: Option<String>,
    file: Option<&'a str>,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<Inline<'a>>,
}

#[skip_serializing_none]
#[derive(Serialize)]
struct Inline<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
}

fn read<'q, T: Deserialize<'q>>(request: &'q [u8]) -> Result<T> {
    serde_json::from_slice(request).map_err(|error| anyhow!("invalid request: {error}"))
}

impl Api {
    pub fn new(resolver: Resolver, symbols: Arc<Symbolizer>, folders: Vec<PathBuf>) -> Self {
        let id = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let binaries = resolver.binaries().iter().enumerate();
        let binaries = binaries.map(|(at, b)| ((b.name().to_owned(), id(b.identity())), at));
        let binaries = binaries.collect();
        let (mut frames, mut files, mut images) = (HashMap::new(), HashMap::new(), HashMap::new());
        for id in resolver.frame_ids() {
            let frame = resolver.frame(id);
            let Some(binary) = frame.function.binary().map(|binary| binary.id().index()) else {
                continue;
            };
            frames
                .entry((binary, firefox_address(id, frame)))
                .or_insert(id);
            if let Code::Image { process, image, .. } = frame.code {
                images.entry(binary).or_insert((process, image));
            }
            if let Ok(line) = &frame.line {
                files.entry((binary, Arc::clone(&line.file))).or_insert(id);
            }
        }
        Api {
            resolver,
            symbols,
            folders,
            binaries,
            frames,
            files,
            images,
        }
    }

    /// Returns the response to a request for this path; errors are in its field `error`.
    pub fn answer(&self, path: &str, request: &[u8]) -> String {
        let answer = match path {
            "/symbolicate/v5" => read(request).map(|q| self.symbolicate(q)),
            "/source/v1" => read(request).and_then(|q| self.source(&q)),
            _ => read(request).and_then(|q| self.assembly(&q)),
        };
        let answer = answer.unwrap_or_else(|why| json!({ "error": why.to_string() }));
        // Values always serialize.
        chronosym_types::json::to_string(&answer).unwrap_or_default()
    }

    fn symbolicate(&self, request: Symbolicate) -> Value {
        let jobs = match request {
            Symbolicate::Jobs { jobs } => jobs,
            Symbolicate::Job(job) => vec![job],
        };
        let results: Vec<Value> = jobs.iter().map(|job| self.job(job)).collect();
        json!({"results": results})
    }

    fn job(&self, job: &Job) -> Value {
        let used: HashSet<i64> = job.stacks.iter().flatten().map(|at| at.0).collect();
        let mut modules = serde_json::Map::new();
        for (at, library) in job.memory_map.iter().enumerate() {
            let is_used = used.contains(&(at as i64));
            let is_known = is_used.then(|| self.binaries.contains_key(library));
            modules.insert(format!("{}/{}", library.0, library.1), is_known.into());
        }
        let stacks = job.stacks.iter().map(|stack| {
            let symbols = stack.iter().enumerate();
            symbols
                .map(|(at, &(library, address))| self.symbol(job, at, library, address))
                .collect()
        });
        let stacks: Vec<Vec<Symbol<'_>>> = stacks.collect();
        json!({"stacks": stacks, "found_modules": modules})
    }

    fn symbol<'a>(&'a self, job: &'a Job, at: usize, library: i64, address: u64) -> Symbol<'a> {
        let library = usize::try_from(library).ok();
        let library = library.and_then(|at| job.memory_map.get(at));
        let mut symbol = Symbol {
            frame: at,
            module_offset: format!("{address:#x}"),
            module: library.map(|library| library.0.as_str()),
            function: None,
            function_offset: None,
            file: None,
            line: None,
            inlines: Vec::new(),
        };
        let binary = library.and_then(|library| self.binaries.get(library));
        let Some(&first) = binary.and_then(|&binary| self.frames.get(&(binary, address))) else {
            return symbol;
        };
        // Inlinees precede the function that contains them.
        for frame in &self.resolver.frames()[first.index()..] {
            let line = frame.line.as_ref().ok();
            let (file, number) = (line.map(|line| &*line.file), line.map(|line| line.line));
            if frame.inlined {
                symbol.inlines.push(Inline {
                    function: frame.name().unwrap_or(frame.label()),
                    file,
                    line: number,
                });
                continue;
            }
            symbol.function = frame.name().ok();
            symbol.function_offset = frame.offset.map(|offset| format!("{offset:#x}"));
            (symbol.file, symbol.line) = (file, number);
            break;
        }
        symbol
    }

    fn binary(&self, name: &str, id: &str) -> Option<usize> {
        let library = (name.to_owned(), id.to_owned());
        self.binaries.get(&library).copied()
    }

    /// Only files that the profile names are read.
    fn source(&self, request: &Source) -> Result<Value> {
        let binary = self.binary(&request.debug_name, &request.debug_id);
        let key = binary.map(|binary| (binary, Arc::from(request.file.as_str())));
        let frame = key.and_then(|key| self.files.get(&key));
        let frame = frame.context("the profile has no such file in this library")?;
        let timeline = self.resolver.timeline();
        let module = module_of(self.resolver.frame(*frame), timeline);
        let module = module.and_then(|(process, module)| timeline.module_ref(process, module));
        let source = self
            .symbols
            .source(module.as_ref(), &request.file, &self.folders);
        let source = source.map_err(|why| match why {
            NoSource::NotFound => anyhow!(
                "{} is neither in the PDB nor in a folder of --sources; --trust-trace-paths reads it at its compile-time path",
                request.file
            ),
            why => anyhow!("{why}"),
        })?;
        Ok(json!({
            "symbolsLastModified": null,
            "sourceLastModified": null,
            "file": request.file,
            "source": source.text,
        }))
    }

    /// Returns the instructions of an image whose file is available.
    fn assembly(&self, request: &Assembly) -> Result<Value> {
        let binary = self.binary(&request.debug_name, &request.debug_id);
        let image = binary.and_then(|binary| self.images.get(&binary));
        let timeline = self.resolver.timeline();
        let image = image.and_then(|&(process, image)| timeline.image_ref(process, image));
        let image = image.context(
            "the profile has no image of that name; the bytes of code compiled at run time are not recorded",
        )?;
        let (Hex(start), Hex(size)) = (request.start_address, request.size);
        let code = self.symbols.machine_code(&image, start, MAX_CODE);
        let (processor, code) = code.ok_or_else(|| {
            let why = self.symbols.image_file(&image).found.err();
            let why = why.map_or_else(|| "it has no code there".to_owned(), |why| why.to_string());
            anyhow!(
                "no code of {}: {why}; add the image's folder with --symbols",
                image.path
            )
        })?;
        let (bits, arch) = match processor {
            Some(Machine::X86) => (32, "i686"),
            Some(Machine::X64) => (64, "x86_64"),
            _ => bail!(
                "{} is not an x86 image; only x86 code can be disassembled",
                image.path
            ),
        };
        let end = start.saturating_add(size);
        let function = self.function_start(&image, start);
        let instructions = assembly::x86(bits, &code, start, |at| {
            at >= end
                && !(request.continue_until_function_end
                    && function.is_some()
                    && self.function_start(&image, at) == function)
        });
        Ok(json!({
            "startAddress": format!("{start:#x}"),
            "size": format!("{size:#x}"),
            "arch": arch,
            "syntax": ["Intel"],
            "instructions": instructions,
        }))
    }

    /// Returns the start of the function at an RVA.
    fn function_start(&self, image: &ImageRef<'_>, rva: u64) -> Option<u64> {
        let frames = self.symbols.native(image, rva).ok()?;
        rva.checked_sub(frames.last()?.offset?)
    }
}
