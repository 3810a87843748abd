//! Names of methods and types by token.

use std::fmt::Write as _;

use super::root::Metadata;
use super::signature::{Budget, MethodSignature, SignatureReader, Type, TypeName};
use super::tables::{self, Table, Token};
use super::text::{self, TypeFormat};

/// Nesting depth of types; corrupt tables can hold a cycle.
const MAX_NESTING: usize = 64;

/// Bytes of a type's name, with its enclosing types.
const MAX_NAME: usize = 16 << 10;

/// The name of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodName {
    /// The declaring type, instantiated if the signature that named the method is.
    pub owner: Type,
    /// The plain name: `Main`, `.ctor`, `<Main>b__0_1`.
    pub name: String,
    /// The signature with type parameters unsubstituted; `None` if it is malformed.
    pub signature: Option<MethodSignature>,
}

impl MethodName {
    /// Returns the declaring type as in the `MethodNamespace` field of CLR events: ``
    /// Ns.Type`1+Nested[System.Int32] ``.
    pub fn owner_text(&self) -> String {
        self.owner.text(TypeFormat::Namespace)
    }

    /// Returns the declaring type without generic arguments, as in stack traces of the runtime: ``
    /// Ns.Type`1+Nested ``.
    pub fn open_owner_text(&self) -> String {
        let owner = match &self.owner {
            Type::Generic { base, .. } => base,
            owner => owner,
        };
        owner.text(TypeFormat::Namespace)
    }

    /// Returns the signature as in the `MethodSignature` field of CLR events: `instance void
    /// (int32,class System.String)`.
    pub fn signature_text(&self) -> String {
        let signature = self.signature.as_ref();
        signature.map(text::signature_text).unwrap_or_default()
    }
}

/// `Ns.Type.Method`, as frames are written.
impl std::fmt::Display for MethodName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.owner_text())?;
        f.write_char('.')?;
        f.write_str(&self.name)
    }
}

impl<'d> Metadata<'d> {
    /// Returns the name of a TypeDef or TypeRef, with its enclosing types. `None` for another
    /// table, an invalid row, or types that enclose each other.
    pub fn type_name(&self, token: Token) -> Option<TypeName> {
        let (mut chain, mut length) = (Vec::new(), 0usize);
        let mut next = Some(token);
        while let Some(token) = next {
            if chain.len() == MAX_NESTING {
                return None;
            }
            let row = self.tables.row(token.table(), token.row())?;
            next = match token.table() {
                Table::TYPE_DEF => self
                    .enclosing_type(token.row())
                    .map(|row| Token::new(Table::TYPE_DEF, row)),
                Table::TYPE_REF => tables::RESOLUTION_SCOPE
                    .decode(row.get(0))
                    .filter(|scope| scope.table() == Table::TYPE_REF),
                _ => return None,
            };
            let (namespace, name) = (self.string(row.get(2)), self.string(row.get(1)));
            length = length
                .saturating_add(namespace.len())
                .saturating_add(name.len());
            if length > MAX_NAME {
                return None;
            }
            chain.push((namespace, name));
        }
        let (mut full, mut simple_name) = (String::new(), 0);
        for (namespace, name) in chain.into_iter().rev() {
            if !full.is_empty() {
                full.push('+');
            }
            simple_name = full.len();
            if !namespace.is_empty() {
                full.push_str(&namespace);
                full.push('.');
            }
            full.push_str(&name);
        }
        Some(TypeName { full, simple_name })
    }

    fn enclosing_type(&self, row: u32) -> Option<u32> {
        let nested = self.tables.find(Table::NESTED_CLASS, row)?;
        Some(self.tables.cell(Table::NESTED_CLASS, nested, 1))
    }

    pub(super) fn type_spec_blob(&self, token: Token) -> Option<&'d [u8]> {
        self.blob(self.tables.row(Table::TYPE_SPEC, token.row())?.get(0))
    }

    /// Returns the type of a TypeDef, TypeRef or TypeSpec. TypeDef and TypeRef do not state whether
    /// the type is a value type; it is returned as a class.
    pub fn type_of(&self, token: Token) -> Option<Type> {
        if token.table() != Table::TYPE_SPEC {
            return self
                .type_name(token)
                .map(|name| Type::Named { name, value: false });
        }
        SignatureReader::new(self.type_spec_blob(token)?, self).read_type(&mut Budget::new())
    }

    /// Returns the TypeDef row that owns a MethodDef row (II.22.26).
    pub fn method_owner(&self, method: u32) -> Option<u32> {
        if method == 0 || method > self.rows(Table::METHOD_DEF) {
            return None;
        }
        // Type k owns the run from its simple_name MethodList to that of type k + 1 (II.22.37).
        let entry = match self.rows(Table::METHOD_PTR) {
            0 => method,
            _ => self.tables.find(Table::METHOD_PTR, method)?,
        };
        let after = entry.checked_add(1)?;
        let first = self.tables.lower_bound(Table::TYPE_DEF, 5, after);
        first.checked_sub(1).filter(|&owner| owner > 0)
    }

    /// Returns the name of a MethodDef, MemberRef or MethodSpec.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_pdb::{metadata::Token, pe::PeImage};
    ///
    /// let file = std::fs::read("../../testdata/clr10/workload/PluginA.dll")?;
    /// let metadata = PeImage::parse(&file)?.metadata()?;
    /// let method = metadata.method(Token(0x0600_0001)).unwrap();
    /// assert_eq!((method.owner_text().as_str(), method.name.as_str()), ("PluginA.Alpha", "AlphaWork"));
    /// assert_eq!(method.signature_text(), "int32  (int32)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn method(&self, token: Token) -> Option<MethodName> {
        match token.table() {
            Table::METHOD_DEF => self.method_def_name(token.row()),
            Table::MEMBER_REF => self.member_ref_name(token.row()),
            Table::METHOD_SPEC => {
                let row = self.tables.row(Table::METHOD_SPEC, token.row())?;
                let method = tables::METHOD_DEF_OR_REF.decode(row.get(0))?;
                self.method(method)
            }
            _ => None,
        }
    }

    fn method_def_name(&self, row: u32) -> Option<MethodName> {
        let method = self.method_def(row)?;
        let owner = Token::new(Table::TYPE_DEF, self.method_owner(row)?);
        Some(MethodName {
            owner: self.type_of(owner)?,
            name: method.name,
            signature: self.method_signature(method.signature),
        })
    }

    fn member_ref_name(&self, row: u32) -> Option<MethodName> {
        let row = self.tables.row(Table::MEMBER_REF, row)?;
        let parent = tables::MEMBER_REF_PARENT.decode(row.get(0))?;
        let owner = match parent.table() {
            Table::METHOD_DEF => self.type_of(Token::new(
                Table::TYPE_DEF,
                self.method_owner(parent.row())?,
            ))?,
            Table::MODULE_REF => Type::Unknown,
            _ => self.type_of(parent)?,
        };
        Some(MethodName {
            owner,
            name: self.string(row.get(1)),
            signature: self
                .blob(row.get(2))
                .and_then(|blob| self.method_signature(blob)),
        })
    }

    /// Decodes the signature of a method of this module.
    pub fn method_signature(&self, blob: &[u8]) -> Option<MethodSignature> {
        SignatureReader::new(blob, self).read_method(&mut Budget::new())
    }
}
