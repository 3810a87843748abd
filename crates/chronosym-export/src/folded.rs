//! Folded stacks: one line a distinct stack, outermost frame first, then its weight.

use std::cmp::Ordering;
use std::io::{self, Write};

use chronosym_types::escape::folded;

use crate::call_tree::{CallTree, Label, NodeIndex};
use crate::measure::{Measure, add};

/// Writes `process (pid);thread (tid);outermost;…;leaf weight` for every distinct stack, sorted by text.
///
/// Names are as [`folded`] makes them. Time is in µs, rounded to the nearest.
pub fn write_folded(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    let measure = tree.measure;
    // Texts that are equal, once cleaned, are one from here on.
    let cleaned = |label: &Label| folded(&label.to_string()).into_owned();
    let texts: Vec<String> = tree.labels.iter().map(cleaned).collect();
    let mut labels: Vec<&str> = texts.iter().map(String::as_str).collect();
    labels.sort_unstable();
    labels.dedup();
    let rank = |text: &String| labels.partition_point(|&label| label < text.as_str()) as u32;
    let ranks: Vec<u32> = texts.iter().map(rank).collect();
    let mut paths: Vec<(Vec<u32>, u64)> = Vec::new();
    for (index, node) in tree.nodes.iter().enumerate() {
        if node.own > 0 {
            paths.push((path(tree, &ranks, index as NodeIndex), node.own));
        }
    }
    paths.sort_by(|a, b| compare(&labels, &a.0, &b.0));
    let mut line = String::new();
    let mut paths = paths.into_iter().peekable();
    while let Some((labels_of, mut weight)) = paths.next() {
        while let Some(next) = paths.next_if(|next| next.0 == labels_of) {
            add(&mut weight, next.1);
        }
        if measure == Measure::Time {
            weight = weight.saturating_add(500) / 1_000;
        }
        line.clear();
        for (i, label) in labels_of.iter().enumerate() {
            if i > 0 {
                line.push(';');
            }
            line.push_str(labels[*label as usize]);
        }
        writeln!(out, "{line} {weight}")?;
    }
    Ok(())
}

fn path(tree: &CallTree, ranks: &[u32], leaf: NodeIndex) -> Vec<u32> {
    let mut path: Vec<u32> = std::iter::successors(Some(leaf), |&n| tree.nodes[n as usize].parent)
        .map(|n| ranks[tree.nodes[n as usize].label as usize])
        .collect();
    path.reverse();
    path
}

/// Compares the lines that two paths make, without making them.
fn compare(labels: &[&str], a: &[u32], b: &[u32]) -> Ordering {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    if same == a.len() || same == b.len() {
        // One is the caller of the other: a blank follows it, and that sorts before the semicolon.
        return a.len().cmp(&b.len());
    }
    let rest = |path: &[u32]| -> Vec<u8> {
        let parts = path.iter().skip(same).map(|&l| labels[l as usize]);
        let mut text = parts.collect::<Vec<_>>().join(";").into_bytes();
        text.push(b' ');
        text
    };
    let (first_a, first_b) = (labels[a[same] as usize], labels[b[same] as usize]);
    let common = first_a.len().min(first_b.len());
    match first_a.as_bytes()[..common].cmp(&first_b.as_bytes()[..common]) {
        Ordering::Equal => rest(a).cmp(&rest(b)),
        different => different,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_sort_as_their_text_does() {
        let labels = ["a", "b", "b c", "b!", "x"];
        let mut paths: Vec<Vec<u32>> = vec![
            vec![0, 1, 4],
            vec![0, 2],
            vec![0, 1],
            vec![0],
            vec![0, 3, 4],
            vec![4],
        ];
        paths.sort_by(|a, b| compare(&labels, a, b));
        let line = |p: &Vec<u32>| {
            p.iter()
                .map(|&l| labels[l as usize])
                .collect::<Vec<_>>()
                .join(";")
                + " 1"
        };
        let lines: Vec<String> = paths.iter().map(line).collect();
        let mut sorted = lines.clone();
        sorted.sort();
        assert_eq!(lines, sorted);
    }
}
