//! Signatures (ECMA-335 II.23.2), with the element types that ReadyToRun adds.

use super::root::Metadata;
use super::tables::{self, Table, Token};
use crate::blob::BlobReader;

/// The name of a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeName {
    pub(super) full: String,
    /// Offset of the name without enclosing types.
    pub(super) simple_name: usize,
}

impl TypeName {
    /// Namespace, enclosing types and name: `Ns.Outer+Inner`.
    pub fn full(&self) -> &str {
        &self.full
    }

    /// Returns the name without enclosing types, as in signatures of CLR events: `Inner`.
    pub fn simple_name(&self) -> &str {
        self.full.get(self.simple_name..).unwrap_or(&self.full)
    }
}

/// A type in a signature.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// A built-in type, by its element type (II.23.1.16).
    Primitive(u8),
    /// `System.__Canon`: any reference type, in shared generic code.
    Canon,
    /// A class or value type.
    Named {
        /// Its name.
        name: TypeName,
        /// Whether it is a value type.
        value: bool,
    },
    /// An instantiated generic type.
    Generic {
        /// The generic type definition.
        base: Box<Type>,
        /// The type arguments.
        arguments: Vec<Type>,
    },
    /// A type parameter of the generic type (VAR).
    Var(u32),
    /// A type parameter of the generic method (MVAR).
    MethodVar(u32),
    /// An unmanaged pointer.
    Pointer(Box<Type>),
    /// A managed pointer.
    ByRef(Box<Type>),
    /// A vector: a one-dimensional array with lower bound 0.
    SzArray(Box<Type>),
    /// Any other array.
    Array {
        /// The element type.
        element: Box<Type>,
        /// The number of dimensions.
        rank: u32,
        /// Sizes of the first dimensions, as far as stated.
        sizes: Vec<u32>,
        /// Lower bounds of the first dimensions, as far as stated.
        lower_bounds: Vec<i32>,
    },
    /// A function pointer.
    Function(Box<MethodSignature>),
    /// A type with a custom modifier.
    Modified {
        /// Whether the modifier is required (modreq) or optional (modopt).
        required: bool,
        /// The modifier.
        modifier: Box<Type>,
        /// The modified type.
        of: Box<Type>,
    },
    /// A pinned local.
    Pinned(Box<Type>),
    /// A type whose module is unavailable, or whose token is invalid.
    Unknown,
}

/// The signature of a method.
///
/// Closed: callers build it as a literal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MethodSignature {
    /// Whether the method has a `this` parameter.
    pub has_this: bool,
    /// The calling convention: 0 default, 5 vararg, 9 unmanaged.
    pub convention: u8,
    /// The number of the method's simple_name type parameters.
    pub generic_parameters: u32,
    /// The return type.
    pub return_type: Type,
    /// The parameters, without `this`.
    pub parameters: Vec<Type>,
    /// Index of the first variable argument at a vararg call site.
    pub sentinel: Option<usize>,
}

/// Limits of decoding one signature: elements and depth, which nested type specifications multiply,
/// and bytes of type names, which all elements may share.
#[derive(Debug)]
pub(crate) struct Budget {
    nodes: u32,
    depth: u32,
    text: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self {
            nodes: 4096,
            depth: 64,
            text: 256 << 10,
        }
    }

    fn enter(&mut self) -> Option<()> {
        self.nodes = self.nodes.checked_sub(1)?;
        self.depth = self.depth.checked_sub(1)?;
        Some(())
    }
}

/// Finds the module of a ReadyToRun module index.
pub(crate) type Modules<'r> = &'r dyn Fn(u32) -> Option<&'r Metadata<'r>>;

/// Decodes types from a blob, in the context of a module.
pub(crate) struct SignatureReader<'r> {
    pub(crate) blob: BlobReader<'r>,
    /// The module of the blob's tokens; `None` if it is unavailable.
    pub(crate) module: Option<&'r Metadata<'r>>,
    pub(crate) modules: Modules<'r>,
}

impl<'r> SignatureReader<'r> {
    /// Decodes a blob of `module`.
    pub(crate) fn new(blob: &'r [u8], module: &'r Metadata<'r>) -> Self {
        Self {
            blob: BlobReader::new(blob),
            module: Some(module),
            modules: &|_| None,
        }
    }

    fn named(&mut self, value: bool, budget: &mut Budget) -> Option<Type> {
        let token = tables::TYPE_DEF_OR_REF.decode(self.blob.unsigned()?)?;
        let Some(module) = self.module else {
            return Some(Type::Unknown);
        };
        if token.table() == Table::TYPE_SPEC {
            return self.type_spec(module, token, budget);
        }
        let Some(name) = module.type_name(token) else {
            return Some(Type::Unknown);
        };
        budget.text = budget.text.checked_sub(name.full.len())?;
        Some(Type::Named { name, value })
    }

    fn type_spec(
        &self,
        module: &'r Metadata<'r>,
        token: Token,
        budget: &mut Budget,
    ) -> Option<Type> {
        let mut inner = SignatureReader::new(module.type_spec_blob(token)?, module);
        inner.modules = self.modules;
        inner.read_type(budget)
    }

    /// Decodes one type; `None` if the blob is malformed or nests too deeply.
    pub(crate) fn read_type(&mut self, budget: &mut Budget) -> Option<Type> {
        budget.enter()?;
        let decoded = self.read_type_inner(budget);
        budget.depth = budget.depth.saturating_add(1);
        decoded
    }

    fn boxed(&mut self, budget: &mut Budget) -> Option<Box<Type>> {
        self.read_type(budget).map(Box::new)
    }

    fn read_type_inner(&mut self, budget: &mut Budget) -> Option<Type> {
        Some(match self.blob.byte()? {
            element @ (0x01..=0x0e | 0x16 | 0x18 | 0x19 | 0x1c) => Type::Primitive(element),
            0x0f => Type::Pointer(self.boxed(budget)?),
            0x10 => Type::ByRef(self.boxed(budget)?),
            0x11 => self.named(true, budget)?,
            0x12 => self.named(false, budget)?,
            0x13 => Type::Var(self.blob.unsigned()?),
            0x14 => self.read_array(budget)?,
            0x15 => {
                let base = self.boxed(budget)?;
                let count = self.blob.unsigned()?;
                Type::Generic {
                    base,
                    arguments: self.read_types(count, budget)?,
                }
            }
            0x1b => Type::Function(Box::new(self.read_method(budget)?)),
            0x1d => Type::SzArray(self.boxed(budget)?),
            0x1e => Type::MethodVar(self.blob.unsigned()?),
            element @ (0x1f | 0x20) => {
                let modifier = Box::new(self.named(false, budget)?);
                Type::Modified {
                    required: element == 0x1f,
                    modifier,
                    of: self.boxed(budget)?,
                }
            }
            // ReadyToRun's NATIVE_VALUETYPE, CANON and MODULE_ZAPSIG.
            0x3d => self.read_type(budget)?,
            0x3e => Type::Canon,
            0x3f => {
                let index = self.blob.unsigned()?;
                let outer = std::mem::replace(&mut self.module, (self.modules)(index));
                let decoded = self.read_type(budget);
                self.module = outer;
                decoded?
            }
            0x45 => Type::Pinned(self.boxed(budget)?),
            _ => return None,
        })
    }

    /// Decodes `count` types.
    pub(crate) fn read_types(&mut self, count: u32, budget: &mut Budget) -> Option<Vec<Type>> {
        (0..count).map(|_| self.read_type(budget)).collect()
    }

    fn read_array(&mut self, budget: &mut Budget) -> Option<Type> {
        let element = self.boxed(budget)?;
        let rank = self.blob.unsigned().filter(|&rank| rank <= 32)?;
        let sizes = 0..self.blob.unsigned().filter(|&count| count <= rank)?;
        let sizes = sizes.map(|_| self.blob.unsigned()).collect::<Option<_>>()?;
        let bounds = 0..self.blob.unsigned().filter(|&count| count <= rank)?;
        Some(Type::Array {
            element,
            rank,
            sizes,
            lower_bounds: bounds.map(|_| self.blob.signed()).collect::<Option<_>>()?,
        })
    }

    /// Decodes a method's signature (II.23.2.1 to II.23.2.3).
    pub(crate) fn read_method(&mut self, budget: &mut Budget) -> Option<MethodSignature> {
        let flags = self.blob.byte()?;
        if matches!(flags & 0xf, 6..=8 | 0xa..) {
            return None; // a field, local variables or a property
        }
        let generic_parameters = match flags & 0x10 {
            0 => 0,
            _ => self.blob.unsigned()?,
        };
        let count = self.blob.unsigned()?;
        let return_type = self.read_type(budget)?;
        let (mut parameters, mut sentinel) = (Vec::new(), None);
        for index in 0..count {
            if self.blob.peek() == Some(0x41) {
                self.blob.byte();
                sentinel = Some(index as usize);
            }
            parameters.push(self.read_type(budget)?);
        }
        Some(MethodSignature {
            has_this: flags & 0x20 != 0,
            convention: flags & 0xf,
            generic_parameters,
            return_type,
            parameters,
            sentinel,
        })
    }
}
