// Text in boxes: the longest of a function's names that fits.

export type Measure = (text: string) => number;

/** The first of `names`, which get shorter, that fits; else the end of the last is cut. */
export function fit(names: readonly string[], width: number, measure: Measure): string {
  for (const name of names) if (measure(name) <= width) return name;
  const last = names[names.length - 1] ?? "";
  const chars = [...last];
  let [low, high] = [0, chars.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(chars.slice(0, middle).join("") + "…") <= width) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? "" : chars.slice(0, low).join("") + "…";
}

const count = new Intl.NumberFormat("en");

export type Unit = "time" | "samples" | "bytes" | "events";

/** A weight with its unit: `12.3 ms`, `1.2 MB`. */
export function amount(weight: number, unit: Unit): string {
  if (unit === "time") return duration(weight);
  if (unit === "bytes") return scaled(weight, ["B", "kB", "MB", "GB", "TB"]);
  return `${count.format(weight)} ${weight === 1 ? unit.slice(0, -1) : unit}`;
}

function scaled(value: number, units: string[]): string {
  let unit = 0;
  while (value >= 1000 && unit + 1 < units.length) (value /= 1000), unit++;
  return `${digits(value)} ${units[unit]}`;
}

function digits(value: number): string {
  if (value === 0) return "0";
  return value.toFixed(value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2);
}

/** Nanoseconds: `1.25 s`, `13.0 ms`. */
export function duration(ns: number): string {
  if (ns >= 60e9) return `${Math.floor(ns / 60e9)} min ${Math.round((ns % 60e9) / 1e9)} s`;
  if (ns >= 1e9) return `${digits(ns / 1e9)} s`;
  if (ns >= 1e6) return `${digits(ns / 1e6)} ms`;
  if (ns >= 1e3) return `${digits(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
}

/** A time since the trace began, as `--from` and `--to` accept it. */
export function instant(ns: number): string {
  return `${(ns / 1e9).toFixed(6).replace(/\.?0+$/, "")}s`;
}

export function percent(part: number, whole: number): string {
  if (!whole) return "0 %";
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.05) return "<0.1 %";
  return `${share.toFixed(share >= 99.95 ? 0 : 1)} %`;
}

/** Distances of ticks on a time axis: 1, 2 or 5 times a power of ten, at most `most` of them. */
export function ticks(from: number, to: number, most: number): number[] {
  const rough = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = [1, 2, 5, 10].map((n) => n * power).find((step) => step >= rough) ?? power * 10;
  const all: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) all.push(at);
  return all;
}

/** A pattern: text, compared without case if it is all lower case, or `/regular expression/`. */
export function matcher(search: string): ((text: string) => boolean) | null {
  if (!search) return null;
  const flags = search === search.toLowerCase() ? "i" : "";
  const isPattern = search.length > 2 && search.startsWith("/") && search.endsWith("/");
  try {
    const pattern = isPattern ? search.slice(1, -1) : search.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const regex = new RegExp(pattern, flags);
    return (text) => regex.test(text);
  } catch {
    return () => false;
  }
}
