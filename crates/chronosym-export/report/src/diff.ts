// The page of two traces: their time axes and flame graphs side by side, and what changed.

import { about, keys } from "./about.ts";
import type { Box } from "./boxes.ts";
import { changes, degree, points, sorted, type Change, type ChangeOrder } from "./changes.ts";
import { el } from "./dom.ts";
import { Flame } from "./flame.ts";
import { Grid } from "./grid.ts";
import { amount, matcher } from "./labels.ts";
import { Model } from "./model.ts";
import { Timeline } from "./timeline.ts";
import type { Trace } from "./trace.ts";

const VIEWS = ["changes", "graphs", "about"] as const;
type View = (typeof VIEWS)[number];
const TITLES: Record<View, string> = { changes: "Changes", graphs: "Flame graphs", about: "About" };

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
  private readonly panel = el("main", { class: "view" });
  private readonly aside = el("aside", { class: "details", "aria-label": "Selected method" });
  private readonly tabs = el("div", { role: "tablist", class: "tabs", "aria-label": "Views" });
  private readonly controls = el("div", { class: "controls" });
  private readonly input = el("input", { type: "search", placeholder: "Search methods (/)", "aria-label": "Search methods" });
  private readonly help = el("dialog", { "aria-label": "Keys" });
  private readonly sides: HTMLElement[];

  constructor(before: Trace, after: Trace) {
    this.models = [new Model(before), new Model(after)];
    // Ids of processes differ between traces.
    for (const model of this.models) model.state.group = "none";
    this.timelines = this.models.map((model) => new Timeline(model));
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
    this.sides = this.models.map((model, side) =>
      el("section", { class: "side", "aria-label": side ? "After" : "Before" }, this.caption(model, side), this.flames[side].element),
    );
    this.grid = this.makeGrid();
    this.build();
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
    const change = (pair: [number, number]) => {
      const text = points(pair);
      const name = Math.abs(pair[1] - pair[0]) < 0.0005 ? "muted" : pair[1] > pair[0] ? "more" : "less";
      return cell(pair[0] && !pair[1] ? `${text} gone` : !pair[0] && pair[1] ? `${text} new` : text, name);
    };
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
        const { self, total, info } = this.rows[row];
        return [
          change(self),
          change(total),
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

  private build(): void {
    const theme = el("button", { class: "icon", title: "Dark or light (d)", "aria-label": "Dark or light", click: () => this.turnTheme() }, "◐");
    const help = el("button", { class: "icon", title: "Keys (?)", "aria-label": "Keys", click: () => this.help.showModal() }, "?");
    const [before, after] = this.models.map((model) => model.trace.header.name);
    this.input.addEventListener("input", () => {
      this.search = this.input.value;
      this.models.forEach((model) => (model.state.search = this.search));
      this.show();
    });
    VIEWS.forEach((view, i) => {
      this.tabs.append(
        el("button", { role: "tab", id: `tab-${view}`, title: `${TITLES[view]} (${i + 1})`, click: () => this.open(view) }, TITLES[view]),
      );
    });
    this.help.append(el("h2", {}, "Keys"), keys(), el("button", { click: () => this.help.close() }, "Close"));
    document.body.append(
      el("header", {}, el("h1", {}, `${before} → ${after}`), el("div", { class: "status" }), el("div", { class: "search" }, this.input), theme, help),
      el("div", { class: "axes" }, ...this.timelines.map((timeline) => timeline.element)),
      el("nav", { class: "toolbar" }, this.tabs, this.controls),
      el("div", { class: "work" }, this.panel, this.aside),
      this.help,
    );
    document.addEventListener("keydown", (event) => this.key(event));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    this.setTheme(dark.matches);
    dark.addEventListener("change", () => this.setTheme(dark.matches));
  }

  private setTheme(isDark: boolean): void {
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    this.timelines.forEach((timeline) => timeline.redraw());
    this.flames.forEach((flame) => flame.draw());
  }

  private turnTheme(): void {
    this.setTheme(document.documentElement.dataset.theme !== "dark");
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
    const by = degree(change.total);
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
    for (const view of VIEWS) {
      document.getElementById(`tab-${view}`)!.setAttribute("aria-selected", `${view === this.view}`);
    }
    const nodes: Record<View, () => Node[]> = {
      changes: () => [this.grid.element],
      graphs: () => [el("div", { class: "sides" }, ...this.sides)],
      about: () => [el("div", { class: "about", tabindex: 0 }, ...about(before), el("hr"), ...about(after))],
    };
    if (this.panel.dataset.view !== this.view) {
      this.panel.dataset.view = this.view;
      this.panel.replaceChildren(...nodes[this.view]());
    }
    this.showControls();
    this.showDetails();
    this.timelines.forEach((timeline) => timeline.redraw());
    this.flames.forEach((flame) => flame.draw());
    this.grid.draw();
  }

  private showControls(): void {
    const toggle = (title: string, key: string, isOn: boolean, change: () => void) =>
      el("button", { "aria-pressed": isOn, title: `${title} (${key})`, click: change }, title);
    this.controls.replaceChildren(
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
      this.aside.replaceChildren(
        el("h2", {}, "No method selected"),
        el("p", { class: "muted" }, "Methods are matched by module and name. Shares are those of each side's selected time, threads and activity: drag over a time axis to select a time."),
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
    this.aside.replaceChildren(
      el("h2", {}, change.info.names[0]),
      el("p", { class: "muted" }, `${change.info.module} · ${change.info.kind}`),
      el("dl", {}, ...rows),
    );
  }

  private escape(): void {
    this.input.value = this.search = "";
    for (const model of this.models) {
      model.state.search = "";
      model.update({ zoom: [], range: null, threads: null, shown: null });
    }
    this.show();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    if (event.target instanceof HTMLInputElement) {
      if (event.key !== "Escape" && event.key !== "Enter") return;
      if (event.key === "Escape") this.escape();
      (this.panel.querySelector("[tabindex='0']") as HTMLElement | null)?.focus();
      event.preventDefault();
      return;
    }
    const actions: Record<string, () => void> = {
      "/": () => this.input.select(),
      "?": () => this.help.showModal(),
      d: () => this.turnTheme(),
      i: () => this.invert(),
      u: () => this.toggleUser(),
      Escape: () => this.escape(),
    };
    VIEWS.forEach((view, i) => (actions[`${i + 1}`] = () => this.open(view)));
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
  }
}
