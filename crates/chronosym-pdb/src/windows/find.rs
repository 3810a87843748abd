//! Frames at an RVA.

use super::address_map::SectionOffset;
use super::dbi::{Contribution, Dbi};
use super::inline::Sites;
use super::lines::{SourcePosition, file_entry};
use super::module::{Module, Procedure};
use super::pdb::WindowsPdb;
use super::symbols::FunctionKind;
use crate::Result;
use chronosym_types::copied_text;
use std::cmp::Ordering;
use std::fmt;

/// The name of a function as recorded: without parameters, not demangled.
///
/// The record of an inlinee has two parts, the namespace or class and the function; `Display` joins
/// them with `::`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FunctionName {
    /// The enclosing namespace or class; empty if it is not recorded apart.
    pub scope: String,
    /// The name of the function; that of a procedure includes its scopes.
    pub base: String,
}

/// Bytes of the names of all inlinees at one address: they can all have the same long name.
const MAX_NAMES: usize = 256 << 10;

/// Converts a recorded name; bytes that are not UTF-8 (old compilers write the code page) become
/// U+FFFD.
fn plain(base: &[u8]) -> Option<FunctionName> {
    named(String::new(), copied_text(base))
}

/// Returns a name of two parts; `None` without a function name, as for `__finally` blocks.
fn named(scope: String, base: String) -> Option<FunctionName> {
    (!base.is_empty()).then_some(FunctionName { scope, base })
}

impl fmt::Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.scope.is_empty() {
            f.write_str(&self.scope)?;
            f.write_str("::")?;
        }
        f.write_str(&self.base)
    }
}

/// Removes the suffix of publics in precompiled .NET Framework images, the assembly and the token
/// of the method: `A.B.C(Int32)$##6000001`.
fn without_token(mut name: String) -> String {
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let end = name.rsplit_once("$#").and_then(|(plain, rest)| {
        let (_, token) = rest.rsplit_once('#')?;
        is_token(token).then_some(plain.len())
    });
    name.truncate(end.unwrap_or(name.len()));
    name
}

/// The function that covers an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Function {
    /// The name, if the record or a thunk's target has one.
    pub name: Option<FunctionName>,
    /// RVA of its first byte.
    pub rva: u32,
    /// Its length in bytes.
    pub len: u32,
    /// The kind of its record.
    pub kind: FunctionKind,
}

impl Function {
    /// Returns a frame of the function without a source position.
    fn frame(&self) -> Frame {
        Frame {
            name: self.name.clone(),
            ..Frame::default()
        }
    }
}

/// One frame at an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The name of the function.
    pub name: Option<FunctionName>,
    /// The source file on the build machine, usually a Windows path.
    pub file: Option<String>,
    /// The line, from 1; `None` for compiler-generated code.
    pub line: Option<u32>,
    /// The column, from 1; most native compilers write none.
    pub column: Option<u16>,
    /// Whether the function is inlined into that of the next frame.
    pub inlined: bool,
}

/// The frames at an address, innermost first: a buffer to reuse.
#[derive(Debug, Default)]
pub struct Frames {
    frames: Vec<Frame>,
    scratch: Sites,
    hits: Vec<(u32, SourcePosition)>,
}

impl Frames {
    /// Creates an empty buffer.
    pub fn new() -> Self {
        Self::default()
    }
}

impl std::ops::Deref for Frames {
    type Target = [Frame];

    fn deref(&self) -> &Self::Target {
        &self.frames
    }
}

/// A public symbol (`S_PUB32`) at or before an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicSymbol {
    /// The decorated name.
    pub name: String,
    /// RVA of the symbol.
    pub rva: u32,
    /// Bytes to the next symbol, or to the end of the section contribution.
    pub len: u32,
    /// Whether those bytes include the address; else the symbol is only the nearest one before it.
    pub covers: bool,
}

impl<'a> WindowsPdb<'a> {
    /// Finds the function and the frames at `rva`, innermost first; the frames replace those in
    /// `frames`.
    ///
    /// `None` without code: outside all sections, in padding, and in code without symbols. Then,
    /// and after an error, `frames` is empty.
    ///
    /// # Errors
    ///
    /// The part of the file that covers `rva` is malformed. Other addresses may succeed.
    pub fn find(&self, rva: u32, frames: &mut Frames) -> Result<Option<Function>> {
        frames.frames.clear();
        let function = self.find_into(rva, frames);
        if !matches!(function, Ok(Some(_))) {
            frames.frames.clear();
        }
        function
    }

    /// Returns the public symbol at or before `rva`, in its section.
    ///
    /// # Errors
    ///
    /// As [`WindowsPdb::find`].
    pub fn public_symbol(&self, rva: u32) -> Result<Option<PublicSymbol>> {
        let Some(address) = self.addresses.section_offset(rva) else {
            return Ok(None);
        };
        let contribution = self.contribution(address);
        self.public(address, contribution, self.contributor(contribution)?)
    }

    /// Returns every procedure of every module, in module order, without public symbols. A
    /// malformed module gives one error, and the iteration continues.
    ///
    /// Reads the whole file and caches the index of each module.
    pub fn functions(&self) -> impl Iterator<Item = Result<Function>> {
        let modules = self.modules().map(|modules| modules.list.len());
        let error = modules.as_ref().err().cloned().map(Err);
        let modules = (0..modules.unwrap_or(0)).flat_map(move |index| {
            let module = self.module(index);
            let error = module.as_ref().err().cloned().map(Err);
            let procedures = module.ok().flatten().into_iter().flat_map(move |module| {
                let procedures = module.procedures.iter();
                procedures.filter_map(move |procedure| self.function(module, procedure).transpose())
            });
            procedures.chain(error)
        });
        modules.chain(error)
    }

    fn find_into(&self, rva: u32, frames: &mut Frames) -> Result<Option<Function>> {
        let Some(address) = self.addresses.section_offset(rva) else {
            return Ok(None);
        };
        let contribution = self.contribution(address);
        if contribution.is_none() && self.dbi.as_ref().is_some_and(Dbi::has_contributions) {
            return Ok(None);
        }
        let module = self.contributor(contribution)?;
        if let Some(module) = module
            && let Some((number, procedure)) = module.procedure(address)
            // The section offset of a managed method is not an address of code.
            && procedure.kind != FunctionKind::Managed
        {
            let function = self.function(module, procedure)?;
            if let Some(function) = &function {
                self.inlined(module, number, procedure, address, frames)?;
                let frame = self.frame(module, address, Some(procedure), function)?;
                frames.frames.push(frame);
            }
            return Ok(function);
        }
        let symbol = self.public(address, contribution, module)?;
        let Some(symbol) = symbol.filter(|symbol| symbol.covers) else {
            return Ok(None);
        };
        let name = match self.addresses.assumed_end {
            Some(_) => without_token(symbol.name),
            None => symbol.name,
        };
        let function = Function {
            name: named(String::new(), name),
            rva: symbol.rva,
            len: symbol.len,
            kind: FunctionKind::Public,
        };
        let frame = match module {
            Some(module) => self.frame(module, address, None, &function)?,
            None => function.frame(),
        };
        frames.frames.push(frame);
        Ok(Some(function))
    }

    fn contribution(&self, address: SectionOffset) -> Option<Contribution> {
        self.dbi.as_ref()?.contribution(address)
    }

    /// Returns the module of a section contribution with code: procedures and lines describe no
    /// data.
    fn contributor(&self, contribution: Option<Contribution>) -> Result<Option<&Module<'a>>> {
        let contribution = contribution.filter(|contribution| contribution.is_code);
        contribution.map_or(Ok(None), |contribution| {
            self.module(contribution.module.into())
        })
    }

    /// `None` if the optimizer removed the procedure's start.
    pub(super) fn function(
        &self,
        module: &Module<'a>,
        procedure: &Procedure,
    ) -> Result<Option<Function>> {
        let Some(rva) = self.addresses.rva(procedure.start()) else {
            return Ok(None);
        };
        let name = match procedure.kind {
            FunctionKind::Trampoline => self.target_name(module, procedure)?,
            _ => module.name(procedure).and_then(plain),
        };
        Ok(Some(Function {
            name,
            rva,
            len: procedure.len,
            kind: procedure.kind,
        }))
    }

    /// Returns the name of a trampoline's target.
    fn target_name(
        &self,
        module: &Module<'a>,
        trampoline: &Procedure,
    ) -> Result<Option<FunctionName>> {
        let Some(target) = module.target(trampoline) else {
            return Ok(None);
        };
        let contribution = self.contribution(target);
        let module = self.contributor(contribution)?;
        // Linkers do not chain trampolines.
        if let Some(module) = module
            && let Some((_, procedure)) = module.procedure(target)
            && let Some(name) = module.name(procedure)
        {
            return Ok(plain(name));
        }
        let symbol = self.public(target, contribution, module)?;
        let symbol = symbol.filter(|symbol| symbol.covers);
        Ok(symbol.and_then(|symbol| named(String::new(), symbol.name)))
    }

    fn public(
        &self,
        address: SectionOffset,
        contribution: Option<Contribution>,
        module: Option<&Module<'a>>,
    ) -> Result<Option<PublicSymbol>> {
        let Some(publics) = &self.publics else {
            return Ok(None);
        };
        let Some((public, next)) = publics.find(&self.msf, address)? else {
            return Ok(None);
        };
        let start = public.start;
        let mut end = next.unwrap_or(u32::MAX);
        end = end.min(
            self.addresses
                .section_size(start.section)
                .unwrap_or_default(),
        );
        match contribution {
            // A symbol in an earlier contribution ends at the latest where this contribution
            // starts.
            Some(own) if own.start.offset > start.offset => end = end.min(own.start.offset),
            Some(own) => end = end.min(own.end()),
            None => {
                if let Some(own) = self.contribution(start) {
                    end = end.min(own.end());
                }
            }
        }
        // A procedure at or after the symbol ends the bytes that it covers.
        if let Some(before) = module.and_then(|module| module.procedure_before(address)) {
            end = match before.start().cmp(&start) {
                Ordering::Less => end,
                Ordering::Equal => end.min(start.offset.saturating_add(before.len)),
                Ordering::Greater => end.min(before.start().offset),
            };
        }
        Ok(self.addresses.rva(start).map(|rva| PublicSymbol {
            name: public.name,
            rva,
            len: end.saturating_sub(start.offset),
            covers: address.offset < end,
        }))
    }

    /// Pushes the inlined frames at `address`, innermost first.
    fn inlined(
        &self,
        module: &Module<'a>,
        number: usize,
        procedure: &Procedure,
        address: SectionOffset,
        frames: &mut Frames,
    ) -> Result<()> {
        if let FunctionKind::Thunk | FunctionKind::Trampoline = procedure.kind {
            return Ok(());
        }
        let (scratch, hits) = (&mut frames.scratch, &mut frames.hits);
        let mut at = address.offset.saturating_sub(procedure.start().offset);
        let mut sites = module.sites(number, procedure, &self.budget, scratch)?;
        // Separated code without inline sites has those of its procedure.
        if sites.is_none()
            && let Some((number, parent)) = module.separated_from(procedure)
            && let Some(distance) = address.distance(parent.start())
        {
            at = distance;
            sites = module.sites(number, parent, &self.budget, scratch)?;
        }
        let Some(sites) = sites else {
            return Ok(());
        };
        let mut left = MAX_NAMES;
        for site in sites.find(at, hits) {
            let name = self.inlinee(module, site.inlinee)?;
            let length = |name: &FunctionName| name.scope.len().saturating_add(name.base.len());
            left = left.saturating_sub(name.as_ref().map_or(0, length));
            let mut frame = Frame {
                name: name.filter(|_| left > 0),
                inlined: true,
                ..Frame::default()
            };
            if let Some(position) = site.position {
                self.locate(module, position, &mut frame)?;
            }
            frames.frames.push(frame);
        }
        Ok(())
    }

    /// Returns the frame of a function that is not inlined.
    fn frame(
        &self,
        module: &Module<'a>,
        address: SectionOffset,
        procedure: Option<&Procedure>,
        function: &Function,
    ) -> Result<Frame> {
        let mut frame = function.frame();
        let c13 = module.c13();
        let own = procedure.and_then(|procedure| procedure.table);
        let Some(table) = own.or_else(|| module.lines.table(c13, address)) else {
            return Ok(frame);
        };
        let base = table.base(c13);
        // A row before the function's start belongs to another function of the table.
        let first = procedure.map_or(base, |procedure| procedure.start().offset);
        if let Some(row) = table.row(c13, address.offset.saturating_sub(base))
            && base.saturating_add(row.offset) >= first
        {
            self.locate(module, row.position, &mut frame)?;
        }
        Ok(frame)
    }

    fn locate(
        &self,
        module: &Module<'a>,
        position: SourcePosition,
        frame: &mut Frame,
    ) -> Result<()> {
        frame.file = self.file(module, position.file)?;
        frame.line = Some(position.line).filter(|&line| line > 0);
        frame.column = Some(position.column).filter(|&column| column > 0);
        Ok(())
    }

    /// Returns the path of an entry of the module's file checksums.
    pub(super) fn file(&self, module: &Module<'a>, offset: u32) -> Result<Option<String>> {
        let checksums = module.lines.checksums.of(module.c13());
        let Some((name, ..)) = file_entry(checksums, offset) else {
            return Ok(None);
        };
        let path = self
            .string_table()?
            .get(name)
            .filter(|path| !path.is_empty());
        Ok(path.map(copied_text))
    }

    fn inlinee(&self, module: &Module<'a>, id: u32) -> Result<Option<FunctionName>> {
        const IMPORTED: u32 = 0x8000_0000;
        let id = match id & IMPORTED {
            0 => Some(id),
            _ => self.imported(module, id)?,
        };
        let function = id.map_or(Ok(None), |id| self.types.function(&self.msf, id))?;
        Ok(function.and_then(|(scope, base)| named(anonymous(scope), base)))
    }

    /// Returns the id in the IPI stream of an id that `module` imports from another module.
    fn imported(&self, module: &Module<'a>, id: u32) -> Result<Option<u32>> {
        let Some((name, local)) = module.import(id) else {
            return Ok(None);
        };
        let exporter = match self.string_table()?.get(name) {
            Some(name) => self.modules()?.position(name),
            None => None,
        };
        let exporter = exporter.map_or(Ok(None), |index| self.module(index))?;
        Ok(exporter.and_then(|exporter| exporter.export(local)))
    }
}

/// Replaces MSVC's numbered names of anonymous namespaces (`?A0xc60ee810`), which records of
/// inlinees have, with the text in procedure records, so that a function has one name, inlined or
/// not.
fn anonymous(mut scope: String) -> String {
    const MARK: &str = "?A0x";
    const DIGITS: usize = 8;
    let mut from = 0;
    while let Some(at) = scope.get(from..).and_then(|rest| rest.find(MARK)) {
        let at = from.saturating_add(at);
        from = at.saturating_add(MARK.len());
        let end = from.saturating_add(DIGITS);
        let digits = scope.get(from..end).unwrap_or("?");
        if digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            scope.replace_range(at..end, "`anonymous-namespace'");
        }
    }
    scope
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_namespaces_are_in_words() {
        for (scope, shown) in [
            ("?A0xc60ee810", "`anonymous-namespace'"),
            ("a::?A0x0123abcd::B", "a::`anonymous-namespace'::B"),
            (
                "?A0x01234567::?A0x89abcdef",
                "`anonymous-namespace'::`anonymous-namespace'",
            ),
            ("?A0x0123abc", "?A0x0123abc"),
            ("?A0xé0123abc", "?A0xé0123abc"),
            ("std", "std"),
        ] {
            assert_eq!(anonymous(scope.to_owned()), shown);
        }
    }
}
