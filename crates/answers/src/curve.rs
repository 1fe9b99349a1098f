//! The curves behind the numbers.

use crate::Refusal;
use crate::flags::{lens, nonnegative_integer, real, word};
use crate::run::{Described, TextFile, load};
use crate::several::several;
use accounting::curve::{Curve, CurveKind, CurveRequest};
use clap::Args;
use clap::builder::PossibleValue;
use serde::Deserialize;
use vocabulary::{Direction, LensName};

/// Points of a curve unless another number is asked for.
pub const POINTS: u64 = 65;

/// The question of `curve`.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(deny_unknown_fields)]
pub struct CurveQuestion {
    /// Which curve
    #[arg(value_parser = word::<CurveKind>(kinds()))]
    pub kind: CurveKind,
    #[arg(skip)]
    #[serde(default)]
    pub files: Vec<TextFile>,
    #[arg(skip)]
    #[serde(default)]
    pub run: Described,
    /// Use this lens (may be repeated) [default: composition]
    #[arg(long, value_name = "LENS", value_parser = lens, value_delimiter = ',')]
    #[serde(default, deserialize_with = "several")]
    pub lens: Vec<LensName>,
    /// Adding a record, removing one, or the worse of both
    #[arg(long, value_parser = word::<Direction>(["both", "add", "remove"]), default_value = "both", value_name = "WAY")]
    pub direction: Option<Direction>,
    /// Number of points
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "65")]
    pub points: Option<u64>,
    /// False positive rates of `tradeoff`, in place of --points
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    #[serde(default, deserialize_with = "several")]
    pub fpr: Vec<f64>,
    /// Epsilons of `profile`, in place of --points
    #[arg(long, value_name = "EPSILON", value_parser = real, allow_hyphen_values = true, value_delimiter = ',')]
    #[serde(default, deserialize_with = "several")]
    pub epsilon: Vec<f64>,
    /// Delta of `steps`
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Fewest steps that `steps` draws, at most the run's [default: 1]
    #[arg(long, value_name = "T", value_parser = nonnegative_integer)]
    pub first: Option<u64>,
    /// Seconds of processor time that the answer may take [default: 10].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

fn kinds() -> [PossibleValue; 3] {
    [
        PossibleValue::new("tradeoff").help("False negative rate against false positive rate"),
        PossibleValue::new("profile").help("Delta against epsilon"),
        PossibleValue::new("steps").help("Epsilon against the number of steps"),
    ]
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
            vec![LensName::SIGNED]
        } else {
            question.lens.clone()
        },
        direction: question.direction.unwrap_or(Direction::Both),
        delta: question.delta,
        at: match kind {
            CurveKind::Tradeoff => question.fpr.clone(),
            CurveKind::Profile => question.epsilon.clone(),
            CurveKind::Steps => Vec::new(),
        },
        first: question.first.unwrap_or(1),
        points,
    };
    Ok(accounting::curve::curve(&run, &request)?)
}
