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
  | "gaussian-pair";

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
  | "cyclic-poisson";

export type Adjacency =
  | "add-remove"
  | "substitute"
  | "zero-out";

export type Permutation =
  | "fresh"
  | "kept";

export type Stopped =
  | "on-output";

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
