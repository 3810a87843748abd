//! What the viewer asks for and gets, as JSON: symbols of addresses and source files. The questions and answers are those
//! of samply's API, which go back to Mozilla's symbol server.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chronosym::{Code, FrameId, Resolver};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::source::Sources;

/// Answers from one profile: what it does not have is not known.
pub struct Api {
    resolver: Resolver,
    sources: Sources,
    /// Binaries by what the profile calls them: name and identity.
    binaries: HashMap<(String, String), usize>,
    /// The innermost frame at an address of a binary, as the profile counts addresses.
    frames: HashMap<(usize, u64), FrameId>,
    /// Each source file that a frame of a binary names, and one such frame.
    files: HashMap<(usize, Arc<str>), FrameId>,
}

/// A library of the viewer's: name and id.
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
    /// (library, address in it); a library of -1 is none.
    stacks: Vec<Vec<(i64, u64)>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    debug_name: String,
    debug_id: String,
    file: String,
}

#[derive(Serialize)]
struct Symbol<'a> {
    frame: usize,
    module_offset: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_offset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inlines: Vec<Inline<'a>>,
}

#[derive(Serialize)]
struct Inline<'a> {
    function: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl Api {
    pub fn new(resolver: Resolver, sources: Sources) -> Self {
        let id = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let binaries = resolver.binaries().iter().enumerate();
        let binaries = binaries.map(|(at, b)| ((b.name().to_owned(), id(b.identity())), at));
        let binaries = binaries.collect();
        let (mut frames, mut files) = (HashMap::new(), HashMap::new());
        for id in resolver.frame_ids() {
            let frame = resolver.frame(id);
            let Some(binary) = frame.function.binary().map(|binary| binary.id().index()) else {
                continue;
            };
            frames
                .entry((binary, chronosym_export::firefox_address(id, frame)))
                .or_insert(id);
            if let Ok(line) = &frame.line {
                files.entry((binary, Arc::clone(&line.file))).or_insert(id);
            }
        }
        Api {
            resolver,
            sources,
            binaries,
            frames,
            files,
        }
    }

    /// The answer to a question of this path; what went wrong is said in it, as `error`.
    pub fn answer(&self, path: &str, question: &[u8]) -> String {
        let answer = match path {
            "/symbolicate/v5" => serde_json::from_slice(question).map(|q| self.symbolicate(q)),
            "/source/v1" => serde_json::from_slice(question).map(|q| self.source(&q)),
            _ => Ok(json!({"error": "assembly is not served: the trace has no bytes of code"})),
        };
        let answer =
            answer.unwrap_or_else(|error| json!({"error": format!("not understood: {error}")}));
        // Values always serialise.
        chronosym_types::json::to_string(&answer).unwrap_or_default()
    }

    fn symbolicate(&self, question: Symbolicate) -> Value {
        let jobs = match question {
            Symbolicate::Jobs { jobs } => jobs,
            Symbolicate::Job(job) => vec![job],
        };
        let results: Vec<Value> = jobs.iter().map(|job| self.job(job)).collect();
        json!({"results": results})
    }

    fn job(&self, job: &Job) -> Value {
        let used: HashSet<i64> = job.stacks.iter().flatten().map(|at| at.0).collect();
        let mut found = serde_json::Map::new();
        for (at, library) in job.memory_map.iter().enumerate() {
            let is_known = self.binaries.contains_key(library);
            let is_used = used.contains(&(at as i64));
            let known = if is_used {
                Value::Bool(is_known)
            } else {
                Value::Null
            };
            found.insert(format!("{}/{}", library.0, library.1), known);
        }
        let stacks: Vec<Vec<Symbol<'_>>> = job
            .stacks
            .iter()
            .map(|stack| {
                let symbols = stack.iter().enumerate();
                symbols
                    .map(|(at, &(library, address))| self.symbol(job, at, library, address))
                    .collect()
            })
            .collect();
        json!({"stacks": stacks, "found_modules": found})
    }

    fn symbol<'a>(&'a self, job: &'a Job, at: usize, library: i64, address: u64) -> Symbol<'a> {
        let library = usize::try_from(library)
            .ok()
            .and_then(|at| job.memory_map.get(at));
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
        // Those inlined stand before what they are inlined into.
        for frame in &self.resolver.frames()[first.index()..] {
            let line = frame.line.as_ref().ok();
            let (file, number) = (line.map(|line| &*line.file), line.map(|line| line.line));
            if frame.inlined {
                symbol.inlines.push(Inline {
                    function: frame.label(),
                    file,
                    line: number,
                });
                continue;
            }
            symbol.function = frame.name().is_ok().then(|| frame.label());
            symbol.function_offset = frame.offset.map(|offset| format!("{offset:#x}"));
            (symbol.file, symbol.line) = (file, number);
            break;
        }
        symbol
    }

    /// Only of files that the profile itself names.
    fn source(&self, question: &Source) -> Value {
        let library = (question.debug_name.clone(), question.debug_id.clone());
        let binary = self.binaries.get(&library);
        let key = binary.map(|&binary| (binary, Arc::from(question.file.as_str())));
        let Some(&frame) = key.and_then(|key| self.files.get(&key)) else {
            return json!({"error": "the profile names no such file of this library"});
        };
        let timeline = self.resolver.timeline();
        let module = match self.resolver.frame(frame).code {
            Code::Body(process, body) => timeline
                .body_view(process, body)
                .and_then(|body| timeline.module_ref(process, body.module_index?)),
            Code::Precompiled(process, module) => timeline.module_ref(process, module),
            _ => None,
        };
        match self.sources.text(&question.file, module.as_ref()) {
            Ok(text) => json!({
                "symbolsLastModified": null,
                "sourceLastModified": null,
                "file": question.file,
                "source": text,
            }),
            Err(why) => json!({ "error": why }),
        }
    }
}
