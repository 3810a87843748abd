//! The nodes of a parsed name.

/// Index of a node.
pub(super) type Id = usize;

#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
    Text(&'a str),
    /// `std::string` and the like: abbreviated, and in full before a constructor, without the
    /// last `>`.
    Standard(&'static str, &'static str),
    Scoped(Id, Id),
    Local(Id, Id),
    WithArguments(Id, Vec<Id>),
    /// A C++20 module: its parent, its name, and whether it is a partition.
    Module(Option<Id>, Id, bool),
    /// An entity and its module.
    InModule(Id, Id),
    /// Template arguments of a pack.
    ArgumentPack(Vec<Id>),
    /// The arguments that a parameter pack refers to.
    Pack(Vec<Id>),
    Expansion(Id),
    /// A parameter of a conversion's type, whose argument follows later.
    Forward(Option<Id>),
    Qualified(Id, &'static str),
    Pointer(Id),
    Reference(Id, bool),
    MemberPointer(Id, Id),
    Array(Id, Option<Id>),
    Function(Box<Signature<'a>>),
    /// The name of a function and its signature.
    Encoding(Id, Box<Signature<'a>>),
    Structor(Id, bool),
    Tagged(Id, &'a str),
    /// A template parameter: its type or kind, and its name.
    Declaration(Id, Id),
    /// The declaration of a template parameter pack.
    PackDeclaration(Id),
    /// A string as a list of literals: `Lc104ELc105E`.
    String(&'a str),
    /// A floating-point literal: its type and its digits.
    Float(u8, &'a str),
    /// Anything else, with its precedence as an operand.
    Parts(u8, Vec<Part<'a>>),
    /// As `Parts`; GNU does not parenthesize it as an operand.
    Closed(Vec<Part<'a>>),
    /// An expression with `>`, in parentheses where that would end template arguments.
    Guarded(Id),
}

#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Number(u32),
    Node(Id),
    /// A node, in parentheses if its precedence is this one or weaker; in GNU's style, unless it is
    /// simple.
    Operand(Id, u8),
    List(Vec<Id>),
}

impl<'a> From<&'a str> for Part<'a> {
    fn from(text: &'a str) -> Self {
        Part::Text(text)
    }
}

impl From<Id> for Part<'_> {
    fn from(node: Id) -> Self {
        Part::Node(node)
    }
}

impl From<Vec<Id>> for Part<'_> {
    fn from(list: Vec<Id>) -> Self {
        Part::List(list)
    }
}

/// The parts of a node: texts, nodes, lists of nodes.
macro_rules! parts {
    ($($part:expr),+ $(,)?) => {
        vec![$($crate::demangle::itanium::node::Part::from($part)),+]
    };
}
pub(super) use parts;

#[derive(Clone, Debug, Default)]
pub(super) struct Signature<'a> {
    pub(super) returns: Option<Id>,
    pub(super) takes: Vec<Id>,
    pub(super) qualifiers: &'static str,
    pub(super) reference: &'static str,
    /// Exception specification, attributes and requires clause.
    pub(super) tail: Vec<Part<'a>>,
}
