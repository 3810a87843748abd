//! Little-endian output.

/// Appends to a byte vector.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    fn put_i64(&mut self, value: i64) {
        self.put(&value.to_le_bytes());
    }

    /// Seven bits per byte, low ones first.
    fn put_var(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.put_u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.put_u8(value as u8);
    }

    /// NUL-terminated UTF-16.
    fn put_utf16(&mut self, text: &str) {
        for unit in text.encode_utf16().chain([0]) {
            self.put_u16(unit);
        }
    }

    /// UTF-8 after its varint length.
    fn put_utf8(&mut self, text: &str) {
        self.put_var(text.len() as u64);
        self.put(text.as_bytes());
    }

    /// Bytes after their length as a u16.
    fn put_sized16(&mut self, bytes: &[u8]) {
        self.put_u16(u16::try_from(bytes.len()).expect("row fits into 64 KiB"));
        self.put(bytes);
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Addresses of a stack in the trace's pointer size.
pub(crate) fn stack_bytes(stack: &[u64], pointer_size: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(stack.len() * usize::from(pointer_size));
    for &address in stack {
        if pointer_size == 4 {
            bytes.put_u32(address as u32);
        } else {
            bytes.put_u64(address);
        }
    }
    bytes
}
