//! Laws in doubles: what chooses tilts, spacings and how far a line goes. Nothing here is trusted.

use super::law::{Law, Strand};
use super::rough::{Rough, Shape};

pub(super) struct RoughStrand {
    weight: f64,
    pub(super) rough: Rough,
    half: bool,
    mirror: Option<Rough>,
}

impl RoughStrand {
    pub(super) fn mirrored(&self) -> &Rough {
        self.mirror.as_ref().unwrap_or(&self.rough)
    }
}

/// A law in doubles.
pub struct RoughLaw {
    pub times: f64,
    atom: f64,
    pub(super) strands: Vec<RoughStrand>,
}

/// Where the integrals of a strand come from.
pub(super) enum Shapes {
    Whole(Shape),
    Half([Shape; 2]),
}

/// Angles of the paths for the nodes left out, two for each strand.
pub(super) type Angles = Vec<[f64; 2]>;

impl RoughLaw {
    pub fn new<const N: usize>(law: &Law<N>) -> Self {
        let strand = |strand: &Strand<N>| RoughStrand {
            weight: strand.weight.to_f64(),
            rough: Rough::new(&strand.step),
            half: strand.half,
            mirror: strand.mirror.as_ref().map(Rough::new),
        };
        Self {
            times: law.times as f64,
            atom: law.atom.to_f64(),
            strands: law.strands.iter().map(strand).collect(),
        }
    }

    /// The step, where it is all there is.
    pub(super) fn as_plain(&self) -> Option<&Rough> {
        match self.strands.as_slice() {
            [one] if !one.half && self.atom == 0.0 => Some(&one.rough),
            _ => None,
        }
    }

    /// ln M(c).
    pub fn log_moment(&self, c: f64) -> f64 {
        if let Some(rough) = self.as_plain() {
            return rough.log_moment(c);
        }
        (self.atom + self.moment_beside(c)).ln()
    }

    /// The probability of the atom.
    pub(super) fn atom(&self) -> f64 {
        self.atom
    }

    /// M(c) without the atom.
    pub(super) fn moment_beside(&self, c: f64) -> f64 {
        let part = |strand: &RoughStrand| {
            strand.weight
                * if strand.half {
                    strand.rough.log_half(c).exp() + strand.mirrored().log_half(1.0 - c).exp()
                } else {
                    strand.rough.log_moment(c).exp()
                }
        };
        self.strands.iter().map(part).sum()
    }

    /// The part of the usual angles that the masks allow.
    pub(super) fn narrow(&self) -> f64 {
        self.strands.iter().map(|strand| strand.rough.narrow()).fold(1.0, f64::min)
    }

    /// ln of a bound on |M(c + iu)| and beyond, of middle outcomes.
    pub(super) fn log_middle(&self, c: f64, u: f64, angle: (f64, f64)) -> f64 {
        let part =
            |strand: &RoughStrand| strand.weight * strand.rough.log_middle(c, u, angle).exp();
        self.strands.iter().map(part).sum::<f64>().ln()
    }

    /// What is needed to ask for tails at one tilt.
    pub(super) fn shapes(&self, c: f64) -> Option<Vec<Shapes>> {
        self.strands
            .iter()
            .map(|strand| {
                if strand.half {
                    return strand.rough.halves(c).map(Shapes::Half);
                }
                strand.rough.shape(c, 0.0, 0.0, 60.0).map(Shapes::Whole)
            })
            .collect()
    }

    /// ln of a bound on |M(c + iu)| for all u >= `u`, with the angles that give it.
    pub(super) fn tail(&self, c: f64, u: f64, shapes: &[Shapes]) -> (f64, Angles) {
        if let (Some(rough), [Shapes::Whole(shape)]) = (self.as_plain(), shapes) {
            let (angle, log) = rough.best_tail(c, u, shape);
            return (log, vec![[angle, angle]]);
        }
        let (beside, angles) = self.tail_beside(c, u, shapes);
        ((self.atom + beside).ln(), angles)
    }

    /// The same without the atom, and no logarithm of it.
    pub(super) fn tail_beside(&self, c: f64, u: f64, shapes: &[Shapes]) -> (f64, Angles) {
        let (mut sum, mut angles) = (0.0, Vec::new());
        for (strand, shape) in self.strands.iter().zip(shapes) {
            match shape {
                Shapes::Whole(shape) => {
                    let (angle, log) = if strand.rough.reach().is_finite() {
                        strand.rough.best_clipped(c, u)
                    } else {
                        strand.rough.best_tail(c, u, shape)
                    };
                    sum += strand.weight * log.exp();
                    angles.push([angle, angle]);
                }
                Shapes::Half(shapes) => {
                    // Both by one angle, where the bound has to be close.
                    let (angle, joined) = strand.rough.best_joined(shapes, c, u);
                    let whole = shapes.iter().map(|shape| shape.log_integral.exp()).sum::<f64>();
                    if joined > 0.5 * whole {
                        sum += strand.weight * joined;
                        angles.push([angle; 2]);
                        continue;
                    }
                    let best = |tilt: f64| {
                        [0.02, 0.08, 0.25, 0.6, 1.0, 1.4]
                            .map(|angle| (angle, strand.rough.log_half_tail(tilt, u, angle)))
                            .into_iter()
                            .fold((0.0, f64::INFINITY), |a, b| if b.1 < a.1 { b } else { a })
                    };
                    let (one, two) = (best(c), best(1.0 - c));
                    let apart = one.1.exp() + two.1.exp();
                    sum += strand.weight * apart.min(joined);
                    angles.push(if joined < apart { [angle; 2] } else { [one.0, two.0] });
                }
            }
        }
        (sum, angles)
    }
}
