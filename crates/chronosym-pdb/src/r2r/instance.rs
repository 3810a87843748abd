//! Signatures of generic instances in the table of instance entry points (section 109).

use crate::blob::BlobReader;
use crate::metadata::{Budget, Modules, SignatureReader, Table, Token, Type};

/// Flags of a method signature: `READYTORUN_METHOD_SIG_*`.
mod flag {
    pub(super) const METHOD_INSTANTIATION: u32 = 0x04;
    pub(super) const MEMBER_REF_TOKEN: u32 = 0x10;
    pub(super) const CONSTRAINED: u32 = 0x20;
    pub(super) const OWNER_TYPE: u32 = 0x40;
    pub(super) const UPDATE_CONTEXT: u32 = 0x80;
}

/// `ELEMENT_TYPE_MODULE_ZAPSIG`: the type is of another module, whose index follows.
const MODULE_ZAPSIG: u8 = 0x3f;

/// The fixed part of an instance's signature.
pub(super) struct Instance {
    /// Index of the module that the token belongs to.
    pub(super) module: u32,
    /// The declaring type, if the signature has it.
    pub(super) owner: Option<Type>,
    pub(super) token: Token,
}

impl Instance {
    /// Decodes the signature at the start of `data`.
    pub(super) fn parse<'r>(data: &'r [u8], modules: Modules<'r>) -> Option<Self> {
        let mut reader = reader(data, modules);
        let flags = reader.blob.unsigned()?;
        Self::read(&mut reader, flags)
    }

    fn read(reader: &mut SignatureReader<'_>, flags: u32) -> Option<Self> {
        let updates_context = flags & flag::UPDATE_CONTEXT != 0;
        let mut module = 0;
        if updates_context {
            module = reader.blob.unsigned()?;
        }
        reader.module = (reader.modules)(module);
        let mut owner = None;
        if flags & flag::OWNER_TYPE != 0 {
            if !updates_context && reader.blob.peek() == Some(MODULE_ZAPSIG) {
                let mut ahead = reader.blob.clone();
                ahead.byte();
                module = ahead.unsigned()?;
            }
            owner = Some(reader.read_type(&mut Budget::new())?);
        }
        let table = match flags & flag::MEMBER_REF_TOKEN {
            0 => Table::METHOD_DEF,
            _ => Table::MEMBER_REF,
        };
        Some(Self {
            module,
            owner,
            token: Token::new(table, reader.blob.unsigned()?),
        })
    }
}

fn reader<'r>(data: &'r [u8], modules: Modules<'r>) -> SignatureReader<'r> {
    SignatureReader {
        blob: BlobReader::new(data),
        module: None,
        modules,
    }
}

/// Offset of the entry point that follows the signature at `offset`.
pub(super) fn signature_end(data: &[u8], offset: usize) -> Option<usize> {
    // Without modules, types are skipped: every token is one compressed integer.
    let mut reader = reader(data.get(offset..)?, &|_| None);
    let flags = reader.blob.unsigned()?;
    Instance::read(&mut reader, flags)?;
    if flags & flag::METHOD_INSTANTIATION != 0 {
        let count = reader.blob.unsigned()?;
        reader.read_types(count, &mut Budget::new())?;
    }
    if flags & flag::CONSTRAINED != 0 {
        reader.read_type(&mut Budget::new())?;
    }
    data.len().checked_sub(reader.blob.rest().len())
}
