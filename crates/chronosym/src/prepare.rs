//! Telling a symbol source beforehand which native addresses are to come: large files answer many at once much faster.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::filter::Filter;
use crate::frame::Position;
use crate::images::ImageIndex;
use crate::process::ProcessIndex;
use crate::resolve::Found;
use crate::symbol_source::SymbolSource;
use crate::timeline::Timeline;

impl Timeline {
    /// Tells `symbols` of the native addresses on the stacks of the samples that pass `filter`.
    ///
    /// Needed for nothing but speed; [`Timeline::profile`] does it by itself.
    pub fn prepare_symbols(&self, filter: &Filter, symbols: &dyn SymbolSource) {
        if self
            .spaces
            .iter()
            .all(|space| space.state.images.is_empty())
        {
            return;
        }
        let passing = filter.classes(self);
        let mut met = vec![false; self.samples.classes().len()];
        let mut nodes = FxHashSet::default();
        let mut rvas: FxHashMap<(ProcessIndex, ImageIndex), FxHashSet<u64>> = FxHashMap::default();
        for (class, time) in self.samples.iter() {
            let at = class as usize;
            if !passing[at] || !filter.has_time(time) || std::mem::replace(&mut met[at], true) {
                continue;
            }
            let class = self.samples.classes()[at];
            let process = self.thread(class.thread).process;
            let mut position = if class.kind.leaf_is_address() {
                Position::Exact
            } else {
                Position::Return
            };
            let mut node = Some(class.stack);
            // The callers of a stack that was met were met with it.
            while let Some(stack) = node.filter(|&stack| nodes.insert((process, stack, position))) {
                let address = self.stacks.address(stack);
                let location = self.locate(process, address, time, position);
                if let Found::Image(owner, image) = location.found {
                    let rva = self.spaces[owner.index()].state.images[image.index()]
                        .rva(location.looked_up);
                    rvas.entry((owner, image)).or_default().insert(rva);
                }
                position = Position::Return;
                node = self.stacks.caller(stack);
            }
        }
        for ((owner, image), rvas) in rvas {
            let mut rvas: Vec<u64> = rvas.into_iter().collect();
            rvas.sort_unstable();
            symbols.prepare(&self.image_ref(owner, image), &rvas);
        }
    }
}
