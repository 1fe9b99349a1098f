//! `last-iterate`: the heuristic of Steinke et al. 2025 (Theorem 1). If the loss were linear,
//! only the sum of the noisy updates would matter, and the last iterate would leak like
//! Bin(T, q) + N(0, T sigma^2) against N(0, T sigma^2). Training is not linear, and there are
//! losses for which the last iterate leaks more: heuristic. It is not monotone in T, so
//! `last-iterate-max` takes the largest profile over all t <= T; its attack terms are those of
//! that largest profile, which is at least the largest of the attack terms.

use super::{Lens, PLAIN, View, batches};
use crate::AccountingError;
use crate::pairs::{BinomialGaussian, Gaussian, LastIterateMax, supports_last_iterate};
use numerics::special::ROUND;
use vocabulary::figure::Hue;
use vocabulary::{LensName, Release, Run, Standing};

pub(super) const LENS: Lens = Lens {
    name: LensName::LastIterate,
    adds_up: true,
    monotone: false,
    hue: Hue::Vermilion,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions,
    supports: |subject| {
        (PLAIN.supports)(subject)?;
        supports_last_iterate(subject.run)
    },
    look: |subject| seen(subject.run),
    beside_audits: true,
    in_profiles: true,
    ..PLAIN
};

pub(super) const MAX_LENS: Lens = Lens {
    name: LensName::LastIterateMax,
    monotone: true,
    hue: Hue::Purple,
    release: Release::LastIterate,
    standing: |_| Standing::Heuristic,
    assumptions: |run| {
        let mut all = assumptions(run);
        all.push("training may stop after any number of steps up to the last".into());
        all
    },
    look: |subject| Ok(View::pair(LastIterateMax::for_run(subject.run)?)),
    // A maximum over pairs is not a pair itself.
    one_pair: false,
    ..LENS
};

/// Where every record is in every batch there is one noise and no count to guess: N(kT, v) against N(0, v), v = sum of T sigma^2.
fn seen(run: &Run) -> Result<View, AccountingError> {
    if run.phases().iter().any(|phase| phase.sample_rate < 1.0) {
        return Ok(View::pair(BinomialGaussian::for_run(run)?));
    }
    let (mut uses, mut variance) = (0.0, 0.0);
    for phase in run.phases() {
        uses += phase.steps as f64;
        variance += phase.steps as f64 * (phase.noise_multiplier * phase.noise_multiplier);
    }
    let mu = f64::from(run.group_size()) * uses / variance.sqrt();
    // Two roundings for each term of either sum, and one of its addition.
    Ok(View::gaussian(Gaussian::computed(mu, ROUND * (4.0 + 3.0 * run.phases().len() as f64))?))
}

fn assumptions(run: &Run) -> Vec<String> {
    vec![
        "the attacker sees the last iterate only".into(),
        batches(run),
        "the loss is linear, so that gradients do not depend on the model (training does not \
         satisfy this; there are losses for which the last iterate leaks more)"
            .into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions;
    use vocabulary::Direction;

    #[test]
    fn full_batches_have_one_noise() {
        // 2 * 50 / sqrt(30 * 4 + 20 * 9); one phase: 3 * sqrt(400) / 1.9.
        let two = Run::builder().phase(2.0, 1.0, 30).phase(3.0, 1.0, 20).group_size(2);
        let one = Run::builder().phase(1.9, 1.0, 400).group_size(3);
        for (run, mu) in [(two, 100.0 / 300f64.sqrt()), (one, 60.0 / 1.9)] {
            let run = run.build().unwrap();
            let view = seen(&run).unwrap();
            let found = view.mu(1e-5, Direction::Both).unwrap();
            assert!(found.lower <= mu && mu <= found.upper, "{found:?} {mu}");
            // As wide as that of every Gaussian pair.
            assert!(found.relative_width() < 1e-11, "{found:?}");
            // The count's law says the same of epsilon.
            let pair = BinomialGaussian::for_run(&run).unwrap();
            let sampled = directions::epsilon(&pair, 1e-5, Direction::Both).unwrap();
            let seen = view.epsilon(1e-5, Direction::Both).unwrap();
            assert!(
                seen.lower <= sampled.upper && sampled.lower <= seen.upper,
                "{seen:?} {sampled:?}"
            );
        }
    }
}
