// What other ways to draw the batches of this run would cost, side by side.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Latest, Refusal } from "../api.ts";
import { way } from "../batches.ts";
import { SAMPLING_LABELS, SIGNED, type Sampling } from "../names.ts";
import { powerOfTen, quote, typographic } from "../numbers.ts";
import { describe, fromDocument, question, sameRun, type Run, type State } from "../state.ts";
import type { Comparison } from "../types.ts";
import { onPage } from "../words.ts";
import { Badge, findClaim } from "./readings.tsx";

/** Milliseconds without a movement after which this slow question is asked. */
const REST = 500;

interface Props {
  state: State;
  /** A field of the run is wrong: there is nothing to compare. */
  blocked: boolean;
  onRun: (run: Run) => void;
}

export function Ways({ state, blocked, onRun }: Props) {
  const { run, delta } = state;
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<Comparison | null>(null);
  const [foundFor, setFoundFor] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const channel = useMemo(
    () =>
      new Latest<Comparison>(
        "/api/compare",
        (answer, asked) => (setFound(answer), setFoundFor(JSON.stringify(asked)), setProblem(null)),
        (error) => {
          setFound(null);
          setProblem(error instanceof Refusal ? onPage(error.message) : "The server does not answer.");
        },
      ),
    [],
  );
  // Neighbours are said, so that every way is about the same ones.
  const asked = JSON.stringify({ runs: [{ name: "run", run: { adjacency: run.adjacency, ...question(run) } }], delta, every_sampling: true });
  useEffect(() => {
    if (!open || blocked) return undefined;
    const rest = setTimeout(() => channel.ask(JSON.parse(asked)), REST);
    return () => clearTimeout(rest);
  }, [asked, open, blocked]);
  return (
    <section class="card ways" aria-labelledby="ways-title">
      <h2 id="ways-title">Other ways to sample</h2>
      <details open={open} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
        <summary>What would they cost?</summary>
        {blocked ? (
          <p class="small field-wrong">A field of the run is wrong</p>
        ) : found === null ? (
          <p class="small quiet">{problem ?? "Computing…"}</p>
        ) : (
          <Table found={found} run={run} stale={foundFor !== asked} delta={delta} onRun={onRun} />
        )}
      </details>
    </section>
  );
}

function Table({ found, run, stale, delta, onRun }: { found: Comparison; run: Run; stale: boolean; delta: number; onRun: (run: Run) => void }) {
  return (
    <>
      <div class={`scroll${stale ? " stale" : ""}`} tabIndex={0} role="group" aria-label="Every way">
        <table>
          <thead>
            <tr>
              <th scope="col">batches</th>
              <th scope="col" class="wide-only">standing</th>
              <th scope="col" class="n">ε</th>
              <th scope="col" class="n">worst case</th>
              <th scope="col" class="n">advantage</th>
              <th scope="col"><span class="hidden">actions</span></th>
            </tr>
          </thead>
          <tbody>
            {found.runs.map(({ name, account }) => {
              const other = fromDocument(account.run);
              const epsilon = findClaim(account, SIGNED, "epsilon");
              const advantage = findClaim(account, SIGNED, "advantage");
              return (
                <tr key={name}>
                  <th scope="row">{typeof other === "string" ? name : way(other)}</th>
                  <td class="wide-only">{epsilon && <Badge standing={epsilon.standing} />}</td>
                  <td class="n">{epsilon ? <data id={`way-${name.replace(/[^a-z-]+/g, "-")}`} value={String(epsilon.upper)}>{quote(epsilon)}</data> : "–"}</td>
                  <td class="n">{epsilon?.at_least_shown ? typographic(epsilon.at_least_shown) : ""}</td>
                  <td class="n">{advantage ? quote(advantage) : "–"}</td>
                  <td class="n actions">
                    {typeof other !== "string" && !sameRun(other, run) && (
                      <button type="button" class="quiet-button" onClick={() => onRun(other)} aria-label={`Go to ${describe(other)}`}>
                        Go
                      </button>
                    )}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      <p class="small quiet">
        The same noise, rate, steps and neighbours, at δ = {powerOfTen(delta)}. Worst case: what the worst data set leaks at least, where ε is an upper bound only.
      </p>
      {[...found.runs.flatMap(({ name, account }) => account.unsupported.filter((entry) => entry.lens === SIGNED).map(({ reason }) => ({ name, reason }))), ...(found.left_out ?? [])].map(
        ({ name, reason }) => (
          <p key={name} class="small quiet">
            <b>{SAMPLING_LABELS[name as Sampling] ?? name}</b>: {onPage(reason)}
          </p>
        ),
      )}
    </>
  );
}
