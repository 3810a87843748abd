//! The rows of deltas: the input of a session, in order.

use chronosym_events::{Action, Extent, MethodFlags, PointerSize};
use chronosym_types::{FileNumber, Guid, MappedFile, PdbId, closed_list};

use super::coder::Coder;
use crate::evidence::Evidence;
use crate::facts::{self, At, Fact, Text};
use crate::recording::{Loss, LossScope};
use crate::symbol_identity::PdbReference;
use crate::terms::Addressing;

closed_list! {
    /// The kind of a step.
    StepKind {
        Event = "event",
        PerfMap = "perf map",
        ProcessName = "name of a process",
        Loss = "loss",
        Process = "process",
        Fork = "fork",
        Exec = "exec",
        ThreadName = "name of a thread",
        Image = "image",
        Module = "module",
        Method = "method",
        JitStart = "start of a compilation",
        IlMap = "IL map",
        InlineTree = "inline tree",
        RundownComplete = "end of a rundown",
        Stub = "stub",
        NativeMethod = "native method",
        NativeMove = "move of a native method",
        Symbol = "symbol",
        ProcessKey = "key of a process",
    }
}

/// One step: its kind, and its values in the order of [`Step::of_fact`].
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub kind: StepKind,
    pub at: At,
    pub numbers: Vec<u64>,
    pub texts: Vec<String>,
    pub bytes: Vec<u8>,
}

impl Default for Step {
    fn default() -> Self {
        Step::new(StepKind::Event, At::default())
    }
}

/// Codes a step.
pub(super) fn step(coder: &mut Coder<'_>, step: &mut Step) {
    coder.member(&StepKind::ALL, &mut step.kind);
    coder.delta(&mut step.at.time_ns);
    coder.option(&mut step.at.process, 1, Coder::delta);
    coder.option(&mut step.at.thread, 1, Coder::delta);
    coder.option(&mut step.at.writer, 1, Coder::delta);
    coder.list(&mut step.numbers, 1, Coder::number);
    coder.list(&mut step.texts, 2, Coder::text);
    coder.bytes(&mut step.bytes);
}

impl Step {
    pub fn new(kind: StepKind, at: At) -> Self {
        Step {
            kind,
            at,
            numbers: Vec::new(),
            texts: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Creates the step of an event, whose type has a number in the same delta.
    pub fn of_event(event_type: u32, at: At, pointer_size: PointerSize, payload: &[u8]) -> Self {
        let is_wide = u64::from(pointer_size == PointerSize::Eight);
        Step {
            numbers: vec![event_type.into(), is_wide],
            bytes: payload.to_vec(),
            ..Step::new(StepKind::Event, at)
        }
    }

    pub fn of_loss(loss: &Loss) -> Self {
        Step {
            numbers: vec![
                loss.from_ns,
                loss.to_ns,
                loss.events,
                loss.buffers,
                loss.notices,
                loss.scope.number(),
                loss.process.map_or(0, |pid| u64::from(pid) + 1),
            ],
            ..Step::new(StepKind::Loss, At::default())
        }
    }

    pub fn of_perf_map(pid: u32, base: u64, text: &[u8]) -> Self {
        Step {
            numbers: vec![base],
            bytes: text.to_vec(),
            ..Step::new(StepKind::PerfMap, At::default().process(pid))
        }
    }

    pub fn of_process_name(pid: u32, name: &[u8]) -> Self {
        Step {
            bytes: name.to_vec(),
            ..Step::new(StepKind::ProcessName, At::default().process(pid))
        }
    }

    pub fn of_fact(at: At, fact: &Fact<'_>) -> Self {
        let mut step = Step::new(StepKind::Exec, at);
        let out = &mut step;
        out.kind = match fact {
            Fact::Process(it) => {
                out.numbers.extend([action(it.action), it.is_wow64.into()]);
                out.texts.extend([text(it.name), text(it.command_line)]);
                StepKind::Process
            }
            Fact::ProcessKey(it) => {
                out.option(it.started_unix_ns.map(|started| started as u64));
                out.option(it.pid_namespace);
                StepKind::ProcessKey
            }
            Fact::Fork { parent } => {
                out.numbers.push(u64::from(*parent));
                StepKind::Fork
            }
            Fact::Exec => StepKind::Exec,
            Fact::ThreadName(name) => {
                out.texts.push(text(*name));
                StepKind::ThreadName
            }
            Fact::Image(it) => {
                out.image(it);
                StepKind::Image
            }
            Fact::Module(it) => {
                out.numbers.extend([
                    action(it.action),
                    it.clr_instance.into(),
                    it.id,
                    it.assembly_id,
                ]);
                out.texts.extend([text(it.il_path), text(it.native_path)]);
                out.pdb(it.managed_pdb.as_ref());
                out.pdb(it.native_pdb.as_ref());
                StepKind::Module
            }
            Fact::Method(it) => {
                out.numbers.extend([
                    action(it.action),
                    it.clr_instance.into(),
                    it.id,
                    it.module_id,
                ]);
                out.numbers
                    .extend([it.start, it.size.into(), it.token.into()]);
                out.numbers
                    .extend([it.flags.0.into(), it.native_code_version]);
                out.texts.extend(it.names.map(text));
                StepKind::Method
            }
            Fact::JitStart { method_id } => {
                out.numbers.push(*method_id);
                StepKind::JitStart
            }
            Fact::IlMap(it) => {
                out.numbers
                    .extend([action(it.action), it.clr_instance.into(), it.method_id]);
                out.option(it.version);
                out.numbers.push((it.extent == Extent::Cold).into());
                let entries = it.entries.iter();
                out.numbers.extend(
                    entries.flat_map(|&(il, native)| [u64::from(il as u32), native.into()]),
                );
                StepKind::IlMap
            }
            Fact::InlineTree(it) => {
                out.inline_tree(it);
                StepKind::InlineTree
            }
            Fact::RundownComplete { clr_instance } => {
                out.numbers.push(u64::from(*clr_instance));
                StepKind::RundownComplete
            }
            Fact::Stub(it) => {
                out.numbers
                    .extend([it.clr_instance.into(), it.method_id, it.is_shared.into()]);
                out.texts.extend(it.target.map(text));
                StepKind::Stub
            }
            Fact::NativeMethod(it) => {
                out.numbers.extend([it.start, it.size.into()]);
                out.texts.push(text(it.name));
                for &(address, file, line) in it.lines {
                    out.numbers.extend([address, line.into()]);
                    out.texts.push(file.to_owned());
                }
                StepKind::NativeMethod
            }
            Fact::NativeMove { from, to } => {
                out.numbers.extend([*from, *to]);
                StepKind::NativeMove
            }
            Fact::Symbol(it) => {
                out.numbers
                    .extend([it.start, it.last, member(&Evidence::ALL, it.evidence)]);
                out.texts.extend([text(it.name), text(it.module)]);
                if it.evidence == Evidence::Profile {
                    let line = it.profiled.unwrap_or_default();
                    let numbers = [u64::from(line.line), u64::from(line.is_inlined)];
                    out.numbers.extend(numbers);
                    out.texts.push(text(line.file));
                }
                StepKind::Symbol
            }
        };
        step
    }

    fn option(&mut self, value: Option<u64>) {
        self.numbers.push(value.is_some().into());
        self.numbers.extend(value);
    }

    fn pdb(&mut self, pdb: Option<&PdbReference>) {
        self.numbers.push(pdb.is_some().into());
        if let Some(pdb) = pdb {
            let guid = pdb.id.guid.to_u128();
            self.numbers
                .extend([(guid >> 64) as u64, guid as u64, pdb.id.age.into()]);
            self.texts.push(pdb.path.clone());
        }
    }

    fn image(&mut self, it: &facts::Image<'_>) {
        self.numbers
            .extend([action(it.action), it.base, it.size, it.file_offset]);
        self.numbers
            .extend([member(&ADDRESSINGS, it.addressing), it.is_function.into()]);
        self.option(it.timestamp.map(u64::from));
        self.texts.extend([text(it.path), it.build_id.to_owned()]);
        self.pdb(it.pdb.as_ref());
        self.numbers.push(it.file.is_some().into());
        if let Some(file) = &it.file {
            let FileNumber {
                device,
                inode,
                generation,
            } = file.number;
            self.numbers
                .extend([device.0.into(), device.1.into(), inode, generation]);
            self.option(file.here_until_ns);
        }
    }

    fn inline_tree(&mut self, it: &facts::InlineTree) {
        let nodes = it.tree.nodes();
        self.numbers.extend([
            it.clr_instance.into(),
            it.method_id,
            it.version,
            nodes.len() as u64,
        ]);
        for node in nodes {
            self.numbers.extend([node.method_id, node.il_offset.into()]);
            self.option(node.parent.map(u64::from));
        }
        for mapping in it.tree.mappings() {
            let il = u64::from(mapping.il_offset as u32);
            self.numbers
                .extend([mapping.native_offset.into(), il, mapping.node.into()]);
        }
        self.numbers.push(it.tree.faults().into());
    }

    /// Calls `apply` with the fact of the step. `None` if its form is invalid.
    pub fn fact(&self, apply: impl FnOnce(At, Fact<'_>)) -> Option<()> {
        let mut numbers = Numbers(&self.numbers);
        let mut texts = self.texts.iter().map(String::as_str);
        let mut text = || texts.next();
        let it = &mut numbers;
        // Values that a fact borrows.
        let entries: Vec<(i32, u32)>;
        let lines: Vec<(u64, &str, u32)>;
        let build_id: &str;
        let fact: Fact<'_> = match self.kind {
            StepKind::Event | StepKind::PerfMap | StepKind::ProcessName | StepKind::Loss => {
                return None;
            }
            StepKind::Process => facts::Process {
                action: it.action()?,
                is_wow64: it.flag()?,
                name: text()?.into(),
                command_line: text()?.into(),
            }
            .into(),
            StepKind::ProcessKey => {
                let started: Option<u64> = it.option()?;
                let started = started.map(|started| started as i64);
                facts::ProcessKey::new(started, it.option()?).into()
            }
            StepKind::Fork => Fact::Fork { parent: it.next()? },
            StepKind::Exec => Fact::Exec,
            StepKind::ThreadName => Fact::ThreadName(text()?.into()),
            StepKind::Image => {
                let path = text()?;
                build_id = text()?;
                facts::Image {
                    action: it.action()?,
                    base: it.next()?,
                    size: it.next()?,
                    path: path.into(),
                    file_offset: it.next()?,
                    addressing: it.member(&ADDRESSINGS)?,
                    is_function: it.flag()?,
                    timestamp: it.option()?,
                    pdb: it.pdb(&mut text)?,
                    build_id,
                    file: it.file()?,
                }
                .into()
            }
            StepKind::Module => facts::Module {
                action: it.action()?,
                clr_instance: it.next()?,
                id: it.next()?,
                assembly_id: it.next()?,
                il_path: text()?.into(),
                native_path: text()?.into(),
                managed_pdb: it.pdb(&mut text)?,
                native_pdb: it.pdb(&mut text)?,
            }
            .into(),
            StepKind::Method => facts::Method {
                action: it.action()?,
                clr_instance: it.next()?,
                id: it.next()?,
                module_id: it.next()?,
                start: it.next()?,
                size: it.next()?,
                token: it.next()?,
                flags: MethodFlags(it.next()?),
                native_code_version: it.next()?,
                names: [text()?.into(), text()?.into(), text()?.into()],
            }
            .into(),
            StepKind::JitStart => Fact::JitStart {
                method_id: it.next()?,
            },
            StepKind::IlMap => {
                let mut map = facts::IlMap::new(it.action()?, 0, &[]);
                (map.clr_instance, map.method_id) = (it.next()?, it.next()?);
                map.version = it.option()?;
                map.extent = if it.flag()? {
                    Extent::Cold
                } else {
                    Extent::Hot
                };
                let pairs = it.rest().chunks_exact(2);
                let pair = |pair: &[u64]| Some((narrow(pair[0])? as i32, narrow(pair[1])?));
                entries = pairs.map(pair).collect::<Option<_>>()?;
                map.entries = &entries;
                map.into()
            }
            StepKind::InlineTree => it.inline_tree()?.into(),
            StepKind::RundownComplete => Fact::RundownComplete {
                clr_instance: it.next()?,
            },
            StepKind::Stub => facts::Stub {
                clr_instance: it.next()?,
                method_id: it.next()?,
                is_shared: it.flag()?,
                target: [text()?.into(), text()?.into(), text()?.into()],
            }
            .into(),
            StepKind::NativeMethod => {
                let (start, size) = (it.next()?, it.next()?);
                let method = facts::NativeMethod::new(text()?, start, size);
                let pairs = it.rest().chunks_exact(2);
                let mut line = |pair: &[u64]| Some((pair[0], text()?, narrow(pair[1])?));
                lines = pairs.map(&mut line).collect::<Option<_>>()?;
                method.with_lines(&lines).into()
            }
            StepKind::NativeMove => Fact::NativeMove {
                from: it.next()?,
                to: it.next()?,
            },
            StepKind::Symbol => {
                let (start, last) = (it.next()?, it.next()?);
                let evidence = it.member(&Evidence::ALL)?;
                let (name, module) = (text()?.into(), text()?.into());
                let profiled = match evidence {
                    Evidence::Profile => Some(facts::ProfiledLine {
                        line: it.next()?,
                        is_inlined: it.flag()?,
                        file: text()?.into(),
                    }),
                    _ => None,
                };
                facts::Symbol {
                    start,
                    last,
                    name,
                    module,
                    evidence,
                    profiled,
                }
                .into()
            }
        };
        apply(self.at, fact);
        Some(())
    }

    /// Returns the number of the event's type, and its pointer size.
    pub fn event(&self) -> Option<(usize, PointerSize)> {
        let mut numbers = Numbers(&self.numbers);
        let event_type: u32 = numbers.next()?;
        let pointer_size = match numbers.flag()? {
            true => PointerSize::Eight,
            false => PointerSize::Four,
        };
        Some((event_type as usize, pointer_size))
    }

    pub fn loss(&self) -> Option<Loss> {
        let mut numbers = Numbers(&self.numbers);
        let mut loss = Loss::between(numbers.next()?, numbers.next()?);
        (loss.events, loss.buffers, loss.notices) =
            (numbers.next()?, numbers.next()?, numbers.next()?);
        // Earlier journals state no scope.
        loss.scope = LossScope::of_number(numbers.next().unwrap_or_default());
        let process: u64 = numbers.next().unwrap_or_default();
        loss.process = process
            .checked_sub(1)
            .and_then(|pid| u32::try_from(pid).ok());
        Some(loss)
    }
}

const ADDRESSINGS: [Addressing; 3] = [Addressing::Virtual, Addressing::FileOffset, Addressing::Rva];
const ACTIONS: [Action; 4] = [Action::Load, Action::Unload, Action::DCStart, Action::DCEnd];

fn action(action: Action) -> u64 {
    member(&ACTIONS, action)
}

fn member<T: PartialEq>(all: &[T], member: T) -> u64 {
    all.iter().position(|it| *it == member).unwrap_or(0) as u64
}

fn text(text: Text<'_>) -> String {
    text.to_text().into_owned()
}

fn narrow(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

/// The remaining numbers of a step.
struct Numbers<'s>(&'s [u64]);

impl<'s> Numbers<'s> {
    fn next<T: TryFrom<u64>>(&mut self) -> Option<T> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        T::try_from(first).ok()
    }

    fn rest(&mut self) -> &'s [u64] {
        std::mem::take(&mut self.0)
    }

    fn flag(&mut self) -> Option<bool> {
        Some(self.next::<u64>()? != 0)
    }

    fn option<T: TryFrom<u64>>(&mut self) -> Option<Option<T>> {
        Some(match self.flag()? {
            true => Some(self.next()?),
            false => None,
        })
    }

    fn member<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(self.next::<usize>()?).copied()
    }

    fn action(&mut self) -> Option<Action> {
        self.member(&ACTIONS)
    }

    fn pdb<'t>(
        &mut self,
        text: &mut impl FnMut() -> Option<&'t str>,
    ) -> Option<Option<PdbReference>> {
        if !self.flag()? {
            return Some(None);
        }
        let (high, low): (u64, u64) = (self.next()?, self.next()?);
        let guid = Guid::from_u128(u128::from(high) << 64 | u128::from(low));
        let id = PdbId {
            guid,
            age: self.next()?,
        };
        let path = text()?.to_owned();
        Some(Some(PdbReference { id, path }))
    }

    fn file(&mut self) -> Option<Option<MappedFile>> {
        if !self.flag()? {
            return Some(None);
        }
        let number = FileNumber {
            device: (self.next()?, self.next()?),
            inode: self.next()?,
            generation: self.next()?,
        };
        let here_until_ns = self.option()?;
        Some(Some(MappedFile {
            number,
            here_until_ns,
        }))
    }

    fn inline_tree(&mut self) -> Option<facts::InlineTree> {
        let (clr_instance, method_id, version) = (self.next()?, self.next()?, self.next()?);
        let count: usize = self.next()?;
        // Each node has at least three numbers.
        let mut nodes = Vec::with_capacity(count.min(self.0.len() / 3));
        for _ in 0..count {
            nodes.push((self.next()?, self.next()?, self.option()?));
        }
        let mut mappings = Vec::new();
        while self.0.len() >= 3 {
            let (native, il): (u32, u32) = (self.next()?, self.next()?);
            mappings.push((native, il as i32, self.next()?));
        }
        let tree = chronosym_events::InlineTree::new(nodes, mappings, self.next()?)?;
        Some(facts::InlineTree {
            clr_instance,
            method_id,
            version,
            tree,
        })
    }
}
