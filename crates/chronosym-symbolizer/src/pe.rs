//! Open PE images, and the perf maps of precompiled ones.

use std::path::Path;
use std::sync::OnceLock;

use chronosym_pdb::metadata::Metadata;
use chronosym_pdb::pe::PeImage;
use chronosym_pdb::r2r::{AssemblyId, AssemblyResolver, R2rImage, R2rMap};
use chronosym_symbols::mmap::FileData;

use crate::files::{FileError, Open};
use crate::parsed::parsed;
use crate::search::{FileAt, Search};

parsed! {
    /// A PE image, managed or precompiled.
    ImageFile, ImageCell: FileData => ImageParts
}

/// The parts of a PE image that a symbolizer reads; expensive ones are read on first use.
pub(super) struct ImageParts<'d> {
    pub image: PeImage<'d>,
    metadata: OnceLock<Option<Metadata<'d>>>,
    r2r: OnceLock<Option<R2rImage<'d>>>,
}

impl<'d> ImageParts<'d> {
    pub(super) fn metadata(&self) -> Option<&Metadata<'d>> {
        self.metadata
            .get_or_init(|| self.image.metadata().ok())
            .as_ref()
    }

    pub(super) fn r2r(&self) -> Option<&R2rImage<'d>> {
        self.r2r
            .get_or_init(|| R2rImage::open(self.image.clone()).ok())
            .as_ref()
    }
}

impl Open for ImageFile {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        let cell = ImageCell::try_new(data, |data| {
            PeImage::parse(data).map(|image| ImageParts {
                image,
                metadata: OnceLock::new(),
                r2r: OnceLock::new(),
            })
        });
        Ok(ImageFile(cell?))
    }
}

parsed! {
    /// A composite image and its components.
    CompositeFile, CompositeCell: Vec<FileData> => CompositeParts
}

/// A composite image, with the metadata of those of its components that are in the same folder.
pub(super) struct CompositeParts<'d> {
    pub image: R2rImage<'d>,
    modules: Vec<(String, Metadata<'d>)>,
}

impl AssemblyResolver for CompositeParts<'_> {
    fn metadata<'s>(&'s self, assembly: &AssemblyId) -> Option<&'s Metadata<'s>> {
        let is_it = |(name, _): &&(String, Metadata<'_>)| *name == assembly.name;
        self.modules
            .iter()
            .find(is_it)
            .map(|(_, metadata)| metadata)
    }
}

impl Open for CompositeFile {
    fn open(at: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        let folder = at.path.parent().unwrap_or(Path::new(""));
        // The names are read from the file: accept plain file names only.
        let names: Vec<String> = R2rImage::parse(&data)?
            .components()
            .map(|assembly| assembly.name)
            .filter(|name| !name.contains(['/', '\\', '\0', ':']))
            .collect();
        let mut files = vec![data];
        let mut found = Vec::new();
        for name in names {
            if let Ok(file) = FileData::map(&folder.join(format!("{name}.dll"))) {
                files.push(file);
                found.push(name);
            }
        }
        let cell = CompositeCell::try_new(files, |files| {
            let modules = found.into_iter().zip(&files[1..]);
            let metadata = |data| PeImage::parse(data).and_then(|image| image.metadata());
            Ok::<_, chronosym_pdb::Error>(CompositeParts {
                image: R2rImage::parse(&files[0])?,
                modules: modules
                    .filter_map(|(name, data)| Some((name, metadata(data).ok()?)))
                    .collect(),
            })
        });
        Ok(CompositeFile(cell?))
    }
}

/// The perf map of a precompiled image.
pub(super) struct MapFile(R2rMap);

impl Open for MapFile {
    fn open(_: &FileAt, data: FileData, _: &Search) -> Result<Self, FileError> {
        Ok(MapFile(R2rMap::parse(&data)?))
    }
}

impl MapFile {
    pub(super) fn map(&self) -> &R2rMap {
        &self.0
    }
}
