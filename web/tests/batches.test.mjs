// Every way to draw batches with every kind of neighbours: the numbers of the command line, or none.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ask, drop, launch, open, quoted, remove, serve, settled, temporary } from "./harness.mjs";

let browser, server, folder;

before(async () => {
  folder = temporary();
  server = await serve(folder);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.stop();
  remove(folder);
});

const value = (page, id) => page.locator(`[id="${id}"]`).getAttribute("value").then(Number);
const field = (page, name) => page.getByLabel(name, { exact: false }).first();

/** A way, what it needs, and the flags that say the same. */
const WAYS = [
  { sampling: "poisson" },
  { sampling: "full" },
  { sampling: "shuffle" },
  { sampling: "shuffle", choose: ["Order of the records", "kept"], flags: "--permutation kept" },
  { sampling: "in-order" },
  { sampling: "fixed-size" },
  { sampling: "fixed-size", choose: ["A record in a batch", "repeats"], flags: "--replacement" },
  { sampling: "balls-and-bins" },
  { sampling: "balls-and-bins", fill: ["Uses per epoch", "2"], flags: "--uses-per-epoch 2" },
  { sampling: "truncated-poisson", fill: ["Largest batch", "550"], flags: "--max-batch-size 550" },
  { sampling: "cyclic-poisson", fill: ["Groups", "4"], flags: "--cycle-length 4" },
];

/** Until the live number is of this run, or there is none. */
async function answered(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const old = '.reading.stale [id="reading-composition"], #sign.stale, section.sign > p.stale:not(.small)';
  await page.waitForFunction((dimmed) => document.querySelector(dimmed) === null, old, { timeout: 90_000 });
}

test("every way to draw batches with every kind of neighbours", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await field(page, "Records").fill("50000");
  const offered = await page.getByLabel("Batches").locator("option").evaluateAll((options) => options.map((one) => one.value));
  assert.deepEqual([...new Set(WAYS.map((way) => way.sampling))].sort(), offered.sort(), "no way is left out");
  let numbers = 0;
  const silent = [];
  for (const { sampling, choose, fill, flags = "" } of WAYS) {
    await page.getByLabel("Batches").selectOption(sampling);
    if (choose) await page.getByLabel(choose[0]).selectOption(choose[1]);
    if (fill) await field(page, fill[0]).fill(fill[1]);
    for (const adjacency of ["add-remove", "zero-out", "substitute"]) {
      await page.getByLabel("Neighbours").selectOption(adjacency);
      const rate = sampling === "full" ? "" : "--sample-rate 0.01";
      const words = `account --noise-multiplier 1 ${rate} --steps 1000 --dataset-size 50000 --sampling ${sampling} --adjacency ${adjacency} ${flags} --delta 1e-5 --quantity epsilon`;
      const document = ask(...words.trim().split(/\s+/));
      const claim = document.claims.find((one) => one.lens === "composition");
      await answered(page);
      const name = `${sampling} ${flags} ${adjacency}`;
      if (claim === undefined) {
        // No number that looks valid, and the reason in words.
        assert.equal(await page.locator("#reading-composition").count(), 0, name);
        assert.equal(await page.locator("#sign").count(), 0, name);
        const reason = document.unsupported.find((one) => one.lens === "composition").reason;
        assert.ok((await page.locator("section.sign").textContent()).includes(reason.slice(0, 40)), name);
        silent.push(`${sampling} ${adjacency}`);
        continue;
      }
      assert.equal(await value(page, "reading-composition"), quoted(claim), name);
      if (claim.at_least_shown) {
        const least = claim.at_least_shown.replace(">= ", "");
        assert.ok((await page.locator(".readings").textContent()).includes(least), `${name}: ${least}`);
      }
      numbers += 1;
      if (adjacency !== "zero-out") continue;
      // The address brings the same run back.
      await page.waitForTimeout(150);
      const hash = await page.evaluate(() => location.hash);
      const other = await context.newPage();
      await other.goto(`${server.url}${hash}`);
      await other.waitForSelector("#reading-composition", { timeout: 90_000 });
      await answered(other);
      assert.equal(await value(other, "reading-composition"), quoted(claim), name);
      await other.close();
    }
  }
  assert.deepEqual(silent, ["shuffle add-remove", "shuffle add-remove", "in-order add-remove"]);
  assert.equal(numbers, 3 * WAYS.length - silent.length);
  quiet();
  await context.close();
});

test("what is missing or wrong leaves no number and says what to give", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.getByLabel("Batches").selectOption("truncated-poisson");
  await page.waitForSelector(".refusal");
  assert.match(await page.locator(".refusal").textContent(), /largest batch is missing; give the largest batch B/);
  assert.equal(await page.locator(".readings data").count(), 0);
  await page.waitForFunction(() => document.querySelector("#solution") === null);
  await field(page, "Largest batch").fill("600");
  await page.waitForFunction(() => document.querySelector(".refusal")?.textContent.includes("the records n"));
  assert.equal(await page.locator(".readings data").count(), 0);
  await field(page, "Records").fill("50000");
  await settled(page);
  assert.ok((await value(page, "reading-composition")) > 1.8);
  for (const wrong of ["0", "1.5", "", "many"]) {
    await field(page, "Largest batch").fill(wrong);
    // An empty field is not wrong; it is said what is missing.
    await page.waitForSelector(wrong === "" ? ".refusal" : ".own .field-wrong");
    assert.equal(await page.locator(".readings data").count(), 0, wrong);
    assert.equal(await page.locator("#sign").count(), 0, wrong);
  }
  // Another way has no such field: what was wrong with it is forgotten.
  await page.getByLabel("Batches").selectOption("poisson");
  await settled(page);
  assert.ok((await value(page, "reading-composition")) > 0);
  // A rate without a whole number of batches is refused in words, until the slider finds one.
  await field(page, "Sample rate").fill("0.03");
  await page.getByLabel("Batches").selectOption("balls-and-bins");
  await page.waitForFunction(() => document.querySelector("section.sign")?.textContent.includes("whole number of batches"));
  assert.equal(await page.locator("#reading-composition").count(), 0);
  await page.getByLabel("Sample rate, slider").focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForSelector("#reading-composition");
  const rate = Number(await field(page, "Sample rate").inputValue());
  assert.ok(Math.abs(1 / rate - Math.round(1 / rate)) < 1e-9, `${rate}`);
  quiet();
  await context.close();
});

test("shuffled batches offer the neighbours that are covered; undo goes back", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.getByLabel("Batches").selectOption("shuffle");
  await page.waitForSelector("#zero-out");
  await page.waitForTimeout(600);
  await page.locator("#zero-out").click();
  await page.waitForSelector("#reading-composition");
  await settled(page);
  assert.equal(await page.getByLabel("Neighbours").inputValue(), "zero-out");
  assert.match(await page.locator("section.sign").textContent(), /between|17\.86/);
  await page.waitForTimeout(600);
  await page.locator("#undo").click();
  await page.waitForSelector("#zero-out");
  assert.equal(await page.getByLabel("Neighbours").inputValue(), "add-remove");
  quiet();
  await context.close();
});

test("all ways side by side, as `compare --every-sampling` has them", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await page.getByLabel("Neighbours").selectOption("zero-out");
  await settled(page);
  await page.getByText("What would they cost?").click();
  await page.waitForSelector("#way-poisson", { timeout: 30_000 });
  const words = "compare --every-sampling --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --adjacency zero-out --delta 1e-5";
  const document = ask(...words.split(" "));
  for (const { name, account } of document.runs) {
    const claim = account.claims.find((one) => one.quantity === "epsilon");
    assert.equal(await value(page, `way-${name.replace(/[^a-z-]+/g, "-")}`), claim.upper, name);
  }
  assert.ok(document.runs.length >= 5);
  // What is left out is named as the choice names it.
  const left = await page.getByText("the largest batch is missing").textContent();
  assert.match(left, /^truncated Poisson: /);
  // One of them can be gone to.
  await page.getByRole("button", { name: /Go to .*balls and bins/ }).click();
  await settled(page);
  const thrown = document.runs.find(({ name }) => name === "balls-and-bins").account.claims.find((one) => one.quantity === "epsilon");
  assert.equal(await value(page, "reading-composition"), thrown.upper);
  quiet();
  await context.close();
});

test("what is copied asks the same question of every way", async () => {
  const { page, quiet, context } = await open(browser, `${server.url}#/panel?run=1_0.01_1000_cyclic-poisson_zero-out_c4`);
  await settled(page);
  const command = (await page.locator("#copy-text").textContent()).replace(/\\\n/g, " ").trim().split(/\s+/);
  const claim = ask(...command.slice(1)).claims.find((one) => one.lens === "composition" && one.quantity === "epsilon");
  assert.equal(await value(page, "reading-composition"), claim.upper);
  await page.getByRole("button", { name: "Python" }).click();
  assert.match(await page.locator("#copy-text").textContent(), /sampling="cyclic-poisson", adjacency="zero-out", cycle_length=4/);
  await page.goto(`${server.url}#/panel?run=1_0.01_1000_fixed-size_substitute_n50000_repeats`);
  await page.getByRole("button", { name: "Command line" }).click();
  assert.match(await page.locator("#copy-text").textContent(), /--replacement/);
  await page.getByRole("button", { name: "TOML" }).click();
  assert.match(await page.locator("#copy-text").textContent(), /replacement = true/);
  quiet();
  await context.close();
});

test("a dropped run is shown with its batches, or not at all", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  const start = 'noise_multiplier = 2\nsample_rate = 0.02\nsteps = 500\nadjacency = "zero-out"\n';
  await drop(page, "main", "run.toml", `[run]\n${start}sampling = "shuffle"\npermutation = "kept"\n`);
  await page.waitForFunction(() => location.hash.includes("shuffle_zero-out_kept"));
  assert.equal(await page.getByLabel("Order of the records").inputValue(), "kept");
  const before = await page.evaluate(() => location.hash);
  for (const [more, why] of [
    ["group_size = 2\n", /groups of records/],
    ["[[run.release]]\nnoise = 5.0\nsensitivity = 0.5\n", /several releases/],
    ['stopped = "on-output"\nmax_steps = 900\n', /stopped/],
  ]) {
    await drop(page, "main", "run.toml", `[run]\n${start}${more}`);
    await page.waitForFunction((text) => new RegExp(text).test(document.querySelector("main > .refusal")?.textContent ?? ""), why.source);
    assert.equal(await page.evaluate(() => location.hash), before);
  }
  quiet();
  await context.close();
});

test("a way to draw batches is chosen by keyboard alone", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  const reach = async (id) => {
    for (let press = 0; press < 80; press++) {
      await page.keyboard.press("Tab");
      const here = await page.evaluate(() => {
        const at = document.activeElement;
        return [at.labels?.[0]?.textContent ?? "", at.id, at.textContent].join("|");
      });
      if (here.includes(id)) return;
    }
    assert.fail(`${id} is not reached`);
  };
  await reach("Neighbours");
  // A closed list is chosen from by letters: "z" is zero-out.
  await page.keyboard.type("z");
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.type("cyc");
  await page.waitForFunction(() => location.hash.includes("cyclic-poisson_zero-out"));
  await reach("Groups");
  await page.keyboard.press("Control+a");
  await page.keyboard.type("5");
  await page.waitForFunction(() => location.hash.includes("_c5"));
  await settled(page);
  assert.ok((await value(page, "reading-composition")) > 0);
  await reach("What would they cost?");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#way-poisson", { timeout: 30_000 });
  quiet();
  await context.close();
});
