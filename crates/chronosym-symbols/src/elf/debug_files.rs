//! Searches for the files that an object file names: its debug file, split units and supplementary
//! file.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use gimli::SectionId;
use object::read::{Object, ObjectSection};

use super::bundle::{dwarf_files, is_bundle, listed, with_ending};
use super::container::{Container, Format};
use super::packing;
use super::universal::Choice;
use crate::error::{Error, Result};
use crate::identity::BuildId;
use crate::path::PathElement;
use crate::store::StoreConfig;

/// The number of packages and bundles with other names that are searched.
const MAX_PACKAGES: usize = 64;

/// Why a search was unsuccessful.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    pub(crate) notes: Vec<String>,
    /// There was a file of another build.
    pub(crate) other_build: bool,
}

/// The system's folder of debug files.
const SYSTEM: &str = "/usr/lib/debug";

/// The locations of debug files, split units and supplementary files. Their names come from the
/// object file, which is untrusted; a file is used only if its identity matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugFileSearch {
    /// Folders to search, in this order, in addition to the system's folder of debug files. Only
    /// the last component of a name counts. Without a folder, no file is opened.
    pub folders: Vec<PathBuf>,
    /// Whether to use the paths that the file records, for files built on this machine.
    pub recorded_paths: bool,
}

impl DebugFileSearch {
    /// Returns the folder of a file, and that of its target if it is a link.
    pub fn next_to(path: &Path) -> Self {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let mut folders = vec![folder];
        if path.is_symlink() {
            let target = path.canonicalize().ok();
            folders.extend(target.as_deref().and_then(Path::parent).map(Path::to_owned));
        }
        Self {
            folders,
            recorded_paths: false,
        }
    }

    /// As [`next_to`](Self::next_to), with the folders of the configuration, and the paths that the
    /// file records if paths of traces are trusted.
    pub fn configured(path: &Path, config: &StoreConfig) -> Self {
        let mut search = Self::next_to(path);
        let on_the_path = config.path.elements.iter().filter_map(|e| match e {
            PathElement::Folder(folder) => Some(folder),
            _ => None,
        });
        let folders = config.folders.iter().chain(&config.trace_folders);
        search.folders.extend(folders.chain(on_the_path).cloned());
        search.recorded_paths = config.trust_trace_paths;
        search
    }

    /// Returns the file `name` in each folder and in its subfolder `sub`.
    fn within<'f>(&'f self, sub: &'f str, name: &'f Path) -> impl Iterator<Item = PathBuf> + 'f {
        let folders = self.folders.iter();
        folders.flat_map(move |folder| [folder.join(name), folder.join(sub).join(name)])
    }

    /// Returns the file that `.gnu_debuglink` or the build ID identifies, if it belongs to the same
    /// build, and why others were rejected.
    pub(crate) fn debug_file(
        &self,
        container: &Container,
        names: &[OsString],
    ) -> (Option<Container>, Missed) {
        let mut missed = Missed::default();
        if self.folders.is_empty() {
            return (None, missed);
        }
        let link = debug_link(container);
        let mut paths: Vec<PathBuf> = Vec::new();
        let by_id = container.build_id.as_ref().and_then(build_id_path);
        paths.extend(by_id.map(|path| Path::new(SYSTEM).join(path)));
        if let Some((name, _)) = &link {
            paths.extend(self.within(".debug", name));
        }
        if container.format == Format::MachO {
            paths.extend(self.bundled_files(container, names));
        }
        let mut bare = None;
        for path in paths.iter().filter(|path| path.is_file()) {
            let why = match Container::open_choice(path, choice_for(container)) {
                Ok(file) => match difference(container, &file) {
                    None if file.debug.has(SectionId::DebugInfo, false) => {
                        return (Some(file), Missed::default());
                    }
                    // The link may name the stripped file itself; the debug file is in `.debug`.
                    None => {
                        bare.get_or_insert(file);
                        continue;
                    }
                    Some(why) => {
                        missed.other_build = true;
                        why
                    }
                },
                Err(error) => error.to_string(),
            };
            let note = format!("{} is not used: {why}", path.display());
            missed.notes.push(note);
        }
        if let (None, true, Some((name, _))) = (&bare, missed.notes.is_empty(), &link) {
            let note = format!("stripped; debug file {} not found", name.display());
            missed.notes.push(note);
        }
        if bare.is_none() && container.has_debug_map() {
            let name = names
                .first()
                .map_or("image".into(), |name| name.to_string_lossy());
            let note = format!(
                "lines of {name} are in object files, which are not read: dsymutil collects them in {name}.dSYM"
            );
            missed.notes.push(note);
        }
        (bare, missed)
    }

    /// Returns the files with the DWARF of a Mach-O image: in the bundles named after the image, or
    /// after a bundle that contains it, and in all others of these folders.
    fn bundled_files(&self, container: &Container, names: &[OsString]) -> Vec<PathBuf> {
        /// `Name.app/Contents/MacOS/Name`, `Name.framework/Versions/A/Name`.
        const MAX_PARENTS: usize = 3;
        let beside = self.folders.iter().flat_map(|folder| {
            let named = names.iter().map(move |name| folder.join(name));
            named.map(|path| with_ending(&path, ".dSYM"))
        });
        let parents = container
            .folder
            .iter()
            .flat_map(|folder| folder.ancestors());
        let around = parents
            .take(MAX_PARENTS)
            .filter(|path| path.extension().is_some());
        let around = around.map(|path| with_ending(path, ".dSYM"));
        let mut files: Vec<PathBuf> = beside
            .chain(around)
            .flat_map(|path| dwarf_files(&path))
            .collect();
        let others = self.folders.iter().flat_map(|folder| listed(folder));
        let others = others.filter(|path| is_bundle(path)).take(MAX_PACKAGES);
        let others = others.flat_map(|path| dwarf_files(&path));
        files.extend(others.filter(|path| {
            let file = Container::open_choice(path, choice_for(container));
            file.is_ok_and(|file| difference(container, &file).is_none())
        }));
        files
    }

    /// Returns the supplementary file of `.gnu_debugaltlink`, checked by its build ID.
    pub(crate) fn supplement(&self, container: &Container) -> Option<Container> {
        let (name, id) = supplement_link(container)?;
        let mut paths = Vec::new();
        if self.folders.is_empty() {
            return None;
        }
        let recorded = os_path(name)?;
        if self.recorded_paths {
            // Relative to the file that names it, which may be in another folder.
            let own = container.folder.as_deref();
            paths.extend(own.map(|folder| folder.join(&recorded)));
            paths.extend(self.folders.iter().map(|folder| folder.join(&recorded)));
        }
        let last = last_part(name)?;
        let folders = self.folders.iter().map(PathBuf::as_path);
        for folder in folders.chain([Path::new(SYSTEM)]) {
            let dwz = folder.join(".dwz");
            paths.extend([folder.join(&last), dwz.join(&last)]);
            paths.extend(build_id_path(&id).map(|path| folder.join(path)));
            // Distributions have a folder for each architecture.
            paths.extend(listed(&dwz).into_iter().map(|sub| sub.join(&last)));
        }
        paths
            .into_iter()
            .filter_map(|path| Container::open(&path).ok())
            .find(|file| file.build_id.as_ref() == Some(&id))
    }

    /// Paths of packages of split units: the object's names with `.dwp` appended, or replacing
    /// `.debug`.
    pub(crate) fn packages(&self, object_names: &[OsString]) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for folder in &self.folders {
            for name in object_names {
                let mut added = name.clone();
                added.push(".dwp");
                paths.push(folder.join(added));
                let debug = Path::new(name).extension().is_some_and(|e| e == "debug");
                let other = if debug { "dwp" } else { "debug.dwp" };
                let other = Path::new(name).with_extension(other);
                paths.push(folder.join(other));
            }
        }
        paths
    }

    /// Packages of any name, for objects that were renamed.
    pub(crate) fn other_packages(&self) -> Vec<PathBuf> {
        let files = self.folders.iter().flat_map(|folder| listed(folder));
        let packages = files.filter(|path| path.extension().is_some_and(|e| e == "dwp"));
        packages.take(MAX_PACKAGES).collect()
    }

    /// Possible paths of the file of one split unit.
    pub(crate) fn split_unit(&self, comp_dir: Option<&[u8]>, name: &[u8]) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        if self.recorded_paths
            && let Some(path) = os_path(name)
        {
            let base = comp_dir.and_then(os_path).unwrap_or_default();
            paths.push(base.join(path));
        }
        let last = last_part(name);
        paths.extend(
            last.iter()
                .flat_map(|last| self.folders.iter().map(move |folder| folder.join(last))),
        );
        paths
    }
}

/// Returns the symbol table in `.gnu_debugdata`: an ELF file, compressed by xz, with the functions
/// that `.dynsym` lacks.
pub(crate) fn mini_debug_info(container: &Container) -> Result<Option<Container>> {
    if container.format != Format::Elf {
        return Ok(None);
    }
    let file = container.file()?;
    let Some(section) = file.section_by_name(".gnu_debugdata") else {
        return Ok(None);
    };
    let packed = section
        .data()
        .map_err(|e| Error::damaged(".gnu_debugdata", e))?;
    let unpacked = packing::xz(packed, ".gnu_debugdata")?;
    Container::parse(unpacked).map(Some)
}

/// Returns the name of the debug file and its CRC.
pub(crate) fn debug_link(container: &Container) -> Option<(PathBuf, u32)> {
    let file = container.file().ok()?;
    let (name, crc) = file.gnu_debuglink().ok().flatten()?;
    Some((last_part(name)?, crc))
}

/// Returns the image of a universal file that belongs to the same build.
pub(crate) fn choice_for(container: &Container) -> Choice<'_> {
    let uuid = container
        .build_id
        .as_ref()
        .filter(|_| container.format == Format::MachO);
    uuid.map_or(Choice::Only, Choice::Uuid)
}

/// Returns why `theirs` is not the debug file of `ours`; `None` if it is.
pub(crate) fn difference(ours: &Container, theirs: &Container) -> Option<String> {
    let crc = debug_link(ours).map(|(_, crc)| crc);
    match (&ours.build_id, &theirs.build_id, crc) {
        // The CRC is that of the whole file, which two build IDs make unnecessary to read.
        (Some(wanted), Some(own), _) => {
            (wanted != own).then(|| format!("its build id is {own}, expected {wanted}"))
        }
        (_, _, Some(wanted)) => {
            let own = crc32(&theirs.data);
            (wanted != own).then(|| format!("its CRC is {own:#010x}, expected {wanted:#010x}"))
        }
        (Some(wanted), None, None) => Some(format!("it has no build id, expected {wanted}")),
        (None, _, None) => Some("nothing identifies it".to_owned()),
    }
}

/// Returns the supplementary file's path and build ID (`.gnu_debugaltlink`).
pub(crate) fn supplement_link(container: &Container) -> Option<(&[u8], BuildId)> {
    let file = container.file().ok()?;
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    Some((name, BuildId::new(id)?))
}

/// Returns the path of a build in a folder of debug files: `.build-id/ab/cdef….debug`.
fn build_id_path(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    Some(PathBuf::from(format!(".build-id/{head}/{tail}.debug")))
}

/// Returns a path that a file records.
fn os_path(bytes: &[u8]) -> Option<PathBuf> {
    String::from_utf8(bytes.to_vec()).ok().map(PathBuf::from)
}

/// Returns the last component of a path that a file records, if it is a plain file name.
fn last_part(bytes: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let last = text.rsplit(['/', '\\']).next()?;
    let path = PathBuf::from(last);
    let mut parts = path.components();
    let plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
    (plain && !last.contains(':') && !last.contains('\0')).then_some(path)
}

/// Returns the CRC-32 of `.gnu_debuglink`, which is that of zlib.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}
