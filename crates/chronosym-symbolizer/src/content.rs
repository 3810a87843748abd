//! Finds files that a recording identifies by their content.

use std::path::{Path, PathBuf};

use chronosym_core::unwind::{FileByContent, HeaderIdentity};
use chronosym_core::{PdbReference, file_name};
use chronosym_pdb::pe::PeImage;
use chronosym_symbols::identity::FileIdentity;
use chronosym_symbols::mmap::FileData;
use chronosym_symbols::store::{StoreConfig, identity_of};
use chronosym_types::Hex;
use sha2::{Digest, Sha256};

/// Returns the identity of the first file of that name in the folders that has the content.
pub(super) fn find(file: &FileByContent<'_>, config: &StoreConfig) -> Option<HeaderIdentity> {
    let name = file_name(file.path);
    if name.is_empty() || name == ".." || name.contains('\0') {
        return None;
    }
    let folders = config.folders.iter().chain(&config.trace_folders);
    // A folder may also be a file.
    let within = folders.flat_map(|folder| [folder.join(name), folder.clone()]);
    let stated = Some(PathBuf::from(file.path)).filter(|_| config.trust_trace_paths);
    within.chain(stated).find_map(|path| identify(file, &path))
}

fn identify(file: &FileByContent<'_>, path: &Path) -> Option<HeaderIdentity> {
    let data = path.is_file().then(|| FileData::map(path).ok())??;
    let has_content = is_hash(&data, file.htlhash);
    let image = PeImage::parse(&data).ok();
    let mvid = image
        .as_ref()
        .and_then(|image| image.metadata().ok()?.mvid());
    let digits = |text: &str| text.replace('-', "").to_lowercase();
    let is_module = mvid.is_some_and(|mvid| digits(&mvid.to_string()) == digits(file.mvid));
    if !has_content && !is_module {
        return None;
    }
    // A precompiled image has the module version id of its IL, but other code.
    let has_code = has_content || file.htlhash.is_empty();
    let mut found = HeaderIdentity::default();
    if let Some(image) = image {
        found.pe = has_code.then(|| (image.timestamp(), image.size_of_image()));
        found.pdb = image.portable_codeview().map(|codeview| PdbReference {
            id: codeview.id,
            path: codeview.path,
        });
    } else if let Ok(FileIdentity::Elf { build_id, .. }) = identity_of(&data) {
        found.build_id = build_id.map(|id| id.to_string());
    }
    Some(found)
}

/// Returns whether a hash in hex is that of a file: the first 16 bytes of the SHA-256 of its first
/// and last 4096 bytes and of its length (`process.executable.build_id.htlhash` of OpenTelemetry's
/// semantic conventions).
fn is_hash(data: &[u8], hash: &str) -> bool {
    const PART: usize = 4096;
    let part = data.len().min(PART);
    let mut sha = Sha256::new();
    sha.update(&data[..part]);
    sha.update(&data[data.len() - part..]);
    sha.update((data.len() as u64).to_be_bytes());
    let digest = sha.finalize();
    let hex = Hex(&digest[..16]).to_string();
    hex.eq_ignore_ascii_case(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_of_head_tail_and_length() {
        // printf 'hellohello\0\0\0\0\0\0\0\5' | sha256sum
        let hash = "b2c90e0c61910efa8c079b70039694de";
        assert!(is_hash(b"hello", hash) && is_hash(b"hello", &hash.to_uppercase()));
        assert!(!is_hash(b"hellp", hash) && !is_hash(b"hello", ""));
    }
}
