// A table whose visible rows only are elements, and which keys move in.

import { el, later } from "./dom.ts";

const ROW = 26;

export interface GridColumn {
  key: string;
  title: string;
  hint: string;
}

export interface GridOptions {
  label: string;
  /** Selects the widths of columns. */
  layout: string;
  columns: GridColumn[];
  /** Titles of the columns after them, which do not sort. */
  rest: () => { title: string; class: string }[];
  sortedBy: () => string;
  onSort: (key: string) => void;
  count: () => number;
  /** The key of a row, which stays when the order changes. */
  key: (row: number) => number;
  isSelected: (row: number) => boolean;
  title: (row: number) => string;
  cells: (row: number) => Node[];
  onSelect: (row: number) => void;
  onOpen: (row: number) => void;
  /** Why there is no row. */
  empty: () => string;
}

export class Grid {
  readonly element: HTMLElement;
  private readonly body = el("div", { class: "rows", role: "rowgroup" });
  private readonly scroller: HTMLElement;
  private readonly head: HTMLElement;
  private current = 0;
  readonly draw = later(() => this.paint());

  constructor(private readonly options: GridOptions) {
    this.head = el("div", { class: `row head ${options.layout}`, role: "row" });
    this.scroller = el(
      "div",
      {
        class: "table-scroll",
        tabindex: 0,
        role: "grid",
        "aria-label": options.label,
        keydown: (event: KeyboardEvent) => this.press(event),
      },
      this.head,
      this.body,
    );
    this.element = el("div", { class: "table" }, this.scroller);
    this.scroller.addEventListener("scroll", this.draw);
    new ResizeObserver(this.draw).observe(this.scroller);
  }

  /** Starts at the first row of another order. */
  reset(): void {
    this.current = 0;
    this.scroller.scrollTop = 0;
    this.draw();
  }

  private paint(): void {
    const { options } = this;
    const sortedBy = options.sortedBy();
    const sorting = options.columns.map(({ key, title, hint }) =>
      el(
        "div",
        {
          class: "cell number",
          role: "columnheader",
          "aria-sort": key === sortedBy ? "descending" : "none",
          title: hint,
        },
        el(
          "button",
          { click: () => options.onSort(key) },
          `${title}${key === sortedBy ? " ▾" : ""}`,
        ),
      ),
    );
    const rest = options
      .rest()
      .map((column) => el("div", { class: `cell ${column.class}`, role: "columnheader" }, column.title));
    const buttons = () => [...this.head.querySelectorAll("button")];
    const focused = buttons().indexOf(document.activeElement as HTMLButtonElement);
    this.head.replaceChildren(...sorting, ...rest);
    if (focused >= 0) buttons()[focused].focus();
    const count = options.count();
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 4);
    const last = Math.min(count, first + Math.ceil(clientHeight / ROW) + 8);
    this.body.style.height = `${Math.max(40, count * ROW)}px`;
    this.scroller.setAttribute("aria-rowcount", `${count + 1}`);
    const rows: HTMLElement[] = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    this.body.replaceChildren(...rows);
    if (!count) this.body.append(el("p", { class: "empty" }, options.empty()));
    else this.scroller.setAttribute("aria-activedescendant", `row-${options.key(this.current)}`);
  }

  private row(index: number): HTMLElement {
    const { options } = this;
    const isSelected = options.isSelected(index);
    const marks = `${index === this.current ? " current" : ""}${isSelected ? " selected" : ""}`;
    return el(
      "div",
      {
        id: `row-${options.key(index)}`,
        class: `row ${options.layout}${marks}`,
        role: "row",
        "aria-rowindex": index + 2,
        "aria-selected": isSelected,
        style: `top:${index * ROW}px`,
        title: options.title(index),
        click: () => {
          this.current = index;
          options.onSelect(index);
          this.draw();
        },
        dblclick: () => options.onOpen(index),
      },
      ...options.cells(index),
    );
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target !== this.scroller) return;
    const { options, scroller } = this;
    const count = options.count();
    const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 2);
    const steps: Record<string, number> = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -count,
      End: count,
    };
    if (event.key === "Enter" && count) options.onOpen(this.current);
    else if (event.key in steps && count) {
      this.current = Math.max(0, Math.min(count - 1, this.current + steps[event.key]));
      options.onSelect(this.current);
      const top = this.current * ROW;
      const { scrollTop, clientHeight } = scroller;
      if (top < scrollTop) scroller.scrollTop = top;
      else if (top + 2 * ROW > scrollTop + clientHeight) scroller.scrollTop = top + 2 * ROW - clientHeight;
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
