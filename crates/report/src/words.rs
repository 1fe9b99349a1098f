//! Names and numbers as a person reads them.

use vocabulary::rounding::plain;
pub(crate) use vocabulary::rounding::with_commas;
use vocabulary::{Claim, Finding, Quantity, Quoted, Run, Side};

/// The run in one line.
pub(crate) fn trained(run: &Run) -> String {
    format!("{}; {}", run.phases_in_words(), run.batches_in_words())
}

/// `<=`, `>=` or `~` as a sign.
pub(crate) fn sign(side: Side) -> &'static str {
    side.mathematical_sign()
}

/// An end with its sign; infinity in words.
pub(crate) fn signed(end: Quoted) -> String {
    if end.number().is_finite() {
        format!("{} {end}", sign(end.side()))
    } else {
        "unbounded".into()
    }
}

/// The quotable end of a claim with its sign; infinity in words.
pub(crate) fn quoted(claim: &Claim) -> String {
    signed(claim.quoted())
}

/// The method with its rule: `clopper-pearson (union)`.
pub(crate) fn method(finding: &Finding) -> String {
    match &finding.threshold_rule {
        Some(rule) => format!("{} ({rule})", finding.method()),
        None => finding.method().to_string(),
    }
}

/// The confidence of a finding.
pub(crate) fn confidence(finding: &Finding) -> String {
    match (finding.claim.confidence, finding.credibility) {
        (Some(level), _) => percent(level),
        (None, Some(level)) => format!("{} credible", percent(level)),
        (None, None) => "none".into(),
    }
}

/// The name of a quantity with where it is taken.
pub(crate) fn quantity_name(claim: &Claim) -> String {
    let at = &claim.at;
    let rate = |rate: Option<f64>| rate.map(percent).unwrap_or_default();
    match claim.quantity {
        Quantity::Epsilon => "\u{3b5}".into(),
        Quantity::Delta => "\u{3b4}".into(),
        Quantity::Mu => "\u{3bc}".into(),
        Quantity::Tpr => format!("TPR at FPR {}", rate(at.fpr)),
        Quantity::Advantage => "advantage".into(),
        Quantity::BayesSecurity => "Bayes security".into(),
        Quantity::Reconstruction => format!("reconstruction at prior {}", rate(at.prior)),
        Quantity::AttackAccuracy => format!("accuracy at prior {}", rate(at.prior)),
    }
}

/// 0.001 as `0.1 %`, all digits.
pub(crate) fn percent(share: f64) -> String {
    // Twelve digits hide the rounding of the product, and keep every input a person types.
    let scaled: f64 = format!("{:.12e}", share * 100.0).parse().unwrap_or(share * 100.0);
    format!("{} %", plain(scaled))
}

/// A sentence with its full stop.
pub(crate) fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with('.') { text.to_owned() } else { format!("{text}.") }
}

/// With a capital letter at the start.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!(percent(0.001), "0.1 %");
        assert_eq!(percent(0.95), "95 %");
        assert_eq!(percent(0.29), "29 %");
    }
}
