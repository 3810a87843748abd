//! Addresses of a trace's processes.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{
    Answer, Candidate, Life, NameReason, Position, ProcessIndex, SampleSelection, When, file_name,
};
use serde::{Serialize, Serializer};

use super::Source;
use super::question::{Place, Question};
use super::shown::{self, Line, Shown, Unknown};
use crate::args::{Style, Symbolize};
use crate::load::{self, Loaded};
use crate::units::show_time;

/// Answers that are kept, in bytes: real lists name the same addresses again and again.
const MAX_KEPT: usize = 64 << 20;

/// The module that an address names is none of the process.
const NO_IMAGE: shown::Why = ("no such image", NameReason::InvalidAddress);

pub struct TraceSource {
    loaded: Loaded,
    symbols: Symbolizer,
    /// All that had the pid, unless a time tells which is meant.
    processes: Vec<ProcessIndex>,
    time: Option<u64>,
    position: Position,
    style: Style,
    images: Vec<Image>,
    kept: HashMap<String, Box<[u8]>>,
    kept_bytes: usize,
}

/// An image of the process or the kernel.
struct Image {
    process: ProcessIndex,
    names: [String; 2],
    base: u64,
    life: Life,
}

/// What stands at an address, and when, where that is not always the same.
#[derive(PartialEq, Serialize)]
struct Occupant {
    #[serde(flatten, serialize_with = "bounds")]
    life: Option<Life>,
    frames: Vec<Shown>,
    /// Whether it is code, or an image at least.
    #[serde(skip)]
    stands: bool,
}

/// The begin and the end of a life, where it has them.
fn bounds<S: Serializer>(life: &Option<Life>, serializer: S) -> Result<S::Ok, S::Error> {
    let from = life.map(|life| ("from_ns", life.from));
    let to = life.map(|life| ("to_ns", life.to));
    let bounds = from.filter(|(_, at)| *at > 0).into_iter();
    serializer.collect_map(bounds.chain(to.filter(|(_, at)| *at < u64::MAX)))
}

/// All that ever stood at an address.
#[derive(Serialize)]
struct Several<'a> {
    #[serde(flatten)]
    line: Line<'a, Unknown<'a>>,
    occupants: &'a [Occupant],
}

impl TraceSource {
    pub fn open(trace: &Path, args: &Symbolize, quiet: bool) -> Result<Self> {
        let traces = [trace.to_path_buf()];
        let loaded = load::load(&traces, SampleSelection::None, &args.symbols)?;
        super::super::tell(&loaded.notes, quiet);
        let timeline = &loaded.timeline;
        let processes = load::processes(timeline, args.pid, args.time)?;
        let images = processes.iter().flat_map(|&process| {
            let images = timeline.images_in_space(process);
            images.map(move |image| Image {
                process,
                names: [
                    image.name.to_lowercase(),
                    image.path.map_or("", file_name).to_lowercase(),
                ],
                base: image.base,
                life: image.life,
            })
        });
        let images = images.collect();
        Ok(TraceSource {
            symbols: crate::symbols::open(&args.symbols, &loaded)?,
            processes,
            time: args.time.or(args.pid.and_then(|(_, at)| at)),
            position: if args.caller {
                Position::Return
            } else {
                Position::Exact
            },
            style: args.style,
            images,
            kept: HashMap::new(),
            kept_bytes: 0,
            loaded,
        })
    }

    /// The addresses that a place can mean in a process, each with the life of the image that makes it so.
    fn addresses(&self, process: ProcessIndex, place: Place<'_>) -> Vec<(u64, Option<Life>)> {
        let (name, rva) = match place {
            Place::Address(address) => return vec![(address, None)],
            Place::Rva(name, rva) => (name.to_lowercase(), rva),
        };
        let own = self.images.iter().filter(|i| i.process == process);
        let named = own.filter(|i| i.names.contains(&name));
        let alive = named.filter(|i| self.time.is_none_or(|t| i.life.contains(t)));
        let mut found: Vec<(u64, Option<Life>)> = Vec::new();
        for image in alive {
            let address = image.base.wrapping_add(rva);
            if found.iter().all(|(known, _)| *known != address) {
                found.push((address, Some(image.life)));
            }
        }
        found
    }

    fn occupants(&self, place: Place<'_>) -> Vec<Occupant> {
        let several = self.processes.len() > 1;
        let mut all: Vec<Occupant> = Vec::new();
        for &process in &self.processes {
            for occupant in self.occupants_in(process, place, several) {
                // The kernel stands in all of them.
                if !all.contains(&occupant) {
                    all.push(occupant);
                }
            }
        }
        // Of several processes those say nothing that have nothing there.
        if several && all.iter().any(|occupant| occupant.stands) {
            all.retain(|occupant| occupant.stands);
        } else if several {
            all.truncate(1);
        }
        all
    }

    fn occupants_in(
        &self,
        process: ProcessIndex,
        place: Place<'_>,
        several: bool,
    ) -> Vec<Occupant> {
        let addresses = self.addresses(process, place);
        let several = several || addresses.len() > 1;
        let mut all = Vec::new();
        for (address, of_image) in addresses {
            let (timeline, symbols) = (&self.loaded.timeline, Some(&self.symbols as _));
            let when = self.time.map_or(When::Unknown, When::At);
            match timeline.resolve(process, address, when, self.position, symbols) {
                // Rule 19: the sole occupant answers.
                Answer::One(candidate) => {
                    let life = candidate.life.map(|life| of_image.unwrap_or(life));
                    all.push(self.occupant(&candidate, life.filter(|_| several)));
                }
                Answer::Ambiguous(candidates) => {
                    all.extend(candidates.iter().map(|c| self.occupant(c, c.life)));
                }
            }
        }
        all
    }

    fn occupant(&self, candidate: &Candidate, life: Option<Life>) -> Occupant {
        let frames = candidate.frames.iter();
        Occupant {
            life,
            stands: frames.clone().any(|frame| frame.evidence.is_some()),
            frames: frames
                .map(|frame| Shown::of(frame, &self.loaded.timeline))
                .collect(),
        }
    }

    fn render(&self, question: &Question<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Some(place) = question.place else {
            return Ok(shown::print_unknown(
                self.style,
                question.text,
                shown::NO_ADDRESS,
                out,
            )?);
        };
        let occupants = self.occupants(place);
        let address = match place {
            Place::Address(address) => format!("{address:#x}"),
            Place::Rva(..) => question.text.to_owned(),
        };
        match occupants.as_slice() {
            [] => shown::print_unknown(self.style, &address, NO_IMAGE, out)?,
            [only] => shown::print(self.style, &address, &only.frames, out)?,
            several => self.print_several(&address, several, out)?,
        }
        Ok(())
    }

    /// Rule 19: without a time, all that ever stood there.
    fn print_several(
        &self,
        address: &str,
        occupants: &[Occupant],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match self.style {
            Style::Text => {
                let several = occupants.len();
                match self.time {
                    None => writeln!(
                        out,
                        "{address} Ambiguous: {several} occupants over time; say --time"
                    )?,
                    Some(_) => writeln!(out, "{address} Ambiguous: {several} images of that name")?,
                }
                for occupant in occupants {
                    let life = format!("  {:<26}", occupant.life.map_or(String::new(), show_life));
                    shown::print(Style::Text, &life, &occupant.frames, out)?;
                }
            }
            Style::Json => {
                let unknown = Unknown {
                    address,
                    name_reason: NameReason::Ambiguous.as_str(),
                };
                let line = Line {
                    address,
                    frames: &[unknown],
                };
                shown::print_object(&Several { line, occupants }, out)?;
            }
            // These layouts know one answer only, and a wrong one is worse than none.
            Style::Llvm | Style::Gnu => {
                let why = ("Ambiguous", NameReason::Ambiguous);
                shown::print_unknown(self.style, address, why, out)?;
            }
        }
        Ok(())
    }
}

impl Source for TraceSource {
    fn print(&mut self, questions: &[Question<'_>], out: &mut dyn Write) -> Result<()> {
        for question in questions {
            if let Some(known) = self.kept.get(question.text) {
                out.write_all(known)?;
                continue;
            }
            let mut text = Vec::new();
            self.render(question, &mut text)?;
            out.write_all(&text)?;
            if self.kept_bytes > MAX_KEPT {
                self.kept.clear();
                self.kept_bytes = 0;
            }
            self.kept_bytes += text.len() + question.text.len() + 64;
            self.kept.insert(question.text.to_owned(), text.into());
        }
        Ok(())
    }

    fn labels(&mut self, questions: &[Question<'_>]) -> Result<Vec<Option<String>>> {
        let label = |question: &Question<'_>| {
            let occupants = self.occupants(question.place?);
            let mut labels: Vec<String> = occupants
                .iter()
                .filter_map(|o| shown::in_text(&o.frames))
                .collect();
            labels.dedup();
            (!labels.is_empty()).then(|| labels.join(" | "))
        };
        Ok(questions.iter().map(label).collect())
    }
}

fn show_life(life: Life) -> String {
    let from = if life.from == 0 {
        String::new()
    } else {
        show_time(life.from)
    };
    let to = if life.to == u64::MAX {
        String::new()
    } else {
        show_time(life.to)
    };
    format!("{from}..{to}")
}
