//! State of a process's CLR other than its code.

use std::collections::BTreeMap;
use std::sync::Arc;

use chronosym_events::{CodeSymbols, MethodDetails, RichDebugChunks, RichDebugInfo};
use chronosym_types::hash::{HashMap, HashSet};

use crate::facts::InlineTree;
use crate::layers::Layers;
use crate::strings::StringId;
use crate::symbol_identity::InMemoryPdb;

/// State from CLR events other than those about code.
#[derive(Debug, Default)]
pub(crate) struct ClrState {
    /// Method id → its `MethodDetails` by time, oldest first.
    details: Layers<u64, (u64, Details)>,
    /// Type id → its names by time, oldest first.
    type_names: Layers<u64, (u64, StringId)>,
    /// In-memory symbols: module id → its PDB.
    code_symbols: Arc<HashMap<(u16, u64), SymbolChunks>>,
    /// Incomplete inline trees with the time of their last chunk, by the thread that writes them.
    open_trees: HashMap<u64, (u64, RichDebugChunks)>,
    /// Bytes of the chunks of PDBs and inline trees, received so far.
    pdb_bytes: usize,
}

/// A PDB that arrives in chunks.
#[derive(Clone, Debug)]
enum SymbolChunks {
    /// The number of chunks, and those received by number.
    Open(u16, BTreeMap<u16, Vec<u8>>),
    Joined(InMemoryPdb),
}

/// `MethodDetails`: the type, token and loader module of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub type_id: u64,
    pub token: u32,
    pub loader_module_id: u64,
}

impl ClrState {
    /// Returns the PDB of an in-memory module once all its chunks have arrived.
    pub fn in_memory_pdb(&self, clr_instance: u16, module_id: u64) -> Option<&InMemoryPdb> {
        match self.code_symbols.get(&(clr_instance, module_id))? {
            SymbolChunks::Joined(pdb) => Some(pdb),
            SymbolChunks::Open(..) => None,
        }
    }

    /// Returns whether in-memory symbols are the same.
    pub fn has_same_symbols(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.code_symbols, &other.code_symbols)
    }

    /// Number of details and names.
    pub fn len(&self) -> usize {
        self.details.len() + self.type_names.len() + self.open_trees.len()
    }

    /// Bytes of in-memory PDBs.
    pub fn pdb_bytes(&self) -> usize {
        self.pdb_bytes
    }

    /// Returns the last `MethodDetails` of a method before `time`, or else the first, with its
    /// time.
    pub fn details(&self, method_id: u64, time: u64) -> Option<(u64, Details)> {
        let before = self.details.of(method_id).rfind(|&(at, _)| at <= time);
        before.or_else(|| self.details.of(method_id).next())
    }

    /// Returns the latest name of a type.
    pub fn type_name(&self, type_id: u64) -> Option<StringId> {
        self.type_names
            .of(type_id)
            .next_back()
            .map(|(_, name)| name)
    }

    /// Records the name of a type.
    pub fn name_type(&mut self, time: u64, type_id: u64, name: StringId) {
        if self.type_name(type_id) != Some(name) {
            self.type_names.push(type_id, (time, name));
        }
    }

    /// Returns the state that queries need; later events do not change it.
    pub fn snapshot(&mut self) -> Self {
        ClrState {
            details: self.details.snapshot(),
            type_names: self.type_names.snapshot(),
            code_symbols: self.code_symbols.clone(),
            open_trees: HashMap::default(),
            pdb_bytes: self.pdb_bytes,
        }
    }

    /// Returns every `MethodDetails` of a method with its time, oldest first.
    pub fn all_details(&self, method_id: u64) -> impl Iterator<Item = (u64, Details)> {
        self.details.of(method_id)
    }

    /// Adds details that an earlier session logged.
    pub fn add_details(&mut self, method_id: u64, time: u64, details: Details) {
        self.details.push(method_id, (time, details));
    }

    /// Returns the complete in-memory PDBs by runtime instance and module id.
    pub fn pdbs(&self) -> impl Iterator<Item = ((u16, u64), &InMemoryPdb)> {
        let symbols = self.code_symbols.iter();
        symbols.filter_map(|(&key, symbols)| match symbols {
            SymbolChunks::Joined(pdb) => Some((key, pdb)),
            SymbolChunks::Open(..) => None,
        })
    }

    /// Adds a complete PDB.
    pub fn add_pdb(&mut self, key: (u16, u64), pdb: InMemoryPdb) {
        Arc::make_mut(&mut self.code_symbols).insert(key, SymbolChunks::Joined(pdb));
    }

    /// Drops state logged by `horizon_ns` that belongs to none of the `modules`.
    pub fn forget(&mut self, horizon_ns: u64, modules: &HashSet<u64>) {
        let is_loaded = |details: Details| modules.contains(&details.loader_module_id);
        self.details
            .retain(|_, (time, details)| time > horizon_ns || is_loaded(details));
        let types: HashSet<u64> = self.details.values().map(|(_, it)| it.type_id).collect();
        self.type_names
            .retain(|id, (time, _)| time > horizon_ns || types.contains(&id));
        let has_module = |(_, module): &(u16, u64)| modules.contains(module);
        if !self.code_symbols.keys().all(has_module) {
            Arc::make_mut(&mut self.code_symbols).retain(|key, _| has_module(key));
        }
        self.open_trees.retain(|_, (time, _)| *time > horizon_ns);
        self.open_trees.shrink_to(2 * self.open_trees.len());
    }

    /// Returns the strings in use.
    pub fn strings(&self) -> impl Iterator<Item = StringId> {
        self.type_names.values().map(|(_, name)| name)
    }

    pub fn method_details(&mut self, time: u64, event: &MethodDetails<'_>) {
        let details = Details {
            type_id: event.type_id,
            token: event.token,
            loader_module_id: event.loader_module_id,
        };
        let last = self.details.of(event.method_id).next_back();
        if last.is_none_or(|(_, last)| last != details) {
            self.details.push(event.method_id, (time, details));
        }
    }

    /// Stores a chunk of an in-memory PDB, and joins the chunks once the last one has arrived.
    pub fn symbols(&mut self, event: &CodeSymbols<'_>) {
        let key = (event.clr_instance_id, event.module_id);
        self.pdb_bytes += 2 * event.chunk.len();
        let symbols = Arc::make_mut(&mut self.code_symbols)
            .entry(key)
            .or_insert_with(|| SymbolChunks::Open(0, BTreeMap::new()));
        if let SymbolChunks::Open(total, chunks) = symbols {
            *total = event.total_chunks.max(*total);
            chunks
                .entry(event.chunk_number)
                .or_insert_with(|| event.chunk.to_vec());
            // The keys are distinct, so their number shows that none up to the last one is missing.
            let last = chunks
                .last_key_value()
                .map(|(&last, _)| u32::from(last) + 1);
            if chunks.len() == usize::from(*total) && last == Some(u32::from(*total)) {
                let joined: Vec<u8> = chunks.values().flatten().copied().collect();
                *symbols = SymbolChunks::Joined(InMemoryPdb::new(joined));
            }
        }
    }

    /// Adds a chunk of an inline tree. Returns the tree once it is complete, and an error if the
    /// chunks do not form a tree.
    pub fn rich_debug_info(
        &mut self,
        (writer, time): (u64, u64),
        event: &RichDebugInfo<'_>,
    ) -> Result<Option<InlineTree>, chronosym_events::InlineTreeError> {
        let (last, chunks) = self.open_trees.entry(writer).or_default();
        *last = time;
        let tree = chunks.push(event)?;
        Ok(tree.map(|tree| InlineTree {
            clr_instance: event.clr_instance_id,
            version: event.native_code_version,
            ..InlineTree::new(event.method_id, tree)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::facts::{Action, At, Module};
    use crate::machine::Machine;

    #[test]
    fn details_of_methods_go_with_their_loader() {
        let mut machine = Machine::default();
        let process = machine.process(Some(1), 0);
        for n in 0..100u64 {
            let at = At::new(n * 10);
            let mut path = String::from("/app/plugin");
            let _ = write!(path, "{n}.dll");
            machine.apply_to(process, at, Module::new(Action::Load, n, &*path).into());
            let state = machine.state(process);
            for method in 0..10 {
                let details = Details {
                    type_id: 1,
                    token: 2,
                    loader_module_id: n,
                };
                state
                    .clr
                    .details
                    .push(n * 10 + method, (at.time_ns, details));
            }
            let before = state.clr.snapshot();
            let at = At::new(n * 10 + 5);
            machine.apply_to(process, at, Module::new(Action::Unload, n, &*path).into());
            let state = machine.state(process);
            state.forget_details(n * 10);
            assert!(state.clr.details.values().count() <= 20, "{n}");
            assert!(state.clr.details(n * 10, at.time_ns).is_some());
            assert!(before.details(n * 10, at.time_ns).is_some());
        }
    }
}
