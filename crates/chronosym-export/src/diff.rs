//! Two profiles, compared method by method.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use chronosym_core::{Frame, Profile};
use chronosym_types::hash::{HashMap, RandomState};
use indexmap::IndexMap;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::kind::CodeKind;
use crate::table::{Name, Table, TableOptions};
use crate::units::show_count;
use crate::weight::{Amount, Counts, WeightUnit, tally};

/// A method in two profiles: matched by module, name and signature.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MethodDiff {
    /// `module!name`; unnamed code of an image is `module ?`.
    pub name: String,
    /// The signature, if known.
    pub signature: Option<String>,
    /// Whether the name is approximate in most of its self samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// Its samples in the first profile.
    pub before: MethodSamples,
    /// Its samples in the second profile.
    pub after: MethodSamples,
    /// The change of its percentage of self, in percentage points. Percentages are of time if both
    /// profiles state the time of all samples.
    pub self_points: f64,
    /// The change of its percentage of total, in percentage points.
    pub total_points: f64,
    /// Whether both changes are within the noise of sampling: less than three standard errors of the
    /// difference of two shares, of samples that are taken as independent.
    pub noise: bool,
    /// Other changes.
    pub changes: Vec<Change>,
}

/// The samples of a method in one profile.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MethodSamples {
    /// The sum of the samples.
    #[serde(flatten)]
    pub counts: Counts,
    /// Self samples by tier, if known.
    pub tiers: BTreeMap<&'static str, u64>,
    /// The first and last source line of the self samples, if all are in one
    /// file.
    pub lines: Option<(u32, u32)>,
    /// Number of self samples with an approximate name.
    #[serde(skip)]
    guessed: u64,
    #[serde(skip)]
    kind: Option<CodeKind>,
    #[serde(skip)]
    source_lines: BTreeSet<(std::sync::Arc<str>, u32)>,
}

/// How a method changed, apart from its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// It occurs only in the second profile.
    New,
    /// It occurs only in the first profile.
    Gone,
    /// Most self samples are of another tier.
    Retiered,
    /// The self samples have no source line in common.
    OtherLines,
}

impl Change {
    /// Returns the word in a table.
    const fn word(self) -> &'static str {
        match self {
            Change::New => "new",
            Change::Gone => "gone",
            Change::Retiered => "tier",
            Change::OtherLines => "lines",
        }
    }
}

/// All samples of two profiles, and their methods.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Diff {
    /// All samples of the first profile.
    pub before: Amount,
    /// All samples of the second profile.
    pub after: Amount,
    /// Largest change of the percentage of self first.
    pub methods: Vec<MethodDiff>,
    #[serde(skip)]
    unit: WeightUnit,
}

/// Module, name and signature; for unnamed code, the module only.
type Key = (Option<String>, Option<String>, Option<String>);
type Methods = IndexMap<Key, MethodSamples, RandomState>;

impl Diff {
    /// Compares two profiles.
    pub fn new(before: &Profile, after: &Profile) -> Self {
        let unit = WeightUnit::of_both(before, after);
        let all = [before, after].map(Amount::all);
        let mut both: BTreeMap<Key, [MethodSamples; 2]> = BTreeMap::new();
        for (side, profile) in [before, after].into_iter().enumerate() {
            for (key, samples) in methods(profile) {
                both.entry(key).or_default()[side] = samples;
            }
        }
        let share = |side: usize, amount: &Amount| {
            amount.weight(unit) as f64 * 100.0 / all[side].weight(unit).max(1) as f64
        };
        let points = |before: &Amount, after: &Amount| share(1, after) - share(0, before);
        let sizes = [before, after].map(|profile| effective_samples(profile, unit));
        let is_noise = |before: &Amount, after: &Amount| {
            let shares = [share(0, before), share(1, after)].map(|percent| percent / 100.0);
            is_within_noise(shares, sizes)
        };
        let method =
            |((module, name, signature), [before, after]): (Key, [MethodSamples; 2])| MethodDiff {
                name: match (module, name) {
                    (Some(module), Some(name)) => format!("{module}!{name}"),
                    (Some(module), None) => format!("{module} ?"),
                    (None, Some(name)) => name,
                    (None, None) => "[no name, no module]".to_owned(),
                },
                signature,
                approximate: 2 * (before.guessed + after.guessed)
                    > before.counts.own.samples + after.counts.own.samples,
                self_points: points(&before.counts.own, &after.counts.own),
                total_points: points(&before.counts.total, &after.counts.total),
                noise: is_noise(&before.counts.own, &after.counts.own)
                    && is_noise(&before.counts.total, &after.counts.total),
                changes: changes(&before, &after),
                before,
                after,
            };
        let mut methods: Vec<MethodDiff> = both.into_iter().map(method).collect();
        // A stable sort: methods that changed alike stay sorted by name.
        methods.sort_by(|a, b| {
            let own = b.self_points.abs().total_cmp(&a.self_points.abs());
            own.then(b.total_points.abs().total_cmp(&a.total_points.abs()))
        });
        Diff {
            before: all[0],
            after: all[1],
            methods,
            unit,
        }
    }
}

impl Diff {
    /// Returns the methods whose percentage changed.
    pub(crate) fn changed(&self) -> Vec<&MethodDiff> {
        let methods = self.methods.iter();
        methods
            .filter(|method| method.self_points != 0.0 || method.total_points != 0.0)
            .collect()
    }
}

/// The number of samples of equal weight that state a share as exactly: (Σw)² / Σw² (Kish).
fn effective_samples(profile: &Profile, unit: WeightUnit) -> f64 {
    let (mut sum, mut squares) = (0.0, 0.0);
    for entry in &profile.entries {
        let weight = unit.weight(entry) as f64;
        sum += weight;
        // The samples of an entry have nearly one weight.
        squares += weight * weight / entry.samples.max(1) as f64;
    }
    if squares > 0.0 {
        sum * sum / squares
    } else {
        0.0
    }
}

/// Returns whether two shares of so many samples differ by less than [`ERRORS`] standard errors, if
/// both are of one distribution (the test of two proportions).
fn is_within_noise(shares: [f64; 2], sizes: [f64; 2]) -> bool {
    let all = sizes[0] + sizes[1];
    if sizes[0] <= 0.0 || sizes[1] <= 0.0 {
        return true;
    }
    let pooled = (shares[0] * sizes[0] + shares[1] * sizes[1]) / all;
    let error = (pooled * (1.0 - pooled) * (1.0 / sizes[0] + 1.0 / sizes[1])).sqrt();
    (shares[1] - shares[0]).abs() < ERRORS * error
}

/// Of 370 methods that did not change, one differs by more standard errors.
const ERRORS: f64 = 3.0;

fn changes(before: &MethodSamples, after: &MethodSamples) -> Vec<Change> {
    match (before.counts.total.samples, after.counts.total.samples) {
        (0, _) => return vec![Change::New],
        (_, 0) => return vec![Change::Gone],
        _ => {}
    }
    let mut changes = Vec::new();
    let retiered = before.main_tier().zip(after.main_tier());
    if retiered.is_some_and(|(before, after)| before != after) {
        changes.push(Change::Retiered);
    }
    let have_lines = !before.source_lines.is_empty() && !after.source_lines.is_empty();
    if have_lines && before.source_lines.is_disjoint(&after.source_lines) {
        changes.push(Change::OtherLines);
    }
    changes
}

impl MethodSamples {
    fn main_tier(&self) -> Option<&'static str> {
        let main = self.tiers.iter().max_by_key(|&(_, samples)| samples);
        main.map(|(tier, _)| *tier)
    }

    fn shown_lines(&self) -> String {
        match self.lines {
            Some((first, last)) if first == last => format!("line {first}"),
            Some((first, last)) => format!("lines {first}-{last}"),
            None => "other files".to_owned(),
        }
    }
}

fn methods(profile: &Profile) -> Methods {
    let resolver = &profile.resolver;
    let mut methods = Methods::default();
    let functions = resolver.functions().iter().map(|function| {
        let module = function.binary().map(|binary| binary.name().to_owned());
        let name = function.name().map(str::to_owned);
        // Event sources use different white space in signatures.
        let signature = function.signature().map(|signature| {
            let words: Vec<&str> = signature.split_whitespace().collect();
            words.join(" ")
        });
        let method = methods.entry((module, name, signature));
        let index = method.index();
        method.or_default();
        index
    });
    let of: Vec<usize> = functions.collect();
    let method_of = |frame: &Frame| of[frame.function.id().index()];
    for frame in resolver.frames() {
        let kind = &mut methods[method_of(frame)].kind;
        kind.get_or_insert_with(|| CodeKind::of(frame));
    }
    let counts = tally(profile, methods.len(), |frame| {
        Some(method_of(resolver.frame(frame)))
    });
    for (method, counts) in methods.values_mut().zip(counts) {
        method.counts = counts;
    }
    for entry in &profile.entries {
        let leaf = resolver.frame(resolver.leaf(entry.stack));
        let method = &mut methods[method_of(leaf)];
        if leaf.is_guess() {
            method.guessed += entry.samples;
        }
        if let Some(tier) = leaf.tier {
            *method.tiers.entry(tier.name()).or_default() += entry.samples;
        }
        if let Ok(line) = &leaf.line {
            method.source_lines.insert((line.file.clone(), line.line));
        }
    }
    for method in methods.values_mut() {
        let lines = method.source_lines.iter().map(|(_, line)| *line);
        let files: BTreeSet<_> = method.source_lines.iter().map(|(file, _)| file).collect();
        let ends = lines.clone().min().zip(lines.max());
        method.lines = ends.filter(|_| files.len() == 1);
    }
    methods.retain(|_, method| method.counts.total.samples > 0);
    methods
}

/// Writes the methods whose percentage changed: the change in percentage points, and self before
/// and after. Changes within noise come last.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_diff(diff: &Diff, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
    let unit = diff.unit;
    let mut table = Table {
        out,
        options,
        unit,
        all: 0,
        longest: 0.0,
    };
    let all = |amount: &Amount| match unit {
        WeightUnit::Samples => format!("{} samples", show_count(amount.samples)),
        _ => format!(
            "{} samples ({} {})",
            show_count(amount.samples),
            unit.show(amount.weight(unit)),
            unit.head("")
        ),
    };
    let (before, after) = (all(&diff.before), all(&diff.after));
    table.text(&format!(
        "{before} before, {after} after; changes are of shares, in percent points"
    ))?;
    let mut methods = diff.changed();
    methods.sort_by_key(|method| method.noise);
    if methods.is_empty() {
        return writeln!(table.out, "\nno method's share changed");
    }
    let head = unit.head("");
    writeln!(
        table.out,
        "\n{:>7} {:>7} {:>9} {:>9}  {:<5}  method",
        "self",
        "total",
        format!("{head} was").trim_start(),
        format!("{head} is").trim_start(),
        "what"
    )?;
    let mut alike: HashMap<&str, usize> = HashMap::default();
    for method in &diff.methods {
        *alike.entry(&method.name).or_default() += 1;
    }
    for method in methods.iter().take(options.max_lines) {
        let own = |samples: &MethodSamples| unit.show(samples.counts.own.weight(unit));
        let cells = format!(
            "{:>+7.1} {:>+7.1} {:>9} {:>9}  {:<5}",
            method.self_points,
            method.total_points,
            own(&method.before),
            own(&method.after),
            match method.changes.first() {
                _ if method.noise => "noise",
                change => change.map_or("", |change| change.word()),
            },
        );
        let guess = if method.approximate { "~" } else { "" };
        let (mut text, mut after) = (format!("{guess}{}", method.name), String::new());
        if let Some(signature) = &method.signature
            && alike[&*method.name] > 1
        {
            let arguments = signature.find('(').unwrap_or(0);
            text.push_str(&signature[arguments..]);
        }
        for change in &method.changes {
            after.push_str(&match change {
                Change::New | Change::Gone => continue,
                Change::Retiered => format!(
                    "  ({}, was {})",
                    method.after.main_tier().unwrap_or("?"),
                    method.before.main_tier().unwrap_or("?")
                ),
                Change::OtherLines => format!(
                    "  ({}, was {})",
                    method.after.shown_lines(),
                    method.before.shown_lines()
                ),
            });
        }
        let name = Name {
            after: &after,
            ..Name::of(&text, method.after.kind.or(method.before.kind))
        };
        // Emphasis follows the size of the change.
        table.line(&cells, method.self_points.abs(), name)?;
    }
    table.more(methods.len(), "method")?;
    let shown = methods.iter().take(options.max_lines);
    if shown.filter(|method| method.noise).count() > 0 {
        writeln!(table.out)?;
        table.text("noise: a change of less than three standard errors of sampling")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_changes_of_few_samples_are_noise() {
        // 0.8 points of 2,000 samples: 5.0 % and 5.8 %.
        assert!(is_within_noise([0.050, 0.058], [2_000.0, 2_000.0]));
        assert!(!is_within_noise([0.050, 0.058], [200_000.0, 200_000.0]));
        assert!(!is_within_noise([0.05, 0.12], [2_000.0, 2_000.0]));
        // Nothing is known of no samples.
        assert!(is_within_noise([0.0, 1.0], [0.0, 10.0]));
        assert!(is_within_noise([0.0, 0.002], [1_000.0, 1_000.0]));
    }

    /// The rate of false alarms is that of three standard errors, 0.27 %.
    #[test]
    fn equal_distributions_seldom_differ() {
        let mut state = 1u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        let mut share =
            |p: f64, n: u32| (0..n).filter(|_| random() < p).count() as f64 / f64::from(n);
        let alarms = (0..2_000).filter(|_| {
            let shares = [share(0.1, 500), share(0.1, 500)];
            !is_within_noise(shares, [500.0, 500.0])
        });
        assert!(alarms.count() < 20);
    }
}
