//! Bayes security by plain Fourier inversion: a second route to the exact value, which shares no
//! code with composition and refuses nothing, but certifies nothing either.
//!
//! 1 - TV = ∫ min(P, Q) = (1/2 pi) ∫ M(1/2 + iu) / (1/4 + u^2) du with M(z) = prod_t ∫ P_t^z Q_t^{1-z}
//! (e^{-|y|/2} has the transform 1/(1/4 + u^2)). The integral over x is a trapezoid sum, exponentially
//! accurate; so is the one over w after u = sinh(w)/2, which also copes with transforms that hardly
//! decay (little noise, rare use) as long as there are ten steps or more. Direction: none. Error: about 1e-8, found by refining both grids.
//! Cost: a thousand nodes squared, about 50 ms.

use crate::AccountingError;
use crate::pairs::by_coins;
use numerics::elementary::{atan2, cos, exp, exp_m1, hypot, ln, ln_1p, sin_cos, sinh};
use vocabulary::{Adjacency, NotCovered, Phase, Run};

/// Bayes security of the composed pair; an estimate of the exact value, good to about 1e-8.
///
/// ```
/// use accounting::bayes_security::by_inversion;
/// use vocabulary::{Adjacency, Run};
/// let run = Run::builder().phase(0.5, 1e-3, 1000).adjacency(Adjacency::Substitute).build()?;
/// assert!((by_inversion(&run)? - 0.896_480_88).abs() < 1e-7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// `Unsupported` for shuffled and fixed-size batches and for groups.
pub fn by_inversion(run: &Run) -> Result<f64, AccountingError> {
    check(run)?;
    let parts: Vec<(Vec<(f64, f64)>, u64)> = run
        .phases()
        .iter()
        .map(|phase| (transform(&nodes(phase, run.adjacency())), phase.steps))
        .collect();
    Ok(invert(|j| {
        parts.iter().fold((0.0, 0.0), |(log_size, angle), (transform, steps)| {
            let (times, at) = (*steps as f64, transform[j]);
            (log_size + times * at.0, angle + times * at.1)
        })
    }))
}

/// The transform of one step, kept for any number of them: a first answer costs 50 ms, each further
/// one some microseconds.
#[derive(Clone, Debug)]
pub struct Inversion {
    transform: Vec<(f64, f64)>,
}

impl Inversion {
    /// Of a run with one phase; its steps do not matter.
    ///
    /// # Errors
    /// As [`by_inversion`], and for several phases.
    pub fn new(run: &Run) -> Result<Self, AccountingError> {
        check(run)?;
        match run.phases() {
            [phase] => Ok(Self { transform: transform(&nodes(phase, run.adjacency())) }),
            several => {
                let (what, found) = ("inversion holds", several.len());
                Err(NotCovered::Phases { what, found, separately: false }.into())
            }
        }
    }

    /// Bayes security after `steps` steps. From ten steps on good to about 1e-7; for fewer the sums
    /// over x are too coarse where the transform hardly decays.
    pub fn security(&self, steps: u64) -> f64 {
        let times = steps as f64;
        invert(|j| (times * self.transform[j].0, times * self.transform[j].1))
    }
}

fn check(run: &Run) -> Result<(), AccountingError> {
    by_coins(run, "inversion holds")?;
    match run.group_size() {
        1 => Ok(()),
        found => Err(NotCovered::Group { what: "inversion holds", found }.into()),
    }
}

/// Spacing and number of the nodes w, u = sinh(w)/2.
const SPACING: f64 = 0.02;
const NODES: usize = 900;

/// ln|M| and arg M at every node.
fn transform(nodes: &[(f64, f64)]) -> Vec<(f64, f64)> {
    (0..NODES)
        .map(|j| {
            let u = 0.5 * sinh(SPACING * j as f64);
            let (mut real, mut imaginary) = (0.0, 0.0);
            for (weight, loss) in nodes {
                let (sine, cosine) = sin_cos(u * loss);
                real += weight * cosine;
                imaginary += weight * sine;
            }
            (ln(hypot(real, imaginary)), atan2(imaginary, real))
        })
        .collect()
}

fn invert(power: impl Fn(usize) -> (f64, f64)) -> f64 {
    let mut sum = 0.0;
    for j in 0..NODES {
        let w = SPACING * j as f64;
        let u = 0.5 * sinh(w);
        let (log_size, angle) = power(j);
        // The hyperbolic cosine of w beside its sine, 2u.
        let cosh = (1.0 + 4.0 * u * u).sqrt();
        let term = exp(log_size) * 0.5 * cosh / (0.25 + u * u);
        sum += term * cos(angle) * if j == 0 { 0.5 } else { 1.0 };
        if term < 1e-12 {
            break;
        }
    }
    (sum * SPACING / std::f64::consts::PI).clamp(0.0, 1.0)
}

/// sqrt(P Q) dx and ln(P/Q) on a grid that holds all but 1e-30 of both.
fn nodes(phase: &Phase, adjacency: Adjacency) -> Vec<(f64, f64)> {
    let (p, s) = (phase.sample_rate, phase.noise_multiplier);
    let reach = if adjacency == Adjacency::Substitute { 1.0 } else { 0.0 };
    let (low, high, spacing) = (-reach - 12.0 * s, 1.0 + 12.0 * s, s / 40.0);
    let gain = 1.0 / (s * s);
    // ln((1-p) + p e^y), for y of any size.
    let mixed = |y: f64| {
        if y > 30.0 { ln(p) + y + ln_1p((1.0 - p) / p * exp(-y)) } else { ln_1p(p * exp_m1(y)) }
    };
    let points = ((high - low) / spacing).ceil() as u32;
    (0..=points)
        .map(|i| {
            let x = low + spacing * f64::from(i);
            let up = mixed((x - 0.5) * gain);
            let down = match adjacency {
                Adjacency::AddRemove | Adjacency::ZeroOut => 0.0,
                Adjacency::Substitute => mixed((-x - 0.5) * gain),
            };
            let density = exp(-0.5 * x * x * gain) / (s * (2.0 * std::f64::consts::PI).sqrt());
            (exp(0.5 * (up + down)) * density * spacing, up - down)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directions;
    use crate::pairs::Composed;
    use vocabulary::Sampling;

    /// Both routes agree, and on a Gaussian with the closed form.
    #[test]
    fn inversion_agrees_with_composition() {
        for (sigma, rate, steps, adjacency) in [
            (1.0, 1e-2, 2000, Adjacency::Substitute),
            (0.7, 1e-3, 20_000, Adjacency::AddRemove),
            (3.0, 0.2, 100, Adjacency::AddRemove),
        ] {
            let run = Run::builder().phase(sigma, rate, steps).adjacency(adjacency);
            let run = run.build().unwrap();
            let exact = directions::bayes_security(&Composed::for_run(&run).unwrap()).unwrap();
            let second = by_inversion(&run).unwrap();
            assert!((exact.value - second).abs() < 1e-7, "{run:?}: {exact:?} {second}");
        }
        let full = Run::builder().phase(10.0, 1.0, 50).sampling(Sampling::Full).build().unwrap();
        let want = crate::bayes_security::security_of_mu(50f64.sqrt() / 10.0);
        assert!((by_inversion(&full).unwrap() - want).abs() < 1e-8);
    }
}
