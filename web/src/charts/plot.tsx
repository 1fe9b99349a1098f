// A chart: uPlot between a finding and a sentence on how to read it, with a reading under the
// pointer and the numbers behind it as a table.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { DIGITS, plain, powerOfTen, reading, rounded, withCommas } from "../numbers.ts";
import { colour, useScheme } from "../theme.ts";
import type { Side } from "../types.ts";

export interface Line {
  name: string;
  /** A colour of the style sheet. */
  hue: string;
  dash?: number[];
  width?: number;
  values: (number | null)[];
  /** Left out of the legend, the reading and the table. */
  quiet?: boolean;
  stepped?: boolean;
  bars?: boolean;
  /** An area, in the legend. */
  area?: boolean;
  /** Of a band: the lower ends; `values` are the upper ones. */
  lower?: (number | null)[];
  /** To which side its numbers are rounded; up unless said. */
  side?: Side;
}

export interface Scale {
  label: string;
  log?: boolean;
  low?: number;
  high?: number;
  percent?: boolean;
}

export interface Band {
  /** Places of the two lines among `lines`: upper, lower. */
  between: [number, number];
  hue: string;
}

export interface Mark {
  x: number;
  y: number;
  hue: string;
}

export interface PlotProps {
  id: string;
  title: string;
  caption: string;
  x: Scale;
  y: Scale;
  xs: number[];
  lines: Line[];
  bands?: Band[];
  marks?: Mark[];
  /** Vertical lines. */
  rules?: { x: number; hue: string }[];
  height?: number;
  stale?: boolean;
  /** Said in place of an empty chart. */
  note?: string;
  children?: ComponentChildren;
}

function tick(scale: Scale, value: number): string {
  if (scale.percent) return `${plain(Number((value * 100).toPrecision(6)))} %`;
  if (scale.log && value >= 1000 && value < 1e4) return withCommas(Math.round(value));
  if (scale.log) return powerOfTen(Number(value.toPrecision(6)));
  return plain(Number(value.toPrecision(6)));
}

function axis(scale: Scale, side: number): uPlot.Axis {
  return {
    side,
    scale: side === 3 ? "y" : "x",
    label: scale.label,
    labelSize: 20,
    labelGap: side === 3 ? 2 : 4,
    labelFont: FONT,
    font: FONT,
    size: side === 3 ? 50 : 30,
    gap: 6,
    stroke: () => colour("quiet"),
    grid: { stroke: () => colour("grid"), width: 1, ...decades(scale) },
    ticks: { stroke: () => colour("line"), width: 1, size: 4, ...decades(scale) },
    space: side === 3 ? 30 : 50,
    // Of a logarithmic axis only the powers of ten are named.
    values: (_self, splits) =>
      splits.map((value) => {
        if (value === null || value === undefined) return "";
        if (scale.log && !isPower(value)) return "";
        return tick(scale, value);
      }),
    ...(scale.log ? { filter: (_self: uPlot, splits: number[]) => splits } : {}),
  };
}

/** Of a logarithmic axis only the powers of ten are drawn. */
function decades(scale: Scale): { filter?: (self: uPlot, splits: number[]) => (number | null)[] } {
  if (!scale.log) return {};
  return { filter: (_self, splits) => splits.map((value) => (isPower(value) ? value : null)) };
}

function isPower(value: number): boolean {
  const exponent = Math.log10(value);
  return Math.abs(exponent - Math.round(exponent)) < 1e-9;
}

const FONT = '12px "Helvetica Neue", Helvetica, Arial, "Liberation Sans", system-ui, sans-serif';

function range(scale: Scale): uPlot.Scale {
  const shape: uPlot.Scale = scale.log ? { distr: 3, log: 10 } : {};
  if (scale.low !== undefined && scale.high !== undefined) {
    const ends: [number, number] = [scale.low, scale.high];
    return { ...shape, time: false, auto: false, range: () => ends };
  }
  return { ...shape, time: false };
}

function drawMarks(self: uPlot, marks: Mark[], rules: { x: number; hue: string }[]): void {
  const { ctx, bbox } = self;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const rule of rules) {
    const x = Math.round(self.valToPos(rule.x, "x", true));
    ctx.strokeStyle = colour(rule.hue);
    ctx.lineWidth = ratio;
    ctx.setLineDash([4 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.setLineDash([]);
  for (const mark of marks) {
    const x = self.valToPos(mark.x, "x", true);
    const y = self.valToPos(mark.y, "y", true);
    ctx.beginPath();
    ctx.arc(x, y, 5 * ratio, 0, 2 * Math.PI);
    ctx.fillStyle = colour(mark.hue);
    ctx.fill();
    ctx.lineWidth = 2 * ratio;
    ctx.strokeStyle = colour("card");
    ctx.stroke();
  }
  ctx.restore();
}

export function Plot(props: PlotProps) {
  const { id, title, caption, x, y, xs, lines, bands = [], marks = [], rules = [], height = 260, stale } = props;
  const scheme = useScheme();
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  // What the drawing hooks read; they live longer than one render.
  const latest = useRef({ marks, rules, x, y });
  latest.current = { marks, rules, x, y };

  // A new drawing only when its shape changes; new numbers alone are put into the old one.
  const shape = JSON.stringify([
    scheme,
    height,
    x,
    y,
    lines.map((line) => [line.name, line.hue, line.dash, line.width, line.stepped, line.bars]),
    bands,
  ]);

  useLayoutEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const options: uPlot.Options = {
      width: element.clientWidth || 320,
      height,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      scales: { x: range(x), y: range(y) },
      axes: [axis(x, 2), axis(y, 3)],
      bands: bands.map((band) => ({ series: band.between, fill: () => `${colour(band.hue)}2b` })),
      series: [
        {},
        ...lines.map((line): uPlot.Series => {
          const paths = line.bars
            ? uPlot.paths.bars?.({ size: [1, Infinity], gap: 0 })
            : line.stepped
              ? uPlot.paths.stepped?.({ align: 1 })
              : uPlot.paths.linear?.();
          return {
            scale: "y",
            stroke: () => colour(line.hue),
            width: line.width ?? 2,
            dash: line.dash,
            spanGaps: true,
            points: { show: false },
            ...(line.bars ? { fill: () => `${colour(line.hue)}55` } : {}),
            ...(paths ? { paths } : {}),
          };
        }),
      ],
      hooks: {
        draw: [(self) => drawMarks(self, latest.current.marks, latest.current.rules)],
        setCursor: [(self) => setAt(self.cursor.idx ?? null)],
      },
    };
    const made = new uPlot(options, [xs, ...lines.map((line) => line.values)] as uPlot.AlignedData, element);
    plot.current = made;
    const watch = new ResizeObserver(() => {
      if (element.clientWidth > 0) made.setSize({ width: element.clientWidth, height });
    });
    watch.observe(element);
    return () => {
      watch.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData([xs, ...lines.map((line) => line.values)] as uPlot.AlignedData);
  }, [xs, lines, marks]);

  const shown = lines.filter((line) => !line.quiet);
  return (
    <figure class={`card chart${stale ? " stale" : ""}`} id={id} aria-labelledby={`${id}-title`}>
      <h3 id={`${id}-title`}>{title}</h3>
      <ul class="legend" aria-label="Lines">
        {/* What is drawn last lies on top and is what the chart is about. */}
        {[...shown].reverse().map((line) => (
          <li key={line.name}>
            <Swatch hue={line.hue} dash={line.dash} area={line.area ?? line.bars} />
            {line.name}
          </li>
        ))}
      </ul>
      <div class="plot" ref={place} role="img" aria-label={`${title}. ${caption}`} data-empty={xs.length === 0 || shown.length === 0}
        data-note={props.note ?? "Computing…"} />
      <p class="reading-line" aria-hidden="true">
        {at === null || xs[at] === undefined ? (
          <span class="quiet">{caption}</span>
        ) : (
          <>
            <span class="quiet">{x.label} </span>
            <b>{rounded(xs[at]!, 3, "neither")}</b>
            {shown.map((line) => {
              const text = reading(line, at, DIGITS);
              return text === null ? null : (
                <span key={line.name} class="read">
                  <Swatch hue={line.hue} dash={line.dash} />
                  {text}
                </span>
              );
            })}
          </>
        )}
      </p>
      {props.children}
      <Numbers x={x} xs={xs} lines={shown} />
    </figure>
  );
}

export function Swatch({ hue, dash, area }: { hue: string; dash?: number[] | undefined; area?: boolean | undefined }) {
  return (
    <svg class={`swatch hue-${hue}`} viewBox="0 0 22 10" width="22" height="10" aria-hidden="true">
      {area ? (
        <rect x="1" y="0.5" width="20" height="9" fill="currentColor" fill-opacity="0.28" stroke="currentColor" stroke-width="0.8" />
      ) : (
        <line x1="1" y1="5" x2="21" y2="5" stroke="currentColor" stroke-width="2.4" stroke-dasharray={dash?.join(" ")} />
      )}
    </svg>
  );
}

/** About a dozen rows of what is drawn. */
function Numbers({ x, xs, lines }: { x: Scale; xs: number[]; lines: Line[] }) {
  const [open, setOpen] = useState(false);
  const every = Math.max(1, Math.ceil(xs.length / 12));
  const rows = open ? xs.map((_, index) => index).filter((index) => index % every === 0 || index === xs.length - 1) : [];
  return (
    <details onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Numbers</summary>
      <div class="scroll" tabIndex={0} role="group" aria-label="Numbers of the chart">
        <table>
          <thead>
            <tr>
              <th scope="col">{x.label}</th>
              {lines.map((line) => (
                <th scope="col" class="n" key={line.name}>
                  {line.name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row}>
                <th scope="row">{rounded(xs[row]!, 4, "neither")}</th>
                {lines.map((line) => (
                  <td class="n" key={line.name}>
                    {reading(line, row, DIGITS) ?? "–"}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
