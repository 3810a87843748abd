//! Writes nodes as text. A type is written around its declarator, so each node has a left and a
//! right half.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "ids are indexes of the list of nodes, which never shrinks; depths are bounded"
)]

use std::fmt::Write as _;

use super::floats;
use super::node::{Id, Node, Part, Signature};
use super::operators::prec;
use crate::demangle::output::{Dialect, Limited, Unreadable};

/// Steps through nodes that refer to another one.
const MAX_STEPS: usize = 4096;

pub(super) struct Writer<'p, 'a> {
    nodes: &'p [Node<'a>],
    dialect: Dialect,
    out: Limited,
    /// In an expansion: the index of the element, and their number once a pack was written.
    pack: Option<(usize, Option<usize>)>,
    /// Parentheses since the start of the template arguments; `None` outside template arguments.
    parentheses: Option<usize>,
    depth: usize,
    max_depth: usize,
}

/// The right half of a node.
#[derive(Clone, Copy, PartialEq)]
enum Right {
    None,
    Some,
    Array,
    Function,
}

impl<'p, 'a> Writer<'p, 'a> {
    pub(super) fn new(nodes: &'p [Node<'a>], dialect: Dialect, max_depth: usize) -> Self {
        Writer {
            nodes,
            dialect,
            out: Limited::default(),
            pack: None,
            parentheses: None,
            depth: 0,
            max_depth,
        }
    }

    /// The text of a node and `tail`.
    pub(super) fn text(mut self, id: Id, tail: &str) -> Result<String, Unreadable> {
        let written = self.whole(id).and_then(|()| self.put(tail));
        self.out.text(written.ok_or(std::fmt::Error))
    }

    fn put(&mut self, text: &str) -> Option<()> {
        self.out.write_str(text).ok()
    }

    fn last(&self) -> Option<u8> {
        self.out.text.as_bytes().last().copied()
    }

    fn llvm(&self) -> bool {
        self.dialect == Dialect::Llvm
    }

    /// The index of the element of a pack; the first pack determines their number.
    fn element(&mut self, count: usize) -> usize {
        self.pack.as_mut().map_or(0, |(index, len)| {
            len.get_or_insert(count);
            *index
        })
    }

    /// The node that a node refers to: the element of a pack, the argument of a parameter.
    fn resolved(&mut self, mut id: Id) -> Option<Id> {
        let nodes = self.nodes;
        for _ in 0..MAX_STEPS {
            match &nodes[id] {
                Node::Forward(Some(to)) => id = *to,
                Node::Pack(all) => match all.get(self.element(all.len())) {
                    Some(&element) => id = element,
                    None => return Some(id),
                },
                _ => return Some(id),
            }
        }
        None
    }

    fn right_of(&mut self, id: Id) -> Option<Right> {
        let mut id = self.resolved(id)?;
        let mut only_some = false;
        for _ in 0..MAX_STEPS {
            let next = match &self.nodes[id] {
                Node::Array(..) if !only_some => return Some(Right::Array),
                Node::Function(..) | Node::Encoding(..) if !only_some => {
                    return Some(Right::Function);
                }
                Node::Array(..) | Node::Function(..) | Node::Encoding(..) => {
                    return Some(Right::Some);
                }
                Node::Qualified(of, _) => *of,
                Node::Declaration(..) | Node::PackDeclaration(_) => return Some(Right::Some),
                Node::Pointer(to) | Node::Reference(to, _) | Node::MemberPointer(_, to) => {
                    only_some = true;
                    *to
                }
                _ => return Some(Right::None),
            };
            id = self.resolved(next)?;
        }
        None
    }

    fn whole(&mut self, id: Id) -> Option<()> {
        self.left(id)?;
        self.right(id)
    }

    fn list(&mut self, all: &[Id]) -> Option<()> {
        let mut first = true;
        for &id in all {
            let before = self.out.text.len();
            if !first {
                self.put(", ")?;
            }
            let after = self.out.text.len();
            match self.llvm() {
                true => self.operand(id, prec::COMMA)?,
                false => self.whole(id)?,
            }
            // An empty pack has no text and no comma.
            if self.out.text.len() == after {
                self.out.text.truncate(before);
            } else {
                first = false;
            }
        }
        Some(())
    }

    fn signature_right(&mut self, signature: &Signature<'_>, returns: Option<Id>) -> Option<()> {
        self.text_part("(")?;
        self.list(&signature.takes)?;
        self.text_part(")")?;
        if let Some(returns) = returns {
            self.right(returns)?;
        }
        self.put(signature.qualifiers)?;
        self.put(signature.reference)?;
        self.parts(&signature.tail)
    }

    fn arguments(&mut self, all: &[Id]) -> Option<()> {
        if self.last() == Some(b'<') && !self.llvm() {
            self.put(" ")?;
        }
        let outer = self.parentheses.replace(0);
        self.put("<")?;
        self.list(all)?;
        self.parentheses = outer;
        let is_next_to_another = self.last() == Some(b'>') && !self.llvm();
        self.put(if is_next_to_another { " >" } else { ">" })
    }

    /// The last component of a class's name, without arguments: the name of its constructors.
    fn base(&mut self, id: Id) -> Option<()> {
        let mut id = self.resolved(id)?;
        for _ in 0..MAX_STEPS {
            let next = match &self.nodes[id] {
                Node::Scoped(_, name)
                | Node::Local(_, name)
                | Node::InModule(name, _)
                | Node::WithArguments(name, _)
                | Node::Tagged(name, _) => *name,
                Node::Standard(_, full) => {
                    let own = full.split('<').next()?.rsplit("::").next()?;
                    return self.put(own);
                }
                _ => return self.whole(id),
            };
            id = self.resolved(next)?;
        }
        None
    }

    fn parts(&mut self, parts: &[Part<'_>]) -> Option<()> {
        for part in parts {
            match part {
                Part::Text(text) => self.text_part(text)?,
                Part::Number(number) => write!(self.out, "{number}").ok()?,
                Part::Node(node) => self.whole(*node)?,
                Part::Operand(node, limit) => self.operand(*node, *limit)?,
                Part::List(all) => self.list(all)?,
            }
        }
        Some(())
    }

    /// Writes a text and counts its parentheses.
    fn text_part(&mut self, text: &str) -> Option<()> {
        if let (Some(open), [first, .., last] | [first @ last]) =
            (&mut self.parentheses, text.as_bytes())
        {
            *open = open.saturating_sub(usize::from(matches!(first, b')' | b']')));
            *open += usize::from(matches!(last, b'(' | b'['));
        }
        self.put(text)
    }

    fn operand(&mut self, id: Id, limit: u8) -> Option<()> {
        let id = self.resolved(id)?;
        let node = &self.nodes[id];
        let is_open = match self.llvm() {
            true => self.prec(node) >= limit,
            false => !matches!(node, Node::Text(_) | Node::Scoped(..) | Node::Closed(_)),
        };
        match is_open {
            true => self.parenthesized(id),
            false => self.whole(id),
        }
    }

    fn prec(&self, node: &Node<'_>) -> u8 {
        match node {
            Node::Parts(prec, _) => *prec,
            Node::Guarded(of) => self.prec(&self.nodes[*of]),
            _ => prec::PRIMARY,
        }
    }

    fn parenthesized(&mut self, id: Id) -> Option<()> {
        self.text_part("(")?;
        self.whole(id)?;
        self.text_part(")")
    }

    /// Collapses references to references.
    fn collapsed(&mut self, id: Id) -> Option<(Id, bool)> {
        let nodes = self.nodes;
        let mut id = id;
        let mut all_rvalue = true;
        for _ in 0..MAX_STEPS {
            match nodes[self.resolved(id)?] {
                Node::Reference(to, rvalue) => {
                    all_rvalue &= rvalue;
                    id = to;
                }
                _ => return Some((id, all_rvalue)),
            }
        }
        None
    }

    /// Writes one half of a node.
    fn half(&mut self, id: Id, write: fn(&mut Self, &'p Node<'a>) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > 2 * self.max_depth {
            self.out.full = true;
            return None;
        }
        let nodes = self.nodes;
        let done = write(self, &nodes[id]);
        self.depth -= 1;
        done
    }

    fn left(&mut self, id: Id) -> Option<()> {
        // Counts empty nodes, too.
        self.put("")?;
        self.half(id, Self::left_of)
    }

    fn right(&mut self, id: Id) -> Option<()> {
        self.half(id, Self::right_half)
    }

    fn left_of(&mut self, node: &'p Node<'a>) -> Option<()> {
        match node {
            Node::Text(text) => self.put(text),
            Node::Standard(short, _) => self.put(short),
            Node::Scoped(scope, name) => {
                self.whole(*scope)?;
                self.put("::")?;
                self.whole(*name)
            }
            Node::Local(within, entity) => {
                match &self.nodes[*within] {
                    // GNU omits the return type of the enclosing function.
                    Node::Encoding(name, signature) if !self.llvm() => {
                        self.whole(*name)?;
                        self.signature_right(signature, None)?;
                    }
                    _ => self.whole(*within)?,
                }
                self.put("::")?;
                self.whole(*entity)
            }
            Node::WithArguments(name, all) => {
                self.whole(*name)?;
                self.arguments(all)
            }
            Node::ArgumentPack(all) => self.list(all),
            Node::Pack(all) => match all.get(self.element(all.len())) {
                Some(&element) => self.left(element),
                None => Some(()),
            },
            Node::Expansion(of) => {
                let saved = self.pack.replace((0, None));
                let start = self.out.text.len();
                self.whole(*of)?;
                match self.pack {
                    Some((_, Some(0))) => self.out.text.truncate(start),
                    Some((_, Some(len))) => {
                        for index in 1..len {
                            self.put(", ")?;
                            self.pack = Some((index, Some(len)));
                            self.whole(*of)?;
                        }
                    }
                    _ => self.put("...")?,
                }
                self.pack = saved;
                Some(())
            }
            Node::Forward(to) => self.left((*to)?),
            Node::Qualified(of, qualifiers) => {
                self.left(*of)?;
                self.put(qualifiers)
            }
            Node::Pointer(to) => {
                self.left(*to)?;
                self.open(*to)?;
                self.put("*")
            }
            Node::Reference(to, rvalue) => {
                let (to, inner) = self.collapsed(*to)?;
                self.left(to)?;
                self.open(to)?;
                self.put(if *rvalue && inner { "&&" } else { "&" })
            }
            Node::MemberPointer(class, member) => {
                self.left(*member)?;
                match self.right_of(*member)? {
                    Right::Array | Right::Function if self.llvm() => self.put("(")?,
                    Right::Array | Right::Function => self.open(*member)?,
                    _ => self.put(" ")?,
                }
                self.whole(*class)?;
                self.put("::*")
            }
            Node::Array(of, _) => self.left(*of),
            Node::Function(signature) => {
                self.left(signature.returns?)?;
                self.put(" ")
            }
            Node::Encoding(name, signature) => {
                if let Some(returns) = signature.returns {
                    self.left(returns)?;
                    if self.right_of(returns)? == Right::None || !self.llvm() {
                        self.put(" ")?;
                    }
                }
                self.whole(*name)
            }
            Node::Structor(of, dtor) => {
                self.put(if *dtor { "~" } else { "" })?;
                self.base(*of)
            }
            Node::Tagged(name, tag) => {
                self.whole(*name)?;
                self.put("[abi:")?;
                self.put(tag)?;
                self.put("]")
            }
            Node::Module(parent, name, is_partition) => {
                if let Some(parent) = parent {
                    self.whole(*parent)?;
                }
                match (is_partition, parent) {
                    (true, _) => self.put(":")?,
                    (false, Some(_)) => self.put(".")?,
                    (false, None) => {}
                }
                self.whole(*name)
            }
            Node::InModule(name, module) => {
                self.whole(*name)?;
                self.put("@")?;
                self.whole(*module)
            }
            Node::Declaration(kind, _) => {
                self.left(*kind)?;
                match self.right_of(*kind)? {
                    Right::None => self.put(" "),
                    _ => Some(()),
                }
            }
            Node::PackDeclaration(of) => {
                self.left(*of)?;
                self.put("...")
            }
            Node::String(chars) => self.string(chars),
            Node::Float(code, digits) => floats::write(&mut self.out, *code, digits).ok(),
            Node::Parts(_, parts) | Node::Closed(parts) => self.parts(parts),
            Node::Guarded(of) => match self.parentheses {
                Some(1..) if self.llvm() => self.whole(*of),
                _ => self.parenthesized(*of),
            },
        }
    }

    fn string(&mut self, chars: &str) -> Option<()> {
        let numbers = chars.split(['L', 'c', 'E']);
        let bytes = numbers.filter_map(|number| number.parse::<u8>().ok());
        self.put("\"")?;
        for byte in bytes {
            match byte {
                b'\n' => self.put("\\n")?,
                b'\r' => self.put("\\r")?,
                b'\t' => self.put("\\t")?,
                b'"' | b'\\' => write!(self.out, "\\{}", char::from(byte)).ok()?,
                b' '..=b'~' => self.out.write_char(byte.into()).ok()?,
                _ => write!(self.out, "\\x{byte:02X}").ok()?,
            }
        }
        self.put("\"")
    }

    /// The parenthesis before the `*` or `&` of a pointer or reference to an array or function.
    fn open(&mut self, to: Id) -> Option<()> {
        match self.right_of(to)? {
            Right::Array => self.put(" ("),
            Right::Function => self.put("("),
            _ => Some(()),
        }
    }

    fn close(&mut self, to: Id) -> Option<()> {
        match self.right_of(to)? {
            Right::Array | Right::Function => self.put(")"),
            _ => Some(()),
        }
    }

    fn right_half(&mut self, node: &'p Node<'a>) -> Option<()> {
        match node {
            Node::Pack(all) => match all.get(self.element(all.len())) {
                Some(&element) => self.right(element),
                None => Some(()),
            },
            Node::Forward(to) => self.right((*to)?),
            Node::Qualified(of, _) => self.right(*of),
            Node::Pointer(to) | Node::MemberPointer(_, to) => {
                self.close(*to)?;
                self.right(*to)
            }
            Node::Reference(to, _) => {
                let (to, _) = self.collapsed(*to)?;
                self.close(to)?;
                self.right(to)
            }
            Node::Array(of, size) => {
                self.put(if self.last() == Some(b']') { "[" } else { " [" })?;
                if let Some(size) = size {
                    self.whole(*size)?;
                }
                self.put("]")?;
                self.right(*of)
            }
            Node::Function(signature) | Node::Encoding(_, signature) => {
                self.signature_right(signature, signature.returns)
            }
            Node::Declaration(kind, name) => {
                self.whole(*name)?;
                self.right(*kind)
            }
            Node::PackDeclaration(of) => self.right(*of),
            _ => Some(()),
        }
    }
}
