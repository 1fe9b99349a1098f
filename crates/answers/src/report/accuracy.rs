//! Accuracy of the best attacker who knows how likely membership is beforehand.

use super::curves::{hue, stroke};
use super::{epsilon, hedged, label};
use accounting::AccountingError;
use accounting::lenses::Lens;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::{Account, At, Claim, LensName, Quantity, Run, Secret};

const LENSES: [LensName; 2] = [LensName::SIGNED, LensName::BESIDE];

/// Priors of the table.
const PRIORS: [f64; 4] = [0.5, 0.25, 0.1, 0.01];

/// One claim for each lens and prior; a lens that cannot answer is absent.
pub(super) fn claims(run: &Run, account: &Account) -> Vec<Claim> {
    let mut claims = Vec::new();
    for lens in LENSES {
        let Some(model) = epsilon(account, lens) else { continue };
        let Ok(view) = Lens::named(lens).look(run) else { continue };
        for prior in PRIORS {
            if let Ok(interval) = view.attack_accuracy(prior) {
                claims.push(Claim {
                    quantity: Quantity::AttackAccuracy,
                    secret: Secret::Membership,
                    at: At { prior: Some(prior), ..At::default() },
                    interval,
                    reason: None,
                    ..model.clone()
                });
            }
        }
    }
    claims
}

/// Accuracy against the prior.
pub(super) fn figure(run: &Run, claims: &[Claim]) -> Result<Option<Figure>, AccountingError> {
    let Some(even) =
        claims.iter().find(|claim| claim.source == LensName::SIGNED && claim.at.prior == Some(0.5))
    else {
        return Ok(None);
    };
    let priors: Vec<f64> = (1..=50).map(|part| f64::from(part) / 100.0).collect();
    let mut figure = Figure::new(
        hedged(
            even.standing,
            &format!(
                "At even odds the best attacker is right at most {} % of the time, instead of 50 %",
                even.interval.at_most().percent()
            ),
        ),
        "The gap between a curve and guessing is what the training gives away; it closes where \
         membership is unlikely to begin with.",
    )
    .x(Axis::linear("prior probability of membership").percent().domain(0.0, 0.5))
    .y(Axis::linear("share of right answers").percent().domain(0.5, 1.0))
    .with(
        Series::line("guessing", [(0.0, 1.0), (0.5, 0.5)]).hue(Hue::Muted).stroke(Stroke::Dotted),
    );
    for lens in LENSES {
        let Some(standing) =
            claims.iter().find(|claim| claim.source == lens).map(|claim| claim.standing)
        else {
            continue;
        };
        let view = Lens::named(lens).look(run)?;
        let mut points = Vec::new();
        for prior in priors.iter().step_by(2) {
            points.push((*prior, view.attack_accuracy(*prior)?.upper));
        }
        points.push((0.5, view.attack_accuracy(0.5)?.upper));
        figure = figure.with(
            Series::line(label(lens, standing), points).hue(hue(lens)).stroke(stroke(standing)),
        );
    }
    Ok(Some(figure))
}
