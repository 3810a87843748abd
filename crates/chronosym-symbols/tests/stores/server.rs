//! A small HTTP server on loopback that can misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) struct Server {
    scheme: &'static str,
    port: u16,
    log: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: Vec<String>,
}

pub(crate) enum Reply {
    Ok(Vec<u8>),
    /// A 200 with further header lines.
    With(&'static str, Vec<u8>),
    Status(u16),
    Redirect(u16, String),
    /// A status with further header lines.
    StatusWith(u16, &'static str),
    /// Promises more than it sends, and hangs up.
    Truncated(Vec<u8>),
    /// No length: the end is where the connection ends.
    Unlimited(Vec<u8>),
    /// Says nothing for so long.
    Hang(Duration),
    /// Sends half of it, then pauses for this time.
    HalfThenHang(Vec<u8>, Duration),
    /// Says that the body is shorter than it is.
    TooLong(Vec<u8>),
    /// A status whose body is a byte now and then, without end.
    Drip(u16),
    /// Hangs up at once.
    Close,
}

impl Server {
    pub(crate) fn new(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::start("http", None, answer)
    }

    /// Creates a server with TLS.
    pub(crate) fn secure(
        tls: rustls::ServerConfig,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::start("https", Some(Arc::new(tls)), answer)
    }

    fn start(
        scheme: &'static str,
        tls: Option<Arc<rustls::ServerConfig>>,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let log: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let answer = Arc::new(answer);
        let (seen, count) = (Arc::clone(&log), Arc::clone(&connections));
        // Ends with the process: a test server needs no shutdown.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::SeqCst);
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                let tls = tls.clone();
                std::thread::spawn(move || match tls {
                    None => serve(stream, &seen, &*answer),
                    Some(tls) => {
                        let connection = rustls::ServerConnection::new(tls).unwrap();
                        let stream = rustls::StreamOwned::new(connection, stream);
                        serve(stream, &seen, &*answer);
                    }
                });
            }
        });
        Self {
            scheme,
            port,
            log,
            connections,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://127.0.0.1:{}/{path}", self.scheme, self.port)
    }

    /// Returns the paths requested so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.path).collect()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

fn serve<S: Read + Write>(stream: S, log: &Mutex<Vec<Seen>>, answer: &dyn Fn(&str) -> Reply) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            lines.push(line);
        }
        let request = lines.remove(0);
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        assert!(request.starts_with("GET "), "{request}");
        log.lock().unwrap().push(Seen {
            path: path.clone(),
            headers: lines,
        });
        match respond(reader.get_mut(), answer(&path)) {
            Ok(true) => {}
            _ => return,
        }
    }
}

/// Whether the connection is kept.
fn respond<S: Write>(stream: &mut S, reply: Reply) -> std::io::Result<bool> {
    let mut send = |code: u16, headers: &str, length: Option<usize>, body: &[u8]| {
        let length = length.map_or(String::new(), |n| format!("Content-Length: {n}\r\n"));
        let kept = if length.is_empty() {
            "Connection: close\r\n"
        } else {
            ""
        };
        let head = format!("HTTP/1.1 {code} X\r\n{headers}{length}{kept}\r\n");
        stream.write_all(&[head.as_bytes(), body].concat())?;
        stream.flush()
    };
    match reply {
        Reply::Ok(body) => send(200, "", Some(body.len()), &body)?,
        Reply::With(headers, body) => send(200, headers, Some(body.len()), &body)?,
        Reply::Status(code) => send(code, "", Some(4), b"no\r\n")?,
        Reply::StatusWith(code, headers) => send(code, headers, Some(0), b"")?,
        Reply::Redirect(code, to) => send(code, &format!("Location: {to}\r\n"), Some(0), b"")?,
        Reply::Truncated(body) => {
            send(200, "", Some(body.len() + 100), &body)?;
            return Ok(false);
        }
        Reply::Unlimited(body) => {
            send(200, "", None, &body)?;
            return Ok(false);
        }
        Reply::Hang(time) => {
            std::thread::sleep(time);
            return Ok(false);
        }
        Reply::HalfThenHang(body, time) => {
            send(200, "", Some(body.len()), &body[..body.len() / 2])?;
            std::thread::sleep(time);
            return Ok(false);
        }
        Reply::TooLong(body) => send(200, "", Some(body.len() / 2), &body)?,
        Reply::Drip(code) => {
            send(code, "", Some(1 << 20), b"")?;
            while stream.write_all(b"x").and_then(|()| stream.flush()).is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
            return Ok(false);
        }
        Reply::Close => return Ok(false),
    }
    Ok(true)
}
