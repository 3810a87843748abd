//! PE files that a runtime mapped section by section, as recorded on Linux.
//!
//! Such a mapping states neither the image's base nor its size, so the time stamp and the PDB's id,
//! which other builds of the same IL share, do not suffice: the signature of the perf map and the
//! layout in memory must match the file, too. Layout: a runtime maps the headers at the base, and
//! every section at its RVA, in whole pages.

use std::error::Error;
use std::sync::Arc;

use chronosym_core::{
    FileMapping, ImageRef, LineReason, NativeFrame, PartRef, file_name, simple_name,
};
use chronosym_pdb::pe::{PeImage, TargetOs};
use chronosym_pdb::r2r::R2rMap;
use chronosym_symbols::identity::Wanted;
use chronosym_symbols::store::NoFile;

use crate::files::{Files, Frames};
use crate::pe::{ImageFile, MapFile};
use crate::pe_image::PrecompiledFile;
use crate::precompiled::row_at;
use crate::search::{FileAt, FileRequest, SymbolFile, beside, identity, rank};
use crate::target::{Target, Unfit};

/// The files of a PE file that is mapped in parts. Its symbol file is the perf map.
pub(super) struct PartFiles {
    map: SymbolFile,
    image: PrecompiledFile,
    /// RVAs in the trace are file offsets plus this value.
    code_delta: u64,
}

impl PartFiles {
    pub(super) fn find(image: &ImageRef<'_>, part: &PartRef<'_>, files: &Files) -> Self {
        let mut own = SymbolFile::unidentified();
        let mut map = SymbolFile::unidentified();
        if let Some(id) = identity(image.pdb) {
            let wanted = Wanted::Image {
                pe: None,
                pdb: Some(id),
            };
            let check = |at: &Arc<FileAt>| -> Result<(), Box<dyn Error>> {
                let file = files.open::<ImageFile>(at)?;
                Ok(file.with(|parts| check_image(&parts.image, image, part))?)
            };
            files
                .search
                .folders(&mut own, &FileRequest::at(wanted, image.path), &check);
        }
        if let Some(id) = part.perf_map.filter(|_| own.found.is_err()) {
            let wanted = Wanted::R2rMap {
                signature: Some(id.signature),
                version: id.version,
            };
            let usual = format!("{}.ni.r2rmap", simple_name(image.path));
            let names = [file_name(&id.name), &usual];
            let paths = names.map(|name| beside(image.path, name).unwrap_or_default());
            let request = FileRequest::new(wanted, names, paths.each_ref().map(String::as_str));
            let check = |at: &Arc<FileAt>| -> Result<(), Box<dyn Error>> {
                let file = files.open::<MapFile>(at)?;
                Ok(check_map(file.map(), image, part)?)
            };
            files.search.everywhere(&mut map, &request, &check);
        }
        PartFiles {
            map,
            image: PrecompiledFile::new(own),
            code_delta: part.code_delta,
        }
    }

    /// Returns the approximate size in bytes, with an allowance for the PDB of the IL.
    pub(super) fn weight(&self) -> u64 {
        2 * self.map.weight() + self.image.file.weight()
    }

    /// Returns the file that supplies names, or the one with the most specific reason for having
    /// none.
    pub(super) fn best(&self) -> &SymbolFile {
        match (&self.map.found, &self.image.file.found) {
            (Err(NoFile::NoSymbolFile), _) => &self.image.file,
            (Err(map), Err(image)) if rank(map) < rank(image) => &self.image.file,
            _ => &self.map,
        }
    }

    /// Returns the frames at an RVA as the trace states it.
    pub(super) fn frames(&self, files: &Files, rva: u64) -> Frames {
        if let Some(at) = self.image.file.file() {
            // The RVA is derived from the section with the code; the file states the true one.
            let offset = rva.wrapping_sub(self.code_delta);
            let file = files.open::<ImageFile>(at).ok();
            let rva = file.and_then(|file| file.with(|parts| rva_of(&parts.image, offset)));
            let frame = rva.and_then(|rva| self.image.frame(files, rva));
            return Ok(frame.into_iter().collect());
        }
        let Some(at) = self.map.file() else {
            return Err(self.best().name_reason());
        };
        let (Ok(rva), Ok(file)) = (u32::try_from(rva), files.open::<MapFile>(at)) else {
            return Ok(Vec::new());
        };
        let frame = row_at(file.map(), rva).and_then(|code| {
            let mut frame = NativeFrame::new(code.name?);
            frame.offset = Some(code.offset.into());
            frame.line = Err(LineReason::NoILMap);
            // Compiler options change the code but not the map's signature, and no event states the
            // starts of methods.
            frame.approximate = true;
            frame.evidence = code.evidence;
            Some(frame)
        });
        Ok(frame.into_iter().collect())
    }
}

/// The smallest page size of any system, in bytes: a range of larger pages is whole in these as
/// well.
const PAGE: u64 = 4096;

/// A contiguous range of a file in a process: mappings adjacent both in the file and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Address minus file offset, the same for every byte.
    displacement: u64,
    /// File offsets.
    from: u64,
    to: u64,
}

impl Stretch {
    /// Merges the mappings whose address minus file offset is `displacement`.
    fn of(pieces: impl Iterator<Item = FileMapping>, displacement: u64) -> Option<Self> {
        pieces
            .filter(|piece| displacement_of(*piece) == displacement)
            .map(|piece| {
                (
                    piece.file_offset,
                    piece.file_offset.saturating_add(piece.size),
                )
            })
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            .map(|(from, to)| Stretch {
                displacement,
                from,
                to,
            })
    }
}

fn displacement_of(piece: FileMapping) -> u64 {
    piece.base.wrapping_sub(piece.file_offset)
}

fn whole_pages(from: u64, to: u64) -> (u64, u64) {
    (from / PAGE * PAGE, to.div_ceil(PAGE) * PAGE)
}

/// Returns the range that contains a mapping's code, if the headers are mapped at the base that the
/// code's RVAs imply.
fn code_stretch(part: &PartRef<'_>, code_delta: u64) -> Option<Stretch> {
    let code = Stretch::of(part.mappings(), displacement_of(part.mapping()))?;
    let base = code.displacement.wrapping_sub(code_delta);
    let headers = Stretch::of(part.mappings(), base)?;
    (headers.from == 0).then_some(code)
}

/// Checks that an image has the layout of the mapped one.
///
/// # Errors
///
/// The difference.
fn check_image(
    image: &PeImage<'_>,
    image_ref: &ImageRef<'_>,
    part: &PartRef<'_>,
) -> Result<(), Unfit> {
    if image_ref
        .timestamp
        .is_some_and(|timestamp| timestamp != image.timestamp())
    {
        return Err(Unfit::TimeStamp);
    }
    let signature = image.perf_map_id().map(|id| id.signature);
    if signature != part.perf_map.map(|map| map.signature) {
        return Err(Unfit::PerfMap);
    }
    let target = Target::of_image(image);
    target.must_agree(of_linux(image_ref))?;
    let piece = part.mapping();
    let flat = whole_pages(0, image.data().len() as u64);
    let stretch = Stretch::of(part.mappings(), displacement_of(piece));
    let is_flat = stretch.is_some_and(|all| (all.from, all.to) == flat);
    let is_section = |section: chronosym_pdb::pe::Section<'_>| {
        let from = u64::from(section.file_offset);
        let end = |size: u32| whole_pages(from, from + u64::from(size));
        let delta = u64::from(section.rva).wrapping_sub(from);
        code_stretch(part, delta).is_some_and(|all| {
            let extent = (all.from, all.to);
            let used = section.file_size.min(section.virtual_size);
            extent == end(section.file_size) || extent == end(used)
        })
    };
    let is_headers = piece.file_offset == 0 && piece.size <= PAGE;
    if is_flat || is_headers || image.sections().any(is_section) {
        Ok(())
    } else {
        Err(Unfit::Sections)
    }
}

/// Returns the RVA of a file offset; `None` outside all sections.
fn rva_of(image: &PeImage<'_>, file_offset: u64) -> Option<u32> {
    image.sections().find_map(|section| {
        let within = file_offset.checked_sub(section.file_offset.into())?;
        let within = u32::try_from(within).ok()?;
        (within < section.file_size).then_some(())?;
        section.rva.checked_add(within)
    })
}

/// Checks that a perf map belongs to the mapped image. The caller checks its signature.
///
/// # Errors
///
/// The difference.
fn check_map(map: &R2rMap, image_ref: &ImageRef<'_>, part: &PartRef<'_>) -> Result<(), Unfit> {
    let target = Target {
        os: map.target_os,
        machine: map.machine,
    };
    if target.os.is_none() || target.machine.is_none() {
        return Err(Unfit::NoTarget);
    }
    target.must_agree(of_linux(image_ref))?;
    let code = code_stretch(part, part.code_delta);
    let code = code.ok_or(Unfit::Headers)?;
    let fits = map.methods().iter().all(|row| {
        let from = u64::from(row.rva).checked_sub(part.code_delta);
        from.is_some_and(|from| code.from <= from && from + u64::from(row.size) <= code.to)
    });
    if fits { Ok(()) } else { Err(Unfit::Outside) }
}

/// Returns the target of the recording. All recorders that state mapped parts run on Linux.
fn of_linux(image_ref: &ImageRef<'_>) -> Target {
    Target {
        os: Some(TargetOs::Linux),
        ..Target::of_trace(image_ref.machine)
    }
}
