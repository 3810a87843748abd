// Uses a report as a reader would, and prints what was seen as JSON.
// node report.mjs PLAYWRIGHT REPORT TARGET [SCREENSHOTS]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, file, target, pictures] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light" });
const page = await context.newPage();
const seen = { requests: [], errors: [] };
page.on("request", (request) => {
  if (!/^(file|blob|data):/.test(request.url())) seen.requests.push(request.url());
});
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));

const url = pathToFileURL(file).href;
const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
// Raw frames, unless the fragment states something else: those of `top --format json`.
const open = async (fragment = "#raw=1") => {
  await page.goto("about:blank");
  await page.goto(url + fragment);
  await page.waitForFunction(() => window.report);
  await settle();
};
const press = async (...keys) => {
  for (const key of keys) await page.keyboard.press(key);
  await settle();
};
const picture = async (name) => pictures && (await page.screenshot({ path: `${pictures}/${name}.png` }));
const state = () => page.evaluate(() => report.model.state);
const table = () => page.evaluate(() => report.page.table.shown);
const boxes = (flame) => page.evaluate((flame) => report.page[flame].boxes, flame);
// Boxes below the root: label and weight.
const roots = () =>
  page.evaluate(() =>
    report.model.graph.children().map((box) => [
      box.func < 0 ? box.label : report.model.trace.functions[box.func].label,
      box.total,
    ]),
  );

await open("");
seen.presented = await table();
seen.presentedAll = (await boxes("flame"))[0].total;
await press("r");
seen.rawByKey = (await state()).raw;
await open();
seen.milliseconds = await page.evaluate(() => report.milliseconds);
seen.title = await page.title();
seen.status = await page.textContent(".status");
await picture("flame");

// The flame graph: all, zoomed by a click, inverted, by thread, searched.
const flame = await boxes("flame");
seen.all = flame[0].total;
const box = flame.find((box) => box.label === target);
seen.target = box.total;
const at = await page.locator(".view .flame").boundingBox();
await page.mouse.click(at.x + box.x + box.width / 2, at.y + box.y);
await settle();
const zoomed = await boxes("flame");
seen.zoomed = zoomed.filter((now) => now.label === target && Math.abs(now.width - at.width) < 20).length;
seen.selected = await page.textContent(".details h2");
await picture("zoomed");
await press("Escape");
seen.zoomedOut = (await boxes("flame")).length === flame.length;
await press("i");
seen.inverted = await roots();
await press("i", "t");
seen.threads = await roots();
await press("t");
await page.fill("input[type=search]", "Spin.");
await settle();
seen.matching = await page.evaluate(() => report.model.matching);
seen.found = await page.textContent(".found");
await picture("search");
await press("Escape");
seen.searchAfter = (await state()).search;

// The table.
await press("3");
seen.table = await table();
seen.tableRows = await page.locator(".rows .row").count();
await picture("table");

// Callers and callees of the target.
await page.evaluate((target) => {
  const func = report.model.trace.functions.findIndex((f) => f.label === target);
  report.page.model.update({ func, view: "sandwich" });
}, target);
await settle();
seen.callers = (await boxes("callers")).map(({ label, total }) => [label, total]);
seen.callees = (await boxes("callees")).map(({ label, total }) => [label, total]);
await picture("sandwich");

// A range, dragged over the time axis, changes every view.
const plot = await page.locator(".plot").boundingBox();
const y = plot.y + 30;
await page.mouse.move(plot.x + plot.width * 0.3, y);
await page.mouse.down();
await page.mouse.move(plot.x + plot.width * 0.5, y);
await page.mouse.move(plot.x + plot.width * 0.6, y);
await page.mouse.up();
await settle();
seen.range = (await state()).range;
seen.fragment = await page.evaluate(() => location.hash);
seen.rangeCallees = (await boxes("callees"))[0].total;
await press("3");
seen.rangeTable = await table();
await press("1");
seen.rangeAll = (await boxes("flame"))[0].total;
await picture("range");
// The address has it all.
await open(seen.fragment);
seen.rangeAgain = (await state()).range;
seen.viewAgain = (await state()).view;

// Source lines.
await open("#raw=1&view=source");
seen.sourceFiles = await page.locator(".source select option").allTextContents();
seen.sources = await page.evaluate(() =>
  report.model.trace.header.files.map((file, i) => {
    report.page.model.update({ file: i });
    return [file, [...report.page.source.weights].map(([line, { self, total }]) => [line, self, total])];
  }),
);
await open("#raw=1&view=source");
await picture("source");
seen.hotLines = await page.locator(".line.hot").count();
seen.text = await page.evaluate(() => [...document.querySelectorAll(".line code")].map((line) => line.textContent).join("\n"));

// Keys alone: from the address bar to the callers of the second method, a range, and help.
await open();
await press("3", "Tab");
await page.locator("[role=grid]").focus();
await press("ArrowDown", "Enter");
const byKeys = await state();
seen.keys = { view: byKeys.view, func: byKeys.func };
await press("1");
await page.locator(".view [role=tree]").focus();
await press("ArrowDown", "ArrowDown");
seen.spoken = await page.textContent(".view [role=treeitem]");
seen.level = await page.getAttribute(".view [role=treeitem]", "aria-level");
await press("Enter");
seen.keyZoom = (await state()).zoom.length;
await press("Backspace");
seen.keyBack = (await state()).zoom.length;
await page.locator(".plot").focus();
await press("ArrowRight", "Shift+ArrowRight", "ArrowRight");
seen.keyRange = (await state()).range;
seen.rangeText = await page.getAttribute(".plot", "aria-valuetext");
await press("Escape");
seen.keyRangeAfter = (await state()).range;
await press("?");
seen.help = await page.locator("dialog[open]").count();
await press("Escape");
// Whatever can be clicked has a name.
seen.unnamed = await page.evaluate(
  () => [...document.querySelectorAll("button, select, input")].filter((e) => !(e.textContent || e.getAttribute("aria-label"))).length,
);

// The accessibility tree of each view, which screen readers use.
const session = await context.newCDPSession(page);
const focusable = (node) => node.properties?.some(({ name, value }) => name === "focusable" && value.value);
const tree = async () => {
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  return nodes.filter((node) => !node.ignored).map((node) => ({ role: node.role.value, name: node.name?.value ?? "", focusable: focusable(node) ?? false }));
};
seen.accessible = {};
seen.stops = {};
for (const [view, key] of [["flame", "1"], ["sandwich", "2"], ["table", "3"], ["source", "4"], ["about", "5"]]) {
  await open();
  await press(key);
  seen.accessible[view] = await tree();
  await page.evaluate(() => document.activeElement.blur());
  seen.stops[view] = [];
  for (let i = 0; i < 60; i++) {
    await press("Tab");
    const stop = await page.evaluate(() => {
      const { role, tagName, dataset } = document.activeElement;
      // At the end Tab leaves the page, or starts again.
      if (tagName === "BODY" || dataset.stop) return "";
      dataset.stop = "1";
      return `${role ?? tagName.toLowerCase()} ${document.activeElement.closest("header, nav, section, main, aside").tagName.toLowerCase()}`;
    });
    if (!stop) break;
    seen.stops[view].push(stop);
  }
}
// Arrow keys move between threads, Enter selects one.
await open();
await page.locator(".lane-label[tabindex='0']").focus();
await press("ArrowDown", "Enter");
seen.threadByKeys = (await state()).threads;
seen.threadSpoken = await page.evaluate(() => document.activeElement.getAttribute("aria-label"));
// So do the heads of columns.
await open("#raw=1&view=table");
await page.locator("[role=columnheader] button").nth(1).focus();
await press("Enter");
seen.sortedBy = await page.evaluate(() => [...document.querySelectorAll("[role=columnheader]")].map((head) => head.getAttribute("aria-sort")));
seen.sortFocus = await page.evaluate(() => document.activeElement.textContent);

// Sizes and themes: nothing is cut off, and something is drawn.
seen.sizes = [];
for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [[480, 800], [800, 900], [1280, 800], [2560, 1300]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height });
    for (const view of ["flame", "sandwich", "table", "source", "about"]) {
      await page.evaluate((view) => report.page.model.update({ view }), view);
      await settle();
      await picture(`${view}-${width}-${scheme}`);
      const size = await page.evaluate(() => {
        const colors = (canvas) => {
          const { width, height } = canvas;
          const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
          const all = new Set();
          for (let i = 0; i < pixels.length; i += 4 * 97) all.add((pixels[i] << 16) | (pixels[i + 1] << 8) | pixels[i + 2]);
          return all.size;
        };
        const panel = document.querySelector(".view").getBoundingClientRect();
        return {
          overflow: document.documentElement.scrollWidth - innerWidth,
          panel: [Math.round(panel.width), Math.round(panel.height)],
          colors: [...document.querySelectorAll(".plot canvas, .view canvas")].map(colors),
          // Numbers that do not fit their columns.
          cut: [...document.querySelectorAll(".row .number, .line .number, .source-head .number")].filter((cell) => getComputedStyle(cell).visibility !== "hidden" && cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent),
          ground: getComputedStyle(document.body).backgroundColor,
        };
      });
      seen.sizes.push({ scheme, width, view, ...size });
    }
  }
}
await browser.close();
console.log(JSON.stringify(seen));
