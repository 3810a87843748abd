//! .etl files without some of their buffers.

use chronosym_support::etl::{At, EtlWriter, Image, Op, Options, Process, buffers};

use super::Random;

/// The file without the buffers that `drop` selects by number; the first has the header.
pub fn without(bytes: &[u8], drop: impl Fn(usize) -> bool) -> Vec<u8> {
    let all = buffers(bytes);
    let kept = all
        .into_iter()
        .enumerate()
        .filter(|(number, _)| *number == 0 || !drop(*number));
    kept.flat_map(|(_, buffer)| buffer.iter().copied())
        .collect()
}

/// A recording of a process that maps and unmaps images at the same addresses.
pub fn remapping() -> Vec<u8> {
    const PID: u32 = 42;
    const SLOT: u64 = 0x1_0000;
    let options = Options {
        cpus: 2,
        buffer_size: 2 << 10,
        ..Options::default()
    };
    let mut writer = EtlWriter::new(Vec::new(), options).expect("memory");
    let mut random = Random::new(1);
    let process = Process {
        pid: PID,
        image: "app.exe",
        ..Process::default()
    };
    let begin = writer.process(At::us(1), Op::Start, &process);
    let begin = begin.and_then(|()| writer.thread(At::us(2), Op::Start, PID, 7));
    begin.expect("memory");
    let mut mapped = [None; 4];
    for step in 0..4_000 {
        let at = At::us(10 + step)
            .cpu(random.below(2) as u16)
            .pid(PID)
            .tid(7);
        let slot = random.below(mapped.len());
        let base = 0x7ff6_0000_0000 + slot as u64 * SLOT;
        let path = |name: usize| format!(r"\Device\HarddiskVolume1\image{name}.dll");
        let image = |op, name| {
            let path = path(name);
            (
                op,
                Image {
                    base,
                    size: SLOT,
                    pid: PID,
                    path: path.leak(),
                    ..Image::default()
                },
            )
        };
        let event = match (random.below(8), mapped[slot]) {
            (0, Some(name)) => {
                mapped[slot] = None;
                Some(image(Op::Unload, name))
            }
            (0, None) => {
                mapped[slot] = Some(step as usize);
                Some(image(Op::Load, step as usize))
            }
            _ => None,
        };
        let written = match event {
            Some((op, image)) => writer.image(at, op, &image),
            None => writer.sample(at, base + 0x10, 7),
        };
        written.expect("memory");
    }
    writer.finish().expect("memory")
}
