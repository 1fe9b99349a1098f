//! Names of quantities and standings, as a person reads them at every door.

use crate::rounding::plain;
use crate::{At, Quantity, Standing};

/// A question as a title, e.g. `epsilon @ delta 1e-5`.
///
/// ```
/// use vocabulary::{At, Quantity, words::title};
/// let at = At { fpr: Some(0.01), ..At::default() };
/// assert_eq!(title(Quantity::Tpr, at), "TPR @ FPR 0.01");
/// ```
pub fn title(quantity: Quantity, at: At) -> String {
    let name = match quantity {
        Quantity::Tpr => "TPR",
        Quantity::BayesSecurity => "Bayes security",
        Quantity::Reconstruction => "reconstruction",
        Quantity::AttackAccuracy => "attack accuracy",
        other => other.as_str(),
    };
    let mut text = name.to_owned();
    for (key, value) in
        [("delta", at.delta), ("epsilon", at.epsilon), ("FPR", at.fpr), ("prior", at.prior)]
    {
        if let Some(value) = value {
            text.push_str(&format!(" @ {key} {}", plain(value)));
        }
    }
    text
}

/// Where a quantity is taken, for the middle of a sentence: ` at delta 1e-5`.
pub(crate) fn at_words(at: At) -> String {
    let mut text = String::new();
    let names = ["delta", "epsilon", "false positive rate", "prior"];
    for (name, value) in names.into_iter().zip([at.delta, at.epsilon, at.fpr, at.prior]) {
        if let Some(value) = value {
            text.push_str(&format!(" at {name} {}", plain(value)));
        }
    }
    text
}

/// What a standing means.
pub fn meaning(standing: Standing) -> &'static str {
    match standing {
        Standing::Proven => "proven: a theorem covers it",
        Standing::Heuristic => {
            "heuristic: true only under an assumption that training does not satisfy"
        }
        Standing::Estimate => "estimate: may err on either side",
        Standing::Measured => "measured: observed, with a confidence",
    }
}
