//! Files of a crate import only from files below them: no cycles, and few layers in the engine.
//! `cargo test --test structure -- --nocapture` prints the layers of each crate.

mod imports;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use imports::Imports;

/// How many layers a crate may have, where that is limited.
const MOST_LAYERS: &[(&str, usize)] = &[("chronosym-core", 10)];

static CRATES: LazyLock<BTreeMap<String, Imports>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    folders
        .filter(|folder| folder.path().join("Cargo.toml").exists())
        .map(|folder| {
            let source = folder.path().join("src");
            let imports = Imports::new(|path| fs::read_to_string(source.join(path)).ok());
            (folder.file_name().into_string().unwrap(), imports)
        })
        .collect()
});

#[test]
fn no_file_imports_itself_through_others() {
    let mut cyclic = Vec::new();
    for (name, imports) in &*CRATES {
        for cycle in imports.cycles() {
            println!("{name}: {} files import each other", cycle.len());
            println!("{}", imports.describe(&cycle));
            cyclic.push(name);
        }
    }
    assert_eq!(cyclic, [""; 0], "crates with cycles");
}

#[test]
fn layers_are_few() {
    for (name, imports) in &*CRATES {
        let layers = imports.layers();
        // The root of a crate only declares and re-exports: it is not a layer.
        let files = imports.files.iter().zip(&layers);
        let counted = files.filter(|(file, _)| *file != "lib.rs");
        let most = counted.map(|(_, &layer)| layer).max().unwrap_or(0);
        println!("{name}: {most} layers");
        for layer in (1..=most).rev() {
            let files = imports.files.iter().zip(&layers);
            let files = files.filter(|(_, l)| **l == layer).map(|(f, _)| f.as_str());
            println!("{layer:>4} {}", files.collect::<Vec<_>>().join(" "));
        }
        if let Some((_, limit)) = MOST_LAYERS.iter().find(|(limited, _)| limited == name) {
            assert!(
                most <= *limit,
                "{name} has {most} layers, more than {limit}"
            );
        }
    }
}

/// Cycles of a crate of these files, as the names of their files.
fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files: BTreeMap<&str, &str> = files.iter().copied().collect();
    let imports = Imports::new(|path| files.get(path).map(|text| (*text).to_owned()));
    let names = |cycle: Vec<usize>| cycle.into_iter().map(|file| imports.files[file].clone());
    let cycles = imports.cycles().into_iter();
    cycles.map(|cycle| names(cycle).collect()).collect()
}

/// Each way in which `a` can import from `b`; `b` imports `crate::a::A`.
const WAYS: &[(&str, &str)] = &[
    ("use", "use crate::b::B;"),
    ("use of a relative path", "use super::b::B;"),
    ("nested group", "use {std::fmt, crate::{b::{self, B}}};"),
    ("rename", "use crate::b::B as Other;"),
    (
        "rename of a module",
        "use crate::b as other; type T = other::B;",
    ),
    ("glob", "use crate::b::*;"),
    ("re-export", "use crate::B;"),
    ("re-export with another name", "use crate::c::Renamed;"),
    ("item made by a macro, by a glob", "use crate::globs::Made;"),
    ("re-export by a glob", "use crate::globs::B;"),
    ("re-export of a module", "use crate::c::module::B;"),
    ("path of an expression", "fn f() { crate::b::f() }"),
    (
        "path from an imported module",
        "use super::b; fn f() { b::f() }",
    ),
    ("path of a type", "fn f(_: &[Option<super::b::B>]) {}"),
    (
        "path of a pattern",
        "fn f(x: u8) { match x { crate::b::ONE => (), _ => () } }",
    ),
    ("path of a bound", "fn f(_: impl super::b::Trait) {}"),
    (
        "path in a macro call",
        "fn f() { println!(\"{}\", 1 + crate::b::ONE) }",
    ),
    (
        "path in an attribute",
        "#[arg(parser = crate::b::f)] struct S;",
    ),
    ("macro", "fn f() { crate::b::made!() }"),
    ("exported macro", "fn f() { crate::exported!() }"),
    ("item made by a macro", "use crate::b::Made;"),
    ("within a function", "fn f() { use crate::b; b::f() }"),
    (
        "within an inline module",
        "mod inner { use super::super::b::B; }",
    ),
    ("variant", "use crate::b::Enum::Variant;"),
];

#[test]
fn every_kind_of_cycle_is_found() {
    let b = "use crate::a::A;
        pub struct B; pub fn f() {} pub const ONE: u8 = 1; pub trait Trait {}
        pub enum Enum { Variant } macro_rules! made { ($($name:ident)?) => {} } pub(crate) use made;
        #[macro_export] macro_rules! exported { () => {} }
        made!(Made);";
    let c = "pub use crate::b::{self as module, B as Renamed}; pub use crate::b::B; pub struct C;";
    for (way, text) in WAYS {
        let a = format!("pub struct A; {text}");
        let root = "mod a; mod b; mod c; mod globs; pub use b::B;";
        let found = cycles(&[
            ("lib.rs", root),
            ("a.rs", &a),
            ("b.rs", b),
            ("c.rs", c),
            ("globs.rs", "pub use crate::b::*;"),
        ]);
        assert_eq!(found, [["a.rs", "b.rs"]], "{way}: {text}");
    }
}

#[test]
fn a_parent_and_its_child_are_a_cycle_only_if_both_import() {
    let parent = "mod child; pub use child::Child; pub struct Parent;";
    let child = "pub struct Child; type T = super::Parent;";
    assert_eq!(
        cycles(&[
            ("lib.rs", "mod p;"),
            ("p/mod.rs", parent),
            ("p/child.rs", child)
        ]),
        [["p/mod.rs", "p/child.rs"]]
    );
    let (only_declares, only_reexports) = ("mod child; pub struct Parent;", "pub struct Child;");
    let one = [
        ("lib.rs", "mod p;"),
        ("p.rs", only_declares),
        ("p/child.rs", child),
    ];
    let other = [
        ("lib.rs", "mod p;"),
        ("p.rs", parent),
        ("p/child.rs", only_reexports),
    ];
    assert_eq!(cycles(&one), [[""; 0]; 0]);
    assert_eq!(cycles(&other), [[""; 0]; 0]);
}

#[test]
fn a_file_without_imports_is_not_a_cycle() {
    let a = "//! [`crate::b::B`]
        use std::collections::*; pub(in crate::b) struct A; fn f(b: crate::c::B) { b.b(); ::b::f() }
        #[cfg(test)] mod tests { use crate::b::B; }";
    let files = [
        ("lib.rs", "mod a; mod b; mod c; pub use {a::A, b::B};"),
        ("a.rs", a),
        (
            "b.rs",
            "pub use crate::a::A; use crate::c::*; pub struct B(super::A, super::c::B);",
        ),
        ("c.rs", "use serde::B as _; pub struct B;"),
    ];
    assert_eq!(cycles(&files), [[""; 0]; 0]);
    let files: BTreeMap<&str, &str> = files.into_iter().collect();
    let imports = Imports::new(|path| files.get(path).map(|text| (*text).to_owned()));
    assert_eq!(imports.files, ["lib.rs", "a.rs", "b.rs", "c.rs"]);
    assert_eq!(imports.layers(), [4, 2, 3, 1]);
}
