//! Rules 21 and 22 over real traces: the time that samples represent, and whether threads ran or
//! waited.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use chronosym::chronosym_events::{EventKey, EventSchema};
use chronosym::facts::{At, Sample};
use chronosym::{
    Activity, ActivityFilter, Filter, Options, SampleKind, Session, ThreadIndex, Timeline,
    WallFlag, Weight,
};
use chronosym_conformance::unzip;
use chronosym_export::{CallTree, TreeOptions, WeightUnit, write_folded};

fn read(name: &str) -> Arc<Timeline> {
    read_with(name, Options::default())
}

fn read_with(name: &str, options: Options) -> Arc<Timeline> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata");
    let bytes = unzip(&folder.join(format!("{name}.nettrace.zip")), ".nettrace").expect("a trace");
    let mut session = Session::new(options);
    chronosym::source::nettrace::read(Cursor::new(&*bytes), &mut session).expect("a trace");
    session.finish()
}

/// A session that stores a time window finds in it what one finds that stores everything.
// Rules 21 and 22.
#[test]
fn rule_21_a_time_window_changes_no_sample() {
    for name in ["clr10/traces/all", "clr31/workload/traces/all"] {
        let whole = read(name);
        let ms = 1_000_000;
        for times in [0..300 * ms, 250 * ms..900 * ms, 700 * ms..u64::MAX, 5..6] {
            let mut options = Options::default();
            options.times = Some(times.clone());
            let part = read_with(name, options);
            assert!(part.has_whole_window());
            assert_eq!(part.samples().len(), whole.samples().len());
            assert_eq!(part.samples().counts(), whole.samples().counts());
            let of_window = |timeline: &Timeline| {
                let mut filter = Filter::default();
                (filter.from_ns, filter.to_ns) = (Some(times.start), Some(times.end));
                let mut samples = Vec::new();
                timeline.for_each_weighed_sample(&filter, |sample| {
                    let activity = timeline.activity(&sample);
                    samples.push((sample.time_ns, *sample.class, sample.weight, activity));
                });
                samples
            };
            let samples = of_window(&whole);
            assert_eq!(of_window(&part), samples, "{name} {times:?}");
            let stored = part.samples().iter().count();
            assert!(stored >= samples.len());
            assert!(
                stored <= samples.len() + 200,
                "{stored} of {}",
                samples.len()
            );
        }
    }
}

#[test]
fn samples_outside_of_a_time_window_need_only_be_counted() {
    for name in ["clr10/traces/all", "clr31/workload/traces/all"] {
        let whole = read(name);
        let mut options = Options::default();
        let times = 250_000_000..900_000_000;
        (options.times, options.skip_outside) = (Some(times.clone()), true);
        let part = read_with(name, options);
        let mut filter = Filter::default();
        (filter.from_ns, filter.to_ns) = (Some(times.start), Some(times.end));
        let stacks = |timeline: &Arc<Timeline>| {
            let profile = timeline.counts(&filter, None);
            let tree = CallTree::new(&profile, TreeOptions::default());
            let mut lines = Vec::new();
            write_folded(&tree, &mut lines).expect("memory");
            lines
        };
        assert!(!stacks(&whole).is_empty());
        assert_eq!(stacks(&part), stacks(&whole), "{name}");
        let events = |timeline: &Timeline| -> Vec<_> {
            let types = timeline.event_types().iter();
            types.map(|it| (it.label(), it.count, it.stacks)).collect()
        };
        assert_eq!(events(&part), events(&whole));
        let duration = |timeline: &Timeline| timeline.facts().duration_ns;
        assert_eq!(duration(&part), duration(&whole));
        assert!(part.samples().len() < whole.samples().len());
    }
}

/// Returns each thread's samples: (time, time that it represents), in ns.
fn samples(timeline: &Timeline) -> BTreeMap<ThreadIndex, Vec<(u64, u64)>> {
    let mut threads: BTreeMap<ThreadIndex, Vec<(u64, u64)>> = BTreeMap::new();
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let (time, weight) = (sample.time_ns, sample.weight);
        let Weight::Ns(ns) = weight else {
            panic!("{weight:?} at {time}");
        };
        let samples = threads.entry(sample.class.thread).or_default();
        samples.push((time, ns));
    });
    threads
}

/// In other tools a sample lasts until the thread's next event with a stack. Other events between
/// two samples divide the time differently, but do not change its sum. Two differences are taken
/// into account here: the last sample of a thread lasts no time there, and one that the next ticks
/// do not see (it has no managed frame then) lasts until it is seen again.
// Rule 21.
#[test]
fn rule_21_threads_have_the_time_in_which_they_were_seen() {
    for name in ["clr10/traces/all", "clr31/workload/traces/all"] {
        let threads = samples(&read(name));
        let busiest = threads.values().max_by_key(|s| s.len()).expect("a thread");
        let mut compared = 0;
        for (thread, samples) in &threads {
            let own: u64 = samples.iter().map(|s| s.1).sum();
            let until_next: u64 = samples.windows(2).map(|pair| pair[1].0 - pair[0].0).sum();
            let unseen: u64 = samples
                .windows(2)
                .map(|pair| {
                    // The only thread in every tick was sampled twice in the meantime: the first
                    // was the next tick.
                    let next = busiest.partition_point(|s| s.0 <= pair[0].0);
                    let second = busiest.get(next + 1).filter(|s| s.0 < pair[1].0);
                    second.map_or(0, |_| pair[1].0 - busiest[next].0)
                })
                .sum();
            let last = samples.last().map_or(0, |s| s.1);
            let expected = until_next - unseen + last;
            let difference = own.abs_diff(expected);
            println!(
                "{name} {thread:?}: {own} of {} samples, elsewhere {until_next}, unseen {unseen}",
                samples.len()
            );
            // The time of threads with a few samples is within the duration of a tick.
            assert!(
                difference * 50 <= expected || difference < 2_000_000,
                "{name} {thread:?}: {own}, not {expected}"
            );
            compared += u64::from(samples.len() > 100);
        }
        assert!(compared >= 4, "{name}: {compared} busy threads");
    }
}

#[test]
fn rule_21_a_profile_has_the_time_of_its_samples_whatever_passes() {
    let timeline = read("clr10/traces/all");
    let all = timeline.profile(&Filter::default(), None);
    let time = all.time_ns().expect("every sample has a time");
    let of_samples: u64 = samples(&timeline).values().flatten().map(|s| s.1).sum();
    assert_eq!(time, of_samples);
    // The requested interval was one millisecond, and the actual one was longer.
    assert!(time / all.samples() > 5 * all.sample_interval_ns.expect("a rate"));
    let middle = (all.times.start + all.times.end) / 2;
    let half = |from_ns, to_ns| {
        let mut filter = Filter::default();
        (filter.from_ns, filter.to_ns) = (from_ns, to_ns);
        timeline.profile(&filter, None).time_ns().expect("a time")
    };
    assert_eq!(half(None, Some(middle)) + half(Some(middle), None), time);
}

#[test]
fn rule_21_samples_of_a_counter_weigh_their_periods() {
    let shares = |samples: &[(&str, u64)]| {
        let mut session = Session::new(Options::default());
        for (at, &(counter, period)) in samples.iter().enumerate() {
            let key = EventKey::Named {
                provider: "perf".into(),
                name: counter.into(),
            };
            let mut sample = Sample::cpu().weighing(Weight::Count(period));
            sample.event = Some(session.event_type(Arc::new(EventSchema::new(key))));
            let address = [0x1000 * (1 + at as u64)];
            session.sample(At::new(at as u64).process(1).thread(1), &address, sample);
        }
        let profile = session.finish().profile(&Filter::default(), None);
        let unit = WeightUnit::of(&profile);
        let weights = profile.entries.iter().map(|entry| unit.weight(entry));
        (
            unit,
            profile.counter.as_deref().map(str::to_owned),
            weights.collect::<Vec<_>>(),
        )
    };
    let cycles = |counter: Option<&str>| counter.map(str::to_owned);
    assert_eq!(
        shares(&[("cpu_core/cycles/", 7), ("cpu_atom/cycles/", 993)]),
        (WeightUnit::Events, cycles(Some("cycles")), vec![7, 993])
    );
    assert_eq!(
        shares(&[("cycles", 7), ("instructions", 993)]),
        (WeightUnit::Samples, None, vec![1, 1]),
        "different events are never added"
    );
}

#[test]
fn counts_are_a_profile_without_times_and_activities() {
    let timeline = read("clr10/traces/all");
    let (all, counts) = (
        timeline.profile(&Filter::default(), None),
        timeline.counts(&Filter::default(), None),
    );
    assert_eq!(counts.time_ns(), None);
    assert_eq!(counts.entries.len(), all.entries.len());
    for (entry, mut counted) in all.entries.iter().zip(counts.entries) {
        assert_eq!((counted.time_ns, counted.untimed), (0, counted.samples));
        assert_eq!(counted.activity, Activity::Unknown);
        (counted.time_ns, counted.untimed) = (entry.time_ns, entry.untimed);
        counted.activity = entry.activity;
        assert_eq!(counted, *entry);
    }
}

#[test]
fn rule_21_cpu_samples_represent_the_stated_period() {
    let timeline = read("clr10/traces/linux");
    let every = timeline.facts().sample_interval_ns.expect("a rate");
    timeline.for_each_weighed_sample(&Filter::default(), |sample| {
        let stated = (sample.class.kind, sample.weight);
        assert_eq!(stated, (SampleKind::Cpu, Weight::Ns(every)));
    });
}

// Rule 22.
#[test]
fn rule_22_a_flag_is_trusted_if_its_runtime_is_correct_and_nothing_contradicts_it() {
    for (name, flag) in [
        ("clr10/traces/all", WallFlag::Trusted),
        ("clr10/traces/reuse", WallFlag::Trusted),
        ("clr10/traces/net9-rich", WallFlag::Runtime),
        // Loops without a call are flagged as external in a third of their samples.
        ("clr31/live/traces/full", WallFlag::Contradicted),
    ] {
        let timeline = read(name);
        let profile = timeline.profile(&Filter::default(), None);
        let of = profile.entries.iter().find_map(|entry| {
            let thread = timeline.thread_view(entry.thread)?;
            timeline.wall_flag(thread.process)
        });
        assert_eq!(of, Some(flag), "{name}");
        for entry in &profile.entries {
            let is_external = entry.kind == SampleKind::WallExternal;
            match (flag, entry.activity) {
                (_, Activity::OnCpu) => panic!("{name}: wall-clock samples prove no processor"),
                (_, Activity::Runnable) => assert!(!is_external, "{name}"),
                (WallFlag::Trusted, _) => assert!(is_external, "{name}"),
                // Threads block in certain methods, whatever the flag.
                (_, Activity::Blocked) => {}
                _ => assert!(is_external, "{name}"),
            }
        }
        let of = |activity: Activity| {
            let entries = profile.entries.iter();
            let entries = entries.filter(|entry| entry.activity == activity);
            entries.map(|entry| entry.samples).sum::<u64>()
        };
        let passing = |activity| {
            let mut filter = Filter::default();
            filter.activity = Some(activity);
            timeline.profile(&filter, None).samples()
        };
        for activity in Activity::ALL {
            assert_eq!(
                passing(ActivityFilter::Only(activity)),
                of(activity),
                "{name}"
            );
        }
        let (running, waiting) = (passing(ActivityFilter::Running), of(Activity::Blocked));
        let doubtful = if flag == WallFlag::Trusted {
            0
        } else {
            of(Activity::Unknown)
        };
        assert_eq!(running, of(Activity::Runnable) + doubtful, "{name}");
        println!("{name}: {running} running, {waiting} blocked");
        assert!(running > 0, "{name}");
    }
}
