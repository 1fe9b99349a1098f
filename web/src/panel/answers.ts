// What the panel knows about the run: asked for as the sliders move, the cheap answers at once,
// the dear ones when they rest.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Latest, Refusal, post } from "../api.ts";
import { byCoins } from "../batches.ts";
import { BESIDE, SIGNED } from "../names.ts";
import { question, type Run, type State } from "../state.ts";
import type { Account, CalibrationMap, Panel, StepsCurve } from "../types.ts";
import { onPage } from "../words.ts";

/** Milliseconds without a movement after which the sliders rest. */
const REST = 140;

export interface Answers {
  /** Epsilon, advantage and Bayes security of every lens, as the sliders move. */
  account: Account | null;
  /** Everything, of the run at which the sliders last rested. */
  settled: Account | null;
  panel: Panel | null;
  map: CalibrationMap | null;
  steps: StepsCurve | null;
  pinned: Map<string, Account>;
  pinnedPanels: Map<string, Panel>;
  /** The sliders have moved since `settled`. */
  stale: boolean;
  /** The sliders have moved since `account`. */
  moving: boolean;
  /** The charts wait for `account`. */
  waiting: boolean;
  mapStale: boolean;
  problem: string | null;
  mapProblem: string | null;
  stepsProblem: string | null;
}

const LIVE = ["epsilon", "advantage", "bayes-security"];

export function useAnswers(state: State): Answers {
  const { run, delta, pins } = state;
  const [account, setAccount] = useState<Account | null>(null);
  const [settled, setSettled] = useState<Account | null>(null);
  const [panel, setPanel] = useState<Panel | null>(null);
  const [map, setMap] = useState<CalibrationMap | null>(null);
  const [steps, setSteps] = useState<StepsCurve | null>(null);
  // Which question the live and the slow numbers answer.
  const [liveFor, setLiveFor] = useState("");
  const [panelFor, setPanelFor] = useState("");
  const [settledFor, setSettledFor] = useState("");
  const [mapStale, setMapStale] = useState(true);
  const [problem, setProblem] = useState<string | null>(null);
  const [mapProblem, setMapProblem] = useState<string | null>(null);
  const [stepsProblem, setStepsProblem] = useState<string | null>(null);
  const [pinned, setPinned] = useState(() => new Map<string, Account>());
  const [pinnedPanels, setPinnedPanels] = useState(() => new Map<string, Panel>());

  const channels = useMemo(() => {
    const fail = (error: Error) => setProblem(error instanceof Refusal ? `${onPage(error.message)}.` : "The server does not answer.");
    return {
      account: new Latest<Account>("/api/account", (answer, asked) => (setAccount(answer), setLiveFor(keyOf(asked)), setProblem(null)), (error) => {
        // Nothing of an earlier run stays.
        setAccount(null);
        setSettled(null);
        setPanel(null);
        setMap(null);
        setSteps(null);
        setMapProblem(onPage(error.message));
        setStepsProblem(onPage(error.message));
        fail(error);
      }, true),
      settled: new Latest<Account>(
        "/api/account",
        (answer, asked) => {
          setSettled(answer);
          setSettledFor(keyOf(asked));
        },
        () => setSettled(null),
      ),
      panel: new Latest<Panel>("/api/panel", (answer, asked) => (setPanel(answer), setPanelFor(keyOf(asked))), () => setPanel(null), true),
      map: new Latest<CalibrationMap>("/api/map", (answer) => (setMap(answer), setMapStale(false), setMapProblem(null)), (error) => {
        setMap(null);
        setMapProblem(onPage(error.message));
      }),
      steps: new Latest<StepsCurve>("/api/curve", (answer) => (setSteps(answer), setStepsProblem(null)), (error) => {
        setSteps(null);
        setStepsProblem(onPage(error.message));
      }),
    };
  }, []);

  const asked = question(run);
  const whole = JSON.stringify({ run: asked, delta });

  const moving = liveFor !== whole;
  // Where one number takes a part of a second, the others wait for the one that may be signed.
  const waiting = moving && !byCoins(run);

  useEffect(() => channels.account.ask({ run: asked, delta, quantity: LIVE }), [whole]);

  useEffect(() => {
    if (waiting) return undefined;
    // Half of the points while the run moves: an answer then takes half of the time.
    channels.panel.ask({ run: asked, lens: [SIGNED, BESIDE], points: 32 });
    const full = { run: asked, delta };
    const rest = setTimeout(() => {
      channels.panel.ask({ run: asked, lens: [SIGNED, BESIDE], points: 64 });
      channels.settled.ask(full);
    }, REST);
    return () => clearTimeout(rest);
  }, [whole, waiting]);

  // The panel says which of the lenses hold for the run.
  const holds = panelFor === keyOf({ run: asked }) ? (panel?.lines ?? []).map((line) => line.lens) : [];
  useEffect(() => {
    if (waiting || holds.length === 0) return undefined;
    const first = Math.max(1, Math.floor(run.steps / 200));
    const steps = { kind: "steps", run: asked, delta, lens: holds, points: byCoins(run) ? 25 : 9, first };
    const rest = setTimeout(() => channels.steps.ask(steps), REST);
    return () => clearTimeout(rest);
  }, [whole, waiting, holds.join()]);

  // The map stands still while the run moves inside its window.
  const around = JSON.stringify([
    { ...asked, noise_multiplier: 0, steps: 0 },
    delta,
    Math.round(Math.log2(run.noise)),
    Math.round(Math.log10(run.steps)),
  ]);
  useEffect(() => {
    setMapStale(true);
    if (waiting) return undefined;
    channels.map.ask({ run: asked, delta, columns: 9, rows: 7, milliseconds: 60 });
    const rest = setTimeout(() => channels.map.ask({ run: asked, delta, ...(byCoins(run) ? { columns: 17, rows: 13 } : { columns: 9, rows: 7 }) }), REST);
    return () => clearTimeout(rest);
  }, [around, waiting]);

  useEffect(() => {
    for (const pin of pins) {
      const key = pinKey(pin, delta);
      if (!pinned.has(key)) {
        void post<Account>("/api/account", { run: question(pin), delta, quantity: LIVE })
          .then((answer) => setPinned((known) => new Map(known).set(key, answer)))
          .catch(() => undefined);
      }
      const curve = JSON.stringify(pin);
      if (!pinnedPanels.has(curve)) {
        void post<Panel>("/api/panel", { run: question(pin), lens: [SIGNED] })
          .then((answer) => setPinnedPanels((known) => new Map(known).set(curve, answer)))
          .catch(() => undefined);
      }
    }
  }, [JSON.stringify(pins), delta]);

  const stale = moving || settledFor !== whole;
  return { account, settled, panel, map, steps, pinned, pinnedPanels, stale, moving, waiting, mapStale, problem, mapProblem, stepsProblem };
}

/** No number at all, where a field is wrong: what was known belongs to another run. */
export function without(answers: Answers, problem: string): Answers {
  return {
    ...answers,
    account: null,
    settled: null,
    panel: null,
    map: null,
    steps: null,
    problem,
    mapProblem: "A field is wrong.",
    stepsProblem: "A field is wrong.",
  };
}

/** The run and the delta of a question, as text. */
function keyOf(asked: unknown): string {
  const { run, delta } = asked as { run: unknown; delta: unknown };
  return JSON.stringify({ run, delta });
}

export function pinKey(pin: Run, delta: number): string {
  return JSON.stringify([pin, delta]);
}
