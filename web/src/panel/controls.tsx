// The run, as sliders and fields.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { DOMAIN } from "../names.ts";
import { plain } from "../numbers.ts";
import { wholeBatches } from "../batches.ts";
import type { Change, Run, State } from "../state.ts";
import { Drawing } from "./drawing.tsx";
import { Sizes } from "./sizes.tsx";

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
  /** What a movement of the slider means, where it is not the number at its place. */
  onSlide?: (value: number) => void;
  onWrong: OnWrong;
}

/** A logarithmic slider and a field for the exact number. */
export function Dial({ name, sign, value, low, high, least, most, whole, disabled, onChange, onSlide, onWrong }: DialProps) {
  const id = useId();
  const toTick = (number: number) =>
    Math.round((TICKS * Math.log(Math.max(low, Math.min(high, number)) / low)) / Math.log(high / low));
  const fromTick = (tick: number) => {
    const exact = low * Math.exp((tick / TICKS) * Math.log(high / low));
    const short = Number(exact.toPrecision(3));
    return whole ? Math.max(1, Math.round(short)) : short;
  };
  return (
    <div class="dial">
      <NumberField id={`${id}-field`} name={name} sign={sign} value={value} least={least} most={most} whole={whole} disabled={disabled}
        onChange={onChange} onWrong={onWrong} />
      <input
        type="range"
        aria-label={`${name}, slider`}
        aria-valuetext={plain(value)}
        min={0}
        max={TICKS}
        step={1}
        value={toTick(value)}
        disabled={disabled}
        onInput={(event) => (onSlide ?? onChange)(fromTick(Number((event.currentTarget as HTMLInputElement).value)))}
      />
    </div>
  );
}

/** Told what is wrong with a field, or that nothing is. */
export type OnWrong = (name: string, problem: string | null) => void;

interface FieldProps {
  id: string;
  name: string;
  sign: string;
  value: number;
  least: number;
  most: number;
  whole?: boolean;
  disabled?: boolean;
  /** What stands in the field while nothing is known: 0 then means unknown, and the field may be empty. */
  unknown?: string;
  onChange: (value: number) => void;
  onWrong: OnWrong;
}

/** A number to type. What is not a number in its range stays as it was typed, with the reason below, and
    nothing is shown for it until it is mended (Escape takes it back). */
export function NumberField({ id, name, sign, value, least, most, whole, disabled, unknown, onChange, onWrong }: FieldProps) {
  const given = unknown !== undefined && value === 0 ? "" : plain(value);
  const [typed, setTyped] = useState(given);
  const [wrong, setWrong] = useState<string | null>(null);
  const settle = (problem: string | null) => {
    setWrong(problem);
    onWrong(name, problem);
  };
  // What a person is typing stays as typed, also where the run makes another number of it: 6 epochs in whole steps are 6.00064.
  const writing = useRef(false);
  useEffect(() => {
    if (!writing.current && Number(typed) !== value) setTyped(given);
    if (wrong !== null) settle(null);
  }, [value]);
  const leave = () => {
    writing.current = false;
    if (wrong === null && Number(typed) !== value) setTyped(given);
  };
  useEffect(() => () => onWrong(name, null), []);
  const type = (text: string) => {
    setTyped(text);
    const number = Number(text);
    const empty = text.trim() === "";
    const fine = empty ? unknown !== undefined : number >= least && number <= most && (!whole || Number.isInteger(number));
    const kind = whole ? "a whole number" : "a number";
    settle(fine ? null : `${name} must be ${kind} from ${plain(least)} to ${plain(most)}`);
    if (fine) onChange(number);
  };
  return (
    <>
      <label for={id}>
        {name} <span class="sign">{sign}</span>
      </label>
      <input
        id={id}
        class={wrong !== null ? "wrong" : ""}
        inputMode="decimal"
        autocomplete="off"
        spellcheck={false}
        value={typed}
        placeholder={unknown}
        disabled={disabled}
        aria-invalid={wrong !== null}
        aria-describedby={wrong !== null ? `${id}-wrong` : undefined}
        onFocus={() => (writing.current = true)}
        onBlur={leave}
        onInput={(event) => type((event.currentTarget as HTMLInputElement).value)}
        onKeyDown={(event) => event.key === "Escape" && (setTyped(given), settle(null))}
      />
      {wrong !== null && (
        <p class="field-wrong small" id={`${id}-wrong`}>
          {wrong}
        </p>
      )}
    </>
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
  onRun: (change: Change<Run>) => void;
  onDelta: (delta: number) => void;
  onWrong: OnWrong;
}

export function Controls({ state, onRun, onDelta, onWrong }: Props) {
  const { run, delta } = state;
  // Where an epoch has a whole number of batches, sliders move by whole batches and whole epochs.
  const batches = wholeBatches(run);
  const slideRate = (rate: number) => {
    const each = Math.max(1, Math.round(1 / rate));
    onRun((now) => ({ rate: 1 / each, steps: each * Math.max(1, Math.round(now.steps * now.rate)) }));
  };
  const slideSteps = (steps: number) => onRun({ steps: batches! * Math.max(1, Math.round(steps / batches!)) });
  return (
    <section class="card controls" aria-labelledby="run-title">
      <h2 id="run-title">The run</h2>
      <Dial name="Noise multiplier" sign="σ" value={run.noise} low={0.3} high={10} {...DOMAIN.noise}
        onChange={(noise) => onRun({ noise })} onWrong={onWrong} />
      <Dial name="Sample rate" sign="q" value={run.sampling === "full" ? 1 : run.rate} low={1e-4} high={1}
        {...DOMAIN.rate} disabled={run.sampling === "full"} onChange={(rate) => onRun({ rate })}
        onSlide={batches === null ? undefined : slideRate} onWrong={onWrong} />
      <Dial name="Steps" sign="T" value={run.steps} low={10} high={1e6} {...DOMAIN.steps} whole
        onChange={(steps) => onRun({ steps })} onSlide={batches === null ? undefined : slideSteps} onWrong={onWrong} />
      <Dial name="Delta" sign="δ" value={delta} low={1e-12} high={1e-2} {...DOMAIN.delta} onChange={onDelta}
        onWrong={onWrong} />
      <Sizes run={run} onRun={onRun} onWrong={onWrong} />
      <Drawing run={run} onRun={onRun} onWrong={onWrong} />
    </section>
  );
}
