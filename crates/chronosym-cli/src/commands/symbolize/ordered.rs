//! Writes, in order, text that several threads produce.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;

/// Elements in one piece of work: enough for about 100 KB of text.
const PIECE: usize = 256;

/// Bytes of text in a piece of short answers.
const PIECE_BYTES: usize = 64 * PIECE;

/// How many pieces a thread may be ahead of the writer.
const AHEAD: usize = 4;

/// Writes the text that `make` appends for 0 to `count`, in this order. The text is produced on all
/// processors, a few pieces ahead of the writer.
///
/// # Errors
///
/// The writer's.
pub fn write(
    count: usize,
    make: impl Fn(usize, &mut Vec<u8>) + Sync,
    out: &mut dyn Write,
) -> io::Result<()> {
    let pieces = count.div_ceil(PIECE);
    let make = |piece: usize| {
        let mut text = Vec::with_capacity(PIECE_BYTES);
        let start = piece * PIECE;
        (start..count.min(start + PIECE)).for_each(|item| make(item, &mut text));
        text
    };
    let threads = threads().min(pieces);
    if threads < 2 {
        return (0..pieces).try_for_each(|piece| out.write_all(&make(piece)));
    }
    let make = &make;
    thread::scope(|scope| {
        // Thread n makes every piece n modulo the number of threads, so that the writer knows which
        // thread has the next one.
        let made: Vec<_> = (0..threads)
            .map(|first| {
                let (send, receive) = mpsc::sync_channel(AHEAD);
                let work = move || {
                    let own = (first..pieces).step_by(threads);
                    // The receiver is gone once the writer has failed.
                    own.map(make).try_for_each(|text| send.send(text)).ok()
                };
                let thread = thread::Builder::new().spawn_scoped(scope, work);
                thread.map(|_| receive)
            })
            .collect();
        // A thread that panics sends nothing more; the panic resumes when the scope ends.
        (0..pieces)
            .map_while(|turn| match &made[turn % threads] {
                Ok(made) => made.recv().ok(),
                // The writer does the work of a thread that could not be spawned.
                Err(_) => Some(make(turn)),
            })
            .try_for_each(|text| out.write_all(&text))
    })
}

/// Returns the number of threads.
fn threads() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        for count in [0, 1, PIECE - 1, PIECE, 7 * PIECE + 3] {
            let mut out = Vec::new();
            let make = |item: usize, text: &mut Vec<u8>| text.extend(format!("{item}\n").bytes());
            write(count, make, &mut out).unwrap();
            let expected: String = (0..count).map(|item| format!("{item}\n")).collect();
            assert_eq!(out, expected.as_bytes());
        }
    }

    #[test]
    fn failing_writer_ends_the_work() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = write(100 * PIECE, |_, text| text.push(b'x'), &mut Full).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
