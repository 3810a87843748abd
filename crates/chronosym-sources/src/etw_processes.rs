//! Processes and images of `Microsoft-Windows-Kernel-Process`, for traces without the kernel
//! logger's own events.

use chronosym_core::Session;
use chronosym_core::facts::{At, Image, Process};
use chronosym_core::simple_name;
use chronosym_events::{Action, FieldList, RawEvent, Value};

/// Applies an event of the provider.
pub(super) fn apply(event: &RawEvent<'_>, session: &mut Session) {
    let Ok(Some(fields)) = event.fields() else {
        return;
    };
    let action = match event.schema.id() {
        Some(1 | 5) => Action::Load,
        Some(2 | 6) => Action::Unload,
        Some(15) => Action::DCStart,
        _ => return,
    };
    let Some(pid) = number(&fields, "ProcessID").and_then(|pid| pid.try_into().ok()) else {
        return;
    };
    let at = At::new(event.time_ns).process(pid);
    let path = text(&fields, "ImageName");
    match number(&fields, "ImageBase").zip(number(&fields, "ImageSize")) {
        Some((base, size)) => {
            let mut image = Image::new(action, base, size, &*path);
            let timestamp = number(&fields, "TimeDateStamp").and_then(|it| it.try_into().ok());
            image.timestamp = timestamp.filter(|&it| it != 0);
            session.apply(at, image);
        }
        None => session.apply(at, Process::new(action, simple_name(&path))),
    }
}

fn value<'f, 'a>(fields: &'f FieldList<'a>, name: &str) -> Option<&'f Value<'a>> {
    let mut fields = fields.iter();
    fields.find(|(own, _)| *own == name).map(|(_, value)| value)
}

fn number(fields: &FieldList<'_>, name: &str) -> Option<u64> {
    match *value(fields, name)? {
        Value::U64(number) | Value::Hex(number) => Some(number),
        _ => None,
    }
}

fn text(fields: &FieldList<'_>, name: &str) -> String {
    match value(fields, name) {
        Some(Value::Wide(text)) => text.to_string(),
        Some(Value::Narrow(text)) => text.to_string(),
        _ => String::new(),
    }
}
