//! Tables fit into a terminal of any width, and names lose anything before the method.

use std::sync::Arc;

use chronosym_core::facts::{Action, At, Image, Method, Module, Process, Sample};
use chronosym_core::{Filter, Options, Profile, SampleKind, Session, Timeline, Weight};
use chronosym_export::{
    Butterfly, By, CallTree, Diff, Pattern, Sort, TableOptions, TreeOptions, hot_threads, hotspots,
    user_methods, write_butterfly, write_diff, write_text, write_threads, write_top,
};

/// Long names, the last part of which is the method.
const METHODS: [(&str, &str, &str); 4] = [
    (
        "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int64]",
        "FindValue",
        "void (int32)",
    ),
    (
        "Company.Product.Area.Services.Implementation.CustomerService",
        "LoadAll",
        "void (string)",
    ),
    (
        "Company.Product.Area.Services.Implementation.CustomerService",
        "LoadAll",
        "void (int32,int32)",
    ),
    ("Company.Product.Program", "Main", "void ()"),
];

fn timeline() -> Arc<Timeline> {
    let mut session = Session::new(Options::default());
    let at = At::new(0).process(42).thread(7);
    session.apply(at, Process::new(Action::Load, "a-service-with-a-name"));
    let module = Module::new(Action::Load, 1, "/app/Company.Product.Area.Services.dll");
    session.apply(at, module);
    session.apply(
        at,
        Image::new(Action::Load, 0x10_0000, 0x1000, "/lib/libsomething.so"),
    );
    for (id, (class, name, signature)) in (1..).zip(METHODS) {
        let method = Method::new(Action::Load, id, 0x1000 * id, 64).named(class, name, signature);
        session.apply(at, method.in_module(1, 0));
    }
    for time in 1..40u64 {
        let at = At::new(time).process(42).thread(7 + time % 3);
        let depth = 1 + time % 4;
        let mut stack: Vec<u64> = (1..=depth).map(|id| 0x1000 * id + 0x10).collect();
        if time % 5 == 0 {
            stack.insert(0, 0x10_0020);
        }
        let sample = Sample::new(SampleKind::Cpu).weighing(Weight::Ns(1_000_000 + time));
        session.sample(at, &stack, sample);
    }
    session.finish()
}

fn profile(timeline: &Arc<Timeline>) -> Profile {
    timeline.profile(&Filter::default(), None)
}

/// The table of user methods and that of all.
fn top(profile: &Profile, sort: Sort, options: TableOptions) -> String {
    let rows = hotspots(profile, By::Method, sort, false);
    let (order, user) = ((By::Method, sort), user_methods(profile));
    let mut out = Vec::new();
    write_top(profile, order, &rows, &user, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Each table for a terminal.
fn tables(width: usize, color: bool) -> Vec<String> {
    let timeline = timeline();
    let profile = profile(&timeline);
    let options = TableOptions {
        width: Some(width),
        color,
        ..TableOptions::default()
    };
    let text = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let mut tables: Vec<String> = By::ALL
        .into_iter()
        .map(|by| {
            let rows = hotspots(&profile, by, Sort::Own, false);
            text(&|out| write_top(&profile, (by, Sort::Own), &rows, &[], options, out))
        })
        .collect();
    tables.push(top(&profile, Sort::Own, options));
    let threads = hot_threads(&profile);
    tables.push(text(&|out| write_threads(&profile, &threads, options, out)));
    let butterfly = Butterfly::new(&profile, &Pattern::new("LoadAll").unwrap()).unwrap();
    tables.push(text(&|out| {
        write_butterfly(&profile, &butterfly, options, out)
    }));
    let mut excluded = self::profile(&timeline);
    let shape = chronosym_export::Shape::default();
    shape.exclude("libsomething").unwrap().apply(&mut excluded);
    let diff = Diff::new(&profile, &excluded);
    tables.push(text(&|out| write_diff(&diff, options, out)));
    let tree = CallTree::new(&profile, TreeOptions::default());
    tables.push(text(&|out| write_text(&profile, &tree, options, out)));
    tables
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [70, 80, 100, 160] {
        for table in tables(width, false) {
            for line in table.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn every_row_of_code_ends_with_its_method() {
    for table in tables(80, false) {
        let rows = table.lines().filter(|line| line.contains('…'));
        for row in rows {
            let ends = [
                "FindValue",
                "LoadAll",
                "Main",
                "(…)",
                "libsomething.so ?",
                "(42)",
            ];
            assert!(ends.iter().any(|end| row.ends_with(end)), "{row}");
        }
    }
    let text = tables(80, false).concat();
    assert!(text.contains("…"), "{text}");
}

/// Returns percentage and length of a row's bar, in eighths of a column.
fn bars(table: &str, column: usize) -> Vec<(f64, usize)> {
    let table = table.split("\n\n").find(|part| part.contains("total ms"));
    let rows = table.unwrap().lines().filter(|row| row.contains('%'));
    let rows = rows.filter(|row| !row.contains("total %"));
    let bar = |row: &str| {
        let share = row.split_whitespace().nth(column).unwrap();
        let eighths = "▏▎▍▌▋▊▉█".chars().zip(1..).collect::<Vec<_>>();
        let of = |c| eighths.iter().find(|(block, _)| *block == c).map(|it| it.1);
        (
            share.trim_end_matches('%').parse().unwrap(),
            row.chars().filter_map(of).sum(),
        )
    };
    rows.map(bar).collect()
}

#[test]
fn bars_are_proportional_to_what_a_table_is_sorted_by() {
    let profile = profile(&timeline());
    for (sort, column) in [(Sort::Own, 0), (Sort::Total, 2)] {
        let mut longest = 0;
        for width in [80, 160] {
            let options = TableOptions {
                width: Some(width),
                ..TableOptions::default()
            };
            let text = top(&profile, sort, options);
            let (user, all) = text.split_once("all code").unwrap();
            for (table, column) in [(user, 0), (all, column)] {
                let bars = bars(table, column);
                let (share, most) = bars[0];
                for &(part, eighths) in &bars {
                    let expected = part / share * most as f64;
                    assert!((eighths as f64 - expected).abs() < 1.0, "{text}");
                }
                longest = most.max(longest);
            }
            assert_eq!(longest, 8 * if width == 80 { 6 } else { 18 }, "{text}");
        }
    }
}

#[test]
fn files_and_pipes_get_whole_names_without_bars() {
    let text = top(&profile(&timeline()), Sort::Own, TableOptions::default());
    assert!(!text.contains(['█', '▏', '…']), "{text}");
    assert!(text.contains(
        "!Company.Product.Area.Services.Implementation.CustomerService.LoadAll(int32,int32)"
    ));
}

#[test]
fn colours_show_kinds_of_code_and_change_no_text() {
    let plain = tables(80, false).concat();
    let coloured = tables(80, true).concat();
    assert!(coloured.contains("\x1b[32m") && coloured.contains("\x1b[90m"));
    let mut parts = coloured.split("\x1b[");
    let mut stripped = parts.next().unwrap().to_owned();
    for part in parts {
        stripped.push_str(part.split_once('m').unwrap().1);
    }
    assert_eq!(stripped, plain);
}
