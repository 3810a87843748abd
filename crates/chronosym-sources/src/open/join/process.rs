//! Finds the process of a perf.data that a runtime's recording covers.

use chronosym_core::{Diagnostic, DiagnosticKind, ProcessMatch};
use chronosym_types::hash::HashSet;

use super::begun::Runtime;
use super::joined::Join;
use crate::nettrace::{MethodAddresses, Methods};
use crate::open::error::OpenError;
use crate::perf::{MappedProcess, Outcome};

impl Join<'_> {
    /// Finds the process of each runtime's recording in the perf.data of this name.
    ///
    /// # Errors
    ///
    /// [`OpenError::NoProcess`] if the process with the recording's process id is another one.
    pub(super) fn find_processes(
        &mut self,
        runtimes: &mut [Runtime],
        perf_name: &str,
    ) -> Result<(), OpenError> {
        let named = self.beside.pids.clone();
        self.beside.find_by_jitdumps(&self.perf);
        let mut taken = HashSet::default();
        let mut undecided = Vec::new();
        for runtime in runtimes {
            let Some(own) = runtime.reader.header().process_id else {
                runtime.mapped = Some(self.check_ids(&runtime.name, &runtime.methods, perf_name));
                continue;
            };
            runtime.matched = match named.iter().find(|(inside, _)| *inside == own) {
                Some(&(_, pid)) => Some((pid, ProcessMatch::MapPid)),
                None => self.matched(own, runtime.methods.of(Some(own))),
            };
            match runtime.matched {
                Some((pid, _)) => _ = taken.insert(pid),
                None => undecided.push((own, runtime)),
            }
        }
        let is_only = undecided.len() == 1;
        for (own, runtime) in undecided {
            let contained = self.perf.only_contained(&taken);
            let contained = contained.filter(|(_, process)| {
                let methods = runtime.methods.of(Some(own));
                is_only && !self.perf.runs_dotnet(own) && !process.contradicts(methods)
            });
            runtime.matched = match contained {
                Some((pid, _)) => Some((pid, ProcessMatch::OnlyContained)),
                None => self.by_id(own, runtime, perf_name)?,
            };
        }
        Ok(())
    }

    /// Checks the processes of a recording of all processes against those of the perf.data with the
    /// same ids: returns how many have their methods mapped, and the number of those with methods.
    fn check_ids(&mut self, name: &str, methods: &Methods, perf_name: &str) -> (usize, usize) {
        let (mut mapped, mut all) = (0, 0);
        for (pid, methods) in methods.processes() {
            all += 1;
            let Some(process) = self.perf.processes.get(&pid) else {
                continue;
            };
            let has = |addresses: &[u64]| process.count(addresses) > 0;
            if has(&methods.precompiled) || has(&methods.jitted) {
                mapped += 1;
            } else if process.contradicts(methods) {
                let text = format!(
                    "the process {pid} has none of its precompiled methods mapped in {perf_name}: it may be another one"
                );
                let doubt = Diagnostic::of_file(DiagnosticKind::Unused, name, text);
                self.diagnostics.push(doubt);
            }
        }
        (mapped, all)
    }

    /// Returns the process of a recording: the one that contains its methods, that mapped its
    /// jitdump, or that has its id if that runs .NET.
    fn matched(&self, own: u32, methods: &MethodAddresses) -> Option<(u32, ProcessMatch)> {
        let by_jitdump = Some(self.beside.pid(own)).filter(|&pid| pid != own);
        let by_id = || {
            let process = self.perf.processes.get(&own)?;
            (process.runs_dotnet && !process.contradicts(methods)).then_some(own)
        };
        let by_code = self.perf.process_with(methods, own);
        (by_code.map(|pid| (pid, ProcessMatch::MappedCode)))
            .or(by_jitdump.map(|pid| (pid, ProcessMatch::Jitdump)))
            .or_else(|| by_id().map(|pid| (pid, ProcessMatch::ProcessId)))
    }

    /// Returns the process with the recording's own id, unless there is evidence that it is another
    /// one.
    fn by_id(
        &mut self,
        own: u32,
        runtime: &Runtime,
        perf_name: &str,
    ) -> Result<Option<(u32, ProcessMatch)>, OpenError> {
        if !self.session.has_process(own) {
            let text = format!(
                "its process {own} is not in {perf_name}; if it has another id there, add --map-pid {own}=PID"
            );
            let name = runtime.name.clone();
            let unused = Diagnostic::of_file(DiagnosticKind::Unused, name, text);
            self.diagnostics.push(unused);
            return Ok(None);
        }
        let process = self.perf.processes.get(&own);
        let no_process = |reason| OpenError::NoProcess {
            name: runtime.name.clone(),
            perf: perf_name.to_owned(),
            process: own,
            reason,
        };
        if process.is_some_and(|process| process.contradicts(runtime.methods.of(Some(own)))) {
            return Err(no_process("has none of its precompiled methods mapped"));
        }
        let any_dotnet = self.perf.processes.values().any(|it| it.runs_dotnet);
        if any_dotnet && !self.perf.runs_dotnet(own) {
            return Err(no_process("does not run .NET, and others do"));
        }
        Ok(Some((own, ProcessMatch::ProcessId)))
    }
}

impl Outcome {
    fn runs_dotnet(&self, pid: u32) -> bool {
        self.processes.get(&pid).is_some_and(|it| it.runs_dotnet)
    }

    /// Returns the process whose mappings contain the most methods, and at least half of them.
    fn process_with(&self, methods: &MethodAddresses, own: u32) -> Option<u32> {
        let (is_precompiled, addresses) = match methods.precompiled.as_slice() {
            [] => (false, methods.jitted.as_slice()),
            precompiled => (true, precompiled),
        };
        let counts = self.processes.iter().map(|(&pid, process)| {
            // Precompiled code may have been copied to memory.
            let count = match is_precompiled {
                true => process.count(addresses),
                false => process.anonymous.count(addresses),
            };
            (count, pid)
        });
        let counts: Vec<(usize, u32)> = counts.collect();
        let &(most, first) = counts
            .iter()
            .max_by_key(|&&(count, pid)| (count, pid == own))?;
        let same = counts.iter().filter(|&&(count, _)| count == most).count();
        let is_clear = same == 1 || first == own;
        (most > 0 && most * 2 >= addresses.len() && is_clear).then_some(first)
    }

    /// Returns the only process in a container that runs .NET, except those that are `taken`.
    fn only_contained(&self, taken: &HashSet<u32>) -> Option<(u32, &MappedProcess)> {
        let mut contained = (self.processes.iter())
            .filter(|(pid, it)| it.runs_dotnet && it.is_contained && !taken.contains(pid));
        let (&pid, process) = contained.next()?;
        contained.next().is_none().then_some((pid, process))
    }
}

impl MappedProcess {
    /// Returns whether the process has managed images mapped, and none of the precompiled methods
    /// is in any of them.
    fn contradicts(&self, methods: &MethodAddresses) -> bool {
        const ENOUGH: usize = 8;
        self.has_assemblies
            && methods.precompiled.len() >= ENOUGH
            && self.count(&methods.precompiled) == 0
    }
}
