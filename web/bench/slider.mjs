// Prints how many answers per second the page gets from the core while its slider is dragged in
// Chromium, as one line of JSON; `cargo xtask bench` reads it.

import { loadavg } from "node:os";
import { bare, drags } from "../tests/drag.mjs";
import { launch, open, remove, serve, settled, temporary } from "../tests/harness.mjs";

const folder = temporary();
const server = await serve(folder);
const browser = await launch();
try {
  const { page } = await open(browser, server.url);
  await settled(page);
  const load = loadavg()[0];
  console.log(JSON.stringify({ rates: await drags(page, 5), bare: await bare(page), load }));
} finally {
  await browser.close();
  server.stop();
  remove(folder);
}
