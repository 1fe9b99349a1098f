// Numbers as people read them. Claims carry their own text (`shown`); what is read off a drawn
// curve is rounded here, upper ends up and lower ends down.

import type { Claim, Side } from "./types.ts";

/** Significant digits of a number that may be quoted, as everywhere. */
export const DIGITS = 4;

/** `number` with `digits` significant digits, rounded towards `side`. */
export function rounded(number: number, digits: number, side: Side): string {
  if (number === 0) return "0";
  if (!Number.isFinite(number)) return number > 0 ? "inf" : Number.isNaN(number) ? "nan" : "-inf";
  let text = number.toExponential(digits - 1);
  // toExponential rounds to nearest; one unit in the last place repairs the side.
  if (side === "upper" && Number(text) < number) text = step(text, 1);
  if (side === "lower" && Number(text) > number) text = step(text, -1);
  return positional(text);
}

/** What a line says at one place: both ends of a band, or a number rounded to the line's side. */
export function reading(
  line: { values: (number | null)[]; lower?: (number | null)[]; side?: Side },
  place: number,
  digits: number,
): string | null {
  const value = line.values[place];
  if (value === null || value === undefined) return null;
  if (line.lower) {
    const lower = line.lower[place];
    const from = lower === null || lower === undefined ? "0" : rounded(lower, digits, "lower");
    return `${from} to ${rounded(value, digits, "upper")}`;
  }
  return rounded(value, digits, line.side ?? "upper");
}

function step(scientific: string, units: number): string {
  const [mantissa = "0", exponent = "0"] = scientific.split("e");
  const decimals = (mantissa.split(".")[1] ?? "").length;
  let whole = Number(mantissa.replace(".", ""));
  let power = Number(exponent) - decimals;
  // Below a power of ten the last place is ten times finer: 1.000 - 1 unit is 0.9999.
  if (Math.abs(whole) === 10 ** decimals && Math.sign(units) === -Math.sign(whole)) {
    whole *= 10;
    power -= 1;
  }
  return Number(`${whole + units}e${power}`).toExponential(decimals);
}

function positional(scientific: string): string {
  const [mantissa = "0", power = "0"] = scientific.split("e");
  const exponent = Number(power);
  if (exponent < -4 || exponent > 6) return `${mantissa}e${exponent}`;
  const sign = mantissa.startsWith("-") ? "-" : "";
  const digits = mantissa.replace("-", "").replace(".", "");
  const point = exponent + 1;
  if (point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  if (digits.length <= point) return `${sign}${digits}${"0".repeat(point - digits.length)}`;
  return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
}

/** An input as it was given: the shortest text that reads back as the same number. */
export function plain(number: number): string {
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) {
    const [mantissa, exponent] = number.toExponential().split("e");
    return `${mantissa}e${Number(exponent)}`;
  }
  return String(number);
}

export const SIGN: Record<Side, string> = { upper: "≤", lower: "≥", neither: "≈" };

/** The end of a claim that a person may quote. */
export function quotedEnd(claim: { side: Side; value: number | null; lower: number | null; upper: number | null }): number {
  const end = claim.side === "upper" ? claim.upper : claim.side === "lower" ? claim.lower : claim.value;
  return end ?? Infinity;
}

/** The text of a claim as the core made it, with typographic signs. */
export function typographic(shown: string): string {
  return shown.replace("<=", "≤").replace(">=", "≥").replace("~", "≈").replace(" ", "\u00a0");
}

export function quote(claim: Claim): string {
  return Number.isFinite(quotedEnd(claim)) ? typographic(claim.shown) : "unbounded";
}

/** A share in percent, rounded to its side. */
export function percent(share: number, digits: number, side: Side): string {
  return `${rounded(share * 100, digits, side)} %`;
}

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/** 1e-5 as 10⁻⁵; anything else as it is. */
export function powerOfTen(number: number): string {
  const exponent = Math.round(Math.log10(number));
  if (number > 0 && (number < 0.01 || number >= 1e4) && Number(`1e${exponent}`) === number) {
    const digits = [...String(Math.abs(exponent))].map((digit) => SUPERSCRIPTS[Number(digit)]).join("");
    return `10${exponent < 0 ? "⁻" : ""}${digits}`;
  }
  return plain(number);
}

export function withCommas(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}
