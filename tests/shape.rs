//! Shaping of stacks before output, and queries of profiles.

use std::sync::Arc;

use chronosym::facts::{Action, At, Image, Method, MethodFlags, Module, Sample};
use chronosym::{
    Filter, ImageRef, NameReason, NativeFrame, Options, PdbId, PdbReference, Profile, Session,
    SourceLine, SymbolSource,
};
use chronosym_export::{
    Butterfly, By, CallTree, Change, Diff, Sort, TableOptions, TreeOptions, hot_threads, hotspots,
    write_diff, write_svg, write_text,
};
use chronosym_export::{Pattern, PatternError, Shape};

/// Names each address by the symbols of its image: an RVA is that of `main`, `A`, `B`, …; from
/// 0x100 on `In` is inlined into them.
struct Letters;

impl SymbolSource for Letters {
    fn native(&self, _: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
        let name = |rva: u64| match rva {
            0x10 => "main".to_owned(),
            _ => char::from(b'A' + (rva as u8 - 0x11)).to_string(),
        };
        Ok(match rva {
            0x10..0x30 => vec![NativeFrame::new(name(rva))],
            0x110..0x130 => vec![NativeFrame::new("In"), NativeFrame::new(name(rva - 0x100))],
            _ => return Err(NameReason::NoName),
        })
    }
}

const APP: u64 = 0x10_0000;
const LIB: u64 = 0x20_0000;
const LIBC: u64 = 0x30_0000;
const PLUGIN: u64 = 0x40_0000;

/// Returns samples of one thread. A stack is written outermost first, in words such as `app.main`,
/// `libc.A` or `app.B+` (with an inlinee).
fn profile(stacks: &[(&str, u64)]) -> Profile {
    let mut session = Session::new(Options::default());
    let at = At::new(10).process(42).thread(7);
    for (base, path) in [
        (APP, "/app/App.dll"),
        (LIB, "/app/System.Linq.dll"),
        (LIBC, "/usr/lib/x86_64-linux-gnu/libc.so.6"),
        (PLUGIN, "/app/Plugin.Text.dll"),
    ] {
        session.apply(at, Image::new(Action::Load, base, 0x1000, path));
    }
    for (stack, samples) in stacks {
        let address = |word: &str| {
            let (module, name) = word.split_once('.').unwrap();
            let base = match module {
                "app" => APP,
                "linq" => LIB,
                "libc" => LIBC,
                "plugin" => PLUGIN,
                _ => return u64::from_str_radix(name, 16).unwrap(),
            };
            let plain = name.trim_end_matches('+');
            let rva = match plain {
                "main" => 0x10,
                letter => 0x11 + u64::from(letter.as_bytes()[0] - b'A'),
            };
            base + rva + if plain == name { 0 } else { 0x100 }
        };
        // All but the innermost are where calls return to.
        let mut addresses: Vec<u64> = stack.split(' ').map(address).collect();
        let last = addresses.len() - 1;
        addresses[..last].iter_mut().for_each(|a| *a += 1);
        addresses.reverse();
        for _ in 0..*samples {
            session.sample(at.at(20), &addresses, Sample::cpu());
        }
    }
    let timeline = session.finish();
    timeline.profile(&Filter::default(), Some(Arc::new(Letters)))
}

/// The stacks as text, outermost first, sorted.
fn shown(mut profile: Profile, shape: &Shape) -> Vec<String> {
    shape.apply(&mut profile);
    let resolver = &profile.resolver;
    let text = |entry: &chronosym::ProfileEntry| {
        let frames = resolver
            .stack(entry.stack)
            .map(|f| resolver.frame(f).label());
        let mut frames: Vec<&str> = frames.collect();
        frames.reverse();
        format!("{} {}", frames.join(" "), entry.samples)
    };
    let mut lines: Vec<String> = profile.entries.iter().map(text).collect();
    lines.sort();
    lines
}

fn shape() -> Shape {
    Shape::default()
}

#[test]
fn without_options_nothing_changes() {
    let lines = shown(profile(&[("app.main app.A+ x.50", 2)]), &shape());
    assert_eq!(lines, ["App!main App!A App!In 0x50 2"]);
    assert!(shape().is_plain());
}

#[test]
fn stacks_are_chosen_by_their_frames() {
    let stacks = [
        ("app.main app.A", 1),
        ("app.main app.B", 2),
        ("app.main app.B app.C", 4),
    ];
    let include = shape().include("!A$").unwrap().include("!C$").unwrap();
    assert_eq!(
        shown(profile(&stacks), &include),
        ["App!main App!A 1", "App!main App!B App!C 4"]
    );
    let exclude = include.exclude("App!B").unwrap();
    assert_eq!(shown(profile(&stacks), &exclude), ["App!main App!A 1"]);
    // Folded functions can still be used to select stacks.
    let folded = shape().include("!C$").unwrap().fold("!C$").unwrap();
    assert_eq!(shown(profile(&stacks), &folded), ["App!main App!B 4"]);
}

#[test]
fn folded_frames_are_their_callers() {
    let stacks = [
        ("app.main app.A app.B", 1),
        ("app.main app.A", 2),
        ("app.A", 4),
    ];
    let fold = shape().fold("!A$").unwrap();
    assert_eq!(
        shown(profile(&stacks), &fold),
        ["App!main 2", "App!main App!B 1", "[folded] 4"]
    );
}

#[test]
fn modules_are_one_frame() {
    let stacks = [
        ("app.main app.A linq.A linq.B app.B", 1),
        ("app.main x.5000 x.6000", 2),
        ("libc.main", 4),
    ];
    assert_eq!(
        shown(profile(&stacks), &shape().group_modules()),
        ["App System.Linq App 1", "App [no module] 2", "libc 4"]
    );
}

#[test]
fn framework_frames_are_merged() {
    let stacks = [
        ("libc.main app.main linq.A libc.B plugin.A", 1),
        ("libc.main app.main linq.A libc.B", 2),
        ("libc.main app.main linq.A", 4),
        ("app.main x.5000", 8),
    ];
    assert_eq!(
        shown(profile(&stacks), &shape().just_my_code()),
        [
            "App!main 0x5000 8",
            "[framework] App!main [framework] 2",
            "[framework] App!main [framework] 4",
            "[framework] App!main [framework] Plugin.Text!A 1",
        ]
    );
    let mut counted = profile(&stacks);
    shape().just_my_code().apply(&mut counted);
    let tree = CallTree::new(&counted, TreeOptions::default());
    let mut text = Vec::new();
    write_text(&counted, &tree, TableOptions::default(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains(" [1 frame of the framework]\n"), "{text}");
    assert!(
        text.contains(" [1 to 2 frames of the framework]\n"),
        "{text}"
    );
    let mut picture = Vec::new();
    write_svg(&counted, &tree, &mut picture).unwrap();
    let picture = String::from_utf8(picture).unwrap();
    assert!(picture.contains("[\"1 to 2 frames\""), "{picture}");
    let plugin = shape().my_modules("plugin.*").unwrap();
    assert_eq!(
        shown(profile(&stacks[..2]), &plugin),
        ["[framework] 2", "[framework] Plugin.Text!A 1"]
    );
    let both = shape().just_my_code().group_modules();
    assert_eq!(shown(profile(&stacks[3..]), &both), ["App [no module] 8"]);
}

/// A library that was built elsewhere is not user code, if the documents of PDBs show that the
/// program itself was built in its source folder. If all were built elsewhere, that is no evidence.
#[test]
fn libraries_built_elsewhere_are_not_user_code() {
    struct Documents;
    impl SymbolSource for Documents {
        fn native(&self, _: &ImageRef<'_>, rva: u64) -> Result<Vec<NativeFrame>, NameReason> {
            let mut frame = NativeFrame::new(if rva < 0x20 { "Own" } else { "Theirs" });
            let file = if rva < 0x20 {
                "/home/me/A.cs"
            } else {
                "/_/src/B.cs"
            };
            frame.line = Ok(SourceLine::new(file.into(), 1, None));
            Ok(vec![frame])
        }
    }
    let shown = |pdb: &str| {
        let mut session = Session::new(Options::default());
        let at = At::new(10).process(42).thread(7);
        let mut module = Module::new(Action::Load, 1, "/app/App.dll");
        module.managed_pdb = Some(PdbReference {
            id: PdbId {
                guid: Default::default(),
                age: 1,
            },
            path: pdb.to_owned(),
        });
        session.apply(at, module);
        session.apply(at, Image::new(Action::Load, APP, 0x1000, "/app/app.so"));
        session.sample(at.at(20), &[APP + 0x40, APP + 0x11], Sample::cpu());
        let source = Some(Arc::new(Documents) as _);
        let profile = session.finish().profile(&Filter::default(), source);
        shown(profile, &shape().just_my_code())
    };
    assert_eq!(shown("/home/me/obj/App.pdb"), ["app!Own [framework] 1"]);
    assert_eq!(shown("/_/src/obj/App.pdb"), ["app!Own app!Theirs 1"]);
}

#[test]
fn inlinees_are_merged_into_their_caller() {
    let stacks = [("app.main+ app.A+", 1), ("app.main app.A", 2)];
    assert_eq!(
        shown(profile(&stacks), &shape().no_inlines()),
        ["App!main App!A 1", "App!main App!A 2"]
    );
}

#[test]
fn recursion_is_one_round() {
    let stacks = [
        ("app.main app.A app.A app.A app.B", 1),
        ("app.main app.A app.B app.A app.B app.A app.B app.C", 2),
        ("app.main app.A app.B app.C app.A app.B app.C app.A", 4),
    ];
    assert_eq!(
        shown(profile(&stacks), &shape().collapse_recursion()),
        [
            "App!main App!A App!B 1",
            "App!main App!A App!B App!C 2",
            "App!main App!A App!B App!C App!A 4",
        ]
    );
}

/// Recursion far deeper than anything that is looked at of it.
#[test]
fn deep_recursion_is_cheap() {
    let deep = std::iter::once("app.main").chain(std::iter::repeat_n("app.A", 20_000));
    let deep = deep.collect::<Vec<_>>().join(" ");
    assert_eq!(
        shown(profile(&[(&deep, 1)]), &shape().collapse_recursion()),
        ["App!main App!A 1"]
    );
}

#[test]
fn only_choosing_changes_how_many_samples_there_are() {
    let stacks = [
        ("app.main linq.A app.A", 3),
        ("libc.A libc.A", 5),
        ("x.5000", 7),
    ];
    let all = shape().fold("A").unwrap().just_my_code().group_modules();
    let mut shaped = profile(&stacks);
    all.no_inlines().collapse_recursion().apply(&mut shaped);
    assert_eq!(shaped.samples(), 15);
    shape()
        .exclude("0x5000|no module")
        .unwrap()
        .apply(&mut shaped);
    assert_eq!(shaped.samples(), 8);
}

#[test]
fn an_invalid_pattern_is_rejected() {
    let error: PatternError = shape().include("/(/").unwrap_err();
    assert_eq!(error.pattern, "/(/");
}

#[test]
fn rows_belong_to_the_requested_grouping() {
    let stacks = [
        ("app.main linq.A app.A", 3),
        ("libc.A libc.A", 5),
        ("x.5000", 7),
    ];
    let profile = profile(&stacks);
    let rows = |by, sort| -> Vec<(String, u64, u64)> {
        let rows = hotspots(&profile, by, sort, false);
        rows.into_iter()
            .map(|r| (r.label.name, r.counts.own.samples, r.counts.total.samples))
            .collect()
    };
    let row = |label: &str, own, total| (label.to_owned(), own, total);
    assert_eq!(
        rows(By::Module, Sort::Own),
        [
            row("[no module]", 7, 7),
            row("libc", 5, 5),
            row("App", 3, 3),
            row("System.Linq", 0, 3)
        ]
    );
    assert_eq!(
        rows(By::Method, Sort::Total),
        [
            row(
                "0x5000 (unknown code: no event or module covers this address)",
                7,
                7
            ),
            row("libc!A", 5, 5),
            row("App!A", 3, 3),
            row("App!main", 0, 3),
            row("System.Linq!A", 0, 3)
        ]
    );
    assert_eq!(
        rows(By::Thread, Sort::Own),
        [row("thread (7) of process (42)", 15, 15)]
    );
    assert_eq!(rows(By::Process, Sort::Own), [row("process (42)", 15, 15)]);
    assert_eq!(
        rows(By::Tier, Sort::Own),
        [row("[native code]", 8, 8), row("[no code known]", 7, 7)]
    );
    // No lines are known here, so the groups are the methods.
    let lines = rows(By::Line, Sort::Own);
    assert_eq!(
        lines[0].0,
        "0x5000 (unknown code: no event or module covers this address)"
    );
    assert_eq!((lines[0].1, lines[0].2), (7, 7));
}

#[test]
fn callers_add_up_to_the_total_and_callees_with_self_too() {
    let profile = profile(&[
        ("app.main app.A app.B", 1),
        ("app.main app.A app.C app.A app.D", 2),
        ("app.B app.A", 4),
        ("app.A app.A", 8),
        ("app.main app.C", 16),
    ]);
    let butterfly = Butterfly::new(&profile, &Pattern::new("A").unwrap()).expect("a method");
    assert_eq!(butterfly.methods.len(), 1);
    assert_eq!(butterfly.methods[0].name, "App!A");
    let counts = butterfly.counts;
    assert_eq!(
        (
            counts.own.samples,
            counts.total.samples,
            butterfly.all.samples
        ),
        (12, 15, 31)
    );
    let shown = |side: &[chronosym_export::Neighbour]| -> Vec<(String, u64)> {
        side.iter()
            .map(|n| (n.label.name.clone(), n.amount.samples))
            .collect()
    };
    let of = |name: &str, samples| (name.to_owned(), samples);
    assert_eq!(
        shown(&butterfly.callers),
        [of("[thread]", 8), of("App!B", 4), of("App!main", 3)]
    );
    assert_eq!(shown(&butterfly.callees), [of("App!D", 2), of("App!B", 1)]);
    assert!(Butterfly::new(&profile, &Pattern::new("Nothing").unwrap()).is_none());
}

/// A whole name takes precedence over the end of one, and that over a part.
#[test]
fn a_method_is_found_by_its_name() {
    let profile = profile(&[("app.main linq.A", 1), ("plugin.A app.B", 2)]);
    let methods = |text: &str| -> Option<Vec<String>> {
        let methods = Butterfly::new(&profile, &Pattern::new(text).unwrap())?
            .methods
            .into_iter();
        Some(methods.map(|method| method.name).collect())
    };
    assert_eq!(methods("A").unwrap(), ["Plugin.Text!A", "System.Linq!A"]);
    assert_eq!(methods("Linq!A").unwrap(), ["System.Linq!A"]);
    assert_eq!(methods("System.Linq!A").unwrap(), ["System.Linq!A"]);
    assert_eq!(methods("ain").unwrap(), ["App!main"]);
    assert_eq!(methods("Text").unwrap(), ["Plugin.Text!A"]);
    assert_eq!(methods("plugin.text!a").unwrap(), ["Plugin.Text!A"]);
    assert_eq!(
        methods("PLUGIN.Text!A"),
        None,
        "capital letters make case count"
    );
}

#[test]
fn a_thread_has_a_hottest_method() {
    let profile = profile(&[("app.main app.A", 3), ("app.main", 2), ("app.B app.A", 1)]);
    let threads = hot_threads(&profile);
    assert_eq!(threads.len(), 1);
    let thread = &threads[0];
    assert_eq!(
        (thread.pid, thread.tid, thread.amount.samples),
        (Some(42), 7, 6)
    );
    let hottest = &thread.hottest;
    let hottest = hottest.as_ref().expect("it has samples");
    assert_eq!((&*hottest.label.name, hottest.own.samples), ("App!A", 4));
    assert_eq!(thread.running, None, "CPU samples do not say so");
}

#[test]
fn methods_of_two_profiles_are_compared_by_share() {
    let before = profile(&[
        ("app.main app.A", 30),
        ("app.main app.B", 10),
        ("x.5000", 10),
    ]);
    let after = profile(&[
        ("app.main app.A", 30),
        ("app.main app.C", 60),
        ("x.6000", 10),
    ]);
    let diff = Diff::new(&before, &after);
    let rows: Vec<_> = diff
        .methods
        .iter()
        .map(|m| (&*m.name, m.self_points, m.total_points, &*m.changes))
        .collect();
    assert_eq!(
        rows,
        [
            ("App!C", 60.0, 60.0, &[Change::New][..]),
            ("App!A", -30.0, -30.0, &[]),
            ("App!B", -20.0, -20.0, &[Change::Gone]),
            ("[no name, no module]", -10.0, -10.0, &[]),
            ("App!main", 0.0, 10.0, &[]),
        ]
    );
    let nothing = Diff::new(&before, &before);
    assert!(
        nothing
            .methods
            .iter()
            .all(|m| m.self_points == 0.0 && m.changes.is_empty())
    );
    let mut text = Vec::new();
    write_diff(&nothing, TableOptions::default(), &mut text).unwrap();
    assert!(
        String::from_utf8(text)
            .unwrap()
            .ends_with("\nno method's share changed\n")
    );
}

/// A profile of a method of the CLR in a tier, and of an image's function in a line.
fn compiled(tier: u32, line: u32) -> Profile {
    struct Lines(u32);
    impl SymbolSource for Lines {
        fn native(&self, _: &ImageRef<'_>, _: u64) -> Result<Vec<NativeFrame>, NameReason> {
            let mut frame = NativeFrame::new("b");
            frame.line = Ok(SourceLine::new("b.c".into(), self.0, None));
            Ok(vec![frame])
        }
    }
    let mut session = Session::new(Options::default());
    let at = At::new(10).process(42).thread(7);
    let mut method = Method::new(Action::Load, 1, 0x1000, 64).named("T", "A", "void ()");
    method.flags = MethodFlags(8 | tier << 7);
    session.apply(at, method);
    session.apply(at, Image::new(Action::Load, APP, 0x1000, "/app/app"));
    for address in [0x1010, APP + 0x10] {
        session.sample(at.at(20), &[address], Sample::cpu());
    }
    let timeline = session.finish();
    timeline.profile(&Filter::default(), Some(Arc::new(Lines(line))))
}

#[test]
fn recompiled_and_moved_methods_are_distinguished_from_slower_ones() {
    let (quick, optimised, moved) = (compiled(3, 10), compiled(4, 10), compiled(3, 11));
    let changes = |before: &Profile, after: &Profile| -> Vec<(String, Vec<Change>)> {
        let methods = Diff::new(before, after).methods.into_iter();
        let changed = methods.filter(|method| !method.changes.is_empty());
        changed.map(|m| (m.name, m.changes)).collect()
    };
    assert_eq!(changes(&quick, &quick), []);
    assert_eq!(
        changes(&quick, &optimised),
        [("T.A".to_owned(), vec![Change::Retiered])]
    );
    assert_eq!(
        changes(&quick, &moved),
        [("app!b".to_owned(), vec![Change::OtherLines])]
    );
}
