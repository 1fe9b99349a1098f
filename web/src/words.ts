// Names that people read.

const LENSES: Record<string, string> = {
  composition: "Composition",
  "last-iterate": "Last iterate",
  "last-iterate-max": "Last iterate (any stop)",
  "full-batch": "Full batch",
  renyi: "Rényi",
  "gaussian-clt": "Gaussian limit",
  "advanced-composition": "Advanced composition",
  "hidden-state": "Hidden state",
  "hidden-state-renyi": "Hidden state (Rényi)",
  "closed-form": "Closed form",
  "closed-form-clt": "Closed form (limit)",
  "closed-form-certified": "Closed form (certified)",
};

export function lensName(lens: string): string {
  return LENSES[lens] ?? lens;
}

export const STANDING_MEANS: Record<string, string> = {
  proven: "A theorem covers it; the quoted end is on the safe side.",
  heuristic: "True under a named assumption that training does not satisfy.",
  estimate: "An approximation without a side; do not quote it as a bound.",
  measured: "Observed, at the stated confidence.",
};

export const QUANTITY_NAMES: Record<string, string> = {
  epsilon: "ε at δ",
  mu: "μ at δ",
  tpr: "TPR at FPR 0.1 %",
  advantage: "Advantage",
  "bayes-security": "Bayes security",
  "attack-accuracy": "Attack accuracy",
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
