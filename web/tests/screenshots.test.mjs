// Pictures for the documents: SCREENSHOTS=1 node --test tests/screenshots.test.mjs takes those of the page;
// with REPORT=dosimeter-report.html, which `dosimeter report` writes in a minute, those of the report too.

import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { launch, open, program, remove, root, serve, settled, temporary } from "./harness.mjs";

const wanted = Boolean(process.env.SCREENSHOTS);

/** The panel with all its figures, from its top; a busy machine gets several tries at the whole map. */
async function whole(page) {
  await page.route("**/api/map", (route) => {
    const asked = route.request().postDataJSON();
    return route.continue({ postData: JSON.stringify({ ...asked, milliseconds: 20_000 }) });
  });
  await page.reload();
  for (let attempt = 0; ; attempt += 1) {
    await settled(page);
    await page.waitForSelector("#steps .plot[data-empty=false]", { timeout: 60_000 });
    await page.waitForSelector("#map:not(.stale)");
    await page.waitForTimeout(500);
    if (!(await page.locator("#map").textContent()).includes("take too long")) return;
    if (attempt === 20) throw new Error("the machine is too busy for the whole map");
    await page.reload();
  }
}

test("pictures", { skip: wanted ? false : "only when SCREENSHOTS is set" }, async () => {
  const out = join(root, "docs", "screenshots");
  mkdirSync(out, { recursive: true });
  const folder = temporary();
  const run = ["--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"];
  execFileSync(program, ["attack", "linear", ...run, "--trials", "20000", "--seed", "1", "--out", join(folder, "scores.csv")], { stdio: "ignore" });
  const server = await serve(folder);
  const browser = await launch();
  const hash = "#/panel?run=1_0.01_1000_poisson_add-remove&pins=2_0.01_1000_poisson_add-remove";
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 900], [360, 780]]) {
      const { page, context } = await open(browser, `${server.url}${hash}`, { viewport: { width, height }, colorScheme });
      await whole(page);
      await page.screenshot({ path: join(out, `page-${width}-${colorScheme}.png`), fullPage: true });
      if (colorScheme === "light" || width === 360) {
        await page.goto(`${server.url}#/audit`);
        await page.setInputFiles("#file", join(folder, "scores.csv"));
        await page.waitForSelector("#audit-epsilon");
        await page.waitForTimeout(500);
        await page.screenshot({ path: join(out, `page-audit-${width}-${colorScheme}.png`), fullPage: true });
      }
      await context.close();
    }
  }
  const shuffled = "#/panel?run=1_0.01_1000_shuffle_zero-out";
  const { page, context } = await open(browser, `${server.url}${shuffled}`, { viewport: { width: 1280, height: 900 }, colorScheme: "light" });
  await whole(page);
  await page.getByText("What would they cost?").click();
  await page.waitForSelector("#way-poisson", { timeout: 60_000 });
  await page.evaluate(() => scrollTo(0, 0));
  await page.waitForTimeout(500);
  await page.screenshot({ path: join(out, "page-batches-1280-light.png"), fullPage: true });
  await context.close();
  await browser.close();
  server.stop();
  remove(folder);
});

const report = process.env.REPORT;

test("pictures of the report", { skip: wanted && report ? false : "only when SCREENSHOTS and REPORT are set" }, async () => {
  const browser = await launch();
  for (const colorScheme of ["light", "dark"]) {
    for (const [width, height] of [[1280, 2400], [360, 2600]]) {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme });
      const page = await context.newPage();
      await page.goto(pathToFileURL(resolve(report)).href);
      await page.screenshot({ path: join(root, "docs", "screenshots", `report-${width}-${colorScheme}.png`) });
      await context.close();
    }
  }
  await browser.close();
});
