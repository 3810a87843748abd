//! Passes native addresses to a symbol source in advance: large files resolve a batch much faster
//! than single addresses.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::filter::Filter;
use crate::ids::{ImageIndex, ProcessIndex, StackId};
use crate::resolve::{AddressAt, CodeAt};
use crate::resolver::Resolver;
use crate::samples::ClassIndex;
use crate::stacks::Walked;
use crate::terms::Position;

/// The stacks that were visited, by process and position; nearly all of one process.
struct Visited {
    first: Vec<Option<(ProcessIndex, Position)>>,
    others: FxHashSet<(StackId, (ProcessIndex, Position))>,
}

impl Visited {
    /// Creates a set for so many stacks.
    fn new(stacks: usize) -> Self {
        Visited {
            first: vec![None; stacks],
            others: FxHashSet::default(),
        }
    }

    /// Returns whether a stack is visited for the first time.
    fn insert(&mut self, stack: StackId, of: (ProcessIndex, Position)) -> bool {
        match &mut self.first[stack.index()] {
            Some(first) => *first != of && self.others.insert((stack, of)),
            first => first.replace(of).is_none(),
        }
    }
}

impl Resolver {
    /// Passes the native addresses on the stacks of all samples that pass `filter` to the symbol
    /// source.
    ///
    /// Only for speed; [`Timeline::profile`](crate::Timeline::profile) calls it.
    pub fn prepare(&mut self, filter: &Filter) {
        let timeline = self.timeline().clone();
        let mut spaces = timeline.spaces.iter();
        let Some(symbols) = self.symbols().cloned() else {
            return;
        };
        if spaces.all(|space| space.state.images.is_empty()) {
            return;
        }
        let passing = filter.classes(&timeline);
        let mut visited = vec![false; timeline.samples.classes().len()];
        let mut stacks = Visited::new(timeline.stacks.len());
        let mut rvas: FxHashMap<(ProcessIndex, ImageIndex), Vec<u64>> = FxHashMap::default();
        let mut visit = |class: ClassIndex, time| {
            let class = class as usize;
            if !passing[class] || std::mem::replace(&mut visited[class], true) {
                return;
            }
            let class = timeline.samples.classes()[class];
            let process = timeline.thread(class.thread).process;
            let mut position = class.kind.leaf_position();
            let mut node = Some(class.stack);
            // The callers of a visited stack have been visited, too.
            while let Some(stack) = node.filter(|&stack| stacks.insert(stack, (process, position)))
                && let Some((Walked { address, .. }, caller)) = timeline.stacks.split(stack)
            {
                let at = AddressAt::new(process, address, time, position);
                if let Some(location) = self.locate(at)
                    && let image = timeline.image_of_symbol(at, location)
                    && let location = image.as_ref().unwrap_or(location)
                    && let CodeAt::Image(owner, image) = location.code
                {
                    let images = &timeline.spaces[owner.index()].state.images;
                    let rva = images[image.index()].rva(location.looked_up);
                    rvas.entry((owner, image)).or_default().push(rva);
                }
                position = match caller {
                    Some(caller) => self.position_of(caller, address),
                    None => Position::Return,
                };
                node = caller;
            }
        };
        if filter.has_all_times() {
            let spans = timeline.samples.spans().iter();
            spans.for_each(|(class, span)| visit(class, span.first));
        } else {
            let samples = timeline.samples.iter();
            samples
                .filter(|&(_, time)| filter.has_time(time))
                .for_each(|(class, time)| visit(class, time));
        }
        for ((owner, image), mut rvas) in rvas {
            rvas.sort_unstable();
            rvas.dedup();
            symbols.prepare(&timeline.image_of(owner, image), &rvas);
        }
    }
}
