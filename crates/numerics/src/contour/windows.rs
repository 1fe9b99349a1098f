//! Many masks instead of one pair: the largest step's loss decides the tilt.
//!
//! Where one large loss and many small ones reach a threshold together, no single tilt suits: it
//! has to be small if the large loss does most of the way and large if it does little. So the
//! losses are cut at levels e_1 < ... < e_m, and the sum splits exactly by which window the
//! largest loss lies in: with b_j the transform of what lies below e_j, b_{m+1} = A,
//!   A^T = b_1^T + sum over j of (b_{j+1}^T - b_j^T).
//! Each term is the middle part M of a masked line (module `masked`), with a tilt of its own. All
//! are positive, so nothing cancels between them; those that a Chernoff bound shows to be
//! negligible are not computed.

use super::Part;
use super::hard::Choice;
use super::line::{Obstacle, Value};
use super::masked::{Answers, Edge, MaskedLine, MaskedTilt, Masks};
use crate::elementary::{exp, ln};

/// Lines whose sum is the answer, good for thresholds near the one they were made for.
#[derive(Debug)]
pub(crate) struct Windows {
    lines: Vec<MaskedLine>,
    /// Chernoff factors (tilt, logarithm) of the windows without a line.
    left_out: Vec<(f64, f64)>,
    /// Relative error at the threshold it was made for.
    error: f64,
    /// How its masks were placed.
    choice: Option<Choice>,
}

/// A window this much (in logarithms) below the largest is left out.
const NEGLIGIBLE: f64 = 30.0;

impl Windows {
    /// One pair of masks a part.
    pub(crate) fn single(
        parts: &[Part],
        masks: Vec<Masks>,
        t: f64,
        may_smooth: bool,
    ) -> Result<Self, Obstacle> {
        let place = MaskedTilt::new(parts, masks, t, Answers { high: true, low: true })?;
        let line = place.line(t, may_smooth)?;
        Ok(Self { error: line.error(), lines: vec![line], left_out: Vec::new(), choice: None })
    }

    /// A cascade of cuts, from the highest edge to the lowest: `edges[k]` has one for each part.
    pub(crate) fn cascade(parts: &[Part], edges: &[Vec<Edge>], t: f64) -> Result<Self, Obstacle> {
        let mut out =
            Self { lines: Vec::new(), left_out: Vec::new(), error: f64::INFINITY, choice: None };
        let mut places: Vec<MaskedTilt> = Vec::with_capacity(edges.len());
        let mut largest = f64::MIN;
        let mut rest: Option<(f64, f64)> = None;
        for k in 0..edges.len() {
            let masks = (0..parts.len())
                .map(|part| Masks {
                    uppers: edges[..=k].iter().map(|edges| edges[part]).collect(),
                    lower: edges.get(k + 1).map(|edges| edges[part]),
                })
                .collect();
            let place = match MaskedTilt::new(parts, masks, t, Answers { high: k == 0, low: false })
            {
                Ok(place) => place,
                // No tilt is high enough: the bound on what is left has to do.
                Err(obstacle) => {
                    out.left_out.push(rest.ok_or(obstacle)?);
                    break;
                }
            };
            largest = largest.max(place.promised(t));
            // What is left when all losses are below the next edge may be out of reach.
            rest = place.bound_below(t);
            places.push(place);
            if let Some(bound) = rest.filter(|bound| at(bound, t) < largest - NEGLIGIBLE) {
                out.left_out.push(bound);
                break;
            }
        }
        for (k, place) in places.into_iter().enumerate() {
            // The first line also answers for what lies above all edges.
            let bound = place.bound().filter(|_| k > 0);
            match bound.filter(|bound| at(bound, t) < largest - NEGLIGIBLE) {
                Some(bound) => out.left_out.push(bound),
                None => out.lines.push(place.line(t, false)?),
            }
        }
        out.error = out.value(t).relative_error();
        Ok(out)
    }

    /// With the choice of masks it came from.
    pub(crate) fn chosen(self, choice: Choice) -> Self {
        Self { choice: Some(choice), ..self }
    }

    pub(crate) fn choice(&self) -> Option<Choice> {
        self.choice
    }

    pub(crate) fn nodes(&self) -> usize {
        self.lines.iter().map(MaskedLine::nodes).sum()
    }

    /// Relative error at the threshold it was made for: what fresh lines would have.
    pub(crate) fn error(&self) -> f64 {
        self.error
    }

    /// e^t E (e^{Y-t} - 1)_+ : mantissa and errors relative to e^log_scale.
    pub(crate) fn value(&self, t: f64) -> Value {
        let values: Vec<Value> = self.lines.iter().map(|line| line.value(t)).collect();
        if let ([value], []) = (values.as_slice(), self.left_out.as_slice()) {
            return *value;
        }
        let log_scale = values
            .iter()
            .map(|value| value.log_scale + ln(value.mantissa.abs().max(f64::MIN_POSITIVE)))
            .fold(f64::MIN, f64::max);
        let mut sum = Value { log_scale, mantissa: 0.0, below: 0.0, above: 0.0, slope: 0.0 };
        for value in &values {
            let unit = exp(value.log_scale - log_scale);
            sum.mantissa += unit * value.mantissa;
            sum.slope += unit * value.slope;
            // The factor's own rounding goes with the size of its logarithm.
            let slip = f64::EPSILON * (4.0 + (value.log_scale - log_scale).abs());
            let round = slip * unit * value.mantissa.abs();
            sum.below += unit * value.below * (1.0 + slip) + round;
            sum.above += unit * value.above * (1.0 + slip) + round;
        }
        for bound in &self.left_out {
            sum.above += exp(at(bound, t) - log_scale);
        }
        sum
    }
}

/// log of a Chernoff bound at threshold t.
fn at((tilt, log): &(f64, f64), t: f64) -> f64 {
    log - (tilt - 1.0) * t
}
