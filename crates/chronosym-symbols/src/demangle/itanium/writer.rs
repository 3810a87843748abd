//! Nodes as text. Types stand around what they are of: each has a left and a right half.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "parts are named by places in their list, which never shrinks; depths are bounded"
)]

use std::fmt::Write as _;

use super::node::{Id, Node, Part, Signature};
use crate::demangle::output::{Dialect, Limited, Unreadable};

/// What stands for something else leads to it in no more steps.
const MAX_STEPS: usize = 4096;

pub(super) struct Writer<'p, 'a> {
    nodes: &'p [Node<'a>],
    dialect: Dialect,
    out: Limited,
    /// Inside an expansion: which element is written, of how many once a pack was met.
    pack: Option<(usize, Option<usize>)>,
    depth: usize,
    max_depth: usize,
}

/// Which right half a node has.
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
            depth: 0,
            max_depth,
        }
    }

    /// The text of a node, and what follows it.
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

    /// Which element of a pack is written; the first pack that is met says how many there are.
    fn element(&mut self, count: usize) -> usize {
        self.pack.as_mut().map_or(0, |(index, len)| {
            len.get_or_insert(count);
            *index
        })
    }

    /// What a node is in the end: the element of a pack, what a parameter stands for.
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
            self.whole(id)?;
            // An empty pack leaves nothing, not even its comma.
            if self.out.text.len() == after {
                self.out.text.truncate(before);
            } else {
                first = false;
            }
        }
        Some(())
    }

    fn signature_right(&mut self, signature: &Signature, returns: Option<Id>) -> Option<()> {
        self.put("(")?;
        self.list(&signature.takes)?;
        self.put(")")?;
        if let Some(returns) = returns {
            self.right(returns)?;
        }
        self.put(&signature.qualifiers)
    }

    fn arguments(&mut self, all: &[Id]) -> Option<()> {
        if self.last() == Some(b'<') && !self.llvm() {
            self.put(" ")?;
        }
        self.put("<")?;
        self.list(all)?;
        self.put(if self.last() == Some(b'>') { " >" } else { ">" })
    }

    /// The last part of a class's name, without its arguments: what constructors are called.
    fn base(&mut self, id: Id) -> Option<()> {
        let mut id = self.resolved(id)?;
        for _ in 0..MAX_STEPS {
            let next = match &self.nodes[id] {
                Node::Scoped(_, name)
                | Node::Local(_, name)
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
                Part::Text(text) => self.put(text)?,
                Part::Number(number) => write!(self.out, "{number}").ok()?,
                Part::Node(node) => self.whole(*node)?,
                Part::Operand(node) => self.operand(*node)?,
                Part::List(all) => self.list(all)?,
            }
        }
        Some(())
    }

    fn operand(&mut self, id: Id) -> Option<()> {
        let id = self.resolved(id)?;
        let node = &self.nodes[id];
        let simple = matches!(node, Node::Text(_) | Node::Scoped(..) | Node::Closed(_));
        if simple && !self.llvm() {
            return self.whole(id);
        }
        self.put("(")?;
        self.whole(id)?;
        self.put(")")
    }

    /// References to references are one.
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

    /// Writes half of what a node is.
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
        // Empty nodes are work, too.
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
                    // GNU leaves out what the function around returns.
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
            Node::Parts(parts) | Node::Closed(parts) => self.parts(parts),
        }
    }

    /// The bracket before the mark of a pointer to an array or a function.
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
            _ => Some(()),
        }
    }
}
