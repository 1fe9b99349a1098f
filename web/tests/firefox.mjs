// Debian's Firefox by WebDriver BiDi, which it speaks itself: no driver is needed.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import WebSocket from "ws";
import { remove, temporary } from "./harness.mjs";

export const firefoxPath = process.env.FIREFOX ?? ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find(existsSync);

/** Starts it; `evaluate`, `go`, `press` and `troubles` are about its one page. */
export async function firefox() {
  const profile = temporary();
  const child = spawn(firefoxPath, ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, HOME: profile, MOZ_HEADLESS: "1" },
  });
  const address = await new Promise((resolve, reject) => {
    let text = "";
    child.stderr.on("data", (part) => {
      text += part;
      const found = /WebDriver BiDi listening on (ws:\S+)/.exec(text);
      if (found) resolve(`${found[1]}/session`);
    });
    child.on("exit", (code) => reject(new Error(`firefox ended with ${code}: ${text}`)));
  });
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = () => reject(new Error("firefox does not answer"));
  });
  const waiting = new Map();
  const troubles = [];
  let last = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.method === "log.entryAdded" && ["error", "warn"].includes(message.params.level)) troubles.push(message.params.text);
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.type === "error") reject?.(new Error(`${message.error}: ${message.message}`));
    else resolve?.(message.result);
  };
  const send = (method, params = {}) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  await send("session.new", { capabilities: {} });
  await send("session.subscribe", { events: ["log.entryAdded"] });
  const { contexts } = await send("browsingContext.getTree");
  const context = contexts[0].context;

  /** The value of an expression of strings, numbers and booleans. */
  const evaluate = async (expression) => {
    const found = await send("script.evaluate", { expression: `(async () => JSON.stringify((${expression}) ?? null))()`, target: { context }, awaitPromise: true });
    if (found.type === "exception") throw new Error(found.exceptionDetails.text);
    return JSON.parse(found.result.value);
  };
  const until = async (expression, milliseconds = 30_000) => {
    for (const begun = Date.now(); Date.now() - begun < milliseconds; ) {
      const found = await evaluate(expression);
      if (found) return found;
      await new Promise((done) => setTimeout(done, 50));
    }
    throw new Error(`not within ${milliseconds} ms: ${expression}`);
  };
  const press = (...keys) =>
    send("input.performActions", {
      context,
      actions: [{ type: "key", id: "keys", actions: keys.flatMap((value) => [{ type: "keyDown", value }, { type: "keyUp", value }]) }],
    });
  return {
    evaluate,
    until,
    press,
    troubles,
    go: (url) => send("browsingContext.navigate", { context, url, wait: "complete" }),
    size: (width, height) => send("browsingContext.setViewport", { context, viewport: { width, height } }),
    screenshot: async () => Buffer.from((await send("browsingContext.captureScreenshot", { context, origin: "document" })).data, "base64"),
    close: async () => {
      socket.close();
      child.removeAllListeners("exit");
      const gone = new Promise((done) => child.once("exit", done));
      child.kill();
      await gone;
      remove(profile);
    },
  };
}
