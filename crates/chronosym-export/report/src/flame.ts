// A flame graph on a canvas, which keys move in and screen readers follow.

import { layout, type Box, type Placed } from "./boxes.ts";
import { palette } from "./colors.ts";
import { el, fitCanvas, later, showTip, style } from "./dom.ts";
import { amount, fit, percent } from "./labels.ts";
import type { Model } from "./model.ts";

const ROW = 21;
/** Narrower boxes are not drawn, in pixels. */
const LEAST = 0.6;
const FONT = "12px system-ui, 'DejaVu Sans', sans-serif";

export interface FlameOptions {
  label: string;
  /** Roots below instead of above: callers of a function are drawn over it. */
  upwards?: boolean;
  root: () => Box;
  /** The functions from the root to the enlarged box. */
  zoom: () => number[];
  onZoom: (path: number[]) => void;
  onSelect: (func: number) => void;
  color?: (box: Box) => string | null;
  describe?: (box: Box) => string[];
}

export class Flame {
  readonly element: HTMLElement;
  private readonly canvas = el("canvas", { "aria-hidden": "true" });
  private readonly inner: HTMLElement;
  private readonly item: HTMLElement;
  private placed: Placed[] = [];
  private focused: Box | null = null;
  private hovered: Box | null = null;
  private depth = 0;
  private isNew = true;
  private colors: string[] = [];
  private colorKey = "";
  private widths = new Map<string, number>();
  readonly draw = later(() => this.paint());

  constructor(
    private readonly model: Model,
    readonly options: FlameOptions,
  ) {
    const id = `flame-item-${Math.random().toString(36).slice(2)}`;
    this.item = el("div", { id, role: "treeitem", class: "unseen" });
    this.inner = el("div", { class: "flame-inner" }, this.canvas, this.item);
    this.element = el(
      "div",
      {
        class: "flame",
        tabindex: 0,
        role: "tree",
        "aria-label": `${options.label}. Arrow keys move between boxes, Enter enlarges, Backspace goes back.`,
        "aria-activedescendant": id,
      },
      this.inner,
    );
    this.element.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.element);
    this.element.addEventListener("pointermove", (event) => this.hover(event));
    this.element.addEventListener("pointerleave", () => this.hover(null));
    this.element.addEventListener("click", (event) => this.click(event));
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.element.addEventListener("focus", () => {
      this.tell((this.focused ??= this.root));
      this.draw();
    });
    this.element.addEventListener("blur", this.draw);
  }

  /** The enlarged box; the whole graph if its path no longer exists. */
  private get root(): Box {
    let box = this.options.root();
    for (const func of this.options.zoom()) {
      const next = box.children().find((child) => child.func === func);
      if (!next) break;
      box = next;
    }
    return box;
  }

  /** Forgets boxes of an older selection. */
  reset(): void {
    this.focused = null;
    this.hovered = null;
    this.isNew = true;
    this.draw();
  }

  names(box: Box): string[] {
    return box.func < 0 ? [box.label ?? ""] : this.model.trace.functions[box.func].names;
  }

  private paint(): void {
    const width = this.element.clientWidth;
    const height = this.element.clientHeight;
    if (width < 10 || height < 10) return;
    const root = this.root;
    if (!this.focused) this.tell(root);
    this.placed = layout(root, LEAST / width);
    this.depth = this.placed.reduce((most, { depth }) => Math.max(most, depth), 0) + 1;
    const whole = Math.max(this.depth * ROW + 2, this.options.upwards ? height - 2 : 0);
    this.inner.style.height = `${whole}px`;
    const c = fitCanvas(this.canvas, width, height);
    // The function whose callers these are is at the bottom.
    if (this.options.upwards && this.isNew) this.element.scrollTop = whole;
    this.isNew = false;
    const offset = this.element.scrollTop;
    c.font = FONT;
    c.textBaseline = "middle";
    const isDark = document.documentElement.dataset.theme === "dark";
    const key = `${isDark}`;
    if (key !== this.colorKey) {
      this.colors = palette(this.model.trace.functions, isDark);
      this.colorKey = key;
    }
    const matches = this.model.matches;
    const { trace, state } = this.model;
    const [ink, hit, ground] = [style("--box-ink"), style("--hit"), style("--panel")];
    const [groupColor, accent] = [style("--group"), style("--accent")];
    for (const { box, depth, x, width: share } of this.placed) {
      const y = this.top(depth, whole) - offset;
      if (y > height || y + ROW < 0) continue;
      const [left, w] = [x * width, share * width];
      const isAbove = depth < this.placed[0].depth || this.isAbove(box, root);
      const isHit = box.func >= 0 && matches?.[box.func] === 1;
      c.globalAlpha = isAbove || (matches && !isHit) ? 0.5 : 1;
      c.fillStyle = isHit
        ? hit
        : (this.options.color?.(box) ?? (box.func < 0 ? groupColor : this.colors[box.func]));
      c.fillRect(left, y, Math.max(0.5, w - 0.75), ROW - 1);
      if (box.func >= 0 && trace.functions[box.func].kind === "unnamed" && w > 4) this.hatch(c, left, y, w);
      if (box === this.hovered || box === this.focused && document.activeElement === this.element) {
        c.globalAlpha = 1;
        c.strokeStyle = box === this.focused ? accent : ink;
        c.lineWidth = box === this.focused ? 2 : 1;
        c.strokeRect(left + 1, y + 1, Math.max(1, w - 2.5), ROW - 3);
      } else if (box.func >= 0 && box.func === state.func) {
        c.strokeStyle = ink;
        c.lineWidth = 1;
        c.strokeRect(left + 0.5, y + 0.5, Math.max(0.5, w - 1.75), ROW - 2);
      }
      if (w < 26) continue;
      c.globalAlpha = isAbove ? 0.75 : 1;
      c.fillStyle = isHit ? ground : ink;
      const shown = fit(this.names(box), w - 9, (text) => this.measure(c, text));
      if (shown) c.fillText(shown, left + 4, y + ROW / 2);
    }
    c.globalAlpha = 1;
  }

  private isAbove(box: Box, root: Box): boolean {
    for (let at = root.parent; at; at = at.parent) if (at === box) return true;
    return false;
  }

  private top(depth: number, whole: number): number {
    return this.options.upwards ? whole - (depth + 1) * ROW - 1 : depth * ROW;
  }

  private hatch(c: CanvasRenderingContext2D, x: number, y: number, w: number): void {
    c.save();
    c.beginPath();
    c.rect(x, y, w - 0.75, ROW - 1);
    c.clip();
    c.strokeStyle = style("--line");
    c.lineWidth = 1;
    c.beginPath();
    const end = Math.min(w, 4000);
    for (let at = -ROW; at < end; at += 7) {
      c.moveTo(x + at, y + ROW);
      c.lineTo(x + at + ROW, y);
    }
    c.stroke();
    c.restore();
  }

  private measure(c: CanvasRenderingContext2D, text: string): number {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20_000) this.widths.clear();
      this.widths.set(text, (width = c.measureText(text).width));
    }
    return width;
  }

  private at(event: MouseEvent): Placed | null {
    const bounds = this.element.getBoundingClientRect();
    const x = (event.clientX - bounds.left) / this.element.clientWidth;
    const y = event.clientY - bounds.top + this.element.scrollTop;
    const whole = Math.max(this.depth * ROW + 2, this.options.upwards ? this.element.clientHeight - 2 : 0);
    const depth = Math.floor((this.options.upwards ? whole - 1 - y : y) / ROW);
    const is = (p: Placed) => p.depth === depth && x >= p.x && x < p.x + p.width;
    return this.placed.find(is) ?? null;
  }

  private hover(event: PointerEvent | null): void {
    const placed = event && this.at(event);
    const box = placed?.box ?? null;
    if (box !== this.hovered) {
      this.hovered = box;
      this.draw();
    }
    this.element.style.cursor = box ? "pointer" : "default";
    showTip(box && this.describe(box), event?.clientX, event?.clientY);
  }

  private describe(box: Box): string[] {
    const { header, functions } = this.model.trace;
    const { whole } = this.model.weights;
    const says = (weight: number) => `${amount(weight, header.unit)}, ${percent(weight, whole)}`;
    const lines = [this.names(box)[0]];
    if (box.func >= 0 && functions[box.func].module) lines.push(functions[box.func].module);
    if (this.options.describe) return [...lines, ...this.options.describe(box)];
    lines.push(says(box.total));
    if (box.self && box.self !== box.total) lines.push(`itself ${says(box.self)}`);
    return lines;
  }

  /** The functions from the root to a box. */
  private path(box: Box): number[] {
    const path: number[] = [];
    for (let at = box; at.parent; at = at.parent) path.unshift(at.func);
    return path;
  }

  private click(event: MouseEvent): void {
    const placed = this.at(event);
    if (placed) this.enlarge(placed.box);
  }

  private enlarge(box: Box): void {
    this.focused = box;
    showTip(null);
    this.options.onZoom(this.path(box));
    if (box.func >= 0) this.options.onSelect(box.func);
    this.tell(box);
    this.draw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const now = this.focused ?? this.root;
    const [down, up] = this.options.upwards ? ["ArrowUp", "ArrowDown"] : ["ArrowDown", "ArrowUp"];
    const siblings = now.parent?.children() ?? [now];
    const index = siblings.indexOf(now);
    let next: Box | null | undefined;
    switch (event.key) {
      case down:
        next = now.children()[0];
        break;
      case up:
        next = now.parent;
        break;
      case "ArrowRight":
        next = siblings[index + 1];
        break;
      case "ArrowLeft":
        next = siblings[index - 1];
        break;
      case "Home":
        next = siblings[0];
        break;
      case "End":
        next = siblings[siblings.length - 1];
        break;
      case "Enter":
      case " ":
        this.enlarge(now);
        break;
      case "Backspace":
        if (this.root.parent) this.enlarge(this.root.parent);
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    this.focused = next;
    // Boxes that are not drawn are too narrow, or outside of the enlarged one.
    if (!this.placed.some((placed) => placed.box === next)) {
      this.options.onZoom(this.path(next.parent ?? next));
    }
    if (next.func >= 0) this.options.onSelect(next.func);
    this.tell(next);
    this.reveal(next);
    this.draw();
  }

  private reveal(box: Box): void {
    const placed = this.placed.find((placed) => placed.box === box);
    if (!placed) return;
    const whole = Math.max(this.depth * ROW + 2, this.options.upwards ? this.element.clientHeight - 2 : 0);
    const y = this.top(placed.depth, whole);
    const { scrollTop, clientHeight } = this.element;
    if (y < scrollTop) this.element.scrollTop = y;
    else if (y + ROW > scrollTop + clientHeight) this.element.scrollTop = y + ROW - clientHeight;
  }

  private tell(box: Box): void {
    let level = 1;
    for (let at = box; at.parent; at = at.parent) level++;
    const siblings = box.parent?.children() ?? [box];
    this.item.setAttribute("aria-level", `${level}`);
    this.item.setAttribute("aria-setsize", `${siblings.length}`);
    this.item.setAttribute("aria-posinset", `${siblings.indexOf(box) + 1}`);
    this.item.setAttribute("aria-selected", "true");
    this.item.textContent = this.describe(box).join(", ");
  }

  /** What is drawn, for tests: names, weights and places in pixels. */
  get boxes(): { name: string; label: string; total: number; self: number; x: number; y: number; width: number; func: number }[] {
    const width = this.element.clientWidth;
    const whole = Math.max(this.depth * ROW + 2, this.options.upwards ? this.element.clientHeight - 2 : 0);
    return this.placed.map(({ box, depth, x, width: share }) => ({
      name: this.names(box)[0],
      label: box.func < 0 ? (box.label ?? "") : this.model.trace.functions[box.func].label,
      total: box.total,
      self: box.self,
      x: x * width,
      y: this.top(depth, whole) + ROW / 2,
      width: share * width,
      func: box.func,
    }));
  }
}
