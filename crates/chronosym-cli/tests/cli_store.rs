//! Symbol files from a server, through the whole program: fetched once, kept, and never fetched unasked.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;

const TRACE: &str = "clr10/traces/memory.nettrace.zip";

/// A server on the loopback interface that has one file, under any key whose file name is its name.
struct Server {
    url: String,
    served: Arc<AtomicUsize>,
}

impl Server {
    fn of(file: &Path) -> Self {
        let name = file.file_name().unwrap().to_str().unwrap().to_lowercase();
        let bytes = std::fs::read(file).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::new(AtomicUsize::new(0));
        let count = served.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &name, &bytes, &count);
            }
        });
        Server { url, served }
    }
}

fn answer(stream: TcpStream, name: &str, bytes: &[u8], served: &AtomicUsize) {
    let mut request = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while reader.read_line(&mut request).is_ok_and(|read| read > 2) {}
    let path = request.split(' ').nth(1).unwrap_or_default().to_lowercase();
    let mut stream = stream;
    let found = path.ends_with(&format!("/{name}"));
    let (status, body) = if found {
        ("200 OK", bytes)
    } else {
        ("404 Not Found", &b""[..])
    };
    if found {
        served.fetch_add(1, Ordering::SeqCst);
    }
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(body));
    let _ = reader.read(&mut [0; 64]);
}

fn lines(trace: &Path, cache: &Path, more: &[&str]) -> (usize, String) {
    let cache = cache.to_str().unwrap();
    let mut args = vec![
        "stacks",
        "--format",
        "jsonl",
        "--cache",
        cache,
        trace.to_str().unwrap(),
    ];
    args.extend(more);
    let run = run(&args);
    assert_eq!(run.status, 0, "{}", run.stderr);
    (run.stdout.matches("\"line\":").count(), run.stdout)
}

#[test]
fn a_symbol_file_is_fetched_once_and_then_kept() {
    let pdb = testdata("clr10/workload/memory/Workload.pdb");
    let server = Server::of(&pdb);
    let trace = file(&unzipped(TRACE));
    let cache = tempfile::tempdir().unwrap();
    let path = format!("srv*{}", server.url);

    let (none, text) = lines(&trace, cache.path(), &[]);
    assert_eq!(none, 0);
    assert!(text.contains("\"line_reason\":\"NoSymbolFile\""));

    let (none, text) = lines(&trace, cache.path(), &["--symbol-path", &path, "--offline"]);
    assert_eq!(
        (none, server.served.load(Ordering::SeqCst)),
        (0, 0),
        "offline wins"
    );
    assert!(text.contains("\"line_reason\":\"Offline\""));

    let (fetched, text) = lines(&trace, cache.path(), &["--symbol-path", &path]);
    assert!(fetched > 100, "only {fetched} lines");
    assert!(text.contains("Program.cs"));
    assert_eq!(server.served.load(Ordering::SeqCst), 1);

    let (kept, _) = lines(&trace, cache.path(), &["--symbol-path", &path, "--offline"]);
    assert_eq!(
        (kept, server.served.load(Ordering::SeqCst)),
        (fetched, 1),
        "from the cache"
    );
}
