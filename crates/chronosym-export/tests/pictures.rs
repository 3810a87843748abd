//! Pictures of samples that a profiler of one's own states: hostile names, other units, nothing at all, too much.

use std::sync::Arc;

use chronosym::facts::{Action, At, Image, Method, Process, Sample};
use chronosym::{Filter, Options, SampleKind, Session, Shape, Timeline, Weight};
use chronosym_export::{PageFacts, Series, Unit};
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

fn series(timeline: &Arc<Timeline>) -> Series {
    Series::new(timeline, &Filter::default(), None, &Shape::default())
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Each format in text.
fn all(series: &Series) -> [String; 4] {
    let facts = PageFacts::new(HOSTILE, vec![HOSTILE.to_owned()]);
    [
        text(|out| chronosym_export::write_svg(series, out)),
        text(|out| chronosym_export::write_html(series, &facts, out)),
        text(|out| chronosym_export::write_speedscope(series, out)),
        text(|out| chronosym_export::write_firefox(series, out)),
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
    let series = series(&timeline);
    let [svg, html, speedscope, firefox] = all(&series);
    for picture in [&svg, &html] {
        assert!(!picture.contains("<script>alert"), "markup got through");
        assert!(!picture.contains(|c| chronosym_types::escape::is_hostile(c) && c != '\n'));
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
    assert_eq!(svg.matches("</script>").count(), 2);
    assert_eq!(html.matches("</script>").count(), 3);
    for json in [&speedscope, &firefox] {
        serde_json::from_str::<Value>(json).unwrap();
        assert!(!json.contains(['\u{202e}', '\u{2028}', '\0']));
    }
    assert_eq!(
        (series.unit, series.total()),
        (Unit::Nanoseconds, 3_000_003)
    );
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
fn units_are_what_all_samples_have() {
    let of = |weights: &'static [Weight]| {
        let timeline = timeline(|session| {
            for (&weight, time) in weights.iter().zip(1..) {
                let at = At::new(time).process(42).thread(7);
                let sample = Sample::new(SampleKind::Event).weighing(weight);
                session.sample(at, &[0x1010], sample);
            }
        });
        let series = series(&timeline);
        (series.unit, series.total(), all(&series))
    };
    let (unit, total, [svg, _, speedscope, firefox]) = of(&[Weight::Bytes(8), Weight::Bytes(24)]);
    assert_eq!((unit, total), (Unit::Bytes, 32));
    assert_eq!(data(&svg)["unit"], "bytes");
    assert!(
        speedscope.contains("\"unit\":\"bytes\"") && firefox.contains("\"weightType\":\"bytes\"")
    );
    let (unit, total, [svg, _, speedscope, firefox]) =
        of(&[Weight::Bytes(8), Weight::One, Weight::Ns(5)]);
    assert_eq!((unit, total), (Unit::Samples, 3));
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
        let series = series(&timeline);
        assert_eq!(series.total(), if samples > 0 { u64::MAX } else { 0 });
        for text in all(&series) {
            assert!(!text.contains("NaN") && !text.contains("inf\""));
        }
        let mut out = Vec::new();
        chronosym_export::write_pprof(&series, &mut out).unwrap();
        chronosym_export::write_otlp(&series, &mut out).unwrap();
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
    let series = series(&timeline);
    let data = data(&text(|out| chronosym_export::write_svg(&series, out)));
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
    for text in all(&series(&timeline)) {
        assert!(text.len() > 20_000);
    }
}
