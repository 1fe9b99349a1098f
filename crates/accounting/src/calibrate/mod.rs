//! Calibration: the noise, the number of steps or the sample rate that just meets a target,
//! under any lens. The answer is on the safe side: the achieved claim is verified by its
//! certified end, and what is left over is the slack.
//!
//! A handful of evaluations of delta at the target's epsilon: a first guess from the Gaussian
//! limit, then secants on the logarithm of the Gaussian mu that would leak as much
//! ([`target`]), which is almost linear in the logarithms of the unknowns ([`search`]).

mod batch;
mod search;
mod target;

pub use batch::{Advice, AdviceRow, advice, calibrate_batch_size};
use numerics::elementary::{exp, exp_m1, hypot, ln, ln_1p, powf, powi};
pub use target::Target;

use crate::account::ClaimMaker;
use crate::bayes_security::attribute::{self, Sensitivities};
use crate::lenses::{Lens, View};
use crate::schemes::{self, Rates};
use crate::{AccountingError, domain};
use schemars::JsonSchema;
use search::{Found, Measured, largest_safe_count, smallest_safe};
use serde::{Deserialize, Serialize};
use vocabulary::{
    AtLeast, AtMost, Claim, Direction, LensName, NotCertified, Phase, Run, Sampling,
    batches_per_pass,
};

type Result<T> = std::result::Result<T, AccountingError>;

/// What is solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unknown {
    NoiseMultiplier,
    Steps,
    SampleRate,
}

/// The solved value, under its own name.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Solution {
    NoiseMultiplier(f64),
    Steps(u64),
    SampleRate(f64),
    BatchSize(u64),
    Epochs(f64),
}

/// Significant digits of a solution that is shown.
const DIGITS: usize = 6;

impl Solution {
    /// As text, rounded to the side that still meets the target.
    pub fn shown(self) -> String {
        match self {
            Self::NoiseMultiplier(noise) => AtMost::new(noise).digits(DIGITS),
            Self::Steps(count) | Self::BatchSize(count) => count.to_string(),
            Self::SampleRate(share) | Self::Epochs(share) => AtLeast::new(share).digits(DIGITS),
        }
    }
}

/// The answer of a calibration: the `dosimeter.calibrate/1` document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calibration {
    pub schema: String,
    pub solution: Solution,
    /// The solution as text: noise rounded up, a rate rounded down, so that it still meets the
    /// target.
    pub solution_shown: String,
    /// The run with the solution in it.
    pub run: Run,
    pub target: Target,
    pub achieved: Claim,
    /// How much of the target is left over, in its own unit; never negative.
    pub slack: f64,
    /// Pairs of distributions that were looked at.
    pub evaluations: usize,
    pub warnings: Vec<String>,
}

impl Calibration {
    pub const SCHEMA: &'static str = "dosimeter.calibrate/1";

    /// How much of the target is left over. The last digits of a tiny slack are rounding, not information.
    pub fn slack_in_words(&self) -> String {
        if self.slack <= 1e-9 * self.target.value() {
            return "within 1e-9 of the target".to_owned();
        }
        format!("slack {}", AtLeast::new(self.slack).digits(2))
    }

    /// What was solved for, with the batch that a rate means.
    pub fn solution_in_words(&self) -> String {
        let shown = &self.solution_shown;
        match (self.solution, self.run.dataset_size()) {
            (Solution::NoiseMultiplier(_), _) => format!("noise multiplier {shown}"),
            (Solution::Steps(_), _) => format!("steps {shown}"),
            (Solution::BatchSize(_), _) => format!("batch size {shown}"),
            (Solution::Epochs(_), _) => format!("epochs {shown}"),
            (Solution::SampleRate(_), None) => format!("sample rate {shown}"),
            (Solution::SampleRate(rate), Some(size)) => {
                let batch = (rate * size as f64).floor();
                format!("sample rate {shown} (expected batch size {batch} of {size})")
            }
        }
    }

    /// The run with the solution as it is shown, which is rounded to the safe side.
    pub fn run_as_shown(&self) -> Run {
        let mut phases = self.run.phases().to_vec();
        let read = |exact: f64| self.solution_shown.parse().unwrap_or(exact);
        for phase in &mut phases {
            match self.solution {
                Solution::NoiseMultiplier(noise) => phase.noise_multiplier = read(noise),
                Solution::SampleRate(rate) => phase.sample_rate = read(rate),
                Solution::Steps(_) | Solution::BatchSize(_) | Solution::Epochs(_) => {}
            }
        }
        self.run.with_phases(phases).unwrap_or_else(|_| self.run.clone())
    }
}

/// The epochs of a calibration that was solved for steps: as many as its steps make, rounded down.
pub fn in_epochs(mut found: Calibration) -> Calibration {
    if let (Solution::Steps(steps), [phase]) = (found.solution, found.run.phases()) {
        let batches = batches_per_pass(phase.sample_rate, false);
        let epochs = if found.run.sampling().cuts_the_data() && steps.is_multiple_of(batches) {
            (steps / batches) as f64
        } else {
            // Steps are rounded up from epochs; a little less makes no step more.
            steps as f64 * phase.sample_rate * (1.0 - 4.0 * f64::EPSILON)
        };
        found.solution = Solution::Epochs(epochs);
        found.solution_shown = found.solution.shown();
    }
    found
}

/// Relative distance to the ideal answer at which the search ends.
const TOLERANCE: f64 = 2e-11;

/// Solves for one number of a run with a single phase; what that phase says about the unknown
/// is ignored. `notes` (defaults used) are added to the claim's assumptions.
///
/// # Errors
/// `InvalidInput` for malformed questions, `Unsupported` where the lens does not hold,
/// `OutsideDomain` where no value of the domain meets the target.
pub fn calibrate(
    run: &Run,
    unknown: Unknown,
    target: &Target,
    lens: LensName,
    notes: &[String],
) -> Result<Calibration> {
    let lens = Lens::named(lens);
    let most = domain::STEPS.1;
    solve(run, unknown, target, lens, notes, &|run| lens.look(run), &|_| {}, most)
}

/// Solves for the noise, the sample rate or the number of first steps with which an attribute with
/// these sensitivities meets the target, under one of the closed-form lenses. The sensitivities are
/// taken to stay what they were: with other noise the training would have gone elsewhere.
///
/// # Errors
/// As [`calibrate`].
pub fn calibrate_attribute(
    run: &Run,
    unknown: Unknown,
    target: &Target,
    lens: LensName,
    notes: &[String],
    sensitivities: &Sensitivities,
) -> Result<Calibration> {
    let look = |run: &Run| {
        domain::check_run(run)?;
        if unknown == Unknown::Steps {
            return attribute::look(lens, run, &sensitivities.first(run.steps()));
        }
        attribute::look(lens, run, sensitivities)
    };
    let finish = |claim: &mut Claim| attribute::about_attribute(claim, sensitivities, notes);
    let most = sensitivities.steps();
    let mut found = solve(run, unknown, target, Lens::named(lens), notes, &look, &finish, most)?;
    found.warnings.push(match found.solution {
        Solution::Steps(steps) if steps == most => format!(
            "the sensitivities end after {most} steps, and all of these meet the target; measure a \
             longer training for more"
        ),
        Solution::Steps(_) => {
            "these are the first steps of the training that was measured: stop it there".into()
        }
        _ => "the sensitivities are taken to stay what they were; measure them again with this \
              answer"
            .into(),
    });
    Ok(found)
}

/// What a Rényi filter promises depends on its order and budget alone, not on what was spent.
pub(crate) fn not_filtered(run: &Run, so: &str) -> Result<()> {
    if run.renyi_filter().is_none() {
        return Ok(());
    }
    Err(AccountingError::invalid(format!(
        "the epsilon of a Rényi filter follows from its order and its budget, whatever noise, rate and steps were \
         chosen within it, so {so}; `account` prints it"
    )))
}

#[allow(clippy::too_many_arguments)]
fn solve(
    run: &Run,
    unknown: Unknown,
    target: &Target,
    lens: &'static Lens,
    notes: &[String],
    look: &dyn Fn(&Run) -> Result<View>,
    finish: &dyn Fn(&mut Claim),
    most_steps: u64,
) -> Result<Calibration> {
    target.check()?;
    not_filtered(run, "there is nothing to solve for")?;
    let [phase] = run.phases() else {
        return Err(AccountingError::invalid(format!(
            "the run has {} phases; calibration solves for one number of a run with one phase",
            run.phases().len()
        )));
    };
    if unknown == Unknown::SampleRate && run.sampling() == Sampling::Full {
        return Err(AccountingError::invalid(
            "full batches have sample rate 1, so there is none to solve for; choose another \
             sampling or solve for the noise or the steps",
        ));
    }
    let mut search = Solver {
        run,
        phase: *phase,
        lens,
        look,
        target,
        allowed: target.allowed_mu()?,
        direction: Direction::Both,
        most_steps,
        evaluations: 0,
        uncertified: None,
    };
    let mut warnings = Vec::new();
    // What is given must lie in the domain before what is sought can be blamed.
    let (solution, solved) = match unknown {
        Unknown::NoiseMultiplier => {
            let sigma = search.noise_multiplier()?;
            if sigma <= domain::NOISE_MULTIPLIER.0 {
                warnings.push(
                    "even noise multiplier 0.2, the end of the domain, meets the target".into(),
                );
            }
            (Solution::NoiseMultiplier(sigma), Phase { noise_multiplier: sigma, ..*phase })
        }
        Unknown::SampleRate => {
            let rate = search.sample_rate()?;
            if rate >= 1.0 {
                warnings.push("every sample rate meets the target, even full batches".into());
            }
            (Solution::SampleRate(rate), Phase { sample_rate: rate, ..*phase })
        }
        Unknown::Steps => {
            let steps = search.steps(&mut warnings)?;
            (Solution::Steps(steps), Phase { steps, ..*phase })
        }
    };
    let run = search.with(solved)?;
    let view = look(&run).map_err(|error| error.of(lens.name))?;
    let interval = target.achieved(&view)?;
    search.evaluations += 1;
    let mut achieved = ClaimMaker::new(lens, &(&run).into(), notes).claim(
        target.quantity(),
        target.at(),
        Direction::Both,
        interval,
    );
    finish(&mut achieved);
    let slack = target.slack(&interval);
    if slack < 0.0 {
        let (quantity, target) = (target.quantity(), target.value());
        return Err(NotCertified::Solution { quantity, target }.into());
    }
    let solution_shown = match solution {
        // One over a number of batches: in fewer digits it would be no such number.
        Solution::SampleRate(rate) if schemes::rates(&run) != Rates::Any => rate.to_string(),
        _ => solution.shown(),
    };
    Ok(Calibration {
        schema: Calibration::SCHEMA.into(),
        solution,
        solution_shown,
        run,
        target: *target,
        achieved,
        slack,
        evaluations: search.evaluations,
        warnings,
    })
}

struct Solver<'a> {
    run: &'a Run,
    phase: Phase,
    lens: &'static Lens,
    look: &'a dyn Fn(&Run) -> Result<View>,
    target: &'a Target,
    /// The Gaussian mu that the target allows.
    allowed: f64,
    /// Both, or the one that was seen to dominate; the answer is verified with both.
    direction: Direction,
    most_steps: u64,
    evaluations: usize,
    /// Why a candidate could not be measured, if one could not.
    uncertified: Option<NotCertified>,
}

impl Solver<'_> {
    fn with(&self, phase: Phase) -> Result<Run> {
        self.run.with_phases(vec![phase]).map_err(AccountingError::invalid)
    }

    fn measure(&mut self, phase: Phase) -> Result<Measured> {
        self.evaluations += 1;
        let view = (self.look)(&self.with(phase)?).map_err(|error| error.of(self.lens.name))?;
        match self.target.measure(&view, self.allowed, self.direction) {
            Err(error @ AccountingError::Unsupported(_)) => Err(error.of(self.lens.name)),
            // Far from the target a number may be beyond certification; then it is not met.
            Err(AccountingError::NotCertified(reason)) => {
                self.uncertified = Some(reason);
                Ok(Measured { residual: 30.0, met: false })
            }
            Ok(measured) => {
                if measured.met {
                    crate::patience::tell(format!(
                        "noise multiplier {}, sample rate {} and {} steps meet the target",
                        AtMost::new(phase.noise_multiplier).digits(DIGITS),
                        AtLeast::new(phase.sample_rate).digits(DIGITS),
                        phase.steps
                    ));
                }
                Ok(measured)
            }
            Err(error) => Err(error),
        }
    }

    fn noise_multiplier(&mut self) -> Result<f64> {
        let phase = self.phase;
        let (low, high) = domain::NOISE_MULTIPLIER;
        let ratio = self.allowed / phase.sample_rate;
        let linear = (phase.steps as f64).sqrt() / ratio;
        let (guess, slope) = if self.is_linear() {
            (linear, -1.0)
        } else {
            let inverse_square = ln_1p(ratio * ratio / phase.steps as f64);
            // d ln mu / d ln sigma of q sqrt(T (e^{1/sigma^2} - 1))
            (powf(inverse_square, -0.5), -inverse_square / -exp_m1(-inverse_square))
        };
        let at = |u: f64| Phase { noise_multiplier: exp(u).clamp(low, high), ..phase };
        let found = smallest_safe(
            |u| self.measure(at(u)),
            (ln(low), ln(high)),
            ln(guess),
            slope,
            TOLERANCE,
        )?;
        match found {
            Found::At(u) | Found::Everywhere(u) => Ok(at(u).noise_multiplier),
            Found::Nowhere => Err(self.unreachable("not even noise multiplier 100")),
        }
    }

    /// The fewest batches per epoch that meet the target, where an epoch has a whole number of them.
    fn batches(&mut self, known: Option<&[u64]>, guess: f64) -> Result<f64> {
        let most = known.map_or((1.0 / domain::SAMPLE_RATE.0) as u64, |all| all.len() as u64);
        let count = |place: u64| known.map_or(place, |all| all[place as usize - 1]);
        // Fewer batches are more epochs: what does not meet the target lies below what does.
        let start = match known {
            None => guess.clamp(1.0, most as f64) as u64,
            Some(all) => {
                (all.partition_point(|count| (*count as f64) < guess) as u64).clamp(1, most)
            }
        };
        let (mut below, mut place) = (0, start);
        if self.met_by(count(start))? {
            let mut lower = start;
            while lower > 1 {
                lower = lower.div_ceil(2);
                if !self.met_by(count(lower))? {
                    below = lower;
                    break;
                }
                place = lower;
            }
        } else {
            loop {
                if place == most {
                    return Err(self.unreachable("no number of batches per epoch"));
                }
                (below, place) = (place, (2 * place).min(most));
                if self.met_by(count(place))? {
                    break;
                }
            }
        }
        while place - below > 1 {
            let middle = below + (place - below) / 2;
            if self.met_by(count(middle))? { place = middle } else { below = middle }
        }
        Ok(1.0 / count(place) as f64)
    }

    /// Whether this many batches per epoch meet the target.
    fn met_by(&mut self, batches: u64) -> Result<bool> {
        // A record cannot be in more batches than there are.
        let fits = batches >= self.run.drawing().uses_per_epoch.unwrap_or(1);
        Ok(fits && self.measure(Phase { sample_rate: 1.0 / batches as f64, ..self.phase })?.met)
    }

    fn sample_rate(&mut self) -> Result<f64> {
        let phase = self.phase;
        let (low, high) = domain::SAMPLE_RATE;
        let unit = if self.is_linear() {
            1.0 / phase.noise_multiplier
        } else {
            exp_m1(powi(phase.noise_multiplier, -2)).sqrt()
        };
        let guess = self.allowed / (unit * (phase.steps as f64).sqrt());
        match schemes::rates(self.run) {
            Rates::Any => {}
            Rates::WholeBatches => return self.batches(None, 1.0 / guess),
            Rates::Batches(known) => return self.batches(Some(&known), 1.0 / guess),
        }
        let at = |u: f64| Phase { sample_rate: exp(-u).clamp(low, high), ..phase };
        let found = smallest_safe(
            |u| self.measure(at(u)),
            (-ln(high), -ln(low)),
            -ln(guess),
            -1.0,
            TOLERANCE,
        )?;
        match found {
            Found::At(u) | Found::Everywhere(u) => Ok(at(u).sample_rate),
            Found::Nowhere => Err(self.unreachable("not even sample rate 1e-7")),
        }
    }

    fn steps(&mut self, warnings: &mut Vec<String>) -> Result<u64> {
        let phase = self.phase;
        let most = self.most_steps;
        let unit = if self.is_linear() {
            1.0 / phase.noise_multiplier
        } else {
            exp_m1(powi(phase.noise_multiplier, -2)).sqrt()
        };
        let guess = powi(self.allowed / (unit * phase.sample_rate), 2);
        // Where only whole epochs are covered, epochs are counted.
        let each = match schemes::rates(self.run) {
            Rates::Batches(_) => (1.0 / phase.sample_rate).round() as u64,
            _ => 1,
        };
        let mut steps = each
            * largest_safe_count(
                |count| self.measure(Phase { steps: count * each, ..phase }),
                most / each,
                guess / each as f64,
            )?;
        if !self.lens.monotone && self.run.sampling() != Sampling::Full {
            // Not monotone in the number of steps: look further out for counts that meet the
            // target again, and say so. For many steps the sum is normal with
            // mu = q sqrt(T) / sqrt(sigma^2 + q(1-q)); three times what is allowed ends it.
            let noise = hypot(phase.noise_multiplier, 0.5);
            let limit = powi(3.0 * self.allowed * noise / phase.sample_rate, 2);
            let farthest = limit.clamp(1.0, most as f64) as u64;
            let mut probe = steps.max(1);
            while probe < farthest {
                probe = (probe.saturating_mul(3)).min(farthest);
                if self.measure(Phase { steps: probe, ..phase })?.met {
                    steps = largest_safe_count(
                        |steps| self.measure(Phase { steps, ..phase }),
                        most,
                        probe as f64,
                    )?
                    .max(probe);
                    probe = steps;
                }
            }
            warnings.push(
                "the last-iterate heuristic is not monotone in the steps: fewer steps than these \
                 can leak more; `--lens last-iterate-max` bounds every count up to the answer"
                    .into(),
            );
        }
        if steps == 0 {
            return Err(self.unreachable("not even a single step"));
        }
        if steps == domain::STEPS.1 {
            warnings.push(
                "every number of steps up to 1e9, the end of the domain, meets the target".into(),
            );
        }
        Ok(steps)
    }

    /// Whether mu grows like q sqrt(T)/sigma.
    fn is_linear(&self) -> bool {
        self.run.sampling() == Sampling::Full || self.lens.adds_up
    }

    fn unreachable(&self, what: &str) -> AccountingError {
        if let Some(reason) = &self.uncertified {
            return reason.clone().into();
        }
        AccountingError::outside_domain(format!(
            "{what} meets {} {} under the lens `{}`; loosen the target or change the rest of the run",
            self.target.quantity().as_str(),
            self.target.value(),
            self.lens.name
        ))
    }
}
