// The table of methods.

import { palette } from "./colors.ts";
import { el } from "./dom.ts";
import { Grid } from "./grid.ts";
import { amount, percent } from "./labels.ts";
import type { Model } from "./model.ts";
import { FunctionFlag } from "./trace.ts";

interface Column {
  key: string;
  title: string;
  hint: string;
  value: (func: number) => number;
}

export class Table {
  private readonly grid: Grid;
  private rows: number[] = [];
  private key = "";
  private colors: string[] = [];
  private theme = "";
  private readonly columns: Column[];

  constructor(
    private readonly model: Model,
    onSelect: (func: number) => void,
    onOpen: (func: number) => void,
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
    const { functions } = model.trace;
    this.grid = new Grid({
      label: "Methods. Arrow keys move, Enter shows callers and callees.",
      layout: "methods",
      columns: this.columns,
      rest: () => [
        { title: `method (${this.rows.length})`, class: "" },
        { title: "module", class: "module" },
      ],
      sortedBy: () => model.state.sort,
      onSort: (sort) => model.update({ sort }),
      count: () => this.rows.length,
      key: (row) => this.rows[row],
      isSelected: (row) => this.rows[row] === model.state.func,
      title: (row) => functions[this.rows[row]].label,
      cells: (row) => this.cells(this.rows[row]),
      onSelect: (row) => onSelect(this.rows[row]),
      onOpen: (row) => onOpen(this.rows[row]),
      empty: () => this.reason(),
    });
  }

  get element(): HTMLElement {
    return this.grid.element;
  }

  draw(): void {
    this.sort();
    this.grid.draw();
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
    const theme = document.documentElement.dataset.theme ?? "";
    if (theme !== this.theme) {
      this.theme = theme;
      this.colors = palette(trace.functions, theme === "dark");
    }
    const key = JSON.stringify([this.model.selectionKey, state.raw, state.sort, state.search, state.userOnly]);
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
    this.grid.reset();
  }

  private reason(): string {
    const { state } = this.model;
    if (state.search) return `No method matches “${state.search}” here.`;
    if (state.userOnly) return "No own code was seen here.";
    return "No sample in this selection.";
  }

  private cells(func: number): Node[] {
    const { trace } = this.model;
    const { whole } = this.model.weights;
    const f = trace.functions[func];
    const isUser = (f.flags & FunctionFlag.User) !== 0;
    const weights = this.columns.map((column) => {
      const value = column.value(func);
      if (column.key === "user" && !isUser) return el("div", { class: "cell number", role: "gridcell" }, "");
      const share = whole ? (100 * value) / whole : 0;
      return el(
        "div",
        { class: "cell number", role: "gridcell" },
        el("span", { class: "bar", style: `width:${share.toFixed(2)}%`, "aria-hidden": true }),
        el("span", { class: "value" }, value ? amount(value, trace.header.unit) : "–"),
        el("span", { class: "share" }, value ? percent(value, whole) : ""),
      );
    });
    return [
      ...weights,
      el(
        "div",
        { class: "cell name", role: "gridcell" },
        el("i", { class: "swatch", style: `background:${this.colors[func]}` }),
        el("span", { class: isUser ? "method user" : "method" }, f.names[0]),
      ),
      el("div", { class: "cell module", role: "gridcell" }, f.module),
    ];
  }
}
