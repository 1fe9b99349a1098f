//! What single jumps do to the cumulant, in closed form: a guide for where to look, never an answer.
//!
//! A component of weight w at distance m (in standard deviations) has its points far from the bulk,
//! so that A(s) = E (P/Q)^s is about (1-w)^s + J(s) with J(s) = w^s e^{s(s-1) m^2/2}, s > 1: next to
//! nothing up to a cliff, and everything beyond. Below 0 the components of Q do the same with 1 - s.

use super::Part;
use crate::elementary::{exp, ln, ln_1p};

/// The components of all parts.
#[derive(Clone, Debug)]
pub(crate) struct Jumps {
    above: Vec<Jump>,
    below: Vec<Jump>,
}

#[derive(Clone, Copy, Debug)]
struct Jump {
    times: f64,
    log_weight: f64,
    /// log(w / (1 - w))
    log_odds: f64,
    square: f64,
}

impl Jump {
    /// log J
    fn log(&self, tilt: f64) -> f64 {
        tilt * (self.log_weight + 0.5 * (tilt - 1.0) * self.square)
    }
}

impl Jumps {
    pub(crate) fn new(parts: &[Part]) -> Self {
        let mut jumps = Self { above: Vec::new(), below: Vec::new() };
        for part in parts {
            let jump = |component: &crate::mixture::Component| {
                let distance = component.centre / part.pair.scale();
                Jump {
                    times: part.times,
                    log_weight: ln(component.weight),
                    log_odds: ln(component.weight) - ln_1p(-component.weight),
                    square: distance * distance,
                }
            };
            jumps.above.extend(part.pair.numerator().iter().map(jump));
            jumps.below.extend(part.pair.denominator().iter().map(jump));
        }
        jumps
    }

    /// A lower bound on T K(tilt) at tilts above 1 (about one, if Q is a mixture too): T log J.
    pub(crate) fn least(&self, tilt: f64) -> f64 {
        self.above.iter().map(|jump| jump.times * jump.log(tilt).max(0.0)).fold(0.0, f64::max)
    }

    /// log of the part of one step's A(c) that lies at the jumps.
    pub(crate) fn log_share(&self, c: f64) -> f64 {
        let (jumps, tilt) = if c > 0.5 { (&self.above, c) } else { (&self.below, 1.0 - c) };
        jumps.iter().map(|jump| jump.log(tilt)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// A tilt just beyond the nearest cliff, where J = 1.
    pub(crate) fn cliff(&self) -> f64 {
        let of = |jump: &Jump| 1.01 * (1.0 - 2.0 * jump.log_weight / jump.square);
        self.above.iter().map(of).fold(f64::INFINITY, f64::min)
    }

    /// What they add to T K(c), T K'(c) and T K''(c), up to a straight line: T log(1 + J/(1-w)^c).
    pub(crate) fn cumulant(&self, c: f64) -> (f64, f64, f64) {
        let (jumps, tilt, sign) = if c > 1.0 {
            (&self.above, c, 1.0)
        } else if c < 0.0 {
            (&self.below, 1.0 - c, -1.0)
        } else {
            return (0.0, 0.0, 0.0);
        };
        let mut sum = (0.0, 0.0, 0.0);
        for jump in jumps {
            let log = tilt * (jump.log_odds + 0.5 * (tilt - 1.0) * jump.square);
            let slope = jump.log_odds + (tilt - 0.5) * jump.square;
            // Before it rises its points belong to the bulk; without a bulk all is one parabola.
            if slope <= 0.0 || log == f64::INFINITY {
                continue;
            }
            let small = exp(-log.abs());
            let share = if log > 0.0 { 1.0 } else { small } / (1.0 + small);
            sum.0 += jump.times * (log.max(0.0) + ln_1p(small));
            sum.1 += jump.times * sign * share * slope;
            sum.2 += jump.times * share * ((1.0 - share) * slope * slope + jump.square);
        }
        sum
    }
}
