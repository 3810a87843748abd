//! What the user looks at: a thread that asks while the other feeds.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use chronosym::symbols::{SymbolOptions, Symbolizer};
use chronosym::{LiveReader, Position, Resolver, SymbolSource, When};

/// Names addresses of the timeline that it holds: to be kept in any struct, on any thread.
struct Names {
    reader: LiveReader,
    pid: u32,
    resolver: Resolver,
    symbols: Arc<dyn SymbolSource>,
}

impl Names {
    fn new(reader: LiveReader, pid: u32) -> Self {
        let symbolizer = Symbolizer::new(Default::default(), SymbolOptions::default());
        let symbols: Arc<dyn SymbolSource> = Arc::new(symbolizer);
        Names {
            resolver: Resolver::new(&reader.timeline(), Some(symbols.clone())),
            reader,
            pid,
            symbols,
        }
    }

    /// What stood at an address at a time, by all that was published until now.
    fn label(&mut self, address: u64, time_ns: u64) -> String {
        let timeline = self.reader.timeline();
        if !Arc::ptr_eq(&timeline, self.resolver.timeline()) {
            self.resolver = Resolver::new(&timeline, Some(self.symbols.clone()));
        }
        let Some(process) = timeline.find_process(self.pid, None) else {
            return String::new();
        };
        let when = When::At(time_ns);
        let resolved = self
            .resolver
            .resolve_addresses(process, &[address], when, Position::Exact);
        let frame = resolved.map(|(stack, _)| self.resolver.frame(self.resolver.leaf(stack)));
        frame.map_or_else(String::new, |frame| frame.label().to_owned())
    }
}

pub struct Ui {
    ask: Sender<(u64, u64)>,
    answers: Receiver<String>,
    thread: JoinHandle<()>,
}

impl Ui {
    pub fn open(reader: LiveReader, pid: u32) -> Self {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let thread = thread::spawn(move || {
            let mut names = Names::new(reader, pid);
            for (address, time_ns) in questions {
                let text = names.label(address, time_ns);
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
