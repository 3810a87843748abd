// The page of two traces: their time axes and flame graphs side by side, and what changed.

import { about, keys } from "./about.ts";
import type { Box } from "./boxes.ts";
import { changes, degree, points, sorted, type Change, type ChangeOrder } from "./changes.ts";
import { el } from "./dom.ts";
import { Flame } from "./flame.ts";
import { Frame, toggle } from "./frame.ts";
import { Grid } from "./grid.ts";
import { amount, matcher } from "./labels.ts";
import { Model } from "./model.ts";
import { Timeline } from "./timeline.ts";
import type { Trace } from "./trace.ts";

type View = "changes" | "graphs" | "about";
const TITLES: Record<View, string> = { changes: "Changes", graphs: "Flame graphs", about: "About" };
const KEYS: [string, string][] = [
  ["1 … 3", "changes, flame graphs, about"],
  ["/", "search: text, or /regular expression/"],
  ["arrow keys", "move between boxes or rows; on a time axis move the selection"],
  ["Enter", "enlarge a box; show the flame graphs of a row; on a time axis show only the selection"],
  ["Backspace", "back to the caller"],
  ["Shift + arrow keys", "on a time axis: resize the selection"],
  ["+ −", "on a time axis: zoom (or Ctrl + wheel)"],
  ["i", "callers below callees (bottom-up)"],
  ["u", "own code only"],
  ["d", "dark or light"],
  ["Escape", "undo all: search, zoom, time, threads"],
  ["?", "this list"],
];

export class DiffPage {
  readonly models: [Model, Model];
  readonly flames: Flame[];
  private readonly timelines: Timeline[];
  private readonly grid: Grid;
  private all: Change[] = [];
  private rows: Change[] = [];
  private byLabel = new Map<string, Change>();
  private view: View = "changes";
  private order: ChangeOrder = "self";
  private userOnly = false;
  private search = "";
  private selected = "";
  private isInverted = false;
  private readonly frame: Frame<View>;
  private readonly graphs: HTMLElement;

  constructor(before: Trace, after: Trace) {
    this.models = [new Model(before), new Model(after)];
    // Ids of processes differ between traces.
    for (const model of this.models) model.state.group = "none";
    this.timelines = this.models.map((model, side) => new Timeline(model, side ? "Time axis after" : "Time axis before"));
    this.flames = this.models.map(
      (model, side) =>
        new Flame(model, {
          label: side ? "Flame graph after" : "Flame graph before",
          root: () => model.graph,
          zoom: () => model.state.zoom,
          onZoom: (path) => this.zoom(side, path),
          onSelect: (func) => this.select(model.trace.functions[func].label),
          color: (box) => this.color(model, box),
          describe: (box) => this.describe(model, box),
        }),
    );
    const sides = this.models.map((model, side) =>
      el("section", { class: "side", "aria-label": side ? "After" : "Before" }, this.caption(model, side), this.flames[side].element),
    );
    this.graphs = el("div", { class: "sides" }, ...sides);
    this.grid = this.makeGrid();
    this.frame = this.build();
    this.models.forEach((model) =>
      model.listen(() => {
        this.flames.forEach((flame) => flame.reset());
        this.show();
      }),
    );
    this.show();
  }

  private caption(model: Model, side: number): HTMLElement {
    return el("div", { class: "caption" }, el("b", {}, side ? "after " : "before "), model.trace.header.name);
  }

  private makeGrid(): Grid {
    const share = (value: number) => `${(100 * value).toFixed(1)} %`;
    const cell = (text: string, name = "") => el("div", { class: `cell number ${name}`, role: "gridcell" }, text);
    const change = (pair: [number, number], { noise }: Change, what = "") => {
      const name = noise || Math.abs(pair[1] - pair[0]) < 0.0005 ? "muted" : pair[1] > pair[0] ? "more" : "less";
      return cell(`${points(pair)}${what}`, name);
    };
    const what = ({ noise, total }: Change) => (noise ? " noise" : !total[1] ? " gone" : !total[0] ? " new" : "");
    return new Grid({
      label: "Methods whose share changed. Arrow keys move, Enter shows the flame graphs.",
      layout: "changes",
      columns: [
        { key: "self", title: "self Δ", hint: "percentage points of self" },
        { key: "total", title: "total Δ", hint: "percentage points of total" },
      ],
      rest: () => [
        { title: "self", class: "number" },
        { title: "total", class: "number" },
        { title: `method (${this.rows.length})`, class: "" },
        { title: "module", class: "module" },
      ],
      sortedBy: () => this.order,
      onSort: (key) => {
        this.order = key === "total" ? "total" : "self";
        this.show();
      },
      count: () => this.rows.length,
      key: (row) => row,
      isSelected: (row) => this.rows[row].label === this.selected,
      title: (row) => this.rows[row].label,
      cells: (row) => {
        const each = this.rows[row];
        const { self, total, info } = each;
        return [
          change(self, each, what(each)),
          change(total, each),
          cell(`${share(self[0])} → ${share(self[1])}`),
          cell(`${share(total[0])} → ${share(total[1])}`),
          el("div", { class: "cell name", role: "gridcell" }, el("span", { class: info.flags & 2 ? "method user" : "method" }, info.names[0])),
          el("div", { class: "cell module", role: "gridcell" }, info.module),
        ];
      },
      onSelect: (row) => this.select(this.rows[row].label),
      onOpen: (row) => {
        this.selected = this.rows[row].label;
        this.open("graphs");
      },
      empty: () => "No method.",
    });
  }

  private build(): Frame<View> {
    const [before, after] = this.models.map((model) => model.trace.header.name);
    return new Frame({
      title: `${before} → ${after}`,
      titles: TITLES,
      axes: el("div", { class: "axes" }, ...this.timelines.map((timeline) => timeline.element)),
      keys: KEYS,
      actions: () => ({ i: () => this.invert(), u: () => this.toggleUser() }),
      open: (view) => this.open(view),
      search: (text) => this.find(text),
      escape: () => this.escape(),
      redraw: () => this.redraw(),
    });
  }

  private find(text: string): void {
    this.search = text;
    this.models.forEach((model) => (model.state.search = text));
    this.show();
  }

  private redraw(): void {
    this.timelines.forEach((timeline) => timeline.redraw());
    this.flames.forEach((flame) => flame.draw());
    this.grid.draw();
  }

  private open(view: View): void {
    this.view = view;
    this.show();
  }

  private select(label: string): void {
    this.selected = label;
    this.models.forEach((model, side) => {
      const func = this.byLabel.get(label)?.funcs[side] ?? -1;
      model.state.func = func < 0 ? null : func;
    });
    this.show();
  }

  /** Enlarges the box in both graphs, as far as the other one has it. */
  private zoom(side: number, path: number[]): void {
    this.models[side].state.zoom = path;
    const other = this.models[1 - side];
    const labels = path.map((func) => (func < 0 ? "" : this.models[side].trace.functions[func].label));
    other.state.zoom = labels.map((label) => this.byLabel.get(label)?.funcs[1 - side] ?? -1);
    this.show();
  }

  private changeOf(model: Model, box: Box): Change | undefined {
    return box.func < 0 ? undefined : this.byLabel.get(model.trace.functions[box.func].label);
  }

  /** Red has a larger share after than before, blue a smaller one. */
  private color(model: Model, box: Box): string | null {
    const change = this.changeOf(model, box);
    if (!change) return null;
    const isDark = document.documentElement.dataset.theme === "dark";
    const by = change.noise ? 0 : degree(change.total);
    const strength = Math.min(1, Math.abs(by));
    if (strength < 0.05) return isDark ? "#343b43" : "#e3e6ea";
    const [light, chroma] = isDark ? [0.36 + 0.12 * strength, 0.03 + 0.12 * strength] : [0.9 - 0.2 * strength, 0.02 + 0.13 * strength];
    return `oklch(${light.toFixed(3)} ${chroma.toFixed(3)} ${by > 0 ? 28 : 255})`;
  }

  private describe(model: Model, box: Box): string[] {
    const change = this.changeOf(model, box);
    const whole = model.weights.whole;
    const lines = [`${amount(box.total, model.trace.header.unit)}, ${((100 * box.total) / (whole || 1)).toFixed(1)} %`];
    if (change) lines.push(...this.figures(change).map(([name, text]) => `${name} of the method: ${text}`));
    return lines;
  }

  private figures({ self, total }: Change): [string, string][] {
    const text = (pair: [number, number]) =>
      `${(100 * pair[0]).toFixed(1)} % → ${(100 * pair[1]).toFixed(1)} % (${points(pair)})`;
    return [["self", text(self)], ["total", text(total)]];
  }

  /** The changes, for tests. */
  get shown(): Change[] {
    return this.rows;
  }

  private show(): void {
    const [before, after] = this.models;
    this.all = changes(before, after);
    this.byLabel = new Map(this.all.map((change) => [change.label, change]));
    this.rows = sorted(this.all, this.order, matcher(this.search), this.userOnly);
    const nodes: Record<View, () => Node[]> = {
      changes: () => [this.grid.element],
      graphs: () => [this.graphs],
      about: () => [el("div", { class: "about", tabindex: 0, role: "region", "aria-label": "About this recording" }, ...about(before), el("hr"), ...about(after), el("h3", {}, "keys"), keys(KEYS))],
    };
    this.frame.show(this.view, nodes[this.view]());
    this.frame.showSearch(this.search);
    this.showControls();
    this.showDetails();
    this.redraw();
  }

  private showControls(): void {
    this.frame.showControls(
      this.view === "graphs" ? toggle("bottom-up", "i", this.isInverted, () => this.invert()) : toggle("own code", "u", this.userOnly, () => this.toggleUser()),
    );
  }

  private invert(): void {
    this.isInverted = !this.isInverted;
    this.models.forEach((model) => model.update({ inverted: this.isInverted, zoom: [] }));
  }

  private toggleUser(): void {
    this.userOnly = !this.userOnly;
    this.show();
  }

  private showDetails(): void {
    const change = this.byLabel.get(this.selected);
    if (!change) {
      this.frame.aside.replaceChildren(
        el("h2", {}, "No method selected"),
        el("p", { class: "muted" }, "Methods are matched by module and name. Shares are those of each side's selected time, threads and activity: drag over a time axis to select a time."),
        el("p", { class: "muted" }, "Noise: the changes of self and total are less than three standard errors of the difference of two shares. These methods come last."),
        el("p", { class: "muted" }, "In the flame graphs red methods have a larger share after than before, blue ones a smaller share; the stronger, the larger the part that changed."),
      );
      return;
    }
    const amounts = this.models.map((model, side) => {
      const func = change.funcs[side];
      const { self, total } = model.functionWeights;
      const text = (weights: Float64Array) => (func < 0 ? "–" : amount(weights[func], model.trace.header.unit));
      return [text(self), text(total)];
    });
    const rows = this.figures(change).flatMap(([name, text], i) => [
      el("dt", {}, name),
      el("dd", {}, text),
      el("dt", {}, ""),
      el("dd", { class: "muted" }, `${amounts[0][i]} → ${amounts[1][i]}`),
    ]);
    this.frame.aside.replaceChildren(
      el("h2", {}, change.info.names[0]),
      el("p", { class: "muted" }, `${change.info.module} · ${change.info.kind}${change.noise ? " · within noise" : ""}`),
      el("dl", {}, ...rows),
    );
  }

  private escape(): void {
    for (const model of this.models) model.update({ zoom: [], range: null, threads: null, shown: null });
    this.find("");
  }
}
