//! Directions against closed forms of the Gaussian, and laws that hold for every pair.

use accounting::directions::{accuracy, epsilon, fnr, mu, symmetrised, tpr};
use accounting::pairs::{Composed, Gaussian};
use accounting::{AccountingError, Order, Pair};
use numerics::special::{inverse_normal_cdf, normal_cdf};
use vocabulary::{Direction, Interval, Run, Sampling};

/// N(mu, 1) against N(0, 1), with the second order of the pair made less leaky by hand: its
/// curve is that of a smaller mu. Not a pair of distributions, but `directions` cannot know.
struct Lopsided {
    remove: Gaussian,
    add: Gaussian,
}

impl Lopsided {
    fn of(&self, order: Order) -> &Gaussian {
        match order {
            Order::Remove => &self.remove,
            Order::Add => &self.add,
        }
    }
}

impl Pair for Lopsided {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.of(order).delta(epsilon, order)
    }
    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.of(order).one_minus_delta(epsilon, order)
    }
    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        self.of(order).epsilon(delta, order)
    }
    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.of(order).tpr(fpr, order)
    }
    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.of(order).fnr(fpr, order)
    }
}

/// Full batches have their own mu, also where 1 - delta is no number any more: 2 sqrt(652248)/.2 is 8076.2 ...
#[test]
fn mu_of_full_batches_is_their_own() {
    for (noise, steps, group, delta) in [
        (0.2, 652_248, 2, 0.043),
        (0.4, 1568, 1, 0.036),
        (24.0, 117_587_671, 1, 7e-10),
        (9.0, 50, 1, 1e-40),
    ] {
        let run =
            Run::builder().sampling(Sampling::Full).group_size(group).phase(noise, 1.0, steps);
        let pair = Composed::for_run(&run.build().unwrap()).unwrap();
        let found = mu::of(&pair, delta, Direction::Both).unwrap();
        let own = f64::from(group) * (steps as f64).sqrt() / noise;
        assert!(found.lower < own && own < found.upper, "{own} not in {found:?}");
        assert!(found.relative_width() < 3e-12, "{found:?}");
    }
    // No epsilon counts where delta(0) is below delta.
    let run = Run::builder().sampling(Sampling::Full).phase(50.0, 1.0, 1).build().unwrap();
    let pair = Composed::for_run(&run).unwrap();
    assert_eq!(mu::of(&pair, 0.1, Direction::Both).unwrap(), Interval::exact(0.0));
}

#[test]
fn the_symmetrised_gaussian_is_the_gaussian() {
    for m in [0.01, 0.3, 1.0, 3.0, 6.0] {
        let pair = Gaussian::new(m).unwrap();
        for a in [1e-12, 1e-5, 1e-3, 0.01, 0.3, 0.5, 0.9, 0.999] {
            let truth = normal_cdf(inverse_normal_cdf(a) + m);
            let found = symmetrised::tpr(&pair, a).unwrap();
            let allowance = 1e-13 * truth;
            assert!(
                found.lower <= truth + allowance && truth - allowance <= found.upper,
                "mu {m}, fpr {a}: {truth} not in {found:?}"
            );
            assert!(found.width() <= 2e-8 * truth, "mu {m}, fpr {a}: {found:?}");
            let missed = normal_cdf(-inverse_normal_cdf(a) - m);
            let found = symmetrised::fnr(&pair, a).unwrap();
            assert!(
                found.lower <= missed + 1e-13 && missed - 1e-13 <= found.upper,
                "mu {m}, fpr {a}: {missed} not in {found:?}"
            );
            assert!(found.width() <= 2e-8, "mu {m}, fpr {a}: {found:?}");
        }
    }
}

#[test]
fn the_worse_order_decides() {
    let (small, large) = (Gaussian::new(0.5).unwrap(), Gaussian::new(0.9).unwrap());
    let both = Direction::Both;
    for (remove, add) in [(small, large), (large, small)] {
        let pair = Lopsided { remove, add };
        let truth = large.epsilon(1e-5, Order::Remove).unwrap();
        assert_eq!(epsilon(&pair, 1e-5, both).unwrap(), truth);
        let found = tpr(&pair, 1e-3, both).unwrap();
        let truth = large.tpr(1e-3, Order::Remove).unwrap();
        assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{found:?} {truth:?}");
        assert!(found.width() < 1e-9);
        let found = fnr(&pair, 0.2, both).unwrap();
        let truth = large.fnr(0.2, Order::Remove).unwrap();
        assert!(found.lower <= truth.upper && truth.lower <= found.upper, "{found:?} {truth:?}");
    }
}

#[test]
fn mu_of_a_gaussian_profile_is_found_from_the_profile_alone() {
    for m in [0.05, 0.4, 1.0, 4.0, 40.0] {
        let pair = Gaussian::new(m).unwrap();
        for delta in [1e-3, 1e-5, 1e-12] {
            let end = pair.epsilon(delta, Order::Remove).unwrap();
            let profile = |epsilon| mu::Level::of(&pair, epsilon, Direction::Both);
            let found = mu::covering(&profile, end, delta).unwrap();
            assert!(found.lower <= m * (1.0 + 1e-12) && m <= found.upper, "{m} {delta}: {found:?}");
            // The hardest profile: every gap is tight, and the width is about 1/nodes^2 of
            // the range of epsilon in standard deviations.
            assert!(found.relative_width() < 1e-2, "{m} {delta}: {found:?}");
        }
    }
}

#[test]
fn mu_covers_the_larger_of_two_profiles() {
    // Larger mu at small epsilon, smaller at large epsilon: the hull needs the larger one.
    let (broad, narrow) = (Gaussian::new(0.8).unwrap(), Gaussian::new(0.5).unwrap());
    let profile = |epsilon: f64| -> Result<Interval, AccountingError> {
        let scaled = broad.delta(epsilon, Order::Remove)?.map_increasing(|delta| 0.3 * delta);
        Ok(scaled.max(narrow.delta(epsilon, Order::Remove)?))
    };
    let end = Interval::new(3.4, 3.4, 3.4);
    let delta = profile(3.4).unwrap().lower;
    let level = |epsilon: f64| Ok(mu::Level::from_delta(profile(epsilon)?));
    let found = mu::covering(&level, end, delta).unwrap();
    let needed = (0..=3400)
        .map(|i| f64::from(i) * 1e-3)
        .map(|epsilon| mu::through(epsilon, profile(epsilon).unwrap().value).unwrap())
        .fold(0.0, f64::max);
    assert!(found.upper >= needed && found.lower <= needed * 1.001, "{needed} {found:?}");
    assert!(found.relative_width() < 1e-3, "{found:?}");
}

#[test]
fn a_profile_that_never_reaches_delta_needs_no_mu() {
    let pair = Gaussian::new(0.1).unwrap();
    let end = pair.epsilon(0.3, Order::Remove).unwrap();
    let profile = |epsilon| mu::Level::of(&pair, epsilon, Direction::Both);
    let found = mu::covering(&profile, end, 0.3).unwrap();
    assert_eq!(found, Interval::exact(0.0));
}

#[test]
fn accuracy_at_prior_one_half_is_half_the_advantage_above_guessing() {
    let pair = Gaussian::new(1.0).unwrap();
    let found = accuracy(&pair, 0.5, Direction::Both).unwrap();
    assert!((found.value - normal_cdf(0.5)).abs() < 1e-14, "{found:?}");
    // A rare secret: guessing "no" is right 99 times of 100, and the attack helps little.
    let rare = accuracy(&pair, 0.01, Direction::Both).unwrap();
    assert!(rare.value > 0.99 && rare.value < 0.9903, "{rare:?}");
    assert_eq!(rare, accuracy(&pair, 0.99, Direction::Both).unwrap());
}
