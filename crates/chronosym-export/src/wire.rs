//! A writer of Protocol Buffers with the field types of pprof and OTLP.

/// A message being written. Fields of value zero are left out, as the format requires.
#[derive(Debug, Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn int(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, 0);
            self.varint(value);
        }
        self
    }

    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        if value != 0 {
            self.key(field, 1);
            self.0.extend(value.to_le_bytes());
        }
        self
    }

    /// Writes empty fields as well: the elements of a table must keep their indices.
    pub fn blob(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.key(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
        self
    }

    pub fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.blob(field, text.as_bytes())
    }

    pub fn message(&mut self, field: u32, make: impl FnOnce(&mut Message)) -> &mut Self {
        let mut message = Message::default();
        make(&mut message);
        self.blob(field, &message.0)
    }

    pub fn packed(&mut self, field: u32, values: impl IntoIterator<Item = u64>) -> &mut Self {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        if packed.0.is_empty() {
            return self;
        }
        self.blob(field, &packed.0)
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_encoding_says() {
        let mut message = Message::default();
        message.int(1, 150).int(2, 0).text(2, "testing");
        message.message(3, |inner| _ = inner.int(1, 150));
        message.packed(6, [3, 270, 86942]).packed(7, []);
        let expected =
            b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7\x05";
        assert_eq!(message.bytes(), expected);
    }
}
