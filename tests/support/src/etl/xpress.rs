//! A plain XPRESS LZ77 encoder: greedy, one candidate per position.

/// Appends `input`, compressed as one stream, to `out`.
pub fn compress(input: &[u8], out: &mut Vec<u8>) {
    const MIN: usize = 3;
    const WINDOW: usize = 8192;
    let mut last = vec![u32::MAX; 1 << 12];
    let hash = |at: usize| {
        let word = u32::from_le_bytes([input[at], input[at + 1], input[at + 2], 0]);
        (word.wrapping_mul(0x9e37_79b1) >> 20) as usize
    };
    let mut flags = Flags {
        at: out.len(),
        word: 0,
        used: 0,
    };
    out.extend_from_slice(&[0; 4]);
    // Position of a byte whose high nibble is unused.
    let mut half: Option<usize> = None;
    let mut at = 0;
    while at < input.len() {
        let mut length = 0;
        let mut distance = 0;
        if at + MIN <= input.len() {
            let candidate = std::mem::replace(&mut last[hash(at)], at as u32) as usize;
            if candidate < at && at - candidate <= WINDOW {
                distance = at - candidate;
                length = input[candidate..]
                    .iter()
                    .zip(&input[at..])
                    .take_while(|(a, b)| a == b)
                    .count();
            }
        }
        flags.push(length >= MIN, out);
        if length >= MIN {
            put_match(distance, length, &mut half, out);
            at += length;
        } else {
            out.push(input[at]);
            at += 1;
        }
    }
    flags.finish(out);
}

fn put_match(distance: usize, length: usize, half: &mut Option<usize>, out: &mut Vec<u8>) {
    let coded = length - 3;
    let token = ((distance - 1) << 3 | coded.min(7)) as u16;
    out.extend_from_slice(&token.to_le_bytes());
    if coded < 7 {
        return;
    }
    let nibble = (coded - 7).min(15) as u8;
    match half.take() {
        Some(at) => out[at] |= nibble << 4,
        None => {
            *half = Some(out.len());
            out.push(nibble);
        }
    }
    if nibble < 15 {
        return;
    }
    if coded - 22 < 255 {
        out.push((coded - 22) as u8);
    } else {
        out.push(255);
        match u16::try_from(coded) {
            Ok(short) => out.extend_from_slice(&short.to_le_bytes()),
            Err(_) => {
                out.extend_from_slice(&[0; 2]);
                out.extend_from_slice(&(coded as u32).to_le_bytes());
            }
        }
    }
}

/// The current flag word: one bit per token, the highest first.
struct Flags {
    at: usize,
    word: u32,
    used: u32,
}

impl Flags {
    fn push(&mut self, is_match: bool, out: &mut Vec<u8>) {
        if self.used == 32 {
            self.store(out);
            *self = Self {
                at: out.len(),
                word: 0,
                used: 0,
            };
            out.extend_from_slice(&[0; 4]);
        }
        self.word = self.word << 1 | u32::from(is_match);
        self.used += 1;
    }

    fn store(&self, out: &mut [u8]) {
        out[self.at..self.at + 4].copy_from_slice(&self.word.to_le_bytes());
    }

    /// Bits without a token are set: to a decoder they are a match past the end of the input.
    fn finish(mut self, out: &mut [u8]) {
        let free = 32 - self.used;
        if free > 0 {
            self.word = self.word.checked_shl(free).unwrap_or(0) | (u32::MAX >> self.used);
        }
        self.store(out);
    }
}
