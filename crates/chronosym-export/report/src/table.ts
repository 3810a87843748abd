// The table of functions. Only visible rows are elements.

import { palette } from "./colors.ts";
import { el, later } from "./dom.ts";
import { amount, percent } from "./labels.ts";
import type { Model } from "./model.ts";
import { FunctionFlag } from "./trace.ts";

const ROW = 26;

interface Column {
  key: string;
  title: string;
  hint: string;
  value: (func: number) => number;
}

export class Table {
  readonly element: HTMLElement;
  private readonly body = el("div", { class: "rows", role: "rowgroup" });
  private readonly scroller: HTMLElement;
  private readonly head = el("div", { class: "row head", role: "row" });
  private rows: number[] = [];
  private key = "";
  private current = 0;
  private colors: string[] = [];
  private theme = "";
  readonly draw = later(() => this.paint());
  private readonly columns: Column[];

  constructor(
    private readonly model: Model,
    private readonly onSelect: (func: number) => void,
    private readonly onOpen: (func: number) => void,
  ) {
    const of = (key: "self" | "total" | "withFramework") => (func: number) => model.functionWeights[key][func];
    this.columns = [
      { key: "self", title: "self", hint: "in the method itself", value: of("self") },
      { key: "total", title: "total", hint: "with everything that it calls", value: of("total") },
      {
        key: "user",
        title: "self + libraries",
        hint: "own code: itself and the library and native code that it calls, up to the next own code",
        value: of("withFramework"),
      },
    ];
    this.scroller = el(
      "div",
      {
        class: "table-scroll",
        tabindex: 0,
        role: "grid",
        "aria-label": "Methods. Arrow keys move, Enter shows callers and callees.",
        keydown: (event: KeyboardEvent) => this.press(event),
      },
      this.head,
      this.body,
    );
    this.element = el("div", { class: "table" }, this.scroller);
    this.scroller.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.scroller);
  }

  /** The methods in their order, and their weights. */
  get shown(): { label: string; self: number; total: number; user: number }[] {
    this.sort();
    const { functionWeights: of, trace } = this.model;
    return this.rows.map((func) => ({
      label: trace.functions[func].label,
      self: of.self[func],
      total: of.total[func],
      user: of.withFramework[func],
    }));
  }

  private sort(): void {
    const { state, trace, matches, functionWeights } = this.model;
    const key = JSON.stringify([this.model.selectionKey, state.sort, state.search, state.userOnly]);
    if (key === this.key) return;
    this.key = key;
    const column = this.columns.find((column) => column.key === state.sort) ?? this.columns[0];
    const isShown = (func: number) =>
      functionWeights.total[func] > 0 &&
      (!matches || matches[func] === 1) &&
      (!state.userOnly || (trace.functions[func].flags & FunctionFlag.User) !== 0);
    this.rows = trace.functions.map((_, func) => func).filter(isShown);
    const { total } = functionWeights;
    this.rows.sort((a, b) => column.value(b) - column.value(a) || total[b] - total[a] || a - b);
    this.current = 0;
  }

  private paint(): void {
    this.sort();
    const { state, trace } = this.model;
    const theme = document.documentElement.dataset.theme ?? "";
    if (theme !== this.theme) {
      this.theme = theme;
      this.colors = palette(trace.functions, theme === "dark");
    }
    const sortBy = (key: string) => () => this.model.update({ sort: key });
    this.head.replaceChildren(
      ...this.columns.map((column) =>
        el(
          "div",
          {
            class: "cell number",
            role: "columnheader",
            "aria-sort": column.key === state.sort ? "descending" : "none",
            title: column.hint,
          },
          el("button", { click: sortBy(column.key), tabindex: -1 }, `${column.title}${column.key === state.sort ? " ▾" : ""}`),
        ),
      ),
      el("div", { class: "cell", role: "columnheader" }, `method (${this.rows.length})`),
      el("div", { class: "cell module", role: "columnheader" }, "module"),
    );
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 4);
    const last = Math.min(this.rows.length, first + Math.ceil(clientHeight / ROW) + 8);
    this.body.style.height = `${this.rows.length * ROW}px`;
    this.scroller.setAttribute("aria-rowcount", `${this.rows.length + 1}`);
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    this.body.replaceChildren(...rows);
    const current = this.rows[this.current];
    this.scroller.setAttribute("aria-activedescendant", `method-${current}`);
    if (!this.rows.length) {
      this.body.style.height = "40px";
      this.body.append(el("p", { class: "empty" }, this.reason()));
    }
  }

  private reason(): string {
    const { state } = this.model;
    if (state.search) return `No method matches “${state.search}” here.`;
    if (state.userOnly) return "No own code was seen here.";
    return "No sample in this selection.";
  }

  private row(index: number): HTMLElement {
    const { trace, state } = this.model;
    const { whole } = this.model.weights(true);
    const func = this.rows[index];
    const f = trace.functions[func];
    const cells = this.columns.map((column) => {
      const value = column.value(func);
      const isUser = (f.flags & FunctionFlag.User) !== 0;
      if (column.key === "user" && !isUser) return el("div", { class: "cell number", role: "gridcell" }, "");
      const share = whole ? (100 * value) / whole : 0;
      const text = value ? amount(value, trace.header.unit) : "–";
      return el(
        "div",
        { class: "cell number", role: "gridcell" },
        el("span", { class: "bar", style: `width:${share.toFixed(2)}%`, "aria-hidden": "true" }),
        el("span", { class: "value" }, text),
        el("span", { class: "share" }, value ? percent(value, whole) : ""),
      );
    });
    return el(
      "div",
      {
        id: `method-${func}`,
        class: `row${index === this.current ? " current" : ""}${func === state.func ? " selected" : ""}`,
        role: "row",
        "aria-rowindex": index + 2,
        "aria-selected": func === state.func,
        style: `top:${index * ROW}px`,
        title: f.label,
        click: () => {
          this.current = index;
          this.onSelect(func);
          this.draw();
        },
        dblclick: () => this.onOpen(func),
      },
      ...cells,
      el(
        "div",
        { class: "cell name", role: "gridcell" },
        el("i", { class: "swatch", style: `background:${this.colors[func]}` }),
        el("span", { class: f.flags & FunctionFlag.User ? "method user" : "method" }, f.names[0]),
      ),
      el("div", { class: "cell module", role: "gridcell" }, f.module),
    );
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -this.rows.length,
      End: this.rows.length,
    };
    if (event.key === "Enter" && this.rows.length) this.onOpen(this.rows[this.current]);
    else if (event.key in steps) {
      this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + steps[event.key]));
      if (this.rows.length) this.onSelect(this.rows[this.current]);
      const top = this.current * ROW;
      const { scrollTop, clientHeight } = this.scroller;
      if (top < scrollTop) this.scroller.scrollTop = top;
      else if (top + 2 * ROW > scrollTop + clientHeight) this.scroller.scrollTop = top + 2 * ROW - clientHeight;
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
