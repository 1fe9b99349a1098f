// How batches are drawn, and what the way has of its own.

import { useId } from "preact/hooks";
import { ADJACENCIES, ORDERS, SAMPLINGS } from "../batches.ts";
import { ADJACENCY_LABELS, SAMPLING_LABELS, type Adjacency, type Sampling } from "../names.ts";
import type { Change, Run } from "../state.ts";
import { Choice, NumberField, type OnWrong } from "./controls.tsx";

interface Props {
  run: Run;
  onRun: (change: Change<Run>) => void;
  onWrong: OnWrong;
}

export function Drawing({ run, onRun, onWrong }: Props) {
  return (
    <>
      <div class="pair">
        <Choice name="Batches" value={run.sampling} options={SAMPLINGS} labels={SAMPLING_LABELS}
          onChange={(sampling) => onRun({ sampling: sampling as Sampling })} />
        <Choice name="Neighbours" value={run.adjacency} options={ADJACENCIES} labels={ADJACENCY_LABELS}
          onChange={(adjacency) => onRun({ adjacency: adjacency as Adjacency })} />
      </div>
      <Own run={run} onRun={onRun} onWrong={onWrong} />
    </>
  );
}

function Own({ run, onRun, onWrong }: Props) {
  const id = useId();
  switch (run.sampling) {
    case "shuffle":
      return (
        <div class="own">
          <Choice name="Order of the records" value={run.order} options={ORDERS} labels={{ fresh: "new for every epoch", kept: "one for all epochs" }}
            onChange={(order) => onRun({ order })} />
        </div>
      );
    case "fixed-size":
      return (
        <div class="own">
          <Choice name="A record in a batch" value={run.repeats ? "repeats" : "once"} options={["once", "repeats"]}
            labels={{ once: "at most once", repeats: "drawn with replacement" }} onChange={(drawn) => onRun({ repeats: drawn === "repeats" })} />
        </div>
      );
    case "balls-and-bins":
      return (
        <div class="own fields">
          <NumberField key="uses" id={`${id}-uses`} name="Uses per epoch" sign="k" value={Math.max(1, run.uses)} least={1} most={1e6} whole
            onChange={(uses) => onRun({ uses: uses > 1 ? uses : 0 })} onWrong={onWrong} />
        </div>
      );
    case "truncated-poisson":
      return (
        <div class="own fields">
          <NumberField key="largest" id={`${id}-largest`} name="Largest batch" sign="B" value={run.largest} least={1} most={1e12} whole unknown="needed"
            onChange={(largest) => onRun({ largest })} onWrong={onWrong} />
        </div>
      );
    case "cyclic-poisson":
      return (
        <div class="own fields">
          <NumberField key="groups" id={`${id}-groups`} name="Groups" sign="c" value={run.groups} least={1} most={1e9} whole unknown="needed"
            onChange={(groups) => onRun({ groups })} onWrong={onWrong} />
        </div>
      );
    default:
      return null;
  }
}
