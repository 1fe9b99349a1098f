//! The curves behind the numbers.

use crate::run::{Described, TextFile, load};
use crate::{Refusal, Several};
use accounting::curve::{Curve, CurveKind, CurveRequest};
use serde::Deserialize;
use vocabulary::{Direction, LensName};

/// Points of a curve unless another number is asked for.
pub const POINTS: u64 = 65;

/// The question of `curve`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveQuestion {
    pub kind: CurveKind,
    #[serde(default)]
    pub files: Vec<TextFile>,
    #[serde(default)]
    pub run: Described,
    /// Composition where empty.
    #[serde(default)]
    pub lens: Several<LensName>,
    pub direction: Option<Direction>,
    pub points: Option<u64>,
    /// False positive rates of `tradeoff`, in place of points.
    #[serde(default)]
    pub fpr: Several<f64>,
    /// Epsilons of `profile`, in place of points.
    #[serde(default)]
    pub epsilon: Several<f64>,
    /// Of `steps`.
    pub delta: Option<f64>,
    /// Of `steps`: the fewest steps that are drawn.
    pub first: Option<u64>,
}

pub(crate) fn ask(question: &CurveQuestion) -> Result<Curve, Refusal> {
    let run = load(&question.files, &question.run)?.resolved.run;
    let kind = question.kind;
    let foreign = [
        ("--fpr", !question.fpr.is_empty() && kind != CurveKind::Tradeoff, "tradeoff"),
        ("--epsilon", !question.epsilon.is_empty() && kind != CurveKind::Profile, "profile"),
        ("--delta", question.delta.is_some() && kind != CurveKind::Steps, "steps"),
        ("--first", question.first.is_some() && kind != CurveKind::Steps, "steps"),
    ];
    for (flag, given, owner) in foreign {
        if given {
            return Err(Refusal::bad_input(format!("{flag} belongs to `curve {owner}`; drop it")));
        }
    }
    let points = usize::try_from(question.points.unwrap_or(POINTS)).unwrap_or(usize::MAX);
    let request = CurveRequest {
        kind,
        lenses: if question.lens.is_empty() {
            vec![LensName::Composition]
        } else {
            question.lens.0.clone()
        },
        direction: question.direction.unwrap_or(Direction::Both),
        delta: question.delta,
        at: match kind {
            CurveKind::Tradeoff => question.fpr.0.clone(),
            CurveKind::Profile => question.epsilon.0.clone(),
            CurveKind::Steps => question
                .first
                .filter(|_| points <= MOST_COUNTS)
                .map_or_else(Vec::new, |first| counts(first, run.steps(), points)),
        },
        points,
    };
    Ok(accounting::curve::curve(&run, &request)?)
}

/// More points than the curve answers; it refuses them itself.
const MOST_COUNTS: usize = 100_000;

/// Whole numbers of steps from the first to the last, evenly on a logarithmic axis.
fn counts(first: u64, last: u64, points: usize) -> Vec<f64> {
    let (low, high) = (first.clamp(1, last) as f64, last as f64);
    let parts = points.max(2) - 1;
    let place = |part: usize| (low.ln() + (high / low).ln() * part as f64 / parts as f64).exp();
    let mut all: Vec<f64> = (0..=parts).map(|part| place(part).round().clamp(low, high)).collect();
    all.dedup();
    all
}
