// What the trace is, what is wrong with it, and what has no name or line and why.

import { forEachSample } from "./calls.ts";
import { el } from "./dom.ts";
import { amount, duration, percent } from "./labels.ts";
import type { Model } from "./model.ts";

export function about(model: Model): Node[] {
  const { header } = model.trace;
  const notes: string[] = [...header.diagnostics];
  if (header.every > 1) {
    notes.push(
      `too many samples for a page: it has one of every ${header.every} of each thread, with the weight of all; ` +
        "totals of threads are exact, those of methods are estimates",
    );
  }
  if (header.slice) {
    notes.push(
      `too many samples for a page: those of one thread with equal stacks and activity are merged in slices of ${duration(header.slice)}; ` +
        "totals of the whole trace are exact, those of a selected time are exact to a slice",
    );
  }
  if (header.live) notes.push("the server of this page sums all samples of each selection: every figure but those of the time axis is exact");
  if (header.cut_stacks) notes.push(`the innermost frames of ${header.cut_stacks} stacks are left out (--max-tree-nodes)`);
  const processes = header.processes.map((process) =>
    el(
      "li",
      {},
      el("b", {}, process.label),
      process.runtimes.length ? ` · ${process.runtimes.join(", ")}` : "",
      process.command_line ? el("details", {}, el("summary", {}, "command line"), el("code", {}, process.command_line)) : null,
    ),
  );
  return [
    el("h2", {}, header.name),
    el("ul", {}, ...header.summary.map((line) => el("li", {}, line))),
    el("h3", {}, "processes"),
    el("ul", {}, ...processes),
    ...missing(model, 3, "Frames without a name", header.name_reasons),
    ...missing(model, 4, "Frames without a line", header.line_reasons),
    ...(notes.length ? [el("h3", {}, "notes"), el("ul", {}, ...notes.map((note) => el("li", {}, note)))] : []),
  ];
}

/** Innermost frames by reason. */
function missing(model: Model, column: 3 | 4, title: string, reasons: [string, string, string][]): Node[] {
  const { stacks, frames, samples, header, functions } = model.selected;
  const sums = new Map<number, { weight: number; modules: Map<string, number> }>();
  forEachSample(samples, model.selection, (i) => {
    const frame = stacks.frame[samples.stack[i]];
    const reason = header.facts[frames.facts[frame]][column];
    if (!reason) return;
    const sum = sums.get(reason) ?? { weight: 0, modules: new Map<string, number>() };
    sum.weight += samples.weight[i];
    const module = functions[frames.func[frame]].module || "no known image";
    sum.modules.set(module, (sum.modules.get(module) ?? 0) + samples.weight[i]);
    sums.set(reason, sum);
  });
  if (!sums.size) return [];
  const { whole } = model.weights;
  const rows = [...sums].sort(([, a], [, b]) => b.weight - a.weight);
  return [
    el("h3", {}, title),
    el(
      "table",
      { class: "reasons" },
      el("tr", {}, ...["self", "why", "mostly in", "what helps"].map((head) => el("th", {}, head))),
      ...rows.map(([reason, { weight, modules }]) => {
        const [name, why, helps] = reasons[reason - 1];
        const mostly = [...modules].sort(([, a], [, b]) => b - a).slice(0, 4).map(([module]) => module);
        return el(
          "tr",
          {},
          el("td", { class: "number" }, `${percent(weight, whole)} (${amount(weight, header.unit)})`),
          el("td", { title: name }, why),
          el("td", {}, mostly.join(", ")),
          el("td", {}, helps),
        );
      }),
    ),
  ];
}

export function keys(list: [string, string][]): HTMLElement {
  return el("dl", { class: "keys" }, ...list.flatMap(([key, does]) => [el("dt", {}, key), el("dd", {}, does)]));
}
