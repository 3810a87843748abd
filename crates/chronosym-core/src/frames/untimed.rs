//! Frames of symbols without a time (rule 18).

use super::FrameBuilder;
use crate::evidence::{Certainty, Evidence, LineReason, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::BinarySource;
use crate::images::simple_name;
use crate::resolve::AddressAt;
use crate::source_line::SourceLine;

impl FrameBuilder<'_> {
    /// Returns the frame of a symbol. `is_contested` means that symbols with other names also cover
    /// the address.
    pub(super) fn untimed_frame(
        &mut self,
        at: AddressAt,
        index: usize,
        is_contested: bool,
    ) -> Frame {
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
        // Perf maps name compiled code; in a recorder's symbols it has a tier, or no module.
        let is_recorded = symbol.evidence == Evidence::ProcessSymbol
            && symbol.tier.is_none()
            && !module.is_empty();
        let line = match symbol.line {
            (_, 0) if is_recorded && self.is_native(at) => Err(LineReason::NoLineInfo),
            (_, 0) => Err(LineReason::NoILMap),
            _ if !wants_lines => Err(LineReason::LinesDisabled),
            (file, line) => Ok(self.functions.line(SourceLine {
                file: self.text(file).into(),
                line,
                column: None,
            })),
        };
        Frame {
            code: Code::Untimed(at.process, index as u32),
            offset: Some(self.distance(at.address, symbol.start)),
            line,
            inlined: symbol.is_inlined,
            tier: symbol.tier,
            evidence: Some(symbol.evidence),
            certainty: Some(Certainty::Inferred.or_guess(is_contested)),
            ..Frame::bare(at.address, function, NameReason::NoName)
        }
    }

    /// Returns whether an image without managed code has an address.
    fn is_native(&self, at: AddressAt) -> bool {
        let mut images = self.timeline.images_at(at.process, at.address);
        images.any(|view| {
            let image = &view.image;
            let path = image.path.to_ascii_lowercase();
            let is_pe = path.ends_with(".dll") || path.ends_with(".exe");
            !is_pe && image.part.is_none() && image.pdb.is_none()
        })
    }
}
