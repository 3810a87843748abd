//! Names of the runtime's events that have no typed decoder.

use crate::Provider;

/// The published name of an event that has no typed decoder.
pub(crate) fn name_only(provider: &Provider, id: u32) -> Option<&'static str> {
    let _ = (provider, id);
    None
}
