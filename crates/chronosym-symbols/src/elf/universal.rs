//! Universal (fat) Mach-O files: the images of several processors in one file.

use std::ops::Range;

use object::macho::{
    CPU_SUBTYPE_ARM64E, CPU_SUBTYPE_X86_64_H, CPU_TYPE_ARM, CPU_TYPE_ARM64, CPU_TYPE_ARM64_32,
    CPU_TYPE_POWERPC, CPU_TYPE_POWERPC64, CPU_TYPE_X86, CPU_TYPE_X86_64,
};
use object::read::Object;
use object::read::macho::{FatArch, MachOFatFile32, MachOFatFile64};
use object::{File, FileKind};

use crate::error::{Error, Result};
use crate::identity::BuildId;

/// Maximum number of images in a universal file.
const MAX_IMAGES: u8 = 42;

/// Which image of a universal file is used.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice<'a> {
    /// The only one.
    Only,
    /// The one for a processor, as Apple's tools call it.
    Processor(&'a str),
    /// The one with a UUID.
    Uuid(&'a BuildId),
}

/// An image in a universal file.
struct Slice {
    processor: &'static str,
    range: Range<usize>,
}

/// Returns the range of the image that is chosen; `None` if the file is not universal.
///
/// # Errors
/// [`Error::Damaged`], and [`Error::Universal`] if the choice fits none or several images.
pub(crate) fn image(data: &[u8], choice: Choice<'_>) -> Result<Option<Range<usize>>> {
    let Some(slices) = slices(data)? else {
        return Ok(None);
    };
    let is_chosen = |slice: &&Slice| match choice {
        Choice::Only => true,
        Choice::Processor(name) => slice.processor == name,
        Choice::Uuid(wanted) => uuid(data, slice).as_ref() == Some(wanted),
    };
    let mut chosen = slices.iter().filter(is_chosen);
    match (chosen.next(), chosen.next()) {
        (Some(slice), None) if slice.range.end <= data.len() => Ok(Some(slice.range.clone())),
        (Some(slice), None) => Err(Error::damaged(
            format!("the image for {} in the universal file", slice.processor),
            "it reaches beyond the end of the file",
        )),
        _ => Err(Error::Universal {
            processors: named(&slices),
        }),
    }
}

fn named(slices: &[Slice]) -> String {
    let names = slices.iter().map(|slice| slice.processor);
    names.collect::<Vec<_>>().join(", ")
}

/// Returns the processor of the image with a UUID in a universal file.
pub(crate) fn processor(data: &[u8], wanted: &BuildId) -> Option<&'static str> {
    let slices = slices(data).ok()??;
    let is_wanted = |slice: &&Slice| uuid(data, slice).as_ref() == Some(wanted);
    slices.iter().find(is_wanted).map(|slice| slice.processor)
}

fn uuid(data: &[u8], slice: &Slice) -> Option<BuildId> {
    let file = File::parse(data.get(slice.range.clone())?).ok()?;
    BuildId::new(&file.mach_uuid().ok()??)
}

/// Returns the images of a universal file; `None` for other files.
fn slices(data: &[u8]) -> Result<Option<Vec<Slice>>> {
    let damaged = |e| Error::damaged("the header of the universal file", e);
    // Java classes have the same magic number, followed by their version, which is larger.
    if !matches!(
        data,
        [0xCA, 0xFE, 0xBA, 0xBE | 0xBF, 0, 0, 0, 0..=MAX_IMAGES, ..]
    ) {
        return Ok(None);
    }
    match FileKind::parse(data) {
        Ok(FileKind::MachOFat32) => {
            let file = MachOFatFile32::parse(data).map_err(damaged)?;
            Ok(Some(file.arches().iter().map(slice).collect()))
        }
        Ok(FileKind::MachOFat64) => {
            let file = MachOFatFile64::parse(data).map_err(damaged)?;
            Ok(Some(file.arches().iter().map(slice).collect()))
        }
        _ => Ok(None),
    }
}

fn slice(arch: &impl FatArch) -> Slice {
    let (start, size) = arch.file_range();
    let [start, end] = [start, start.saturating_add(size)]
        .map(|offset| usize::try_from(offset).unwrap_or(usize::MAX));
    Slice {
        processor: name(arch),
        range: start..end,
    }
}

/// Returns the name that Apple's tools have for the processor of an image.
fn name(arch: &impl FatArch) -> &'static str {
    match (arch.cputype(), arch.cpusubtype().id()) {
        (CPU_TYPE_ARM64, CPU_SUBTYPE_ARM64E) => "arm64e",
        (CPU_TYPE_X86_64, CPU_SUBTYPE_X86_64_H) => "x86_64h",
        (CPU_TYPE_ARM64, _) => "arm64",
        (CPU_TYPE_ARM64_32, _) => "arm64_32",
        (CPU_TYPE_X86_64, _) => "x86_64",
        (CPU_TYPE_X86, _) => "i386",
        (CPU_TYPE_ARM, _) => "arm",
        (CPU_TYPE_POWERPC64, _) => "ppc64",
        (CPU_TYPE_POWERPC, _) => "ppc",
        _ => "unknown",
    }
}
