// What is known of one function: weights, callers and callees, lines, evidence.

import { callees, callers, type Box } from "./boxes.ts";
import { el } from "./dom.ts";
import { amount, percent } from "./labels.ts";
import type { Model } from "./model.ts";

const MOST = 6;

export interface Actions {
  select: (func: number) => void;
  sandwich: (func: number) => void;
  source: (func: number) => void;
}

export function details(model: Model, actions: Actions): Node[] {
  const { trace, state } = model;
  const func = state.func;
  if (func === null) {
    if (!trace.samples.stack.length) {
      const lanes = trace.markers.kind.length ? " The lanes above show the runtime's events; chronosym runtime TRACE lists them." : "";
      return [
        el("h2", {}, "No samples"),
        el("p", { class: "muted" }, `None was recorded, or none passes the filters; chronosym info TRACE shows what was recorded.${lanes}`),
      ];
    }
    return [
      el("h2", {}, model.weights.whole ? "No method selected" : "No sample is selected"),
      el("p", { class: "muted" }, "Click a box or a row. Drag over the time axis to select a time; press ? for all keys."),
      ...legend(model),
    ];
  }
  const f = trace.functions[func];
  const { unit } = trace.header;
  const { whole } = model.weights;
  const { self, total, withFramework } = model.functionWeights;
  const figure = (name: string, weight: number) =>
    el(
      "div",
      { class: "figure" },
      el("span", { class: "muted" }, name),
      el("b", {}, percent(weight, whole)),
      el("span", {}, amount(weight, unit)),
      el("span", { class: "meter" }, el("i", { style: `width:${whole ? (100 * weight) / whole : 0}%` })),
    );
  const lists = [
    list("called by", callers(model.tree, model.weights, func), model, actions),
    list("calls", callees(model.tree, model.weights, func), model, actions),
  ];
  const hasSource = trace.frames.func.some((of, frame) => of === func && trace.frames.file[frame] > 0);
  return [
    el("h2", { title: f.label }, breakable(f.names[0])),
    el("p", { class: "muted" }, [f.module, f.kind].filter(Boolean).join(" · ")),
    figure("self", self[func]),
    figure("total", total[func]),
    ...(withFramework[func] > self[func] ? [figure("self + libraries", withFramework[func])] : []),
    el(
      "div",
      { class: "buttons" },
      el("button", { click: () => actions.sandwich(func) }, "Callers and callees"),
      hasSource ? el("button", { click: () => actions.source(func) }, "Source") : null,
    ),
    ...lists.flat(),
    ...evidence(model, func),
  ];
}

/** Lines may break after the dots of a name. */
function breakable(name: string): DocumentFragment {
  const out = document.createDocumentFragment();
  for (const part of name.split(/(?<=[.,(<])/)) out.append(part, el("wbr"));
  return out;
}

function list(title: string, root: Box, model: Model, actions: Actions): Node[] {
  const { functions, header } = model.trace;
  const boxes = root.children();
  if (!boxes.length) return [];
  const rows = boxes.slice(0, MOST).map((box) =>
    el(
      "li",
      {},
      el(
        "button",
        { class: "link", title: functions[box.func].label, click: () => actions.select(box.func) },
        functions[box.func].names[Math.min(1, functions[box.func].names.length - 1)],
      ),
      el("span", { class: "muted", title: amount(box.total, header.unit) }, percent(box.total, root.total)),
    ),
  );
  const more = boxes.length - MOST;
  const rest = more > 0 ? [el("li", { class: "muted" }, `${more} more`)] : [];
  return [el("h3", {}, title), el("ul", { class: "plain" }, ...rows, ...rest)];
}

/** Each way in which the function's frames were named. */
function evidence(model: Model, func: number): Node[] {
  const { frames, header } = model.trace;
  const rows = new Map<number, { lines: Set<string>; address: bigint; frames: number }>();
  for (let frame = 0; frame < frames.func.length; frame++) {
    if (frames.func[frame] !== func) continue;
    const facts = frames.facts[frame];
    const row = rows.get(facts) ?? { lines: new Set<string>(), address: frames.address[frame], frames: 0 };
    row.frames++;
    if (frames.file[frame]) {
      const file = header.files[frames.file[frame] - 1].split(/[/\\]/).pop();
      row.lines.add(`${file}:${frames.line[frame]}`);
    }
    rows.set(facts, row);
  }
  const out: Node[] = [el("h3", {}, "how it is known")];
  for (const [index, { lines, address }] of [...rows].slice(0, MOST)) {
    const [tier, of, certainty, nameReason, lineReason, flags] = header.facts[index];
    const term = (name: string, text: string, hint = "") =>
      [el("dt", {}, name), el("dd", { title: hint }, text)];
    const terms: Node[] = [];
    if (tier) terms.push(...term("tier", flags & 1 ? `${tier}, inlined` : tier));
    else if (flags & 1) terms.push(...term("tier", "inlined"));
    if (of) terms.push(...term("evidence", header.evidence[of - 1][0], header.evidence[of - 1][1]));
    if (certainty) {
      const lost = flags & 2 ? ", events were lost since" : "";
      terms.push(...term("certainty", header.certainty[certainty - 1] + lost));
    }
    if (nameReason) {
      const [name, why, helps] = header.name_reasons[nameReason - 1];
      terms.push(...term("no name", `${name}: ${why}`), ...term("helps", helps));
    }
    if (lines.size) terms.push(...term("lines", [...lines].slice(0, 8).join(", ") + (lines.size > 8 ? ", …" : "")));
    else if (lineReason) {
      const [name, why, helps] = header.line_reasons[lineReason - 1];
      terms.push(...term("no line", `${name}: ${why}`), ...term("helps", helps));
    }
    if (address) terms.push(...term("address", `0x${address.toString(16)}`, "chronosym explain TRACE ADDRESS says more"));
    out.push(el("dl", {}, ...terms));
  }
  const more = rows.size - MOST;
  if (more > 0) out.push(el("p", { class: "muted" }, `${more} more kinds of frames`));
  return out;
}

function legend(model: Model): Node[] {
  return [el("h3", {}, "colours"), model.legend()];
}
