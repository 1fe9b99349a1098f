// Up to four runs kept for comparison.

import { Swatch } from "../charts/plot.tsx";
import { BESIDE, LENS_LABELS, SIGNED } from "../names.ts";
import { powerOfTen, quote } from "../numbers.ts";
import { MOST_PINS, describe, sameRun, type Run, type State } from "../state.ts";
import type { Account } from "../types.ts";
import { findClaim } from "./readings.tsx";

export const PIN_HUES = ["pin-1", "pin-2", "pin-3", "pin-4"];

interface Props {
  state: State;
  accounts: Map<string, Account>;
  onPins: (pins: Run[]) => void;
  onRun: (run: Run) => void;
}

export function Pins({ state, accounts, onPins, onRun }: Props) {
  const { pins, run } = state;
  const already = pins.some((pin) => sameRun(pin, run));
  return (
    <section class="card pins" aria-labelledby="pins-title">
      <div class="row-head">
        <h2 id="pins-title">Pinned runs</h2>
        <button type="button" id="pin" disabled={already || pins.length >= MOST_PINS} onClick={() => onPins([...pins, run])}>
          {pins.length >= MOST_PINS ? "Four are pinned" : already ? "Pinned" : "Pin this run"}
        </button>
      </div>
      {pins.length === 0 ? (
        <p class="small quiet">Pin the run to compare others with it: its curves stay in every chart.</p>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Pinned runs">
          <table>
            <thead>
              <tr>
                <th scope="col">run</th>
                <th scope="col" class="n">ε, {LENS_LABELS[SIGNED]}</th>
                <th scope="col" class="n">ε, {LENS_LABELS[BESIDE]}</th>
                <th scope="col" class="n">Bayes security</th>
                <th scope="col"><span class="hidden">actions</span></th>
              </tr>
            </thead>
            <tbody>
              {pins.map((pin, index) => {
                const account = accounts.get(JSON.stringify([pin, state.delta])) ?? null;
                const cell = (lens: string, quantity: string) => {
                  const claim = findClaim(account, lens, quantity);
                  return claim ? quote(claim) : "–";
                };
                return (
                  <tr key={JSON.stringify(pin)}>
                    <th scope="row">
                      <Swatch hue={PIN_HUES[index]!} /> {describe(pin)}
                    </th>
                    <td class="n">{cell(SIGNED, "epsilon")}</td>
                    <td class="n">{cell(BESIDE, "epsilon")}</td>
                    <td class="n">{cell(SIGNED, "bayes-security")}</td>
                    <td class="n actions">
                      <button type="button" class="quiet-button" onClick={() => onRun(pin)} aria-label={`Go to ${describe(pin)}`}>
                        Go
                      </button>
                      <button type="button" class="quiet-button" onClick={() => onPins(pins.filter((_, place) => place !== index))}
                        aria-label={`Unpin ${describe(pin)}`}>
                        Unpin
                      </button>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          <p class="small quiet">at δ = {powerOfTen(state.delta)}</p>
        </div>
      )}
    </section>
  );
}
