//! Shared by commands that use samples.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use chronosym::symbols::Symbolizer;
use chronosym::{Filter, LimitReached, Options, Profile, SampleSelection};
use chronosym_export::{CallTree, Granularity, Series, Shape, TableOptions, TreeOptions};

use crate::args::{OfTrace, Selection, Symbols};
use crate::load::{self, Loaded};
use crate::{absent, limits, output, progress, symbolizer};

/// The samples of traces: filter, shape and symbols.
pub struct Sampled {
    pub loaded: Loaded,
    pub symbols: Arc<Symbolizer>,
    pub filter: Filter,
    pub shape: Shape,
}

impl Sampled {
    /// Reads traces of one recording with at most `markers` marker events, and reports diagnostics.
    pub fn read(
        traces: &[PathBuf],
        symbols: &Symbols,
        selection: &Selection,
        markers: usize,
    ) -> Result<Self> {
        let shape = selection.shaping.shape()?;
        let (filters, samples) = (&selection.filters, &selection.samples);
        absent::refuse_empty_span(&filters.processes)?;
        if samples.managed_only {
            progress::hint("--managed-only is --running now: it leaves out threads that waited");
        }
        let mut options = Options::from(match filters.event.as_slice() {
            [] => SampleSelection::Profilers,
            events => SampleSelection::Events(events.to_vec()),
        });
        options.markers = markers;
        let loaded = load::load(traces, options, symbols)?;
        if loaded.timeline.facts().lacks_samples {
            bail!("the timeline was saved without samples: save it again with --with-samples");
        }
        progress::notes(&loaded.diagnostics.list);
        absent::refuse(filters, &loaded.timeline)?;
        let symbols = Arc::new(symbolizer::open(symbols, &loaded)?);
        let mut filter = load::filter(&filters.processes, &loaded.timeline)?;
        filter.tid = filters.tid;
        filter.waiting = samples.waiting();
        filter.idle = samples.idle;
        Ok(Sampled {
            loaded,
            symbols,
            filter,
            shape,
        })
    }

    /// Returns the profile.
    pub fn profile(&self) -> Profile {
        let symbols = self.symbols.clone();
        let mut profile = self.loaded.timeline.profile(&self.filter, Some(symbols));
        self.shape.apply(&mut profile);
        profile
    }

    /// Returns the profile of numbers of samples, without times and bytes.
    pub fn counts(&self) -> Profile {
        let symbols = self.symbols.clone();
        let mut profile = self.loaded.timeline.counts(&self.filter, Some(symbols));
        self.shape.apply(&mut profile);
        profile
    }

    /// Returns the samples in time order.
    pub fn series(&self, granularity: Granularity) -> Series {
        let timeline = &self.loaded.timeline;
        let symbols = self.symbols.clone();
        Series::new(
            timeline,
            &self.filter,
            Some(symbols),
            &self.shape,
            granularity,
        )
    }
}

/// Returns the call tree of a profile, and reports what was left out.
pub fn tree(profile: &Profile, mut options: TreeOptions) -> CallTree {
    options.max_nodes = limits::get().tree_nodes;
    let tree = CallTree::new(profile, options);
    if tree.left_out() > 0 {
        let limit = LimitReached::TreeNodes(options.max_nodes);
        let (count, all) = (tree.left_out(), profile.samples());
        progress::note(&format!(
            "{limit}: the innermost frames of {count} of {all} samples are left out"
        ));
    }
    tree
}

/// Returns the profile of a trace, and its symbols.
pub fn profile(args: &OfTrace) -> Result<(Profile, Arc<Symbolizer>)> {
    let input = &args.input;
    let sampled = Sampled::read(&input.traces, &input.symbols, &args.selection, 0)?;
    Ok((sampled.profile(), sampled.symbols))
}

/// Returns the size and style of a table.
pub fn shown(max_lines: usize, output: Option<&Path>) -> TableOptions {
    TableOptions {
        max_lines,
        width: output::width(output),
        color: output::is_coloured(output),
    }
}
