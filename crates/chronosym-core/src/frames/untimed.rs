//! Frames of symbols without a time (rule 18).

use std::ops::Range;

use super::FrameBuilder;
use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::BinarySource;
use crate::images::simple_name;
use crate::resolve::{AddressAt, CodeAt, Location};
use crate::source_line::SourceLine;

impl FrameBuilder<'_> {
    /// Appends the frame of a symbol, after the functions that the symbol file of its image has
    /// inlined at the address; returns the times for which they are valid. `is_contested` means
    /// that symbols with other names also cover the address.
    pub(super) fn untimed_frames(
        &mut self,
        at: AddressAt,
        (index, is_contested): (usize, bool),
        location: &Location,
        out: &mut Vec<Frame>,
    ) -> Range<u64> {
        let space = &self.timeline.spaces[at.process.index()];
        let symbols = &space.state.untimed.symbols;
        let symbol = &symbols[index];
        let module = self.text(symbol.module);
        let source = BinarySource::Name(symbol.module);
        let binary = self
            .functions
            .binary(source, || match symbol.evidence == Evidence::Profile {
                true => (simple_name(module), module, None),
                false => (module, "", None),
            });
        let function = self.timeline_function(binary.as_ref(), symbol.name, at.address);
        let wants_lines = self.symbols.is_none_or(|symbols| symbols.wants_lines());
        let image = self.timeline.image_of_symbol(at, location);
        let valid = image.as_ref().map_or(&location.valid, |image| &image.valid);
        let valid = valid.clone();
        let line = match (symbol.line, image) {
            ((_, 0), Some(image)) => self.line_of_image(at, &image, out),
            ((_, 0), None) => Err(LineReason::NoILMap),
            _ if !wants_lines => Err(LineReason::LinesDisabled),
            ((file, line), _) => Ok(self.functions.line(SourceLine {
                file: self.text(file).into(),
                line,
                column: None,
            })),
        };
        out.push(Frame {
            code: Code::Untimed(at.process, index as u32),
            offset: Some(self.distance(at.address, symbol.start)),
            line,
            inlined: symbol.is_inlined,
            tier: symbol.tier,
            evidence: Some(symbol.evidence),
            certainty: Some(Certainty::Inferred.or_guess(is_contested)),
            ..Frame::bare(at.address, function, NameReason::NoName)
        });
        valid
    }

    /// Returns the line of the function at an address of a native image, and appends the functions
    /// that are inlined there.
    fn line_of_image(
        &mut self,
        at: AddressAt,
        image: &Location,
        out: &mut Vec<Frame>,
    ) -> Result<SourceLine, LineReason> {
        let CodeAt::Image(owner, index) = image.code else {
            return Err(LineReason::NoLineInfo);
        };
        let before = out.len();
        self.image_frames(at, owner, index, image, out);
        let inlinees = out.len().saturating_sub(1).max(before);
        let function = out.drain(inlinees..).next_back();
        for inlinee in &mut out[before..] {
            // The symbol that the file proves has no lifetime itself.
            inlinee.certainty = inlinee.certainty.map(|it| it.max(Certainty::Inferred));
        }
        match function {
            Some(Frame { line: Ok(line), .. }) => Ok(line),
            Some(frame) => Err(match frame.name() {
                Err(reason) => reason.of_line(),
                Ok(_) => frame.line_reason().unwrap_or(LineReason::NoLineInfo),
            }),
            None => Err(LineReason::NoLineInfo),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::facts::{At, Image, Symbol, Text};
    use crate::{
        Action, Certainty, Evidence, Frame, ImageRef, LineReason, NameReason, NativeFrame, Options,
        Position, Session, SourceLine, SymbolSource,
    };

    /// A file with a function and another one that is inlined into it, or why there is none.
    struct File(Option<NameReason>);

    impl SymbolSource for File {
        fn native(&self, image: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
            assert_eq!((image.path, rva), ("/usr/lib/libx.so", 0x210));
            let at = |name: &str, line| NativeFrame {
                line: Ok(SourceLine::new("x.c".into(), line, None)),
                ..NativeFrame::new(name)
            };
            match self.0 {
                Some(reason) => Err(reason),
                None => Ok(vec![at("inlined", 7), at("alias", 20)]),
            }
        }
    }

    /// The frames of an address that a recorder named, in an image with this path.
    fn frames(path: &str, symbols: Option<&dyn SymbolSource>) -> Vec<Frame> {
        let mut session = Session::new(Options::default());
        let at = At::new(0).process(42);
        session.apply(at, Image::new(Action::Load, 0x1000, 0x1000, path));
        let symbol = Symbol {
            module: Text::from("libx"),
            evidence: Evidence::ProcessSymbol,
            ..Symbol::new(0x1200, 0x12ff, "recorded")
        };
        session.apply(at, symbol);
        let timeline = session.finish();
        let process = timeline.find_process(42, None).unwrap();
        timeline.frames(process, 0x1210, 100, Position::Exact, symbols)
    }

    #[test]
    fn a_symbol_file_adds_lines_and_inlined_functions_to_recorded_names() {
        let frames = frames("/usr/lib/libx.so", Some(&File(None)));
        let shown = frames.iter().map(|frame| {
            let line = frame.line.as_ref().unwrap().line;
            (frame.name().unwrap(), line, frame.inlined, frame.evidence)
        });
        let expected = [
            ("inlined", 7, true, Some(Evidence::Image)),
            ("recorded", 20, false, Some(Evidence::ProcessSymbol)),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        let certainty = frames.iter().map(|frame| frame.certainty);
        assert!(certainty.eq([Some(Certainty::Inferred); 2]));
    }

    #[test]
    fn the_reason_for_no_line_is_that_of_the_symbol_file() {
        for (reason, expected) in [
            (NameReason::NoSymbolFile, LineReason::NoSymbolFile),
            (NameReason::Offline, LineReason::Offline),
            (NameReason::NoName, LineReason::NoLineInfo),
        ] {
            let frames = frames("/usr/lib/libx.so", Some(&File(Some(reason))));
            let shown: Vec<_> = frames
                .iter()
                .map(|it| (it.name(), it.line_reason()))
                .collect();
            assert_eq!(shown, [(Ok("recorded"), Some(expected))]);
        }
        // Code of a file with IL has no line of that file.
        let frames = frames("/app/x.dll", Some(&File(None)));
        assert_eq!(frames[0].line_reason(), Some(LineReason::NoILMap));
    }
}
