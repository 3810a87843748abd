//! Reads the addresses of methods from an EventPipe trace.

use std::io::Read;

use chronosym_events::{Event, EventKey, Provider};
use chronosym_nettrace::{EventType, Reader};

use super::types::{Schemas, raw_event, schema};

/// Number of precompiled methods that suffices to distinguish processes.
const MAX_PRECOMPILED: usize = 256;
const MAX_JITTED: usize = 4096;

/// Addresses of methods in the traced process; the first ones of each kind.
#[derive(Debug, Default)]
pub(crate) struct MethodAddresses {
    pub precompiled: Vec<u64>,
    pub jitted: Vec<u64>,
}

impl MethodAddresses {
    /// Reads a trace until it has enough precompiled methods, which most traces list at the end.
    pub fn read(mut reader: Reader<impl Read>) -> Self {
        reader.select(is_method_event);
        let mut methods = MethodAddresses::default();
        let mut schemas = Schemas::default();
        while let Ok(Some(region)) = reader.next_region() {
            for record in region.records() {
                let schema = schemas.of(region.event_types(), &record);
                let event = raw_event(&record, region.header().pointer_size, schema).decode();
                let Ok(Some(Event::Method(method))) = event else {
                    continue;
                };
                let (kind, max) = match method.flags.is_jitted() || method.flags.is_dynamic() {
                    true => (&mut methods.jitted, MAX_JITTED),
                    false => (&mut methods.precompiled, MAX_PRECOMPILED),
                };
                if kind.len() < max {
                    kind.push(method.start);
                }
            }
            if methods.precompiled.len() >= MAX_PRECOMPILED {
                break;
            }
        }
        methods
    }
}

fn is_method_event(event_type: &EventType) -> bool {
    // MethodLoad, MethodUnload, MethodDCStart and MethodDCEnd, verbose or not.
    const FIRST: u32 = 141;
    const LAST: u32 = 144;
    matches!(
        schema(event_type, None).key(),
        EventKey::Manifest {
            provider: Provider::Runtime | Provider::Rundown,
            id: FIRST..=LAST,
            ..
        }
    )
}
