//! Classic Windows PDBs of managed code: method methods instead of addresses.
//!
//! A method is an S_GMANPROC or S_LMANPROC record with its metadata token; its line table counts IL
//! offsets from the record's address, which is no address in the image.

use super::module::{Module, Procedure};
use super::pdb::{MethodRecord, WindowsPdb};
use super::symbols::FunctionKind;
use crate::Result;
use chronosym_types::copied_text;

/// The source position of an IL offset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagedLine {
    /// The source file as the compiler wrote it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, if the compiler wrote columns.
    pub column: Option<u16>,
    /// IL offset at which the sequence point begins.
    pub il_offset: u32,
}

impl<'a> WindowsPdb<'a> {
    /// True if the code that the file describes is managed. Such a file knows IL offsets; no RVA means anything in it.
    ///
    /// Modules are read until one has code.
    pub fn is_managed(&self) -> bool {
        let count = self.modules().map_or(0, |modules| modules.list.len());
        let procedures = (0..count).find_map(|index| {
            // What is damaged says so when it is asked.
            let module = self.module(index).ok().flatten()?;
            (!module.procedures.is_empty()).then_some(&module.procedures)
        });
        procedures.is_some_and(|all| all.iter().all(|found| found.kind == FunctionKind::Managed))
    }

    /// The sequence point of the method `token` (0x06……) at or before `il_offset`; a hidden one gives
    /// the nearest visible one before it. None for an unknown method, or one without such a point.
    ///
    /// # Errors
    ///
    /// If the part of the file that holds the answer is damaged.
    pub fn managed_line(&self, token: u32, il_offset: u32) -> Result<Option<ManagedLine>> {
        let Some((module, procedure)) = self.method(token)? else {
            return Ok(None);
        };
        let start = procedure.start();
        let c13 = module.c13();
        let own = procedure.table;
        let Some(table) = own.or_else(|| module.lines.table(c13, start)) else {
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

    /// The plain name of the method `token`, as its record has it: without a type. None for an unknown method.
    ///
    /// # Errors
    ///
    /// As [`WindowsPdb::managed_line`].
    pub fn managed_name(&self, token: u32) -> Result<Option<String>> {
        let method = self.method(token)?;
        let name = method.and_then(|(module, procedure)| module.name(procedure));
        Ok(name.filter(|name| !name.is_empty()).map(copied_text))
    }

    /// The record of a method, and the module that it is in.
    fn method(&self, token: u32) -> Result<Option<(&Module<'a>, &Procedure)>> {
        let methods = self.methods()?;
        let first = methods.partition_point(|found| found.token < token);
        let Some(found) = methods.get(first).filter(|found| found.token == token) else {
            return Ok(None);
        };
        let module = self.module(found.module as usize)?;
        Ok(module.and_then(|module| {
            let procedure = module.procedures.get(found.procedure as usize)?;
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
            for (procedure, found) in (0..).zip(&module.procedures) {
                let record = module
                    .record(found)
                    .filter(|_| found.kind == FunctionKind::Managed);
                if let Some(token) = record.and_then(|record| record.u32(24)) {
                    methods.push(MethodRecord {
                        token,
                        module: number,
                        procedure,
                    });
                }
            }
        }
        methods.sort_by_key(|found| found.token);
        Ok(self.methods.get_or_init(|| methods.into()))
    }
}
