// Source files with the time of each line.

import { byLine } from "./calls.ts";
import { el, later } from "./dom.ts";
import { amount, percent } from "./labels.ts";
import type { Model } from "./model.ts";
import { FunctionFlag } from "./trace.ts";

const ROW = 20;
const HEAD = (): HTMLElement =>
  el(
    "div",
    { class: "source-head", role: "row" },
    ...["self", "total", "total %", "line"].map((title) =>
      el("span", { class: `cell number${title === "total %" ? " share" : ""}${title === "line" ? " line-number" : ""}`, role: "columnheader" }, title),
    ),
    el("span", { class: "mark" }),
    el("span", { role: "columnheader" }, "source"),
  );

export class Source {
  readonly element: HTMLElement;
  private readonly select = el("select", { "aria-label": "File" });
  private readonly from = el("span", { class: "muted" });
  private readonly body = el("div", { class: "lines", role: "rowgroup" });
  private readonly scroller = el(
    "div",
    { class: "source-scroll", tabindex: 0, role: "table", "aria-label": "Source lines with their time" },
    HEAD(),
    this.body,
  );
  private shownFile = -1;
  private text: string[] = [];
  private lines = new Map<number, { self: number; total: number }>();
  private numbers: number[] = [];
  private key = "";
  readonly draw = later(() => this.paint());

  constructor(private readonly model: Model) {
    const { files } = this.model.trace.header;
    for (const file of this.order()) {
      this.select.append(el("option", { value: file, title: files[file] }, this.title(file)));
    }
    this.select.addEventListener("change", () => model.update({ file: Number(this.select.value), line: null }));
    this.element = el("div", { class: "source" }, el("div", { class: "bar-line" }, this.select, this.from), this.scroller);
    this.scroller.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.scroller);
  }

  private title(file: number): string {
    const { files, sources } = this.model.trace.header;
    const parts = files[file].split(/[/\\]/);
    const end = parts.slice(-2).join("/");
    return sources[file] ? end : `${end} (text not found)`;
  }

  /** Files with text first, then those of own code. */
  private order(): number[] {
    const { trace } = this.model;
    const rank = new Array<number>(trace.header.files.length).fill(2);
    trace.frames.file.forEach((file, frame) => {
      const isUser = trace.functions[trace.frames.func[frame]].flags & FunctionFlag.User;
      if (file && isUser) rank[file - 1] = trace.header.sources[file - 1] ? 0 : 1;
    });
    const { files } = trace.header;
    return rank.map((_, file) => file).sort((a, b) => rank[a] - rank[b] || files[a].localeCompare(files[b]));
  }

  /** The file of a function's frames with most self time in them. */
  fileOf(func: number): { file: number; line: number } | null {
    const { frames, samples, stacks } = this.model.trace;
    const weights = new Float64Array(frames.func.length);
    for (let i = 0; i < samples.stack.length; i++) {
      weights[stacks.frame[samples.stack[i]]] += samples.weight[i];
    }
    let best = -1;
    for (let frame = 0; frame < frames.func.length; frame++) {
      if (frames.func[frame] !== func || !frames.file[frame]) continue;
      if (best < 0 || weights[frame] > weights[best]) best = frame;
    }
    return best < 0 ? null : { file: frames.file[best] - 1, line: frames.line[best] };
  }

  get weights(): Map<number, { self: number; total: number }> {
    this.prepare();
    return this.lines;
  }

  private prepare(): void {
    const { state, trace } = this.model;
    const file = state.file ?? Number(this.select.value || 0);
    const key = `${file} ${state.raw} ${this.model.selectionKey}`;
    if (key === this.key) return;
    this.key = key;
    this.lines = trace.header.files.length ? byLine(this.model.selected, file, this.model.selection, state.raw) : new Map();
    const source = trace.header.sources[file];
    this.text = source ? source.text.split("\n") : [];
    const known = [...this.lines.keys()].sort((a, b) => a - b);
    const beyond = known.filter((line) => line > this.text.length);
    this.numbers = source ? [...this.text.map((_, i) => i + 1), ...beyond] : known;
    if (file !== this.shownFile) {
      this.shownFile = file;
      this.select.value = `${file}`;
      this.scrollTo(state.line ?? this.hottest());
    }
    const isTold = source ? `from ${source.from}` : "the text was not found: --sources DIR";
    this.from.textContent = trace.header.files.length ? isTold : "No line is known: --symbols DIR names folders of PDBs.";
  }

  private hottest(): number {
    let [best, most] = [1, -1];
    for (const [line, { self, total }] of this.lines) {
      if (self + total / 1e6 > most) [best, most] = [line, self + total / 1e6];
    }
    return best;
  }

  scrollTo(line: number): void {
    const index = this.numbers.indexOf(line);
    this.body.style.height = `${this.numbers.length * ROW}px`;
    this.scroller.scrollTop = Math.max(0, index * ROW - this.scroller.clientHeight / 3);
    this.draw();
  }

  private paint(): void {
    // What is not shown cannot scroll to the hottest line.
    if (!this.scroller.clientHeight) return;
    this.prepare();
    const { trace, state } = this.model;
    const { whole } = this.model.weights;
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 5);
    const last = Math.min(this.numbers.length, first + Math.ceil(clientHeight / ROW) + 10);
    this.body.style.height = `${this.numbers.length * ROW}px`;
    let most = 0;
    for (const { self } of this.lines.values()) most = Math.max(most, self);
    const calls = this.callsByLine();
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) {
      const line = this.numbers[i];
      const sums = this.lines.get(line);
      const heat = sums && most ? sums.self / most : 0;
      const cell = (weight: number | undefined) =>
        el("span", { class: "cell number", role: "cell" }, weight ? amount(weight, trace.header.unit) : "");
      rows.push(
        el(
          "div",
          {
            class: `line${sums ? " hot" : ""}${line === state.line ? " selected" : ""}`,
            role: "row",
            style: `top:${i * ROW}px;--heat:${heat.toFixed(3)}`,
          },
          cell(sums?.self),
          cell(sums?.total),
          el("span", { class: "cell share", role: "cell" }, sums ? percent(sums.total, whole) : ""),
          el("span", { class: "cell number line-number", role: "rowheader" }, `${line}`),
          mark(calls.get(line) ?? []),
          el("code", { role: "cell" }, this.text[line - 1] ?? ""),
        ),
      );
    }
    this.body.replaceChildren(...rows);
  }

  /** The calls on each line of the file that the JIT inlined or rejected. */
  private callsByLine(): Map<number, Call[]> {
    const lines = new Map<number, Call[]>();
    for (const [line, callee, reason] of this.model.trace.header.calls[this.shownFile] ?? []) {
      lines.set(line, [...(lines.get(line) ?? []), { callee, reason }]);
    }
    return lines;
  }
}

interface Call {
  callee: string;
  reason: string | null;
}

/** ⤵ for inlined calls, ✕ for rejected ones. */
function mark(calls: Call[]): HTMLElement {
  const lines = calls.map(({ callee, reason }) => (reason === null ? `${callee} is inlined` : `${callee} is not inlined: ${reason}`));
  const signs = [calls.some(({ reason }) => reason === null) ? "⤵" : "", calls.some(({ reason }) => reason !== null) ? "✕" : ""];
  const text = lines.join("\n");
  const spoken: Record<string, string> = text ? { "aria-label": text } : {};
  return el("span", { class: "mark", role: "cell", title: text, ...spoken }, signs.join(""));
}
