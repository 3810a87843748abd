//! Bytes as choices that determine a structured input.

/// Values that break things more often than others.
const NUMBERS: [u64; 12] = [
    0,
    1,
    2,
    0x7f,
    0xff,
    0x1000,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_8000_0000_0000,
    u64::MAX,
];

/// Reads choices off the front of the bytes; when they have ended, every choice is 0.
#[derive(Clone, Debug)]
pub struct Choices<'d>(&'d [u8]);

impl<'d> Choices<'d> {
    /// Choices of these bytes.
    #[must_use]
    pub const fn new(data: &'d [u8]) -> Self {
        Choices(data)
    }

    /// Whether none are left.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.0.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// Returns a number less than `most`, which is at most 256.
    pub fn below(&mut self, most: u64) -> u64 {
        u64::from(self.byte()) % most.max(1)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A small number, one at an edge, or any.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            kind @ 0..0xc0 => u64::from(kind),
            kind @ 0xc0..0xf0 => {
                let edge = NUMBERS[usize::from(kind) % NUMBERS.len()];
                edge.wrapping_add(self.below(5)).wrapping_sub(2)
            }
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// As [`number`](Self::number), in 32 bits.
    pub fn word(&mut self) -> u32 {
        self.number() as u32
    }

    /// Up to 63 bytes.
    pub fn bytes(&mut self) -> &'d [u8] {
        let len = (self.byte() & 63) as usize;
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// A name: any text, often a plain or a hostile one.
    pub fn text(&mut self) -> String {
        match self.byte() & 7 {
            0 => String::new(),
            1 => "\u{1b}[31m</script>;\u{202e}=1\n".into(),
            2 => "A".repeat(usize::from(self.byte()) * 8),
            3 | 4 => format!("Name{}", self.below(4)),
            _ => String::from_utf8_lossy(self.bytes()).replace('\0', " "),
        }
    }

    /// Returns the remaining bytes.
    #[must_use]
    pub const fn rest(&self) -> &'d [u8] {
        self.0
    }
}
