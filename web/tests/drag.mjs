// Dragging a slider as a hand does, and counting what the core answers meanwhile.

const SECONDS = 1.5;

/** Answers per second of several drags, one after the other, and how many answers came in all. */
export async function dragged(page, times) {
  let answers = 0;
  let all = 0;
  const count = (response) => {
    if (/\/api\/(account|panel)$/.test(response.url()) && response.ok()) answers += 1;
  };
  page.on("response", count);
  const box = await page.getByLabel("Noise multiplier, slider").boundingBox();
  const at = (share) => page.mouse.move(box.x + box.width * share, box.y + box.height / 2);
  await at(0.4);
  await page.mouse.down();
  const rates = [];
  for (let turn = 0; turn < times; turn++) {
    answers = 0;
    const begun = performance.now();
    for (let moves = 0; performance.now() - begun < 1000 * SECONDS; moves++) await at(0.5 + 0.15 * Math.sin(moves / 40));
    rates.push((1000 * answers) / (performance.now() - begun));
    all += answers;
  }
  await page.mouse.up();
  page.off("response", count);
  return { rates, answers: all };
}

export const drags = async (page, times) => (await dragged(page, times)).rates;

/** The same questions one by one with nothing to draw: what the machine has to spare. */
export function bare(page) {
  return page.evaluate(async (seconds) => {
    const headers = { "content-type": "application/json" };
    const ask = (path, question) => fetch(path, { method: "POST", headers, body: JSON.stringify(question) }).then((got) => got.json());
    const begun = performance.now();
    let count = 0;
    while (performance.now() - begun < 1000 * seconds) {
      const run = { noise_multiplier: 1 + count / 1e4, sample_rate: 0.01, steps: 1000 };
      await ask("/api/account", { run, delta: 1e-5, quantity: ["epsilon", "advantage", "bayes-security"] });
      await ask("/api/panel", { run, lens: ["composition", "last-iterate"], points: 32 });
      count += 2;
    }
    return (1000 * count) / (performance.now() - begun);
  }, SECONDS);
}
