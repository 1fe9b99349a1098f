//! All iterates of a run: the composition of its steps.
//!
//! One step is a pair of Gaussian mixtures (scaled so that the clip norm is 1):
//! - Poisson, add/remove: (1-q) N(0, s^2) + q N(1, s^2) against N(0, s^2). Dominates every step
//!   with clipped gradients, and its T-fold composition dominates T adaptive steps (Zhu, Dong,
//!   Wang 2022, Theorem 11 and Proposition 30).
//! - a group of k records: the shift is the number of them in the batch, Binomial(k, q).
//! - zeroing the record out: the same two pairs.
//! - substitution: (1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1), with binomial shifts +-j for a
//!   group. It dominates every adaptive run (proof: `schemes/poisson.rs`).
//!
//! Routes, each with certified ends: the Gaussian closed form when every record is in every
//! batch; the closed form of a single step; contour inversion ([`numerics::contour`]) otherwise.
//! Where the contour cannot certify, the lattice bracket ([`LatticeBracket`]) answers with a wider
//! interval, and where that says little either, nothing is answered.

mod contour;
mod crossing;
mod extremes;

use super::ends::{check_probability, complement};
use super::one_step::{OneStep, lost};
use super::{Gaussian, Order, Pair};
use crate::AccountingError;
use crate::directions::convex::{self, Guess};
use crate::directions::most_missed;
use crate::domain;
use crate::pairs::by_coins;
use contour::{Contour, refusal};
use crossing::crossing;
use numerics::contour::{Ends, Part, SumOfLogRatios, Zone};
use numerics::elementary::{exp, exp_m1, ln, ln_1p, powi};
use numerics::mixture::{Component, MixtureRatio};
use vocabulary::{Adjacency, Direction, Interval, Phase, Quantity, Run};

/// The composed pair of a run. Every question is asked of a session of its own, so that an answer
/// does not depend on what else was asked.
#[derive(Clone, Debug)]
pub struct Composed {
    pair: Session,
}

/// The pair with a memory of what was asked.
#[derive(Clone, Debug)]
struct Session {
    route: Route,
    /// No loss of the `Add` order exceeds this.
    add_supremum: f64,
}

#[derive(Clone, Debug)]
enum Route {
    Closed(Gaussian),
    Single(OneStep),
    Contour(Box<Contour>),
}

impl Composed {
    /// The composed pair of a run: Poisson or full batches, add/remove or substitution, any
    /// group size and any number of phases.
    ///
    /// # Errors
    /// `Unsupported` for other sampling schemes, `OutsideDomain` for parameters beyond the domain.
    pub fn for_run(run: &Run) -> Result<Self, AccountingError> {
        by_coins(run, "this pair holds")?;
        check_domain(run)?;
        let phases = merged(run.phases());
        if phases.iter().all(|phase| phase.sample_rate == 1.0) {
            // k records always present shift by k; a substitution by twice that.
            let shift = f64::from(run.group_size())
                * if run.adjacency() == Adjacency::Substitute { 2.0 } else { 1.0 };
            let square: f64 = phases
                .iter()
                .map(|phase| phase.steps as f64 * powi(shift / phase.noise_multiplier, 2))
                .sum();
            // A phase has four roundings and the sum of positive terms one for each; half of
            // all that after the root, and one more.
            let error = f64::EPSILON * (2.0 + 0.25 * phases.len() as f64);
            let pair = Gaussian::computed(square.sqrt(), error)?;
            let pair = Session { route: Route::Closed(pair), add_supremum: f64::INFINITY };
            return Ok(Self { pair });
        }
        let parts: Vec<Part> = phases
            .iter()
            .map(|phase| Part { pair: step(phase, run), times: phase.steps as f64 })
            .collect();
        let add_supremum = -numerics::contour::smallest(&parts);
        let route = match parts.as_slice() {
            [part] if part.times == 1.0 => Route::Single(OneStep::new(part.pair.clone())),
            _ => Route::Contour(Box::new(Contour::new(SumOfLogRatios::new(parts), run.clone()))),
        };
        Ok(Self { pair: Session { route, add_supremum } })
    }
}

impl Pair for Composed {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.pair.clone().delta(epsilon, order)
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        self.pair.clone().one_minus_delta(epsilon, order)
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        self.pair.clone().epsilon(delta, order)
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.pair.clone().tpr(fpr, order)
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        self.pair.clone().fnr(fpr, order)
    }

    fn mu(&self, delta: f64, direction: Direction) -> Option<Result<Interval, AccountingError>> {
        match &self.pair.route {
            Route::Closed(pair) => Pair::mu(pair, delta, direction),
            Route::Single(_) | Route::Contour(_) => None,
        }
    }

    fn session(&self) -> Option<Box<dyn Pair + '_>> {
        Some(Box::new(self.pair.clone()))
    }
}

impl Pair for Session {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        match &self.route {
            Route::Closed(pair) => pair.delta(epsilon, order),
            Route::Single(pair) => pair.delta(epsilon, order),
            Route::Contour(_) if order == Order::Add && epsilon >= self.add_supremum => {
                Ok(Interval::exact(0.0))
            }
            Route::Contour(_) if order == Order::Remove && epsilon <= -self.add_supremum => {
                Ok(complement(all_of_it(epsilon)))
            }
            Route::Contour(contour) => {
                let delta = self.with_lost(contour.average(epsilon, order, false)?, epsilon, order);
                if delta.value < 0.9 {
                    return Ok(delta);
                }
                // Close to 1 the rest is the number with the digits.
                let Ok(rest) = contour.average(epsilon, order, true) else { return Ok(delta) };
                let other = self.with_lost(complement(rest), epsilon, order);
                Ok(if other.width() < delta.width() { other } else { delta })
            }
        }
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        match &self.route {
            Route::Closed(pair) => pair.one_minus_delta(epsilon, order),
            Route::Single(pair) => pair.one_minus_delta(epsilon, order),
            Route::Contour(_) if order == Order::Add && epsilon >= self.add_supremum => {
                Ok(Interval::exact(1.0))
            }
            Route::Contour(_) if order == Order::Remove && epsilon <= -self.add_supremum => {
                Ok(all_of_it(epsilon))
            }
            Route::Contour(contour) => {
                // A small delta needs far fewer nodes than the rest of it, which sits between two
                // poles a unit apart, and loses nothing: its error is a part of delta.
                if likely_mu(contour.sum.parts()) < 0.5
                    && let Ok(delta) = contour.average(epsilon, order, false)
                    && delta.upper < 0.5
                    && delta.width() < 1e-9
                {
                    return Ok(complement(self.with_lost(delta, epsilon, order)));
                }
                Ok(self.with_lost(contour.average(epsilon, order, true)?, epsilon, order))
            }
        }
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        domain::check_delta(delta)?;
        let contour = match &self.route {
            Route::Closed(pair) => return pair.epsilon(delta, order),
            Route::Single(pair) => return pair.epsilon(delta, order),
            Route::Contour(contour) => contour,
        };
        if total_variation_bound(contour.sum.parts()) <= delta {
            return Ok(Interval::exact(0.0));
        }
        let solved = match order {
            Order::Remove => contour.sum.threshold(Zone::Above, 1.0, delta).map(interval),
            Order::Add => contour.sum.threshold(Zone::Below, 0.0, delta).map(|ends| Interval {
                lower: -ends.upper,
                value: -ends.value,
                upper: -ends.lower,
            }),
        };
        let solved = match solved {
            Ok(solved) => solved,
            Err(obstacle) => contour
                .bracket(refusal(obstacle, Quantity::Epsilon), |kept| {
                    kept.lattice().epsilon(delta, order)
                })
                .or_else(|_| crossing(|epsilon| contour.average(epsilon, order, false), delta))?,
        };
        Ok(solved.map_increasing(|x| {
            x.max(0.0).min(if order == Order::Add { self.add_supremum } else { f64::INFINITY })
        }))
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        match &self.route {
            Route::Closed(pair) => return pair.tpr(fpr, order),
            Route::Single(pair) => return pair.tpr(fpr, order),
            Route::Contour(_) => {}
        }
        if fpr <= 0.0 || fpr >= 1.0 {
            // Every set that has probability zero under one distribution has it under the other.
            return Ok(Interval::exact(if fpr <= 0.0 { 0.0 } else { 1.0 }));
        }
        let found = self.slopes(fpr, order).and_then(|Slopes { low, high, guess }| {
            let power = |log_slope: f64| {
                let slope = exp(log_slope);
                let line = |delta: f64| delta + slope * fpr;
                Ok(with_rounding(self.delta(log_slope, order)?.map_increasing(line)))
            };
            let (_, tpr) = convex::minimise_from(power, low, high, guess)?;
            // Flatter lines: delta(ln k) + k fpr >= 1 - k (1 - fpr).
            let flatter = (1.0 - low * (1.0 - fpr)) - 4.0 * f64::EPSILON;
            let tpr = Interval { lower: tpr.lower.min(flatter), ..tpr }.clamp(fpr, 1.0);
            // Near 1 the digits are in what is missed.
            if tpr.upper > 0.9
                && let Ok(missed) = self.fnr(fpr, order)
            {
                return Ok(complement(missed).clamp(fpr, 1.0));
            }
            Ok(tpr)
        });
        found.or_else(|refusal| {
            // No test gains more than the total variation, nor more than the largest loss allows.
            let most = match order {
                Order::Remove => f64::INFINITY,
                Order::Add => exp(self.add_supremum) * fpr,
            }
            .min(fpr + self.most_total_variation());
            let wide = Interval::new(fpr, fpr, (most * (1.0 + 2.0 * f64::EPSILON)).min(1.0));
            if wide.width() <= 0.5 * wide.upper { Ok(wide) } else { Err(refusal) }
        })
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        match &self.route {
            Route::Closed(pair) => return pair.fnr(fpr, order),
            Route::Single(pair) => return pair.fnr(fpr, order),
            Route::Contour(_) => {}
        }
        if fpr <= 0.0 || fpr >= 1.0 {
            return Ok(Interval::exact(if fpr <= 0.0 { 1.0 } else { 0.0 }));
        }
        let found = self.slopes(fpr, order).and_then(|Slopes { low, high, guess }| {
            let line = |log_slope: f64| {
                let slope = exp(log_slope);
                let rest = self.one_minus_delta(log_slope, order)?;
                let slack = 4.0 * f64::EPSILON * (slope * fpr + rest.upper);
                let line = rest.map_decreasing(|rest| slope * fpr - rest);
                Ok(Interval { lower: line.lower - slack, upper: line.upper + slack, ..line })
            };
            let (_, negative) = convex::minimise_from(line, low, high, guess)?;
            let fnr = negative.map_decreasing(|x| -x);
            // Flatter lines: 1 - delta(ln k) - k fpr <= k (1 - fpr).
            let flatter = low * (1.0 - fpr) * (1.0 + 4.0 * f64::EPSILON);
            let fnr = Interval { upper: fnr.upper.max(flatter), ..fnr };
            Ok(fnr.clamp(0.0, most_missed(fpr)))
        });
        found.or_else(|refusal| {
            let least = (1.0 - fpr - self.most_total_variation() - 4.0 * f64::EPSILON).max(0.0);
            let wide = Interval::new(least, 1.0 - fpr, most_missed(fpr));
            if wide.width() <= 0.5 * wide.upper { Ok(wide) } else { Err(refusal) }
        })
    }
}

impl Session {
    /// The enclosure with what components that are not listed may add or take. The epsilons of the
    /// domain's deltas do not see them: they are below 1e-260, and those above 1e-100.
    fn with_lost(&self, ends: Interval, epsilon: f64, order: Order) -> Interval {
        let Route::Contour(contour) = &self.route else { return ends };
        let of = |part: &Part| lost(part.times * part.pair.left_out(), &part.pair, epsilon, order);
        let lost: f64 = contour.sum.parts().iter().map(of).sum();
        if lost == 0.0 {
            return ends;
        }
        Interval { lower: ends.lower - lost, upper: ends.upper + lost, ..ends }.clamp(0.0, 1.0)
    }

    /// No test gains more than this.
    fn most_total_variation(&self) -> f64 {
        match &self.route {
            Route::Contour(contour) => total_variation_bound(contour.sum.parts()).min(1.0),
            _ => 1.0,
        }
    }

    /// Slopes e^epsilon between which the supporting line at `fpr` is looked for: steeper lines
    /// than (delta(0) + fpr)/fpr and flatter ones than its mirror are worse than slope 1.
    fn slopes(&self, fpr: f64, order: Order) -> Result<Slopes, AccountingError> {
        let advantage = self.delta(0.0, order)?;
        let rest = self.one_minus_delta(0.0, order)?;
        let guess = Guess::gaussian(advantage.value, rest.value, fpr);
        // Where slope 1 says nothing about flatter lines, the search ends far below the guess; what
        // lies beyond is bounded by its caller.
        let end = (1e-9 * guess.at).clamp(1e-250, 1e-6);
        Ok(Slopes {
            low: ((rest.lower - fpr) / (1.0 - fpr)).max(end) * 0.999,
            high: (advantage.upper + fpr) / fpr * 1.001,
            guess,
        })
    }
}

/// 1 - delta(epsilon) where no loss is below epsilon: all of e^epsilon.
fn all_of_it(epsilon: f64) -> Interval {
    let whole = exp(epsilon);
    // What underflows is not 0.
    let slip = 4.0 * f64::EPSILON * whole + f64::MIN_POSITIVE;
    Interval { lower: whole - slip, value: whole, upper: whole + slip }.clamp(0.0, 1.0)
}

/// Where the slope of the supporting line lies.
struct Slopes {
    low: f64,
    high: f64,
    guess: Guess,
}

/// Ends moved apart by the rounding of a sum: two of the same width say nothing of a slope otherwise.
fn with_rounding(interval: Interval) -> Interval {
    let Interval { lower, value, upper } = interval;
    // Three roundings: of an exponential, a product and a sum of positive numbers.
    let slip = |x: f64| 4.0 * f64::EPSILON * x.abs();
    Interval { lower: lower - slip(lower), value, upper: upper + slip(upper) }
}

fn interval(ends: Ends) -> Interval {
    Interval { lower: ends.lower, value: ends.value, upper: ends.upper }
}

/// Phases with the same noise and rate are one; order does not matter to composition.
fn merged(phases: &[Phase]) -> Vec<Phase> {
    let mut out: Vec<Phase> = Vec::new();
    for phase in phases {
        match out.iter_mut().find(|known| {
            known.noise_multiplier == phase.noise_multiplier
                && known.sample_rate == phase.sample_rate
        }) {
            Some(known) => known.steps += phase.steps,
            None => out.push(*phase),
        }
    }
    out
}

fn step(phase: &Phase, run: &Run) -> MixtureRatio {
    let (binomial, error) = binomial(run.group_size(), phase.sample_rate);
    let shifts = |sign: f64| -> Vec<Component> {
        let records = u64::from(run.group_size());
        if phase.sample_rate == 1.0 {
            return vec![Component { weight: 1.0, centre: sign * records as f64 }];
        }
        if records == 1 {
            return vec![Component { weight: phase.sample_rate, centre: sign }];
        }
        (1u32..)
            .zip(&binomial[1..])
            .map(|(j, &weight)| Component { weight, centre: sign * f64::from(j) })
            .filter(|component| component.weight > LIGHTEST)
            .collect()
    };
    let denominator = match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => Vec::new(),
        Adjacency::Substitute => shifts(-1.0),
    };
    let step = MixtureRatio::new(phase.noise_multiplier, shifts(1.0), denominator);
    if run.group_size() > 1 && phase.sample_rate < 1.0 {
        let log_unused = f64::from(run.group_size()) * ln_1p(-phase.sample_rate);
        // What is not listed changes delta by no more than its weight.
        let light = binomial[1..].iter().filter(|weight| **weight <= LIGHTEST);
        let left_out: f64 = light.map(|weight| 1.01 * weight + f64::MIN_POSITIVE).sum();
        step.with_log_rest(log_unused).with_weight_error(error).with_left_out(left_out)
    } else {
        step
    }
}

/// The probabilities of 0 to `trials` successes at a rate below 1, and a bound on their relative
/// error: from the end that is at least 2^-trials, each from the one before with five roundings.
fn binomial(trials: u32, rate: f64) -> (Vec<f64>, f64) {
    let (count, rest) = (f64::from(trials), 1.0 - rate);
    let few = rate <= 0.5;
    let (log_first, odds) = if few {
        (count * ln_1p(-rate), rate / rest)
    } else {
        // What is left of 1 is exact here.
        (count * ln(rate), rest / rate)
    };
    let mut weights = Vec::with_capacity(trials as usize + 1);
    let mut weight = exp(log_first);
    for j in 0..=trials {
        weights.push(weight);
        weight *= f64::from(trials - j) / f64::from(j + 1) * odds;
    }
    if !few {
        weights.reverse();
    }
    (weights, f64::EPSILON * (3.0 + 3.0 * count + 2.0 * log_first.abs()))
}

/// Lighter components than this are left out.
const LIGHTEST: f64 = 1e-280;
/// Probability that a step uses no record of a group.
const LEAST_UNUSED: f64 = 1e-279;

fn check_domain(run: &Run) -> Result<(), AccountingError> {
    domain::check_run(run)?;
    for phase in run.phases() {
        // Where that is nothing in double precision, so is all that bounds the loss of adding.
        let unused = f64::from(run.group_size()) * ln_1p(-phase.sample_rate);
        if phase.sample_rate < 1.0 && unused < ln(LEAST_UNUSED) {
            return Err(AccountingError::outside_domain(format!(
                "with a sample rate of {} a step uses none of {} records with probability e^{unused:.0}, \
                 below {LEAST_UNUSED:e}, the smallest for which composition is certified",
                phase.sample_rate,
                run.group_size()
            )));
        }
    }
    Ok(())
}

fn check_epsilon(epsilon: f64) -> Result<(), AccountingError> {
    if epsilon.is_finite() {
        return Ok(());
    }
    Err(AccountingError::invalid(format!("epsilon {epsilon} is not a finite number")))
}

/// The central-limit mu of the whole: good enough to choose a route by.
fn likely_mu(parts: &[Part]) -> f64 {
    let square = |part: &Part| {
        let scale2 = part.pair.scale() * part.pair.scale();
        let all = || {
            let numerator = part.pair.numerator().iter().map(|a| (a.weight, a.centre));
            let denominator = part.pair.denominator().iter().map(|b| (-b.weight, b.centre));
            numerator.chain(denominator)
        };
        let pairs = all().flat_map(|a| all().map(move |b| (a, b)));
        let kernel: f64 = pairs.map(|(a, b)| a.0 * b.0 * exp_m1(a.1 * b.1 / scale2)).sum();
        part.times * kernel
    };
    parts.iter().map(square).sum::<f64>().sqrt()
}

/// Total variation is at most half the root of the chi-square divergence, and 1 + chi-square is
/// multiplicative: a closed form for one-sided pairs.
fn total_variation_bound(parts: &[Part]) -> f64 {
    let log_square: f64 = parts
        .iter()
        .map(|part| {
            if !part.pair.one_sided() {
                return f64::INFINITY;
            }
            let scale2 = part.pair.scale() * part.pair.scale();
            let components = part.pair.numerator();
            let chi: f64 = components
                .iter()
                .flat_map(|a| components.iter().map(move |b| (a, b)))
                .map(|(a, b)| a.weight * b.weight * exp_m1(a.centre * b.centre / scale2))
                .sum();
            part.times * ln_1p(chi)
        })
        .sum();
    let chi_square = 0.5 * exp_m1(log_square).sqrt();
    // Nor can it exceed the probability that the record is ever used.
    let log_unused: f64 = parts
        .iter()
        .map(|part| {
            part.times * if part.pair.one_sided() { part.pair.infimum() } else { f64::NEG_INFINITY }
        })
        .sum();
    chi_square.min(-exp_m1(log_unused)) * (1.0 + 1e-12)
}
