//! Parses Protocol Buffers according to their encoding (protobuf.dev, "Encoding").

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub enum Value<'b> {
    /// A number.
    Int(u64),
    /// Text, a message, or packed numbers.
    Bytes(&'b [u8]),
}

/// Returns the fields of a message.
///
/// # Panics
///
/// If the bytes are not a message.
pub fn fields(mut bytes: &[u8]) -> Vec<(u64, Value<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Int(varint(&mut bytes)),
            1 => Value::Int(u64::from_le_bytes(*array(&mut bytes))),
            2 => {
                let len = usize::try_from(varint(&mut bytes)).expect("a length");
                let (own, rest) = bytes.split_at_checked(len).expect("a whole field");
                bytes = rest;
                Value::Bytes(own)
            }
            wire => panic!("wire type {wire}"),
        };
        fields.push((key >> 3, value));
    }
    fields
}

/// Packed numbers.
pub fn packed(mut bytes: &[u8]) -> Vec<u64> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(varint(&mut bytes));
    }
    numbers
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let [byte] = *array::<1>(bytes);
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    panic!("a number without end");
}

fn array<'b, const N: usize>(bytes: &mut &'b [u8]) -> &'b [u8; N] {
    let (own, rest) = bytes.split_first_chunk().expect("a whole field");
    *bytes = rest;
    own
}
