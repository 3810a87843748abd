//! The sentences of a summary are those that the samples support.

use chronosym_core::facts::{Action, At, Method, Module, Process, Sample};
use chronosym_core::{Diagnostics, Filter, Options, SampleKind, Session, Weight};
use chronosym_export::TraceSummary;

/// A recording of `samples` samples of 1 ms of processor time, 1 ms apart.
fn sentences(samples: u64) -> String {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(42).thread(7);
    session.apply(at, Process::new(Action::Load, "shop"));
    session.apply(at, Module::new(Action::Load, 1, "/app/Shop.dll"));
    let method = Method::new(Action::Load, 1, 0x1000, 64).named("Shop.Cart", "Total", "");
    session.apply(at, method.in_module(1, 0));
    for time in 1..=samples {
        let sample = Sample::new(SampleKind::Cpu).weighing(Weight::Ns(1_000_000));
        session.sample(at.at(time * 1_000_000), &[0x1010], sample);
    }
    let profile = session.finish().profile(&Filter::default(), None);
    let summary = TraceSummary::new(&profile, &Diagnostics::default());
    summary.sentences("shop.nettrace").join("\n")
}

#[test]
fn nothing_is_said_of_samples_that_are_not_there() {
    let text = sentences(0);
    assert!(
        text.contains("neither profiler samples nor stacks"),
        "{text}"
    );
    assert!(!text.contains('%') && !text.contains("NaN"), "{text}");
    assert!(!text.contains("lasts"), "{text}");
}

#[test]
fn few_samples_are_called_few() {
    let text = sentences(1);
    assert!(text.contains("only 1 sample, too few"), "{text}");
    assert!(!text.contains("processors"), "{text}");
    assert!(text.contains("Shop!Shop.Cart.Total with 100.0 %"), "{text}");
    let text = sentences(100);
    assert!(!text.contains("too few"), "{text}");
}
