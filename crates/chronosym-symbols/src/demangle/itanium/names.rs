//! Names of functions and of all else that has a symbol (sections 5.1.2 to 5.1.4).

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "offsets in a name of at most 16 KiB, and indexes of its nodes"
)]

use super::node::{Id, Node, Part, Signature, parts};
use super::operators::{Kind, operator};
use super::parser::Parser;

/// Properties of a name that decide how its function is parsed.
#[derive(Default)]
struct Naming {
    /// The name is that of the function whose parameters refer to its template arguments.
    own: bool,
    /// A constructor, destructor or conversion, which has no return type.
    bare: bool,
    ends_in_arguments: bool,
    qualifiers: &'static str,
    reference: &'static str,
    /// The first parameter is an explicit object parameter.
    explicit_object: bool,
}

impl<'a> Parser<'a> {
    /// A whole name, with the suffixes that compilers give to copies.
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

    /// The function of a block of Objective-C.
    pub(super) fn block(&mut self) -> Option<Id> {
        let around = self.encoding()?;
        self.eat("_block_invoke").then_some(())?;
        self.eat("_");
        self.digits();
        self.take_while(|byte| byte != 0);
        Some(self.parts(parts!["invocation function for block in ", around]))
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
            let lambda_level = p.lambda_level.take();
            let whole = p.in_own_scope(|p| match p.peek() {
                b'G' | b'T' => p.special(),
                _ => p.function(),
            });
            p.lambda_level = lambda_level;
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
            let argument = self.parameters.get(0, index)?;
            self.nodes[forward] = Node::Forward(Some(argument));
        }
        if self.ends() {
            return Some(name);
        }
        let mut signature = Signature {
            qualifiers: naming.qualifiers,
            reference: naming.reference,
            ..Signature::default()
        };
        if self.eat("Ua9enable_ifI") {
            let conditions = self.until("E", Self::argument)?;
            signature.tail = parts![" [enable_if:", conditions, "]"];
        }
        // gcj's functions state what they return.
        if self.eat("J") || !naming.bare && naming.ends_in_arguments {
            signature.returns = Some(self.kind()?);
        }
        if !self.eat("v") {
            while !self.ends() && self.peek() != b'Q' {
                let mut parameter = self.kind()?;
                if naming.explicit_object && signature.takes.is_empty() {
                    parameter = self.parts(parts!["this ", parameter]);
                }
                signature.takes.push(parameter);
            }
        }
        let requires = self.requires_clause()?;
        signature.tail.extend(requires);
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
            "TW" => {
                let (gnu, llvm) = ("TLS wrapper function", "thread-local wrapper routine");
                let parts = parts![self.either(gnu, llvm), " for ", self.name()?];
                return Some(self.parts(parts));
            }
            "TH" => {
                let (gnu, llvm) = ("TLS init function", "thread-local initialization routine");
                let parts = parts![self.either(gnu, llvm), " for ", self.name()?];
                return Some(self.parts(parts));
            }
            "GV" => ("guard variable for ", self.name()?),
            "GR" => {
                let name = self.name()?;
                let digits = self.sequence_number();
                (self.eat("_") || digits.is_empty()).then_some(())?;
                let number = u32::from_str_radix(digits, 36).map_or(0, |n| n.saturating_add(1));
                let gnu = parts!["reference temporary #", Part::Number(number), " for ", name];
                let llvm = parts!["reference temporary for ", name];
                let parts = self.either(gnu, llvm);
                return Some(self.parts(parts));
            }
            "Gr" => return self.java_resource(),
            "GI" => ("initializer for module ", self.module(None)??),
            "Th" | "Tv" | "Tc" => {
                let prefix = match code {
                    "Th" => "non-virtual thunk to ",
                    "Tv" => "virtual thunk to ",
                    _ => "covariant return thunk to ",
                };
                if code == "Tc" {
                    self.call_offset()?;
                } else {
                    self.at -= 1;
                }
                self.call_offset()?;
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

    /// A file in gcj's programs: `$S` stands for a slash and `$_` for a dot.
    fn java_resource(&mut self) -> Option<Id> {
        let len = self.digits().parse().ok()?;
        let end = self.at.checked_add(len)?;
        let path = self.text.get(self.at..end)?.strip_prefix('_')?;
        self.at = end;
        let mut parts = parts!["java resource "];
        let mut pieces = path.split('$');
        parts.extend(pieces.next().map(Part::Text));
        let mut is_dollar = false;
        for piece in pieces {
            // Two dollars stand for one.
            let (escape, text) = match (std::mem::take(&mut is_dollar), piece.chars().next()) {
                (true, _) => ("", piece),
                (_, Some('S')) => ("/", piece.get(1..)?),
                (_, Some('_')) => (".", piece.get(1..)?),
                (_, None) => {
                    is_dollar = true;
                    ("$", "")
                }
                _ => return None,
            };
            parts.extend([Part::Text(escape), Part::Text(text)]);
        }
        Some(self.parts(parts))
    }

    fn call_offset(&mut self) -> Option<()> {
        let numbers = match self.peek() {
            b'h' => 1,
            b'v' => 2,
            _ => return None,
        };
        self.at += 1;
        for _ in 0..numbers {
            self.signed();
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
            _ => {
                let (name, is_substitution) = p.unscoped(naming)?;
                match (p.peek(), is_substitution) {
                    (b'I', _) => {
                        if !is_substitution {
                            p.substitutions.push(name);
                        }
                        p.with_own_arguments(name, naming)
                    }
                    (_, true) => None,
                    (_, false) => Some(name),
                }
            }
        })
    }

    /// A name outside classes and namespaces other than `std`, and whether it is a substitution.
    fn unscoped(&mut self, naming: &mut Naming) -> Option<(Id, bool)> {
        let scope = self.eat("St").then(|| self.text("std"));
        let mut module = None;
        if self.peek() == b'S' {
            let substitution = self.substitution()?;
            if let Node::Module(..) = self.nodes[substitution] {
                module = Some(substitution);
            } else {
                return scope.is_none().then_some((substitution, true));
            }
        }
        Some((self.unqualified(naming, scope, module)?, false))
    }

    /// A substitution as a type, with template arguments or a name that may follow it.
    pub(super) fn substituted_kind(&mut self) -> Option<Id> {
        let (name, is_substitution) = self.unscoped(&mut Naming::default())?;
        if self.peek() == b'I' && (!is_substitution || self.takes_arguments) {
            if !is_substitution {
                self.substitutions.push(name);
            }
            let whole = self.with_arguments(name)?;
            self.substitutions.push(whole);
            return Some(whole);
        }
        if !is_substitution {
            self.substitutions.push(name);
        }
        Some(name)
    }

    pub(super) fn with_arguments(&mut self, name: Id) -> Option<Id> {
        self.with_own_arguments(name, &mut Naming::default())
    }

    /// Template arguments; parameters refer to those of the function's own name.
    fn with_own_arguments(&mut self, name: Id, naming: &mut Naming) -> Option<Id> {
        self.eat("I").then_some(())?;
        naming.ends_in_arguments = true;
        if naming.own {
            self.parameters.clear();
            self.parameters.open_level();
        }
        let outer = std::mem::replace(&mut self.takes_arguments, true);
        let mut all = Vec::new();
        while !self.eat("E") {
            if self.peek() == b'Q' {
                // The requires clause is not shown.
                self.requires_clause()?;
                self.eat("E").then_some(())?;
                break;
            }
            let is_declared = self.is_declaration();
            let argument = self.argument()?;
            all.push(argument);
            if naming.own {
                let parameter = match &self.nodes[argument] {
                    Node::ArgumentPack(pack) if !is_declared => {
                        let pack = Node::Pack(pack.clone());
                        self.add(pack)
                    }
                    _ => argument,
                };
                self.parameters.push(parameter);
            }
        }
        self.takes_arguments = outer;
        Some(self.add(Node::WithArguments(name, all)))
    }

    /// A template argument.
    pub(super) fn argument(&mut self) -> Option<Id> {
        self.deeper(|p| match p.peek() {
            b'X' => {
                p.at += 1;
                let value = p.expression()?;
                p.eat("E").then_some(value)
            }
            // `I` is how old compilers encoded packs.
            b'J' | b'I' => {
                p.at += 1;
                let pack = p.until("E", Self::argument)?;
                Some(p.add(Node::ArgumentPack(pack)))
            }
            b'L' => p.literal(),
            b'T' if p.is_declaration() => {
                // The declaration is not shown.
                p.declaration(false)?;
                p.argument()
            }
            _ => p.kind(),
        })
    }

    fn nested(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("N").then_some(())?;
        if self.eat("H") {
            naming.explicit_object = true;
        }
        let qualifiers = self.qualifiers();
        let reference = match self.peek() {
            b'O' => " &&",
            b'R' => " &",
            _ => "",
        };
        self.at += usize::from(!reference.is_empty());
        let mut so_far: Option<Id> = None;
        while !self.eat("E") {
            naming.ends_in_arguments = false;
            let whole = match self.peek() {
                b'T' => self.parameter().filter(|_| so_far.is_none())?,
                b'I' => self.with_own_arguments(so_far?, naming)?,
                b'D' if matches!(self.peek_at(1), b't' | b'T') => {
                    self.decltype().filter(|_| so_far.is_none())?
                }
                b'S' if self.peek_at(1) == b't' => {
                    self.at += 2;
                    so_far = Some(self.text("std"));
                    continue;
                }
                b'S' => {
                    let substitution = self.substitution()?;
                    match self.nodes[substitution] {
                        Node::Module(..) => self.unqualified(naming, so_far, Some(substitution))?,
                        _ => {
                            so_far = Some(substitution);
                            continue;
                        }
                    }
                }
                _ => self.unqualified(naming, so_far, None)?,
            };
            so_far = Some(whole);
            self.substitutions.push(whole);
            // A data member whose initializer has a lambda; old encodings mark it.
            self.eat("M");
        }
        self.substitutions.pop();
        (naming.qualifiers, naming.reference) = (qualifiers, reference);
        so_far
    }

    fn local(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("Z").then_some(())?;
        let within = self.encoding()?;
        self.eat("E").then_some(())?;
        let entity = if self.eat("s") {
            self.text("string literal")
        } else {
            let argument = match self.eat("d") {
                true => Some(u32::try_from(self.index()?).ok()?.checked_add(1)?),
                false => None,
            };
            let name = match naming.own {
                true => self.name_as(naming)?,
                false => self.in_own_scope(|p| p.name_as(naming))?,
            };
            match argument.filter(|_| self.either(true, false)) {
                Some(number) => {
                    let scope = self.parts(parts!["{default arg#", Part::Number(number), "}"]);
                    self.add(Node::Scoped(scope, name))
                }
                None => name,
            }
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
        } else if self.eat("_") {
            let start = self.at;
            // Old compilers write a number of several digits at the end of a name.
            if self.digits().len() > 1 && self.peek() != 0 {
                self.at = start + 1;
            }
            if self.at > start {
                return;
            }
        } else if !self.digits().is_empty() && self.peek() == 0 {
            // Old compilers end a name with a plain number.
            return;
        }
        self.at = from;
    }

    /// A module and its submodules and partitions; the inner `None` if there is none.
    fn module(&mut self, mut module: Option<Id>) -> Option<Option<Id>> {
        while self.eat("W") {
            let is_partition = self.eat("P");
            let name = self.source_name()?;
            let name = self.text(name);
            let whole = self.add(Node::Module(module, name, is_partition));
            self.substitutions.push(whole);
            module = Some(whole);
        }
        Some(module)
    }

    fn unqualified(
        &mut self,
        naming: &mut Naming,
        scope: Option<Id>,
        module: Option<Id>,
    ) -> Option<Id> {
        let module = self.module(module)?;
        let is_friend = scope.is_some() && self.eat("F");
        let is_internal = self.eat("L");
        let mut name = match self.peek() {
            b'U' => self.unnamed(naming)?,
            b'1'..=b'9' => match self.source_name()? {
                name if name.starts_with("_GLOBAL__N") => self.text("(anonymous namespace)"),
                name => self.text(name),
            },
            b'D' if self.eat("DC") => {
                let bindings = self.until("E", |p| {
                    let name = p.source_name()?;
                    Some(p.text(name))
                })?;
                self.parts(parts!["[", bindings, "]"])
            }
            b'C' | b'D' => self.structor(scope.filter(|_| module.is_none())?, naming)?,
            _ => self.operator_name(naming)?,
        };
        // GCC numbers functions of one name that are local to a file.
        if is_internal && self.peek() == b'_' && self.peek_at(1).is_ascii_digit() {
            self.discriminator();
        }
        if let Some(module) = module {
            name = self.add(Node::InModule(name, module));
        }
        name = self.tags(name)?;
        if is_friend {
            name = self.parts(parts!["friend ", name]);
        }
        let Some(mut scope) = scope else {
            return Some(name);
        };
        if let (Node::Structor(..), Node::Standard(_, full)) =
            (&self.nodes[name], &self.nodes[scope])
        {
            let close = match full.contains('<') {
                true => self.either(" >", ">"),
                false => "",
            };
            scope = self.parts(parts![*full, close]);
        }
        Some(self.add(Node::Scoped(scope, name)))
    }

    /// A constructor or destructor of `class`.
    fn structor(&mut self, class: Id, naming: &mut Naming) -> Option<Id> {
        naming.bare = true;
        let dtor = self.peek() == b'D';
        self.at += 1;
        let inherited = !dtor && self.eat("I");
        matches!(self.peek(), b'0'..=b'5').then_some(())?;
        self.at += 1;
        if inherited {
            self.name_as(naming)?;
        }
        Some(self.add(Node::Structor(class, dtor)))
    }

    pub(super) fn tags(&mut self, mut name: Id) -> Option<Id> {
        while self.eat("B") {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    /// The type of a lambda or of another type without a name.
    fn unnamed(&mut self, naming: &Naming) -> Option<Id> {
        if naming.own {
            self.parameters.clear();
        }
        let mut parts = Vec::new();
        if self.eat("Ut") {
            let number = self.index()?;
            parts.push(self.either("{unnamed type#", "'unnamed").into());
            self.push_number(number, &mut parts)?;
        } else if self.eat("Ub") {
            self.index()?;
            parts.push("'block-literal'".into());
        } else {
            self.eat("Ul").then_some(())?;
            let signature = self.lambda()?;
            let number = self.index()?;
            if self.either(true, false) {
                parts.push("{lambda".into());
                parts.extend(signature);
                parts.push("#".into());
                self.push_number(number, &mut parts)?;
            } else {
                parts.push("'lambda".into());
                self.push_number(number, &mut parts)?;
                parts.extend(signature);
            }
        }
        Some(self.parts(parts))
    }

    /// The signature of a lambda, up to its `E`.
    pub(super) fn lambda(&mut self) -> Option<Vec<Part<'a>>> {
        let levels = self.parameters.levels();
        let outer = self.lambda_level.replace(levels);
        let signature = self.lambda_signature(levels);
        self.lambda_level = outer;
        self.parameters.truncate(levels);
        signature
    }

    fn lambda_signature(&mut self, levels: usize) -> Option<Vec<Part<'a>>> {
        self.parameters.open_level();
        let mut parts = match self.declarations()? {
            none if none.is_empty() => {
                self.parameters.truncate(levels);
                Vec::new()
            }
            declarations => parts!["<", declarations, ">"],
        };
        let requires = self.requires_clause()?;
        if !requires.is_empty() {
            parts.extend(requires);
            parts.push(" ".into());
        }
        let mut takes = Vec::new();
        if !self.eat("v") {
            while !matches!(self.peek(), b'E' | b'Q') {
                takes.push(self.kind()?);
            }
        }
        parts.extend(parts!["(", takes, ")"]);
        parts.extend(self.requires_clause()?);
        self.eat("E").then_some(parts)
    }

    /// GNU counts from 1; LLVM shows no number for the first, then counts from 0.
    fn push_number(&self, number: usize, parts: &mut Vec<Part<'a>>) -> Option<()> {
        let number = u32::try_from(number).ok()?;
        let shown = self.either(number.checked_add(1), number.checked_sub(1));
        parts.extend(shown.map(Part::Number));
        parts.push(self.either("}", "'").into());
        Some(())
    }

    /// The name of an operator outside a function's own name.
    pub(super) fn plain_operator_name(&mut self) -> Option<Id> {
        self.operator_name(&mut Naming::default())
    }

    fn operator_name(&mut self, naming: &mut Naming) -> Option<Id> {
        if let Some(operator) = operator(self.two()) {
            self.at += 2;
            if operator.kind == Kind::Cast {
                let may_forward = self.may_forward || naming.own;
                let outer = std::mem::replace(&mut self.may_forward, may_forward);
                let to = self.without_arguments();
                self.may_forward = outer;
                naming.bare = true;
                return Some(self.parts(parts!["operator ", to?]));
            }
            return Some(self.parts(parts!["operator", operator.function_name()?]));
        }
        if self.eat("li") {
            let name = self.source_name()?;
            return Some(self.parts(parts!["operator\"\" ", name]));
        }
        self.eat("v").then_some(())?;
        self.peek().is_ascii_digit().then_some(())?;
        self.at += 1;
        let name = self.source_name()?;
        Some(self.parts(parts!["operator ", name]))
    }
}
