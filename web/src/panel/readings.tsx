// The numbers that matter, large, each with its standing.

import { BESIDE, SIGNED } from "../names.ts";
import { DIGITS, percent, powerOfTen, quotedEnd, SIGN, typographic } from "../numbers.ts";
import type { Account, Claim, Standing } from "../types.ts";
import { STANDING_MEANS, onPage } from "../words.ts";

export function Badge({ standing }: { standing: Standing }) {
  return (
    <span class={`badge is-${standing}`} title={STANDING_MEANS[standing]}>
      {standing}
    </span>
  );
}

export function findClaim(account: Account | null, lens: string, quantity: string, fpr?: number): Claim | undefined {
  return account?.claims.find(
    (claim) =>
      claim.lens === lens && claim.quantity === quantity && claim.direction === "both" && (fpr === undefined || claim.at.fpr === fpr),
  );
}

interface ReadingProps {
  id: string;
  name: string;
  claim: Claim | undefined;
  symbol: string;
  note: string;
  stale?: boolean;
  share?: boolean;
}

function Reading({ id, name, claim, symbol, note, stale, share }: ReadingProps) {
  const end = claim === undefined ? NaN : quotedEnd(claim);
  const side = claim?.side ?? "neither";
  const least = claim?.at_least_shown;
  // The core's own text, without its sign.
  const number = claim?.shown.split(" ").at(-1) ?? null;
  const shown = Number.isFinite(end) ? (share ? percent(end, DIGITS, side) : number) : null;
  return (
    <div class={`reading is-${claim?.standing ?? "none"}${stale ? " stale" : ""}`}>
      <dt>
        {name} {claim && <Badge standing={claim.standing} />}
      </dt>
      <dd class="big">
        {shown === null ? (
          <span class="none">{claim === undefined ? "–" : "unbounded"}</span>
        ) : (
          <>
            <span class="symbol">
              {symbol} {SIGN[side]}
            </span>{" "}
            <data id={id} value={String(end)}>
              {shown}
            </data>
          </>
        )}
      </dd>
      <dd class="small">
        {note}
        {least !== undefined && `; the worst data set leaks ${symbol} ${typographic(least)}`}
      </dd>
    </div>
  );
}

interface Props {
  account: Account | null;
  settled: Account | null;
  delta: number;
  /** The slow numbers are of an earlier run. */
  stale: boolean;
  /** The fast ones too. */
  moving: boolean;
}

/** The line that a person may sign, and what it means. */
export function Sign({ account, settled, stale, moving, wrong, onZeroOut }: Omit<Props, "delta"> & { wrong: boolean; onZeroOut: (() => void) | null }) {
  const statement = account?.sign?.statement;
  const means = settled?.sign?.means;
  const reason = account?.unsupported.find((entry) => entry.lens === SIGNED)?.reason;
  const why = wrong ? "a field of the run is wrong" : reason === undefined ? "no lens proves a number for this run" : onPage(reason);
  return (
    <section class="card sign" aria-label="What may be signed">
      {statement === undefined ? (
        <>
          <p class={`quiet${moving ? " stale" : ""}`}>
            {account === null && !wrong ? "–" : `Nothing may be signed: ${why}.`}
          </p>
          {reason !== undefined && onZeroOut !== null && (
            <button type="button" id="zero-out" onClick={onZeroOut}>
              Zero records out instead
            </button>
          )}
        </>
      ) : (
        <p class={moving ? "stale" : ""} id="sign">
          <b>Sign:</b> {typographic(statement)}.
        </p>
      )}
      {statement !== undefined && means !== undefined && <p class={`small quiet${stale ? " stale" : ""}`}>{means}</p>}
    </section>
  );
}

export function Readings({ account, settled, delta, stale, moving }: Props) {
  const at = powerOfTen(delta);
  return (
    <dl class="readings card" aria-label="Readings" data-settled={!stale}>
      <Reading id="reading-composition" name="Guarantee" symbol="ε" claim={findClaim(account, SIGNED, "epsilon")} stale={moving}
        note={`at δ = ${at}, every iterate seen`} />
      <Reading id="reading-last-iterate" name="Last iterate" symbol="ε" claim={findClaim(account, BESIDE, "epsilon")} stale={moving}
        note={`at δ = ${at}, final model only`} />
      <Reading id="reading-tpr" name="Attack" symbol="TPR" share claim={findClaim(settled, SIGNED, "tpr", 0.001)} stale={stale}
        note="of members found at 0.1 % false alarms" />
      <Reading id="reading-bayes" name="Bayes security" symbol="β" claim={findClaim(account, SIGNED, "bayes-security")} stale={moving}
        note="1 is perfect, 0 is none" />
    </dl>
  );
}
