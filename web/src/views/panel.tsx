// The instrument panel: controls on the left, readings and charts on the right.

import { MapChart } from "../charts/map.tsx";
import { useState } from "preact/hooks";
import { useAnswers, without } from "../panel/answers.ts";
import { Profile, Steps, Tradeoff } from "../panel/charts.tsx";
import { Controls } from "../panel/controls.tsx";
import { CopyCard } from "../panel/copycard.tsx";
import { Lenses } from "../panel/lenses.tsx";
import { Pins } from "../panel/pins.tsx";
import { Readings, Sign } from "../panel/readings.tsx";
import { TargetCard } from "../panel/target.tsx";
import { Ways } from "../panel/ways.tsx";
import { changed, type Change, type Run, type State } from "../state.ts";

export function PanelView({ state, update }: { state: State; update: (change: Change<State>) => void }) {
  const [wrong, setWrong] = useState<Record<string, string>>({});
  const onWrong = (name: string, problem: string | null) =>
    setWrong((now) => {
      const { [name]: _, ...rest } = now;
      return problem === null ? rest : { ...rest, [name]: problem };
    });
  const known = useAnswers(state);
  const faults = Object.values(wrong);
  const answers = faults.length > 0 ? without(known, `${faults.join(". ")}. No number is shown until it is.`) : known;
  const onRun = (change: Change<Run>) => update((now) => ({ run: changed(now.run, change) }));
  const onTarget = (change: Change<State["target"]>) => update((now) => ({ target: changed(now.target, change) }));
  const target = state.target.quantity === "epsilon" ? state.target.value : null;
  return (
    <div class="panel">
      <div class="side">
        <Controls state={state} onRun={onRun} onDelta={(delta) => update({ delta })} onWrong={onWrong} />
        <TargetCard state={state} onTarget={onTarget} onRun={onRun} blocked={faults.length > 0} />
        <CopyCard state={state} />
      </div>
      <div class="main">
        {answers.problem !== null && (
          <p class="card refusal" role="alert">
            {answers.problem}
          </p>
        )}
        <Sign wrong={faults.length > 0} account={answers.account} settled={answers.settled} stale={answers.stale} moving={answers.moving}
          onZeroOut={() => onRun({ adjacency: "zero-out" })} />
        <Readings account={answers.account} settled={answers.settled} delta={state.delta} stale={answers.stale} moving={answers.moving} />
        <div class="charts">
          <Tradeoff state={state} answers={answers} />
          <Profile state={state} answers={answers} />
          <MapChart map={answers.map} run={state.run} target={target} stale={answers.mapStale} problem={answers.mapProblem}
            onChoose={(noise, steps) => onRun({ noise, steps })} />
          <Steps state={state} answers={answers} />
        </div>
        <Lenses account={answers.account} settled={answers.settled} delta={state.delta} stale={answers.stale} moving={answers.moving} />
        <Ways state={state} blocked={faults.length > 0} onRun={(run) => update({ run })} />
        <Pins state={state} accounts={answers.pinned} onPins={(pins) => update({ pins })} onRun={(run) => update({ run })} />
      </div>
    </div>
  );
}
