//! What the user looks at: a thread that asks while the other feeds.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use chronosym::symbols::{SymbolOptions, Symbolizer};
use chronosym::{Frame, LiveReader, Position, Timeline};

use crate::feed::PID;

/// Names addresses of the timeline that it holds: to be kept in any struct, on any thread.
struct Names {
    timeline: Arc<Timeline>,
    symbols: Symbolizer,
}

impl Names {
    fn frames(&self, address: u64, time_ns: u64) -> Vec<Frame> {
        let Some(process) = self.timeline.find_process(PID, None) else {
            return Vec::new();
        };
        let symbols = Some(&self.symbols as _);
        let position = Position::Exact;
        self.timeline
            .frames(process, address, time_ns, position, symbols)
    }
}

pub struct Ui {
    ask: Sender<(u64, u64)>,
    answers: Receiver<String>,
    thread: JoinHandle<()>,
}

impl Ui {
    pub fn open(reader: LiveReader) -> Self {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let thread = thread::spawn(move || {
            let mut names = Names {
                timeline: reader.timeline(),
                symbols: Symbolizer::new(Default::default(), SymbolOptions::default()),
            };
            for (address, time_ns) in questions {
                names.timeline = reader.timeline();
                let label = |frame: &Frame| frame.label();
                let text = names
                    .frames(address, time_ns)
                    .first()
                    .map_or_else(String::new, label);
                if answer.send(text).is_err() {
                    return;
                }
            }
        });
        Ui {
            ask,
            answers,
            thread,
        }
    }

    /// What stood at an address at a time.
    pub fn ask(&self, address: u64, time_ns: u64) -> String {
        self.ask
            .send((address, time_ns))
            .expect("the thread listens");
        self.answers.recv().expect("the thread answers")
    }

    pub fn close(self) {
        drop(self.ask);
        self.thread.join().expect("the thread ends well");
    }
}
