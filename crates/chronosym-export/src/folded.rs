//! Folded stacks: one line a distinct stack, outermost frame first, then the number of samples.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::io::{self, Write};

use chronosym_types::escape::folded;

use crate::call_tree::{CallTree, NodeIndex};

/// Writes `process (pid);thread (tid);outermost;…;leaf weight` for every distinct stack, sorted by text.
///
/// Names are as [`folded`] makes them.
pub fn write_folded(tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    let labels: Vec<Cow<'_, str>> = tree.labels.iter().map(|label| folded(label)).collect();
    let mut paths: Vec<(Vec<u32>, u64)> = Vec::new();
    for (index, node) in tree
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.own > 0)
    {
        paths.push((path(tree, index as NodeIndex), node.own));
    }
    paths.sort_by(|a, b| compare(&labels, &a.0, &b.0));
    let mut line = String::new();
    let mut paths = paths.into_iter().peekable();
    while let Some((labels_of, mut weight)) = paths.next() {
        // Labels that differ only in what cleaning took away are one stack now.
        while let Some(next) =
            paths.next_if(|next| compare(&labels, &next.0, &labels_of) == Ordering::Equal)
        {
            weight += next.1;
        }
        line.clear();
        for (i, label) in labels_of.iter().enumerate() {
            if i > 0 {
                line.push(';');
            }
            line.push_str(&labels[*label as usize]);
        }
        writeln!(out, "{line} {weight}")?;
    }
    Ok(())
}

fn path(tree: &CallTree, leaf: NodeIndex) -> Vec<u32> {
    let mut path: Vec<u32> = std::iter::successors(Some(leaf), |&n| tree.nodes[n as usize].parent)
        .map(|n| tree.nodes[n as usize].label)
        .collect();
    path.reverse();
    path
}

/// Compares the lines that two paths make, without making them.
fn compare(labels: &[Cow<'_, str>], a: &[u32], b: &[u32]) -> Ordering {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let text = |path: &[u32]| {
        let last = path.len().saturating_sub(1);
        let parts = path
            .iter()
            .enumerate()
            .skip(same)
            .map(|(i, &l)| (labels[l as usize].clone(), i == last));
        parts.collect::<Vec<_>>()
    };
    let bytes = |parts: &[(Cow<'_, str>, bool)]| -> Vec<u8> {
        parts
            .iter()
            .flat_map(|(t, last)| t.bytes().chain([if *last { b' ' } else { b';' }]))
            .collect()
    };
    if same == a.len() || same == b.len() {
        // One is the caller of the other: a blank follows it, and that sorts before the semicolon.
        return a.len().cmp(&b.len());
    }
    let (first_a, first_b) = (&labels[a[same] as usize], &labels[b[same] as usize]);
    let common = first_a.len().min(first_b.len());
    match first_a.as_bytes()[..common].cmp(&first_b.as_bytes()[..common]) {
        Ordering::Equal => bytes(&text(a)).cmp(&bytes(&text(b))),
        different => different,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_sort_as_their_text_does() {
        let labels = ["a", "b", "b c", "b!", "x"].map(Cow::from);
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
                .map(|&l| &*labels[l as usize])
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
