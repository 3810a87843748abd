//! The image's own debug information (section 105): native offsets to IL offsets.

use super::native::{Bits, NativeArray, Nibbles, unsigned};

/// One bound: the code from `native_offset` on comes from `il`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// Bytes from the method's first byte, counted over the hot part and then the cold one.
    pub native_offset: u32,
    /// What the code comes from.
    pub il: IlMapping,
    /// Whether the bound marks a call instruction, not the start of code.
    pub call_instruction: bool,
}

/// What a bound says of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IlMapping {
    /// −3: the epilog.
    Epilog,
    /// −2: the prolog, of the method or of one of its funclets.
    Prolog,
    /// −1: no IL.
    NoMapping,
    /// The IL from this offset on.
    Offset(u32),
}

impl IlMapping {
    /// From the stored value, which is three more.
    fn stored(value: u32) -> Self {
        match value {
            0 => Self::Epilog,
            1 => Self::Prolog,
            2 => Self::NoMapping,
            offset => Self::Offset(offset - 3),
        }
    }
}

/// The IL of a native offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IlAnswer {
    /// What the governing bound says.
    pub mapping: IlMapping,
    /// The IL offset to find a line for: the mapping's own; 0 in the prolog (in a funclet's prolog
    /// that of the code behind it); otherwise that of the nearest bound before that has one.
    /// Nothing if there is no such bound.
    pub il_offset: Option<u32>,
    /// What the runtime's own stack traces say: 0 for no mapping and the prolog, the method's highest
    /// IL offset for the epilog.
    pub runtime_il_offset: u32,
}

/// The bounds of one method in native order; ends early where the data is damaged.
#[derive(Debug, Clone)]
pub struct Bounds<'d> {
    form: Form<'d>,
    left: u32,
    native_offset: u32,
}

#[derive(Debug, Clone)]
enum Form<'d> {
    Nibbles(Nibbles<'d>),
    Bits {
        bits: Bits<'d>,
        source: u32,
        native: u32,
        il: u32,
    },
}

impl Iterator for Bounds<'_> {
    type Item = Bound;

    fn next(&mut self) -> Option<Bound> {
        self.left = self.left.checked_sub(1)?;
        let (source, delta, il) = match &mut self.form {
            Form::Nibbles(nibbles) => {
                let (delta, il) = (nibbles.unsigned()?, nibbles.unsigned()?);
                (nibbles.unsigned()? >> 4, delta, il)
            }
            Form::Bits {
                bits,
                source,
                native,
                il,
            } => (bits.take(*source)?, bits.take(*native)?, bits.take(*il)?),
        };
        self.native_offset = self.native_offset.checked_add(delta)?;
        Some(Bound {
            native_offset: self.native_offset,
            il: IlMapping::stored(il),
            call_instruction: source & 1 != 0,
        })
    }
}

impl<'d> Bounds<'d> {
    /// The bounds of the method whose entry is runtime function `function`.
    pub(super) fn of(debug_info: &NativeArray<'d>, function: u32, major: u16) -> Option<Self> {
        let at = debug_info.get(function)?;
        let (back, after) = unsigned(debug_info.data(), at)?;
        let blob = if back == 0 {
            after
        } else {
            at.checked_sub(back as usize)?
        };
        Self::parse(debug_info.data().get(blob..)?, major)
    }

    fn parse(blob: &'d [u8], major: u16) -> Option<Self> {
        let mut header = Nibbles::new(blob);
        let mut size = header.unsigned()?;
        let mut others = 1; // variables
        if major >= 17 && size == 0 {
            // The fat form has more parts than bounds and variables.
            size = header.unsigned()?;
            others = 5;
        }
        for _ in 0..others {
            header.unsigned()?;
        }
        let bytes = header.rest().get(..size as usize)?;
        let mut nibbles = Nibbles::new(bytes);
        let left = if size == 0 { 0 } else { nibbles.unsigned()? };
        if major < 16 || left == 0 {
            return Some(Self {
                form: Form::Nibbles(nibbles),
                left,
                native_offset: 0,
            });
        }
        let (native, il) = (
            nibbles.unsigned()?.checked_add(1)?,
            nibbles.unsigned()?.checked_add(1)?,
        );
        let source = if major >= 17 { 3 } else { 2 };
        if native > 32 || il > 32 {
            return None;
        }
        let bits = Bits::new(nibbles.rest());
        Some(Self {
            form: Form::Bits {
                bits,
                source,
                native,
                il,
            },
            left,
            native_offset: 0,
        })
    }

    /// The IL of the code at `native_offset`.
    pub(super) fn lookup(self, native_offset: u32) -> Option<IlAnswer> {
        let mut governing: Option<Governing> = None;
        let (mut before, mut behind, mut highest) = (None, None, 0);
        for bound in self.filter(|bound| !bound.call_instruction) {
            if let IlMapping::Offset(il) = bound.il {
                highest = highest.max(il);
            }
            if bound.native_offset > native_offset {
                if let (None, IlMapping::Offset(il)) = (behind, bound.il) {
                    behind = Some(il);
                }
                continue;
            }
            match &mut governing {
                Some(last) if last.native_offset == bound.native_offset => last.add(bound.il),
                last => {
                    if let Some(Governing {
                        mapping: IlMapping::Offset(il),
                        ..
                    }) = last
                    {
                        before = Some(*il);
                    }
                    *last = Some(Governing::new(bound));
                }
            }
        }
        let Governing {
            native_offset: at,
            mapping,
            runtime,
        } = governing?;
        let il_offset = match mapping {
            IlMapping::Offset(il) => Some(il),
            IlMapping::Prolog if at == 0 => Some(0),
            IlMapping::Prolog => behind.or(before),
            IlMapping::NoMapping | IlMapping::Epilog => before,
        };
        Some(IlAnswer {
            mapping,
            il_offset,
            runtime_il_offset: runtime.unwrap_or(highest),
        })
    }
}

/// The bounds at one native offset.
struct Governing {
    native_offset: u32,
    mapping: IlMapping,
    /// The runtime's choice; nothing if it is the epilog.
    runtime: Option<u32>,
}

impl Governing {
    fn new(bound: Bound) -> Self {
        let runtime = runtime_il(bound.il);
        Self {
            native_offset: bound.native_offset,
            mapping: bound.il,
            runtime,
        }
    }

    /// Of several bounds at one place the lowest counts, but not a later "no mapping".
    fn add(&mut self, il: IlMapping) {
        if il == IlMapping::NoMapping {
            return;
        }
        self.mapping = lower(self.mapping, il);
        self.runtime = match (self.runtime, runtime_il(il)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
}

fn runtime_il(il: IlMapping) -> Option<u32> {
    match il {
        IlMapping::Offset(il) => Some(il),
        IlMapping::Prolog | IlMapping::NoMapping => Some(0),
        IlMapping::Epilog => None,
    }
}

fn lower(a: IlMapping, b: IlMapping) -> IlMapping {
    // An IL offset says more than a prolog or epilog at the same place.
    match (a, b) {
        (IlMapping::Offset(a), IlMapping::Offset(b)) => IlMapping::Offset(a.min(b)),
        (IlMapping::Offset(_), _) => a,
        (_, IlMapping::Offset(_)) => b,
        _ => a.min(b),
    }
}
