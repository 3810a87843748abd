// Sums of samples, checked against a naive model of random traces: every view has the same totals.

import assert from "node:assert/strict";
import { test } from "node:test";

import { addThread } from "./bins.ts";
import { callees, callers, graph, graphOfParts, layout, type Box } from "./boxes.ts";
import { ALL_ACTIVITIES, byFunction, byLine, callTree, weigh, type Selection } from "./calls.ts";
import { isNoise } from "./changes.ts";
import { amount, fit, instant, matcher, percent, ticks } from "./labels.ts";
import { fromFragment, initial, toFragment } from "./state.ts";
import { stacksOf, sums, unsigned, type FunctionInfo, type Trace } from "./trace.ts";

interface NaiveSample {
  time: number;
  thread: number;
  activity: number;
  weight: number;
  /** Frames from the outermost: function and line. */
  frames: [number, number][];
}

const PLUMBING = 4;
const USER = 2;
const HELPER = 8;
const FLAGS = [USER, 0, PLUMBING, USER, 0, PLUMBING];
const THREADS = 3;

function random(seed: number): (end: number) => number {
  return (end) => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * end);
  };
}

function samplesOf(seed: number): NaiveSample[] {
  const next = random(seed);
  const one = (i: number): NaiveSample => ({
    time: i * 10 + next(10),
    thread: next(THREADS),
    activity: next(4),
    weight: 1 + next(1000),
    frames: Array.from({ length: 1 + next(7) }, () => [next(FLAGS.length), 1 + next(3)]),
  });
  return Array.from({ length: 200 }, (_, i) => one(i));
}

/** The columns of a naive trace. */
function traceOf(all: NaiveSample[]): Trace {
  type Node = { children: Map<string, Node>; frame: number; row: number };
  const root: Node = { children: new Map(), frame: -1, row: -1 };
  const frames: [number, number][] = [];
  const frameIndex = new Map<string, number>();
  const leaf = all.map((sample) => {
    let at = root;
    for (const frame of sample.frames) {
      const key = frame.join();
      if (!frameIndex.has(key)) frameIndex.set(key, frames.push(frame) - 1);
      if (!at.children.has(key)) at.children.set(key, { children: new Map(), frame: frameIndex.get(key)!, row: -1 });
      at = at.children.get(key)!;
    }
    return at;
  });
  const [depth, frame]: [number[], number[]] = [[], []];
  const visit = (node: Node, level: number) => {
    for (const child of node.children.values()) {
      child.row = depth.push(level) - 1;
      frame.push(child.frame);
      visit(child, level + 1);
    }
  };
  visit(root, 0);
  const order = all.map((_, i) => i).sort((a, b) => all[a].thread - all[b].thread || all[a].time - all[b].time);
  const start = Array.from({ length: THREADS + 1 }, (_, thread) => order.filter((i) => all[i].thread < thread).length);
  const functions = FLAGS.map((flags, i) => ({ label: `f${i}`, flags, names: [`f${i}`] }) as FunctionInfo);
  return {
    header: { unit: "time", threads: Array(THREADS).fill({ label: "t", process: 0 }) } as unknown as Trace["header"],
    functions,
    frames: {
      func: Uint32Array.from(frames, ([func]) => func),
      file: Uint32Array.from(frames, () => 1),
      line: Uint32Array.from(frames, ([, line]) => line),
      facts: new Uint32Array(frames.length),
      address: [],
    },
    stacks: stacksOf(depth, Uint32Array.from(frame)),
    samples: {
      time: Float64Array.from(order, (i) => all[i].time),
      stack: Uint32Array.from(order, (i) => leaf[i].row),
      activity: Uint8Array.from(order, (i) => all[i].activity),
      weight: Float64Array.from(order, (i) => all[i].weight),
      count: new Float64Array(all.length).fill(1),
      thread: Uint32Array.from(order, (i) => all[i].thread),
      start: Uint32Array.from(start),
      activities: ALL_ACTIVITIES,
    },
    markers: {} as Trace["markers"],
    from: 0,
    to: 2000,
  };
}

const SELECTIONS: Selection[] = [
  { from: -Infinity, to: Infinity, threads: null, activities: ALL_ACTIVITIES },
  { from: 500, to: 1200, threads: null, activities: ALL_ACTIVITIES },
  { from: 505, to: 1995, threads: new Set([0, 2]), activities: 0b0011 },
  { from: 5000, to: 6000, threads: null, activities: ALL_ACTIVITIES },
];

const passes = (s: NaiveSample, { from, to, threads, activities }: Selection): boolean =>
  s.time >= from && s.time < to && (!threads || threads.has(s.thread)) && ((activities >> s.activity) & 1) === 1;

function each(check: (all: NaiveSample[], trace: Trace, selection: Selection) => void): void {
  for (let seed = 1; seed <= 20; seed++) {
    const all = samplesOf(seed);
    const trace = traceOf(all);
    for (const selection of SELECTIONS) check(all.filter((s) => passes(s, selection)), trace, selection);
  }
}

const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0);
const weightOf = (all: NaiveSample[], is: (s: NaiveSample) => boolean): number =>
  sum(all.filter(is).map((s) => s.weight));
const last = (s: NaiveSample): number => s.frames[s.frames.length - 1][0];

test("self and total of functions are those of their samples", () => {
  each((all, trace, selection) => {
    const tree = callTree(trace, "raw");
    const weights = weigh(trace, tree, selection);
    assert.equal(weights.whole, weightOf(all, () => true));
    assert.equal(weights.samples, all.length);
    const by = byFunction(tree, weights, FLAGS.length);
    for (let func = 0; func < FLAGS.length; func++) {
      assert.equal(by.self[func], weightOf(all, (s) => last(s) === func));
      assert.equal(by.total[func], weightOf(all, (s) => s.frames.some(([f]) => f === func)));
      const isCharged = (s: NaiveSample): boolean => {
        const users = s.frames.filter(([f]) => FLAGS[f] & USER);
        return users.length > 0 && users[users.length - 1][0] === func;
      };
      assert.equal(by.withFramework[func], weightOf(all, isCharged));
    }
  });
});

test("self and total of lines are those of their samples", () => {
  each((all, trace, selection) => {
    const lines = byLine(trace, 0, selection, true);
    for (const line of [1, 2, 3]) {
      const sums = lines.get(line) ?? { self: 0, total: 0 };
      assert.equal(sums.self, weightOf(all, (s) => s.frames[s.frames.length - 1][1] === line));
      assert.equal(sums.total, weightOf(all, (s) => s.frames.some(([, l]) => l === line)));
    }
  });
});

/** The weight of each path of functions, made of whole stacks. */
function paths(all: NaiveSample[], path: (s: NaiveSample) => number[]): Map<string, number> {
  const weights = new Map<string, number>();
  for (const sample of all) {
    const functions = path(sample);
    for (let length = 1; length <= functions.length; length++) {
      const key = functions.slice(0, length).join();
      weights.set(key, (weights.get(key) ?? 0) + sample.weight);
    }
  }
  return weights;
}

function checkBoxes(root: Box, expected: Map<string, number>): void {
  let count = 0;
  const visit = (box: Box, path: number[]) => {
    const children = box.children();
    assert.equal(box.total, box.self + sum(children.map((child) => child.total)));
    for (const child of children) {
      const at = [...path, child.func];
      assert.equal(child.total, expected.get(at.join()), at.join());
      count++;
      visit(child, at);
    }
  };
  visit(root, []);
  assert.equal(count, expected.size);
}

test("each box has the weight of the stacks below it", () => {
  each((all, trace, selection) => {
    const tree = callTree(trace, "raw");
    const weights = weigh(trace, tree, selection);
    const functions = (s: NaiveSample) => s.frames.map(([func]) => func);
    checkBoxes(graph(tree, weights, false), paths(all, functions));
    checkBoxes(graph(tree, weights, true), paths(all, (s) => functions(s).reverse()));
  });
});

test("folding leaves out plumbing that calls something, and keeps self times", () => {
  each((all, trace, selection) => {
    const tree = callTree(trace, "folded");
    const weights = weigh(trace, tree, selection);
    const functions = (s: NaiveSample) =>
      s.frames.map(([func]) => func).filter((func, i, all) => i + 1 === all.length || FLAGS[func] !== PLUMBING);
    checkBoxes(graph(tree, weights, false), paths(all, functions));
    const by = byFunction(tree, weights, FLAGS.length);
    for (let func = 0; func < FLAGS.length; func++) {
      assert.equal(by.self[func], weightOf(all, (s) => last(s) === func));
    }
  });
});

test("adjacent unnamed frames of one image are one box", () => {
  each((all, trace, selection) => {
    const unnamed = 1;
    trace.functions[unnamed] = { ...trace.functions[unnamed], kind: "unnamed" };
    const tree = callTree(trace, "folded");
    const weights = weigh(trace, tree, selection);
    const functions = (s: NaiveSample) => {
      const shown = s.frames.map(([func]) => func).filter((func, i, all) => i + 1 === all.length || FLAGS[func] !== PLUMBING);
      return shown.filter((func, i) => func !== unnamed || shown[i - 1] !== unnamed);
    };
    checkBoxes(graph(tree, weights, false), paths(all, functions));
  });
});

test("helpers are charged to their callers", () => {
  each((all, trace, selection) => {
    const helper = 4;
    trace.functions[helper] = { ...trace.functions[helper], flags: HELPER };
    const frames = (s: NaiveSample): [number, number][] => {
      let end = s.frames.length;
      while (end > 1 && s.frames[end - 1][0] === helper) end--;
      return s.frames.slice(0, end);
    };
    const charged = all.map((s) => ({ ...s, frames: frames(s) }));
    const tree = callTree(trace, "charged");
    const by = byFunction(tree, weigh(trace, tree, selection), FLAGS.length);
    for (let func = 0; func < FLAGS.length; func++) {
      assert.equal(by.self[func], weightOf(charged, (s) => last(s) === func));
      assert.equal(by.total[func], weightOf(charged, (s) => s.frames.some(([f]) => f === func)));
    }
    const lines = byLine(trace, 0, selection, false);
    for (const line of [1, 2, 3]) {
      const sums = lines.get(line) ?? { self: 0, total: 0 };
      assert.equal(sums.self, weightOf(charged, (s) => s.frames[s.frames.length - 1][1] === line));
      assert.equal(sums.total, weightOf(charged, (s) => s.frames.some(([, l]) => l === line)));
    }
  });
});

test("callers and callees are those of the outermost call", () => {
  each((all, trace, selection) => {
    const tree = callTree(trace, "raw");
    const weights = weigh(trace, tree, selection);
    for (let func = 0; func < FLAGS.length; func++) {
      const on = all.filter((s) => s.frames.some(([f]) => f === func));
      const functions = (s: NaiveSample) => s.frames.map(([f]) => f);
      const at = (s: NaiveSample) => functions(s).indexOf(func);
      const down = callees(tree, weights, func);
      const up = callers(tree, weights, func);
      assert.equal(down.total, weightOf(on, () => true));
      assert.equal(up.total, down.total);
      checkBoxes(down, paths(on, (s) => functions(s).slice(at(s) + 1)));
      checkBoxes(up, paths(on, (s) => functions(s).slice(0, at(s)).reverse()));
    }
  });
});

test("the boxes of threads have what the merged graph has", () => {
  each((all, trace, selection) => {
    const tree = callTree(trace, "folded");
    const threads = [0, 1, 2]
      .filter((thread) => !selection.threads || selection.threads.has(thread))
      .map((thread) => ({
        index: thread,
        label: `${thread}`,
        weights: weigh(trace, tree, { ...selection, threads: new Set([thread]) }),
      }));
    const root = graphOfParts(tree, threads, false);
    assert.equal(root.total, weightOf(all, () => true));
    for (const child of root.children()) {
      assert.equal(child.total, weightOf(all, (s) => `${s.thread}` === child.label));
    }
  });
});

test("boxes are placed within their callers, the widest first", () => {
  const trace = traceOf(samplesOf(7));
  const tree = callTree(trace, "raw");
  const root = graph(tree, weigh(trace, tree, SELECTIONS[0]), false);
  const placed = layout(root, 0);
  const places = new Map(placed.map((p) => [p.box, p]));
  for (const { box, depth, x, width } of placed) {
    if (!box.parent) continue;
    const parent = places.get(box.parent)!;
    assert.equal(depth, parent.depth + 1);
    assert.ok(x >= parent.x - 1e-9 && x + width <= parent.x + parent.width + 1e-9);
  }
  assert.ok(layout(root, 0.1).every(({ width }) => width >= 0.1));
  const zoomed = layout(root.children()[0], 0);
  assert.deepEqual([zoomed[0].box, zoomed[0].width, zoomed[1].depth], [root, 1, 1]);
});

test("pixels have the time of the samples in them", () => {
  const all = samplesOf(3);
  const trace = traceOf(all);
  const bins = new Float64Array(4 * 100);
  addThread(trace.samples, 0, [0, 4000], 100, true, bins);
  const expected = weightOf(all, (s) => s.thread === 0);
  assert.ok(Math.abs(sum([...bins]) - expected) < 1e-6);
  const counts = new Float64Array(4 * 7);
  addThread(trace.samples, 1, [500, 1200], 7, false, counts);
  const within = weightOf(all, (s) => s.thread === 1 && s.time >= 500 && s.time < 1200);
  assert.equal(sum([...counts]), within);
});

test("labels are the longest names that fit", () => {
  const names = ["Ns.Type.Method(int)", "Ns.Type.Method", "Type.Method", "Method"];
  const shown = (width: number) => fit(names, width, (text) => [...text].length);
  assert.deepEqual([19, 14, 11, 6, 5, 4, 3].map(shown), [...names, "Meth…", "Met…", ""]);
  assert.equal(fit([], 10, (text) => text.length), "");
  assert.equal(fit(["😀😀😀😀😀"], 4, (text) => [...text].length), "😀😀😀…");
});

test("numbers are rounded, never lengthened", () => {
  assert.deepEqual([0, 1, 999, 1500, 12_345_678, 1.25e9, 75e9].map((ns) => amount(ns, "time")), [
    "0 ns", "1 ns", "999 ns", "1.50 µs", "12.3 ms", "1.25 s", "1 min 15 s",
  ]);
  assert.deepEqual([amount(1, "samples"), amount(1234, "events"), amount(4096, "bytes")], ["1 sample", "1,234 events", "4.10 kB"]);
  assert.deepEqual([percent(1, 10_000), percent(1, 3), percent(3, 3), percent(0, 0)], ["<0.1 %", "33.3 %", "100 %", "0 %"]);
  assert.equal(instant(1_500_000_000), "1.5s");
  assert.deepEqual(ticks(0, 100, 5), [0, 20, 40, 60, 80, 100]);
});

test("searches are text or patterns", () => {
  assert.ok(matcher("work")!("Spin.Work") && !matcher("WORK")!("Spin.Work"));
  assert.ok(matcher("/^a.c$/")!("abc") && !matcher("a.c")!("abc"));
  assert.equal(matcher(""), null);
  assert.equal(matcher("/(/")!("("), false);
});

test("the address keeps what is selected, and invalid parts are left out", () => {
  const bounds = { functions: 10, threads: 4, files: 2 };
  const state = {
    ...initial(false),
    view: "sandwich" as const,
    range: [5, 99] as [number, number],
    threads: [1, 3],
    activities: 3,
    inverted: true,
    group: "thread" as const,
    raw: true,
    search: "a&b=c #/",
    func: 7,
    zoom: [3, -2, 1],
    file: 1,
    sort: "total",
  };
  assert.deepEqual(fromFragment(`#${toFragment(state, false)}`, false, bounds), state);
  assert.equal(toFragment(initial(true), true), "");
  const bad = "view=x&range=9.5&threads=77&activities=99&function=10&zoom=a&file=-1&line=1e9";
  assert.deepEqual(fromFragment(bad, false, bounds), initial(false));
});

test("columns have the least significant bytes first", () => {
  const bytes = Uint8Array.from([9, 0xd0, 2, 3, 0x07, 0, 0]);
  assert.deepEqual([...unsigned(bytes, 1, 3, 2)], [2000, 2, 3]);
  assert.deepEqual([...unsigned(bytes, 1, 2, 0)], [0, 0]);
});

test("differences are summed", () => {
  assert.deepEqual([...sums(Float64Array.from([2000, 2, 3]))], [1000, 1001, 999]);
});

test("shares within noise are marked as the text diff marks them", () => {
  // 2,000 samples each: three standard errors at 10 % are 3.0 points.
  assert.ok(isNoise([0.1, 0.128], [2000, 2000]));
  assert.ok(!isNoise([0.1, 0.132], [2000, 2000]));
  assert.ok(isNoise([0, 0.5], [0, 10]));
  assert.ok(!isNoise([0, 0.01], [20_000, 20_000]));
  const trace = traceOf(samplesOf(5));
  const equal = { ...trace, samples: { ...trace.samples, weight: trace.samples.weight.map(() => 7) } };
  const all: Selection = { from: -Infinity, to: Infinity, threads: null, activities: ALL_ACTIVITIES };
  const { size, samples } = weigh(equal, callTree(equal, "raw"), all);
  assert.ok(Math.abs(size - samples) < 1e-6);
});
