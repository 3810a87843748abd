//! A call tree for a terminal, hottest first.

use std::io::{self, Write};

use chronosym::Profile;
use chronosym_types::escape::terminal;
use rustc_hash::FxHashSet;

use crate::call_tree::{CallTree, Label, NodeIndex};
use crate::header::describe;

/// How much of the tree is shown.
#[derive(Clone, Copy, Debug)]
pub struct TextOptions {
    /// Nodes with less than this share of all samples are left out, 0 to 1.
    pub least_share: f64,
    /// Columns of the terminal; longer lines are cut. `None`: no limit.
    pub width: Option<usize>,
    /// Whether hot lines stand out in colour.
    pub color: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions {
            least_share: 0.005,
            width: None,
            color: false,
        }
    }
}

/// Writes what the samples are, and the tree: share of all, what is in the node and below, and in it alone.
pub fn write_text(
    profile: &Profile,
    tree: &CallTree,
    options: TextOptions,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "{}", describe(profile))?;
    let measure = tree.measure;
    let totals = tree.totals();
    let own = tree.nodes.iter().map(|n| n.own);
    let all = own.fold(0, u64::saturating_add);
    if all == 0 {
        return Ok(());
    }
    let least = ((all as f64 * options.least_share).ceil() as u64).max(1);
    let mut children: Vec<Vec<NodeIndex>> = vec![Vec::new(); tree.nodes.len()];
    let mut roots = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        match node.parent {
            Some(parent) => children[parent as usize].push(index as NodeIndex),
            None => roots.push(index as NodeIndex),
        }
    }
    let labels: Vec<String> = tree.labels.iter().map(Label::for_people).collect();
    let label = |node: NodeIndex| &labels[tree.nodes[node as usize].label as usize];
    let sort = |nodes: &mut Vec<NodeIndex>| {
        let total = |node: NodeIndex| totals[node as usize];
        nodes.sort_by(|&a, &b| (total(b), label(a)).cmp(&(total(a), label(b))));
    };
    sort(&mut roots);
    children.iter_mut().for_each(sort);
    let (total, own) = (measure.head("total"), measure.head("self"));
    writeln!(out, "\n{:>7} {total:>9} {own:>9}  frame", "share")?;
    // (node, the lines drawn before it, is the last of its siblings, is an only child)
    let mut open: Vec<(NodeIndex, String, Branch)> = roots
        .iter()
        .rev()
        .map(|&r| (r, String::new(), Branch::Straight))
        .collect();
    let (mut hidden, mut line) = (0u64, String::new());
    let mut alike: FxHashSet<NodeIndex> = FxHashSet::default();
    while let Some((node, indent, branch)) = open.pop() {
        let (total, own) = (totals[node as usize], tree.nodes[node as usize].own);
        let share = total as f64 * 100.0 / all as f64;
        line.clear();
        use std::fmt::Write as _;
        let _ = write!(
            line,
            "{share:>6.1}% {:>9} {:>9}  {indent}{}{}",
            measure.show(total),
            measure.show(own),
            branch.mark(),
            terminal(label(node))
        );
        // Overloads that stand beside each other.
        if alike.remove(&node) {
            let signature = tree.labels[tree.nodes[node as usize].label as usize].signature();
            line.push_str(&terminal(signature));
        }
        write_line(out, &line, share, options.width, options.color)?;
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
        by_label.sort_by_key(|&node| label(node));
        let is_alike = |pair: &&[NodeIndex]| label(pair[0]) == label(pair[1]);
        alike.extend(by_label.windows(2).filter(is_alike).flatten());
        let below = format!("{indent}{}", branch.below());
        let alone = shown.len() == 1 && own == 0;
        for (i, &child) in shown.iter().enumerate().rev() {
            let branch = match (alone, i + 1 == shown.len()) {
                // A chain of single calls is drawn straight down, however deep.
                (true, _) => Branch::Straight,
                (_, true) => Branch::Last,
                (_, false) => Branch::Middle,
            };
            open.push((child, below.clone(), branch));
        }
    }
    if hidden > 0 {
        writeln!(
            out,
            "\n{hidden} branches with less than {:.1}% are not shown",
            options.least_share * 100.0
        )?;
    }
    Ok(())
}

/// Writes a line, cut to the width; its share of all samples chooses the colour.
pub(crate) fn write_line(
    out: &mut impl Write,
    line: &str,
    share: f64,
    width: Option<usize>,
    color: bool,
) -> io::Result<()> {
    // ECMA-48 SGR: bold, none, faint.
    let (on, off) = match share {
        _ if !color => ("", ""),
        s if s >= 10.0 => ("\x1b[1m", "\x1b[0m"),
        s if s >= 1.0 => ("", ""),
        _ => ("\x1b[2m", "\x1b[0m"),
    };
    match width.and_then(|width| Some((width, line.char_indices().nth(width)?))) {
        Some((width, _)) => {
            let cut: String = line.chars().take(width.saturating_sub(1)).collect();
            writeln!(out, "{on}{cut}…{off}")
        }
        None => writeln!(out, "{on}{line}{off}"),
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
