//! C++ names as GCC and Clang mangle them (the Itanium C++ ABI, section 5.1): read into nodes, written in a tool's dialect.

use super::{Dialect, Limited, Unreadable};
use std::fmt::Write as _;

/// What stands for something else leads to it in no more steps.
const MAX_STEPS: usize = 4096;

type Id = usize;

#[derive(Clone, Debug)]
enum Node<'a> {
    Text(&'a str),
    /// `std::string` and the like: as written, and in full where a constructor follows.
    Standard(&'static str, &'static str),
    Scoped(Id, Id),
    Local(Id, Id),
    WithArguments(Id, Vec<Id>),
    /// Template arguments in one place.
    ArgumentPack(Vec<Id>),
    /// What a parameter stands for that is a pack.
    Pack(Vec<Id>),
    Expansion(Id),
    /// A parameter of a conversion's type, known only later.
    Forward(Option<Id>),
    Qualified(Id, &'static str),
    Vendor(Id, Id),
    Pointer(Id),
    Reference(Id, bool),
    MemberPointer(Id, Id),
    Array(Id, Option<Id>),
    Function(Box<Signature>),
    /// A function's name and its signature; nothing of it where only a name is wanted.
    Encoding(Id, Box<Signature>),
    Prefixed(&'static str, Id),
    Between(&'static str, Id, &'static str, Id),
    Structor(Id, bool),
    Conversion(Id),
    Tagged(Id, &'a str),
    Lambda(Vec<Id>, u32),
    Unnamed(u32),
    Auto(u32),
    Binding(Vec<Id>),
    Clone(Id, &'a str),
    // Expressions.
    Binary(Id, &'static str, Id),
    Unary(&'static str, Id),
    Postfix(Id, &'static str),
    Choice(Id, Id, Id),
    Member(Id, &'static str, Id),
    Call(Id, Vec<Id>),
    Cast(&'static str, Id, Id),
    Converted(Id, Vec<Id>),
    List(Option<Id>, Vec<Id>),
    Wrapped(&'static str, Id),
    Decltype(Id),
    Parameter(&'a str),
    Literal(Id, &'a str, bool),
    Short(&'a str, bool, &'static str),
    Index(Id, Id),
}

#[derive(Clone, Debug, Default)]
struct Signature {
    returns: Option<Id>,
    takes: Vec<Id>,
    qualifiers: String,
}

/// What a name says of how its function is to be read.
#[derive(Default)]
struct Naming {
    /// A constructor, destructor or conversion: these state no return type.
    bare: bool,
    ends_in_arguments: bool,
    qualifiers: String,
    first_forward: usize,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
    nodes: Vec<Node<'a>>,
    substitutions: Vec<Id>,
    parameters: Vec<Id>,
    forwards: Vec<(Id, usize)>,
    /// Parameters may stand before the arguments that they stand for.
    may_forward: bool,
    /// Inside a lambda's parameter list.
    in_lambda: bool,
    depth: usize,
    max_depth: usize,
}

/// The readable form of a name that nests no deeper than that.
pub(super) fn demangle(
    name: &str,
    dialect: Dialect,
    max_depth: usize,
) -> Result<String, Unreadable> {
    let own = name.trim_start_matches('_').strip_prefix('Z');
    let own = own.ok_or(Unreadable::Unknown)?;
    let mut parser = Parser {
        text: own,
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
    };
    let mut whole = parser.encoding().ok_or(Unreadable::Unknown)?;
    while parser.peek() == b'.' {
        let from = parser.at;
        let suffix = parser.suffix().ok_or(Unreadable::Unknown)?;
        let suffix = if dialect == Dialect::Llvm {
            parser.at = own[from..].find('@').map_or(own.len(), |at| from + at);
            &own[from..parser.at]
        } else {
            suffix
        };
        whole = parser.add(Node::Clone(whole, suffix));
    }
    // `@GLIBC_2.2` and the like: a version is no part of the name, but not part of the mangling either.
    let tail = own.get(parser.at..).ok_or(Unreadable::Unknown)?;
    if !(tail.is_empty() || tail.starts_with('@')) {
        return Err(Unreadable::Unknown);
    }
    let mut writer = Writer {
        nodes: &parser.nodes,
        dialect,
        out: Limited::default(),
        pack: None,
        depth: 0,
        max_depth,
    };
    let written = writer.whole(whole).and_then(|()| writer.put(tail));
    writer.out.text(written.ok_or(std::fmt::Error))
}

#[rustfmt::skip]
const BINARY: [(&str, &str); 36] = [
    ("aN", "&="), ("aS", "="), ("aa", "&&"), ("an", "&"), ("cm", ","), ("ds", ".*"), ("dV", "/="),
    ("dv", "/"), ("eO", "^="), ("eo", "^"), ("eq", "=="), ("ge", ">="), ("gt", ">"), ("lS", "<<="),
    ("le", "<="), ("ls", "<<"), ("lt", "<"), ("mI", "-="), ("mL", "*="), ("mi", "-"), ("ml", "*"),
    ("ne", "!="), ("oR", "|="), ("oo", "||"), ("or", "|"), ("pL", "+="), ("pl", "+"), ("pm", "->*"),
    ("rM", "%="), ("rS", ">>="), ("rm", "%"), ("rs", ">>"), ("ss", "<=>"), ("aO", "&="),
    ("ix", "[]"), ("dt", "."),
];

#[rustfmt::skip]
const UNARY: [(&str, &str); 8] = [
    ("ad", "&"), ("co", "~"), ("de", "*"), ("ng", "-"), ("nt", "!"), ("ps", "+"), ("pp", "++"),
    ("mm", "--"),
];

#[rustfmt::skip]
const NAMED: [(&str, &str); 9] = [
    ("aw", " co_await"), ("cl", "()"), ("da", " delete[]"), ("dl", " delete"), ("na", " new[]"),
    ("nw", " new"), ("pt", "->"), ("qu", "?"), ("ix", "[]"),
];

fn look_up(table: &[(&str, &'static str)], code: &str) -> Option<&'static str> {
    table
        .iter()
        .find(|(c, _)| *c == code)
        .map(|(_, text)| *text)
}

impl<'a> Parser<'a> {
    fn add(&mut self, node: Node<'a>) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn text(&mut self, text: &'a str) -> Id {
        self.add(Node::Text(text))
    }

    fn peek_at(&self, ahead: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn peek(&self) -> u8 {
        self.peek_at(0)
    }

    fn eat(&mut self, text: &str) -> bool {
        let rest = self.text.get(self.at..);
        let found = rest.is_some_and(|rest| rest.starts_with(text));
        if found {
            self.at += text.len();
        }
        found
    }

    fn two(&self) -> &'a str {
        self.text.get(self.at..self.at + 2).unwrap_or("")
    }

    fn digits(&mut self) -> &'a str {
        let from = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        &self.text[from..self.at]
    }

    /// A number and `_`; one more than the number, 0 without one.
    fn index(&mut self) -> Option<usize> {
        let digits = self.digits();
        let index = if digits.is_empty() {
            0
        } else {
            digits.parse::<usize>().ok()?.checked_add(1)?
        };
        self.eat("_").then_some(index)
    }

    fn until_e(&mut self, each: fn(&mut Self) -> Option<Id>) -> Option<Vec<Id>> {
        let mut all = Vec::new();
        while !self.eat("E") {
            all.push(each(self)?);
        }
        Some(all)
    }

    fn deeper(&mut self, work: impl FnOnce(&mut Self) -> Option<Id>) -> Option<Id> {
        self.depth += 1;
        let found = (self.depth < self.max_depth).then(|| work(self)).flatten();
        self.depth -= 1;
        found
    }

    /// What compilers add to the names of copies: `.part.0`.
    fn suffix(&mut self) -> Option<&'a str> {
        let from = self.at;
        self.eat(".").then_some(())?;
        if self.peek().is_ascii_digit() {
            self.digits();
            return Some(&self.text[from..self.at]);
        }
        while self.peek().is_ascii_alphanumeric() || self.peek() == b'_' {
            self.at += 1;
        }
        while self.peek() == b'.' && self.peek_at(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
        }
        Some(&self.text[from..self.at])
    }

    fn ends(&self) -> bool {
        matches!(self.peek(), 0 | b'E' | b'.' | b'_' | b'@')
    }

    fn encoding(&mut self) -> Option<Id> {
        self.deeper(|p| {
            if matches!(p.peek(), b'G' | b'T') {
                return p.special();
            }
            let mut naming = Naming {
                first_forward: p.forwards.len(),
                ..Naming::default()
            };
            let saved = std::mem::take(&mut p.parameters);
            let whole = p.function(&mut naming);
            if p.depth > 1 {
                p.parameters = saved;
            }
            whole
        })
    }

    fn function(&mut self, naming: &mut Naming) -> Option<Id> {
        let name = self.name(Some(naming))?;
        for (forward, index) in self.forwards.split_off(naming.first_forward) {
            let found = *self.parameters.get(index)?;
            self.nodes[forward] = Node::Forward(Some(found));
        }
        if self.ends() {
            return Some(name);
        }
        let mut signature = Signature {
            qualifiers: std::mem::take(&mut naming.qualifiers),
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
        let gnu = self.dialect != Dialect::Llvm;
        let code = self.two();
        self.at += 2;
        let (prefix, kind) = match code {
            "TV" => ("vtable for ", true),
            "TT" => ("VTT for ", true),
            "TI" => ("typeinfo for ", true),
            "TS" => ("typeinfo name for ", true),
            "TA" => {
                let argument = self.argument()?;
                return Some(self.add(Node::Prefixed("template parameter object for ", argument)));
            }
            "TC" => {
                let derived = self.kind()?;
                self.digits();
                self.eat("_").then_some(())?;
                let base = self.kind()?;
                return Some(self.add(Node::Between(
                    "construction vtable for ",
                    base,
                    "-in-",
                    derived,
                )));
            }
            "TW" if gnu => ("TLS wrapper function for ", false),
            "TW" => ("thread-local wrapper routine for ", false),
            "TH" if gnu => ("TLS init function for ", false),
            "TH" => ("thread-local initialization routine for ", false),
            "GV" => ("guard variable for ", false),
            "GR" => {
                let name = self.name(None)?;
                let numbered = self.peek() != b'_';
                while self.peek().is_ascii_digit() || self.peek().is_ascii_uppercase() {
                    self.at += 1;
                }
                self.eat("_").then_some(()).or((!numbered).then_some(()))?;
                return Some(self.add(Node::Prefixed("reference temporary for ", name)));
            }
            "Th" | "Tv" | "Tc" => {
                self.at -= 1;
                let prefix = match code {
                    "Th" => "non-virtual thunk to ",
                    "Tv" => "virtual thunk to ",
                    _ => "covariant return thunk to ",
                };
                if code == "Tc" {
                    self.at += 1;
                    self.offset()?;
                }
                self.offset()?;
                let target = self.encoding()?;
                return Some(self.add(Node::Prefixed(prefix, target)));
            }
            "GT" => {
                let prefix = match self.peek() {
                    b'n' => "non-transaction clone for ",
                    _ => "transaction clone for ",
                };
                self.at += 1;
                let target = self.encoding()?;
                return Some(self.add(Node::Prefixed(prefix, target)));
            }
            _ => return None,
        };
        let of = if kind { self.kind()? } else { self.name(None)? };
        Some(self.add(Node::Prefixed(prefix, of)))
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

    fn name(&mut self, naming: Option<&mut Naming>) -> Option<Id> {
        let mut unused = Naming::default();
        let tags = naming.is_some();
        let naming = naming.unwrap_or(&mut unused);
        self.deeper(|p| match p.peek() {
            b'N' => p.nested(naming, tags),
            b'Z' => p.local(naming, tags),
            b'S' if p.peek_at(1) != b't' => {
                let name = p.substitution()?;
                (p.peek() == b'I').then_some(())?;
                naming.ends_in_arguments = true;
                p.with_arguments(name, tags)
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
                naming.ends_in_arguments = true;
                p.with_arguments(name, tags)
            }
        })
    }

    fn with_arguments(&mut self, name: Id, tags: bool) -> Option<Id> {
        let arguments = self.arguments(tags)?;
        Some(self.add(Node::WithArguments(name, arguments)))
    }

    /// Template arguments; those of the function's own name are what its parameters stand for.
    fn arguments(&mut self, tags: bool) -> Option<Vec<Id>> {
        self.eat("I").then_some(())?;
        if !tags {
            return self.until_e(Self::argument);
        }
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
        Some(all)
    }

    fn argument(&mut self) -> Option<Id> {
        self.deeper(|p| match p.peek() {
            b'X' => {
                p.at += 1;
                let value = p.expression()?;
                p.eat("E").then_some(value)
            }
            b'J' => {
                p.at += 1;
                let pack = p.until_e(Self::argument)?;
                Some(p.add(Node::ArgumentPack(pack)))
            }
            b'L' => p.literal(),
            _ => p.kind(),
        })
    }

    fn qualifiers(&mut self) -> &'static str {
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

    fn nested(&mut self, naming: &mut Naming, tags: bool) -> Option<Id> {
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
                    naming.ends_in_arguments = true;
                    let name = so_far.take()?;
                    self.with_arguments(name, tags)?
                }
                b'D' if matches!(self.peek_at(1), b't' | b'T') => self.decltype()?,
                b'S' if self.peek_at(1) == b't' => {
                    self.at += 2;
                    let std = self.text("std");
                    so_far = Some(std);
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
                        self.name(None)?;
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

    fn local(&mut self, naming: &mut Naming, tags: bool) -> Option<Id> {
        self.eat("Z").then_some(())?;
        let within = self.encoding()?;
        self.eat("E").then_some(())?;
        if self.eat("s") {
            self.discriminator();
            let text = self.text("string literal");
            return Some(self.add(Node::Local(within, text)));
        }
        if self.eat("d") {
            self.index()?;
        }
        let entity = if tags {
            self.name(Some(naming))?
        } else {
            self.name(None)?
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

    fn source_name(&mut self) -> Option<&'a str> {
        let len: usize = self.digits().parse().ok()?;
        let name = self.text.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        (len > 0).then_some(name)
    }

    fn unqualified(&mut self, naming: &mut Naming) -> Option<Id> {
        self.eat("L");
        let name = match self.peek() {
            b'U' => self.unnamed()?,
            b'1'..=b'9' => {
                let name = self.source_name()?;
                let anonymous = name.starts_with("_GLOBAL__N");
                self.text(if anonymous {
                    "(anonymous namespace)"
                } else {
                    name
                })
            }
            b'D' if self.eat("DC") => {
                let bindings = self.until_e(|p| {
                    let name = p.source_name()?;
                    Some(p.text(name))
                })?;
                self.add(Node::Binding(bindings))
            }
            _ => self.operator(naming)?,
        };
        self.tags(name)
    }

    fn tags(&mut self, mut name: Id) -> Option<Id> {
        while self.eat("B") {
            let tag = self.source_name()?;
            name = self.add(Node::Tagged(name, tag));
        }
        Some(name)
    }

    fn unnamed(&mut self) -> Option<Id> {
        if self.eat("Ut") {
            let number = self.index()?;
            return Some(self.add(Node::Unnamed(u32::try_from(number).ok()?)));
        }
        self.eat("Ul").then_some(())?;
        let saved = std::mem::replace(&mut self.in_lambda, true);
        let takes = if self.eat("vE") {
            Some(Vec::new())
        } else {
            self.until_e(Self::kind)
        };
        self.in_lambda = saved;
        let number = self.index()?;
        Some(self.add(Node::Lambda(takes?, u32::try_from(number).ok()?)))
    }

    fn operator(&mut self, naming: &mut Naming) -> Option<Id> {
        let code = self.two();
        let symbol = look_up(&NAMED, code).or_else(|| look_up(&BINARY, code));
        if let Some(symbol) = symbol.or_else(|| look_up(&UNARY, code)) {
            self.at += 2;
            let symbol = self.text(symbol);
            return Some(self.add(Node::Prefixed("operator", symbol)));
        }
        match code {
            "cv" => {
                self.at += 2;
                let saved = std::mem::replace(&mut self.may_forward, true);
                let to = self.kind();
                self.may_forward = saved;
                naming.bare = true;
                Some(self.add(Node::Conversion(to?)))
            }
            "li" => {
                self.at += 2;
                let name = self.source_name()?;
                let name = self.text(name);
                Some(self.add(Node::Prefixed("operator\"\" ", name)))
            }
            _ => None,
        }
    }

    fn substitution(&mut self) -> Option<Id> {
        self.eat("S").then_some(())?;
        if self.peek().is_ascii_lowercase() {
            let code = self.peek();
            self.at += 1;
            let (short, full) = match code {
                b'a' => ("std::allocator", "std::allocator"),
                b'b' => ("std::basic_string", "std::basic_string"),
                b's' => (
                    "std::string",
                    "std::basic_string<char, std::char_traits<char>, std::allocator<char> >",
                ),
                b'i' => (
                    "std::istream",
                    "std::basic_istream<char, std::char_traits<char> >",
                ),
                b'o' => (
                    "std::ostream",
                    "std::basic_ostream<char, std::char_traits<char> >",
                ),
                b'd' => (
                    "std::iostream",
                    "std::basic_iostream<char, std::char_traits<char> >",
                ),
                _ => return None,
            };
            let name = self.add(Node::Standard(short, full));
            let tagged = self.tags(name)?;
            if tagged != name {
                self.substitutions.push(tagged);
            }
            return Some(tagged);
        }
        let from = self.at;
        while self.peek().is_ascii_digit() || self.peek().is_ascii_uppercase() {
            self.at += 1;
        }
        let index = match &self.text[from..self.at] {
            "" => 0,
            digits => usize::from_str_radix(digits, 36).ok()?.checked_add(1)?,
        };
        self.eat("_").then_some(())?;
        self.substitutions.get(index).copied()
    }

    fn parameter(&mut self) -> Option<Id> {
        self.eat("T").then_some(())?;
        if self.eat("L") {
            self.index()?;
            let index = u32::try_from(self.index()?).ok()?;
            return Some(self.add(Node::Auto(index)));
        }
        let index = self.index()?;
        if let Some(&found) = self.parameters.get(index).filter(|_| !self.may_forward) {
            return Some(found);
        }
        if self.in_lambda {
            return Some(self.add(Node::Auto(u32::try_from(index).ok()?)));
        }
        self.may_forward.then(|| {
            let forward = self.add(Node::Forward(None));
            self.forwards.push((forward, index));
            forward
        })
    }

    fn decltype(&mut self) -> Option<Id> {
        self.at += 2;
        let of = self.expression()?;
        self.eat("E").then_some(())?;
        Some(self.add(Node::Decltype(of)))
    }

    /// A type.
    fn kind(&mut self) -> Option<Id> {
        self.deeper(Self::kind_within)
    }

    fn builtin(&self) -> Option<(&'static str, usize)> {
        let gnu = self.dialect != Dialect::Llvm;
        let one = match self.peek() {
            b'v' => "void",
            b'w' => "wchar_t",
            b'b' => "bool",
            b'c' => "char",
            b'a' => "signed char",
            b'h' => "unsigned char",
            b's' => "short",
            b't' => "unsigned short",
            b'i' => "int",
            b'j' => "unsigned int",
            b'l' => "long",
            b'm' => "unsigned long",
            b'x' => "long long",
            b'y' => "unsigned long long",
            b'n' => "__int128",
            b'o' => "unsigned __int128",
            b'f' => "float",
            b'd' => "double",
            b'e' => "long double",
            b'g' => "__float128",
            b'z' => "...",
            b'D' => {
                let two = match self.peek_at(1) {
                    b'd' => "decimal64",
                    b'e' => "decimal128",
                    b'f' => "decimal32",
                    b'h' => "half",
                    b'i' => "char32_t",
                    b's' => "char16_t",
                    b'u' => "char8_t",
                    b'a' => "auto",
                    b'c' => "decltype(auto)",
                    b'n' if gnu => "decltype(nullptr)",
                    b'n' => "std::nullptr_t",
                    _ => return None,
                };
                return Some((two, 2));
            }
            _ => return None,
        };
        Some((one, 1))
    }

    fn kind_within(&mut self) -> Option<Id> {
        if let Some((name, len)) = self.builtin() {
            self.at += len;
            return Some(self.text(name));
        }
        let found = match self.peek() {
            b'r' | b'V' | b'K' => {
                let qualifiers = self.qualifiers();
                let function =
                    self.peek() == b'F' || matches!(self.two(), "Do" | "DO" | "Dw" | "Dx");
                if function {
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
                    qualifier = self.with_arguments(qualifier, false)?;
                }
                let of = self.kind()?;
                self.add(Node::Vendor(of, qualifier))
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
                b'o' | b'O' | b'w' | b'x' => self.function_type("")?,
                b'v' => {
                    self.at += 2;
                    let size = self.digits();
                    self.eat("_").then_some(())?;
                    let of = self.kind()?;
                    let size = self.text(size);
                    self.add(Node::Between("", of, " vector", size))
                }
                _ => return None,
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
                    self.with_arguments(parameter, false)?
                } else {
                    parameter
                }
            }
            b'T' => {
                self.at += 2;
                self.name(None)?
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
                let suffix = if self.peek() == b'C' {
                    " _Complex"
                } else {
                    " _Imaginary"
                };
                self.at += 1;
                let of = self.kind()?;
                self.add(Node::Qualified(of, suffix))
            }
            b'S' if self.peek_at(1) != b't' => {
                let name = self.substitution()?;
                if self.peek() != b'I' {
                    return Some(name);
                }
                self.with_arguments(name, false)?
            }
            _ => self.name(None)?,
        };
        self.substitutions.push(found);
        Some(found)
    }

    fn function_type(&mut self, qualifiers: &str) -> Option<Id> {
        let mut signature = Signature {
            qualifiers: qualifiers.to_owned(),
            ..Signature::default()
        };
        let mut exceptions = String::new();
        if self.eat("Do") {
            exceptions.push_str(" noexcept");
        } else if matches!(self.two(), "DO" | "Dw") {
            return None;
        }
        self.eat("Dx");
        self.eat("F").then_some(())?;
        self.eat("Y");
        signature.returns = Some(self.kind()?);
        loop {
            if self.eat("E") {
                break;
            }
            if self.eat("RE") {
                signature.qualifiers.push_str(" &");
                break;
            }
            if self.eat("OE") {
                signature.qualifiers.push_str(" &&");
                break;
            }
            if !self.eat("v") {
                let taken = self.kind()?;
                signature.takes.push(taken);
            }
        }
        signature.qualifiers.push_str(&exceptions);
        Some(self.add(Node::Function(Box::new(signature))))
    }

    fn literal(&mut self) -> Option<Id> {
        self.eat("L").then_some(())?;
        if self.eat("_Z") || self.eat("Z") {
            let of = self.encoding()?;
            return self.eat("E").then_some(of);
        }
        if self.eat("Dn") {
            self.eat("0");
            let null = self.text("nullptr");
            return self.eat("E").then_some(null);
        }
        let (suffix, len) = match self.peek() {
            b'b' => {
                let value = match self.peek_at(1) {
                    b'0' => "false",
                    b'1' => "true",
                    _ => return None,
                };
                self.at += 2;
                let value = self.text(value);
                return self.eat("E").then_some(value);
            }
            b'i' => (Some(""), 1),
            b'j' => (Some("u"), 1),
            b'l' => (Some("l"), 1),
            b'm' => (Some("ul"), 1),
            b'x' => (Some("ll"), 1),
            b'y' => (Some("ull"), 1),
            _ => (None, 0),
        };
        self.at += len;
        let kind = if suffix.is_none() {
            Some(self.kind()?)
        } else {
            None
        };
        let negative = self.eat("n");
        let from = self.at;
        while self.peek().is_ascii_digit() || matches!(self.peek(), b'a'..=b'f') {
            self.at += 1;
        }
        let value = &self.text[from..self.at];
        self.eat("E").then_some(())?;
        Some(self.add(match (suffix, kind) {
            (Some(suffix), _) => Node::Short(value, negative, suffix),
            (None, Some(kind)) => Node::Literal(kind, value, negative),
            (None, None) => return None,
        }))
    }

    fn expression(&mut self) -> Option<Id> {
        self.deeper(Self::expression_within)
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
        if code == "fp" || code == "fL" {
            self.at += 2;
            if code == "fL" {
                self.digits();
                self.eat("p").then_some(())?;
            }
            if self.eat("T") {
                return Some(self.text("this"));
            }
            self.qualifiers();
            let number = self.digits();
            self.eat("_").then_some(())?;
            return Some(self.add(Node::Parameter(number)));
        }
        if matches!(code, "sr" | "on" | "dn") {
            return self.unresolved();
        }
        self.at += 2;
        match code {
            "cl" | "cp" => {
                let called = self.expression()?;
                let with = self.until_e(Self::expression)?;
                return Some(self.add(Node::Call(called, with)));
            }
            "cv" => {
                let saved = std::mem::replace(&mut self.may_forward, false);
                let to = self.kind();
                self.may_forward = saved;
                let with = if self.eat("_") {
                    self.until_e(Self::expression)?
                } else {
                    vec![self.expression()?]
                };
                return Some(self.add(Node::Converted(to?, with)));
            }
            "il" => {
                let with = self.until_e(Self::expression)?;
                return Some(self.add(Node::List(None, with)));
            }
            "tl" => {
                let of = self.kind()?;
                let with = self.until_e(Self::expression)?;
                return Some(self.add(Node::List(Some(of), with)));
            }
            "dt" | "pt" => {
                let object = self.expression()?;
                let member = self.unresolved()?;
                let by = if code == "dt" { "." } else { "->" };
                return Some(self.add(Node::Member(object, by, member)));
            }
            "qu" => {
                let (a, b, c) = (self.expression()?, self.expression()?, self.expression()?);
                return Some(self.add(Node::Choice(a, b, c)));
            }
            "ix" => {
                let (of, at) = (self.expression()?, self.expression()?);
                return Some(self.add(Node::Index(of, at)));
            }
            "sp" => {
                let of = self.expression()?;
                return Some(self.add(Node::Expansion(of)));
            }
            "cc" | "dc" | "rc" | "sc" => {
                let how = match code {
                    "cc" => "const_cast",
                    "dc" => "dynamic_cast",
                    "rc" => "reinterpret_cast",
                    _ => "static_cast",
                };
                let (to, of) = (self.kind()?, self.expression()?);
                return Some(self.add(Node::Cast(how, to, of)));
            }
            "st" | "at" | "ti" => {
                let of = self.kind()?;
                let how = ["sizeof ", "alignof ", "typeid "]
                    [usize::from(code == "at") + 2 * usize::from(code == "ti")];
                return Some(self.add(Node::Wrapped(how, of)));
            }
            "sz" | "az" | "te" | "nx" => {
                let of = self.expression()?;
                let how = match code {
                    "sz" => "sizeof ",
                    "az" => "alignof ",
                    "te" => "typeid ",
                    _ => "noexcept ",
                };
                return Some(self.add(Node::Wrapped(how, of)));
            }
            "sZ" => {
                let of = if self.peek() == b'T' {
                    self.parameter()?
                } else {
                    self.expression()?
                };
                let of = self.add(Node::Expansion(of));
                return Some(self.add(Node::Wrapped("sizeof...", of)));
            }
            "pp" | "mm" if !self.eat("_") => {
                let of = self.expression()?;
                let symbol = look_up(&UNARY, code)?;
                return Some(self.add(Node::Postfix(of, symbol)));
            }
            _ => {}
        }
        if let Some(symbol) = look_up(&UNARY, code) {
            let of = self.expression()?;
            return Some(self.add(Node::Unary(symbol, of)));
        }
        let symbol = look_up(&BINARY, code)?;
        let (left, right) = (self.expression()?, self.expression()?);
        Some(self.add(Node::Binary(left, symbol, right)))
    }

    /// A name that depends on a template's parameters.
    fn unresolved(&mut self) -> Option<Id> {
        if !self.eat("sr") {
            return self.base_name();
        }
        let levels = self.eat("N");
        let mut scope = if self.peek().is_ascii_digit() && !levels {
            None
        } else {
            Some(self.unresolved_type()?)
        };
        if levels || scope.is_none() {
            while !self.eat("E") {
                let mut part = self.source_name().map(|name| self.text(name))?;
                if self.peek() == b'I' {
                    part = self.with_arguments(part, false)?;
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
                return if self.peek() == b'I' {
                    let whole = self.with_arguments(found, false)?;
                    self.substitutions.push(whole);
                    Some(whole)
                } else {
                    Some(found)
                };
            }
            _ => return self.kind(),
        };
        self.substitutions.push(found);
        if self.peek() == b'I' {
            let whole = self.with_arguments(found, false)?;
            self.substitutions.push(whole);
            return Some(whole);
        }
        Some(found)
    }

    fn base_name(&mut self) -> Option<Id> {
        let mut name = if self.eat("on") {
            self.operator(&mut Naming::default())?
        } else if self.eat("dn") {
            let of = match self.source_name() {
                Some(name) => self.text(name),
                None => self.unresolved_type()?,
            };
            self.add(Node::Prefixed("~", of))
        } else {
            let name = self.source_name()?;
            self.text(name)
        };
        if self.peek() == b'I' {
            name = self.with_arguments(name, false)?;
        }
        Some(name)
    }
}

/// Writes nodes. Types stand around what they are of: each has a left and a right half.
struct Writer<'p, 'a> {
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

impl<'a> Writer<'_, 'a> {
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

    fn signature_right(&mut self, signature: &Signature) -> Option<()> {
        self.put("(")?;
        self.list(&signature.takes)?;
        self.put(")")?;
        if let Some(returns) = signature.returns {
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
                Node::Scoped(_, name) | Node::Local(_, name) => *name,
                Node::WithArguments(name, _) => *name,
                Node::Tagged(name, _) => *name,
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

    fn operand(&mut self, id: Id) -> Option<()> {
        let id = self.resolved(id)?;
        let simple = !self.llvm()
            && matches!(
                self.nodes[id],
                Node::Text(_) | Node::Scoped(..) | Node::List(..) | Node::Parameter(_)
            );
        if simple {
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

    fn left(&mut self, id: Id) -> Option<()> {
        self.depth += 1;
        if self.depth > 2 * self.max_depth {
            return None;
        }
        self.put("")?;
        let nodes = self.nodes;
        let done = self.left_within(&nodes[id]);
        self.depth -= 1;
        done
    }

    fn left_within(&mut self, node: &Node<'a>) -> Option<()> {
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
                        let mut signature = signature.clone();
                        signature.returns = None;
                        self.whole(*name)?;
                        self.signature_right(&signature)?;
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
            Node::Vendor(of, qualifier) => {
                self.whole(*of)?;
                self.put(" ")?;
                self.whole(*qualifier)
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
                let returns = signature.returns?;
                self.left(returns)?;
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
            Node::Prefixed(prefix, of) => {
                self.put(prefix)?;
                self.whole(*of)
            }
            Node::Between(prefix, first, middle, second) => {
                self.put(prefix)?;
                self.whole(*first)?;
                self.put(middle)?;
                if *middle == " vector" {
                    self.put(if self.llvm() { "[" } else { "(" })?;
                    self.whole(*second)?;
                    return self.put(if self.llvm() { "]" } else { ")" });
                }
                self.whole(*second)
            }
            Node::Structor(of, dtor) => {
                self.put(if *dtor { "~" } else { "" })?;
                self.base(*of)
            }
            Node::Conversion(to) => {
                self.put("operator ")?;
                self.whole(*to)
            }
            Node::Tagged(name, tag) => {
                self.whole(*name)?;
                self.put("[abi:")?;
                self.put(tag)?;
                self.put("]")
            }
            Node::Lambda(takes, number) => {
                if self.llvm() {
                    self.put("'lambda")?;
                    self.llvm_number(*number)?;
                    self.put("'(")?;
                    self.list(takes)?;
                    return self.put(")");
                }
                self.put("{lambda(")?;
                self.list(takes)?;
                self.put(")#")?;
                self.put(&(number + 1).to_string())?;
                self.put("}")
            }
            Node::Unnamed(number) => {
                if self.llvm() {
                    self.put("'unnamed")?;
                    self.llvm_number(*number)?;
                    return self.put("'");
                }
                self.put("{unnamed type#")?;
                self.put(&(number + 1).to_string())?;
                self.put("}")
            }
            Node::Auto(_) if self.llvm() => self.put("auto"),
            Node::Auto(number) => self.put(&format!("auto:{}", number + 1)),
            Node::Binding(all) => {
                self.put("[")?;
                self.list(all)?;
                self.put("]")
            }
            Node::Clone(of, suffix) => {
                self.whole(*of)?;
                let (open, close) = if self.llvm() {
                    (" (", ")")
                } else {
                    (" [clone ", "]")
                };
                self.put(open)?;
                self.put(suffix)?;
                self.put(close)
            }
            Node::Binary(left, symbol, right) => {
                let greater = *symbol == ">";
                self.put(if greater { "(" } else { "" })?;
                self.operand(*left)?;
                let spaced = self.llvm();
                self.put(if spaced && *symbol != "," { " " } else { "" })?;
                self.put(symbol)?;
                self.put(if spaced { " " } else { "" })?;
                self.operand(*right)?;
                self.put(if greater { ")" } else { "" })
            }
            Node::Unary(symbol, of) => {
                self.put(symbol)?;
                match &self.nodes[*of] {
                    Node::Encoding(name, _) if *symbol == "&" && !self.llvm() => {
                        let name = *name;
                        self.operand(name)
                    }
                    _ => self.operand(*of),
                }
            }
            Node::Postfix(of, symbol) => {
                self.operand(*of)?;
                self.put(symbol)
            }
            Node::Choice(condition, yes, no) => {
                self.operand(*condition)?;
                self.put(if self.llvm() { " ? " } else { "?" })?;
                self.operand(*yes)?;
                self.put(" : ")?;
                self.operand(*no)
            }
            Node::Member(object, by, member) => {
                if self.llvm() {
                    self.whole(*object)?;
                } else {
                    self.operand(*object)?;
                }
                self.put(by)?;
                self.whole(*member)
            }
            Node::Call(called, with) => {
                if self.llvm() {
                    self.whole(*called)?;
                } else {
                    self.operand(*called)?;
                }
                self.put("(")?;
                self.list(with)?;
                self.put(")")
            }
            Node::Cast(how, to, of) => {
                self.put(how)?;
                self.put("<")?;
                self.whole(*to)?;
                self.put(">(")?;
                self.whole(*of)?;
                self.put(")")
            }
            Node::Converted(to, with) => {
                self.put("(")?;
                self.whole(*to)?;
                self.put(")(")?;
                self.list(with)?;
                self.put(")")
            }
            Node::List(of, with) => {
                if let Some(of) = of {
                    self.whole(*of)?;
                }
                self.put("{")?;
                self.list(with)?;
                self.put("}")
            }
            Node::Wrapped(how, of) => {
                self.put(how)?;
                self.put("(")?;
                self.whole(*of)?;
                self.put(")")
            }
            Node::Decltype(of) => {
                self.put(if self.llvm() {
                    "decltype("
                } else {
                    "decltype ("
                })?;
                self.whole(*of)?;
                self.put(")")
            }
            Node::Parameter(number) if self.llvm() => {
                self.put("fp")?;
                self.put(number)
            }
            Node::Parameter(number) => {
                let number = number.parse::<u32>().map_or(1, |n| n.saturating_add(2));
                self.put(&format!("{{parm#{number}}}"))
            }
            Node::Literal(kind, value, negative) => {
                self.put("(")?;
                self.whole(*kind)?;
                self.put(")")?;
                self.put(if *negative { "-" } else { "" })?;
                self.put(value)
            }
            Node::Short(value, negative, suffix) => {
                self.put(if *negative { "-" } else { "" })?;
                self.put(value)?;
                self.put(suffix)
            }
            Node::Index(of, at) => {
                self.operand(*of)?;
                self.put("[")?;
                self.whole(*at)?;
                self.put("]")
            }
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

    /// LLVM's numbers begin with none, then 0.
    fn llvm_number(&mut self, number: u32) -> Option<()> {
        match number.checked_sub(1) {
            Some(number) => self.put(&number.to_string()),
            None => Some(()),
        }
    }

    fn right(&mut self, id: Id) -> Option<()> {
        self.depth += 1;
        if self.depth > 2 * self.max_depth {
            return None;
        }
        let nodes = self.nodes;
        let done = match &nodes[id] {
            Node::Pack(_) | Node::Forward(_) => {
                let of = self.resolved(id)?;
                if of == id { Some(()) } else { self.right(of) }
            }
            Node::Qualified(of, _) => self.right(*of),
            Node::Pointer(to) => self.close(*to).and_then(|()| self.right(*to)),
            Node::Reference(to, _) => {
                let (to, _) = self.collapsed(*to)?;
                self.close(to)?;
                self.right(to)
            }
            Node::MemberPointer(_, member) => {
                self.close(*member).and_then(|()| self.right(*member))
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
                self.signature_right(signature)
            }
            _ => Some(()),
        };
        self.depth -= 1;
        done
    }
}
