// Scores dropped here are audited in place, against the run of the panel if that is wanted.

import { useId, useRef, useState } from "preact/hooks";
import { Refusal, upload } from "../api.ts";
import { FigureChart } from "../charts/figure.tsx";
import { percent, plain, powerOfTen, rounded, withCommas } from "../numbers.ts";
import { Choice } from "../panel/controls.tsx";
import { describe, question, type State } from "../state.ts";
import type { Audit, Audited, Bound } from "../types.ts";

const STATUS: Record<string, string> = {
  consistent: "Consistent: the scores could have contradicted the claim and did not",
  contradiction: "Contradiction: the scores show more leakage than is claimed",
  inconclusive: "Inconclusive: these scores could not have decided",
};

export function AuditView({ state }: { state: State }) {
  const [audited, setAudited] = useState<Audited | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [design, setDesign] = useState("");
  const [against, setAgainst] = useState(true);
  const [name, setName] = useState("");
  const last = useRef<File | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  const audit = async (file: File | null, chosen: { design: string; against: boolean }) => {
    if (file === null) return;
    last.current = file;
    setBusy(true);
    setProblem(null);
    setName(file.name);
    const lines = /\.(jsonl|ndjson)$/i.test(file.name);
    const asked: Record<string, unknown> = { delta: state.delta, all_methods: true };
    if (chosen.design !== "") asked["design"] = chosen.design;
    if (chosen.against) asked["claim"] = question(state.run);
    try {
      setAudited(await upload<Audited>("/api/audit", asked, file, lines ? "application/x-ndjson" : "text/csv"));
    } catch (error) {
      setAudited(null);
      setProblem(error instanceof Refusal ? error.message : "The server does not answer.");
    } finally {
      setBusy(false);
    }
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void audit(event.dataTransfer?.files[0] ?? null, { design, against });
  };
  return (
    <div class="audit">
      <section class="card" aria-labelledby="audit-title">
        <h2 id="audit-title">Audit scores</h2>
        <div
          class={`drop${over ? " over" : ""}`}
          id="drop"
          onDragOver={(event) => (event.preventDefault(), setOver(true))}
          onDragLeave={() => setOver(false)}
          onDrop={drop}
        >
          <p>
            <b>Drop a score file here</b>
            <br />
            <span class="quiet small">
              CSV with the header <code>score,member</code>, or JSON lines; larger scores mean more likely a member. It stays on this machine.
            </span>
          </p>
          <button type="button" onClick={() => input.current?.click()}>
            Choose a file
          </button>
          <input ref={input} id="file" class="hidden" type="file" accept=".csv,.jsonl,.ndjson" aria-label="Score file" tabIndex={-1}
            onChange={(event) => void audit((event.currentTarget as HTMLInputElement).files?.[0] ?? null, { design, against })} />
        </div>
        <div class="options">
          <Choice name="How the scores came about" value={design} options={["", "runs", "one-run"]}
            labels={{ "": "as the file says, else many trainings", runs: "many trainings", "one-run": "canaries of one training" }}
            onChange={(value) => (setDesign(value), void audit(last.current, { design: value, against }))} />
          <div class="check">
            <input type="checkbox" id={id} checked={against}
              onChange={(event) => {
                const value = (event.currentTarget as HTMLInputElement).checked;
                setAgainst(value);
                void audit(last.current, { design, against: value });
              }} />
            <label for={id}>
              against the run of the panel: {describe(state.run)}, δ = {powerOfTen(state.delta)}
            </label>
          </div>
        </div>
        <p class="small quiet" role="status">
          {busy ? `Auditing ${name}…` : ""}
        </p>
        {problem !== null && (
          <p class="refusal" role="alert">
            {problem}
          </p>
        )}
      </section>
      {audited !== null && <Findings audited={audited} name={name} />}
    </div>
  );
}

export function Findings({ audited, name }: { audited: Audited; name: string }) {
  const { audit, figures } = audited;
  const primary = audit.bounds.find((bound) => bound.primary);
  return (
    <>
      <section class={`card verdict ${audit.verdict?.status ?? "none"}`} aria-labelledby="verdict-title">
        <h2 id="verdict-title">{audit.verdict ? STATUS[audit.verdict.status] ?? audit.verdict.status : "What the scores show"}</h2>
        <p class="headline">
          {primary && (
            <>
              ε ≥ <data id="audit-epsilon" value={String(primary.epsilon_lower ?? "")}>{lower(primary)}</data>{" "}
              <span class="quiet">
                at δ = {primary.delta === 0 ? "0" : powerOfTen(primary.delta)}, {percent(primary.confidence ?? 0.95, 2, "neither")} confidence
              </span>
            </>
          )}
        </p>
        {audit.verdict && <p>{sentence(audit.verdict.reason)}</p>}
        <p class="small quiet">
          {name}: {withCommas(audit.members)} members, {withCommas(audit.nonmembers)} non-members, design {audit.design}
        </p>
      </section>
      <div class="charts">
        {figures.roc && <FigureChart id="roc" figure={figures.roc} />}
        <FigureChart id="histogram" figure={figures.histogram} />
      </div>
      <Bounds audit={audit} />
    </>
  );
}

function lower(bound: Bound): string {
  return bound.epsilon_lower === null || bound.epsilon_lower === undefined ? "unbounded" : rounded(bound.epsilon_lower, 4, "lower");
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

function Bounds({ audit }: { audit: Audit }) {
  return (
    <section class="card" aria-labelledby="bounds-title">
      <h2 id="bounds-title">Every bound</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label="Bounds of the audit">
        <table>
          <thead>
            <tr>
              <th scope="col">method</th>
              <th scope="col" class="n">ε</th>
              <th scope="col" class="n">confidence</th>
              <th scope="col">holds for</th>
            </tr>
          </thead>
          <tbody>
            {audit.bounds.map((bound) => (
              <tr key={`${bound.method}-${bound.delta}`}>
                <th scope="row">
                  {bound.method}
                  {bound.threshold_rule ? `, ${bound.threshold_rule}` : ""} {bound.primary && <span class="tag">headline</span>}
                </th>
                <td class="n">
                  {bound.epsilon_estimate !== undefined
                    ? `≈ ${rounded(bound.epsilon_estimate ?? Infinity, 4, "neither")}`
                    : `≥ ${lower(bound)}`}
                </td>
                <td class="n">
                  {bound.confidence !== undefined
                    ? percent(bound.confidence, 2, "neither")
                    : bound.credibility !== undefined
                      ? `${percent(bound.credibility, 2, "neither")} credible`
                      : "none"}
                </td>
                <td class="quiet holds">{bound.valid_for}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <dl class="quality">
        <Quality name="AUROC" measured={audit.auroc} />
        <Quality name="advantage" measured={audit.advantage} />
        {audit.tpr.map((power) => (
          <Quality key={power.fpr} name={`TPR at FPR ${plain(power.fpr * 100)} %`} measured={power} />
        ))}
      </dl>
      {audit.warnings.map((warning) => (
        <p key={warning} class="note warn">
          {warning}
        </p>
      ))}
      {audit.not_valid.map((entry) => (
        <p key={entry.method} class="small quiet">
          <b>{entry.method}</b>: {entry.reason}
        </p>
      ))}
    </section>
  );
}

function Quality({ name, measured }: { name: string; measured: { value: number; lower: number; upper: number } }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {rounded(measured.value, 4, "neither")}{" "}
        <span class="quiet small">
          {rounded(measured.lower, 3, "lower")} to {rounded(measured.upper, 3, "upper")}
        </span>
      </dd>
    </div>
  );
}
