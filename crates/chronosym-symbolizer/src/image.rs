//! A native image's symbols: a Windows PDB, an ELF file, or what the PE image itself says.

use chronosym_symbols::identity::BuildId;

use crate::elf::{self, ElfAddressing};
use crate::files::Files;
use crate::search::{FileRequest, SymbolFile};
use chronosym_core::NameReason;
use chronosym_core::{ImageRef, NativeFrame};
use {crate::managed::PdbFile, chronosym_symbols::store::NoFile, std::sync::OnceLock};
use {crate::object, crate::search::FileAt, chronosym_symbols::Address, std::sync::Arc};

/// The files of one image.
pub(super) struct ImageFiles {
    /// The symbol file: a PDB, or an ELF file.
    pub symbols: SymbolFile,
    /// The PE image itself.
    pub image: SymbolFile,
    kind: Kind,
    /// The PDB of a precompiled image's IL.
    pub managed: OnceLock<PdbFile>,
}

/// How addresses of an image are found in its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pe,
    Elf(ElfAddressing),
    /// A PE file that the runtime mapped piece by piece: its symbol file is the perf map, and RVAs are offsets in the file
    /// plus this.
    Part {
        code_delta: u64,
    },
}

impl ImageFiles {
    pub(super) fn new(kind: Kind, symbols: SymbolFile, image: SymbolFile) -> Self {
        ImageFiles {
            symbols,
            image,
            kind,
            managed: OnceLock::new(),
        }
    }

    pub(super) fn find(image: &ImageRef<'_>, files: &Files) -> Self {
        if let Some(part) = &image.part {
            return Self::find_part(image, part, files);
        }
        let search = &files.search;
        if let Some(id) = image.build_id.and_then(BuildId::parse) {
            let (symbols, addressing) = elf::find(image, id, files);
            let kind = Kind::Elf(addressing);
            return Self::new(kind, symbols, SymbolFile::unidentified());
        }
        let (symbols, fits) = (crate::pe_image::find_pdb(image, files), |at: &_| {
            crate::pe_image::fits(at, image, files)
        });
        let mut own = SymbolFile::unidentified();
        // The PDB of managed code knows nothing of native addresses.
        if let Some(request) = FileRequest::image(image) {
            match symbols.is_native_pdb() && image.il_pdb.is_none() {
                true => search.folders(&mut own, &request, &fits),
                false => search.everywhere(&mut own, &request, &fits),
            }
        }
        Self::new(Kind::Pe, symbols, own)
    }

    /// About how many bytes it takes.
    pub(super) fn weight(&self) -> u64 {
        // With room for the PDB of the IL.
        2 * self.symbols.weight() + self.image.weight()
    }

    /// The file that answers, or the one whose reason says most.
    pub(super) fn best(&self) -> &SymbolFile {
        let (symbols, image) = (&self.symbols, &self.image);
        let image_first = match self.kind {
            Kind::Part { .. } => matches!(symbols.found, Err(NoFile::NoSymbolFile)),
            _ => image.found.is_ok() || symbols.wanted.is_none(),
        };
        if symbols.found.is_err() && image_first {
            image
        } else {
            symbols
        }
    }

    /// The frames at an RVA, innermost first; none where the file names nothing there.
    pub(super) fn frames(&self, files: &Files, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        match self.kind {
            Kind::Elf(..) => {}
            Kind::Pe => match self.pe_frames(files, rva) {
                Some(Ok(frames)) if !frames.is_empty() => return Ok(frames),
                Some(none) => return self.image_frames(files, rva, none),
                None => {}
            },
            Kind::Part { code_delta } => return self.part_frames(files, rva, code_delta),
        }
        if let Some(at) = self.object_file() {
            return object::frames(files, at, self.address(rva));
        }
        Err(self.best().name_reason())
    }

    /// The frames of a PE image's own symbols, where its PDB has none. A guess replaces only what a damaged PDB would say.
    fn image_frames(
        &self,
        files: &Files,
        rva: u64,
        none: Result<Vec<NativeFrame>, NameReason>,
    ) -> Result<Vec<NativeFrame>, NameReason> {
        let Some(at) = self.image.file() else {
            return none;
        };
        let mut frames = object::frames(files, at, Address::Rva(rva)).unwrap_or_default();
        let is_guess = frames.iter().any(|frame| frame.approximate);
        if frames.is_empty() || is_guess && none.is_ok() {
            return none;
        }
        let path = object::path_text(at);
        for frame in &mut frames {
            frame.symbol_file = Some(Arc::clone(&path));
        }
        Ok(frames)
    }

    /// The object file, if there is one: what the PDB of a PE image says comes before it.
    fn object_file(&self) -> Option<&Arc<FileAt>> {
        match self.kind {
            Kind::Elf(_) => self.symbols.file(),
            Kind::Pe => self.image.file(),
            Kind::Part { .. } => None,
        }
    }

    fn address(&self, rva: u64) -> Address {
        match self.kind {
            Kind::Elf(addressing) => addressing.address(rva),
            _ => Address::Rva(rva),
        }
    }

    /// Works out the answers for many addresses.
    pub(super) fn prepare(&self, files: &Files, rvas: &[u64]) {
        // PDBs are as fast without it.
        let Some(at) = self
            .object_file()
            .filter(|_| matches!(self.kind, Kind::Elf(_)) || self.symbols.found.is_err())
        else {
            return;
        };
        let addresses: Vec<Address> = rvas.iter().map(|&rva| self.address(rva)).collect();
        object::prepare(files, at, &addresses);
    }
}
