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
