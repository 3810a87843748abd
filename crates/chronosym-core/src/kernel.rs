//! Applies events of the Windows kernel: processes, threads, images.

use chronosym_events::kernel::{DbgId, Image as ImageEvent, KernelEvent, ProcessAction};
use chronosym_events::{Action, Text};
use chronosym_types::hash::HashMap;
use rustc_hash::FxHashMap;

use crate::facts::{self, At, Fact};
use crate::ids::ProcessIndex;
use crate::images::{Image, simple_name};
use crate::machine::Machine;
use crate::process::Processes;
use crate::strings::StringId;
use crate::symbol_identity::PdbReference;
use chronosym_types::PdbId;

/// State from kernel events other than processes and images.
#[derive(Debug, Default)]
pub(crate) struct KernelState {
    /// The current process of each thread.
    process_of_thread: HashMap<u32, u32>,
    /// The process of each thread before its first event; `None` if that event was its start.
    owner_before: HashMap<u32, Option<ProcessIndex>>,
    /// NT device path → DOS path, for the longest prefix of an image's path.
    volumes: Vec<(String, String)>,
    /// The folder that `\SystemRoot` denotes.
    windows_folder: Option<String>,
    has_images: bool,
    /// The process of the last image event.
    last_image: Option<ProcessIndex>,
    /// Identities from events with the time of an image event: base → (pid if known, identity).
    identities: HashMap<u64, Vec<(Option<u32>, Identity)>>,
    /// The time of `identities`.
    identities_at: u64,
    /// Base of the lowest image of the kernel in a 32-bit address space.
    pub lowest_kernel_image: Option<u64>,
}

impl KernelState {
    /// Number of threads, volumes and identities.
    pub fn len(&self) -> usize {
        self.process_of_thread.len()
            + self.owner_before.len()
            + self.volumes.len()
            + self.identities.len()
    }

    /// Returns the current process of a thread.
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        if tid == 0 {
            return Some(0);
        }
        self.process_of_thread.get(&tid).copied()
    }

    /// Drops the threads of dropped processes.
    pub fn forget(&mut self, processes: &Processes) {
        let is_kept = |process: ProcessIndex| processes.all.contains(process.index());
        self.owner_before
            .retain(|_, owner| owner.is_some_and(is_kept));
        self.owner_before.shrink_to(2 * self.owner_before.len());
        let has_pid = |pid: u32| processes.incarnations(Some(pid)).next().is_some();
        self.process_of_thread.retain(|_, pid| has_pid(*pid));
        self.process_of_thread
            .shrink_to(2 * self.process_of_thread.len());
        self.last_image = self.last_image.filter(|&process| is_kept(process));
    }

    /// Returns the process of a thread before its first event.
    pub fn owner_before(&self, tid: u32) -> Option<ProcessIndex> {
        self.owner_before.get(&tid).copied().flatten()
    }
}

/// The identity of an image, from the events that merging adds.
#[derive(Clone, Debug, Default)]
struct Identity {
    timestamp: Option<u32>,
    pdb: Option<PdbReference>,
    il_pdb: Option<PdbReference>,
}

/// Name of the page through which a guest of Hyper-V calls the hypervisor; no file has its code.
const HYPERCALL_PAGE: &str = "[hypercall page]";

/// Kernel images are logged under either of two process ids.
fn image_pid(pid: u32) -> u32 {
    if pid == 4 { 0 } else { pid }
}

impl KernelState {
    /// Applies a kernel event. The event states its process; the process that logs it is
    /// irrelevant.
    pub fn apply(&mut self, machine: &mut Machine, time: u64, event: &KernelEvent<'_>) {
        let of = |pid: u32| At::new(time).process(pid);
        let thread = |pid: u32, tid: u32| of(pid).thread(tid.into());
        match event {
            KernelEvent::Process(event) => {
                if let ProcessAction::Life(action) = event.action {
                    let file = event.image_file_name.to_string();
                    let name = match event.process_id {
                        0 => "Idle",
                        4 if file.is_empty() => "System",
                        _ => simple_name(&file),
                    };
                    let process = facts::Process {
                        command_line: event.command_line.map_or(Text::default(), Text::Wide),
                        is_wow64: event.is_wow64().unwrap_or(false),
                        ..facts::Process::new(action, name)
                    };
                    machine.apply(of(event.process_id), process.into());
                }
            }
            KernelEvent::Thread(event) => {
                let (pid, tid) = (event.process_id, event.thread_id);
                self.thread_of(machine, time, event.action, pid, tid);
                if let Some(name) = event.name.filter(|n| !n.is_empty()) {
                    machine.apply(thread(pid, tid), Fact::ThreadName(name.into()));
                }
            }
            KernelEvent::ThreadName(event) => {
                let thread = thread(event.process_id, event.thread_id);
                machine.apply(thread, Fact::ThreadName(event.name.into()));
            }
            KernelEvent::Image(event) => self.image(machine, time, event),
            KernelEvent::HypercallPage(event) => {
                let process = machine.process(Some(0), time);
                let fact = facts::Image::new(Action::DCStart, event.base, 0x1000, HYPERCALL_PAGE);
                machine.apply_image(process, time, &fact);
            }
            KernelEvent::ImageId(event) => {
                // Most have process 0, whatever the image's process.
                let pid = Some(event.process_id).filter(|&pid| pid != 0);
                let identity = Identity {
                    timestamp: Some(event.time_date_stamp).filter(|&t| t != 0),
                    ..Identity::default()
                };
                self.image_identity(machine, time, pid, event.base, identity);
            }
            KernelEvent::DbgIdRsds(event) => {
                let pdb = Some(PdbReference {
                    id: PdbId {
                        guid: event.guid,
                        age: event.age,
                    },
                    path: event.pdb_path.to_text().into_owned(),
                });
                let mut identity = Identity::default();
                match event.of {
                    DbgId::Image => identity.pdb = pdb,
                    DbgId::Il => identity.il_pdb = pdb,
                }
                self.image_identity(machine, time, Some(event.process_id), event.base, identity);
            }
            KernelEvent::VolumeMapping(event) => {
                let (nt, dos) = (event.nt_path.to_string(), event.dos_path.to_string());
                if !nt.is_empty() {
                    self.volumes.push((nt, dos));
                }
            }
            KernelEvent::SystemPaths(event) => {
                let folder = event.windows_directory.to_string();
                let folder = folder.trim_end_matches('\\');
                if !folder.is_empty() {
                    self.windows_folder = Some(folder.to_owned());
                }
            }
            _ => {}
        }
    }

    fn thread_of(&mut self, machine: &mut Machine, time: u64, action: Action, pid: u32, tid: u32) {
        let process = machine.process(Some(pid), time);
        let before = (action != Action::Load).then_some(process);
        self.owner_before.entry(tid).or_insert(before);
        match action {
            Action::Load | Action::DCStart => {
                self.process_of_thread.insert(tid, pid);
            }
            // Samples of the thread may still follow within the same instant.
            Action::Unload | Action::DCEnd => {
                self.process_of_thread.entry(tid).or_insert(pid);
            }
        }
    }

    fn image(&mut self, machine: &mut Machine, time: u64, event: &ImageEvent<'_>) {
        if event.size == 0 {
            return;
        }
        let pid = image_pid(event.process_id.unwrap_or(0));
        if pid == 0 && (0x8000_0000..=0xffff_ffff).contains(&event.base) {
            let lowest = self.lowest_kernel_image.get_or_insert(event.base);
            *lowest = event.base.min(*lowest);
        }
        let process = machine.process(Some(pid), time);
        let path = event.file_name.to_text();
        let path = self.dos_path(&path).unwrap_or(path);
        let fact = facts::Image {
            timestamp: event.time_date_stamp.filter(|&t| t != 0),
            ..facts::Image::new(event.action, event.base, event.size, &*path)
        };
        self.has_images = true;
        let Some((index, _)) = machine.apply_image(process, time, &fact) else {
            return;
        };
        self.last_image = Some(process);
        let image = &mut machine.state(process).images[index.index()];
        if self.identities_at == time
            && let Some(identities) = self.identities.get(&event.base)
        {
            // Not all state their process.
            let own = identities
                .iter()
                .filter(|(of, _)| of.is_none_or(|of| of == pid));
            own.for_each(|(_, identity)| image.identify(identity));
        }
    }

    /// ImageID and RSDS records have exactly the time of their image event, and precede or follow
    /// it.
    fn image_identity(
        &mut self,
        machine: &mut Machine,
        time: u64,
        pid: Option<u32>,
        base: u64,
        identity: Identity,
    ) {
        if self.identities_at != time {
            self.identities.clear();
            self.identities_at = time;
        }
        let pid = pid.map(image_pid);
        let process = match pid {
            Some(_) => Some(machine.process(pid, time)),
            None => self.last_image,
        };
        if let Some(process) = process
            && let state = machine.state(process)
            && let Some((index, stated)) = state.mapped.at(base)
            && stated == time
        {
            state.images[index.index()].identify(&identity);
        }
        let identities = self.identities.entry(base).or_default();
        identities.push((pid, identity));
    }

    /// Converts the paths of images to DOS paths: volume mappings often come last.
    pub fn finish(&self, machine: &mut Machine) {
        if !self.has_images {
            return;
        }
        let Machine { names, states, .. } = machine;
        let mut dos_paths: FxHashMap<StringId, StringId> = FxHashMap::default();
        let mut dos_path = |path| {
            *dos_paths.entry(path).or_insert_with(|| {
                let dos = self.dos_path(names.strings.get(path));
                dos.map_or(path, |dos| names.short(&dos))
            })
        };
        states.update_each(|_, state| {
            let paths = state
                .images
                .indexed()
                .map(|(index, image)| (index, image.path));
            let renamed = paths.map(|(index, path)| (index, path, dos_path(path)));
            let renamed: Vec<_> = renamed.filter(|(_, nt, dos)| nt != dos).collect();
            for &(index, _, dos) in &renamed {
                state.images[index].path = dos;
            }
            !renamed.is_empty()
        });
    }

    /// Returns the DOS form of an NT path, if the trace states its volume.
    fn dos_path(&self, path: &str) -> Option<String> {
        if let Some(rest) = path.strip_prefix(r"\??\") {
            return Some(rest.to_owned());
        }
        let root = r"\SystemRoot";
        let folder = self.windows_folder.as_deref().map(|folder| (root, folder));
        let share = (r"\Device\Mup", r"\");
        let volumes = self.volumes.iter().map(|(nt, dos)| (&**nt, &**dos));
        let (nt, dos) = volumes
            .chain(folder)
            .chain([share])
            .filter(|(nt, _)| is_in_folder(path, nt))
            .max_by_key(|(nt, _)| nt.len())?;
        Some([dos, &path[nt.len()..]].concat())
    }
}

impl Image {
    fn identify(&mut self, identity: &Identity) {
        self.timestamp = self.timestamp.or(identity.timestamp);
        if self.pdb.is_none() {
            self.pdb.clone_from(&identity.pdb);
        }
        if self.il_pdb.is_none() {
            self.il_pdb.clone_from(&identity.il_pdb);
        }
    }
}

/// Returns whether a path is in a folder, compared without case.
fn is_in_folder(path: &str, folder: &str) -> bool {
    // From the end, where the names of volumes differ.
    let head = path.as_bytes().get(..folder.len());
    let starts = head.is_some_and(|head| {
        let mut pairs = head.iter().rev().zip(folder.as_bytes().iter().rev());
        pairs.all(|(a, b)| a.eq_ignore_ascii_case(b))
    });
    starts && (folder.ends_with('\\') || path[folder.len()..].starts_with('\\'))
}
