//! A trade-off curve for planning: the lines under it, from few values of delta.
//!
//! ln(1 - delta(l)) is a smooth function of the slope l, so it is taken at some dozens of slopes and by cubics in
//! between. A plan is an estimate; bounds never use these lines.

use accounting::{Order, Pair};

/// Of a rate: what further lines could add is not worth their cost.
const NOTHING: f64 = 1e-7;

/// Sizes of the slopes at which delta is computed: closer together where most curves bend.
fn knots() -> impl Iterator<Item = f64> {
    let outer = (1..=16).map(|step| 4.0 + 0.5 * f64::from(step));
    (0..=16).map(|step| 0.25 * f64::from(step)).chain(outer)
}

/// ln(1 - delta) at the knots of one sign, from the smallest on, until 1 - delta is what it is at most: 1, or e^l.
/// Lines beyond lie below those that are there.
fn side(pair: &dyn Pair, way: Order, sign: f64) -> Vec<(f64, f64)> {
    let mut known = Vec::new();
    for slope in knots().map(|size| sign * size) {
        let Ok(rest) = pair.one_minus_delta(slope, way) else { continue };
        if rest.lower > 0.0 {
            known.push((slope, rest.lower.ln()));
        }
        if rest.lower >= slope.exp().min(1.0) * (1.0 - NOTHING) {
            break;
        }
    }
    known
}

/// Lines as (e^l, 1 - delta(l)), sixteen for each unit of l.
pub(super) fn lines(pair: &dyn Pair, way: Order) -> Vec<(f64, f64)> {
    let mut known = side(pair, way, -1.0);
    known.reverse();
    // Both sides begin at 0.
    known.pop_if(|(slope, _)| *slope == 0.0);
    known.extend(side(pair, way, 1.0));
    let mut lines = Vec::new();
    for (place, pair) in known.windows(2).enumerate() {
        let (from, to) = (pair[0], pair[1]);
        let steps = ((to.0 - from.0) * 16.0).round().max(1.0) as u32;
        let near = &known[place.saturating_sub(1)..(place + 3).min(known.len())];
        for step in 0..steps {
            let slope = from.0 + (to.0 - from.0) * f64::from(step) / f64::from(steps);
            // 1 - delta is at most 1 and e^l.
            let rest = if step == 0 { from.1 } else { lagrange(near, slope) };
            lines.push((slope.exp(), rest.min(0.0).min(slope).exp()));
        }
    }
    lines.extend(known.last().map(|(slope, rest)| (slope.exp(), rest.exp())));
    lines
}

/// The polynomial through these points.
fn lagrange(points: &[(f64, f64)], at: f64) -> f64 {
    let term = |(place, point): (usize, &(f64, f64))| {
        let others = points.iter().enumerate().filter(|(other, _)| *other != place);
        point.1 * others.map(|(_, other)| (at - other.0) / (point.0 - other.0)).product::<f64>()
    };
    points.iter().enumerate().map(term).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Family;

    /// Between the knots the lines are right to a thousandth of a rate.
    #[test]
    fn lines_between_the_knots_are_those_of_the_pair() {
        let family = Family::LastIterate { sample_rate: 0.2, steps: 10 };
        let pair = family.pair(0.7).unwrap();
        for way in [Order::Remove, Order::Add] {
            for (growth, rest) in lines(pair.as_ref(), way).into_iter().skip(3).step_by(7) {
                let right = pair.one_minus_delta(growth.ln(), way).unwrap().lower;
                assert!((rest - right).abs() < 1e-3 * right, "{growth}: {rest} {right}");
            }
        }
    }
}
