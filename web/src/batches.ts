// Ways to draw batches: their names on the page, and what each has of its own besides a rate.

import { ADJACENCY_LABELS, BY_COINS, SAMPLING_LABELS, type Adjacency, type Sampling } from "./names.ts";
import type { Run } from "./state.ts";

export const SAMPLINGS = Object.keys(SAMPLING_LABELS) as Sampling[];
export const ADJACENCIES = Object.keys(ADJACENCY_LABELS) as Adjacency[];
export const ORDERS = ["fresh", "kept"];

/** What belongs to one way to draw batches alone. A count is 0 where it is not said. */
export interface Own {
  order: string;
  repeats: boolean;
  largest: number;
  groups: number;
  uses: number;
}

export const NOTHING_OWN: Own = { order: "fresh", repeats: false, largest: 0, groups: 0, uses: 0 };

/** The keys of a run that belong to its way to draw batches, as documents spell them. */
export function ownKeys(run: Run): Record<string, string | number | boolean> {
  switch (run.sampling) {
    case "shuffle":
      return run.order === "fresh" ? {} : { permutation: run.order };
    case "fixed-size":
      return run.repeats ? { replacement: true } : {};
    case "balls-and-bins":
      return run.uses > 0 ? { uses_per_epoch: run.uses } : {};
    case "truncated-poisson":
      return run.largest > 0 ? { max_batch_size: run.largest } : {};
    case "cyclic-poisson":
      return run.groups > 0 ? { cycle_length: run.groups } : {};
    default:
      return {};
  }
}

/** The same, read back. */
export function ownFromDocument(written: Record<string, unknown>): Own {
  return {
    order: written["permutation"] === "kept" ? "kept" : "fresh",
    repeats: written["replacement"] === true,
    largest: Number(written["max_batch_size"] ?? 0),
    groups: Number(written["cycle_length"] ?? 0),
    uses: Number(written["uses_per_epoch"] ?? 0),
  };
}

/** The way a run draws its batches, in a few words. */
export function way(run: Run): string {
  const name = SAMPLING_LABELS[run.sampling];
  const all: Partial<Record<Sampling, string>> = {
    shuffle: run.order === "kept" ? "one order" : "",
    "fixed-size": run.repeats ? "with repeats" : "",
    "balls-and-bins": run.uses > 1 ? `${run.uses} uses per epoch` : "",
    "truncated-poisson": run.largest > 0 ? `at most ${run.largest}` : "",
    "cyclic-poisson": run.groups > 0 ? `${run.groups} groups` : "",
  };
  const own = all[run.sampling] ?? "";
  return own === "" ? name : `${name}, ${own}`;
}

/** Whether every record joins every batch by its own coin: what every lens but composition is about. */
export function byCoins(run: Run): boolean {
  return BY_COINS.includes(run.sampling);
}

/** The expected share of all records in a batch. */
export function share(run: Run): number {
  switch (run.sampling) {
    case "full":
      return 1;
    case "cyclic-poisson":
      return run.rate / Math.max(1, run.groups);
    case "balls-and-bins":
      return run.rate * Math.max(1, run.uses);
    default:
      return run.rate;
  }
}

/** Batches per epoch, where it has to be a whole number of them. */
export function wholeBatches(run: Run): number | null {
  return run.sampling === "balls-and-bins" ? Math.max(1, Math.round(1 / run.rate)) : null;
}
