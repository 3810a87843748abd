//! Groups of functions that outputs show as one: those of equal labels, unless their signatures
//! show that they are overloads.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use chronosym_core::{Frame, Function, NameReason, Resolver};
use chronosym_pdb::pretty;
use chronosym_types::hash::{HashMap, RandomState};
use indexmap::IndexMap;
use serde::Serialize;

use crate::kind::CodeKind;
use crate::pattern::Pattern;
use crate::reasons::name_reason;

/// The label of a function, module, thread or process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// `module!name`, with the signature of overloads; for unnamed code its image or its address
    /// and the reason.
    pub name: String,
    /// Whether the name is a guess.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// The kind of the code, if all of it is of one kind.
    #[serde(skip)]
    pub kind: Option<CodeKind>,
}

impl Label {
    /// Returns the label of something other than code.
    pub(crate) fn plain(name: String) -> Self {
        Label {
            name,
            approximate: false,
            kind: None,
        }
    }

    /// Returns the label as text; `~` marks a guess.
    pub fn text(&self) -> String {
        let guess = if self.approximate { "~" } else { "" };
        format!("{guess}{}", self.name)
    }
}

/// The functions of a resolver in groups.
pub(crate) struct FunctionGroups {
    /// The group of each function.
    pub of: Vec<u32>,
    pub all: Vec<Arc<FunctionGroup>>,
}

/// Functions of one label, or unnamed code.
#[derive(Debug)]
pub(crate) struct FunctionGroup {
    pub function: Arc<Function>,
    /// The signature of an overload; empty without overloads.
    pub signature: String,
    unnamed: Option<Unnamed>,
    /// The names of most of its frames are guesses.
    is_approximate: bool,
    /// Lost events could refute most of them.
    is_in_doubt: bool,
    kind: Option<CodeKind>,
}

/// Unnamed code.
#[derive(Clone, Debug, PartialEq)]
enum Unnamed {
    /// All unnamed code of an image.
    Image,
    /// Code inlined into this function.
    InlinedInto(Arc<Function>),
    /// One address, and why it has no name.
    Address(NameReason),
}

impl FunctionGroup {
    /// Returns its label, without the signature of overloads.
    pub(crate) fn label(&self) -> Label {
        let label = self.function.label();
        let name = match (&self.unnamed, self.function.binary()) {
            (Some(Unnamed::Image), Some(binary)) => {
                let file = binary.path().map(chronosym_core::file_name);
                format!("{} ?", file.unwrap_or(binary.name()))
            }
            (Some(Unnamed::InlinedInto(host)), _) => format!("? inlined into {}", host.label()),
            (Some(Unnamed::Address(reason)), _) => format!("{label} ({})", name_reason(*reason).0),
            _ => label.to_owned(),
        };
        Label {
            name,
            approximate: self.is_approximate,
            kind: self.kind,
        }
    }

    /// Returns the mark of a name that lost events could refute. Formats of data have no other:
    /// guesses by a rule are the same in every recording.
    pub(crate) fn doubt(&self) -> &'static str {
        if self.is_in_doubt { "~" } else { "" }
    }
}

/// `module!name`, `module!?`, or the bare address.
impl fmt::Display for FunctionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.doubt())?;
        match (&self.unnamed, self.function.binary()) {
            (Some(Unnamed::Image), Some(binary)) => write!(f, "{}!?", binary.name()),
            _ => f.write_str(self.function.label()),
        }
    }
}

/// Statistics of the frames of a function.
#[derive(Clone, Default)]
struct FrameStats {
    frames: u32,
    approximate: u32,
    in_doubt: u32,
    unnamed: Option<Unnamed>,
    kind: Option<CodeKind>,
}

/// Returns the statistics of each function. With `addresses`, unnamed code is grouped by address.
fn frame_stats(resolver: &Resolver, addresses: bool) -> Vec<FrameStats> {
    let mut seen = vec![FrameStats::default(); resolver.functions().len()];
    let frames = resolver.frames();
    for (at, frame) in frames.iter().enumerate() {
        let seen = &mut seen[frame.function.id().index()];
        seen.frames += 1;
        seen.kind.get_or_insert_with(|| CodeKind::of(frame));
        seen.approximate += u32::from(frame.is_guess());
        seen.in_doubt += u32::from(frame.after_loss && frame.name().is_ok());
        let Err(reason) = frame.name() else {
            continue;
        };
        if frame.token.is_some() {
            continue;
        }
        seen.unnamed.get_or_insert_with(|| {
            // The frames of an address are adjacent; the one that is not inlined is last.
            let host = || frames[at..].iter().find(|host| !host.inlined);
            match host().filter(|_| frame.inlined) {
                Some(host) => Unnamed::InlinedInto(Arc::clone(&host.function)),
                None if frame.function.binary().is_some() && !addresses => Unnamed::Image,
                None => Unnamed::Address(reason),
            }
        });
    }
    seen
}

/// The first function of a group, and the balances of guessed frames and of those in doubt:
/// positive if most are.
type Balances = (usize, i64, i64);

/// The label and signature of a group, and its balances.
type KeyedGroup<'a> = ((&'a str, &'a str), Balances);

impl FunctionGroups {
    /// Groups all functions. Unnamed code is grouped by image or, with `addresses`, by address.
    pub(crate) fn new(resolver: &Resolver, addresses: bool) -> Self {
        let functions = resolver.functions();
        let seen = frame_stats(resolver, addresses);
        let key = |index: usize| -> Cow<'_, str> {
            let function = &functions[index];
            match (&seen[index].unnamed, function.binary()) {
                (Some(Unnamed::Image), Some(binary)) => [binary.name(), "!?"].concat().into(),
                (Some(Unnamed::InlinedInto(host)), _) => format!("? {}", host.label()).into(),
                _ => function.label().into(),
            }
        };
        let keys: Vec<Cow<'_, str>> = (0..functions.len()).map(key).collect();
        let mut counts: HashMap<&str, u32> = HashMap::default();
        for key in &keys {
            *counts.entry(key).or_default() += 1;
        }
        // Only functions of one label can be overloads.
        let signature = |(key, function): (&Cow<'_, str>, &Arc<Function>)| match counts[&**key] {
            1 => String::new(),
            _ => signature(function),
        };
        let signatures: Vec<String> = keys.iter().zip(functions).map(signature).collect();
        // Functions without a signature are not overloads.
        let mut alike: HashMap<&str, BTreeSet<&str>> = HashMap::default();
        let with_signature = |(_, signature): &(&Cow<'_, str>, &String)| !signature.is_empty();
        for (key, signature) in keys.iter().zip(&signatures).filter(with_signature) {
            alike.entry(key).or_default().insert(signature);
        }
        let none = BTreeSet::new();
        let overloads = |key: &str| alike.get(key).unwrap_or(&none);
        let mut groups: IndexMap<_, Balances, RandomState> = IndexMap::default();
        let of = (0..functions.len()).map(|index| {
            let key = &*keys[index];
            let is_overloaded = overloads(key).len() > 1;
            let signature = if is_overloaded {
                &*signatures[index]
            } else {
                ""
            };
            let group = groups.entry((key, signature));
            let number = group.index() as u32;
            let (_, guesses, doubts) = group.or_insert((index, 0, 0));
            let frames = i64::from(seen[index].frames);
            *guesses += 2 * i64::from(seen[index].approximate) - frames;
            *doubts += 2 * i64::from(seen[index].in_doubt) - frames;
            number
        });
        let of = of.collect();
        let group = |((key, signature), (index, guesses, doubts)): KeyedGroup<'_>| {
            Arc::new(FunctionGroup {
                function: Arc::clone(&functions[index]),
                signature: shown(signature, overloads(key)),
                unnamed: seen[index].unnamed.clone(),
                is_approximate: guesses > 0 && functions[index].name().is_some(),
                is_in_doubt: doubts > 0,
                kind: seen[index].kind,
            })
        };
        let all = groups.into_iter().map(group).collect();
        FunctionGroups { of, all }
    }

    /// Returns the label of a group, with the signature of an overload.
    pub(crate) fn label(&self, group: usize) -> Label {
        let group = &self.all[group];
        let mut label = group.label();
        label.name.push_str(&group.signature);
        label
    }

    /// Returns the group of a frame.
    pub(crate) fn of_frame(&self, frame: &Frame) -> usize {
        self.of[frame.function.id().index()] as usize
    }

    /// Returns the labels of groups, sorted.
    pub(crate) fn labels(&self, groups: impl Iterator<Item = usize>) -> Vec<Label> {
        let mut labels: Vec<Label> = groups.map(|group| self.label(group)).collect();
        labels.sort_by(|a, b| a.name.cmp(&b.name));
        labels
    }

    /// Returns whether each group matches a pattern: by its whole name, else by the end of its name,
    /// else otherwise.
    pub(crate) fn matching(&self, pattern: &Pattern) -> Vec<bool> {
        let rank = |group: &FunctionGroup| {
            let label = group.function.label();
            let compiled_as = group.function.compiled_as();
            let with_signature = format!("{label}{}", group.signature);
            let names = [Some(label), compiled_as, Some(&with_signature)];
            let ranks = names.into_iter().flatten().map(|name| pattern.rank(name));
            ranks.max().unwrap_or(0)
        };
        let ranks: Vec<u8> = self.all.iter().map(|group| rank(group)).collect();
        let best = ranks.iter().copied().max().unwrap_or(0).max(1);
        ranks.into_iter().map(|rank| rank == best).collect()
    }
}

/// Returns the signature of a function with single spaces, because event sources differ; empty if
/// there is none, or if it belongs to the method that the name was compiled as.
fn signature(function: &Function) -> String {
    let signature = function.signature();
    let is_generated = || {
        let name = function.compiled_as()?;
        let (owner, method) = pretty::split_name(name)?;
        pretty::method_name(owner, method)
    };
    let signature = signature.filter(|_| is_generated().is_none());
    let words = signature.unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the arguments or, where overloads have the same arguments, the whole signature.
fn shown(signature: &str, overloads: &BTreeSet<&str>) -> String {
    let arguments = |signature: &str| signature.find('(').map_or(0, |at| at);
    let own = &signature[arguments(signature)..];
    let same = |other: &&&str| &other[arguments(other)..] == own;
    if overloads.iter().filter(same).count() > 1 {
        format!("  {signature}")
    } else {
        own.to_owned()
    }
}
