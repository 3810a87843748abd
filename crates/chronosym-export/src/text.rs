//! A call tree for a terminal, hottest first.

use std::io::{self, Write};

use chronosym_core::Profile;
use rustc_hash::FxHashSet;

use crate::call_tree::{CallTree, NodeIndex, NodeLabel, frames};
use crate::fit::columns;
use crate::table::{Name, Table, TableOptions};

/// Nodes below this fraction of all samples are omitted.
const LEAST_SHARE: f64 = 0.005;

/// Writes the description of the samples and the tree: percentage, total and self of each node, of
/// at most `max_lines` of them.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_text(
    profile: &Profile,
    tree: &CallTree,
    options: TableOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    let Some(mut table) = Table::start(profile, options, out)? else {
        return Ok(());
    };
    let unit = tree.unit;
    table.unit = unit;
    let totals = tree.totals();
    let own = tree.nodes.iter().map(|n| n.own);
    let all = own.fold(0, u64::saturating_add);
    if all == 0 {
        return Ok(());
    }
    let least = ((all as f64 * LEAST_SHARE).ceil() as u64).max(1);
    let mut children: Vec<Vec<NodeIndex>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(index as NodeIndex),
            None => roots.push(index as NodeIndex),
        }
    }
    table.all = all;
    let names: Vec<_> = tree.labels.values().map(NodeLabel::name).collect();
    let name = |node: NodeIndex| &names[tree.nodes[node as usize].label as usize];
    let sort_key = |node: NodeIndex| {
        let (name, line) = name(node);
        (&name.name, *line)
    };
    let sort = |nodes: &mut Vec<NodeIndex>| {
        let total = |node: NodeIndex| totals[node as usize];
        nodes.sort_by(|&a, &b| (total(b), sort_key(a)).cmp(&(total(a), sort_key(b))));
    };
    sort(&mut roots);
    children.iter_mut().for_each(sort);
    let (total, own) = (unit.head("total"), unit.head("self"));
    let share = "share";
    writeln!(table.out, "\n{share:>7} {total:>9} {own:>9}  frame")?;
    // Node, the lines drawn before it, and how it is joined to its caller.
    let mut open: Vec<(NodeIndex, String, Branch)> = roots
        .iter()
        .rev()
        .map(|&r| (r, String::new(), Branch::Straight))
        .collect();
    let (mut lines, mut hidden) = (0usize, 0u64);
    let mut alike: FxHashSet<NodeIndex> = FxHashSet::default();
    while let Some((node, indent, branch)) = open.pop() {
        let (total, own) = (totals[node as usize], tree.nodes[node as usize].own);
        let cells = format!(
            "{:>6.1}% {:>9} {:>9}",
            table.share(total),
            unit.show(total),
            unit.show(own)
        );
        let (label, line) = name(node);
        let mut text = match tree.nodes[node as usize].stands_for {
            Some(range) if label.name == crate::shape::FRAMEWORK => {
                format!("[{} of the framework]", frames(range))
            }
            _ => label.text(),
        };
        // Adjacent overloads show their signatures.
        if alike.remove(&node) {
            text.push_str(tree.labels[tree.nodes[node as usize].label as usize].signature());
        }
        let before = format!("{indent}{}", branch.mark());
        let before = match options.width {
            Some(width) => last_columns(before, width.saturating_sub(columns(&cells)) / 2),
            None => before,
        };
        let shown = Name {
            before: &before,
            text: &text,
            after: line,
            kind: label.kind,
        };
        lines += 1;
        if lines <= options.max_lines {
            table.line(&cells, table.share(total), shown)?;
        }
        let shown: Vec<NodeIndex> = children[node as usize]
            .iter()
            .copied()
            .filter(|&c| totals[c as usize] >= least)
            .collect();
        hidden += children[node as usize]
            .iter()
            .filter(|&&c| totals[c as usize] < least)
            .count() as u64;
        let mut by_label: Vec<NodeIndex> = shown.clone();
        by_label.sort_by_key(|&node| sort_key(node));
        let is_alike = |pair: &&[NodeIndex]| sort_key(pair[0]) == sort_key(pair[1]);
        alike.extend(by_label.windows(2).filter(is_alike).flatten());
        let below = format!("{indent}{}", branch.below());
        let alone = shown.len() == 1 && own == 0;
        for (i, &child) in shown.iter().enumerate().rev() {
            let branch = match (alone, i + 1 == shown.len()) {
                // A chain of single calls is drawn without indentation.
                (true, _) => Branch::Straight,
                (_, true) => Branch::Last,
                (_, false) => Branch::Middle,
            };
            open.push((child, below.clone(), branch));
        }
    }
    table.more(lines, "line")?;
    if hidden > 0 {
        writeln!(
            table.out,
            "\n{hidden} branches with less than {:.1}% are not shown",
            LEAST_SHARE * 100.0
        )?;
    }
    Ok(())
}

/// Returns the last columns of a text that is too long.
fn last_columns(text: String, max: usize) -> String {
    match columns(&text).checked_sub(max) {
        None | Some(0) => text,
        Some(cut) => format!("…{}", text.chars().skip(cut + 1).collect::<String>()),
    }
}

#[derive(Clone, Copy)]
enum Branch {
    Straight,
    Middle,
    Last,
}

impl Branch {
    fn mark(self) -> &'static str {
        match self {
            Branch::Straight => "",
            Branch::Middle => "├ ",
            Branch::Last => "└ ",
        }
    }

    fn below(self) -> &'static str {
        match self {
            Branch::Straight => "",
            Branch::Middle => "│ ",
            Branch::Last => "  ",
        }
    }
}
