// What a reader selected, as the page's address has it.

import { ALL_ACTIVITIES } from "./calls.ts";

export const VIEWS = ["flame", "sandwich", "table", "source", "about"] as const;
export type View = (typeof VIEWS)[number];

export const GROUPS = ["none", "process", "thread"] as const;
export type Group = (typeof GROUPS)[number];

export interface State {
  view: View;
  /** The selected time, ns; all if absent. */
  range: [number, number] | null;
  /** The part of the time axis that is shown. */
  shown: [number, number] | null;
  threads: number[] | null;
  activities: number;
  inverted: boolean;
  /** What boxes below the outermost one are for; absent for its default. */
  group: Group | null;
  raw: boolean;
  userOnly: boolean;
  search: string;
  func: number | null;
  /** The functions from the outermost to the box that is enlarged. */
  zoom: number[];
  file: number | null;
  line: number | null;
  sort: string;
}

export function initial(raw: boolean): State {
  return {
    view: "flame",
    range: null,
    shown: null,
    threads: null,
    activities: ALL_ACTIVITIES,
    inverted: false,
    group: null,
    raw,
    userOnly: false,
    search: "",
    func: null,
    zoom: [],
    file: null,
    line: null,
    sort: "self",
  };
}

const numbers = (values: readonly number[] | null): string => (values ?? []).join(".");

export function toFragment(state: State, raw: boolean): string {
  const plain = initial(raw);
  const out = new URLSearchParams();
  if (state.view !== plain.view) out.set("view", state.view);
  if (state.range) out.set("range", numbers(state.range.map(Math.round)));
  if (state.shown) out.set("shown", numbers(state.shown.map(Math.round)));
  if (state.threads) out.set("threads", numbers(state.threads));
  if (state.activities !== plain.activities) out.set("activities", `${state.activities}`);
  if (state.inverted) out.set("inverted", "1");
  if (state.group) out.set("group", state.group);
  if (state.raw !== plain.raw) out.set("raw", state.raw ? "1" : "0");
  if (state.userOnly) out.set("user", "1");
  if (state.search) out.set("search", state.search);
  if (state.func !== null) out.set("function", `${state.func}`);
  if (state.zoom.length) out.set("zoom", numbers(state.zoom));
  if (state.file !== null) out.set("file", `${state.file}`);
  if (state.line !== null) out.set("line", `${state.line}`);
  if (state.sort !== plain.sort) out.set("sort", state.sort);
  return out.toString();
}

/** Reads a fragment; whatever is invalid is left out. */
export function fromFragment(
  fragment: string,
  raw: boolean,
  bounds: { functions: number; threads: number; files: number },
): State {
  const state = initial(raw);
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const list = (key: string): number[] | null => {
    const text = given.get(key);
    return text && /^-?\d+(\.-?\d+)*$/.test(text) ? text.split(".").map(Number) : null;
  };
  const one = (key: string, end: number): number | null => {
    const value = list(key);
    return value?.length === 1 && value[0] >= 0 && value[0] < end ? value[0] : null;
  };
  const span = (key: string): [number, number] | null => {
    const value = list(key);
    return value?.length === 2 && value[0] < value[1] ? [value[0], value[1]] : null;
  };
  state.view = VIEWS.find((view) => view === given.get("view")) ?? state.view;
  state.range = span("range");
  state.shown = span("shown");
  const threads = list("threads")?.filter((thread) => thread >= 0 && thread < bounds.threads);
  state.threads = threads?.length ? threads : null;
  state.activities = one("activities", ALL_ACTIVITIES + 1) || ALL_ACTIVITIES;
  state.inverted = given.get("inverted") === "1";
  state.group = GROUPS.find((group) => group === given.get("group")) ?? null;
  state.raw = given.has("raw") ? given.get("raw") === "1" : raw;
  state.userOnly = given.get("user") === "1";
  state.search = given.get("search") ?? "";
  state.func = one("function", bounds.functions);
  state.zoom = list("zoom") ?? [];
  state.file = one("file", bounds.files);
  state.line = one("line", 2 ** 32);
  state.sort = given.get("sort") ?? state.sort;
  return state;
}
