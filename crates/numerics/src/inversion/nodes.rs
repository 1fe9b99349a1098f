//! K - 1 at all nodes c + i k eta of a line, from the points of a grid, with its round-off.
//!
//! With V_j = w_j (e^{c l_j} + mirror) and D_j = w_j (e^{c l_j} - mirror), mirror = e^{(1-c) l_j},
//!   Re K(c + iu) - 1 = (K(c) - 1) - sum_j V_j (1 - cos u l_j),
//!   Im K(c + iu) = sum_j D_j sin u l_j - u sum_j w_j (e^{l_j} - 1) (points without a mirror image).
//! Angles of a block of 2M + 1 nodes about node k are sums of two: with f = 1 - cos and s = sin,
//!   f(a +- b) = f_a + f_b - f_a f_b +- s_a s_b,  s(a +- b) = s_a - s_a f_b +- (s_b - f_a s_b),
//! so that two nodes cost four products per point. Nothing here cancels: where u l is small, all of
//! it is small.
//!
//! *Round-off.* Let Z = min(h l, 2), h the height of the line: |(f, s)| is a chord and at most Z. A
//! pair from a sine and cosine errs by (angle + 6 Z) units; turning it by another adds 8 Z units and
//! the error of that other, whose angles add up. So a pair after n turns errs by
//! (8 n Z + 7 h l + 6 Z) units, a sum of two by twice that, and every one of the four terms is at most
//! 2 Z.

use super::grid::Point;
use crate::elementary::{exp, exp_m1, sin_cos};
use crate::sum::Sum;
use std::ops::Range;

const UNIT: f64 = f64::EPSILON / 2.0;
/// Nodes on either side of the middle of a block.
const SIDE: usize = 8;
const BLOCK: usize = 2 * SIDE + 1;
/// Blocks after which the angle of the middle is computed afresh.
const REFRESH: usize = 8;
/// Points that are worked on together, and sums that run beside each other.
const TILE: usize = 128;
const LANES: usize = 8;

/// K(c + iu) - 1.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transform {
    pub(super) re: f64,
    pub(super) im: f64,
}

/// What belongs to a tilt: e^{cl} and the mirror's e^{(1-c)l}.
struct Grown {
    own: f64,
    mirror: f64,
}

fn grown(point: &Point, c: f64) -> Grown {
    Grown {
        own: exp(c * point.loss),
        mirror: if point.mirror { exp((1.0 - c) * point.loss) } else { 0.0 },
    }
}

/// The points at a tilt, ready for any height.
pub(super) struct Tilted<'a> {
    points: &'a [Point],
    grown: Vec<Grown>,
    c: f64,
}

impl<'a> Tilted<'a> {
    pub(super) fn new(points: &'a [Point], c: f64) -> Self {
        Self { points, grown: points.iter().map(|point| grown(point, c)).collect(), c }
    }

    /// K(c) - 1, term by term.
    pub(super) fn real(&self) -> f64 {
        let c = self.c;
        let mut sum = Sum::default();
        for point in self.points {
            let (l, lifted) = (point.loss, point.lifted);
            sum.add(point.weight * (exp_m1(c * l) - c * lifted));
            if point.mirror {
                sum.add(point.weight * (exp_m1((1.0 - c) * l) - (1.0 - c) * lifted));
            }
        }
        sum.total()
    }

    /// Bound on the error of K - 1 at nodes up to `height` by what the points carry and by the
    /// arithmetic of [`Tilted::real`] and [`Tilted::at_nodes`]. The middle of a block may lie above it.
    pub(super) fn round_off(&self, height: f64, spacing: f64) -> f64 {
        let highest = height + SIDE as f64 * spacing;
        let c = self.c;
        let (mut error, mut size) = (0.0, 0.0);
        let turns = (8 * (SIDE + REFRESH) + 12) as f64;
        for (point, grown) in self.points.iter().zip(&self.grown) {
            let (l, top) = (point.loss, 1.0 + point.lifted.max(0.0));
            let lifted = point.lifted.abs();
            let chord = (highest * l.abs()).min(2.0);
            let mut add = |a: f64, grown: f64| {
                let s = a.abs() + height;
                let most = grown.max(1.0);
                // |e^{sl} - 1|, |r| and |dr/dl|.
                let changed = (s * l.abs() * most).min(most + 1.0);
                let rest = (0.5 * s * (s + 1.0) * l * l * most.max(top)).min(changed + s * lifted);
                let slope = (s * (s + 1.0) * l.abs() * most.max(top)).min(s * (most + top));
                let real = UNIT
                    * (12.0 + a.abs() * l.abs())
                    * ((a.abs() * l.abs() * most).min(most + 1.0) + s * lifted);
                let turned = UNIT
                    * grown
                    * ((turns + 8.0 + a.abs() * l.abs()) * chord + 14.0 * highest * l.abs());
                error += point.weight
                    * (real + 2.0 * turned + point.weight_slip * rest + point.loss_slip * slope);
                size += point.weight * (rest + 10.0 * grown * chord);
            };
            add(c, grown.own);
            if point.mirror {
                add(1.0 - c, grown.mirror);
            }
        }
        let depth = (TILE / LANES + LANES + self.points.len() / TILE + 8) as f64;
        1.01 * error + UNIT * depth * size
    }

    /// K - 1 at some nodes of a spacing.
    pub(super) fn at_nodes(&self, spacing: f64, nodes: Range<usize>) -> Vec<Transform> {
        let blocks = nodes.len().div_ceil(BLOCK);
        let mut out = vec![Transform::default(); blocks * BLOCK];
        let mut linear = Sum::default();
        for (points, grown) in self.points.chunks(TILE).zip(self.grown.chunks(TILE)) {
            crate::patience::look();
            for point in points.iter().filter(|point| !point.mirror) {
                linear.add(point.weight * point.lifted);
            }
            Tile::new(points, grown, spacing).add(spacing, nodes.start, &mut out);
        }
        let base = self.real();
        out.truncate(nodes.len());
        for (k, node) in nodes.zip(&mut out) {
            node.re = base - node.re;
            node.im -= spacing * k as f64 * linear.total();
        }
        out
    }
}

/// f = 1 - cos and s = sin of a multiple of the points' angles.
#[derive(Clone)]
struct Angles {
    f: [f64; TILE],
    s: [f64; TILE],
}

impl Angles {
    const ZERO: Self = Self { f: [0.0; TILE], s: [0.0; TILE] };

    fn of(losses: &[f64; TILE], u: f64) -> Self {
        let mut out = Self::ZERO;
        for (j, loss) in losses.iter().enumerate() {
            let (sin, cos) = sin_cos(0.5 * u * loss);
            (out.f[j], out.s[j]) = (2.0 * sin * sin, 2.0 * sin * cos);
        }
        out
    }

    fn turn(&mut self, by: &Self) {
        for j in 0..TILE {
            let (f, s) = (self.f[j], self.s[j]);
            self.f[j] = f + (by.f[j] * (1.0 - f) + s * by.s[j]);
            self.s[j] = s * (1.0 - by.f[j]) + (1.0 - f) * by.s[j];
        }
    }
}

/// Some points; weights of those that are not there are 0.
struct Tile {
    losses: [f64; TILE],
    both: [f64; TILE],
    difference: [f64; TILE],
    /// Of 1 to SIDE spacings, with their sums against the weights.
    near: Vec<(Angles, f64, f64)>,
    step: Angles,
}

impl Tile {
    fn new(points: &[Point], grown: &[Grown], spacing: f64) -> Self {
        let (mut losses, mut both, mut difference) = ([0.0; TILE], [0.0; TILE], [0.0; TILE]);
        for (j, (point, grown)) in points.iter().zip(grown).enumerate() {
            losses[j] = point.loss;
            both[j] = point.weight * (grown.own + grown.mirror);
            difference[j] = point.weight * (grown.own - grown.mirror);
        }
        let one = Angles::of(&losses, spacing);
        let mut now = one.clone();
        let near = (0..SIDE)
            .map(|m| {
                if m > 0 {
                    now.turn(&one);
                }
                (now.clone(), dot(&both, &now.f), dot(&difference, &now.s))
            })
            .collect();
        let step = Angles::of(&losses, spacing * BLOCK as f64);
        Self { losses, both, difference, near, step }
    }

    /// Adds sum V f to the real and sum D s to the imaginary part of every node.
    fn add(&self, spacing: f64, first: usize, out: &mut [Transform]) {
        let mut middle = Angles::ZERO;
        for (block, nodes) in out.chunks_mut(BLOCK).enumerate() {
            if block % REFRESH == 0 {
                let node = first + block * BLOCK + SIDE;
                middle = Angles::of(&self.losses, spacing * node as f64);
            } else {
                middle.turn(&self.step);
            }
            let vf = product(&self.both, &middle.f);
            let vs = product(&self.both, &middle.s);
            let df = product(&self.difference, &middle.f);
            let ds = product(&self.difference, &middle.s);
            let (sum_f, sum_s) = (total(&vf), total(&ds));
            nodes[SIDE].re += sum_f;
            nodes[SIDE].im += sum_s;
            for (m, (near, near_f, near_s)) in self.near.iter().enumerate() {
                let even = sum_f + near_f - dot(&vf, &near.f);
                let odd = dot(&vs, &near.s);
                let turned = sum_s - dot(&ds, &near.f);
                let shifted = near_s - dot(&df, &near.s);
                nodes[SIDE + 1 + m].re += even + odd;
                nodes[SIDE + 1 + m].im += turned + shifted;
                nodes[SIDE - 1 - m].re += even - odd;
                nodes[SIDE - 1 - m].im += turned - shifted;
            }
        }
    }
}

fn product(a: &[f64; TILE], b: &[f64; TILE]) -> [f64; TILE] {
    let mut out = [0.0; TILE];
    for j in 0..TILE {
        out[j] = a[j] * b[j];
    }
    out
}

fn dot(a: &[f64; TILE], b: &[f64; TILE]) -> f64 {
    let mut lanes = [0.0; LANES];
    for start in (0..TILE).step_by(LANES) {
        for lane in 0..LANES {
            lanes[lane] += a[start + lane] * b[start + lane];
        }
    }
    lanes.iter().sum()
}

fn total(a: &[f64; TILE]) -> f64 {
    let mut lanes = [0.0; LANES];
    for start in (0..TILE).step_by(LANES) {
        for lane in 0..LANES {
            lanes[lane] += a[start + lane];
        }
    }
    lanes.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K - 1 at c + iu, every term from its own sine and cosine.
    fn direct(points: &[Point], c: f64, u: f64) -> Transform {
        let (mut re, mut im) = (Sum::default(), Sum::default());
        for point in points {
            let (l, w) = (point.loss, point.weight);
            let (sin, cos) = (0.5 * u * l).sin_cos();
            let (fall, turn) = (2.0 * sin * sin, 2.0 * sin * cos);
            let mut add = |a: f64, sign: f64| {
                let grown = (a * l).exp_m1();
                re.add(w * (grown - (1.0 + grown) * fall - a * point.lifted));
                im.add(sign * w * ((1.0 + grown) * turn - u * point.lifted));
            };
            add(c, 1.0);
            if point.mirror {
                add(1.0 - c, -1.0);
            }
        }
        Transform { re: re.total(), im: im.total() }
    }

    #[test]
    fn blocks_agree_with_single_nodes_within_their_bound() {
        let points: Vec<Point> = (0..333)
            .map(|index| {
                let x = f64::from(index) / 333.0;
                let loss = (12.0 * x * x - 0.3) * if index % 7 == 0 { 1e-3 } else { 1.0 };
                Point {
                    weight: 0.01 * (-4.0 * x).exp(),
                    loss,
                    lifted: loss.exp_m1(),
                    mirror: index % 3 == 0,
                    weight_slip: 0.0,
                    loss_slip: 0.0,
                }
            })
            .collect();
        for (c, spacing) in [(1.7, 0.02), (-0.6, 0.3), (0.4, 1.9)] {
            let tilted = Tilted::new(&points, c);
            for nodes in [0..400, 150..420] {
                let found = tilted.at_nodes(spacing, nodes.clone());
                let bound = tilted.round_off(spacing * nodes.end as f64, spacing);
                let size = tilted.real().abs().max(1.0);
                assert!(bound < 1e-9 * size, "{bound:e}");
                for (k, here) in nodes.zip(&found) {
                    let truth = direct(&points, c, spacing * k as f64);
                    let off = (here.re - truth.re).hypot(here.im - truth.im);
                    assert!(off <= bound, "{c} {spacing} {k}: {off:e} {bound:e}");
                }
            }
        }
    }
}
