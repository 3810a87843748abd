//! EventPipe traces for benches: a made-up one of any length, and a bare pass over one.

/// Returns a trace (V4) of `bodies` methods and `samples` samples of `stacks` distinct stacks.
pub fn synthetic(bodies: u64, stacks: u64, samples: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    chronosym_support::synthetic::nettrace(bodies, stacks, samples, &mut bytes)
        .expect("memory does not fail");
    bytes
}

/// The counts of a bare pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Events, metadata aside.
    pub events: u64,
    /// Events with a stack.
    pub samples: u64,
    /// Rows of the stack blocks; one for no stack at all does not count.
    pub stacks: u64,
    /// Addresses in them.
    pub frames: u64,
    /// A sum of all values read, so that none is optimised away.
    pub sum: u64,
}

/// Reads every event header and every stack address of a V4 trace with compressed headers, and does
/// nothing with them: the minimum work of any reader. `None` if the bytes are not such a trace.
pub fn bare_pass(bytes: &[u8]) -> Option<Seen> {
    let mut seen = Seen::default();
    if !bytes.starts_with(b"Nettrace\x14\0\0\0!FastSerialization.1") {
        return None;
    }
    let mut at = 32;
    // Begin, Begin, 1, two versions, the name's length, the name, 6, the content, 6; a null
    // reference ends it all.
    while bytes.get(at) == Some(&5) {
        let length = u32_at(bytes, at + 11)? as usize;
        let name = bytes.get(at + 15..at + 15 + length)?;
        at += 15 + length + 1;
        if name == b"Trace" {
            at += 48 + 1;
            continue;
        }
        let size = u32_at(bytes, at)? as usize;
        at = (at + 4).next_multiple_of(4);
        let content = bytes.get(at..at + size)?;
        at += size + 1;
        match name {
            b"EventBlock" => events(content, &mut seen)?,
            b"StackBlock" => stacks(content, &mut seen)?,
            _ => {}
        }
    }
    Some(seen)
}

fn events(block: &[u8], seen: &mut Seen) -> Option<()> {
    let mut bytes = block.get(usize::from(*block.first()?)..)?;
    let (mut time, mut stack, mut size) = (0_u64, 0_u64, 0_u64);
    while let Some((&flags, rest)) = bytes.split_first() {
        bytes = rest;
        if flags & 1 != 0 {
            seen.sum = seen.sum.wrapping_add(number(&mut bytes)?);
        }
        if flags & 2 != 0 {
            for _ in 0..3 {
                number(&mut bytes)?;
            }
        }
        if flags & 4 != 0 {
            number(&mut bytes)?;
        }
        if flags & 8 != 0 {
            stack = number(&mut bytes)?;
        }
        time = time.wrapping_add(number(&mut bytes)?);
        for bit in [16, 32] {
            if flags & bit != 0 {
                bytes = bytes.get(16..)?;
            }
        }
        if flags & 128 != 0 {
            size = number(&mut bytes)?;
        }
        bytes = bytes.get(size as usize..)?;
        seen.events += 1;
        seen.samples += u64::from(stack != 0);
        seen.sum = seen.sum.wrapping_add(time);
    }
    Some(())
}

fn stacks(block: &[u8], seen: &mut Seen) -> Option<()> {
    let count = u32_at(block, 4)?;
    let mut bytes = block.get(8..)?;
    for _ in 0..count {
        let size = u32_at(bytes, 0)? as usize;
        let (addresses, _) = bytes.get(4..4 + size)?.as_chunks::<8>();
        for &address in addresses {
            seen.sum = seen.sum.wrapping_add(u64::from_le_bytes(address));
        }
        seen.stacks += u64::from(size > 0);
        seen.frames += addresses.len() as u64;
        bytes = &bytes[4 + size..];
    }
    Some(())
}

/// Seven bits a byte, low ones first.
#[inline(always)]
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
        shift += 7;
        if shift > 63 {
            return None;
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}
