//! `chronosym explain`.

use std::path::Path;

use anyhow::{Result, bail};
use chronosym::runtime::JitDecisions;
use chronosym::{Filter, ProcessIndex, SampleSelection, Timeline};
use chronosym_export::{Explanation, Json};

use crate::args::{AddressQuery, Explain, Usage};
use crate::units::parse_address;
use crate::{load, output, progress, symbolizer};

pub fn run(args: &Explain) -> Result<()> {
    let input = &args.input;
    let Some(address) = parse_address(&args.address) else {
        bail!(Usage(if Path::new(&args.address).is_file() {
            let (trace, address) = (&args.address, input.traces[0].display());
            format!("the trace comes first: chronosym explain {trace} {address}")
        } else {
            format!(
                "'{}' is not an address: expected 0x… or a number; `chronosym methods --match NAME TRACE` lists the addresses of a method",
                args.address
            )
        }));
    };
    let mut options = JitDecisions::options();
    options.samples = SampleSelection::None;
    let loaded = load::load(&input.traces, options, &input.symbols)?;
    progress::notes(&loaded.diagnostics.list);
    let timeline = &loaded.timeline;
    let process = find_process(timeline, &args.query)?;
    let (time, position) = (args.query.time_ns(), args.query.position());
    let symbols = symbolizer::open(&input.symbols, &loaded)?;
    let explanation = Explanation::new(timeline, &symbols, process, (address, position), time)
        .with_decisions(&JitDecisions::new(timeline, &Filter::default()));
    let out = output::open_for(args.format, input.output.as_deref());
    output::write(args.format, out, &Json(&explanation), |out| {
        explanation.write(out)
    })
}

/// Returns the process of the query.
fn find_process(timeline: &Timeline, query: &AddressQuery) -> Result<ProcessIndex> {
    match (query.pid, load::processes(timeline, query)?.as_slice()) {
        (_, [only]) => Ok(*only),
        (pid, _) => {
            let pid = pid.map_or(0, |(pid, _)| pid);
            bail!(Usage(format!(
                "several processes had the id {pid}: {}; select one with --time or --pid {pid}@TIME",
                load::lives_of(timeline, pid).join(", ")
            )))
        }
    }
}
