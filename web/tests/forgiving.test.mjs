// What the page does with mistakes, second thoughts and dropped files.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ask, drop, launch, open, program, quoted, remove, serve, settled, temporary } from "./harness.mjs";

let browser, server, folder;

before(async () => {
  folder = temporary();
  const game = ["attack", "linear", "-s", "1", "-q", "0.01", "-T", "100", "--trials", "500"];
  execFileSync(program, [...game, "--out", join(folder, "scores.csv")], { stdio: "ignore" });
  server = await serve(folder);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.stop();
  remove(folder);
});

const value = (page, id) => page.locator(`[id="${id}"]`).getAttribute("value").then(Number);
const type = (page, name, text) => page.getByLabel(name, { exact: false }).first().fill(text);

test("a wrong field leaves no number, says why, and stays as it was typed", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await type(page, "Noise multiplier", "0.1");
  await page.waitForSelector(".refusal");
  assert.match(await page.locator(".refusal").textContent(), /Noise multiplier must be a number from 0\.2 to 100/);
  assert.equal(await page.locator(".readings data").count(), 0);
  assert.equal(await page.locator(".lenses tbody tr").count(), 0);
  assert.equal(await page.locator("#sign").count(), 0);
  assert.equal(await page.locator("section.sign").textContent(), "Nothing may be signed: a field of the run is wrong.");
  // Leaving the field changes nothing; the reason is text, not a tooltip.
  await page.getByLabel("Steps").first().focus();
  const field = page.getByLabel("Noise multiplier").first();
  assert.equal(await field.inputValue(), "0.1");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.match(await page.locator(".dial .field-wrong").textContent(), /0\.2 to 100/);
  // Escape takes it back, and a good number is answered.
  await field.focus();
  await page.keyboard.press("Escape");
  assert.equal(await field.inputValue(), "1");
  await settled(page);
  assert.ok((await value(page, "reading-composition")) > 0);
  quiet();
  await context.close();
});

test("a number of an earlier run is dimmed at once", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  // The answer is held back: what is on the page now is of the run before.
  let release;
  const held = new Promise((done) => (release = done));
  await page.route("**/api/account", async (route) => {
    await held;
    await route.continue();
  });
  await type(page, "Noise multiplier", "1.5");
  await page.waitForSelector("#sign.stale", { timeout: 1000 });
  for (const id of ["reading-composition", "reading-last-iterate", "reading-bayes"]) {
    assert.ok(await page.locator(`.reading.stale [id="${id}"]`).count(), id);
  }
  assert.ok(await page.locator('td.stale [id="claim-composition-epsilon"]').count());
  release();
  await settled(page);
  assert.equal(await page.locator(".readings .stale").count(), 0);
  quiet();
  await context.close();
});

test("records, batch size and epochs describe the same run", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  // What is not known is not 0.
  assert.equal(await page.getByLabel("Records").inputValue(), "");
  assert.equal(await page.getByLabel("Records").getAttribute("placeholder"), "unknown");
  assert.equal(await page.getByLabel("Batch b").inputValue(), "");
  await page.getByLabel("Records").fill("50000");
  await page.getByLabel("Batch b").fill("512");
  await page.getByLabel("Epochs").fill("60");
  await type(page, "Noise multiplier", "1.1");
  await settled(page);
  const document = ask(..."account --noise-multiplier 1.1 --dataset-size 50000 --batch-size 512 --epochs 60 --delta 1e-5".split(" "));
  const claim = document.claims.find((one) => one.lens === "composition" && one.quantity === "epsilon");
  assert.equal(await value(page, "reading-composition"), quoted(claim));
  assert.equal(await page.getByLabel("Steps").first().inputValue(), "5860");
  assert.equal(await page.locator("section.sign").textContent().then((text) => text.includes("3.955")), true);
  // The address keeps the records.
  await page.waitForTimeout(150);
  await page.reload();
  assert.equal(await page.getByLabel("Records").inputValue(), "50000");
  assert.equal(await page.getByLabel("Batch b").inputValue(), "512");
  // They may be taken out again; the rate stays.
  await page.getByLabel("Records").fill("");
  await page.waitForFunction(() => document.querySelector("input[id$=-batch]")?.value === "");
  assert.equal(await page.getByLabel("Sample rate").first().inputValue(), "0.01024");
  assert.equal(await page.locator(".field-wrong").count(), 0);
  quiet();
  await context.close();
});

test("a number may be typed digit by digit", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.getByLabel("Records").fill("50000");
  await page.getByLabel("Batch b").fill("512");
  const epochs = page.getByLabel("Epochs");
  await epochs.focus();
  await settled(page);
  await epochs.press("Control+a");
  // Slower than the page draws: 6 epochs are 586 whole steps, which are 6.00064 epochs.
  await epochs.pressSequentially("60", { delay: 120 });
  await settled(page);
  assert.equal(await epochs.inputValue(), "60");
  assert.equal(await page.getByLabel("Steps").first().inputValue(), "5860");
  // Left alone, the field says what is run.
  await page.getByLabel("Records").focus();
  await page.waitForFunction(() => document.querySelector("input[id$=-epochs]").value === "60.0064");
  assert.equal(await page.getByLabel("Steps").first().inputValue(), "5860");
  quiet();
  await context.close();
});

test("changes faster than the page draws all count", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.getByLabel("Records").fill("50000");
  await page.waitForFunction(() => !document.querySelector("input[id$=-batch]").disabled);
  await page.evaluate(() => {
    const say = (field, text) => {
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    };
    say(document.querySelector("input[id$=-batch]"), "512");
    say(document.querySelector("input[id$=-epochs]"), "60");
    say(document.querySelector(".dial input[id$=-field]"), "1.1");
  });
  await page.waitForFunction(() => location.hash.includes("run=1.1_0.01024_5860_"));
  quiet();
  await context.close();
});

test("a run, a ledger or scores may be dropped anywhere", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await drop(page, ".readings", "run.toml", "[run]\nnoise_multiplier = 0.8\nsample_rate = 0.02\nsteps = 321\n");
  await page.waitForFunction(() => location.hash.includes("0.8_0.02_321"));
  const ledger = { schema: "dosimeter.ledger/1", run: { noise_multiplier: 2, sample_rate: 0.03, steps: 77, sampling: "poisson", adjacency: "add-remove", clip_norm: 1 } };
  await drop(page, "h1", "ledger.json", JSON.stringify(ledger));
  await page.waitForFunction(() => location.hash.includes("2_0.03_77"));
  await drop(page, "main", "broken.json", "{}");
  await page.waitForSelector("main > .refusal");
  await drop(page, "main", "scores.csv", readFileSync(join(folder, "scores.csv"), "utf8"));
  await page.waitForSelector("#audit-epsilon");
  quiet();
  await context.close();
});

test("steps are taken back, by button and by keyboard", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  const first = await value(page, "reading-composition");
  for (const noise of ["1.5", "2.5"]) {
    await type(page, "Noise multiplier", noise);
    await page.waitForTimeout(600);
  }
  await page.locator("#undo").click();
  await page.waitForFunction(() => location.hash.includes("run=1.5_"));
  await page.locator("#content").focus();
  await page.keyboard.press("Control+z");
  await page.waitForFunction(() => location.hash.includes("run=1_"));
  await settled(page);
  assert.equal(await value(page, "reading-composition"), first);
  assert.ok(await page.locator("#undo").isDisabled());
  quiet();
  await context.close();
});

test("a link shows the same page, and print leaves the controls out", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await type(page, "Noise multiplier", "1.7");
  await settled(page);
  const shown = await value(page, "reading-composition");
  await page.getByRole("button", { name: "Link" }).click();
  const link = await page.locator("#copy-text").textContent();
  const other = await context.newPage();
  await other.goto(link);
  await settled(other);
  assert.equal(await value(other, "reading-composition"), shown);
  await page.emulateMedia({ media: "print" });
  assert.equal(await page.locator(".side").isVisible(), false);
  assert.ok(await page.locator("#sign").isVisible());
  const wide = await page.evaluate(() => {
    const page = document.querySelector("main").getBoundingClientRect().right;
    return [...document.querySelectorAll("table")].map((table) => table.getBoundingClientRect().right - page);
  });
  assert.ok(wide.every((beyond) => beyond <= 1), `${wide}`);
  quiet();
  await context.close();
});
