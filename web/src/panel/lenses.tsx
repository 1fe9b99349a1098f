// Every claim about the run, a row for each lens.

import { powerOfTen, quotedEnd, typographic } from "../numbers.ts";
import type { Account, Claim } from "../types.ts";
import { lensName, onPage } from "../words.ts";
import { Badge, findClaim } from "./readings.tsx";

const COLUMNS: { quantity: string; fpr?: number; name: string }[] = [
  { quantity: "epsilon", name: "ε" },
  { quantity: "mu", name: "μ" },
  { quantity: "tpr", fpr: 0.001, name: "TPR at FPR\u00a00.1\u00a0%" },
  { quantity: "tpr", fpr: 0.01, name: "TPR at FPR\u00a01\u00a0%" },
  { quantity: "advantage", name: "advantage" },
  { quantity: "bayes-security", name: "Bayes security" },
];

const LIVE = new Set(["epsilon", "advantage", "bayes-security"]);

function Cell({ claim, stale, id }: { claim: Claim | undefined; stale: boolean; id: string }) {
  if (claim === undefined) return <td class="n quiet">–</td>;
  const end = quotedEnd(claim);
  return (
    <td class={`n${stale ? " stale" : ""}`}>
      {Number.isFinite(end) ? (
        <data id={id} value={String(end)}>
          {typographic(claim.shown)}
        </data>
      ) : (
        <span class="quiet" title={claim.reason}>
          unbounded
        </span>
      )}
    </td>
  );
}

interface Props {
  account: Account | null;
  settled: Account | null;
  delta: number;
  stale: boolean;
  moving: boolean;
}

export function Lenses({ account, settled, delta, stale, moving }: Props) {
  const all = account?.claims ?? [];
  const lenses = [...new Set(all.map((claim) => claim.lens))];
  const reasons = new Map<string, string[]>();
  for (const entry of account?.unsupported ?? []) {
    reasons.set(entry.reason, [...(reasons.get(entry.reason) ?? []), lensName(entry.lens)]);
  }
  const assumptions = [...new Set(all.flatMap((claim) => claim.assumptions))];
  const warnings = [...new Set([...(account?.warnings ?? []), ...(stale ? [] : (settled?.warnings ?? []))])];
  return (
    <section class="card lenses" aria-labelledby="lenses-title">
      <h2 id="lenses-title">Every lens</h2>
      {lenses.length > 0 && (
        <div class="scroll" tabIndex={0} role="group" aria-label="Claims of every lens">
          <table>
            <thead>
              <tr>
                <th scope="col">lens</th>
                <th scope="col" class="wide-only">standing</th>
                <th scope="col" class="wide-only">iterates seen</th>
                {COLUMNS.map((column) => (
                  <th scope="col" class="n" key={column.name}>
                    {column.name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {lenses.map((lens) => {
                const claim = all.find((entry) => entry.lens === lens)!;
                return (
                  <tr key={lens}>
                    <th scope="row">
                      {lensName(lens)}
                      <span class="narrow-only">
                        <Badge standing={claim.standing} />
                      </span>
                    </th>
                    <td class="wide-only">
                      <Badge standing={claim.standing} />
                    </td>
                    <td class="quiet wide-only">{claim.release === "all-iterates" ? "all" : "last"}</td>
                    {COLUMNS.map((column) => {
                      const live = LIVE.has(column.quantity);
                      const source = live ? account : settled;
                      const id = `claim-${lens}-${column.quantity}${column.fpr ? `-${column.fpr}` : ""}`;
                      return (
                        <Cell key={column.name} id={id} claim={findClaim(source, lens, column.quantity, column.fpr)} stale={live ? moving : stale} />
                      );
                    })}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
      <p class="small quiet">
        ε and μ at δ = {powerOfTen(delta)}. ≤ is rounded up, ≥ down, ≈ has no side.
      </p>
      {(account?.asides ?? []).map((aside) => (
        <p key={aside.name} class="note">
          <b>{typographic(aside.shown)}</b> {aside.note}
        </p>
      ))}
      {warnings.map((warning) => (
        <p key={warning} class="note warn">
          {warning}
        </p>
      ))}
      {[...reasons].map(([reason, names]) => (
        <p key={reason} class="small quiet">
          <b>{names.join("; ")}</b>: {onPage(reason)}
        </p>
      ))}
      {assumptions.length > 0 && (
        <details>
          <summary>Assumptions ({assumptions.length})</summary>
          <ul class="plain">
            {assumptions.map((assumption) => (
              <li key={assumption}>{assumption}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
