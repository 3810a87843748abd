//! What the events of the Windows kernel say: processes, threads, images.

use chronosym_events::kernel::{
    DbgId, DbgIdRsds, Image as ImageEvent, KernelEvent, Process, ProcessAction,
};
use chronosym_events::{Action, WStr};
use chronosym_timeline::{Begin, End};
use rustc_hash::FxHashMap;

use crate::body::PdbId;
use crate::images::{Image, ImageIndex, file_name, simple_name};
use crate::process::ProcessIndex;
use crate::session::{Session, has_ended, life_of};
use crate::strings::StringId;

/// What kernel events say beside processes and images.
#[derive(Debug, Default)]
pub(crate) struct KernelState {
    /// Which process a thread is of now.
    process_of_thread: FxHashMap<u32, u32>,
    /// Whose thread it was before the first event that told of it; `None` if that event was its start.
    owner_before: FxHashMap<u32, Option<ProcessIndex>>,
    /// NT device path → DOS path, for the longest prefix of an image's path.
    volumes: Vec<(String, String)>,
    /// What `\SystemRoot` means.
    windows_folder: Option<String>,
    /// The image that stands at (process, base) now, and the time of the event that told of it last.
    current: FxHashMap<(ProcessIndex, u64), (ImageIndex, u64)>,
    /// Whose image the last image event told of.
    last_image: Option<ProcessIndex>,
    /// What identifies images that events of the same time tell of: base → (pid where it is known, identity).
    identities: FxHashMap<u64, Vec<(Option<u32>, Identity)>>,
    /// The time of `identities`.
    identities_at: u64,
    /// Base of the lowest image of the kernel in a 32-bit address space.
    pub lowest_kernel_image: Option<u64>,
}

impl KernelState {
    /// Which process a thread is of now.
    pub fn process_of(&self, tid: u32) -> Option<u32> {
        if tid == 0 {
            return Some(0);
        }
        self.process_of_thread.get(&tid).copied()
    }

    /// Whose thread it was before any event told of it.
    pub fn owner_before(&self, tid: u32) -> Option<ProcessIndex> {
        self.owner_before.get(&tid).copied().flatten()
    }
}

/// What the events that merging adds say of an image.
#[derive(Clone, Debug, Default)]
struct Identity {
    timestamp: Option<u32>,
    pdb: Option<PdbId>,
    il_pdb: Option<PdbId>,
}

/// Pids that kernel images are logged under.
const SYSTEM_PIDS: [u32; 2] = [0, 4];

impl Session {
    pub(crate) fn kernel(&mut self, time: u64, event: &KernelEvent<'_>) {
        match event {
            KernelEvent::Process(event) => self.kernel_process(time, event),
            KernelEvent::Thread(event) => {
                self.thread_of(time, event.action, event.process_id, event.thread_id);
                if let Some(name) = event.name.filter(|n| !n.is_empty()) {
                    self.thread_name(event.process_id, event.thread_id, time, name);
                }
            }
            KernelEvent::ThreadName(event) => {
                self.thread_name(event.process_id, event.thread_id, time, event.name)
            }
            KernelEvent::Image(event) => self.image(time, event),
            KernelEvent::ImageId(event) => {
                // Most say process 0, whosever image it is.
                let pid = Some(event.process_id).filter(|&pid| pid != 0);
                let timestamp = Some(event.time_date_stamp).filter(|&t| t != 0);
                let identity = Identity {
                    timestamp,
                    ..Identity::default()
                };
                self.image_identity(time, pid, event.base, identity);
            }
            KernelEvent::DbgIdRsds(event) => self.rsds(time, event),
            KernelEvent::VolumeMapping(event) => {
                let (nt, dos) = (event.nt_path.to_string(), event.dos_path.to_string());
                if !nt.is_empty() {
                    self.kernel.volumes.push((nt, dos));
                }
            }
            KernelEvent::SystemPaths(event) => {
                let folder = event.windows_directory.to_string();
                let folder = folder.trim_end_matches('\\');
                if !folder.is_empty() {
                    self.kernel.windows_folder = Some(folder.to_owned());
                }
            }
            _ => {}
        }
    }

    fn thread_of(&mut self, time: u64, action: Action, pid: u32, tid: u32) {
        let process = self.process(pid, time);
        let threads = &mut self.kernel;
        let before = (action != Action::Load).then_some(process);
        threads.owner_before.entry(tid).or_insert(before);
        match action {
            Action::Load | Action::DCStart => {
                threads.process_of_thread.insert(tid, pid);
            }
            // Samples of the thread can still follow within the same instant.
            Action::Unload | Action::DCEnd => {
                threads.process_of_thread.entry(tid).or_insert(pid);
            }
        }
    }

    fn kernel_process(&mut self, time: u64, event: &Process<'_>) {
        let ProcessAction::Life(action) = event.action else {
            return;
        };
        let process = match action {
            Action::Load => self.processes.start(event.process_id, time),
            Action::Unload | Action::DCStart | Action::DCEnd => {
                self.processes.at(event.process_id, time)
            }
        };
        self.ensure_states();
        let file = event.image_file_name.to_string();
        let name = match event.process_id {
            0 => "Idle",
            4 if file.is_empty() => "System",
            _ => simple_name(&file),
        };
        let name = self.names.strings.intern(name);
        let command = event
            .command_line
            .map_or(StringId::EMPTY, |text| self.names.wide(text));
        let known = &mut self.processes.all[process.index()];
        if name != StringId::EMPTY {
            known.name = name;
        }
        if command != StringId::EMPTY {
            known.command_line = command;
        }
        known.is_wow64 |= event.is_wow64().unwrap_or(false);
        if action == Action::Unload {
            self.process_ended(process, time);
        }
    }

    fn thread_name(&mut self, pid: u32, tid: u32, time: u64, name: WStr<'_>) {
        let process = self.process(pid, time);
        let thread = self.processes.thread(process, u64::from(tid));
        let name = self.names.wide(name);
        self.processes.threads[thread.index()].name = name;
    }

    fn image(&mut self, time: u64, event: &ImageEvent<'_>) {
        if event.size == 0 {
            return;
        }
        let pid = event.process_id.unwrap_or(0);
        let pid = if SYSTEM_PIDS.contains(&pid) { 0 } else { pid };
        if pid == 0 && (0x8000_0000..=0xffff_ffff).contains(&event.base) {
            let lowest = self.kernel.lowest_kernel_image.get_or_insert(event.base);
            *lowest = event.base.min(*lowest);
        }
        let process = self.process(pid, time);
        let path = event.file_name.to_string();
        let path = self.kernel.dos_path(&path).unwrap_or(path);
        let path = self.names.strings.intern(&path);
        let name = file_name(self.names.strings.get(path));
        let current = self.kernel.current.get(&(process, event.base)).copied();
        let images = &mut self.states[process.index()].images;
        let same = current.map(|(index, _)| index).filter(|index| {
            let image = &images[index.index()];
            let gone = has_ended(image.end, time);
            let known = file_name(self.names.strings.get(image.path));
            image.size == event.size
                && (event.action == Action::Unload || !gone)
                && (name.is_empty() || known.is_empty() || name.eq_ignore_ascii_case(known))
        });
        let (begin, end) = life_of(event.action, time);
        let index = match same {
            Some(index) => {
                let image = &mut images[index.index()];
                let ends = matches!(event.action, Action::Unload | Action::DCEnd);
                if ends && !matches!(image.end, End::At(_)) {
                    image.end = end;
                }
                index
            }
            None => {
                let simple = simple_name(self.names.strings.get(path)).to_owned();
                let index = ImageIndex(images.len() as u32);
                images.push(Image {
                    base: event.base,
                    size: event.size,
                    rva_bias: 0,
                    path,
                    simple_name: self.names.strings.intern(&simple),
                    timestamp: None,
                    checksum: event.checksum.filter(|&c| c != 0),
                    pdb: None,
                    il_pdb: None,
                    build_id: StringId::EMPTY,
                    part: None,
                    begin,
                    end,
                });
                if let Begin::At(at) = begin {
                    let last = event.base.saturating_add(event.size - 1);
                    let code = &mut self.states[process.index()].code;
                    code.image_mapped(event.base, last, at);
                }
                index
            }
        };
        let key = (process, event.base);
        self.kernel.current.insert(key, (index, time));
        self.kernel.last_image = Some(process);
        let stamp = event.time_date_stamp.filter(|&t| t != 0);
        let image = &mut self.states[process.index()].images[index.index()];
        image.timestamp = image.timestamp.or(stamp);
        if self.kernel.identities_at == time
            && let Some(identities) = self.kernel.identities.get(&event.base)
        {
            for (_, identity) in identities.iter().filter(|(of, _)| is_of(*of, pid)) {
                image.identify(identity);
            }
        }
    }

    fn rsds(&mut self, time: u64, event: &DbgIdRsds<'_>) {
        let pdb = PdbId {
            guid: event.guid,
            age: event.age,
            path: event.pdb_path.to_string(),
        };
        let identity = match event.of {
            DbgId::Image => Identity {
                pdb: Some(pdb),
                ..Identity::default()
            },
            DbgId::Il => Identity {
                il_pdb: Some(pdb),
                ..Identity::default()
            },
        };
        self.image_identity(time, Some(event.process_id), event.base, identity);
    }

    /// ImageID and RSDS records have exactly the time of the image event that they belong to, and come before or after it.
    fn image_identity(&mut self, time: u64, pid: Option<u32>, base: u64, identity: Identity) {
        if self.kernel.identities_at != time {
            self.kernel.identities.clear();
            self.kernel.identities_at = time;
        }
        let pid = pid.map(|pid| if SYSTEM_PIDS.contains(&pid) { 0 } else { pid });
        let process = match pid {
            Some(pid) => Some(self.process(pid, time)),
            None => self.kernel.last_image,
        };
        if let Some(process) = process
            && let Some(&(index, told)) = self.kernel.current.get(&(process, base))
            && told == time
        {
            self.states[process.index()].images[index.index()].identify(&identity);
        }
        let identities = self.kernel.identities.entry(base).or_default();
        identities.push((pid, identity));
    }

    /// Gives images the paths that programs know: what volumes mean is often told last.
    pub(crate) fn settle_image_paths(&mut self) {
        if self.kernel.current.is_empty() {
            return;
        }
        let mut known: FxHashMap<StringId, StringId> = FxHashMap::default();
        for image in self.states.iter_mut().flat_map(|s| &mut s.images) {
            image.path = *known.entry(image.path).or_insert_with(|| {
                let dos = self.kernel.dos_path(self.names.strings.get(image.path));
                match dos {
                    Some(dos) => self.names.strings.intern(&dos),
                    None => image.path,
                }
            });
        }
    }
}

impl KernelState {
    /// The DOS form of an NT path, as far as the trace says what its beginning means.
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
        Some(format!("{dos}{}", &path[nt.len()..]))
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

/// Whether an identity is one of a process's image: not all say whose they are.
fn is_of(identity: Option<u32>, pid: u32) -> bool {
    identity.is_none_or(|of| of == pid)
}

/// Whether a path lies in a folder. Case does not count.
fn is_in_folder(path: &str, folder: &str) -> bool {
    let starts = path
        .get(..folder.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(folder));
    starts && (folder.ends_with('\\') || path[folder.len()..].starts_with('\\'))
}
