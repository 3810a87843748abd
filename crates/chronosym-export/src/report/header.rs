//! The header of a report's data: names and other text, which the columns refer to by index.

use std::collections::BTreeMap;

use chronosym_core::{Certainty, Evidence, LineReason, MarkerKind, NameReason, WallFlag};
use chronosym_pdb::csharp::SourceName;
use chronosym_types::escape::terminal;
use serde::Serialize;

use super::calls::{Calls, FrameFacts};
use super::columns::{ColumnInfo, Columns};
use super::facts::{ReportFacts, ReportSource};
use super::markers;
use super::samples::Samples;
use crate::helpers::is_helper;
use crate::kind::CodeKind;
use crate::plumbing::is_plumbing;
use crate::reasons::{evidence_text, line_reason, name_reason};
use crate::series::{Series, thread_label};
use crate::tables::Numbered;
use crate::user_code::UserCode;

#[derive(Serialize)]
pub(super) struct Header<'a> {
    version: u32,
    name: String,
    summary: Vec<String>,
    diagnostics: Vec<String>,
    unit: &'static str,
    duration: u64,
    start_unix_ms: Option<f64>,
    slice: Option<u64>,
    every: u64,
    live: bool,
    cut_stacks: u64,
    weight_until_next: bool,
    raw: bool,
    modules: Vec<String>,
    kinds: Vec<&'static str>,
    processes: Vec<ProcessRow>,
    threads: Vec<ThreadRow>,
    functions: Vec<FunctionRow>,
    files: Vec<String>,
    sources: BTreeMap<usize, ReportSource>,
    calls: BTreeMap<usize, Vec<CallRow>>,
    facts: Vec<FactsRow>,
    evidence: Vec<(&'static str, &'static str)>,
    certainty: Vec<&'static str>,
    name_reasons: Vec<(&'static str, &'static str, &'static str)>,
    line_reasons: Vec<(&'static str, &'static str, &'static str)>,
    marker_kinds: Vec<&'static str>,
    marker_texts: Vec<String>,
    pub(super) columns: &'a [ColumnInfo],
}

#[derive(Serialize)]
struct ProcessRow {
    label: String,
    runtimes: Vec<String>,
    command_line: Option<String>,
    /// Whether `--running` selects threads of unknown activity, too (rule 22).
    unknown_runs: bool,
}

#[derive(Serialize)]
struct ThreadRow {
    label: String,
    process: usize,
}

/// Label as in `top`, module from 1, kind, flags, and the parts of its name.
#[derive(Serialize)]
struct FunctionRow(String, usize, usize, u8, String, String, String, String);

/// Line, callee, and the reason for which the call was not inlined.
#[derive(Serialize)]
struct CallRow(u32, String, Option<String>);

const APPROXIMATE: u8 = 1;
const USER: u8 = 2;
const PLUMBING: u8 = 4;
const HELPER: u8 = 8;

/// Tier, evidence, certainty, reasons for no name and no line (each from 1), flags.
#[derive(Serialize)]
struct FactsRow(&'static str, usize, usize, usize, usize, u8);

impl FactsRow {
    fn new(facts: &FrameFacts) -> Self {
        // The members are numbered in the order of their lists.
        FactsRow(
            facts.tier,
            facts.evidence.map_or(0, |it| it as usize + 1),
            facts.certainty.map_or(0, |it| it as usize + 1),
            facts.name_reason.map_or(0, |it| it as usize + 1),
            facts.line_reason.map_or(0, |it| it as usize + 1),
            u8::from(facts.inlined) | u8::from(facts.after_loss) << 1,
        )
    }
}

fn text(text: &str) -> String {
    terminal(text).into_owned()
}

/// Returns a source file without characters that would reorder it.
fn lines(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| terminal(&line.replace('\t', "    ")).into_owned());
    lines.collect::<Vec<_>>().join("\n")
}

impl<'a> Header<'a> {
    pub fn new(
        series: &Series,
        facts: &ReportFacts,
        calls: &Calls<'_>,
        (samples, is_live): (&Samples, bool),
        place: &[u32],
        sources: BTreeMap<usize, ReportSource>,
        columns: &'a mut Columns,
    ) -> Self {
        let timeline = series.resolver.timeline();
        let weight_until_next = samples.write(place, columns);
        let (processes, threads) = threads(series, samples);
        let marker_texts = markers::write(series, samples, columns);
        let mut modules = Numbered::default();
        let functions = functions(calls, UserCode::of(timeline), &mut modules);
        let sources = sources.into_iter().map(|(file, source)| {
            let (text, from) = (lines(&source.text), text(&source.from));
            (file, ReportSource { text, from })
        });
        let start_unix = timeline.facts().start_unix_ns;
        Header {
            version: 1,
            name: text(&facts.name),
            summary: facts.summary.iter().map(|line| text(line)).collect(),
            diagnostics: facts.diagnostics.iter().map(|it| text(&it.text)).collect(),
            unit: series.unit.as_str(),
            duration: timeline.facts().duration_ns,
            start_unix_ms: start_unix.map(|ns| ns as f64 / 1e6),
            slice: samples.slice_ns,
            every: samples.every,
            live: is_live,
            cut_stacks: calls.cut,
            weight_until_next,
            raw: facts.raw,
            modules: modules
                .into_iter()
                .map(|name: String| text(&name))
                .collect(),
            kinds: CodeKind::ALL.map(CodeKind::as_str).to_vec(),
            processes,
            threads,
            functions,
            files: calls.files.iter().map(|file| text(file)).collect(),
            sources: sources.collect(),
            calls: calls_by_file(calls, facts),
            facts: calls.facts.iter().map(FactsRow::new).collect(),
            evidence: Evidence::ALL
                .map(|it| (it.as_str(), evidence_text(it)))
                .to_vec(),
            certainty: Certainty::ALL.map(Certainty::as_str).to_vec(),
            name_reasons: NameReason::ALL
                .map(|it| (it.as_str(), name_reason(it).0, name_reason(it).1))
                .to_vec(),
            line_reasons: LineReason::ALL
                .map(|it| (it.as_str(), line_reason(it).0, line_reason(it).1))
                .to_vec(),
            marker_kinds: MarkerKind::ALL.map(MarkerKind::as_str).to_vec(),
            marker_texts,
            columns: &columns.info,
        }
    }
}

fn calls_by_file(calls: &Calls<'_>, facts: &ReportFacts) -> BTreeMap<usize, Vec<CallRow>> {
    let files = calls.files.iter().enumerate();
    let with_calls = files.filter_map(|(file, path)| Some((file, facts.calls.get(&**path)?)));
    let rows = with_calls.map(|(file, calls)| {
        let rows = calls.iter().map(|call| {
            let reason = call.rejected.as_deref().map(text);
            CallRow(call.line, text(&call.callee), reason)
        });
        (file, rows.collect())
    });
    rows.collect()
}

fn threads(series: &Series, samples: &Samples) -> (Vec<ProcessRow>, Vec<ThreadRow>) {
    let timeline = series.resolver.timeline();
    let mut processes = Numbered::default();
    let threads = samples.threads.iter().map(|&thread| {
        let view = timeline.thread_view(thread);
        let process = view.as_ref().map(|view| view.process);
        ThreadRow {
            label: view.map_or_else(|| "thread".to_owned(), |view| text(&thread_label(&view))),
            process: processes.insert_full(process).0,
        }
    });
    let threads = threads.collect();
    let processes = processes.iter().map(|process| {
        let view = process.and_then(|process| timeline.process_view(process));
        let runtimes = view.as_ref().map(|view| view.runtimes.as_slice());
        let command_line = view.as_ref().and_then(|view| view.command_line);
        let flag = view
            .as_ref()
            .and_then(|view| timeline.wall_flag(view.index));
        ProcessRow {
            label: view
                .as_ref()
                .map_or_else(|| "process".to_owned(), |view| text(&view.label())),
            runtimes: runtimes
                .unwrap_or_default()
                .iter()
                .map(|it| text(it))
                .collect(),
            command_line: command_line.map(text),
            unknown_runs: flag.is_some_and(|flag| flag != WallFlag::Trusted),
        }
    });
    (processes.collect(), threads)
}

fn functions(
    calls: &Calls<'_>,
    user_code: UserCode,
    modules: &mut Numbered<String>,
) -> Vec<FunctionRow> {
    let examples = calls.example_of_functions();
    let rows = calls.function_groups().zip(examples).map(|(group, frame)| {
        let Some((group, line)) = group else {
            let label = "[frames left out]".to_owned();
            let (method, kind) = (label.clone(), CodeKind::Unnamed as usize);
            let none = String::new;
            return FunctionRow(label, 0, kind, 0, none(), none(), method, none());
        };
        let label = calls.groups.label(group);
        let line = match line {
            0 => String::new(),
            line => format!(":{line}"),
        };
        let function = &calls.groups.all[group].function;
        let binary = function.binary();
        let module = binary.map_or(0, |binary| {
            modules.insert_full(binary.name().to_owned()).0 + 1
        });
        let kind = label.kind.unwrap_or(CodeKind::of(frame));
        let is_managed = matches!(kind, CodeKind::Managed | CodeKind::Framework);
        let name = match function.name() {
            Some(name) if is_managed => SourceName::managed(name, function.signature()),
            Some(name) => SourceName::plain(name),
            None => SourceName::plain(&label.name),
        };
        let is_code = matches!(
            kind,
            CodeKind::Managed | CodeKind::Framework | CodeKind::Native
        );
        let is_user = is_code && user_code.has(frame);
        let is_plumbing = !is_user && function.recorded_name().is_some_and(is_plumbing);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        FunctionRow(
            text(&format!("{}{line}", label.name)),
            module,
            kind as usize,
            flag(label.approximate, APPROXIMATE)
                | flag(is_user, USER)
                | flag(is_plumbing, PLUMBING)
                | flag(is_helper(function), HELPER),
            text(&name.namespace),
            text(&name.of_type),
            text(&format!("{}{line}", name.method)),
            text(&name.arguments),
        )
    });
    rows.collect()
}
