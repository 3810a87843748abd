//! `r2rmap` files: the perf map of a precompiled image, format version 1.

use super::base::{BaseMatch, only_base};
use crate::pe::{Machine, TargetOs};
use crate::{Error, Result};

const WHAT: &str = "r2rmap";

/// A method in a map.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rMapMethod {
    /// RVA of its first byte.
    pub rva: u32,
    /// Its size, without a cold part.
    pub size: u32,
    /// Return type (unless void), owner, name and parameters.
    pub name: Box<str>,
}

impl R2rMapMethod {
    /// The owner, with its instantiation, and the plain name of the method.
    pub fn owner_and_name(&self) -> Option<(&str, &str)> {
        // Names that implement an interface's generic method have brackets, so parameters begin at the last
        // opening parenthesis that is not within other ones.
        let (head, _) = self.name.split_at(last_outside(&self.name, "(", ")", '(')?);
        let (typed, name) = head.split_once("::")?;
        // The owner stands behind the return type: types have blanks within brackets only.
        let blank = last_outside(typed, "[(<", "])>", ' ');
        let owner = blank.map_or(Some(typed), |at| typed.get(at.checked_add(1)?..))?;
        Some((owner, name))
    }

    /// Whether it is the method of that owner and name, instantiations spelled as the runtime's events do: `[A,B]`.
    fn is_named(&self, (owner, name): (&str, &str)) -> bool {
        self.owner_and_name()
            .is_some_and(|own| own.1 == name && own.0.replace(", ", ",") == owner)
    }
}

/// Where a character stands last that is outside of all brackets, or opens the last of them.
fn last_outside(text: &str, open: &str, close: &str, wanted: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut all = text.char_indices().rev();
    let found = all.find(|&(_, c)| {
        if close.contains(c) {
            depth = depth.saturating_add(1);
        } else if open.contains(c) {
            depth = depth.saturating_sub(1);
        }
        c == wanted && depth == 0
    });
    found.map(|(at, _)| at)
}

/// The start of a precompiled method as a trace gives it, for a map, which has names and no tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedMethodStart<'a> {
    /// The address of its first byte.
    pub address: u64,
    /// Its size, if the event has one.
    pub size: Option<u32>,
    /// Namespace with type, and name, as the runtime's events have them.
    pub name: Option<(&'a str, &'a str)>,
}

/// Constants behind the code of a method count in a map, but not for the runtime: 12 bytes were seen.
const CONSTANTS: u32 = 64;

/// An `r2rmap` file. Alone it gives names and sizes; beside the image it adds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct R2rMap {
    /// The signature that the image's debug directory must hold.
    pub signature: [u8; 16],
    /// The system of the code; nothing for a number this crate does not know.
    pub target_os: Option<TargetOs>,
    /// The processor of the code; nothing for a number this crate does not know.
    pub machine: Option<Machine>,
    methods: Vec<R2rMapMethod>,
}

/// Header methods have addresses that no code can have.
mod header {
    pub(super) const SIGNATURE: u32 = 0xffff_ffff;
    pub(super) const VERSION: u32 = 0xffff_fffe;
    pub(super) const OS: u32 = 0xffff_fffd;
    pub(super) const MACHINE: u32 = 0xffff_fffc;
    pub(super) const ABI: u32 = 0xffff_fffb;
}

impl R2rMap {
    /// Reads a map. Text is copied before it is checked: a mapped file may change in between.
    ///
    /// # Errors
    /// [`Error::NotA`] without the signature method, [`Error::Unsupported`] for a format other than 1,
    /// [`Error::Damaged`] at a method that is none (the offset is that of the line).
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
            let damaged = Error::damaged(WHAT, offset, "not a method");
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

    /// The methods, in order of address.
    pub fn methods(&self) -> &[R2rMapMethod] {
        &self.methods
    }

    /// The method whose code covers `rva`.
    pub fn method_at(&self, rva: u32) -> Option<&R2rMapMethod> {
        let after = self.methods.partition_point(|method| method.rva <= rva);
        let method = self.methods.get(after.checked_sub(1)?)?;
        rva.checked_sub(method.rva)
            .is_some_and(|at| at < method.size)
            .then_some(method)
    }

    /// Finds the address that the map's image was loaded at, which makes every start a method of that name and size.
    /// Nothing else ties a map to a trace: the signature stays the same when only compiler options change.
    pub fn base_of(&self, starts: &[NamedMethodStart<'_>]) -> BaseMatch {
        let thumb = u64::from(self.machine == Some(Machine::Arm));
        let starts_at = |base: u64, start: &NamedMethodStart<'_>| {
            let rva = (start.address & !thumb).checked_sub(base);
            let method = rva
                .and_then(|rva| u32::try_from(rva).ok())
                .and_then(|rva| self.method_at(rva).filter(|method| method.rva == rva));
            let has_size = |method: &R2rMapMethod| {
                let behind = |size| method.size.checked_sub(size);
                let fits = |behind| {
                    behind == 0 || self.machine == Some(Machine::Arm64) && behind <= CONSTANTS
                };
                start.size.is_none_or(|size| behind(size).is_some_and(fits))
            };
            method.is_some_and(|method| {
                has_size(method) && start.name.is_none_or(|name| method.is_named(name))
            })
        };
        // Addresses alone are too little to tell builds apart.
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

/// 32 hex digits.
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
