// A trace and what is selected of it; sums are kept until the selection changes.

import { byFunction, callTree, weigh } from "./calls.ts";
import type { CallTree, FunctionWeights, Presentation, Selection, Weights } from "./calls.ts";
import { graph, graphOfParts, type Box } from "./boxes.ts";
import { matcher } from "./labels.ts";
import { initial, type Group, type State } from "./state.ts";
import type { Samples, Trace } from "./trace.ts";

export class Model {
  state: State;
  /** Makes the legend of colours. */
  legend: () => HTMLElement = () => document.createElement("ul");
  private listeners: ((changed: Set<keyof State>) => void)[] = [];
  private kept = new Map<string, { key: string; value: unknown }>();
  /** The sums of a server, and the times that they are of. */
  private sums: { times: string; samples: Samples } | null = null;

  private readonly loose: ReadonlySet<number>;

  constructor(readonly trace: Trace) {
    const { raw, threads, processes } = trace.header;
    this.state = initial(raw);
    const loose = threads.map(({ process }, thread) => (processes[process].unknown_runs ? thread : -1));
    this.loose = new Set(loose.filter((thread) => thread >= 0));
  }

  listen(listener: (changed: Set<keyof State>) => void): void {
    this.listeners.push(listener);
  }

  update(change: Partial<State>): void {
    const changed = new Set<keyof State>();
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (JSON.stringify(change[key]) !== JSON.stringify(this.state[key])) changed.add(key);
    }
    if (!changed.size) return;
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener(changed);
  }

  /** Takes all samples of some times, summed, instead of the merged ones of the page. */
  takeSums(range: State["range"], samples: Samples): void {
    this.sums = { times: `${range}`, samples };
    for (const listener of this.listeners) listener(new Set(["range"]));
  }

  /** Whether sums are those of all samples, rather than of merged ones. */
  get isExact(): boolean {
    return !this.trace.header.live || this.sums?.times === `${this.state.range}`;
  }

  /** The trace with the samples of the selected times. */
  get selected(): Trace {
    const { trace, sums } = this;
    return sums && this.isExact ? { ...trace, samples: sums.samples } : trace;
  }

  private keep<T>(name: string, key: string, make: () => T): T {
    const kept = this.kept.get(name);
    if (kept?.key === key) return kept.value as T;
    const value = make();
    this.kept.set(name, { key, value });
    return value;
  }

  get selection(): Selection {
    const { range, threads, activities } = this.state;
    return {
      from: range?.[0] ?? -Infinity,
      to: range?.[1] ?? Infinity,
      threads: threads && new Set(threads),
      activities,
      loose: this.loose,
    };
  }

  get selectionKey(): string {
    const { range, threads, activities } = this.state;
    return JSON.stringify([range, threads, activities, this.isExact]);
  }

  private treeOf(presentation: Presentation): CallTree {
    return this.keep(`tree.${presentation}`, "", () => callTree(this.trace, presentation));
  }

  private weightsOf(presentation: Presentation): Weights {
    return this.keep(`weights.${presentation}`, this.selectionKey, () =>
      weigh(this.selected, this.treeOf(presentation), this.selection),
    );
  }

  /** The tree of graphs. */
  get tree(): CallTree {
    return this.treeOf(this.state.raw ? "raw" : "folded");
  }

  get weights(): Weights {
    return this.weightsOf(this.state.raw ? "raw" : "folded");
  }

  /** By function: equal to `top` for the same filters, with `--raw` for raw frames. */
  get functionWeights(): FunctionWeights {
    const presentation = this.state.raw ? "raw" : "charged";
    const key = `${presentation} ${this.selectionKey}`;
    return this.keep("functions", key, () => {
      const [tree, weights] = [this.treeOf(presentation), this.weightsOf(presentation)];
      return byFunction(tree, weights, this.trace.functions.length);
    });
  }

  /** What the graph is divided into: threads of several processes are not mixed by default. */
  get group(): Group {
    return this.state.group ?? (this.trace.header.processes.length > 1 ? "process" : "none");
  }

  get graph(): Box {
    const { raw, inverted } = this.state;
    const key = JSON.stringify([this.selectionKey, raw, inverted, this.group]);
    return this.keep("graph", key, () => {
      if (this.group === "none") return graph(this.tree, this.weights, inverted);
      return graphOfParts(this.tree, this.parts(), inverted);
    });
  }

  /** The weights of each process or thread of the selection. */
  private parts(): { index: number; label: string; weights: Weights }[] {
    const { threads, processes } = this.trace.header;
    const isByThread = this.group === "thread";
    const { selection } = this;
    const labels = isByThread ? threads.map(({ label }) => label) : processes.map(({ label }) => label);
    const members = labels.map(() => new Set<number>());
    threads.forEach(({ process }, thread) => {
      if (!selection.threads || selection.threads.has(thread)) members[isByThread ? thread : process].add(thread);
    });
    return labels.flatMap((label, index) => {
      if (!members[index].size) return [];
      const weights = weigh(this.selected, this.tree, { ...selection, threads: members[index] });
      return weights.whole ? [{ index, label, weights }] : [];
    });
  }

  /** Whether each function matches the search; absent without one. */
  get matches(): Uint8Array | null {
    return this.keep("matches", this.state.search, () => {
      const match = matcher(this.state.search);
      if (!match) return null;
      const { functions } = this.trace;
      return Uint8Array.from(functions, (f) => (match(f.label) || match(f.names[0]) ? 1 : 0));
    });
  }

  /** The weight of stacks with a function that matches, each once. */
  get matching(): number {
    const { matches } = this;
    if (!matches) return 0;
    const [tree, weights] = [this.treeOf("raw"), this.weightsOf("raw")];
    let sum = 0;
    for (let row = 0; row < tree.func.length; ) {
      if (matches[tree.func[row]]) {
        sum += weights.total[row];
        row = tree.end[row];
      } else {
        row++;
      }
    }
    return sum;
  }
}
