//! Frames of native images.

use super::FrameBuilder;
use crate::evidence::{Evidence, NameReason};
use crate::frame::{Code, Frame};
use crate::functions::BinarySource;
use crate::ids::{ImageIndex, ProcessIndex};
use crate::resolve::{AddressAt, Location};
use crate::symbol_source::NativeFrame;

/// Functions to which signal handlers return, of the C libraries (glibc, musl) and of Linux's vDSO.
const TRAMPOLINES: [&str; 6] = [
    "__restore_rt",
    "__restore",
    "__default_rt_sa_restorer",
    "__default_sa_restorer",
    "__kernel_rt_sigreturn",
    "__kernel_sigreturn",
];

/// Returns whether a frame is at the start of a function to which signal handlers return.
fn is_trampoline(frame: &NativeFrame) -> bool {
    frame.offset == Some(0) && TRAMPOLINES.contains(&&*frame.name)
}

impl FrameBuilder<'_> {
    /// Appends the frames of an image: those of its symbol file, or one with the reason for the
    /// missing name.
    pub(super) fn image_frames(
        &mut self,
        at: AddressAt,
        process: ProcessIndex,
        index: ImageIndex,
        location: &Location,
        out: &mut Vec<Frame>,
    ) {
        let timeline = self.timeline;
        let image = &timeline.spaces[process.index()].state.images[index.index()];
        let own = timeline.normalise(at.address);
        let rva = image.rva(own);
        let mut looked_up = location.looked_up;
        let frames = match self.symbols {
            _ if image.is_function => Ok(vec![NativeFrame {
                offset: Some(image.rva(looked_up)),
                ..NativeFrame::new(self.text(image.path))
            }]),
            None => Err(NameReason::NoSymbolFile),
            Some(symbols) => {
                let mut file = timeline.image_of(process, index);
                let identity = || file.identity();
                file.identity = Some(self.functions.identity_of(process, index, identity));
                let called = symbols.native(&file, image.rva(looked_up));
                let is_named = matches!(&called, Ok(frames) if !frames.is_empty());
                match looked_up != own && !is_named {
                    // Rule 9: a signal handler returns to the start of the trampoline.
                    true => match symbols.native(&file, rva) {
                        Ok(frames) if frames.last().is_some_and(is_trampoline) => {
                            looked_up = own;
                            Ok(frames)
                        }
                        _ => called,
                    },
                    false => called,
                }
            }
        };
        let binary = self
            .functions
            .binary(BinarySource::Image(process, index), || {
                let text = |id| timeline.names.strings.get(id);
                let build_id = Some(text(image.build_id)).filter(|id| !id.is_empty());
                let pdb = image.il_pdb.as_ref().or(image.pdb.as_ref());
                let identity = pdb.map(|pdb| format!("{:#}", pdb.id));
                let identity = identity.or(build_id.map(str::to_owned));
                (text(image.simple_name), text(image.path), identity)
            });
        let code = Code::Image {
            process,
            image: index,
            rva,
        };
        let (frames, reason) = match frames {
            Ok(frames) => (frames, NameReason::NoName),
            Err(reason) => (Vec::new(), reason),
        };
        if frames.is_empty() {
            let function = self
                .functions
                .unnamed(binary.as_ref(), Some(rva), at.address);
            out.push(Frame {
                code,
                evidence: Some(Evidence::Image),
                certainty: Some(location.certainty),
                after_loss: location.after_loss,
                ..Frame::bare(at.address, function, reason)
            });
        }
        let outermost = frames.len().saturating_sub(1);
        // Frames are reported at their own address; the call before it was looked up.
        let back = self.distance(at.address, looked_up);
        for (i, native) in frames.into_iter().enumerate() {
            let function = match native.managed {
                true => self.managed_function(binary.as_ref(), &native.name, None),
                // Names of native code are never rewritten.
                false => self
                    .functions
                    .named(binary.as_ref(), &native.name, None, None),
            };
            out.push(Frame {
                code,
                offset: native.offset.map(|offset| offset + back),
                line: native.line.map(|line| self.functions.line(line)),
                inlined: i != outermost,
                evidence: Some(native.evidence),
                certainty: Some(location.certainty.or_guess(native.approximate)),
                after_loss: location.after_loss,
                symbol_file: native.symbol_file,
                ..Frame::bare(
                    at.address,
                    function,
                    match native.name_limited {
                        true => NameReason::LimitReached,
                        false => NameReason::NoName,
                    },
                )
            });
        }
    }
}
