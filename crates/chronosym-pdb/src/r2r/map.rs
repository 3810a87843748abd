//! `r2rmap` files: the perf map of a ReadyToRun image (`r2r-perfmap-format.md`, version 1).

use super::base::{BaseMatch, only_base};
use crate::pe::{Machine, TargetOs};
use crate::{Error, Result};

const WHAT: &str = "r2rmap";

/// A method of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rMapMethod {
    /// RVA of its first byte.
    pub rva: u32,
    /// Its size in bytes, without the cold part.
    pub size: u32,
    /// Return type (unless void), declaring type, name and parameters.
    pub name: Box<str>,
}

impl R2rMapMethod {
    /// Returns the declaring type with its arguments, and the plain name of the method.
    pub fn owner_and_name(&self) -> Option<(&str, &str)> {
        // Explicit implementations of generic interface methods have brackets in their names:
        // parameters start at the last opening parenthesis outside other brackets.
        let (head, _) = self.name.split_at(last_outside(&self.name, "(", ")", '(')?);
        let (typed, name) = head.split_once("::")?;
        // The declaring type follows the return type; types have spaces in brackets only.
        let blank = last_outside(typed, "[(<", "])>", ' ');
        let owner = blank.map_or(Some(typed), |at| typed.get(at.checked_add(1)?..))?;
        Some((owner, name))
    }

    /// Returns whether it is this method; `owner` spells arguments as CLR events do: `[A,B]`.
    fn is_named(&self, (owner, name): (&str, &str)) -> bool {
        self.owner_and_name()
            .is_some_and(|method| method.1 == name && method.0.replace(", ", ",") == owner)
    }
}

/// Returns the last position of `wanted` outside all brackets, or the position of the last opening
/// bracket.
fn last_outside(text: &str, open: &str, close: &str, wanted: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut all = text.char_indices().rev();
    let last = all.find(|&(_, c)| {
        if close.contains(c) {
            depth = depth.saturating_add(1);
        } else if open.contains(c) {
            depth = depth.saturating_sub(1);
        }
        c == wanted && depth == 0
    });
    last.map(|(at, _)| at)
}

/// The start of a precompiled method in a trace, by name: maps have no tokens.
///
/// Closed: callers build it as a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedMethodStart<'a> {
    /// The address of its first byte.
    pub address: u64,
    /// Its size in bytes, if the event states it.
    pub size: Option<u32>,
    /// The `MethodNamespace` and `MethodName` fields of the event.
    pub name: Option<(&'a str, &'a str)>,
}

/// A map counts constants after a method's code, the runtime does not: 12 bytes have been seen.
const CONSTANTS: u32 = 64;

/// An `r2rmap` file: names and sizes for an image that is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rMap {
    /// The signature, which must equal the one in the image's debug directory.
    pub signature: [u8; 16],
    /// The operating system of the code; `None` for an unknown value.
    pub target_os: Option<TargetOs>,
    /// The processor of the code; `None` for an unknown value.
    pub machine: Option<Machine>,
    methods: Vec<R2rMapMethod>,
}

/// Header lines have RVAs that no code can have.
mod header {
    pub(super) const SIGNATURE: u32 = 0xffff_ffff;
    pub(super) const VERSION: u32 = 0xffff_fffe;
    pub(super) const OS: u32 = 0xffff_fffd;
    pub(super) const MACHINE: u32 = 0xffff_fffc;
    pub(super) const ABI: u32 = 0xffff_fffb;
}

impl R2rMap {
    /// Parses a map. Text is copied before it is validated: a mapped file can change in between.
    ///
    /// # Errors [`Error::NotA`] without the signature line, [`Error::Unsupported`] for another
    /// version than 1, [`Error::Damaged`] for a malformed line (at the line's offset).
    pub fn parse(data: &[u8]) -> Result<Self> {
        if !data.starts_with(b"FFFFFFFF ") {
            return Err(Error::NotA { what: WHAT });
        }
        let mut map = Self {
            signature: [0; 16],
            target_os: None,
            machine: None,
            methods: Vec::new(),
        };
        let mut offset = 0_u64;
        for line in data.split_inclusive(|&b| b == b'\n') {
            let damaged = Error::damaged(WHAT, offset, "not a row");
            let text = String::from_utf8(line.to_vec()).ok();
            let method = text.and_then(|text| method(text.trim_end_matches(['\n', '\r'])));
            let method = method.ok_or(damaged)?;
            match method.rva {
                header::SIGNATURE => {
                    map.signature = signature(&method.name).ok_or(Error::NotA { what: WHAT })?
                }
                header::VERSION if &*method.name != "1" => {
                    return Err(Error::Unsupported {
                        what: WHAT,
                        version: method.name.parse().unwrap_or(0),
                    });
                }
                header::OS => map.target_os = target_os(&method.name),
                header::MACHINE => map.machine = machine(&method.name),
                header::VERSION | header::ABI => {}
                _ => map.methods.push(method),
            }
            offset = offset.saturating_add(line.len() as u64);
        }
        map.methods.sort_by_key(|method| method.rva);
        Ok(map)
    }

    /// Returns the methods, in order of address.
    pub fn methods(&self) -> &[R2rMapMethod] {
        &self.methods
    }

    /// Returns the method whose code covers `rva`.
    pub fn method_at(&self, rva: u32) -> Option<&R2rMapMethod> {
        let after = self.methods.partition_point(|method| method.rva <= rva);
        let method = self.methods.get(after.checked_sub(1)?)?;
        rva.checked_sub(method.rva)
            .is_some_and(|at| at < method.size)
            .then_some(method)
    }

    /// Finds the load address at which every start is a method with the stated name and size. The
    /// signature does not identify a build: it does not depend on compiler options.
    pub fn base_of(&self, starts: &[NamedMethodStart<'_>]) -> BaseMatch {
        let thumb = u64::from(self.machine == Some(Machine::Arm));
        let starts_at = |base: u64, start: &NamedMethodStart<'_>| {
            let rva = (start.address & !thumb).checked_sub(base);
            let method = rva
                .and_then(|rva| u32::try_from(rva).ok())
                .and_then(|rva| self.method_at(rva).filter(|method| method.rva == rva));
            let has_size = |method: &R2rMapMethod| {
                let constants = |size| method.size.checked_sub(size);
                let fits = |constants| {
                    constants == 0 || self.machine == Some(Machine::Arm64) && constants <= CONSTANTS
                };
                start
                    .size
                    .is_none_or(|size| constants(size).is_some_and(fits))
            };
            method.is_some_and(|method| {
                has_size(method) && start.name.is_none_or(|name| method.is_named(name))
            })
        };
        // Addresses alone do not distinguish builds.
        if !starts.is_empty() && starts.iter().all(|start| start.name.is_none()) {
            return BaseMatch::Ambiguous;
        }
        let first = starts.first().map(|start| start.address & !thumb);
        only_base(
            first,
            self.methods.iter().map(|method| method.rva),
            |base| starts.iter().all(|start| starts_at(base, start)),
        )
    }
}

fn method(line: &str) -> Option<R2rMapMethod> {
    let (rva, rest) = line.split_once(' ')?;
    let (size, name) = rest.split_once(' ')?;
    let hex = |text: &str| u32::from_str_radix(text, 16).ok();
    Some(R2rMapMethod {
        rva: hex(rva)?,
        size: hex(size)?,
        name: name.into(),
    })
}

/// Parses 32 hex digits.
fn signature(text: &str) -> Option<[u8; 16]> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

fn target_os(number: &str) -> Option<TargetOs> {
    Some(match number {
        "1" => TargetOs::Windows,
        "2" => TargetOs::Linux,
        "3" => TargetOs::Apple,
        "4" => TargetOs::FreeBsd,
        "5" => TargetOs::NetBsd,
        "6" => TargetOs::SunOs,
        _ => return None,
    })
}

fn machine(number: &str) -> Option<Machine> {
    Some(match number {
        "1" => Machine::Arm,
        "2" => Machine::Arm64,
        "3" => Machine::X64,
        "4" => Machine::X86,
        _ => return None,
    })
}
