//! The profile and the trade-off curve of several lenses, fast enough to
//! follow a slider.
//!
//! One sweep of delta over a common grid of epsilons serves both: the trade-off curve is the
//! envelope of the tangents that the profile gives ([`accounting::curve::most_power`]), an
//! upper bound on any attack that is within a percent of the exact curve. Numbers that people
//! quote come from `account` and `curve`; this is what is drawn.

use crate::Refusal;
use crate::run::Described;
use crate::several::several;
use accounting::AccountingError;
use accounting::curve::most_power;
use accounting::lenses::Lens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::{Direction, LensName, Run, Standing, Unsupported};

/// The smallest delta that is drawn.
const LEAST_DELTA: f64 = 1e-8;
/// Rates per decade of the trade-off curve, which has five.
const RATES: i32 = 8;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelQuestion {
    #[serde(default)]
    pub run: Described,
    #[serde(default, deserialize_with = "several")]
    pub lens: Vec<LensName>,
    /// Steps of the grid of epsilons.
    pub points: Option<usize>,
    /// Seconds of processor time that the answer may take [default: 10].
    pub time_limit: Option<f64>,
}

/// The `dosimeter.panel/1` document: upper ends only, because that is what is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Panel {
    pub schema: &'static str,
    pub run: Run,
    pub epsilon: Vec<f64>,
    pub fpr: Vec<f64>,
    pub lines: Vec<PanelLine>,
    pub unsupported: Vec<Unsupported>,
}

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PanelLine {
    pub lens: LensName,
    pub standing: Standing,
    pub delta: Vec<f64>,
    pub tpr: Vec<f64>,
}

impl Panel {
    pub const SCHEMA: &'static str = "dosimeter.panel/1";
}

pub(crate) fn ask(question: &PanelQuestion) -> Result<Panel, Refusal> {
    let run = question.run.run()?;
    let mut chosen = question.lens.clone();
    if chosen.is_empty() {
        chosen = vec![LensName::SIGNED, LensName::BESIDE];
    }
    let points = question.points.unwrap_or(48);
    if !(8..=256).contains(&points) {
        return Err(Refusal::bad_input(format!("{points} points are outside of 8 to 256")));
    }
    let mut farthest = None;
    let mut epsilon = Vec::new();
    let (mut lines, mut unsupported) = (Vec::new(), Vec::new());
    for name in chosen {
        let lens = Lens::named(name);
        let line = lens.look(&run).and_then(|view| {
            if farthest.is_none() {
                let end = view.epsilon(LEAST_DELTA, Direction::Both)?.upper;
                let end = if end.is_finite() { end.max(1e-6) } else { 50.0 };
                farthest = Some(end);
                let step = end / points as f64;
                epsilon = (0..=points).map(|part| step * part as f64).collect();
            }
            let delta = epsilon
                .iter()
                .map(|epsilon| Ok(view.delta(*epsilon, Direction::Both)?.upper.min(1.0)))
                .collect::<Result<Vec<f64>, AccountingError>>()?;
            Ok((lens.standing(&run), delta))
        });
        match line {
            Ok((standing, delta)) => {
                lines.push(PanelLine { lens: name, standing, delta, tpr: Vec::new() });
            }
            Err(AccountingError::Unsupported(reason)) => {
                unsupported.push(Unsupported::new(name, &reason));
            }
            Err(error) => unsupported.push(Unsupported::refused(name, &error)),
        }
    }
    let fpr: Vec<f64> =
        (-5 * RATES..=0).map(|part| 10_f64.powf(f64::from(part) / f64::from(RATES))).collect();
    for line in &mut lines {
        let profile: Vec<(f64, f64)> =
            epsilon.iter().copied().zip(line.delta.iter().copied()).collect();
        line.tpr = fpr.iter().map(|fpr| most_power(&profile, *fpr)).collect();
    }
    Ok(Panel { schema: Panel::SCHEMA, run, epsilon, fpr, lines, unsupported })
}
