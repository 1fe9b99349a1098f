//! Bounds for sums of losses that no contour holds, because nearly everything leaks or nearly nothing does.
//!
//! **Nearly everything.** min(p, e^eps q) <= e^(eps/2) sqrt(p q), so 1 - delta(eps) is at most e^(eps/2) times the Hellinger
//! affinity, in either order. Affinities multiply over steps, and that of one step is at most sqrt(1 - v^2) with v at most its total
//! variation (Le Cam): v = P(X > x) - Q(X > x) for any x, taken where the ratio is about 1.
//!
//! **Nearly nothing.** n losses are together above eps only if one of them is above eps/n. So delta(eps) <= P(Y > eps) is at most
//! the sum over all steps of the probability of that: a tail of the first distribution, beyond any x whose loss is at most eps/n.

use super::Order;
use numerics::contour::Part;
use numerics::elementary::{exp, ln_1p};
use numerics::mixture::MixtureRatio;
use numerics::special::{normal_cdf, normal_sf};

/// A double that is at least what underflows here.
const LEAST: f64 = 1e-300;
/// Relative room for the roundings of sums of tails and of their arguments.
const ROOM: f64 = 1e-9;
/// A tail is looked at from this many deviations on: no loss is near its turning there, and nothing nearer is next to nothing.
const FAR: f64 = 9.0;

/// A bound on 1 - delta(epsilon), either order.
pub(super) fn most_rest(parts: &[Part], epsilon: f64) -> f64 {
    let log_affinity: f64 = parts
        .iter()
        .map(|part| {
            let v = least_variation(&part.pair);
            0.5 * part.times * ln_1p(-v * v)
        })
        .sum();
    let exponent = 0.5 * epsilon + log_affinity;
    // Of two terms and a sum of at most some thousand.
    let slack = 1e-12 * (epsilon.abs() + log_affinity.abs());
    (exp(exponent + slack) * (1.0 + ROOM)).max(LEAST)
}

/// A lower bound on the total variation of one step.
fn least_variation(pair: &MixtureRatio) -> f64 {
    let (s, x) = (pair.scale(), pair.inverse(0.0));
    let at_zero = normal_sf(x / s);
    let mut gain = 0.0;
    let mut weights = 0.0;
    // What is not listed lies at 0, in P as in Q.
    for (sign, components) in [(1.0, pair.numerator()), (-1.0, pair.denominator())] {
        for component in components {
            weights += component.weight;
            gain += sign * component.weight * (normal_sf((x - component.centre) / s) - at_zero);
        }
    }
    // A tail errs by 2e-15 and by less than u for its argument; every weight errs by its part of what it gains.
    let slack = 1e-14 * weights + gain.abs() * pair.weight_error() + 2.0 * pair.left_out();
    let least = (gain - slack) * (1.0 - ROOM);
    if least.is_finite() { least.clamp(0.0, 1.0 - ROOM) } else { 0.0 }
}

/// A bound on delta(epsilon) for epsilon > 0; 1 where this says nothing.
pub(super) fn most_delta(parts: &[Part], epsilon: f64, order: Order) -> f64 {
    let steps: f64 = parts.iter().map(|part| part.times).sum();
    // Roundings of a share, and of the loss at the place that is found for it.
    let share = 0.999 * epsilon / steps;
    let sum: f64 = parts.iter().map(|part| part.times * beyond(&part.pair, share, order)).sum();
    let most = sum * (1.0 + ROOM) + LEAST;
    if most < 1.0 { most } else { 1.0 }
}

/// A bound on the probability that one step's loss is above share/0.999; 1 where its place is not far out.
fn beyond(pair: &MixtureRatio, share: f64, order: Order) -> f64 {
    if pair.turn().is_finite() || !(share > 0.0) {
        return 1.0;
    }
    let s = pair.scale();
    let level = if order == Order::Remove { share } else { -share };
    if order == Order::Add && level <= pair.infimum() * (1.0 + ROOM) {
        return pair.left_out();
    }
    let x = pair.inverse(level);
    // Far out the two logarithms of the ratio have opposite signs, or one is 0: its digits are theirs.
    let certain = match order {
        Order::Remove => x >= FAR * s && x >= pair.reach() && pair.log_ratio(x) <= 1.0005 * share,
        Order::Add => -x >= FAR * s && -x >= pair.reach() && pair.log_ratio(x) >= -1.0005 * share,
    };
    if !(certain && x.is_finite()) {
        return 1.0;
    }
    let first = order == Order::Remove;
    let tail = |z: f64| if first { normal_sf(z) } else { normal_cdf(z) };
    let mass: f64 =
        pair.with_zero(first).map(|part| part.weight * tail((x - part.centre) / s)).sum();
    mass * (1.0 + pair.weight_error()) + pair.left_out()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::{Composed, Pair};
    use vocabulary::Run;

    fn parts(phases: &[(f64, f64, u64)]) -> Vec<Part> {
        let of = |&(noise, rate, steps): &(f64, f64, u64)| Part {
            pair: MixtureRatio::subsampled(noise, rate),
            times: steps as f64,
        };
        phases.iter().map(of).collect()
    }

    /// Where the contour answers, both bounds hold, and they say something.
    #[test]
    fn bounds_hold_where_the_truth_is_known() {
        let (mut small, mut large) = (0, 0);
        for (noise, rate, steps) in
            [(1.0, 0.3, 400), (0.7, 0.5, 60), (2.0, 0.9, 900), (30.0, 1e-4, 3), (5.0, 1e-3, 10)]
        {
            let run = Run::builder().phase(noise, rate, steps).build().unwrap();
            let pair = Composed::for_run(&run).unwrap();
            let parts = parts(&[(noise, rate, steps)]);
            for epsilon in [1e-3, 0.01, 0.1, 1.0, 5.0] {
                for order in [Order::Remove, Order::Add] {
                    if let Ok(rest) = pair.one_minus_delta(epsilon, order) {
                        let most = most_rest(&parts, epsilon);
                        assert!(rest.lower <= most, "{noise} {rate} {steps} {epsilon}: {most:e}");
                        large += usize::from(most < 1e-3);
                    }
                    if let Ok(delta) = pair.delta(epsilon, order) {
                        let most = most_delta(&parts, epsilon, order);
                        assert!(delta.lower <= most, "{noise} {rate} {steps} {epsilon}: {most:e}");
                        small += usize::from(most < 1e-20);
                    }
                }
            }
        }
        assert!(large > 4 && small > 4, "{large} {small}");
    }

    #[test]
    fn one_step_is_bounded() {
        // P(X > 1/2) - Q(X > 1/2) = q erf(1/(2 sqrt2 s)).
        let v = least_variation(&MixtureRatio::subsampled(2.67, 0.525));
        assert!((v - 0.077_987_624_372_684_7).abs() < 1e-9, "{v}");
        let runs = parts(&[(2.67, 0.525, 423_238_200)]);
        assert!(most_rest(&runs, 1.0) <= LEAST);
        assert!(most_rest(&parts(&[(2.67, 0.525, 10)]), 1.0) > 1.0);
    }
}
