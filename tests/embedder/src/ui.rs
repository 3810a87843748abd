//! The user interface: a thread that resolves addresses while another pushes events.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use chronosym::symbols::{SymbolOptions, Symbolizer};
use chronosym::{
    AddressQuery, LiveReader, Position, QueryProcess, ResolvedBatch, Resolver, SymbolSource,
};

/// Resolves addresses in the latest timeline: to be kept in any struct, on any thread.
struct Names {
    reader: LiveReader,
    pid: u32,
    resolver: Resolver,
    symbols: Arc<dyn SymbolSource>,
    batch: ResolvedBatch,
}

/// A resolver keeps all frames; it is replaced when it has this many.
const MAX_FRAMES: usize = 100;

impl Names {
    fn new(reader: LiveReader, pid: u32) -> Self {
        let symbolizer = Symbolizer::new(Default::default(), SymbolOptions::default());
        let symbols: Arc<dyn SymbolSource> = Arc::new(symbolizer);
        Names {
            resolver: Resolver::new(&reader.timeline(), Some(symbols.clone())),
            reader,
            pid,
            symbols,
            batch: ResolvedBatch::default(),
        }
    }

    /// Returns the label of the code at an address and time, in the latest published timeline.
    fn label(&mut self, address: u64, time_ns: u64) -> String {
        let timeline = self.reader.timeline();
        if self.resolver.frames().len() > MAX_FRAMES {
            self.resolver = Resolver::new(&timeline, Some(self.symbols.clone()));
        }
        self.resolver.advance_to(&timeline);
        let query = AddressQuery {
            process: QueryProcess::Pid(self.pid),
            address,
            time_ns,
            position: Position::Exact,
        };
        self.resolver.resolve_batch(&[query], &mut self.batch);
        let frame = self.batch.frames_of(0)[0].index();
        let table = self.resolver.frame_table();
        let [module, method] = [table.module(), table.method()].map(|it| table.text(it[frame]));
        format!("{module}!{method}")
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

    /// Returns the label of the code at an address and time.
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
