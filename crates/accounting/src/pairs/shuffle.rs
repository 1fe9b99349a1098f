//! A published lower bound for shuffled batches, to show beside the Poisson number.
//!
//! One epoch of S batches, the record in exactly one of them (Chua et al. 2024, "How private are
//! DP-SGD implementations?"): if all other gradients point the other way, the record moves one
//! of S coordinates of N(0, sigma^2) noise by 2, and by 1 if it is zeroed out. The event "some
//! coordinate exceeds C" has probability p_m(C) = 1 - Phi((C-m)/sigma) Phi(C/sigma)^{S-1}, so
//! delta >= p_2(C) - e^eps p_1(C) for every C, and, with the complement, delta >=
//! (1 - p_1(C)) - e^eps (1 - p_2(C)) in the other order.
//!
//! Several epochs, each freshly shuffled: the number of epochs with the event is Bin(E, p_m(C)),
//! a post-processing of what the attacker sees, so the hockey-stick divergence of the two
//! binomials is a lower bound too (one epoch: the published bound). Everything is a lower bound
//! for this mechanism, not an estimate of it; the truth may be larger. It can exceed the
//! Poisson epsilon, which is the point. Cost: about a millisecond for one epoch.

use super::Order;
use super::ends::{check_epsilon, check_probability};
use crate::AccountingError;
use numerics::elementary::{exp, ln};
use numerics::special::{Binomial, log_add_exp, log_normal_cdf, log1mexp};
use vocabulary::Interval;

/// Lower bounds on the leakage of shuffled batches; see [`shuffle_lower_bound`] and
/// [`crate::shuffling`].
#[derive(Clone, Copy, Debug)]
pub struct ShuffleLowerBound {
    /// How far the record moves its coordinate when it is there, and when it is not.
    moves: (f64, f64),
    noise_multiplier: f64,
    steps_per_epoch: u64,
    epochs: u64,
    /// One order of the pair; without it the better one.
    order: Option<Order>,
}

/// The lower bound for `epochs` epochs of `steps_per_epoch` shuffled batches.
///
/// ```
/// use accounting::pairs::shuffle_lower_bound;
/// let shuffled = shuffle_lower_bound(0.4, 1000, 1)?;
/// assert!(shuffled.epsilon(1e-5)?.lower > 10.0);
/// # Ok::<(), accounting::AccountingError>(())
/// ```
///
/// # Errors
/// `InvalidInput` unless the noise is a positive number and both counts are at least 1;
/// `OutsideDomain` for more than 100,000 epochs.
pub fn shuffle_lower_bound(
    noise_multiplier: f64,
    steps_per_epoch: u64,
    epochs: u64,
) -> Result<ShuffleLowerBound, AccountingError> {
    if !(noise_multiplier > 0.0 && noise_multiplier.is_finite()) {
        return Err(AccountingError::invalid(format!(
            "noise multiplier {noise_multiplier} is not a finite number above 0"
        )));
    }
    if steps_per_epoch == 0 || epochs == 0 {
        return Err(AccountingError::invalid(format!(
            "{steps_per_epoch} steps per epoch and {epochs} epochs: both must be at least 1"
        )));
    }
    if epochs > 100_000 {
        return Err(AccountingError::outside_domain(format!(
            "the lower bound for shuffling is summed over epochs, and {epochs} are too many"
        )));
    }
    Ok(ShuffleLowerBound {
        moves: (2.0, 1.0),
        noise_multiplier,
        steps_per_epoch,
        epochs,
        order: None,
    })
}

impl ShuffleLowerBound {
    /// The bound of one order alone.
    pub(crate) fn in_order(self, order: Order) -> Self {
        Self { order: Some(order), ..self }
    }

    /// The same game with other moves.
    pub(crate) fn with_moves(self, with: f64, without: f64) -> Self {
        Self { moves: (with, without), ..self }
    }
}

/// ln p and ln(1 - p) of the event "some coordinate exceeds C".
#[derive(Clone, Copy)]
struct Event {
    log_out: f64,
    log_in: f64,
}

impl ShuffleLowerBound {
    fn event(&self, cut: f64, moved: f64) -> Event {
        let sigma = self.noise_multiplier;
        let others = (self.steps_per_epoch - 1) as f64;
        let (own, other) = ((cut - moved) / sigma, cut / sigma);
        let log_in = log_normal_cdf(own) + others * log_normal_cdf(other);
        // Where 1 - p loses p, the sum of all coordinates' probabilities: too large by no more than its square.
        let log_out = if log_in > -1e-200 {
            log_add_exp(log_normal_cdf(-own), ln(others) + log_normal_cdf(-other))
        } else {
            log1mexp(log_in)
        };
        Event { log_out, log_in }
    }

    /// delta at one cut, the better of both orders, rounded down.
    fn at_cut(&self, epsilon: f64, cut: f64) -> f64 {
        let (far, near) = (self.event(cut, self.moves.0), self.event(cut, self.moves.1));
        if self.epochs == 1 {
            let forward = surely(far.log_out, epsilon + near.log_out);
            let backward = surely(near.log_in, epsilon + far.log_in);
            return self.either(|| forward, || backward);
        }
        self.either(
            || self.binomials(epsilon, far.log_out, near.log_out),
            || self.binomials(epsilon, near.log_in, far.log_in),
        )
    }

    fn either(&self, remove: impl Fn() -> f64, add: impl Fn() -> f64) -> f64 {
        match self.order {
            Some(Order::Remove) => remove(),
            Some(Order::Add) => add(),
            None => remove().max(add()),
        }
    }

    /// sup over j of P(Bin(E, p) >= j) - e^eps P(Bin(E, p') >= j), p > p'.
    fn binomials(&self, epsilon: f64, log_p: f64, log_less: f64) -> f64 {
        crate::patience::look();
        let law = |log: f64| Binomial::new(self.epochs, exp(log));
        let (Some(more), Some(less)) = (law(log_p), law(log_less)) else { return 0.0 };
        // The likelihood ratio rises with j: sum from the top while it exceeds e^eps.
        let mut sum = 0.0;
        // What a probability's rounding does to the logarithm of what it leaves of 1.
        let rest = |law: &Binomial| 1e-13 / (1.0 - law.rate());
        let rests = rest(&more) + rest(&less);
        for j in (0..=self.last_that_counts(&more, exp(log_p))).rev() {
            let k = j as f64;
            let ((a, ea), (b, eb)) = (more.log_pmf(k), less.log_pmf(k));
            // The probabilities themselves carry a relative error of about 1e-14 per use.
            let slack = 1e-13 * (1.0 + k) + rests * (self.epochs as f64 - k) + ea + eb;
            if a - b <= epsilon {
                break;
            }
            sum += (exp(a - slack) - exp(epsilon + b + slack)).max(0.0);
        }
        sum * (1.0 - 1e-12)
    }

    /// A number of epochs beyond which probabilities underflow: they fall from the mean on.
    fn last_that_counts(&self, law: &Binomial, p: f64) -> u64 {
        let mean = (self.epochs as f64 * p).ceil() as u64 + 1;
        let (mut low, mut high) = (mean.min(self.epochs), self.epochs);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if law.log_pmf(middle as f64).0 < -800.0 {
                high = middle;
            } else {
                low = middle;
            }
        }
        high
    }

    /// A lower bound on delta at epsilon >= 0; upper end 1.
    ///
    /// # Errors
    /// `InvalidInput` if epsilon is not a number.
    pub fn delta(&self, epsilon: f64) -> Result<Interval, AccountingError> {
        check_epsilon(epsilon)?;
        let (lower, _) = self.best(epsilon.max(0.0), None);
        Ok(Interval { lower, value: lower, upper: 1.0 })
    }

    /// A lower bound on epsilon at delta; upper end infinite.
    ///
    /// # Errors
    /// `InvalidInput` if delta is not in [0, 1].
    pub fn epsilon(&self, delta: f64) -> Result<Interval, AccountingError> {
        check_probability("delta", delta)?;
        // The best cut moves little between neighbouring epsilons; each search starts at the last.
        let mut cut = None;
        let mut exceeds = |epsilon: f64| {
            let (mut found, mut at) = self.best(epsilon, cut);
            if found <= delta && cut.is_some() {
                (found, at) = self.best(epsilon, None);
            }
            cut = (found > 0.0).then_some(at);
            found > delta
        };
        let mut low = 0.0;
        if exceeds(low) {
            let mut high = 1.0;
            while exceeds(high) && high < 1e8 {
                low = high;
                high *= 2.0;
            }
            while high - low > 1e-9 * high {
                let middle = 0.5 * (low + high);
                if exceeds(middle) {
                    low = middle;
                } else {
                    high = middle;
                }
            }
        }
        Ok(Interval { lower: low, value: low, upper: f64::INFINITY })
    }

    /// The largest delta over cuts and its cut: a scan (unless a start is given) and a refinement.
    /// Every cut is a valid bound, so a poor search costs tightness only.
    fn best(&self, epsilon: f64, start: Option<f64>) -> (f64, f64) {
        let sigma = self.noise_multiplier;
        // Where the event decides: from the noise's bulk up to where e^eps is reached.
        let (low, high) = (-40.0 * sigma, 2.0 + 40.0 * sigma + sigma * sigma * (epsilon + 1.0));
        let points = if self.epochs == 1 { 400 } else { 100 };
        let spacing = (high - low) / f64::from(points);
        let mut best = (0.0, low);
        let consider = |cut: f64, best: &mut (f64, f64)| {
            let found = self.at_cut(epsilon, cut);
            if found > best.0 {
                *best = (found, cut);
            }
        };
        if let Some(cut) = start {
            consider(cut, &mut best);
        }
        if best.0 == 0.0 {
            for i in 0..=points {
                consider(low + spacing * f64::from(i), &mut best);
            }
        }
        let mut width = 2.0 * spacing;
        for _ in 0..18 {
            width *= 0.6;
            for cut in [best.1 - width, best.1 + width] {
                consider(cut, &mut best);
            }
        }
        best
    }
}

/// e^a - e^b, rounded down, not below 0.
fn surely(a: f64, b: f64) -> f64 {
    if a <= b {
        return 0.0;
    }
    let slack = 1e-13 * (1.0 + a.abs() + b.abs().min(1e6));
    let (more, less) = (exp(a - slack), exp(b + slack));
    (more - less).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pair;
    use crate::pairs::{BinomialGaussian, Gaussian};
    use vocabulary::Run;

    /// One batch an epoch: the pair is N(2) against N(1), a Gaussian with mu = 1/sigma, and the
    /// half-line is the optimal event.
    #[test]
    fn one_batch_is_the_gaussian_pair() {
        let (sigma, epsilon) = (0.7, 2.0);
        let exact = Gaussian::new(1.0 / sigma).unwrap().delta(epsilon, Order::Remove).unwrap();
        let got = shuffle_lower_bound(sigma, 1, 1).unwrap().delta(epsilon).unwrap().lower;
        assert!(got <= exact.upper && got > exact.value * (1.0 - 1e-6), "{got} {exact:?}");
        let epsilon_back =
            shuffle_lower_bound(sigma, 1, 1).unwrap().epsilon(exact.value).unwrap().lower;
        assert!(epsilon_back <= epsilon && epsilon_back > epsilon - 1e-5, "{epsilon_back}");
    }

    /// More epochs leak more, and counting epochs of a one-batch game is not better than all of it.
    #[test]
    fn epochs_add_and_stay_below_the_whole_game() {
        let (sigma, epsilon) = (1.0, 1.0);
        let mut before = 0.0;
        for epochs in [1, 2, 5, 20] {
            let got = shuffle_lower_bound(sigma, 1, epochs).unwrap().delta(epsilon).unwrap().lower;
            let mu = (epochs as f64).sqrt() / sigma;
            let whole = Gaussian::new(mu).unwrap().delta(epsilon, Order::Remove).unwrap().upper;
            assert!(got >= before * 0.999 && got <= whole, "{epochs}: {got} {whole}");
            before = got;
        }
    }

    /// The mismatch the bound is shown for: with little noise, shuffling leaks far more than the
    /// Poisson number would say (here even than the last-iterate heuristic's standard cousin).
    #[test]
    fn shuffling_can_exceed_poisson() {
        let shuffled = shuffle_lower_bound(0.4, 100, 1).unwrap().epsilon(1e-5).unwrap().lower;
        let run = Run::builder().phase(0.4, 0.01, 100).build().unwrap();
        let poisson = crate::pairs::Composed::for_run(&run).unwrap();
        let last =
            BinomialGaussian::for_run(&run).unwrap().epsilon(1e-5, Order::Remove).unwrap().upper;
        let exact = poisson.epsilon(1e-5, Order::Remove).unwrap().upper;
        assert!(last < exact && exact < shuffled, "{last} {exact} {shuffled}");
    }

    /// So little noise that the event has no probability in double precision without the record. All epochs with one
    /// order are one epoch at noise sigma/sqrt(E); its bound was without end.
    #[test]
    fn events_that_underflow_are_no_impossible_ones() {
        for (sigma, batches) in [(0.5 / 880f64.sqrt(), 3), (0.02, 1), (0.05, 100), (0.01, 100_000)]
        {
            let whole = Gaussian::new(1.0 / sigma).unwrap();
            let found = shuffle_lower_bound(sigma, batches, 1).unwrap();
            for (order, delta) in [Order::Remove, Order::Add].map(|order| (order, 1e-8)) {
                let most = whole.epsilon(delta, order).unwrap().upper;
                let least = found.in_order(order).epsilon(delta).unwrap().lower;
                assert!(least <= most, "{sigma} {batches} {order:?}: {least} {most}");
                assert!(
                    order == Order::Add || least > 0.9 * most,
                    "{sigma} {batches}: {least} {most}"
                );
            }
        }
    }

    #[test]
    fn bad_questions_are_refused() {
        assert!(shuffle_lower_bound(-1.0, 10, 1).is_err());
        assert!(shuffle_lower_bound(1.0, 0, 1).is_err());
        assert!(shuffle_lower_bound(1.0, 1, 1).unwrap().epsilon(2.0).is_err());
    }
}
