// The experiments of the served folder: how far they are, what failed, what they show.

import { useEffect, useState } from "preact/hooks";
import { Refusal, get, post } from "../api.ts";
import { withCommas } from "../numbers.ts";
import type { State } from "../state.ts";
import type { Audited, Experiment } from "../types.ts";
import { Findings } from "./audit.tsx";

const EVERY = 2000;

/** Asks again and again while somebody looks. */
function usePolled<T>(path: string): { found: T | null; problem: string | null } {
  const [found, setFound] = useState<T | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    let over = false;
    let timer = 0;
    const ask = async () => {
      try {
        if (!document.hidden || found === null) {
          const answer = await get<T>(path);
          if (over) return;
          setFound(answer);
          setProblem(null);
        }
      } catch (error) {
        if (!over) setProblem(error instanceof Refusal ? error.message : "The server does not answer.");
      }
      if (!over) timer = window.setTimeout(ask, EVERY);
    };
    void ask();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [path]);
  return { found, problem };
}

export function ExperimentsView({ state, update }: { state: State; update: (change: Partial<State>) => void }) {
  if (state.experiment !== "") {
    return <OneExperiment state={state} id={state.experiment} onBack={() => update({ experiment: "" })} />;
  }
  return <List onOpen={(experiment) => update({ experiment })} />;
}

function List({ onOpen }: { onOpen: (id: string) => void }) {
  const { found, problem } = usePolled<{ experiments: Experiment[] }>("/api/experiments");
  const all = found?.experiments ?? [];
  return (
    <div class="audit">
      <section class="card" aria-labelledby="experiments-title">
        <h2 id="experiments-title">Experiments</h2>
        {problem !== null && <p class="refusal" role="alert">{problem}</p>}
        {found !== null && all.length === 0 && (
          <p class="quiet">
            There is none in this folder yet.{" "}
            <code>dosimeter attack linear --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --trials 1e5 --out scores.csv</code>, started
            here, makes one; it appears while it runs.
          </p>
        )}
        <ul class="experiments">
          {all.map((experiment) => (
            <li key={experiment.id}>
              <button type="button" class="experiment" onClick={() => onOpen(experiment.id)}>
                <span class="name">{experiment.name}</span>
                <State experiment={experiment} />
                <Progress experiment={experiment} />
                <span class="small quiet">{facts(experiment)}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}

/** A parameter as a person writes it. */
function written(key: string, value: unknown): string {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1e4 && !key.includes("seed")) return withCommas(value);
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function facts(experiment: Experiment): string {
  if (experiment.error) return experiment.error;
  const chunks = experiment.chunks!;
  const parts = [experiment.kind ?? "", `${withCommas(experiment.trials ?? 0)} trials`, `${withCommas(chunks.done)} of ${withCommas(chunks.all)} chunks`];
  if (!experiment.merged && experiment.seconds_left) parts.push(`about ${duration(experiment.seconds_left)} left`);
  return parts.filter((part) => part !== "").join(" · ");
}

function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function State({ experiment }: { experiment: Experiment }) {
  const chunks = experiment.chunks;
  const [word, tone] = experiment.error
    ? ["unreadable", "bad"]
    : chunks && chunks.failed + chunks.unusable > 0
      ? [`${chunks.failed + chunks.unusable} failed`, "bad"]
      : experiment.merged
        ? ["complete", "good"]
        : ["in progress", "going"];
  return <span class={`state ${tone}`}>{word}</span>;
}

function Progress({ experiment }: { experiment: Experiment }) {
  const chunks = experiment.chunks ?? { all: 1, done: 0, failed: 0, unusable: 0, missing: 0 };
  return <progress max={Math.max(1, chunks.all)} value={chunks.done} aria-label={`${experiment.name}: ${chunks.done} of ${chunks.all} chunks done`} />;
}

function OneExperiment({ state, id, onBack }: { state: State; id: string; onBack: () => void }) {
  const { found, problem } = usePolled<Experiment>(`/api/experiments/${id}`);
  const [audited, setAudited] = useState<Audited | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const audit = async () => {
    setBusy(true);
    setTrouble(null);
    // The run that made the scores lies beside them, and is what they are compared with.
    const asked = { delta: state.delta, all_methods: true };
    try {
      setAudited(await post<Audited>(`/api/experiments/${id}/audit?question=${encodeURIComponent(JSON.stringify(asked))}`, {}));
    } catch (error) {
      setTrouble((error as Error).message);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="audit">
      <section class="card" aria-labelledby="experiment-title">
        <div class="row-head">
          <h2 id="experiment-title">{found?.name ?? "Experiment"}</h2>
          <button type="button" onClick={onBack}>
            All experiments
          </button>
        </div>
        {problem !== null && <p class="refusal" role="alert">{problem}</p>}
        {found !== null && (
          <>
            <p>
              <State experiment={found} /> <span class="quiet">{facts(found)}</span>
            </p>
            <Progress experiment={found} />
            {found.states && found.states.length > 1 && (
              <div class="cells" role="img" aria-label={`Chunks: ${found.chunks?.done} done, ${found.chunks?.missing} missing, ${found.chunks?.failed} failed`}>
                {[...found.states].map((letter, index) => (
                  <i key={index} class={`cell-${letter}`} />
                ))}
              </div>
            )}
            {(found.problems ?? []).map((text) => (
              <p key={text} class="note warn">
                {text}
              </p>
            ))}
            <dl class="facts">
              {Object.entries(found.parameters ?? {}).map(([key, value]) => (
                <div key={key}>
                  <dt>{key.replaceAll("_", " ")}</dt>
                  <dd>{written(key, value)}</dd>
                </div>
              ))}
              {found.seed !== undefined && (
                <div>
                  <dt>seed</dt>
                  <dd>{found.seed}</dd>
                </div>
              )}
            </dl>
            {found.results ? (
              <button type="button" id="audit-results" disabled={busy} onClick={() => void audit()}>
                {busy ? "Auditing…" : "Audit its scores"}
              </button>
            ) : (
              <p class="small quiet">Results can be audited here when it is complete; run the same command again to resume.</p>
            )}
            {trouble !== null && <p class="refusal" role="alert">{trouble}</p>}
          </>
        )}
      </section>
      {audited !== null && <Findings audited={audited} name={found?.name ?? ""} />}
    </div>
  );
}
