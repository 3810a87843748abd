//! Answers as llvm-symbolizer's JSON (`--output-style=JSON`).

use chronosym::symbols::FileSymbols;
use chronosym_symbols::demangle::{Dialect, demangle_as};
use chronosym_symbols::style::{APPROXIMATE_LINE, Shape, context};
use chronosym_types::escape::is_hostile;
use chronosym_types::json::{self, FrameObject, HexNumber};
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::protocol::Wanted;
use crate::request::{AddressRequest, At};

/// The answer to one request. Fields are in alphabetical order, as in the tool's output.
#[skip_serializing_none]
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Object<'a> {
    address: Option<HexNumber>,
    data: Option<Data<'a>>,
    error: Option<Message<'a>>,
    frame: Option<Vec<Variable>>,
    loc: Option<Vec<Location<'a>>>,
    module_name: &'a str,
    sym_name: Option<&'a str>,
    symbol: Option<Vec<Location<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Message<'a> {
    message: &'a str,
}

/// Why a request has no answer.
#[derive(Clone, Copy)]
pub enum Failure {
    NoFile,
    NoAddress,
    /// The file has nothing there.
    Nothing,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Data<'a> {
    name: &'a str,
    size: HexNumber,
    start: HexNumber,
}

/// A frame.
#[derive(Default, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Location<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    approximate: bool,
    column: u32,
    discriminator: u32,
    file_name: &'a str,
    function_name: String,
    line: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    source: String,
    start_address: String,
    start_file_name: &'a str,
    start_line: u32,
}

/// A local variable.
#[skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Variable {
    decl_file: String,
    decl_line: u64,
    frame_offset: Option<i64>,
    function_name: String,
    name: String,
    size: String,
    tag_offset: String,
}

/// Appends the frames of an address or symbol.
pub fn write<'a>(
    request: &AddressRequest<'_>,
    module: &str,
    shape: &Shape,
    frames: impl Iterator<Item = FrameObject<'a>>,
    out: &mut Vec<u8>,
) {
    let len = if shape.is_innermost { 1 } else { usize::MAX };
    let frames: Vec<_> = frames.take(len).collect();
    let mut object = object(request, module);
    // LLVM prints no source text for symbols.
    let context_lines = match object.sym_name {
        Some(_) => 0,
        None => shape.context_lines,
    };
    let locations = frames
        .iter()
        .map(|frame| location(shape, context_lines, frame))
        .collect();
    let locations = Some(locations);
    match object.sym_name {
        Some(_) => object.loc = locations,
        None => object.symbol = locations,
    }
    put(&object, shape, out);
}

/// Appends a request that has no answer.
pub fn write_unknown(request: &AddressRequest<'_>, shape: &Shape, why: Failure, out: &mut Vec<u8>) {
    let text = request.text.trim();
    let mut object = object(request, "");
    let message;
    match why {
        Failure::NoFile => {
            let message = "No such file or directory";
            object.error = Some(Message { message });
        }
        Failure::NoAddress => {
            object.module_name = text.rsplit(' ').next().unwrap_or_default();
            message = format!("unable to parse arguments: {text}");
            object.error = Some(Message { message: &message });
        }
        Failure::Nothing if object.sym_name.is_some() => object.loc = Some(Vec::new()),
        Failure::Nothing => object.symbol = Some(vec![Location::default()]),
    }
    put(&object, shape, out);
}

/// Appends the variable, or the local variables, at an address of a file.
pub fn write_variables(
    request: &AddressRequest<'_>,
    module: &str,
    shape: &Shape,
    (symbols, lookup): (&FileSymbols, Option<u64>),
    demangle: bool,
    out: &mut Vec<u8>,
) {
    let mut object = object(request, module);
    let symbol = lookup.and_then(|address| symbols.data_symbol(address));
    let name = symbol.map_or("", |symbol| &*symbol.name);
    let readable = demangle_as(name, Dialect::Llvm).ok().filter(|_| demangle);
    if request.wanted == Wanted::Data {
        object.data = Some(Data {
            name: readable.as_deref().unwrap_or(name),
            size: HexNumber(symbol.map_or(0, |symbol| symbol.size)),
            start: HexNumber(symbol.map_or(0, |symbol| symbol.start)),
        });
    } else {
        let hex = |number: Option<u64>| number.map_or(String::new(), |n| format!("{n:#x}"));
        let locals = lookup.map(|address| symbols.locals(address));
        let locals = locals.unwrap_or_default().into_iter();
        let locals = locals.map(|local| Variable {
            decl_file: local.file.unwrap_or_default(),
            decl_line: local.line,
            frame_offset: local.frame_offset,
            function_name: local.function.unwrap_or_default(),
            name: local.name.unwrap_or_default(),
            size: hex(local.size),
            tag_offset: hex(local.tag_offset),
        });
        object.frame = Some(locals.collect());
    }
    put(&object, shape, out);
}

fn object<'a>(request: &'a AddressRequest<'_>, module: &'a str) -> Object<'a> {
    let target = request.target;
    let at = target.map(|target| target.at);
    Object {
        address: request.shown_address().map(HexNumber),
        module_name: target.and_then(|target| target.file).unwrap_or(module),
        sym_name: match at {
            Some(At::Symbol(symbol)) => Some(symbol.name),
            _ => None,
        },
        ..Object::default()
    }
}

fn location<'a>(shape: &Shape, context_lines: u32, frame: &'a FrameObject<'a>) -> Location<'a> {
    let start = &frame.start;
    let mut source = Vec::new();
    if let (Some(file), Some(line), 1..) = (frame.file, frame.line, context_lines) {
        // Writing to memory does not fail.
        _ = context::print(&mut source, file, line, context_lines);
    }
    Location {
        approximate: frame.mark == APPROXIMATE_LINE,
        column: frame.column.unwrap_or(0),
        discriminator: frame.discriminator,
        file_name: shape.path(frame.file.unwrap_or_default()),
        function_name: shape
            .name(frame.name.unwrap_or_default())
            .map_or(String::new(), |name| name.into_owned()),
        line: frame.line.unwrap_or(0),
        source: String::from_utf8_lossy(&source).into_owned(),
        start_address: start
            .address
            .map_or(String::new(), |address| format!("{address:#x}")),
        start_file_name: shape.path(start.file.unwrap_or_default()),
        start_line: start.line.unwrap_or(0),
    }
}

fn put(object: &Object<'_>, shape: &Shape, out: &mut Vec<u8>) {
    // Serializing plain data to memory does not fail.
    if !shape.is_pretty {
        _ = json::to_writer(out, object);
        return;
    }
    let mut text = Vec::new();
    let mut writer = serde_json::Serializer::pretty(&mut text);
    _ = object.serialize(&mut writer);
    for c in String::from_utf8_lossy(&text).chars() {
        // Line breaks are those between fields.
        if c == '\n' || !is_hostile(c) {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            out.extend(format!("\\u{unit:04x}").bytes());
        }
    }
}

/// How the answers of arguments become one array.
#[derive(Clone, Copy)]
pub struct Array {
    pub is_pretty: bool,
}

impl Array {
    pub fn start(self) -> &'static str {
        if self.is_pretty { "[\n" } else { "[" }
    }

    /// Completes the answer with an index, which starts at `from`.
    pub fn add(self, index: usize, from: usize, out: &mut Vec<u8>) {
        let answer = out.split_off(from);
        let between = match (index, self.is_pretty) {
            (0, _) => "",
            (_, true) => ",\n",
            (_, false) => ",",
        };
        out.extend(between.bytes());
        if !self.is_pretty {
            out.extend(answer);
            return;
        }
        for (at, line) in answer.split(|&byte| byte == b'\n').enumerate() {
            out.extend(if at > 0 { "\n  " } else { "  " }.bytes());
            out.extend(line);
        }
    }

    pub fn end(self) -> &'static str {
        if self.is_pretty { "\n]\n" } else { "]\n" }
    }
}
