//! A synthetic EventPipe trace of any length.

use std::io::{self, Write};

use crate::nettrace::NettraceWriter;
use crate::payload::Method;

const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const SAMPLER: &str = "Microsoft-DotNETCore-SampleProfiler";
/// The payload of a sample of a thread in managed code.
const MANAGED: [u8; 4] = [2, 0, 0, 0];
/// The base of synthetic code.
const CODE: u64 = 0x7f10_0000_0000;
const SIZE: u64 = 0x100;
/// Samples between two sequence points.
const REGION: usize = 50_000;

/// Writes a trace (V4) of `bodies` methods and `samples` samples of `stacks` distinct stacks, 8 to
/// 39 frames deep. One of eight threads is sampled each microsecond.
///
/// # Errors
///
/// Those of `out`.
pub fn nettrace(bodies: u64, stacks: u64, samples: usize, out: &mut impl Write) -> io::Result<()> {
    let mut writer = NettraceWriter::v4();
    let load = writer.event_type(RUNTIME, 143, 2);
    let sample = writer.event_type(SAMPLER, 0, 0);
    for id in 0..bodies {
        let name = format!("Method{id}");
        let method = Method {
            id: 0x1000 + id,
            module: 1,
            start: CODE + id * SIZE,
            size: SIZE as u32 - 0x20,
            token: 0x0600_0001 + id as u32,
            flags: 0x8 | 3 << 7,
            names: Some(("Made.Up.Program", &name, "void  (int32)")),
            clr: 9,
            code_version: 0,
        };
        writer.event(load, id as i64 * 100, 1, &[], &method.encode(2));
    }
    let begin = bodies as i64 * 100;
    let stack_of: Vec<Vec<u64>> = (0..stacks)
        .map(|stack| {
            (0..8 + stack % 32)
                .map(|depth| {
                    // Callers far from the leaf are shared, as they are in programs.
                    let which = if depth < 4 { stack } else { depth * 31 };
                    let body = which.wrapping_mul(0x9e37_79b9).wrapping_add(depth) % bodies;
                    CODE + body * SIZE + which % (SIZE - 0x20)
                })
                .collect()
        })
        .collect();
    for i in 0..samples {
        let stack = (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let stack = &stack_of[(stack % stacks) as usize];
        let thread = 1 + i as u64 % 8;
        writer.event(sample, begin + i as i64 * 1000, thread, stack, &MANAGED);
        if i % REGION == REGION - 1 {
            writer.flush();
            writer.sequence_point();
            out.write_all(&writer.take())?;
        }
    }
    out.write_all(&writer.finish())
}
