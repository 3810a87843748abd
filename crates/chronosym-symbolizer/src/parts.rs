//! PE files that a runtime mapped piece by piece, as recorders on Linux state them.
//!
//! Such a mapping has neither the image's base nor its size, so the time stamp and the PDB's id, which other builds of the
//! same IL share, are not enough: the signature of the perf map and the layout in memory must be the file's as well.
//! Layout: a runtime maps the headers at the base, and every section at its RVA, whole pages at a time.

use chronosym_pdb::pe::{PeImage, TargetOs};
use chronosym_pdb::r2r::R2rMap;

use crate::target::{Target, Unfit};
use chronosym_core::{ImageRef, MappedPiece, PartRef};

/// The least page that a system maps, in bytes: what is whole for larger ones is for these as well.
const PAGE: u64 = 4096;

/// What the process has of a file in one stretch: pieces that continue each other in the file and in memory alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// Address minus offset in the file, the same for every byte of it.
    displacement: u64,
    /// Offsets in the file.
    from: u64,
    to: u64,
}

impl Stretch {
    /// All pieces as far from their place in the file as `displacement`.
    fn of(pieces: impl Iterator<Item = MappedPiece>, displacement: u64) -> Option<Self> {
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

fn displacement_of(piece: MappedPiece) -> u64 {
    piece.start.wrapping_sub(piece.file_offset)
}

fn whole_pages(from: u64, to: u64) -> (u64, u64) {
    (from / PAGE * PAGE, to.div_ceil(PAGE) * PAGE)
}

/// Where the code of a piece begins, if the base has the headers at the place that the code's RVAs give.
fn code_stretch(part: &PartRef<'_>, code_delta: u64) -> Option<Stretch> {
    let code = Stretch::of(part.pieces(), displacement_of(part.piece()))?;
    let base = code.displacement.wrapping_sub(code_delta);
    let headers = Stretch::of(part.pieces(), base)?;
    (headers.from == 0).then_some(code)
}

/// What an image must be to be the mapped one.
///
/// # Errors
/// What differs.
pub(super) fn check_image(
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
    let piece = part.piece();
    let flat = whole_pages(0, image.data().len() as u64);
    let stretch = Stretch::of(part.pieces(), displacement_of(piece));
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

/// The RVA of an offset in the file; nothing for what belongs to no section.
pub(super) fn rva_of(image: &PeImage<'_>, file_offset: u64) -> Option<u32> {
    image.sections().find_map(|section| {
        let within = file_offset.checked_sub(section.file_offset.into())?;
        let within = u32::try_from(within).ok()?;
        (within < section.file_size).then_some(())?;
        section.rva.checked_add(within)
    })
}

/// What a perf map must be to be that of the mapped image, beside its signature.
///
/// # Errors
/// What differs.
pub(super) fn check_map(
    map: &R2rMap,
    image_ref: &ImageRef<'_>,
    part: &PartRef<'_>,
) -> Result<(), Unfit> {
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

/// The recorders that state parts are Linux's.
fn of_linux(image_ref: &ImageRef<'_>) -> Target {
    Target {
        os: Some(TargetOs::Linux),
        ..Target::of_trace(image_ref.machine)
    }
}
