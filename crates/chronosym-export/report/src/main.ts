// The page: views of one trace, and what keys and buttons do.

import { callees, callers } from "./boxes.ts";
import { about, keys } from "./about.ts";
import { RUNNING } from "./calls.ts";
import { family, familyOf, shade, type FamilyName } from "./colors.ts";
import { details } from "./details.ts";
import { DiffPage } from "./diff.ts";
import { el } from "./dom.ts";
import { Flame } from "./flame.ts";
import { Frame, toggle } from "./frame.ts";
import { Live } from "./live.ts";
import { amount, duration, instant, percent } from "./labels.ts";
import { Model } from "./model.ts";
import { Source } from "./source.ts";
import { fromFragment, toFragment, type Group, type State, type View } from "./state.ts";
import { Table } from "./table.ts";
import { ACTIVITIES, ACTIVITY_COLORS, Timeline } from "./timeline.ts";
import { inflate, parse, type Samples, type Trace } from "./trace.ts";

const TITLES: Record<View, string> = {
  flame: "Flame graph",
  sandwich: "Callers & callees",
  table: "Methods",
  source: "Source",
  about: "About",
};
const KEYS: [string, string][] = [
  ["1 … 5", "flame graph, callers and callees, methods, source, about"],
  ["/", "search: text, or /regular expression/"],
  ["arrow keys", "move between boxes or rows; on the time axis move the selection"],
  ["Enter", "enlarge a box; open a row; on the time axis show only the selection"],
  ["Backspace", "back to the caller"],
  ["Shift + arrow keys", "on the time axis: resize the selection"],
  ["+ −", "on the time axis: zoom (or Ctrl + wheel)"],
  ["i", "callers below callees (bottom-up)"],
  ["t", "merged, or threads one by one"],
  ["a", "activity: all, running, blocked"],
  ["r", "raw frames: plumbing of async methods, and the runtime's helpers"],
  ["u", "table: own code only"],
  ["s", "callers and callees of the selected method"],
  ["d", "dark or light"],
  ["Escape", "undo one thing: search, zoom, time, threads"],
  ["?", "this list"],
];
const BLOCKED = 0b0100;
const ALL = 0b1111;
const ON_CPU = 0b0001;

class Page {
  readonly model: Model;
  readonly timeline: Timeline;
  readonly flame: Flame;
  readonly callers: Flame;
  readonly callees: Flame;
  readonly table: Table;
  readonly source: Source;
  private readonly frame: Frame<View>;
  private readonly live: Live | null = null;
  private failure = "";
  private subZoom: { callers: number[]; callees: number[] } = { callers: [], callees: [] };

  constructor(trace: Trace) {
    const model = (this.model = new Model(trace));
    model.legend = () => this.legend();
    this.readFragment();
    this.timeline = new Timeline(model);
    const select = (func: number) => model.update({ func });
    const open = (func: number) => model.update({ func, view: "sandwich" });
    this.flame = new Flame(model, {
      label: "Flame graph",
      root: () => model.graph,
      zoom: () => model.state.zoom,
      onZoom: (zoom) => model.update({ zoom }),
      onSelect: select,
    });
    const part = (name: "callers" | "callees", upwards: boolean) =>
      new Flame(model, {
        label: name === "callers" ? "Callers" : "Callees",
        upwards,
        root: () => (name === "callers" ? callers : callees)(model.tree, model.weights, model.state.func ?? 0),
        zoom: () => this.subZoom[name],
        onZoom: (path) => (this.subZoom[name] = path),
        onSelect: () => undefined,
      });
    this.callers = part("callers", true);
    this.callees = part("callees", false);
    this.keepRoots();
    this.table = new Table(model, select, open);
    this.source = new Source(model);
    this.frame = this.build();
    model.listen((changed) => this.changed(changed));
    if (trace.header.live) {
      this.live = new Live(trace.header.threads.length, (range, sums) => this.answered(range, sums));
      void this.live.ask(model.state.range);
    }
    this.show();
  }

  private answered(range: State["range"], sums: Samples | string): void {
    this.failure = typeof sums === "string" ? sums : "";
    if (typeof sums === "string") this.showStatus();
    else this.model.takeSums(range, sums);
  }

  /** The graphs of callers and callees are made once for each selection. */
  private keepRoots(): void {
    for (const flame of [this.callers, this.callees]) {
      const { root } = flame.options;
      let key = "";
      let kept = null as ReturnType<typeof root> | null;
      flame.options.root = () => {
        const { func, raw } = this.model.state;
        const now = JSON.stringify([this.model.selectionKey, func, raw]);
        if (now !== key || !kept) [key, kept] = [now, root()];
        return kept;
      };
    }
  }

  private get bounds() {
    const { header, functions } = this.model.trace;
    return { functions: functions.length, threads: header.threads.length, files: header.files.length };
  }

  private readFragment(): void {
    const { raw } = this.model.trace.header;
    this.model.state = fromFragment(location.hash, raw, this.bounds);
  }

  private build(): Frame<View> {
    const { header } = this.model.trace;
    window.addEventListener("hashchange", () => {
      const { raw } = this.model.trace.header;
      if (location.hash.replace(/^#/, "") === toFragment(this.model.state, raw)) return;
      this.model.update(fromFragment(location.hash, raw, this.bounds));
    });
    return new Frame({
      title: header.name,
      hint: header.summary.join("\n"),
      titles: TITLES,
      axes: this.timeline.element,
      keys: KEYS,
      actions: () => this.keyActions(),
      open: (view) => this.open(view),
      search: (search) => this.model.update({ search }),
      escape: () => this.escape(),
      redraw: () => this.redraw(),
    });
  }

  private redraw(): void {
    this.timeline.redraw();
    this.flame.draw();
    this.callers.draw();
    this.callees.draw();
    this.table.draw();
    this.source.draw();
    this.frame.aside.replaceChildren(...details(this.model, this.actions));
  }

  private readonly actions = {
    select: (func: number) => this.model.update({ func }),
    sandwich: (func: number) => this.model.update({ func, view: "sandwich" }),
    source: (func: number) => this.openSource(func),
  };

  private openSource(func: number): void {
    const at = this.source.fileOf(func);
    if (!at) return;
    this.model.update({ func, view: "source", file: at.file, line: at.line });
    this.source.scrollTo(at.line);
  }

  private open(view: View): void {
    if (view === "source" && this.model.state.file === null && this.model.state.func !== null) {
      const at = this.source.fileOf(this.model.state.func);
      if (at) return this.openSource(this.model.state.func);
    }
    this.model.update({ view });
  }

  private changed(changed: Set<keyof State>): void {
    const selects: (keyof State)[] = ["range", "threads", "activities", "raw", "inverted", "group", "func"];
    if (selects.some((key) => changed.has(key))) {
      if (!changed.has("zoom") && selects.slice(3, 6).some((key) => changed.has(key))) this.model.state.zoom = [];
      this.subZoom = { callers: [], callees: [] };
      if (changed.size > 1 || !changed.has("func")) this.flame.reset();
      this.callers.reset();
      this.callees.reset();
    }
    if (!this.model.isExact && changed.has("range")) void this.live?.ask(this.model.state.range);
    this.show();
    const fragment = toFragment(this.model.state, this.model.trace.header.raw);
    history.replaceState(null, "", fragment ? `#${fragment}` : location.pathname + location.search);
  }

  private show(): void {
    const { state } = this.model;
    const views: Record<View, () => Node[]> = {
      flame: () => [this.flame.element],
      sandwich: () => this.sandwich(),
      table: () => [this.table.element],
      source: () => [this.source.element],
      about: () => [el("div", { class: "about", tabindex: 0, role: "region", "aria-label": "About this recording" }, ...about(this.model), el("h3", {}, "keys"), keys(KEYS))],
    };
    this.frame.show(state.view, views[state.view]());
    this.frame.showSearch(state.search);
    this.showControls();
    this.showStatus();
    this.redraw();
  }

  private sandwichParts: { heading: HTMLElement; nodes: Node[] } | null = null;

  private sandwich(): Node[] {
    const { func } = this.model.state;
    const { functions, header } = this.model.trace;
    if (func === null) {
      const most = [...this.model.functionWeights.self].reduce((best, w, i, all) => (w > all[best] ? i : best), 0);
      if (functions.length) this.model.state.func = most;
      else return [el("p", { class: "empty" }, "No sample.")];
    }
    this.sandwichParts ??= (() => {
      const heading = el("div", { class: "sandwich-head" });
      return { heading, nodes: [this.callers.element, heading, this.callees.element] };
    })();
    const f = functions[this.model.state.func ?? 0];
    const { self, total } = this.model.functionWeights;
    const { whole } = this.model.weights;
    const at = this.model.state.func ?? 0;
    this.sandwichParts.heading.replaceChildren(
      el("b", {}, f.names[0]),
      el("span", { class: "muted" }, ` ${f.module} `),
      el("span", {}, `total ${amount(total[at], header.unit)} (${percent(total[at], whole)}), self ${amount(self[at], header.unit)} (${percent(self[at], whole)})`),
    );
    return this.sandwichParts.nodes;
  }

  private groups(): HTMLElement {
    const { group, trace } = this.model;
    const titles: [Group, string][] = [["none", "merged"], ["process", "by process"], ["thread", "by thread"]];
    const isShown = ([name]: [Group, string]) => name !== "process" || trace.header.processes.length > 1;
    const buttons = titles.filter(isShown).map(([name, title]) =>
      el("button", { "aria-pressed": name === group, title: `${title} (t)`, click: () => this.model.update({ group: name }) }, title),
    );
    return el("div", { class: "group", role: "group", "aria-label": "Division" }, ...buttons);
  }

  private showControls(): void {
    const { state, trace } = this.model;
    const activities = el("div", { class: "group", role: "group", "aria-label": "Activity" });
    const choices: [string, number][] = [["all", ALL], ["running", RUNNING], ["blocked", BLOCKED]];
    const known = trace.samples.activities;
    if (known & (known - 1)) {
      for (const [name, bits] of choices) {
        activities.append(
          el("button", { "aria-pressed": state.activities === bits, title: `${name} threads (a)`, click: () => this.model.update({ activities: bits, zoom: [] }) }, name),
        );
      }
    }
    const buttons: (Node | null)[] = [activities.childNodes.length ? activities : null];
    if (state.view === "flame") {
      buttons.push(
        el(
          "div",
          { class: "group", role: "group", "aria-label": "Order" },
          el("button", { "aria-pressed": !state.inverted, title: "Callers above callees (i)", click: () => this.model.update({ inverted: false }) }, "top-down"),
          el("button", { "aria-pressed": state.inverted, title: "Where time was spent, callers below (i)", click: () => this.model.update({ inverted: true }) }, "bottom-up"),
        ),
        this.groups(),
      );
    }
    if (state.view !== "about") {
      const hint = "As recorded: with the plumbing of async methods, and the runtime's helpers apart from their callers";
      buttons.push(toggle("raw frames", "r", state.raw, () => this.model.update({ raw: !state.raw }), hint));
    }
    if (state.view === "table") {
      buttons.push(toggle("own code", "u", state.userOnly, () => this.model.update({ userOnly: !state.userOnly }), "Only own code"));
    }
    this.frame.showControls(...buttons);
  }

  /** CPU samples are of processors' time, others of threads', blocked or not. */
  private get timeOf(): string {
    return this.model.trace.samples.activities === ON_CPU ? "CPU time" : "thread time";
  }

  private showStatus(): void {
    const { state, trace } = this.model;
    const { whole, samples } = this.model.weights;
    const { unit } = trace.header;
    const count = `${new Intl.NumberFormat("en").format(samples)} ${samples === 1 ? "sample" : "samples"}`;
    const parts: Node[] = [
      el("b", {}, unit === "samples" ? count : amount(whole, unit)),
      document.createTextNode(unit === "samples" ? "" : ` ${unit === "time" ? `of ${this.timeOf}, ` : ""}${count}`),
    ];
    const chip = (text: string, change: Partial<State>) =>
      el("button", { class: "chip", title: "Remove", click: () => this.model.update(change) }, `${text} ×`);
    if (!this.model.isExact) {
      const why = this.failure ? `the server does not answer: ${this.failure}` : "the server is summing all samples";
      parts.unshift(el("span", { class: "muted", title: why }, this.failure ? "approximate (no answer) " : "approximate … "));
    }
    if (state.range) {
      const [a, b] = state.range;
      parts.push(chip(`${instant(a)} – ${instant(b)} (${duration(b - a)})`, { range: null, zoom: [] }));
    }
    if (state.shown) parts.push(chip("time axis zoomed", { shown: null }));
    if (state.threads) {
      const { threads } = trace.header;
      const names = state.threads.length === 1 ? threads[state.threads[0]].label : `${state.threads.length} threads`;
      parts.push(chip(names, { threads: null, zoom: [] }));
    }
    if (state.zoom.length && state.view === "flame") parts.push(chip("zoomed", { zoom: [] }));
    this.frame.status.replaceChildren(...parts);
    const { matches } = this.model;
    this.frame.found.textContent = matches ? percent(this.model.matching, whole) : "";
  }

  private legend(): HTMLElement {
    const isDark = document.documentElement.dataset.theme === "dark";
    const used = new Map<FamilyName, number>();
    const { self } = this.model.functionWeights;
    this.model.trace.functions.forEach((f, i) => used.set(familyOf(f), (used.get(familyOf(f)) ?? 0) + self[i]));
    const { whole } = this.model.weights;
    const rows = [...used].filter(([, weight]) => weight > 0).sort(([, a], [, b]) => b - a);
    const activities = ACTIVITIES.map((name, i) =>
      el("li", {}, el("span", {}, el("i", { class: "swatch", style: `background:var(${ACTIVITY_COLORS[i]})` }), name), el("span", { class: "muted" }, "thread")),
    );
    const shown = activities.filter((_, i) => (this.model.trace.samples.activities >> i) & 1);
    return el(
      "ul",
      { class: "plain legend" },
      ...shown,
      ...rows.map(([name, weight]) =>
        el(
          "li",
          {},
          el("span", {}, el("i", { class: "swatch", style: `background:${shade(name, 1, isDark)}` }), family(name).name),
          el("span", { class: "muted" }, `${percent(weight, whole)} self`),
        ),
      ),
    );
  }

  private escape(): void {
    const { state } = this.model;
    if (state.search) this.model.update({ search: "" });
    else if (state.zoom.length) this.model.update({ zoom: [] });
    else if (state.range) this.model.update({ range: null });
    else if (state.threads) this.model.update({ threads: null });
    else if (state.shown) this.model.update({ shown: null });
    else this.model.update({ func: null });
  }

  private keyActions(): Record<string, () => void> {
    const { state } = this.model;
    const next: Record<number, number> = { [ALL]: RUNNING, [RUNNING]: BLOCKED };
    return {
      i: () => this.model.update({ inverted: !state.inverted }),
      t: () => this.model.update({ group: this.model.group === "thread" ? "none" : "thread" }),
      r: () => this.model.update({ raw: !state.raw }),
      u: () => this.model.update({ userOnly: !state.userOnly }),
      a: () => this.model.update({ activities: next[state.activities] ?? ALL, zoom: [] }),
      s: () => state.func !== null && this.model.update({ view: "sandwich" }),
    };
  }
}

async function read(id: string): Promise<Trace | null> {
  const data = document.getElementById(id);
  if (!data) return null;
  const bytes = await inflate(data.textContent ?? "");
  data.remove();
  return parse(bytes);
}

async function start(): Promise<void> {
  const began = performance.now();
  const [trace, after] = [await read("trace"), await read("after")];
  if (!trace) throw new Error("it has no data");
  const page = after ? new DiffPage(trace, after) : new Page(trace);
  // For tests and the console.
  const model = page instanceof Page ? page.model : null;
  Object.assign(window, { report: { page, model, milliseconds: performance.now() - began } });
}

start().catch((error: unknown) => {
  const why = error instanceof Error ? error.message : `${error}`;
  document.body.append(el("p", { role: "alert", class: "failure" }, `This report cannot be read: ${why}`));
});
