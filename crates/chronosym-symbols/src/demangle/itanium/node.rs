//! What a name consists of.

/// Index of a node.
pub(super) type Id = usize;

#[derive(Clone, Debug)]
pub(super) enum Node<'a> {
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
    Pointer(Id),
    Reference(Id, bool),
    MemberPointer(Id, Id),
    Array(Id, Option<Id>),
    Function(Box<Signature>),
    /// A function's name and its signature; nothing of it where only a name is wanted.
    Encoding(Id, Box<Signature>),
    Structor(Id, bool),
    Tagged(Id, &'a str),
    /// Anything else: written part by part, as the dialect wants it.
    Parts(Vec<Part<'a>>),
    /// The same, needing no brackets around it as an operand.
    Closed(Vec<Part<'a>>),
}

#[derive(Clone, Debug)]
pub(super) enum Part<'a> {
    Text(&'a str),
    Number(u32),
    Node(Id),
    /// A node in brackets, unless it is simple.
    Operand(Id),
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
pub(super) struct Signature {
    pub(super) returns: Option<Id>,
    pub(super) takes: Vec<Id>,
    pub(super) qualifiers: String,
}
