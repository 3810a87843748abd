// Prints the marks in the source view of a report as JSON.
// node source.mjs PLAYWRIGHT REPORT TARGET [SCREENSHOTS]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [library, file, , pictures] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 2000 } });
await page.goto(`${pathToFileURL(file).href}#raw=1&view=source`);
await page.waitForFunction(() => window.report);
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
if (pictures) await page.screenshot({ path: `${pictures}/marks.png` });
const marks = await page.evaluate(() =>
  [...document.querySelectorAll(".line")].map((line) => {
    const mark = line.querySelector(".mark");
    const number = Number(line.querySelector(".line-number").textContent);
    return [number, mark.textContent, mark.title, mark.getAttribute("aria-label")];
  }),
);
await browser.close();
console.log(JSON.stringify(marks.filter(([, sign]) => sign)));
