// Opens a report with hostile names in every view, and with hostile fragments; prints what was seen
// as JSON.
// node names.mjs PLAYWRIGHT REPORT
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, file] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const seen = { requests: [], errors: [], dialogs: [], texts: [], scripts: [], overflow: [], states: [] };
page.on("request", (request) => {
  if (!/^(file|blob|data):/.test(request.url())) seen.requests.push(request.url());
});
page.on("pageerror", (error) => seen.errors.push(error.message));
page.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
page.on("dialog", (dialog) => {
  seen.dialogs.push(dialog.message());
  return dialog.dismiss();
});
const settle = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const url = pathToFileURL(file).href;
const open = async (fragment) => {
  await page.goto("about:blank");
  await page.goto(`${url}#${fragment}`);
  await page.waitForFunction(() => window.report);
  await settle();
};
const look = async () => {
  seen.texts.push(
    await page.evaluate(() => {
      const of = (name) => [...document.querySelectorAll(`[${name}]`)].map((element) => element.getAttribute(name));
      const parts = [...document.querySelectorAll("header, section, nav, main, aside, dialog, #tip")];
      return [document.title, ...parts.map((part) => part.textContent), ...of("title"), ...of("aria-label"), ...of("aria-valuetext")].join("\n");
    }),
  );
  seen.scripts.push(
    await page.evaluate(() => document.querySelectorAll("script, img, image, iframe, object, embed, link, a, form").length),
  );
  seen.overflow.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
};

await open("");
const isPair = await page.evaluate(() => !report.model);
if (isPair) await look();
for (const view of isPair ? [] : ["flame", "sandwich", "table", "source", "about"]) {
  await page.evaluate((view) => report.page.model.update({ view }), view);
  const count = await page.evaluate(() => report.model.trace.functions.length);
  for (let func = 0; func < count; func++) {
    await page.evaluate((func) => report.page.model.update({ func }), func);
    await settle();
    await look();
  }
  // What the pointer shows.
  await page.mouse.move(600, 120);
  await page.mouse.move(400, 500);
  await settle();
  await look();
}
for (const fragment of isPair
  ? []
  : [
      "search=%3Cscript%3Ealert(1)%3C%2Fscript%3E&view=table",
      "search=%2F(((a%2B)%2B)%2B%24%2F",
      "view=%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&sort=__proto__&group=constructor",
      "function=-1&file=999999999&line=1e9&threads=-5.99999&activities=99&zoom=-1.-2.77777777",
      "range=5.1&shown=-9.9&range=0.1",
      "range=99999999999999999999.999999999999999999999&shown=1.2",
      "%E0%A4%A&&&==&search=%",
      `search=${"a".repeat(20000)}`,
    ]) {
  await open(fragment);
  await look();
  seen.states.push(await page.evaluate(() => report.model.state));
}
await browser.close();
console.log(JSON.stringify(seen));
