// The same run in sizes: records, batch size and epochs in place of rate and steps.

import { useId } from "preact/hooks";
import { share } from "../batches.ts";
import { batchSize, epochs, stepRate, type Change, type Run } from "../state.ts";
import { NumberField, type OnWrong } from "./controls.tsx";

interface Props {
  run: Run;
  onRun: (change: Change<Run>) => void;
  onWrong: OnWrong;
}

const short = (number: number) => Number(number.toPrecision(6));

export function Sizes({ run, onRun, onWrong }: Props) {
  const id = useId();
  const batch = batchSize(run);
  const full = run.sampling === "full";
  // The rate at which a batch has this size.
  const rateFor = (now: Run, size: number, records: number) => Math.min(1, ((size / records) * now.rate) / share(now));
  // The batch size stays when the number of records is corrected.
  const records = (count: number) =>
    onRun((now) => (now.records > 0 && count > 0 && now.sampling !== "full" ? { records: count, rate: rateFor(now, batchSize(now), count) } : { records: count }));
  return (
    <fieldset class="sizes">
      <legend class="small">Or by sizes</legend>
      <NumberField id={`${id}-records`} name="Records" sign="n" value={run.records} least={1} most={1e12} whole unknown="unknown" onChange={records} onWrong={onWrong} />
      <NumberField id={`${id}-batch`} name="Batch" sign="b" value={short(batch)} least={1e-3} most={Math.max(1, run.records)}
        unknown="unknown" disabled={full || run.records === 0} onChange={(size) => onRun((now) => ({ rate: rateFor(now, size, now.records) }))} onWrong={onWrong} />
      <NumberField id={`${id}-epochs`} name="Epochs" sign="E" value={short(epochs(run))} least={1e-9} most={1e9}
        onChange={(count) => onRun((now) => ({ steps: Math.max(1, Math.ceil(count / stepRate(now) - 1e-9)) }))} onWrong={onWrong} />
    </fieldset>
  );
}
