//! Laws of positive numbers on a lattice, kept larger or smaller in convex order, and their sums by
//! FFT.
//!
//! *Larger*: every atom is spread between the two lattice points around it, its mean kept. *Smaller*:
//! the atoms are put into groups whose mean is a lattice point: a group starts with the largest atoms
//! left and takes smaller ones, whole or in part, until its mean has fallen to the lattice point below.
//! Replacing a number by its mean given the group makes a law smaller. What is left at the lower end
//! is raised to a lattice point by parts of higher groups, which is the same again.
//!
//! Sums of independent numbers on a lattice are convolutions, taken on a circle ([`circular_product`],
//! which bounds its round-off). The circle is a window; what lies outside of it is bounded by
//! Chernoff's inequality from positive sums, and is returned.

use super::power::{Factor, circular_product};
use crate::elementary::{exp, ln, powi};

/// Places first + k step, or exp(first + k step) where geometric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    pub first: f64,
    pub step: f64,
    pub geometric: bool,
}

impl Lattice {
    pub fn place(&self, index: usize) -> f64 {
        let plain = self.first + index as f64 * self.step;
        if self.geometric { exp(plain) } else { plain }
    }

    /// The places of this many points.
    pub fn places(&self, length: usize) -> Vec<f64> {
        (0..length).map(|index| self.place(index)).collect()
    }
}

/// The law on a lattice of `length` points that is larger than these atoms (mass, place), and the
/// mean that atoms beyond the last point lose. Atoms rise, from the first point on.
pub fn spread(
    atoms: impl Iterator<Item = (f64, f64)>,
    lattice: &Lattice,
    length: usize,
) -> (Vec<f64>, f64) {
    let (mut masses, mut lost) = (vec![0.0; length], 0.0);
    let places = lattice.places(length);
    let mut low = 0;
    for (mass, place) in atoms {
        while low + 1 < length && places[low + 1] <= place {
            low += 1;
        }
        if low + 1 >= length {
            masses[length - 1] += mass;
            lost += mass * (place - places[length - 1]).max(0.0);
            continue;
        }
        let (a, b) = (places[low], places[low + 1]);
        let share = ((place - a) / (b - a)).clamp(0.0, 1.0);
        masses[low] += mass * (1.0 - share);
        masses[low + 1] += mass * share;
    }
    (masses, lost)
}

/// The law on a lattice of `length` points that is smaller than these atoms (mass, place), given from
/// the largest place to the smallest. Atoms above the last point or below the first are left out.
pub fn lump(atoms: impl Iterator<Item = (f64, f64)>, lattice: &Lattice, length: usize) -> Vec<f64> {
    let mut masses = vec![0.0; length];
    let places = lattice.places(length);
    let mut next = length;
    // The group: its lattice point, its mass, and its moment about the point.
    let mut group: Option<(usize, f64, f64, f64)> = None;
    for (mut mass, place) in atoms {
        if mass <= 0.0 {
            continue;
        }
        if let Some((index, point, total, excess)) = group.take() {
            let below = point - place;
            if below <= 0.0 {
                // Atoms above the point belong to the group.
                group = Some((index, point, total + mass, excess - below * mass));
                continue;
            }
            let taken = (excess / below).min(mass);
            if taken < mass {
                masses[index] += total + taken;
                mass -= taken;
            } else {
                group = Some((index, point, total + mass, excess - below * mass));
                continue;
            }
        }
        if next == length && place > places[length - 1] + (places[length - 1] - places[length - 2])
        {
            continue;
        }
        while next > 0 && places[next - 1] > place {
            next -= 1;
        }
        let Some(index) = next.checked_sub(1) else { break };
        group = Some((index, places[index], mass, (place - places[index]) * mass));
    }
    if let Some((index, point, total, excess)) = group {
        raise(&mut masses, &places, (index, point, total, excess));
    }
    masses
}

/// Puts a group whose mean lies above its point at the next point, with parts of higher groups.
fn raise(
    masses: &mut [f64],
    places: &[f64],
    (index, point, total, excess): (usize, f64, f64, f64),
) {
    if index + 1 >= masses.len() {
        return;
    }
    let next = places[index + 1];
    let mut missing = ((next - point) * total - excess).max(0.0);
    let mut whole = total;
    for (higher, mass) in masses.iter_mut().enumerate().skip(index + 2) {
        if missing <= 0.0 {
            break;
        }
        let above = places[higher] - next;
        let taken = (missing / above).min(*mass);
        *mass -= taken;
        whole += taken;
        missing -= taken * above;
    }
    // Where not enough is above, the group is left out.
    if missing <= 0.0 {
        masses[index + 1] += whole;
    }
}

/// A law on a lattice, and how often it enters a sum.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    pub weights: &'a [f64],
    pub lattice: Lattice,
    pub power: u64,
}

/// The law of a sum within a window.
#[derive(Clone, Debug)]
pub struct Sum {
    /// Of the window's places; geometric where the parts' are.
    pub lattice: Lattice,
    pub values: Vec<f64>,
    /// Sum of the absolute errors of the values, what wrapped around included.
    pub error: f64,
    /// Mass below and above the window at most.
    pub below: f64,
    pub above: f64,
}

/// The law of the sum of all parts (of their logarithms, on geometric lattices), which have one step;
/// `outside` is the mass that each side of the window may lose. `None` where the window would have
/// more than `longest` points.
pub fn sum(parts: &[Part<'_>], outside: f64, longest: usize) -> Option<Sum> {
    let step = parts.first()?.lattice.step;
    let first: f64 = parts.iter().map(|part| part.lattice.first * part.power as f64).sum();
    // In steps from the smallest sum.
    let high = reach(parts, outside, 1.0)?.ceil() + 1.0;
    let low = (-reach(parts, outside, -1.0)?).floor() - 1.0;
    let most: f64 = parts
        .iter()
        .map(|part| (part.weights.len().saturating_sub(1)) as f64 * part.power as f64)
        .sum();
    let (low, above) = (low.max(0.0), if high >= most { 0.0 } else { outside });
    let high = high.min(most);
    let below = if low > 0.0 { outside } else { 0.0 };
    let points = high - low + 1.0;
    if !(points <= longest as f64) {
        return None;
    }
    let length = (points as usize).next_power_of_two().max(8);
    let factors: Vec<Factor<'_>> = parts
        .iter()
        .filter(|part| part.power > 0)
        .map(|part| Factor { weights: part.weights, first: 0, power: part.power, error: 0.0 })
        .collect();
    let product = circular_product(length, &factors);
    let start = (low as i64).rem_euclid(length as i64) as usize;
    // No entry is negative in truth.
    let values: Vec<f64> = (0..points as usize)
        .map(|index| product.values[(start + index) % length].max(0.0))
        .collect();
    let error = product.error * points + below + above;
    let geometric = parts[0].lattice.geometric;
    let lattice = Lattice { first: first + low * step, step, geometric };
    Some(Sum { lattice, values, error, below, above })
}

/// Where sums end: more than this many steps (times the sign) has at most the mass `outside`.
fn reach(parts: &[Part<'_>], outside: f64, sign: f64) -> Option<f64> {
    let tail = Tail::new(parts, sign);
    let mut best = f64::INFINITY;
    for theta in tail.slopes() {
        let place = (tail.log_moment(theta) - ln(outside)) / theta;
        // It falls and then rises.
        if place > 2.0 * best + 100.0 {
            break;
        }
        if place.is_finite() {
            best = best.min(place);
        }
    }
    best.is_finite().then_some(best)
}

/// The mass of a sum at or below a place, at most. Not for geometric lattices.
pub fn mass_below(parts: &[Part<'_>], place: f64) -> f64 {
    let first: f64 = parts.iter().map(|part| part.lattice.first * part.power as f64).sum();
    let Some(step) = parts.first().map(|part| part.lattice.step) else { return 1.0 };
    let steps = -((place - first) / step + 1e-6);
    let tail = Tail::new(parts, -1.0);
    let bound = |theta: f64| exp(tail.log_moment(theta) - theta * steps);
    tail.slopes().map(bound).fold(1.0, f64::min)
}

/// Chernoff's inequality, Pr[X >= x] <= exp(-theta x) E exp(theta X), for sums in steps.
struct Tail {
    /// For each part its power, and blocks of points: each at its end that counts more, with its mass.
    blocks: Vec<(f64, Vec<(f64, f64)>)>,
    longest: usize,
}

impl Tail {
    fn new(parts: &[Part<'_>], sign: f64) -> Self {
        let blocks = parts
            .iter()
            .filter(|part| part.power > 0)
            .map(|part| {
                let (mut all, mut start) = (Vec::new(), 0);
                while start < part.weights.len() {
                    // Blocks grow with their place.
                    let end = (start + 1 + start / 64).min(part.weights.len());
                    let place = if sign > 0.0 { end - 1 } else { start };
                    let mass: f64 = part.weights[start..end].iter().sum();
                    if mass > 0.0 {
                        all.push((sign * place as f64, mass * (1.0 + 1e-12)));
                    }
                    start = end;
                }
                (part.power as f64, all)
            })
            .collect();
        let longest = parts.iter().map(|part| part.weights.len()).max().unwrap_or(1);
        Self { blocks, longest }
    }

    /// From one over the longest possible place to one step.
    fn slopes(&self) -> impl Iterator<Item = f64> {
        let first = 1e-2 / self.longest as f64;
        (0..64).map(move |k| first * powi(1.5_f64, k)).take_while(|theta| *theta < 30.0)
    }

    fn log_moment(&self, theta: f64) -> f64 {
        let of = |(power, blocks): &(f64, Vec<(f64, f64)>)| {
            let largest =
                blocks.iter().fold(f64::NEG_INFINITY, |most, (place, _)| most.max(theta * place));
            let sum: f64 =
                blocks.iter().map(|(place, mass)| mass * exp(theta * place - largest)).sum();
            power * (largest + ln(sum) + 1e-12)
        };
        self.blocks.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payoff(masses: &[f64], lattice: &Lattice, level: f64) -> f64 {
        let each = masses.iter().enumerate();
        each.map(|(k, mass)| mass * (lattice.place(k) - level).max(0.0)).sum()
    }

    /// Atoms against both laws: all payoffs ordered, mass and mean kept.
    #[test]
    fn laws_are_ordered() {
        let atoms: Vec<(f64, f64)> =
            (0..400).map(|k| (1.0 + (k % 7) as f64, 0.013 + 0.0371 * k as f64)).collect();
        let total: f64 = atoms.iter().map(|(mass, _)| mass).sum();
        let mean: f64 = atoms.iter().map(|(mass, place)| mass * place).sum::<f64>() / total;
        let lattices = [
            Lattice { first: 0.0, step: 0.2, geometric: false },
            Lattice { first: -4.5, step: 0.03, geometric: true },
        ];
        for lattice in lattices {
            let (larger, lost) = spread(atoms.iter().copied(), &lattice, 260);
            let smaller = lump(atoms.iter().rev().copied(), &lattice, 260);
            for law in [&larger, &smaller] {
                let sum: f64 = law.iter().sum();
                let first = payoff(law, &lattice, 0.0) / sum;
                assert!(lost == 0.0 && (sum / total - 1.0).abs() < 1e-13);
                assert!((first / mean - 1.0).abs() < 1e-12, "{first} {mean}");
            }
            for part in 1..150 {
                let level = 0.1 * f64::from(part);
                let truth: f64 =
                    atoms.iter().map(|(mass, place)| mass * (place - level).max(0.0)).sum();
                let (low, high) =
                    (payoff(&smaller, &lattice, level), payoff(&larger, &lattice, level));
                let slack = 1e-9 * total;
                assert!(low <= truth + slack && truth <= high + slack, "{level}");
                assert!(high - low < 0.2 * total, "{level}: {low} {truth} {high}");
            }
        }
    }

    /// A sum of coins against the binomial law, in a window that leaves out its ends.
    #[test]
    fn sums_lie_in_their_window() {
        let lattice = Lattice { first: 0.5, step: 1.0, geometric: false };
        let part = Part { weights: &[0.7, 0.3], lattice, power: 2000 };
        let found = sum(&[part], 1e-14, 1 << 12).unwrap();
        assert!(found.values.len() < 600 && found.error < 1e-9);
        let mean: f64 =
            found.values.iter().enumerate().map(|(k, mass)| mass * found.lattice.place(k)).sum();
        assert!((mean - 1600.0).abs() < 1e-6, "{mean}");
        assert!(sum(&[part], 1e-14, 64).is_none());
    }
}
