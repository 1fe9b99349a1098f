// What the page shows, and its form in the address: everything after `#`, so that a link or a
// reload brings back the same page.

import { ADJACENCIES, NOTHING_OWN, ORDERS, SAMPLINGS, ownFromDocument, ownKeys, share, way, type Own } from "./batches.ts";
import { ADJACENCY_LABELS, CERTIFIED, SIGNED, type Adjacency, type Lens, type Sampling } from "./names.ts";

export interface Run extends Own {
  noise: number;
  rate: number;
  steps: number;
  sampling: Sampling;
  adjacency: Adjacency;
  /** Records in the data set; 0 where that is not said. */
  records: number;
}

export type View = "panel" | "audit" | "experiments";

export interface Target {
  quantity: string;
  value: number;
  solve: string;
  lens: Lens;
}

export interface State {
  view: View;
  run: Run;
  delta: number;
  target: Target;
  pins: Run[];
  experiment: string;
}

/** What becomes of a part of the page: new values, or how they follow from what is there by then. Two
    changes between two drawings both count only if the second knows the first. */
export type Change<Part> = Partial<Part> | ((now: Part) => Partial<Part>);

export function changed<Part extends object>(now: Part, change: Change<Part>): Part {
  return { ...now, ...(typeof change === "function" ? change(now) : change) };
}

export const MOST_PINS = 4;

export const START: State = {
  view: "panel",
  run: { noise: 1, rate: 0.01, steps: 1000, sampling: "poisson", adjacency: "add-remove", records: 0, ...NOTHING_OWN },
  delta: 1e-5,
  target: { quantity: "epsilon", value: 2, solve: "noise-multiplier", lens: SIGNED },
  pins: [],
  experiment: "",
};

export const QUANTITIES = ["epsilon", "mu", "tpr", "advantage", "bayes-security", "attack-accuracy"];
export const SOLVES = ["noise-multiplier", "steps", "sample-rate"];

function short(number: number): string {
  return String(number);
}

/** Counts that a run may have, by their letter in the address. */
const COUNTS = { n: "records", m: "largest", c: "groups", u: "uses" } as const;

function runToText(run: Run): string {
  const counts = Object.entries(COUNTS).flatMap(([letter, key]) => (run[key] > 0 ? [`${letter}${short(run[key])}`] : []));
  const order = run.order === "fresh" ? [] : [run.order];
  const repeats = run.repeats ? ["repeats"] : [];
  return [short(run.noise), short(run.rate), short(run.steps), run.sampling, run.adjacency, ...counts, ...order, ...repeats].join("_");
}

function number(text: string | null | undefined, fallback: number, low: number, high: number): number {
  const value = Number(text ?? "");
  return text && Number.isFinite(value) && value >= low && value <= high ? value : fallback;
}

function oneOf<Name extends string>(text: string | null | undefined, known: readonly Name[], fallback: Name): Name {
  return known.find((name) => name === text) ?? fallback;
}

function runFromText(text: string, fallback: Run): Run {
  const [noise, rate, steps, sampling, adjacency, ...rest] = text.split("_");
  const count = (letter: string) =>
    Math.round(number(rest.find((part) => part.startsWith(letter) && /^.[0-9]/.test(part))?.slice(1), 0, 1, 1e12));
  return {
    noise: number(noise, fallback.noise, 1e-3, 1e3),
    rate: number(rate, fallback.rate, 1e-9, 1),
    steps: Math.round(number(steps, fallback.steps, 1, 1e12)),
    sampling: oneOf(sampling, SAMPLINGS, fallback.sampling),
    adjacency: oneOf(adjacency, ADJACENCIES, fallback.adjacency),
    records: count("n"),
    largest: count("m"),
    groups: count("c"),
    uses: count("u"),
    order: rest.find((part) => ORDERS.includes(part)) ?? fallback.order,
    repeats: rest.includes("repeats"),
  };
}

export function toHash(state: State): string {
  const part = new URLSearchParams();
  part.set("run", runToText(state.run));
  part.set("delta", short(state.delta));
  const { quantity, value, solve, lens } = state.target;
  part.set("target", [quantity, short(value), solve, lens].join("_"));
  if (state.pins.length > 0) part.set("pins", state.pins.map(runToText).join("~"));
  if (state.experiment) part.set("experiment", state.experiment);
  return `#/${state.view}?${part}`;
}

export function fromHash(hash: string): State {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const part = new URLSearchParams(query);
  const target = (part.get("target") ?? "").split("_");
  const pins = (part.get("pins") ?? "").split("~").filter((text) => text !== "");
  return {
    view: oneOf<View>(path, ["panel", "audit", "experiments"], "panel"),
    run: runFromText(part.get("run") ?? "", START.run),
    delta: number(part.get("delta"), START.delta, 1e-100, 0.5),
    target: {
      quantity: oneOf(target[0], QUANTITIES, START.target.quantity),
      value: number(target[1], START.target.value, 1e-9, 1e3),
      solve: oneOf(target[2], SOLVES, START.target.solve),
      lens: oneOf(target[3], CERTIFIED, START.target.lens),
    },
    pins: pins.slice(0, MOST_PINS).map((text) => runFromText(text, START.run)),
    experiment: /^[0-9a-f]{16}$/.test(part.get("experiment") ?? "") ? part.get("experiment")! : "",
  };
}

/** The run as questions carry it. */
export function question(run: Run): Record<string, unknown> {
  const all: Record<string, unknown> = { noise_multiplier: run.noise, steps: run.steps };
  if (run.sampling !== "full") all["sample_rate"] = run.rate;
  if (run.sampling !== "poisson") all["sampling"] = run.sampling;
  if (run.adjacency !== "add-remove") all["adjacency"] = run.adjacency;
  if (run.records > 0) all["dataset_size"] = run.records;
  return { ...all, ...ownKeys(run) };
}

/** Keys of documents whose runs the page has no controls for. */
const NOT_SHOWN: Record<string, string> = {
  phases: "has several phases",
  release: "has several releases per step",
  matrix: "has noise that is correlated between steps",
  stopped: "was stopped by looking at its outputs",
};

/** A run as documents spell it, or why the page cannot show it. */
export function fromDocument(written: Record<string, unknown>): Run | string {
  const beyond = Object.keys(NOT_SHOWN).find((key) => written[key] !== undefined);
  const words = beyond !== undefined ? NOT_SHOWN[beyond] : Number(written["group_size"] ?? 1) > 1 ? "is about groups of records" : undefined;
  if (words !== undefined) return `This run ${words}, which the page does not show: use the command line.`;
  const sampling = SAMPLINGS.find((name) => name === (written["sampling"] ?? "poisson"));
  const adjacency = ADJACENCIES.find((name) => name === (written["adjacency"] ?? "add-remove"));
  if (sampling === undefined || adjacency === undefined) {
    return `The page does not show ${written["sampling"]} batches with ${written["adjacency"]} neighbours: use the command line.`;
  }
  const rate = sampling === "full" ? START.run.rate : Number(written["sample_rate"]);
  return {
    noise: Number(written["noise_multiplier"]),
    rate,
    steps: Number(written["steps"]),
    sampling,
    adjacency,
    records: Number(written["dataset_size"] ?? 0),
    ...ownFromDocument(written),
  };
}

/** Expected records in a batch. */
export function batchSize(run: Run): number {
  return share(run) * run.records;
}

/** Passes over the data: a record that is used several times per epoch is passed once. */
export function epochs(run: Run): number {
  return stepRate(run) * run.steps;
}

/** Epochs per step. */
export function stepRate(run: Run): number {
  return run.sampling === "balls-and-bins" ? run.rate : share(run);
}

export const UNCOVERED = "No lens holds for such batches and neighbours; the table says why.";

export function sameRun(a: Run, b: Run): boolean {
  return runToText(a) === runToText(b);
}

/** The run in a few words. */
export function describe(run: Run): string {
  const rate = run.sampling === "full" ? [] : [`q ${run.rate}`];
  const batches = run.sampling === "poisson" ? [] : [run.sampling === "full" ? "full batches" : way(run)];
  const neighbours = run.adjacency === START.run.adjacency ? [] : [ADJACENCY_LABELS[run.adjacency]];
  return [`σ ${run.noise}`, ...rate, `T ${run.steps.toLocaleString("en")}`, ...batches, ...neighbours].join(", ");
}
