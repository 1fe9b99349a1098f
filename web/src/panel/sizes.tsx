// The same run in sizes: records, batch size and epochs in place of rate and steps.

import { useId } from "preact/hooks";
import { share } from "../batches.ts";
import { batchSize, epochs, stepRate, type Run } from "../state.ts";
import { NumberField, type OnWrong } from "./controls.tsx";

interface Props {
  run: Run;
  onRun: (change: Partial<Run>) => void;
  onWrong: OnWrong;
}

const short = (number: number) => Number(number.toPrecision(6));

export function Sizes({ run, onRun, onWrong }: Props) {
  const id = useId();
  const batch = batchSize(run);
  const full = run.sampling === "full";
  // The rate at which a batch has this size.
  const rateFor = (size: number, records: number) => Math.min(1, ((size / records) * run.rate) / share(run));
  // The batch size stays when the number of records is corrected.
  const records = (count: number) => onRun(run.records > 0 && count > 0 && !full ? { records: count, rate: rateFor(batch, count) } : { records: count });
  return (
    <fieldset class="sizes">
      <legend class="small">In sizes</legend>
      <NumberField id={`${id}-records`} name="Records" sign="n" value={run.records} least={1} most={1e12} whole unknown="unknown" onChange={records} onWrong={onWrong} />
      <NumberField id={`${id}-batch`} name="Batch" sign="b" value={short(batch)} least={1e-3} most={Math.max(1, run.records)}
        unknown="unknown" disabled={full || run.records === 0} onChange={(size) => onRun({ rate: rateFor(size, run.records) })} onWrong={onWrong} />
      <NumberField id={`${id}-epochs`} name="Epochs" sign="E" value={short(epochs(run))} least={1e-9} most={1e9}
        onChange={(count) => onRun({ steps: Math.max(1, Math.ceil(count / stepRate(run) - 1e-9)) })} onWrong={onWrong} />
    </fieldset>
  );
}
