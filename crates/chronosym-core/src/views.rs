//! Views of a timeline's processes, threads, modules, images and bodies, for listings.

use chronosym_events::OptimizationTier;
use chronosym_timeline::Lifetime;

use crate::event_types::EventTypeInfo;
use crate::evidence::EvidenceSet;
use crate::ids::{BodyIndex, ImageIndex, ModuleIndex, ProcessIndex, ThreadIndex};
use crate::index::Index;
use crate::strings::StringId;
use crate::symbol_source::{ImageRef, ModuleRef};
use crate::timeline::Timeline;
use crate::untimed::UntimedSymbol;

/// A process incarnation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ProcessView<'t> {
    /// Its index.
    pub index: ProcessIndex,
    /// The process id, if known.
    pub pid: Option<u32>,
    /// The program's name.
    pub name: Option<&'t str>,
    /// The command line.
    pub command_line: Option<&'t str>,
    /// When it started, ns since the trace began, if an event states it.
    pub start_ns: Option<u64>,
    /// When it stopped, ns since the trace began, if an event states it.
    pub end_ns: Option<u64>,
    /// When it started, ns since 1970-01-01 UTC, if the recorder states it.
    pub started_unix_ns: Option<i64>,
    /// The inode of its pid namespace, if the recorder states it.
    pub pid_namespace: Option<u64>,
    /// The runtimes in it, such as `.NET 10.0.12`.
    pub runtimes: Vec<String>,
    /// Whether a CLR runs in it, as far as events state.
    pub is_managed: bool,
    /// Whether a runtime completed a rundown.
    pub has_rundown: bool,
}

impl ProcessView<'_> {
    /// Returns name and id, as far as they are known: `app (42)`.
    pub fn label(&self) -> String {
        let name = self.name.unwrap_or("process");
        self.pid
            .map_or_else(|| name.to_owned(), |pid| format!("{name} ({pid})"))
    }
}

/// A thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadView<'t> {
    /// Its process.
    pub process: ProcessIndex,
    /// The system's thread id.
    pub tid: u64,
    /// Its latest name; see [`Timeline::thread_name`].
    pub name: Option<&'t str>,
}

/// A CLR module.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModuleView<'t> {
    /// Its index in the process.
    pub index: ModuleIndex,
    /// Simple name.
    pub name: &'t str,
    /// Its files.
    pub module: ModuleRef<'t>,
    /// Start of its lifetime, ns.
    pub start: chronosym_timeline::Start,
    /// End of its lifetime, ns.
    pub end: chronosym_timeline::End,
    /// The evidence for it.
    pub evidence: EvidenceSet,
    /// Number of code bodies.
    pub bodies: usize,
}

/// A native image.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageView<'t> {
    /// Its index in the process.
    pub index: ImageIndex,
    /// Simple name.
    pub name: &'t str,
    /// Its mapping and its file.
    pub image: ImageRef<'t>,
    /// Its lifetime, ns.
    pub lifetime: Lifetime,
}

/// A code body.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BodyView<'t> {
    /// Its index in the process.
    pub index: BodyIndex,
    /// First address.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Its lifetime, ns.
    pub lifetime: Lifetime,
    /// Namespace, type and method.
    pub name: Option<String>,
    /// The signature as the runtime spells it.
    pub signature: Option<&'t str>,
    /// Simple name of the module.
    pub module: Option<&'t str>,
    /// The module's index in the process.
    pub module_index: Option<ModuleIndex>,
    /// The runtime's id of the method.
    pub method_id: u64,
    /// Metadata token.
    pub token: u32,
    /// The tier that it was compiled at.
    pub tier: Option<OptimizationTier>,
    /// The native code version, 0 for the default one.
    pub native_code_version: u64,
    /// Whether it is the cold extent of a split method.
    pub is_cold: bool,
    /// The evidence for it.
    pub evidence: EvidenceSet,
    /// Number of entries of its IL map.
    pub il_map_entries: Option<usize>,
    /// Whether it has an inline tree.
    pub has_inline_tree: bool,
    /// The targets of an interop stub.
    pub stub_targets: Vec<String>,
}

/// An untimed symbol: from a perf map or a `ProcessSymbol` record.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UntimedView {
    /// First address.
    pub start: u64,
    /// Address of the last byte.
    pub last: u64,
    /// Its name.
    pub name: Option<String>,
    /// The source of the symbol.
    pub evidence: crate::evidence::Evidence,
}

impl EventTypeInfo {
    /// Returns the [`event_label`] of its schema.
    pub fn label(&self) -> String {
        event_label(&self.schema)
    }
}

/// Returns `provider/id`; `Kernel/Class/Name` for classic kernel events, `provider/name` for others
/// without an id.
///
/// Every label parses as a [`crate::EventSelector`] of the event.
pub fn event_label(schema: &chronosym_events::EventSchema) -> String {
    use chronosym_events::EventKey;
    let (provider, name) = (schema.provider_name(), schema.name());
    match schema.key() {
        EventKey::Manifest { id, .. } => format!("{provider}/{id}"),
        EventKey::Classic { .. } if &**provider == "Windows Kernel" => format!("Kernel/{name}"),
        _ => format!("{provider}/{name}"),
    }
}

impl Timeline {
    pub(crate) fn some(&self, id: StringId) -> Option<&str> {
        Some(self.names.strings.get(id)).filter(|text| !text.is_empty())
    }

    /// Returns all process incarnations.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Process};
    /// use chronosym_core::{Action, Options, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// session.apply(At::new(100).process(42), Process::new(Action::Load, "app"));
    /// session.apply(At::new(900).process(42), Process::new(Action::Unload, "app"));
    /// let timeline = session.finish();
    /// let process = timeline.processes().find(|process| process.pid == Some(42)).unwrap();
    /// assert_eq!(process.label(), "app (42)");
    /// assert_eq!(process.end_ns, Some(900));
    /// ```
    pub fn processes(&self) -> impl Iterator<Item = ProcessView<'_>> {
        let processes = self.processes.all.indexed();
        processes.filter_map(|(i, _)| self.process_view(ProcessIndex(i as u32)))
    }

    /// Returns one process incarnation.
    pub fn process_view(&self, index: ProcessIndex) -> Option<ProcessView<'_>> {
        let process = self.processes.all.get(index.index())?;
        let version = |v: [u16; 4]| match v {
            [major, minor, build, 0] => format!("{major}.{minor}.{build}"),
            [major, minor, build, revision] => format!("{major}.{minor}.{build}.{revision}"),
        };
        let runtimes = process
            .runtimes
            .iter()
            .filter(|r| r.version != [0; 4])
            .map(|r| {
                let product = match r.sku {
                    1 => ".NET Framework CLR",
                    4 => "Mono",
                    _ if r.version[0] < 4 => ".NET Core",
                    // There was no .NET Core 4: this is the runtime's own number.
                    _ if r.version[0] < 5 => ".NET Core CLR",
                    _ => ".NET",
                };
                format!("{product} {}", version(r.version))
            });
        Some(ProcessView {
            index,
            pid: process.pid,
            name: self.some(process.name),
            command_line: self.some(process.command_line),
            start_ns: process.start,
            end_ns: process.end,
            started_unix_ns: process.started_unix_ns,
            pid_namespace: process.pid_namespace,
            runtimes: runtimes.collect(),
            is_managed: self.is_managed(index),
            has_rundown: self.has_rundown(index),
        })
    }

    /// Returns one thread.
    pub fn thread_view(&self, index: ThreadIndex) -> Option<ThreadView<'_>> {
        let thread = self.processes.threads.get(index.index())?;
        Some(ThreadView {
            process: thread.process,
            tid: thread.tid,
            name: self.some(thread.name),
        })
    }

    /// Returns the name of a thread at a time in ns; [`ThreadView::name`] is its latest name.
    pub fn thread_name(&self, index: ThreadIndex, time_ns: u64) -> Option<&str> {
        let thread = self.processes.threads.get(index.index())?;
        self.some(thread.name_at(time_ns))
    }

    /// Returns the incarnation of `pid` that was alive at a time in ns; without a time the latest
    /// one.
    pub fn find_process(&self, pid: u32, time_ns: Option<u64>) -> Option<ProcessIndex> {
        let index = self.process_of(pid, time_ns.unwrap_or(u64::MAX))?;
        let process = self.process(index);
        let is_alive = |time| {
            process.start.is_none_or(|start| start <= time)
                && process.end.is_none_or(|end| time < end)
        };
        time_ns.is_none_or(is_alive).then_some(index)
    }

    /// Returns the incarnation of `pid` for an event at a time in ns: events may slightly precede
    /// the start of their process, or follow its end.
    pub fn process_of(&self, pid: u32, time_ns: u64) -> Option<ProcessIndex> {
        self.processes.find(Some(pid), time_ns)
    }

    /// Returns the CLR modules of a process.
    pub fn modules(&self, process: ProcessIndex) -> impl Iterator<Item = ModuleView<'_>> {
        let space = self.space(process).into_iter();
        let modules = space.flat_map(|space| space.state.code.modules.indexed());
        modules.map(move |(i, m)| ModuleView {
            index: ModuleIndex(i as u32),
            name: self.names.strings.get(m.simple_name),
            module: self.module_of(process, ModuleIndex(i as u32)),
            start: m.loaded,
            end: m.end,
            evidence: m.evidence,
            bodies: m.bodies.len(),
        })
    }

    /// Returns the native images of a process.
    pub fn images(&self, process: ProcessIndex) -> impl Iterator<Item = ImageView<'_>> {
        let space = self.space(process).into_iter();
        let images = space.flat_map(|s| s.state.images.indexed().map(move |i| (s, i)));
        images.map(move |(space, (i, image))| ImageView {
            index: ImageIndex(i as u32),
            name: self.names.strings.get(image.simple_name),
            image: self.image_of(process, ImageIndex(i as u32)),
            lifetime: space.images.lifetime(i, image.base, image.loaded),
        })
    }

    /// Returns the images that were ever mapped at an address of a process: for kernel addresses
    /// the system's, too.
    pub fn images_at(
        &self,
        process: ProcessIndex,
        address: u64,
    ) -> impl Iterator<Item = ImageView<'_>> {
        self.image_owners(process, address).flat_map(move |owner| {
            let images = self.images(owner);
            images.filter(move |view| address.wrapping_sub(view.image.base) < view.image.size)
        })
    }

    /// Returns all images that addresses of a process may be in: its own, and the system's at
    /// kernel addresses.
    pub fn images_in_space(&self, process: ProcessIndex) -> impl Iterator<Item = ImageView<'_>> {
        let system = self.system.iter().copied().filter(move |&s| s != process);
        std::iter::once(process)
            .chain(system)
            .flat_map(move |owner| {
                let images = self.images(owner);
                images.filter(move |view| {
                    let mut owners = self.image_owners(process, view.image.base);
                    owners.any(|o| o == owner)
                })
            })
    }

    /// Returns the lifetimes of everything that was ever at an address of a process, oldest first:
    /// of code bodies or, if there are none, of images.
    pub fn lifetimes_at(&self, process: ProcessIndex, address: u64) -> Vec<Lifetime> {
        let lifetimes_in = |map: &Index| {
            map.occupants(address)
                .into_iter()
                .map(|(_, lifetime)| lifetime)
        };
        let space = self.space(process).into_iter();
        let mut lifetimes: Vec<Lifetime> = space
            .flat_map(|space| lifetimes_in(&space.bodies))
            .collect();
        lifetimes.sort_by_key(|lifetime| (lifetime.from, lifetime.to));
        if lifetimes.is_empty() {
            let owners = self.image_owners(process, address);
            let spaces = owners.filter_map(|owner| self.space(owner));
            lifetimes.extend(spaces.flat_map(|space| lifetimes_in(&space.images)));
            lifetimes.sort_by_key(|lifetime| lifetime.from);
            lifetimes.dedup_by_key(|lifetime| lifetime.from);
        }
        lifetimes
    }

    /// Returns the code bodies of a process, in the order of their first events.
    pub fn bodies(&self, process: ProcessIndex) -> impl Iterator<Item = BodyView<'_>> {
        let space = self.space(process).into_iter();
        space
            .flat_map(|space| space.state.code.bodies.indexed())
            .filter_map(move |(i, _)| self.body_view(process, BodyIndex(i as u32)))
    }

    /// Returns the bodies that ever covered an address, oldest lifetime first.
    ///
    /// # Examples
    ///
    /// ```
    /// use chronosym_core::facts::{At, Method};
    /// use chronosym_core::{Action, Options, Session};
    ///
    /// let mut session = Session::new(Options::default());
    /// let at = At::new(0).process(42);
    /// session.apply(at.at(100), Method::new(Action::Load, 1, 0x1000, 64).named("Ns.Type", "Old", ""));
    /// session.apply(at.at(300), Method::new(Action::Load, 2, 0x1000, 32).named("Ns.Type", "New", ""));
    /// let timeline = session.finish();
    /// let process = timeline.find_process(42, None).unwrap();
    /// let sizes: Vec<_> = timeline.bodies_at(process, 0x1010).iter().map(|body| (body.lifetime.from, body.size)).collect();
    /// assert_eq!(sizes, [(100, 64), (300, 32)]);
    /// ```
    pub fn bodies_at(&self, process: ProcessIndex, address: u64) -> Vec<BodyView<'_>> {
        let space = self.space(process).into_iter();
        let ids = space.flat_map(|space| space.bodies.occupants(address));
        let mut bodies: Vec<_> = ids
            .filter_map(|(id, _)| self.body_view(process, BodyIndex(id.index() as u32)))
            .collect();
        bodies.sort_by_key(|b| (b.lifetime.from, b.lifetime.to));
        bodies
    }

    /// Returns the untimed symbols that cover an address; the last one wins. Visits all symbols of
    /// the process.
    pub fn untimed_at(&self, process: ProcessIndex, address: u64) -> Vec<UntimedView> {
        let Some(space) = self.space(process) else {
            return Vec::new();
        };
        let view = |symbol: &UntimedSymbol| {
            let mut name = String::new();
            let named = self.names.push_full(symbol.name, &mut name);
            UntimedView {
                start: symbol.start,
                last: symbol.last,
                name: named.then_some(name),
                evidence: symbol.evidence,
            }
        };
        let symbols = space.state.untimed.symbols.iter();
        symbols
            .filter(|symbol| (symbol.start..=symbol.last).contains(&address))
            .map(view)
            .collect()
    }

    /// Returns one code body.
    pub fn body_view(&self, process: ProcessIndex, index: BodyIndex) -> Option<BodyView<'_>> {
        let space = self.space(process)?;
        let code = &space.state.code;
        let body = code.bodies.get(index.index())?;
        let full = |id| {
            let mut text = String::new();
            self.names.push_full(id, &mut text).then_some(text)
        };
        let lifetime = (space.bodies).lifetime(index.index(), body.start, body.loaded);
        let targets = body.stub().and_then(|stub| code.stubs.get(stub as usize));
        let targets = targets.map_or(&[][..], Vec::as_slice);
        Some(BodyView {
            index,
            start: body.start,
            size: u64::from(body.size),
            lifetime,
            name: full(body.name),
            signature: self
                .names
                .get(body.name)
                .and_then(|n| self.some(n.signature)),
            module_index: body.module,
            module: body
                .module
                .and_then(|m| self.some(code.modules[m.index()].simple_name)),
            method_id: body.method_id,
            token: body.token,
            tier: self.tier(process, body),
            native_code_version: body.native_code_version,
            is_cold: body.flags.extent() == chronosym_events::Extent::Cold,
            evidence: body.evidence,
            il_map_entries: body.il_map.as_ref().map(|map| map.len()),
            has_inline_tree: body.inline_tree().is_some(),
            stub_targets: targets.iter().filter_map(|&t| full(t)).collect(),
        })
    }

    /// Returns the number of IL maps without a body, over all processes.
    pub fn unbound_il_maps(&self) -> u64 {
        let maps = self.spaces.iter().map(|s| s.state.code.unbound_maps);
        maps.sum::<u64>() + self.counters.unbound_il_maps
    }
}
