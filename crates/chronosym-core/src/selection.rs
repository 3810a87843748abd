//! Options of a session: which stacks it stores.

use std::fmt;
use std::ops::Range;

use chronosym_events::{EventKey, EventSchema};

use crate::meaning::{Meaning, Role};

/// The events whose stacks are stored as samples.
///
/// # Examples
///
/// ```
/// use chronosym_core::{EventSelector, Options, SampleSelection, Session};
///
/// // Stacks of exceptions, in place of those of profilers.
/// let selector = EventSelector::parse("Microsoft-Windows-DotNETRuntime/80").unwrap();
/// let session = Session::new(SampleSelection::Events(vec![selector]));
/// assert!(!session.options().wants_profilers());
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum SampleSelection {
    /// CPU samples, and wall-clock samples.
    #[default]
    Profilers,
    /// CPU samples, wall-clock samples, and the stacks of all events.
    All,
    /// The stacks of the selected events.
    Events(Vec<EventSelector>),
    /// CPU samples, wall-clock samples, and the stacks of the selected events.
    ProfilersAnd(Vec<EventSelector>),
    /// No stacks: only code is of interest.
    None,
}

/// `PROVIDER`, `PROVIDER/ID`, `PROVIDER/NAME` or `NAME`.
///
/// # Examples
///
/// ```
/// use chronosym_core::EventSelector;
/// use chronosym_events::{EventKey, EventSchema, Provider};
///
/// let key = EventKey::Manifest { provider: Provider::Runtime, id: 80, version: 1 };
/// let exception = EventSchema::new(key);
/// let selector = EventSelector::parse("Microsoft-Windows-DotNETRuntime/80").unwrap();
/// assert!(selector.matches(&exception));
/// assert_eq!(EventSelector::parse("/80"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventSelector {
    provider: String,
    event: Option<String>,
}

impl EventSelector {
    /// Parses `PROVIDER[/ID]` or `PROVIDER[/NAME]`; a name alone selects the events with that name
    /// of every provider. Kernel events have the provider `Kernel`.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, event) = match text.split_once('/') {
            Some((provider, event)) => (provider, Some(event)),
            None => (text, None),
        };
        let complete = !provider.is_empty() && event != Some("");
        complete.then(|| EventSelector {
            provider: provider.to_owned(),
            event: event.map(str::to_owned),
        })
    }

    /// Returns whether an event type is selected, compared without case.
    pub fn matches(&self, schema: &EventSchema) -> bool {
        let provider = schema.provider_name();
        let is_classic = matches!(schema.key(), EventKey::Classic { .. });
        let is_named = |wanted: &str| {
            let name = schema.name();
            // The class of a kernel event is optional: `Thread/CSwitch`, `CSwitch`.
            let last = name.rsplit('/').next().filter(|_| is_classic);
            name.eq_ignore_ascii_case(wanted)
                || last.is_some_and(|last| last.eq_ignore_ascii_case(wanted))
        };
        let same_provider = provider.eq_ignore_ascii_case(&self.provider)
            || (is_classic && self.provider.eq_ignore_ascii_case("Kernel"));
        match self.event.as_deref() {
            None => same_provider || is_named(&self.provider),
            Some(event) => {
                let is_id = || schema.id().is_some_and(|id| event.parse() == Ok(id));
                same_provider && (is_named(event) || is_id())
            }
        }
    }
}

impl fmt::Display for EventSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.event {
            Some(event) => write!(f, "{}/{event}", self.provider),
            None => f.write_str(&self.provider),
        }
    }
}

/// Selects the data that a session stores. A [`SampleSelection`] converts to options.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Options {
    /// The stacks to keep.
    pub samples: SampleSelection,
    /// Whether context switches become intervals in which threads are blocked or runnable
    /// ([`Timeline::thread_times`](crate::Timeline::thread_times)).
    pub switches: bool,
    /// Whether the activity ids of events are stored
    /// ([`Timeline::activity_id_at`](crate::Timeline::activity_id_at)). All events are read then.
    pub activity_ids: bool,
    /// Maximum number of marker events to store ([`Timeline::markers`](crate::Timeline::markers));
    /// 0 for none. Each takes 40 bytes and its text.
    pub markers: usize,
    /// Events to keep whole ([`Timeline::kept_events`](crate::Timeline::kept_events)); none by
    /// default.
    pub keep: Vec<EventSelector>,
    /// Maximum number of bytes that kept events take: each its payload and 32 bytes. Later events
    /// are counted ([`Timeline::kept_events_left_out`](crate::Timeline::kept_events_left_out)).
    pub max_kept_bytes: usize,
    /// The times, in ns since the trace began, whose samples are stored; all by default. Others are
    /// counted, and what they determine is known: the times and activities of those inside
    /// ([`Timeline::has_whole_window`](crate::Timeline::has_whole_window)).
    pub times: Option<Range<u64>>,
    /// Whether samples outside of `times` need not be looked at, only counted: enough where nothing
    /// but the number of those inside matters, since their times and activities are then unknown.
    pub skip_outside: bool,
    /// Whether few addresses will be looked up in the timeline, as for a profile, which resolves
    /// each distinct stack once. [`Session::finish`](crate::Session::finish) then takes a third of
    /// the time for the maps of addresses, and a lookup several times as long. Answers are the
    /// same.
    pub few_lookups: bool,
}

impl From<SampleSelection> for Options {
    fn from(samples: SampleSelection) -> Self {
        Options {
            samples,
            ..Options::default()
        }
    }
}

impl Options {
    /// Returns whether the stacks of this event type are selected.
    pub(crate) fn selects(&self, schema: &EventSchema) -> bool {
        match &self.samples {
            SampleSelection::Events(selectors) | SampleSelection::ProfilersAnd(selectors) => {
                selectors.iter().any(|s| s.matches(schema))
            }
            SampleSelection::All => true,
            SampleSelection::Profilers | SampleSelection::None => false,
        }
    }

    /// Returns whether events of this type are kept.
    pub(crate) fn keeps(&self, schema: &EventSchema) -> bool {
        self.keep.iter().any(|selector| selector.matches(schema))
    }

    /// Returns the meaning of an event type, without marks unless markers are requested.
    pub(crate) fn meaning(&self, schema: &EventSchema) -> Meaning {
        let meaning = Meaning::of(schema);
        let mark = meaning.mark.filter(|_| self.markers > 0);
        Meaning { mark, ..meaning }
    }

    /// Returns whether profiler samples are selected.
    pub fn wants_profilers(&self) -> bool {
        matches!(
            self.samples,
            SampleSelection::Profilers | SampleSelection::ProfilersAnd(_) | SampleSelection::All
        )
    }

    /// Returns whether events of a type outside of [`times`](Self::times) need only be counted,
    /// rather than pushed: samples of profilers.
    pub fn skips_outside(&self, schema: &EventSchema) -> bool {
        let meaning = self.meaning(schema);
        let is_sample = meaning.role == Role::ThreadSample && meaning.mark.is_none();
        self.skip_outside && self.times.is_some() && is_sample && !self.keeps(schema)
    }

    /// Returns whether events of a type must be pushed; others need only be counted.
    pub fn wants(&self, schema: &EventSchema) -> bool {
        let meaning = self.meaning(schema);
        let means_something = match meaning.role {
            Role::ThreadSample => self.wants_profilers(),
            role => role.states_code(),
        };
        self.activity_ids
            || means_something
            || meaning.mark.is_some()
            || self.selects(schema)
            || self.keeps(schema)
    }
}
