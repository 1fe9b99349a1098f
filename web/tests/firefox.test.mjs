// The page in Debian's Firefox: numbers, the address, wrong fields, keyboard, accessibility.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { firefox, firefoxPath } from "./firefox.mjs";
import { ask, remove, serve, temporary } from "./harness.mjs";

const skip = firefoxPath === undefined ? "there is no Firefox here" : false;
let browser, server, folder;

before(async () => {
  if (skip) return;
  folder = temporary();
  server = await serve(folder);
  browser = await firefox();
  await browser.size(1280, 900);
});

after(async () => {
  await browser?.close();
  server?.stop();
  if (folder) remove(folder);
});

const SETTLED = `document.querySelector('.readings[data-settled="true"]') !== null`;
const READING = `Number(document.querySelector("#reading-composition")?.value ?? NaN)`;

test("numbers of the command line, in Firefox", { skip }, async () => {
  for (const [hash, words] of [
    ["1.37_0.02_500_poisson_add-remove", "--sampling poisson --adjacency add-remove"],
    ["1.37_0.02_500_shuffle_zero-out", "--sampling shuffle --adjacency zero-out"],
    ["1.37_0.02_500_fixed-size_substitute", "--sampling fixed-size --adjacency substitute"],
  ]) {
    await browser.go("about:blank");
    await browser.go(`${server.url}#/panel?run=${hash}`);
    await browser.until(SETTLED);
    const command = `account --noise-multiplier 1.37 --sample-rate 0.02 --steps 500 --delta 1e-5 --lens composition --quantity epsilon ${words}`;
    assert.equal(await browser.evaluate(READING), ask(...command.split(" ")).claims[0].upper, hash);
    // Every chart has something to show.
    await browser.until(`[...document.querySelectorAll(".plot")].length >= 3 && [...document.querySelectorAll(".plot")].every((plot) => plot.dataset.empty === "false")`);
  }
  if (process.env.FIREFOX_SCREENSHOT) writeFileSync(process.env.FIREFOX_SCREENSHOT, await browser.screenshot());
  assert.deepEqual(browser.troubles, []);
});

test("typing, a wrong field and the keyboard, in Firefox", { skip }, async () => {
  await browser.go("about:blank");
  await browser.go(server.url);
  await browser.until(SETTLED);
  const before = await browser.evaluate(READING);
  // Tab reaches the field of the noise: skip, three pages, print; undo is disabled.
  for (let press = 0; press < 30; press++) {
    await browser.press("\uE004");
    if ((await browser.evaluate(`document.activeElement.labels?.[0]?.textContent ?? ""`)).startsWith("Noise")) break;
  }
  await browser.evaluate("document.activeElement.select()");
  await browser.press("2");
  await browser.until(`location.hash.includes("run=2_")`);
  await browser.until(SETTLED);
  assert.ok((await browser.evaluate(READING)) < before);
  await browser.press("\uE003", "x");
  await browser.until(`document.querySelector(".refusal") !== null`);
  assert.equal(await browser.evaluate(`document.querySelectorAll(".readings data").length`), 0);
  // Escape takes it back.
  await browser.press("\uE00C");
  await browser.until(SETTLED);
  // The slider below it moves by arrow keys.
  await browser.press("\uE004", "\uE014", "\uE014");
  await browser.until(`!location.hash.includes("run=2_")`);
  assert.deepEqual(browser.troubles, []);
});

test("no serious accessibility issue and nothing sticks out, in Firefox", { skip }, async () => {
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  for (const [width, height] of [[1280, 900], [360, 780]]) {
    await browser.size(width, height);
    await browser.go("about:blank");
    await browser.go(`${server.url}#/panel?run=1_0.01_1000_truncated-poisson_zero-out_n50000_m550`);
    await browser.until(SETTLED);
    assert.ok((await browser.evaluate("document.documentElement.scrollWidth - innerWidth")) <= 0, `${width}`);
    await browser.evaluate(`(() => { ${axe}; return true; })()`);
    const found = await browser.evaluate(
      `(await window.axe.run(document, { resultTypes: ["violations"] })).violations.filter((entry) => ["serious", "critical"].includes(entry.impact)).map((entry) => entry.id + ": " + entry.nodes.map((node) => node.target.join(" ")).join(", "))`,
    );
    assert.deepEqual(found, [], `${width}`);
  }
});
