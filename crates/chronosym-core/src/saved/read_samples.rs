//! Reads the samples of a saved timeline.

use super::base::Base;
use super::error::SavedError;
use super::file::{SavedTimeline, Table};
use super::ranks::{NoTexts, TextSource};
use super::sample_rows::{self, ClassRow, MarkerRow, SampleRow, StackRow};
use crate::ids::{EventTypeId, StackId};
use crate::samples::SampleClass;
use crate::session::Session;
use crate::terms::SampleKind;

impl SavedTimeline<'_> {
    /// Adds the samples that the options of a session select.
    pub(super) fn read_samples(
        &self,
        session: &mut Session,
        texts: &mut dyn TextSource,
        base: &Base,
        types: &[EventTypeId],
    ) -> Result<(), SavedError> {
        let rows = self.read_all::<StackRow>(Table::Stacks, &mut NoTexts, sample_rows::stack)?;
        let mut stacks = Stacks {
            interned: vec![None; rows.len()],
            rows,
        };
        let mut classes: Vec<Option<SampleClass>> = Vec::new();
        for ClassRow(mut class) in
            self.read_all(Table::Classes, &mut NoTexts, sample_rows::class)?
        {
            let thread = base.thread(class.thread);
            class.thread = thread.ok_or_else(|| self.inconsistent(Table::Classes))?;
            let event = types.get(class.event.index());
            class.event = *event.ok_or_else(|| self.inconsistent(Table::Classes))?;
            let info = session.types.all.get(class.event.index());
            let is_selected = info.map(|info| info.selected);
            let is_selected = is_selected.ok_or_else(|| self.inconsistent(Table::Classes))?;
            let of_profiler = class.kind != SampleKind::Event && session.options.wants_profilers();
            if !is_selected && !of_profiler {
                classes.push(None);
                continue;
            }
            let stack = stacks.intern(class.stack, session);
            class.stack = stack.ok_or_else(|| self.inconsistent(Table::Stacks))?;
            classes.push(Some(class));
        }
        for block in 0..self.blocks(Table::Samples) {
            let code = sample_rows::sample;
            for row in self.read::<SampleRow>(Table::Samples, block, &mut NoTexts, code)? {
                let class = classes.get(row.class as usize);
                let class = class.ok_or_else(|| self.inconsistent(Table::Samples))?;
                if let Some(class) = *class {
                    let samples = &mut session.samples;
                    let time_ns = row.time_ns.saturating_add(base.shift_ns);
                    samples.push_weighing(class, time_ns, row.weight);
                }
            }
        }
        if session.options.markers == 0 {
            session.markers.left_out = 0;
            return Ok(());
        }
        for MarkerRow(mut seen) in self.read_all(Table::Markers, texts, sample_rows::marker)? {
            let thread = base.thread(seen.thread);
            seen.thread = thread.ok_or_else(|| self.inconsistent(Table::Markers))?;
            base.times([&mut seen.time_ns]);
            match session.markers.seen.len() < session.options.markers {
                true => session.markers.seen.push(seen),
                false => session.markers.left_out += 1,
            }
        }
        Ok(())
    }
}

/// The stacks of a file, and their counterparts in a session.
struct Stacks {
    rows: Vec<StackRow>,
    interned: Vec<Option<StackId>>,
}

impl Stacks {
    /// Interns a stack of the file, if it is one.
    fn intern(&mut self, stack: StackId, session: &mut Session) -> Option<StackId> {
        // From the innermost frame to the first one that is interned, or to the outermost.
        let mut path = Vec::new();
        let mut at = Some(stack.index());
        let mut onto = None;
        while let Some(node) = at {
            let row = self.rows.get(node)?;
            onto = self.interned[node];
            if onto.is_some() {
                break;
            }
            path.push(node);
            at = match row.caller {
                0 => None,
                distance => Some(node.checked_sub(distance as usize)?),
            };
        }
        for node in path.into_iter().rev() {
            let frame = std::iter::once(self.rows[node].frame);
            onto = session.stacks.extend_walked(onto, frame);
            self.interned[node] = Some(onto?);
        }
        onto
    }
}
