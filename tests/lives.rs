//! The rules about lifetimes, reasons and certainty, with synthetic events.

use chronosym::{Certainty, Evidence, Position};
use chronosym_conformance::script::*;
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::{self, ILMap, Method, Module};
use chronosym_support::trace::TraceInfo;

// Rule 3.
#[test]
fn a_shutdown_unloads_and_then_lists_one_body_not_two() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.unload(100, 1, method(1, 0x1000, 64, "A"));
    s.dc_end(120, 1, method(1, 0x1000, 64, "A"));
    s.complete(121);
    let answers = s.finish();
    let process = answers.0.find_process(PID, None).expect("the process");
    assert_eq!(answers.0.bodies(process).count(), 1);
    for time in [10, 99, 110, 120] {
        assert_eq!(answers.name(0x1010, time), "T.A", "at {time}");
    }
    assert_eq!(answers.at(0x1010, 110).certainty, Some(Certainty::Exact));
}

// Rule 3.
#[test]
fn a_rundown_does_not_extend_overwritten_code() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.unload(20, 1, method(1, 0x1000, 64, "A"));
    s.load(30, 1, method(2, 0x1000, 64, "B"));
    s.unload(40, 1, method(2, 0x1000, 64, "B"));
    s.dc_end(50, 1, method(1, 0x1000, 64, "A"));
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 15), "T.A");
    assert_eq!(answers.name(0x1010, 35), "T.B");
    // Listed again: a separate body, whose lifetime starts at the end of the preceding one.
    assert_eq!(answers.name(0x1010, 45), "T.A");
}

// Rule 3.
#[test]
fn an_id_and_start_used_again_under_another_name_is_another_body() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "Dyn1"));
    s.unload(20, 1, method(1, 0x1000, 64, "Dyn1"));
    s.load(30, 1, method(1, 0x1000, 64, "Dyn2"));
    s.dc_end(50, 1, method(1, 0x1000, 64, "Dyn2"));
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 12), "T.Dyn1");
    assert_eq!(answers.name(0x1010, 25), "AfterUnload");
    assert_eq!(answers.name(0x1010, 40), "T.Dyn2");
}

// Rule 3.
#[test]
fn the_same_event_of_two_sessions_is_one_fact() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.unload(20, 1, method(1, 0x1000, 64, "A"));
    s.unload(20, 1, method(1, 0x1000, 64, "A"));
    let answers = s.finish();
    let process = answers.0.find_process(PID, None).expect("the process");
    assert_eq!(answers.0.bodies(process).count(), 1);
    assert_eq!(answers.name(0x1010, 20), "AfterUnload");
}

// Rule 2.
#[test]
fn a_start_rundown_reaches_back_and_an_end_rundown_forward() {
    let mut s = Script::default();
    s.dc_start(10, 1, method(1, 0x1000, 64, "Early"));
    s.dc_end(50, 1, method(2, 0x2000, 64, "Listed"));
    s.complete(51);
    let answers = s.finish();
    let before = answers.at(0x1010, 5);
    assert_eq!(
        (text(&before).as_str(), before.certainty),
        ("T.Early", Some(Certainty::Inferred))
    );
    assert_eq!(answers.at(0x1010, 20).certainty, Some(Certainty::Exact));
    let listed = answers.at(0x2010, 1);
    assert_eq!(
        (listed.evidence, listed.certainty),
        (Some(Evidence::DCEnd), Some(Certainty::Inferred))
    );
    assert_eq!(answers.name(0x2010, 99), "T.Listed");
}

// Rule 4.
#[test]
fn an_unknown_begin_does_not_reach_past_the_load_of_its_module() {
    let mut s = Script::default();
    s.module_load(30, 5, "/app/P.dll");
    s.dc_end(
        50,
        1,
        Method {
            module: 5,
            flags: 0x100,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 20), "BeforeFirstLoad");
    assert_eq!(answers.name(0x1010, 40), "T.A");
}

// Rule 6.
#[test]
fn the_end_of_a_module_ends_its_bodies() {
    let mut s = Script::default();
    s.module_load(1, 5, "/app/P.dll");
    s.load(
        10,
        1,
        Method {
            module: 5,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.load(10, 1, method(2, 0x2000, 64, "Other"));
    s.module_unload(30, 5, "/app/P.dll");
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 29), "T.A");
    assert_eq!(answers.name(0x1010, 30), "AfterUnload");
    assert_eq!(answers.name(0x2010, 40), "T.Other");
}

// Rule 6.
#[test]
fn a_domain_closes_the_modules_in_it() {
    let mut s = Script::default();
    s.module_load(1, 5, "/app/P.dll");
    let in_domain = payload::domain_module(1, 5, 6, 77, 0, ("/app/P.dll", ""), 0);
    s.event(RUNTIME, 151, 1, 2, 1, &in_domain);
    s.load(
        10,
        1,
        Method {
            module: 5,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.event(
        RUNTIME,
        157,
        1,
        30,
        1,
        &payload::app_domain(1, 77, 0, "plugins", 2, 0),
    );
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 29), "T.A");
    assert_eq!(answers.name(0x1010, 30), "AfterUnload");
}

#[test]
fn runtimes_in_one_process_keep_to_themselves() {
    // Ids are addresses of one process, but those of an ended runtime can be reused by another.
    let mut s = Script::default();
    for (clr, start, name) in [(1, 0x1000, "Old"), (2, 0x2000, "New")] {
        let module = Module {
            id: 5,
            il_path: "/app/P.dll",
            clr,
            ..Module::default()
        };
        s.event(RUNTIME, 152, 2, 1, 1, &module.encode(2));
        let method = Method {
            module: 5,
            clr,
            ..method(1, start, 64, name)
        };
        s.load(10, 1, method);
    }
    let unloaded = Module {
        id: 5,
        il_path: "/app/P.dll",
        clr: 2,
        ..Module::default()
    };
    s.event(RUNTIME, 153, 2, 30, 1, &unloaded.encode(2));
    // Only the first runtime lists its code.
    s.dc_end(
        50,
        1,
        Method {
            module: 5,
            clr: 1,
            ..method(1, 0x1000, 64, "Old")
        },
    );
    s.event(RUNDOWN, 146, 1, 51, 1, &1u16.to_le_bytes());
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 40), "T.Old");
    assert_eq!(answers.name(0x2010, 29), "T.New");
    assert_eq!(answers.name(0x2010, 40), "AfterUnload");
}

#[test]
fn events_of_future_runtimes_are_read_as_far_as_known() {
    let mut s = Script::default();
    let newer = |mut payload: Vec<u8>| {
        payload.extend_from_slice(&[0xab; 24]);
        payload
    };
    let module = Module {
        id: 5,
        il_path: "/app/P.dll",
        ..Module::default()
    };
    s.event(RUNTIME, 152, 9, 1, 1, &newer(module.encode(3)));
    let of_module = Method {
        module: 5,
        ..method(1, 0x1000, 64, "A")
    };
    s.event(RUNTIME, 143, 7, 10, 1, &newer(of_module.encode(2)));
    let map = ILMap {
        id: 1,
        entries: &[(0, 0), (7, 16)],
        ..ILMap::default()
    };
    s.event(RUNTIME, 190, 5, 11, 1, &newer(map.encode(1)));
    s.event(RUNDOWN, 144, 7, 50, 1, &newer(of_module.encode(2)));
    s.event(RUNDOWN, 146, 4, 51, 1, &newer(vec![0, 0]));
    let answers = s.finish();
    let frame = answers.at(0x1014, 20);
    assert_eq!(text(&frame), "T.A");
    assert_eq!(frame.module(), Some("P"));
    assert_eq!(frame.il_offset.map(|il| il.offset), Some(7));
    assert_eq!(frame.certainty, Some(Certainty::Exact));
}

// Rule 7.
#[test]
fn a_method_compiled_again_leaves_the_older_body_alive() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "Hot"));
    s.load(
        20,
        1,
        Method {
            flags: TIER1,
            code_version: 2,
            ..method(1, 0x2000, 64, "Hot")
        },
    );
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1010, 30).tier.map(|t| t.name()),
        Some("QuickJitted")
    );
    assert_eq!(
        answers.at(0x2010, 30).tier.map(|t| t.name()),
        Some("OptimizedTier1")
    );
}

// Rule 12.
#[test]
fn rundown_maps_precede_the_event_that_they_belong_to() {
    let mut s = Script::default();
    let map = |id, il| {
        payload::ILMap {
            id,
            entries: &[(il, 0)],
            ..payload::ILMap::default()
        }
        .encode(0)
    };
    s.event(RUNDOWN, 150, 0, 50, 1, &map(1, 11));
    s.dc_end(50, 1, method(1, 0x1000, 64, "A"));
    s.event(RUNDOWN, 150, 0, 50, 1, &map(2, 22));
    s.dc_end(50, 1, method(2, 0x2000, 64, "B"));
    // The adjacent event is that of another method: a guess would give a tier another tier's map.
    s.event(RUNDOWN, 150, 0, 50, 1, &map(3, 33));
    s.dc_end(50, 1, method(4, 0x4000, 64, "D"));
    s.complete(51);
    let answers = s.finish();
    let il = |address| answers.at(address, 20).il_offset.map(|il| il.offset);
    assert_eq!(
        (il(0x1010), il(0x2010), il(0x4010)),
        (Some(11), Some(22), None)
    );
    assert_eq!(answers.0.unbound_il_maps(), 1);
}

#[test]
fn maps_of_a_rundown_at_the_start_follow_the_event_that_they_belong_to() {
    let mut s = Script::default();
    let map = |id, il| {
        let entries = &[(il, 0)];
        payload::ILMap {
            id,
            entries,
            ..payload::ILMap::default()
        }
        .encode(0)
    };
    s.dc_start(5, 1, method(1, 0x1000, 64, "A"));
    s.event(RUNDOWN, 149, 0, 5, 1, &map(1, 11));
    s.dc_start(5, 1, method(2, 0x2000, 64, "B"));
    s.event(RUNDOWN, 149, 0, 5, 1, &map(2, 22));
    let answers = s.finish();
    let il = |address| answers.at(address, 20).il_offset.map(|il| il.offset);
    assert_eq!((il(0x1010), il(0x2010)), (Some(11), Some(22)));
    assert_eq!(answers.0.unbound_il_maps(), 0);
}

#[test]
fn a_versioned_map_of_a_rundown_that_lost_its_neighbour_binds_by_version() {
    let mut s = Script::default();
    let map = |id: u64, version, il| {
        let entries = &[(il, 0)];
        let map = payload::ILMap {
            id,
            code_version: version,
            entries,
            il_version: 1,
            ..payload::ILMap::default()
        };
        map.encode(1)
    };
    s.load(
        5,
        1,
        Method {
            code_version: 1,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.load(
        6,
        1,
        Method {
            code_version: 2,
            flags: TIER1,
            ..method(1, 0x2000, 64, "A")
        },
    );
    s.event(RUNDOWN, 150, 1, 50, 1, &map(1, 1, 11));
    s.event(RUNDOWN, 150, 1, 50, 1, &map(1, 2, 22));
    let answers = s.finish();
    let il = |address| answers.at(address, 20).il_offset.map(|il| il.offset);
    assert_eq!((il(0x1010), il(0x2010)), (Some(11), Some(22)));
}

// Rule 12.
#[test]
fn a_versioned_map_without_a_neighbour_binds_by_version_and_extent() {
    let mut s = Script::default();
    s.load(
        10,
        1,
        Method {
            code_version: 1,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.load(
        11,
        1,
        Method {
            code_version: 2,
            flags: TIER1,
            ..method(1, 0x2000, 64, "A")
        },
    );
    let map = payload::ILMap {
        id: 1,
        code_version: 1,
        entries: &[(42, 0)],
        il_version: 1,
        ..payload::ILMap::default()
    };
    s.event(RUNTIME, 190, 1, 12, 9, &map.encode(1));
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1010, 20).il_offset.map(|il| il.offset),
        Some(42)
    );
    assert_eq!(answers.at(0x2010, 20).il_offset, None);
}

/// A live map of method 1, V1, with one IL offset for the whole body.
fn version_map(il: i32) -> Vec<u8> {
    let map = payload::ILMap {
        id: 1,
        entries: &[(il, 0)],
        ..payload::ILMap::default()
    };
    map.encode(1)
}

#[test]
fn a_versioned_map_without_adjacent_event_does_not_bind_to_an_ended_body() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "Gone"));
    s.unload(30, 1, method(1, 0x1000, 64, "Gone"));
    s.event(RUNTIME, 190, 1, 40, 9, &version_map(11));
    let answers = s.finish();
    assert_eq!(answers.at(0x1010, 20).il_offset, None);
    assert_eq!(answers.0.unbound_il_maps(), 1);
}

#[test]
fn a_versioned_map_without_a_neighbour_is_of_the_body_that_a_rundown_lists_after_its_unload() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.unload(30, 1, method(1, 0x1000, 64, "A"));
    s.event(RUNDOWN, 150, 1, 40, 9, &version_map(11));
    s.dc_end(41, 1, method(1, 0x1000, 64, "A"));
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1010, 20).il_offset.map(|il| il.offset),
        Some(11)
    );
    assert_eq!(answers.0.unbound_il_maps(), 0);
}

#[test]
fn a_versioned_map_without_a_neighbour_is_not_of_a_body_that_was_loaded_later() {
    let mut s = Script::default();
    s.event(RUNTIME, 190, 1, 10, 9, &version_map(11));
    s.load(20, 1, method(1, 0x1000, 64, "Later"));
    // Another body had the id between the map and this one.
    s.unload(30, 1, method(1, 0x1000, 64, "Later"));
    s.dc_end(50, 1, method(1, 0x2000, 64, "Last"));
    let answers = s.finish();
    assert_eq!(answers.at(0x1010, 25).il_offset, None);
    assert_eq!(answers.at(0x2010, 45).il_offset, None);
    assert_eq!(answers.0.unbound_il_maps(), 1);
}

#[test]
fn a_body_of_unknown_start_has_the_latest_map_before_it() {
    let mut s = Script::default();
    s.event(RUNTIME, 190, 1, 10, 9, &version_map(11));
    s.event(RUNTIME, 190, 1, 50, 9, &version_map(22));
    s.dc_end(100, 1, method(1, 0x1000, 64, "Second"));
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1010, 60).il_offset.map(|il| il.offset),
        Some(22)
    );
    assert_eq!(answers.0.unbound_il_maps(), 1);
}

// Rule 16.
#[test]
fn a_stub_is_named_after_its_only_target() {
    let mut s = Script::default();
    let stub = |id, start| Method {
        flags: 0x9,
        names: Some(("dynamicClass", "IL_STUB_PInvoke", "void  ()")),
        ..method(id, start, 64, "")
    };
    let rest = ("", "", "");
    s.event(
        RUNTIME,
        88,
        0,
        5,
        1,
        &payload::il_stub_generated(0, 3, 1, 0, 0, ("N.Native", "Beep", "void  ()"), rest),
    );
    s.load(10, 1, stub(1, 0x1000));
    s.event(
        RUNTIME,
        88,
        0,
        15,
        1,
        &payload::il_stub_generated(0, 3, 2, 0, 0, ("N.Native", "Foo", "void  ()"), rest),
    );
    s.load(20, 1, stub(2, 0x2000));
    s.event(
        RUNTIME,
        89,
        0,
        25,
        1,
        &payload::il_stub_cache_hit(0, 3, 2, 0, ("N.Native", "Bar", "void  ()")),
    );
    let answers = s.finish();
    assert_eq!(
        answers.name(0x1010, 30),
        "IL_STUB_PInvoke \u{2192} N.Native.Beep"
    );
    assert_eq!(
        answers.name(0x2010, 30),
        "dynamicClass.IL_STUB_PInvoke",
        "it serves several"
    );
    let process = answers.0.find_process(PID, None).expect("the process");
    let shared = answers.0.bodies_at(process, 0x2010);
    assert_eq!(shared[0].stub_targets, ["N.Native.Foo", "N.Native.Bar"]);
}

#[test]
fn events_that_were_lost_make_open_ends_less_certain() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.sequence_point();
    s.lose(1, 5);
    s.load(1_000, 1, method(2, 0x2000, 64, "B"));
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1010, 2_000).certainty,
        Some(Certainty::Inferred)
    );
    assert_eq!(answers.name(0x9000, 2_000), "EventsLost");
}

#[test]
fn without_a_rundown_unknown_code_has_that_reason() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    let answers = s.finish();
    assert_eq!(answers.name(0x9000, 20), "NoRundown");
    assert_eq!(answers.name(0, 20), "InvalidAddress");
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.complete(30);
    assert_eq!(s.finish().name(0x9000, 20), "NoCodeAtAddress");
}

#[test]
fn modules_listed_after_their_methods_still_name_them() {
    let mut s = Script::default();
    s.dc_end(
        50,
        1,
        Method {
            module: 5,
            ..method(1, 0x1000, 64, "A")
        },
    );
    let module = Module {
        id: 5,
        il_path: r"C:\app\Plugin.dll",
        ..Module::default()
    };
    s.event(RUNDOWN, 154, 2, 51, 1, &module.encode(2));
    s.complete(52);
    assert_eq!(s.finish().at(0x1010, 20).module(), Some("Plugin"));
}

// Rule 17.
#[test]
fn inlined_frames_come_from_the_tree_of_their_body() {
    let mut s = Script::default();
    s.event(
        RUNTIME,
        187,
        0,
        1,
        1,
        &payload::runtime_information(0, 2, [9, 0, 20, 0], "app", "/clr.so"),
    );
    s.load(5, 1, method(2, 0x2000, 64, "Inlined"));
    s.load(
        10,
        1,
        Method {
            flags: TIER1,
            code_version: 4,
            ..method(1, 0x1000, 100, "Outer")
        },
    );
    let tree = payload::inline_tree(
        &[(1, u32::MAX, 1, 0), (2, 7, 2, 0), (99, 3, 0, 0)],
        &[(0, 0, 0), (0, 1, 10), (1, 2, 20), (9, 0, 40)],
    );
    for piece in payload::rich_debug_info(0, 1, 4, &tree, 16) {
        s.event(PRIVATE, 189, 0, 11, 1, &piece);
    }
    // Another method gets the id of an inlinee: the code does not change.
    s.load(15, 1, method(2, 0x3000, 64, "Later"));
    s.complete(30);
    let answers = s.finish();
    let names = |offset: u64| {
        let frames = answers.frames(0x1000 + offset, 20, Position::Exact);
        frames
            .iter()
            .map(|f| (text(f), f.inlined, f.il_offset.map(|il| il.offset)))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(5), [("T.Outer".to_owned(), false, Some(0))]);
    assert_eq!(
        names(12),
        [
            ("T.Inlined".to_owned(), true, Some(0)),
            ("T.Outer".to_owned(), false, Some(7))
        ]
    );
    // A method that no event names is a frame all the same.
    assert_eq!(names(25)[0], ("NoName".to_owned(), true, Some(1)));
    assert_eq!(names(25)[1], ("T.Inlined".to_owned(), true, Some(3)));
}

#[test]
fn a_module_id_used_again_does_not_take_over_the_bodies_of_before() {
    let of = |module, method: Method<'static>| Method { module, ..method };
    let old = of(0x77, method(1, 0x5000, 64, "Old"));
    for told in [true, false] {
        let mut s = Script::default();
        s.unload(100, 1, old);
        if told {
            s.module_unload(101, 0x77, "/app/OldPlugin.dll");
        }
        s.module_load(200, 0x77, "/app/New.dll");
        s.load(210, 1, of(0x77, method(2, 0x6000, 64, "New")));
        s.complete(300);
        let answers = s.finish();
        let frame = answers.at(0x5010, 50);
        assert_eq!(text(&frame), "T.Old");
        assert_eq!(frame.module(), told.then_some("OldPlugin"));
        assert_eq!(answers.at(0x6010, 220).module(), Some("New"));
    }
}

// Rule 15.
#[test]
fn an_entry_point_within_other_code_is_ignored() {
    let entry = payload::r2r_entry_point(9, ("T", "Guess", "void  ()"), 0x5000, 0);
    for listed in [false, true] {
        let mut s = Script::default();
        if !listed {
            s.load(10, 1, method(1, 0x5000, 0x1000, "Real"));
        }
        s.event(RUNTIME, 159, 0, 50, 1, &entry);
        if listed {
            s.dc_end(300, 1, method(1, 0x5000, 0x1000, "Real"));
        }
        s.complete(301);
        let answers = s.finish();
        assert_eq!(answers.name(0x5010, 60), "T.Real");
        assert_eq!(answers.name(0x5800, 60), "T.Real");
    }
}

#[test]
fn a_body_without_a_name_is_shown_by_its_address() {
    let mut s = Script::default();
    s.module_load(5, 0x77, "/app/App.dll");
    let nameless = Method {
        module: 0x77,
        names: None,
        ..method(1, 0x1000, 64, "")
    };
    s.load(10, 1, nameless);
    let frame = s.finish().at(0x1010, 20);
    assert_eq!(frame.module(), Some("App"));
    assert_eq!(frame.label(), "0x1010");
}

#[test]
fn events_before_the_start_of_the_trace_keep_their_order() {
    let writer = NettraceWriter::v4().info(TraceInfo {
        qpc_start: 100,
        ..TraceInfo::default()
    });
    let mut s = Script::of(writer);
    // The blocks of a trace have the events of one thread after those of another.
    s.load(-90, 1, method(1, 0x1000, 64, "A"));
    s.load(-70, 1, method(2, 0x1000, 64, "B"));
    s.unload(-80, 2, method(1, 0x1000, 64, "A"));
    let answers = s.finish();
    let process = answers.0.find_process(PID, None).expect("the process");
    assert_eq!(answers.0.bodies(process).count(), 2);
    assert_eq!(answers.name(0x1010, 10), "T.B");
}

#[test]
fn a_region_in_several_pieces_is_in_order_as_a_whole() {
    const SAMPLES: i64 = 300_000;
    let mut s = Script::default();
    s.load(SAMPLES, 1, method(1, 0x1000, 64, "Late"));
    for time in 0..SAMPLES {
        s.sample(time, 2, &[0x1010 + time as u64 % 3]);
    }
    s.load(10, 3, method(2, 0x1000, 64, "Early"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 20), "T.Early");
    assert_eq!(answers.name(0x1010, SAMPLES as u64 + 1), "T.Late");
    let samples = answers.samples();
    assert_eq!(samples.len() as i64, SAMPLES);
    assert!(samples.iter().all(|(_, stack)| stack[0] == "T.Early"));
}
