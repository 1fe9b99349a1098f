// Scores dropped here are audited in place, against the run of the panel if that is wanted.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Refusal, upload } from "../api.ts";
import { FigureChart } from "../charts/figure.tsx";
import { VERDICT_MEANS } from "../names.ts";
import { DIGITS, percent, plain, powerOfTen, rounded, typographic, withCommas } from "../numbers.ts";
import { Choice } from "../panel/controls.tsx";
import { describe, question, type State } from "../state.ts";
import type { Audit, Audited } from "../types.ts";

const isArray = (file: File) => /\.npy$/i.test(file.name);

function kind(file: File): string {
  if (isArray(file)) return "application/x-npy";
  return /\.(jsonl|ndjson)$/i.test(file.name) ? "application/x-ndjson" : "text/csv";
}

/** Members first, as far as the names tell. */
function inOrder(sides: File[]): File[] {
  const outside = (file: File) => /(^|[^a-z])(non|not|out|without|holdout|test)/i.test(file.name);
  const [first, second] = sides;
  return second !== undefined && outside(first!) && !outside(second) ? [second, first!] : sides;
}

export function AuditView({ state, dropped }: { state: State; dropped: File[] }) {
  const [audited, setAudited] = useState<Audited | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const [design, setDesign] = useState("");
  const [against, setAgainst] = useState(true);
  const [name, setName] = useState("");
  // One file with both sides, or the two .npy files of members and of non-members.
  const [files, setFiles] = useState<File[]>([]);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  const audit = async (given: File[], chosen: { design: string; against: boolean }) => {
    if (given.length === 0) return;
    setFiles(given);
    setProblem(null);
    if (isArray(given[0]!) && given.length === 1) {
      setAudited(null);
      return;
    }
    setBusy(true);
    setName(given.map((file) => file.name).join(" and "));
    const asked: Record<string, unknown> = { delta: state.delta, all_methods: true };
    if (chosen.design !== "") asked["design"] = chosen.design;
    if (chosen.against) asked["claim"] = question(state.run);
    if (isArray(given[0]!)) asked["members_bytes"] = given[0]!.size;
    try {
      setAudited(await upload<Audited>("/api/audit", asked, new Blob(given), kind(given[0]!)));
    } catch (error) {
      setAudited(null);
      setProblem(error instanceof Refusal ? error.message : "The server does not answer.");
    } finally {
      setBusy(false);
    }
  };
  const take = (list: Iterable<File> | null | undefined) => {
    const fresh = [...(list ?? [])];
    if (fresh.length === 0) return;
    const arrays = fresh.filter(isArray);
    if (arrays.length === 0) {
      if (fresh.length > 1) setProblem("Several files at once: audit them together with the command line, or drop one of them.");
      else void audit(fresh, { design, against });
      return;
    }
    // The other side may have come before.
    const sides = arrays.length === 1 && files.length === 1 && isArray(files[0]!) ? [files[0]!, arrays[0]!] : arrays;
    if (sides.length > 2 || arrays.length < fresh.length) {
      setProblem("Drop two .npy files, the members' scores and the non-members', or one file with both.");
      return;
    }
    void audit(inOrder(sides), { design, against });
  };
  // Dropped on another part of the page.
  useEffect(() => take(dropped), [dropped]);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    take(event.dataTransfer?.files);
  };
  const arrays = files.length > 0 && isArray(files[0]!);
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
            <b>Drop scores here</b>
            <br />
            <span class="quiet small">
              CSV with the header <code>score,member</code>, JSON lines, or two <code>.npy</code> files, members and non-members; larger scores mean more likely a member. They stay on this machine.
            </span>
          </p>
          <button type="button" onClick={() => input.current?.click()}>
            Choose files
          </button>
          <input ref={input} id="file" class="hidden" type="file" multiple accept=".csv,.jsonl,.ndjson,.npy" aria-label="Score files" tabIndex={-1}
            onChange={(event) => {
              const chooser = event.currentTarget as HTMLInputElement;
              take(chooser.files);
              // So that the same file can be chosen again after it has changed.
              chooser.value = "";
            }} />
        </div>
        {arrays && (
          <p class="sides" id="sides">
            {files.length === 1 ? (
              <span>
                <b>{files[0]!.name}</b> holds one side. Drop or choose the other <code>.npy</code> file too.
              </span>
            ) : (
              <>
                <span>
                  Members: <b>{files[0]!.name}</b>, non-members: <b>{files[1]!.name}</b>
                </span>
                <button type="button" id="swap" disabled={busy} onClick={() => void audit([files[1]!, files[0]!], { design, against })}>
                  Swap the sides
                </button>
              </>
            )}
          </p>
        )}
        <div class="options">
          <Choice name="How the scores were made" value={design} options={["", "runs", "one-run"]}
            labels={{ "": "as the file says, else many trainings", runs: "many trainings", "one-run": "canaries of one training" }}
            onChange={(value) => (setDesign(value), void audit(files, { design: value, against }))} />
          <div class="check">
            <input type="checkbox" id={id} checked={against}
              onChange={(event) => {
                const value = (event.currentTarget as HTMLInputElement).checked;
                setAgainst(value);
                void audit(files, { design, against: value });
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
        <h2 id="verdict-title">{audit.verdict ? VERDICT_MEANS[audit.verdict.status] : "What the scores show"}</h2>
        <p class="headline">
          {primary && (
            <>
              ε <data id="audit-epsilon" value={String(primary.epsilon_lower ?? "")}>{typographic(primary.shown)}</data>{" "}
              <span class="quiet">
                at δ = {primary.delta === 0 ? "0" : powerOfTen(primary.delta)}, {percent(primary.confidence ?? 0.95, 2, "neither")} confidence
              </span>
            </>
          )}
        </p>
        {audit.verdict && <p>{sentence(audit.verdict.reason)}</p>}
        {!audit.verdict && primary && <p id="no-claim">No claim to compare this with.</p>}
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
                  {typographic(bound.shown)}
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
        {rounded(measured.value, DIGITS, "neither")}{" "}
        <span class="quiet small">
          {rounded(measured.lower, DIGITS, "lower")} to {rounded(measured.upper, DIGITS, "upper")}
        </span>
      </dd>
    </div>
  );
}
