//! The table of results, as far as it follows from the run's parameters; calibrations of the text;
//! and what is inconsistent.

use super::{PAPER, run, securities};
use crate::{Context, Entry, PaperError, PaperTable, Reproduction};
use accounting::bayes_security::{Formula, translate};
use accounting::{Solution, Target, Unknown, calibrate};
use serde_json::{Value, json};
use vocabulary::{Adjacency, LensName};

pub(super) const ENTRY: Entry = Entry {
    id: "closed-form-table",
    paper: PAPER,
    title: "The table of results and the calibrations of the text",
    shows: "Adult and Purchase-100: Bayes security against membership .88 and .87, attribute .93 and .99, the accuracies and TPR at FPR 10 % that follow; noise multipliers 3.51 and 1.8 for Bayes security .9 after 20 epochs.",
    seconds: 3,
    compute,
};

/// Name, records that the noise was calibrated for, batch, loader length, noise used, and the printed
/// Bayes security, accuracy and TPR at FPR .1, for membership and for the attribute.
type Row = (&'static str, u64, u64, u64, f64, [f64; 3], [f64; 3]);

const ROWS: [Row; 2] = [
    ("Adult", 26_048, 256, 102, 3.51, [0.88, 0.56, 0.20], [0.93, 0.53, 0.16]),
    ("Purchase-100", 197_324, 512, 347, 1.8, [0.87, 0.57, 0.23], [0.99, 0.51, 0.11]),
];

fn compute(context: &Context<'_>) -> Result<Reproduction, PaperError> {
    let mut results = PaperTable::new(
        "results",
        &[
            "data",
            "secret",
            "bayes_security_printed",
            "closed_form",
            "exact",
            "certified",
            "accuracy_printed",
            "accuracy_that_follows",
            "tpr_printed",
            "tpr_that_follows",
        ],
    );
    let mut calibrations = PaperTable::new(
        "calibrations",
        &["data", "steps", "sample_rate", "printed", "closed_form", "central_limit", "exact"],
    );
    let swap = Adjacency::Substitute;
    let mut words = Vec::new();
    for (name, records, batch, loader, noise, membership, attribute) in ROWS {
        context.go_on()?;
        let found = securities(&run(noise, 1.0 / loader as f64, 30 * loader, swap)?)?;
        let exact = found.truth;
        for (secret, [beta, accuracy, tpr], ours) in [
            ("membership", membership, Some(found)),
            // Needs a trained model; what follows is from the printed number.
            ("attribute", attribute, None),
        ] {
            let basis = ours.map_or(beta, |_| exact);
            let shown = |value: Option<f64>| value.map_or(Value::Null, |value| json!(value));
            results.push(vec![
                json!(name),
                json!(secret),
                json!(beta),
                shown(ours.map(|ours| ours.closed_form)),
                shown(ours.map(|_| exact)),
                shown(ours.map(|ours| ours.certified)),
                json!(accuracy),
                json!(translate::attack_accuracy(basis, 0.5)),
                json!(tpr),
                json!(translate::tpr(basis, 0.1)),
            ]);
        }
        let (rate, steps) = (batch as f64 / records as f64, 20 * (records / batch));
        let formula = |formula: Formula| formula.noise_multiplier(0.9, rate, steps, swap);
        let target = Target::BayesSecurity { bayes_security: 0.9 };
        let solved = calibrate(
            &run(1.0, rate, steps, swap)?,
            Unknown::NoiseMultiplier,
            &target,
            LensName::Composition,
            &[],
        )?;
        let Solution::NoiseMultiplier(exact_noise) = solved.solution else { continue };
        calibrations.push((
            name,
            steps,
            rate,
            noise,
            formula(Formula::Paper),
            formula(Formula::CentralLimit),
            exact_noise,
        ));
        words.push(format!(
            "{name}: membership {exact:.4} after 30 epochs (closed form {:.4}); noise for .9 after 20 epochs {:.4} (closed form), {:.4} (central limit), {exact_noise:.4} (exact)",
            found.closed_form,
            formula(Formula::Paper),
            formula(Formula::CentralLimit)
        ));
    }
    Ok(Reproduction {
        parameters: json!({"epochs": 30, "fpr": 0.1, "adjacency": "substitute"}),
        we_get: words.join("; ") + ".",
        differs: "TPR 20 % for Adult does not follow from its Bayes security (.877 gives 22 %). Full and approximate attribute bounds after 20 epochs are printed as .945 and .950: the approximate one must be the lower, so they are swapped. Purchase's noise was calibrated for all 197,324 records and used on 90 % of them: Bayes security after 20 epochs is .8939, not .90. The text says 26 steps per epoch for Adult; it is 101.75. Attribute values need a trained model (`dosimeter attack attribute`).".to_owned(),
        tables: vec![results, calibrations],
        figures: Vec::new(),
    })
}
