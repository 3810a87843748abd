//! Reads a file on a thread of its own, so that waiting for the disk and copying from the system do not hold up decoding.

use std::io::{self, ErrorKind, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of a buffer: small enough to stay in a core's cache until it is used.
const SIZE: usize = 256 << 10;
/// Buffers on the way.
const BUFFERS: usize = 3;

/// A source that is read ahead of its reader, from the first read on.
pub enum ReadAhead<S> {
    Waiting(S),
    Running(Pipe),
    Ended,
}

/// Bytes, and how many of them are good.
type Filled = (Box<[u8]>, usize);

/// Buffers that come filled and go back empty.
pub struct Pipe {
    filled: Receiver<io::Result<Filled>>,
    empty: Sender<Box<[u8]>>,
    current: Filled,
    at: usize,
}

impl<S: Read + Send + 'static> ReadAhead<S> {
    pub fn new(source: S) -> Self {
        ReadAhead::Waiting(source)
    }

    fn start(source: S) -> io::Result<Pipe> {
        let (empty, to_fill) = channel();
        let (done, filled) = sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            let _ = empty.send(vec![0; SIZE].into_boxed_slice());
        }
        thread::Builder::new()
            .name("read-ahead".to_owned())
            .spawn(move || fill(source, &to_fill, &done))?;
        Ok(Pipe {
            filled,
            empty,
            current: (Box::default(), 0),
            at: 0,
        })
    }
}

/// Until the source ends or fails, or nobody wants any more.
fn fill(
    mut source: impl Read,
    empty: &Receiver<Box<[u8]>>,
    filled: &SyncSender<io::Result<Filled>>,
) {
    while let Ok(mut buffer) = empty.recv() {
        let read = loop {
            match source.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let ends = !matches!(read, Ok(1..));
        if filled.send(read.map(|length| (buffer, length))).is_err() || ends {
            return;
        }
    }
}

impl<S: Read + Send + 'static> Read for ReadAhead<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let ReadAhead::Waiting(_) = self {
            let ReadAhead::Waiting(source) = std::mem::replace(self, ReadAhead::Ended) else {
                return Ok(0);
            };
            *self = ReadAhead::Running(Self::start(source)?);
        }
        let ReadAhead::Running(pipe) = self else {
            return Ok(0);
        };
        if pipe.at == pipe.current.1 {
            // A thread that is gone has said all it had to say.
            let next = pipe.filled.recv().unwrap_or(Ok((Box::default(), 0)));
            match next {
                Ok(next) if next.1 > 0 => {
                    let used = std::mem::replace(&mut pipe.current, next).0;
                    pipe.at = 0;
                    if !used.is_empty() {
                        let _ = pipe.empty.send(used);
                    }
                }
                ended => {
                    *self = ReadAhead::Ended;
                    return ended.map(|_| 0);
                }
            }
        }
        let left = &pipe.current.0[pipe.at..pipe.current.1];
        let count = left.len().min(out.len());
        out[..count].copy_from_slice(&left[..count]);
        pipe.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives odd amounts, then fails.
    struct Uneven {
        left: usize,
        fails: bool,
    }

    impl Read for Uneven {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.left == 0 && self.fails {
                return Err(io::Error::other("the disk is gone"));
            }
            let count = out.len().min(self.left).min(99_991);
            for (i, byte) in out[..count].iter_mut().enumerate() {
                *byte = ((self.left - i) % 251) as u8;
            }
            self.left -= count;
            Ok(count)
        }
    }

    #[test]
    fn nothing_is_lost_or_out_of_order() {
        let length = 3 * SIZE + 12_345;
        let source = |fails| Uneven {
            left: length,
            fails,
        };
        let (mut plain, mut ahead) = (Vec::new(), Vec::new());
        source(false).read_to_end(&mut plain).unwrap();
        ReadAhead::new(source(false))
            .read_to_end(&mut ahead)
            .unwrap();
        assert!(plain == ahead && plain.len() == length);
        let mut before = Vec::new();
        let error = ReadAhead::new(source(true)).read_to_end(&mut before);
        assert_eq!(error.unwrap_err().to_string(), "the disk is gone");
        assert!(before == plain, "what came before the failure is kept");
    }

    #[test]
    fn who_stops_reading_leaves_no_thread_behind() {
        struct Held(Sender<()>);
        impl Read for Held {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                self.0.send(()).map_err(io::Error::other)?;
                Ok(out.len())
            }
        }
        let (held, reads) = channel();
        let mut ahead = ReadAhead::new(Held(held));
        assert_eq!(ahead.read(&mut [0]).unwrap(), 1);
        drop(ahead);
        // Ends when the thread has let go of its source, after the reads that buffers were there for.
        assert!(reads.into_iter().count() <= 2 * BUFFERS);
    }
}
