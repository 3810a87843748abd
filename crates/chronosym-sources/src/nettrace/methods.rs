//! Reads the addresses of methods from an EventPipe trace.

use std::collections::BTreeMap;
use std::io::Read;

use chronosym_events::{Event, EventKey, Provider};
use chronosym_nettrace::{EventType, Reader};

use super::types::{Schemas, raw_event, schema};

/// Number of precompiled methods that suffices to distinguish processes.
const MAX_PRECOMPILED: usize = 256;
const MAX_JITTED: usize = 4096;

/// Addresses of the methods of each traced process.
#[derive(Debug, Default)]
pub(crate) struct Methods(BTreeMap<Option<u32>, MethodAddresses>);

/// Addresses of the methods of a process; the first ones of each kind.
#[derive(Debug, Default)]
pub(crate) struct MethodAddresses {
    pub precompiled: Vec<u64>,
    pub jitted: Vec<u64>,
}

impl Methods {
    /// Reads a trace until it has enough precompiled methods, which most traces list at the end. A
    /// trace of the whole machine is read to its end.
    pub fn read(mut reader: Reader<impl Read>) -> Self {
        reader.select(is_method_event);
        let own = reader.header().process_id;
        let mut methods = Methods::default();
        let mut schemas = Schemas::default();
        while let Ok(Some(region)) = reader.next_region() {
            for record in region.records() {
                let schema = schemas.of(region.event_types(), &record);
                let event = raw_event(&record, region.header().pointer_size, schema).decode();
                let Ok(Some(Event::Method(method))) = event else {
                    continue;
                };
                let methods = methods.0.entry(record.process_id).or_default();
                let (kind, max) = match method.flags.is_jitted() || method.flags.is_dynamic() {
                    true => (&mut methods.jitted, MAX_JITTED),
                    false => (&mut methods.precompiled, MAX_PRECOMPILED),
                };
                if kind.len() < max {
                    kind.push(method.start);
                }
            }
            let is_enough = |own| methods.of(Some(own)).precompiled.len() >= MAX_PRECOMPILED;
            if own.is_some_and(is_enough) {
                break;
            }
        }
        methods
    }

    /// Returns the addresses of a process.
    pub fn of(&self, process: Option<u32>) -> &MethodAddresses {
        const NONE: &MethodAddresses = &MethodAddresses {
            precompiled: Vec::new(),
            jitted: Vec::new(),
        };
        self.0.get(&process).unwrap_or(NONE)
    }

    /// Returns the processes with known ids.
    pub fn processes(&self) -> impl Iterator<Item = (u32, &MethodAddresses)> {
        let known = self.0.iter();
        known.filter_map(|(&process, methods)| Some((process?, methods)))
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
