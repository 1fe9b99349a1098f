//! The last-iterate pair of Steinke et al. ("The Last Iterate Advantage", Theorem 1): for linear
//! losses the final model is the sum of the noise and of the record's contributions, so that
//! P = Bin(T, q) + N(0, T sigma^2) and Q = N(0, T sigma^2). Heuristic for other losses.
//!
//! k records (a group) that all push in one direction make Bin(kT, q). Several phases add their
//! counts and their variances; that assumes one learning rate on the clipped sum. The
//! likelihood ratio increases in x, so all optimal tests are thresholds; everything is
//! parametrised by the threshold y (see `sums`). Ends are certified: values are sums of positive
//! terms with running error bounds, and roots are enclosed between points of certain side.
//! Cost: O(sqrt(Tq)) per evaluation, about eight evaluations per answer.

mod bracket;
mod check;
mod coarse;
mod law;
mod small_loss;
mod stride;
mod sums;
mod tails;

use self::law::CountLaw;
use self::sums::{Log, Sums};
use super::ends::{
    TINY, check_epsilon, check_probability, delta_at_negative, not_enclosed,
    one_minus_delta_at_negative, probability_from_log,
};
use super::{Gaussian, Order, Pair, ProfilePoint};
use crate::AccountingError;
use crate::pairs::by_coins;
use numerics::elementary::{ln, powi};
use numerics::roots::{Enclosure, Noisy, enclose};
use numerics::special::{ROUND, inverse_normal_sf, normal_sf};
use vocabulary::{Adjacency, Interval, NotCovered, Run};

/// Counts with a larger variance are refused: a single sum would take seconds.
const LARGEST_VARIANCE: f64 = 1e11;

/// Bin(T, q) + N(0, T sigma^2) against N(0, T sigma^2).
///
/// ```
/// use accounting::{Order, Pair, pairs::BinomialGaussian};
/// use vocabulary::Run;
/// let run = Run::builder().phase(1.0, 0.1, 3).build().unwrap();
/// let epsilon = BinomialGaussian::for_run(&run)?.epsilon(1e-6, Order::Remove)?;
/// assert!((epsilon.value - 2.222410709182349786).abs() < 1e-13);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BinomialGaussian {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Every record in every batch: the count is certain.
    Certain(Gaussian),
    Sampled(Box<Sums>),
}

impl BinomialGaussian {
    /// The last-iterate pair of a run.
    ///
    /// # Errors
    /// `Unsupported` for substitution and for sampling other than Poisson and full batches;
    /// `OutsideDomain` where the count's variance is above 1e11.
    pub fn for_run(run: &Run) -> Result<Self, AccountingError> {
        supports_last_iterate(run)?;
        let group = u64::from(run.group_size());
        let stretches = run.phases().iter().map(|p| Stretch {
            sample_rate: p.sample_rate,
            noise_multiplier: p.noise_multiplier,
            counted_steps: p.steps,
            noisy_steps: p.steps,
        });
        Self::of_stretches(stretches, group)
    }

    /// The pair whose count has `counted_steps` of each stretch and whose noise has `noisy_steps`.
    pub(super) fn of_stretches(
        stretches: impl IntoIterator<Item = Stretch>,
        group: u64,
    ) -> Result<Self, AccountingError> {
        let (mut variance, mut roundings) = (0.0, 4.0);
        let mut certain = 0u64;
        let mut parts: Vec<(f64, u64)> = Vec::new();
        for stretch in stretches {
            variance +=
                stretch.noisy_steps as f64 * stretch.noise_multiplier * stretch.noise_multiplier;
            roundings += 1.0;
            let steps = stretch.counted_steps;
            let draws = steps.checked_mul(group).filter(|n| *n <= 1 << 50).ok_or_else(|| {
                AccountingError::outside_domain(format!(
                    "{steps} steps are more than can be counted"
                ))
            })?;
            if stretch.sample_rate == 1.0 {
                certain += draws;
            } else if let Some(part) = parts.iter_mut().find(|part| part.0 == stretch.sample_rate) {
                part.1 += draws;
            } else {
                parts.push((stretch.sample_rate, draws));
            }
        }
        if !(variance.is_finite() && variance > 1e-12) {
            return Err(AccountingError::outside_domain(format!(
                "the noise of the whole run has variance {variance}, which is beyond what can be computed"
            )));
        }
        let scale = variance.sqrt();
        if parts.is_empty() {
            // mu = kT / (sigma sqrt T)
            let mu = certain as f64 / scale;
            return Ok(Self { kind: Kind::Certain(Gaussian::computed(mu, ROUND * roundings)?) });
        }
        let law = CountLaw::new(certain, &parts)?;
        if law.variance() > LARGEST_VARIANCE {
            return Err(AccountingError::outside_domain(format!(
                "the number of times the record is used has variance {:e}, above {LARGEST_VARIANCE:e}; \
                 sums over it would take too long",
                law.variance()
            )));
        }
        Ok(Self {
            kind: Kind::Sampled(Box::new(Sums { law, variance, scale, longest: f64::INFINITY })),
        })
    }
}

impl BinomialGaussian {
    /// An upper bound on the power of the test of size `fpr`, where one sum gives it.
    pub(super) fn most_power(&self, fpr: f64, order: Order) -> Option<f64> {
        match (&self.kind, order) {
            (Kind::Sampled(sums), Order::Remove) if fpr > 0.0 && fpr < 1.0 => {
                let y = sums.scale * inverse_normal_sf(fpr);
                let (log, _) = sums.tail(y - quantile_slip(y), true);
                Some(probability_from_log(log.value, log.error).upper)
            }
            _ => None,
        }
    }
}

/// Where a delta cannot be certified and is below this, its upper end is the answer.
const NOTHING: f64 = 1e-20;

/// How far a quantile of the noise may be off.
fn quantile_slip(y: f64) -> f64 {
    4e-15 * y.abs() + f64::MIN_POSITIVE
}

/// Steps of one rate and noise, counted apart for the record's uses and for the noise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch {
    pub sample_rate: f64,
    pub noise_multiplier: f64,
    pub counted_steps: u64,
    pub noisy_steps: u64,
}

/// Whether the last-iterate theorem covers this run.
///
/// # Errors
/// `Unsupported` with the reason.
pub fn supports_last_iterate(run: &Run) -> Result<(), AccountingError> {
    by_coins(run, "the last-iterate theorem holds")?;
    match run.adjacency() {
        Adjacency::AddRemove | Adjacency::ZeroOut => Ok(()),
        found @ Adjacency::Substitute => Err(NotCovered::Adjacency {
            found,
            covered: &[Adjacency::AddRemove, Adjacency::ZeroOut],
            why: "the last-iterate theorem compares a run with and without the record; for a replaced record both \
                  distributions are mixtures and no dominating pair is proven",
        }
        .into()),
    }
}

impl Sums {
    /// f(y) with relative accuracy near 0.
    fn accurate_loss(&self, y: f64, loss: Log) -> Log {
        if loss.value.abs() < 0.5 { self.small_loss(y).unwrap_or(loss) } else { loss }
    }

    /// z with delta_mu(z) about `delta` for the Gaussian pair; a starting point only.
    fn gaussian_threshold(mu: f64, delta: f64) -> f64 {
        let mu = mu.clamp(1e-12, 1e7);
        match Gaussian::new(mu).and_then(|pair| pair.epsilon(delta, Order::Remove)) {
            Ok(epsilon) => epsilon.value / mu - 0.5 * mu,
            Err(_) => 0.0,
        }
    }

    /// Solves delta(y) = delta and returns epsilon = |f(y)| there.
    fn solve_epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        let small = delta <= 0.5;
        let target = if small { ln(delta) } else { ln(1.0 - delta) };
        let rounding = 2.0 * ROUND * target.abs();
        // Orientation: an increasing function of y.
        let sign = if small == (order == Order::Add) { 1.0 } else { -1.0 };
        let mut seen: Vec<(f64, Log)> = Vec::with_capacity(16);
        let point = |y: f64| -> (Log, f64, Option<Log>) {
            match (order, small) {
                (Order::Remove, true) => {
                    let p = self.remove(y);
                    (p.delta, p.delta_slope, Some(p.loss))
                }
                (Order::Add, true) => {
                    let p = self.add(y);
                    (p.delta, p.delta_slope, Some(p.loss))
                }
                (Order::Remove, false) => {
                    let (value, slope) = self.remove_complement(y);
                    (value, slope, None)
                }
                (Order::Add, false) => {
                    let (value, slope) = self.add_complement(y);
                    (value, slope, None)
                }
            }
        };
        let function = |y: f64| {
            // With the record first, f(y) <= 0 for y <= 1/2: there epsilon is 0 and only the
            // side matters, so the function is continued by its tangent.
            let at = if order == Order::Remove { y.max(0.5) } else { y };
            let (log, slope, loss) = point(at);
            if let Some(loss) = loss {
                seen.push((y, loss));
            }
            let value = sign * log.value + slope * (y - at);
            Ok::<_, AccountingError>(Noisy { value, error: log.error + rounding, slope })
        };
        let spread = (self.variance + self.law.variance()).sqrt();
        let guess = match order {
            Order::Remove => {
                self.law.mean() + spread * Self::gaussian_threshold(self.law.mean() / spread, delta)
            }
            Order::Add => {
                -self.scale * Self::gaussian_threshold(self.law.mean() / self.scale, delta)
            }
        };
        let guess = if small { self.coarse_threshold(guess, target, order) } else { guess };
        let Enclosure { below, middle, above } =
            enclose(function, sign * target, guess, self.scale)?
                .ok_or_else(|| not_enclosed(format!("last-iterate epsilon at delta {delta:e}")))?;
        let loss_at = |y: f64| {
            if order == Order::Remove && y <= 0.5 {
                return Log { value: 0.0, error: 0.0 };
            }
            match seen.iter().rev().find(|entry| entry.0 == y) {
                Some(entry) => self.accurate_loss(y, entry.1),
                None => self.loss(y).0,
            }
        };
        let (low, mid, high) = (loss_at(below), loss_at(middle), loss_at(above));
        if [low, mid, high].iter().any(|loss| (loss.value + loss.error).is_nan()) {
            return Err(not_enclosed(format!("last-iterate epsilon at delta {delta:e}")));
        }
        Ok(match order {
            Order::Remove => Interval::new(
                (low.value - low.error).max(0.0),
                mid.value.max(0.0),
                (high.value + high.error).max(0.0),
            ),
            Order::Add => Interval::new(
                (-high.value - high.error).max(0.0),
                (-mid.value).max(0.0),
                (-low.value + low.error).max(0.0),
            ),
        })
    }

    /// The thresholds around f(y) = epsilon (or -epsilon); `None` if f does not go so low.
    fn threshold(&self, epsilon: f64, order: Order) -> Result<Option<Enclosure>, AccountingError> {
        let target = if order == Order::Remove { epsilon } else { -epsilon };
        let mean = self.law.mean();
        let guess = 0.5 * mean.max(1.0)
            + target.abs().min(700.0) * target.signum() * self.variance / mean.max(1.0);
        let guess = self.coarse_inverse(guess, target);
        enclose(
            |y| {
                let (loss, slope) = self.loss(y);
                Ok(Noisy { value: loss.value, error: loss.error, slope })
            },
            target,
            guess,
            self.scale,
        )
    }

    /// The least log-likelihood ratio, ln P(count = 0).
    fn floor(&self) -> (f64, f64) {
        self.law.log_none()
    }

    fn delta_ends(
        &self,
        epsilon: f64,
        order: Order,
        complement: bool,
    ) -> Result<Interval, AccountingError> {
        let nothing = Interval::exact(if complement { 1.0 } else { 0.0 });
        if epsilon == f64::INFINITY {
            return Ok(nothing);
        }
        if order == Order::Add {
            let (floor, error) = self.floor();
            if epsilon > -floor + error {
                return Ok(nothing);
            }
        }
        let Some(root) = self.threshold(epsilon, order)? else {
            return self.beyond(epsilon, order, complement);
        };
        let at = |y: f64| -> Interval {
            if !complement {
                let point =
                    if order == Order::Remove { self.remove(y.max(0.5)) } else { self.add(y) };
                if point.delta.value < -1.0 {
                    return probability_from_log(point.delta.value, point.delta.error);
                }
            }
            let (rest, _) = match order {
                Order::Remove if y <= 0.5 => self.remove_complement(0.5_f64.max(y)),
                Order::Remove => self.remove_complement(y),
                Order::Add => self.add_complement(y),
            };
            if complement {
                return probability_from_log(rest.value, rest.error);
            }
            if rest.value < -0.7 {
                let rest = probability_from_log(rest.value, rest.error);
                let lower = (1.0 - rest.upper - ROUND).max(0.0);
                return Interval::new(lower, 1.0 - rest.value, (1.0 - rest.lower + ROUND).min(1.0));
            }
            let point = if order == Order::Remove { self.remove(y.max(0.5)) } else { self.add(y) };
            probability_from_log(point.delta.value, point.delta.error)
        };
        let (one, middle, two) = (at(root.below), at(root.middle), at(root.above));
        Ok(Interval::new(one.lower.min(two.lower), middle.value, one.upper.max(two.upper)))
    }

    /// No threshold is certainly behind epsilon: at the end of the range of adding, or where so little is left of
    /// delta that what lies outside of the table of counts weighs more. delta is between 0 and its value at a
    /// threshold certainly before epsilon.
    fn beyond(
        &self,
        epsilon: f64,
        order: Order,
        complement: bool,
    ) -> Result<Interval, AccountingError> {
        let sign = if order == Order::Remove { 1.0 } else { -1.0 };
        let before = |y: f64| {
            let (loss, _) = self.loss(y);
            sign * loss.value + loss.error <= epsilon
        };
        let most_at = |y: f64| {
            let point = if order == Order::Remove { self.remove(y.max(0.5)) } else { self.add(y) };
            probability_from_log(point.delta.value, point.delta.error).upper.max(TINY)
        };
        let most = match order {
            Order::Add => (-90..=90)
                .map(|step| 0.5 * f64::from(step) * self.scale)
                .find(|y| before(*y))
                .map(most_at),
            // The furthest says nothing where what lies outside of the table weighs more than all of delta.
            Order::Remove => {
                let steps = std::iter::successors(Some(80.0 * self.scale), |y| Some(0.97 * y));
                let mut least = None;
                for most in steps.take(400).filter(|y| before(*y)).map(most_at) {
                    match least {
                        Some(known) if known < NOTHING && most >= known => break,
                        Some(known) if most >= known => {}
                        _ => least = Some(most),
                    }
                }
                least
            }
        };
        match most {
            Some(most) if order == Order::Add || most < NOTHING => Ok(if complement {
                Interval::new((1.0 - most - ROUND).max(0.0), 1.0, 1.0)
            } else {
                Interval::new(0.0, if order == Order::Add { 0.0 } else { most }, most)
            }),
            _ => Err(not_enclosed(format!("last-iterate delta at epsilon {epsilon:e}"))),
        }
    }

    /// The power of the test of size `fpr`, or the miss rate.
    fn power(&self, fpr: f64, order: Order, miss: bool) -> Result<Interval, AccountingError> {
        if fpr == 0.0 || fpr == 1.0 {
            return Ok(Interval::exact(if (fpr == 1.0) != miss { 1.0 } else { 0.0 }));
        }
        let ends: [Interval; 3] = match order {
            // Null Q: the threshold is a quantile of the noise.
            Order::Remove => {
                let y = self.scale * inverse_normal_sf(fpr);
                let slip = quantile_slip(y);
                [y - slip, y, y + slip].map(|y| {
                    let (log, _) = self.tail(y, !miss);
                    probability_from_log(log.value, log.error)
                })
            }
            // Null P: the threshold is a quantile of the mixture.
            Order::Add => {
                let lower = fpr <= 0.5;
                let target = if lower { ln(fpr) } else { -ln(1.0 - fpr) };
                let root = enclose(
                    |y| {
                        let (log, slope) = self.tail(y, !lower);
                        let value = if lower { log.value } else { -log.value };
                        Ok::<_, AccountingError>(Noisy {
                            value,
                            error: log.error + 2.0 * ROUND * target.abs(),
                            slope,
                        })
                    },
                    target,
                    self.law.mean()
                        - inverse_normal_sf(fpr) * (self.variance + self.law.variance()).sqrt(),
                    self.scale,
                )?
                .ok_or_else(|| not_enclosed(format!("threshold of the test of size {fpr:e}")))?;
                [root.below, root.middle, root.above].map(|y| {
                    let a = if miss { y / self.scale } else { -y / self.scale };
                    let error = 4.0 * numerics::special::MILLS_ERROR * (1.0 + powi(a.max(0.0), 2));
                    let value = normal_sf(a);
                    if value < TINY {
                        Interval::new(0.0, value, TINY)
                    } else {
                        Interval::new(
                            value * (1.0 - error),
                            value,
                            (value * (1.0 + error)).min(1.0),
                        )
                    }
                })
            }
        };
        let lower = ends[0].lower.min(ends[2].lower);
        let upper = ends[0].upper.max(ends[2].upper);
        Ok(Interval::new(lower, ends[1].value, upper))
    }
}

impl Pair for BinomialGaussian {
    fn delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        match &self.kind {
            Kind::Certain(pair) => pair.delta(epsilon, order),
            Kind::Sampled(_) if epsilon < 0.0 => delta_at_negative(self, epsilon, order),
            Kind::Sampled(sums) => sums.delta_ends(epsilon, order, false),
        }
    }

    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        match &self.kind {
            Kind::Certain(pair) => pair.one_minus_delta(epsilon, order),
            Kind::Sampled(_) if epsilon < 0.0 => one_minus_delta_at_negative(self, epsilon, order),
            Kind::Sampled(sums) => sums.delta_ends(epsilon, order, true),
        }
    }

    fn epsilon(&self, delta: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("delta", delta)?;
        match &self.kind {
            Kind::Certain(pair) => pair.epsilon(delta, order),
            Kind::Sampled(_) if delta >= 1.0 => Ok(Interval::exact(0.0)),
            Kind::Sampled(sums) if delta == 0.0 => Ok(match order {
                Order::Remove => Interval::exact(f64::INFINITY),
                Order::Add => {
                    let (floor, error) = sums.floor();
                    Interval::new(-floor - error, -floor, -floor + error)
                }
            }),
            Kind::Sampled(sums) => sums.solve_epsilon(delta, order),
        }
    }

    fn tpr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        match &self.kind {
            Kind::Certain(pair) => pair.tpr(fpr, order),
            Kind::Sampled(sums) => sums.power(fpr, order, false),
        }
    }

    fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> Option<bool> {
        match &self.kind {
            Kind::Sampled(sums) if epsilon >= 0.0 => Some(sums.is_below(epsilon, order, delta)),
            _ => None,
        }
    }

    fn point_near(&self, epsilon: f64) -> Option<ProfilePoint> {
        match &self.kind {
            Kind::Sampled(sums) => sums.point_near(epsilon),
            Kind::Certain(_) => None,
        }
    }

    fn log_slopes(&self, fpr: f64, order: Order) -> Vec<f64> {
        match (&self.kind, order) {
            (Kind::Certain(pair), _) => pair.log_slopes(fpr, order),
            (Kind::Sampled(sums), Order::Remove) => {
                vec![sums.loss(sums.scale * inverse_normal_sf(fpr)).0.value]
            }
            // The quantile of the mixture, from a few steps of the secant through the normal one.
            (Kind::Sampled(sums), Order::Add) => {
                let spread = (sums.variance + sums.law.variance()).sqrt();
                let mut y = sums.law.mean() - inverse_normal_sf(fpr) * spread;
                for _ in 0..6 {
                    let (log, slope) = sums.tail(y, false);
                    let change = (ln(fpr) - log.value) / slope;
                    y += change.clamp(-4.0 * sums.scale, 4.0 * sums.scale);
                    if change.abs() < 1e-7 * sums.scale {
                        break;
                    }
                }
                vec![-sums.loss(y).0.value]
            }
        }
    }

    fn fnr(&self, fpr: f64, order: Order) -> Result<Interval, AccountingError> {
        check_probability("false positive rate", fpr)?;
        match &self.kind {
            Kind::Certain(pair) => pair.fnr(fpr, order),
            Kind::Sampled(sums) => sums.power(fpr, order, true),
        }
    }
}
