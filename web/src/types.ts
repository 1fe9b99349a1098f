// The documents of the API, as far as the page reads them.

import type { Direction, Lens, Method, Quantity, Release, Schema, Side, Standing, VerdictStatus } from "./names.ts";

export type { Side, Standing };

export interface Claim {
  lens: Lens;
  release: Release;
  quantity: Quantity;
  direction: Direction;
  at: { delta?: number; epsilon?: number; fpr?: number; prior?: number };
  standing: Standing;
  side: Side;
  value: number | null;
  lower: number | null;
  upper: number | null;
  /** The end that may be quoted, rounded to its side, with its sign. */
  shown: string;
  /** What the worst data set leaks at least, where the number is an upper bound only. */
  at_least?: number;
  at_least_shown?: string;
  reason?: string;
  assumptions: string[];
}

/** A lens that does not hold, with the field of the run that it is about and what is covered. */
export interface Unsupported {
  lens: Lens;
  reason: string;
  field?: string;
  expected?: string;
}

export interface Account {
  schema: Schema;
  run: Record<string, unknown>;
  /** What may be signed, and what it means. */
  sign?: { lens: Lens; statement: string; means?: string; attribute?: string; beside?: string };
  claims: Claim[];
  unsupported: Unsupported[];
  asides?: { name: string; note: string; shown: string }[];
  warnings: string[];
}

export interface Comparison {
  runs: { name: string; account: Account }[];
  /** Ways to draw batches that have no number for the run. */
  left_out?: { name: string; reason: string }[];
}

export interface Calibration {
  solution: { noise_multiplier?: number; steps?: number; sample_rate?: number };
  /** The solution rounded so that it still meets the target. */
  solution_shown: string;
  achieved: Claim;
  slack: number;
  warnings: string[];
}

export interface PanelLine {
  lens: Lens;
  standing: Standing;
  delta: number[];
  tpr: number[];
}

export interface Panel {
  epsilon: number[];
  fpr: number[];
  lines: PanelLine[];
  unsupported: Unsupported[];
}

export interface CalibrationMap {
  lens: Lens;
  standing: Standing;
  delta: number;
  noise_multiplier: number[];
  steps: number[];
  epsilon: (number | null)[][];
  incomplete: boolean;
}

export interface StepsLine {
  lens: Lens;
  standing: Standing;
  points: { steps: number; epsilon: number | null; upper: number | null }[];
}

export type StepsCurve = StepsLine & { others?: StepsLine[]; warnings?: string[] };

export interface Bound {
  method: Method;
  threshold_rule?: string;
  delta: number;
  epsilon_lower?: number | null;
  epsilon_estimate?: number | null;
  shown: string;
  confidence?: number;
  credibility?: number;
  valid_for: string;
  primary: boolean;
  reason?: string;
}

export interface Measured {
  value: number;
  lower: number;
  upper: number;
}

export interface Audit {
  design: string;
  members: number;
  nonmembers: number;
  bounds: Bound[];
  not_valid: { method: string; reason: string }[];
  auroc: Measured;
  advantage: Measured;
  tpr: (Measured & { fpr: number })[];
  verdict?: { status: VerdictStatus; reason: string };
  warnings: string[];
}

export interface Figure {
  title: string;
  subtitle?: string;
  caption: string;
  x: Axis;
  y: Axis;
  series: Series[];
}

export interface Axis {
  label: string;
  scale?: unknown;
  domain?: [number, number] | null;
  percent?: boolean;
}

export interface Series {
  label: string;
  hue?: string;
  stroke?: string;
  mark: Record<string, unknown>;
}

export interface Audited {
  audit: Audit;
  figures: { roc?: Figure; histogram: Figure; ladder: Figure };
}

export interface Experiment {
  id: string;
  name: string;
  kind?: string;
  parameters?: Record<string, unknown>;
  seed?: number;
  trials?: number;
  chunks?: { all: number; done: number; missing: number; failed: number; unusable: number };
  merged?: boolean;
  results?: boolean;
  seconds_left?: number | null;
  problems?: string[];
  states?: string;
  error?: string;
}
