//! Types of fields, as the metadata declares them.

#![expect(
    clippy::arithmetic_side_effects,
    reason = "depths, which the parser bounds"
)]

use std::sync::Arc;

use chronosym_types::ByteOrder;

/// Deepest nesting and most fields of a type: they bound the time to decode an event.
const MAX_DEPTH: u32 = 32;
pub(crate) const MAX_FIELDS: u32 = 4096;

/// Index of a name in the metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NameId(pub u32);

/// Index of a value that later fields depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(pub u32);

#[derive(Clone, Debug)]
pub(crate) enum Type {
    Scalar(Scalar),
    Enum(Scalar, Vec<Label>),
    Text,
    Struct(Struct),
    Variant(Variant),
    Array(Arc<Type>, u64),
    Sequence(Arc<Type>, Register),
}

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// 1 to 64.
    pub bits: u32,
    /// A power of two, in bits.
    pub align: u32,
    pub kind: Kind,
    /// `None`: the trace's byte order.
    pub order: Option<ByteOrder>,
    /// It is a character.
    pub is_text: bool,
    /// It is displayed in hex.
    pub is_hex: bool,
    /// It is a timestamp of the trace's clock.
    pub is_clock: bool,
}

impl Scalar {
    /// Creates a number with default properties.
    pub const fn new(kind: Kind, align: u32) -> Self {
        Scalar {
            bits: 0,
            align,
            kind,
            order: None,
            is_text: false,
            is_hex: false,
            is_clock: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// A name for a range of values.
#[derive(Clone, Debug)]
pub(crate) struct Label {
    pub name: String,
    pub first: i128,
    pub last: i128,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub name: NameId,
    pub ty: Arc<Type>,
    pub register: Option<Register>,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub fields: Vec<Field>,
    shape: Shape,
}

/// One of several types, by the value of an earlier field.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub tag: Register,
    pub options: Vec<(i128, i128, Arc<Type>)>,
    shape: Shape,
}

/// Size and complexity of a type.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    align: u32,
    depth: u32,
    fields: u32,
    least_bits: u64,
}

impl Type {
    pub fn structure(fields: Vec<Field>, align: u32) -> Option<Self> {
        let mut shape = Shape {
            align,
            ..Shape::default()
        };
        for field in &fields {
            let own = field.ty.shape();
            shape.align = shape.align.max(own.align);
            shape.depth = shape.depth.max(own.depth);
            shape.fields = shape.fields.saturating_add(own.fields);
            shape.least_bits = shape.least_bits.saturating_add(own.least_bits);
        }
        Type::Struct(Struct {
            fields,
            shape: shape.nested(),
        })
        .checked()
    }

    pub fn variant(tag: Register, options: Vec<(i128, i128, Arc<Type>)>) -> Option<Self> {
        let mut shape = Shape {
            align: 1,
            least_bits: u64::MAX,
            ..Shape::default()
        };
        for (_, _, option) in &options {
            let own = option.shape();
            shape.depth = shape.depth.max(own.depth);
            shape.fields = shape.fields.max(own.fields);
            shape.least_bits = shape.least_bits.min(own.least_bits);
        }
        // All options are compared with the tag.
        let count = u32::try_from(options.len()).ok()?;
        shape.fields = shape.fields.saturating_add(count);
        Type::Variant(Variant {
            tag,
            options,
            shape: shape.nested(),
        })
        .checked()
    }

    /// Elements of size 0 could be repeated without bound.
    pub fn array(element: Arc<Type>, length: u64) -> Option<Self> {
        (element.shape().least_bits > 0).then_some(())?;
        Type::Array(element, length).checked()
    }

    pub fn sequence(element: Arc<Type>, length: Register) -> Option<Self> {
        (element.shape().least_bits > 0).then_some(())?;
        Type::Sequence(element, length).checked()
    }

    fn checked(self) -> Option<Self> {
        let shape = self.shape();
        (shape.depth <= MAX_DEPTH && shape.fields <= MAX_FIELDS).then_some(self)
    }

    /// In bits.
    pub fn align(&self) -> u32 {
        self.shape().align
    }

    fn shape(&self) -> Shape {
        let one = |align, least_bits| Shape {
            align,
            least_bits,
            depth: 1,
            fields: 1,
        };
        match self {
            Type::Scalar(scalar) | Type::Enum(scalar, _) => one(scalar.align, scalar.bits.into()),
            Type::Text => one(8, 8),
            Type::Struct(structure) => structure.shape,
            Type::Variant(variant) => variant.shape,
            Type::Array(element, length) => {
                let shape = element.shape().nested();
                Shape {
                    least_bits: shape.least_bits.saturating_mul(*length),
                    ..shape
                }
            }
            Type::Sequence(element, _) => Shape {
                least_bits: 0,
                ..element.shape().nested()
            },
        }
    }
}

impl Shape {
    fn nested(self) -> Self {
        Shape {
            depth: self.depth + 1,
            fields: self.fields.saturating_add(1),
            ..self
        }
    }
}
