//! Bounds on integrals of |integrand| along lines parallel to the real axis, by cells.
//!
//! The integrand of M(s) = E_Q (P/Q)^s is N(x; 0, s^2) A^s B^(1-s), A the polynomial of
//! [`Step`], B = A(1/z) or 1. On x + i eta with angles k|eta|/s^2 <= theta < pi/2:
//!
//! - A(x) (1 - (1 - cos theta) r(x)) <= |A(x + i eta)| <= A(x), r = (A - a_0)/A: every term has an angle
//!   in [0, theta] except a_0, whose angle is 0.
//! - |arg A| <= min(theta, r sin theta / (1 - (1 - cos theta) r)): imaginary over real part.
//! - A and r rise with x; B and its r fall. |d ln A/dx| <= k/s^2, and the same for B.
//!
//! So on a cell every factor is bounded by its value at one end.

use crate::arithmetic::{Ball, Float, Magnitude};
use crate::pairs::Step;

/// The lines that are looked at: tilt c, angles up to theta, and growth e^(u |angle|).
pub(super) struct Lines<'a, const N: usize> {
    pub(super) step: &'a Step<N>,
    pub(super) tilt: f64,
    pub(super) cosine: Ball<N>,
    pub(super) sine: Ball<N>,
    pub(super) theta: Ball<N>,
    pub(super) growth: Ball<N>,
    /// Of the mask's factors; None where it has no bound at such angles.
    masks: Option<Vec<Ball<N>>>,
}

impl<'a, const N: usize> Lines<'a, N> {
    pub(super) fn new(step: &'a Step<N>, tilt: f64, theta: f64, growth: f64) -> Self {
        let theta = Ball::from_f64(theta);
        let (cosine, sine) = theta.cosine_sine();
        let masks = step.mask.cosines(theta.over_u64(step.records));
        Self { step, tilt, cosine, sine, theta, growth: Ball::from_f64(growth), masks }
    }

    /// ln of a bound on one factor: `high` is the value at the end where it is largest, `low` where it
    /// is smallest.
    fn factor(&self, power: Ball<N>, high: (Ball<N>, Ball<N>), low: (Ball<N>, Ball<N>)) -> Ball<N> {
        let kept = Ball::one() - (Ball::one() - self.cosine) * high.1;
        let angle = self.theta.minimum((high.1 * self.sine).over(kept));
        let size = if power.is_not_negative() {
            power * high.0.logarithm()
        } else {
            power * (low.0 * kept).logarithm()
        };
        size + self.growth * angle
    }

    /// ln of a bound on the integrand's modulus on [a, b], without 1/(s sqrt(2 pi)) and without the mask.
    fn unmasked(&self, a: f64, b: f64) -> Ball<N> {
        let c = Ball::from_f64(self.tilt);
        let ends = |x: f64| self.step.value_and_share(Ball::from_f64(x));
        let mut log = self.factor(c, ends(b), ends(a));
        if self.step.substitute {
            log = log + self.factor(Ball::one() - c, ends(-a), ends(-b));
        }
        let nearest = if a > 0.0 {
            a
        } else if b < 0.0 {
            b
        } else {
            0.0
        };
        log - (Ball::from_f64(nearest).squared() * self.step.inverse_square()).scaled(-1)
    }

    /// Whether the mask has no bound at these angles.
    pub(super) fn is_too_wide(&self) -> bool {
        self.masks.is_none()
    }

    pub(super) fn cell(&self, a: f64, b: f64) -> Ball<N> {
        match &self.masks {
            Some(cosines) => self.unmasked(a, b) + self.step.log_mask(a, b, cosines),
            None => Ball::everything(),
        }
    }

    /// An upper bound on the integral of the modulus over [a, b], each cell widened by `more` (the
    /// spacing of a grid, for sums instead of integrals). Cells below e^floor are not cut smaller.
    pub(super) fn between(&self, a: f64, b: f64, more: f64, floor: f64) -> Magnitude {
        if self.is_too_wide() {
            return Magnitude::INFINITE;
        }
        let smallest = self.step.cell(3.0);
        let mut sum = Magnitude::ZERO;
        let mut cells = vec![(a, b)];
        let mut count = 0;
        while let Some((a, b)) = cells.pop() {
            if !(b > a) {
                continue;
            }
            count += 1;
            if count > 200_000 {
                return Magnitude::INFINITE;
            }
            let middle = 0.5 * (a + b);
            let log = self.cell(a, b);
            let small = log.upper().to_f64() < floor || b - a <= smallest;
            if small || middle <= a || middle >= b {
                let width = Ball::<N>::from_f64(b) - Ball::from_f64(a) + Ball::from_f64(more);
                let bound: Ball<N> = log.exponential() * width;
                sum = sum.plus(bound.above());
            } else {
                cells.push((a, middle));
                cells.push((middle, b));
            }
        }
        sum.times(self.density_factor())
    }

    /// A bound on the integral of the modulus from `from` on, along the line at angle theta, with the factor
    /// e^(-u arg A), for this u and every larger one; one-sided steps only.
    pub(super) fn turned(&self, from: f64, u: Ball<N>, floor: f64) -> Magnitude {
        let (far, reach) = (self.far(), self.step.reach);
        let turn = self.theta.over_u64(self.step.records).cosine_sine();
        if self.is_too_wide() {
            return Magnitude::INFINITE;
        }
        let smallest = self.step.cell(6.0);
        let mut sum = Magnitude::ZERO;
        let mut cells = vec![(from.max(-far), far.min(reach))];
        let mut count = 0;
        while let Some((a, b)) = cells.pop() {
            count += 1;
            if count > 200_000 {
                return Magnitude::INFINITE;
            }
            let middle = 0.5 * (a + b);
            let (up, _) = self.step.complex_logarithms(Ball::from_f64(a), turn);
            // arg A is at least 0, whatever the ball of it says.
            let least = up.im.lower().maximum(Ball::ZERO);
            let log = self.cell(a, b) - u * least;
            let small = log.upper().to_f64() < floor || b - a <= smallest;
            if small || middle <= a || middle >= b {
                let width = Ball::<N>::from_f64(b) - Ball::from_f64(a);
                sum = sum.plus((log.exponential() * width).above());
            } else {
                cells.push((a, middle));
                cells.push((middle, b));
            }
        }
        let inside = sum.times(self.density_factor());
        let all = if reach <= far { inside } else { inside.plus(self.beyond(0.0)) };
        all.times(self.off_axis(self.theta).above())
    }

    /// At least 1/(s sqrt(2 pi)).
    pub(super) fn density_factor(&self) -> Magnitude {
        let root: Ball<N> = Ball::pi().scaled(1).root();
        (root * self.step.deviation()).reciprocal().above()
    }

    /// Where the far tails start: beyond, the Gaussian falls faster than the rest can grow.
    pub(super) fn far(&self) -> f64 {
        let powers = self.tilt.abs() + (1.0 - self.tilt).abs();
        // Far enough to make good for the worst angles beyond, too.
        let worst = 2.0 * self.growth.to_f64() * self.theta.to_f64()
            - powers * self.cosine.to_f64().max(1e-9).ln();
        let place = powers * self.step.records as f64 + self.step.mask_place();
        place + (24.0 + (2.0 * worst).sqrt()) * self.step.scale
    }

    /// A bound on integral (or sum times spacing) beyond +-far. For x >= X the integrand is at most
    /// its bound at X times e^(-kappa (x - X)), kappa = X/s^2 - (|c| + |1-c|) k/s^2, since the
    /// logarithms have slopes of at most k/s^2. Angles are at most theta.
    pub(super) fn beyond(&self, more: f64) -> Magnitude {
        if self.is_too_wide() {
            return Magnitude::INFINITE;
        }
        let far = self.far();
        let powers = Ball::from_f64(self.tilt.abs())
            + (Ball::one() - Ball::from_f64(self.tilt))
                .maximum(Ball::from_f64(self.tilt) - Ball::one());
        let records = Ball::from_u64(self.step.records);
        let kappa: Ball<N> = (Ball::from_f64(far) - powers * records) * self.step.inverse_square();
        let length: Ball<N> = kappa.reciprocal() + Ball::from_f64(more);
        // No mask exceeds 2^p anywhere.
        let mask = self.step.mask.power() as i64;
        let both = self
            .unmasked(far, far)
            .exponential()
            .above()
            .plus(self.unmasked(-far, -far).exponential().above())
            .scaled(mask);
        // On a cell of no width the bounds are those of the point; r may grow to 1 beyond it.
        let worst_angle = (self.growth * self.theta).scaled(1).exponential().above();
        let lost = self.lost_beyond();
        both.times(length.above()).times(worst_angle).times(lost).times(self.density_factor())
    }

    /// (cos theta)^-power for the negative powers: |A| may fall to cos theta of A.
    fn lost_beyond(&self) -> Magnitude {
        let least: Ball<N> = self.cosine.logarithm();
        let c = Ball::from_f64(self.tilt);
        let mut log = Ball::ZERO;
        for power in [c, Ball::one() - c] {
            if power.is_negative() {
                log = log + power * least;
            }
        }
        log.exponential().above()
    }

    /// At least what lies right of `last`.
    pub(super) fn right_of(&self, last: f64, floor: f64) -> Magnitude {
        let (far, reach) = (self.far(), self.step.reach);
        let inside = self.between(last, far.min(reach), 0.0, floor);
        if reach <= far { inside } else { inside.plus(self.beyond(0.0)) }
    }

    /// At least the integral of the modulus along the way up from x to the line at angle theta, for this u and every larger one. A has an
    /// angle of at least 0 there and B one of at most 0, and both move away from 0 on the way up: in intervals that grow by half
    /// e^(-u (arg A - arg B)) is at most its value at the lower end.
    pub(super) fn edge(&self, x: f64, u: Ball<N>) -> Magnitude {
        if !x.is_finite() {
            return Magnitude::ZERO;
        }
        let theta = self.theta.to_f64();
        let (mut sum, mut from, mut to) = (Magnitude::ZERO, 0.0, theta * 1e-9);
        while from < theta {
            let fall = (-(u * self.least_angle(x, x, from))).exponential();
            let length = Ball::<N>::from_f64(to) - Ball::from_f64(from);
            let length = length.over_u64(self.step.records).over(self.step.inverse_square());
            sum = sum.plus((length * fall).above());
            (from, to) = (to, (1.5 * to).min(theta));
        }
        let level = self.cell(x, x).exponential().above().times(self.density_factor());
        sum.times(level).times(self.off_axis(self.theta).above())
    }

    /// At most arg A - arg B on [a, b] at the angle theta: arg A rises with x, and -arg B falls.
    fn least_angle(&self, a: f64, b: f64, theta: f64) -> Ball<N> {
        let turn = Ball::from_f64(theta).over_u64(self.step.records).cosine_sine();
        let angle = |x: f64| {
            let (up, _) = self.step.complex_logarithms(Ball::from_f64(x), turn);
            // It is at least 0, whatever the ball of it says.
            up.im.lower().maximum(Ball::ZERO)
        };
        if self.step.substitute { angle(a) + angle(-b) } else { angle(a) }
    }

    /// A bound on |M(c + iu)| for this u and every larger one, of a step whose outcomes are cut off on both sides. The path goes up at
    /// the left end, along the line at angle theta, and down at the right end. On a cell of the line arg A, which rises with x, is at
    /// least its value at the left end, and -arg B at least its value at the right end.
    pub(super) fn clipped(&self, u: Ball<N>, floor: f64) -> Magnitude {
        if self.is_too_wide() {
            return Magnitude::INFINITE;
        }
        let (reach, theta) = (self.step.reach, self.theta.to_f64());
        let smallest = self.step.cell(3.0);
        let (mut sum, mut cells, mut count) = (Magnitude::ZERO, vec![(-reach, reach)], 0);
        while let Some((a, b)) = cells.pop() {
            count += 1;
            if count > 200_000 {
                return Magnitude::INFINITE;
            }
            let middle = 0.5 * (a + b);
            let log = self.cell(a, b) - u * self.least_angle(a, b, theta);
            let small = log.upper().to_f64() < floor || b - a <= smallest;
            if small || middle <= a || middle >= b {
                let width = Ball::<N>::from_f64(b) - Ball::from_f64(a);
                sum = sum.plus((log.exponential() * width).above());
            } else {
                cells.push((a, middle));
                cells.push((middle, b));
            }
        }
        let along = sum.times(self.density_factor()).times(self.off_axis(self.theta).above());
        along.plus(self.edge(reach, u)).plus(self.edge(-reach, u))
    }

    /// The whole line: cells between, tails beyond.
    pub(super) fn whole(&self, floor: f64) -> Magnitude {
        let far = self.far();
        self.between(-far, far, 0.0, floor).plus(self.beyond(0.0))
    }

    /// e^(eta^2 / 2 s^2) for the line at angle theta: |N(x + i eta)| = N(x) e^(eta^2/2s^2), and
    /// eta = theta s^2 / k.
    pub(super) fn off_axis(&self, theta: Ball<N>) -> Ball<N> {
        let eta = theta.over_u64(self.step.records);
        let square = eta.squared().over(self.step.inverse_square());
        square.scaled(-1).exponential()
    }
}

/// 2 N / (e^(2 pi d / h) - 1): the error of the trapezoid rule of spacing h for an analytic function
/// whose integrals along lines up to distance d are at most N (Trefethen and Weideman 2014,
/// Theorem 5.1).
pub(super) fn trapezoid_error<const N: usize>(
    integral: Magnitude,
    distance: Ball<N>,
    spacing: f64,
) -> Magnitude {
    let ratio = (Ball::pi().scaled(1) * distance).over(Ball::from_f64(spacing));
    let below = ratio.exponential() - Ball::one();
    Ball::<N>::exact(Float::from_magnitude(integral)).scaled(1).over(below).above()
}
