//! The inlined calls of a body at any address (rule 17).

use chronosym_types::hash::HashMap;

use super::FrameBuilder;
use crate::ids::{BodyIndex, ProcessIndex};
use crate::il_map::IlOffset;
use crate::inlinee::Inlinee;
use crate::resolve::AddressAt;
use crate::terms::Position;

impl FrameBuilder<'_> {
    /// Returns the nodes of the inline tree of a body, the method itself first; none without a
    /// tree.
    pub(crate) fn inlinees(&mut self, process: ProcessIndex, index: BodyIndex) -> Vec<Inlinee> {
        let timeline = self.timeline;
        let space = timeline.spaces.get(process.index());
        let body = space.and_then(|space| space.state.code.bodies.get(index.index()));
        let Some((body, tree)) = body.and_then(|body| Some((body, body.inline_tree()?))) else {
            return Vec::new();
        };
        let time = body.first_seen();
        let at = AddressAt::new(process, body.start, time, Position::Exact);
        let calls_are_valid = timeline.call_offsets_are_valid(process, body.clr_instance);
        let binary = body
            .module
            .and_then(|module| self.module_binary(process, module));
        let own = body
            .module
            .map(|m| (timeline.module_of(process, m), body.token));
        let root = (self.method_function(at, body, binary.as_ref()), own);
        let mut named = HashMap::default();
        let mut methods = Vec::with_capacity(tree.0.nodes().len());
        for node in tree.0.nodes() {
            let method = match node.parent {
                None => root.clone(),
                Some(_) => (named.entry(node.method_id))
                    .or_insert_with(|| {
                        let id = node.method_id;
                        let (function, method, _) =
                            self.inlined_function(at, body.clr_instance, id, time);
                        (function, method)
                    })
                    .clone(),
            };
            methods.push(method);
        }
        let mut inlinees = Vec::with_capacity(methods.len());
        for (node, (function, _)) in tree.0.nodes().iter().zip(&methods) {
            let caller = node.parent.and_then(|parent| methods.get(parent as usize));
            let call = u32::try_from(node.il_offset as i32).ok();
            let call = call.filter(|_| calls_are_valid).map(IlOffset::mapped);
            let line = caller
                .and_then(|(caller, method)| self.managed_line(caller, method.as_ref(), call).ok());
            inlinees.push(Inlinee {
                function: function.clone(),
                parent: node.parent,
                line,
            });
        }
        inlinees
    }
}
