//! Every event type in every version: fields, truncation, longer payloads of versions to come.

mod cases;

use cases::{all, identity, raw};
use chronosym_events::{DecodeError, EventKey, EventSchema, Provider, catalog};

#[test]
fn every_event_of_the_catalog_has_a_case() {
    let cases: Vec<_> = all().iter().map(|c| identity(&(c.key)(0))).collect();
    let missing: Vec<_> = catalog()
        .filter(|e| !cases.contains(&identity(&e.key)))
        .map(|e| e.name)
        .collect();
    assert!(missing.is_empty(), "no payload for {missing:?}");
}

#[test]
fn fields_have_their_published_names_and_values() {
    for case in all() {
        for version in case.versions.clone() {
            for width in [4, 8] {
                let schema = EventSchema::new((case.key)(version));
                assert_eq!(schema.name(), case.name);
                let payload = (case.encode)(version, width);
                let fields = raw(&schema, &payload, width)
                    .fields()
                    .unwrap_or_else(|e| panic!("{} V{version} P{width}: {e}", case.name))
                    .expect("typed");
                assert_eq!(
                    fields.to_string(),
                    (case.fields)(version),
                    "{} V{version} P{width}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn a_payload_cut_at_any_byte_is_an_error() {
    for case in all() {
        for version in case.versions.clone() {
            for width in [4, 8] {
                let schema = EventSchema::new((case.key)(version));
                let payload = (case.encode)(version, width);
                let may_end = (case.may_end)(version, width);
                for cut in 0..payload.len() {
                    let result = raw(&schema, &payload[..cut], width).decode();
                    let text = format!(
                        "{} V{version} P{width} cut at {cut} of {}",
                        case.name,
                        payload.len()
                    );
                    if !schema.is_typed() {
                        // Events that are only displayed show the available fields.
                        let fields = raw(&schema, &payload[..cut], width).fields();
                        assert!(result == Ok(None) && fields.is_ok(), "{text}");
                    } else if may_end.contains(&cut) {
                        assert!(result.is_ok(), "{text}");
                    } else {
                        let error = result.expect_err(&text);
                        let known = matches!(
                            error,
                            DecodeError::Short { .. } | DecodeError::BadString { .. }
                        );
                        assert!(known, "{text}: {error}");
                    }
                }
            }
        }
    }
}

#[test]
fn newer_versions_decode_as_the_newest_known_one() {
    for case in all() {
        let newest = *case.versions.end();
        for width in [4, 8] {
            let mut payload = (case.encode)(newest, width);
            // Lists that run to the end of the payload take whatever follows.
            if !(case.may_end)(newest, width).is_empty() {
                continue;
            }
            payload.extend([0xcc; 13]);
            let schema = EventSchema::new((case.key)(newest + 7));
            let fields = raw(&schema, &payload, width).fields().unwrap().unwrap();
            let mut expected = (case.fields)(newest);
            if !schema.is_typed() {
                expected += ", Rest=";
                expected += &"cc".repeat(13);
            }
            assert_eq!(fields.to_string(), expected, "{}", case.name);
        }
    }
}

#[test]
fn the_catalog_lists_typed_events() {
    let known: Vec<_> = catalog().map(|entry| identity(&entry.key)).collect();
    for case in all() {
        let key = (case.key)(*case.versions.end());
        let name = identity(&key);
        // .NET Native's provider has the runtime's layouts.
        let is_native = name == "Microsoft-Windows-DotNETRuntimeNative/143";
        let is_typed = EventSchema::new(key).is_typed();
        assert_eq!(known.contains(&name) || is_native, is_typed, "{name}");
    }
}

#[test]
fn tracepoints_are_named_by_the_symbols_of_the_manifest() {
    let key = |provider, id, version| {
        Some(EventKey::Manifest {
            provider,
            id,
            version,
        })
    };
    let of = |symbol| EventKey::from_symbol(&Provider::Runtime, symbol);
    assert_eq!(of("MethodLoadVerbose"), key(Provider::Runtime, 143, 0));
    assert_eq!(of("MethodLoadVerbose_V2"), key(Provider::Runtime, 143, 2));
    // Here it is part of the name.
    assert_eq!(of("MethodDCStartVerboseV2"), key(Provider::Runtime, 139, 0));
    assert_eq!(of("GCStart_V2"), key(Provider::Runtime, 1, 2));
    assert_eq!(of("NoSuchEvent"), None);
    let rundown = EventKey::from_symbol(&Provider::Rundown, "MethodDCEndVerbose_V1");
    assert_eq!(rundown, key(Provider::Rundown, 144, 1));
    let other = Provider::from_name("Other");
    assert_eq!(EventKey::from_symbol(&other, "GCStart"), None);
}
