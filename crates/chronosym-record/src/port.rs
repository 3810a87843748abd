//! A port that runtimes connect to, and the connections that wait there.
//!
//! A runtime whose environment has `DOTNET_DiagnosticPorts=PATH,connect,suspend` connects to the
//! socket and sends 34 bytes: `ADVR_V1` and a zero, a cookie of 16 bytes that identifies it, its pid
//! (u64), and a zero (u16). The connection is for one command; the runtime connects again for the
//! next. Child processes inherit the environment.

use std::collections::{HashMap, VecDeque};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::RecordError;
use crate::ipc::RESUME;
use crate::socket::{call, read_exact};

const ADVERTISEMENT: usize = 34;
const MAGIC: &[u8; 8] = b"ADVR_V1\0";
/// A runtime advertises itself at once.
const ADVERTISE: Duration = Duration::from_secs(5);
const REPLY: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);
/// Connections of a runtime that are held, and other runtimes whose connections are.
const MOST: usize = 256;

type Cookie = [u8; 16];

/// Connections of the recorded runtime that wait for a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port {
    shared: Arc<(Mutex<Waiting>, Condvar)>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The runtime that advertised itself first.
    recorded: Option<Cookie>,
    connections: VecDeque<UnixStream>,
    /// Other runtimes, each with a connection that is not used: without one it would connect again
    /// and again.
    others: HashMap<Cookie, UnixStream>,
    is_closed: bool,
}

impl Port {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a connection for one command.
    pub fn next(&self, limit: Duration) -> Result<UnixStream, RecordError> {
        let is_waiting = |it: &mut Waiting| it.connections.is_empty() && !it.is_closed;
        let waiting = self
            .shared
            .1
            .wait_timeout_while(self.lock(), limit, is_waiting);
        let (mut waiting, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        let connection = waiting.connections.pop_front();
        connection.ok_or(RecordError::Silent(limit))
    }

    /// Whether a runtime waits for a command.
    pub fn is_ready(&self) -> bool {
        !self.lock().connections.is_empty()
    }

    /// Ends [`accept`](Self::accept).
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.shared.1.notify_all();
    }

    /// Accepts connections until the port is closed.
    pub fn accept(&self, listener: &UnixListener) {
        while !self.lock().is_closed {
            match listener.accept() {
                Ok((stream, _)) => self.take(stream),
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    /// Takes a connection: that of the first runtime waits for commands, others are resumed.
    fn take(&self, mut stream: UnixStream) {
        let mut advertisement = [0; ADVERTISEMENT];
        let deadline = Instant::now() + ADVERTISE;
        let read = stream.set_nonblocking(false);
        let read = read.and_then(|()| read_exact(&mut stream, &mut advertisement, deadline));
        if read.is_err() || !advertisement.starts_with(MAGIC) {
            return;
        }
        let mut cookie = Cookie::default();
        cookie.copy_from_slice(&advertisement[8..24]);
        let mut waiting = self.lock();
        if *waiting.recorded.get_or_insert(cookie) == cookie {
            waiting.connections.push_back(stream);
            waiting.connections.truncate(MOST);
            self.shared.1.notify_all();
        } else if let Some(held) = waiting.others.get_mut(&cookie) {
            *held = stream;
        } else {
            drop(waiting);
            // It runs, or has ended.
            _ = call(&mut stream, RESUME, &[], REPLY);
            let mut waiting = self.lock();
            if waiting.others.len() < MOST {
                waiting.others.insert(cookie, stream);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn advertise(port: &Port, cookie: u8) -> UnixStream {
        let (mut runtime, stream) = UnixStream::pair().expect("a pair");
        let port = port.clone();
        let taken = thread::spawn(move || port.take(stream));
        let advertisement = [&MAGIC[..], &[cookie; 16], &[7; 10]].concat();
        runtime.write_all(&advertisement).expect("open");
        if cookie == 1 {
            taken.join().expect("taken");
        }
        runtime
    }

    #[test]
    fn the_first_runtime_waits_and_those_of_children_are_resumed() {
        let port = Port::default();
        let _first = advertise(&port, 1);
        let mut child = advertise(&port, 2);
        let mut command = [0; 20];
        child.read_exact(&mut command).expect("a command");
        assert_eq!((command[16], command[17]), (RESUME.set, RESUME.id));
        assert!(port.next(POLL).is_ok());
        let error = port.next(POLL).expect_err("one connection");
        assert!(matches!(error, RecordError::Silent(_)));
        let _again = advertise(&port, 1);
        assert!(port.next(POLL).is_ok());
    }

    #[test]
    fn what_is_no_runtime_is_dropped() {
        let port = Port::default();
        let (mut peer, stream) = UnixStream::pair().expect("a pair");
        peer.write_all(&[0; ADVERTISEMENT]).expect("open");
        port.take(stream);
        assert!(port.next(POLL).is_err());
        assert_eq!(port.lock().recorded, None);
    }
}
