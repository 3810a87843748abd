// What changed between two traces: methods by label, as shares of each trace's selected samples.

import type { Model } from "./model.ts";
import { FunctionFlag, type FunctionInfo } from "./trace.ts";

export interface Change {
  label: string;
  info: FunctionInfo;
  /** The function in each trace; −1 if it is in none of its stacks. */
  funcs: [number, number];
  /** Shares from 0 to 1, before and after. */
  self: [number, number];
  total: [number, number];
  /** Whether both changes are within the noise of sampling. */
  noise: boolean;
}

/** Of 370 methods that did not change, one differs by more standard errors. */
const ERRORS = 3;

/**
 * Whether shares of so many samples differ by less than three standard errors, if both are of one
 * distribution (the test of two proportions). Samples are taken as independent.
 */
export function isNoise([before, after]: [number, number], [m, n]: [number, number]): boolean {
  if (m <= 0 || n <= 0) return true;
  const pooled = (before * m + after * n) / (m + n);
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / m + 1 / n));
  return Math.abs(after - before) < ERRORS * error;
}

/** Methods that are in the selection of one trace at least. */
export function changes(before: Model, after: Model): Change[] {
  const all = new Map<string, Change>();
  [before, after].forEach((model, side) => {
    const { self, total } = model.functionWeights;
    const whole = model.weights.whole || 1;
    model.trace.functions.forEach((info, func) => {
      if (!total[func]) return;
      let change = all.get(info.label);
      if (!change) {
        const { label } = info;
        all.set(label, (change = { label, info, funcs: [-1, -1], self: [0, 0], total: [0, 0], noise: false }));
      }
      change.funcs[side] = func;
      change.self[side] = self[func] / whole;
      change.total[side] = total[func] / whole;
    });
  });
  const sizes: [number, number] = [before.weights.size, after.weights.size];
  for (const change of all.values()) change.noise = isNoise(change.self, sizes) && isNoise(change.total, sizes);
  return [...all.values()];
}

export type ChangeOrder = "self" | "total";

/** Those that match: the largest change first, changes within noise last. */
export function sorted(
  all: Change[],
  order: ChangeOrder,
  matches: ((text: string) => boolean) | null,
  userOnly: boolean,
): Change[] {
  const by = (change: Change) => Math.abs(change[order][1] - change[order][0]);
  const isShown = ({ label, info }: Change) =>
    (!matches || matches(label) || matches(info.names[0])) &&
    (!userOnly || (info.flags & FunctionFlag.User) !== 0);
  return all.filter(isShown).sort((a, b) => +a.noise - +b.noise || by(b) - by(a) || (a.label < b.label ? -1 : 1));
}

/** Percentage points: `+1.2`. */
export function points([before, after]: [number, number]): string {
  const change = 100 * (after - before);
  return `${change < 0 ? "−" : "+"}${Math.abs(change).toFixed(1)}`;
}

/** How much a share changed, from −1 (gone) to 1 (new). */
export function degree([before, after]: [number, number]): number {
  return before || after ? (after - before) / Math.max(before, after) : 0;
}
