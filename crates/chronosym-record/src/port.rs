//! A port that runtimes connect to.
//!
//! A runtime whose environment has `DOTNET_DiagnosticPorts=PATH,connect,suspend` connects to the
//! socket and sends 34 bytes: `ADVR_V1` and a zero, a cookie of 16 bytes that identifies it, its pid
//! (u64), and a zero (u16). The connection is for one command; the runtime connects again for the
//! next. Child processes inherit the environment.

use std::collections::HashMap;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::connections::Connections;
use crate::error::RecordError;
use crate::ipc::RESUME;
use crate::session::Runtime;
use crate::started::Started;
use crate::stream::Stream;

const ADVERTISEMENT: usize = 34;
const MAGIC: &[u8; 8] = b"ADVR_V1\0";
/// Time limit for the advertisement of a runtime, which is sent immediately.
const ADVERTISE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// Maximum number of runtimes. Later ones are resumed without being recorded.
const MOST_RUNTIMES: usize = 128;
/// Maximum number of connections whose advertisement is read at the same time. Others wait.
const MOST_READ: usize = 64;

type Cookie = [u8; 16];

/// The runtimes that have connected.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    shared: Arc<Mutex<Runtimes>>,
}

#[derive(Debug)]
struct Runtimes {
    known: HashMap<Cookie, Connections>,
    /// Passes each new one.
    started: Sender<Started>,
    /// Number of runtimes that could not be recorded.
    excess: u64,
    reading: usize,
    is_closed: bool,
}

impl Port {
    /// Creates a port, and the list of runtimes that have connected to it.
    pub fn new() -> (Self, Receiver<Started>) {
        let (sender, started) = channel();
        let runtimes = Runtimes {
            known: HashMap::new(),
            started: sender,
            excess: 0,
            reading: 0,
            is_closed: false,
        };
        let shared = Arc::new(Mutex::new(runtimes));
        (Port { shared }, started)
    }

    fn lock(&self) -> MutexGuard<'_, Runtimes> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of runtimes beyond the limit, which were not recorded.
    pub fn excess(&self) -> u64 {
        self.lock().excess
    }

    /// Ends [`accept`](Self::accept).
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Accepts connections until the port is closed. Each is read on a separate thread, so a silent
    /// peer delays no other.
    pub fn accept(&self, listener: &UnixListener) {
        loop {
            let runtimes = self.lock();
            if runtimes.is_closed {
                return;
            }
            let may_read = runtimes.reading < MOST_READ;
            drop(runtimes);
            match listener.accept() {
                Ok((stream, _)) if may_read => self.read(stream),
                _ => thread::sleep(POLL),
            }
        }
    }

    fn read(&self, stream: UnixStream) {
        self.lock().reading += 1;
        let port = self.clone();
        let thread = thread::Builder::new().name("port".to_owned());
        let thread = thread.spawn(move || {
            _ = port.take(stream);
            port.lock().reading -= 1;
        });
        if thread.is_err() {
            self.lock().reading -= 1;
        }
    }

    /// Takes a connection: it waits for a command to its runtime.
    fn take(&self, stream: UnixStream) -> Result<(), RecordError> {
        let mut advertisement = [0; ADVERTISEMENT];
        let deadline = Instant::now() + ADVERTISE;
        let blocking = stream.set_nonblocking(false);
        let mut stream = Stream::Socket(stream);
        blocking
            .and_then(|()| stream.read_before(&mut advertisement, deadline))
            .map_err(RecordError::io("read the advertisement of a runtime"))?;
        if !advertisement.starts_with(MAGIC) {
            return Err(RecordError::Protocol(
                "its advertisement has another signature",
            ));
        }
        let mut cookie = Cookie::default();
        cookie.copy_from_slice(&advertisement[8..24]);
        let mut pid = [0; 4];
        pid.copy_from_slice(&advertisement[24..28]);
        let mut runtimes = self.lock();
        if let Some(connections) = runtimes.known.get(&cookie) {
            connections.push(stream);
            return Ok(());
        }
        let connections = Connections::default();
        connections.push(stream);
        let runtime = Runtime::behind(connections.clone());
        if runtimes.known.len() < MOST_RUNTIMES && !runtimes.is_closed {
            runtimes.known.insert(cookie, connections);
            let pid = u32::from_le_bytes(pid);
            _ = runtimes.started.send(Started { pid, runtime });
            return Ok(());
        }
        runtimes.excess += 1;
        drop(runtimes);
        runtime.send(RESUME, &[]).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A runtime that connects. Its cookie has this number.
    fn advertise(port: &Port, cookie: u32) -> UnixStream {
        let (mut runtime, stream) = UnixStream::pair().expect("a pair");
        let port = port.clone();
        thread::spawn(move || port.take(stream));
        let cookie = cookie.to_le_bytes().repeat(4);
        let advertisement = [&MAGIC[..], &cookie, &[7, 1, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        runtime.write_all(&advertisement).expect("open");
        runtime
    }

    #[test]
    fn each_runtime_has_connections_of_its_own() {
        let (port, started) = Port::new();
        let _first = advertise(&port, 1);
        let first = started.recv().expect("a runtime");
        let mut second = advertise(&port, 2);
        let other = started.recv().expect("another runtime");
        assert_eq!((first.pid, other.pid), (0x107, 0x107));
        // A command goes to its runtime.
        thread::spawn(move || other.runtime.send(RESUME, &[]).map(|_| ()));
        let mut command = [0; 20];
        second.read_exact(&mut command).expect("a command");
        assert_eq!((command[16], command[17]), (RESUME.set, RESUME.id));
        // A runtime that connects again is not a new one.
        let _again = advertise(&port, 1);
        assert!(started.recv_timeout(POLL * 5).is_err());
    }

    #[test]
    fn runtimes_that_are_too_many_are_resumed() {
        let (port, started) = Port::new();
        let most = MOST_RUNTIMES as u32;
        let _known: Vec<_> = (0..most).map(|cookie| advertise(&port, cookie)).collect();
        assert_eq!(started.iter().take(MOST_RUNTIMES).count(), MOST_RUNTIMES);
        let mut excess = advertise(&port, most);
        let mut command = [0; 20];
        excess.read_exact(&mut command).expect("a command");
        assert_eq!((command[16], command[17]), (RESUME.set, RESUME.id));
        assert_eq!(port.excess(), 1);
    }

    #[test]
    fn a_silent_peer_delays_no_runtime() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("port");
        let listener = UnixListener::bind(&path).expect("a socket");
        listener.set_nonblocking(true).expect("a socket");
        let (port, started) = Port::new();
        let accepting = port.clone();
        let thread = thread::spawn(move || accepting.accept(&listener));
        let connect = || UnixStream::connect(&path).expect("a port");
        let _silent: Vec<_> = (0..8).map(|_| connect()).collect();
        let began = Instant::now();
        let mut runtime = connect();
        runtime
            .write_all(&[&MAGIC[..], &[9; 26]].concat())
            .expect("open");
        started.recv().expect("a runtime");
        assert!(began.elapsed() < ADVERTISE);
        port.close();
        thread.join().expect("an end");
    }

    #[test]
    fn what_is_no_runtime_is_dropped() {
        let (port, started) = Port::new();
        let (mut peer, stream) = UnixStream::pair().expect("a pair");
        peer.write_all(&[0; ADVERTISEMENT]).expect("open");
        assert!(port.take(stream).is_err());
        assert!(started.try_recv().is_err());
    }
}
