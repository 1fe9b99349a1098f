//! What every [`Pair`] promises. Suites of other crates take this file in by its path.

use accounting::{AccountingError, Order, Pair};
use vocabulary::{Interval, NotCovered};

const ORDERS: [Order; 2] = [Order::Remove, Order::Add];

pub(crate) fn ordered(what: &str, interval: &Interval) {
    let Interval { lower, value, upper } = *interval;
    assert!(lower <= value && value <= upper, "{what}: {interval:?}");
}

/// Sharing a point, up to nothing: certified ends of one number.
pub(crate) fn overlap(what: &str, a: &Interval, b: &Interval) {
    assert!(a.lower <= b.upper && b.lower <= a.upper, "{what}: {a:?} and {b:?}");
}

pub(crate) fn all(name: &str, pair: &dyn Pair) {
    for order in ORDERS {
        inverts(name, pair, order);
        complements(name, pair, order);
        convex(name, pair, order);
    }
}

/// Delta at a certified epsilon is on the right side, and the other way round.
fn inverts(name: &str, pair: &dyn Pair, order: Order) {
    for delta in [1e-2, 1e-6] {
        let epsilon = pair.epsilon(delta, order).unwrap();
        ordered(name, &epsilon);
        // Of a pair that says something from below alone nothing more follows.
        if epsilon.upper.is_finite() {
            let above = pair.delta(epsilon.upper, order).unwrap();
            assert!(above.lower <= delta, "{name}, {order:?}: {epsilon:?} {above:?} {delta}");
        }
        if epsilon.lower > 0.0 {
            let below = pair.delta(epsilon.lower, order).unwrap();
            assert!(below.upper >= delta, "{name}, {order:?}: {epsilon:?} {below:?} {delta}");
        }
    }
}

/// Delta and one minus delta are one number seen from two ends; delta falls.
fn complements(name: &str, pair: &dyn Pair, order: Order) {
    let mut last = f64::INFINITY;
    for epsilon in [-1.0, 0.0, 0.4, 1.5] {
        let delta = pair.delta(epsilon, order).unwrap();
        let rest = pair.one_minus_delta(epsilon, order).unwrap();
        ordered(name, &delta);
        let slack = 4.0 * f64::EPSILON;
        let other = rest.map_decreasing(|rest| 1.0 - rest);
        let other = Interval { lower: other.lower - slack, upper: other.upper + slack, ..other };
        overlap(name, &delta, &other);
        assert!(delta.lower <= last, "{name}: delta rises at {epsilon}");
        last = delta.upper;
    }
}

/// The trade-off is convex and never above guessing; power and misses are complements. A pair that has no curve says so
/// for both.
fn convex(name: &str, pair: &dyn Pair, order: Order) {
    if let Err(refused) = pair.fnr(0.21, order) {
        let no_curve =
            matches!(refused, AccountingError::Unsupported(NotCovered::Quantities { .. }));
        assert!(no_curve, "{name}: {refused}");
        assert_eq!(pair.tpr(0.21, order), Err(refused), "{name}");
        return;
    }
    let at = |fpr: f64| {
        let found = pair
            .fnr(fpr, order)
            .unwrap_or_else(|error| panic!("{name}, {order:?}, {fpr}: {error}"));
        ordered(name, &found);
        assert!(found.lower <= 1.0 - fpr + 1e-12, "{name}: worse than guessing at {fpr}");
        if fpr == 0.21 {
            let power = pair.tpr(fpr, order).unwrap().map_decreasing(|tpr| 1.0 - tpr);
            let slack = 4.0 * f64::EPSILON;
            let (lower, upper) = (power.lower - slack, power.upper + slack);
            overlap(&format!("{name} at {fpr}"), &found, &Interval { lower, upper, ..power });
        }
        // The line of every slope bounds the misses from below: a second route.
        for epsilon in [-0.5, 0.0, 0.7] {
            let rest = pair.one_minus_delta(epsilon, order).unwrap();
            let line = rest.lower - epsilon.exp() * fpr - 1e-12;
            assert!(found.upper >= line, "{name}, {order:?} at {fpr}: {found:?} below {line}");
        }
        found
    };
    let (left, middle, right) = (at(0.02), at(0.21), at(0.4));
    let line = 0.5 * (left.upper + right.upper);
    assert!(middle.lower <= line + 1e-12, "{name}, {order:?}: {middle:?} above {line}");
}
