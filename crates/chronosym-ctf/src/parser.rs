//! The Trace Stream Description Language, as far as LTTng writes it.
//!
//! Top-level definitions are independent: one that cannot be parsed is skipped.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "counts of what stands in at most 16 MiB, and widths of at most 64 bits; times fit into 128 bits"
)]

use std::sync::Arc;

use chronosym_types::ByteOrder;
use chronosym_types::hash::HashMap;

use crate::lexer::{Lexer, Token};
use crate::metadata::{Clock, EventType, Metadata, StreamType};
use crate::types::{Field, Kind, Label, MAX_FIELDS, Register, Scalar, Type};

/// Deepest nesting of types in a definition.
const MAX_DEPTH: u32 = 32;

/// Maximum number of fields, labels and the like that a text may declare: each takes about a
/// hundred bytes in memory, and twenty in real texts. A name that expands to many counts as many
/// each time.
const MAX_PARTS: usize = 1 << 19;
const FREE_PARTS: usize = 4096;
const BYTES_PER_PART: usize = 16;

/// A syntax error.
#[derive(Debug)]
struct SyntaxError;

type Result<T> = std::result::Result<T, SyntaxError>;

/// Parses a text.
struct Parser<'t> {
    lexer: Lexer<'t>,
    next: Token<'t>,
    version: Option<(u64, u64)>,
    /// The metadata so far.
    metadata: Metadata,
    /// How many more fields, labels and the like may come.
    parts: usize,
    /// By `struct NAME`, `enum NAME`, `variant NAME`, or the words of an alias.
    types: HashMap<String, Arc<Type>>,
    /// Variants that have been declared without a tag.
    options: HashMap<String, Vec<Field>>,
    /// The fields of the structs that are open, outermost first.
    scopes: Vec<Vec<Field>>,
    /// Types in types that are being read.
    depth: u32,
}

/// A value of `name = value;` or `name := type;`.
enum Assigned {
    Number(i128),
    Text(String),
    Type(Arc<Type>),
}

/// The metadata in a text, and the version of the language that it states.
pub(crate) fn parse(text: &str) -> (Metadata, Option<(u64, u64)>) {
    let mut lexer = Lexer::new(text);
    let parts = FREE_PARTS.saturating_add(text.len() / BYTES_PER_PART);
    let mut parser = Parser {
        next: lexer.next(),
        lexer,
        version: None,
        metadata: Metadata::default(),
        parts: parts.min(MAX_PARTS),
        types: HashMap::default(),
        options: HashMap::default(),
        scopes: Vec::new(),
        depth: 0,
    };
    while parser.next != Token::End {
        if parser.definition().is_err() {
            parser.metadata.bad_definitions += 1;
            parser.scopes.clear();
            parser.depth = 0;
            parser.skip_definition();
        }
    }
    (parser.metadata, parser.version)
}

impl<'t> Parser<'t> {
    fn advance(&mut self) -> Token<'t> {
        let next = self.lexer.next();
        std::mem::replace(&mut self.next, next)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let is_there = self.next == Token::Sign(sign);
        if is_there {
            self.advance();
        }
        is_there
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        self.eat(sign).then_some(()).ok_or(SyntaxError)
    }

    fn count(&mut self, parts: usize) -> Result<()> {
        self.parts = self.parts.checked_sub(parts).ok_or(SyntaxError)?;
        Ok(())
    }

    fn word(&mut self) -> Result<&'t str> {
        match self.advance() {
            Token::Word(word) => Ok(word),
            _ => Err(SyntaxError),
        }
    }

    /// Skips everything up to the `;` that ends the top-level definition.
    fn skip_definition(&mut self) {
        while self.next != Token::End {
            let is_outermost = self.lexer.depth == 0;
            if self.advance() == Token::Sign(";") && is_outermost {
                return;
            }
        }
    }

    fn definition(&mut self) -> Result<()> {
        match self.next {
            Token::Sign(";") => self.advance(),
            Token::Word("trace") => return self.trace(),
            Token::Word("env") => return self.env(),
            Token::Word("clock") => return self.clock(),
            Token::Word("stream") => return self.stream(),
            Token::Word("event") => return self.event(),
            Token::Word("callsite") => return self.braced(|_, _, _| Ok(())),
            _ => return self.declaration(),
        };
        Ok(())
    }

    /// Parses `{ name = value; name := type; … }`; names may have dots.
    fn block(
        &mut self,
        mut each: impl FnMut(&mut Self, &str, Assigned) -> Result<()>,
    ) -> Result<()> {
        self.expect("{")?;
        while !self.eat("}") {
            if matches!(
                self.next,
                Token::Word("typealias" | "typedef" | "struct" | "enum" | "variant")
            ) {
                self.declaration()?;
                continue;
            }
            let name = self.path()?;
            let value = match self.advance() {
                Token::Sign("=") => match self.next {
                    Token::Word(_) => Assigned::Text(self.path()?),
                    _ => match self.advance() {
                        Token::Number(number) => Assigned::Number(number),
                        Token::Text(text) => Assigned::Text(text),
                        _ => return Err(SyntaxError),
                    },
                },
                Token::Sign(":=") => Assigned::Type(self.whole_type()?),
                _ => return Err(SyntaxError),
            };
            self.expect(";")?;
            each(self, &name, value)?;
        }
        Ok(())
    }

    /// A keyword with its block, as a top-level definition.
    fn braced(&mut self, each: impl FnMut(&mut Self, &str, Assigned) -> Result<()>) -> Result<()> {
        self.advance();
        self.block(each)?;
        self.expect(";")
    }

    fn path(&mut self) -> Result<String> {
        let mut path = self.word()?.to_owned();
        while self.eat(".") {
            path.push('.');
            path.push_str(self.word()?);
        }
        Ok(path)
    }

    fn trace(&mut self) -> Result<()> {
        let (mut major, mut minor) = (1, 8);
        self.braced(|text, name, value| {
            match (name, value) {
                ("major", Assigned::Number(number)) => major = fitting(number)?,
                ("minor", Assigned::Number(number)) => minor = fitting(number)?,
                ("uuid", Assigned::Text(uuid)) => text.metadata.uuid = uuid_bytes(&uuid),
                ("byte_order", Assigned::Text(order)) => {
                    text.metadata.order = order_of(&order).unwrap_or_default();
                }
                ("packet.header", Assigned::Type(ty)) => text.metadata.packet_header = Some(ty),
                _ => {}
            }
            Ok(())
        })?;
        self.version = Some((major, minor));
        Ok(())
    }

    fn env(&mut self) -> Result<()> {
        self.braced(|text, name, value| {
            text.count(1)?;
            let value = match value {
                Assigned::Number(number) => number.to_string(),
                Assigned::Text(text) => text,
                Assigned::Type(_) => return Err(SyntaxError),
            };
            text.metadata.env.push((name.to_owned(), value));
            Ok(())
        })
    }

    fn clock(&mut self) -> Result<()> {
        let mut clock = Clock::default();
        let (mut seconds, mut ticks) = (0_i64, 0_i64);
        self.braced(|_, name, value| {
            match (name, value) {
                ("name", Assigned::Text(name)) => clock.name = name,
                ("uuid", Assigned::Text(uuid)) => clock.uuid = Some(uuid),
                ("freq", Assigned::Number(number)) => {
                    clock.frequency = fitting::<u64>(number)?.max(1)
                }
                ("offset_s", Assigned::Number(number)) => seconds = fitting(number)?,
                ("offset", Assigned::Number(number)) => ticks = fitting(number)?,
                _ => {}
            }
            Ok(())
        })?;
        const SECOND: i128 = 1_000_000_000;
        clock.wall_ns =
            i128::from(seconds) * SECOND + i128::from(ticks) * SECOND / i128::from(clock.frequency);
        self.metadata.clock = clock;
        Ok(())
    }

    fn stream(&mut self) -> Result<()> {
        let (mut id, mut stream) = (0, StreamType::default());
        self.braced(|_, name, value| {
            match (name, value) {
                ("id", Assigned::Number(number)) => id = fitting(number)?,
                ("packet.context", Assigned::Type(ty)) => stream.packet_context = Some(ty),
                ("event.header", Assigned::Type(ty)) => stream.event_header = Some(ty),
                ("event.context", Assigned::Type(ty)) => stream.event_context = Some(ty),
                _ => {}
            }
            Ok(())
        })?;
        self.count(1)?;
        self.metadata.streams.insert(id, stream);
        Ok(())
    }

    fn event(&mut self) -> Result<()> {
        let mut event = EventType {
            name: String::new(),
            stream_id: 0,
            id: 0,
            fields: Vec::new(),
            context_type: None,
            fields_type: None,
        };
        self.braced(|_, name, value| {
            match (name, value) {
                ("name", Assigned::Text(name)) => event.name = name,
                ("id", Assigned::Number(number)) => event.id = fitting(number)?,
                ("stream_id", Assigned::Number(number)) => event.stream_id = fitting(number)?,
                ("context", Assigned::Type(ty)) => event.context_type = Some(ty),
                ("fields", Assigned::Type(ty)) => event.fields_type = Some(ty),
                _ => {}
            }
            Ok(())
        })?;
        let fields = match event.fields_type.as_deref() {
            Some(Type::Struct(structure)) => structure.fields.len(),
            _ => 0,
        };
        self.count(fields.saturating_add(1))?;
        self.metadata.event_types.push(event);
        Ok(())
    }

    /// `typealias TYPE := WORDS;`, `typedef TYPE NAME;`, and types that are declared for their
    /// names.
    fn declaration(&mut self) -> Result<()> {
        self.count(1)?;
        match self.next {
            Token::Word("typealias") => {
                self.advance();
                let ty = self.whole_type()?;
                self.expect(":=")?;
                let name = self.words()?.join(" ");
                self.types.insert(name, ty);
            }
            Token::Word("typedef") => {
                self.advance();
                let (ty, words) = self.declared_type()?;
                let name = (*words.last().ok_or(SyntaxError)?).to_owned();
                let ty = self.array(ty)?;
                self.types.insert(name, ty);
            }
            Token::Word("struct" | "enum") => {
                self.own_type()?;
            }
            Token::Word("variant") => self.untagged_variant()?,
            _ => return Err(SyntaxError),
        }
        self.expect(";")
    }

    /// Consecutive words.
    fn words(&mut self) -> Result<Vec<&'t str>> {
        let mut words = vec![self.word()?];
        while let Token::Word(word) = self.next {
            words.push(word);
            self.advance();
        }
        Ok(words)
    }

    fn alias(&self, words: &[&str]) -> Result<Arc<Type>> {
        self.types.get(&words.join(" ")).cloned().ok_or(SyntaxError)
    }

    /// A type that is not followed by a name.
    fn whole_type(&mut self) -> Result<Arc<Type>> {
        match self.own_type()? {
            Some(ty) => Ok(ty),
            None => {
                let words = self.words()?;
                self.alias(&words)
            }
        }
    }

    /// The type of a declaration, and the words after it, the last of which is its name.
    fn declared_type(&mut self) -> Result<(Arc<Type>, Vec<&'t str>)> {
        if let Some(ty) = self.own_type()? {
            let words = match self.next {
                Token::Word(_) => self.words()?,
                _ => Vec::new(),
            };
            return Ok((ty, words));
        }
        let words = self.words()?;
        let (name, alias) = words.split_last().ok_or(SyntaxError)?;
        Ok((self.alias(alias)?, vec![name]))
    }

    /// A type that starts with a keyword.
    fn own_type(&mut self) -> Result<Option<Arc<Type>>> {
        let Token::Word(word) = self.next else {
            return Err(SyntaxError);
        };
        if !matches!(
            word,
            "integer" | "floating_point" | "string" | "struct" | "enum" | "variant"
        ) {
            return Ok(None);
        }
        if self.depth >= MAX_DEPTH {
            return Err(SyntaxError);
        }
        self.depth += 1;
        self.advance();
        let ty = match word {
            "integer" => Arc::new(Type::Scalar(self.integer()?)),
            "floating_point" => Arc::new(Type::Scalar(self.float()?)),
            "string" => {
                if self.next == Token::Sign("{") {
                    self.block(|_, _, _| Ok(()))?;
                }
                Arc::new(Type::Text)
            }
            "struct" => self.structure()?,
            "enum" => self.enumeration()?,
            _ => self.variant()?,
        };
        self.depth -= 1;
        Ok(Some(ty))
    }

    fn integer(&mut self) -> Result<Scalar> {
        let mut scalar = Scalar::new(Kind::Unsigned, 0);
        self.block(|_, name, value| {
            match (name, value) {
                ("size", Assigned::Number(number)) => scalar.bits = width(number)?,
                ("align", Assigned::Number(number)) => scalar.align = alignment(number)?,
                ("signed", Assigned::Number(number)) if number != 0 => scalar.kind = Kind::Signed,
                ("signed", Assigned::Text(word)) if word.eq_ignore_ascii_case("true") => {
                    scalar.kind = Kind::Signed
                }
                ("byte_order", Assigned::Text(word)) => scalar.order = order_of(&word),
                ("encoding", Assigned::Text(word)) => {
                    scalar.is_text =
                        word.eq_ignore_ascii_case("utf8") || word.eq_ignore_ascii_case("ascii");
                }
                ("base", Assigned::Number(number)) => scalar.is_hex = number == 16,
                ("base", Assigned::Text(word)) => {
                    scalar.is_hex = ["hexadecimal", "hex", "x", "X"].contains(&&*word);
                }
                ("map", Assigned::Text(_)) => scalar.is_clock = true,
                _ => {}
            }
            Ok(())
        })?;
        if scalar.bits == 0 {
            return Err(SyntaxError);
        }
        if scalar.align == 0 {
            // By default whole bytes are aligned to bytes, other widths to bits.
            scalar.align = if scalar.bits.is_multiple_of(8) { 8 } else { 1 };
        }
        Ok(scalar)
    }

    fn float(&mut self) -> Result<Scalar> {
        let mut scalar = Scalar::new(Kind::Float, 8);
        self.block(|_, name, value| {
            match (name, value) {
                ("exp_dig" | "mant_dig", Assigned::Number(number)) => scalar.bits += width(number)?,
                ("align", Assigned::Number(number)) => scalar.align = alignment(number)?,
                ("byte_order", Assigned::Text(word)) => scalar.order = order_of(&word),
                _ => {}
            }
            Ok(())
        })?;
        matches!(scalar.bits, 32 | 64)
            .then_some(scalar)
            .ok_or(SyntaxError)
    }

    fn structure(&mut self) -> Result<Arc<Type>> {
        let name = self.name();
        if self.next != Token::Sign("{") {
            return self.named("struct", name);
        }
        let fields = self.fields()?;
        let mut align = 1;
        if self.next == Token::Word("align") {
            self.advance();
            self.expect("(")?;
            align = alignment(self.number()?)?;
            self.expect(")")?;
        }
        let ty = Arc::new(Type::structure(fields, align).ok_or(SyntaxError)?);
        self.declare("struct", name, &ty);
        Ok(ty)
    }

    /// `{ TYPE NAME; TYPE NAME[LENGTH], … }`.
    fn fields(&mut self) -> Result<Vec<Field>> {
        self.expect("{")?;
        self.scopes.push(Vec::new());
        while !self.eat("}") {
            if matches!(self.next, Token::Word("typealias" | "typedef")) {
                self.declaration()?;
                continue;
            }
            let (ty, words) = self.declared_type()?;
            let Some(&name) = words.last() else {
                // A type that was declared for its name.
                self.expect(";")?;
                continue;
            };
            let mut name = name;
            loop {
                let field = Field {
                    name: self.metadata.names.intern(plain(name)),
                    ty: self.array(ty.clone())?,
                    register: None,
                };
                self.count(1)?;
                let open: usize = self.scopes.iter().map(Vec::len).sum();
                if open >= MAX_FIELDS as usize {
                    return Err(SyntaxError);
                }
                self.scopes.last_mut().ok_or(SyntaxError)?.push(field);
                if !self.eat(",") {
                    break;
                }
                name = self.word()?;
            }
            self.expect(";")?;
        }
        self.scopes.pop().ok_or(SyntaxError)
    }

    /// The lengths after a name: `[17]`, `[ _count ]`, outermost first.
    fn array(&mut self, element: Arc<Type>) -> Result<Arc<Type>> {
        enum Length {
            Stated(u64),
            Field(Register),
        }
        let mut lengths = Vec::new();
        while self.eat("[") {
            lengths.push(match &self.next {
                Token::Number(number) => {
                    let number = fitting(*number)?;
                    self.advance();
                    Length::Stated(number)
                }
                _ => {
                    let path = self.path()?;
                    Length::Field(self.register(&path)?.0)
                }
            });
            self.expect("]")?;
        }
        lengths
            .into_iter()
            .rev()
            .try_fold(element, |element, length| {
                let ty = match length {
                    Length::Stated(length) => Type::array(element, length),
                    Length::Field(register) => Type::sequence(element, register),
                };
                ty.map(Arc::new).ok_or(SyntaxError)
            })
    }

    /// The register of an earlier field, and the field's type.
    fn register(&mut self, path: &str) -> Result<(Register, Arc<Type>)> {
        let name = self.metadata.names.intern(plain(path));
        let fields = self
            .scopes
            .iter_mut()
            .rev()
            .flat_map(|scope| scope.iter_mut().rev());
        let mut numbers =
            fields.filter(|field| matches!(*field.ty, Type::Scalar(_) | Type::Enum(..)));
        let field = numbers
            .find(|field| field.name == name)
            .ok_or(SyntaxError)?;
        let register = *field.register.get_or_insert_with(|| {
            self.metadata.registers += 1;
            Register(self.metadata.registers - 1)
        });
        Ok((register, field.ty.clone()))
    }

    fn enumeration(&mut self) -> Result<Arc<Type>> {
        let name = self.name();
        let base = match self.eat(":") {
            true => self.whole_type()?,
            false if self.next == Token::Sign("{") => self.alias(&["int"])?,
            false => return self.named("enum", name),
        };
        let Type::Scalar(scalar) = *base else {
            return Err(SyntaxError);
        };
        self.expect("{")?;
        let (mut labels, mut next) = (Vec::new(), 0);
        while !self.eat("}") {
            let name = match self.advance() {
                Token::Word(word) => word.to_owned(),
                Token::Text(text) => text,
                _ => return Err(SyntaxError),
            };
            let (mut first, mut last) = (next, next);
            if self.eat("=") {
                first = self.number()?;
                last = if self.eat("...") {
                    self.number()?
                } else {
                    first
                };
            }
            next = last.saturating_add(1);
            self.count(1)?;
            labels.push(Label { name, first, last });
            self.eat(",");
        }
        let ty = Arc::new(Type::Enum(scalar, labels));
        self.declare("enum", name, &ty);
        Ok(ty)
    }

    fn number(&mut self) -> Result<i128> {
        match self.advance() {
            Token::Number(number) => Ok(number),
            _ => Err(SyntaxError),
        }
    }

    /// `variant NAME { … }`, to be used with a tag later.
    fn untagged_variant(&mut self) -> Result<()> {
        self.advance();
        let name = self.name().ok_or(SyntaxError)?;
        let options = self.fields()?;
        self.options.insert(name.to_owned(), options);
        Ok(())
    }

    /// `variant [NAME] <TAG> [{ … }]`.
    fn variant(&mut self) -> Result<Arc<Type>> {
        let name = self.name();
        self.expect("<")?;
        let path = self.path()?;
        let (tag, tag_type) = self.register(&path)?;
        self.expect(">")?;
        let options = match (self.next == Token::Sign("{"), name) {
            (true, _) => self.fields()?,
            (false, Some(name)) => self.options.get(name).cloned().ok_or(SyntaxError)?,
            (false, None) => return Err(SyntaxError),
        };
        let Type::Enum(_, labels) = &*tag_type else {
            return Err(SyntaxError);
        };
        self.count(labels.len().saturating_add(options.len()))?;
        // The first one if two have the same name.
        let options = options.iter().rev().map(|option| (option.name, &option.ty));
        let options: HashMap<_, _> = options.collect();
        let mut ranges = Vec::new();
        for label in labels {
            let id = self.metadata.names.find(plain(&label.name));
            if let Some(&ty) = id.and_then(|id| options.get(&id)) {
                ranges.push((label.first, label.last, ty.clone()));
            }
        }
        Type::variant(tag, ranges).map(Arc::new).ok_or(SyntaxError)
    }

    /// The name after `struct` and the like, if there is one.
    fn name(&mut self) -> Option<&'t str> {
        match self.next {
            Token::Word(word) if word != "align" => {
                self.advance();
                Some(word)
            }
            _ => None,
        }
    }

    fn named(&self, kind: &str, name: Option<&str>) -> Result<Arc<Type>> {
        self.alias(&[kind, name.ok_or(SyntaxError)?])
    }

    fn declare(&mut self, kind: &str, name: Option<&str>, ty: &Arc<Type>) {
        if let Some(name) = name {
            let name = [kind, name].join(" ");
            self.types.insert(name, ty.clone());
        }
    }
}

/// LTTng adds an underscore to each name, so that none is a keyword.
fn plain(name: &str) -> &str {
    name.strip_prefix('_').unwrap_or(name)
}

fn fitting<T: TryFrom<i128>>(number: i128) -> Result<T> {
    number.try_into().map_err(|_| SyntaxError)
}

/// Alignment of a number, in bits.
fn width(number: i128) -> Result<u32> {
    match number {
        1..=64 => Ok(number as u32),
        _ => Err(SyntaxError),
    }
}

/// In bits.
fn alignment(number: i128) -> Result<u32> {
    match u32::try_from(number) {
        Ok(bits) if bits.is_power_of_two() && bits <= 4096 => Ok(bits),
        _ => Err(SyntaxError),
    }
}

fn order_of(word: &str) -> Option<ByteOrder> {
    match word {
        "le" => Some(ByteOrder::Little),
        "be" | "network" => Some(ByteOrder::Big),
        _ => None,
    }
}

/// The bytes of `e0fe85b7-b861-46a3-8c39-88de301a4385`, in text order.
fn uuid_bytes(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'-').collect();
    let digits: [u8; 32] = digits.try_into().ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
