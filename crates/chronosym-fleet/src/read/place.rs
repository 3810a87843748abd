//! Addresses for the frames of tables, and the code at them.

use chronosym_core::facts::{At, Image, Method, Module};
use chronosym_core::{Action, Certainty, Session, simple_name};
use chronosym_types::hash::{HashMap, HashSet};

use super::stacks::Stacks;

/// Addresses of named frames. No system maps anything there, and none looks like the kernel's.
const NAMED: u64 = 0x1000_0000_0000;
/// Bytes for each: room for the address, and for one before and after it.
const SIZE: u64 = 16;
/// Bases of images.
const IMAGES: u64 = 0x2000_0000_0000;
/// Bytes for each image.
const IMAGE_SIZE: u64 = 1 << 32;

/// Returns a path whose simple name is this one.
fn path_of(name: &str) -> String {
    match simple_name(name) == name {
        true => name.to_owned(),
        false => format!("{name}.dll"),
    }
}

/// Where the frames of a process are.
pub(crate) struct Places<'s> {
    stacks: &'s Stacks,
    /// The address of each frame.
    addresses: Vec<u64>,
    /// The module of each frame.
    modules: Vec<u32>,
    /// The images of frames without a name: name, identity.
    images: Vec<(Box<str>, Box<str>)>,
    names: Vec<Box<str>>,
    /// Which process has which stack.
    seen: HashSet<(u32, i64)>,
    /// Frames that a process has.
    used: HashSet<(u32, u32)>,
    cut: u64,
}

impl<'s> Places<'s> {
    pub fn new(stacks: &'s Stacks) -> Self {
        let mut places = Places {
            stacks,
            addresses: Vec::with_capacity(stacks.frames.len()),
            modules: Vec::with_capacity(stacks.frames.len()),
            images: Vec::new(),
            names: Vec::new(),
            seen: HashSet::default(),
            used: HashSet::default(),
            cut: 0,
        };
        let mut images: HashMap<(&str, &str), u64> = HashMap::default();
        let mut modules: HashMap<&str, u32> = HashMap::default();
        for (number, frame) in stacks.frames.iter().enumerate() {
            let module = frame.module.as_deref().unwrap_or_default();
            let address = match (frame.is_method(), frame.rva, frame.address) {
                (false, Some(rva), _) if rva < IMAGE_SIZE => {
                    let identity = frame.identity.as_deref().unwrap_or_default();
                    let next = images.len() as u64;
                    let image = *images.entry((module, identity)).or_insert(next);
                    if image == next {
                        places.images.push((module.into(), identity.into()));
                    }
                    IMAGES + image * IMAGE_SIZE + rva
                }
                (false, _, Some(address)) => address,
                _ => NAMED + number as u64 * SIZE + SIZE / 2,
            };
            let next = modules.len() as u32;
            let module = *modules.entry(module).or_insert_with_key(|name| {
                places.names.push((*name).into());
                next
            });
            places.addresses.push(address);
            places.modules.push(module);
        }
        places
    }

    /// Notes that a process has samples with a stack.
    pub fn add(&mut self, pid: u32, stack: i64) {
        if !self.seen.insert((pid, stack)) {
            return;
        }
        let used = &mut self.used;
        let is_whole = self.stacks.each_frame(stack, |frame| {
            used.insert((pid, frame));
        });
        self.cut += u64::from(!is_whole);
    }

    /// Fills in the addresses of a stack, innermost first.
    pub fn addresses(&self, stack: i64, addresses: &mut Vec<u64>) {
        addresses.clear();
        self.stacks.each_frame(stack, |frame| {
            addresses.push(self.addresses[frame as usize])
        });
    }

    /// Number of stacks that are not whole.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Number of frames whose names are guesses.
    pub fn guesses(&self) -> u64 {
        let frames = self.stacks.frames.iter();
        frames
            .filter(|frame| frame.is_method() && frame.certainty == Certainty::Approximate)
            .count() as u64
    }

    /// States the code of all processes: loaded at the start, if its names are exact, or else
    /// listed at the end.
    pub fn state(&self, action: Action, time_ns: u64, session: &mut Session) {
        let mut used: Vec<(u32, u32)> = self.used.iter().copied().collect();
        used.sort_unstable();
        let mut stated: HashSet<(u32, bool, u64)> = HashSet::default();
        for (pid, number) in used {
            let at = At::new(time_ns).process(pid).thread(0);
            let frame = &self.stacks.frames[number as usize];
            let is_exact = frame.certainty == Certainty::Exact;
            if !frame.is_method() {
                if action == Action::Load {
                    self.state_image(at, number, &mut stated, session);
                }
                continue;
            }
            let module = self.modules[number as usize];
            let name = &self.names[module as usize];
            let module_id = match name.is_empty() {
                true => 0,
                false => u64::from(module) + 1,
            };
            if module_id > 0 && action == Action::Load && stated.insert((pid, true, module_id)) {
                let path = path_of(name);
                session.apply(at, Module::new(Action::DCStart, module_id, &*path));
            }
            if is_exact == (action == Action::Load) {
                self.state_method(at, (action, module_id), number, session);
            }
        }
    }

    fn state_method(
        &self,
        at: At,
        (action, module_id): (Action, u64),
        number: u32,
        session: &mut Session,
    ) {
        let start = self.addresses[number as usize] - SIZE / 2;
        let id = u64::from(number) + 1;
        let frame = &self.stacks.frames[number as usize];
        let text = |text: &'s Option<Box<str>>| text.as_deref().unwrap_or_default();
        let body = Method::new(action, id, start, SIZE as u32);
        let body = body.in_module(module_id, frame.token.unwrap_or(0));
        session.apply(
            at,
            body.named("", text(&frame.method), text(&frame.signature)),
        );
    }

    fn state_image(
        &self,
        at: At,
        number: u32,
        stated: &mut HashSet<(u32, bool, u64)>,
        session: &mut Session,
    ) {
        let address = self.addresses[number as usize];
        let index = address.wrapping_sub(IMAGES) / IMAGE_SIZE;
        let image = usize::try_from(index)
            .ok()
            .and_then(|index| self.images.get(index));
        let Some((name, identity)) = image else {
            return;
        };
        if self.stacks.frames[number as usize].rva.is_none()
            || !stated.insert((at.process.unwrap_or(0), false, index))
        {
            return;
        }
        let path = path_of(name);
        let base = IMAGES + index * IMAGE_SIZE;
        let mut image = Image::new(Action::Load, base, IMAGE_SIZE, &*path);
        image.build_id = identity;
        session.apply(at, image);
    }
}
