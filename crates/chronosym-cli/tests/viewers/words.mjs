// Prints what a report says of its time and of lanes before anything is selected, as JSON.
// node words.mjs PLAYWRIGHT REPORT TARGET [SCREENSHOTS]
import { createRequire } from "node:module";
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

const [library, file, , pictures] = process.argv.slice(2);
const { chromium } = createRequire(import.meta.url)(library);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
const errors = [];
page.on("pageerror", (error) => errors.push(error.message));
await page.goto(pathToFileURL(file).href);
await page.waitForFunction(() => window.report);
await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
if (pictures) await page.screenshot({ path: `${pictures}/words-${basename(file)}.png` });
const seen = {
  errors,
  status: await page.textContent(".status"),
  lanes: await page.locator(".lane-label").allTextContents(),
  details: await page.textContent(".details"),
};
await browser.close();
console.log(JSON.stringify(seen));
