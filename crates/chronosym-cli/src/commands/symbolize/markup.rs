//! Replaces symbolizer markup in a text, as `llvm-symbolizer --filter-markup` does.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Write};

use anyhow::Result;
use chronosym_symbols::demangle::{Dialect, demangle_as};

use super::element::{fields, raw};
use super::lines::next_lines;
use super::shown::Layout;
use super::source::Source;
use crate::output::printable;
use crate::protocol::{Wanted, llvm_number};
use crate::request::{AddressRequest, At, Target};

/// Maximum number of modules and of mappings that are kept.
const MAX_KEPT: usize = 65_536;

/// The problem of an address in no mapping.
const NOT_MAPPED: &str = "no mmap covers the address";

/// Maximum number of notes.
const MAX_NOTES: usize = 20;

/// Copies a text with names in place of its markup. Returns notes on invalid markup.
///
/// # Errors
///
/// Those of the input, the source and the writer.
pub fn rewrite<R: Read>(
    mut input: BufReader<R>,
    source: &mut dyn Source,
    out: &mut dyn Write,
) -> Result<Vec<String>> {
    let mut filter = Filter::default();
    let mut lines = Vec::new();
    while next_lines(&mut input, &mut lines)? {
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            filter.line = filter.line.saturating_add(1);
            match std::str::from_utf8(line) {
                Ok(line) => filter.add_line(line),
                Err(_) => filter.add_text(line),
            }
        }
        filter.write(source, out)?;
    }
    filter.end_list();
    filter.write(source, out)?;
    Ok(filter.notes)
}

/// A module of the process.
#[derive(Clone, Debug)]
struct Module {
    number: u64,
    name: String,
    id: String,
}

/// A mapping of a module.
#[derive(Clone, Debug)]
struct Mapping {
    start: u64,
    size: u64,
    module: u64,
    mode: String,
    /// The module's address at its start.
    rva: u64,
}

/// A part of the output.
enum Piece {
    Text(Vec<u8>),
    /// An address in a module, and its element.
    Address(Asked),
}

struct Asked {
    element: String,
    /// Whether it is the address of a variable.
    is_data: bool,
    module: Module,
    /// The address in the process, and in the module.
    address: u64,
    rva: u64,
}

/// A part of a line.
enum Node<'l> {
    Text(&'l str),
    /// The text between braces.
    Element(&'l str),
}

#[derive(Default)]
struct Filter {
    line: usize,
    modules: BTreeMap<u64, Module>,
    mappings: BTreeMap<u64, Mapping>,
    /// The module whose mappings are being listed, and these.
    list: Option<(u64, Vec<Mapping>)>,
    ending: &'static str,
    pieces: Vec<Piece>,
    notes: Vec<String>,
}

impl Filter {
    fn add_text(&mut self, text: &[u8]) {
        self.end_list();
        self.put(text);
    }

    fn put(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.extend(text),
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    /// Adds a line. Of one with an element that states the layout of the process, what follows this
    /// element is left out.
    fn add_line(&mut self, line: &str) {
        let text = line.trim_end_matches(['\r', '\n']);
        let ending = line.get(text.len()..).unwrap_or_default();
        self.ending = if ending == "\r\n" { "\r\n" } else { "\n" };
        let nodes = nodes(text);
        for (at, node) in nodes.iter().enumerate() {
            let Node::Element(element) = node else {
                continue;
            };
            let (tag, fields) = fields(element);
            let before = nodes.get(..at).unwrap_or_default();
            let done = match tag {
                "reset" => self.reset(before),
                "module" => self.module(&fields, before),
                "mmap" => self.mapping(&fields, before),
                _ => continue,
            };
            done.unwrap_or_else(|problem| self.note(element, &problem));
            return;
        }
        self.end_list();
        self.put_nodes(&nodes);
        self.put(ending.as_bytes());
    }

    fn put_nodes(&mut self, nodes: &[Node<'_>]) {
        for node in nodes {
            match node {
                Node::Text(text) => self.put(without_colors(text).as_bytes()),
                Node::Element(element) => self.present(element),
            }
        }
    }

    fn note(&mut self, element: &str, problem: &str) {
        if self.notes.len() < MAX_NOTES {
            let line = self.line;
            self.notes
                .push(format!("line {line}: {{{{{{{element}}}}}}}: {problem}"));
        }
    }

    fn reset(&mut self, before: &[Node<'_>]) -> Result<(), String> {
        self.end_list();
        if !self.modules.is_empty() || !self.mappings.is_empty() {
            self.put_nodes(before);
            self.put(format!("[[[reset]]]{}", self.ending).as_bytes());
            self.modules.clear();
            self.mappings.clear();
        }
        Ok(())
    }

    /// `module:NUMBER:NAME:elf:BUILDID`.
    fn module(&mut self, fields: &[&str], before: &[Node<'_>]) -> Result<(), String> {
        let &[number, name, kind, id, ..] = fields else {
            return Err("expected 4 fields".to_owned());
        };
        let number = parse(number)?;
        if kind != "elf" {
            return Err("unknown module type".to_owned());
        }
        let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err("expected a build id".to_owned());
        }
        if self.modules.contains_key(&number) || self.modules.len() >= MAX_KEPT {
            return Err("duplicate module".to_owned());
        }
        let (name, id) = (name.to_owned(), id.to_ascii_lowercase());
        self.start_list(number, &name, &format!("BuildID={id}"), before);
        let module = Module { number, name, id };
        self.modules.insert(number, module);
        Ok(())
    }

    /// `mmap:ADDRESS:SIZE:load:MODULE:MODE:RVA`.
    fn mapping(&mut self, fields: &[&str], before: &[Node<'_>]) -> Result<(), String> {
        let &[start, size, kind, module, mode, rva, ..] = fields else {
            return Err("expected 6 fields".to_owned());
        };
        let (start, size) = (parse_address(start)?, parse(size)?);
        if kind != "load" {
            return Err("unknown mmap type".to_owned());
        }
        let module = self.modules.get(&parse(module)?).cloned();
        let module = module.ok_or("unknown module")?;
        let mode = mode.to_ascii_lowercase();
        let is_mode = !mode.is_empty() && mode.bytes().all(|byte| b"rwx".contains(&byte));
        if !is_mode {
            return Err("expected a mode of r, w and x".to_owned());
        }
        let rva = parse_address(rva)?;
        let last = start.saturating_add(size.saturating_sub(1));
        let other = self.mappings.range(..=last).next_back();
        let overlaps =
            other.is_some_and(|(_, other)| other.contains(start) || other.start >= start);
        if size == 0 || overlaps || self.mappings.len() >= MAX_KEPT {
            return Err("overlapping mmap".to_owned());
        }
        if self
            .list
            .as_ref()
            .is_none_or(|(of, _)| *of != module.number)
        {
            self.start_list(module.number, &module.name, "adds", before);
        }
        let mapping = Mapping {
            start,
            size,
            module: module.number,
            mode,
            rva,
        };
        if let Some((_, list)) = &mut self.list {
            list.push(mapping.clone());
        }
        self.mappings.insert(start, mapping);
        Ok(())
    }

    fn start_list(&mut self, number: u64, name: &str, what: &str, before: &[Node<'_>]) {
        self.end_list();
        self.put_nodes(before);
        let name = printable(name);
        self.put(format!("[[[ELF module #{number:#x} \"{name}\"; {what}").as_bytes());
        self.list = Some((number, Vec::new()));
    }

    fn end_list(&mut self) {
        let Some((_, mut list)) = self.list.take() else {
            return;
        };
        list.sort_by_key(|mapping| mapping.start);
        for (at, mapping) in list.iter().enumerate() {
            let between = if at > 0 { "," } else { " " };
            let (start, mode) = (mapping.start, &mapping.mode);
            let last = start.saturating_add(mapping.size.saturating_sub(1));
            self.put(format!("{between}[{start:#x}-{last:#x}]({mode})").as_bytes());
        }
        self.put(format!("]]]{}", self.ending).as_bytes());
    }

    /// Adds an element that is replaced by text; others stay.
    fn present(&mut self, element: &str) {
        let (tag, fields) = fields(element);
        let asked = match (tag, &*fields) {
            ("symbol", [name, ..]) => {
                let readable = demangle_as(name, Dialect::Llvm);
                let readable = readable.as_deref().unwrap_or(name);
                return self.put(printable(readable).as_bytes());
            }
            ("pc" | "data", fields) => self.address(element, false, fields),
            ("bt", [number, fields @ ..]) => match number.parse::<u64>() {
                Ok(_) => self.address(element, true, fields),
                Err(_) => Err("expected a frame number".to_owned()),
            },
            ("bt", _) => Err("expected 2 fields".to_owned()),
            _ => return self.put(format!("{{{{{{{element}}}}}}}").as_bytes()),
        };
        match asked {
            Ok(asked) => self.pieces.push(Piece::Address(asked)),
            // As the tool does, invalid elements are left out.
            Err(problem) => {
                self.note(element, &problem);
                if problem == NOT_MAPPED {
                    self.put(raw(element).as_bytes());
                }
            }
        }
    }

    /// Reads `ADDRESS[:ra|:pc]`. A return address, the default of a frame, stands for the call before
    /// it.
    fn address(&self, element: &str, is_frame: bool, fields: &[&str]) -> Result<Asked, String> {
        let [address, fields @ ..] = fields else {
            return Err("expected an address".to_owned());
        };
        let address = parse_address(address)?;
        let is_return = match fields.first() {
            Some(&"ra") => true,
            Some(&"pc") => false,
            None => is_frame,
            Some(_) => return Err("expected ra or pc".to_owned()),
        };
        let address = address.wrapping_sub(is_return.into());
        let mapping = self.mappings.range(..=address).next_back();
        let mapping = mapping.filter(|(_, mapping)| mapping.contains(address));
        let (_, mapping) = mapping.ok_or(NOT_MAPPED)?;
        let module = self.modules.get(&mapping.module).ok_or("unknown module")?;
        let within = address.wrapping_sub(mapping.start);
        Ok(Asked {
            element: element.to_owned(),
            is_data: element.starts_with("data:"),
            module: module.clone(),
            address,
            rva: mapping.rva.wrapping_add(within),
        })
    }

    /// Writes what was added.
    fn write(&mut self, source: &mut dyn Source, out: &mut dyn Write) -> Result<()> {
        let pieces = std::mem::take(&mut self.pieces);
        let asked = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Address(asked) => Some(asked.request()),
        });
        let answers = source.answer(asked.collect(), Layout::Markup)?;
        let mut index = 0;
        for piece in &pieces {
            match piece {
                Piece::Text(text) => out.write_all(text)?,
                Piece::Address(_) => {
                    let mut answer = Vec::new();
                    answers(index, &mut answer);
                    index += 1;
                    out.write_all(&answer)?;
                }
            }
        }
        Ok(out.flush()?)
    }
}

impl Mapping {
    fn contains(&self, address: u64) -> bool {
        let within = address.checked_sub(self.start);
        within.is_some_and(|within| within < self.size)
    }
}

impl Asked {
    fn request(&self) -> AddressRequest<'_> {
        let mut target = Target::new(Some(&self.module.name), At::Address(self.rva));
        target.id = Some(&self.module.id);
        let wanted = match self.is_data {
            true => Wanted::Data,
            false => Wanted::Code,
        };
        AddressRequest {
            wanted,
            address: Some(self.address),
            ..AddressRequest::at(&self.element, Some(target))
        }
    }
}

/// Parses an address, which starts with `0x` unless it is 0.
fn parse_address(address: &str) -> Result<u64, String> {
    let is_zero = address.bytes().all(|byte| byte == b'0');
    match address.starts_with("0x") || is_zero {
        true => parse(address),
        false => Err("expected an address with 0x".to_owned()),
    }
}

fn parse(number: &str) -> Result<u64, String> {
    llvm_number(number).ok_or_else(|| "expected a number".to_owned())
}

/// Splits a line at its elements.
fn nodes(line: &str) -> Vec<Node<'_>> {
    let mut nodes = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("{{{")
        && let Some((element, after)) = after.split_once("}}}")
    {
        let (tag, _) = fields(element);
        let is_tag = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        if tag.is_empty() || !tag.bytes().all(is_tag) {
            let len = before.len().saturating_add(3);
            let (text, others) = rest.split_at(len);
            nodes.push(Node::Text(text));
            rest = others;
            continue;
        }
        nodes.push(Node::Text(before));
        nodes.push(Node::Element(element));
        rest = after;
    }
    nodes.push(Node::Text(rest));
    nodes
}

/// Removes colours (`ESC[1m`).
fn without_colors(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        let end = after.find(|c: char| !c.is_ascii_digit());
        match end.and_then(|end| after.split_at_checked(end)) {
            Some((_, after)) if after.starts_with('m') => {
                plain += before;
                rest = after.get(1..).unwrap_or_default();
            }
            _ => {
                plain += before;
                plain += "\x1b[";
                rest = after;
            }
        }
    }
    plain + rest
}
