//! The encoding of Protocol Buffers: fields of a message, by offset in the input.

/// Offsets of the first byte of a part of the input, and of the byte after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub start: u32,
    pub end: u32,
}

impl Part {
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        bytes
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number of any encoding.
    Int(u64),
    /// Text, a message or packed numbers. `is_cut` if the input ends before its end.
    Bytes { part: Part, is_cut: bool },
}

/// A field, its key included.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub number: u64,
    pub value: Value,
    /// The whole field.
    pub whole: Part,
}

impl Field {
    /// Returns the value of a field with this number, if it is a number.
    pub fn int(&self, number: u64) -> Option<u64> {
        match self.value {
            Value::Int(value) if self.number == number => Some(value),
            _ => None,
        }
    }

    /// Returns whether the field ends within its message.
    pub fn is_complete(&self) -> bool {
        !matches!(self.value, Value::Bytes { is_cut: true, .. })
    }

    /// Returns the content of a field with this number that is complete.
    pub fn part(&self, number: u64) -> Option<Part> {
        match self.value {
            Value::Bytes {
                part,
                is_cut: false,
            } if self.number == number => Some(part),
            _ => None,
        }
    }
}

/// The fields of a message. They end where the message does not follow the encoding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    end: usize,
    /// Whether the message ended early.
    pub is_damaged: bool,
}

impl<'b> Fields<'b> {
    /// Returns the fields of a message in the input.
    pub fn new(bytes: &'b [u8], message: Part) -> Self {
        Fields {
            bytes,
            at: message.start as usize,
            end: (message.end as usize).min(bytes.len()),
            is_damaged: false,
        }
    }

    /// Returns the offset of the next field.
    pub fn position(&self) -> u32 {
        self.at as u32
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.end)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let &[byte] = self.take(1)? else { return None };
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn field(&mut self) -> Option<Field> {
        let start = self.at as u32;
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Int(self.varint()?),
            1 => Value::Int(u64::from_le_bytes(*self.take(8)?.first_chunk()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let from = self.at as u32;
                let is_cut = length > self.end - self.at;
                self.take(length.min(self.end - self.at))?;
                self.is_damaged |= is_cut;
                let part = Part {
                    start: from,
                    end: self.at as u32,
                };
                Value::Bytes { part, is_cut }
            }
            5 => Value::Int(u32::from_le_bytes(*self.take(4)?.first_chunk()?).into()),
            _ => return None,
        };
        let whole = Part {
            start,
            end: self.at as u32,
        };
        let number = key >> 3;
        (number > 0).then_some(Field {
            number,
            value,
            whole,
        })
    }
}

impl Iterator for Fields<'_> {
    type Item = Field;

    fn next(&mut self) -> Option<Field> {
        if self.at >= self.end {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.is_damaged = true;
            self.at = self.end;
        }
        field
    }
}

/// The values of a repeated field of numbers, packed or not.
#[derive(Clone, Debug)]
pub(crate) struct Ints<'b> {
    fields: Fields<'b>,
    number: u64,
    is_fixed: bool,
    packed: Option<Fields<'b>>,
}

impl<'b> Ints<'b> {
    pub fn new(bytes: &'b [u8], message: Part, number: u64) -> Self {
        Ints {
            fields: Fields::new(bytes, message),
            number,
            is_fixed: false,
            packed: None,
        }
    }

    /// As [`Ints::new`], for numbers of eight bytes each.
    pub fn fixed(bytes: &'b [u8], message: Part, number: u64) -> Self {
        Ints {
            is_fixed: true,
            ..Ints::new(bytes, message, number)
        }
    }
}

impl Iterator for Ints<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(packed) = &mut self.packed {
                let value = match self.is_fixed {
                    true => packed
                        .take(8)
                        .and_then(|it| Some(u64::from_le_bytes(*it.first_chunk()?))),
                    false => packed.varint(),
                };
                match value {
                    Some(value) => return Some(value),
                    None => self.packed = None,
                }
            }
            let field = self.fields.next()?;
            if field.number != self.number {
                continue;
            }
            match field.value {
                Value::Int(value) => return Some(value),
                Value::Bytes { part, .. } => {
                    self.packed = Some(Fields::new(self.fields.bytes, part));
                }
            }
        }
    }
}

/// Appends a varint.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number, unless it is 0, which is the default.
pub(crate) fn put_int(out: &mut Vec<u8>, number: u64, value: u64) {
    if value != 0 {
        put_varint(out, number << 3);
        put_varint(out, value);
    }
}

/// Appends text or a message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Part {
        Part {
            start: 0,
            end: bytes.len() as u32,
        }
    }

    #[test]
    fn fields_of_every_encoding() {
        let bytes = b"\x08\x96\x01\x12\x02hi\x19\x01\0\0\0\0\0\0\0\x25\x02\0\0\0";
        let mut fields = Fields::new(bytes, whole(bytes));
        let found: Vec<_> = fields.by_ref().map(|it| (it.number, it.value)).collect();
        let hi = Value::Bytes {
            part: Part { start: 5, end: 7 },
            is_cut: false,
        };
        let expected = [
            (1, Value::Int(150)),
            (2, hi),
            (3, Value::Int(1)),
            (4, Value::Int(2)),
        ];
        assert_eq!(found, expected);
        assert!(!fields.is_damaged);
    }

    #[test]
    fn a_message_ends_where_it_breaks_the_encoding() {
        // A group, field 0, an endless varint, a length beyond the end.
        let endless = [0xff; 12];
        for bytes in [&b"\x0b\0"[..], b"\x02\0", &endless, b"\x08", b"\x09\0"] {
            let mut fields = Fields::new(bytes, whole(bytes));
            assert_eq!(fields.by_ref().count(), 0);
            assert!(fields.is_damaged, "{bytes:?}");
        }
        let bytes = b"\x12\x05hi";
        let mut fields = Fields::new(bytes, whole(bytes));
        let field = fields.next().expect("its first bytes");
        assert!(matches!(field.value, Value::Bytes { is_cut: true, .. }));
        assert!(field.part(2).is_none() && fields.is_damaged);
    }

    #[test]
    fn numbers_are_packed_or_not() {
        let mut bytes = b"\x10\x07\x12\x03\x01\x96\x01\x10\x08\x18\x09".to_vec();
        let ints: Vec<u64> = Ints::new(&bytes, whole(&bytes), 2).collect();
        assert_eq!(ints, [7, 1, 150, 8]);
        bytes.clear();
        put_bytes(&mut bytes, 5, &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0]);
        let times: Vec<u64> = Ints::fixed(&bytes, whole(&bytes), 5).collect();
        assert_eq!(times, [1]);
    }
}
