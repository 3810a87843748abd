//! A method between what calls it and what it calls.

use std::io::{self, Write};

use chronosym::Profile;
use chronosym_types::escape::terminal;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::fit::fit;
use crate::header::describe;
use crate::rows::Rows;
use crate::text::write_line;
use crate::top::TopOptions;

/// A method with its callers and callees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Butterfly {
    /// What was asked for: several, if the text fits several.
    pub methods: Vec<String>,
    /// All samples of the profile.
    pub samples: u64,
    /// Samples whose innermost frame is one of the methods.
    #[serde(rename = "self")]
    pub own: u64,
    /// Samples on whose stack one of the methods is.
    pub total: u64,
    /// What called them, the most first; of methods that call themselves, what called the outermost. All add up to the total.
    pub callers: Vec<Neighbour>,
    /// What they called, the most first; of methods that call themselves, what the innermost called. With `own` all add up to
    /// the total.
    pub callees: Vec<Neighbour>,
}

/// A caller or callee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// The method; `[thread]` calls what is outermost.
    pub name: String,
    /// Samples that have the call on their stack.
    pub samples: u64,
}

impl Butterfly {
    /// The methods that `text` means: those of which it is the whole name, else those whose names end with it, else those whose
    /// labels have it in them. `None` if there is none on any stack.
    pub fn new(profile: &Profile, text: &str) -> Option<Self> {
        let resolver = &profile.resolver;
        let rows = Rows::new(resolver, false);
        let wanted = rows.matching(text);
        let row = |frame| rows.of[resolver.frame(frame).function.id().index()] as usize;
        let (mut own, mut total) = (0, 0);
        let mut met = vec![false; rows.rows.len()];
        let mut callers: FxHashMap<Option<usize>, u64> = FxHashMap::default();
        let mut callees: FxHashMap<Option<usize>, u64> = FxHashMap::default();
        for entry in &profile.entries {
            let mut called = None;
            // Of the innermost one what it called, of the outermost one whether it was met and is waiting for its caller.
            let (mut innermost, mut waiting) = (None, false);
            let mut caller = None;
            for frame in resolver.stack(entry.stack) {
                let row = row(frame);
                if wanted[row] {
                    met[row] = true;
                    innermost.get_or_insert(called);
                    (waiting, caller) = (true, None);
                } else if std::mem::take(&mut waiting) {
                    caller = Some(row);
                }
                called = Some(row);
            }
            let Some(innermost) = innermost else {
                continue;
            };
            total += entry.samples;
            match innermost {
                None => own += entry.samples,
                callee => *callees.entry(callee).or_default() += entry.samples,
            }
            *callers.entry(caller).or_default() += entry.samples;
        }
        let neighbours = |counts: FxHashMap<Option<usize>, u64>| {
            let neighbour = |(row, samples): (Option<usize>, u64)| Neighbour {
                name: row.map_or("[thread]".to_owned(), |row| rows.label(row as u32)),
                samples,
            };
            let mut all: Vec<Neighbour> = counts.into_iter().map(neighbour).collect();
            all.sort_by(|a, b| (b.samples, &a.name).cmp(&(a.samples, &b.name)));
            all
        };
        let mut methods: Vec<String> = (0..rows.rows.len())
            .filter(|&row| met[row])
            .map(|row| rows.label(row as u32))
            .collect();
        methods.sort();
        (total > 0).then(|| Butterfly {
            methods,
            samples: profile.samples(),
            own,
            total,
            callers: neighbours(callers),
            callees: neighbours(callees),
        })
    }
}

/// More methods that one text means are not listed.
pub(crate) const METHODS: usize = 10;

/// Writes the callers, the method, and its callees; shares are of the method's samples.
pub fn write_butterfly(
    profile: &Profile,
    butterfly: &Butterfly,
    options: TopOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let of = |n: u64, all: u64| n as f64 * 100.0 / all as f64;
    let share = |n: u64| of(n, butterfly.total);
    let room = options.width.map(|width| width.saturating_sub(21));
    let write_side = |side: &[Neighbour], out: &mut dyn Write| -> io::Result<()> {
        for neighbour in side.iter().take(options.most) {
            let share = share(neighbour.samples);
            let (samples, name) = (neighbour.samples, terminal(&neighbour.name));
            let name = fit(&name, room);
            let line = format!("{share:>6.1}% {samples:>9}    {name}");
            write_line(&mut &mut *out, &line, share, options.width, options.color)?;
        }
        match side.len().saturating_sub(options.most) {
            0 => Ok(()),
            more => writeln!(out, "{:>17}    {more} more: see -n", ""),
        }
    };
    writeln!(out, "\n{:>7} {:>9}  method", "share", "samples")?;
    write_side(&butterfly.callers, out)?;
    for (at, method) in butterfly.methods.iter().take(METHODS).enumerate() {
        let head = match at {
            0 => format!("{:>6.1}% {:>9}", 100.0, butterfly.total),
            _ => format!("{:>17}", ""),
        };
        let line = format!("{head}  {}", fit(&terminal(method), room));
        write_line(out, &line, 100.0, options.width, options.color)?;
    }
    if butterfly.methods.len() > METHODS {
        let more = butterfly.methods.len() - METHODS;
        writeln!(out, "{:>17}  and {more} more of that name", "")?;
    }
    let (own, total) = (butterfly.own, butterfly.total);
    let line = format!("{:>6.1}% {own:>9}    [self]", share(own));
    write_line(out, &line, share(own), options.width, options.color)?;
    write_side(&butterfly.callees, out)?;
    let (own, total) = (of(own, butterfly.samples), of(total, butterfly.samples));
    writeln!(out, "\nof all samples: self {own:.1}%, total {total:.1}%")
}
