//! Operators and their encodings (sections 5.1.4.1 and 5.1.6).

/// Precedences of expressions, the strongest first.
pub(super) mod prec {
    pub(in super::super) const PRIMARY: u8 = 0;
    pub(in super::super) const POSTFIX: u8 = 1;
    pub(in super::super) const UNARY: u8 = 2;
    pub(in super::super) const CAST: u8 = 3;
    pub(in super::super) const MEMBER_POINTER: u8 = 4;
    pub(super) const MULTIPLICATIVE: u8 = 5;
    pub(super) const ADDITIVE: u8 = 6;
    pub(super) const SHIFT: u8 = 7;
    pub(super) const SPACESHIP: u8 = 8;
    pub(super) const RELATIONAL: u8 = 9;
    pub(super) const EQUALITY: u8 = 10;
    pub(super) const AND: u8 = 11;
    pub(super) const XOR: u8 = 12;
    pub(super) const OR: u8 = 13;
    pub(super) const AND_IF: u8 = 14;
    pub(in super::super) const OR_IF: u8 = 15;
    pub(in super::super) const CONDITIONAL: u8 = 16;
    pub(in super::super) const ASSIGN: u8 = 17;
    pub(in super::super) const COMMA: u8 = 18;
    /// Weaker than every operator.
    pub(in super::super) const ANY: u8 = 19;
}

/// The operands that an operator takes in expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Prefix,
    Postfix,
    Binary,
    Index,
    /// Member access; a member pointer (`.*`) takes an expression, else a name follows.
    Member,
    New,
    Delete,
    Call,
    Cast,
    Conditional,
    /// Only names of functions have it.
    NameOnly,
    /// `static_cast<type>(expression)`.
    NamedCast,
    /// `sizeof (type)`.
    OfType,
    /// `sizeof (expression)`.
    OfValue,
}

pub(super) struct Operator {
    code: &'static str,
    pub(super) kind: Kind,
    pub(super) prec: u8,
    pub(super) symbol: &'static str,
}

const fn op(code: &'static str, kind: Kind, prec: u8, symbol: &'static str) -> Operator {
    Operator {
        code,
        kind,
        prec,
        symbol,
    }
}

/// All operators, sorted by their codes.
#[rustfmt::skip]
const OPERATORS: [Operator; 64] = [
    op("aN", Kind::Binary, prec::ASSIGN, "&="),
    op("aO", Kind::Binary, prec::ASSIGN, "&="),
    op("aS", Kind::Binary, prec::ASSIGN, "="),
    op("aa", Kind::Binary, prec::AND_IF, "&&"),
    op("ad", Kind::Prefix, prec::UNARY, "&"),
    op("an", Kind::Binary, prec::AND, "&"),
    op("at", Kind::OfType, prec::UNARY, "alignof "),
    op("aw", Kind::NameOnly, prec::PRIMARY, " co_await"),
    op("az", Kind::OfValue, prec::UNARY, "alignof "),
    op("cc", Kind::NamedCast, prec::POSTFIX, "const_cast<"),
    op("cl", Kind::Call, prec::POSTFIX, "()"),
    op("cm", Kind::Binary, prec::COMMA, ","),
    op("co", Kind::Prefix, prec::UNARY, "~"),
    op("cp", Kind::Call, prec::POSTFIX, "()"),
    op("cv", Kind::Cast, prec::CAST, ""),
    op("dV", Kind::Binary, prec::ASSIGN, "/="),
    op("da", Kind::Delete, prec::UNARY, " delete[]"),
    op("dc", Kind::NamedCast, prec::POSTFIX, "dynamic_cast<"),
    op("de", Kind::Prefix, prec::UNARY, "*"),
    op("dl", Kind::Delete, prec::UNARY, " delete"),
    op("ds", Kind::Member, prec::MEMBER_POINTER, ".*"),
    op("dt", Kind::Member, prec::POSTFIX, "."),
    op("dv", Kind::Binary, prec::MULTIPLICATIVE, "/"),
    op("eO", Kind::Binary, prec::ASSIGN, "^="),
    op("eo", Kind::Binary, prec::XOR, "^"),
    op("eq", Kind::Binary, prec::EQUALITY, "=="),
    op("ge", Kind::Binary, prec::RELATIONAL, ">="),
    op("gt", Kind::Binary, prec::RELATIONAL, ">"),
    op("ix", Kind::Index, prec::POSTFIX, "[]"),
    op("lS", Kind::Binary, prec::ASSIGN, "<<="),
    op("le", Kind::Binary, prec::RELATIONAL, "<="),
    op("ls", Kind::Binary, prec::SHIFT, "<<"),
    op("lt", Kind::Binary, prec::RELATIONAL, "<"),
    op("mI", Kind::Binary, prec::ASSIGN, "-="),
    op("mL", Kind::Binary, prec::ASSIGN, "*="),
    op("mi", Kind::Binary, prec::ADDITIVE, "-"),
    op("ml", Kind::Binary, prec::MULTIPLICATIVE, "*"),
    op("mm", Kind::Postfix, prec::POSTFIX, "--"),
    op("na", Kind::New, prec::UNARY, " new[]"),
    op("ne", Kind::Binary, prec::EQUALITY, "!="),
    op("ng", Kind::Prefix, prec::UNARY, "-"),
    op("nt", Kind::Prefix, prec::UNARY, "!"),
    op("nw", Kind::New, prec::UNARY, " new"),
    op("oR", Kind::Binary, prec::ASSIGN, "|="),
    op("oo", Kind::Binary, prec::OR_IF, "||"),
    op("or", Kind::Binary, prec::OR, "|"),
    op("pL", Kind::Binary, prec::ASSIGN, "+="),
    op("pl", Kind::Binary, prec::ADDITIVE, "+"),
    op("pm", Kind::Member, prec::MEMBER_POINTER, "->*"),
    op("pp", Kind::Postfix, prec::POSTFIX, "++"),
    op("ps", Kind::Prefix, prec::UNARY, "+"),
    op("pt", Kind::Member, prec::POSTFIX, "->"),
    op("qu", Kind::Conditional, prec::CONDITIONAL, "?"),
    op("rM", Kind::Binary, prec::ASSIGN, "%="),
    op("rS", Kind::Binary, prec::ASSIGN, ">>="),
    op("rc", Kind::NamedCast, prec::POSTFIX, "reinterpret_cast<"),
    op("rm", Kind::Binary, prec::MULTIPLICATIVE, "%"),
    op("rs", Kind::Binary, prec::SHIFT, ">>"),
    op("sc", Kind::NamedCast, prec::POSTFIX, "static_cast<"),
    op("ss", Kind::Binary, prec::SPACESHIP, "<=>"),
    op("st", Kind::OfType, prec::UNARY, "sizeof "),
    op("sz", Kind::OfValue, prec::UNARY, "sizeof "),
    op("te", Kind::OfValue, prec::POSTFIX, "typeid "),
    op("ti", Kind::OfType, prec::POSTFIX, "typeid "),
];

/// The operator of a code of two letters.
pub(super) fn operator(code: &str) -> Option<&'static Operator> {
    let index = OPERATORS.binary_search_by(|operator| operator.code.cmp(code));
    OPERATORS.get(index.ok()?)
}

impl Operator {
    /// The operator after the word `operator`, if functions can have that name.
    pub(super) fn function_name(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Cast | Kind::NamedCast | Kind::OfType | Kind::OfValue => None,
            _ => Some(self.symbol),
        }
    }
}
