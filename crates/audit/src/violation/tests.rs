//! The search on scores whose rates have many corners, and where little noise takes long.

use super::one_order::Search;
use super::*;
use crate::joint::JointScores;
use crate::{Family, Scores};
use numerics::special::inverse_normal_cdf;

/// The best slope is not where the first look saw it: by five thousandths less noise no slope of hundreds shows a
/// violation in the order that decides.
#[test]
fn hardly_less_noise_is_violated_at_no_slope() {
    for (n, mu) in [(300_u32, 1.0), (20_000, 2.0), (20_000, 0.5)] {
        let quantile = |i: u32| inverse_normal_cdf((f64::from(i) + 0.5) / f64::from(n));
        // Quantiles with a ripple, so that the hull has many vertices.
        let side =
            |shift: f64| (0..n).map(move |i| quantile(i) + shift * (1.0 + 0.01 * f64::from(i % 7)));
        let scores = Scores::new(crate::Design::Runs, side(mu).collect(), side(0.0).collect())
            .expect("scores");
        let region = JointScores::new(&scores, 0.05);
        let family = Family::LastIterate { sample_rate: 0.1, steps: 50 };
        let found = least_violated_noise(&family, &region).expect("a search").expect("a noise");
        let pair = family.pair(found.noise * (1.0 - 5e-3)).expect("a pair");
        let search =
            Search { family: &family, way: found.decides, region: &region, accuracy: ACCURACY };
        let (low, high) = Region::slopes(&region);
        for step in 0..=400 {
            let slope = low + (high - low) * f64::from(step) / 400.0;
            let excess = search.excess(pair.as_ref(), slope).expect("an excess");
            assert!(
                excess.is_none_or(|excess| excess <= 0.0),
                "{n} {mu}: slope {slope} {excess:?}"
            );
        }
    }
}

/// A family that notes the noises it is asked for.
struct Noted {
    family: Family,
    least: std::cell::Cell<f64>,
}

/// What more than the smallest loss of a family shows is violated by every member: the least noise of the domain, without a look at one.
#[test]
fn what_no_member_can_show_asks_none() {
    let family = Family::Composition { sample_rate: 0.1, steps: 2 };
    let noted = Noted { family, least: std::cell::Cell::new(f64::INFINITY) };
    // Ratios of 2 both ways, where 1 / 0.81 is the most.
    let leaking = [rates(0.3, 0.3)];
    let found = least_violated_noise(&noted, &leaking[..]).expect("a search").expect("a noise");
    assert!((found.noise / noted.domain().0 - 1.0).abs() < 1e-12, "{found:?}");
    assert_eq!(noted.least.get(), f64::INFINITY);
    let one = least_noise_of_one_point(&noted, &leaking, |_, _| Ok(false)).expect("a search");
    assert_eq!((one, noted.least.get()), (Some(noted.domain().0), f64::INFINITY));
    // In one order only: the other one is looked at, and an attack that shows less than it could is not refuted everywhere.
    let [one_way, little] = [[rates(0.001, 0.97)], [rates(0.47, 0.47)]];
    for points in [one_way, little] {
        let found = least_violated_noise(&noted, &points[..]).expect("a search");
        assert!(noted.least.replace(f64::INFINITY) < f64::INFINITY, "{points:?}");
        let floor = noted.domain().0;
        assert!(found.is_none_or(|found| found.noise > 1.01 * floor), "{points:?}");
    }
}

/// The smallest loss by brute force: a member of two steps with hardly any noise, cut into cells, whose best tests lie above the line that is
/// said to be violated by none of them, and come close to it.
#[test]
fn no_test_passes_the_smallest_loss() {
    let (rate, noise, cells) = (0.5_f64, 0.2_f64, 400);
    let family = Family::Composition { sample_rate: rate, steps: 2 };
    let end = ByNoise::smallest_loss(&family);
    let mut both = cells_of_two_steps(rate, noise, cells);
    both.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    // Tests that call the cells with the smallest ratios non-members: members missed, and non-members rejected.
    let (mut missed, mut rejected, mut closest) = (0.0_f64, 0.0_f64, f64::INFINITY);
    for (with, without) in both {
        (missed, rejected) = (missed + with, rejected + without);
        if rejected > 1e-3 {
            assert!(missed >= end.exp() * rejected * (1.0 - 1e-9), "{missed} {rejected}");
            closest = closest.min(missed / rejected);
        }
    }
    assert!((closest / end.exp() - 1.0).abs() < 1e-3, "{closest} {}", end.exp());
}

/// Two steps with and without a record, cut into cells: the probabilities of each. Tests on cells are tests, so they show at most what the steps do.
fn cells_of_two_steps(rate: f64, noise: f64, cells: u32) -> Vec<(f64, f64)> {
    let edge = |i: u32| -6.0 * noise + (1.0 + 12.0 * noise) * f64::from(i) / f64::from(cells);
    let normal = |x: f64, centre: f64| numerics::special::normal_cdf((x - centre) / noise);
    let mass = |i: u32, centre: f64| normal(edge(i + 1), centre) - normal(edge(i), centre);
    let one: Vec<(f64, f64)> = (0..cells)
        .map(|i| ((1.0 - rate) * mass(i, 0.0) + rate * mass(i, 1.0), mass(i, 0.0)))
        .collect();
    let pairs = one.iter().flat_map(|a| one.iter().map(move |b| (a.0 * b.0, a.1 * b.1)));
    pairs.filter(|(_, without)| *without > 0.0).collect()
}

/// What is said to be violated is violated by 1 - delta from cells, in both orders, and hardly less noise is not in the one that decides.
#[test]
fn violations_of_two_steps_by_brute_force() {
    let (rate, n) = (0.5, 4_000_u32);
    let family = Family::Composition { sample_rate: rate, steps: 2 };
    // Few distinct scores; quantiles; what no member can show in one order.
    for (coarse, mu, moved) in [(0.5, 0.5, 0.0), (1e-9, 0.7, 0.0), (1e-9, 0.5, 0.01)] {
        let side = |shift: f64| -> Vec<f64> {
            let score = |i: u32| {
                let share = (f64::from(i) + 0.5) / f64::from(n);
                let high = shift > 0.0 && share > 1.0 - moved;
                let score = inverse_normal_cdf(share) + shift + if high { 10.0 } else { 0.0 };
                (score / coarse).round() * coarse
            };
            (0..n).map(score).collect()
        };
        let scores = Scores::new(crate::Design::Runs, side(mu), side(0.0)).expect("scores");
        let region = JointScores::new(&scores, 0.05);
        let found = least_violated_noise(&family, &region).expect("a search").expect("a noise");
        let (low, high) = (-4.0, 4.0);
        let end = ByNoise::smallest_loss(&family);
        // The largest share by which a line of cells lies above the region.
        let above = |noise: f64, way: Order| {
            let cells = cells_of_two_steps(rate, noise, 200);
            let looks = (0..=600).map(|step| low + (high - low) * f64::from(step) / 600.0);
            let excess = looks.chain([end, -end]).map(|slope| {
                let growth = slope.exp();
                let least = |&(p, q): &(f64, f64)| match way {
                    Order::Remove => p.min(growth * q),
                    Order::Add => q.min(growth * p),
                };
                cells.iter().map(least).sum::<f64>() / region.support(slope).value - 1.0
            });
            excess.fold(f64::NEG_INFINITY, f64::max)
        };
        for way in [Order::Remove, Order::Add] {
            let above = above(found.noise * 1.01, way);
            assert!(above > 0.0, "{coarse} {mu} {moved}: {found:?} {way:?} {above}");
        }
        let less = above(found.noise * 0.98, found.decides);
        assert!(less < 1e-4, "{coarse} {mu} {moved}: {found:?} {less}");
    }
}

fn rates(fpr: f64, fnr: f64) -> RateBounds {
    RateBounds {
        false_positive_upper: fpr,
        true_negative_lower: 1.0 - fpr,
        false_negative_upper: fnr,
        true_positive_lower: 1.0 - fnr,
    }
}

/// The noise of one point for both orders, beside a walk in small steps over the definition.
#[test]
fn the_noise_of_one_point_is_that_of_a_walk() {
    let gaussian = |mu: f64, fpr: f64| {
        rates(fpr, numerics::special::normal_cdf(-inverse_normal_cdf(fpr) - mu))
    };
    // Points of two Gaussian curves, so that the best point is not among its neighbours.
    let near = (1..10).map(|step| gaussian(1.1, f64::from(step) / 10.0));
    let points: Vec<RateBounds> = near.chain([gaussian(1.3, 1e-3), gaussian(1.2, 0.95)]).collect();
    for (sample_rate, steps) in [(0.5, 4), (0.2, 10)] {
        let family = Family::Composition { sample_rate, steps };
        let found = least_noise_of_one_point(&family, &points, |_, _| Ok(false));
        let found = found.expect("a search").expect("a noise");
        let below = |noise: f64| {
            let pair = family.pair(noise).expect("a pair");
            let under = |point: &RateBounds, way| {
                let curve = pair.fnr(point.false_positive_upper, way).expect("a rate");
                point.false_negative_upper < curve.lower
            };
            points.iter().any(|point| under(point, Order::Remove) && under(point, Order::Add))
        };
        assert!(below(found * 1.0001), "{found}");
        for step in 1..4 {
            let noise = found * (1.0 - 5e-4 * f64::from(step));
            assert!(!below(noise), "{found}: {noise} is violated");
        }
        // What is enough ends the search, on the violated side.
        let rough = |open: Option<f64>, shown: f64| Ok(open.is_some_and(|open| open > 0.9 * shown));
        let roughly = least_noise_of_one_point(&family, &points, rough);
        let roughly = roughly.expect("a search").expect("a noise");
        assert!(roughly >= found * (1.0 - 1e-5) && roughly < 1.2 * found, "{roughly} {found}");
    }
}

impl ByNoise for Noted {
    fn member(&self, noise: f64) -> Result<Box<dyn Pair>, AuditError> {
        self.least.set(self.least.get().min(noise));
        self.family.pair(noise)
    }

    fn domain(&self) -> (f64, f64) {
        self.family.noise_domain()
    }

    fn start(&self, mu: f64) -> f64 {
        self.family.start(mu)
    }

    fn smallest_loss(&self) -> f64 {
        self.family.smallest_loss()
    }
}

/// Little noise takes longest to account for, so the search comes down to the root and does not jump below it.
#[test]
fn noises_far_below_the_root_are_not_visited() {
    let n = 100_000_u32;
    // Laplace scores: a curve of another form than the family's, so that the best slope moves.
    let quantile = |i: u32| {
        let rate = (f64::from(i) + 0.5) / f64::from(n);
        if rate < 0.5 { (2.0 * rate).ln() } else { -(2.0 - 2.0 * rate).ln() }
    };
    for (shift, sample_rate, steps) in [(6.0, 0.5, 10), (3.0, 0.1, 50)] {
        let side = |shift: f64| (0..n).map(|i| quantile(i) + shift).collect();
        let scores = Scores::new(crate::Design::Runs, side(shift), side(0.0)).expect("scores");
        let region = JointScores::new(&scores, 0.05);
        let family = Family::Composition { sample_rate, steps };
        let noted = Noted { family, least: std::cell::Cell::new(f64::INFINITY) };
        let found = least_violated_noise(&noted, &region).expect("a search").expect("a noise");
        let share = noted.least.get() / found.noise;
        assert!(share > 0.98, "{shift} {sample_rate} {steps}: {share} of {}", found.noise);
    }
}
