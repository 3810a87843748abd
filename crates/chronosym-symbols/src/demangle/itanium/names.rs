//! Names of functions and of all else that has a symbol (section 5.1.2 to 5.1.4).

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "places in a name of at most 16 KiB, and of its parts"
)]

use super::node::{Id, Node, Part, Signature, parts};
use super::operators::operator_symbol;
use super::parser::Parser;

/// What a name says of how its function is to be read.
#[derive(Default)]
struct Naming {
    /// The name is that of the function whose parameters stand for its template arguments.
    own: bool,
    /// A constructor, destructor or conversion: these state no return type.
    bare: bool,
    ends_in_arguments: bool,
    qualifiers: String,
}

impl<'a> Parser<'a> {
    /// All of a name, with what compilers add to the names of copies.
    pub(super) fn whole(&mut self) -> Option<Id> {
        let mut whole = self.encoding()?;
        while self.peek() == b'.' {
            let from = self.at;
            self.suffix();
            if self.either(false, true) {
                let rest = &self.text[from..];
                self.at = from + rest.find('@').unwrap_or(rest.len());
            }
            let (open, close) = self.either((" [clone ", "]"), (" (", ")"));
            whole = self.parts(parts![whole, open, &self.text[from..self.at], close]);
        }
        Some(whole)
    }

    /// `.part.0`, `.123`.
    fn suffix(&mut self) {
        self.eat(".");
        if self.peek().is_ascii_digit() {
            self.digits();
            return;
        }
        self.take_while(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        while self.peek() == b'.' && self.peek_at(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
        }
    }

    fn ends(&self) -> bool {
        matches!(self.peek(), 0 | b'E' | b'.' | b'_' | b'@')
    }

    pub(super) fn encoding(&mut self) -> Option<Id> {
        self.deeper(|p| {
            if matches!(p.peek(), b'G' | b'T') {
                return p.special();
            }
            let saved = std::mem::take(&mut p.parameters);
            let in_lambda = std::mem::take(&mut p.in_lambda);
            let whole = p.function();
            p.in_lambda = in_lambda;
            if p.depth > 1 {
                p.parameters = saved;
            }
            whole
        })
    }

    fn function(&mut self) -> Option<Id> {
        let first_forward = self.forwards.len();
        let mut naming = Naming {
            own: true,
            ..Naming::default()
        };
        let name = self.name_as(&mut naming)?;
        for (forward, index) in self.forwards.split_off(first_forward) {
            let found = *self.parameters.get(index)?;
            self.nodes[forward] = Node::Forward(Some(found));
        }
        if self.ends() {
            return Some(name);
        }
        let mut signature = Signature {
            qualifiers: naming.qualifiers,
            ..Signature::default()
        };
        if !naming.bare && naming.ends_in_arguments {
            signature.returns = Some(self.kind()?);
        }
        if !self.eat("v") {
            while !self.ends() {
                signature.takes.push(self.kind()?);
            }
        }
        Some(self.add(Node::Encoding(name, Box::new(signature))))
    }

    fn special(&mut self) -> Option<Id> {
        let code = self.two();
        self.at += 2;
        let (prefix, of) = match code {
            "TV" => ("vtable for ", self.kind()?),
            "TT" => ("VTT for ", self.kind()?),
            "TI" => ("typeinfo for ", self.kind()?),
            "TS" => ("typeinfo name for ", self.kind()?),
            "TA" => ("template parameter object for ", self.argument()?),
            "TC" => {
                let derived = self.kind()?;
                self.digits();
                self.eat("_").then_some(())?;
                let base = self.kind()?;
                let parts = parts!["construction vtable for ", base, "-in-", derived];
                return Some(self.parts(parts));
            }
            "TW" | "TH" => {
                let prefix = match code {
                    "TW" => self.either(
                        "TLS wrapper function for ",
                        "thread-local wrapper routine for ",
                    ),
                    _ => self.either(
                        "TLS init function for ",
                        "thread-local initialization routine for ",
                    ),
                };
                (prefix, self.name()?)
            }
            "GV" => ("guard variable for ", self.name()?),
            "GR" => {
                let name = self.name()?;
                let number = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
                let numbered = !self.take_while(number).is_empty() || self.peek() != b'_';
                (self.eat("_") || !numbered).then_some(())?;
                ("reference temporary for ", name)
            }
            "Th" | "Tv" | "Tc" => {
                let prefix = match code {
                    "Th" => "non-virtual thunk to ",
                    "Tv" => "virtual thunk to ",
                    _ => "covariant return thunk to ",
                };
                if code == "Tc" {
                    self.offset()?;
                } else {
                    self.at -= 1;
                }
                self.offset()?;
                (prefix, self.encoding()?)
            }
            "GT" => {
                let prefix = match self.peek() {
                    b'n' => "non-transaction clone for ",
                    _ => "transaction clone for ",
                };
                self.at += 1;
                (prefix, self.encoding()?)
            }
            _ => return None,
        };
        Some(self.parts(parts![prefix, of]))
    }

    fn offset(&mut self) -> Option<()> {
        let parts = match self.peek() {
            b'h' => 1,
            b'v' => 2,
            _ => return None,
        };
        self.at += 1;
        for _ in 0..parts {
            self.eat("n");
            self.digits();
            self.eat("_").then_some(())?;
        }
        Some(())
    }

    pub(super) fn name(&mut self) -> Option<Id> {
        self.name_as(&mut Naming::default())
    }

    fn name_as(&mut self, naming: &mut Naming) -> Option<Id> {
        self.deeper(|p| match p.peek() {
            b'N' => p.nested(naming),
            b'Z' => p.local(naming),
            b'S' if p.peek_at(1) != b't' => {
                let name = p.substitution()?;
                (p.peek() == b'I').then_some(())?;
                p.with_own_arguments(name, naming)
            }
            _ => {
                let scope = p.eat("St").then(|| p.text("std"));
                let mut name = p.unqualified(naming)?;
                if let Some(scope) = scope {
                    name = p.add(Node::Scoped(scope, name));
                }
                if p.peek() != b'I' {
                    return Some(name);
                }
                p.substitutions.push(name);
                p.with_own_arguments(name, naming)
            }
        })
    }

    pub(super) fn with_arguments(&mut self, name: Id) -> Option<Id> {
        self.eat("I").then_some(())?;
        let all = self.until_e(Self::argument)?;
        Some(self.add(Node::WithArguments(name, all)))
    }

    /// Template arguments; those of the function's own name are what its parameters stand for.
    fn with_own_arguments(&mut self, name: Id, naming: &mut Naming) -> Option<Id> {
        naming.ends_in_arguments = true;
        if !naming.own {
            return self.with_arguments(name);
        }
        self.eat("I").then_some(())?;
        let mut all = Vec::new();
        self.parameters.clear();
        while !self.eat("E") {
            let saved = self.parameters.clone();
            let argument = self.argument()?;
            self.parameters = saved;
            all.push(argument);
            let stands_for = match self.nodes[argument].clone() {
                Node::ArgumentPack(pack) => self.add(Node::Pack(pack)),
                _ => argument,
            };
            self.parameters.push(stands_for);
        }
        Some(self.add(Node::WithArguments(name, all)))
    }

    fn argument(&mut self) -> Option<Id> {
        self.deeper(|p| match p.peek() {
            b'X' => {
                p.at += 1;
                let value = p.expression()?;
                p.eat("E").then_some(value)
            }
            // The second is how old compilers wrote packs.
            b'J' | b'I' => {
                p.at += 1;
                let pack = p.until_e(Self::argument)?;
                Some(p.add(Node::ArgumentPack(pack)))
            }
            b'L' => p.literal(),
            _ => p.kind(),
        })
    }

    fn nested(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("N").then_some(())?;
        let mut qualifiers = self.qualifiers().to_owned();
        if self.eat("O") {
            qualifiers.push_str(" &&");
        } else if self.eat("R") {
            qualifiers.push_str(" &");
        }
        let mut so_far: Option<Id> = None;
        while !self.eat("E") {
            naming.ends_in_arguments = false;
            let part = match self.peek() {
                b'T' => self.parameter()?,
                b'I' => {
                    let name = so_far.take()?;
                    self.with_own_arguments(name, naming)?
                }
                b'D' if matches!(self.peek_at(1), b't' | b'T') => self.decltype()?,
                b'S' if self.peek_at(1) == b't' => {
                    self.at += 2;
                    so_far = Some(self.text("std"));
                    continue;
                }
                b'S' => {
                    so_far = Some(self.substitution()?);
                    continue;
                }
                b'C' | b'D' if self.peek_at(1) != b'C' => {
                    let of = so_far?;
                    naming.bare = true;
                    let dtor = self.peek() == b'D';
                    self.at += 1;
                    let inherited = !dtor && self.eat("I");
                    self.at += 1;
                    if inherited {
                        self.name()?;
                    }
                    if let Node::Standard(_, full) = self.nodes[of] {
                        so_far = Some(self.text(full));
                    }
                    let name = self.add(Node::Structor(of, dtor));
                    self.tags(name)?
                }
                b'M' => {
                    self.at += 1;
                    continue;
                }
                _ => self.unqualified(naming)?,
            };
            let whole = match so_far {
                Some(scope) => self.add(Node::Scoped(scope, part)),
                None => part,
            };
            so_far = Some(whole);
            self.substitutions.push(whole);
        }
        self.substitutions.pop();
        naming.qualifiers = qualifiers;
        so_far
    }

    fn local(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("Z").then_some(())?;
        let within = self.encoding()?;
        self.eat("E").then_some(())?;
        let entity = if self.eat("s") {
            self.text("string literal")
        } else {
            if self.eat("d") {
                self.index()?;
            }
            self.name_as(naming)?
        };
        self.discriminator();
        Some(self.add(Node::Local(within, entity)))
    }

    fn discriminator(&mut self) {
        let from = self.at;
        if self.eat("__") {
            let some = !self.digits().is_empty();
            if some && self.eat("_") {
                return;
            }
        } else if self.eat("_") && self.peek().is_ascii_digit() {
            self.at += 1;
            return;
        }
        self.at = from;
    }

    fn unqualified(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("L");
        let name = match self.peek() {
            b'U' => self.unnamed()?,
            b'1'..=b'9' => match self.source_name()? {
                name if name.starts_with("_GLOBAL__N") => self.text("(anonymous namespace)"),
                name => self.text(name),
            },
            b'D' if self.eat("DC") => {
                let bindings = self.until_e(|p| {
                    let name = p.source_name()?;
                    Some(p.text(name))
                })?;
                self.parts(parts!["[", bindings, "]"])
            }
            _ => self.operator(naming)?,
        };
        self.tags(name)
    }

    pub(super) fn tags(&mut self, mut name: Id) -> Option<Id> {
        while self.eat("B") {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    fn unnamed(&mut self) -> Option<Id> {
        let mut parts = Vec::new();
        if self.eat("Ut") {
            let number = self.index()?;
            parts.push(self.either("{unnamed type#", "'unnamed").into());
            self.push_number(number, &mut parts)?;
        } else {
            self.eat("Ul").then_some(())?;
            let saved = std::mem::replace(&mut self.in_lambda, true);
            let takes = match self.eat("vE") {
                true => Some(Vec::new()),
                false => self.until_e(Self::kind),
            };
            self.in_lambda = saved;
            let (takes, number) = (takes?, self.index()?);
            if self.either(true, false) {
                parts = parts!["{lambda(", takes, ")#"];
                self.push_number(number, &mut parts)?;
            } else {
                parts.push("'lambda".into());
                self.push_number(number, &mut parts)?;
                parts.extend(parts!["(", takes, ")"]);
            }
        }
        Some(self.parts(parts))
    }

    /// GNU's numbers begin with 1; LLVM's with none, then 0.
    fn push_number(&self, number: usize, parts: &mut Vec<Part<'a>>) -> Option<()> {
        let number = u32::try_from(number).ok()?;
        let shown = self.either(number.checked_add(1), number.checked_sub(1));
        parts.extend(shown.map(Part::Number));
        parts.push(self.either("}", "'").into());
        Some(())
    }

    pub(super) fn operator_name(&mut self) -> Option<Id> {
        self.operator(&mut Naming::default())
    }

    fn operator(&mut self, naming: &mut Naming) -> Option<Id> {
        let code = self.two();
        if let Some(symbol) = operator_symbol(code) {
            self.at += 2;
            return Some(self.parts(parts!["operator", symbol]));
        }
        if self.eat("cv") {
            let saved = std::mem::replace(&mut self.may_forward, true);
            let to = self.kind();
            self.may_forward = saved;
            naming.bare = true;
            return Some(self.parts(parts!["operator ", to?]));
        }
        self.eat("li").then_some(())?;
        let name = self.source_name()?;
        Some(self.parts(parts!["operator\"\" ", name]))
    }
}
