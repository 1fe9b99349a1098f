//! The smallest count with the asked power.
//!
//! Two numbers describe most powers well: Phi^-1(power) is nearly linear in the logarithm of the count near the answer. The line is fitted to all
//! powers that were simulated near it, each with few trials, and tells where to look next; far from the answer a slope is assumed. Then
//! fresh trials, many of them, decide.

use super::{Needed, Target};
use crate::AuditError;
use numerics::patience::look_at_the_clock;
use numerics::special::inverse_normal_cdf;
use vocabulary::Problem;
use vocabulary::rounding::with_commas;

/// Fewer rows than this are not planned for.
const LEAST: u64 = 10;
/// Trials while the count is far from the answer.
const FAR: u32 = 60;
/// Counts on the way, at most.
const STEPS: u32 = 40;
/// Counts that are confirmed, at most.
const ATTEMPTS: u32 = 12;
/// The slope that is assumed: where evidence grows with the square root of the count and a rule takes two standard deviations off.
const SLOPE: f64 = 1.5;
/// The largest step, as a factor.
const STRIDE: f64 = 6.0;
/// Quantiles within which the line is fitted.
const NEAR: f64 = 1.2;
/// Standard errors between the share that was seen and what is promised.
const ERRORS: f64 = 2.0;
/// More power than this cannot be told by simulation.
const MOST_POWER: f64 = 0.9995;
/// A promise above the asked power by more than this is worth another attempt with fewer rows.
const SPARE: f64 = 0.03;

/// Where to begin, where to end, and how many trials are played at a count on the way and at the answer.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) guess: u64,
    pub(super) most: u64,
    pub(super) first: u32,
    pub(super) last: u32,
}

/// The lower end of Wilson's interval.
fn promised(share: f64, trials: u32) -> f64 {
    let (n, z) = (f64::from(trials), ERRORS);
    let middle = share + 0.5 * z * z / n;
    let spread = z * (share * (1.0 - share) / n + 0.25 * z * z / (n * n)).sqrt();
    ((middle - spread) / (1.0 + z * z / n)).max(0.0)
}

/// What was tried.
struct Tried {
    /// Logarithm of the count, quantile of the power, trials.
    all: Vec<(f64, f64, f64)>,
    /// The largest count that is too small, and the smallest that is enough, as far as that is certain.
    few: u64,
    enough: u64,
    asked: f64,
    wanted: f64,
    most: u64,
}

impl Tried {
    fn note(&mut self, count: u64, share: f64, trials: u32) {
        let error = 2.0 * (self.asked * (1.0 - self.asked) / f64::from(trials)).sqrt();
        if share >= (self.asked + error).min(1.0) {
            self.enough = self.enough.min(count);
        } else if share < self.asked - error {
            self.few = self.few.max(count);
        }
        let least = 0.5 / f64::from(trials);
        let mut quantile = inverse_normal_cdf(share.clamp(least, 1.0 - least));
        if share >= 1.0 {
            // So few trials do not tell by how much it is more than enough.
            quantile = quantile.max(inverse_normal_cdf(self.wanted) + NEAR);
        }
        self.all.push(((count as f64).ln(), quantile, f64::from(trials)));
    }

    /// The count at which the wanted power is to be expected.
    fn next(&self) -> u64 {
        let goal = inverse_normal_cdf(self.wanted);
        let near: Vec<(f64, f64, f64)> =
            self.all.iter().copied().filter(|(_, z, _)| (z - goal).abs() < NEAR).collect();
        let Some(&(last, quantile, _)) = self.all.last() else { return self.few + 1 };
        let place = if near.len() < 2 {
            last + (goal - quantile) / SLOPE
        } else {
            let weight: f64 = near.iter().map(|(_, _, w)| w).sum();
            let mean = |part: fn(&(f64, f64, f64)) -> f64| {
                near.iter().map(|one| one.2 * part(one)).sum::<f64>() / weight
            };
            let (x, z) = (mean(|one| one.0), mean(|one| one.1));
            let sum = |product: &dyn Fn(f64, f64) -> f64| {
                near.iter().map(|one| one.2 * product(one.0 - x, one.1 - z)).sum::<f64>()
            };
            // The assumed slope counts as one observation, so that counts next to each other do not invent one.
            let slope = (SLOPE + sum(&|x, z| x * z)) / (1.0 + sum(&|x, _| x * x));
            x + (goal - z) / slope.max(0.1)
        };
        let step = (place - last).clamp(-STRIDE.ln(), STRIDE.ln());
        let wish = ((last + step).exp().round() as u64).min(self.most);
        let inside = wish > self.few && wish < self.enough;
        // Else between the ends, in the logarithm.
        let middle = || ((self.few.max(1) as f64) * (self.enough as f64)).sqrt().round() as u64;
        if inside { wish } else { middle() }.clamp(LEAST, self.most)
    }

    fn too_many(&self) -> Result<(), AuditError> {
        if self.few < self.most {
            return Ok(());
        }
        Err(AuditError::invalid(format!(
            "more than {} rows would be needed: the target is too close to what the attack can show at all, or the delta term of this many canaries uses up the error; lower the target or delta, or assume a stronger attack",
            with_commas(self.most)
        )))
    }
}

pub(super) fn smallest(
    target: &Target,
    range: Range,
    power: impl Fn(u64, (u32, u64)) -> Needed,
) -> Result<Needed, AuditError> {
    if !(target.power > 0.0 && target.power < 1.0) {
        let problem = Problem::outside("power", target.power, "(0, 1)").and("give e.g. 0.8");
        return Err(AuditError::invalid(problem));
    }
    if target.power > MOST_POWER {
        return Err(AuditError::invalid(format!(
            "power {} cannot be shown by simulation; ask for {MOST_POWER} or less",
            target.power
        )));
    }
    let power = |count: u64, played: (u32, u64)| {
        look_at_the_clock();
        power(count, played)
    };
    // So many that a share of one, less its errors, is the asked power.
    let last = range.last.max((6.0 / (1.0 - target.power)) as u32);
    let spread = (target.power * (1.0 - target.power) / f64::from(last)).sqrt();
    let wanted = (target.power + (ERRORS + 0.5) * spread).min(1.0 - 1.5 / f64::from(last));
    let (few, enough) = (LEAST - 1, range.most + 1);
    let (asked, most) = (target.power, range.most);
    let mut tried = Tried { all: Vec::new(), few, enough, asked, wanted, most };
    let mut count = approach(&mut tried, range, power)?;
    // The trials of the search are not those of the promise.
    let mut best: Option<Needed> = None;
    for attempt in 0..ATTEMPTS {
        let found = power(count, (last, 100 + u64::from(attempt)));
        let promise = if found.simulated { promised(found.power, last) } else { found.power };
        tried.note(count, found.power, last);
        if promise >= target.power {
            let first = best.is_none();
            best = Some(Needed { power: promise, ..found });
            let fewer = tried.next();
            // Once more where fewer may do.
            if !first || promise < target.power + SPARE || fewer as f64 > 0.97 * count as f64 {
                break;
            }
            count = fewer;
            continue;
        }
        if best.is_some() {
            break;
        }
        tried.too_many()?;
        // Where the power hardly rises with the count, steps have to.
        let least = 1.0 + 0.01 * 1.5_f64.powi(attempt as i32);
        let more = ((count as f64 * least) as u64).max(count + 1);
        count = tried.next().max(more).min(most);
    }
    best.ok_or_else(|| {
        AuditError::invalid(format!(
            "with {count} rows the power is still below {}, and it hardly rises with their number; ask for less power",
            target.power
        ))
    })
}

/// A count near the answer.
fn approach(
    tried: &mut Tried,
    range: Range,
    power: impl Fn(u64, (u32, u64)) -> Needed,
) -> Result<u64, AuditError> {
    let mut count = range.guess.clamp(LEAST, range.most);
    let mut trials = FAR;
    for step in 0..STEPS {
        let share = power(count, (trials, 1 + u64::from(step))).power;
        tried.note(count, share, trials);
        tried.too_many()?;
        let next = tried.next();
        let near = (next as f64 / count as f64).ln().abs();
        if trials == range.first && near < 0.08 || tried.enough - tried.few <= 2 {
            return Ok(next);
        }
        trials = if near < 0.7 { range.first } else { FAR };
        count = next;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numerics::special::normal_sf;

    /// A power that is known: the answer is the right one, from above, and found by few evaluations.
    #[test]
    fn a_known_power_is_found() {
        for (slope, wanted) in [(0.1, 0.8), (0.01, 0.8), (1e-4, 0.9), (0.03, 0.99), (0.003, 0.5)] {
            let truth = |count: u64| normal_sf(1.96 - slope * (count as f64).sqrt());
            let asked = std::cell::Cell::new(0);
            let power = |count: u64, (trials, stream): (u32, u64)| {
                asked.set(asked.get() + 1);
                let mut dealer = crate::split::Dealer::new(stream);
                let draw =
                    super::super::draw::binomial(u64::from(trials), truth(count), &mut dealer);
                Needed {
                    count,
                    power: draw as f64 / f64::from(trials),
                    threshold: None,
                    simulated: true,
                }
            };
            let target = Target { epsilon: 1.0, delta: 0.0, confidence: 0.95, power: wanted };
            let range = Range { guess: 100, most: 1 << 34, first: 200, last: 1000 };
            let found = smallest(&target, range, power).unwrap();
            let right = ((inverse_normal_cdf(wanted) + 1.96) / slope).powi(2);
            let share = found.count as f64 / right;
            assert!((0.95..1.35).contains(&share), "{slope} {wanted}: {} of {right}", found.count);
            assert!(found.power >= wanted && found.power <= truth(found.count) + 0.01);
            assert!(asked.get() < 30, "{slope} {wanted}: {} evaluations", asked.get());
        }
    }

    /// All of the trials are no certainty.
    #[test]
    fn a_share_of_one_promises_less() {
        assert!(promised(1.0, 1000) < 0.997 && promised(1.0, 1000) > 0.99);
        assert!(promised(0.0, 100) < 1e-9);
    }
}
