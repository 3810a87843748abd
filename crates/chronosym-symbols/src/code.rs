//! Machine code out of object files.

use object::{Architecture, Object, ObjectSegment};

use crate::Address;

/// What machine code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Processor {
    /// x86, 32-bit.
    X86,
    /// x86, 64-bit.
    X64,
    /// ARM, 64-bit.
    Arm64,
    /// Another one.
    Other,
}

/// Up to `most` bytes of an ELF or PE file from an address on, as far as one of its segments or sections has them; `None` for
/// other files, and where no segment has bytes.
#[must_use]
pub fn machine_code(file: &[u8], address: Address, most: usize) -> Option<(Processor, &[u8])> {
    let object = object::File::parse(file).ok()?;
    let processor = match object.architecture() {
        Architecture::I386 => Processor::X86,
        Architecture::X86_64 => Processor::X64,
        Architecture::Aarch64 => Processor::Arm64,
        _ => Processor::Other,
    };
    let base = object.relative_address_base();
    let code = object.segments().find_map(|segment| {
        let bytes = segment.data().ok()?;
        let start = match address {
            Address::Rva(rva) => base.checked_add(rva)?.checked_sub(segment.address())?,
            Address::VirtualAddress(at) => at.checked_sub(segment.address())?,
            Address::FileOffset(at) => at.checked_sub(segment.file_range().0)?,
        };
        let rest = bytes.get(usize::try_from(start).ok()?..)?;
        let code = &rest[..rest.len().min(most)];
        Some(code).filter(|code| !code.is_empty())
    })?;
    Some((processor, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_by_each_kind_of_address() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/clr10/r2r/");
        let dll = |folder: &str| {
            let path = format!("{folder}/Workload.dll");
            std::fs::read(path).expect("a file")
        };
        let file = dll(&format!("{folder}windows-x64"));
        let (processor, code) = machine_code(&file, Address::Rva(0x1000), 64).expect("code");
        assert_eq!((processor, code.len()), (Processor::X64, 64));
        let offset = code.as_ptr() as u64 - file.as_ptr() as u64;
        let at = |address| machine_code(&file, address, 64).map(|(_, code)| code);
        assert_eq!(at(Address::FileOffset(offset)), Some(code));
        let base = object::File::parse(&*file)
            .expect("a file")
            .relative_address_base();
        assert_eq!(at(Address::VirtualAddress(base + 0x1000)), Some(code));
        for address in [
            Address::Rva(u64::MAX),
            Address::Rva(1 << 40),
            Address::FileOffset(u64::MAX),
        ] {
            assert_eq!(at(address), None);
        }
        assert_eq!(machine_code(&file[..300], Address::Rva(0x1000), 64), None);
        let arm = dll(&format!("{folder}linux-arm64"));
        let (processor, _) = machine_code(&arm, Address::Rva(0x2000), 4).expect("code");
        assert_eq!(processor, Processor::Arm64);
    }
}
