//! Source text: embedded in PDBs, from folders, or downloaded through Source Link; checked against
//! the checksum in the PDB.

use std::io::Read;
use std::path::{Path, PathBuf};

use chronosym_pdb::portable::PortablePdb;
use chronosym_symbols::store::NotFetched;

use crate::files::Files;
use crate::managed::PdbFile;
use crate::pdb::Pdb;
use crate::symbolizer::Symbolizer;
use chronosym_core::ModuleRef;

/// Maximum size of a source file that is read, in bytes.
const MAX_SOURCE: usize = 16 << 20;

/// The text of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceText {
    /// The text; invalid UTF-8 is replaced.
    pub text: String,
    /// The file that it was read from.
    pub file: Option<PathBuf>,
    /// The URL that it was downloaded from. If both this and `file` are `None`, it is embedded in
    /// the PDB.
    pub url: Option<String>,
    /// Whether it is known to be the compiled text, because its checksum matches or because it is
    /// embedded in the PDB. Otherwise the PDB has no checksum.
    pub checked: bool,
}

impl SourceText {
    /// Returns a text that is known to be the compiled one.
    fn of(bytes: &[u8]) -> Self {
        // The byte order mark of UTF-8 belongs to the file, its text is without.
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        SourceText {
            text: String::from_utf8_lossy(bytes).into_owned(),
            file: None,
            url: None,
            checked: true,
        }
    }
}

/// Why source text is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSource {
    /// It is in none of the given folders and not embedded in the PDB.
    #[error("no source file")]
    NotFound,
    /// A file with its name was found, but its checksum differs.
    #[error("{} is not the compiled file: its checksum differs", .0.display())]
    Mismatch(PathBuf),
    /// The PDB states a URL, and the file was not downloaded from there.
    #[error("no source file; its PDB names {url}: {reason}")]
    NotFetched {
        /// The URL.
        url: String,
        /// Why it was not downloaded.
        reason: NotFetched,
    },
    /// The downloaded text has another checksum, or there is none to compare it with.
    #[error(
        "no source file; the text at {0} does not match the PDB's checksum, or the PDB has none"
    )]
    Unchecked(String),
}

impl Symbolizer {
    /// Returns the text of a module's `document`, named as in lines. Searches, in order: the PDB;
    /// `folders`, for files whose path ends like the document's; the path itself, if paths of
    /// traces are trusted; the URL in the PDB's Source Link, if downloads are enabled and a
    /// checksum exists that matches.
    ///
    /// # Errors
    ///
    /// There is no text, or only text that was not compiled.
    pub fn source(
        &self,
        module: Option<&ModuleRef<'_>>,
        document: &str,
        folders: &[PathBuf],
    ) -> Result<SourceText, NoSource> {
        let module = module.map(|module| self.module(module));
        let known = module
            .as_ref()
            .and_then(|module| module.pdb.document(&self.files, document))
            .unwrap_or_default();
        if let Some(text) = known.text {
            return Ok(SourceText::of(&text));
        }
        let parts = parts(document);
        let below = folders.iter().flat_map(|folder| {
            let ends = (0..parts.len()).map(|from| &parts[from..]);
            ends.map(move |end| folder.join(end.iter().collect::<PathBuf>()))
        });
        let own = self.files.search.config().trust_trace_paths;
        let own = own.then(|| PathBuf::from(document)).into_iter();
        let mut other = None;
        for path in below.chain(own) {
            let Some(bytes) = read(&path) else {
                continue;
            };
            let checked = known.is_text.as_ref().and_then(|check| check(&bytes));
            if checked == Some(false) {
                other.get_or_insert(path);
                continue;
            }
            return Ok(SourceText {
                file: Some(path),
                checked: checked.is_some(),
                ..SourceText::of(&bytes)
            });
        }
        match (other, known.url) {
            (Some(path), _) => Err(NoSource::Mismatch(path)),
            (None, Some(url)) => self.linked(url, known.is_text),
            (None, None) => Err(NoSource::NotFound),
        }
    }

    /// Downloads the text at a URL that a PDB states.
    fn linked(&self, url: String, is_text: Option<Check>) -> Result<SourceText, NoSource> {
        let bytes = match self.files.search.fetch_source(&url, MAX_SOURCE as u64) {
            Ok(bytes) => bytes,
            Err(reason) => return Err(NoSource::NotFetched { url, reason }),
        };
        if is_text.and_then(|check| check(&bytes)) != Some(true) {
            return Err(NoSource::Unchecked(url));
        }
        Ok(SourceText {
            url: Some(url),
            ..SourceText::of(&bytes)
        })
    }
}

/// Splits a path of any system into its names, without those that precede a step upwards.
fn parts(path: &str) -> Vec<&str> {
    let down = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains([':', '\0']);
    let parts: Vec<&str> = path.split(['/', '\\']).collect();
    // Names before `..` belong to another folder.
    let from = parts.iter().rposition(|&part| part == "..");
    let rest = &parts[from.map_or(0, |at| at + 1)..];
    rest.iter().copied().filter(down).collect()
}

/// Reads a file up to the maximum size; devices and pipes are rejected.
fn read(path: &Path) -> Option<Vec<u8>> {
    if !path.metadata().is_ok_and(|meta| meta.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    let most = MAX_SOURCE as u64 + 1;
    file.take(most).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= MAX_SOURCE).then_some(bytes)
}

/// Returns whether bytes are the compiled text; `None` if there is no checksum of a supported
/// algorithm.
type Check = Box<dyn Fn(&[u8]) -> Option<bool>>;

/// The record of a document in a PDB.
#[derive(Default)]
struct SourceDocument {
    text: Option<Vec<u8>>,
    is_text: Option<Check>,
    /// The URL in the Source Link.
    url: Option<String>,
}

impl PdbFile {
    fn document(&self, files: &Files, name: &str) -> Option<SourceDocument> {
        self.with_pdb(files, |pdb| match pdb {
            Pdb::Portable(file) => file.pdb.with(|pdb| document(pdb, file.row(pdb, name)?)),
            Pdb::Windows(_) => None,
        })?
        .ok()?
    }
}

fn document(pdb: &PortablePdb<'_>, row: u32) -> Option<SourceDocument> {
    let document = pdb.document(row)?;
    let (algorithm, hash) = (document.hash_algorithm, document.hash.to_vec());
    Some(SourceDocument {
        // A text that cannot be decompressed is searched for elsewhere.
        text: pdb.embedded_source(row, MAX_SOURCE).ok().flatten(),
        is_text: algorithm.map(|algorithm| -> Check {
            Box::new(move |bytes| algorithm.is_hash_of(&hash, bytes))
        }),
        url: pdb.source_link_url(row),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Source Link URL is used only if downloads are enabled, and the text only if its checksum
    /// matches.
    #[cfg(feature = "http")]
    #[test]
    fn linked_text_is_checked_against_its_checksum() {
        use std::io::{BufRead, BufReader, Write};

        use chronosym_symbols::path::SymbolPath;
        use chronosym_symbols::store::StoreConfig;

        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/B.cs", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while request.read_line(&mut line).is_ok_and(|read| read > 2) {}
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\n";
                let _ = write!(stream, "{head}class B;");
            }
        });
        let mut config = StoreConfig::new();
        let off = Symbolizer::new(config.clone(), Default::default());
        config.path = SymbolPath::parse("srv*http://127.0.0.1:9/symbols");
        let on = Symbolizer::new(config, Default::default());
        let check = |known: Option<&'static str>| {
            known.map(|known| -> Check { Box::new(move |text| Some(text == known.as_bytes())) })
        };
        let text = on.linked(url.clone(), check(Some("class B;"))).unwrap();
        assert_eq!(
            (&*text.text, text.url, text.checked),
            ("class B;", Some(url.clone()), true)
        );
        for known in [Some("class C;"), None] {
            let other = on.linked(url.clone(), check(known));
            assert_eq!(other, Err(NoSource::Unchecked(url.clone())));
        }
        let reason = NotFetched::Off;
        let none = off.linked(url.clone(), check(Some("class B;")));
        assert_eq!(none, Err(NoSource::NotFetched { url, reason }));
    }

    #[test]
    fn paths_lead_downwards() {
        for (path, expected) in [
            ("/src/a/B.cs", &["src", "a", "B.cs"][..]),
            (r"C:\src\B.cs", &["src", "B.cs"]),
            ("/src/../../etc/passwd", &["etc", "passwd"]),
            (r"\\server\share\B.cs", &["server", "share", "B.cs"]),
            ("..", &[]),
        ] {
            assert_eq!(parts(path), expected, "{path}");
        }
    }
}
