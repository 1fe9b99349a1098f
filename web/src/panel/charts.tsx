// The panel's charts: what an attacker can do, the whole profile, the budget over training.

import { useMemo } from "preact/hooks";
import { Plot, type Line, type Mark } from "../charts/plot.tsx";
import { DIGITS, percent, powerOfTen, rounded, withCommas } from "../numbers.ts";
import { UNCOVERED, describe, type State } from "../state.ts";
import { LENS_LABELS, SIGNED, type Lens, type Standing } from "../names.ts";
import type { Panel, PanelLine, StepsLine } from "../types.ts";
import type { Answers } from "./answers.ts";
import { PIN_HUES } from "./pins.tsx";
import { findClaim } from "./readings.tsx";

export const DASHED = [7, 5];
const DOTTED = [2, 4];

function look(standing: Standing): { hue: string; dash?: number[] } {
  if (standing === "proven") return { hue: "proven" };
  return { hue: "heuristic", dash: standing === "estimate" ? DOTTED : DASHED };
}

/** Why nothing is drawn, when nothing is. */
function silence(panel: Panel | null, problem: string | null): string {
  if (panel !== null && panel.lines.length === 0) return UNCOVERED;
  return problem ?? "Computing…";
}

function label(line: { lens: Lens; standing: Standing }): string {
  return `${LENS_LABELS[line.lens]} (${line.standing})`;
}

/** Values of a pinned run at other places than it was computed for. */
function onto(xs: number[], from: number[], values: number[]): (number | null)[] {
  return xs.map((x) => {
    const next = from.findIndex((place) => place >= x);
    if (next < 0) return null;
    if (next === 0 || from[next] === x) return values[next]!;
    const [x0, x1, y0, y1] = [from[next - 1]!, from[next]!, values[next - 1]!, values[next]!];
    if (!(y0 > 0 && y1 > 0)) return null;
    const share = (x - x0) / (x1 - x0);
    return Math.exp(Math.log(y0) + share * Math.log(y1 / y0));
  });
}

function pins(state: State, answers: Answers, make: (panel: Panel, line: PanelLine) => (number | null)[]): Line[] {
  return state.pins.flatMap((pin, index) => {
    const panel = answers.pinnedPanels.get(JSON.stringify(pin));
    const line = panel?.lines[0];
    if (!panel || !line) return [];
    return [{ name: describe(pin), hue: PIN_HUES[index]!, width: 1.5, values: make(panel, line) }];
  });
}

export function Tradeoff({ state, answers }: { state: State; answers: Answers }) {
  const panel = answers.panel;
  const lines = useMemo((): Line[] => {
    if (panel === null) return [];
    return [
      { name: "guessing", hue: "muted", dash: DOTTED, width: 1.5, values: panel.fpr, quiet: true },
      ...pins(state, answers, (_panel, line) => line.tpr),
      ...[...panel.lines].reverse().map((line) => ({ name: label(line), ...look(line.standing), values: line.tpr })),
    ];
  }, [panel, answers.pinnedPanels, state.pins]);
  const claim = findClaim(answers.settled, SIGNED, "tpr", 0.001);
  const title =
    claim?.upper && !answers.stale
      ? `At 0.1 % false alarms an attack finds at most ${percent(claim.upper, DIGITS, "upper")} of members`
      : "What an attack can find at each rate of false alarms";
  return (
    <Plot
      id="tradeoff"
      title={title}
      caption="No attack gets above the solid line; the dotted diagonal is guessing."
      x={{ label: "false positive rate", log: true, low: 1e-5, high: 1 }}
      y={{ label: "true positive rate", log: true, low: 1e-5, high: 1 }}
      xs={panel?.fpr ?? []}
      lines={lines}
      stale={answers.waiting}
      note={silence(panel, answers.problem)}
    />
  );
}

export function Profile({ state, answers }: { state: State; answers: Answers }) {
  const panel = answers.panel;
  const xs = panel?.epsilon ?? [];
  const positive = (values: number[]) => values.map((value) => (value > 1e-12 ? value : null));
  const lines = useMemo((): Line[] => {
    if (panel === null) return [];
    return [
      ...pins(state, answers, (pinned, line) => onto(xs, pinned.epsilon, line.delta)),
      ...[...panel.lines].reverse().map((line) => ({ name: label(line), ...look(line.standing), values: positive(line.delta) })),
    ];
  }, [panel, answers.pinnedPanels, state.pins]);
  const epsilon = findClaim(answers.account, SIGNED, "epsilon")?.upper;
  const marks: Mark[] = epsilon ? [{ x: epsilon, y: state.delta, hue: "proven" }] : [];
  return (
    <Plot
      id="profile"
      title={
        epsilon
          ? `ε ≤ ${rounded(epsilon, DIGITS, "upper")} at δ = ${powerOfTen(state.delta)} is one point of the profile`
          : "The privacy profile"
      }
      caption="The run is (ε, δ)-private for every point on or above the solid line."
      x={{ label: "ε" }}
      y={{ label: "δ", log: true, low: 1e-8, high: 1 }}
      xs={xs}
      lines={lines}
      marks={marks}
      stale={answers.waiting}
      note={silence(panel, answers.problem)}
    />
  );
}

export function Steps({ state, answers }: { state: State; answers: Answers }) {
  const curve = answers.steps;
  const all: StepsLine[] = curve === null ? [] : [curve, ...(curve.others ?? [])];
  const xs = useMemo(() => [...new Set(all.flatMap((line) => line.points.map((point) => point.steps)))].sort((a, b) => a - b), [curve]);
  const budget = state.target.quantity === "epsilon" ? state.target.value : null;
  const lines = useMemo((): Line[] => {
    const at = (line: StepsLine) => {
      const known = new Map(line.points.map((point) => [point.steps, point.upper]));
      return xs.map((count) => known.get(count) ?? null);
    };
    const drawn: Line[] = [...all].reverse().map((line) => ({ name: label(line), ...look(line.standing), values: at(line) }));
    if (budget !== null && xs.length > 0) {
      drawn.unshift({ name: `target ε ${budget}`, hue: "ink", dash: DOTTED, width: 1.5, values: xs.map(() => budget) });
    }
    return drawn;
  }, [curve, budget]);
  const last = curve?.points[curve.points.length - 1];
  const half = curve?.points.find((point) => point.upper !== null && last?.upper && point.upper >= last.upper / 2);
  return (
    <Plot
      id="steps"
      title={
        half && last
          ? `Half of ε is spent by step ${withCommas(half.steps)} of ${withCommas(last.steps)}`
          : "ε if training stopped earlier"
      }
      caption="Each point is ε if training stopped there."
      x={{ label: "steps", log: true }}
      y={{ label: "ε", log: true }}
      xs={xs}
      lines={lines}
      stale={answers.stale}
      note={answers.stepsProblem ?? silence(answers.panel, answers.problem)}
    />
  );
}
