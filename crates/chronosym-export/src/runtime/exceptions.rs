//! The report of exceptions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use chronosym_runtime::{Exceptions, Percentiles, Report};
use serde::ser::SerializeMap;

use super::context::{Context, Durations, Notes, show_percentiles};
use super::grid::{Grid, ms, or_unknown, sentence};
use super::sites::Site;
use crate::object::{Fields, Object};
use crate::table::TableOptions;
use crate::units::{counted, show_count};

#[derive(Debug)]
pub(crate) struct ExceptionsView {
    /// Most frequent first.
    groups: Vec<Group>,
    count: u64,
    rethrown: u64,
    has_catches: bool,
    dispatch: Option<Percentiles>,
    notes: Notes,
}

/// Exceptions of one type with the same throw site and handler.
#[derive(Debug)]
struct Group {
    type_name: Option<Arc<str>>,
    thrown_at: Option<Site>,
    caught_in: Option<Arc<str>>,
    count: u64,
    rethrown: u64,
    /// Number of exceptions whose handler is recorded.
    caught: u64,
    dispatch_ns: u64,
    /// The first message.
    message: Option<Arc<str>>,
    messages: u64,
}

impl ExceptionsView {
    pub fn new(context: &mut Context) -> Self {
        let all = Exceptions::new(&context.timeline, &context.filter);
        let mut groups: BTreeMap<_, Group> = BTreeMap::new();
        for thrown in &all.thrown {
            let thrown_at = context.site(thrown.process, thrown.stack, thrown.time_ns);
            let key = (
                thrown.type_name.clone(),
                thrown_at,
                thrown.caught_in.clone(),
            );
            let group = groups.entry(key).or_insert_with_key(|key| Group {
                type_name: key.0.clone(),
                thrown_at: key.1.clone(),
                caught_in: key.2.clone(),
                count: 0,
                rethrown: 0,
                caught: 0,
                dispatch_ns: 0,
                message: thrown.message.clone(),
                messages: 1,
            });
            group.count += 1;
            group.rethrown += u64::from(thrown.rethrown);
            group.caught += u64::from(thrown.dispatch_ns.is_some());
            group.dispatch_ns += thrown.dispatch_ns.unwrap_or(0);
            group.messages += u64::from(group.message != thrown.message && group.messages == 1);
        }
        let mut groups: Vec<Group> = groups.into_values().collect();
        groups.sort_by_key(|group| Reverse(group.count));
        ExceptionsView {
            groups,
            count: all.thrown.len() as u64,
            rethrown: all.thrown.iter().filter(|it| it.rethrown).count() as u64,
            has_catches: all.has_catches,
            dispatch: Percentiles::new(all.thrown.iter().filter_map(|it| it.dispatch_ns)),
            notes: context.notes(&all.unused),
        }
    }

    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        if self.count == 0 {
            sentence(&self.notes.nothing(Report::Exceptions), options, out)?;
            return self.notes.write(options, out);
        }
        let mut text = format!("{} thrown", counted(self.count, "exception"));
        if self.rethrown > 0 {
            text.push_str(&format!(", {} of them rethrown", show_count(self.rethrown)));
        }
        sentence(&text, options, out)?;
        if let Some(dispatch) = &self.dispatch {
            let text = format!(
                "from throw to handler: {} ms in total; {}",
                ms(dispatch.total_ns),
                show_percentiles(dispatch)
            );
            sentence(&text, options, out)?;
        }
        if !self.has_catches {
            let text = "handlers are unknown: the trace has no ExceptionCatchStart events";
            sentence(text, options, out)?;
        }
        let mut grid = Grid::new(
            ["count", "ms", "type, message, where thrown and caught"],
            options.max_lines,
        );
        for group in &self.groups {
            grid.row(|| {
                let cost = Some(group.dispatch_ns).filter(|_| group.caught > 0);
                [show_count(group.count), or_unknown(cost, ms), group.show()]
            });
        }
        grid.write(options, out)?;
        self.notes.write(options, out)
    }
}

impl Group {
    fn show(&self) -> String {
        let type_name = self.type_name.as_deref().unwrap_or("unknown type");
        let mut text = type_name.to_owned();
        if let Some(message) = &self.message {
            let more = if self.messages > 1 { " …" } else { "" };
            text.push_str(&format!(" “{}”{more}", short(message)));
        }
        if self.rethrown == self.count {
            text.push_str(", rethrown");
        }
        text.push_str(&format!(" at {}", Site::show(&self.thrown_at)));
        match &self.caught_in {
            Some(caught_in) => {
                text.push_str(&format!(", caught in {}", short_method(caught_in)));
            }
            None if self.caught == 0 => text.push_str(", handler not recorded"),
            None => {}
        }
        text
    }
}

/// `module!Type.Method` of the runtime's `type [module] Type::Method(types)`.
fn short_method(text: &str) -> String {
    let parts = || {
        let (before, method) = text.split_once("::")?;
        let (before, name) = before.rsplit_once("] ")?;
        let (_, module) = before.rsplit_once('[')?;
        let method = method.split_once('(').map_or(method, |(method, _)| method);
        Some(format!("{module}!{name}.{method}"))
    };
    parts().unwrap_or_else(|| text.to_owned())
}

/// The start of a message.
fn short(message: &str) -> String {
    const MOST: usize = 60;
    match message.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &message[..at]),
        None => message.to_owned(),
    }
}

impl Fields for ExceptionsView {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        let record = (self.count == 0).then(|| Report::Exceptions.provider());
        object
            .field("report", Report::Exceptions.as_str())
            .some("record", record)
            .field("count", self.count)
            .field("rethrown", self.rethrown)
            .object("dispatch", self.dispatch.as_ref().map(Durations).as_ref())
            .objects("exceptions", &self.groups)
            .object("unused", Some(&self.notes));
    }
}

impl Fields for Group {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        object
            .some("type", self.type_name.as_deref())
            .some("message", self.message.as_deref())
            .flag("other_messages", self.messages > 1)
            .field("count", self.count)
            .field("rethrown", self.rethrown)
            .object("thrown_at", self.thrown_at.as_ref())
            .some("caught_in", self.caught_in.as_deref())
            .field("caught", self.caught)
            .some(
                "dispatch_ns",
                Some(self.dispatch_ns).filter(|_| self.caught > 0),
            );
    }
}
