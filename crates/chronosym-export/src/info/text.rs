//! An overview as text.

use std::cmp::Reverse;
use std::io::{self, Write};

use chronosym_core::{EventKey, FileGap};
use chronosym_types::escape::terminal;

use super::overview::Overview;
use super::summary::Naming;
use crate::fit::wrap;
use crate::reasons::{evidence_text, name_reason};
use crate::text_line;
use crate::units::{show_count, show_time, utc};

impl Overview<'_> {
    /// Writes the advice, then facts, processes, code, frames, diagnostics and events. Sentences
    /// are wrapped at `width` columns.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, width: usize, out: &mut impl Write) -> io::Result<()> {
        for line in &self.advice {
            writeln!(out, "! {}\n", wrap(&terminal(line), width - 2, "  "))?;
        }
        self.write_facts(width, out)?;
        self.write_recordings(out)?;
        self.write_processes(out)?;
        self.write_suspensions(out)?;
        self.write_code(out)?;
        self.write_frames(out)?;
        if !self.summary.symbol_files.is_empty() {
            writeln!(out, "\nsymbol files that were found")?;
        }
        for file in &self.summary.symbol_files {
            text_line!(out, "  {file}")?;
        }
        if !self.diagnostics.list.is_empty() {
            writeln!(out, "\ndamage and loss")?;
            for diagnostic in &self.diagnostics.list {
                let text = diagnostic.to_string();
                writeln!(out, "  {}", wrap(&terminal(&text), width - 2, "    "))?;
            }
            self.write_gaps(out)?;
        }
        self.write_events(out)
    }

    fn write_facts(&self, width: usize, out: &mut impl Write) -> io::Result<()> {
        let (facts, summary) = (self.timeline.facts(), &self.summary);
        let format = format!("format      {} {}", facts.format, facts.version);
        text_line!(out, "{}", format.trim_end())?;
        let start = facts.start_unix_ns.and_then(utc);
        let start = start.map_or(String::new(), |start| format!("{start}, "));
        let long = show_time(facts.duration_ns);
        writeln!(out, "recorded    {start}{long} long")?;
        let mut machine: Vec<String> = facts.machine.iter().cloned().collect();
        machine.extend(facts.processors.map(|n| format!("{n} processors")));
        let bits = facts.pointer_size.map(|n| u32::from(n) * 8);
        machine.extend(bits.map(|bits| format!("{bits}-bit")));
        if !machine.is_empty() {
            text_line!(out, "machine     {}", machine.join(", "))?;
        }
        let mut heading = "samples";
        for line in summary.description.lines() {
            let line = wrap(&terminal(line), width - 12, "            ");
            writeln!(out, "{heading:<12}{line}")?;
            heading = "";
        }
        if summary.idle > 0 {
            let idle = show_count(summary.idle);
            writeln!(
                out,
                "{heading:<12}{idle} more on idle processors are excluded (--idle includes them)"
            )?;
        }
        Ok(())
    }

    fn write_recordings(&self, out: &mut impl Write) -> io::Result<()> {
        let recordings = &self.timeline.facts().recordings;
        if !recordings.is_empty() {
            writeln!(out, "\njoined from")?;
        }
        for part in recordings {
            let clock = match (part.offset_ns, part.error_ns) {
                (0, 0) => part.clock.as_str().to_owned(),
                (offset, error) => format!(
                    "{}: {} ns later, error at most {} ns",
                    part.clock.as_str(),
                    offset,
                    show_count(error)
                ),
            };
            let pid = part.own_pid;
            let pid = pid.map(|(own, pid)| format!(", {pid}, whose own id is {own}"));
            let (gives, pid) = (&part.gives, pid.unwrap_or_default());
            let process = part.process_match;
            let process = process.map_or(String::new(), |it| format!("; identified by {it}"));
            text_line!(out, "  {}: {gives}{pid} ({clock}){process}", part.name)?;
        }
        Ok(())
    }

    fn write_processes(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\nprocesses")?;
        let processes = self.timeline.processes();
        let mut processes: Vec<_> = processes
            .map(|view| (self.samples_of(&view), view))
            .collect();
        processes.sort_by_key(|&(samples, _)| Reverse(samples));
        let mut left_out = 0;
        for (samples, process) in &processes {
            let has_code = self.timeline.bodies(process.index).next().is_some();
            if *samples == 0 && !has_code && !process.is_managed && processes.len() > 12 {
                left_out += 1;
                continue;
            }
            let runtimes = match process.runtimes.as_slice() {
                [] => String::new(),
                runtimes => format!(", {}", runtimes.join(", ")),
            };
            let what = if *samples == 1 { "sample" } else { "samples" };
            text_line!(
                out,
                "  {:<24} {:<12} {:>9} {what}{runtimes}",
                process.name.unwrap_or("-"),
                process
                    .pid
                    .map_or(String::new(), |pid| format!("pid {pid}")),
                show_count(*samples)
            )?;
            if let Some(command) = process.command_line {
                text_line!(out, "      {command}")?;
            }
        }
        if left_out > 0 {
            let count = show_count(left_out);
            writeln!(out, "  {count} more without samples or .NET code")?;
        }
        Ok(())
    }

    /// Writes the total time of suspensions, by reason.
    fn write_suspensions(&self, out: &mut impl Write) -> io::Result<()> {
        let first = self.suspensions().next().map(|(pid, _)| pid);
        let several = self.suspensions().any(|(pid, _)| Some(pid) != first);
        let duration = self.timeline.facts().duration_ns.max(1);
        if !self.suspensions.is_empty() {
            writeln!(out, "\nsuspensions of all threads")?;
        }
        for (pid, it) in self.suspensions() {
            let pid = pid.filter(|_| several);
            let pid = pid.map_or(String::new(), |pid| format!(", pid {pid}"));
            text_line!(
                out,
                "  {:>12}  {:>10.1} ms  {:>5.1}% of the trace  {}{pid}",
                show_count(it.count),
                it.time_ns as f64 / 1e6,
                it.time_ns as f64 * 100.0 / duration as f64,
                it.cause
            )?;
        }
        Ok(())
    }

    fn write_code(&self, out: &mut impl Write) -> io::Result<()> {
        let timeline = self.timeline;
        let (mut bodies, mut modules, mut images, mut maps, mut trees) = (0, 0, 0, 0, 0);
        for process in timeline.processes() {
            for body in timeline.bodies(process.index) {
                bodies += 1;
                maps += u64::from(body.il_map_entries.is_some());
                trees += u64::from(body.has_inline_tree);
            }
            modules += timeline.modules(process.index).count() as u64;
            images += timeline.images(process.index).count() as u64;
        }
        let [bodies, modules, images, maps, trees] =
            [bodies, modules, images, maps, trees].map(show_count);
        writeln!(
            out,
            "\ncode recorded in the trace\n  \
             {bodies:>12}  compiled methods (see methods): {maps} with an IL map, which leads to source lines, \
             {trees} with inlining\n  \
             {modules:>12}  .NET modules (see modules)\n  \
             {images:>12}  native images"
        )
    }

    /// Writes how leaves and all frames are named, or why they are not.
    fn write_frames(&self, out: &mut impl Write) -> io::Result<()> {
        let (own, all) = (&self.summary.own, &self.summary.frames);
        if all.total == 0 {
            return Ok(());
        }
        writeln!(out, "\nnames of frames, and reasons for missing names")?;
        writeln!(out, "  {:>7}  {:>7}  {:>12}", "self", "frames", "frames")?;
        let mut line = |of_own: u64, of_all: u64, what: &str| {
            writeln!(
                out,
                "  {:>6.1}%  {:>6.1}%  {:>12}  {what}",
                own.share(of_own),
                all.share(of_all),
                show_count(of_all)
            )
        };
        line(own.total, all.total, "total")?;
        line(own.named, all.named, "named")?;
        for (evidence, &n) in &all.evidence {
            let own = own.evidence.get(evidence).copied().unwrap_or(0);
            let what = format!("  {:<15} {}", evidence.as_str(), evidence_text(*evidence));
            line(own, n, &what)?;
        }
        if all.guessed > 0 {
            line(own.guessed, all.guessed, "  of these, guesses (~)")?;
        }
        let unnamed = |naming: &Naming| naming.total - naming.named;
        if unnamed(all) > 0 {
            line(unnamed(own), unnamed(all), "unnamed")?;
        }
        for (reason, &n) in &all.reasons {
            let what = format!("  {:<15} {}", reason.as_str(), name_reason(*reason).0);
            line(own.unnamed(*reason), n, &what)?;
        }
        let with_line = self.summary.with_line;
        if with_line > 0 {
            let (share, count) = (all.share(with_line), show_count(with_line));
            let blank = "";
            writeln!(
                out,
                "  {blank:>7}  {share:>6.1}%  {count:>12}  with a source line"
            )?;
        }
        let samples = self.summary.after_loss;
        if samples > 0 {
            let (share, count) = (own.share(samples), show_count(samples));
            writeln!(
                out,
                "  {count} samples ({share:.1}%) have a frame that lost events could change (~)"
            )?;
        }
        Ok(())
    }

    /// Writes the ranges of the traces that could not be used.
    fn write_gaps(&self, out: &mut impl Write) -> io::Result<()> {
        const SHOWN: usize = 20;
        let gaps = &self.diagnostics.gaps;
        if gaps.is_empty() {
            return Ok(());
        }
        let (offset, bytes) = ("offset", "bytes");
        writeln!(out, "  {offset:>15}  {bytes:>12}  what could not be used")?;
        let files_differ = gaps.iter().any(|it| it.file != gaps[0].file);
        for FileGap { file, gap, .. } in gaps.iter().take(SHOWN) {
            let of = match files_differ {
                true => format!(" ({file})"),
                false => String::new(),
            };
            let (offset, length) = (show_count(gap.offset), show_count(gap.length));
            text_line!(out, "  {offset:>15}  {length:>12}  {}{of}", gap.cause)?;
        }
        let more = gaps.len().saturating_sub(SHOWN) as u64 + self.diagnostics.gaps_left_out;
        if more > 0 {
            writeln!(out, "  and {} more", show_count(more))?;
        }
        Ok(())
    }

    fn write_events(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\nevents")?;
        let types = self.timeline.event_types().iter();
        let mut types: Vec<_> = types.filter(|t| t.count > 0).collect();
        types.sort_by_key(|t| Reverse(t.count));
        for t in types {
            let stacks = match t.stacks {
                0 => String::new(),
                n if n == t.count => ", with stacks".to_owned(),
                n => format!(", {} with stacks", show_count(n)),
            };
            let (name, version) = (t.schema.name(), t.schema.version());
            let name = match t.schema.key() {
                EventKey::Manifest { .. } => format!(" {name} (version {version})"),
                EventKey::Classic { .. } => format!(" (version {version})"),
                EventKey::Named { .. } => String::new(),
            };
            let (count, label) = (show_count(t.count), t.label());
            text_line!(out, "  {count:>12}  {label}{name}{stacks}")?;
        }
        Ok(())
    }
}
