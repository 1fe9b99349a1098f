//! How far the transform has fallen for **every** u beyond a height: |K(c + iu)| <= K(c) (1 - D).
//!
//! Let nu be the law tilted by W^c. Any split of nu into pieces gives
//! |K(c+iu)| <= sum over pieces |integral of e^{iul} d nu|, so that what pieces lose may be added up.
//! - A piece of mass m whose losses lie within b/u of each other loses at least m k u^2 Var/2,
//!   k = 2(1 - cos b)/b^2: E cos(u(X - X')) <= 1 - k u^2 Var, and (1 - cos z)/z^2 falls on [0, 2 pi].
//!   Leaving mass out of a piece only lowers m Var, so cells may be replaced by lower bounds.
//! - A stretch x >= a of a strand with density g(x) loses its mass less (h(a) + TV h)/u, h = g/l'
//!   (integration by parts in l), which falls as u grows: it ends the ladder of heights.
//!
//! Heights between two rungs of the ladder use the smaller u^2 and the narrower pieces.

use super::law::{Strand, slopes};
use super::line::{Obstacle, RUNGS, top_of_rung};
use super::rough::Rough;
use super::solve::Times;
use crate::elementary::{cos, exp, hypot, ln, ln_1p, powi, sin_cos};

const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_8;

/// A height, and the log of |K^T| / K(c)^T beyond it, all parts together.
pub(super) struct Decay {
    pub(super) height: f64,
    pub(super) log_ratio: f64,
    /// How far, roughly, the product of transforms has fallen at the foot of each rung, and above it.
    pub(super) falls: [f64; RUNGS],
}

/// A stretch of a strand with a lower bound on its mass.
#[derive(Clone, Copy)]
struct Cell {
    mass: f64,
    /// Loss in the middle, and how far the mean over the cell may be from it.
    place: f64,
    off: f64,
    low: f64,
    high: f64,
}

/// The tilted law of a part in cells.
pub(super) struct Cells {
    times: f64,
    /// An upper bound on K(c).
    total: f64,
    cells: Vec<Cell>,
    /// For each strand, from the far end: mass beyond, and (h + TV) beyond.
    stretches: Vec<Vec<(f64, f64)>>,
}

const RATIO: f64 = 1.12;
/// Widths of pieces, in units of 1/u.
const WIDTHS: [f64; 3] = [std::f64::consts::PI, 1.8, 0.8];
const MOST_CELLS: usize = 60_000;
/// Nodes up to which all are treated alike.
const FEW_NODES: f64 = 100.0;
/// Nodes from which on finer cells are worth their cost.
const MANY_NODES: f64 = 1500.0;

impl Decay {
    pub(super) fn find(
        rough: &mut Rough<'_>,
        c: f64,
        spacing: f64,
        log_wanted: f64,
        spread: f64,
    ) -> Result<Self, Obstacle> {
        let first = 0.9 * (-2.0 * log_wanted).sqrt() / spread;
        let mut best: Option<Self> = None;
        // Finer cells only where coarse ones leave a gap.
        for width in [0.05, 0.0125] {
            let cells = rough.cells(c, width)?;
            let Some((found, end)) = Self::with(cells, first, log_wanted) else { continue };
            let gap = found.height > (0.2 * end).max(MANY_NODES * spacing) && end > 20.0 * first;
            if best.as_ref().is_none_or(|known| found.height < known.height) {
                best = Some(found);
            }
            if !gap {
                break;
            }
        }
        let mut found = best.ok_or(Obstacle::SlowDecay)?;
        // The last node lies within one spacing of the height.
        found.height = found.height.max(2.0 * spacing);
        if found.height < FEW_NODES * spacing {
            return Ok(found);
        }
        let mut above = f64::INFINITY;
        for rung in (1..RUNGS).rev() {
            let u = found.height * top_of_rung(rung - 1);
            let here = rough.cells(c, 0.05)?.iter().map(|part| part.fall_at(u)).sum();
            above = above.min(here);
            found.falls[rung] = above;
        }
        Ok(found)
    }

    /// The lowest height from which on the cells promise enough, and the end of the ladder.
    fn with(cells: &[Cells], first: f64, log_wanted: f64) -> Option<(Self, f64)> {
        let wanted = |u: f64| -(log_wanted + ln(std::f64::consts::PI * u));
        let by_stretches = |u: f64| cells.iter().map(|part| part.by_stretches(u)).sum::<f64>();
        let mut end = first;
        let mut least = by_stretches(end);
        while least < wanted(end) {
            end *= 1.5;
            if !(end <= 1e7) {
                return None;
            }
            least = by_stretches(end);
        }
        let mut height = end;
        let (mut start, mut best) = (0, 0);
        // Down from there while pieces keep the promise.
        while height > first {
            let (low, high) = ((height / RATIO).max(first), height);
            // The widths of pieces that last did come first.
            let mut fall = 0.0f64;
            for round in 0..WIDTHS.len() {
                let width = WIDTHS[(start + round) % WIDTHS.len()];
                let here = cells
                    .iter()
                    .map(|part| part.by_pieces(low, high, width).max(part.by_stretches(low)))
                    .sum();
                if here > fall {
                    fall = here;
                    best = (start + round) % WIDTHS.len();
                }
                if fall >= wanted(low) {
                    break;
                }
            }
            start = best;
            if fall < wanted(low) {
                break;
            }
            least = least.min(fall);
            height = low;
        }
        Some((Self { height, log_ratio: -least, falls: [0.0; RUNGS] }, end))
    }
}

impl Cells {
    pub(super) fn new(part: &Times, c: f64, width: f64) -> Result<Self, Obstacle> {
        let mut out =
            Self { times: part.times, total: part.law.atom, cells: vec![], stretches: vec![] };
        if part.law.atom > 0.0 {
            let mass = part.law.atom * (1.0 - 1e-12);
            out.cells.push(Cell { mass, place: 0.0, off: 0.0, low: 0.0, high: 0.0 });
        }
        for strand in &part.law.strands {
            for (tilt, mirrored) in strand.tilts(c) {
                out.add(strand, tilt, mirrored, width)?;
            }
        }
        out.cells.sort_by(|a, b| a.place.total_cmp(&b.place));
        Ok(out)
    }

    fn add(
        &mut self,
        strand: &Strand,
        tilt: f64,
        mirrored: bool,
        width: f64,
    ) -> Result<(), Obstacle> {
        let reach = strand.pair.reach();
        let width = width.min(10.0 * width / reach);
        // From where to where: until the height is far below its largest.
        let (from, to) = strand.extent(tilt);
        let count = ((to - from) / width).ceil();
        if !(count <= MOST_CELLS as f64) {
            return Err(Obstacle::SlowDecay);
        }
        let width = (to - from) / count;
        let scale = strand.weight * width;
        let curve = reach * width * width / 24.0;
        let mut beyond = Vec::with_capacity(count as usize);
        let (mut mass_beyond, mut variation) = (0.0, 0.0);
        let edge = |x: f64| {
            let seen = strand.pair.logs_and_means(x);
            (x, seen.means, seen.numerator - seen.denominator)
        };
        let mut after = edge(from + width * count);
        for index in (0..count as usize).rev() {
            let before = edge(from + width * index as f64);
            let (a, na, left) = before;
            let (b, nb, right) = after;
            after = before;
            let middle = 0.5 * (a + b);
            let (n, d) = (strand.pair.log_numerator(middle), strand.pair.log_denominator(middle));
            let place = n - d;
            let height = -0.5 * middle * middle + tilt * n + (1.0 - tilt) * d - LN_SQRT_TWO_PI;
            let (slope_low, slope_high) = slopes((a, na), (b, nb), tilt);
            let slope = slope_low.abs().max(slope_high.abs());
            let low = exp(height - 0.5 * (b - a) * slope);
            let high = exp(height + 0.5 * (b - a) * slope);
            let mass = scale * low * (1.0 - 1e-12);
            self.total += scale * high * (1.0 + 1e-12);
            // l'' is a difference of the posteriors' variances, each at most reach times its mean's size.
            let means = strand.means(na, nb);
            let off = curve * means;
            let sign = if mirrored { -1.0 } else { 1.0 };
            // l' is a difference of two rising means.
            let least_steep = (na.0 - nb.1).max(0.0);
            let (left, right) = if na.0 >= nb.1 {
                (left, right)
            } else {
                let room = 0.5 * width * (nb.1 - na.0).max(nb.0 - na.1);
                (0.5 * (left + right) - room, 0.5 * (left + right) + room)
            };
            let (low_place, high_place) = if mirrored { (-right, -left) } else { (left, right) };
            self.cells.push(Cell {
                mass,
                place: sign * place,
                off: off + 1e-15 * place.abs(),
                low: low_place,
                high: high_place,
            });
            // h = g/l' in the cell, and its variation: (ln h)' = (ln g)' - l''/l'. Of a one-sided pair l' is a mean of
            // centres in [0, reach], and l'' their variance, at most l' (reach - l'), and that for one centre. Where
            // the centres of both sides are on either side of 0, l' is the sum of the means' sizes.
            let top = strand.weight * high / least_steep.max(1e-300);
            let bends = match strand.pair.numerator() {
                _ if strand.pair.turn().is_finite() => {
                    let most = reach * means / least_steep;
                    (-most, most)
                }
                _ if !strand.pair.one_sided() => (-reach, reach),
                [_] => (reach - nb.0, reach - na.0),
                _ => (0.0, reach - na.0),
            };
            let steep = (slope_low - bends.1).abs().max((slope_high - bends.0).abs());
            mass_beyond += mass;
            variation += top * steep * width * (1.0 + 1e-9);
            beyond.push((mass_beyond, variation + top));
        }
        // What lies beyond the ends: the height falls there at least as fast as at them.
        for (x, slope) in
            [(to, -strand.slopes(to, to, tilt).1), (from, strand.slopes(from, from, tilt).0)]
        {
            if x == from && strand.from.is_finite() {
                continue;
            }
            // extent() leaves nine standard deviations, of which at least eight are slope.
            let slope = slope.clamp(1e-300, 8.0);
            self.total += strand.weight * exp(strand.height(x, tilt) - LN_SQRT_TWO_PI) / slope;
        }
        self.stretches.push(beyond);
        Ok(())
    }

    /// T times the fall of ln |K|, from stretches, for every height above u.
    fn by_stretches(&self, u: f64) -> f64 {
        let lost: f64 = self
            .stretches
            .iter()
            .map(|stretch| stretch.iter().map(|(mass, edge)| mass - edge / u).fold(0.0, f64::max))
            .sum();
        self.fall(lost)
    }

    /// The same from pieces of a width, for heights in [low, high].
    fn by_pieces(&self, low: f64, high: f64, width: f64) -> f64 {
        let length = width / high;
        let k = 2.0 * (1.0 - cos(width)) / (width * width);
        let mut lost = 0.0;
        let mut start = 0;
        while start < self.cells.len() {
            let mut piece = Piece::default();
            let mut end = start;
            let mut top = f64::NEG_INFINITY;
            let mut bottom = f64::INFINITY;
            while end < self.cells.len() {
                let cell = &self.cells[end];
                let (lowest, highest) = (bottom.min(cell.low), top.max(cell.high));
                if highest - lowest > length {
                    break;
                }
                (bottom, top) = (lowest, highest);
                piece.add(cell);
                end += 1;
            }
            lost += piece.variation();
            start = end.max(start + 1);
        }
        self.fall(0.5 * k * low * low * lost)
    }

    /// The fall at a height by the cells' places: an estimate.
    fn fall_at(&self, u: f64) -> f64 {
        let (mut re, mut im, mut mass) = (0.0, 0.0, 0.0);
        for cell in &self.cells {
            mass += cell.mass;
            let (sin, cos) = sin_cos(u * cell.place);
            re += cell.mass * cos;
            im += cell.mass * sin;
        }
        -self.times * ln(hypot(re, im) / mass)
    }

    fn fall(&self, lost: f64) -> f64 {
        let part = (lost * (1.0 - 1e-9) / self.total).min(1.0);
        if part >= 1.0 { f64::INFINITY } else { -self.times * ln_1p(-part) }
    }
}

/// Sums over the cells of a piece.
#[derive(Default)]
struct Piece {
    mass: f64,
    anchor: f64,
    first: f64,
    second: f64,
    off: f64,
}

impl Piece {
    fn add(&mut self, cell: &Cell) {
        if self.mass == 0.0 {
            self.anchor = cell.place;
        }
        let shift = cell.place - self.anchor;
        self.mass += cell.mass;
        self.first += cell.mass * shift;
        self.second += cell.mass * shift * shift;
        self.off += cell.mass * cell.off * cell.off;
    }

    /// A lower bound on mass times variance.
    fn variation(&self) -> f64 {
        if self.mass <= 0.0 {
            return 0.0;
        }
        // The subtraction rounds relative to the second moment about the anchor.
        let spread = self.second - self.first * self.first / self.mass - 1e-12 * self.second;
        let root = spread.max(0.0).sqrt() - self.off.sqrt();
        powi(root.max(0.0), 2)
    }
}
