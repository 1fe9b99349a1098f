// What a person sees on the page: the core's numbers, following every control.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { drags } from "./drag.mjs";
import { ask, launch, open, program, quoted, remove, serve, settled, temporary } from "./harness.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let browser, server, folder;

before(async () => {
  folder = temporary();
  const scores = join(folder, "scores.csv");
  const game = ["attack", "linear", "--noise-multiplier", "1", "--sample-rate", "0.01", "--steps", "1000"];
  execFileSync(program, [...game, "--trials", "4000", "--seed", "5", "--out", scores], { stdio: "ignore" });
  // Two more: one whose run is beside it and is not that of the page, and one that does not say.
  for (const name of ["substituted.csv", "unnamed.csv"]) {
    execFileSync(program, [...game, "--trials", "400", "--seed", "5", "--out", join(folder, name)], { stdio: "ignore" });
  }
  remove(join(folder, "unnamed.csv.run.json"));
  const run = { noise_multiplier: 3, sample_rate: 0.01, steps: 1000, adjacency: "substitute" };
  writeFileSync(join(folder, "substituted.csv.run.json"), JSON.stringify({ run }));
  server = await serve(folder);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  server?.stop();
  remove(folder);
});

const value = (page, id) => page.locator(`[id="${id}"]`).getAttribute("value").then(Number);

async function field(page, name, text) {
  const input = page.getByLabel(name, { exact: false }).first();
  await input.fill(text);
}

async function equalsTheCommandLine(page, words) {
  const document = ask("account", ...words);
  await settled(page);
  let compared = 0;
  for (const claim of document.claims) {
    const end = quoted(claim);
    if (claim.direction !== "both" || end === null) continue;
    const id = `claim-${claim.lens}-${claim.quantity}${claim.at.fpr ? `-${claim.at.fpr}` : ""}`;
    assert.equal(await value(page, id), end, id);
    compared += 1;
  }
  assert.ok(compared >= 20, `only ${compared} numbers`);
  const composition = document.claims.find((claim) => claim.lens === "composition" && claim.quantity === "epsilon");
  assert.equal(await value(page, "reading-composition"), composition.upper);
  // What is printed is on the safe side of it.
  const shown = Number((await page.locator("#reading-composition").textContent()).replace("≤", ""));
  assert.ok(shown >= composition.upper && shown < composition.upper * 1.001, `${shown} for ${composition.upper}`);
}

test("the numbers are those of the command line", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await equalsTheCommandLine(page, "--noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5".split(" "));
  await field(page, "Noise multiplier", "1.37");
  await field(page, "Sample rate", "0.0213");
  await field(page, "Steps", "2357");
  await field(page, "Delta", "3e-6");
  await page.waitForTimeout(100);
  await equalsTheCommandLine(page, "--noise-multiplier 1.37 --sample-rate 0.0213 --steps 2357 --delta 3e-6".split(" "));
  const solved = ask(
    ..."calibrate --solve noise-multiplier --target-epsilon 2 --sample-rate 0.0213 --steps 2357 --delta 3e-6".split(" "),
  );
  const shown = Number(await page.locator("#solution").textContent());
  assert.ok(shown >= solved.solution.noise_multiplier && shown < solved.solution.noise_multiplier * 1.0001);
  quiet();
  await context.close();
});

test("moving a slider changes every number and every chart", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.waitForSelector("#steps .plot[data-empty=false]");
  const look = async () => ({
    numbers: await Promise.all(
      ["reading-composition", "reading-last-iterate", "reading-tpr", "reading-bayes", "claim-renyi-epsilon", "claim-composition-mu"].map(
        (id) => value(page, id),
      ),
    ),
    charts: await page.evaluate(() =>
      ["tradeoff", "profile", "steps"].map((id) => document.querySelector(`#${id} canvas`).toDataURL()),
    ),
    place: await page.locator("#map .here").getAttribute("transform"),
  });
  const before = await look();
  const slider = page.getByLabel("Noise multiplier, slider");
  await slider.focus();
  for (let press = 0; press < 12; press++) await page.keyboard.press("ArrowRight");
  await settled(page);
  // The slowest chart comes when everything else has.
  let now = await look();
  const waited = Date.now();
  while (now.charts.some((chart, place) => chart === before.charts[place]) && Date.now() - waited < 30_000) {
    await page.waitForTimeout(100);
    now = await look();
  }
  before.numbers.forEach((number, place) => assert.notEqual(now.numbers[place], number, `number ${place}`));
  before.charts.forEach((chart, place) => assert.notEqual(now.charts[place], chart, `chart ${place}`));
  assert.notEqual(now.place, before.place);
  // The map's own numbers follow the rate.
  const cells = () => page.locator("#map rect.shade").evaluateAll((all) => all.map((cell) => cell.getAttribute("class")).join());
  await page.waitForSelector("#map:not(.stale)");
  const old = await cells();
  await field(page, "Sample rate", "0.03");
  await settled(page);
  await page.waitForFunction((was) => [...document.querySelectorAll("#map rect.shade")].map((c) => c.getAttribute("class")).join() !== was, old);
  quiet();
  await context.close();
});

// How many of them a second is measured by `cargo xtask bench`: here others may keep the machine busy.
test("while a slider is dragged the core keeps answering", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  const before = await value(page, "reading-composition");
  const rates = await drags(page, 3);
  assert.ok(Math.max(...rates) > 0, `${rates} answers per second`);
  await settled(page);
  assert.notEqual(await value(page, "reading-composition"), before);
  quiet();
  await context.close();
});

test("a dropped file is audited, as the command line audits it", async () => {
  const { page, quiet, context } = await open(browser, `${server.url}#/audit`);
  const path = join(folder, "scores.csv");
  const text = readFileSync(path, "utf8");
  const transfer = await page.evaluateHandle((content) => {
    const data = new DataTransfer();
    data.items.add(new File([content], "dropped.csv", { type: "text/csv" }));
    return data;
  }, text);
  await page.dispatchEvent("#drop", "drop", { dataTransfer: transfer });
  await page.waitForSelector("#audit-epsilon");
  const claim = join(folder, "run.toml");
  writeFileSync(claim, "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1000\n");
  const audit = ask("audit", path, "--delta", "1e-5", "--claim", claim, "--method", "all");
  const primary = audit.bounds.find((bound) => bound.primary);
  assert.equal(await value(page, "audit-epsilon"), primary.epsilon_lower);
  assert.equal(audit.verdict.status, "consistent");
  assert.match(await page.locator("#verdict-title").textContent(), /^Consistent/);
  assert.equal(await page.locator(".audit tbody tr").count() >= audit.bounds.length, true);
  quiet();
  await context.close();
});

/** Doubles as NumPy writes them. */
function npy(values) {
  const header = `{'descr': '<f8', 'fortran_order': False, 'shape': (${values.length},), }\n`;
  const start = Buffer.from([0x93, ...Buffer.from("NUMPY"), 1, 0, header.length & 255, header.length >> 8]);
  return Buffer.concat([start, Buffer.from(header), Buffer.from(new Float64Array(values).buffer)]);
}

test("two dropped .npy files are audited, as the command line audits them", async () => {
  const { page, quiet, context } = await open(browser, `${server.url}#/audit`);
  const rows = readFileSync(join(folder, "scores.csv"), "utf8").split("\n").filter((line) => /^[-0-9]/.test(line)).map((line) => line.split(","));
  const side = (member) => npy(rows.filter((row) => row[1] === member).map((row) => Number(row[0])));
  const files = { "in.npy": side("1"), "out.npy": side("0") };
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(folder, name), bytes);
  // Dropped the wrong way round: the names tell.
  const transfer = await page.evaluateHandle((given) => {
    const data = new DataTransfer();
    for (const [name, bytes] of given) data.items.add(new File([new Uint8Array(bytes)], name));
    return data;
  }, ["out.npy", "in.npy"].map((name) => [name, [...files[name]]]));
  await page.dispatchEvent("#drop", "drop", { dataTransfer: transfer });
  await page.waitForSelector("#audit-epsilon");
  const command = ["audit", "--members", join(folder, "in.npy"), "--nonmembers", join(folder, "out.npy"), "--design", "runs"];
  const audit = ask(...command, "--delta", "1e-5", "--method", "all", "--sample-rate", "0.01", "--steps", "1000");
  const primary = audit.bounds.find((bound) => bound.primary);
  assert.equal(await value(page, "audit-epsilon"), primary.epsilon_lower);
  assert.match(await page.locator("#sides").textContent(), /Members: in\.npy, non-members: out\.npy/);
  // The other way round the scores look reversed, and the page says so.
  await page.locator("#swap").click();
  await page.waitForFunction(() => document.querySelector(".audit")?.textContent.includes("reversed"));
  // One after the other, by the button, and a file that is none.
  await page.reload();
  await page.setInputFiles("#file", join(folder, "in.npy"));
  await page.waitForFunction(() => document.querySelector("#sides")?.textContent.includes("the other"));
  await page.setInputFiles("#file", join(folder, "out.npy"));
  await page.waitForSelector("#audit-epsilon");
  assert.equal(await value(page, "audit-epsilon"), primary.epsilon_lower);
  await page.setInputFiles("#file", [join(folder, "in.npy"), { name: "out.npy", mimeType: "", buffer: files["out.npy"].subarray(0, 1000) }].map((file) =>
    typeof file === "string" ? { name: "in.npy", mimeType: "", buffer: files["in.npy"] } : file));
  await page.waitForSelector(".refusal");
  assert.match(await page.locator(".refusal").textContent(), /non-members' file.*truncated/);
  quiet();
  await context.close();
});

test("a file without scores is refused in words", async () => {
  const { page, context } = await open(browser, `${server.url}#/audit`);
  await page.setInputFiles("#file", { name: "bad.csv", mimeType: "text/csv", buffer: Buffer.from("score,member\nnan,1\n") });
  await page.waitForSelector(".refusal");
  assert.match(await page.locator(".refusal").textContent(), /row/);
  await context.close();
});

test("the address brings the page back", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await field(page, "Noise multiplier", "0.83");
  await field(page, "Steps", "4321");
  await field(page, "Delta", "2e-7");
  await page.locator("#pin").click();
  await page.getByLabel("Quantity").selectOption("bayes-security");
  await page.getByLabel("Batches").selectOption("full");
  await settled(page);
  await page.waitForTimeout(150);
  const before = await value(page, "reading-composition");
  const hash = await page.evaluate(() => location.hash);
  await page.reload();
  await settled(page);
  assert.equal(await page.evaluate(() => location.hash), hash);
  assert.equal(await value(page, "reading-composition"), before);
  assert.equal(await page.getByLabel("Steps").first().inputValue(), "4321");
  assert.equal(await page.getByLabel("Quantity").inputValue(), "bayes-security");
  assert.equal(await page.locator(".pins tbody tr").count(), 1);
  quiet();
  await context.close();
});

test("four runs can be pinned, and no fifth", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  for (const noise of ["1", "1.5", "2", "2.5"]) {
    await field(page, "Noise multiplier", noise);
    await page.locator("#pin").click();
  }
  await field(page, "Noise multiplier", "3");
  assert.ok(await page.locator("#pin").isDisabled());
  await page.waitForFunction(() => document.querySelectorAll("#tradeoff .legend li").length === 6);
  await page.getByRole("button", { name: /^Unpin/ }).first().click();
  assert.equal(await page.locator(".pins tbody tr").count(), 3);
  quiet();
  await context.close();
});

test("what is copied asks the same question", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await field(page, "Noise multiplier", "1.21");
  await page.getByLabel("Neighbours").selectOption("substitute");
  await settled(page);
  const command = (await page.locator("#copy-text").textContent()).replace(/\\\n/g, " ").trim().split(/\s+/);
  assert.equal(command[0], "dosimeter");
  const document = ask(...command.slice(1));
  const claim = document.claims.find((entry) => entry.lens === "composition" && entry.quantity === "epsilon");
  assert.equal(await value(page, "reading-composition"), claim.upper);
  await page.getByRole("button", { name: "TOML" }).click();
  const path = join(folder, "copied.toml");
  writeFileSync(path, await page.locator("#copy-text").textContent());
  const same = ask("account", path, "--delta", "1e-5", "--lens", "composition", "--quantity", "epsilon");
  assert.equal(same.claims[0].upper, claim.upper);
  await page.getByRole("button", { name: "Python" }).click();
  assert.match(await page.locator("#copy-text").textContent(), /dosimeter\.Run\(noise_multiplier=1\.21,.*adjacency="substitute"\)/);
  quiet();
  await context.close();
});

test("everything can be reached and changed from the keyboard", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await settled(page);
  await page.waitForSelector("#map .here");
  const reached = new Set();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  for (let press = 0; press < 60; press++) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.id ?? ""));
  }
  for (const name of ["Noise multiplier, slider", "Sample rate, slider", "Steps, slider", "Delta, slider", "copy", "pin"]) {
    assert.ok(reached.has(name), `${name} is reached by Tab`);
  }
  await page.locator("#map .field").focus();
  const before = await page.evaluate(() => location.hash);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForFunction((hash) => location.hash !== hash, before);
  quiet();
  await context.close();
});

test("experiments are listed and their scores audited", async () => {
  const { page, quiet, context } = await open(browser, `${server.url}#/experiments`);
  await page.locator(".experiment", { has: page.getByText("scores.csv", { exact: true }) }).click();
  await page.locator("#audit-results").click();
  await page.waitForSelector("#audit-epsilon");
  assert.match(await page.locator("#experiment-title").textContent(), /scores\.csv/);
  await page.reload();
  await page.waitForSelector("#audit-results");
  quiet();
  await context.close();
});

test("an experiment is compared with its own run, and with none where nobody names it", async () => {
  // The sliders stand on another run: their claim must not be borrowed.
  const { page, quiet, context } = await open(browser, `${server.url}#/experiments`);
  const asked = [];
  page.on("request", (request) => {
    if (request.url().includes("/audit?question=")) asked.push(JSON.parse(new URL(request.url()).searchParams.get("question")));
  });
  const verdict = async (name) => {
    await page.locator(".experiment", { has: page.getByText(name, { exact: true }) }).click();
    const answered = page.waitForResponse((response) => response.url().includes("/audit?question="));
    await page.locator("#audit-results").click();
    const { audit } = await (await answered).json();
    await page.waitForSelector("#audit-epsilon");
    return audit;
  };
  const substituted = await verdict("substituted.csv");
  assert.equal(substituted.plan.claim.adjacency, "substitute");
  assert.equal(substituted.plan.claim.noise_multiplier, 3);
  assert.ok(substituted.verdict.claimed_epsilon > 0);
  assert.equal(await page.locator("#no-claim").count(), 0);
  await page.getByRole("button", { name: "All experiments" }).click();
  const unnamed = await verdict("unnamed.csv");
  assert.equal(unnamed.verdict ?? null, null);
  assert.match(await page.locator("#no-claim").textContent(), /^No claim/);
  assert.deepEqual(asked.map((question) => question.claim), [undefined, undefined]);
  quiet();
  await context.close();
});

test("a refusal is said in words and the page goes on", async () => {
  const { page, quiet, context } = await open(browser, server.url);
  await page.getByLabel("Batches").selectOption("shuffle");
  await page.waitForFunction(() => document.querySelector(".lenses")?.textContent.includes("shuffled"));
  await page.getByLabel("Batches").selectOption("poisson");
  await settled(page);
  assert.ok((await value(page, "reading-composition")) > 0);
  quiet();
  await context.close();
});

for (const scheme of ["light", "dark"]) {
  for (const [width, height] of [[1280, 900], [360, 780]]) {
    test(`no serious accessibility issue and nothing sticks out: ${scheme}, ${width} px`, async () => {
      const { page, quiet, context } = await open(browser, server.url, { viewport: { width, height }, colorScheme: scheme });
      for (const view of ["panel", "audit", "experiments"]) {
        await page.goto(`${server.url}#/${view}`);
        if (view === "panel") await settled(page);
        if (view === "audit") {
          await page.setInputFiles("#file", join(folder, "scores.csv"));
          await page.waitForSelector("#audit-epsilon");
        }
        if (view === "experiments") await page.waitForSelector(".experiment");
        await page.waitForTimeout(300);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(wide <= 0, `${view} is ${wide} px too wide`);
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        const serious = found.violations.filter((entry) => ["serious", "critical"].includes(entry.impact));
        assert.deepEqual(
          serious.map((entry) => `${entry.id}: ${entry.nodes.map((node) => node.target.join(" ")).join(", ")}`),
          [],
          view,
        );
      }
      quiet();
      await context.close();
    });
  }
}
