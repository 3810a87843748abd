//! Code bodies, batch by batch.

use std::sync::Arc;

use chronosym::{OptimizationTier, ProcessIndex, Timeline};

use crate::arrow::{Array, Categories, Field, NONE};
use crate::samples::ROWS;

/// The code bodies of a timeline, process by process.
pub struct Bodies {
    timeline: Arc<Timeline>,
    processes: Vec<(ProcessIndex, Option<u32>)>,
    process: usize,
    /// Bodies of the process that were returned.
    done: usize,
    modules: Categories,
    tiers: Categories,
    evidence: Categories,
}

impl Bodies {
    pub fn new(timeline: &Arc<Timeline>) -> Self {
        let processes = timeline.processes().map(|it| (it.index, it.pid)).collect();
        Bodies {
            timeline: timeline.clone(),
            processes,
            process: 0,
            done: 0,
            modules: Categories::default(),
            tiers: Categories::of(OptimizationTier::ALL.iter().map(|it| it.name())),
            evidence: Categories::default(),
        }
    }

    /// The columns of [`next`](Self::next).
    pub fn fields() -> Field {
        Field::rows(vec![
            Field::u32("pid").or_null(),
            Field::u64("start"),
            Field::u64("size"),
            Field::u64("from_ns"),
            Field::u64("to_ns").or_null(),
            Field::category("module").or_null(),
            Field::text("method"),
            Field::text("signature"),
            Field::u64("method_id"),
            Field::u32("token").or_null(),
            Field::category("tier").or_null(),
            Field::category("evidence").or_null(),
        ])
    }

    /// The next bodies; `None` after the last one.
    pub fn next(&mut self) -> Option<Array> {
        loop {
            let &(process, pid) = self.processes.get(self.process)?;
            match self.next_of(process, pid) {
                Some(rows) => return Some(rows),
                None => (self.process, self.done) = (self.process + 1, 0),
            }
        }
    }

    fn next_of(&mut self, process: ProcessIndex, pid: Option<u32>) -> Option<Array> {
        let [mut starts, mut sizes, mut from, mut to, mut ids] =
            [Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let [mut modules, mut tokens, mut tiers, mut evidence] =
            [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
        let (mut methods, mut signatures) = (Default::default(), Default::default());
        let push = |texts: &mut crate::arrow::Texts, text: Option<&str>| {
            texts.push(text.unwrap_or_default());
        };
        let timeline = self.timeline.clone();
        for body in timeline.bodies(process).skip(self.done).take(ROWS) {
            starts.push(body.start);
            sizes.push(body.size);
            from.push(body.lifetime.from);
            to.push(body.lifetime.to);
            modules.push(self.modules.number(body.module.unwrap_or_default()));
            push(&mut methods, body.name.as_deref());
            push(&mut signatures, body.signature);
            ids.push(body.method_id);
            tokens.push(body.token);
            tiers.push(body.tier.map_or(NONE, |it| it as u32));
            evidence.push(self.evidence.number(&body.evidence.to_string()));
        }
        let rows = starts.len();
        self.done += rows;
        (rows > 0).then(|| {
            let columns = vec![
                Array::numbers_or_null(vec![pid.unwrap_or(NONE); rows], NONE),
                Array::numbers(starts),
                Array::numbers(sizes),
                Array::numbers(from),
                Array::numbers_or_null(to, u64::MAX),
                self.modules.column(modules),
                methods.take(),
                signatures.take(),
                Array::numbers(ids),
                Array::numbers_or_null(tokens, 0),
                self.tiers.column(tiers),
                self.evidence.column(evidence),
            ];
            Array::rows(rows, columns)
        })
    }
}
