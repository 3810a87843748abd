//! Types (section 5.1.5).

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "offsets in a name of at most 16 KiB, and indexes of its nodes"
)]

use super::node::{Id, Node, Part, Signature, parts};
use super::parser::Parser;

/// Built-in types of one letter, from `a` to `z`.
#[rustfmt::skip]
const BUILTIN: [Option<&str>; 26] = [
    Some("signed char"), Some("bool"), Some("char"), Some("double"), Some("long double"),
    Some("float"), Some("__float128"), Some("unsigned char"), Some("int"), Some("unsigned int"),
    None, Some("long"), Some("unsigned long"), Some("__int128"), Some("unsigned __int128"), None,
    None, None, Some("short"), Some("unsigned short"), None, Some("void"), Some("wchar_t"),
    Some("long long"), Some("unsigned long long"), Some("..."),
];

impl<'a> Parser<'a> {
    /// A type.
    pub(super) fn kind(&mut self) -> Option<Id> {
        self.deeper(Self::kind_within)
    }

    /// A type after which template arguments do not belong to it.
    pub(super) fn without_arguments(&mut self) -> Option<Id> {
        let outer = std::mem::replace(&mut self.takes_arguments, false);
        let kind = self.kind();
        self.takes_arguments = outer;
        kind
    }

    pub(super) fn qualifiers(&mut self) -> &'static str {
        let restrict = self.eat("r");
        let volatile = self.eat("V");
        let constant = self.eat("K");
        match (constant, volatile, restrict) {
            (false, false, false) => "",
            (true, false, false) => " const",
            (false, true, false) => " volatile",
            (true, true, false) => " const volatile",
            (false, false, true) => " restrict",
            (true, false, true) => " const restrict",
            (false, true, true) => " volatile restrict",
            (true, true, true) => " const volatile restrict",
        }
    }

    /// A built-in type, which is no substitution.
    fn builtin(&mut self) -> Option<Id> {
        let letter = self.peek();
        let (name, len) = if letter == b'D' {
            let name = match self.peek_at(1) {
                b'd' => "decimal64",
                b'e' => "decimal128",
                b'f' => "decimal32",
                b'h' => "half",
                b'i' => "char32_t",
                b's' => "char16_t",
                b'u' => "char8_t",
                b'a' => "auto",
                b'c' => "decltype(auto)",
                b'n' => self.either("decltype(nullptr)", "std::nullptr_t"),
                b'A' | b'R' | b'S' => return self.fixed_point(),
                _ => return None,
            };
            (name, 2)
        } else {
            let index = letter.checked_sub(b'a')?;
            ((*BUILTIN.get(usize::from(index))?)?, 1)
        };
        self.at += len;
        Some(self.text(name))
    }

    /// A fixed-point type of ISO/IEC TR 18037.
    fn fixed_point(&mut self) -> Option<Id> {
        let saturated = if self.eat("DS") { "_Sat " } else { "" };
        let name = match self.two() {
            "DA" => " _Accum",
            "DR" => " _Fract",
            _ => return None,
        };
        let size = match self.peek_at(2) {
            b's' => "short",
            b't' => "unsigned short",
            b'i' => "",
            b'j' => "unsigned",
            b'l' => "long",
            b'm' => "unsigned long",
            _ => return None,
        };
        self.at += 3;
        let name = if size.is_empty() { &name[1..] } else { name };
        Some(self.parts(parts![saturated, size, name]))
    }

    fn kind_within(&mut self) -> Option<Id> {
        if let Some(builtin) = self.builtin() {
            return Some(builtin);
        }
        let kind = match self.peek() {
            b'r' | b'V' | b'K' | b'U' => self.qualified()?,
            b'u' => self.vendor_type()?,
            b'D' => match self.peek_at(1) {
                b'F' => return self.float(),
                b'B' | b'U' => return self.bit_int(),
                b'k' | b'K' => return self.constrained_auto(),
                b't' | b'T' => self.decltype()?,
                b'p' => {
                    self.at += 2;
                    let of = self.kind()?;
                    self.add(Node::Expansion(of))
                }
                b'v' => self.vector()?,
                _ => self.function_type("")?,
            },
            b'F' => self.function_type("")?,
            b'A' => {
                self.at += 1;
                let size = self.dimension()?;
                let of = self.kind()?;
                self.add(Node::Array(of, size))
            }
            b'M' => {
                self.at += 1;
                let class = self.kind()?;
                let member = self.kind()?;
                self.add(Node::MemberPointer(class, member))
            }
            b'T' if !matches!(self.peek_at(1), b's' | b'u' | b'e') => {
                let parameter = self.parameter()?;
                if self.peek() == b'I' && self.takes_arguments {
                    self.substitutions.push(parameter);
                    self.with_arguments(parameter)?
                } else {
                    parameter
                }
            }
            b'T' => {
                let keyword = match self.peek_at(1) {
                    b's' => "struct ",
                    b'u' => "union ",
                    _ => "enum ",
                };
                self.at += 2;
                let name = self.name()?;
                let keyword = self.either("", keyword);
                self.parts(parts![keyword, name])
            }
            b'P' => {
                self.at += 1;
                let to = self.kind()?;
                self.pointer(to)
            }
            b'R' | b'O' => {
                let rvalue = self.peek() == b'O';
                self.at += 1;
                let to = self.kind()?;
                self.add(Node::Reference(to, rvalue))
            }
            b'C' | b'G' => {
                let complex = self.peek() == b'C';
                self.at += 1;
                let of = self.kind()?;
                let suffix = match complex {
                    true => self.either(" _Complex", " complex"),
                    false => self.either(" _Imaginary", " imaginary"),
                };
                self.add(Node::Qualified(of, suffix))
            }
            b'S' if self.peek_at(1) != b't' => return self.substituted_kind(),
            _ => self.name()?,
        };
        self.substitutions.push(kind);
        Some(kind)
    }

    /// A pointer; that to an object with a protocol of Objective-C is an `id`.
    fn pointer(&mut self, to: Id) -> Id {
        if let Node::Parts(_, parts) = &self.nodes[to]
            && let [
                Part::Node(of),
                Part::Text("<"),
                Part::Text(protocol),
                Part::Text(">"),
            ] = parts[..]
            && let Node::Text("objc_object") = self.nodes[of]
        {
            return self.parts(parts!["id<", protocol, ">"]);
        }
        self.add(Node::Pointer(to))
    }

    /// Qualifiers, those of vendors first, and a type.
    fn qualified(&mut self) -> Option<Id> {
        self.deeper(|p| {
            if p.peek() == b'U' && !matches!(p.peek_at(1), b't' | b'l' | b'b') {
                p.at += 1;
                let name = p.source_name()?;
                if let Some(protocol) = name.strip_prefix("objcproto") {
                    let protocol = protocol.trim_start_matches(|c: char| c.is_ascii_digit());
                    let of = p.qualified()?;
                    return Some(p.parts(parts![of, "<", protocol, ">"]));
                }
                let mut qualifier = p.text(name);
                if p.peek() == b'I' {
                    qualifier = p.with_arguments(qualifier)?;
                }
                let of = p.qualified()?;
                return Some(p.parts(parts![of, " ", qualifier]));
            }
            if p.peek() == b'U' {
                return p.name();
            }
            let qualifiers = p.qualifiers();
            // A function that only vendors qualify is a type of its own.
            let is_function = p.peek() == b'F' || matches!(p.two(), "Do" | "DO" | "Dw" | "Dx");
            if is_function && !qualifiers.is_empty() {
                return p.function_type(qualifiers);
            }
            let of = p.kind()?;
            match qualifiers {
                "" => Some(of),
                _ => Some(p.add(Node::Qualified(of, qualifiers))),
            }
        })
    }

    /// A type of a vendor, or the result of a built-in type trait.
    fn vendor_type(&mut self) -> Option<Id> {
        self.at += 1;
        let name = self.source_name()?;
        if !self.eat("I") {
            return Some(self.text(name));
        }
        let of = self.until("E", Self::argument)?;
        Some(self.parts(parts![name, "(", of, ")"]))
    }

    /// A floating-point type of ISO/IEC TS 18661 (`_Float16`, `_Float32x`) or `std::bfloat16_t`.
    fn float(&mut self) -> Option<Id> {
        self.at += 2;
        let bits = self.digits();
        match self.peek() {
            b'b' => {
                self.at += 1;
                Some(self.parts(parts!["std::bfloat", bits, "_t"]))
            }
            b'x' => {
                self.at += 1;
                Some(self.parts(parts!["_Float", bits, "x"]))
            }
            _ => {
                self.eat("_").then_some(())?;
                Some(self.parts(parts!["_Float", bits]))
            }
        }
    }

    fn bit_int(&mut self) -> Option<Id> {
        let name = match self.peek_at(1) {
            b'B' => "_BitInt(",
            _ => "unsigned _BitInt(",
        };
        self.at += 2;
        let bits = self.dimension()??;
        Some(self.parts(parts![name, bits, ")"]))
    }

    /// `auto` or `decltype(auto)` with a concept.
    fn constrained_auto(&mut self) -> Option<Id> {
        let auto = match self.peek_at(1) {
            b'k' => " auto",
            _ => " decltype(auto)",
        };
        self.at += 2;
        let concept = self.name()?;
        Some(self.parts(parts![concept, auto]))
    }

    /// A number or an expression, and `_`; the inner `None` without either.
    fn dimension(&mut self) -> Option<Option<Id>> {
        let size = match self.peek() {
            b'_' => None,
            b'0'..=b'9' => {
                let digits = self.digits();
                Some(self.text(digits))
            }
            _ => Some(self.expression()?),
        };
        self.eat("_").then_some(size)
    }

    /// Returns whether an underscore precedes the expression of a vector's size, as GCC writes it:
    /// `_Li4E_` or `_T__`. Without a size, the type of the elements follows.
    fn has_vector_expression(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let Some(rest) = rest.strip_prefix('_') else {
            return false;
        };
        let parameter = rest.strip_prefix('T').map(|rest| {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            rest.starts_with("__")
        });
        parameter.unwrap_or(rest.starts_with('L'))
    }

    fn vector(&mut self) -> Option<Id> {
        self.at += 2;
        if self.has_vector_expression() {
            self.at += 1;
        }
        let size = self.dimension()?;
        let size = size.map_or(Part::Text(""), Part::Node);
        if self.eat("p") {
            return Some(self.parts(parts!["pixel vector[", size, "]"]));
        }
        let of = self.kind()?;
        let (open, close) = self.either((" __vector(", ")"), (" vector[", "]"));
        Some(self.parts(parts![of, open, size, close]))
    }

    fn function_type(&mut self, qualifiers: &'static str) -> Option<Id> {
        let mut signature = Signature {
            qualifiers,
            tail: self.exceptions()?,
            ..Signature::default()
        };
        if self.eat("Dx") && self.either(true, false) {
            signature.tail.push(" transaction_safe".into());
        }
        self.eat("F").then_some(())?;
        self.eat("Y");
        signature.returns = Some(self.kind()?);
        signature.reference = loop {
            if self.eat("E") {
                break "";
            }
            if self.eat("RE") {
                break " &";
            }
            if self.eat("OE") {
                break " &&";
            }
            if !self.eat("v") {
                signature.takes.push(self.kind()?);
            }
        };
        Some(self.add(Node::Function(Box::new(signature))))
    }

    /// An exception specification; empty without one.
    fn exceptions(&mut self) -> Option<Vec<Part<'a>>> {
        Some(if self.eat("Do") {
            parts![" noexcept"]
        } else if self.eat("DO") {
            let condition = self.expression()?;
            self.eat("E").then_some(())?;
            parts![" noexcept(", condition, ")"]
        } else if self.eat("Dw") {
            parts![" throw(", self.until("E", Self::kind)?, ")"]
        } else {
            Vec::new()
        })
    }

    pub(super) fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let of = self.expression()?;
        self.eat("E").then_some(())?;
        let open = self.either("decltype (", "decltype(");
        Some(self.parts(parts![open, of, ")"]))
    }
}
