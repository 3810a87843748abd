//! A fake runtime: a process that does nothing, with a diagnostics socket in its TMPDIR.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread;

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";

pub struct Fake {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Fake {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A command to a runtime: its set, its number, its payload.
pub type Sent = (u8, u8, Vec<u8>);

impl Fake {
    /// Each command is given to `serve` with its connection, on a thread of its own.
    pub fn new(serve: impl Fn(Sent, &mut UnixStream) + Clone + Send + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        let child = command.arg("60").env("TMPDIR", folder.path()).spawn();
        let child = child.unwrap();
        let socket = format!("dotnet-diagnostic-{}-1-socket", child.id());
        let listener = UnixListener::bind(folder.path().join(socket)).unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let serve = serve.clone();
                thread::spawn(move || {
                    if let Some(sent) = command_of(&mut stream) {
                        serve(sent, &mut stream);
                    }
                });
            }
        });
        Fake { child, folder }
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// A path in its folder, which is removed with it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn command_of(stream: &mut UnixStream) -> Option<Sent> {
    let mut header = [0; 20];
    stream.read_exact(&mut header).ok()?;
    let size = u16::from_le_bytes([header[14], header[15]]);
    let mut payload = vec![0; usize::from(size) - 20];
    stream.read_exact(&mut payload).ok()?;
    Some((header[16], header[17], payload))
}

/// Replies to a command; 0 means success.
pub fn reply(stream: &mut UnixStream, id: u8, payload: &[u8]) {
    let size = (20 + payload.len()) as u16;
    let message = [&MAGIC[..], &size.to_le_bytes(), &[0xff, id, 0, 0], payload].concat();
    _ = stream.write_all(&message);
}

/// The reply to a command that the runtime does not know.
pub fn unknown_command(stream: &mut UnixStream) {
    reply(stream, 0xff, &0x8013_1385u32.to_le_bytes());
}
