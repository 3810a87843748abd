//! Compares names and IL of the workload's assemblies with the runtime's traces.

mod common;

use std::collections::BTreeSet;

use chronosym_pdb::metadata::{Table, Token};
use chronosym_pdb::pe::PeImage;

use common::{gunzip, positions, read, unzip, utf16};

/// Every method of the module that a trace names: its LoadVerbose payload holds token, flags, then
/// namespace, name and signature as UTF-16 strings.
fn names_are_those_of_the_trace(dll: &str, trace: &str, module: &str) -> usize {
    let dll = read(dll);
    let image = PeImage::parse(&dll).unwrap();
    let metadata = image.metadata().unwrap();
    let events = unzip(&format!("{trace}.nettrace.zip"));
    let tokens: BTreeSet<u32> = gunzip(&format!("{trace}.traceevent.tsv.gz"))
        .lines()
        .filter_map(|line| {
            let cells: Vec<_> = line.split('\t').collect();
            (cells[0] == "F" && cells[4].eq_ignore_ascii_case(module))
                .then(|| u32::from_str_radix(cells[5], 16).unwrap())
        })
        .filter(|token| token >> 24 == 6)
        .collect();
    for &token in &tokens {
        let method = metadata.method(Token(token)).unwrap();
        let mut owner = method.owner_text();
        // The namespace field of a generic type's methods is followed by `[arguments]`: search for
        // the rest.
        let generic = owner.contains('`');
        let tail = [utf16(&method.name), utf16(&method.signature_text())].concat();
        let needle = if generic {
            tail.clone()
        } else {
            [utf16(&owner), tail.clone()].concat()
        };
        if generic {
            owner.push('[');
        }
        let found = positions(&events, &needle).any(|at| {
            let start = if generic {
                let head = utf16(&owner);
                let head = &head[..head.len() - 2];
                match events[..at]
                    .windows(head.len())
                    .rposition(|window| window == head)
                {
                    Some(start) => start,
                    None => return false,
                }
            } else {
                at
            };
            start >= 8 && events[start - 8..start - 4] == token.to_le_bytes()
        });
        assert!(
            found,
            "{token:x} {owner} {} {}",
            method.name,
            method.signature_text()
        );
    }
    tokens.len()
}

#[test]
fn names_and_signatures_of_the_workload() {
    let count = names_are_those_of_the_trace(
        "clr10/workload/Workload.dll",
        "clr10/traces/all",
        "workload",
    );
    assert!(count >= 50, "{count}");
}

#[test]
fn names_and_signatures_of_net_core_3_1() {
    let count = names_are_those_of_the_trace(
        "clr31/workload/Workload.dll",
        "clr31/workload/traces/all",
        "workload",
    );
    assert!(count >= 40, "{count}");
}

#[test]
fn il_calls_lead_to_their_methods() {
    let dll = read("clr10/workload/Workload.dll");
    let image = PeImage::parse(&dll).unwrap();
    let metadata = image.metadata().unwrap();
    let row = |owner: &str, name: &str| {
        (1..=metadata.rows(Table::METHOD_DEF))
            .find(|&row| {
                let method = metadata.method(Token::new(Table::METHOD_DEF, row)).unwrap();
                method.owner_text() == owner && method.name == name
            })
            .unwrap()
    };
    let hot = image
        .il_body(&metadata, row("Workload.Inlining", "Hot"))
        .unwrap();
    let outer = row("Workload.Inlining", "Outer");
    let calls: Vec<_> = hot.calls().collect();
    assert!(
        calls
            .iter()
            .any(|&(_, call)| call == Token::new(Table::METHOD_DEF, outer)),
        "{calls:?}"
    );
    for (offset, call) in calls {
        assert_eq!(hot.call_at(offset), Some(call));
        assert_eq!(hot.call_at(offset + 1), None);
    }
    // Middle calls through a member of a generic instance: a MemberRef on a TypeSpec.
    let middle = image
        .il_body(&metadata, row("Workload.Inlining", "Middle"))
        .unwrap();
    let names: Vec<_> = middle
        .calls()
        .map(|(_, call)| metadata.method(call).unwrap().to_string())
        .collect();
    assert!(
        names
            .iter()
            .any(|name| name == "Workload.Inlining+Cell`1[System.Int32].Get"),
        "{names:?}"
    );
    // Every call of every method ends at a token that has a name.
    const STAND_ALONE_SIG: Table = Table(0x11);
    let mut total = 0;
    for row in 1..=metadata.rows(Table::METHOD_DEF) {
        let Some(body) = image.il_body(&metadata, row) else {
            continue;
        };
        for (_, call) in body
            .calls()
            .filter(|(_, call)| call.table() != STAND_ALONE_SIG)
        {
            assert!(
                metadata
                    .method(call)
                    .is_some_and(|name| !name.to_string().contains('?')),
                "{call:?}"
            );
            total += 1;
        }
    }
    assert!(total > 300, "{total}");
}

#[test]
fn assembly_facts() {
    let dll = read("clr10/workload/PluginB.dll");
    let image = PeImage::parse(&dll).unwrap();
    assert_eq!(image.image_base(), 0x1000_0000);
    let metadata = image.metadata().unwrap();
    assert_eq!(metadata.assembly_name(), "PluginB");
    assert_eq!(
        metadata.assembly_ref_name(1).as_deref(),
        Some("System.Runtime")
    );
    assert!(metadata.mvid().is_some());
}
