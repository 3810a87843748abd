//! Reads machine code from ELF files.

use chronosym_pdb::pe::Machine;
use object::{Architecture, BinaryFormat, Object, ObjectSegment};

use crate::Address;

/// Returns the processor of an ELF file, if it is one of [`Machine`]'s, and up to `max` bytes from
/// an address on. `None` for other formats and if no segment has bytes at the address.
pub fn elf_code(file: &[u8], address: Address, max: usize) -> Option<(Option<Machine>, &[u8])> {
    let object = object::File::parse(file).ok()?;
    if object.format() != BinaryFormat::Elf {
        return None;
    }
    let processor = match object.architecture() {
        Architecture::I386 => Some(Machine::X86),
        Architecture::X86_64 => Some(Machine::X64),
        Architecture::Aarch64 => Some(Machine::Arm64),
        _ => None,
    };
    // The address of the image's first byte.
    let base = object.segments().map(|segment| segment.address()).min()?;
    let code = object.segments().find_map(|segment| {
        let bytes = segment.data().ok()?;
        let start = match address {
            Address::Rva(rva) => base.checked_add(rva)?.checked_sub(segment.address())?,
            Address::VirtualAddress(va) => va.checked_sub(segment.address())?,
            Address::FileOffset(offset) => offset.checked_sub(segment.file_range().0)?,
        };
        let rest = bytes.get(usize::try_from(start).ok()?..)?;
        let code = rest.get(..max).unwrap_or(rest);
        Some(code).filter(|code| !code.is_empty())
    })?;
    Some((processor, code))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_by_each_kind_of_address() {
        let program = std::env::current_exe().expect("a program");
        let file = std::fs::read(program).expect("a file");
        let object = object::File::parse(&*file).expect("an object");
        let at = |address| elf_code(&file, address, 64).map(|(_, code)| code);
        let code = at(Address::VirtualAddress(object.entry())).expect("code");
        assert_eq!(code.len(), 64);
        let offset = code.as_ptr() as u64 - file.as_ptr() as u64;
        assert_eq!(at(Address::FileOffset(offset)), Some(code));
        let base = object.segments().map(|segment| segment.address()).min();
        let rva = object.entry() - base.expect("a segment");
        assert_eq!(at(Address::Rva(rva)), Some(code));
        for address in [Address::Rva(u64::MAX), Address::FileOffset(u64::MAX)] {
            assert_eq!(at(address), None);
        }
        assert_eq!(elf_code(&file[..40], Address::Rva(rva), 64), None);
        assert_eq!(elf_code(b"MZ", Address::Rva(rva), 64), None);
    }
}
