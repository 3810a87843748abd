//! A method with its callers and callees.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::Profile;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::function_groups::{FunctionGroups, Label};
use crate::pattern::Pattern;
use crate::table::{Name, Table, TableOptions};
use crate::weight::{Amount, Counts, WeightUnit};

/// The callers and callees of one or more methods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Butterfly {
    /// The methods that match the query.
    pub methods: Vec<Label>,
    /// All samples of the profile.
    #[serde(flatten)]
    pub all: Amount,
    /// The samples of the methods.
    #[serde(flatten)]
    pub counts: Counts,
    /// Their callers, heaviest first; for recursive methods, the callers of the outermost call.
    /// They add up to the total.
    pub callers: Vec<Neighbour>,
    /// Their callees, heaviest first; for recursive methods, the callees of the innermost call.
    /// With self they add up to the total.
    pub callees: Vec<Neighbour>,
}

/// A caller or callee.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Neighbour {
    /// The method; `[thread]` calls the outermost frame.
    #[serde(flatten)]
    pub label: Label,
    /// The samples whose stack contains the call.
    #[serde(flatten)]
    pub amount: Amount,
}

impl Butterfly {
    /// Returns the methods that match a pattern: by their whole name, else by the end of their name,
    /// else by any part of their label. `None` if none is on any stack.
    pub fn new(profile: &Profile, pattern: &Pattern) -> Option<Self> {
        let resolver = &profile.resolver;
        let groups = FunctionGroups::new(resolver, false);
        let wanted = groups.matching(pattern);
        let mut counts = Counts::default();
        let mut met = vec![false; groups.all.len()];
        let mut callers: FxHashMap<Option<usize>, Amount> = FxHashMap::default();
        let mut callees: FxHashMap<Option<usize>, Amount> = FxHashMap::default();
        for entry in &profile.entries {
            let mut called = None;
            // The callee of the innermost call, and whether the caller of the outermost one is
            // still to come.
            let (mut innermost, mut waiting) = (None, false);
            let mut caller = None;
            for frame in resolver.stack(entry.stack) {
                let group = groups.of_frame(resolver.frame(frame));
                if wanted[group] {
                    met[group] = true;
                    innermost.get_or_insert(called);
                    (waiting, caller) = (true, None);
                } else if std::mem::take(&mut waiting) {
                    caller = Some(group);
                }
                called = Some(group);
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
            let neighbour = |(group, amount): (Option<usize>, Amount)| Neighbour {
                label: group.map_or_else(thread, |group| groups.label(group)),
                amount,
            };
            let mut all: Vec<Neighbour> = amounts.into_iter().map(neighbour).collect();
            let key = |n: &Neighbour| (Reverse(n.amount.weight(unit)), n.label.name.clone());
            all.sort_by_cached_key(key);
            all
        };
        (counts.total.samples > 0).then(|| Butterfly {
            methods: groups.labels((0..met.len()).filter(|&group| met[group])),
            all: Amount::all(profile),
            counts,
            callers: neighbours(callers),
            callees: neighbours(callees),
        })
    }
}

/// Writes the callers, the method, and its callees; percentages are of the method's samples.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_butterfly(
    profile: &Profile,
    butterfly: &Butterfly,
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::start(profile, options, out)? else {
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
    table.line(&cells, share, Name::of("  [self]", None))?;
    write_side(&butterfly.callees, &mut table)?;
    let [own, total] = of_all;
    table.text(&format!(
        "\nof all samples: self {own:.1}%, total {total:.1}%"
    ))
}

fn write_side(side: &[Neighbour], table: &mut Table<'_, impl Write>) -> io::Result<()> {
    for neighbour in side.iter().take(table.options.max_lines) {
        let text = neighbour.label.text();
        let name = Name {
            before: "  ",
            ..Name::of(&text, neighbour.label.kind)
        };
        let (cells, share) = (
            table.amount(&neighbour.amount),
            table.share_of(&neighbour.amount),
        );
        table.line(&cells, share, name)?;
    }
    match side.len().saturating_sub(table.options.max_lines) {
        0 => Ok(()),
        more => writeln!(table.out, "{:>17}    {more} more (`-n` shows more)", ""),
    }
}
