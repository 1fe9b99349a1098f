//! Laws of the closed-form pairs over their whole domain, and an independent route: quadrature
//! of the hockey-stick integral in its plain form.

use accounting::pairs::{BinomialGaussian, Gaussian, LastIterateMax};
use accounting::{Order, Pair};
use proptest::prelude::*;
use vocabulary::{Interval, Run};

fn run(sigma: f64, q: f64, steps: u64) -> Run {
    Run::builder().phase(sigma, q, steps).build().unwrap()
}

fn pair(sigma: f64, q: f64, steps: u64) -> BinomialGaussian {
    BinomialGaussian::for_run(&run(sigma, q, steps)).unwrap()
}

fn log_uniform(low: f64, high: f64) -> impl Strategy<Value = f64> {
    (low.ln()..high.ln()).prop_map(f64::exp)
}

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Remove), Just(Order::Add)]
}

fn ordered(interval: &Interval) -> bool {
    interval.lower <= interval.value && interval.value <= interval.upper
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// The whole domain: an answer, ends in order, width within the bar wherever epsilon is not
    /// itself close to 0 by cancellation, and monotone in delta and in the noise.
    #[test]
    fn last_iterate_epsilon_over_the_domain(
        sigma in log_uniform(0.2, 100.0), q in log_uniform(1e-7, 1.0), steps in log_uniform(1.0, 1e7),
        delta in log_uniform(1e-100, 0.5), order in orders(),
    ) {
        let steps = steps as u64;
        let epsilon = pair(sigma, q, steps).epsilon(delta, order).unwrap();
        prop_assert!(ordered(&epsilon), "{epsilon:?}");
        prop_assert!(epsilon.lower >= 0.0 && epsilon.upper.is_finite());
        let stricter = pair(sigma, q, steps).epsilon(delta * 0.5, order).unwrap();
        prop_assert!(stricter.upper >= epsilon.lower, "{stricter:?} below {epsilon:?}");
        let quieter = pair(sigma * 1.1, q, steps).epsilon(delta, order).unwrap();
        prop_assert!(quieter.lower <= epsilon.upper, "{quieter:?} above {epsilon:?}");
        // Relative width is within the bar unless delta is within 1e-6 of delta(0).
        if stricter.value > 0.0 && epsilon.value > 1e-6 * stricter.value {
            prop_assert!(epsilon.relative_width() < 1e-6, "{epsilon:?}: {:e}", epsilon.relative_width());
        }
    }

    /// delta(epsilon(delta)) comes back, within both widths; and 1 - delta is its complement.
    #[test]
    fn last_iterate_round_trip(
        sigma in log_uniform(0.2, 100.0), q in log_uniform(1e-7, 1.0), steps in log_uniform(1.0, 1e6),
        delta in log_uniform(1e-100, 0.5), order in orders(),
    ) {
        let pair = pair(sigma, q, steps as u64);
        let epsilon = pair.epsilon(delta, order).unwrap();
        if epsilon.lower > 0.0 {
            let below = pair.delta(epsilon.upper, order).unwrap();
            let above = pair.delta(epsilon.lower, order).unwrap();
            prop_assert!(ordered(&below) && ordered(&above));
            prop_assert!(below.lower <= delta && delta <= above.upper, "{below:?} {delta:e} {above:?}");
        }
        let (at, rest) = (pair.delta(epsilon.value, order).unwrap(), pair.one_minus_delta(epsilon.value, order).unwrap());
        prop_assert!(ordered(&rest));
        prop_assert!((at.lower + rest.lower) <= 1.0 + 1e-14 && at.upper + rest.upper >= 1.0 - 1e-14, "{at:?} {rest:?}");
        prop_assert!((at.value + rest.value - 1.0).abs() < 1e-9, "{at:?} {rest:?}");
    }

    /// Negative epsilon is the other order's business: 1 - e^eps + e^eps delta'(-eps), and the
    /// profile is decreasing and convex through 0.
    #[test]
    fn last_iterate_profile_is_convex_in_e_epsilon(
        sigma in log_uniform(0.3, 10.0), q in log_uniform(1e-4, 1.0), steps in log_uniform(1.0, 1e4), order in orders(),
    ) {
        let pair = pair(sigma, q, steps as u64);
        let at = |ratio: f64| pair.delta(ratio.ln(), order).unwrap();
        let (a, b, c) = (at(0.5), at(1.0), at(1.5));
        prop_assert!(a.upper >= b.lower && b.upper >= c.lower);
        prop_assert!(2.0 * b.lower <= a.upper + c.upper + 1e-12, "{a:?} {b:?} {c:?}");
    }

    /// The trade-off curve: power above size, complement, and the tangent line of every profile
    /// point: tpr <= delta + e^eps fpr.
    #[test]
    fn last_iterate_power(
        sigma in log_uniform(0.3, 30.0), q in log_uniform(1e-5, 1.0), steps in log_uniform(1.0, 1e5),
        fpr in log_uniform(1e-12, 0.999), epsilon in 0.0..8.0f64, order in orders(),
    ) {
        let pair = pair(sigma, q, steps as u64);
        let (tpr, fnr) = (pair.tpr(fpr, order).unwrap(), pair.fnr(fpr, order).unwrap());
        prop_assert!(ordered(&tpr) && ordered(&fnr));
        prop_assert!(tpr.upper >= fpr, "{tpr:?} {fpr}");
        prop_assert!((tpr.value + fnr.value - 1.0).abs() < 1e-11, "{tpr:?} {fnr:?}");
        let delta = pair.delta(epsilon, order).unwrap();
        prop_assert!(tpr.lower <= delta.upper + epsilon.exp() * fpr * (1.0 + 1e-14), "{tpr:?} {delta:?}");
    }

    /// Full sampling is the Gaussian mechanism with mu = k sqrt(T)/sigma, whatever the order.
    #[test]
    fn full_sampling_is_gaussian(
        sigma in log_uniform(0.2, 100.0), steps in log_uniform(1.0, 1e9), delta in log_uniform(1e-100, 0.5),
        group in 1u32..5, order in orders(),
    ) {
        let steps = steps as u64;
        let run = Run::builder().phase(sigma, 1.0, steps).group_size(group).build().unwrap();
        let got = BinomialGaussian::for_run(&run).unwrap().epsilon(delta, order).unwrap();
        let mu = f64::from(group) * (steps as f64).sqrt() / sigma;
        let want = Gaussian::new(mu).unwrap().epsilon(delta, order).unwrap();
        prop_assert!((got.value - want.value).abs() <= 1e-11 * want.value, "{got:?} {want:?}");
        prop_assert!(got.lower <= want.upper && want.lower <= got.upper);
    }

    /// The Gaussian pair over mu 1e-6..1e6 and delta down to 1e-300.
    #[test]
    fn gaussian_round_trip(mu in log_uniform(1e-6, 1e6), delta in log_uniform(1e-300, 0.999), order in orders()) {
        let pair = Gaussian::new(mu).unwrap();
        let epsilon = pair.epsilon(delta, order).unwrap();
        prop_assert!(ordered(&epsilon), "{epsilon:?}");
        let nothing = pair.delta(0.0, order).unwrap();
        prop_assert!((epsilon.lower > 0.0) <= (delta < nothing.upper), "{epsilon:?} {nothing:?}");
        if epsilon.lower > 0.0 && delta > 1e-290 {
            let (below, above) = (pair.delta(epsilon.upper, order).unwrap(), pair.delta(epsilon.lower, order).unwrap());
            prop_assert!(below.lower <= delta && delta <= above.upper, "{below:?} {delta:e} {above:?}");
            if delta < 0.999 * nothing.value {
                prop_assert!(epsilon.relative_width() < 1e-9, "{epsilon:?}");
            }
        }
    }

    /// The maximum over t is attained (or bounded) by the t's themselves, checked one by one.
    #[test]
    fn maximum_over_steps_is_the_maximum(
        sigma in log_uniform(0.3, 5.0), q in log_uniform(1e-3, 0.9), steps in 1u64..120,
        delta in log_uniform(1e-12, 0.1), order in orders(),
    ) {
        let most = LastIterateMax::for_run(&run(sigma, q, steps)).unwrap();
        let found = most.epsilon(delta, order).unwrap();
        let each: Vec<Interval> = (1..=steps).map(|t| pair(sigma, q, t).epsilon(delta, order).unwrap()).collect();
        let lower = each.iter().map(|x| x.lower).fold(0.0, f64::max);
        let upper = each.iter().map(|x| x.upper).fold(0.0, f64::max);
        let value = each.iter().map(|x| x.value).fold(0.0, f64::max);
        prop_assert!(found.upper >= lower && found.lower <= upper, "{found:?} {lower} {upper}");
        prop_assert!((found.value - value).abs() <= 1e-9 * value + 1e-300, "{found:?} {value}");
        prop_assert!(found.upper <= upper * (1.0 + 2e-8) + 1e-300, "{found:?} {upper}");
    }
}

/// One phase split in two of the same rate is the same run; two rates are a law of their own.
#[test]
fn phases_add_up() {
    let one = pair(1.0, 0.02, 1000).epsilon(1e-6, Order::Remove).unwrap();
    let split = Run::builder().phase(1.0, 0.02, 300).phase(1.0, 0.02, 700).build().unwrap();
    let split = BinomialGaussian::for_run(&split).unwrap().epsilon(1e-6, Order::Remove).unwrap();
    assert!((one.value - split.value).abs() < 1e-13 * one.value);
    // A table of two nearly equal rates is close to the single law, and certified narrowly.
    let near = Run::builder().phase(1.0, 0.02, 300).phase(1.0, 0.02 + 1e-12, 700).build().unwrap();
    let near = BinomialGaussian::for_run(&near).unwrap();
    for order in [Order::Remove, Order::Add] {
        let want = pair(1.0, 0.02, 1000).epsilon(1e-6, order).unwrap();
        let got = near.epsilon(1e-6, order).unwrap();
        assert!((got.value / want.value - 1.0).abs() < 1e-9, "{got:?} {want:?}");
        assert!(got.relative_width() < 1e-10, "{got:?}");
    }
}

/// Certain uses (full batches in one phase) shift the count: against quadrature.
#[test]
fn certain_and_sampled_phases_together() {
    let run = Run::builder().phase(2.0, 1.0, 3).phase(1.5, 0.3, 4).build().unwrap();
    let pair = BinomialGaussian::for_run(&run).unwrap();
    let variance = 3.0 * 4.0 + 4.0 * 2.25;
    let b: Vec<(f64, f64)> = binomial(4, 0.3).into_iter().map(|(k, w)| (k + 3.0, w)).collect();
    for order in [Order::Remove, Order::Add] {
        let want = quadrature(&b, variance, 0.7, order);
        let got = pair.delta(0.7, order).unwrap();
        assert!((got.value / want - 1.0).abs() < 1e-12, "{order:?}: {got:?} {want}");
    }
}

fn binomial(n: u32, q: f64) -> Vec<(f64, f64)> {
    let mut weights = vec![1.0];
    for _ in 0..n {
        let mut next = vec![0.0; weights.len() + 1];
        for (k, w) in weights.iter().enumerate() {
            next[k] += w * (1.0 - q);
            next[k + 1] += w * q;
        }
        weights = next;
    }
    weights.into_iter().enumerate().map(|(k, w)| (k as f64, w)).collect()
}

/// The integral of (p - e^eps q)_+ over x by composite Gauss-Legendre (5 points on 4,000 cells)
/// from the plain densities: no Mills ratio, no tilting, no logarithm. The excess changes sign
/// once; the bisection for that point is the only thing shared with the method under test.
fn quadrature(law: &[(f64, f64)], variance: f64, epsilon: f64, order: Order) -> f64 {
    let nodes = [
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    let s = variance.sqrt();
    let largest = law.iter().map(|x| x.0).fold(0.0, f64::max);
    let density =
        |x: f64| (-0.5 * x * x / variance).exp() / (s * (2.0 * std::f64::consts::PI).sqrt());
    let excess = |x: f64| {
        let p: f64 = law.iter().map(|(k, w)| w * density(x - k)).sum();
        match order {
            Order::Remove => p - epsilon.exp() * density(x),
            Order::Add => density(x) - epsilon.exp() * p,
        }
    };
    let (mut low, mut high) = (-12.0 * s, largest + 12.0 * s);
    let ends = (low, high);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if (excess(middle) > 0.0) == (order == Order::Remove) {
            high = middle;
        } else {
            low = middle;
        }
    }
    let (from, to) = if order == Order::Remove { (high, ends.1) } else { (ends.0, low) };
    let cells = 4_000;
    let width = (to - from) / f64::from(cells);
    let mut sum = 0.0;
    for i in 0..cells {
        let middle = from + width * (f64::from(i) + 0.5);
        for (node, weight) in nodes {
            sum += 0.5 * width * weight * excess(middle + 0.5 * width * node);
        }
    }
    sum
}

#[test]
fn quadrature_agrees() {
    for (sigma, q, steps, epsilon) in [
        (1.0, 0.1, 3u32, 0.5),
        (0.5, 0.3, 10, 2.0),
        (0.3, 0.01, 1, 1.0),
        (2.0, 0.5, 40, 0.0),
        (0.7, 0.05, 60, 1.5),
    ] {
        let law = binomial(steps, q);
        let variance = f64::from(steps) * sigma * sigma;
        let pair = pair(sigma, q, u64::from(steps));
        for order in [Order::Remove, Order::Add] {
            let want = quadrature(&law, variance, epsilon, order);
            let got = pair.delta(epsilon, order).unwrap();
            // Rounding of the weights (n products) and of 20,000 added terms.
            assert!(
                (got.value - want).abs() < 1e-13 * epsilon.exp(),
                "{sigma} {q} {steps} {order:?}: {got:?} {want:e}"
            );
        }
    }
}

/// Extreme corners of the domain, and questions at the edge: an answer or a sentence, no NaN.
#[test]
fn corners_answer_without_nan() {
    for sigma in [0.2, 100.0] {
        for q in [1e-7, 0.5, 1.0 - 1e-9] {
            for steps in [1, 10, 1_000_000] {
                let pair = pair(sigma, q, steps);
                for order in [Order::Remove, Order::Add] {
                    for delta in [0.0, 1e-300, 1e-100, 0.5, 0.9, 1.0] {
                        let got = pair.epsilon(delta, order).unwrap();
                        assert!(
                            ordered(&got) && got.lower >= 0.0,
                            "{sigma} {q} {steps} {delta} {order:?}: {got:?}"
                        );
                    }
                    for epsilon in
                        [f64::NEG_INFINITY, -3.0, 0.0, 1e-12, 1.0, 1e3, 1e9, f64::INFINITY]
                    {
                        let (at, rest) = (
                            pair.delta(epsilon, order).unwrap(),
                            pair.one_minus_delta(epsilon, order).unwrap(),
                        );
                        assert!(
                            ordered(&at) && ordered(&rest),
                            "{sigma} {q} {steps} {epsilon} {order:?}: {at:?} {rest:?}"
                        );
                        assert!(
                            at.lower >= 0.0
                                && at.upper <= 1.0
                                && rest.lower >= 0.0
                                && rest.upper <= 1.0
                        );
                    }
                    for fpr in [0.0, 1e-300, 1e-9, 0.5, 1.0 - 1e-12, 1.0] {
                        let (tpr, fnr) =
                            (pair.tpr(fpr, order).unwrap(), pair.fnr(fpr, order).unwrap());
                        assert!(
                            ordered(&tpr) && ordered(&fnr),
                            "{sigma} {q} {steps} {fpr} {order:?}: {tpr:?} {fnr:?}"
                        );
                    }
                }
            }
        }
    }
    let pair = pair(1.0, 0.1, 10);
    assert!(pair.epsilon(f64::NAN, Order::Add).is_err());
    assert!(pair.delta(f64::NAN, Order::Add).is_err());
    assert!(pair.tpr(-0.1, Order::Remove).is_err());
}
