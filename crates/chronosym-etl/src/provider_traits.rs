//! What TraceLogging providers say of themselves (layout: `TraceLoggingProvider.h`).

use std::borrow::Cow;

use chronosym_types::{AStr, Cursor, Guid, bytes};

/// Name of a provider and what else it declared of itself.
#[derive(Clone, Copy, Debug)]
pub struct ProviderTraits<'a> {
    name: AStr<'a>,
    traits: &'a [u8],
}

impl<'a> ProviderTraits<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::new(sized(data)?);
        let name = cursor.narrow().ok()?;
        let traits = cursor.rest();
        Some(Self { name, traits })
    }

    /// Name of the provider.
    pub fn name(&self) -> Cow<'a, str> {
        self.name.to_text()
    }

    /// Provider group, if it belongs to one.
    pub fn group(&self) -> Option<Guid> {
        const GROUP: u8 = 1;
        self.traits()
            .find(|(kind, _)| *kind == GROUP)
            .and_then(|(_, data)| bytes::guid(data, 0))
    }

    /// Type and data of every trait.
    pub fn traits(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut rest = self.traits;
        std::iter::from_fn(move || {
            let size = usize::from(bytes::u16(rest, 0)?);
            let item = (*rest.get(2)?, rest.get(3..size)?);
            rest = rest.get(size..).unwrap_or_default();
            Some(item)
        })
    }
}

/// A blob that begins with its own size; shorter data than that is taken as it is.
fn sized(data: &[u8]) -> Option<&[u8]> {
    let size = usize::from(bytes::u16(data, 0)?);
    data.get(2..size.min(data.len()))
}
