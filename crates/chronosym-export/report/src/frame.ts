// What the pages of one trace and of two have in common: title, search, tabs, theme, help and keys.

import { keys } from "./about.ts";
import { el } from "./dom.ts";

export interface FrameOptions<View extends string> {
  title: string;
  hint?: string;
  titles: Record<View, string>;
  /** The time axes, above the views. */
  axes: HTMLElement;
  /** The keys of the page, as the help lists them. */
  keys: [string, string][];
  /** What keys do, apart from those of the frame. */
  actions: () => Record<string, () => void>;
  open: (view: View) => void;
  search: (text: string) => void;
  escape: () => void;
  redraw: () => void;
}

export class Frame<View extends string> {
  readonly panel = el("main", { class: "view", id: "view", tabindex: -1 });
  readonly aside = el("aside", { class: "details", "aria-label": "Selected method" });
  readonly status = el("div", { class: "status", role: "status", "aria-live": "polite" });
  readonly controls = el("div", { class: "controls" });
  readonly found = el("output", { class: "found" });
  private readonly input = el("input", {
    type: "search",
    placeholder: "Search methods (/)",
    "aria-label": "Search methods: text, or a regular expression between slashes",
    spellcheck: "false",
  });
  private readonly help = el("dialog", { "aria-label": "Keys" });
  private readonly tabs: HTMLElement[];
  private readonly views: View[];

  constructor(private readonly options: FrameOptions<View>) {
    const { titles } = options;
    this.views = Object.keys(titles) as View[];
    this.tabs = this.views.map((view, i) =>
      el(
        "button",
        {
          role: "tab",
          id: `tab-${view}`,
          "aria-controls": "view",
          title: `${titles[view]} (${i + 1})`,
          click: () => options.open(view),
          keydown: (event: KeyboardEvent) => this.moveTab(event, i),
        },
        titles[view],
      ),
    );
    this.input.addEventListener("input", () => options.search(this.input.value));
    this.help.append(el("h2", {}, "Keys"), keys(options.keys), el("button", { click: () => this.help.close() }, "Close"));
    const icon = (text: string, name: string, key: string, click: () => void) =>
      el("button", { class: "icon", title: `${name} (${key})`, "aria-label": name, click }, text);
    document.body.append(
      el(
        "header",
        {},
        el("h1", { title: options.hint ?? null }, options.title),
        this.status,
        el("div", { class: "search" }, this.input, this.found),
        icon("◐", "Dark or light", "d", () => this.turnTheme()),
        icon("?", "Keys", "?", () => this.help.showModal()),
      ),
      options.axes,
      el(
        "nav",
        { class: "toolbar", "aria-label": "Views and options" },
        el("div", { role: "tablist", class: "tabs", "aria-label": "Views" }, ...this.tabs),
        this.controls,
      ),
      el("div", { class: "work" }, this.panel, this.aside),
      this.help,
    );
    document.addEventListener("keydown", (event) => this.key(event));
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const follow = () => (document.documentElement.dataset.theme = dark.matches ? "dark" : "light");
    follow();
    dark.addEventListener("change", () => {
      follow();
      options.redraw();
    });
  }

  /** Shows the nodes of a view, unless it shows them already. */
  show(view: View, nodes: Node[]): void {
    this.views.forEach((each, i) => {
      this.tabs[i].setAttribute("aria-selected", `${each === view}`);
      this.tabs[i].tabIndex = each === view ? 0 : -1;
    });
    this.panel.setAttribute("aria-label", this.options.titles[view]);
    const { childNodes } = this.panel;
    if (nodes.length === childNodes.length && nodes.every((node, i) => node === childNodes[i])) return;
    const hadFocus = this.panel.contains(document.activeElement);
    this.panel.replaceChildren(...nodes);
    if (hadFocus) this.focusView();
  }

  /** Replaces the buttons of the view; the one at the place of the focused one gets the focus. */
  showControls(...nodes: (Node | null)[]): void {
    const buttons = () => [...this.controls.querySelectorAll("button")];
    const index = buttons().indexOf(document.activeElement as HTMLButtonElement);
    this.controls.replaceChildren(...nodes.filter((node) => node !== null));
    if (index >= 0) buttons()[index]?.focus();
  }

  /** Shows the text of the search, unless it is being typed. */
  showSearch(text: string): void {
    if (document.activeElement !== this.input) this.input.value = text;
  }

  private focusView(): void {
    (this.panel.querySelector("[tabindex='0']") as HTMLElement | null)?.focus();
  }

  private moveTab(event: KeyboardEvent, i: number): void {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    const next = (i + by + this.views.length) % this.views.length;
    this.options.open(this.views[next]);
    this.tabs[next].focus();
    event.preventDefault();
  }

  private turnTheme(): void {
    const { dataset } = document.documentElement;
    dataset.theme = dataset.theme === "dark" ? "light" : "dark";
    this.options.redraw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    if (event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement) {
      if (event.key !== "Escape" && event.key !== "Enter") return;
      if (event.key === "Escape" && event.target === this.input) this.options.search((this.input.value = ""));
      this.focusView();
      event.preventDefault();
      return;
    }
    const actions: Record<string, () => void> = {
      ...this.options.actions(),
      "/": () => this.input.select(),
      "?": () => this.help.showModal(),
      d: () => this.turnTheme(),
      Escape: () => this.options.escape(),
    };
    this.views.forEach((view, i) => (actions[`${i + 1}`] = () => this.options.open(view)));
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
  }
}

/** A button that is on or off. */
export function toggle(title: string, key: string, isOn: boolean, click: () => void, hint = title): HTMLElement {
  return el("button", { "aria-pressed": isOn, title: `${hint} (${key})`, click }, title);
}
