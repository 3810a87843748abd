//! Expressions in template arguments and types (section 5.1.6).

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "offsets in a name of at most 16 KiB, and indexes of its nodes"
)]

use super::floats;
use super::node::{Id, Node, Part, parts};
use super::operators::{Kind, Operator, operator, prec};
use super::parser::Parser;

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
        match self.peek() {
            b'b' => return None,
            b'U' if self.peek_at(1) == b'l' => {
                self.at += 2;
                let mut parts = parts!["[]"];
                parts.extend(self.lambda()?);
                self.index()?;
                parts.push("{...}".into());
                return self.eat("E").then(|| self.parts(parts));
            }
            b'A' if self.either(false, true) => {
                let of = self.kind()?;
                return self.eat("E").then(|| self.parts(parts!["\"<", of, ">\""]));
            }
            b'f' | b'd' | b'e' if self.either(false, true) => return self.float_literal(),
            _ => {}
        }
        let code = self.peek();
        let suffix = match code {
            b'i' => "",
            b'j' => "u",
            b'l' => "l",
            b'm' => "ul",
            b'x' => "ll",
            b'y' => "ull",
            _ => return self.typed_literal(),
        };
        self.at += 1;
        let (sign, value) = self.signed();
        self.eat("E")
            .then(|| self.parts(parts![sign, value, suffix]))
    }

    /// A literal that is written with its type.
    fn typed_literal(&mut self) -> Option<Id> {
        // GNU writes the bytes of floating-point numbers.
        let (open, close) = match self.peek() {
            b'd' | b'e' | b'f' | b'g' => ("[", "]"),
            _ => ("", ""),
        };
        // A complex number has two parts.
        let is_complex = self.peek() == b'C';
        let kind = self.kind()?;
        let sign = if self.eat("n") { "-" } else { "" };
        let is_digit = |byte| match byte {
            b'0'..=b'9' | b'a'..=b'f' => true,
            _ => is_complex && byte == b'_',
        };
        let value = self.take_while(is_digit);
        let parts = parts!["(", kind, ")", sign, open, value, close];
        self.eat("E").then(|| self.parts(parts))
    }

    fn float_literal(&mut self) -> Option<Id> {
        let code = self.peek();
        self.at += 1;
        let digits = self.take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        floats::is_valid(code, digits).then_some(())?;
        self.eat("E").then(|| self.add(Node::Float(code, digits)))
    }

    pub(super) fn expression(&mut self) -> Option<Id> {
        self.deeper(Self::expression_within)
    }

    /// An expression, in parentheses if its precedence is this one or weaker.
    fn operand(&mut self, limit: u8) -> Option<Part<'a>> {
        let operand = self.expression()?;
        Some(Part::Operand(operand, limit))
    }

    /// An expression that only GNU parenthesizes.
    fn gnu_operand(&mut self) -> Option<Part<'a>> {
        let operand = self.expression()?;
        Some(self.either(Part::Operand(operand, prec::ANY), Part::Node(operand)))
    }

    fn expression_within(&mut self) -> Option<Id> {
        match self.peek() {
            b'L' => return self.literal(),
            b'T' => return self.parameter(),
            b'1'..=b'9' => return self.unresolved(false),
            _ => {}
        }
        let global = self.eat("gs");
        let code = self.two();
        if let Some(operator) = operator(code) {
            self.at += 2;
            return self.operation(operator, global);
        }
        if matches!(code, "sr" | "on" | "dn") || global {
            return self.unresolved(global);
        }
        self.at += 2;
        let parts = match code {
            "fp" => return self.function_parameter(),
            "fL" if self.peek().is_ascii_digit() => {
                self.digits();
                self.eat("p").then_some(())?;
                return self.function_parameter();
            }
            "fL" | "fR" | "fl" | "fr" => self.fold(code)?,
            "il" => return self.braced_list(Vec::new()),
            "tl" => {
                let kind = self.kind()?;
                return self.string(kind).or_else(|| self.braced_list(parts![kind]));
            }
            "mc" => {
                let (kind, of) = (self.kind()?, self.expression()?);
                self.signed();
                self.eat("E").then_some(())?;
                parts!["(", kind, ")(", of, ")"]
            }
            "nx" => parts!["noexcept (", self.expression()?, ")"],
            "rq" => self.requirements(Vec::new())?,
            "rQ" => {
                let takes = self.until("_", Self::kind)?;
                self.requirements(takes)?
            }
            "so" => self.subobject()?,
            "sp" => {
                let of = self.expression()?;
                return Some(self.add(Node::Expansion(of)));
            }
            "sZ" => self.pack_size()?,
            "sP" => {
                let open = self.either("sizeof...(", "sizeof... (");
                parts![open, self.until("E", Self::argument)?, ")"]
            }
            "tr" => parts!["throw"],
            "tw" => parts!["throw ", self.expression()?],
            _ if code.starts_with('u') => {
                self.at -= 1;
                self.vendor_expression()?
            }
            _ => {
                self.at -= 2;
                return self.unresolved(false);
            }
        };
        Some(self.parts(parts))
    }

    fn function_parameter(&mut self) -> Option<Id> {
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

    fn operation(&mut self, operator: &Operator, global: bool) -> Option<Id> {
        let (strength, symbol) = (operator.prec, operator.symbol);
        let parts = match operator.kind {
            Kind::Prefix => parts![symbol, self.addressed(symbol)?],
            Kind::Postfix if self.eat("_") => parts![symbol, self.operand(strength)?],
            Kind::Postfix => parts![self.operand(strength + 1)?, symbol],
            Kind::Binary => return self.binary(operator),
            Kind::Index => {
                let array = self.operand(strength)?;
                parts![array, "[", self.expression()?, "]"]
            }
            Kind::Member => {
                let object = self.operand(strength + 1)?;
                let member = match strength {
                    prec::MEMBER_POINTER => self.operand(strength)?,
                    _ => self.unresolved_or_other()?.into(),
                };
                parts![object, symbol, member]
            }
            Kind::New => {
                let mut parts = parts![if global { "::" } else { "" }, &symbol[1..]];
                let with = self.until("_", Self::expression)?;
                if !with.is_empty() {
                    let open = self.either(" (", "(");
                    parts.extend(parts![open, with, ")"]);
                }
                parts.extend(parts![" ", self.kind()?]);
                if self.eat("pi") {
                    let initializers = self.until("E", Self::expression)?;
                    if !initializers.is_empty() || self.either(true, false) {
                        parts.extend(parts!["(", initializers, ")"]);
                    }
                } else if self.eat("il") {
                    parts.extend(parts!["{", self.until("E", Self::expression)?, "}"]);
                } else {
                    self.eat("E").then_some(())?;
                }
                parts
            }
            Kind::Delete => {
                let global = if global { "::" } else { "" };
                parts![global, &symbol[1..], " ", self.gnu_operand()?]
            }
            Kind::Call => {
                let called = self.gnu_operand()?;
                parts![called, "(", self.until("E", Self::expression)?, ")"]
            }
            Kind::Cast => self.cast()?,
            Kind::Conditional => {
                let condition = self.operand(strength)?;
                let yes = self.operand(prec::ANY)?;
                let mark = self.either("?", " ? ");
                parts![condition, mark, yes, " : ", self.operand(prec::ASSIGN + 1)?]
            }
            Kind::NameOnly => return None,
            Kind::NamedCast => parts![symbol, self.kind()?, ">(", self.expression()?, ")"],
            Kind::OfType => parts![symbol, "(", self.kind()?, ")"],
            Kind::OfValue => {
                let of = self.expression()?;
                match self.either(true, false) {
                    true => parts![symbol, Part::Operand(of, prec::ANY)],
                    false => parts![symbol, "(", of, ")"],
                }
            }
        };
        Some(self.add(Node::Parts(strength, parts)))
    }

    /// The operand of a prefix operator.
    fn addressed(&mut self, symbol: &str) -> Option<Part<'a>> {
        let mut of = self.expression()?;
        // GNU writes only the qualified name of a function whose address is taken.
        if let (Node::Encoding(name, signature), "&") = (&self.nodes[of], symbol)
            && let Node::Scoped(..) = self.nodes[*name]
            && signature.qualifiers.is_empty()
            && signature.reference.is_empty()
        {
            of = self.either(*name, of);
        }
        Some(Part::Operand(of, prec::UNARY))
    }

    fn binary(&mut self, operator: &Operator) -> Option<Id> {
        let (strength, symbol) = (operator.prec, operator.symbol);
        // Assignments associate to the right.
        let (left, right) = match strength {
            prec::ASSIGN => (prec::OR_IF, strength + 1),
            _ => (strength + 1, strength),
        };
        let (left, right) = (self.operand(left)?, self.operand(right)?);
        let before = if symbol == "," { "" } else { " " };
        let (before, after) = self.either(("", ""), (before, " "));
        let parts = parts![left, before, symbol, after, right];
        let whole = self.add(Node::Parts(strength, parts));
        let ends_arguments = symbol == ">" || symbol == ">>" && self.either(false, true);
        Some(match ends_arguments {
            true => self.add(Node::Guarded(whole)),
            false => whole,
        })
    }

    /// A conversion to a type.
    fn cast(&mut self) -> Option<Vec<Part<'a>>> {
        let to = self.without_arguments()?;
        if self.eat("_") {
            return Some(parts![
                "(",
                to,
                ")(",
                self.until("E", Self::expression)?,
                ")"
            ]);
        }
        let of = self.expression()?;
        Some(match self.either(true, false) {
            true => parts!["(", to, ")", Part::Operand(of, prec::ANY)],
            false => parts!["(", to, ")(", of, ")"],
        })
    }

    /// The name of a member, or an expression in its place.
    fn unresolved_or_other(&mut self) -> Option<Id> {
        match self.two() {
            "on" | "dn" | "sr" | "gs" => self.expression(),
            code if operator(code).is_some() || code.starts_with(['L', 'T', 'f']) => {
                self.expression()
            }
            _ => self.unresolved(false),
        }
    }

    /// A fold expression: `fl` and `fr` are unary, `fL` and `fR` have an initial value.
    fn fold(&mut self, code: &str) -> Option<Vec<Part<'a>>> {
        let symbol = operator(self.two())?.symbol;
        self.at += 2;
        let is_left = code.eq_ignore_ascii_case("fl");
        let has_initial = matches!(code, "fL" | "fR");
        let first = self.expression()?;
        let second = match has_initial {
            true => Some(self.expression()?),
            false => None,
        };
        let (initial, pack) = match (is_left, second) {
            (true, Some(second)) => (Some(first), second),
            _ => (second, first),
        };
        let pack = self.add(Node::Expansion(pack));
        let space = self.either("", " ");
        let operator = parts![space, symbol, space];
        let pack = parts!["(", pack, ")"];
        let initial = initial.map(|id| vec![Part::Operand(id, prec::CAST + 1)]);
        let dots = parts!["..."];
        let operands = match is_left {
            true => [initial, Some(dots), Some(pack)],
            false => [Some(pack), Some(dots), initial],
        };
        let operands: Vec<_> = operands.into_iter().flatten().collect();
        Some([parts!["("], operands.join(&operator[..]), parts![")"]].concat())
    }

    fn braced_list(&mut self, mut parts: Vec<Part<'a>>) -> Option<Id> {
        let with = self.until("E", Self::braced)?;
        parts.extend(parts!["{", with, "}"]);
        Some(self.add(Node::Closed(parts)))
    }

    /// The initializer of an array of `char`, which LLVM writes as a string.
    fn string(&mut self, kind: Id) -> Option<Id> {
        let Node::Array(of, _) = self.nodes[kind] else {
            return None;
        };
        if !matches!(self.nodes[of], Node::Text("char")) || self.either(true, false) {
            return None;
        }
        let from = self.at;
        while self.eat("Lc") {
            let is_byte = self.digits().parse::<u8>().is_ok();
            if !(is_byte && self.eat("E")) {
                break;
            }
        }
        let chars = &self.text[from..self.at];
        if self.eat("E") && !chars.is_empty() {
            return Some(self.add(Node::String(chars)));
        }
        self.at = from;
        None
    }

    /// An initializer, which may name its field or index.
    fn braced(&mut self) -> Option<Id> {
        self.deeper(|p| {
            let code = p.two();
            if !matches!(code, "di" | "dx" | "dX") {
                return p.expression();
            }
            p.at += 2;
            let mut parts = match code {
                "di" => parts![".", p.source_name()?],
                "dx" => parts!["[", p.expression()?, "]"],
                _ => parts!["[", p.expression()?, " ... ", p.expression()?, "]"],
            };
            let is_nested = matches!(p.two(), "di" | "dx" | "dX");
            let value = p.braced()?;
            parts.extend(match is_nested {
                true => parts![value],
                false => p.either(
                    parts!["=", Part::Operand(value, prec::ANY)],
                    parts![" = ", value],
                ),
            });
            Some(p.parts(parts))
        })
    }

    /// A subobject of a template argument.
    fn subobject(&mut self) -> Option<Vec<Part<'a>>> {
        let (kind, of) = (self.kind()?, self.expression()?);
        let (sign, offset) = self.signed();
        while self.eat("_") {
            self.digits();
        }
        self.eat("p");
        self.eat("E").then_some(())?;
        let offset = if offset.is_empty() { "0" } else { offset };
        Some(parts![of, ".<", kind, " at offset ", sign, offset, ">"])
    }

    /// The number of elements of a pack, which LLVM lists.
    fn pack_size(&mut self) -> Option<Vec<Part<'a>>> {
        let of = match self.peek() {
            b'T' => self.parameter()?,
            _ => self.expression()?,
        };
        if let (Node::Pack(all), true) = (&self.nodes[of], self.either(true, false)) {
            return Some(parts![Part::Number(u32::try_from(all.len()).ok()?)]);
        }
        let of_parameter = matches!(self.nodes[of], Node::Closed(_));
        let open = match of_parameter && self.either(false, true) {
            true => "sizeof... (",
            false => "sizeof...(",
        };
        let of = match of_parameter {
            true => of,
            false => self.add(Node::Expansion(of)),
        };
        Some(parts![open, of, ")"])
    }

    /// The requirements of a `requires` expression with these parameters.
    fn requirements(&mut self, takes: Vec<Id>) -> Option<Vec<Part<'a>>> {
        let mut parts = match takes.is_empty() {
            true => parts!["requires {"],
            false => parts!["requires (", takes, ") {"],
        };
        while !self.eat("E") {
            if self.eat("X") {
                let of = self.expression()?;
                let noexcept = self.eat("N");
                let concept = match self.eat("R") {
                    true => Some(self.name()?),
                    false => None,
                };
                let (open, close) = match noexcept || concept.is_some() {
                    true => (" {", "}"),
                    false => (" ", ""),
                };
                parts.extend(parts![open, of, close]);
                parts.push(if noexcept { " noexcept" } else { "" }.into());
                parts.extend(
                    concept
                        .map(|concept| parts![" -> ", concept])
                        .unwrap_or_default(),
                );
            } else if self.eat("T") {
                parts.extend(parts![" typename ", self.kind()?]);
            } else {
                self.eat("Q").then_some(())?;
                parts.extend(parts![" requires ", self.expression()?]);
            }
            parts.push(";".into());
        }
        parts.push(" }".into());
        Some(parts)
    }

    /// An expression of a vendor.
    fn vendor_expression(&mut self) -> Option<Vec<Part<'a>>> {
        let name = self.source_name()?;
        // The old encoding of `__uuidof` ends without a letter.
        let with = if name == "__uuidof" && self.eat("t") {
            vec![self.kind()?]
        } else if name == "__uuidof" && self.eat("z") {
            vec![self.expression()?]
        } else {
            self.until("E", Self::argument)?
        };
        Some(parts![name, "(", with, ")"])
    }

    /// A name that depends on a template's parameters.
    fn unresolved(&mut self, global: bool) -> Option<Id> {
        let mut scope = None;
        if self.eat("sr") {
            let levels = self.eat("N");
            if levels || !self.peek().is_ascii_digit() {
                scope = Some(self.unresolved_type()?);
            }
            if levels || scope.is_none() {
                while !self.eat("E") {
                    let name = self.simple_id()?;
                    scope = Some(match scope {
                        Some(scope) => self.add(Node::Scoped(scope, name)),
                        None if global => self.parts(parts!["::", name]),
                        None => name,
                    });
                }
            }
            let name = self.base_name()?;
            return Some(self.add(Node::Scoped(scope?, name)));
        }
        let name = self.base_name()?;
        Some(match global {
            true => self.parts(parts!["::", name]),
            false => name,
        })
    }

    fn unresolved_type(&mut self) -> Option<Id> {
        let kind = match self.peek() {
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
                let substitution = self.substitution()?;
                return self.with_optional_arguments(substitution);
            }
            _ => return self.kind(),
        };
        self.substitutions.push(kind);
        self.with_optional_arguments(kind)
    }

    /// With the template arguments that may follow, it is a substitution.
    fn with_optional_arguments(&mut self, of: Id) -> Option<Id> {
        if self.peek() != b'I' {
            return Some(of);
        }
        let whole = self.with_arguments(of)?;
        self.substitutions.push(whole);
        Some(whole)
    }

    /// A name and its template arguments, if any.
    fn simple_id(&mut self) -> Option<Id> {
        let name = self.source_name()?;
        let name = self.text(name);
        match self.peek() {
            b'I' => self.with_arguments(name),
            _ => Some(name),
        }
    }

    fn base_name(&mut self) -> Option<Id> {
        if self.peek().is_ascii_digit() {
            return self.simple_id();
        }
        if self.eat("dn") {
            let of = match self.peek().is_ascii_digit() {
                true => self.simple_id()?,
                false => self.unresolved_type()?,
            };
            return Some(self.parts(parts!["~", of]));
        }
        self.eat("on");
        let name = self.plain_operator_name()?;
        match self.peek() {
            b'I' => self.with_arguments(name),
            _ => Some(name),
        }
    }
}
