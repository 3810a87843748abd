//! The addresses at which answers can change, for converting a whole PDB.

use super::address_map::SectionOffset;
use super::inline::{Budget, Sites};
use super::module::Module;
use super::pdb::WindowsPdb;
use crate::Result;

/// See [`WindowsPdb::boundaries`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Boundaries {
    /// RVAs, sorted and distinct.
    pub rvas: Vec<u32>,
    /// The number of nested inline sites around any site, at most.
    pub depth: usize,
}

impl WindowsPdb<'_> {
    /// Returns RVAs such that [`WindowsPdb::find`] and [`WindowsPdb::public_symbol`] have the same
    /// result for each RVA from one of them up to the next. `None` if an optimizer moved code
    /// (OMAP), and if there would be more than `limit`.
    ///
    /// Reads the whole file, and caches nothing. Calls `after_module` after each module; see
    /// [`WindowsPdb::bytes_read`].
    ///
    /// # Errors
    ///
    /// A part of the file is malformed.
    pub fn boundaries(
        &self,
        limit: usize,
        mut after_module: impl FnMut(),
    ) -> Result<Option<Boundaries>> {
        if self.addresses.is_moved() {
            return Ok(None);
        }
        let mut all = Boundaries::default();
        let mut add = |at: SectionOffset| all.rvas.extend(self.addresses.rva(at));
        for (number, size) in self.addresses.sizes() {
            for offset in [0, size] {
                let section = number;
                add(SectionOffset { section, offset });
            }
        }
        for contribution in self.dbi.iter().flat_map(|dbi| dbi.contributions()) {
            range(contribution.start, contribution.size, &mut add);
        }
        if let Some(publics) = &self.publics {
            publics.each_start(&self.msf, &mut add)?;
        }
        let modules = self.modules()?;
        let (mut sites, mut own) = (Sites::default(), Vec::new());
        for info in (0..modules.list.len()).filter_map(|index| modules.list.get(index)) {
            own.clear();
            if let Some(module) = self.read_module(&info)? {
                let depth = of_module(&module, &mut sites, &mut own, |at| self.addresses.rva(at))?;
                all.depth = all.depth.max(depth);
            }
            // Most addresses come several times.
            own.sort_unstable();
            own.dedup();
            all.rvas.extend_from_slice(&own);
            after_module();
            if all.rvas.len() > limit {
                all.rvas.sort_unstable();
                all.rvas.dedup();
                if all.rvas.len() > limit {
                    return Ok(None);
                }
            }
        }
        all.rvas.sort_unstable();
        all.rvas.dedup();
        Ok(Some(all))
    }
}

fn range(start: SectionOffset, len: u32, add: &mut impl FnMut(SectionOffset)) {
    let offset = start.offset.saturating_add(len);
    add(start);
    add(SectionOffset { offset, ..start });
}

/// Adds the boundaries of a module, and returns the depth of its sites.
fn of_module(
    module: &Module<'_>,
    scratch: &mut Sites,
    rvas: &mut Vec<u32>,
    rva: impl Fn(SectionOffset) -> Option<u32>,
) -> Result<usize> {
    let mut depth = 0;
    let mut add = |at: SectionOffset| rvas.extend(rva(at));
    for table in &module.lines.tables {
        table.each_boundary(module.c13(), &mut add);
    }
    // Sites are decoded once, so none is kept.
    let budget = Budget::none();
    for (number, procedure) in module.procedures.iter().enumerate() {
        let start = procedure.start();
        range(start, procedure.len, &mut add);
        if let Some(sites) = module.sites(number, procedure, &budget, scratch)? {
            depth = depth.max(sites.depth());
            for at in sites.boundaries() {
                let offset = start.offset.wrapping_add(at);
                add(SectionOffset { offset, ..start });
            }
        }
    }
    Ok(depth)
}
