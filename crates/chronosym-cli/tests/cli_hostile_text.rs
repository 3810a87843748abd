//! Text crafted to take time quadratic in its size or excessive memory: output of `perf script`,
//! names, paths, JSON.
#![cfg(target_os = "linux")]

mod bounded;
mod common;
#[path = "../../chronosym-symbols/tests/made/mod.rs"]
mod made;

use bounded::holds;
use chronosym_support::growth::{Size, assert_growth};
use chronosym_support::nettrace::NettraceWriter;
use chronosym_support::payload::universal;
use chronosym_support::trace::{EventSpec, FieldKind, TraceInfo, TypeSpec};
use common::*;

const STACKS: &[&str] = &["stacks", "--format", "folded"];
const HEAD: &str = "app 32633/7 [003]  4710.772860:     250000 cpu-clock: \n";

#[test]
fn perf_script() {
    type Text = fn(usize) -> String;
    let texts: [(&str, Text); 7] = [
        ("colons", |n| {
            format!("{HEAD}\t1000 f (/a)\n\n{}\n", ":".repeat(60_000)).repeat(n)
        }),
        ("times", |n| {
            format!("{HEAD}\t1000 f (/a)\n\n{}\n", "] 1.000000:".repeat(5_000)).repeat(n)
        }),
        ("brackets in brackets", |n| {
            format!(
                "{HEAD}\t1000 {}{}\n\n",
                "(".repeat(30_000),
                ")".repeat(29_000)
            )
            .repeat(n)
        }),
        ("a sample of frames without end", |n| {
            HEAD.to_owned() + &"\t1000 f+0x1 (/a)\n".repeat(4_000 * n)
        }),
        ("a line without end", |n| {
            HEAD.to_owned() + &"x".repeat(60_000 * n)
        }),
        ("a thread and a file a sample", |n| {
            let sample = |i| {
                format!("a{i} {i}/{i} [0]  {i}.772860: 1 cpu-clock: \n\t{i:x}000 f{i} (/a{i})\n\n")
            };
            (1..600 * n).map(sample).collect()
        }),
        ("one place that has many names", |n| {
            let sample = |i| format!("{HEAD}\t1000 f{i}+0x{i:x} (/a)\n\n");
            (1..600 * n).map(sample).collect()
        }),
    ];
    for (name, text) in texts {
        let runs = holds(name, STACKS, 4, |n| {
            format!("{HEAD}\t1000 first (/a)\n\n{}", text(n)).into_bytes()
        });
        assert!(runs[1].stdout.contains("app"), "{name}: {}", runs[1].stderr);
    }
}

/// A program whose symbols, four bytes apart, have these names.
fn named(names: impl IntoIterator<Item = String>) -> Vec<u8> {
    let (mut symbols, mut texts) = (vec![0; 24], vec![0]);
    for (at, name) in (0..).zip(names) {
        symbols.extend(made::symbol(texts.len() as u32, 0x12, 0x1000 + 4 * at, 4));
        texts.extend(name.bytes());
        texts.push(0);
    }
    made::elf(&[
        (".text", 1, 6, 0x1000, vec![0x90; 0x10000]),
        (".symtab", 2, 0, 0, symbols),
        (".strtab", 3, 0, 0, texts),
    ])
}

/// A digit of the numbers in names, in base 36.
fn digit(number: usize) -> char {
    char::from_digit(number as u32, 36)
        .unwrap()
        .to_ascii_uppercase()
}

#[test]
fn mangled_names() {
    let addresses: Vec<String> = (0..100)
        .map(|at| format!("{:#x}", 0x1000 + 4 * at))
        .collect();
    let mut ask = vec!["symbolize"];
    ask.extend(addresses.iter().map(String::as_str));
    ask.push("--obj");
    type Name = fn(usize) -> String;
    let names: [(&str, Name); 14] = [
        ("C++: depth", |n| format!("_Z1f{}i", "P".repeat(200 * n))),
        ("C++: substitutions", |n| {
            let pairs = (0..n.min(30)).map(|i| format!("S_IS{0}_S{0}_E", digit(i)));
            format!("_Z1fSt4pairIiiE{}", pairs.collect::<String>())
        }),
        ("C++: arguments", |n| {
            format!("_Z1fI{}EvT_", "i".repeat(1_000 * n))
        }),
        ("C++: packs in packs", |n| {
            format!(
                "_Z1fIJ{}iEEvDpT_",
                "J".repeat(200 * n) + &"E".repeat(200 * n)
            )
        }),
        ("C++: lengths", |n| format!("_ZN{}E", "1a".repeat(800 * n))),
        ("C++: expressions", |n| {
            format!("_Z1fIX{}Li1EEEvv", "ng".repeat(400 * n))
        }),
        ("MSVC: depth", |n| {
            format!("?f@@YAX{}H@Z", "PEA".repeat(150 * n))
        }),
        ("MSVC: names again", |n| {
            let nested =
                (0..8 * n).fold("H".to_owned(), |inner, _| format!("V?$A@{inner}@@V1@V1@"));
            format!("?f@@YAX{nested}@Z")
        }),
        ("MSVC: functions that take functions", |n| {
            let level = |i: usize| {
                format!(
                    "P6AX{}PEAH@Z",
                    i.saturating_sub(1).min(9).to_string().repeat(16)
                )
            };
            format!("?f@@YAX{}@Z", (0..4 * n).map(level).collect::<String>())
        }),
        ("MSVC: scopes", |n| {
            format!("?f@{}@YAXXZ", "a@".repeat(250 * n))
        }),
        ("Rust: depth", |n| {
            format!("_R{}C1a", "INvC1a1b".repeat(200 * n))
        }),
        ("Rust: references back", |n| {
            // Each is a pair of the one before.
            let head = "_RINvC1a1bT";
            let pairs = (0..n.min(12)).map(|i| format!("TB{0}_B{0}_E", digit(8 + i)));
            format!("{head}{}EE", pairs.collect::<String>())
        }),
        ("Rust: binders", |n| {
            format!("_RINvC1a1bF{}zEuE", "G0_".repeat(400 * n))
        }),
        ("Rust: punycode", |n| {
            format!("_RNvC1au{}_{}", 1_500 * n, "9".repeat(1_500 * n))
        }),
    ];
    for (name, make) in names {
        holds(name, &ask, 1, |n| {
            named((0..100).map(|at| format!("{}{}", make(n), ".".repeat(at % 2))))
        });
    }
    let runs = holds("names that unfold as far as they may", &ask, 100, |n| {
        let pairs = (0..9).map(|i| format!("S_IS{0}_S{0}_E", digit(i)));
        let bomb = format!("_Z1fSt4pairIiiE{}", pairs.collect::<String>());
        named((0..n).map(|at| bomb.replacen("_Z1f", &format!("_Z5f{at:04}"), 1)))
    });
    assert!(runs[1].stdout.len() > 1 << 20, "{}", runs[1].stdout.len());
}

#[test]
fn images_of_one_name_in_a_log() {
    let id = "00112233445566778899aabbccddeeff00112233";
    let image = format!("Module /srv/x/prog with build-id {id}\n");
    holds("images of one name", &["symbolize"], 2_000, |n| {
        let frames = (0..n).map(|at| format!("#0  0x55d0c0a011c1 n/a (prog + {at:#x})\n"));
        (image.repeat(n) + &frames.collect::<String>()).into_bytes()
    });
    let runs = holds("images of other names", &["symbolize"], 2_000, |n| {
        let lines = (0..n).map(|at| {
            format!("Module /srv/p{at} with build-id {id}\n#0  0x55d0c0a011c1 n/a (p{at} + 0x10)\n")
        });
        lines.collect::<String>().into_bytes()
    });
    let said = "11904 addresses not resolved, whose modules were not searched for: 4096 others have no file";
    assert!(runs[1].stderr.contains(said), "{}", runs[1].stderr);
}

#[test]
fn symbol_paths() {
    let trace = arg(LINUX);
    type Element = fn(usize) -> String;
    let elements: [(&str, Element); 4] = [
        ("folders", |i| format!("/nowhere/{i};")),
        ("stores in a chain", |i| {
            format!("{}/nowhere/{i}*", if i == 0 { "srv*" } else { "" })
        }),
        ("caches", |i| format!("cache*/nowhere/{i};")),
        ("no element", |_| "srv*https://;a*b;".to_owned()),
    ];
    for (name, element) in elements {
        let start = std::time::Duration::from_secs(1);
        assert_growth(name, bounded::EIGHTFOLD, start, |size| {
            let n = if size == Size::Small { 300 } else { 2_400 };
            let path: String = (0..n).map(element).collect();
            let (run, took) =
                bounded::timed(&["modules", "--offline", "--symbol-path", &path, &trace]);
            run.assert_ended_well(name);
            println!("{name}: {n}, {took:?}");
            took
        });
    }
}

/// Returns a recording of the Universal providers in which files are mapped, each with this
/// metadata.
fn mapped(said: impl IntoIterator<Item = String>) -> Vec<u8> {
    let mut trace = NettraceWriter::v6().info(TraceInfo::default());
    let mut define = |id, name: &str, fields: &[(&str, FieldKind)]| {
        let spec = TypeSpec::new("Universal.System", id, 0).named(name);
        let fields = fields.iter();
        trace.define(fields.fold(spec, |spec, (name, kind)| spec.field(name, kind.clone())))
    };
    let number = FieldKind::VAR_U;
    let process = define(
        0,
        "ExistingProcess",
        &[
            ("NamespaceId", number.clone()),
            ("Name", FieldKind::UTF8),
            ("NamespaceName", FieldKind::UTF8),
        ],
    );
    let mapping = define(
        3,
        "ProcessMapping",
        &[
            ("Id", number.clone()),
            ("StartAddress", number.clone()),
            ("EndAddress", number.clone()),
            ("FileOffset", number.clone()),
            ("FileName", FieldKind::UTF8),
            ("MetadataId", number.clone()),
        ],
    );
    let metadata = define(
        5,
        "ProcessMappingMetadata",
        &[
            ("Id", number),
            ("SymbolMetadata", FieldKind::UTF8),
            ("VersionMetadata", FieldKind::UTF8),
        ],
    );
    let pid = TraceInfo::default().process_id;
    let told = universal::process(pid.into(), "a", "");
    trace.record(&EventSpec::new(process, 0, 1).payload(&told).process(pid));
    for (at, text) in (1..).zip(said) {
        let told = universal::mapping_metadata(at, &text, &text);
        trace.record(
            &EventSpec::new(metadata, at as i64, 1)
                .payload(&told)
                .process(pid),
        );
        let told = universal::mapping(at, 0x1000 * at, 0x1000 * at + 0xfff, 0, "/lib/a.so", at);
        trace.record(
            &EventSpec::new(mapping, at as i64, 1)
                .payload(&told)
                .process(pid),
        );
    }
    trace.finish()
}

#[test]
fn json_of_mappings() {
    const MODULES: &[&str] = &["modules"];
    let runs = holds("one of each", MODULES, 1, |_| {
        mapped([r#"{"type":"ELF","build_id":"c0ffee"}"#.to_owned()])
    });
    assert!(runs[0].stdout.contains("c0ffee"), "{}", runs[0].stdout);
    type Text = fn(usize) -> String;
    let texts: [(&str, Text); 5] = [
        ("lists in lists", |n| "[".repeat(n)),
        ("objects in objects", |n| r#"{"a":"#.repeat(n / 5)),
        ("members of one name", |n| {
            format!("{{{}\"type\":\"ELF\"}}", "\"a\":1,".repeat(n / 6))
        }),
        ("a number without end", |n| {
            format!("{{\"age\":{}}}", "1".repeat(n))
        }),
        ("escapes", |n| {
            format!("{{\"name\":\"{}\"}}", "\\u0000".repeat(n / 6))
        }),
    ];
    for (name, text) in texts {
        holds(name, MODULES, 6_000, |n| mapped([text(n)]));
        holds(name, MODULES, 100, |n| mapped((0..n).map(|_| text(2_000))));
    }
}
