//! Addresses of a trace's processes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use chronosym::symbols::Symbolizer;
use chronosym::{
    Answer, Candidate, Frame, Lifetime, NameReason, Position, ProcessIndex, SampleSelection, When,
    file_name,
};
use chronosym_symbols::style::Style;
use chronosym_types::json::{self, FrameObject};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::shown::{self, Layout, of_frame};
use super::source::{Answers, Source};
use crate::args::Symbolize;
use crate::load::{self, Loaded};
use crate::progress;
use crate::request::{AddressRequest, At, Target};
use crate::units::show_time;

/// Maximum size of cached answers, in bytes: real lists repeat the same addresses.
const MAX_KEPT: usize = 64 << 20;

/// Several bodies were at the address.
const AMBIGUOUS: shown::Why = ("Ambiguous", NameReason::Ambiguous);
/// The process has no image with the name.
const NO_IMAGE: shown::Why = ("no such image", NameReason::InvalidAddress);

pub struct TraceSource {
    loaded: Loaded,
    symbols: Arc<Symbolizer>,
    /// All processes that had the pid, unless a time selects one.
    processes: Vec<ProcessIndex>,
    time: Option<u64>,
    position: Position,
    images: Vec<Image>,
    kept: HashMap<String, Arc<[u8]>>,
    kept_bytes: usize,
}

/// An image of the process or the kernel.
struct Image {
    process: ProcessIndex,
    names: [String; 2],
    base: u64,
    life: Lifetime,
}

/// An occupant of an address, and its lifetime if the answer depends on time.
#[derive(Serialize)]
struct Occupant {
    #[serde(flatten, serialize_with = "bounds")]
    life: Option<Lifetime>,
    #[serde(rename = "frames")]
    object: Box<RawValue>,
    #[serde(skip)]
    frames: Vec<Frame>,
    /// Whether there is code or an image at the address.
    #[serde(skip)]
    stands: bool,
}

impl PartialEq for Occupant {
    fn eq(&self, other: &Self) -> bool {
        self.life == other.life && self.object.get() == other.object.get()
    }
}

/// Serializes the bounds that a lifetime has.
fn bounds<S: Serializer>(life: &Option<Lifetime>, serializer: S) -> Result<S::Ok, S::Error> {
    let from = life.map(|life| ("from_ns", life.from));
    let to = life.map(|life| ("to_ns", life.to));
    let bounds = from.filter(|(_, at)| *at > 0).into_iter();
    serializer.collect_map(bounds.chain(to.filter(|(_, at)| *at < u64::MAX)))
}

/// All occupants of an address over time.
#[derive(Serialize)]
struct Several<'a> {
    address: &'a str,
    frames: [FrameObject<'a>; 1],
    occupants: &'a [Occupant],
}

impl TraceSource {
    /// Opens a trace. If the requests are the only ones for a saved timeline, only a part of it is
    /// read.
    pub fn open(trace: &Path, args: &Symbolize, requests: &[AddressRequest<'_>]) -> Result<Self> {
        let traces = [trace.to_path_buf()];
        let addresses = requests.iter().map(|request| match request.target?.at {
            At::Address(address) => Some(address),
            _ => None,
        });
        let part = match addresses.collect::<Option<Vec<u64>>>() {
            Some(addresses) if !addresses.is_empty() && args.symbols.perf_map.is_empty() => {
                load::part(trace, &args.query, &addresses)?
            }
            _ => None,
        };
        let loaded = match part {
            Some(part) => part,
            None => load::load(&traces, SampleSelection::None, &args.symbols)?,
        };
        progress::notes(&loaded.diagnostics.list);
        let timeline = &loaded.timeline;
        let processes = load::processes(timeline, &args.query)?;
        let images = processes.iter().flat_map(|&process| {
            let images = timeline.images_in_space(process);
            images.map(move |view| Image {
                process,
                names: [
                    view.name.to_lowercase(),
                    file_name(view.image.path).to_lowercase(),
                ],
                base: view.image.base,
                life: view.lifetime,
            })
        });
        let images = images.collect();
        Ok(TraceSource {
            symbols: crate::symbolizer::open(&args.symbols, &loaded)?,
            processes,
            time: args.query.time_ns(),
            position: args.query.position(),
            images,
            kept: HashMap::new(),
            kept_bytes: 0,
            loaded,
        })
    }

    /// Returns the addresses in a process that a target can mean, each with the lifetime of the
    /// image that it is relative to.
    fn addresses(&self, process: ProcessIndex, place: Target<'_>) -> Vec<(u64, Option<Lifetime>)> {
        let (name, rva) = match (place.file, place.at) {
            (_, At::Address(address)) => return vec![(address, None)],
            (Some(file), At::Rva(rva)) => (file_name(file).to_lowercase(), rva),
            _ => return Vec::new(),
        };
        let own = self.images.iter().filter(|i| i.process == process);
        let named = own.filter(|i| i.names.contains(&name));
        let alive = named.filter(|i| self.time.is_none_or(|t| i.life.contains(t)));
        let mut found: Vec<(u64, Option<Lifetime>)> = Vec::new();
        for image in alive {
            let address = image.base.wrapping_add(rva);
            if found.iter().all(|(known, _)| *known != address) {
                found.push((address, Some(image.life)));
            }
        }
        found
    }

    fn occupants(&self, place: Target<'_>) -> Result<Vec<Occupant>> {
        let several = self.processes.len() > 1;
        let mut all: Vec<Occupant> = Vec::new();
        for &process in &self.processes {
            for occupant in self.occupants_in(process, place, several)? {
                // The kernel is the same in all processes.
                if !all.contains(&occupant) {
                    all.push(occupant);
                }
            }
        }
        // Ignore processes without an occupant at the address.
        if several && all.iter().any(|occupant| occupant.stands) {
            all.retain(|occupant| occupant.stands);
        } else if several {
            all.truncate(1);
        }
        Ok(all)
    }

    fn occupants_in(
        &self,
        process: ProcessIndex,
        place: Target<'_>,
        several: bool,
    ) -> Result<Vec<Occupant>> {
        let addresses = self.addresses(process, place);
        let several = several || addresses.len() > 1;
        let mut all = Vec::new();
        for (address, of_image) in addresses {
            let (timeline, symbols) = (&self.loaded.timeline, Some(&*self.symbols as _));
            let when = self.time.map_or(When::Unknown, When::At);
            match timeline.resolve(process, address, when, self.position, symbols) {
                // Rule 19: the sole occupant is the answer.
                Answer::One(candidate) => {
                    let life = candidate.lifetime.map(|life| of_image.unwrap_or(life));
                    all.push(self.occupant(&candidate, life.filter(|_| several))?);
                }
                Answer::Ambiguous(candidates) => {
                    for candidate in &candidates {
                        all.push(self.occupant(candidate, candidate.lifetime)?);
                    }
                }
            }
        }
        Ok(all)
    }

    fn occupant(&self, candidate: &Candidate, life: Option<Lifetime>) -> Result<Occupant> {
        let timeline = &self.loaded.timeline;
        let frames = candidate.frames.iter();
        let objects: Vec<_> = frames
            .clone()
            .map(|frame| chronosym_export::frame_object(frame, timeline))
            .collect();
        Ok(Occupant {
            life,
            object: json::to_raw_value(&objects)?,
            stands: frames.clone().any(|frame| frame.evidence.is_some()),
            frames: frames.cloned().collect(),
        })
    }

    fn write(
        &self,
        question: &AddressRequest<'_>,
        layout: Layout,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Some(place) = question.target else {
            let why = shown::NO_ADDRESS;
            layout.write_unknown(question, question.text, why, out);
            return Ok(());
        };
        let occupants = self.occupants(place)?;
        let address = match place.at {
            At::Address(address) => format!("{address:#x}"),
            _ => question.text.to_owned(),
        };
        match occupants.as_slice() {
            [] => _ = layout.write_unknown(question, &address, NO_IMAGE, out),
            [only] => self.write_one(question, &address, only, layout, out),
            several => return self.write_several(question, &address, several, layout, out),
        }
        Ok(())
    }

    fn write_one(
        &self,
        question: &AddressRequest<'_>,
        before: &str,
        occupant: &Occupant,
        layout: Layout,
        out: &mut Vec<u8>,
    ) {
        let timeline = &self.loaded.timeline;
        let frames = occupant.frames.iter();
        let frames = frames.map(|frame| of_frame(frame, timeline));
        layout.write(question, before, frames, out);
    }

    /// Writes all occupants over time (rule 19).
    fn write_several(
        &self,
        question: &AddressRequest<'_>,
        address: &str,
        occupants: &[Occupant],
        layout: Layout,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match layout {
            Layout::InText => {
                let mut labels: Vec<Vec<u8>> = Vec::new();
                for occupant in occupants {
                    let mut label = Vec::new();
                    self.write_one(question, "", occupant, layout, &mut label);
                    if !label.is_empty() && labels.last() != Some(&label) {
                        labels.push(label);
                    }
                }
                out.extend(labels.join(&b" | "[..]));
            }
            Layout::Lines(Style::Text, _) => {
                let several = occupants.len();
                let why = match self.time {
                    None => format!("{several} answers at different times; add --time"),
                    Some(_) => format!("{several} images with that name"),
                };
                out.extend(format!("{address} Ambiguous: {why}\n").bytes());
                for occupant in occupants {
                    let life = format!("  {:<26}", occupant.life.map_or(String::new(), show_life));
                    self.write_one(question, &life, occupant, layout, out);
                }
            }
            Layout::Lines(Style::Json, _) | Layout::Objects => {
                let several = Several {
                    address,
                    frames: [shown::unknown(question, AMBIGUOUS)],
                    occupants,
                };
                json::to_writer(&mut *out, &several)?;
                out.push(b'\n');
            }
            // These layouts allow one answer only, and a wrong one is worse than none.
            Layout::Lines(..) | Layout::LlvmObjects(_) | Layout::Markup => {
                layout.write_unknown(question, address, AMBIGUOUS, out);
            }
        }
        Ok(())
    }

    /// Returns the answer to a request. In lists it is cached; in a text the same words may refer
    /// to different addresses.
    fn answer_of(&mut self, question: &AddressRequest<'_>, layout: Layout) -> Result<Arc<[u8]>> {
        let is_kept = matches!(layout, Layout::Lines(..));
        if let Some(known) = self.kept.get(question.text).filter(|_| is_kept) {
            return Ok(Arc::clone(known));
        }
        let mut text = Vec::new();
        self.write(question, layout, &mut text)?;
        let text: Arc<[u8]> = text.into();
        if is_kept {
            if self.kept_bytes > MAX_KEPT {
                self.kept.clear();
                self.kept_bytes = 0;
            }
            self.kept_bytes += text.len() + question.text.len() + 64;
            self.kept
                .insert(question.text.to_owned(), Arc::clone(&text));
        }
        Ok(text)
    }
}

impl Source for TraceSource {
    fn answer<'s>(
        &'s mut self,
        questions: Vec<AddressRequest<'s>>,
        layout: Layout,
    ) -> Result<Answers<'s>> {
        let answers: Result<Vec<Arc<[u8]>>> = questions
            .iter()
            .map(|q| self.answer_of(q, layout))
            .collect();
        let answers = answers?;
        Ok(Box::new(move |index, out| {
            let answer = &answers[index];
            out.extend_from_slice(answer);
            let is_known = match layout {
                Layout::Objects => String::from_utf8_lossy(answer).contains(r#""name":"#),
                _ => !answer.is_empty(),
            };
            (!is_known).then(|| "no name".into())
        }))
    }
}

fn show_life(life: Lifetime) -> String {
    let bound = |at, open| match at == open {
        true => String::new(),
        false => show_time(at),
    };
    format!("{}..{}", bound(life.from, 0), bound(life.to, u64::MAX))
}
