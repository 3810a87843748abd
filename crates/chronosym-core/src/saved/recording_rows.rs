//! The row of the recording, and rows of event types.

use std::borrow::Cow;
use std::sync::Arc;

use chronosym_events::{EventKey, EventSchema, Guid, Provider};
use chronosym_types::{Gap, GapCause};

use super::coder::Coder;
use crate::counters::Counters;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Diagnostics, FileGap};
use crate::recording::{
    ClockMatch, Host, JoinedRecording, Loss, LossScope, ProcessMatch, TraceFacts,
};

/// The properties of the whole recording.
#[derive(Default)]
pub(super) struct RecordingRow {
    pub facts: TraceFacts,
    pub losses: Vec<Loss>,
    pub counters: Counters,
    /// The diagnostics of reading the trace.
    pub diagnostics: Diagnostics,
    /// Whether bit 0 of an address marks Thumb code.
    pub is_thumb: bool,
    pub markers_left_out: u64,
}

pub(super) fn recording(coder: &mut Coder<'_>, row: &mut RecordingRow) {
    facts(coder, &mut row.facts);
    let columns = if coder.version > 3 { 8 } else { 5 };
    coder.list(&mut row.losses, columns, |coder, loss: &mut Loss| {
        coder.delta(&mut loss.from_ns);
        coder.delta(&mut loss.to_ns);
        coder.number(&mut loss.events);
        coder.number(&mut loss.buffers);
        coder.number(&mut loss.notices);
        if coder.version > 3 {
            let mut scope = loss.scope.number();
            coder.number(&mut scope);
            loss.scope = LossScope::of_number(scope);
            coder.option(&mut loss.process, 1, Coder::number);
        }
    });
    row.counters.each(|count| coder.number(count));
    coder.list(&mut row.counters.of_saved, 7, diagnostic);
    coder.list(&mut row.diagnostics.list, 7, diagnostic);
    coder.list(&mut row.diagnostics.gaps, 6, gap);
    coder.number(&mut row.diagnostics.gaps_left_out);
    coder.flag(&mut row.is_thumb);
    coder.number(&mut row.markers_left_out);
}

fn signed(coder: &mut Coder<'_>, value: &mut i64) {
    let mut bits = (*value << 1 ^ *value >> 63) as u64;
    coder.number(&mut bits);
    *value = (bits >> 1) as i64 ^ -((bits & 1) as i64);
}

pub(super) fn facts(coder: &mut Coder<'_>, facts: &mut TraceFacts) {
    coder.text(&mut facts.format);
    coder.text(&mut facts.version);
    coder.option(&mut facts.start_unix_ns, 2, |coder, start: &mut i128| {
        let (mut high, mut low) = ((*start >> 64) as i64, *start as u64);
        signed(coder, &mut high);
        coder.number(&mut low);
        *start = i128::from(high) << 64 | i128::from(low);
    });
    coder.number(&mut facts.duration_ns);
    coder.option(&mut facts.pointer_size, 1, Coder::number);
    coder.option(&mut facts.processors, 1, Coder::number);
    coder.option(&mut facts.sample_interval_ns, 1, Coder::number);
    coder.list(
        &mut facts.sample_interval_changes,
        2,
        |coder, (from, interval)| {
            coder.delta(from);
            coder.number(interval);
        },
    );
    coder.option(&mut facts.machine, 2, Coder::text);
    coder.option(&mut facts.process_id, 1, Coder::number);
    coder.list(&mut facts.recordings, 11, joined);
    coder.number(&mut facts.clock_error_ns);
    coder.option(&mut facts.host, 4, |coder, host: &mut Host| {
        coder.text(&mut host.name);
        coder.text(&mut host.boot_id);
    });
    coder.flag(&mut facts.lacks_samples);
}

impl Default for JoinedRecording {
    fn default() -> Self {
        JoinedRecording::new("", "", ClockMatch::Same)
    }
}

fn joined(coder: &mut Coder<'_>, joined: &mut JoinedRecording) {
    coder.text(&mut joined.name);
    let mut gives = std::mem::take(&mut joined.gives).into_owned();
    coder.text(&mut gives);
    joined.gives = Cow::Owned(gives);
    coder.member(&ClockMatch::ALL, &mut joined.clock);
    signed(coder, &mut joined.offset_ns);
    coder.number(&mut joined.error_ns);
    coder.option(&mut joined.own_pid, 2, |coder, (own, pid)| {
        coder.number(own);
        coder.number(pid);
    });
    let mut number = joined.process_match.map_or(0, |it| it as usize + 1);
    coder.number(&mut number);
    joined.process_match = number
        .checked_sub(1)
        .and_then(|at| ProcessMatch::ALL.get(at).copied());
    coder.check(number == 0 || joined.process_match.is_some());
}

const KINDS: [DiagnosticKind; 6] = [
    DiagnosticKind::LostEvents,
    DiagnosticKind::Loss,
    DiagnosticKind::CutShort,
    DiagnosticKind::Damage,
    DiagnosticKind::Limit,
    DiagnosticKind::Unused,
];

impl Default for Diagnostic {
    fn default() -> Self {
        Diagnostic::new(DiagnosticKind::Unused, "")
    }
}

fn diagnostic(coder: &mut Coder<'_>, row: &mut Diagnostic) {
    coder.member(&KINDS, &mut row.kind);
    coder.number(&mut row.count);
    coder.option(&mut row.file, 2, Coder::text);
    coder.text(&mut row.text);
}

impl Default for FileGap {
    fn default() -> Self {
        FileGap {
            file: String::new(),
            gap: Gap::new(0, 0, GapCause::BadRecord),
        }
    }
}

fn gap(coder: &mut Coder<'_>, row: &mut FileGap) {
    coder.text(&mut row.file);
    coder.number(&mut row.gap.file);
    coder.number(&mut row.gap.offset);
    coder.number(&mut row.gap.length);
    coder.member(&GapCause::ALL, &mut row.gap.cause);
}

/// An event type with its counts.
pub(super) struct EventTypeRow {
    pub schema: Arc<EventSchema>,
    pub count: u64,
    pub stacks: u64,
}

impl Default for EventTypeRow {
    fn default() -> Self {
        let (provider, name) = (Arc::default(), Arc::default());
        EventTypeRow {
            schema: Arc::new(EventSchema::new(EventKey::Named { provider, name })),
            count: 0,
            stacks: 0,
        }
    }
}

/// Codes an event type without its fields, which only its events need.
pub(super) fn event_type(coder: &mut Coder<'_>, row: &mut EventTypeRow) {
    coder.number(&mut row.count);
    coder.number(&mut row.stacks);
    // The kind of key; GUID of a provider or class; id or opcode; version; names.
    let mut key = (0u8, Guid::ZERO, 0u32, 0u32, String::new(), String::new());
    match row.schema.key() {
        EventKey::Manifest {
            provider,
            id,
            version,
        } => {
            key = (0, Guid::ZERO, *id, *version, String::new(), String::new());
            match provider {
                Provider::Guid(guid) => (key.0, key.1) = (1, *guid),
                provider => key.4 = provider.name().unwrap_or_default().to_owned(),
            }
        }
        EventKey::Classic {
            class,
            opcode,
            version,
        } => {
            (key.0, key.1, key.2, key.3) = (2, *class, (*opcode).into(), (*version).into());
        }
        EventKey::Named { provider, name } => {
            (key.0, key.4, key.5) = (3, provider.to_string(), name.to_string());
        }
    }
    let (kind, guid, id, version, provider, name) = &mut key;
    coder.number(kind);
    coder.guid(guid);
    coder.number(id);
    coder.number(version);
    coder.text(provider);
    coder.text(name);
    let schema = &row.schema;
    let (mut provider_name, mut opcode) = (schema.provider_name().to_string(), schema.opcode());
    let (mut level, mut keywords) = (schema.level(), schema.keywords());
    let mut event_name = schema
        .event_name()
        .map(|name| name.to_string())
        .unwrap_or_default();
    coder.text(&mut provider_name);
    coder.text(&mut event_name);
    coder.number(&mut opcode);
    coder.number(&mut level);
    coder.number(&mut keywords);
    if !coder.reads() {
        return;
    }
    let manifest = |provider| EventKey::Manifest {
        provider,
        id: *id,
        version: *version,
    };
    let key = match *kind {
        0 => manifest(Provider::from_name(provider)),
        1 => manifest(Provider::Guid(*guid)),
        2 => EventKey::Classic {
            class: *guid,
            opcode: *id as u8,
            version: *version as u16,
        },
        _ => EventKey::Named {
            provider: provider.as_str().into(),
            name: name.as_str().into(),
        },
    };
    coder.check(*kind <= 3);
    let schema = EventSchema::new(key).with_provider_name(&provider_name);
    let schema = schema
        .with_name(&event_name)
        .with_descriptor(opcode, level, keywords);
    row.schema = Arc::new(schema);
}
