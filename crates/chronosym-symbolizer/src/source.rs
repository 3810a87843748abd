//! The text of source files: out of PDBs, from folders, or from where Source Link says, held to the checksum in the PDB.

use std::io::Read;
use std::path::{Path, PathBuf};

use chronosym_pdb::portable::PortablePdb;
use chronosym_symbols::store::NotFetched;

use crate::files::Files;
use crate::managed::PdbFile;
use crate::pdb::Pdb;
use crate::symbolizer::Symbolizer;
use chronosym_core::ModuleRef;

/// Longer source files are not read, in bytes.
const MAX_SOURCE: usize = 16 << 20;

/// The text of a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceText {
    /// What stands in it; what is no UTF-8 is replaced.
    pub text: String,
    /// The file that it is from.
    pub file: Option<PathBuf>,
    /// The URL that it was fetched from. Without this and a file it stands in the PDB.
    pub url: Option<String>,
    /// Whether it is what was compiled, by the checksum in the PDB or because it is in the PDB. Otherwise there is no checksum.
    pub checked: bool,
}

impl SourceText {
    /// What was compiled.
    fn of(bytes: &[u8]) -> Self {
        SourceText {
            text: String::from_utf8_lossy(bytes).into_owned(),
            file: None,
            url: None,
            checked: true,
        }
    }
}

/// Why there is no text of a source file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoSource {
    /// It is in no folder that was named, and not in the PDB.
    #[error("no source file")]
    NotFound,
    /// A file of its name was found, but another text was compiled.
    #[error("{} is not what was compiled: its checksum is another", .0.display())]
    Mismatch(PathBuf),
    /// The PDB says where it is, and it was not fetched from there.
    #[error("no source file; its PDB names {url}: {reason}")]
    NotFetched {
        /// Where it is to be.
        url: String,
        /// Why it is not at hand.
        reason: NotFetched,
    },
    /// What was fetched is another text, or nothing says that it is the one that was compiled.
    #[error("no source file; what {0} has is not known to be what was compiled")]
    Unchecked(String),
}

impl Symbolizer {
    /// The text of `document`, as lines name it, of a module: from its PDB, else out of `folders`, in which the end of the
    /// document's path is looked for, else from the path itself if paths of traces are trusted, else from the URL that the
    /// PDB's Source Link has for it, where fetching is on; that needs a checksum that agrees.
    ///
    /// # Errors
    ///
    /// If there is none, or just one that was not compiled.
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

    /// The text at a URL that a PDB names.
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

/// The names in a path that lead downwards, of whichever system it is.
fn parts(path: &str) -> Vec<&str> {
    let down = |part: &&str| !matches!(*part, "" | "." | "..") && !part.contains([':', '\0']);
    let parts: Vec<&str> = path.split(['/', '\\']).collect();
    // What stands before a step upwards is another folder's.
    let from = parts.iter().rposition(|&part| part == "..");
    let rest = &parts[from.map_or(0, |at| at + 1)..];
    rest.iter().copied().filter(down).collect()
}

/// A file that is not too long; devices and pipes are no source.
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

/// Says whether this is the text that was compiled, where there is a checksum that can be computed.
type Check = Box<dyn Fn(&[u8]) -> Option<bool>>;

/// What a PDB knows of a document.
#[derive(Default)]
struct SourceDocument {
    text: Option<Vec<u8>>,
    is_text: Option<Check>,
    /// Where Source Link says that it is.
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
        // What does not unpack is looked for elsewhere.
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

    /// What Source Link leads to is used only where fetching is on, and only with a checksum that agrees.
    #[cfg(feature = "http")]
    #[test]
    fn linked_text_is_held_to_its_checksum() {
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
