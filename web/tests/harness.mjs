// A served page in a real browser: the program as its users start it, and Chromium.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
export const program = process.env.DOSIMETER_BIN ?? join(root, "target", "release", "dosimeter");
export const browserPath =
  process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

export const temporary = () => mkdtempSync(join(tmpdir(), "dosimeter-page-"));

/** The program's answer as JSON. */
export function ask(...words) {
  return JSON.parse(execFileSync(program, [...words, "--format", "json"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
}

export async function serve(folder) {
  const child = spawn(program, ["serve", folder, "--port", "0", "--no-open"], { stdio: ["ignore", "pipe", "inherit"] });
  const url = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve(text.split("\n")[0].trim());
    });
    child.on("exit", (code) => reject(new Error(`serve ended with ${code}`)));
  });
  return { url, pid: child.pid, stop: () => child.kill() };
}

export async function launch() {
  return chromium.launch({
    executablePath: browserPath,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A page that remembers what went wrong on it and whom it asked. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  if (process.env.DOSIMETER_DIST) {
    // The page as it is built now, in front of a program that holds an older one.
    await context.route(/\/app\.(js|css)$/, (route) => route.fulfill({ path: join(root, "web", "dist", new URL(route.request().url()).pathname) }));
  }
  const page = await context.newPage();
  const troubles = [];
  const foreign = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(message.text());
  });
  page.on("pageerror", (error) => troubles.push(error.message));
  page.on("request", (request) => {
    const asked = new URL(request.url());
    if (asked.protocol !== "data:" && asked.origin !== new URL(url).origin) foreign.push(request.url());
  });
  const quiet = () => {
    assert.deepEqual(troubles, [], "the console is empty");
    assert.deepEqual(foreign, [], "nothing is asked of anybody else");
  };
  await page.goto(url);
  return { page, context, quiet, troubles };
}

/** Until the slow numbers belong to the run that the sliders show. */
export async function settled(page) {
  // What was just typed has been drawn.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.waitForSelector('.readings[data-settled="true"]', { timeout: 60_000 });
}

export const remove = (folder) => rmSync(folder, { recursive: true, force: true });

/** The end that may be quoted. */
export function quoted(claim) {
  return claim.side === "upper" ? claim.upper : claim.side === "lower" ? claim.lower : claim.value;
}

/** Drops a file with this text somewhere on the page. */
export async function drop(page, place, name, text) {
  const transfer = await page.evaluateHandle(
    ([file, content]) => {
      const data = new DataTransfer();
      data.items.add(new File([content], file));
      return data;
    },
    [name, text],
  );
  await page.dispatchEvent(place, "drop", { dataTransfer: transfer });
}
