// A figure document of the audit, drawn: lines, steps, bands and bars on one pair of axes.

import { Plot, type Band, type Line, type Scale } from "./plot.tsx";
import type { Axis, Figure, Side } from "../types.ts";

type Pair = [number | null, number | null];

const HUES: Record<string, string> = {
  blue: "proven",
  vermilion: "heuristic",
  green: "measured",
  purple: "pin-2",
  orange: "pin-1",
  sky: "pin-4",
  ink: "ink",
  muted: "muted",
};

const DASHES: Record<string, number[] | undefined> = { "long-dash": [10, 5], dashed: [7, 5], "dash-dot": [7, 4, 2, 4], dotted: [2, 4] };

function scale(axis: Axis): Scale {
  const domain = axis.domain as unknown as { lower: number; upper: number } | undefined;
  return {
    label: axis.label,
    log: axis.scale === "log10",
    percent: (axis as { format?: string }).format === "percent",
    ...(domain ? { low: domain.lower, high: domain.upper } : {}),
  };
}

/** What was measured is green on this page, what is claimed blue. */
function tint(label: string): string | null {
  if (/^(attack|members)|band/.test(label)) return "measured";
  if (/claimed/.test(label)) return "proven";
  if (/^non-members/.test(label)) return "muted";
  return null;
}

/** All abscissae of a figure, in order, with what each series has there. */
export function FigureChart({ id, figure, height }: { id: string; figure: Figure; height?: number }) {
  const xs = new Set<number>();
  const parts: { line: Omit<Line, "values">; points: Pair[] }[] = [];
  const pairs: { hue: string; upper: number; lower: number }[] = [];
  const rules: { x: number; hue: string }[] = [];
  for (const series of figure.series) {
    const hue = tint(series.label) ?? HUES[series.hue ?? "blue"] ?? "proven";
    const dash = DASHES[series.stroke ?? ""];
    // What is claimed is an upper end; what was counted is neither.
    const side: Side = hue === "proven" ? "upper" : "neither";
    const base = { name: series.label, hue, side, ...(dash ? { dash } : {}) };
    const mark = series.mark;
    if (mark["line"] || mark["step"]) {
      parts.push({ line: { ...base, stepped: Boolean(mark["step"]), quiet: /guess|diagonal/.test(series.label) }, points: (mark["line"] ?? mark["step"]) as Pair[] });
    } else if (mark["band"]) {
      const { lower, upper } = mark["band"] as { lower: Pair[]; upper: Pair[] };
      pairs.push({ hue, upper: parts.length + 1, lower: parts.length + 2 });
      parts.push({ line: { ...base, width: 0.5, area: true }, points: upper });
      parts.push({ line: { ...base, name: `${series.label}, lower`, width: 0.5, quiet: true }, points: lower });
    } else if (mark["bars"]) {
      const { bars } = mark["bars"] as { bars: { from: number; to: number; value: number }[] };
      parts.push({
        line: { ...base, bars: true, width: 1 },
        points: bars.map((bar) => [(bar.from + bar.to) / 2, bar.value] as Pair),
      });
    } else if (mark["rule"]) {
      const rule = mark["rule"] as { orientation: string; at: number | null };
      if (rule.orientation === "vertical" && rule.at !== null) rules.push({ x: rule.at, hue });
    }
  }
  for (const part of parts) for (const [x] of part.points) if (x !== null) xs.add(x);
  const places = [...xs].sort((a, b) => a - b);
  const log = figure.y.scale === "log10";
  const lines: Line[] = parts.map((part) => {
    const known = new Map(part.points.map(([x, y]) => [x, y]));
    return {
      ...part.line,
      values: places.map((x) => {
        const y = known.get(x) ?? null;
        return y !== null && log && y <= 0 ? null : y;
      }),
    };
  });
  for (const pair of pairs) lines[pair.upper - 1]!.lower = lines[pair.lower - 1]!.values;
  const bands: Band[] = pairs.map((pair) => ({ between: [pair.upper, pair.lower], hue: pair.hue }));
  return (
    <Plot id={id} title={figure.title} caption={figure.caption} x={scale(figure.x)} y={scale(figure.y)} xs={places}
      lines={lines} bands={bands} rules={rules} height={height ?? 280} />
  );
}
