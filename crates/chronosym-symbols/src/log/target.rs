//! Code that a log names: a module, and an address in it.

use super::number::method_token;

/// The code that an address, or a symbol with an offset, refers to.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target<'a> {
    /// The module, by name or path, if stated.
    pub file: Option<&'a str>,
    /// Another identity of the module: its build ID, the id of its PDB, its UUID, or its module
    /// version id.
    pub id: Option<&'a str>,
    /// The address in the module.
    pub at: At<'a>,
    /// Whether `file` may be the name of a function or a section: `f+0x1a` looks like
    /// `module+0x1a`.
    pub is_ambiguous: bool,
}

/// An address in a module.
///
/// Closed: code that prints a log handles every form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At<'a> {
    /// An address in the file or, if the log or an option states load addresses, in the process.
    Address(u64),
    /// Bytes from the image's base.
    Rva(u64),
    /// Bytes from the start of the file.
    FileOffset(u64),
    /// An address of the process in an executable mapping of the file. The log states start and
    /// length of the mapping, but not its file offset.
    Mapped {
        /// The address.
        address: u64,
        /// The first address of the mapping.
        start: u64,
        /// Its length in bytes; 0 if nothing is known about the mapping.
        len: u64,
    },
    /// Bytes from the base of an image that the log lists: its index in the list, and the bytes.
    Listed(u32, u64),
    /// Bytes from the start of a function.
    Symbol(Symbol<'a>),
    /// Bytes from the start of a method's IL.
    Il(Method<'a>, u32),
}

/// A function by its name.
///
/// Closed: callers build it as a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Its name, mangled or not, with or without parameters.
    pub name: &'a str,
    /// Bytes from its start.
    pub offset: u64,
    /// Its size in bytes, if stated, as Linux kernels do.
    pub size: Option<u64>,
}

/// A managed method.
///
/// Closed: code that prints a log handles every form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'a> {
    /// By its metadata token.
    Token(u32),
    /// By its full name.
    Named(&'a str),
}

/// The replacement of an address in a text.
///
/// Closed: code that prints a log handles every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// The names, each with its line.
    #[default]
    Names,
    /// File and line with this separator; the text already contains the name.
    Line(&'static str),
    /// The names, as a part of a JSON string.
    JsonText,
    /// The names, as a JSON string.
    JsonValue,
}

impl<'a> Target<'a> {
    /// Creates a target for an address in a module; an empty name means no module.
    #[inline]
    pub fn new(file: Option<&'a str>, at: At<'a>) -> Self {
        let file = file.filter(|file| !file.is_empty());
        Target {
            file,
            id: None,
            at,
            is_ambiguous: false,
        }
    }

    /// Returns the number that frames show for an address of an image.
    pub fn address(&self) -> Option<u64> {
        match self.at {
            At::Address(n) | At::Rva(n) | At::FileOffset(n) | At::Listed(_, n) => Some(n),
            At::Mapped { address, .. } => Some(address),
            At::Symbol(_) | At::Il(..) => None,
        }
    }
}

impl<'a> Target<'a> {
    /// Parses `0x…`, decimal, and `module+0xrva` or `module!0xrva`, with the module's name or path,
    /// and `0x06……+0xil`, a method's token with an IL offset, optionally after `module!`. `number`
    /// parses the number.
    pub fn parse(text: &'a str, number: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let (module, digits) = split(text);
        let value = number(digits)?;
        Some(match module {
            "" => Target::new(None, At::Address(value)),
            module => method(module, value).unwrap_or(Target {
                is_ambiguous: true,
                ..Target::new(Some(module), At::Rva(value))
            }),
        })
    }
}

/// `0x06……` or `module!0x06……`, or `module!Type.Method`.
fn method(text: &str, il: u64) -> Option<Target<'_>> {
    let (module, method) = match text.rsplit_once('!') {
        Some((module, method)) => (Some(module), method),
        None => (None, text),
    };
    let method = match (method_token(method), module) {
        (Some(token), _) => Method::Token(token),
        (None, Some(_)) if !method.is_empty() => Method::Named(method),
        _ => return None,
    };
    Some(Target::new(module, At::Il(method, il.try_into().ok()?)))
}

/// Splits an address into the module, if stated, and the number.
pub fn split(text: &str) -> (&str, &str) {
    let at = text.rfind(['+', '!']).filter(|&at| at > 0);
    let parts = at.and_then(|at| text.split_at_checked(at));
    match parts {
        Some((module, digits)) => {
            let digits = digits.trim_start_matches(['+', '!']);
            (module.trim_end_matches('!'), digits)
        }
        None => ("", text),
    }
}

/// Returns the name of a file without its folder, on any system.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
