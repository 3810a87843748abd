//! The state of a parser: its position, and the substitutions and template parameters so far.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "offsets in a name of at most 16 KiB, and depths"
)]

use super::node::{Id, Node, Part, parts};
use super::operators::prec;
use crate::demangle::output::Dialect;

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) dialect: Dialect,
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) substitutions: Vec<Id>,
    pub(super) parameters: Parameters,
    pub(super) forwards: Vec<(Id, usize)>,
    /// Parameters may precede the arguments that they refer to.
    pub(super) may_forward: bool,
    /// Template arguments may follow a parameter or a substitution.
    pub(super) takes_arguments: bool,
    /// The level of the parameters of the lambda whose parameter list is parsed.
    pub(super) lambda_level: Option<usize>,
    /// In a requires clause, where parameters of several lists are visible.
    pub(super) in_constraint: bool,
    /// Numbers of invented names of type, value and template parameters.
    pub(super) invented: [u32; 3],
    depth: usize,
    max_depth: usize,
    /// The name nests deeper than that.
    pub(super) too_deep: bool,
}

/// The kind of a template parameter without an argument.
#[derive(Clone, Copy)]
enum Invented {
    Type,
    Value,
    Template,
}

/// The template parameters in scope, by level; a parameter is the argument it refers to.
#[derive(Default)]
pub(super) struct Parameters {
    all: Vec<Id>,
    /// The start of each level in `all`.
    starts: Vec<usize>,
}

impl Parameters {
    pub(super) fn clear(&mut self) {
        self.truncate(0);
    }

    pub(super) fn levels(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn open_level(&mut self) {
        self.starts.push(self.all.len());
    }

    pub(super) fn truncate(&mut self, levels: usize) {
        if let Some(&start) = self.starts.get(levels) {
            self.all.truncate(start);
            self.starts.truncate(levels);
        }
    }

    /// Adds a parameter to the innermost level.
    pub(super) fn push(&mut self, parameter: Id) {
        self.all.push(parameter);
    }

    pub(super) fn get(&self, level: usize, index: usize) -> Option<Id> {
        let end = self.starts.get(level + 1).copied();
        let end = end.unwrap_or(self.all.len());
        let level = self.all.get(*self.starts.get(level)?..end)?;
        level.get(index).copied()
    }
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect, max_depth: usize) -> Self {
        Parser {
            text,
            at: 0,
            dialect,
            nodes: Vec::new(),
            substitutions: Vec::new(),
            parameters: Parameters::default(),
            forwards: Vec::new(),
            may_forward: false,
            takes_arguments: true,
            lambda_level: None,
            in_constraint: false,
            invented: [0; 3],
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
        self.add(Node::Parts(prec::PRIMARY, parts))
    }

    /// The value for the dialect.
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

    /// Consumes `text`, which must be ASCII, if it is next.
    #[inline]
    pub(super) fn eat(&mut self, text: &str) -> bool {
        let end = self.at + text.len();
        let next = self.text.as_bytes().get(self.at..end);
        let is_next = next == Some(text.as_bytes());
        if is_next {
            self.at = end;
        }
        is_next
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

    /// Digits of base 36.
    pub(super) fn sequence_number(&mut self) -> &'a str {
        self.take_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    }

    /// An optional minus sign and digits.
    pub(super) fn signed(&mut self) -> (&'static str, &'a str) {
        let sign = if self.eat("n") { "-" } else { "" };
        (sign, self.digits())
    }

    /// A number and `_`; one more than the number, 0 without one.
    pub(super) fn index(&mut self) -> Option<usize> {
        let digits = self.digits();
        self.numbered(digits, 10)
    }

    /// As [`Parser::index`], after the digits.
    fn numbered(&mut self, digits: &str, radix: u32) -> Option<usize> {
        let index = match digits {
            "" => 0,
            digits => usize::from_str_radix(digits, radix).ok()?.checked_add(1)?,
        };
        self.eat("_").then_some(index)
    }

    /// A list that ends with the letter `end`.
    pub(super) fn until(
        &mut self,
        end: &str,
        each: fn(&mut Self) -> Option<Id>,
    ) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while !self.eat(end) {
            all.push(each(self)?);
        }
        Some(all)
    }

    pub(super) fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        self.depth += 1;
        self.too_deep |= self.depth >= self.max_depth;
        let result = (!self.too_deep).then(|| work(self)).flatten();
        self.depth -= 1;
        result
    }

    /// Parses with other template parameters in scope: none at first.
    pub(super) fn in_own_scope<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        let parameters = std::mem::take(&mut self.parameters);
        let result = work(self);
        self.parameters = parameters;
        result
    }

    /// A length and as many characters.
    pub(super) fn source_name(&mut self) -> Option<&'a str> {
        let len: usize = self.digits().parse().ok()?;
        let name = self.text.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        (len > 0).then_some(name)
    }

    /// A component that occurred before, or a name of the standard library.
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
        let digits = self.sequence_number();
        let index = self.numbered(digits, 36)?;
        self.substitutions.get(index).copied()
    }

    /// The argument that a template parameter refers to.
    pub(super) fn parameter(&mut self) -> Option<Id> {
        let from = self.at;
        self.eat("T").then_some(())?;
        let level = if self.eat("L") { self.index()? } else { 0 };
        let index = self.index()?;
        if self.in_constraint {
            return Some(self.text(&self.text[from..self.at - 1]));
        }
        if self.may_forward && level == 0 {
            let forward = self.add(Node::Forward(None));
            self.forwards.push((forward, index));
            return Some(forward);
        }
        // GNU counts the parameters of a lambda from level 0.
        let level = match self.lambda_level {
            Some(own) => self.either(own, level),
            None => level,
        };
        if let Some(parameter) = self.parameters.get(level, index) {
            return Some(parameter);
        }
        let own = self.lambda_level?;
        if level == own && level == self.parameters.levels() {
            self.parameters.open_level();
        }
        let number = u32::try_from(index).ok()?.checked_add(1)?;
        let gnu = Node::Parts(prec::PRIMARY, parts!["auto:", Part::Number(number)]);
        let auto = self.either(gnu, Node::Text("auto"));
        Some(self.add(auto))
    }

    /// Declarations of template parameters; each becomes a parameter of the innermost level.
    pub(super) fn declarations(&mut self) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while self.is_declaration() {
            all.push(self.declaration(true)?);
        }
        Some(all)
    }

    pub(super) fn is_declaration(&self) -> bool {
        self.peek() == b'T' && matches!(self.peek_at(1), b'y' | b'p' | b't' | b'n' | b'k')
    }

    /// The declaration of a template parameter (section 5.1.8).
    pub(super) fn declaration(&mut self, is_parameter: bool) -> Option<Id> {
        self.deeper(|p| {
            let code = p.two();
            p.at += 2;
            match code {
                "Ty" => {
                    let kind = p.text("typename");
                    let name = p.invent(Invented::Type, is_parameter);
                    Some(p.add(Node::Declaration(kind, name)))
                }
                "Tk" => {
                    // LLVM does not resolve the parameters in a constraint.
                    let outer = p.in_constraint;
                    p.in_constraint = p.either(outer, true);
                    let constraint = p.name();
                    p.in_constraint = outer;
                    let constraint = constraint?;
                    let name = p.invent(Invented::Type, is_parameter);
                    Some(p.add(Node::Declaration(constraint, name)))
                }
                "Tn" => {
                    let name = p.invent(Invented::Value, is_parameter);
                    let kind = p.kind()?;
                    Some(p.add(Node::Declaration(kind, name)))
                }
                "Tt" => {
                    let name = p.invent(Invented::Template, is_parameter);
                    let levels = p.parameters.levels();
                    p.parameters.open_level();
                    let declarations = p.declarations()?;
                    let requires = p.requires_clause()?;
                    p.parameters.truncate(levels);
                    p.eat("E").then_some(())?;
                    let kind = p.parts(parts!["template<", declarations, "> typename"]);
                    let name = p.parts([parts![name], requires].concat());
                    Some(p.add(Node::Declaration(kind, name)))
                }
                "Tp" => {
                    let declaration = p.declaration(is_parameter)?;
                    Some(p.add(Node::PackDeclaration(declaration)))
                }
                _ => None,
            }
        })
    }

    /// A name for a template parameter without an argument. GNU numbers the first one, too.
    fn invent(&mut self, kind: Invented, is_parameter: bool) -> Id {
        let [types, values, templates] = &mut self.invented;
        let (prefix, count) = match kind {
            Invented::Type => ("$T", types),
            Invented::Value => ("$N", values),
            Invented::Template => ("$TT", templates),
        };
        let number = *count;
        *count += 1;
        let shown = self.either(Some(number), number.checked_sub(1));
        let mut parts = parts![prefix];
        parts.extend(shown.map(Part::Number));
        let name = self.parts(parts);
        if is_parameter {
            self.parameters.push(name);
        }
        name
    }

    /// A requires clause; empty without one.
    pub(super) fn requires_clause(&mut self) -> Option<Vec<Part<'a>>> {
        if !self.eat("Q") {
            return Some(Vec::new());
        }
        let outer = std::mem::replace(&mut self.in_constraint, true);
        let constraint = self.expression();
        self.in_constraint = outer;
        Some(parts![" requires ", constraint?])
    }
}

#[rustfmt::skip]
const STANDARD: [(u8, &str, &str); 6] = [
    (b'a', "std::allocator", "std::allocator"),
    (b'b', "std::basic_string", "std::basic_string"),
    (b's', "std::string", "std::basic_string<char, std::char_traits<char>, std::allocator<char>"),
    (b'i', "std::istream", "std::basic_istream<char, std::char_traits<char>"),
    (b'o', "std::ostream", "std::basic_ostream<char, std::char_traits<char>"),
    (b'd', "std::iostream", "std::basic_iostream<char, std::char_traits<char>"),
];
