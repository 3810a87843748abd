//! What the events of the Windows kernel say: processes, threads, images.

use chronosym_events::kernel::{
    DbgId, DbgIdRsds, Image as ImageEvent, KernelEvent, Process, ProcessAction,
};
use chronosym_events::{Action, WStr};
use chronosym_timeline::{Begin, End};
use rustc_hash::FxHashMap;

use crate::code::PdbId;
use crate::images::{Image, ImageIndex, simple_name};
use crate::process::ProcessIndex;
use crate::session::{Session, life_of};
use crate::strings::StringId;

/// What kernel events say beside processes and images.
#[derive(Debug, Default)]
pub(crate) struct KernelState {
    /// Which process a thread is of now.
    pub process_of_thread: FxHashMap<u32, u32>,
    /// NT device path → DOS path, for the longest prefix of an image's path.
    volumes: Vec<(String, String)>,
    /// The image that stands at (process, base) now.
    current: FxHashMap<(ProcessIndex, u64), ImageIndex>,
    /// What identifies the image that an event to come will tell of: (pid, base) → (time, identity).
    ahead: FxHashMap<(u32, u64), (u64, Identity)>,
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
                let threads = &mut self.kernel.process_of_thread;
                match event.action {
                    Action::Load | Action::DCStart => {
                        threads.insert(event.thread_id, event.process_id);
                    }
                    // Samples of the thread can still follow within the same instant.
                    Action::Unload | Action::DCEnd => {
                        threads.entry(event.thread_id).or_insert(event.process_id);
                    }
                }
                if let Some(name) = event.name.filter(|n| !n.is_empty()) {
                    self.thread_name(event.process_id, event.thread_id, time, name);
                }
            }
            KernelEvent::ThreadName(event) => {
                self.thread_name(event.process_id, event.thread_id, time, event.name)
            }
            KernelEvent::Image(event) => self.image(time, event),
            KernelEvent::ImageId(event) => {
                let timestamp = Some(event.time_date_stamp).filter(|&t| t != 0);
                self.identity(time, event.process_id, event.base, |i| {
                    i.timestamp = timestamp.or(i.timestamp)
                });
            }
            KernelEvent::DbgIdRsds(event) => self.rsds(time, event),
            KernelEvent::VolumeMapping(event) => {
                let (nt, dos) = (event.nt_path.to_string(), event.dos_path.to_string());
                if !nt.is_empty() {
                    self.kernel.volumes.push((nt, dos));
                }
            }
            _ => {}
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
            known.end = Some(time);
        }
    }

    fn thread_name(&mut self, pid: u32, tid: u32, time: u64, name: WStr<'_>) {
        let process = self.process(pid, time);
        let thread = self.processes.thread(process, u64::from(tid));
        let name = self.names.wide(name);
        self.processes.threads[thread.index()].name = name;
    }

    fn image(&mut self, time: u64, event: &ImageEvent<'_>) {
        let pid = event.process_id.unwrap_or(0);
        let pid = if SYSTEM_PIDS.contains(&pid) { 0 } else { pid };
        let process = self.process(pid, time);
        let key = (process, event.base);
        let known = self.kernel.current.get(&key).copied();
        if event.size == 0 {
            return;
        }
        let path = self.image_path(event.file_name);
        let state = &mut self.states[process.index()];
        let same = known.filter(|i| {
            let image = &state.images[i.index()];
            image.size == event.size
                && !(event.action == Action::Load && matches!(image.end, End::At(_)))
        });
        let (begin, end) = life_of(event.action, time);
        let index = match same {
            Some(index) => {
                let image = &mut state.images[index.index()];
                match (event.action, image.end) {
                    (Action::Unload, End::At(_)) => {}
                    (Action::Unload | Action::DCEnd, _) => image.end = end,
                    (Action::Load | Action::DCStart, _) => {}
                }
                index
            }
            None => {
                let simple = simple_name(self.names.strings.get(path)).to_owned();
                let simple = self.names.strings.intern(&simple);
                let index = ImageIndex(state.images.len() as u32);
                state.images.push(Image {
                    base: event.base,
                    size: event.size,
                    rva_bias: 0,
                    path,
                    simple_name: simple,
                    timestamp: None,
                    checksum: event.checksum.filter(|&c| c != 0),
                    pdb: None,
                    il_pdb: None,
                    build_id: StringId::EMPTY,
                    begin,
                    end,
                });
                self.kernel.current.insert(key, index);
                if let Begin::At(at) = begin {
                    let last = event.base.saturating_add(event.size - 1);
                    state.code.image_mapped(event.base, last, at);
                }
                index
            }
        };
        let stamp = event.time_date_stamp.filter(|&t| t != 0);
        let ahead = self
            .kernel
            .ahead
            .remove(&(pid, event.base))
            .map(|(_, identity)| identity);
        self.identify_image(
            process,
            index,
            &Identity {
                timestamp: stamp,
                ..ahead.unwrap_or_default()
            }
            .or(stamp),
        );
    }

    /// ImageID and RSDS records come with an image event of the same time, before it or after.
    fn identity(&mut self, time: u64, pid: u32, base: u64, set: impl FnOnce(&mut Identity)) {
        let pid = if SYSTEM_PIDS.contains(&pid) { 0 } else { pid };
        let process = self.process(pid, time);
        let (at, held) = self
            .kernel
            .ahead
            .remove(&(pid, base))
            .unwrap_or((time, Identity::default()));
        let mut identity = if at == time {
            held
        } else {
            Identity::default()
        };
        set(&mut identity);
        if let Some(&index) = self.kernel.current.get(&(process, base))
            && self.states[process.index()].images[index.index()].told_at() == Some(time)
        {
            self.identify_image(process, index, &identity);
        }
        self.kernel.ahead.insert((pid, base), (time, identity));
    }

    fn rsds(&mut self, time: u64, event: &DbgIdRsds<'_>) {
        let pdb = PdbId {
            guid: event.guid,
            age: event.age,
            path: event.pdb_path.to_string(),
        };
        let of = event.of;
        self.identity(time, event.process_id, event.base, |identity| match of {
            DbgId::Image => identity.pdb = Some(pdb),
            DbgId::Il => identity.il_pdb = Some(pdb),
        });
    }

    fn identify_image(&mut self, process: ProcessIndex, index: ImageIndex, identity: &Identity) {
        let image = &mut self.states[process.index()].images[index.index()];
        image.timestamp = image.timestamp.or(identity.timestamp);
        if image.pdb.is_none() {
            image.pdb.clone_from(&identity.pdb);
        }
        if image.il_pdb.is_none() {
            image.il_pdb.clone_from(&identity.il_pdb);
        }
    }

    /// The DOS form of an NT path, where the trace says which volume is which drive.
    fn image_path(&mut self, path: WStr<'_>) -> StringId {
        let text = path.to_string();
        let longest = self
            .kernel
            .volumes
            .iter()
            .filter(|(nt, _)| starts_with_ignoring_case(&text, nt))
            .max_by_key(|(nt, _)| nt.len());
        match longest {
            Some((nt, dos)) => {
                let full = format!("{dos}{}", &text[nt.len()..]);
                self.names.strings.intern(&full)
            }
            None => self
                .names
                .strings
                .intern(text.strip_prefix(r"\??\").unwrap_or(&text)),
        }
    }
}

impl Identity {
    fn or(mut self, timestamp: Option<u32>) -> Self {
        self.timestamp = self.timestamp.or(timestamp);
        self
    }
}

impl Image {
    fn told_at(&self) -> Option<u64> {
        match (self.begin, self.end) {
            (Begin::At(at) | Begin::Before(at), _) => Some(at),
            (Begin::Unbounded, _) => None,
        }
    }
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}
