//! Makes 100,000 queries of a trace (`answers TRACE > QUERIES`), and answers them as the programs in tests/languages do
//! (`answers TRACE QUERIES [ROUNDS]`), which must print the same.

use std::error::Error;
use std::io::{BufWriter, Write, stdout};
use std::sync::Arc;
use std::time::Instant;

use chronosym::{
    AddressQuery, Filter, FrameTable, Options, Position, QueryProcess, ResolvedBatch, Resolver,
    TableFrame, TextId, Timeline,
};

const QUERIES: usize = 100_000;
/// Bytes of a `chronosym_query`.
const QUERY: usize = 24;

/// The addresses of samples, again and again, and some at which there may be nothing.
fn write_queries(timeline: &Arc<Timeline>, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut addresses = Vec::new();
    timeline.for_each_sample(&Filter::default(), |class, time| {
        let thread = timeline.thread_view(class.thread);
        let process = thread.and_then(|thread| timeline.process_view(thread.process));
        let Some(pid) = process.and_then(|process| process.pid) else {
            return;
        };
        let mut position = class.kind.leaf_position();
        for address in timeline.stacks().addresses(class.stack) {
            addresses.push((address, time, pid, position));
            position = Position::Return;
        }
    });
    if addresses.is_empty() {
        return Err("the trace has no samples".into());
    }
    for (i, &(address, time, pid, position)) in addresses.iter().cycle().take(QUERIES).enumerate() {
        let address = if i % 50 == 49 {
            address ^ 1 << 33
        } else {
            address
        };
        out.write_all(&address.to_le_bytes())?;
        out.write_all(&time.to_le_bytes())?;
        out.write_all(&pid.to_le_bytes())?;
        out.write_all(&u32::from(position == Position::Return).to_le_bytes())?;
    }
    Ok(())
}

fn read_queries(path: &str) -> Result<Vec<AddressQuery>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let word = |at: &[u8]| u64::from_le_bytes(at.try_into().unwrap_or_default());
    let queries = bytes.chunks_exact(QUERY).map(|it| {
        let last = word(&it[16..24]);
        AddressQuery {
            address: word(&it[..8]),
            time_ns: word(&it[8..16]),
            process: QueryProcess::Pid(last as u32),
            position: if last >> 32 == 0 {
                Position::Exact
            } else {
                Position::Return
            },
        }
    });
    Ok(queries.collect())
}

fn write_frame(
    table: &FrameTable,
    frame: TableFrame,
    out: &mut impl Write,
) -> Result<(), std::io::Error> {
    let at = frame.index();
    let text = |column: &[TextId]| table.text(column[at]);
    write!(
        out,
        "{}!{}|{}|{}:{}:{}|{}|{}|{}|{}|{}|{}\t",
        text(table.module()),
        text(table.method()),
        text(table.signature()),
        text(table.file()),
        table.line()[at],
        table.column()[at],
        u8::from(table.inlined()[at]),
        table.tier()[at].map_or("", |it| it.name()),
        table.evidence()[at].map_or("", |it| it.as_str()),
        table.certainty()[at].map_or("", |it| it.as_str()),
        table.reason()[at].map_or("", |it| it.as_str()),
        table.line_reason()[at].map_or("", |it| it.as_str()),
    )
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let trace = arguments
        .first()
        .ok_or("usage: answers TRACE [QUERIES [ROUNDS]]")?;
    let (timeline, _) = chronosym::open(trace)?.timeline(Options::default())?;
    let mut out = BufWriter::new(stdout().lock());
    let Some(path) = arguments.get(1) else {
        write_queries(&timeline, &mut out)?;
        return Ok(out.flush()?);
    };
    let queries = read_queries(path)?;
    let mut resolver = Resolver::new(&timeline, None);
    let mut batch = ResolvedBatch::default();
    resolver.resolve_batch(&queries, &mut batch);
    for query in 0..batch.len() {
        for &frame in batch.frames_of(query) {
            write_frame(resolver.frame_table(), frame, &mut out)?;
        }
        writeln!(out)?;
    }
    out.flush()?;
    if let Some(rounds) = arguments.get(2) {
        let mut best = f64::MAX;
        for _ in 0..rounds.parse()? {
            let start = Instant::now();
            resolver.resolve_batch(&queries, &mut batch);
            best = best.min(start.elapsed().as_nanos() as f64);
        }
        eprintln!("{:.2}", best / queries.len() as f64);
    }
    Ok(())
}
