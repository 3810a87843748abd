//! Reports of resolved profiles and timelines: folded stacks, call trees, JSON lines, tables of
//! hotspots, listings, and files for viewers: flame graphs (SVG, HTML), speedscope, Firefox
//! Profiler, pprof, OTLP.
//!
//! Every writer takes a [`chronosym_core::Profile`], a [`chronosym_core::Timeline`] or a
//! [`Series`], and a [`std::io::Write`].
#![deny(missing_docs)]

mod activities;
mod annotate;
mod async_chains;
mod binaries;
mod bodies;
mod butterfly;
mod call_tree;
mod candidates;
mod compiled_bodies;
mod counter_line;
mod diff;
mod explain;
mod firefox;
mod fit;
mod flame;
mod folded;
mod function_groups;
mod header;
mod helpers;
mod info;
mod json;
mod kind;
mod lifetime;
mod line_calls;
mod missing;
mod missing_files;
mod object;
mod otlp;
mod pattern;
mod perfetto;
mod plumbing;
mod pprof;
mod rare;
mod reasons;
mod report;
mod runtime;
mod series;
mod shape;
mod source_position;
mod speedscope;
mod symbol_commands;
mod symbol_file;
mod table;
mod tables;
mod text;
mod text_line;
mod threads;
mod top;
mod trace_summary;
mod track_markers;
mod units;
mod user_code;
mod user_methods;
mod wakers;
mod weight;
mod wire;

pub use activities::root_by_activity;
pub use annotate::{FileLines, Line, MethodLines, Source, module_of, write_lines};
pub use async_chains::AsyncStacks;
pub use binaries::Binaries;
pub use bodies::Bodies;
pub use butterfly::{Butterfly, Neighbour, write_butterfly};
pub use call_tree::{CallTree, TreeOptions};
pub use candidates::CandidateInlinees;
pub use diff::{Change, Diff, MethodDiff, MethodSamples, write_diff};
pub use explain::Explanation;
pub use firefox::{firefox_address, write_firefox};
pub use fit::wrap;
pub use flame::{write_diff_svg, write_svg};
pub use folded::write_folded;
pub use function_groups::Label;
pub use header::{beyond_memory, describe};
pub use helpers::charge_helpers;
pub use info::Overview;
pub use json::{JsonStacks, frame_object, write_json_lines};
pub use kind::CodeKind;
pub use line_calls::LineCall;
pub use missing_files::MissingFiles;
pub use object::{Fields, Json, Object};
pub use otlp::write_otlp;
pub use pattern::{Pattern, PatternError};
pub use perfetto::write_perfetto;
pub use plumbing::fold_plumbing;
pub use pprof::write_pprof;
pub use report::{
    NamedFile, ReportFacts, ReportQueries, ReportSource, write_diff_report, write_report,
    write_served_report,
};
pub use runtime::{Inlining, RuntimeOverview, RuntimeReport, to_record};
pub use series::{Granularity, Series, TimedSample};
pub use shape::{FRAMEWORK, Shape, Shaper};
pub use source_position::SourcePosition;
pub use speedscope::write_speedscope;
pub use table::{TableObject, TableOptions};
pub use text::write_text;
pub use threads::{
    HotThread, HottestMethod, SwitchedTime, add_switched, hot_threads, write_threads,
};
pub use top::{By, Hotspot, Sort, TopObject, hotspots, write_top};
pub use trace_summary::TraceSummary;
pub use units::{show_count, show_range, show_time, utc};
pub use user_code::{UserCode, is_framework_module};
pub use user_methods::{UserMethod, user_methods};
pub use wakers::Wakers;
pub use weight::{Amount, Counts, WeightUnit};

/// Replaces characters that would control a terminal or break a line, as [`text_line`] does.
pub use chronosym_types::escape::terminal as printable;
