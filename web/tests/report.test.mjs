// The report is a file: it opens without scripts, asks nobody for anything, and says everything.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { HtmlValidate, StaticConfigLoader } from "html-validate";
import { launch, program, remove, root, temporary } from "./harness.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser, folder, out, url;

before(async () => {
  folder = temporary();
  const scores = join(folder, "scores.csv");
  const run = ["--noise-multiplier", "0.8", "--sample-rate", "0.02", "--steps", "500"];
  execFileSync(program, ["attack", "linear", ...run, "--trials", "4000", "--seed", "3", "--out", scores], { stdio: "ignore" });
  out = join(folder, "report.html");
  execFileSync(program, ["report", scores, ...run, "--delta", "1e-5", "--out", out], { stdio: "ignore" });
  url = pathToFileURL(out).href;
  browser = await launch();
});

after(async () => {
  await browser?.close();
  remove(folder);
});

for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [[1280, 900], [360, 780]]) {
    test(`the report without scripts: ${scheme}, ${width} px`, async () => {
      const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, javaScriptEnabled: false });
      const page = await context.newPage();
      const asked = [];
      const troubles = [];
      page.on("request", (request) => asked.push(request.url()));
      page.on("console", (message) => ["error", "warning"].includes(message.type()) && troubles.push(message.text()));
      await page.goto(url);
      assert.deepEqual(asked.filter((address) => !address.startsWith("data:")), [url]);
      assert.deepEqual(troubles, []);
      assert.match(await page.locator("#verdict-heading").textContent(), /epsilon/i);
      const figures = page.locator("figure .drawing svg:visible");
      assert.ok((await figures.count()) >= 7, `${await figures.count()} figures`);
      await context.close();
    });
  }
}

test("nothing is cut off when the report is printed", async () => {
  // A4 less the margins that the report asks for, in CSS pixels.
  const width = 688;
  const context = await browser.newContext({ viewport: { width, height: 980 }, javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(url);
  await page.emulateMedia({ media: "print" });
  const wide = await page.evaluate((most) => {
    const parts = [...document.querySelectorAll("table, td, th, svg, pre, p")];
    const seen = parts.filter((part) => part.getClientRects().length > 0);
    // A part that scrolls on a screen would lose its end on paper.
    const cut = (part) => {
      const overflow = getComputedStyle(part).overflowX;
      return part.scrollWidth > part.clientWidth + 1 && ["auto", "scroll", "hidden"].includes(overflow);
    };
    const told = (part) => `${part.tagName} ${part.textContent.trim().slice(0, 40)}`;
    const beyond = seen.filter((part) => part.getBoundingClientRect().right > most + 1);
    return [...beyond, ...[...document.querySelectorAll("body *")].filter((part) => cut(part) && part.querySelector("table"))].map(told);
  }, width);
  assert.deepEqual(wide, []);
  await context.close();
});

test("the report and the page are valid HTML", async () => {
  const validator = new HtmlValidate(new StaticConfigLoader({ extends: ["html-validate:standard"] }));
  for (const path of [out, join(root, "web", "dist", "index.html")]) {
    const report = await validator.validateString(readFileSync(path, "utf8"));
    const found = report.results.flatMap((result) => result.messages.map((entry) => `${entry.line}: ${entry.ruleId}, ${entry.message}`));
    assert.deepEqual(found.slice(0, 5), [], path);
  }
});

test("every number of the report is in its JSON, and each figure comes as CSV", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(url);
  const { shown, known, links, figures } = await page.evaluate(() => {
    const known = [];
    const collect = (value) => {
      if (typeof value === "number") known.push(value);
      else if (value !== null && typeof value === "object") Object.values(value).forEach(collect);
    };
    collect(JSON.parse(document.getElementById("dosimeter").textContent));
    return {
      known,
      shown: [...document.querySelectorAll("data")].map((node) => Number(node.getAttribute("value"))),
      links: [...document.querySelectorAll("a[download]")].map((node) => node.getAttribute("href")),
      figures: document.querySelectorAll("figure").length,
    };
  });
  const all = new Set(known);
  assert.ok(shown.length > 60, `${shown.length} numbers`);
  assert.deepEqual(shown.filter((number) => !all.has(number)), []);
  assert.equal(links.length, figures);
  for (const link of links) {
    const text = decodeURIComponent(link.replace("data:text/csv;charset=utf-8,", ""));
    const rows = text.split("\n").filter((row) => row !== "");
    assert.ok(rows.length >= 2 && rows[0].includes(","), rows[0]);
  }
  await context.close();
});

test("the report has no serious accessibility issue and fits a phone", async () => {
  for (const [scheme, width] of [["light", 1280], ["dark", 360]]) {
    // The page itself runs no script; the checker is brought by the test.
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
    const page = await context.newPage();
    await page.goto(url);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width} px`);
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    const serious = found.violations.filter((entry) => ["serious", "critical"].includes(entry.impact));
    assert.deepEqual(serious.map((entry) => `${entry.id}: ${entry.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")}`), []);
    await context.close();
  }
});
