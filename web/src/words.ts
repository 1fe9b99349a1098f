// Names that people read; those of lenses, standings and quantities are the vocabulary's.

import { LENS_LABELS, QUANTITY_LABELS } from "./names.ts";
import type { Lens, Quantity } from "./names.ts";

export { STANDING_MEANS } from "./names.ts";

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export function lensName(lens: Lens): string {
  return capital(LENS_LABELS[lens]);
}

/** What can be a target, each with where it is asked for. */
export const QUANTITY_NAMES: Partial<Record<Quantity, string>> = {
  epsilon: "ε at δ",
  mu: "μ at δ",
  tpr: `${QUANTITY_LABELS.tpr} at FPR 0.1 %`,
  advantage: capital(QUANTITY_LABELS.advantage),
  "bayes-security": QUANTITY_LABELS["bayes-security"],
  "attack-accuracy": capital(QUANTITY_LABELS["attack-accuracy"]),
};

export const SOLVE_NAMES: Record<string, string> = {
  "noise-multiplier": "noise multiplier",
  steps: "steps",
  "sample-rate": "sample rate",
};

/** Flags that the core's sentences name, as the page calls their fields. */
const FIELDS: [string, string][] = [
  ["--adjacency zero-out", "the neighbours “zero-out”"],
  ["--max-batch-size", "the largest batch B"],
  ["--dataset-size", "the records n"],
  ["--cycle-length", "the groups c"],
];

/** A sentence of the core with the page's own names for what it asks for. */
export function onPage(sentence: string): string {
  const here = FIELDS.reduce((text, [flag, field]) => text.replaceAll(flag, field), sentence);
  return here.includes("--") ? `${here} (flags of the command line)` : here;
}
