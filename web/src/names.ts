// Names with a closed set of values, as the documents spell them.
// Made by `cargo xtask generate` from the vocabulary; do not edit.

export type Lens =
  | "composition"
  | "last-iterate"
  | "last-iterate-max"
  | "full-batch"
  | "renyi"
  | "gaussian-clt"
  | "advanced-composition"
  | "closed-form"
  | "closed-form-clt"
  | "closed-form-certified"
  | "hidden-state"
  | "hidden-state-renyi";

export type Method =
  | "clopper-pearson"
  | "gdp"
  | "composition"
  | "last-iterate"
  | "bayes"
  | "grid"
  | "one-run"
  | "one-run-gdp"
  | "one-run-independent"
  | "gaussian-pair"
  | "sequential";

export type Quantity =
  | "epsilon"
  | "delta"
  | "mu"
  | "tpr"
  | "advantage"
  | "bayes-security"
  | "reconstruction"
  | "attack-accuracy";

export type Sampling =
  | "poisson"
  | "full"
  | "shuffle"
  | "fixed-size"
  | "balls-and-bins"
  | "truncated-poisson"
  | "cyclic-poisson"
  | "in-order";

export type Adjacency =
  | "add-remove"
  | "substitute"
  | "zero-out";

export type Permutation =
  | "fresh"
  | "kept";

export type Stopped =
  | "on-output"
  | "renyi-filter";

export type Release =
  | "all-iterates"
  | "last-iterate";

export type Secret =
  | "membership"
  | "attribute"
  | "reconstruction";

export type Direction =
  | "both"
  | "add"
  | "remove";

export type Standing =
  | "proven"
  | "heuristic"
  | "estimate"
  | "measured";

export type Side =
  | "upper"
  | "lower"
  | "neither";

export type VerdictStatus =
  | "consistent"
  | "contradiction"
  | "inconclusive"
  | "claim-only"
  | "measured-only"
  | "nothing";

export type Schema =
  | "dosimeter.account/1"
  | "dosimeter.report/1"
  | "dosimeter.calibrate/1"
  | "dosimeter.advice/1"
  | "dosimeter.curve/1"
  | "dosimeter.compare/1"
  | "dosimeter.map/1"
  | "dosimeter.batch-sizes/1"
  | "dosimeter.check/1"
  | "dosimeter.audit/1"
  | "dosimeter.sequential-audit/1"
  | "dosimeter.membership/1"
  | "dosimeter.audit-commitment/1"
  | "dosimeter.proof/1"
  | "dosimeter.plan/1"
  | "dosimeter.tune-regress/1"
  | "dosimeter.tune-rank/1"
  | "dosimeter.tune-select/1"
  | "dosimeter.tune-profiles/1"
  | "dosimeter.tune-search/1"
  | "dosimeter.status/1"
  | "dosimeter.panel/1"
  | "dosimeter.calibration-map/1"
  | "dosimeter.error/1"
  | "dosimeter.translate/2"
  | "dosimeter.ledger/1"
  | "dosimeter.run/1"
  | "dosimeter.policy/1"
  | "dosimeter.figure/1"
  | "dosimeter.attack/1"
  | "dosimeter.data/1"
  | "dosimeter.data-description/1"
  | "dosimeter.memorize/1"
  | "dosimeter.memorize-acr/1"
  | "dosimeter.reproduce/1";

export const SIGNED: Lens = "composition";
export const BESIDE: Lens = "last-iterate";
export const CERTIFIED: Lens[] = ["composition", "last-iterate", "last-iterate-max", "full-batch"];
export const BY_COINS: Sampling[] = ["poisson", "full"];
export const AT_LEAST: Quantity[] = ["bayes-security"];
export const NOTHING_TO_SIGN = "nothing. No lens proves a number for this run.";

export const LENS_LABELS: Record<Lens, string> = {
  "composition": "composition",
  "last-iterate": "last iterate",
  "last-iterate-max": "last iterate (any stop)",
  "full-batch": "full batch",
  "renyi": "Rényi",
  "gaussian-clt": "Gaussian limit",
  "advanced-composition": "advanced composition",
  "closed-form": "closed form",
  "closed-form-clt": "closed form (limit)",
  "closed-form-certified": "closed form (certified)",
  "hidden-state": "hidden state",
  "hidden-state-renyi": "hidden state (Rényi)",
};

export const STANDING_MEANS: Record<Standing, string> = {
  "proven": "proven: a theorem covers it",
  "heuristic": "heuristic: true only under an assumption that training does not satisfy",
  "estimate": "estimate: may err on either side",
  "measured": "measured: observed, with a confidence",
};

export const QUANTITY_LABELS: Record<Quantity, string> = {
  "epsilon": "epsilon",
  "delta": "delta",
  "mu": "mu",
  "tpr": "TPR",
  "advantage": "advantage",
  "bayes-security": "Bayes security",
  "reconstruction": "reconstruction",
  "attack-accuracy": "attack accuracy",
};

export const SAMPLING_LABELS: Record<Sampling, string> = {
  "poisson": "Poisson",
  "full": "full",
  "shuffle": "shuffled",
  "fixed-size": "fixed size",
  "balls-and-bins": "balls and bins",
  "truncated-poisson": "truncated Poisson",
  "cyclic-poisson": "cyclic Poisson",
  "in-order": "in order",
};

export const ADJACENCY_LABELS: Record<Adjacency, string> = {
  "add-remove": "add/remove",
  "substitute": "substitution",
  "zero-out": "zero-out",
};

export const VERDICT_MEANS: Record<VerdictStatus, string> = {
  "consistent": "Consistent: the scores could have contradicted the claim and did not",
  "contradiction": "Contradiction: the scores show more leakage than is claimed",
  "inconclusive": "Inconclusive: these scores could not have decided",
  "claim-only": "Claim only",
  "measured-only": "Measured only",
  "nothing": "Nothing claimed",
};

export const DOMAIN = {
  noise: { least: 0.2, most: 100.0 },
  rate: { least: 1e-7, most: 1.0 },
  steps: { least: 1.0, most: 1000000000.0 },
  delta: { least: 1e-100, most: 0.5 },
};
