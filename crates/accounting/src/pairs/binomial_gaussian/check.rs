//! Whether delta(epsilon) is below a level, from a few points of the profile.
//!
//! A threshold y gives a point of the profile, (f(y), delta), in one sum. Since delta falls with epsilon, a point
//! at or before epsilon whose delta is at most the level proves that delta(epsilon) is.

use super::super::ends::probability_from_log;
use super::super::{Order, ProfilePoint};
use super::sums::Sums;
use numerics::elementary::{exp_m1, ln, ln_1p};
use vocabulary::Interval;

/// Points that are looked at before nothing is said.
const MOST: usize = 9;

impl Sums {
    /// Whether delta(epsilon) is certainly at most `delta`, for epsilon >= 0. `false` may also mean that it
    /// could not be told.
    pub(super) fn is_below(&self, epsilon: f64, order: Order, delta: f64) -> bool {
        if delta >= 1.0 {
            return true;
        }
        if order == Order::Add {
            let (floor, error) = self.law.log_none();
            if epsilon > -floor + error {
                return true;
            }
        }
        let level = ln(delta) - 1e-15 * (1.0 + ln(delta).abs());
        if !level.is_finite() {
            return false;
        }
        let sign = if order == Order::Remove { 1.0 } else { -1.0 };
        let mut y = self.guess(sign * epsilon);
        // Thresholds before and behind epsilon.
        let (mut before, mut behind): (Option<f64>, Option<f64>) = (None, None);
        for _ in 0..MOST {
            let point = match order {
                // Up to 1/2 no loss is above 0.
                Order::Remove => self.remove(y.max(0.5)),
                Order::Add => self.add(y),
            };
            let (loss, error) = (sign * point.loss.value, point.loss.error);
            let here = point.delta;
            let at_the_start = order == Order::Remove && y <= 0.5;
            let early = at_the_start || loss + error <= epsilon;
            if early && here.value + here.error <= level {
                return true;
            }
            if loss - error >= epsilon && here.value - here.error > level {
                return false;
            }
            // ln delta falls by this much per unit of epsilon; what of that the level leaves at epsilon.
            let fall = point.delta_slope / point.loss_slope;
            let spare = level - (here.value - (epsilon - loss) * fall);
            if !(spare.is_finite() && fall > 0.0) || at_the_start {
                return false;
            }
            if early {
                before = Some(y)
            } else {
                behind = Some(y)
            }
            // Half of it is kept for what the next point misses epsilon by.
            let aim = epsilon - 0.5 * (spare / fall).max(0.0);
            let change = sign * (aim - loss) / point.loss_slope;
            let mut next = y + change.clamp(-8.0 * self.scale, 8.0 * self.scale);
            if let (Some(a), Some(b)) = (before, behind)
                && !(next > a.min(b) && next < a.max(b))
            {
                next = 0.5 * (a + b);
            }
            if !next.is_finite() || (next - y).abs() <= 1e-15 * y.abs() {
                return false;
            }
            y = next;
        }
        false
    }

    /// A point of the profile near epsilon > 0 whose delta is below 1/2, where removing leaks more.
    pub(super) fn point_near(&self, epsilon: f64) -> Option<ProfilePoint> {
        let mut y = self.guess(epsilon).max(0.5);
        let mut point = self.remove(y);
        for _ in 0..2 {
            if (point.loss.value - epsilon).abs() <= 0.01 * epsilon {
                break;
            }
            let change = (epsilon - point.loss.value) / point.loss_slope;
            y = (y + change.clamp(-8.0 * self.scale, 8.0 * self.scale)).max(0.5);
            point = self.remove(y);
        }
        let (loss, delta) = (point.loss, point.delta);
        let at = Interval::around(loss.value, loss.error * (1.0 + 1e-9) + 1e-16 * loss.value.abs());
        // Where delta is large, its complement has the digits.
        if !(at.lower > 0.0 && at.upper.is_finite() && delta.value < -0.7) {
            return None;
        }
        let delta = probability_from_log(delta.value, delta.error);
        // delta of adding at the lower end is at least that at the upper one.
        let less = self.is_below(at.lower, Order::Add, delta.lower);
        less.then_some(ProfilePoint { epsilon: at, delta })
    }

    /// Where the loss is about `target`: that of a normal count, or of a single use where uses are rare.
    fn guess(&self, target: f64) -> f64 {
        let (mean, count, noise) = (self.law.mean(), self.law.variance(), self.variance);
        if mean < 2.0 && target > 0.0 {
            return 0.5 + noise * ln_1p(exp_m1(target) / mean.min(1.0));
        }
        let all = noise + count;
        let (a, b) = (count / (noise * all), mean / all);
        let c = target + 0.5 * mean * mean / all + 0.5 * ln(all / noise);
        let root = (b * b + 2.0 * a * c).max(0.0).sqrt();
        2.0 * c / (b + root)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Order, Pair};
    use super::super::BinomialGaussian;
    use vocabulary::Run;

    /// Never above the truth, and nearly always right a little below it.
    #[test]
    fn is_below_agrees_with_delta() {
        let (mut told, mut asked) = (0, 0);
        for (noise, rate, steps) in
            [(1.0, 0.01, 1000), (10.0, 0.5, 2000), (0.6, 0.05, 3), (2.0, 1e-4, 50), (1.0, 0.3, 4)]
        {
            let run = Run::builder().phase(noise, rate, steps).build().unwrap();
            let pair = BinomialGaussian::for_run(&run).unwrap();
            for epsilon in [0.0, 1e-6, 0.01, 0.3, 1.0, 4.0, 12.0] {
                for order in [Order::Remove, Order::Add] {
                    let delta = pair.delta(epsilon, order).unwrap();
                    if delta.lower <= 0.0 {
                        continue;
                    }
                    for factor in [1e-3, 0.5, 0.99, 1.0 - 1e-9] {
                        let said = pair.is_below(epsilon, order, delta.lower * factor);
                        assert_ne!(said, Some(true), "{noise} {rate} {steps} {epsilon} {factor}");
                    }
                    for factor in [1.0 + 1e-6, 1.01, 2.0, 100.0] {
                        asked += 1;
                        let level = (delta.upper * factor).min(1.0);
                        told += usize::from(pair.is_below(epsilon, order, level) == Some(true));
                    }
                }
            }
        }
        assert!(told * 20 > asked * 19, "{told} of {asked}");
    }

    /// Two phases, far beyond what their table of counts reaches: delta falls with epsilon, so the upper end is that of
    /// an epsilon before it.
    #[test]
    fn beyond_the_table_delta_is_next_to_nothing() {
        let run = Run::builder()
            .phase(0.47795080000398454, 0.0001489347404894871, 987)
            .phase(0.854429908389572, 0.028261277913935342, 13)
            .build()
            .unwrap();
        let pair = BinomialGaussian::for_run(&run).unwrap();
        let near = pair.delta(1.0, Order::Remove).unwrap();
        for epsilon in [5.0, 13.5, 50.0] {
            let delta = pair.delta(epsilon, Order::Remove).unwrap();
            assert!(delta.lower == 0.0 && delta.upper > 0.0, "{epsilon}: {delta:?}");
            assert!(delta.upper < 1e-60 && near.upper < 1e-60, "{epsilon}: {delta:?}");
        }
    }
}
