// The calibration map: epsilon over noise and steps, with lines of equal epsilon and the run's
// place. A click, or Enter on a cell, takes the run there.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { DIGITS, powerOfTen, rounded, withCommas } from "../numbers.ts";
import type { Run } from "../state.ts";
import type { CalibrationMap } from "../types.ts";
import { contour, levels } from "./contours.ts";

const HEIGHT = 300;
const EDGE = { left: 58, right: 12, top: 10, bottom: 44 };

interface Props {
  map: CalibrationMap | null;
  run: Run;
  target: number | null;
  stale: boolean;
  problem: string | null;
  onChoose: (noise: number, steps: number) => void;
}

/** Eleven steps from little to much, by powers of two around epsilon 1. */
function shade(epsilon: number): number {
  return Math.max(0, Math.min(10, Math.round(5 + 1.5 * Math.log2(epsilon / 2))));
}

interface Handlers {
  choose: (column: number, row: number) => void;
  over: (place: [number, number]) => void;
}

function geometry(columns: number, rows: number, width: number) {
  const [wide, high] = [(width - EDGE.left - EDGE.right) / columns, (HEIGHT - EDGE.top - EDGE.bottom) / rows];
  const left = (column: number) => EDGE.left + column * wide;
  const top = (row: number) => HEIGHT - EDGE.bottom - (row + 1) * high;
  // Places of points, at the middle of their cells.
  const px = (column: number) => left(column) + wide / 2;
  const py = (row: number) => top(row) + high / 2;
  return { wide, high, left, top, px, py };
}

/** The cells with the lines of equal epsilon. */
function Cells({ map, width, target, latest }: { map: CalibrationMap; width: number; target: number | null; latest: { current: Handlers } }) {
  const { wide, high, left, top, px, py } = geometry(map.noise_multiplier.length, map.steps.length, width);
  const lines = levels(map.epsilon);
  const few = lines.length > 8 ? lines.filter((level) => /^[1]/.test(level.toExponential())) : lines;
  const shown = target === null || few.includes(target) ? few : [...few, target];
  return (
    <>
      <g>
        {map.epsilon.map((line, row) =>
          line.map((value, column) => (
            <rect
              key={`${row}-${column}`}
              class={value === null ? "missing" : `shade shade-${shade(value)}`}
              x={left(column)}
              y={top(row)}
              width={wide + 0.4}
              height={high + 0.4}
              onMouseEnter={() => latest.current.over([column, row])}
              onClick={() => latest.current.choose(column, row)}
            />
          )),
        )}
      </g>
      <g class="contours">
        {shown.map((level) => {
          const segments = contour(map.epsilon, level);
          const path = segments
            .map(([x1, y1, x2, y2]) => `M${px(x1).toFixed(1)} ${py(y1).toFixed(1)}L${px(x2).toFixed(1)} ${py(y2).toFixed(1)}`)
            .join("");
          const last = segments.reduce<number[] | null>((best, segment) => (best === null || segment[1] > best[1]! ? segment : best), null);
          return (
            <g key={level} class={level === target ? "wanted" : ""}>
              <path d={path} />
              {last && (
                <text x={px(last[0]!) + 3} y={Math.max(EDGE.top + 12, py(last[1]!) + 4)}>
                  {powerOfTen(level)}
                </text>
              )}
            </g>
          );
        })}
      </g>
    </>
  );
}

export function MapChart({ map, run, target, stale, problem, onChoose }: Props) {
  const [over, setOver] = useState<[number, number] | null>(null);
  // The cells are drawn once for a map, however often the run moves over them.
  const latest = useRef<Handlers>({ choose: () => undefined, over: () => undefined });
  const field = useRef<HTMLDivElement>(null);
  const [WIDTH, setWidth] = useState(440);
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null) return undefined;
    const watch = new ResizeObserver(() => element.clientWidth > 0 && setWidth(element.clientWidth));
    watch.observe(element);
    return () => watch.disconnect();
  }, [map === null]);
  const cells = useMemo(() => (map === null ? null : <Cells map={map} width={WIDTH} target={target} latest={latest} />), [map, WIDTH, target]);
  if (map === null) {
    return (
      <figure class="card chart" id="map" aria-labelledby="map-title">
        <h3 id="map-title">Calibration map</h3>
        <p class="quiet empty">{problem ?? "Computing…"}</p>
      </figure>
    );
  }
  const columns = map.noise_multiplier.length;
  const rows = map.steps.length;
  const { wide, high, left, top, px, py } = geometry(columns, rows, WIDTH);
  const place = (value: number, all: number[]) => {
    const [first, last] = [all[0]!, all[all.length - 1]!];
    return ((all.length - 1) * Math.log(value / first)) / Math.log(last / first);
  };
  const [runColumn, runRow] = [place(run.noise, map.noise_multiplier), place(run.steps, map.steps)];
  const inside = runColumn >= -0.5 && runColumn <= columns - 0.5 && runRow >= -0.5 && runRow <= rows - 0.5;
  const choose = (column: number, row: number) =>
    onChoose(Number(map.noise_multiplier[column]!.toPrecision(4)), map.steps[row]!);
  latest.current = { choose, over: setOver };
  const move = (event: KeyboardEvent) => {
    const [column, row] = over ?? [Math.round(runColumn), Math.round(runRow)];
    const bound = (value: number, count: number) => Math.max(0, Math.min(count - 1, value));
    const go = (dx: number, dy: number) => {
      event.preventDefault();
      setOver([bound(column + dx, columns), bound(row + dy, rows)]);
    };
    if (event.key === "ArrowLeft") go(-1, 0);
    else if (event.key === "ArrowRight") go(1, 0);
    else if (event.key === "ArrowUp") go(0, 1);
    else if (event.key === "ArrowDown") go(0, -1);
    else if (event.key === "Enter" && over) choose(...over);
  };
  const cell = over === null ? null : map.epsilon[over[1]]?.[over[0]];
  const middle = map.epsilon[Math.round(runRow)]?.[Math.round(runColumn)];
  return (
    <figure class={`card chart map${stale ? " stale" : ""}`} id="map" aria-labelledby="map-title">
      <h3 id="map-title">
        {middle && !map.incomplete ? `Around this run ε lies between ${ends(map)}` : "Epsilon around this run"}
      </h3>
      <p class="subtitle quiet">
        ε at δ = {powerOfTen(map.delta)}, composition, {map.standing}
      </p>
      <div
        class="field"
        ref={field}
        role="application"
        tabIndex={0}
        aria-label="Calibration map: arrow keys move over noise and steps, Enter takes the run there"
        onKeyDown={move}
      >
      <svg width={WIDTH} height={HEIGHT} aria-hidden="true" onMouseLeave={() => setOver(null)}>
        {cells}
        <g class="axis">
          {[0, Math.round((columns - 1) / 4), Math.round((columns - 1) / 2), Math.round((3 * (columns - 1)) / 4), columns - 1].map(
            (column) => (
              <text key={column} x={px(column)} y={HEIGHT - EDGE.bottom + 16} text-anchor="middle">
                {rounded(map.noise_multiplier[column]!, 3, "neither").replace(/\.?0+$/, "")}
              </text>
            ),
          )}
          <text class="name" x={EDGE.left + (WIDTH - EDGE.left - EDGE.right) / 2} y={HEIGHT - 8} text-anchor="middle">
            noise multiplier
          </text>
          {map.steps.map((count, row) =>
            Number.isInteger(Math.log10(count)) ? (
              <text key={row} x={EDGE.left - 6} y={py(row) + 4} text-anchor="end">
                {count < 1e4 ? withCommas(count) : powerOfTen(count)}
              </text>
            ) : null,
          )}
          <text class="name" x={14} y={EDGE.top + (HEIGHT - EDGE.top - EDGE.bottom) / 2} text-anchor="middle"
            transform={`rotate(-90 14 ${EDGE.top + (HEIGHT - EDGE.top - EDGE.bottom) / 2})`}>
            steps
          </text>
        </g>
        {over !== null && <rect class="over" x={left(over[0])} y={top(over[1])} width={wide} height={high} />}
        {inside && (
          <g class="here" transform={`translate(${px(runColumn)} ${py(runRow)})`}>
            <circle r="9" />
            <circle class="dot" r="4" />
          </g>
        )}
      </svg>
      </div>
      <p class="reading-line" aria-live="polite">
        {over !== null && cell !== undefined ? (
          <>
            <span class="quiet">noise</span> <b>{rounded(map.noise_multiplier[over[0]]!, 4, "neither")}</b>
            <span class="quiet">, steps</span> <b>{withCommas(map.steps[over[1]]!)}</b>{" "}
            <span class="read">{cell === null ? "no number" : `ε ≤ ${rounded(cell, DIGITS, "upper")}`}</span>
          </>
        ) : (
          <span class="quiet">
            Lines join equal ε; the ring is this run. Click a cell to go there.
            {map.incomplete && " Grey cells take too long here."}
          </span>
        )}
      </p>
    </figure>
  );
}

function ends(map: CalibrationMap): string {
  const all = map.epsilon.flat().filter((value): value is number => value !== null && value > 0);
  return `${rounded(Math.min(...all), 2, "neither")} and ${rounded(Math.max(...all), 2, "neither")}`;
}
