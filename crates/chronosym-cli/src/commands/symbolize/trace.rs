//! Addresses of a trace's processes.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{Life, NameReason, Position, ProcessIndex, SampleSelection, file_name};

use super::Source;
use super::question::{Place, Question};
use super::shown::{self, Shown};
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
#[derive(PartialEq)]
struct Occupant {
    life: Option<Life>,
    frames: Vec<Shown>,
    /// Whether it is code, or an image at least.
    stands: bool,
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
            symbols: crate::symbols::open(&args.symbols)?,
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
            let looked_up = self.position.looked_up(address);
            if let Some(time) = self.time {
                all.push(self.occupant(process, address, time, None));
                continue;
            }
            let lives = self.loaded.timeline.lives_at(process, looked_up);
            match lives.as_slice() {
                [] => all.push(self.occupant(process, address, u64::MAX, None)),
                // Rule 19: the sole occupant answers.
                [life] if !several => all.push(self.occupant(process, address, life.from, None)),
                [life] => {
                    all.push(self.occupant(process, address, life.from, of_image.or(Some(*life))));
                }
                _ => all.extend(
                    lives
                        .iter()
                        .map(|life| self.occupant(process, address, life.from, Some(*life))),
                ),
            }
        }
        all
    }

    fn occupant(
        &self,
        process: ProcessIndex,
        address: u64,
        time: u64,
        life: Option<Life>,
    ) -> Occupant {
        let frames =
            self.loaded
                .timeline
                .frames(process, address, time, self.position, Some(&self.symbols));
        Occupant {
            life,
            stands: frames.iter().any(|frame| frame.evidence.is_some()),
            frames: frames.iter().map(Shown::of).collect(),
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
                let mut text = String::from("{\"address\":");
                chronosym_export::push_json_string(address, &mut text);
                text.push_str(",\"frames\":[{\"address\":");
                chronosym_export::push_json_string(address, &mut text);
                text.push_str(",\"name_reason\":\"Ambiguous\"}],\"occupants\":[");
                for (i, occupant) in occupants.iter().enumerate() {
                    if i > 0 {
                        text.push(',');
                    }
                    let mut object = chronosym_export::JsonObject::begin(&mut text);
                    let life = occupant.life;
                    object
                        .value("from_ns", life.map(|l| l.from).filter(|&from| from > 0))
                        .value("to_ns", life.map(|l| l.to).filter(|&to| to < u64::MAX));
                    shown::push_objects(&occupant.frames, object.key("frames"));
                    object.end();
                }
                text.push_str("]}");
                writeln!(out, "{text}")?;
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
