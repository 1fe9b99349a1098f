//! Binomial draws, exact up to rounding, in constant time for any n.
//!
//! n min(p, 1-p) >= 10: transformed rejection with squeeze (Hormann, "The generation of binomial
//! random variates", J. Stat. Comput. Simul. 46, 1993, algorithm BTRS); the logarithm of the
//! probability ratio is taken in Loader's deviance form, whose error does not grow with n (the
//! usual log-gamma form loses 1e-6 at n = 1e10), and only where the bounds of Kachitvichyanukul
//! and Schmeiser ("Binomial random variate generation", CACM 31, 1988) leave the decision open.
//! Below: inversion by sequential search.
//! Attempt `a` of the draw of a row uses the two uniforms of block `a` of that row.

use crate::Stream;
use crate::elementary::{exp, ln, ln_1p, ln_normal, nearest_integer, unit_interval};
use crate::philox::{LANES, philox_rows};

/// A binomial distribution, ready to be drawn from.
#[derive(Clone, Copy, Debug)]
pub struct Binomial {
    trials: f64,
    /// min(p, 1 - p).
    p: f64,
    flipped: bool,
    method: Method,
}

#[derive(Clone, Copy, Debug)]
enum Method {
    Constant,
    /// ln (1-p)^n.
    Inversion(f64),
    Rejection(Rejection),
}

#[derive(Clone, Copy, Debug)]
struct Rejection {
    trials: f64,
    a: f64,
    b: f64,
    c: f64,
    v_r: f64,
    alpha: f64,
    /// The mode, and ln pmf there.
    mode: f64,
    ln_mode: f64,
    /// n p (1 - p) and its inverse.
    variance: f64,
    inverse_variance: f64,
}

impl Binomial {
    /// `trials` independent trials with success probability `p`.
    ///
    /// # Panics
    /// If `p` is not in [0, 1] or `trials` is above 2^50.
    pub fn new(trials: u64, p: f64) -> Self {
        assert!((0.0..=1.0).contains(&p), "probability {p} is outside [0, 1]");
        assert!(trials <= 1 << 50, "{trials} trials are more than 2^50");
        let flipped = p > 0.5;
        let small = if flipped { 1.0 - p } else { p };
        let n = trials as f64;
        let method = if small == 0.0 || trials == 0 {
            Method::Constant
        } else if n * small < 10.0 {
            Method::Inversion(n * ln_1p(-small))
        } else {
            Method::Rejection(Rejection::new(n, small))
        };
        Self { trials: n, p: small, flipped, method }
    }

    /// The draw that belongs to a row of a stream.
    ///
    /// ```
    /// use random::{Binomial, Purpose, Stream};
    /// let batch = Binomial::new(10_000_000_000, 0.1);
    /// let size = batch.draw(&Stream::new(1, Purpose::BATCH_SIZE, 0), 0);
    /// assert!(size.abs_diff(1_000_000_000) < 300_000); // 10 standard deviations
    /// ```
    pub fn draw(&self, stream: &Stream, row: u64) -> u64 {
        let small = match self.method {
            Method::Constant => 0.0,
            Method::Inversion(ln_zero) => self.invert(ln_zero, stream.uniform(row, 0)),
            Method::Rejection(constants) => self.reject(&constants, stream, row),
        };
        if self.flipped { (self.trials - small) as u64 } else { small as u64 }
    }

    /// The draws of the rows `first_row ..`, as [`Binomial::draw`] gives them one by one.
    pub fn fill(&self, stream: &Stream, first_row: u64, out: &mut [f64]) {
        let Method::Rejection(constants) = self.method else {
            for (row, count) in (first_row..).zip(out) {
                *count = self.draw(stream, row) as f64;
            }
            return;
        };
        for (first, counts) in (first_row..).step_by(ABREAST).zip(out.chunks_mut(ABREAST)) {
            self.reject_many(&constants, stream, first, counts);
            if self.flipped {
                counts.iter_mut().for_each(|count| *count = self.trials - *count);
            }
        }
    }

    fn invert(&self, ln_zero: f64, uniform: f64) -> f64 {
        let odds = self.p / (1.0 - self.p);
        let mut probability = exp(ln_zero);
        let mut remaining = uniform - probability;
        let mut k = 0.0;
        while remaining > 0.0 && k < self.trials {
            probability *= (self.trials - k) / (k + 1.0) * odds;
            k += 1.0;
            // Beyond the last representable tail nothing can be subtracted any more.
            if probability < 1e-300 {
                break;
            }
            remaining -= probability;
        }
        k
    }

    fn reject(&self, constants: &Rejection, stream: &Stream, row: u64) -> f64 {
        let mut attempt = 0;
        loop {
            let [first, second] = stream.words(row, attempt);
            attempt += 1;
            let verdict = constants.judge(first, second);
            if verdict >= 0.0 {
                return verdict;
            }
            if verdict.is_nan() {
                let (k, us, v) = constants.candidate(first, second);
                let difference = ln_pmf(k, self.trials, self.p) - constants.ln_mode;
                if constants.height(us, v) <= difference {
                    return k;
                }
            }
        }
    }

    /// The draws of at most [`ABREAST`] rows.
    fn reject_many(&self, constants: &Rejection, stream: &Stream, first: u64, out: &mut [f64]) {
        let mut rows: [u64; ABREAST] = std::array::from_fn(|i| first.wrapping_add(i as u64));
        let mut verdicts = [0.0; ABREAST];
        let (mut open, mut attempt) = (out.len(), 0);
        while open > 0 {
            let (rows_now, verdicts) = (&rows[..open], &mut verdicts[..open]);
            let key = stream.key;
            let constants = *constants;
            let step = Attempts { key, constants, attempt, rows: rows_now, verdicts };
            pulp::Arch::new().dispatch(step);
            attempt += 1;
            let mut left = 0;
            for i in 0..open {
                let (row, verdict) = (rows[i], verdicts[i]);
                if verdict == REJECTED {
                    rows[left] = row;
                    left += 1;
                } else {
                    // Rarely open: that row is drawn on its own.
                    let place = row.wrapping_sub(first) as usize;
                    out[place] = if verdict.is_nan() {
                        self.reject(&constants, stream, row)
                    } else {
                        verdict
                    };
                }
            }
            open = left;
        }
    }
}

/// Rows drawn abreast.
const ABREAST: usize = 128;
/// In place of a count: try again.
const REJECTED: f64 = -1.0;

impl Rejection {
    fn new(n: f64, p: f64) -> Self {
        let variance = n * p * (1.0 - p);
        let spq = variance.sqrt();
        let b = 1.15 + 2.53 * spq;
        let mode = floor((n + 1.0) * p);
        Self {
            trials: n,
            a: -0.0873 + 0.0248 * b + 0.01 * p,
            b,
            c: n * p + 0.5,
            v_r: 0.92 - 4.2 / b,
            alpha: (2.83 + 5.1 / b) * spq,
            mode,
            ln_mode: ln_pmf(mode, n, p),
            variance,
            inverse_variance: 1.0 / variance,
        }
    }

    /// A candidate and the two numbers that decide about it.
    #[inline(always)]
    fn candidate(&self, first: u64, second: u64) -> (f64, f64, f64) {
        let u = unit_interval(first) - 0.5;
        let us = 0.5 - u.abs();
        (floor((2.0 * self.a / us + self.b) * u + self.c), us, unit_interval(second))
    }

    /// The logarithm of the candidate's height under the hat.
    #[inline(always)]
    fn height(&self, us: f64, v: f64) -> f64 {
        let square = us * us;
        ln_normal(v * self.alpha * square / (self.a + self.b * square))
    }

    /// The count, [`REJECTED`], or not-a-number where only the probability itself can tell:
    /// ln(pmf(k)/pmf(mode)) is -x^2/2 up to an error with a bound. Without branches.
    #[inline(always)]
    fn judge(&self, first: u64, second: u64) -> f64 {
        let (k, us, v) = self.candidate(first, second);
        let height = self.height(us, v);
        let distance = (k - self.mode).abs();
        let bounded = (distance > 20.0) & (distance < 0.5 * self.variance - 1.0);
        let share = distance * self.inverse_variance;
        let second_order = (distance * (1.0 / 3.0) + 0.625) * distance + 1.0 / 6.0;
        let bound = share * (second_order * self.inverse_variance + 0.5);
        let middle = -0.5 * distance * share;
        let accepted = ((us >= 0.07) & (v <= self.v_r)) | (bounded & (height < middle - bound));
        let outside = (k < 0.0) | (k > self.trials);
        let rejected = outside | (bounded & (height > middle + bound));
        let other = if rejected { REJECTED } else { f64::NAN };
        if accepted { k } else { other }
    }
}

/// One attempt of many rows, compiled once for each instruction set.
struct Attempts<'a> {
    key: [u32; 2],
    constants: Rejection,
    attempt: u64,
    rows: &'a [u64],
    verdicts: &'a mut [f64],
}

impl pulp::WithSimd for Attempts<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _instructions: S) {
        for (some, verdicts) in self.rows.chunks(LANES).zip(self.verdicts.chunks_mut(LANES)) {
            let mut rows = [0; LANES];
            rows[..some.len()].copy_from_slice(some);
            let [w0, w1, w2, w3] = philox_rows(self.key, rows, self.attempt);
            let mut found = [0.0; LANES];
            for lane in 0..LANES {
                let (first, second) = (w0[lane] | w1[lane] << 32, w2[lane] | w3[lane] << 32);
                found[lane] = self.constants.judge(first, second);
            }
            verdicts.copy_from_slice(&found[..some.len()]);
        }
    }
}

/// The largest integer at most x, for |x| below 2^51.
#[inline(always)]
fn floor(x: f64) -> f64 {
    let near = nearest_integer(x);
    if near > x { near - 1.0 } else { near }
}

/// Loader's saddle-point form of the logarithm of the binomial probability.
fn ln_pmf(k: f64, n: f64, p: f64) -> f64 {
    if k == 0.0 {
        return n * ln_1p(-p);
    }
    if k == n {
        return n * ln(p);
    }
    let corrections = stirling_error(n) - stirling_error(k) - stirling_error(n - k);
    let deviances = deviance(k, n * p) + deviance(n - k, n * (1.0 - p));
    corrections - deviances - 0.5 * ln(std::f64::consts::TAU * k * ((n - k) / n))
}

/// x ln(x/m) + m - x, without cancellation for x near m.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    if difference.abs() >= 0.1 * (x + m) {
        return x * ln(x / m) - difference;
    }
    let v = difference / (x + m);
    let square = v * v;
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    for odd in 1..60 {
        power *= square;
        let next = sum + power / f64::from(2 * odd + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// ln k! minus Stirling's formula.
fn stirling_error(k: f64) -> f64 {
    const SMALL: [f64; 15] = STIRLING;
    if k < 15.5 {
        return SMALL[k as usize - 1];
    }
    let z = 1.0 / (k * k);
    (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z * (1.0 / 1680.0 - z / 1188.0)))) / k
}

/// For k = 1..15, from 50-digit arithmetic.
const STIRLING: [f64; 15] = [
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Purpose;

    fn exact_pmf(n: u64, p: f64) -> Vec<f64> {
        let mut ln_choose = 0.0;
        (0..=n)
            .map(|k| {
                if k > 0 {
                    ln_choose += ((n - k + 1) as f64 / k as f64).ln();
                }
                (ln_choose + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
            })
            .collect()
    }

    #[test]
    fn ln_pmf_is_the_probability() {
        for (n, p) in [(40, 0.3), (300, 0.05), (1000, 0.5)] {
            for (k, exact) in exact_pmf(n, p).iter().enumerate().filter(|(_, e)| **e > 1e-200) {
                let found = ln_pmf(k as f64, n as f64, p).exp();
                assert!((found / exact - 1.0).abs() < 1e-11, "{n} {p} {k}: {found} {exact}");
            }
        }
    }

    /// Pearson's chi-square over cells of expectation at least 20; threshold mean + 5 sd.
    #[test]
    fn counts_follow_the_probabilities() {
        let draws = 200_000;
        for (n, p) in [(7, 0.2), (40, 0.3), (30, 0.9), (500, 0.01), (1000, 0.4), (5000, 0.75)] {
            let binomial = Binomial::new(n, p);
            let stream = Stream::new(2, Purpose::BATCH_SIZE, n);
            let mut counts = vec![0u32; n as usize + 1];
            for row in 0..draws {
                counts[binomial.draw(&stream, row) as usize] += 1;
            }
            let (mut statistic, mut cells) = (0.0, 0.0);
            let (mut observed, mut expected) = (0.0, 0.0);
            for (count, probability) in counts.iter().zip(exact_pmf(n, p)) {
                observed += f64::from(*count);
                expected += probability * draws as f64;
                if expected >= 20.0 {
                    statistic += (observed - expected) * (observed - expected) / expected;
                    cells += 1.0;
                    (observed, expected) = (0.0, 0.0);
                }
            }
            let freedom: f64 = cells - 1.0;
            assert!(statistic < freedom + 5.0 * (2.0 * freedom).sqrt(), "{n} {p}: {statistic}");
        }
    }

    /// At n = 1e10 the standardised draw has the moments of a Gaussian to sampling error.
    #[test]
    fn enormous_batches() {
        let (n, p) = (10_000_000_000u64, 0.1);
        let binomial = Binomial::new(n, p);
        let stream = Stream::new(3, Purpose::BATCH_SIZE, 0);
        let draws = 100_000;
        let sd = (n as f64 * p * (1.0 - p)).sqrt();
        let sums = (0..draws).fold([0.0; 4], |mut sums, row| {
            let z = (binomial.draw(&stream, row) as f64 - n as f64 * p) / sd;
            for (power, sum) in sums.iter_mut().enumerate() {
                *sum += z.powi(power as i32 + 1);
            }
            sums
        });
        for (sum, (mean, variance)) in
            sums.iter().zip([(0.0, 1.0), (1.0, 2.0), (0.0, 15.0), (3.0, 96.0)])
        {
            let error = f64::sqrt(variance / draws as f64);
            assert!((sum / draws as f64 - mean).abs() < 5.0 * error, "{sums:?}");
        }
    }

    #[test]
    fn filling_and_picking_agree() {
        let stream = Stream::new(4, Purpose::BATCH_SIZE, 9);
        for (n, p) in [(7, 0.2), (500, 0.3), (5000, 0.75), (1_000_000_000, 0.01)] {
            let binomial = Binomial::new(n, p);
            let mut counts = vec![0.0; 1003];
            binomial.fill(&stream, 5, &mut counts);
            for (row, count) in (5..).zip(counts) {
                assert_eq!(count, binomial.draw(&stream, row) as f64, "{n} {p} {row}");
            }
        }
    }

    /// Whatever is decided without the probabilities is decided as they would.
    #[test]
    fn shortcuts_are_right() {
        for (n, p) in [(1000.0, 0.1), (1e5, 0.5), (1e7, 1e-4), (1e9, 0.01), (1e10, 0.1)] {
            let constants = Rejection::new(n, p);
            let mut open = 0;
            for row in 0..20_000 {
                let [first, second] = Stream::new(6, Purpose::BATCH_SIZE, 0).words(row, 0);
                let (k, us, v) = constants.candidate(first, second);
                let inside = (0.0..=n).contains(&k);
                let excess = match inside {
                    true => ln_pmf(k, n, p) - constants.ln_mode - constants.height(us, v),
                    false => f64::NEG_INFINITY,
                };
                let verdict = constants.judge(first, second);
                // The squeeze of the first paper lies below the curve by more than rounding.
                assert!(verdict < 0.0 || verdict != k || excess > -1e-9, "{n} {p} {k}: {excess}");
                assert!(verdict != REJECTED || excess < 1e-9, "{n} {p} {k}: {excess}");
                open += u32::from(verdict.is_nan());
            }
            assert!(n * p < 1e5 || open < 200, "{n} {p}: {open}");
        }
    }

    #[test]
    fn degenerate() {
        let stream = Stream::new(3, Purpose::BATCH_SIZE, 0);
        assert_eq!(Binomial::new(0, 0.3).draw(&stream, 0), 0);
        assert_eq!(Binomial::new(12, 0.0).draw(&stream, 0), 0);
        assert_eq!(Binomial::new(12, 1.0).draw(&stream, 0), 12);
    }
}
