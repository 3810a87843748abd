// The tree of functions that flame graphs show, and sums of samples over it.

import { FunctionFlag, type Samples, type Trace } from "./trace.ts";

/** Calls between functions in preorder. */
export interface CallTree {
  func: Uint32Array;
  /** The caller's row; −1 for outermost functions. */
  parent: Int32Array;
  /** The row after the last one below each. */
  end: Uint32Array;
  /** 1 where no caller is the same function: there its time counts for the total. */
  outermost: Uint8Array;
  /** The nearest row of user code, itself or a caller; −1 if there is none. */
  user: Int32Array;
  /** For each stack its row. */
  of: Uint32Array;
}

/** What samples count. */
export interface Selection {
  from: number;
  to: number;
  /** The threads; all if absent. */
  threads: ReadonlySet<number> | null;
  /** Bits by activity. */
  activities: number;
  /** Threads whose samples of unknown activity count as running: their runtime's flag is unreliable. */
  loose?: ReadonlySet<number>;
}

export const ALL_ACTIVITIES = 15;
export const RUNNING = 0b0011;
const UNKNOWN = 0b1000;

/**
 * How frames are presented: as recorded; with the time of the runtime's helpers charged to their
 * callers, as `top` does; or also without plumbing of async methods that calls something, and with
 * adjacent unnamed frames of one image as one. Where plumbing is innermost it stays, so that self
 * times do not change.
 */
export type Presentation = "raw" | "charged" | "folded";

/** Merges stacks whose functions are equal. */
export function callTree(trace: Trace, presentation: Presentation): CallTree {
  const { stacks, frames, functions } = trace;
  const size = stacks.frame.length;
  const isFolded = presentation === "folded";
  const isCharged = presentation !== "raw";
  const plumbing = functions.map((f) => isFolded && (f.flags & FunctionFlag.Plumbing) !== 0);
  const helper = functions.map((f) => isCharged && (f.flags & FunctionFlag.Helper) !== 0);
  // The row that callees of each stack are below, and the row of its own samples.
  const below = new Int32Array(size);
  const own = new Int32Array(size);
  const isChargedTo = (i: number) => helper[frames.func[stacks.frame[i]]] && stacks.parent[i] >= 0;
  const rows = new Rows(size);
  for (let i = 0; i < size; i++) {
    const func = frames.func[stacks.frame[i]];
    const caller = stacks.parent[i] < 0 ? -1 : below[stacks.parent[i]];
    if (plumbing[func]) {
      below[i] = caller;
      own[i] = rows.child(caller, func);
    } else if (isFolded && caller >= 0 && rows.func[caller] === func && functions[func].kind === "unnamed") {
      below[i] = own[i] = caller;
    } else {
      below[i] = own[i] = rows.child(caller, func);
    }
    if (isChargedTo(i)) own[i] = own[stacks.parent[i]];
  }
  return inPreorder(rows, own, functions.map((f) => (f.flags & FunctionFlag.User) !== 0));
}

/** Rows by caller and function: a hash table with open addresses. */
class Rows {
  func: Uint32Array;
  parent: Int32Array;
  count = 0;
  private slots: Int32Array;
  private mask: number;

  constructor(size: number) {
    let slots = 16;
    while (slots < 2 * size) slots *= 2;
    this.slots = new Int32Array(slots).fill(-1);
    this.mask = slots - 1;
    this.func = new Uint32Array(size);
    this.parent = new Int32Array(size);
  }

  child(parent: number, func: number): number {
    let hash = Math.imul(parent + 1, 0x9e3779b1) ^ Math.imul(func, 0x85ebca6b);
    hash ^= hash >>> 15;
    for (let slot = hash & this.mask; ; slot = (slot + 1) & this.mask) {
      const row = this.slots[slot];
      if (row < 0) {
        this.slots[slot] = this.count;
        this.func[this.count] = func;
        this.parent[this.count] = parent;
        return this.count++;
      }
      if (this.parent[row] === parent && this.func[row] === func) return row;
    }
  }
}

function inPreorder(rows: Rows, own: Int32Array, isUser: boolean[]): CallTree {
  const count = rows.count;
  const sizes = new Uint32Array(count).fill(1);
  // Callers come before callees.
  for (let i = count - 1; i >= 0; i--) if (rows.parent[i] >= 0) sizes[rows.parent[i]] += sizes[i];
  const place = new Uint32Array(count);
  const next = new Uint32Array(count);
  let root = 0;
  for (let i = 0; i < count; i++) {
    const parent = rows.parent[i];
    if (parent < 0) {
      place[i] = root;
      root += sizes[i];
    } else {
      place[i] = next[parent];
      next[parent] += sizes[i];
    }
    next[i] = place[i] + 1;
  }
  const tree: CallTree = {
    func: new Uint32Array(count),
    parent: new Int32Array(count),
    end: new Uint32Array(count),
    outermost: new Uint8Array(count),
    user: new Int32Array(count),
    of: Uint32Array.from(own, (row) => place[row]),
  };
  for (let i = 0; i < count; i++) {
    tree.func[place[i]] = rows.func[i];
    tree.parent[place[i]] = rows.parent[i] < 0 ? -1 : place[rows.parent[i]];
    tree.end[place[i]] = place[i] + sizes[i];
  }
  // The number of rows of each function on the path.
  const onPath = new Uint32Array(isUser.length);
  const path: number[] = [];
  for (let i = 0; i < count; i++) {
    while (path.length && tree.end[path[path.length - 1]] <= i) onPath[tree.func[path.pop()!]]--;
    const func = tree.func[i];
    tree.outermost[i] = onPath[func] ? 0 : 1;
    tree.user[i] = isUser[func] ? i : tree.parent[i] < 0 ? -1 : tree.user[tree.parent[i]];
    onPath[func]++;
    path.push(i);
  }
  return tree;
}

/** The first sample of `samples` in [from, to) that is not before `time`. */
export function lowerBound(times: Float64Array, from: number, to: number, time: number): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (times[middle] < time) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** Calls `each` with the samples of a selection. A sample belongs to the time when it was taken. */
export function forEachSample(
  samples: Samples,
  selection: Selection,
  each: (sample: number) => void,
): void {
  for (let thread = 0; thread + 1 < samples.start.length; thread++) {
    if (selection.threads && !selection.threads.has(thread)) continue;
    const [start, end] = [samples.start[thread], samples.start[thread + 1]];
    const isLoose = selection.activities === RUNNING && selection.loose?.has(thread);
    const activities = isLoose ? RUNNING | UNKNOWN : selection.activities;
    const first = lowerBound(samples.time, start, end, selection.from);
    const last = lowerBound(samples.time, first, end, selection.to);
    for (let i = first; i < last; i++) {
      if ((activities >> samples.activity[i]) & 1) each(i);
    }
  }
}

/** Weights by row of a tree. */
export interface Weights {
  self: Float64Array;
  /** With callees. */
  total: Float64Array;
  whole: number;
  samples: number;
  /** The number of samples of equal weight that state a share as exactly: (Σw)² / Σw² (Kish). */
  size: number;
}

export function weigh(trace: Trace, tree: CallTree, selection: Selection): Weights {
  const { samples } = trace;
  const self = new Float64Array(tree.func.length);
  let [whole, count, squares] = [0, 0, 0];
  forEachSample(samples, selection, (i) => {
    self[tree.of[samples.stack[i]]] += samples.weight[i];
    whole += samples.weight[i];
    count += samples.count[i];
    // Merged samples have nearly one weight.
    squares += samples.weight[i] ** 2 / samples.count[i];
  });
  const total = self.slice();
  for (let i = total.length - 1; i >= 0; i--) {
    if (tree.parent[i] >= 0) total[tree.parent[i]] += total[i];
  }
  return { self, total, whole, samples: count, size: squares ? whole ** 2 / squares : 0 };
}

/** Weights by function. */
export interface FunctionWeights {
  self: Float64Array;
  /** Each sample once, however often the function is on its stack. */
  total: Float64Array;
  /** Of user code: its own time and that of other code that it calls, up to the next user code. */
  withFramework: Float64Array;
}

export function byFunction(tree: CallTree, weights: Weights, functions: number): FunctionWeights {
  const self = new Float64Array(functions);
  const total = new Float64Array(functions);
  const withFramework = new Float64Array(functions);
  for (let i = 0; i < tree.func.length; i++) {
    const func = tree.func[i];
    self[func] += weights.self[i];
    if (tree.outermost[i]) total[func] += weights.total[i];
    if (tree.user[i] >= 0) withFramework[tree.func[tree.user[i]]] += weights.self[i];
  }
  return { self, total, withFramework };
}

/** Self and total by line of one file; helpers are charged to their callers unless `raw`. */
export function byLine(
  trace: Trace,
  file: number,
  selection: Selection,
  raw: boolean,
): Map<number, { self: number; total: number }> {
  const { stacks, frames, samples } = trace;
  const size = stacks.frame.length;
  const self = new Float64Array(size);
  forEachSample(samples, selection, (i) => {
    self[samples.stack[i]] += samples.weight[i];
  });
  for (let i = size - 1; !raw && i >= 0; i--) {
    const isHelper = trace.functions[frames.func[stacks.frame[i]]].flags & FunctionFlag.Helper;
    if (!isHelper || stacks.parent[i] < 0) continue;
    self[stacks.parent[i]] += self[i];
    self[i] = 0;
  }
  const total = self.slice();
  for (let i = size - 1; i >= 0; i--) {
    if (stacks.parent[i] >= 0) total[stacks.parent[i]] += total[i];
  }
  const lines = new Map<number, { self: number; total: number }>();
  const onPath = new Map<number, number>();
  const path: number[] = [];
  const lineOf = (stack: number): number => {
    const frame = stacks.frame[stack];
    return frames.file[frame] === file + 1 ? frames.line[frame] : 0;
  };
  for (let i = 0; i < size; i++) {
    while (path.length > stacks.depth[i]) {
      const line = lineOf(path.pop()!);
      if (line) onPath.set(line, onPath.get(line)! - 1);
    }
    path.push(i);
    const line = lineOf(i);
    if (!line) continue;
    const before = onPath.get(line) ?? 0;
    onPath.set(line, before + 1);
    if (!total[i]) continue;
    const sum = lines.get(line) ?? { self: 0, total: 0 };
    sum.self += self[i];
    if (!before) sum.total += total[i];
    lines.set(line, sum);
  }
  return lines;
}
