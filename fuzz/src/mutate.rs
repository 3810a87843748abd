//! Random changes of inputs, the same on every run, for systems without libFuzzer.
//!
//! It does not see which code an input reaches, so it finds only bugs near its inputs.

/// Numbers without a pattern (xorshift64*), from a seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub const fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Less than `most`, or 0.
    pub fn below(&mut self, most: usize) -> usize {
        (self.next() >> 16) as usize % most.max(1)
    }
}

const EDGES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Changes an input at one to eight positions; `words` are those of the format, `other` is another
/// input.
pub fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[Vec<u8>], random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len() + 1);
        let left = bytes.len() - at;
        let len = 1 + random.below(left.min(32));
        match random.below(10) {
            0 | 1 if left > 0 => bytes[at] ^= 1 << random.below(8),
            2 if left > 0 => bytes[at] = random.next() as u8,
            // A number of any width at an edge, or off by one.
            3 | 4 => {
                let width = [1, 2, 4, 8][random.below(4)].min(left);
                let edge = EDGES[random.below(EDGES.len())];
                let number = edge.wrapping_add(random.below(3) as u64).wrapping_sub(1);
                bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
            5 if !words.is_empty() => {
                let word = &words[random.below(words.len())];
                let over = if random.below(2) == 0 {
                    word.len().min(left)
                } else {
                    0
                };
                bytes.splice(at..at + over, word.iter().copied());
            }
            6 if left > 0 => drop(bytes.drain(at..at + len.min(left))),
            7 if left > 0 => {
                let again = bytes[at..at + len.min(left)].to_vec();
                bytes.splice(at..at, again);
            }
            8 if !other.is_empty() => {
                let from = random.below(other.len());
                let len = len.min(other.len() - from);
                bytes.splice(at..at, other[from..from + len].iter().copied());
            }
            9 if random.below(8) == 0 => bytes.truncate(at),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_changes_the_same() {
        let changed = |seed| {
            let mut bytes = b"some input to change".to_vec();
            change(
                &mut bytes,
                b"other",
                &[b"word".to_vec()],
                &mut Random::new(seed),
            );
            bytes
        };
        assert_eq!(changed(7), changed(7));
        let all: std::collections::BTreeSet<_> = (0..100).map(changed).collect();
        assert!(all.len() > 80, "{}", all.len());
    }
}
