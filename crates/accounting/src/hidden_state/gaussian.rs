//! The Gaussian pairs of Bok, Su, Altschuler 2024; formulas and directions in the parent module.

use super::{Loss, always_in, reach};
use crate::AccountingError;
use crate::pairs::Gaussian;
use numerics::elementary::{exp, exp_m1, ln, powf};
use numerics::special::normal_cdf;
use vocabulary::{NotCovered, Phase, Problem, Run};

/// Whether one of the forms applies.
pub(crate) fn supports(run: &Run, phase: &Phase, loss: &Loss) -> Result<(), AccountingError> {
    let contraction = loss.contraction();
    let missing = |key: &'static str, why: &'static str| NotCovered::Missing { key, why };
    let reason = if contraction > 1.0 + 1e-12 {
        let (rate, most) =
            (loss.learning_rate, format!("2/smoothness = {}", 2.0 / loss.smoothness));
        let why = format!(
            "learning rate {rate} is above {most}: a step may spread what it should draw together"
        );
        NotCovered::Value(Problem::from(why).about(
            "learning rate",
            rate,
            &format!("at most {most}"),
        ))
    } else if !always_in(phase) && contraction >= 1.0 {
        missing(
            "strong_convexity",
            "for Poisson batches only the strongly convex form is known; give --strong-convexity",
        )
    } else if always_in(phase) && loss.diameter.is_some() && run.dataset_size().is_none() {
        missing(
            "dataset_size",
            "the bound for a bounded set needs the size of the data set, by which the update is \
             divided; give --dataset-size",
        )
    } else if always_in(phase) && loss.diameter.is_none() && contraction >= 1.0 {
        missing(
            "strong_convexity",
            "a loss that is merely convex, without a bounded set, is not known to hide anything; give \
             --strong-convexity or --diameter",
        )
    } else {
        return Ok(());
    };
    Err(reason.into())
}

/// The smallest mu of the forms that apply.
pub(crate) fn pair(run: &Run, phase: &Phase, loss: &Loss) -> Result<Gaussian, AccountingError> {
    supports(run, phase, loss)?;
    let unit = reach(run) / phase.noise_multiplier;
    let contraction = loss.contraction();
    if !always_in(phase) {
        return Gaussian::computed(sampled(unit, contraction, phase), 1e-11);
    }
    let mut best = unit * (phase.steps as f64).sqrt();
    if contraction < 1.0 {
        best = best.min(strongly_convex(unit, contraction, phase.steps));
    }
    if let (Some(diameter), Some(size)) = (loss.diameter, run.dataset_size()) {
        best = best.min(bounded_set(unit, diameter, size as f64, loss, run));
    }
    Gaussian::computed(best, 1e-11)
}

/// mu of full-batch descent on a strongly convex loss.
fn strongly_convex(unit: f64, c: f64, steps: u64) -> f64 {
    let power = powf(c, steps as f64);
    // 1 - c^T without cancellation when c is close to 1.
    let gone = if c > 0.0 { -exp_m1(steps as f64 * ln(c)) } else { 1.0 };
    unit * (gone / (1.0 + power) * (1.0 + c) / (1.0 - c)).sqrt()
}

/// mu of full-batch descent with projection to a bounded set.
fn bounded_set(unit: f64, diameter: f64, size: f64, loss: &Loss, run: &Run) -> f64 {
    let strides = diameter * size / (loss.learning_rate * reach(run) * run.clip_norm());
    unit * (3.0 * strides + strides.ceil()).sqrt()
}

/// The central-limit form for sampled batches, smallest over when to begin.
fn sampled(unit: f64, c: f64, phase: &Phase) -> f64 {
    let (w, q, steps) = (2.0 * unit, phase.sample_rate, phase.steps as f64);
    let step = exp(w * w) * normal_cdf(1.5 * w) + 3.0 * normal_cdf(-0.5 * w) - 2.0;
    let at = |nu: f64| {
        let start = w * (powf(c, nu + 1.0) - powf(c, steps)).max(0.0) / (1.0 - c);
        (2.0 * q * q * (nu + 1.0) * step + 2.0 * start * start).sqrt()
    };
    // The first term grows with nu and the second falls; a fine logarithmic scan is enough for an
    // estimate.
    (0..=600)
        .map(|i| at((powf(steps, f64::from(i) / 600.0) - 1.0).round()))
        .fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Order, Pair};
    use vocabulary::Sampling;

    fn full(sigma: f64, steps: u64) -> Run {
        Run::builder()
            .phase(sigma, 1.0, steps)
            .sampling(Sampling::Full)
            .dataset_size(1000)
            .build()
            .unwrap()
    }

    fn loss(strong: f64, diameter: Option<f64>) -> Loss {
        Loss { learning_rate: 0.1, smoothness: 5.0, strong_convexity: strong, diameter }
    }

    fn mu(run: &Run, loss: &Loss) -> f64 {
        pair(run, &run.phases()[0], loss).unwrap().mu()
    }

    /// One step is the Gaussian mechanism; many steps converge; never above composition.
    #[test]
    fn between_one_step_and_composition() {
        let loss = loss(1.0, None);
        assert!((mu(&full(2.0, 1), &loss) - 0.5).abs() < 1e-12);
        let mut before = 0.0;
        for steps in [1, 10, 100, 1000, 1_000_000] {
            let here = mu(&full(2.0, steps), &loss);
            assert!(here >= before && here <= 0.5 * (steps as f64).sqrt() * (1.0 + 1e-12));
            before = here;
        }
        // c = .9: the limit is (1/2) sqrt(1.9/.1).
        assert!((before - 0.5 * 19f64.sqrt()).abs() < 1e-9, "{before}");
    }

    /// Exact for a quadratic: theta <- c theta + shift + noise is Gaussian, and its last iterate
    /// has mean shift sum c^i and variance sum c^{2i}.
    #[test]
    fn a_quadratic_attains_it() {
        let (c, steps) = (0.9_f64, 37);
        let shift: f64 = (0..steps).map(|i| c.powi(i)).sum();
        let spread: f64 = (0..steps).map(|i| c.powi(2 * i)).sum();
        let want = shift / (2.0 * spread.sqrt());
        let loss = Loss { smoothness: 1.0, ..loss(1.0, None) };
        let got = mu(&full(2.0, steps as u64), &loss);
        assert!((got / want - 1.0).abs() < 1e-12, "{got} {want}");
    }

    /// Composition until the set is crossed, then constant: x = D n/(eta L) = 100.
    #[test]
    fn a_bounded_set_stops_the_growth() {
        let loss = loss(0.0, Some(0.01));
        // mu^2 = (1/4)(300 + 100).
        assert!((mu(&full(2.0, 1_000_000), &loss) - 10.0).abs() < 1e-9);
        assert!((mu(&full(2.0, 25), &loss) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn what_is_missing_is_asked_for() {
        let run = full(2.0, 10);
        let merely = pair(&run, &run.phases()[0], &loss(0.0, None)).unwrap_err().to_string();
        assert!(merely.contains("--strong-convexity"), "{merely}");
        let wild = Loss { learning_rate: 1.0, ..loss(1.0, None) };
        assert!(
            pair(&run, &run.phases()[0], &wild).unwrap_err().to_string().contains("2/smoothness")
        );
    }

    /// Sampled batches: an estimate below composition's for long runs, and a pair like any other.
    #[test]
    fn sampled_batches_converge() {
        let run = |steps| Run::builder().phase(3.0, 0.01, steps).build().unwrap();
        let loss = loss(1.0, None);
        let (short, long) = (mu(&run(1000), &loss), mu(&run(1_000_000), &loss));
        assert!((short / long - 1.0).abs() < 1e-3, "{short} {long}");
        let whole = Gaussian::central_limit(&run(1_000_000)).unwrap().mu();
        assert!(long < whole);
        let pair = pair(&run(1000), &run(1000).phases()[0], &loss).unwrap();
        assert!(pair.epsilon(1e-5, Order::Remove).unwrap().upper.is_finite());
    }
}
