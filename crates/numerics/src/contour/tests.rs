//! Closed forms, the two contours against each other, and what is known of the hard region.

use super::{Ends, Part, SumOfLogRatios, Zone};
use crate::mixture::{Component, MixtureRatio};
use crate::special::{log_normal_cdf, normal_cdf, normal_sf};

fn subsampled(scale: f64, rate: f64, times: f64) -> SumOfLogRatios {
    SumOfLogRatios::new(vec![Part { pair: MixtureRatio::subsampled(scale, rate), times }])
}

fn holds(ends: &Ends, truth: f64, slack: f64) -> bool {
    ends.lower <= truth * (1.0 + slack) && truth * (1.0 - slack) <= ends.upper
}

/// delta of a single step in closed form, and one minus the error of evaluating it.
fn single(scale: f64, rate: f64, t: f64) -> (f64, f64) {
    let x = MixtureRatio::subsampled(scale, rate).inverse(t);
    let p = (1.0 - rate) * normal_sf(x / scale) + rate * normal_sf((x - 1.0) / scale);
    let q = normal_sf(x / scale);
    let delta = p - t.exp() * q;
    (delta, 1e-14 * (p + t.exp() * q) / delta)
}

#[test]
fn a_gaussian_shift_has_its_closed_form_in_every_zone() {
    for (scale, times) in [(1.0, 4.0), (20.0, 1e6), (0.7, 2.0), (100.0, 1e9)] {
        let mu = f64::sqrt(times) / scale;
        let pair =
            MixtureRatio::new(scale, vec![Component { weight: 1.0, centre: 1.0 }], Vec::new());
        let sum = SumOfLogRatios::new(vec![Part { pair, times }]);
        for t in [-0.7 * mu, 0.2 * mu, 3.0 * mu + 0.5 * mu * mu] {
            let second = (t + log_normal_cdf(-t / mu - 0.5 * mu)).exp();
            let above = normal_cdf(-t / mu + 0.5 * mu) - second;
            let got = sum.average(Zone::Above, 1.0, t).unwrap();
            assert!(holds(&got, above, 1e-11), "{scale} {times} {t}: {got:?} {above}");
            // 1e9 steps carry 1e9 round-offs: still eight digits.
            assert!(got.upper - got.lower <= 2e-8 * got.value, "{got:?}");
            let between = sum.average(Zone::Between, 1.0, t).unwrap();
            let rest = normal_cdf(t / mu - 0.5 * mu) + second;
            assert!(holds(&between, rest, 1e-11), "{scale} {times} {t}: {between:?} {rest:e}");
        }
    }
}

#[test]
fn masks_reproduce_a_single_step() {
    for (scale, rate) in [(1.0, 0.01), (0.3, 1e-3), (0.5, 0.3), (5.0, 1e-5), (2.0, 1e-7)] {
        let sum = subsampled(scale, rate, 1.0);
        for depth in [2.0, 4.0, 7.0, 12.0] {
            // A threshold that a jump of `depth` standard deviations reaches.
            let t = MixtureRatio::subsampled(scale, rate).log_ratio(depth * scale);
            if t <= 0.0 {
                continue;
            }
            let (truth, slack) = single(scale, rate, t);
            let got = sum.average(Zone::Above, 1.0, t).unwrap();
            assert!(holds(&got, truth, slack), "{scale} {rate} {t}: {got:?} {truth:e}");
            assert!(got.upper - got.lower <= 1e-6 * got.value, "{scale} {rate} {t}: {got:?}");
        }
    }
}

#[test]
fn masked_and_plain_contours_agree() {
    for (scale, rate, times, t) in [
        (1.0, 0.01, 1000.0, 1.8),
        (0.8, 0.004, 5000.0, 2.5),
        (0.5, 0.01, 1000.0, 13.0),
        (2.0, 0.1, 1000.0, 8.0),
        (0.6, 0.05, 200.0, 15.0),
    ] {
        let sum = subsampled(scale, rate, times);
        let plain = sum.plain_average(Zone::Above, 1.0, t).unwrap();
        let masked = sum.masked_average(Zone::Above, 1.0, t).unwrap();
        assert!(
            plain.lower <= masked.upper && masked.lower <= plain.upper,
            "{scale} {rate} {times} {t}: {plain:?} {masked:?}"
        );
        assert!(masked.upper - masked.lower <= 1e-6 * masked.value, "{masked:?}");
    }
}

#[test]
fn one_large_jump() {
    // The jump must reach x = 11.58, far beyond what a tilt can see. 40-digit arithmetic (mpmath):
    // T single steps give 1.565963165174e-29; averaged over the sum of the other 999 steps, by
    // the moments of their truncated losses up to order eight, 1.566072187556975e-29.
    let got = subsampled(1.0, 1e-5, 1000.0).average(Zone::Above, 1.0, 0.5).unwrap();
    assert!(holds(&got, 1.566072187556975e-29, 1e-14), "{got:?}");
    assert!(got.upper - got.lower < 1e-9 * got.value, "{got:?}");
}

#[test]
fn thresholds_invert_averages() {
    for (scale, rate, times, target) in [
        (1.0, 0.01, 1000.0, 1e-5),
        (1.0, 0.01, 10.0, 1e-5),
        (1.0, 1e-5, 1e6, 1e-5),
        (0.3, 0.1, 100.0, 1e-8),
        (40.0, 1e-3, 1e9, 1e-60),
        (0.25, 1e-4, 20.0, 1e-6),
    ] {
        let sum = subsampled(scale, rate, times);
        let t = sum.threshold(Zone::Above, 1.0, target).unwrap();
        assert!(
            t.lower <= t.value && t.value <= t.upper && t.upper - t.lower <= 1e-8 * t.value,
            "{t:?}"
        );
        let at_upper = subsampled(scale, rate, times).average(Zone::Above, 1.0, t.upper).unwrap();
        let at_lower = subsampled(scale, rate, times).average(Zone::Above, 1.0, t.lower).unwrap();
        assert!(at_upper.lower <= target, "{scale} {rate} {times}: {at_upper:?}");
        assert!(at_lower.upper >= target, "{scale} {rate} {times}: {at_lower:?}");
    }
}

#[test]
fn parts_may_be_split_and_permuted() {
    let pair = |scale, rate| MixtureRatio::subsampled(scale, rate);
    let one = subsampled(0.9, 0.02, 700.0).average(Zone::Above, 1.0, 2.0).unwrap();
    let split = SumOfLogRatios::new(vec![
        Part { pair: pair(0.9, 0.02), times: 300.0 },
        Part { pair: pair(0.9, 0.02), times: 400.0 },
    ]);
    let two = split.average(Zone::Above, 1.0, 2.0).unwrap();
    assert!(one.lower <= two.upper && two.lower <= one.upper, "{one:?} {two:?}");
    let mixed = |order: bool| {
        let mut parts = vec![
            Part { pair: pair(0.7, 0.01), times: 500.0 },
            Part { pair: pair(1.4, 0.05), times: 900.0 },
        ];
        if order {
            parts.reverse();
        }
        SumOfLogRatios::new(parts).average(Zone::Above, 1.0, 5.0).unwrap()
    };
    let (a, b) = (mixed(false), mixed(true));
    assert!((a.value / b.value - 1.0).abs() < 1e-11, "{a:?} {b:?}");
}

#[test]
fn the_three_zones_add_up() {
    // (e^y - 1)_+ - (1 - e^y)_+ = e^y - 1 and min(e^y, 1) = 1 - (1 - e^y)_+.
    for (scale, rate, times, t) in
        [(1.0, 0.01, 1000.0, 0.1), (0.6, 0.02, 3000.0, -0.4), (3.0, 0.2, 50.0, 0.02)]
    {
        let sum = subsampled(scale, rate, times);
        let above = sum.average(Zone::Above, 1.0, t).unwrap().value * f64::exp(-t);
        let below = sum.average(Zone::Below, 0.0, t).unwrap().value;
        let between = sum.average(Zone::Between, 0.0, t).unwrap().value;
        assert!((above - below - (-t).exp_m1()).abs() < 1e-10, "{above} {below}");
        assert!((between + below - 1.0).abs() < 1e-10, "{between} {below}");
    }
}

#[test]
fn masks_where_losses_have_no_bottom() {
    // A substitution pair: losses of either sign, and most steps count as high.
    let (scale, rate) = (8.69159702641278, 8.487188090605015e-7);
    let side = |centre: f64| vec![Component { weight: rate, centre }];
    let pair = MixtureRatio::new(scale, side(1.0), side(-1.0));
    let sum = SumOfLogRatios::new(vec![Part { pair, times: 138.0 }]);
    let t = 4.644564281647568e-7;
    let plain = sum.plain_average(Zone::Above, 1.0, t).unwrap();
    let masked = sum.masked_average(Zone::Above, 1.0, t).unwrap();
    assert!(plain.lower <= masked.upper && masked.lower <= plain.upper, "{plain:?} {masked:?}");
}
/// A line kept from one threshold answers another only where it is as good as a line of its own.
#[test]
fn kept_lines_agree_with_fresh_ones() {
    for (scale, rate, times) in [(0.3, 1e-4, 100.0), (1.0, 1e-3, 40.0), (2.0, 1e-2, 5.0)] {
        let sum = subsampled(scale, rate, times);
        let start = sum.threshold(Zone::Above, 1.0, 1e-6).unwrap().value;
        let mut last = f64::INFINITY;
        for factor in [0.0, 0.01, 0.03, 0.06, 0.1, 0.2, 0.5, 0.8, 1.0, 1.5, 3.0] {
            let t = factor * start;
            let kept = sum.average(Zone::Above, 1.0, t).unwrap();
            let fresh = subsampled(scale, rate, times).average(Zone::Above, 1.0, t).unwrap();
            assert!(kept.meet(fresh).is_ok(), "{scale} {rate} {times} {t}: {kept:?} {fresh:?}");
            assert!(kept.lower <= last, "delta rises: {scale} {rate} {times} {t}");
            last = kept.upper;
        }
    }
}
