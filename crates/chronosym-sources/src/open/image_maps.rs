//! Names of precompiled code as older runtimes wrote them, in perfcollect's bundles:
//! `NAME.ni.{GUID}.map` for each image, and `perfinfo-PID.map`, which lists the images of a
//! process.

use std::io::Read;

use chronosym_types::hash::HashMap;

use super::bytes::ByteStream;
use super::error::OpenError;
use super::perf_map::whole;
use crate::script::PlacedFile;
use chronosym_core::{LimitReached, Limits, Session, file_name};

/// The files of both kinds.
#[derive(Default)]
pub(super) struct ImageMaps {
    /// Lists of images, by process.
    pub infos: Vec<(String, u32, ByteStream)>,
    /// Maps, by file name in lower case.
    pub maps: HashMap<String, ByteStream>,
}

impl ImageMaps {
    /// Names the code of files by their images' maps, of which up to `held` bytes are kept in
    /// memory.
    ///
    /// # Errors
    ///
    /// [`OpenError`] if one of these files cannot be read, or is larger than
    /// [`Limits::perf_map_bytes`].
    pub fn apply(
        mut self,
        files: &[PlacedFile],
        limits: &Limits,
        mut held: u64,
        session: &mut Session,
    ) -> Result<(), OpenError> {
        // Each file once: of several bases, the first.
        let mut bases: HashMap<u32, HashMap<&str, u64>> = HashMap::default();
        for file in files.iter().rev() {
            let own = bases.entry(file.process).or_default();
            own.insert(&file.path, file.base);
        }
        let mut texts: HashMap<String, Vec<u8>> = HashMap::default();
        for (name, process, stream) in std::mem::take(&mut self.infos) {
            let Some(bases) = bases.get_mut(&process) else {
                continue;
            };
            let info = read(&name, stream, held, limits)?;
            held = held.saturating_sub(info.len() as u64);
            let info = String::from_utf8_lossy(&info);
            for (path, guid) in info.lines().filter_map(image) {
                let Some(&base) = bases.get(path) else {
                    continue;
                };
                let image = file_name(path);
                let stem = image.rsplit_once('.').map_or(image, |(stem, _)| stem);
                let map = format!("{stem}.{guid}.map").to_lowercase();
                if let Some(stream) = self.maps.remove(&map) {
                    let text = read(&map, stream, held, limits)?;
                    held = held.saturating_sub(text.len() as u64);
                    texts.insert(map.clone(), text);
                }
                if let Some(text) = texts.get(&map) {
                    // Several files may share one map.
                    let used = text.len() as u64;
                    held = held
                        .checked_sub(used)
                        .ok_or_else(|| too_much(&map, limits))?;
                    session.image_map(process, base, text);
                    bases.remove(path);
                }
            }
        }
        Ok(())
    }
}

fn read(name: &str, stream: impl Read, held: u64, limits: &Limits) -> Result<Vec<u8>, OpenError> {
    whole(name, stream, held, limits, OpenError::damaged)
}

fn too_much(name: &str, limits: &Limits) -> OpenError {
    OpenError::Limit {
        name: name.to_owned(),
        limit: LimitReached::UnpackedRatio(limits.held_ratio()),
    }
}

/// Returns the path of an image and its GUID in braces from `ImageLoad;PATH;{GUID};BASE;`, or
/// `NILoad;PATH;{GUID}` of earlier versions.
fn image(line: &str) -> Option<(&str, &str)> {
    let mut parts = line.trim_end().split(';');
    let what = parts.next()?;
    let (path, guid) = (parts.next()?, parts.next()?);
    matches!(what, "ImageLoad" | "NILoad").then_some((path, guid))
}
