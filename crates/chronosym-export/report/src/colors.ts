// Colours: the family of a module gives the hue, own code stands out, and functions of one family
// differ in lightness so that neighbours can be told apart.

import { FunctionFlag, type FunctionInfo } from "./trace.ts";

export interface Family {
  name: string;
  hue: number;
  chroma: number;
}

const FAMILIES = {
  user: { name: "own code", hue: 62, chroma: 0.15 },
  system: { name: ".NET libraries", hue: 250, chroma: 0.075 },
  microsoft: { name: "Microsoft.*", hue: 205, chroma: 0.075 },
  runtime: { name: "runtime", hue: 310, chroma: 0.08 },
  native: { name: "native", hue: 145, chroma: 0.08 },
  kernel: { name: "kernel", hue: 25, chroma: 0.12 },
  stub: { name: "stubs", hue: 105, chroma: 0.08 },
  unnamed: { name: "unnamed", hue: 0, chroma: 0 },
} satisfies Record<string, Family>;

export type FamilyName = keyof typeof FAMILIES;

export function familyOf(f: FunctionInfo): FamilyName {
  if (f.flags & FunctionFlag.User) return "user";
  switch (f.kind) {
    case "runtime":
    case "native":
    case "kernel":
    case "stub":
    case "unnamed":
      return f.kind;
    default:
      return /^microsoft\./i.test(f.module) ? "microsoft" : "system";
  }
}

export const family = (name: FamilyName): Family => FAMILIES[name];

export function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return h >>> 0;
}

/** The colour of a family's boxes; `step` from 0 to 4 varies the lightness. */
export function shade(name: FamilyName, step: number, isDark: boolean, module = ""): string {
  const { hue, chroma } = FAMILIES[name];
  const turn = module ? (hash(module) % 25) - 12 : 0;
  const light = isDark ? 0.4 + 0.028 * step : 0.87 - 0.028 * step;
  const lift = name === "user" ? (isDark ? 0.1 : -0.03) : 0;
  return `oklch(${(light + lift).toFixed(3)} ${chroma} ${hue + turn})`;
}

/** The colours of functions, by index. */
export function palette(functions: FunctionInfo[], isDark: boolean): string[] {
  return functions.map((f) => shade(familyOf(f), hash(f.label) % 5, isDark, f.module));
}
