//! Expressions in template arguments and types (section 5.1.6).

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places in a name of at most 16 KiB, and of its parts"
)]

use super::node::{Id, Node, Part, parts};
use super::operators::{BINARY, UNARY, look_up};
use super::parser::Parser;

#[rustfmt::skip]
const CASTS: [(&str, &str); 4] = [
    ("cc", "const_cast<"), ("dc", "dynamic_cast<"), ("rc", "reinterpret_cast<"), ("sc", "static_cast<"),
];

const OF_TYPES: [(&str, &str); 3] = [("st", "sizeof ("), ("at", "alignof ("), ("ti", "typeid (")];

#[rustfmt::skip]
const OF_VALUES: [(&str, &str); 4] = [
    ("sz", "sizeof ("), ("az", "alignof ("), ("te", "typeid ("), ("nx", "noexcept ("),
];

/// What is written behind numbers of a type, in place of the type before them.
#[rustfmt::skip]
const SUFFIXES: [(&str, &str); 6] = [
    ("i", ""), ("j", "u"), ("l", "l"), ("m", "ul"), ("x", "ll"), ("y", "ull"),
];

impl<'a> Parser<'a> {
    pub(super) fn literal(&mut self) -> Option<Id> {
        self.eat("L").then_some(())?;
        if self.eat("_Z") || self.eat("Z") {
            let of = self.encoding()?;
            return self.eat("E").then_some(of);
        }
        if self.eat("Dn") {
            self.eat("0");
            return self.eat("E").then(|| self.text("nullptr"));
        }
        for (code, value) in [("b0E", "false"), ("b1E", "true")] {
            if self.eat(code) {
                return Some(self.text(value));
            }
        }
        if self.peek() == b'b' {
            return None;
        }
        let mut parts = Vec::new();
        let code = self.text.get(self.at..self.at + 1).unwrap_or("");
        let suffix = look_up(&SUFFIXES, code);
        if suffix.is_some() {
            self.at += 1;
        } else {
            let kind = self.kind()?;
            parts.extend(parts!["(", kind, ")"]);
        }
        if self.eat("n") {
            parts.push("-".into());
        }
        let value = self.take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        parts.extend(parts![value, suffix.unwrap_or("")]);
        self.eat("E").then(|| self.parts(parts))
    }

    pub(super) fn expression(&mut self) -> Option<Id> {
        self.deeper(Self::expression_within)
    }

    /// An expression, as a part that is put into brackets.
    fn operand(&mut self) -> Option<Part<'a>> {
        self.expression().map(Part::Operand)
    }

    /// An expression that only GNU puts into brackets.
    fn object(&mut self) -> Option<Part<'a>> {
        let object = self.expression()?;
        Some(self.either(Part::Operand(object), Part::Node(object)))
    }

    fn expression_within(&mut self) -> Option<Id> {
        match self.peek() {
            b'L' => return self.literal(),
            b'T' => return self.parameter(),
            b'1'..=b'9' => return self.unresolved(),
            _ => {}
        }
        let global = self.eat("gs");
        let code = self.two();
        if code.len() < 2 || global && code != "sr" {
            return None;
        }
        if matches!(code, "sr" | "on" | "dn") {
            return self.unresolved();
        }
        self.at += 2;
        let parts = match code {
            "fp" | "fL" => return self.function_parameter(code == "fL"),
            "cl" | "cp" => {
                let called = self.object()?;
                let with = self.until_e(Self::expression)?;
                parts![called, "(", with, ")"]
            }
            "cv" => {
                let saved = std::mem::replace(&mut self.may_forward, false);
                let to = self.kind();
                self.may_forward = saved;
                let with = match self.eat("_") {
                    true => self.until_e(Self::expression)?,
                    false => vec![self.expression()?],
                };
                parts!["(", to?, ")(", with, ")"]
            }
            "il" | "tl" => {
                let mut parts = Vec::new();
                if code == "tl" {
                    parts.push(self.kind()?.into());
                }
                let with = self.until_e(Self::expression)?;
                parts.extend(parts!["{", with, "}"]);
                return Some(self.add(Node::Closed(parts)));
            }
            "dt" | "pt" => {
                let object = self.object()?;
                let member = self.unresolved()?;
                parts![object, if code == "dt" { "." } else { "->" }, member]
            }
            "qu" => {
                let (condition, yes) = (self.operand()?, self.operand()?);
                let mark = self.either("?", " ? ");
                parts![condition, mark, yes, " : ", self.operand()?]
            }
            "ix" => parts![self.operand()?, "[", self.expression()?, "]"],
            "sp" => {
                let of = self.expression()?;
                return Some(self.add(Node::Expansion(of)));
            }
            "sZ" => {
                let of = self.expression()?;
                let of = self.add(Node::Expansion(of));
                parts!["sizeof...(", of, ")"]
            }
            "pp" | "mm" if !self.eat("_") => {
                parts![self.operand()?, look_up(&UNARY, code)?]
            }
            _ => self.operation(code)?,
        };
        Some(self.parts(parts))
    }

    fn function_parameter(&mut self, of_outer: bool) -> Option<Id> {
        if of_outer {
            self.digits();
            self.eat("p").then_some(())?;
        }
        if self.eat("T") {
            return Some(self.text("this"));
        }
        self.qualifiers();
        let digits = self.digits();
        self.eat("_").then_some(())?;
        let number = digits.parse::<u32>().map_or(1, |n| n.saturating_add(2));
        let gnu = || parts!["{parm#", Part::Number(number), "}"];
        let parts = self.either(gnu(), parts!["fp", digits]);
        Some(self.add(Node::Closed(parts)))
    }

    fn operation(&mut self, code: &str) -> Option<Vec<Part<'a>>> {
        if let Some(how) = look_up(&CASTS, code) {
            return Some(parts![how, self.kind()?, ">(", self.expression()?, ")"]);
        }
        if let Some(how) = look_up(&OF_TYPES, code) {
            return Some(parts![how, self.kind()?, ")"]);
        }
        if let Some(how) = look_up(&OF_VALUES, code) {
            return Some(parts![how, self.expression()?, ")"]);
        }
        if let Some(symbol) = look_up(&UNARY, code) {
            let mut of = self.expression()?;
            // Of a function whose address is taken GNU writes the name alone.
            if let (Node::Encoding(name, _), "&") = (&self.nodes[of], symbol) {
                of = self.either(*name, of);
            }
            return Some(parts![symbol, Part::Operand(of)]);
        }
        let symbol = look_up(&BINARY, code)?;
        let (left, right) = (self.operand()?, self.operand()?);
        let before = if symbol == "," { "" } else { " " };
        let (before, after) = self.either(("", ""), (before, " "));
        // What would end the template arguments around it.
        let (open, close) = if symbol == ">" { ("(", ")") } else { ("", "") };
        Some(parts![open, left, before, symbol, after, right, close])
    }

    /// A name that depends on a template's parameters.
    fn unresolved(&mut self) -> Option<Id> {
        if !self.eat("sr") {
            return self.base_name();
        }
        let levels = self.eat("N");
        let mut scope = match self.peek().is_ascii_digit() && !levels {
            true => None,
            false => Some(self.unresolved_type()?),
        };
        if levels || scope.is_none() {
            while !self.eat("E") {
                let name = self.source_name()?;
                let mut part = self.text(name);
                if self.peek() == b'I' {
                    part = self.with_arguments(part)?;
                }
                scope = Some(match scope {
                    Some(scope) => self.add(Node::Scoped(scope, part)),
                    None => part,
                });
                // A scope of one plain name ends without a mark where the name follows.
            }
        }
        let name = self.base_name()?;
        Some(self.add(Node::Scoped(scope?, name)))
    }

    fn unresolved_type(&mut self) -> Option<Id> {
        let found = match self.peek() {
            b'T' => self.parameter()?,
            b'D' => self.decltype()?,
            b'S' if self.peek_at(1) == b't' => {
                self.at += 2;
                let std = self.text("std");
                if !self.peek().is_ascii_digit() {
                    return Some(std);
                }
                let name = self.source_name()?;
                let name = self.text(name);
                self.add(Node::Scoped(std, name))
            }
            b'S' => {
                let found = self.substitution()?;
                return self.with_known_arguments(found);
            }
            _ => return self.kind(),
        };
        self.substitutions.push(found);
        self.with_known_arguments(found)
    }

    /// With template arguments, if some follow, it may be referred to.
    fn with_known_arguments(&mut self, of: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(of);
        }
        let whole = self.with_arguments(of)?;
        self.substitutions.push(whole);
        Some(whole)
    }

    fn base_name(&mut self) -> Option<Id> {
        let name = if self.eat("on") {
            self.operator_name()?
        } else if self.eat("dn") {
            let of = match self.source_name() {
                Some(name) => self.text(name),
                None => self.unresolved_type()?,
            };
            self.parts(parts!["~", of])
        } else {
            let name = self.source_name()?;
            self.text(name)
        };
        match self.peek() {
            b'I' => self.with_arguments(name),
            _ => Some(name),
        }
    }
}
