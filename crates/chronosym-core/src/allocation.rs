//! What events state of memory.

use crate::terms::Weight;
use chronosym_events::{EventKey, EventSchema, Provider};

/// What an event stands for: one that tells of allocations for their bytes, any other for itself.
pub fn weight(schema: &EventSchema, payload: &[u8]) -> Weight {
    // GCAllocationTick: amount, kind, runtime instance and, since version 2, the amount again, which does not overflow.
    let EventKey::Manifest {
        provider: Provider::Runtime,
        id: 10,
        version,
    } = schema.key()
    else {
        return Weight::One;
    };
    let bytes = if *version >= 2 {
        payload
            .get(10..18)
            .and_then(|b| b.try_into().ok().map(u64::from_le_bytes))
    } else {
        let narrow = payload.get(..4).and_then(|b| b.try_into().ok());
        narrow.map(|b| u64::from(u32::from_le_bytes(b)))
    };
    bytes.map_or(Weight::Unknown, Weight::Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allocations_weigh_their_bytes() {
        let tick = |version, payload: &[u8]| {
            let provider = Provider::Runtime;
            let key = EventKey::Manifest {
                provider,
                id: 10,
                version,
            };
            weight(&EventSchema::new(key), payload)
        };
        let mut payload = vec![0xff; 10];
        payload.extend((1u64 << 33).to_le_bytes());
        assert_eq!(tick(4, &payload), Weight::Bytes(1 << 33));
        assert_eq!(tick(1, &[8, 1, 0, 0, 0]), Weight::Bytes(264));
        assert_eq!(tick(4, &payload[..17]), Weight::Unknown, "cut off");
    }
}
