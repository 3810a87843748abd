//! Where a name is read: characters, numbers, and what was read before.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places in a name of at most 16 KiB, and depths"
)]

use super::node::{Id, Node, Part};
use crate::demangle::output::Dialect;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) substitutions: Vec<Id>,
    pub(super) parameters: Vec<Id>,
    pub(super) forwards: Vec<(Id, usize)>,
    /// Parameters may stand before the arguments that they stand for.
    pub(super) may_forward: bool,
    /// Inside a lambda's parameter list: its parameters are its own, whatever stands around it.
    pub(super) in_lambda: bool,
    pub(super) depth: usize,
    max_depth: usize,
    /// It nests deeper than that.
    pub(super) too_deep: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect, max_depth: usize) -> Self {
        Parser {
            text,
            at: 0,
            dialect,
            nodes: Vec::new(),
            substitutions: Vec::new(),
            parameters: Vec::new(),
            forwards: Vec::new(),
            may_forward: false,
            in_lambda: false,
            depth: 0,
            max_depth,
            too_deep: false,
        }
    }

    pub(super) fn add(&mut self, node: Node<'a>) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    pub(super) fn text(&mut self, text: &'a str) -> Id {
        self.add(Node::Text(text))
    }

    pub(super) fn parts(&mut self, parts: Vec<Part<'a>>) -> Id {
        self.add(Node::Parts(parts))
    }

    /// What the tool writes that is followed.
    pub(super) fn either<T>(&self, gnu: T, llvm: T) -> T {
        match self.dialect {
            Dialect::Llvm => llvm,
            _ => gnu,
        }
    }

    pub(super) fn peek_at(&self, ahead: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.text.get(self.at..);
        let found = rest.is_some_and(|rest| rest.starts_with(text));
        if found {
            self.at += text.len();
        }
        found
    }

    /// The next two characters.
    pub(super) fn two(&self) -> &'a str {
        self.text.get(self.at..self.at + 2).unwrap_or("")
    }

    pub(super) fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        while wanted(self.peek()) {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    pub(super) fn digits(&mut self) -> &'a str {
        self.take_while(|byte| byte.is_ascii_digit())
    }

    /// A number and `_`; one more than the number, 0 without one.
    pub(super) fn index(&mut self) -> Option<usize> {
        let digits = self.digits();
        self.numbered(digits, 10)
    }

    /// As [`Parser::index`], the digits being read.
    fn numbered(&mut self, digits: &str, radix: u32) -> Option<usize> {
        let index = match digits {
            "" => 0,
            digits => usize::from_str_radix(digits, radix).ok()?.checked_add(1)?,
        };
        self.eat("_").then_some(index)
    }

    pub(super) fn until_e(&mut self, each: fn(&mut Self) -> Option<Id>) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while !self.eat("E") {
            all.push(each(self)?);
        }
        Some(all)
    }

    pub(super) fn deeper(&mut self, work: impl FnOnce(&mut Self) -> Option<Id>) -> Option<Id> {
        self.depth += 1;
        self.too_deep |= self.depth >= self.max_depth;
        let found = (!self.too_deep).then(|| work(self)).flatten();
        self.depth -= 1;
        found
    }

    /// A length and so many characters.
    pub(super) fn source_name(&mut self) -> Option<&'a str> {
        let len: usize = self.digits().parse().ok()?;
        let name = self.text.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        (len > 0).then_some(name)
    }

    /// What was read before, or a name of the standard library.
    pub(super) fn substitution(&mut self) -> Option<Id> {
        self.eat("S").then_some(())?;
        if self.peek().is_ascii_lowercase() {
            let of_letter = |(letter, ..): &&(u8, _, _)| *letter == self.peek();
            let &(_, short, full) = STANDARD.iter().find(of_letter)?;
            self.at += 1;
            let name = self.add(Node::Standard(short, full));
            let tagged = self.tags(name)?;
            if tagged != name {
                self.substitutions.push(tagged);
            }
            return Some(tagged);
        }
        let digits = self.take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        let index = self.numbered(digits, 36)?;
        self.substitutions.get(index).copied()
    }

    /// What a template's parameter stands for.
    pub(super) fn parameter(&mut self) -> Option<Id> {
        self.eat("T").then_some(())?;
        if self.eat("L") {
            self.index()?;
            return self.auto();
        }
        if self.in_lambda {
            return self.auto();
        }
        let index = self.index()?;
        if let Some(&found) = self.parameters.get(index).filter(|_| !self.may_forward) {
            return Some(found);
        }
        self.may_forward.then(|| {
            let forward = self.add(Node::Forward(None));
            self.forwards.push((forward, index));
            forward
        })
    }

    /// A parameter of a lambda that is a template.
    fn auto(&mut self) -> Option<Id> {
        let index = u32::try_from(self.index()?).ok()?;
        let auto = Node::Parts(super::node::parts![
            "auto:",
            Part::Number(index.checked_add(1)?)
        ]);
        let auto = self.either(auto, Node::Text("auto"));
        Some(self.add(auto))
    }
}

#[rustfmt::skip]
const STANDARD: [(u8, &str, &str); 6] = [
    (b'a', "std::allocator", "std::allocator"),
    (b'b', "std::basic_string", "std::basic_string"),
    (b's', "std::string", "std::basic_string<char, std::char_traits<char>, std::allocator<char> >"),
    (b'i', "std::istream", "std::basic_istream<char, std::char_traits<char> >"),
    (b'o', "std::ostream", "std::basic_ostream<char, std::char_traits<char> >"),
    (b'd', "std::iostream", "std::basic_iostream<char, std::char_traits<char> >"),
];
