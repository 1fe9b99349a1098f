// Which noise, steps or rate meets a target; the answer can be taken over.

import { useEffect, useId, useMemo, useState } from "preact/hooks";
import { Latest, Refusal } from "../api.ts";
import { byCoins } from "../batches.ts";
import { plain, quote, withCommas } from "../numbers.ts";
import { QUANTITIES, SOLVES, question, type Change, type Run, type State, type Target } from "../state.ts";
import type { Calibration } from "../types.ts";
import { AT_LEAST, CERTIFIED, LENS_LABELS, type Lens, type Quantity } from "../names.ts";
import { QUANTITY_NAMES, SOLVE_NAMES, onPage } from "../words.ts";
import { Choice } from "./controls.tsx";

/** Milliseconds without a movement after which a slow question is asked. */
const REST = 500;

const USUAL: Record<string, number> = {
  epsilon: 2,
  mu: 0.5,
  tpr: 0.01,
  advantage: 0.1,
  "bayes-security": 0.9,
  "attack-accuracy": 0.6,
};

export function calibrateQuestion(run: Run, delta: number, target: Target): Record<string, unknown> {
  const asked = question(run);
  if (target.solve === "noise-multiplier") delete asked["noise_multiplier"];
  if (target.solve === "steps") delete asked["steps"];
  if (target.solve === "sample-rate") delete asked["sample_rate"];
  const all: Record<string, unknown> = { run: asked, solve: target.solve, lens: target.lens };
  all[`target_${target.quantity.replaceAll("-", "_")}`] = target.value;
  if (target.quantity === "epsilon" || target.quantity === "mu") all["delta"] = delta;
  if (target.quantity === "tpr") all["fpr"] = 0.001;
  return all;
}

interface Props {
  state: State;
  onTarget: (change: Change<Target>) => void;
  onRun: (change: Change<Run>) => void;
  /** A field of the run is wrong: there is nothing to solve. */
  blocked: boolean;
}

export function TargetCard({ state, onTarget, onRun, blocked }: Props) {
  const { run, delta, target } = state;
  const id = useId();
  const [found, setFound] = useState<Calibration | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [typed, setTyped] = useState(plain(target.value));
  const [foundFor, setFoundFor] = useState("");
  const wrong = !(Number(typed) > 0 && Number.isFinite(Number(typed)));
  const channel = useMemo(
    () =>
      new Latest<Calibration>(
        "/api/calibrate",
        (answer, question) => (setFound(answer), setFoundFor(JSON.stringify(question)), setProblem(null)),
        (error: Error) => {
          setFound(null);
          setProblem(error instanceof Refusal ? onPage(error.message) : "the server does not answer");
        },
      ),
    [],
  );
  useEffect(() => setTyped(plain(target.value)), [target.value, target.quantity]);
  const asked = JSON.stringify(calibrateQuestion(run, delta, target));
  useEffect(() => {
    // A slow answer is asked for when the sliders rest.
    const rest = setTimeout(() => channel.ask(JSON.parse(asked)), byCoins(run) ? 0 : REST);
    return () => clearTimeout(rest);
  }, [asked]);

  const solved = found?.solution;
  const answer =
    solved?.steps !== undefined ? withCommas(solved.steps) : (found?.solution_shown ?? null);
  const apply = () => {
    if (solved?.noise_multiplier !== undefined) onRun({ noise: Number(found?.solution_shown) });
    if (solved?.sample_rate !== undefined) onRun({ rate: Number(found?.solution_shown) });
    if (solved?.steps !== undefined) onRun({ steps: solved.steps });
  };
  return (
    <section class="card target" aria-labelledby="target-title">
      <h2 id="target-title">The target</h2>
      <div class="target-row">
        <Choice name="Quantity" value={target.quantity} options={QUANTITIES} labels={QUANTITY_NAMES}
          onChange={(quantity) => onTarget({ quantity, value: USUAL[quantity] ?? 1 })} />
        <div class="choice">
          <label for={id}>{AT_LEAST.includes(target.quantity as Quantity) ? "At least" : "At most"}</label>
          <input id={id} class={wrong ? "wrong" : ""} aria-invalid={wrong} inputMode="decimal" autocomplete="off" value={typed}
            onInput={(event) => {
              const text = (event.currentTarget as HTMLInputElement).value;
              setTyped(text);
              if (Number(text) > 0 && Number.isFinite(Number(text))) onTarget({ value: Number(text) });
            }} />
        </div>
      </div>
      <div class="pair">
        <Choice name="Solve for" value={target.solve} options={SOLVES} labels={{ "noise-multiplier": "noise σ", steps: "steps T", "sample-rate": "rate q" }}
          onChange={(solve) => onTarget({ solve })} />
        <Choice name="Lens" value={target.lens} options={CERTIFIED} labels={LENS_LABELS}
          onChange={(lens) => onTarget({ lens: lens as Lens })} />
      </div>
      <div class="solution" aria-live="polite">
        {wrong || blocked ? (
          <p class="small field-wrong">{wrong ? "Give a number above 0" : "A field of the run is wrong"}</p>
        ) : answer !== null && found !== null ? (
          <>
            <p class={`answer${foundFor === asked ? "" : " stale"}`}>
              <span class="quiet">{SOLVE_NAMES[target.solve]}</span> <output id="solution">{answer}</output>
            </p>
            <button type="button" onClick={apply}>
              Take it
            </button>
            <p class="small quiet">
              achieves {quote(found.achieved)} ({found.achieved.standing})
              {found.warnings.map((warning) => `; ${warning}`)}
            </p>
          </>
        ) : (
          <p class="small quiet">{problem ?? "Computing…"}</p>
        )}
      </div>
    </section>
  );
}
