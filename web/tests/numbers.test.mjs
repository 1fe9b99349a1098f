// Rounding on the page keeps to the side that may be quoted, as the command line's does.

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const source = join(dirname(fileURLToPath(import.meta.url)), "..", "src");
async function load(name) {
  const built = await build({ entryPoints: [join(source, name)], bundle: true, format: "esm", write: false });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].contents).toString("base64")}`);
}
const { rounded, reading, plain, powerOfTen } = await load("numbers.ts");
const { fromHash, toHash, START } = await load("state.ts");

test("known roundings", () => {
  assert.equal(rounded(1.82823, 4, "upper"), "1.829");
  assert.equal(rounded(1.82823, 4, "lower"), "1.828");
  assert.equal(rounded(1, 4, "upper"), "1.000");
  assert.equal(rounded(0.9999998, 4, "lower"), "0.9999");
  assert.equal(rounded(9.9996, 4, "upper"), "10.00");
  assert.equal(rounded(0.00012341, 3, "upper"), "0.000124");
  assert.equal(rounded(123456.7, 3, "upper"), "124000");
  assert.equal(rounded(1.234e-7, 3, "upper"), "1.24e-7");
  assert.equal(plain(1e-5), "1e-5");
  assert.equal(plain(0.01), "0.01");
  assert.equal(powerOfTen(1e-5), "10⁻⁵");
  assert.equal(powerOfTen(3e-6), "3e-6");
});

test("a band shows its lower end rounded down and its upper end up", () => {
  const band = { values: [0.123456, null], lower: [0.0876543, 0.1], side: "neither" };
  assert.equal(reading(band, 0, 3), "0.0876 to 0.124");
  assert.equal(reading({ values: [0.5], lower: [null] }, 0, 3), "0 to 0.500");
  assert.equal(reading(band, 1, 3), null);
  assert.equal(reading({ values: [0.123456] }, 0, 3), "0.124");
  assert.equal(reading({ values: [0.123456], side: "neither" }, 0, 3), "0.123");
});

test("what is shown is on its side", () => {
  let state = 12345;
  for (let trial = 0; trial < 20000; trial++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const number = (1 + state / 2 ** 32) * 10 ** ((state % 41) - 20);
    for (const digits of [1, 3, 5]) {
      const [up, down] = [Number(rounded(number, digits, "upper")), Number(rounded(number, digits, "lower"))];
      assert.ok(down <= number && number <= up, `${down} ${number} ${up}`);
    }
  }
});

test("the address keeps the state, and nonsense in it falls back", () => {
  const state = { ...START, run: { ...START.run, noise: 0.7, steps: 99 }, delta: 3e-7, pins: [START.run] };
  assert.deepEqual(fromHash(toHash(state)), state);
  for (const hash of ["", "#", "#/panel?run=x", "#/nowhere?delta=7&pins=~~~", "#/panel?run=-1_9_0_a_b&target=___"]) {
    assert.deepEqual(fromHash(hash), START, hash);
  }
});
