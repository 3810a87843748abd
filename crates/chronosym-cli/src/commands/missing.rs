//! `chronosym symbols`.

use anyhow::Result;
use chronosym_export::MissingFiles;

use crate::args::OfTrace;
use crate::load;
use crate::output;
use crate::profiled::profile;

pub fn run(args: &OfTrace) -> Result<()> {
    let (profile, symbols, _) = profile(args)?;
    let missing = symbols.missing(&profile);
    let traces = load::shell_words(&args.input.traces);
    let missing = MissingFiles::new(&profile, &missing, &traces, args.max_lines);
    let out = output::open_for(args.format, args.input.output.as_deref());
    output::write(args.format, out, &missing, |out| missing.write(out))
}
