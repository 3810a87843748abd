//! Pictures of samples that a profiler of one's own states: hostile names, other units, nothing at
//! all, too much.

use std::sync::Arc;

use chronosym_core::facts::{Action, At, Image, Method, Process, Sample};
use chronosym_core::{
    Diagnostic, DiagnosticKind, Filter, Options, Profile, SampleKind, Session, Timeline, Weight,
};
use chronosym_export::{
    CallTree, Granularity, NamedFile, ReportFacts, ReportSource, Series, Shape, TreeOptions,
    WeightUnit,
};
use serde_json::Value;

/// Ends elements, values and comments wherever they are written.
const HOSTILE: &str =
    "</script></style></text>]]>--><script>alert(1)</script>\"'&amp;\\\u{202e}\u{0}\u{2028};=1+1";

fn timeline(samples: impl Fn(&mut Session)) -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(42).thread(7);
    session.apply(at, Process::new(Action::Load, HOSTILE));
    session.apply(
        at,
        Image::new(
            Action::Load,
            0x10000,
            0x1000,
            &*format!("/lib/{HOSTILE}.so"),
        ),
    );
    session.apply(
        at,
        Method::new(Action::Load, 1, 0x1000, 64).named(HOSTILE, "Run", "void ()"),
    );
    session.apply(
        at,
        Method::new(Action::Load, 2, 0x2000, 64).named("App.Type", "Go", "void ()"),
    );
    samples(&mut session);
    session.finish()
}

fn series(timeline: &Arc<Timeline>, granularity: Granularity) -> Series {
    let (filter, shape) = (Filter::default(), Shape::default());
    Series::new(timeline, &filter, None, &shape, granularity, None)
}

fn tree(profile: &Profile, granularity: Granularity) -> CallTree {
    let options = TreeOptions {
        threads: granularity.threads,
        lines: granularity.lines,
        addresses: granularity.addresses,
        unit: WeightUnit::of(profile),
        ..TreeOptions::default()
    };
    CallTree::new(profile, options)
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Each format in text: svg, html, speedscope, firefox, the comparison with itself as svg and html.
fn all(timeline: &Arc<Timeline>) -> [String; 6] {
    let notes = vec![Diagnostic::new(DiagnosticKind::Damage, HOSTILE)];
    let profile = timeline.profile(&Filter::default(), None);
    let facts = ReportFacts::new(HOSTILE, &profile, notes);
    let (tree, series) = (
        tree(&profile, Granularity::default()),
        series(timeline, Granularity::default()),
    );
    let (side, report) = ((&profile, &tree), (&series, &facts));
    [
        text(|out| chronosym_export::write_svg(&profile, &tree, out)),
        text(|out| {
            let source = |_: NamedFile<'_>| Some(ReportSource::new(HOSTILE, HOSTILE));
            chronosym_export::write_report(&series, &facts, source, out)
        }),
        text(|out| chronosym_export::write_speedscope(&series, out)),
        text(|out| chronosym_export::write_firefox(&series, out)),
        text(|out| chronosym_export::write_diff_svg(side, side, out)),
        text(|out| chronosym_export::write_diff_report(report, report, out)),
    ]
}

fn data(picture: &str) -> Value {
    let (_, data) = picture.split_once("id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

#[test]
fn hostile_names_stay_text() {
    let timeline = timeline(|session| {
        for time in 1..4 {
            let at = At::new(time).process(42).thread(7);
            let stack = [0x1010, 0x2010, 0x10020];
            session.sample(at, &stack, Sample::cpu().weighing(Weight::Ns(1_000_001)));
        }
    });
    let [svg, html, speedscope, firefox, diff, diff_page] = all(&timeline);
    for picture in [&svg, &html, &diff, &diff_page] {
        assert!(!picture.contains("<script>alert"), "markup got through");
        assert!(!picture.contains(|c| chronosym_types::escape::is_hostile(c) && c != '\n'));
    }
    for picture in [&svg, &diff] {
        let whole = data(picture);
        let names = whole["frames"].as_array().unwrap().iter();
        assert!(
            names
                .filter(|frame| frame[0].as_str().unwrap().contains("<script>alert"))
                .count()
                >= 2
        );
    }
    // Scripts: the data's, the graph's, the page's.
    for (picture, scripts) in [(svg, 2), (diff, 2), (html, 2), (diff_page, 3)] {
        assert_eq!(picture.matches("</script>").count(), scripts);
    }
    for json in [&speedscope, &firefox] {
        serde_json::from_str::<Value>(json).unwrap();
        assert!(!json.contains(['\u{202e}', '\u{2028}', '\0']));
    }
    let series = series(&timeline, Granularity::default());
    assert_eq!((series.unit, series.total()), (WeightUnit::Time, 3_000_003));
    assert!(
        firefox.contains("\"weight\":[1.000001,1.000001,1.000001]"),
        "{firefox}"
    );
    assert!(
        speedscope.contains("\"weights\":[3000003]"),
        "runs of one stack are one"
    );
}

#[test]
fn the_unit_is_one_that_all_samples_have() {
    let of = |weights: &'static [Weight]| {
        let timeline = timeline(|session| {
            for (&weight, time) in weights.iter().zip(1..) {
                let at = At::new(time).process(42).thread(7);
                let sample = Sample::new(SampleKind::Event).weighing(weight);
                session.sample(at, &[0x1010], sample);
            }
        });
        let series = series(&timeline, Granularity::default());
        (series.unit, series.total(), all(&timeline))
    };
    let (unit, total, [svg, _, speedscope, firefox, ..]) =
        of(&[Weight::Bytes(8), Weight::Bytes(24)]);
    assert_eq!((unit, total), (WeightUnit::Bytes, 32));
    assert_eq!(data(&svg)["unit"], "bytes");
    assert!(
        speedscope.contains("\"unit\":\"bytes\"") && firefox.contains("\"weightType\":\"bytes\"")
    );
    let (unit, total, [svg, _, speedscope, firefox, ..]) =
        of(&[Weight::Bytes(8), Weight::One, Weight::Ns(5)]);
    assert_eq!((unit, total), (WeightUnit::Samples, 3));
    assert_eq!(data(&svg)["unit"], "samples");
    assert!(
        speedscope.contains("\"unit\":\"none\"") && firefox.contains("\"weightType\":\"samples\"")
    );
}

#[test]
fn nothing_and_too_much_are_drawn() {
    for samples in [0, 1, 4] {
        let timeline = timeline(|session| {
            for time in 0..samples {
                let at = At::new(time).process(42).thread(time);
                let sample = Sample::cpu().weighing(Weight::Ns(u64::MAX));
                session.sample(at, &[0x1010, 0x2010], sample);
            }
        });
        let series = series(&timeline, Granularity::default());
        assert_eq!(series.total(), if samples > 0 { u64::MAX } else { 0 });
        for text in all(&timeline) {
            assert!(!text.contains("NaN") && !text.contains("inf\""));
        }
        let mut out = Vec::new();
        let profile = timeline.profile(&Filter::default(), None);
        chronosym_export::write_pprof(&profile, Granularity::default(), &mut out).unwrap();
        chronosym_export::write_otlp(&profile, Granularity::default(), &mut out).unwrap();
        assert!(!out.is_empty());
    }
}

#[test]
fn small_branches_are_joined_and_nothing_is_lost() {
    let timeline = timeline(|session| {
        let sample = |time: u64, stack: &[u64], ns: u64| {
            let at = At::new(time).process(42).thread(7);
            (at, stack.to_vec(), Sample::cpu().weighing(Weight::Ns(ns)))
        };
        let small = (0..60_000).map(|i| sample(i + 1, &[0x10_0000 + i * 64, 0x2010], 3));
        for (at, stack, sample) in small.chain([sample(60_500, &[0x2010], 4_000_000_000)]) {
            session.sample(at, &stack, sample);
        }
    });
    let [svg, ..] = all(&timeline);
    let data = data(&svg);
    let nodes = data["nodes"].as_array().unwrap();
    assert!(nodes.len() < 3 * 20, "{} nodes", nodes.len() / 3);
    let own: u64 = nodes.chunks(3).map(|node| node[2].as_u64().unwrap()).sum();
    assert_eq!(own, 4_000_180_000);
}

#[test]
fn deep_stacks_are_drawn() {
    let timeline = timeline(|session| {
        let at = At::new(1).process(42).thread(7);
        let stack: Vec<u64> = (0..20_000).map(|i| 0x2010 + (i % 2)).collect();
        session.sample(at, &stack, Sample::cpu().weighing(Weight::Ns(1)));
    });
    for text in all(&timeline) {
        assert!(text.len() > 20_000);
    }
}

/// Two threads; a frame of one has a line of an unknown file.
fn two_threads() -> Arc<Timeline> {
    timeline(|session| {
        for (tid, time) in [(7, 1), (8, 2), (7, 3)] {
            let at = At::new(time).process(42).thread(tid);
            let sample = Sample::cpu().weighing(Weight::Ns(5));
            session.sample(at, &[0x1010, 0x2010], sample);
        }
    })
}

#[test]
fn threads_are_joined_in_each_picture() {
    let timeline = two_threads();
    let profile = timeline.profile(&Filter::default(), None);
    let tracks = |granularity: Granularity| {
        let series = series(&timeline, granularity);
        let speedscope = text(|out| chronosym_export::write_speedscope(&series, out));
        let firefox = text(|out| chronosym_export::write_firefox(&series, out));
        let svg = tree(&profile, granularity);
        let svg = text(|out| chronosym_export::write_svg(&profile, &svg, out));
        let mut binary = Vec::new();
        chronosym_export::write_otlp(&profile, granularity, &mut binary).unwrap();
        let has_thread_ids = binary.windows(9).any(|bytes| bytes == b"thread.id");
        let list = |json: &str, name: &str| {
            let file: Value = serde_json::from_str(json).unwrap();
            file[name].as_array().unwrap().len()
        };
        let threads = svg.matches("class=\"box thread\"").count();
        let lists = (list(&speedscope, "profiles"), list(&firefox, "threads"));
        (lists, threads, has_thread_ids)
    };
    // With the profile of all threads.
    assert_eq!(tracks(Granularity::default()), ((3, 2), 2, true));
    let joined = Granularity {
        threads: false,
        ..Granularity::default()
    };
    assert_eq!(tracks(joined), ((1, 1), 0, false));
}

#[test]
fn a_comparison_shows_growth() {
    let of = |run: u64, go: u64| {
        timeline(|session| {
            for (address, times) in [(0x1010, run), (0x2010, go)] {
                for time in 0..times {
                    let at = At::new(time).process(42).thread(address);
                    session.sample(at, &[address], Sample::cpu().weighing(Weight::Ns(7)));
                }
            }
        })
    };
    let profile = |timeline: &Arc<Timeline>| timeline.profile(&Filter::default(), None);
    let (before, after) = (profile(&of(30, 10)), profile(&of(0, 5)));
    let (tree_before, tree_after) = (
        tree(&before, Granularity::default()),
        tree(&after, Granularity::default()),
    );
    let svg = text(|out| {
        chronosym_export::write_diff_svg((&before, &tree_before), (&after, &tree_after), out)
    });
    let data = data(&svg);
    assert_eq!(data["unit"], "shares");
    let shares: Vec<_> = data["nodes"]
        .as_array()
        .unwrap()
        .chunks(4)
        .map(|node| {
            let name = &data["frames"][node[1].as_u64().unwrap() as usize][0];
            let is_go = name.as_str().unwrap().ends_with("App.Type.Go");
            (is_go, node[2].as_u64(), node[3].as_u64())
        })
        .collect();
    let (all, part) = (1_000_000_000, 250_000_000);
    let expected = [
        (true, Some(all), Some(part)),
        (false, Some(0), Some(all - part)),
    ];
    assert_eq!(shares.len(), 2, "{shares:?}");
    assert!(
        expected.iter().all(|node| shares.contains(node)),
        "{shares:?}"
    );
    // All of Run has gone; of the width that Go has, three fifths are new.
    assert_eq!(svg.matches("class=\"box less3\"").count(), 1);
    assert_eq!(svg.matches("class=\"box more2\"").count(), 1);
    assert!(svg.contains("25.0 % → 100.0 %"));
}

#[test]
fn gaps_between_samples_stay_gaps() {
    let timeline = timeline(|session| {
        for (time, tid) in [(1000, 7), (1100, 7), (1204, 7), (5000, 7), (9000, 8)] {
            let at = At::new(time).process(42).thread(tid);
            let sample = Sample::cpu().weighing(Weight::Ns(100));
            session.sample(at, &[0x1010, 0x2010], sample);
        }
    });
    let series = series(&timeline, Granularity::default());
    let json = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let speedscope = json(text(|out| chronosym_export::write_speedscope(&series, out)));
    let profiles = speedscope["profiles"].as_array().unwrap();
    let of = |index: usize| {
        let stacks = profiles[index]["samples"].as_array().unwrap().iter();
        let depths: Vec<usize> = stacks
            .map(|stack| stack.as_array().unwrap().len())
            .collect();
        let values = ["startValue", "endValue"].map(|key| profiles[index][key].as_u64().unwrap());
        (depths, profiles[index]["weights"].to_string(), values)
    };
    assert_eq!(of(0), (vec![2], "[500]".into(), [0, 500]));
    // Differences of less than half of a weight are none.
    assert_eq!(
        of(1),
        (vec![2, 0, 2], "[300,3700,100]".into(), [1000, 5100])
    );
    assert_eq!(of(2), (vec![2], "[100]".into(), [9000, 9100]));
    let firefox = json(text(|out| chronosym_export::write_firefox(&series, out)));
    let samples = &firefox["threads"][0]["samples"];
    assert_eq!(samples["stack"].to_string(), "[1,1,1,null,1]");
    let times = "[0.001,0.0011,0.001204,0.001304,0.005]";
    assert_eq!(samples["time"].to_string(), times);
    assert_eq!(samples["threadCPUDelta"].to_string(), "[100,100,100,0,100]");
    assert_eq!(firefox["meta"]["initialSelectedThreads"].to_string(), "[0]");
}

/// The header of a report with at most 400 samples of 2,000, each 1 ms after the one before it.
fn few_of_many(address: impl Fn(u64) -> u64) -> Value {
    let timeline = timeline(|session| {
        for time in 1..=2_000 {
            let at = At::new(time * 1_000_000).process(42).thread(7);
            let sample = Sample::cpu().weighing(Weight::Ns(1_000_000));
            session.sample(at, &[address(time)], sample);
        }
    });
    let profile = timeline.profile(&Filter::default(), None);
    let mut facts = ReportFacts::new("many", &profile, Vec::new());
    facts.max_samples = 400;
    let series = series(&timeline, Granularity::default());
    let page = text(|out| chronosym_export::write_report(&series, &facts, |_| None, out));
    let (_, data) = page.split_once("id=\"trace\">").unwrap();
    let data = data.split_once("</script>").unwrap().0.trim();
    let packed = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, data).unwrap();
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&*packed), &mut bytes).unwrap();
    let (size, rest) = bytes.split_first_chunk().unwrap();
    serde_json::from_slice(&rest[..u32::from_le_bytes(*size) as usize]).unwrap()
}

#[test]
fn too_many_samples_keep_their_place_in_time() {
    // Slices that merge so many samples would be 100 ms or more, and be seen on the time axis.
    let varied = few_of_many(|time| 0x1000 + time % 50);
    let columns = varied["columns"].as_array().unwrap();
    let time = columns
        .iter()
        .find(|it| it["name"] == "sample.time")
        .unwrap();
    assert_eq!((&varied["every"], &time["count"]), (&5.into(), &400.into()));
    assert!(varied["slice"].is_null());
}

#[test]
fn names_that_lost_events_could_refute_are_marked() {
    let at = |time| At::new(time).process(42).thread(7);
    for has_loss in [false, true] {
        let timeline = timeline(|session| {
            for (id, name) in [(1, "Old"), (2, "New")] {
                if has_loss && id == 2 {
                    session.lost(chronosym_core::Loss::between(20, 30));
                }
                let method = Method::new(Action::Load, 10 + id, id * 0x20000, 0x100);
                session.apply(at(id * 20 - 10), method.named("T", name, "void ()"));
            }
            let sample = Sample::cpu().weighing(Weight::Ns(100));
            session.sample(at(40), &[0x20010, 0x40010], sample);
        });
        let profile = timeline.profile(&Filter::default(), None);
        let series = series(&timeline, Granularity::default());
        let tree = tree(&profile, Granularity::default());
        for text in [
            text(|out| chronosym_export::write_folded(&tree, out)),
            text(|out| chronosym_export::write_speedscope(&series, out)),
            text(|out| chronosym_export::write_firefox(&series, out)),
        ] {
            assert!(text.contains("T.Old") && text.contains("T.New"), "{text}");
            assert_eq!(text.contains("~T.Old"), has_loss, "{text}");
            assert!(!text.contains("~T.New"), "{text}");
        }
    }
}
