//! Reads jitdumps: the code that a runtime compiled, with times.

use std::io::Read;

use chronosym_perf::jitdump::{Reader, Record};
use chronosym_perf::{Error, TimeConversion};
use chronosym_types::AStr;

use chronosym_core::DiagnosticKind::{Damage, Unused};
use chronosym_core::facts::{At, Fact, NativeMethod, Text};
use chronosym_core::{Diagnostics, Session};

pub(crate) fn describe<R: Read>(reader: &Reader<R>, session: &mut Session) {
    let facts = session.facts();
    facts.format = "jitdump".to_owned();
    facts.version = "1".to_owned();
    facts.pointer_size = Some(8);
    facts.process_id = Some(reader.header().pid);
}

/// The process of a session to which a jitdump belongs, and the conversion of its times.
pub(crate) struct Target<'a> {
    pub process: u32,
    /// Converts a time of its clock to the session's.
    pub time: &'a mut dyn FnMut(u64) -> u64,
}

/// Reads a jitdump into a session. Events of the runtime take precedence where they describe the
/// same code.
pub(crate) fn read_from<R: Read>(
    mut reader: Reader<R>,
    session: &mut Session,
    target: Target<'_>,
) -> (Diagnostics, Result<(), Error>) {
    let end = loop {
        let record = match reader.next_record() {
            Ok(Some(record)) => record,
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        };
        let mut at = |time| At::new((target.time)(time)).process(target.process);
        match record {
            Record::Load(load) => {
                let at = at(load.time);
                let address = load.address;
                let Ok(size) = u32::try_from(load.size) else {
                    continue;
                };
                if size == 0 || session.is_stated_by_events(at, address) {
                    continue;
                }
                let paths: Vec<_> = (load.lines.clone())
                    .map(|line| String::from_utf8_lossy(line.path))
                    .collect();
                let rows: Vec<(u64, &str, u32)> = (load.lines.zip(&paths))
                    .map(|(line, path)| (line.address, &**path, line.line))
                    .collect();
                let name = Text::Narrow(AStr::new(load.name));
                let method = NativeMethod::new(name, address, size).with_lines(&rows);
                session.apply(at.thread(load.tid.into()), method);
            }
            Record::Move(moved) => session.apply(
                at(moved.time).thread(moved.tid.into()),
                Fact::NativeMove {
                    from: moved.old_address,
                    to: moved.new_address,
                },
            ),
            _ => {}
        }
    };
    (diagnostics(reader.diagnostics()), end)
}

/// Converts the diagnostics of the jitdump reader.
pub(crate) fn diagnostics(counted: &chronosym_perf::jitdump::Diagnostics) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.add_gaps(&counted.gaps);
    #[rustfmt::skip]
    let counts = [
        (counted.bad_records, Damage, "records of the jitdump are invalid and were skipped"),
        (counted.bad_lines, Damage, "line tables of the jitdump are invalid and were skipped"),
        (counted.unknown_records, Unused, "records of the jitdump are of an unknown type"),
        (counted.late_records, Unused, "records of the jitdump are out of time order"),
    ];
    diagnostics.add_counts(&counts);
    diagnostics
}

/// Converts a time of a jitdump's clock to ns. Cycle counts need the conversion that the recording
/// states.
pub(crate) fn nanoseconds(time: u64, has_cycles: bool, cycles: Option<TimeConversion>) -> u64 {
    match cycles {
        Some(cycles) if has_cycles => cycles.ns(time),
        _ => time,
    }
}
