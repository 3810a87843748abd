//! Runs each target with its seeds, its corpus, inputs that revealed bugs, and randomly changed
//! inputs.
//!
//! Each target gets 300 changed inputs; with `CHRONOSYM_FUZZ_SECONDS`, as many as fit into that
//! time. They are the same, in the same order, on every run. An input that violates a property is
//! written to a file, whose path is in the message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use chronosym_fuzz::mutate::{Random, change};
use chronosym_fuzz::{TARGETS, Target, corpus, seeds};
use libtest_mimic::{Arguments, Failed, Trial};

const RUNS: u64 = 300;

/// Larger inputs are not changed: they take long, and little of them is reached.
const MOST: usize = 64 << 10;

fn main() {
    let args = Arguments::from_args();
    let of = |target: &'static Target| {
        let name = target.name;
        [
            Trial::test(format!("replay::{name}"), move || replay(target)),
            Trial::test(format!("changed::{name}"), move || changed(target)),
        ]
    };
    libtest_mimic::run(&args, TARGETS.iter().flat_map(of).collect()).exit();
}

fn run(target: &Target, what: &str, bytes: &[u8]) -> Result<(), Failed> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).map_err(|_| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("broken-{}", target.name));
        let kept = std::fs::write(&path, bytes).map_or_else(|e| e.to_string(), |()| String::new());
        format!("{what} breaks it: {} {kept}", path.display()).into()
    })
}

fn inputs(target: &Target) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let mut inputs = seeds::of(target.name);
    assert!(!inputs.is_empty(), "a target without seeds");
    inputs.extend(corpus::files(&corpus::folder(target.name))?);
    Ok(inputs)
}

fn replay(target: &Target) -> Result<(), Failed> {
    let known = corpus::files(&corpus::regressions(target.name))?;
    for (name, bytes) in inputs(target)?.into_iter().chain(known) {
        run(target, &name, &bytes)?;
    }
    run(target, "nothing", &[])
}

fn changed(target: &Target) -> Result<(), Failed> {
    let time = match std::env::var("CHRONOSYM_FUZZ_SECONDS") {
        Ok(text) => Some(Duration::from_secs(text.parse()?)),
        Err(_) => None,
    };
    let (inputs, words) = (inputs(target)?, corpus::words(target.words));
    let begun = Instant::now();
    let goes_on = |number: u64| time.map_or(number < RUNS, |time| begun.elapsed() < time);
    for number in (0..).take_while(|&number| goes_on(number)) {
        let mut random = Random::new(number);
        let (name, bytes) = &inputs[random.below(inputs.len())];
        if bytes.len() > MOST && number % 8 != 0 {
            continue;
        }
        let (_, other) = &inputs[random.below(inputs.len())];
        let mut bytes = bytes.clone();
        change(&mut bytes, other, &words, &mut random);
        run(target, &format!("{name}, change {number}"), &bytes)?;
    }
    Ok(())
}
