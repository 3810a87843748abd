//! The rows of `stacks` and `frames`, each id once.

use chronosym_core::{Certainty, NameReason};
use chronosym_types::hash::HashMap;

use super::file::{Tables, batches};
use super::memory::Memory;
use super::rows::{Texts, number, numbers};
use crate::error::Error;

/// A frame.
pub(crate) struct Frame {
    pub module: Option<Box<str>>,
    pub method: Option<Box<str>>,
    pub signature: Option<Box<str>>,
    pub identity: Option<Box<str>>,
    pub rva: Option<u64>,
    pub token: Option<u32>,
    pub address: Option<u64>,
    pub certainty: Certainty,
}

/// The stacks and frames of an export.
pub(crate) struct Stacks {
    /// The number of a frame in `frames`, by its id.
    numbers: HashMap<i64, u32>,
    pub frames: Vec<Frame>,
    /// Whether code is missing because a runtime did not list it.
    pub lacks_rundown: bool,
    /// Caller and frame.
    stacks: HashMap<i64, (Option<i64>, i64)>,
}

/// Bytes of a row of `frames` without its texts, and of `stacks`, in memory.
const FRAME: u64 = size_of::<Frame>() as u64 + 48;
const STACK: u64 = 64;
/// Frames of a stack: no recording has more.
const DEPTH: usize = 1 << 14;

impl Frame {
    /// Whether it is a method of a module, with or without a name.
    pub fn is_method(&self) -> bool {
        self.method.is_some() || self.token.is_some()
    }
}

impl Stacks {
    pub fn read(tables: &Tables, memory: &mut Memory) -> Result<Self, Error> {
        let mut charge = |bytes: u64| memory.charge(bytes);
        let mut all = Stacks {
            numbers: HashMap::default(),
            frames: Vec::new(),
            lacks_rundown: false,
            stacks: HashMap::default(),
        };
        let columns = [
            "frame_id",
            "module",
            "method",
            "signature",
            "identity",
            "rva",
            "token",
            "address",
            "certainty",
            "name_reason",
        ];
        for path in &tables.frames {
            batches(path, &columns, |batch| {
                let text = |name| Texts::of(batch, name);
                let (ids, rvas) = (numbers(batch, "frame_id")?, numbers(batch, "rva")?);
                let (addresses, tokens) = (numbers(batch, "address")?, numbers(batch, "token")?);
                let (modules, methods) = (text("module")?, text("method")?);
                let (signatures, identities) = (text("signature")?, text("identity")?);
                let (certainties, reasons) = (text("certainty")?, text("name_reason")?);
                for row in 0..batch.num_rows() {
                    let Some(id) = number(ids, row) else { continue };
                    let no_rundown = Some(NameReason::NoRundown.as_str());
                    all.lacks_rundown |= reasons.get(row) == no_rundown;
                    let certainty = certainties.get(row).map_or(Certainty::Exact, |text| {
                        let all = Certainty::ALL.into_iter();
                        let known = all.into_iter().find(|it| it.as_str() == text);
                        known.unwrap_or(Certainty::Approximate)
                    });
                    let next = all.frames.len() as u32;
                    let known = *all.numbers.entry(id).or_insert(next);
                    if let Some(frame) = all.frames.get_mut(known as usize) {
                        frame.certainty = frame.certainty.max(certainty);
                        continue;
                    }
                    let texts = [&modules, &methods, &signatures, &identities];
                    let texts = texts.map(|column| column.get(row));
                    charge(
                        FRAME
                            + texts
                                .iter()
                                .flatten()
                                .map(|it| it.len() as u64)
                                .sum::<u64>(),
                    )?;
                    let [module, method, signature, identity] = texts.map(|it| it.map(Into::into));
                    all.frames.push(Frame {
                        module,
                        method,
                        signature,
                        identity,
                        rva: number(rvas, row).map(|rva| rva as u64),
                        token: number(tokens, row).and_then(|token| u32::try_from(token).ok()),
                        address: number(addresses, row).map(|address| address as u64),
                        certainty,
                    });
                }
                Ok(true)
            })?;
        }
        for path in &tables.stacks {
            batches(path, &["stack_id", "caller_id", "frame_id"], |batch| {
                let (ids, callers) = (numbers(batch, "stack_id")?, numbers(batch, "caller_id")?);
                let frames = numbers(batch, "frame_id")?;
                for row in 0..batch.num_rows() {
                    let (Some(id), Some(frame)) = (number(ids, row), number(frames, row)) else {
                        continue;
                    };
                    charge(STACK)?;
                    all.stacks.insert(id, (number(callers, row), frame));
                }
                Ok(true)
            })?;
        }
        Ok(all)
    }

    /// Calls `each` with the numbers of the frames of a stack, innermost first. Returns false if a
    /// row is missing, or the stack is too deep or without an end.
    pub fn each_frame(&self, stack: i64, mut each: impl FnMut(u32)) -> bool {
        let mut next = Some(stack);
        for _ in 0..DEPTH {
            let Some(stack) = next else { return true };
            let row = self.stacks.get(&stack);
            let frame = row.and_then(|(_, frame)| self.numbers.get(frame));
            let (Some(&(caller, _)), Some(&frame)) = (row, frame) else {
                return false;
            };
            each(frame);
            next = caller;
        }
        next.is_none()
    }
}
