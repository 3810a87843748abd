// Uses a report of two traces as a reader would, and prints what was seen as JSON.
// node diff.mjs PLAYWRIGHT REPORT TARGET [SCREENSHOTS]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, file, target, pictures] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
const seen = { requests: [], errors: [] };
page.on("request", (request) => {
  if (!/^(file|blob|data):/.test(request.url())) seen.requests.push(request.url());
});
page.on("pageerror", (error) => seen.errors.push(error.message));
const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settle();
};
const picture = async (name) => pictures && (await page.screenshot({ path: `${pictures}/diff-${name}.png` }));
await page.goto(pathToFileURL(file).href);
await page.waitForFunction(() => window.report);
await settle();
await picture("changes");
seen.noise = await page.evaluate(() => report.page.shown.map(({ label, noise }) => [label, noise]));
seen.words = await page.evaluate(() => document.querySelector(".rows").textContent);
const shown = () => page.evaluate(() => report.page.shown.map(({ label, self, total }) => [label, self, total]));
seen.changes = await shown();
seen.amounts = await page.evaluate(() =>
  report.page.models.map((model) => {
    const { self } = model.functionWeights;
    return [model.weights.whole, model.trace.functions.map((f, i) => [f.label, self[i]])];
  }),
);
await page.fill("input[type=search]", "Spin.");
await settle();
seen.matching = (await shown()).length;
await press("Escape");
seen.all = (await shown()).length;
await press("2");
await picture("graphs");
// A click in one graph enlarges the method in both.
const box = await page.evaluate((target) => report.page.flames[0].boxes.find((box) => box.label === target), target);
const at = await page.locator(".side .flame").first().boundingBox();
await page.mouse.click(at.x + box.x + box.width / 2, at.y + box.y);
await settle();
seen.zooms = await page.evaluate(() => report.page.models.map((model) => model.state.zoom.map((func) => model.trace.functions[func]?.label)));
seen.selected = await page.textContent(".details h2");
await picture("zoomed");
await press("Escape");
// A time of one side changes its shares.
const plot = await page.locator(".plot").first().boundingBox();
await page.mouse.move(plot.x + plot.width * 0.5, plot.y + 30);
await page.mouse.down();
await page.mouse.move(plot.x + plot.width * 0.6, plot.y + 30);
await page.mouse.move(plot.x + plot.width * 0.8, plot.y + 30);
await page.mouse.up();
await settle();
seen.ranges = await page.evaluate(() => report.page.models.map((model) => model.state.range !== null));
await press("1");
seen.ranged = await shown();
await press("Escape");
seen.sizes = [];
for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [[480, 800], [1280, 800], [2560, 1300]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height });
    for (const key of ["1", "2", "3"]) {
      await press(key);
      await picture(`${key}-${width}-${scheme}`);
      seen.sizes.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
    }
  }
}
await browser.close();
console.log(JSON.stringify(seen));
