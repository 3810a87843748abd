//! Frames as objects, for loops over a few of them.

use pyo3::prelude::*;

/// What is known of the code at an address; None stands for what is unknown.
#[pyclass(module = "chronosym", frozen, get_all)]
pub struct Frame {
    /// The address, as in the stack.
    address: u64,
    /// Simple name of the module or image.
    module: Option<String>,
    /// The method with namespace and type; of native code the demangled symbol.
    method: Option<String>,
    /// The signature as the runtime spells it.
    signature: Option<String>,
    /// Bytes from the start of the code body or symbol.
    offset: Option<u64>,
    /// The source file.
    file: Option<String>,
    /// The source line.
    line: Option<u32>,
    /// The column in the source line.
    column: Option<u32>,
    /// Whether the frame is inlined into the next one that is not.
    inlined: bool,
    /// How the code was compiled.
    tier: Option<&'static str>,
    /// What the answer rests on.
    evidence: Option<&'static str>,
    /// How sure the answer is.
    certainty: Option<&'static str>,
    /// Why there is no name, or not all of it.
    name_reason: Option<&'static str>,
    /// Why a frame with a name has no line.
    line_reason: Option<&'static str>,
    /// `module!method`, `module!+0xrva`, or the address.
    label: String,
}

impl From<&chronosym::Frame> for Frame {
    fn from(frame: &chronosym::Frame) -> Self {
        let line = frame.line.as_ref().ok();
        Frame {
            address: frame.address,
            module: frame.module().map(str::to_owned),
            method: frame.name().ok().map(str::to_owned),
            signature: frame.signature().map(str::to_owned),
            offset: frame.offset,
            file: line.map(|line| line.file.to_string()),
            line: line.map(|line| line.line),
            column: line.and_then(|line| line.column),
            inlined: frame.inlined,
            tier: frame.tier.map(|it| it.name()),
            evidence: frame.evidence.map(|it| it.as_str()),
            certainty: frame.certainty.map(|it| it.as_str()),
            name_reason: frame.name_reason().map(|it| it.as_str()),
            line_reason: frame.line_reason().map(|it| it.as_str()),
            label: frame.label().to_owned(),
        }
    }
}

#[pymethods]
impl Frame {
    fn __repr__(&self) -> String {
        format!("Frame({:#x} {})", self.address, self.label)
    }

    fn __str__(&self) -> &str {
        &self.label
    }
}
