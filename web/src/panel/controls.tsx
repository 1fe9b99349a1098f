// The run, as sliders and fields.

import { useEffect, useId, useState } from "preact/hooks";
import { plain } from "../numbers.ts";
import { ADJACENCIES, SAMPLINGS, type Run, type State } from "../state.ts";

const TICKS = 400;

interface DialProps {
  name: string;
  sign: string;
  value: number;
  low: number;
  high: number;
  /** The ends that may be typed, which are wider. */
  least: number;
  most: number;
  whole?: boolean;
  disabled?: boolean;
  onChange: (value: number) => void;
}

/** A logarithmic slider and a field for the exact number. */
export function Dial({ name, sign, value, low, high, least, most, whole, disabled, onChange }: DialProps) {
  const id = useId();
  const [typed, setTyped] = useState(plain(value));
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    if (Number(typed) !== value) setTyped(plain(value));
    setWrong(false);
  }, [value]);
  const toTick = (number: number) =>
    Math.round((TICKS * Math.log(Math.max(low, Math.min(high, number)) / low)) / Math.log(high / low));
  const fromTick = (tick: number) => {
    const exact = low * Math.exp((tick / TICKS) * Math.log(high / low));
    const short = Number(exact.toPrecision(3));
    return whole ? Math.max(1, Math.round(short)) : short;
  };
  const type = (text: string) => {
    setTyped(text);
    const number = Number(text);
    const fine = text.trim() !== "" && number >= least && number <= most && (!whole || Number.isInteger(number));
    setWrong(!fine);
    if (fine) onChange(number);
  };
  return (
    <div class="dial">
      <label for={`${id}-field`}>
        {name} <span class="sign">{sign}</span>
      </label>
      <input
        id={`${id}-field`}
        class={wrong ? "wrong" : ""}
        inputMode="decimal"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        disabled={disabled}
        aria-invalid={wrong}
        title={wrong ? `${plain(least)} to ${plain(most)}${whole ? ", whole" : ""}` : undefined}
        onInput={(event) => type((event.currentTarget as HTMLInputElement).value)}
        onBlur={() => wrong && (setTyped(plain(value)), setWrong(false))}
      />
      <input
        type="range"
        aria-label={`${name}, slider`}
        aria-valuetext={plain(value)}
        min={0}
        max={TICKS}
        step={1}
        value={toTick(value)}
        disabled={disabled}
        onInput={(event) => onChange(fromTick(Number((event.currentTarget as HTMLInputElement).value)))}
      />
    </div>
  );
}

interface ChoiceProps {
  name: string;
  value: string;
  options: string[];
  labels?: Record<string, string>;
  onChange: (value: string) => void;
}

export function Choice({ name, value, options, labels, onChange }: ChoiceProps) {
  const id = useId();
  return (
    <div class="choice">
      <label for={id}>{name}</label>
      <select id={id} value={value} onChange={(event) => onChange((event.currentTarget as HTMLSelectElement).value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {labels?.[option] ?? option}
          </option>
        ))}
      </select>
    </div>
  );
}

interface Props {
  state: State;
  onRun: (change: Partial<Run>) => void;
  onDelta: (delta: number) => void;
}

export function Controls({ state, onRun, onDelta }: Props) {
  const { run, delta } = state;
  return (
    <section class="card controls" aria-labelledby="run-title">
      <h2 id="run-title">The run</h2>
      <Dial name="Noise multiplier" sign="σ" value={run.noise} low={0.3} high={10} least={0.2} most={100}
        onChange={(noise) => onRun({ noise })} />
      <Dial name="Sample rate" sign="q" value={run.sampling === "full" ? 1 : run.rate} low={1e-4} high={1}
        least={1e-7} most={1} disabled={run.sampling === "full"} onChange={(rate) => onRun({ rate })} />
      <Dial name="Steps" sign="T" value={run.steps} low={10} high={1e6} least={1} most={1e9} whole
        onChange={(steps) => onRun({ steps })} />
      <Dial name="Delta" sign="δ" value={delta} low={1e-12} high={1e-2} least={1e-100} most={0.5} onChange={onDelta} />
      <div class="pair">
        <Choice name="Batches" value={run.sampling} options={SAMPLINGS}
          labels={{ poisson: "Poisson", full: "full", shuffle: "shuffled", "fixed-size": "fixed size" }}
          onChange={(sampling) => onRun({ sampling })} />
        <Choice name="Neighbours" value={run.adjacency} options={ADJACENCIES}
          labels={{ "add-remove": "add/remove", substitute: "replace" }}
          onChange={(adjacency) => onRun({ adjacency })} />
      </div>
    </section>
  );
}
