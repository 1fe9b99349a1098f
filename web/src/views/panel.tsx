// The instrument panel: controls on the left, readings and charts on the right.

import { MapChart } from "../charts/map.tsx";
import { useAnswers } from "../panel/answers.ts";
import { Profile, Steps, Tradeoff } from "../panel/charts.tsx";
import { Controls } from "../panel/controls.tsx";
import { CopyCard } from "../panel/copycard.tsx";
import { Lenses } from "../panel/lenses.tsx";
import { Pins } from "../panel/pins.tsx";
import { Readings } from "../panel/readings.tsx";
import { TargetCard } from "../panel/target.tsx";
import type { Run, State } from "../state.ts";

export function PanelView({ state, update }: { state: State; update: (change: Partial<State>) => void }) {
  const answers = useAnswers(state);
  const onRun = (change: Partial<Run>) => update({ run: { ...state.run, ...change } });
  const onTarget = (change: Partial<State["target"]>) => update({ target: { ...state.target, ...change } });
  const target = state.target.quantity === "epsilon" ? state.target.value : null;
  return (
    <div class="panel">
      <div class="side">
        <Controls state={state} onRun={onRun} onDelta={(delta) => update({ delta })} />
        <TargetCard state={state} onTarget={onTarget} onRun={onRun} />
        <CopyCard state={state} />
      </div>
      <div class="main">
        {answers.problem !== null && (
          <p class="card refusal" role="alert">
            {answers.problem}
          </p>
        )}
        <Readings account={answers.account} settled={answers.settled} delta={state.delta} stale={answers.stale} />
        <div class="charts">
          <Tradeoff state={state} answers={answers} />
          <Profile state={state} answers={answers} />
          <MapChart map={answers.map} run={state.run} target={target} stale={answers.mapStale} problem={answers.mapProblem}
            onChoose={(noise, steps) => onRun({ noise, steps })} />
          <Steps state={state} answers={answers} />
        </div>
        <Lenses account={answers.account} settled={answers.settled} delta={state.delta} stale={answers.stale} />
        <Pins state={state} accounts={answers.pinned} onPins={(pins) => update({ pins })} onRun={(run) => update({ run })} />
      </div>
    </div>
  );
}
