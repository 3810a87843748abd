// Boxes of flame graphs. Their children are made when they are looked at, so that a graph costs what
// it shows.

import type { CallTree, Weights } from "./calls.ts";

export interface Box {
  /** An index of functions; −1 for the box of all, less for other groups. */
  func: number;
  self: number;
  total: number;
  parent: Box | null;
  /** What it is called if it is no function. */
  label?: string;
  children(): Box[];
}

/** A box that is the sum of rows of a tree, with callees below it. */
class Callees implements Box {
  self = 0;
  total = 0;
  private made: Box[] | null = null;

  constructor(
    readonly func: number,
    readonly parent: Box | null,
    private readonly tree: CallTree,
    private readonly weights: Weights,
    private readonly rows: number[],
  ) {
    for (const row of rows) {
      this.self += weights.self[row];
      this.total += weights.total[row];
    }
  }

  children(): Box[] {
    if (this.made) return this.made;
    const { tree, weights } = this;
    const rows = new Map<number, number[]>();
    for (const row of this.rows) {
      for (let child = row + 1; child < tree.end[row]; child = tree.end[child]) {
        if (weights.total[child] > 0) addTo(rows, tree.func[child], child);
      }
    }
    const box = ([func, of]: [number, number[]]) => new Callees(func, this, tree, weights, of);
    return (this.made = sorted([...rows].map(box)));
  }
}

/** A box that stands for calls of its parent: the weight is that of the calls' stacks. */
class Callers implements Box {
  self = 0;
  total = 0;
  private made: Box[] | null = null;

  constructor(
    readonly func: number,
    readonly parent: Box | null,
    private readonly tree: CallTree,
    /** The row of this function in each of the stacks, and the weight of that stack. */
    private readonly rows: number[],
    private readonly shares: number[],
  ) {
    for (let i = 0; i < rows.length; i++) {
      this.total += shares[i];
      if (tree.parent[rows[i]] < 0) this.self += shares[i];
    }
  }

  children(): Box[] {
    if (this.made) return this.made;
    const { tree } = this;
    const groups = new Map<number, [number[], number[]]>();
    this.rows.forEach((row, i) => {
      const caller = tree.parent[row];
      if (caller < 0) return;
      const func = tree.func[caller];
      let group = groups.get(func);
      if (!group) groups.set(func, (group = [[], []]));
      group[0].push(caller);
      group[1].push(this.shares[i]);
    });
    const box = ([func, [rows, shares]]: [number, [number[], number[]]]) =>
      new Callers(func, this, tree, rows, shares);
    return (this.made = sorted([...groups].map(box)));
  }
}

/** A box of other boxes. */
class Group implements Box {
  self = 0;
  total = 0;
  private readonly made: Box[];

  constructor(
    readonly func: number,
    readonly label: string,
    children: (parent: Box) => Box[],
    readonly parent: Box | null = null,
  ) {
    this.made = sorted(children(this));
    for (const child of this.made) this.total += child.total;
  }

  children(): Box[] {
    return this.made;
  }
}

function addTo(map: Map<number, number[]>, key: number, value: number): void {
  const values = map.get(key);
  if (values) values.push(value);
  else map.set(key, [value]);
}

function sorted(boxes: Box[]): Box[] {
  return boxes.sort((a, b) => b.total - a.total || a.func - b.func);
}

const ROOT = -1;
const GROUP = -2;

function roots(tree: CallTree, weights: Weights, parent: Box): Box[] {
  const rows = new Map<number, number[]>();
  for (let row = 0; row < tree.func.length; row = tree.end[row]) {
    if (weights.total[row] > 0) addTo(rows, tree.func[row], row);
  }
  return [...rows].map(([func, of]) => new Callees(func, parent, tree, weights, of));
}

function leaves(tree: CallTree, weights: Weights, parent: Box): Box[] {
  const rows = new Map<number, number[]>();
  for (let row = 0; row < tree.func.length; row++) {
    if (weights.self[row] > 0) addTo(rows, tree.func[row], row);
  }
  return [...rows].map(
    ([func, of]) => new Callers(func, parent, tree, of, of.map((row) => weights.self[row])),
  );
}

/** All samples: callers above callees, or inverted. */
export function graph(tree: CallTree, weights: Weights, inverted: boolean): Box {
  const children = inverted ? leaves : roots;
  return new Group(ROOT, "all", (parent) => children(tree, weights, parent));
}

/** As `graph`, with a box for each part, such as a thread. */
export function graphOfParts(
  tree: CallTree,
  parts: { index: number; label: string; weights: Weights }[],
  inverted: boolean,
): Box {
  const children = inverted ? leaves : roots;
  return new Group(ROOT, "all", (all) =>
    parts.map(
      ({ index, label, weights }) =>
        new Group(GROUP - index, label, (parent) => children(tree, weights, parent), all),
    ),
  );
}

/** What a function calls. */
export function callees(tree: CallTree, weights: Weights, func: number): Box {
  const rows: number[] = [];
  for (let row = 0; row < tree.func.length; row++) {
    if (tree.func[row] === func && tree.outermost[row]) rows.push(row);
  }
  return new Callees(func, null, tree, weights, rows);
}

/** Who calls a function. */
export function callers(tree: CallTree, weights: Weights, func: number): Box {
  const rows: number[] = [];
  for (let row = 0; row < tree.func.length; row++) {
    const counts = tree.func[row] === func && tree.outermost[row] && weights.total[row] > 0;
    if (counts) rows.push(row);
  }
  return new Callers(func, null, tree, rows, rows.map((row) => weights.total[row]));
}

/** A box with its place: depth from the top, left edge and width as shares of the whole. */
export interface Placed {
  box: Box;
  depth: number;
  x: number;
  width: number;
}

/**
 * Places the boxes below `root`, which fills the width, as far as they are at least `least` wide;
 * the callers of `root` are above it.
 */
export function layout(root: Box, least: number): Placed[] {
  const placed: Placed[] = [];
  const above: Box[] = [];
  for (let box = root.parent; box; box = box.parent) above.unshift(box);
  above.forEach((box, depth) => placed.push({ box, depth, x: 0, width: 1 }));
  const work: Placed[] = [{ box: root, depth: above.length, x: 0, width: 1 }];
  const whole = root.total || 1;
  for (let next = work.pop(); next; next = work.pop()) {
    placed.push(next);
    let x = next.x;
    const below: Placed[] = [];
    for (const box of next.box.children()) {
      const width = box.total / whole;
      if (width < least) break;
      below.push({ box, depth: next.depth + 1, x, width });
      x += width;
    }
    // The heaviest is placed first.
    work.push(...below.reverse());
  }
  return placed;
}
