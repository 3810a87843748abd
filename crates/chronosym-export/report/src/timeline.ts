// The time axis: lanes of threads and of the runtime's activities; selects a time.

import { addThread } from "./bins.ts";
import { lowerBound } from "./calls.ts";
import { el, fitCanvas, later, showTip, style } from "./dom.ts";
import { amount, duration, instant, percent, ticks } from "./labels.ts";
import type { Model } from "./model.ts";

const LANE = 20;
const AXIS = 22;
const OVERVIEW = 44;
const MARKERS = 14;
/** More threads are not drawn one by one. */
const MAX_LANES = 400;
export const ACTIVITIES = ["on-CPU", "runnable", "blocked", "unknown"];
export const ACTIVITY_COLORS = ["--on-cpu", "--runnable", "--blocked", "--unknown"];
const MARKER_COLORS: Record<string, string> = {
  GC: "--gc",
  pause: "--pause",
  exception: "--exception",
  contention: "--contention",
  JIT: "--jit",
};
/** The height of an activity in a lane: threads that are blocked do nothing, and those of unknown activity perhaps. */
const HEIGHTS = [1, 1, 0.3, 0.55];

interface Lane {
  kind: "overview" | "marker" | "thread";
  index: number;
  label: string;
  top: number;
  height: number;
}

export class Timeline {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { "aria-hidden": "true" });
  private readonly scroller: HTMLElement;
  /** What screen readers say of each thread. */
  private readonly spoken = new Map<number, string>();
  private readonly labels = el("div", {
    class: "lane-labels",
    role: "group",
    "aria-label": "Threads. Arrow keys move, Enter selects one, Ctrl and Enter add or remove one.",
    keydown: (event: KeyboardEvent) => this.moveLabel(event),
  });
  private readonly lanes: Lane[] = [];
  private readonly draw = later(() => this.paint());
  private drag: { from: number; x: number; hasMoved: boolean } | null = null;
  private pointer: number | null = null;

  constructor(private readonly model: Model, label = "Time axis") {
    this.makeLanes();
    const last = this.lanes[this.lanes.length - 1];
    const height = last ? last.top + last.height : AXIS;
    const plot = el(
      "div",
      {
        class: "plot",
        tabindex: 0,
        role: "slider",
        "aria-label": "Time range. Arrow keys move it, with Shift they resize it, plus and minus zoom, Enter shows only the selection, Escape selects all.",
        "aria-valuemin": 0,
        "aria-valuemax": Math.round(model.trace.to),
        "aria-valuenow": 0,
        "aria-valuetext": "all",
      },
      this.canvas,
    );
    this.plot = plot;
    const inner = el("div", { class: "lanes", style: `height:${height}px` }, this.labels, plot);
    this.scroller = el("div", { class: "timeline-scroll" }, inner);
    this.element = el("section", { class: "timeline", "aria-label": label }, this.scroller);
    this.makeLabels();
    this.scroller.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.scroller);
    plot.addEventListener("pointerdown", (event) => this.down(event));
    plot.addEventListener("pointermove", (event) => this.move(event));
    plot.addEventListener("pointerup", (event) => this.up(event));
    plot.addEventListener("pointerleave", () => this.leave());
    plot.addEventListener("dblclick", () => this.zoomToSelection());
    plot.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    plot.addEventListener("keydown", (event) => this.key(event));
    model.listen((changed) => {
      if (changed.has("threads")) this.makeLabels();
      if (changed.has("range")) this.announce();
      this.draw();
    });
    this.announce();
  }

  private readonly plot: HTMLElement;

  redraw(): void {
    this.draw();
  }

  private makeLanes(): void {
    const { header, samples, markers } = this.model.trace;
    let top = AXIS;
    const add = (kind: Lane["kind"], index: number, label: string, height: number) => {
      this.lanes.push({ kind, index, label, top, height });
      top += height;
    };
    add("overview", 0, header.unit === "time" ? "running threads" : header.unit, OVERVIEW);
    header.marker_kinds.forEach((kind, index) => {
      if (markers.kind.includes(index)) add("marker", index, kind, MARKERS);
    });
    // The busiest first.
    const busy = header.threads.map((_, thread) => {
      const sums = [0, 0, 0, 0];
      for (let i = samples.start[thread]; i < samples.start[thread + 1]; i++) {
        sums[samples.activity[i]] += samples.weight[i];
      }
      return { thread, running: sums[0] + sums[1], all: sums[0] + sums[1] + sums[2] + sums[3] };
    });
    busy.sort((a, b) => b.running - a.running || b.all - a.all);
    const hasProcesses = header.processes.length > 1;
    for (const { thread, running, all } of busy.slice(0, MAX_LANES)) {
      const { label, process } = header.threads[thread];
      const of = hasProcesses ? `${header.processes[process].label} · ` : "";
      add("thread", thread, of + label, LANE);
      const part = header.unit === "time" ? `, ${amount(running, header.unit)} of it on-CPU or runnable` : "";
      this.spoken.set(thread, `${of}${label}: ${amount(all, header.unit)}${part}`);
    }
  }

  private makeLabels(): void {
    const chosen = this.model.state.threads;
    const focused = this.labels.contains(document.activeElement)
      ? [...this.labels.children].indexOf(document.activeElement!)
      : -1;
    const axis = el("div", { class: "axis-label", style: `height:${AXIS}px` }, "");
    const rows = this.lanes.map((lane) => {
      const size = `height:${lane.height}px`;
      if (lane.kind !== "thread") {
        return el("div", { class: `lane-label ${lane.kind}`, style: size, title: lane.label }, lane.label);
      }
      const isChosen = chosen?.includes(lane.index) ?? false;
      return el(
        "button",
        {
          class: "lane-label thread",
          style: size,
          tabindex: lane.index === this.entry ? 0 : -1,
          "aria-label": this.spoken.get(lane.index) ?? lane.label,
          title: `${lane.label} (click: only this thread; Ctrl+click: add or remove)`,
          "aria-pressed": isChosen,
          click: (event: MouseEvent) => this.choose(lane.index, event.ctrlKey || event.metaKey || event.shiftKey),
        },
        lane.label,
      );
    });
    const hidden = this.model.trace.header.threads.length - MAX_LANES;
    const more = hidden > 0 ? el("div", { class: "lane-label" }, `${hidden} more threads`) : null;
    this.labels.replaceChildren(axis, ...rows, ...(more ? [more] : []));
    if (focused >= 0) (this.labels.children[focused] as HTMLElement).focus();
  }

  /** The thread whose label Tab reaches: the first selected one, or the busiest. */
  private get entry(): number | undefined {
    const threads = this.lanes.filter(({ kind }) => kind === "thread").map(({ index }) => index);
    return threads.find((thread) => this.model.state.threads?.includes(thread)) ?? threads[0];
  }

  private moveLabel(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const buttons = [...this.labels.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const last = buttons.length - 1;
    const places: Record<string, number> = { ArrowDown: Math.min(last, at + 1), ArrowUp: Math.max(0, at - 1), Home: 0, End: last };
    const next = buttons[places[event.key]];
    if (at < 0 || !next) return;
    next.focus();
    event.preventDefault();
    event.stopPropagation();
  }

  private choose(thread: number, add: boolean): void {
    const now = this.model.state.threads ?? [];
    let next: number[];
    if (now.includes(thread)) next = add || now.length === 1 ? now.filter((t) => t !== thread) : [thread];
    else next = add ? [...now, thread] : [thread];
    this.model.update({ threads: next.length ? next.sort((a, b) => a - b) : null, zoom: [] });
  }

  private get shown(): [number, number] {
    const { from, to } = this.model.trace;
    return this.model.state.shown ?? [from, to];
  }

  private get width(): number {
    return Math.max(10, this.scroller.clientWidth - this.labels.offsetWidth);
  }

  private timeAt(x: number): number {
    const [from, to] = this.shown;
    return from + (Math.max(0, Math.min(this.width, x)) / this.width) * (to - from);
  }

  private paint(): void {
    const { trace, state } = this.model;
    const [from, to] = this.shown;
    const width = this.width;
    const height = this.scroller.clientHeight;
    const offset = this.scroller.scrollTop;
    const c = fitCanvas(this.canvas, width, height);
    const isTime = trace.header.unit === "time";
    const pixels = Math.floor(width);
    const perPixel = (to - from) / pixels;
    const colors = ACTIVITY_COLORS.map(style);
    const chosen = state.threads && new Set(state.threads);
    const all = new Float64Array(4 * pixels);
    const heightOf = (bins: Float64Array, pixel: number, activity: number, whole: number) =>
      Math.min(1, bins[4 * pixel + activity] / whole);
    c.textBaseline = "middle";
    for (const lane of this.lanes) {
      if (lane.kind !== "thread") continue;
      const top = lane.top - offset;
      const isVisible = top + lane.height > AXIS && top < height;
      const counts = !chosen || chosen.has(lane.index);
      const bins = counts && isVisible ? new Float64Array(4 * pixels) : all;
      if (!counts && !isVisible) continue;
      const own = isVisible ? new Float64Array(4 * pixels) : bins;
      addThread(trace.samples, lane.index, [from, to], pixels, isTime, own);
      if (!isVisible) continue;
      if (counts) for (let i = 0; i < own.length; i++) all[i] += own[i];
      c.fillStyle = style("--lane");
      c.fillRect(0, top + 1, width, lane.height - 2);
      c.globalAlpha = counts ? 1 : 0.25;
      const most = isTime ? perPixel : max(own) || 1;
      for (let pixel = 0; pixel < pixels; pixel++) {
        let y = top + lane.height - 1;
        for (const activity of [0, 1, 3, 2]) {
          let share = heightOf(own, pixel, activity, most);
          if (!share) continue;
          share *= HEIGHTS[activity];
          const size = Math.max(1, share * (lane.height - 2));
          c.fillStyle = colors[activity];
          c.fillRect(pixel, y - size, 1, size);
          y -= size;
        }
      }
      c.globalAlpha = 1;
    }
    this.paintOverview(c, all, pixels, perPixel, isTime, offset, colors);
    this.paintMarkers(c, pixels, offset, height);
    this.paintAxis(c, width, height);
  }

  private paintOverview(
    c: CanvasRenderingContext2D,
    all: Float64Array,
    pixels: number,
    perPixel: number,
    isTime: boolean,
    offset: number,
    colors: string[],
  ): void {
    const lane = this.lanes[0];
    const top = lane.top - offset;
    c.fillStyle = style("--lane");
    c.fillRect(0, top, pixels, lane.height - 2);
    let most = 0;
    const order = isTime ? [0, 1] : [0, 1, 3, 2];
    for (let pixel = 0; pixel < pixels; pixel++) {
      most = Math.max(most, order.reduce((sum, activity) => sum + all[4 * pixel + activity], 0));
    }
    const whole = isTime ? Math.max(perPixel, Math.ceil(most / perPixel - 0.05) * perPixel) : most || 1;
    for (let pixel = 0; pixel < pixels; pixel++) {
      let y = top + lane.height - 2;
      for (const activity of order) {
        const size = (all[4 * pixel + activity] / whole) * (lane.height - 4);
        if (!size) continue;
        c.fillStyle = colors[activity];
        c.fillRect(pixel, y - size, 1, size);
        y -= size;
      }
    }
    if (isTime && whole > perPixel) {
      const peak = `${Math.round(whole / perPixel)}`;
      c.font = "10px system-ui, sans-serif";
      // Readable over lanes that are full, too.
      c.fillStyle = style("--panel");
      c.fillRect(0, top, c.measureText(peak).width + 6, 14);
      c.fillStyle = style("--muted");
      c.fillText(peak, 3, top + 7);
    }
  }

  private paintMarkers(c: CanvasRenderingContext2D, pixels: number, offset: number, height: number): void {
    const { markers } = this.model.trace;
    const [from, to] = this.shown;
    const scale = pixels / (to - from);
    const lanes = new Map(this.lanes.filter((l) => l.kind === "marker").map((l) => [l.index, l]));
    for (const lane of lanes.values()) {
      const top = lane.top - offset;
      if (top > height) continue;
      c.fillStyle = style("--lane");
      c.fillRect(0, top + 1, pixels, lane.height - 2);
    }
    const kinds = this.model.trace.header.marker_kinds;
    const colors = kinds.map((kind) => style(MARKER_COLORS[kind] ?? "--sampler"));
    for (let i = 0; i < markers.kind.length; i++) {
      const lane = lanes.get(markers.kind[i]);
      const end = markers.start[i] + Math.max(0, markers.length[i]);
      if (!lane || end < from || markers.start[i] > to) continue;
      const x = Math.max(0, (markers.start[i] - from) * scale);
      const right = Math.min(pixels, (end - from) * scale);
      c.fillStyle = colors[lane.index];
      c.fillRect(Math.floor(x), lane.top - offset + 2, Math.max(1, right - x), lane.height - 4);
    }
  }

  private paintAxis(c: CanvasRenderingContext2D, width: number, height: number): void {
    const { range } = this.model.state;
    const [from, to] = this.shown;
    const x = (time: number) => ((time - from) / (to - from)) * width;
    if (range) {
      const [left, right] = [Math.max(0, x(range[0])), Math.min(width, x(range[1]))];
      c.fillStyle = style("--veil");
      c.fillRect(0, AXIS, Math.max(0, left), height);
      c.fillRect(right, AXIS, Math.max(0, width - right), height);
      c.fillStyle = style("--accent");
      c.fillRect(left - 1, 0, 2, height);
      c.fillRect(right - 1, 0, 2, height);
    }
    c.fillStyle = style("--panel");
    c.fillRect(0, 0, width, AXIS);
    if (range) {
      c.fillStyle = style("--selection");
      c.fillRect(x(range[0]), 0, x(range[1]) - x(range[0]), AXIS);
    }
    c.font = "11px system-ui, sans-serif";
    const all = ticks(from, to, width / 75);
    const step = all.length > 1 ? all[1] - all[0] : to - from;
    for (const at of all) {
      c.fillStyle = style("--line");
      c.fillRect(Math.round(x(at)), 0, 1, AXIS);
      c.globalAlpha = 0.35;
      c.fillRect(Math.round(x(at)), AXIS, 1, height);
      c.globalAlpha = 1;
      c.fillStyle = style("--muted");
      if (x(at) < width - 50) c.fillText(tickText(at, step), Math.round(x(at)) + 4, AXIS / 2);
    }
    if (this.pointer !== null && !this.drag) {
      c.fillStyle = style("--accent");
      c.globalAlpha = 0.5;
      c.fillRect(this.pointer, 0, 1, height);
      c.globalAlpha = 1;
    }
  }

  private xOf(event: MouseEvent): number {
    return event.clientX - this.plot.getBoundingClientRect().left;
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    const x = this.xOf(event);
    this.drag = { from: this.timeAt(x), x, hasMoved: false };
    this.plot.setPointerCapture(event.pointerId);
    showTip(null);
  }

  private move(event: PointerEvent): void {
    const x = this.xOf(event);
    if (this.drag) {
      if (Math.abs(x - this.drag.x) > 3) this.drag.hasMoved = true;
      if (this.drag.hasMoved) this.select(this.drag.from, this.timeAt(x));
      return;
    }
    this.pointer = x;
    this.draw();
    showTip(this.describe(x, event.clientY), event.clientX, event.clientY);
  }

  private up(event: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    this.plot.releasePointerCapture(event.pointerId);
    // A click outside of the selection ends it.
    const { range } = this.model.state;
    const at = this.timeAt(this.xOf(event));
    if (drag && !drag.hasMoved && range && (at < range[0] || at > range[1])) this.clear();
  }

  private leave(): void {
    this.pointer = null;
    showTip(null);
    this.draw();
  }

  private select(a: number, b: number): void {
    const { from, to } = this.model.trace;
    const start = Math.round(Math.max(from, Math.min(a, b)));
    const end = Math.round(Math.min(to, Math.max(a, b)));
    if (end > start) this.model.update({ range: [start, end], zoom: [] });
  }

  clear(): void {
    this.model.update({ range: null, zoom: [] });
  }

  zoomToSelection(): void {
    const { range } = this.model.state;
    this.model.update({ shown: range });
  }

  private zoom(factor: number, around: number): void {
    const { from, to } = this.model.trace;
    const [left, right] = this.shown;
    const start = Math.max(from, around - (around - left) * factor);
    const end = Math.min(to, around + (right - around) * factor);
    if (end - start < 100) return;
    const isAll = start <= from && end >= to;
    this.model.update({ shown: isAll ? null : [start, end] });
  }

  private pan(share: number): void {
    const { from, to } = this.model.trace;
    const [left, right] = this.shown;
    const by = Math.max(from - left, Math.min(to - right, share * (right - left)));
    if (by) this.model.update({ shown: [left + by, right + by] });
  }

  private wheel(event: WheelEvent): void {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.timeAt(this.xOf(event)));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan((event.deltaX || event.deltaY) / this.width);
    }
  }

  private key(event: KeyboardEvent): void {
    const [left, right] = this.shown;
    const step = (right - left) / 50;
    const range = this.model.state.range;
    const [a, b] = range ?? [left, left];
    const { from, to } = this.model.trace;
    const sign = event.key === "ArrowLeft" ? -1 : 1;
    switch (event.key) {
      case "ArrowLeft":
      case "ArrowRight":
        if (!range) this.select(left, left + 5 * step);
        else if (event.shiftKey) this.select(a, Math.max(a + 1, b + sign * step));
        else {
          const by = Math.max(from - a, Math.min(to - b, sign * step));
          this.select(a + by, b + by);
        }
        break;
      case "+":
      case "=":
        this.zoom(0.5, range ? (a + b) / 2 : (left + right) / 2);
        break;
      case "-":
        this.zoom(2, range ? (a + b) / 2 : (left + right) / 2);
        break;
      case "Enter":
        this.zoomToSelection();
        break;
      case "Escape":
        if (!range) return;
        this.clear();
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private announce(): void {
    const { range } = this.model.state;
    const text = range
      ? `${instant(range[0])} to ${instant(range[1])}, ${duration(range[1] - range[0])}`
      : "all";
    this.plot.setAttribute("aria-valuetext", text);
    this.plot.setAttribute("aria-valuenow", `${Math.round(range?.[0] ?? 0)}`);
  }

  private describe(x: number, clientY: number): string[] {
    const { trace } = this.model;
    const time = this.timeAt(x);
    const y = clientY - this.plot.getBoundingClientRect().top;
    const lane = this.lanes.find((lane) => y >= lane.top && y < lane.top + lane.height);
    const lines = [instant(time)];
    if (lane?.kind === "thread") lines.push(...this.sampleAt(lane.index, time));
    if (lane?.kind === "marker") lines.push(...this.markersAt(lane.index, x));
    if (lane?.kind === "overview") {
      const { whole } = this.model.weights;
      lines.push(`${lane.label}; ${amount(whole, trace.header.unit)} selected`);
    }
    return lines;
  }

  private sampleAt(thread: number, time: number): string[] {
    const { samples, header, stacks, frames, functions } = this.model.trace;
    const [start, end] = [samples.start[thread], samples.start[thread + 1]];
    const i = lowerBound(samples.time, start, end, time + 1) - 1;
    const label = header.threads[thread].label;
    if (i < start) return [label];
    const isPast = header.unit === "time" && samples.time[i] + samples.weight[i] < time;
    if (isPast) return [label, "no sample"];
    const lines = [`${label}: ${ACTIVITIES[samples.activity[i]]}`];
    let stack = samples.stack[i];
    for (let shown = 0; stack >= 0 && shown < 6; stack = stacks.parent[stack], shown++) {
      lines.push(`${shown ? "← " : ""}${functions[frames.func[stacks.frame[stack]]].names[0]}`);
    }
    if (stack >= 0) lines.push("…");
    return lines;
  }

  private markersAt(kind: number, x: number): string[] {
    const { markers, header, from, to } = this.model.trace;
    const [left, right] = [this.timeAt(x - 2), this.timeAt(x + 2)];
    const lines: string[] = [header.marker_kinds[kind]];
    let [sum, length] = [0, 0];
    for (let i = 0; i < markers.kind.length; i++) {
      const end = markers.start[i] + Math.max(0, markers.length[i]);
      if (markers.kind[i] !== kind || end < left || markers.start[i] > right) continue;
      sum += markers.count[i];
      length += Math.max(0, markers.length[i]);
      if (lines.length > 6) continue;
      const text = markers.text[i] ? header.marker_texts[markers.text[i] - 1] : "";
      const lasts = markers.length[i] > 0 ? ` ${duration(markers.length[i])}` : "";
      const more = markers.count[i] > 1 ? ` (${markers.count[i]} from here)` : "";
      lines.push(`${text}${lasts}${more}`.trim() || "no details");
    }
    lines[0] += `: ${sum}`;
    if (length) lines[0] += `, ${duration(length)} (${percent(length, to - from)} of the trace)`;
    return lines;
  }
}

function max(values: Float64Array): number {
  let most = 0;
  for (let i = 0; i < values.length; i += 4) {
    most = Math.max(most, values[i] + values[i + 1] + values[i + 2] + values[i + 3]);
  }
  return most;
}

function tickText(ns: number, step: number): string {
  if (step >= 1e8) return `${(ns / 1e9).toFixed(step >= 1e9 ? 0 : 1)} s`;
  if (step >= 1e6) return `${(ns / 1e6).toFixed(0)} ms`;
  if (step >= 1e5) return `${(ns / 1e6).toFixed(1)} ms`;
  return `${(ns / 1e3).toFixed(0)} µs`;
}
