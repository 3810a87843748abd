//! Types (section 5.1.5).

#![expect(
    clippy::arithmetic_side_effects,
    reason = "places in a name of at most 16 KiB, and of its parts"
)]

use super::node::{Id, Node, Signature, parts};
use super::operators::look_up;
use super::parser::Parser;

#[rustfmt::skip]
const BUILTIN: [(&str, &str); 31] = [
    ("v", "void"), ("w", "wchar_t"), ("b", "bool"), ("c", "char"), ("a", "signed char"),
    ("h", "unsigned char"), ("s", "short"), ("t", "unsigned short"), ("i", "int"),
    ("j", "unsigned int"), ("l", "long"), ("m", "unsigned long"), ("x", "long long"),
    ("y", "unsigned long long"), ("n", "__int128"), ("o", "unsigned __int128"), ("f", "float"),
    ("d", "double"), ("e", "long double"), ("g", "__float128"), ("z", "..."), ("Dd", "decimal64"),
    ("De", "decimal128"), ("Df", "decimal32"), ("Dh", "half"), ("Di", "char32_t"),
    ("Ds", "char16_t"), ("Du", "char8_t"), ("Da", "auto"), ("Dc", "decltype(auto)"),
    ("Dn", "decltype(nullptr)"),
];

impl<'a> Parser<'a> {
    /// A type.
    pub(super) fn kind(&mut self) -> Option<Id> {
        self.deeper(Self::kind_within)
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

    fn builtin(&mut self) -> Option<Id> {
        let len = if self.peek() == b'D' { 2 } else { 1 };
        let code = self.text.get(self.at..self.at + len)?;
        let name = match code {
            "Dn" => self.either("decltype(nullptr)", "std::nullptr_t"),
            code => look_up(&BUILTIN, code)?,
        };
        self.at += len;
        Some(self.text(name))
    }

    fn kind_within(&mut self) -> Option<Id> {
        if let Some(builtin) = self.builtin() {
            return Some(builtin);
        }
        let found = match self.peek() {
            b'r' | b'V' | b'K' => {
                let qualifiers = self.qualifiers();
                if self.peek() == b'F' || matches!(self.two(), "Do" | "DO" | "Dw" | "Dx") {
                    self.function_type(qualifiers)?
                } else {
                    let of = self.kind()?;
                    self.add(Node::Qualified(of, qualifiers))
                }
            }
            b'U' if !matches!(self.peek_at(1), b't' | b'l') => {
                self.at += 1;
                let name = self.source_name()?;
                let mut qualifier = self.text(name);
                if self.peek() == b'I' {
                    qualifier = self.with_arguments(qualifier)?;
                }
                let of = self.kind()?;
                self.parts(parts![of, " ", qualifier])
            }
            b'u' => {
                self.at += 1;
                let name = self.source_name()?;
                self.text(name)
            }
            b'D' => match self.peek_at(1) {
                b't' | b'T' => self.decltype()?,
                b'p' => {
                    self.at += 2;
                    let of = self.kind()?;
                    self.add(Node::Expansion(of))
                }
                b'v' => {
                    self.at += 2;
                    let size = self.digits();
                    self.eat("_").then_some(())?;
                    let of = self.kind()?;
                    let (open, close) = self.either((" vector(", ")"), (" vector[", "]"));
                    self.parts(parts![of, open, size, close])
                }
                _ => self.function_type("")?,
            },
            b'F' => self.function_type("")?,
            b'A' => {
                self.at += 1;
                let size = match self.peek() {
                    b'_' => None,
                    b'0'..=b'9' => {
                        let digits = self.digits();
                        Some(self.text(digits))
                    }
                    _ => Some(self.expression()?),
                };
                self.eat("_").then_some(())?;
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
                if self.peek() == b'I' && !self.may_forward {
                    self.substitutions.push(parameter);
                    self.with_arguments(parameter)?
                } else {
                    parameter
                }
            }
            b'T' => {
                self.at += 2;
                self.name()?
            }
            b'P' => {
                self.at += 1;
                let to = self.kind()?;
                self.add(Node::Pointer(to))
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
                let suffix = if complex { " _Complex" } else { " _Imaginary" };
                self.add(Node::Qualified(of, suffix))
            }
            b'S' if self.peek_at(1) != b't' => {
                let name = self.substitution()?;
                if self.peek() != b'I' {
                    return Some(name);
                }
                self.with_arguments(name)?
            }
            _ => self.name()?,
        };
        self.substitutions.push(found);
        Some(found)
    }

    fn function_type(&mut self, qualifiers: &str) -> Option<Id> {
        let mut signature = Signature {
            qualifiers: qualifiers.to_owned(),
            ..Signature::default()
        };
        let exceptions = if self.eat("Do") { " noexcept" } else { "" };
        self.eat("Dx");
        self.eat("F").then_some(())?;
        self.eat("Y");
        signature.returns = Some(self.kind()?);
        let reference = loop {
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
        signature.qualifiers.push_str(reference);
        signature.qualifiers.push_str(exceptions);
        Some(self.add(Node::Function(Box::new(signature))))
    }

    pub(super) fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let of = self.expression()?;
        self.eat("E").then_some(())?;
        let open = self.either("decltype (", "decltype(");
        Some(self.parts(parts![open, of, ")"]))
    }
}
