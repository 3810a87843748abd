//! Addresses for the locations of OTLP profiles, and the facts that name the code there.
//!
//! A location has an address of a file, an IL offset, or a name only; so each of its frames gets an
//! address that nothing else uses. All processes use the same addresses.

use std::sync::Arc;

use chronosym_core::facts::{At, Image, Method, Module, ProfiledLine, Symbol};
use chronosym_core::unwind::{FileByContent, HeaderIdentity, ImageFiles};
use chronosym_core::{Action, Addressing, Position, ProcessIndex, Session, simple_name};
use chronosym_otlp::{Address, FrameType, Location, Mapping, Profiles};
use chronosym_types::hash::{HashMap, HashSet};

/// Addresses from here on belong to no process of any system.
const UNUSED: u64 = 1 << 56;
/// Functions that the profile names, by the offset of their line in the input.
const NAMED: u64 = UNUSED;
/// Methods with an IL offset, by the offset of their location in the input.
const METHODS: u64 = UNUSED + (1 << 40);
/// Locations without a usable address, by their offset in the input.
const NOWHERE: u64 = UNUSED + (2 << 40);
/// The first address of files. Each mapping has two ranges of 4 GiB: one for file offsets, one for
/// the file's own addresses.
const FILES: u64 = UNUSED + (1 << 48);
const FILE_SIZE: u64 = 1 << 32;
/// Maximum number of mappings that have ranges.
const MOST_FILES: usize = 1 << 14;
/// Functions of the kernel, by the offset of their line in the input.
const KERNEL: u64 = 0xff00_0000_0000_0000;
/// Distance between two functions; a return address is one more than the address of its call.
const STEP: u64 = 4;

/// A frame: the address to look up, and what names the code there.
struct Frame {
    address: u64,
    code: Code,
}

enum Code {
    /// The profile.
    Named(String, ProfiledFile),
    /// The metadata of an assembly, and perhaps the profile: row, IL offset, name.
    Method(u32, u32, String),
    /// The symbols of the mapping's file.
    File(Addressing),
    /// Nothing.
    Unnamed,
}

struct ProfiledFile {
    file: String,
    line: u32,
    is_inlined: bool,
}

/// The places of the locations of one message.
#[derive(Default)]
pub(super) struct Places {
    /// Number of mappings in earlier messages.
    mappings_before: usize,
    identities: HashMap<usize, Arc<HeaderIdentity>>,
    files: HashSet<(ProcessIndex, u64)>,
    modules: HashSet<(ProcessIndex, usize)>,
    locations: HashSet<(ProcessIndex, usize)>,
}

impl Places {
    pub fn new(mappings_before: usize) -> Self {
        Places {
            mappings_before,
            ..Places::default()
        }
    }

    /// Returns the addresses of a stack of locations, innermost first, as in a stack of a process:
    /// those of callers are return addresses. At most `left` of them.
    pub fn stack(
        &mut self,
        of: &Profiles,
        locations: impl Iterator<Item = usize>,
        (innermost, left): (Position, &mut u64),
        files: Option<&dyn ImageFiles>,
    ) -> Vec<u64> {
        let mut addresses = Vec::new();
        let (mut position, mut is_in_kernel) = (innermost, false);
        for location in locations.filter_map(|index| of.location(index)) {
            let mapping = of.mapping(location.mapping);
            let states_return = matches!(location.meaning(mapping.as_ref()), Address::Rva(_));
            for frame in self.frames(of, &location, mapping.as_ref(), files) {
                let Some(rest) = left.checked_sub(1) else {
                    return addresses;
                };
                *left = rest;
                let is_kernel = frame.address >> 63 == 1;
                if is_in_kernel && !is_kernel {
                    position = Position::Exact;
                }
                let has_call = match frame.code {
                    Code::Unnamed => true,
                    Code::File(_) => states_return,
                    _ => false,
                };
                let after_call = position == Position::Return && !has_call;
                addresses.push(frame.address.saturating_add(after_call.into()));
                (position, is_in_kernel) = (Position::Return, is_kernel);
            }
        }
        addresses
    }

    /// States to a session what names a location in a process.
    pub fn state(
        &mut self,
        of: &Profiles,
        index: usize,
        (at, process): (At, ProcessIndex),
        files: Option<&dyn ImageFiles>,
        session: &mut Session,
    ) {
        if !self.locations.insert((process, index)) {
            return;
        }
        let Some(location) = of.location(index) else {
            return;
        };
        let mapping = of.mapping(location.mapping);
        let path = mapping.as_ref().map_or("", |mapping| &*mapping.path);
        let frames = self.frames(of, &location, mapping.as_ref(), files);
        for Frame { address, code } in frames {
            match code {
                Code::Named(name, line) => {
                    let line = ProfiledLine {
                        file: line.file.as_str().into(),
                        line: line.line,
                        is_inlined: line.is_inlined,
                    };
                    let symbol = Symbol::profiled(address, &*name, path, line);
                    session.name_untimed(process, symbol);
                }
                Code::Method(row, il_offset, name) => {
                    let module = self.module((at, process), of, &location, files, session);
                    let id = module << 28 | u64::from(row);
                    let mut method = Method::new(Action::Load, id, address, 2);
                    method = method.in_module(module, 0x0600_0000 | row);
                    method.names = ["".into(), (&*name).into(), "".into()];
                    session.profiled_method(at, method, il_offset);
                }
                Code::File(addressing) => {
                    let base = address & !(FILE_SIZE - 1);
                    if self.files.insert((process, base)) {
                        let identity = self.identity(location.mapping, mapping.as_ref(), files);
                        let offset = match (addressing, &mapping) {
                            (Addressing::FileOffset, Some(mapping)) => mapping.file_offset,
                            _ => 0,
                        };
                        let size = match (identity.pe, &mapping) {
                            (Some((_, size)), _) => size.into(),
                            (None, Some(it)) if offset > 0 => it.limit.saturating_sub(it.start),
                            _ => FILE_SIZE,
                        };
                        let size = size.min(FILE_SIZE.saturating_sub(offset));
                        let start = base.saturating_add(offset);
                        let mut image = Image::new(Action::DCStart, start, size, path);
                        image.file_offset = offset;
                        image.addressing = addressing;
                        image.build_id = identity.build_id.as_deref().unwrap_or_default();
                        image.timestamp = identity.pe.map(|(timestamp, _)| timestamp);
                        image.pdb.clone_from(&identity.pdb);
                        session.apply(at, image);
                    }
                }
                Code::Unnamed => {}
            }
        }
    }

    /// States the module of a location; returns its id, or 0 if there is none.
    fn module(
        &mut self,
        (at, process): (At, ProcessIndex),
        of: &Profiles,
        location: &Location<'_>,
        files: Option<&dyn ImageFiles>,
        session: &mut Session,
    ) -> u64 {
        let index = location.mapping;
        let Some(mapping) = of.mapping(index) else {
            return 0;
        };
        let id = (self.mappings_before + index + 1) as u64;
        if self.modules.insert((process, index)) {
            let path = module_path(of, location, &mapping);
            let mut module = Module::new(Action::DCStart, id, &*path);
            let identity = self.identity_at(index, &mapping, &path, files);
            module.managed_pdb.clone_from(&identity.pdb);
            session.apply(at, module);
        }
        id
    }

    fn identity(
        &mut self,
        index: usize,
        mapping: Option<&Mapping<'_>>,
        files: Option<&dyn ImageFiles>,
    ) -> Arc<HeaderIdentity> {
        match mapping {
            Some(mapping) => self.identity_at(index, mapping, &mapping.path, files),
            None => Arc::default(),
        }
    }

    /// Returns the identity of a mapping's file: as the profile states it, or as its header does.
    fn identity_at(
        &mut self,
        index: usize,
        mapping: &Mapping<'_>,
        path: &str,
        files: Option<&dyn ImageFiles>,
    ) -> Arc<HeaderIdentity> {
        let identity = self.identities.entry(index).or_insert_with(|| {
            let ids = mapping.ids();
            let by_content = FileByContent {
                path,
                htlhash: ids.htlhash.as_deref().unwrap_or_default(),
                mvid: ids.gnu.as_deref().unwrap_or_default(),
            };
            let found = files.and_then(|files| files.identity(&by_content));
            Arc::new(found.unwrap_or_else(|| HeaderIdentity {
                build_id: ids.gnu,
                ..HeaderIdentity::default()
            }))
        });
        Arc::clone(identity)
    }

    /// Returns the frames of a location, innermost first; at least one.
    fn frames(
        &mut self,
        of: &Profiles,
        location: &Location<'_>,
        mapping: Option<&Mapping<'_>>,
        files: Option<&dyn ImageFiles>,
    ) -> Vec<Frame> {
        let meaning = location.meaning(mapping);
        let is_kernel = location.frame_type() == FrameType::Kernel;
        let is_dotnet = matches!(meaning, Address::Il { .. } | Address::Rva(_));
        let path = mapping.map_or("", |mapping| &*mapping.path);
        let mut named = Vec::new();
        let mut has_line = false;
        for line in location.lines() {
            let function = of.function(line.function).unwrap_or_default();
            if !function.has_name() {
                continue;
            }
            has_line |= line.line > 0;
            // `module!name`, as chronosym writes functions.
            let name = match function.name.split_once('!') {
                Some((module, name)) if module == simple_name(path) => name,
                _ => &*function.name,
            };
            let start = if is_kernel { KERNEL } else { NAMED };
            // A line of an unknown file is none.
            let line_number = if function.file.is_empty() {
                0
            } else {
                line.line
            };
            let file = ProfiledFile {
                file: function.file.into_owned(),
                line: line_number,
                is_inlined: true,
            };
            named.push(Frame {
                address: start + STEP * u64::from(line.position),
                code: Code::Named(name.to_owned(), file),
            });
        }
        if let Some(Frame {
            code: Code::Named(_, outermost),
            ..
        }) = named.last_mut()
        {
            outermost.is_inlined = false;
        }
        let at = u64::from(location.position());
        let one = |address, code| vec![Frame { address, code }];
        if !named.is_empty() && (has_line || !is_dotnet) {
            return named;
        }
        let slot = self.mappings_before.saturating_add(location.mapping);
        let range = (slot < MOST_FILES && mapping.is_some()).then_some(slot as u64);
        let in_file = |offset: u64, addressing: Addressing| {
            let is_offset = u64::from(addressing == Addressing::FileOffset);
            let base = FILES + (2 * range? + is_offset) * FILE_SIZE;
            let frame = |offset| one(base + offset, Code::File(addressing));
            Some(offset).filter(|&offset| offset < FILE_SIZE).map(frame)
        };
        let placed = match meaning {
            Address::Il { method, offset } if method > 0 => {
                let name = named.pop().map_or(String::new(), |frame| match frame.code {
                    Code::Named(name, _) => name,
                    _ => String::new(),
                });
                let code = Code::Method(method, offset, name);
                return one(METHODS + STEP * at, code);
            }
            Address::Rva(rva) => {
                let identity = self.identity(location.mapping, mapping, files);
                match identity.pe.is_none() && !named.is_empty() {
                    true => return named,
                    false => in_file(rva.into(), Addressing::Virtual),
                }
            }
            Address::Virtual(address) => in_file(address, Addressing::Virtual),
            Address::FileOffset(offset) => in_file(offset, Addressing::FileOffset),
            _ => None,
        };
        placed.unwrap_or_else(|| {
            let is_free = |address: u64| address > 0 && (address < UNUSED || address >> 63 == 1);
            match is_free(location.address) && !is_dotnet {
                true => one(location.address, Code::Unnamed),
                false => one(NOWHERE + STEP * at, Code::Unnamed),
            }
        })
    }
}

/// Returns the path of a module. Older versions of the profiler write its name as the source file
/// of its functions only.
fn module_path(of: &Profiles, location: &Location<'_>, mapping: &Mapping<'_>) -> String {
    if !mapping.path.is_empty() {
        return mapping.path.clone().into_owned();
    }
    let functions = location.lines().map(|line| of.function(line.function));
    let mut files = functions.flatten().map(|function| function.file);
    files.next().unwrap_or_default().into_owned()
}
