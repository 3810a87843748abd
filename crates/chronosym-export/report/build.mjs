// Bundles the script of reports: `node build.mjs DIST`, or with `tests` its tests.
import { build } from "esbuild";

const tests = process.argv[2] === "tests";
const out = process.argv[3] ?? (tests ? "dist-test" : "dist");
await build({
  entryPoints: tests ? ["src/arithmetic.test.ts"] : ["src/main.ts", "src/report.css"],
  entryNames: tests ? "[name]" : "report",
  bundle: true,
  minify: !tests,
  format: tests ? "esm" : "iife",
  target: tests ? "node20" : ["chrome103", "firefox113", "safari16.4"],
  platform: tests ? "node" : "browser",
  outdir: out,
  outExtension: tests ? { ".js": ".mjs" } : {},
  charset: "ascii",
  legalComments: "none",
  logLevel: "warning",
});
