//! Which functions are one row of an output: those that frame_stats alike, unless their signatures say that they are overloads.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use chronosym_core::{Certainty, Frame, Function, NameReason, Resolver};
use chronosym_types::hash::{HashMap, RandomState};
use indexmap::IndexMap;
use serde::Serialize;

use crate::kind::CodeKind;
use crate::reasons::name_reason;

/// What a row is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Label {
    /// `module!name`, of overloads with what sets them apart. What has no name says what is known of it.
    pub name: String,
    /// Whether that is a guess.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub approximate: bool,
    /// The kind of the code, if it is of one.
    #[serde(skip)]
    pub kind: Option<CodeKind>,
}

impl Label {
    /// That of something that is no code.
    pub(crate) fn plain(name: String) -> Self {
        Label {
            name,
            approximate: false,
            kind: None,
        }
    }

    /// For people: a guess begins with `~`.
    pub fn text(&self) -> String {
        let guess = if self.approximate { "~" } else { "" };
        format!("{guess}{}", self.name)
    }
}

/// The functions of a resolver by rows.
pub(crate) struct FunctionGroups {
    /// The row of each function.
    pub of: Vec<u32>,
    pub rows: Vec<Arc<FunctionGroup>>,
}

/// One or several functions of one label, or code without a name.
#[derive(Debug)]
pub(crate) struct FunctionGroup {
    pub function: Arc<Function>,
    /// What sets overloads apart; empty where there is just one.
    pub signature: String,
    unnamed: Option<Unnamed>,
    /// Most of its frames are guesses.
    is_approximate: bool,
    kind: Option<CodeKind>,
}

/// What is said of code without a name.
#[derive(Clone, Debug, PartialEq)]
enum Unnamed {
    /// All of it that is in one image.
    Image,
    /// What the compiler put into this function.
    InlinedInto(Arc<Function>),
    /// One address, and why.
    Address(NameReason),
}

impl FunctionGroup {
    /// What can be said of it, without what sets overloads apart.
    pub(crate) fn name(&self) -> Label {
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
}

/// `module!name`, `module!?`, or the bare address.
impl fmt::Display for FunctionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.unnamed, self.function.binary()) {
            (Some(Unnamed::Image), Some(binary)) => write!(f, "{}!?", binary.name()),
            _ => f.write_str(self.function.label()),
        }
    }
}

/// What the frames of a function say of it.
#[derive(Clone, Default)]
struct FrameStats {
    frames: u32,
    approximate: u32,
    unnamed: Option<Unnamed>,
    kind: Option<CodeKind>,
}

/// What the frames of each function say; `addresses`: code without a name is apart by address.
fn frame_stats(resolver: &Resolver, addresses: bool) -> Vec<FrameStats> {
    let mut seen = vec![FrameStats::default(); resolver.functions().len()];
    let frames = resolver.frames();
    for (at, frame) in frames.iter().enumerate() {
        let seen = &mut seen[frame.function.id().index()];
        seen.frames += 1;
        seen.kind.get_or_insert_with(|| CodeKind::of(frame));
        seen.approximate += u32::from(frame.certainty == Some(Certainty::Approximate));
        let Err(reason) = frame.name() else {
            continue;
        };
        seen.unnamed.get_or_insert_with(|| {
            // The frames of an address stand together, the one that is not inlined last.
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

impl FunctionGroups {
    /// The rows of all functions; `addresses`: code without a name is a row for each address, not for each image.
    pub(crate) fn new(resolver: &Resolver, addresses: bool) -> Self {
        let functions = resolver.functions();
        let seen = frame_stats(resolver, addresses);
        let key = |index: usize| -> Cow<'_, str> {
            let function = &functions[index];
            match (&seen[index].unnamed, function.binary()) {
                (Some(Unnamed::Image), Some(binary)) => format!("{}!?", binary.name()).into(),
                (Some(Unnamed::InlinedInto(host)), _) => format!("? {}", host.label()).into(),
                _ => function.label().into(),
            }
        };
        let keys: Vec<Cow<'_, str>> = (0..functions.len()).map(key).collect();
        let signatures: Vec<String> = functions.iter().map(|f| signature(f)).collect();
        let mut alike: HashMap<&str, BTreeSet<&str>> = HashMap::default();
        for (key, signature) in keys.iter().zip(&signatures) {
            alike.entry(key).or_default().insert(signature);
        }
        // The first function of each row, and whether most of its frames are guesses: more than 0.
        let mut rows: IndexMap<(&str, &str), (usize, i64), RandomState> = IndexMap::default();
        let of = (0..functions.len()).map(|index| {
            let key = &*keys[index];
            // One of which no signature is known is the only one that there is.
            let granularity = alike[key].iter().filter(|s| !s.is_empty()).nth(1).is_some();
            let row = rows.entry((key, if granularity { &signatures[index] } else { "" }));
            let number = row.index() as u32;
            let (_, guesses) = row.or_insert((index, 0));
            *guesses += 2 * i64::from(seen[index].approximate) - i64::from(seen[index].frames);
            number
        });
        let of = of.collect();
        let row = |((key, signature), (index, guesses)): ((&str, &str), (usize, i64))| {
            Arc::new(FunctionGroup {
                function: Arc::clone(&functions[index]),
                signature: shown(signature, &alike[key]),
                unnamed: seen[index].unnamed.clone(),
                is_approximate: guesses > 0 && functions[index].name().is_some(),
                kind: seen[index].kind,
            })
        };
        let rows = rows.into_iter().map(row).collect();
        FunctionGroups { of, rows }
    }

    /// What a row is called, with what sets overloads apart.
    pub(crate) fn name(&self, row: usize) -> Label {
        let row = &self.rows[row];
        let mut name = row.name();
        name.name.push_str(&row.signature);
        name
    }

    /// The row of a frame.
    pub(crate) fn of_frame(&self, frame: &Frame) -> usize {
        self.of[frame.function.id().index()] as usize
    }

    /// What rows with these numbers are called, sorted.
    pub(crate) fn names(&self, rows: impl Iterator<Item = usize>) -> Vec<Label> {
        let mut names: Vec<Label> = rows.map(|row| self.name(row)).collect();
        names.sort_by(|a, b| a.name.cmp(&b.name));
        names
    }

    /// For each row whether `text` means it: as its whole name, else as the end of its name, else as a part of its label.
    pub(crate) fn matching(&self, text: &str) -> Vec<bool> {
        let rank = |row: &FunctionGroup| {
            let label = row.function.label();
            let end = label.strip_suffix(text);
            let full = format!("{label}{}", row.signature);
            let boundary = |rest: &str| rest.ends_with(['.', '+', '!', '/', ':']);
            if full == text || label == text || row.function.name() == Some(text) {
                3
            } else if end.is_some_and(boundary) {
                2
            } else {
                u8::from(full.contains(text))
            }
        };
        let ranks: Vec<u8> = self.rows.iter().map(|row| rank(row)).collect();
        let best = ranks.iter().copied().max().unwrap_or(0).max(1);
        ranks.into_iter().map(|rank| rank == best).collect()
    }
}

/// The signature of a function, the blanks of which differ from source to source; empty where there is none, or where it is not
/// that of what the name stands for.
fn signature(function: &Function) -> String {
    let signature = function.signature();
    let signature = signature.filter(|_| function.compiled_as().is_none());
    let words = signature.unwrap_or_default().split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The arguments, or all of it where others have the same.
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
