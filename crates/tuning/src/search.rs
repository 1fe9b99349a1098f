//! What choosing costs, for a search planned with a random number of trials.
//!
//! Each trial draws a configuration at random, trains it and looks at how good it is; only the
//! best is released. If the number of trials K is random, the Renyi divergences of the whole search
//! are little more than those of one trial (Papernot and Steinke, ICLR 2022):
//!
//! - truncated negative binomial with parameters eta > -1 and gamma (Theorem 2): for any
//!   lambda-hat, rho(lambda) + (1+eta)(1 - 1/lambda-hat) rho(lambda-hat) + (1+eta) ln(1/gamma)/lambda-hat
//!   + ln E[K]/(lambda - 1). eta = 1 is the geometric, eta = 0 the logarithmic distribution.
//! - Poisson (Theorem 6): rho(lambda) + E[K] delta(eps-hat) + ln E[K]/(lambda - 1) at
//!   e^eps-hat = 1 + 1/(lambda - 1). No trial happens with probability e^-E[K].
//!
//! rho is the largest over the configurations (a trial that draws its configuration is a mixture,
//! and Renyi divergence is quasi-convex). Converted to (epsilon, delta) by Canonne, Kamath and
//! Steinke (2020). Proven, upper bounds; every order gives one and the best found is taken.
//! Beside it stands the composition of a fixed number of trials, which covers releasing them all.

use crate::{TrainingTable, TuningError, noise_for};
use accounting::directions;
use accounting::pairs::{Composed, RenyiBound};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{AtMost, Direction, Problem, Run};

/// How the number of trials is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trials {
    #[default]
    Geometric,
    Logarithmic,
    Poisson,
}

impl Trials {
    pub fn as_str(self) -> &'static str {
        match self {
            Trials::Geometric => "geometric",
            Trials::Logarithmic => "logarithmic",
            Trials::Poisson => "poisson",
        }
    }
}

/// The `dosimeter.tune-search/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchCost {
    pub schema: String,
    pub trials: Trials,
    pub expected_trials: f64,
    /// Configurations that a trial can draw.
    #[serde(default)]
    pub configurations: usize,
    /// The parameter with which K is drawn: gamma, or the mean of the Poisson distribution.
    pub parameter: f64,
    pub delta: f64,
    /// One trial: the largest over the configurations, proven upper end.
    pub one_run: f64,
    /// The search by random stopping: proven upper end.
    pub search: f64,
    /// A fixed number of trials, all released: proven upper end; `null` where it cannot be
    /// bounded.
    pub all_released: Option<f64>,
    /// That number: the expected one, rounded up.
    pub fixed_trials: u64,
    pub statement: String,
    pub assumptions: Vec<String>,
}

impl SearchCost {
    pub const SCHEMA: &'static str = "dosimeter.tune-search/1";

    /// One run, and the search by random stopping.
    pub fn at_most(&self) -> [AtMost; 2] {
        [self.one_run, self.search].map(AtMost::new)
    }

    /// A fixed number of trials, all released.
    pub fn all_released_at_most(&self) -> Option<AtMost> {
        self.all_released.map(AtMost::new)
    }
}

/// Bounds a search over the configurations of a table (those at one epsilon, where it is given)
/// for a data set of this size; without a delta it is the table's.
///
/// # Errors
/// `InvalidInput` where no row or no single delta is left, for a batch larger than the data set,
/// and what [`search`] refuses.
pub fn search_table(
    table: &TrainingTable,
    epsilon: Option<f64>,
    dataset_size: u64,
    expected_trials: f64,
    trials: Trials,
    delta: Option<f64>,
) -> Result<SearchCost, TuningError> {
    let invalid = |message: &str| TuningError::invalid(message.to_owned());
    let mut runs: Vec<Run> = Vec::new();
    let mut deltas: Vec<f64> = Vec::new();
    // Rows that differ by learning rate or seed are one mechanism: solved for once.
    let mut solved: Vec<([f64; 4], f64)> = Vec::new();
    for row in table.rows.iter().filter(|row| epsilon.is_none_or(|asked| asked == row.epsilon)) {
        let rate = row.batch_size / dataset_size as f64;
        if rate > 1.0 {
            return Err(TuningError::invalid(format!(
                "batch size {} is larger than the data set of {dataset_size}",
                row.batch_size
            )));
        }
        let key = [rate, row.steps as f64, row.epsilon, row.delta];
        let known = solved.iter().find(|(known, _)| *known == key).map(|(_, noise)| *noise);
        let noise = match row.noise_multiplier.or(known) {
            Some(noise) => noise,
            None => {
                let (noise, _) = noise_for(rate, row.steps, row.epsilon, row.delta)?;
                solved.push((key, noise));
                noise
            }
        };
        let run = Run::builder().phase(noise, rate, row.steps).build()?;
        if !runs.contains(&run) {
            runs.push(run);
        }
        if !deltas.contains(&row.delta) {
            deltas.push(row.delta);
        }
    }
    let delta = match (delta, &deltas[..]) {
        (_, []) => return Err(invalid("no row has this epsilon")),
        (Some(delta), _) => delta,
        (None, [delta]) => *delta,
        (None, _) => return Err(invalid("the rows have several deltas: name that of the search")),
    };
    search(&runs, expected_trials, trials, delta)
}

/// Bounds a search over `runs` (the configurations a trial can draw).
///
/// ```
/// use tuning::search::{Trials, search};
/// let run = vocabulary::Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
/// let found = search(&[run], 10.0, Trials::Geometric, 1e-5)?;
/// assert!(found.one_run < found.search && found.search < found.all_released.unwrap());
/// # Ok::<(), tuning::TuningError>(())
/// ```
///
/// # Errors
/// `InvalidInput` without runs, for fewer than one expected trial or a delta outside (0, 1);
/// those of the accounting.
pub fn search(
    runs: &[Run],
    expected_trials: f64,
    trials: Trials,
    delta: f64,
) -> Result<SearchCost, TuningError> {
    let invalid = |problem: Problem| Err(TuningError::InvalidInput(problem));
    if runs.is_empty() {
        return invalid("there is no configuration to draw".into());
    }
    if !(1.0..=1e9).contains(&expected_trials) {
        return invalid(Problem::outside("expected trials", expected_trials, "[1, 1e9]"));
    }
    if !(delta > 0.0 && delta < 1.0) {
        return invalid(Problem::outside("delta", delta, "(0, 1)"));
    }
    let bounds = runs.iter().map(RenyiBound::for_run).collect::<Result<Vec<_>, _>>()?;
    let pairs = runs.iter().map(Composed::for_run).collect::<Result<Vec<_>, _>>()?;
    let mut one_run = 0.0_f64;
    for pair in &pairs {
        one_run = one_run.max(directions::epsilon(pair, delta, Direction::Both)?.upper);
    }
    let orders = Orders::new(|order: f64| -> f64 {
        let all = bounds.iter().map(|b| b.divergence(order).map_or(f64::INFINITY, |i| i.upper));
        all.fold(0.0, f64::max)
    });
    let (parameter, extra): (f64, f64) = match trials {
        Trials::Poisson => (expected_trials, 0.0),
        Trials::Geometric | Trials::Logarithmic => {
            let eta = if trials == Trials::Geometric { 1.0 } else { 0.0 };
            let gamma = gamma_for(expected_trials, eta);
            let hat = orders.least(|order, rho| (1.0 - 1.0 / order) * rho - gamma.ln() / order);
            (gamma, (1.0 + eta) * hat.max(0.0))
        }
    };
    let found = orders.least(|order, rho| {
        let rest = order - 1.0;
        let mut rho = rho + expected_trials.ln() / rest + extra;
        if trials == Trials::Poisson {
            let hat = (1.0 / rest).ln_1p();
            let worst = pairs.iter().map(|pair| {
                directions::delta(pair, hat, Direction::Both).map_or(f64::INFINITY, |d| d.upper)
            });
            rho += expected_trials * worst.fold(0.0, f64::max);
        }
        rho - (1.0 / rest).ln_1p() - (delta.ln() + order.ln()) / rest
    });
    // A search releases at least what one run of it does.
    let bound = (found * (1.0 + 1e-12)).max(one_run);
    let fixed_trials = expected_trials.ceil() as u64;
    Ok(SearchCost {
        schema: SearchCost::SCHEMA.into(),
        trials,
        expected_trials,
        configurations: runs.len(),
        parameter,
        delta,
        one_run,
        search: bound,
        all_released: all_released(runs, fixed_trials, delta)?,
        fixed_trials,
        statement: crate::STATEMENT.into(),
        assumptions: vec![
            format!(
                "the number of trials is drawn first, from the {} distribution, and kept secret",
                trials.as_str()
            ),
            "every trial draws its configuration and its noise anew, independently".into(),
            "only the best trial is released, by a measure that is part of the trial (public validation records, or privately measured within its epsilon)".into(),
            "Poisson batches; neighbouring data sets differ by adding or removing one record".into(),
        ],
    })
}

/// The largest composition of a fixed number of trials of one configuration.
fn all_released(runs: &[Run], trials: u64, delta: f64) -> Result<Option<f64>, TuningError> {
    let mut largest = 0.0_f64;
    for run in runs {
        let phases = run.phases().iter().map(|phase| {
            let steps = phase.steps.checked_mul(trials);
            steps.map(|steps| vocabulary::Phase { steps, ..*phase })
        });
        let Some(phases) = phases.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let epsilon = Composed::for_run(&run.with_phases(phases)?)
            .and_then(|pair| directions::epsilon(&pair, delta, Direction::Both));
        match epsilon {
            Ok(epsilon) => largest = largest.max(epsilon.upper),
            Err(_) => return Ok(None),
        }
    }
    Ok(largest.is_finite().then_some(largest))
}

/// gamma with which the truncated negative binomial has this mean: 1/gamma for eta = 1,
/// (1/gamma - 1)/ln(1/gamma) for eta = 0.
fn gamma_for(mean: f64, eta: f64) -> f64 {
    if eta == 1.0 || mean == 1.0 {
        return 1.0 / mean;
    }
    // In u = ln(1/gamma) the mean (e^u - 1)/u grows.
    let (mut low, mut high) = (0.0_f64, 700.0_f64);
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle.exp_m1() / middle < mean { low = middle } else { high = middle }
    }
    // The larger u has the larger mean and the larger bound.
    (-high).exp()
}

/// Orders 1 + e^u at even steps of u with the divergence there, made once for both minimisations.
struct Orders<F> {
    divergence: F,
    coarse: Vec<(f64, f64)>,
}

const STEP: f64 = 0.5;

impl<F: Fn(f64) -> f64> Orders<F> {
    fn new(divergence: F) -> Self {
        let coarse = (-12..=24).map(|i| STEP * f64::from(i));
        let coarse = coarse.map(|u| (u, divergence(1.0 + u.exp()))).collect();
        Self { divergence, coarse }
    }

    /// The least value of a function of order and divergence: the best of the coarse orders, then
    /// golden section around it. Any order gives a bound, so that nothing need be proven about
    /// the search.
    fn least(&self, value: impl Fn(f64, f64) -> f64) -> f64 {
        let at = |u: f64, rho: f64| {
            let found = value(1.0 + u.exp(), rho);
            if found.is_nan() { f64::INFINITY } else { found }
        };
        let (mut best, mut centre) = (f64::INFINITY, 0.0);
        for &(u, rho) in &self.coarse {
            let found = at(u, rho);
            if found < best {
                (best, centre) = (found, u);
            }
        }
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let fresh = |u: f64| at(u, (self.divergence)(1.0 + u.exp()));
        let (mut low, mut high) = (centre - STEP, centre + STEP);
        let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut at_a, mut at_b) = (fresh(a), fresh(b));
        for _ in 0..12 {
            best = best.min(at_a).min(at_b);
            if at_a <= at_b {
                (high, b, at_b) = (b, a, at_a);
                a = high - GOLDEN * (high - low);
                at_a = fresh(a);
            } else {
                (low, a, at_a) = (a, b, at_b);
                b = low + GOLDEN * (high - low);
                at_b = fresh(b);
            }
        }
        best.min(at_a).min(at_b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distribution_has_the_asked_mean() {
        for mean in [1.5, 10.0, 300.0] {
            let gamma = gamma_for(mean, 0.0);
            assert!(((1.0 / gamma - 1.0) / (1.0 / gamma).ln() / mean - 1.0).abs() < 1e-12);
            assert_eq!(gamma_for(mean, 1.0), 1.0 / mean);
        }
    }

    #[test]
    fn a_full_batch_run_matches_the_formula_by_hand() {
        // Gaussian with mu = 1/2: rho(lambda) = lambda / 8, so that Theorem 2 with eta = 1 is
        // lambda/8 + 2 min[(h - 1)/8 + ln(m)/h] + ln(m)/(lambda - 1); the minimum is at
        // h = sqrt(8 ln m), where it is 2 sqrt(ln(m)/8) - 1/8.
        let run = Run::builder().phase(2.0, 1.0, 1).build().unwrap();
        let (m, delta) = (20.0_f64, 1e-6_f64);
        let hat = 2.0 * (2.0 * (m.ln() / 8.0).sqrt() - 0.125);
        let mut by_hand = f64::INFINITY;
        for i in 1..40_000 {
            let rest = 0.005 * f64::from(i);
            let order = 1.0 + rest;
            let rho = order / 8.0 + hat + m.ln() / rest;
            by_hand = by_hand.min(rho + (rest / order).ln() - (delta * order).ln() / rest);
        }
        let found = search(&[run], m, Trials::Geometric, delta).unwrap();
        assert!((found.search / by_hand - 1.0).abs() < 1e-3, "{} {by_hand}", found.search);
        assert!(found.search > by_hand * (1.0 - 1e-9));
    }

    #[test]
    fn more_trials_cost_more_and_one_trial_costs_no_less_than_itself() {
        let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
        for trials in [Trials::Geometric, Trials::Logarithmic, Trials::Poisson] {
            let mut before = 0.0;
            for mean in [1.0, 4.0, 30.0, 300.0] {
                let found = search(std::slice::from_ref(&run), mean, trials, 1e-5).unwrap();
                assert!(
                    found.search >= found.one_run && found.search > before,
                    "{trials:?} {mean}"
                );
                before = found.search;
            }
        }
    }
}
