// The data of a report: reads the columns that chronosym-export/src/report writes.

export const enum Activity {
  OnCpu = 0,
  Runnable = 1,
  Blocked = 2,
  Unknown = 3,
}

export const enum FunctionFlag {
  Approximate = 1,
  User = 2,
  Plumbing = 4,
  Helper = 8,
}

/** Label as `top` prints it, module from 1, kind, flags, namespace, type, method, arguments. */
type FunctionRow = [string, number, number, number, string, string, string, string];
/** Tier, evidence, certainty, reasons for no name and for no line (each from 1), flags. */
type FactsRow = [string, number, number, number, number, number];

export interface Header {
  version: number;
  name: string;
  summary: string[];
  diagnostics: string[];
  unit: "time" | "samples" | "bytes" | "events";
  duration: number;
  start_unix_ms: number | null;
  slice: number | null;
  /** The number of samples of a thread of which the first one is kept; 1 for all. */
  every: number;
  /** Whether the server of the page sums all samples of a selection. */
  live: boolean;
  cut_stacks: number;
  weight_until_next: boolean;
  raw: boolean;
  modules: string[];
  kinds: string[];
  processes: { label: string; runtimes: string[]; command_line: string | null; unknown_runs: boolean }[];
  threads: { label: string; process: number }[];
  functions: FunctionRow[];
  files: string[];
  sources: Record<string, { text: string; from: string }>;
  /** By file: line, called method, and why it was not inlined; absent if it was. */
  calls: Record<string, [number, string, string | null][]>;
  facts: FactsRow[];
  evidence: [string, string][];
  certainty: string[];
  name_reasons: [string, string, string][];
  line_reasons: [string, string, string][];
  marker_kinds: string[];
  marker_texts: string[];
  columns: { name: string; count: number; bytes: number }[];
}

export interface FunctionInfo {
  label: string;
  module: string;
  kind: string;
  flags: number;
  namespace: string;
  type: string;
  method: string;
  args: string;
  /** Ever shorter ways to write it. */
  names: string[];
}

/** Frames by column; addresses are those of one of the frames that were merged. */
export interface Frames {
  func: Uint32Array;
  file: Uint32Array;
  line: Uint32Array;
  facts: Uint32Array;
  address: bigint[];
}

/** Distinct stacks in preorder: each row is a frame called by the nearest row above of less depth. */
export interface Stacks {
  frame: Uint32Array;
  /** The caller's row; −1 for outermost frames. */
  parent: Int32Array;
  depth: Uint32Array;
}

/** Samples by thread and time. */
export interface Samples {
  time: Float64Array;
  stack: Uint32Array;
  activity: Uint8Array;
  weight: Float64Array;
  count: Float64Array;
  thread: Uint32Array;
  /** The first sample of each thread, and the number of all. */
  start: Uint32Array;
  /** The activities that occur, as bits. */
  activities: number;
}

export interface Markers {
  kind: Uint8Array;
  start: Float64Array;
  /** ns; negative if the end is unknown. */
  length: Float64Array;
  /** From 1; 0 for one without samples. */
  thread: Uint32Array;
  text: Uint32Array;
  /** How many markers it is; the text is that of the first. */
  count: Float64Array;
}

export interface Trace {
  header: Header;
  functions: FunctionInfo[];
  frames: Frames;
  stacks: Stacks;
  samples: Samples;
  markers: Markers;
  /** The times of samples and markers, ns. */
  from: number;
  to: number;
}

/** Inflates the text of a data element. */
export async function inflate(base64: string): Promise<Uint8Array> {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Reads a column of numbers: the least significant bytes of all come first, then the next ones.
 * Numbers above 2^53 lose their last digits.
 */
export function unsigned(bytes: Uint8Array, at: number, count: number, width: number): Float64Array {
  const out = new Float64Array(count);
  let scale = 1;
  for (let byte = 0; byte < width; byte++) {
    for (let i = 0; i < count; i++) out[i] += bytes[at++] * scale;
    scale *= 256;
  }
  return out;
}

// Whole numbers of 32 bits are faster.
const signed = (value: number): number =>
  value < 0x80000000 ? (value >>> 1) ^ -(value & 1) : value % 2 ? -(value + 1) / 2 : value / 2;

/** Sums of zigzag differences. */
export function sums(values: Float64Array): Float64Array {
  let last = 0;
  for (let i = 0; i < values.length; i++) values[i] = last += signed(values[i]);
  return values;
}

type Column = (name: string) => Float64Array;

/** Reads the length of the header in four bytes, the header, the columns. */
function table<H extends Pick<Header, "columns">>(bytes: Uint8Array): [H, Column] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = view.getUint32(0, true);
  const header: H = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const columns = new Map<string, Float64Array>();
  let at = 4 + length;
  for (const { name, count, bytes: width } of header.columns) {
    columns.set(name, unsigned(bytes, at, count, width));
    at += count * width;
  }
  return [header, (name) => columns.get(name) ?? new Float64Array(0)];
}

/** Reads sums of samples, which a server sends in the form of samples. */
export function parseSums(bytes: Uint8Array, threads: number): Samples {
  const [header, column] = table<Pick<Header, "columns" | "weight_until_next">>(bytes);
  return samplesOf(header.weight_until_next, threads, column);
}

export function parse(bytes: Uint8Array): Trace {
  const [header, column] = table<Header>(bytes);
  const functions = header.functions.map((row): FunctionInfo => {
    const [label, module, kind, flags, namespace, type, method, args] = row;
    const inType = type ? `${type}.${method}` : method;
    const approximate = flags & FunctionFlag.Approximate ? "~" : "";
    // The type tells constructors apart.
    const least = method === "ctor" || method === "cctor" ? inType : method;
    const names = [namespace + inType + args, namespace + inType, inType + args, inType, least];
    return {
      label,
      module: module ? header.modules[module - 1] : "",
      kind: header.kinds[kind],
      flags,
      namespace,
      type,
      method,
      args,
      names: [...new Set(names)].map((name) => approximate + name),
    };
  });
  const high = column("frame.address.high");
  const low = column("frame.address.low");
  const frames: Frames = {
    func: Uint32Array.from(column("frame.function")),
    file: Uint32Array.from(column("frame.file")),
    line: Uint32Array.from(column("frame.line")),
    facts: Uint32Array.from(column("frame.facts")),
    address: Array.from(high, (half, i) => (BigInt(half) << 32n) | BigInt(low[i])),
  };
  const stacks = stacksOf(sums(column("stack.depth")), Uint32Array.from(column("stack.frame")));
  const samples = samplesOf(header.weight_until_next, header.threads.length, column);
  const markers: Markers = {
    kind: Uint8Array.from(column("marker.kind")),
    start: sums(column("marker.start")),
    length: column("marker.length").map((length) => length - 1),
    thread: Uint32Array.from(column("marker.thread")),
    text: Uint32Array.from(column("marker.text")),
    count: column("marker.count"),
  };
  let [from, to] = [Infinity, 0];
  for (let i = 0; i < samples.time.length; i++) {
    const end = samples.time[i] + (header.unit === "time" ? samples.weight[i] : 1);
    if (samples.time[i] < from) from = samples.time[i];
    if (end > to) to = end;
  }
  if (from === Infinity) [from, to] = [0, Math.max(header.duration, 1)];
  return { header, functions, frames, stacks, samples, markers, from, to };
}

export function stacksOf(depth: ArrayLike<number>, frame: Uint32Array): Stacks {
  const parent = new Int32Array(frame.length);
  const path: number[] = [];
  for (let i = 0; i < frame.length; i++) {
    parent[i] = depth[i] > 0 ? path[depth[i] - 1] : -1;
    path[depth[i]] = i;
  }
  return { frame, parent, depth: Uint32Array.from(depth) };
}

/** Reads samples by time, and sorts them by thread. */
function samplesOf(isUntilNext: boolean, threads: number, column: Column): Samples {
  const numbers = column("sample.thread");
  const size = numbers.length;
  const order = new Uint32Array(size);
  const start = new Uint32Array(threads + 1);
  const follower = new Int32Array(threads);
  for (let i = 0, before = -1; i < size; i++) {
    const thread = numbers[i] ? numbers[i] - 1 : follower[before];
    if (before >= 0) follower[before] = thread;
    order[i] = before = thread;
    start[thread + 1]++;
  }
  for (let i = 0; i < threads; i++) start[i + 1] += start[i];
  const samples: Samples = {
    time: new Float64Array(size),
    stack: new Uint32Array(size),
    activity: new Uint8Array(size),
    weight: new Float64Array(size),
    count: new Float64Array(size),
    thread: new Uint32Array(size),
    start,
    activities: 0,
  };
  const [times, stacks] = [column("sample.time"), column("sample.stack")];
  const [activities, counts] = [column("sample.activity"), column("sample.count")];
  const weights = column("sample.weight");
  const next = start.slice();
  const stack = new Float64Array(threads);
  for (let i = 0, time = 0, weight = 0; i < size; i++) {
    const thread = order[i];
    const place = next[thread]++;
    samples.time[place] = time += signed(times[i]);
    samples.stack[place] = stack[thread] += signed(stacks[i]);
    samples.activity[place] = activities[i];
    samples.activities |= 1 << activities[i];
    samples.count[place] = counts[i];
    samples.thread[place] = thread;
    weight = signed(weights[i]) + (isUntilNext ? 0 : weight);
    samples.weight[place] = weight;
  }
  for (let thread = 0; isUntilNext && thread < threads; thread++) {
    for (let i = start[thread]; i + 1 < start[thread + 1]; i++) {
      samples.weight[i] += samples.time[i + 1] - samples.time[i];
    }
  }
  return samples;
}
