//! The SVG: the boxes of the first view, the script, and its data.

use std::fmt::Write as _;
use std::io::{self, Write};

use chronosym_core::Profile;
use chronosym_types::escape::xml;

use super::graph::{Graph, KINDS};
use crate::call_tree::CallTree;
use crate::json::Quoted;
use crate::weight::WeightUnit;

const STYLE: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

// The script has the same constants.
const WIDTH: f64 = 1200.0;
const SIDE: f64 = 8.0;
const TOP: usize = 44;
const BOTTOM: usize = 30;
const ROW: usize = 18;
const CHAR: f64 = 7.25;
const LEAST: f64 = 0.4;

/// Writes a flame graph of a profile's tree as an SVG that needs no other file: processes, their
/// threads and the frames of these, each caller above its callees.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_svg(profile: &Profile, tree: &CallTree, out: &mut impl Write) -> io::Result<()> {
    write_graph(&Graph::of(profile, tree), out)
}

/// Writes a flame graph of two profiles and their trees: the width of a box is the mean of its
/// percentages, its colour shows which is larger. Functions are matched by module and name;
/// processes and threads are left out.
///
/// # Errors
///
/// Errors of writing to `out`.
pub fn write_diff_svg(
    before: (&Profile, &CallTree),
    after: (&Profile, &CallTree),
    out: &mut impl Write,
) -> io::Result<()> {
    write_graph(&Graph::between(before, after), out)
}

fn write_graph(graph: &Graph, out: &mut impl Write) -> io::Result<()> {
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    push_graph(graph, &mut text);
    text.push('\n');
    out.write_all(text.as_bytes())
}

/// Appends the graph as an element.
fn push_graph(graph: &Graph, text: &mut String) {
    let title = xml(&graph.title);
    let (boxes, deepest) = boxes(graph);
    let height = TOP + (deepest + 1) * ROW + BOTTOM;
    // Writing to a `String` never fails.
    let _ = write!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"graph\" width=\"100%\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style>\n\
         <rect id=\"ground\" width=\"100%\" height=\"100%\"/>\
         <text id=\"title\" x=\"8\" y=\"16\">{title}</text>",
    );
    let buttons = [
        ("reset", 8, "reset zoom"),
        ("invert", 110, "invert"),
        ("threads", 220, "join threads"),
        ("search", 330, "search"),
    ];
    for (id, x, name) in buttons {
        // They are hidden until the script shows them.
        let _ = write!(
            text,
            "<text id=\"{id}\" class=\"button off\" x=\"{x}\" y=\"34\">{name}</text>"
        );
    }
    let _ = write!(
        text,
        "<text id=\"found\" x=\"400\" y=\"34\"></text>\n<g id=\"boxes\">{boxes}</g>\n\
         <text id=\"details\" x=\"8\" y=\"{}\">{title}</text><g id=\"tip\"/>\n<script type=\"application/json\" id=\"data\">",
        height - 10,
    );
    push_data(graph, text);
    let _ = write!(
        text,
        "</script>\n<script>//<![CDATA[\n{SCRIPT}\n//]]></script></svg>"
    );
}

/// Appends the script's data. Nothing in it can end the element, in XML or in HTML.
fn push_data(graph: &Graph, text: &mut String) {
    let unit = match graph.unit {
        Some(WeightUnit::Time) => "ns",
        Some(WeightUnit::Bytes) => "bytes",
        Some(WeightUnit::Samples) => "samples",
        Some(WeightUnit::Events) => "events",
        None => "shares",
    };
    let quoted = |text: &String| Quoted(text).to_string();
    let frames = graph.boxes.iter().map(|frame| {
        let details: Vec<String> = frame.details.iter().map(quoted).collect();
        let (name, kind) = (Quoted(&frame.name), frame.kind);
        format!("\n[{name},{kind},[{}]]", details.join(","))
    });
    let mut nodes = String::new();
    for (depth, node) in &graph.nodes {
        let comma = if nodes.is_empty() { "" } else { "," };
        let _ = write!(nodes, "{comma}{depth},{},{}", node.of, node.own.after);
        if graph.unit.is_none() {
            let _ = write!(nodes, ",{}", node.own.before);
        }
    }
    let data = format!(
        "{{\"title\":{},\"unit\":\"{unit}\",\"kinds\":{KINDS:?},\"frames\":[{}],\n\"nodes\":[{nodes}]}}",
        Quoted(&graph.title),
        frames.collect::<Vec<_>>().join(",")
    );
    text.push_str(
        &data
            .replace('&', "\\u0026")
            .replace('<', "\\u003c")
            .replace('>', "\\u003e"),
    );
}

/// Returns the boxes of the first view, and their depth.
fn boxes(graph: &Graph) -> (String, usize) {
    let (whole, inner) = (graph.total(), WIDTH - 2.0 * SIDE);
    let scale = inner / whole.sum().max(1) as f64;
    let (mut text, mut deepest) = (String::new(), 0);
    let mut push = |name: &str,
                    class: &str,
                    kind: &str,
                    amount: &str,
                    depth: usize,
                    x,
                    width: f64| {
        let _ = write!(
            text,
            "<g class=\"box {class}\" transform=\"translate({:.1} {})\"><title>{} ({amount})</title>\
             <rect width=\"{:.1}\" height=\"{}\" rx=\"1\"/>",
            SIDE + x,
            TOP + depth * ROW,
            xml(name),
            (width - 0.5).max(0.3),
            ROW - 1,
        );
        let label = fit(name, kind, width);
        if !label.is_empty() {
            let _ = write!(
                text,
                "<text x=\"3\" y=\"{}\">{}</text>",
                ROW - 5,
                xml(&label)
            );
        }
        text.push_str("</g>");
    };
    let amount = graph.amount(whole, whole);
    push("all", "root", "root", &amount, 0, 0.0, inner);
    // The left edge of the next box of each depth.
    let mut next: Vec<f64> = vec![0.0, 0.0];
    for (depth, node) in &graph.nodes {
        let (depth, width) = (depth + 1, node.total.sum() as f64 * scale);
        next.resize(depth + 1, 0.0);
        let x = next[depth];
        next[depth] += width;
        next.push(x);
        if width >= LEAST {
            let frame = &graph.boxes[node.of as usize];
            let (kind, class) = (KINDS[frame.kind as usize], graph.class(node));
            let amount = graph.amount(node.total, whole);
            push(&frame.name, class, kind, &amount, depth, x, width);
            deepest = deepest.max(depth);
        }
    }
    (text, deepest)
}

/// Shortens a name to the width of a box: it loses its namespace first, then its arguments, its
/// type, and its end. The suffix that compilers append to native names after a dot is not a method.
fn fit(name: &str, kind: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHAR).floor().max(0.0) as usize;
    if room < 3 {
        return String::new();
    }
    let is_whole = matches!(kind, "native" | "runtime" | "kernel" | "unnamed");
    let [type_at, method_at] = if is_whole { [0, 0] } else { parts_at(name) };
    let (in_type, method) = (&name[type_at..], &name[method_at..]);
    // The line after them would be lost with the arguments.
    let arguments = in_type.find('(').filter(|_| !in_type.contains("  "));
    let bare = &in_type[..arguments.unwrap_or(in_type.len())];
    let bare_method = bare.get(method_at - type_at..).unwrap_or(bare);
    let module = name.find('!').filter(|_| !is_whole).map_or(0, |at| at + 1);
    let path = &name[module.min(type_at)..];
    let shorter = [name, path, in_type, bare, method, bare_method];
    let fitting = shorter.iter().find(|text| text.chars().count() <= room);
    fitting.map_or_else(
        || bare_method.chars().take(room - 1).chain(['…']).collect(),
        |text| (*text).to_owned(),
    )
}

/// Returns the starts of the type and of the method's own name: after the last two dots outside
/// brackets, arguments and the source line, which follows two spaces.
fn parts_at(name: &str) -> [usize; 2] {
    let (mut depth, mut at) = (0u32, [0, 0]);
    for (index, c) in name.char_indices() {
        match c {
            '[' | '<' => depth += 1,
            ']' | '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            ' ' if name[index..].starts_with("  ") => break,
            '.' if depth == 0 && index > at[1] => at = [at[1], index + 1],
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_namespace_before_their_end() {
        let name = "App!Shop.Cart.Add(System.String)";
        assert_eq!(fit(name, "managed", 300.0), name);
        assert_eq!(fit(name, "managed", 230.0), "Shop.Cart.Add(System.String)");
        assert_eq!(fit(name, "managed", 180.0), "Cart.Add(System.String)");
        assert_eq!(fit(name, "managed", 150.0), "Cart.Add");
        assert_eq!(fit(name, "managed", 62.0), "Add");
        assert_eq!(fit("App!Shop.Cart.AddManyMore", "managed", 60.0), "AddMan…");
        assert_eq!(fit(name, "managed", 20.0), "");
        assert_eq!(fit("größe.ß", "managed", 34.0), "ß");
        assert_eq!(fit("libc!sort.part.0", "native", 60.0), "libc!s…");
        assert_eq!(fit("libcoreclr.so ?", "unnamed", 60.0), "libcor…");
        let with_line = "App!Shop.Cart.Add  Cart.cs:7";
        assert_eq!(&with_line[parts_at(with_line)[1]..], "Add  Cart.cs:7");
        for generic in [
            "App!Ns.Cell`1[System.Int32].Get",
            "App!Ns.Cell<A.B, int>.Get",
        ] {
            assert_eq!(&generic[parts_at(generic)[1]..], "Get");
        }
        assert_eq!(
            &"A!B..ctor(int)"[parts_at("A!B..ctor(int)")[1]..],
            ".ctor(int)"
        );
    }
}
