//! Names of precompiled code as older runtimes of perfcollect's bundles wrote them: `NAME.ni.{GUID}.map` for each image, and
//! `perfinfo-PID.map`, which says what images a process had.

use std::io::Read;

use rustc_hash::FxHashMap;

use super::bytes::ByteStream;
use super::error::OpenError;
use super::perf_map::whole;
use crate::images::file_name;
use crate::limits::Limits;
use crate::session::Session;
use crate::source::script::PlacedFile;

/// Such files.
#[derive(Default)]
pub(super) struct ImageMaps {
    /// By the process.
    pub infos: Vec<(String, u32, ByteStream)>,
    /// By the name of the file alone, in lower case.
    pub maps: FxHashMap<String, ByteStream>,
}

impl ImageMaps {
    /// Names the code of files by their images' maps.
    ///
    /// # Errors
    /// [`OpenError`] if one of these files cannot be read, or is larger than [`Limits::perf_map_bytes`].
    pub fn apply(
        mut self,
        files: &[PlacedFile],
        limits: &Limits,
        session: &mut Session,
    ) -> Result<(), OpenError> {
        let mut texts: FxHashMap<String, Vec<u8>> = FxHashMap::default();
        for (name, process, stream) in std::mem::take(&mut self.infos) {
            let info = read(&name, stream, limits)?;
            let info = String::from_utf8_lossy(&info);
            for (path, guid) in info.lines().filter_map(image) {
                let is_it = |file: &&PlacedFile| file.process == process && *file.path == *path;
                let Some(file) = files.iter().find(is_it) else {
                    continue;
                };
                let image = file_name(path);
                let stem = image.rsplit_once('.').map_or(image, |(stem, _)| stem);
                let map = format!("{stem}.{guid}.map").to_lowercase();
                if let Some(stream) = self.maps.remove(&map) {
                    texts.insert(map.clone(), read(&map, stream, limits)?);
                }
                if let Some(text) = texts.get(&map) {
                    session.image_map(process, file.base, text);
                }
            }
        }
        Ok(())
    }
}

fn read(name: &str, stream: impl Read, limits: &Limits) -> Result<Vec<u8>, OpenError> {
    whole(name, stream, limits, OpenError::damaged)
}

/// The path of an image and its GUID in braces: `ImageLoad;PATH;{GUID};BASE;`, before that `NILoad;PATH;{GUID}`.
fn image(line: &str) -> Option<(&str, &str)> {
    let mut parts = line.trim_end().split(';');
    let what = parts.next()?;
    let (path, guid) = (parts.next()?, parts.next()?);
    matches!(what, "ImageLoad" | "NILoad").then_some((path, guid))
}
