//! Elements of symbolizer markup with an address, and the text in place of them.

use chronosym_types::json::FrameObject;

use crate::output::printable;
use crate::request::AddressRequest;

/// Returns the tag and the fields of an element.
pub fn fields(element: &str) -> (&str, Vec<&str>) {
    let mut parts = element.split(':');
    let tag = parts.next().unwrap_or_default();
    (tag, parts.collect())
}

/// Returns an element that has no answer.
pub fn raw(element: &str) -> String {
    format!("[[[{}]]]", printable(element))
}

/// Appends the text in place of `pc`, the function and its line, or of `bt`, which has a line for
/// each frame. The request's text is the element, and its target has the module.
pub fn write<'a>(
    request: &AddressRequest<'_>,
    frames: impl IntoIterator<Item = FrameObject<'a>>,
    out: &mut Vec<u8>,
) {
    let frames: Vec<_> = frames.into_iter().collect();
    let text = match fields(request.text) {
        ("bt", fields) => backtrace(request, fields.first().unwrap_or(&""), &frames),
        _ => code(&frames).unwrap_or_else(|| raw(request.text)),
    };
    out.extend(text.bytes());
}

/// Appends the text in place of `data`: the name of a variable.
pub fn write_name(request: &AddressRequest<'_>, name: &str, out: &mut Vec<u8>) {
    match name {
        "" => out.extend(raw(request.text).bytes()),
        name => out.extend(printable(name).bytes()),
    }
}

/// Returns the name and the file of a frame. If only one is known, the other has the tool's
/// placeholder.
fn parts(frame: &FrameObject<'_>) -> Option<[String; 2]> {
    let parts = [frame.name, frame.file];
    let is_known = parts.iter().any(Option::is_some);
    is_known.then(|| parts.map(|part| printable(part.unwrap_or("<invalid>")).into_owned()))
}

/// Returns the outermost function and the line of the innermost.
fn code(frames: &[FrameObject<'_>]) -> Option<String> {
    let (inner, outer) = (frames.first()?, frames.last()?);
    let ([_, file], [name, _]) = (parts(inner)?, parts(outer)?);
    Some(format!("{name}[{file}:{}]", inner.line.unwrap_or(0)))
}

fn backtrace(request: &AddressRequest<'_>, number: &str, frames: &[FrameObject<'_>]) -> String {
    let number = format!("#{}", number.parse().unwrap_or(0_u64));
    let target = request.target;
    let module = target.and_then(|target| target.file).unwrap_or_default();
    let rva = target.and_then(|target| target.address()).unwrap_or(0);
    let place = format!("({}+{rva:#x})", printable(module));
    let address = request.shown_address().unwrap_or(0);
    let last = frames.len().saturating_sub(1);
    let lines = frames.iter().enumerate().map(|(at, frame)| {
        let inlined = match at < last {
            true => format!(".{:<2}", at + 1),
            false => "   ".to_owned(),
        };
        let start = format!("{number:>6}{inlined} {address:#018x}");
        match parts(frame) {
            None => format!("{start} {place}"),
            Some([name, file]) => {
                let [line, column] = [frame.line, frame.column].map(|number| number.unwrap_or(0));
                format!("{start} {name} {file}:{line}:{column} {place}")
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}
