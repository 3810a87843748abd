//! Cases in which TraceEvent gives a wrong result, by the letters of its known faults; ours is
//! right. E, images, is in the suite of Windows traces.

use chronosym::{Certainty, Evidence, Position, SampleKind, Session};
use chronosym_conformance::script::*;
use chronosym_support::payload::{self, Method};

#[test]
fn a_tiers_keep_their_own_il_maps() {
    let mut s = Script::default();
    s.load(10, 1, method(7, 0x1000, 100, "Hot"));
    s.il_map(11, 1, 7, &[(-2, 0), (0, 5), (20, 50), (-3, 90)]);
    let tier1 = Method {
        flags: TIER1,
        code_version: 3,
        ..method(7, 0x2000, 100, "Hot")
    };
    s.load(20, 2, tier1);
    s.il_map(21, 2, 7, &[(-2, 0), (0, 5), (199, 50), (-3, 90)]);
    let answers = s.finish();
    assert_eq!(
        answers.at(0x1000 + 60, 30).il_offset.map(|il| il.offset),
        Some(20)
    );
    assert_eq!(
        answers.at(0x2000 + 60, 30).il_offset.map(|il| il.offset),
        Some(199)
    );
}

// Rule 1.
#[test]
fn b_an_address_is_used_again_after_an_unload() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "First"));
    s.unload(20, 1, method(1, 0x1000, 64, "First"));
    s.load(30, 1, method(2, 0x1000, 64, "Second"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 15), "T.First");
    assert_eq!(answers.name(0x1010, 20), "AfterUnload");
    assert_eq!(answers.name(0x1010, 30), "T.Second");
}

#[test]
fn c_a_load_ends_earlier_code_without_unload_if_a_rundown_lists_the_second() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "First"));
    s.load(30, 1, method(2, 0x1000, 64, "Second"));
    s.dc_end(50, 1, method(2, 0x1000, 64, "Second"));
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 29), "T.First");
    assert_eq!(answers.name(0x1010, 30), "T.Second");
    assert_eq!(answers.name(0x1010, 60), "T.Second");
}

#[test]
fn c_a_second_method_known_from_the_rundown_only_does_not_take_the_samples_of_the_first() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "First"));
    s.dc_end(50, 1, method(2, 0x1000, 64, "Second"));
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 20), "T.First");
    assert_eq!(answers.name(0x1010, 50), "T.Second");
}

// Rule 5.
#[test]
fn c2_a_load_ends_earlier_code_without_a_rundown() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "First"));
    // Overlapping in part is enough: the whole older body has gone.
    s.load(30, 1, method(2, 0x1020, 64, "Second"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1030, 29), "T.First");
    assert_eq!(answers.name(0x1030, 31), "T.Second");
    assert_eq!(answers.name(0x1010, 31), "AfterUnload");
}

#[test]
fn d_no_frame_is_named_after_a_later_method() {
    let mut s = Script::default();
    s.load(10_000_000, 1, method(1, 0x1000, 64, "Late"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 5_000_000), "BeforeFirstLoad");
    // The load event may be logged a little after the code runs, if there was no code before.
    let near = answers.at(0x1010, 9_500_000);
    assert_eq!(
        (text(&near).as_str(), near.certainty),
        ("T.Late", Some(Certainty::Approximate))
    );
    assert_eq!(answers.name(0x1010, 10_000_000), "T.Late");
}

// Rule 8.
#[test]
fn d_the_start_of_the_jit_bounds_how_early_code_can_run() {
    let mut s = Script::default();
    let started = payload::jitting_started(1, 1, 0, 0x0600_0001, 10, ("T", "Late", "void  ()"), 0);
    s.event(RUNTIME, 145, 1, 4_000_000, 1, &started);
    s.load(10_000_000, 1, method(1, 0x1000, 64, "Late"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 3_999_999), "BeforeFirstLoad");
    assert_eq!(answers.name(0x1010, 4_000_000), "T.Late");
}

#[test]
fn d_a_load_that_lags_does_not_take_the_samples_of_an_older_occupant() {
    let mut s = Script::default();
    s.load(1_000_000, 1, method(1, 0x1000, 64, "First"));
    s.unload(9_000_000, 1, method(1, 0x1000, 64, "First"));
    s.load(10_000_000, 1, method(2, 0x1000, 64, "Second"));
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 9_500_000), "AfterUnload");
}

// Rule 9.
#[test]
fn f_a_call_that_ends_a_method_belongs_to_it_and_not_to_its_neighbour() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 0x40, "Throws"));
    s.load(10, 1, method(2, 0x1040, 0x40, "Neighbour"));
    s.load(10, 1, method(3, 0x9000, 0x40, "Leaf"));
    s.sample(20, 5, &[0x9000, 0x1040]);
    let answers = s.finish();
    assert_eq!(answers.caller(0x1040, 20), "T.Throws");
    assert_eq!(answers.name(0x1040, 20), "T.Neighbour");
    assert_eq!(
        answers.samples(),
        [(20, vec!["T.Leaf".to_owned(), "T.Throws".to_owned()])]
    );
    let frame = answers
        .frames(0x1040, 20, Position::Return)
        .pop()
        .expect("a frame");
    assert_eq!(
        (frame.address, frame.offset),
        (0x1040, Some(0x40)),
        "the frame keeps its own address"
    );
}

#[test]
fn f_a_return_address_at_the_very_start_of_a_body_stays_in_it() {
    let mut s = Script::default();
    s.load(10, 1, method(2, 0x1040, 0x40, "Alone"));
    assert_eq!(s.finish().caller(0x1040, 20), "T.Alone");
}

#[test]
fn g_a_live_load_of_precompiled_code_is_used() {
    let mut s = Script::default();
    s.load(
        10,
        1,
        Method {
            flags: 0x100,
            ..method(1, 0x1000, 64, "Precompiled")
        },
    );
    let frame = s.finish().at(0x1010, 20);
    assert_eq!(text(&frame), "T.Precompiled");
    assert_eq!(frame.tier.map(|t| t.name()), Some("ReadyToRun"));
    assert_eq!(frame.evidence, Some(Evidence::Load));
}

#[test]
fn h_events_that_end_too_early_keep_their_names() {
    let mut s = Script::default();
    let payload = method(1, 0x1000, 64, "A").encode(1);
    s.event(RUNTIME, 143, 2, 10, 1, &payload);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 20), "T.A");
}

#[test]
fn h_events_without_names_still_locate_code() {
    let mut s = Script::default();
    let bare = Method {
        names: None,
        ..method(1, 0x1000, 64, "")
    };
    s.event(RUNTIME, 141, 2, 10, 1, &bare.encode(2));
    let known = Method {
        names: None,
        ..method(2, 0x2000, 64, "")
    };
    s.event(RUNTIME, 141, 2, 10, 1, &known.encode(2));
    s.event(RUNTIME, 142, 2, 40, 1, &known.encode(2));
    // The rundown names the first after all.
    s.dc_end(50, 1, method(1, 0x1000, 64, "Named"));
    s.complete(51);
    let answers = s.finish();
    assert_eq!(answers.name(0x1010, 20), "T.Named");
    let frame = answers.at(0x2010, 20);
    assert_eq!(
        (text(&frame).as_str(), frame.offset),
        ("NoName", Some(0x10))
    );
    assert_eq!(answers.name(0x2010, 40), "AfterUnload");
}

// Rule 15.
#[test]
fn i_an_entry_point_names_precompiled_code() {
    let mut s = Script::default();
    let entry = |id, name, at| payload::r2r_entry_point(id, ("T", name, "void  ()"), at, 0);
    s.event(RUNTIME, 159, 0, 10, 1, &entry(1, "One", 0x1000));
    s.event(RUNTIME, 159, 0, 20, 1, &entry(2, "Two", 0x1100));
    s.event(RUNTIME, 159, 0, 30, 1, &entry(3, "Sized", 0x8000));
    s.dc_end(
        50,
        1,
        Method {
            flags: 0x100,
            ..method(3, 0x8000, 0x20, "Sized")
        },
    );
    s.complete(51);
    let answers = s.finish();
    let frame = answers.at(0x10ff, 40);
    assert_eq!(text(&frame), "T.One");
    assert_eq!(
        (frame.evidence, frame.certainty),
        (Some(Evidence::EntryPoint), Some(Certainty::Approximate))
    );
    // To the next known start, and no further than 1 KiB.
    assert_eq!(answers.name(0x1100, 40), "T.Two");
    assert_eq!(answers.name(0x1100 + 0x3ff, 40), "T.Two");
    assert_eq!(answers.name(0x1100 + 0x400, 40), "NoCodeAtAddress");
    // The rundown states the size.
    assert_eq!(answers.name(0x801f, 40), "T.Sized");
    assert_eq!(answers.name(0x8020, 40), "NoCodeAtAddress");
    assert_eq!(answers.at(0x8010, 40).certainty, Some(Certainty::Inferred));
}

#[test]
fn j_the_map_of_the_cold_part_is_not_that_of_the_hot_part() {
    const COLD: u32 = 1 << 28;
    let mut s = Script::default();
    s.load(10, 1, method(7, 0x1000, 100, "Split"));
    s.il_map(11, 1, 7, &[(0, 0), (20, 50)]);
    s.load(
        12,
        1,
        Method {
            flags: TIER0 | COLD,
            ..method(7, 0x5000, 100, "Split")
        },
    );
    let answers = s.finish();
    assert_eq!(answers.name(0x5010, 20), "T.Split");
    assert_eq!(
        answers.at(0x5010, 20).il_offset,
        None,
        "no map speaks of the cold part"
    );
    assert_eq!(
        answers.at(0x1000 + 60, 20).il_offset.map(|il| il.offset),
        Some(20)
    );
}

#[test]
fn k_processes_with_the_same_method_id_do_not_share_maps() {
    use chronosym::Payload;
    use chronosym::facts::At;
    use chronosym_events::{EventKey, EventSchema, PointerSize, Provider};
    let mut session = Session::default();
    let mut push = |pid: u32, id: u32, version: u32, time_ns: u64, payload: &[u8]| {
        let schema = EventSchema::new(EventKey::Manifest {
            provider: Provider::Runtime,
            id,
            version,
        });
        let schema = std::sync::Arc::new(schema);
        let event_type = session.event_type(schema);
        // Thread ids are unique per machine; these two happen to be in succession on one thread.
        let at = At::new(time_ns).process(pid).thread(1);
        let payload = Payload {
            pointer_size: PointerSize::Eight,
            bytes: payload,
        };
        session.push(event_type, at, payload, None);
    };
    let map = |il: i32| {
        payload::ILMap {
            id: 7,
            entries: &[(il, 0)],
            ..payload::ILMap::default()
        }
        .encode(0)
    };
    for (time, pid) in [(10, 100), (20, 200), (30, 300)] {
        push(pid, 143, 2, time, &method(7, 0x1000, 100, "Same").encode(2));
        push(pid, 190, 0, time + 1, &map(pid as i32));
    }
    push(200, 144, 2, 40, &method(7, 0x1000, 100, "Same").encode(2));
    let timeline = session.finish();
    for (pid, time) in [(100, 50), (200, 35), (300, 50)] {
        let process = timeline.find_process(pid, None).expect("the process");
        let frame = timeline
            .frames(process, 0x1010, time, Position::Exact, None)
            .pop()
            .expect("a frame");
        assert_eq!(
            frame.il_offset.map(|il| il.offset),
            Some(pid),
            "process {pid}"
        );
    }
}

#[test]
fn l_a_parenthesis_in_the_return_type_does_not_garble_the_name() {
    let mut s = Script::default();
    let names = Some(("T", "Get", "method void *(int32)  (class System.String)"));
    s.load(
        10,
        1,
        Method {
            names,
            ..method(1, 0x1000, 64, "")
        },
    );
    let frame = s.finish().at(0x1010, 20);
    assert_eq!(frame.name().ok(), Some("T.Get"));
    assert_eq!(
        frame.signature(),
        Some("method void *(int32)  (class System.String)")
    );
}

#[test]
fn m_module_names_keep_their_case() {
    let mut s = Script::default();
    s.module_load(1, 5, "/app/LivePlugin.dll");
    s.load(
        10,
        1,
        Method {
            module: 5,
            ..method(1, 0x1000, 64, "A")
        },
    );
    s.load(
        10,
        1,
        Method {
            module: 5,
            ..method(2, 0x2000, 64, "B")
        },
    );
    s.unload(
        30,
        1,
        Method {
            module: 5,
            ..method(2, 0x2000, 64, "B")
        },
    );
    let answers = s.finish();
    for (address, time) in [(0x1010, 20), (0x2010, 20)] {
        assert_eq!(answers.at(address, time).module(), Some("LivePlugin"));
    }
}

#[test]
fn sampler_ticks_are_wall_clock_samples() {
    let mut s = Script::default();
    s.load(10, 1, method(1, 0x1000, 64, "A"));
    s.sample(20, 5, &[0x1010]);
    let answers = s.finish();
    let profile = answers.0.profile(&chronosym::Filter::default(), None);
    assert_eq!(profile.entries[0].kind, SampleKind::WallManaged);
}
