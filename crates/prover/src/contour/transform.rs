//! M(c + iu) = E_Q (P/Q)^(c+iu) of one step, at equally spaced u, and bounds for all larger u.
//!
//! Trapezoid rule: sum_j w_j e^(i u L_j), w_j = h N(x_j) A^c B^(1-c), L = ln A - ln B. The path is the real
//! axis, or for many nodes the parallel x + iy, y > 0, on which Im L >= 0: there e^(iuL) falls with u and
//! the number of points does not grow with it. The error is bounded along lines beside the path
//! ([`super::bounds`]); what is left out of the sum by cells. The sums run in fixed point.

use super::bounds::{Lines, trapezoid_error};
use super::fast;
use super::rough::Rough;
use crate::arithmetic::{Ball, Complex, Fixed, Magnitude, Rotor};
use crate::pairs::Step;

/// The grid of one step at one tilt.
pub(super) struct Transform<const N: usize> {
    /// w_j.
    weights: Vec<Complex<N>>,
    /// L_j.
    losses: Vec<Complex<N>>,
    /// Off by at most this, for every |u| up to the one it was made for.
    error: Magnitude,
    /// All losses are real.
    real: bool,
}

/// A spacing and a strip for the trapezoid rule, chosen in doubles.
pub(super) struct Choice {
    /// Angle of the path: 0 on the real axis.
    pub(super) shift: f64,
    /// Angle of the strip around the path.
    pub(super) theta: f64,
    /// Bits by which the sum of moduli exceeds M(c).
    pub(super) lost_bits: f64,
    /// Longer mantissas would allow a wider spacing.
    pub(super) cramped: bool,
    pub(super) spacing: f64,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) log_integral: f64,
}

impl Choice {
    pub(super) fn points(&self) -> f64 {
        (self.to - self.from) / self.spacing
    }

    /// Rotations that the nodes cost.
    pub(super) fn work(&self, nodes: usize, bits: f64) -> f64 {
        fast::work(self.points(), nodes, bits, self.shift == 0.0)
    }

    /// The cheapest choice with a relative error of 2^-bits for `nodes` nodes with |u| <= `most`.
    pub(super) fn new<const N: usize>(
        rough: &Rough,
        step: &Step<N>,
        tilt: f64,
        (most, nodes): (f64, usize),
        bits: f64,
    ) -> Option<Self> {
        let depth = bits * std::f64::consts::LN_2 + 10.0;
        let on_axis = rough.shape(tilt, 0.0, 0.0, depth)?;
        // A path off the axis cancels: what the mantissas have room for goes first.
        let room = (64.0 * N as f64 - bits - 40.0).max(3.0);
        let narrow = rough.narrow();
        // What bounds by cells exceed integrals by.
        let slack = if step.mask.is_whole() { 2.0 } else { 6.0 };
        let mut cheapest = f64::INFINITY;
        let mut best: Option<Self> = None;
        let mut offer = |shift: f64, theta: f64, growth: f64| {
            let Some(off) = rough.shape(tilt, shift + theta, growth, depth) else { return };
            let unit = step.scale / step.records as f64;
            let raised = off.log_integral + 0.5 * ((shift + theta) * unit).powi(2);
            let needed = (raised - on_axis.log_integral).max(0.0) + depth + slack;
            let distance = theta * step.scale * step.scale / step.records as f64;
            // Off the axis a mask may cut less and a negative power grows, and the sum cancels as much.
            let grows = !step.mask.is_whole() || tilt < 0.0 || (step.substitute && tilt > 1.0);
            let grown = if shift > 0.0 && grows {
                let Some(path) = rough.shape(tilt, shift, 0.0, depth) else { return };
                (path.log_integral - on_axis.log_integral).max(0.0)
            } else {
                0.0
            };
            let wide = (grown > 0.0).then(|| rough.shape(tilt, shift, 0.0, depth + grown + 4.0));
            let ends = match &wide {
                Some(Some(path)) => path,
                Some(None) => return,
                None => &on_axis,
            };
            let found = Self {
                shift,
                theta,
                lost_bits: (0.5 * (shift * unit).powi(2) + grown) / std::f64::consts::LN_2,
                cramped: false,
                spacing: 2.0 * std::f64::consts::PI * distance / needed,
                from: ends.from,
                to: ends.to,
                log_integral: on_axis.log_integral,
            };
            let work = found.work(nodes, bits);
            let better = |best: &Self| match (found.lost_bits <= room, best.lost_bits <= room) {
                (true, true) => work < best.work(nodes, bits),
                (true, false) => true,
                (false, true) => false,
                (false, false) => found.lost_bits < best.lost_bits,
            };
            cheapest = cheapest.min(work);
            if best.as_ref().is_none_or(better) {
                best = Some(found);
            }
        };
        for theta in [0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.1, 1.3] {
            offer(0.0, narrow * theta, most);
        }
        if most > 0.0 {
            // Above the axis nothing grows with u, as long as the strip does not reach below it.
            for theta in [0.001, 0.01, 0.03, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.74] {
                offer(narrow * theta, narrow * theta, 0.0);
            }
        }
        let mut best = best?;
        best.cramped = cheapest < best.work(nodes, bits);
        // A short spacing makes grid points exact doubles.
        let power = best.spacing.log2().floor() - 4.0;
        best.spacing = (best.spacing / power.exp2()).floor() * power.exp2();
        Some(best)
    }
}

impl<const N: usize> Transform<N> {
    /// The grid of a choice; `most` bounds |u|.
    pub(super) fn new(step: &Step<N>, tilt: f64, most: f64, bits: f64, choice: &Choice) -> Self {
        let h = choice.spacing;
        let (first, last) = ((choice.from / h).floor() as i64, (choice.to / h).ceil() as i64);
        let (c, density) = (Ball::from_f64(tilt), Self::density(step));
        let path = Ball::from_f64(choice.shift);
        let turn = path.over_u64(step.records).cosine_sine();
        let y = path.over_u64(step.records).over(step.inverse_square());
        let mut transform = Self {
            weights: Vec::new(),
            losses: Vec::new(),
            error: Magnitude::ZERO,
            real: choice.shift == 0.0,
        };
        for j in first..=last {
            let x = Ball::from_f64(h) * signed(j);
            let (up, down) = if choice.shift > 0.0 {
                step.complex_logarithms(x, turn)
            } else {
                let (up, down) = step.logarithms(x);
                (Complex::new(up, Ball::ZERO), Complex::new(down, Ball::ZERO))
            };
            let z = Complex::new(x, y);
            let exponent = up.times_real(c) + down.times_real(Ball::one() - c)
                - z.squared().times_real(step.inverse_square().scaled(-1));
            let weight = if choice.shift > 0.0 {
                exponent.exponential()
            } else {
                Complex::new(exponent.re.exponential(), Ball::ZERO)
            };
            let mut weight = weight.times_real(density * Ball::from_f64(h));
            if !step.mask.is_whole() {
                weight = weight * step.mask_at(x, turn);
            }
            transform.weights.push(weight);
            transform.losses.push(up - down);
        }
        let floor = choice.log_integral - (bits + 30.0) * std::f64::consts::LN_2;
        // On the real axis factors grow as e^(u |angle|); above it they fall.
        let growth = if choice.shift > 0.0 { 0.0 } else { most };
        let strip = Lines::new(step, tilt, choice.shift + choice.theta, growth);
        let integral = strip.whole(floor).times(strip.off_axis(strip.theta).above());
        let distance =
            Ball::from_f64(choice.theta).over_u64(step.records).over(step.inverse_square());
        let line = Lines::new(step, tilt, choice.shift, 0.0);
        let far = line.far();
        let (left, right) = (h * first as f64, h * last as f64);
        let left_out = line
            .between(-far, left, h, floor)
            .plus(line.between(right, far, h, floor))
            .plus(line.beyond(h))
            .times(line.off_axis(path).above());
        transform.error = trapezoid_error(integral, distance, h).plus(left_out);
        transform
    }

    /// Points of the real axis.
    pub(super) fn from_points(
        weights: Vec<Complex<N>>,
        losses: Vec<Complex<N>>,
        error: Magnitude,
    ) -> Self {
        Self { weights, losses, error, real: true }
    }

    /// Adds points of the real axis with a factor; mirrored, losses have the other sign.
    pub(super) fn add(&mut self, factor: Ball<N>, other: Self, mirrored: bool) {
        let loss = |loss: Complex<N>| if mirrored { -loss } else { loss };
        self.weights.extend(other.weights.into_iter().map(|weight| weight.times_real(factor)));
        self.losses.extend(other.losses.into_iter().map(loss));
        self.error = self.error.plus(other.error.times(factor.above()));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Points with complex weights, real losses and no error of their own.
    pub(super) fn turned_points(weights: Vec<Complex<N>>, losses: Vec<Complex<N>>) -> Self {
        Self { weights, losses, error: Magnitude::ZERO, real: true }
    }

    pub(super) fn density(step: &Step<N>) -> Ball<N> {
        (Ball::pi().scaled(1).root() * step.deviation()).reciprocal()
    }

    /// M(c).
    pub(super) fn real(&self) -> Ball<N> {
        self.weights.iter().fold(Ball::ZERO, |sum, w| sum + w.re).widened(self.error)
    }

    /// All nodes by one Fourier transform.
    fn at_once(&self, du: f64, nodes: usize, bits: f64) -> Option<Vec<Complex<N>>> {
        let losses: Vec<Ball<N>> = self.losses.iter().map(|loss| loss.re).collect();
        let mut all = fast::sums(&self.weights, &losses, du, nodes, bits)?;
        for node in &mut all {
            node.re = node.re.widened(self.error);
            node.im = node.im.widened(self.error);
        }
        Some(all)
    }

    /// M(c + i k du) for k = 0 .. nodes.
    ///
    /// Each weight is divided by a power of two S above their sum and turned by a fixed-point rotor.
    /// A turn is off by at most sqrt(2) (unit + radius) in modulus, a product by 2 sqrt(2) units more,
    /// and moduli stay below 1. So k turns are off by less than (k + 1) (4.3 units + 1.5 radius),
    /// stated below with 8 for both.
    /// Many nodes of real losses go by one Fourier transform ([`super::fast`]).
    pub(super) fn nodes(&self, du: f64, nodes: usize, bits: f64) -> Vec<Complex<N>> {
        if self.real
            && fast::is_cheaper(self.weights.len(), nodes, bits)
            && let Some(all) = self.at_once(du, nodes, bits)
        {
            return all;
        }
        let sum = self.weights.iter().fold(Magnitude::ZERO, |sum, weight| sum.plus(weight.above()));
        let power = sum.order() + 1;
        let spacing = Ball::from_f64(du);
        let mut widest = Magnitude::ZERO;
        let mut turns = Vec::new();
        let mut now = Vec::new();
        for (weight, loss) in self.weights.iter().zip(&self.losses) {
            // e^(i du L), of modulus at most 1 since Im L >= 0.
            let turn = Complex::new(-(loss.im * spacing), loss.re * spacing).exponential();
            let start = Complex::new(weight.re.scaled(-power), weight.im.scaled(-power));
            for radius in [turn.re.radius, turn.im.radius, start.re.radius, start.im.radius] {
                widest = widest.max(radius);
            }
            turns.push(Rotor::from_complex(&turn));
            now.push(Rotor::from_complex(&start));
        }
        let unit = Magnitude::power_of_two(Fixed::<N>::UNIT);
        let each = unit.plus(widest).scaled(3);
        let count = Magnitude::from_f64(self.weights.len() as f64);
        (0..=nodes)
            .map(|k| {
                let mut total = Rotor { re: Fixed::ZERO, im: Fixed::ZERO };
                for value in &now {
                    total = Rotor { re: total.re.plus(value.re), im: total.im.plus(value.im) };
                }
                for (value, turn) in now.iter_mut().zip(&turns) {
                    *value = value.times(*turn);
                }
                let radius = each.times(count).times(Magnitude::from_f64(k as f64 + 1.0));
                let node = total.to_complex(radius);
                Complex {
                    re: node.re.scaled(power).widened(self.error),
                    im: node.im.scaled(power).widened(self.error),
                }
            })
            .collect()
    }
}

fn signed<const N: usize>(j: i64) -> Ball<N> {
    let size = Ball::from_u64(j.unsigned_abs());
    if j < 0 { -size } else { size }
}

/// A bound on |M(c + iu)| for every u >= `from`, by moving the path of integration to x + iy.
///
/// |A(x+iy)^s| = |A|^c e^(-u arg A), and arg A >= 0 >= arg B there, so the bound falls with u and its
/// value at `from` holds for all larger u. The integral of the modulus is that of an analytic
/// function, exp of (s ln A(x+iy) + conj(s) ln A(x-iy))/2 and so on, to which the trapezoid rule applies.
/// At x + i eta its factor in u is e^(-u (arg A(x+i(y+eta)) + arg A(x+i(y-eta)))/2) <= 1: arg A is odd in y
/// and rises with it, since d arg A/dy = Re(z A'/A)/s^2 is a sum of terms j a_i a_j |z|^(i+j)
/// cos((j-i) y/s^2), none of them negative while angles are below pi/2.
pub(super) fn tail_bound<const N: usize>(
    step: &Step<N>,
    rough: &Rough,
    tilt: f64,
    from: f64,
    theta: f64,
    bits: f64,
) -> Option<Ball<N>> {
    let depth = bits * std::f64::consts::LN_2 + 6.0;
    let on_axis = rough.shape(tilt, 0.0, 0.0, depth)?;
    // What moving the path multiplies the sum and its error by.
    let moved = 0.5 * (theta * step.scale / step.records as f64).powi(2);
    // The strip with the widest spacing among those that stay below an angle of pi/2 in all.
    let mut best: Option<(f64, f64)> = None;
    for strip in [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4] {
        if theta + strip > 1.5 {
            continue;
        }
        let Some(off) = rough.shape(tilt, theta + strip, 0.0, depth) else { continue };
        let distance = strip * step.scale * step.scale / step.records as f64;
        let raised = off.log_integral + 0.5 * (distance / step.scale).powi(2) + moved;
        let needed = (raised - on_axis.log_integral).max(0.0) + depth;
        let spacing = 2.0 * std::f64::consts::PI * distance / needed;
        if best.as_ref().is_none_or(|best| spacing > best.1) {
            best = Some((strip, spacing));
        }
    }
    let (strip_theta, spacing) = best?;
    // Where the path's own sum comes from: a negative power grows off the axis.
    let grown = rough.shape(tilt, theta, 0.0, depth)?.log_integral - on_axis.log_integral;
    let path = rough.shape(tilt, theta, 0.0, depth + grown.max(0.0) + 4.0)?;
    let power = spacing.log2().floor() - 4.0;
    let h = (spacing / power.exp2()).floor() * power.exp2();
    let (first, last) = ((path.from / h).floor() as i64, (path.to / h).ceil() as i64);
    if last - first > 200_000 {
        return None;
    }
    let angle = Ball::from_f64(theta);
    let turn = angle.over_u64(step.records).cosine_sine();
    let (c, u) = (Ball::from_f64(tilt), Ball::from_f64(from));
    let mut sum = Ball::ZERO;
    for j in first..=last {
        let x = Ball::from_f64(h) * signed(j);
        let (up, down) = step.complex_logarithms(x, turn);
        let exponent = c * up.re + (Ball::one() - c) * down.re
            - u * (up.im - down.im)
            - (x.squared() * step.inverse_square()).scaled(-1);
        sum = sum + exponent.exponential();
    }
    let sum = sum * Transform::density(step) * Ball::from_f64(h);
    let floor = on_axis.log_integral - depth - 20.0;
    let lines = Lines::new(step, tilt, theta + strip_theta, 0.0);
    let strip = Ball::from_f64(strip_theta);
    let distance = strip.over_u64(step.records).over(step.inverse_square());
    let whole = lines.whole(floor).times(lines.off_axis(strip).above());
    let line = Lines::new(step, tilt, theta, 0.0);
    let far = line.far();
    let error = trapezoid_error(whole, distance, h)
        .plus(line.between(-far, h * first as f64, h, floor))
        .plus(line.between(h * last as f64, far, h, floor))
        .plus(line.beyond(h));
    Some((sum.widened(error) * lines.off_axis(angle)).upper())
}
