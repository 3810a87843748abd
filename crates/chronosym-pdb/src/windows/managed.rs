//! Windows PDBs of managed code: method tokens instead of addresses.
//!
//! A method is an S_GMANPROC or S_LMANPROC record with its metadata token. Its line table has IL
//! offsets, relative to the record's section offset, which is not an address of code.

use super::module::{Module, Procedure};
use super::pdb::{MethodRecord, WindowsPdb};
use super::symbols::FunctionKind;
use crate::Result;
use chronosym_types::copied_text;

/// The source position of an IL offset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagedLine {
    /// The source file on the build machine.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if it is recorded.
    pub column: Option<u16>,
    /// IL offset of the sequence point.
    pub il_offset: u32,
}

impl<'a> WindowsPdb<'a> {
    /// Returns whether the PDB describes managed code. Then it has IL offsets, and no RVA has a
    /// meaning.
    ///
    /// Reads modules until one has code.
    pub fn is_managed(&self) -> bool {
        let count = self.modules().map_or(0, |modules| modules.list.len());
        let procedures = (0..count).find_map(|index| {
            // A malformed module gives its error at lookup.
            let module = self.module(index).ok().flatten()?;
            (!module.procedures.is_empty()).then_some(&module.procedures)
        });
        procedures.is_some_and(|all| {
            all.iter()
                .all(|procedure| procedure.kind == FunctionKind::Managed)
        })
    }

    /// Returns the sequence point of the method `token` (0x06……) at or before `il_offset`; for a
    /// hidden one, the nearest visible one before it. `None` for an unknown method, and without
    /// such a point.
    ///
    /// # Errors
    ///
    /// The part of the file that covers the method is malformed.
    pub fn managed_line(&self, token: u32, il_offset: u32) -> Result<Option<ManagedLine>> {
        let Some((module, procedure)) = self.method(token)? else {
            return Ok(None);
        };
        let start = procedure.start();
        let c13 = module.c13();
        let Some(table) = procedure.table.or_else(|| module.lines.table(c13, start)) else {
            return Ok(None);
        };
        let base = start.offset.saturating_sub(table.base(c13));
        let row = table.row(c13, base.saturating_add(il_offset));
        let Some(row) = row.filter(|row| row.offset >= base) else {
            return Ok(None);
        };
        Ok(Some(ManagedLine {
            file: self.file(module, row.position.file)?,
            line: row.position.line,
            column: Some(row.position.column).filter(|&column| column > 0),
            il_offset: row.offset.saturating_sub(base),
        }))
    }

    /// Returns the plain name of the method `token`, without its type. `None` for an unknown
    /// method.
    ///
    /// # Errors
    ///
    /// As [`WindowsPdb::managed_line`].
    pub fn managed_name(&self, token: u32) -> Result<Option<String>> {
        let method = self.method(token)?;
        let name = method.and_then(|(module, procedure)| module.name(procedure));
        Ok(name.filter(|name| !name.is_empty()).map(copied_text))
    }

    /// Returns the record of a method and its module.
    fn method(&self, token: u32) -> Result<Option<(&Module<'a>, &Procedure)>> {
        let methods = self.methods()?;
        let first = methods.partition_point(|method| method.token < token);
        let Some(method) = methods.get(first).filter(|method| method.token == token) else {
            return Ok(None);
        };
        let module = self.module(method.module as usize)?;
        Ok(module.and_then(|module| {
            let procedure = module.procedures.get(method.procedure as usize)?;
            Some((module, procedure))
        }))
    }

    fn methods(&self) -> Result<&[MethodRecord]> {
        if let Some(methods) = self.methods.get() {
            return Ok(methods);
        }
        let mut methods = Vec::new();
        for (number, index) in (0..).zip(0..self.modules()?.list.len()) {
            let Some(module) = self.module(index)? else {
                continue;
            };
            for (index, procedure) in (0..).zip(&module.procedures) {
                let record = module
                    .record(procedure)
                    .filter(|_| procedure.kind == FunctionKind::Managed);
                if let Some(token) = record.and_then(|record| record.u32(24)) {
                    methods.push(MethodRecord {
                        token,
                        module: number,
                        procedure: index,
                    });
                }
            }
        }
        methods.sort_by_key(|method| method.token);
        Ok(self.methods.get_or_init(|| methods.into()))
    }
}
