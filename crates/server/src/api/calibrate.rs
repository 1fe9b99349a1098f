//! `POST /api/calibrate`: the document of `dosimeter calibrate --format json`.

use super::run::describe;
use super::{App, body, json};
use crate::error::ApiError;
use accounting::{Calibration, Target, Unknown};
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use vocabulary::{LensName, RunDescription, Sampling};

/// The flags of the command, in snake case; `run` leaves out what is solved for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CalibrateQuestion {
    run: Value,
    solve: Unknown,
    #[serde(default)]
    lens: Option<LensName>,
    target_epsilon: Option<f64>,
    target_mu: Option<f64>,
    target_bayes_security: Option<f64>,
    target_advantage: Option<f64>,
    target_tpr: Option<f64>,
    target_attack_accuracy: Option<f64>,
    target_reconstruction: Option<f64>,
    delta: Option<f64>,
    fpr: Option<f64>,
    prior: Option<f64>,
}

pub(super) async fn handle(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let question: CalibrateQuestion = body::question(&app, &headers, body).await?;
    let calibration = app.work.run(move || answer(&question)).await?;
    json(&calibration)
}

fn answer(question: &CalibrateQuestion) -> Result<Calibration, ApiError> {
    let target = question.target()?;
    let resolved = blanked(describe(&question.run)?, question.solve)?.resolve()?;
    let lens = question.lens.unwrap_or(LensName::Composition);
    Ok(accounting::calibrate(&resolved.run, question.solve, &target, lens, &resolved.notes)?)
}

impl CalibrateQuestion {
    fn target(&self) -> Result<Target, ApiError> {
        let need = |value: Option<f64>, target: &str, name: &str| {
            value.ok_or_else(|| ApiError::bad_input(format!("`{target}` needs `{name}`")))
        };
        let mut found = Vec::new();
        if let Some(epsilon) = self.target_epsilon {
            let delta = need(self.delta, "target_epsilon", "delta")?;
            found.push(Target::Epsilon { epsilon, delta });
        }
        if let Some(mu) = self.target_mu {
            found.push(Target::Mu { mu, delta: need(self.delta, "target_mu", "delta")? });
        }
        if let Some(bayes_security) = self.target_bayes_security {
            found.push(Target::BayesSecurity { bayes_security });
        }
        if let Some(advantage) = self.target_advantage {
            found.push(Target::Advantage { advantage });
        }
        if let Some(tpr) = self.target_tpr {
            found.push(Target::Tpr { tpr, fpr: need(self.fpr, "target_tpr", "fpr")? });
        }
        if let Some(accuracy) = self.target_attack_accuracy {
            found.push(Target::AttackAccuracy { accuracy, prior: self.prior.unwrap_or(0.5) });
        }
        if let Some(success) = self.target_reconstruction {
            let prior = need(self.prior, "target_reconstruction", "prior")?;
            found.push(Target::Reconstruction { success, prior });
        }
        match found.as_slice() {
            [target] => Ok(*target),
            [] => Err(ApiError::bad_input("no target was given; add one, e.g. `target_epsilon`")),
            _ => Err(ApiError::bad_input("several targets were given together; keep one")),
        }
    }
}

/// A placeholder where the unknown is, after checking that it was left out.
fn blanked(mut run: RunDescription, solve: Unknown) -> Result<RunDescription, ApiError> {
    let whole = &mut run.whole;
    let (given, name) = match solve {
        Unknown::NoiseMultiplier => (whole.noise_multiplier.is_some(), "noise_multiplier"),
        Unknown::Steps => (whole.steps.is_some() || whole.epochs.is_some(), "steps or epochs"),
        Unknown::SampleRate => (
            whole.sample_rate.is_some() || whole.batch_size.is_some() || whole.epochs.is_some(),
            "sample_rate, batch_size or epochs",
        ),
    };
    if given {
        return Err(ApiError::bad_input(format!(
            "`run` has {name}, which is solved for or follows from it; leave it out"
        )));
    }
    match solve {
        Unknown::NoiseMultiplier => whole.noise_multiplier = Some(1.0),
        Unknown::Steps => whole.steps = Some(1),
        Unknown::SampleRate => {
            if run.sampling != Some(Sampling::Full) {
                whole.sample_rate = Some(0.01);
            }
        }
    }
    Ok(run)
}
