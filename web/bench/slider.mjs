// Prints how many answers per second the page gets from the core while its slider is dragged in
// Chromium, and the processor time of one answer in milliseconds, which does not depend on what else
// runs: the server's, and that of the page's own thread, which draws it. One line of JSON;
// `cargo xtask bench` reads it.

import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { bare, dragged } from "../tests/drag.mjs";
import { launch, open, remove, serve, settled, temporary } from "../tests/harness.mjs";

/** Milliseconds of processor time of a process, in Linux's hundredths of a second. */
function spent(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

const folder = temporary();
const server = await serve(folder);
const browser = await launch();
try {
  const { page, context } = await open(browser, server.url);
  await settled(page);
  const profiler = await context.newCDPSession(page);
  await profiler.send("Performance.enable", { timeDomain: "threadTicks" });
  const drawing = async () => 1000 * (await profiler.send("Performance.getMetrics")).metrics.find((one) => one.name === "TaskDuration").value;
  const load = loadavg()[0];
  const before = { server: spent(server.pid), page: await drawing() };
  const { rates, answers } = await dragged(page, 5);
  const each = { server: (spent(server.pid) - before.server) / answers, page: ((await drawing()) - before.page) / answers };
  console.log(JSON.stringify({ rates, each, bare: await bare(page), load }));
} finally {
  await browser.close();
  server.stop();
  remove(folder);
}
