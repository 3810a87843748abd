//! The other files that an object file names: its debug information, its split units, what it shares with others.

use std::ffi::OsStr;
use std::io::BufReader;
use std::path::{Component, Path, PathBuf};

use gimli::SectionId;
use object::read::{Object, ObjectSection};

use super::container::Container;
use crate::error::{Error, Result};
use crate::identity::BuildId;
use crate::mmap::FileData;

/// The most that a mini symbol table may unpack to, in bytes.
const MAX_MINI: usize = 256 << 20;

/// Which files beside the one given may be opened. Their names stand in the file, which may come from anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Companions {
    /// None.
    #[default]
    None,
    /// Those that lie in this folder or its `.debug` folder, and the system's folder of debug files. Only the last part of
    /// the names in the file counts.
    Beside(PathBuf),
    /// Also those at the paths that the file names: for files built on this machine.
    Trusted(PathBuf),
}

impl Companions {
    fn folder(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Beside(folder) | Self::Trusted(folder) => Some(folder),
        }
    }

    /// The file that `.gnu_debuglink` or the build id leads to, if it is of the same build; else what was met instead.
    pub(crate) fn debug_file(&self, container: &Container) -> (Option<Container>, Vec<String>) {
        let Some(folder) = self.folder() else {
            return (None, Vec::new());
        };
        let link = debug_link(container);
        let mut places: Vec<PathBuf> = Vec::new();
        places.extend(container.build_id.as_ref().and_then(system_path));
        if let Some((name, _)) = &link {
            places.extend([folder.join(name), folder.join(".debug").join(name)]);
        }
        let mut bare = None;
        let mut notes = Vec::new();
        for path in places.iter().filter(|path| path.is_file()) {
            let why = match try_open(path) {
                Ok(found) => match difference(container, &found) {
                    None if found.debug.has(SectionId::DebugInfo, false) => {
                        return (Some(found), Vec::new());
                    }
                    // The link may name the stripped file itself, whose namesake is in `.debug`.
                    None => {
                        bare.get_or_insert(found);
                        continue;
                    }
                    Some(why) => why,
                },
                Err(error) => error.to_string(),
            };
            notes.push(format!("{} is not used: {why}", path.display()));
        }
        if let (None, true, Some((name, _))) = (&bare, notes.is_empty(), &link) {
            notes.push(format!("stripped; debug file {} not found", name.display()));
        }
        (bare, notes)
    }

    /// The supplementary file of `.gnu_debugaltlink`, checked by its build id.
    pub(crate) fn supplement(&self, container: &Container) -> Option<Container> {
        let folder = self.folder()?;
        let file = container.file().ok()?;
        let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
        let id = BuildId::new(id)?;
        let mut places = Vec::new();
        if let Self::Trusted(_) = self {
            places.push(folder.join(os_path(name)?));
        }
        let last = last_part(name)?;
        places.push(folder.join(&last));
        places.push(folder.join(".dwz").join(&last));
        places.extend(system_path(&id));
        places
            .into_iter()
            .filter_map(|path| open(&path))
            .find(|found| found.build_id.as_ref() == Some(&id))
    }

    /// The package of split units: the object's name with `.dwp` added.
    pub(crate) fn package(&self, object_name: &OsStr) -> Option<Container> {
        let mut name = object_name.to_owned();
        name.push(".dwp");
        open(&self.folder()?.join(name))
    }

    /// The file of one split unit. That it is the right one is seen by its id.
    pub(crate) fn split_unit(&self, comp_dir: Option<&[u8]>, name: &[u8]) -> Option<Container> {
        let folder = self.folder()?;
        let mut places = vec![folder.join(last_part(name)?)];
        if let Self::Trusted(_) = self {
            let base = comp_dir.and_then(os_path).unwrap_or_default();
            places.push(base.join(os_path(name)?));
        }
        places.into_iter().find_map(|path| open(&path))
    }
}

/// The symbol table in `.gnu_debugdata`: an ELF file, packed with xz, of the functions that `.dynsym` lacks.
pub(crate) fn mini_debug_info(container: &Container) -> Result<Option<Container>> {
    let file = container.file()?;
    let Some(section) = file.section_by_name(".gnu_debugdata") else {
        return Ok(None);
    };
    let bad = |e: &dyn std::fmt::Display| Error::damaged(".gnu_debugdata", e);
    let packed = section.data().map_err(|e| bad(&e))?;
    let mut out = Limited(Vec::new());
    lzma_rs::xz_decompress(&mut BufReader::new(packed), &mut out).map_err(|e| match e {
        lzma_rs::error::Error::IoError(_) => Error::TooLarge {
            what: ".gnu_debugdata".to_owned(),
            size: out.0.len() as u64,
            limit: MAX_MINI as u64,
        },
        other => bad(&format!("{other:?}")),
    })?;
    Container::parse(FileData::from(out.0)).map(Some)
}

struct Limited(Vec<u8>);

impl std::io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_MINI {
            return Err(std::io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
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

fn try_open(path: &Path) -> Result<Container> {
    Container::parse(FileData::map(path)?)
}

fn open(path: &Path) -> Option<Container> {
    try_open(path).ok()
}

/// Where distributions put the debug file of a build: `/usr/lib/debug/.build-id/ab/cdef….debug`.
fn system_path(id: &BuildId) -> Option<PathBuf> {
    let hex = id.to_string();
    let (head, tail) = hex.split_at_checked(2)?;
    Some(PathBuf::from(format!(
        "/usr/lib/debug/.build-id/{head}/{tail}.debug"
    )))
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
