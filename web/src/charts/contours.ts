// Lines of equal value through a grid, by marching squares in the logarithm.

export type Segment = [number, number, number, number];

/** Segments in units of cells: column and row of the grid's points. */
export function contour(values: (number | null)[][], level: number): Segment[] {
  const segments: Segment[] = [];
  const goal = Math.log(level);
  for (let row = 0; row + 1 < values.length; row++) {
    const width = values[row]!.length;
    for (let column = 0; column + 1 < width; column++) {
      const corners = [
        values[row]![column],
        values[row]![column + 1],
        values[row + 1]![column + 1],
        values[row + 1]![column],
      ];
      if (corners.some((value) => value === null || value === undefined || !(value > 0))) continue;
      const heights = corners.map((value) => Math.log(value as number) - goal);
      const places: [number, number][] = [
        [column, row],
        [column + 1, row],
        [column + 1, row + 1],
        [column, row + 1],
      ];
      const crossings: [number, number][] = [];
      for (let edge = 0; edge < 4; edge++) {
        const next = (edge + 1) % 4;
        const [a, b] = [heights[edge]!, heights[next]!];
        if (a < 0 === b < 0) continue;
        const share = a / (a - b);
        const [from, to] = [places[edge]!, places[next]!];
        crossings.push([from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])]);
      }
      for (let pair = 0; pair + 1 < crossings.length; pair += 2) {
        segments.push([...crossings[pair]!, ...crossings[pair + 1]!] as Segment);
      }
    }
  }
  return segments;
}

/** 1, 2 and 5 times powers of ten between the smallest and the largest value. */
export function levels(values: (number | null)[][]): number[] {
  const all = values.flat().filter((value): value is number => value !== null && value > 0);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const found: number[] = [];
  for (let power = -6; power < 6; power++) {
    for (const digit of [1, 2, 5]) {
      const level = Number(`${digit}e${power}`);
      if (level > low && level < high) found.push(level);
    }
  }
  return found;
}
