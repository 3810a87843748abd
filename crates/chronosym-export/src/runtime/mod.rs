//! Reports of the runtime's own events, as text and as JSON.

mod allocations;
mod contention;
mod context;
mod counters;
mod exceptions;
mod gc;
mod grid;
mod inlining;
mod jit;
mod overview;
mod sites;
mod threadpool;

use std::io::{self, Write};
use std::sync::Arc;

use chronosym_core::{Filter, SymbolSource, Timeline};
use chronosym_runtime::Report;
use serde::ser::SerializeMap;

use crate::object::{Fields, Object};
use crate::table::TableOptions;

pub use context::to_record;
pub use inlining::Inlining;
pub(crate) use inlining::{Decisions, decisions};
pub use overview::RuntimeOverview;

use self::allocations::AllocationsView;
use self::contention::ContentionView;
use self::context::Context;
use self::counters::CountersView;
use self::exceptions::ExceptionsView;
use self::gc::GcView;
use self::jit::JitView;
use self::threadpool::ThreadPoolView;

/// A report of a timeline that was read with the [`Report`]'s options.
#[derive(Debug)]
pub struct RuntimeReport(View);

#[derive(Debug)]
enum View {
    Gc(GcView),
    Jit(JitView),
    Exceptions(ExceptionsView),
    Allocations(AllocationsView),
    Contention(ContentionView),
    ThreadPool(ThreadPoolView),
    Counters(CountersView),
}

impl RuntimeReport {
    /// Makes a report of the events within a filter.
    pub fn new(
        report: Report,
        timeline: &Arc<Timeline>,
        filter: &Filter,
        symbols: Option<Arc<dyn SymbolSource>>,
    ) -> Self {
        let mut context = Context::new(timeline, filter, symbols);
        let of = &mut context;
        RuntimeReport(match report {
            Report::Gc => View::Gc(GcView::new(of)),
            Report::Jit => View::Jit(JitView::new(of)),
            Report::Exceptions => View::Exceptions(ExceptionsView::new(of)),
            Report::Allocations => View::Allocations(AllocationsView::new(of)),
            Report::Contention => View::Contention(ContentionView::new(of)),
            Report::ThreadPool => View::ThreadPool(ThreadPoolView::new(of)),
            Report::Counters => View::Counters(CountersView::new(of)),
        })
    }

    /// Writes the report as sentences and tables.
    pub fn write(&self, options: TableOptions, out: &mut impl Write) -> io::Result<()> {
        match &self.0 {
            View::Gc(view) => view.write(options, out),
            View::Jit(view) => view.write(options, out),
            View::Exceptions(view) => view.write(options, out),
            View::Allocations(view) => view.write(options, out),
            View::Contention(view) => view.write(options, out),
            View::ThreadPool(view) => view.write(options, out),
            View::Counters(view) => view.write(options, out),
        }
    }
}

impl Fields for RuntimeReport {
    fn fields<M: SerializeMap>(&self, object: &mut Object<M>) {
        match &self.0 {
            View::Gc(view) => view.fields(object),
            View::Jit(view) => view.fields(object),
            View::Exceptions(view) => view.fields(object),
            View::Allocations(view) => view.fields(object),
            View::Contention(view) => view.fields(object),
            View::ThreadPool(view) => view.fields(object),
            View::Counters(view) => view.fields(object),
        }
    }
}
