//! The other files that an object file names: its debug information, its split units, what it shares with others.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use gimli::SectionId;
use object::read::{Object, ObjectSection};

use super::container::Container;
use super::packing;
use crate::error::{Error, Result};
use crate::identity::BuildId;
use crate::path::PathElement;
use crate::store::StoreConfig;

/// How many packages of other names are asked for a split unit.
const MAX_PACKAGES: usize = 64;

/// What came of a search.
#[derive(Clone, Debug, Default)]
pub(crate) struct Missed {
    pub(crate) notes: Vec<String>,
    /// A file of another build was there.
    pub(crate) other_build: bool,
}

/// Where the system keeps debug files.
const SYSTEM: &str = "/usr/lib/debug";

/// Which files beside the one given may be opened. Their names stand in the file, which may come from anywhere; whether a file is
/// the right one is seen by its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DebugFileSearch {
    /// They may lie in these folders, which are searched in this order, and where the system keeps debug files. Only the last part
    /// of the names in the file counts. Without a folder no other file is opened.
    pub folders: Vec<PathBuf>,
    /// They may also lie at the paths that the file records: for files built on this machine.
    pub recorded_paths: bool,
}

impl DebugFileSearch {
    /// Those beside a file, and beside what it is a link to.
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

    /// Those beside a file and in the folders where symbols are looked for, and where the file records them if paths of traces
    /// are trusted.
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

    /// In each folder, and in one of this name in it.
    fn within<'f>(&'f self, sub: &'f str, name: &'f Path) -> impl Iterator<Item = PathBuf> + 'f {
        let folders = self.folders.iter();
        folders.flat_map(move |folder| [folder.join(name), folder.join(sub).join(name)])
    }

    /// The file that `.gnu_debuglink` or the build id leads to, if it is of the same build; else what was met instead.
    pub(crate) fn debug_file(&self, container: &Container) -> (Option<Container>, Missed) {
        let mut missed = Missed::default();
        if self.folders.is_empty() {
            return (None, missed);
        }
        let link = debug_link(container);
        let mut places: Vec<PathBuf> = Vec::new();
        places.extend(container.build_id.as_ref().and_then(system_path));
        if let Some((name, _)) = &link {
            places.extend(self.within(".debug", name));
        }
        let mut bare = None;
        for path in places.iter().filter(|path| path.is_file()) {
            let why = match Container::open(path) {
                Ok(found) => match difference(container, &found) {
                    None if found.debug.has(SectionId::DebugInfo, false) => {
                        return (Some(found), Missed::default());
                    }
                    // The link may name the stripped file itself, whose namesake is in `.debug`.
                    None => {
                        bare.get_or_insert(found);
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
        (bare, missed)
    }

    /// The supplementary file of `.gnu_debugaltlink`, checked by its build id.
    pub(crate) fn supplement(&self, container: &Container) -> Option<Container> {
        let (name, id) = supplement_link(container)?;
        let mut places = Vec::new();
        if self.folders.is_empty() {
            return None;
        }
        let recorded = os_path(name)?;
        if self.recorded_paths {
            // Counted from the file that names it, which need not lie in one of the folders.
            let own = container.folder.as_deref();
            places.extend(own.map(|folder| folder.join(&recorded)));
            places.extend(self.folders.iter().map(|folder| folder.join(&recorded)));
        }
        let last = last_part(name)?;
        places.extend(self.within(".dwz", &last));
        places.extend(system_path(&id));
        let system = Path::new(SYSTEM).join(".dwz");
        places.extend(listed(&system).into_iter().map(|sub| sub.join(&last)));
        places.push(system.join(&last));
        places
            .into_iter()
            .filter_map(|path| Container::open(&path).ok())
            .find(|found| found.build_id.as_ref() == Some(&id))
    }

    /// Where packages of split units go by one of the object's names: with `.dwp` added, or in place of `.debug`.
    pub(crate) fn packages(&self, object_names: &[OsString]) -> Vec<PathBuf> {
        let mut places = Vec::new();
        for folder in &self.folders {
            for name in object_names {
                let mut added = name.clone();
                added.push(".dwp");
                places.push(folder.join(added));
                let debug = Path::new(name).extension().is_some_and(|e| e == "debug");
                let other = if debug { "dwp" } else { "debug.dwp" };
                let other = Path::new(name).with_extension(other);
                places.push(folder.join(other));
            }
        }
        places
    }

    /// Packages by whatever name, for objects that were renamed.
    pub(crate) fn other_packages(&self) -> Vec<PathBuf> {
        let files = self.folders.iter().flat_map(|folder| listed(folder));
        let packages = files.filter(|path| path.extension().is_some_and(|e| e == "dwp"));
        packages.take(MAX_PACKAGES).collect()
    }

    /// Where the file of one split unit may be.
    pub(crate) fn split_unit(&self, comp_dir: Option<&[u8]>, name: &[u8]) -> Vec<PathBuf> {
        let mut places = Vec::new();
        if self.recorded_paths
            && let Some(path) = os_path(name)
        {
            let base = comp_dir.and_then(os_path).unwrap_or_default();
            places.push(base.join(path));
        }
        let last = last_part(name);
        places.extend(
            last.iter()
                .flat_map(|last| self.folders.iter().map(move |folder| folder.join(last))),
        );
        places
    }
}

/// The files in a folder, by name.
fn listed(folder: &Path) -> Vec<PathBuf> {
    // The empty path means the folder that one is in.
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort_unstable();
    paths
}

/// The symbol table in `.gnu_debugdata`: an ELF file, packed with xz, of the functions that `.dynsym` lacks.
pub(crate) fn mini_debug_info(container: &Container) -> Result<Option<Container>> {
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

/// The name of the file with the debug information, and the CRC of that file.
pub(crate) fn debug_link(container: &Container) -> Option<(PathBuf, u32)> {
    let file = container.file().ok()?;
    let (name, crc) = file.gnu_debuglink().ok().flatten()?;
    Some((last_part(name)?, crc))
}

/// In what a debug file differs from that of the same build; nothing if it is that.
pub(crate) fn difference(ours: &Container, theirs: &Container) -> Option<String> {
    let crc = debug_link(ours).map(|(_, crc)| crc);
    match (&ours.build_id, &theirs.build_id, crc) {
        // The link's CRC is of the whole file: with two build ids to compare there is no need to read it.
        (Some(wanted), Some(found), _) => {
            (wanted != found).then(|| format!("its build id is {found}, wanted is {wanted}"))
        }
        (_, _, Some(wanted)) => {
            let found = crc32(&theirs.data);
            (wanted != found).then(|| format!("its CRC is {found:#010x}, wanted is {wanted:#010x}"))
        }
        (Some(wanted), None, None) => Some(format!("it has no build id, wanted is {wanted}")),
        (None, _, None) => Some("there is nothing to know it by".to_owned()),
    }
}

/// The supplementary file's path and build id (`.gnu_debugaltlink`).
pub(crate) fn supplement_link(container: &Container) -> Option<(&[u8], BuildId)> {
    let file = container.file().ok()?;
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    Some((name, BuildId::new(id)?))
}

/// Where distributions put the debug file of a build: `/usr/lib/debug/.build-id/ab/cdef….debug`.
fn system_path(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    Some(Path::new(SYSTEM).join(format!(".build-id/{head}/{tail}.debug")))
}

/// A path out of a file, as a path here.
fn os_path(bytes: &[u8]) -> Option<PathBuf> {
    String::from_utf8(bytes.to_vec()).ok().map(PathBuf::from)
}

/// The last part of a path out of a file: a plain file name, or nothing.
fn last_part(bytes: &[u8]) -> Option<PathBuf> {
    let text = String::from_utf8(bytes.to_vec()).ok()?;
    let last = text.rsplit(['/', '\\']).next()?;
    let path = PathBuf::from(last);
    let mut parts = path.components();
    let plain = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
    (plain && !last.contains(':') && !last.contains('\0')).then_some(path)
}

/// CRC-32 as `.gnu_debuglink` has it: that of zlib.
fn crc32(data: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(data);
    crc.sum()
}
