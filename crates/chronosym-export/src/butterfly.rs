//! A method between what calls it and what it calls.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::Profile;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::function_groups::{FunctionGroups, Label};
use crate::table::{Name, Table, TableOptions};
use crate::weight::{Amount, Counts, WeightUnit};

/// A method with its callers and callees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Butterfly {
    /// What was asked for: several, if the text fits several.
    pub methods: Vec<Label>,
    /// All samples of the profile.
    #[serde(flatten)]
    pub all: Amount,
    /// Those of the methods.
    #[serde(flatten)]
    pub counts: Counts,
    /// What called them, the most first; of methods that call themselves, what called the outermost. All add up to the total.
    pub callers: Vec<Neighbour>,
    /// What they called, the most first; of methods that call themselves, what the innermost called. With self all add up to
    /// the total.
    pub callees: Vec<Neighbour>,
}

/// A caller or callee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// The method; `[thread]` calls what is outermost.
    #[serde(flatten)]
    pub label: Label,
    /// Samples that have the call on their stack.
    #[serde(flatten)]
    pub amount: Amount,
}

impl Butterfly {
    /// The methods that `text` means: those of which it is the whole name, else those whose names end with it, else those whose
    /// labels have it in them. `None` if there is none on any stack.
    pub fn new(profile: &Profile, text: &str) -> Option<Self> {
        let resolver = &profile.resolver;
        let rows = FunctionGroups::new(resolver, false);
        let wanted = rows.matching(text);
        let mut counts = Counts::default();
        let mut met = vec![false; rows.rows.len()];
        let mut callers: FxHashMap<Option<usize>, Amount> = FxHashMap::default();
        let mut callees: FxHashMap<Option<usize>, Amount> = FxHashMap::default();
        for entry in &profile.entries {
            let mut called = None;
            // Of the innermost one what it called, of the outermost one whether it was met and is waiting for its caller.
            let (mut innermost, mut waiting) = (None, false);
            let mut caller = None;
            for frame in resolver.stack(entry.stack) {
                let row = rows.of_frame(resolver.frame(frame));
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
            counts.total.add(entry);
            match innermost {
                None => counts.own.add(entry),
                callee => callees.entry(callee).or_default().add(entry),
            }
            callers.entry(caller).or_default().add(entry);
        }
        let unit = WeightUnit::of(profile);
        let neighbours = |amounts: FxHashMap<Option<usize>, Amount>| {
            let thread = || Label::plain("[thread]".to_owned());
            let neighbour = |(row, amount): (Option<usize>, Amount)| Neighbour {
                label: row.map_or_else(thread, |row| rows.name(row)),
                amount,
            };
            let mut all: Vec<Neighbour> = amounts.into_iter().map(neighbour).collect();
            let key = |n: &Neighbour| (Reverse(n.amount.weight(unit)), n.label.name.clone());
            all.sort_by_cached_key(key);
            all
        };
        (counts.total.samples > 0).then(|| Butterfly {
            methods: rows.names((0..met.len()).filter(|&row| met[row])),
            all: Amount::all(profile),
            counts,
            callers: neighbours(callers),
            callees: neighbours(callees),
        })
    }
}

/// Writes the callers, the method, and its callees; shares are of the method's samples.
pub fn write_butterfly(
    profile: &Profile,
    butterfly: &Butterfly,
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::begin(profile, options, out)? else {
        return Ok(());
    };
    let Counts { own, total } = butterfly.counts;
    let of_all = [own, total].map(|amount| table.share_of(&amount));
    table.all = total.weight(table.unit);
    let head = table.head_of_amount();
    writeln!(table.out, "\n{head}  method")?;
    write_side(&butterfly.callers, &mut table)?;
    table.methods(&table.amount(&total), &butterfly.methods)?;
    let (cells, share) = (table.amount(&own), table.share_of(&own));
    table.row(&cells, share, Name::of("  [self]", None))?;
    write_side(&butterfly.callees, &mut table)?;
    let [own, total] = of_all;
    table.text(&format!(
        "\nof all samples: self {own:.1}%, total {total:.1}%"
    ))
}

fn write_side(side: &[Neighbour], table: &mut Table<'_, impl Write>) -> io::Result<()> {
    for neighbour in side.iter().take(table.options.most) {
        let text = neighbour.label.text();
        let name = Name {
            before: "  ",
            ..Name::of(&text, neighbour.label.kind)
        };
        let (cells, share) = (
            table.amount(&neighbour.amount),
            table.share_of(&neighbour.amount),
        );
        table.row(&cells, share, name)?;
    }
    match side.len().saturating_sub(table.options.most) {
        0 => Ok(()),
        more => writeln!(table.out, "{:>17}    {more} more: see -n", ""),
    }
}
