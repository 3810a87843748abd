// Uses a served report whose page has merged samples, and prints what was seen as JSON.
// node live.mjs PLAYWRIGHT URL TARGET
import { createRequire } from "node:module";

const [library, url, target] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const seen = { requests: [], errors: [] };
page.on("request", (request) => seen.requests.push(request.url().replace(url, "")));
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
const exact = async () => {
  await page.waitForFunction(() => window.report?.model.isExact);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
};
const update = async (change) => {
  await page.evaluate((change) => report.page.model.update(change), change);
  await exact();
};
const table = () => page.evaluate(() => report.page.table.shown);

await page.goto(`${url}#raw=1`);
await exact();
seen.merged = await page.evaluate(() => report.model.trace.samples.time.length);
seen.all = await table();
seen.status = await page.textContent(".status");

// A range that is dragged over the time axis.
const plot = await page.locator(".plot").boundingBox();
await page.mouse.move(plot.x + plot.width * 0.3, plot.y + 30);
await page.mouse.down();
for (const part of [0.35, 0.4, 0.5, 0.6]) await page.mouse.move(plot.x + plot.width * part, plot.y + 30);
await page.mouse.up();
await exact();
seen.range = await page.evaluate(() => report.model.state.range);
seen.table = await table();
seen.graph = await page.evaluate(() => report.model.graph.total);
const func = await page.evaluate((target) => report.model.trace.functions.findIndex((f) => f.label === target), target);
await update({ func, view: "sandwich" });
seen.callees = await page.evaluate(() => report.page.callees.boxes[0].total);
await update({ view: "source" });
seen.lines = await page.evaluate(() =>
  report.model.trace.header.files.map((file, i) => {
    report.page.model.update({ file: i });
    return [file, [...report.page.source.weights].map(([line, { self, total }]) => [line, self, total])];
  }),
);

// Filters of the range.
await update({ activities: 0b0011 });
seen.running = await table();
const thread = 1;
seen.tid = await page.evaluate((thread) => report.model.trace.header.threads[thread].label.match(/\((\d+)\)$/)[1], thread);
await update({ activities: 15, threads: [thread] });
seen.thread = await table();

// The address has the range; its figures are requested at once.
const address = page.url();
await page.goto("about:blank");
await page.goto(address);
await exact();
seen.again = await table();

// A server that does not answer is reported, and the figures are called approximate.
await page.route("**/query*", (route) => route.abort());
const [from, to] = seen.range;
await page.evaluate((range) => report.page.model.update({ range }), [from + 1, to]);
await page.waitForFunction(() => document.querySelector(".status").textContent.startsWith("approximate (no answer)"));
seen.failure = await page.textContent(".status");
await browser.close();
console.log(JSON.stringify(seen));
