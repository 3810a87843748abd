//! User methods: their own time, and that of the framework code that they call.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::{Activity, FrameId, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::function_groups::{FunctionGroups, Label};
use crate::source_position::SourcePosition;
use crate::table::{Name, Table};
use crate::user_code::UserCode;
use crate::weight::{Amount, WeightUnit};

/// A user method, with the samples in which it is the innermost frame of user code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UserMethod {
    /// The method.
    #[serde(flatten)]
    pub label: Label,
    /// Its line with the most samples.
    #[serde(flatten)]
    pub position: Option<SourcePosition>,
    /// Samples of threads that are not blocked: those in its own code, and in framework code that
    /// it calls.
    pub total: Amount,
    /// The part of these samples in its own code.
    #[serde(rename = "self")]
    pub own: Amount,
    /// Samples of threads that are blocked in framework code that it calls.
    pub blocked: Amount,
}

/// Returns the user methods of a profile, heaviest first. Each sample counts for one method at
/// most: the innermost of user code.
///
/// # Examples
///
/// ```
/// # use chronosym_core::facts::{At, Method, Module, Sample};
/// # use chronosym_core::{Action, Filter, Options, Session};
/// # let mut session = Session::new(Options::default());
/// # let at = At::new(0).process(42).thread(7);
/// # session.apply(at, Module::new(Action::Load, 5, "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.4/System.Private.CoreLib.dll"));
/// # session.apply(at, Module::new(Action::Load, 6, "/app/Shop.dll"));
/// # session.apply(at, Method::new(Action::Load, 1, 0x1000, 64).named("System.String", "Concat", "").in_module(5, 0x600_0001));
/// # session.apply(at, Method::new(Action::Load, 2, 0x2000, 64).named("Shop.Cart", "Total", "").in_module(6, 0x600_0001));
/// # session.sample(at.at(100), &[0x1010, 0x2020], Sample::cpu());
/// # let timeline = session.finish();
/// use chronosym_export::user_methods;
///
/// // `Shop.Cart.Total` called the framework, which was sampled.
/// let profile = timeline.profile(&Filter::default(), None);
/// let methods = user_methods(&profile);
/// assert_eq!(methods[0].label.text(), "Shop!Shop.Cart.Total");
/// ```
pub fn user_methods(profile: &Profile) -> Vec<UserMethod> {
    user_methods_in(profile, &FunctionGroups::new(&profile.resolver, false))
}

/// As [`user_methods`], with the groups of the profile's functions.
pub(crate) fn user_methods_in(profile: &Profile, groups: &FunctionGroups) -> Vec<UserMethod> {
    #[derive(Default)]
    struct Sums {
        total: Amount,
        own: Amount,
        blocked: Amount,
        lines: FxHashMap<FrameId, Amount>,
    }
    let resolver = &profile.resolver;
    let unit = WeightUnit::of(profile);
    let user_code = UserCode::of(resolver.timeline());
    let is_user: Vec<bool> = (resolver.frames().iter())
        .map(|frame| (frame.name().is_ok() || frame.token.is_some()) && user_code.has(frame))
        .collect();
    let mut sums: FxHashMap<usize, Sums> = FxHashMap::default();
    for entry in &profile.entries {
        let mut frames = resolver.stack(entry.stack).enumerate();
        let Some((depth, id)) = frames.find(|(_, id)| is_user[id.index()]) else {
            continue;
        };
        let sums = sums.entry(groups.of_frame(resolver.frame(id))).or_default();
        if entry.activity == Activity::Blocked {
            sums.blocked.add(entry);
        } else {
            sums.total.add(entry);
            if depth == 0 {
                sums.own.add(entry);
            }
        }
        sums.lines.entry(id).or_default().add(entry);
    }
    let method = |(group, sums): (usize, Sums)| {
        let mut lines: FxHashMap<SourcePosition, u64> = FxHashMap::default();
        for (id, amount) in sums.lines {
            if let Ok(line) = &resolver.frame(id).line {
                let position = SourcePosition {
                    file: line.file.to_string(),
                    line: line.line,
                };
                *lines.entry(position).or_default() += amount.weight(unit);
            }
        }
        let hottest = lines.into_iter();
        let hottest = hottest.max_by_key(|(line, weight)| (*weight, Reverse(line.clone())));
        UserMethod {
            label: groups.label(group),
            position: hottest.map(|(position, _)| position),
            total: sums.total,
            own: sums.own,
            blocked: sums.blocked,
        }
    };
    let mut methods: Vec<UserMethod> = sums.into_iter().map(method).collect();
    methods.sort_by_cached_key(|it| {
        let weights = (it.total.weight(unit), it.blocked.weight(unit));
        (Reverse(weights), it.label.name.clone())
    });
    methods
}

/// Returns whether user methods are a part of all code: otherwise a table of all methods is the
/// same.
pub(crate) fn are_part(profile: &Profile, methods: &[UserMethod]) -> bool {
    let of = |it: &UserMethod| it.own.samples;
    let own: u64 = methods.iter().map(of).sum();
    !methods.is_empty() && own < profile.samples()
}

/// Writes a table of at most `most` user methods.
pub(crate) fn write_user_methods(
    methods: &[UserMethod],
    most: usize,
    table: &mut Table<'_, impl Write>,
) -> io::Result<()> {
    let unit = table.unit;
    let is_blocked = methods.iter().any(|it| it.blocked.samples > 0);
    let shown = &methods[..methods.len().min(most)];
    let heads = ["total", "self", "called", "blocked"].map(|of| unit.head(of));
    let heads = &heads[..if is_blocked { 4 } else { 3 }];
    let weights = |it: &UserMethod| {
        let [total, own, blocked] = [&it.total, &it.own, &it.blocked].map(|it| it.weight(unit));
        [total, own, total.saturating_sub(own), blocked].map(|weight| unit.show(weight))
    };
    let rows: Vec<[String; 4]> = shown.iter().map(weights).collect();
    let cells = |share: &str, cells: &[String]| {
        let mut line = share.to_owned();
        for (column, cell) in cells.iter().enumerate().take(heads.len()) {
            let widths = rows.iter().map(|row| row[column].len());
            let width = widths.fold(heads[column].len(), usize::max);
            line.push_str(&format!(" {cell:>width$}"));
        }
        line
    };
    writeln!(table.out)?;
    table.text("user code: its own time, of framework code that it calls, and blocked there")?;
    table.longest = (shown.first()).map_or(0.0, |it| table.share_of(&it.total));
    let head = cells("total %", heads);
    let bar = table.bar(&head, 0.0);
    writeln!(table.out, "{head}  {bar}method")?;
    for (it, row) in shown.iter().zip(&rows) {
        let share = table.share_of(&it.total);
        let after = it.position.as_ref().map(|at| format!("  {}", at.text()));
        let text = it.label.text();
        let name = Name {
            text: &text,
            after: after.as_deref().unwrap_or_default(),
            kind: it.label.kind,
            ..Name::default()
        };
        table.line(&cells(&format!("{share:>6.1}%"), row), share, name)?;
    }
    table.more_than(methods.len(), most, "user method")
}
