//! The privacy statement: paragraphs that say what is guaranteed, about what, if what is
//! released, and what is not covered; ready for a paper or a model card.

use crate::words::{percent, with_commas};
use vocabulary::rounding::plain;
use vocabulary::{Account, Claim, LensName, Quantity, Run, Standing};

/// The statement about a run from its claims.
pub fn statement(account: &Account, delta: f64) -> Vec<String> {
    let run = &account.run;
    let mut paragraphs = vec![mechanism(run)];
    let find = |lens: LensName, quantity: Quantity| {
        account.claims.iter().find(|claim| {
            claim.source == lens
                && claim.quantity == quantity
                && claim.at.delta.is_none_or(|at| at == delta)
        })
    };
    match find(LensName::SIGNED, Quantity::Epsilon) {
        Some(epsilon) => {
            paragraphs.push(guarantee(run, epsilon, delta));
            paragraphs.extend(attack_terms(account));
        }
        None => paragraphs.push(format!(
            "No privacy guarantee is stated: no analysis of this program covers {} sampling with \
             {} adjacency. The number for Poisson batches does not apply.",
            run.sampling().as_str(),
            run.adjacency().as_str()
        )),
    }
    if let Some(epsilon) = find(LensName::BESIDE, Quantity::Epsilon) {
        paragraphs.push(format!(
            "If only the final model is released, the last-iterate heuristic gives epsilon = {} \
             at delta = {}. It is a heuristic, not a guarantee: it is exact for linear losses, \
             which training does not have, and losses are known for which the final model leaks \
             more.",
            epsilon.quoted(),
            plain(delta)
        ));
    }
    paragraphs.push(format!(
        "Not covered: choosing hyper-parameters on these records, other trainings on the same \
         records, statistics of the records used before training (vocabularies, normalisation) \
         or after it (early stopping, reported accuracy), and people who contribute more than \
         {}. The analysis assumes exact arithmetic and perfect random numbers.",
        records(run.group_size())
    ));
    paragraphs
}

fn mechanism(run: &Run) -> String {
    let size = run
        .dataset_size()
        .map(|size| format!(" on {} records", with_commas(size)))
        .unwrap_or_default();
    format!(
        "The model was trained with DP-SGD{size}: {}. Each record's gradient is clipped to norm \
         {}, and Gaussian noise is added to the sum. {}.",
        run.phases_in_words(),
        plain(run.clip_norm()),
        run.batches_in_a_sentence()
    )
}

fn guarantee(run: &Run, epsilon: &Claim, delta: f64) -> String {
    let relation = run.adjacency().words();
    let (opening, how) = match epsilon.standing {
        Standing::Proven => {
            ("The training is", "by numerical composition with certified error bounds, rounded up")
        }
        _ => (
            "Under the unproven assumption that one pair of data sets dominates the composition, \
             the training is",
            "by numerical composition, rounded up",
        ),
    };
    let worst = epsilon.worst_case().map_or_else(String::new, |least| {
        format!(" This is an upper bound; for the worst data sets epsilon is at least {least}.")
    });
    let level = if run.group_size() == 1 { "record-level" } else { "group-level" };
    let unit = run.unit().map(|unit| format!("; a record is {unit}")).unwrap_or_default();
    format!(
        "{opening} (epsilon, delta)-differentially private with epsilon = {} at delta = {} \
         ({level}; neighbouring data sets differ by {relation} {}{unit}). This holds for the release \
         of every intermediate model, and so for the final one, against an attacker who knows \
         all other records; it was computed {how}.{worst}",
        epsilon.quoted(),
        plain(delta),
        records(run.group_size())
    )
}

fn attack_terms(account: &Account) -> Option<String> {
    let composition =
        |claim: &&Claim| claim.source == LensName::SIGNED && claim.standing == Standing::Proven;
    let powers: Vec<String> = account
        .claims
        .iter()
        .filter(composition)
        .filter(|claim| claim.quantity == Quantity::Tpr)
        .filter_map(|claim| {
            let rate = claim.at.fpr?;
            Some(format!("{} at a false positive rate of {}", claim.quoted(), percent(rate)))
        })
        .collect();
    let security = account
        .claims
        .iter()
        .filter(composition)
        .find(|claim| claim.quantity == Quantity::BayesSecurity)?;
    Some(format!(
        "In attack terms: no membership attack has a true positive rate above {}. Bayes security \
         is at least {}: where guessing would be wrong half of the time, any attacker is wrong at \
         least {} of the time.",
        powers.join(", or above "),
        security.quoted(),
        errors(security)
    ))
}

/// How often an attacker errs at least who has two equally likely answers.
fn errors(security: &Claim) -> String {
    format!("{} %", security.quoted().times(50.0))
}

fn records(size: u32) -> String {
    if size == 1 { "one record".into() } else { format!("{size} records") }
}
