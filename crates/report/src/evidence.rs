//! Reads the audit document (`dosimeter.audit/1`) where the page and the card show it.

use serde_json::Value;

/// One bound of an audit as it is shown.
pub(crate) struct BoundRow {
    pub(crate) method: String,
    pub(crate) rule: String,
    /// The number, and whether it is an estimate without a side.
    pub(crate) epsilon: Option<f64>,
    pub(crate) is_estimate: bool,
    pub(crate) confidence: Option<f64>,
    pub(crate) credible: bool,
    pub(crate) valid_for: String,
    pub(crate) primary: bool,
}

pub(crate) fn bounds(audit: &Value) -> Vec<BoundRow> {
    let text = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let all = audit.get("bounds").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    all.iter()
        .map(|bound| {
            let estimate = bound.get("epsilon_estimate");
            let number = |key: &str| bound.get(key).and_then(Value::as_f64);
            BoundRow {
                method: text(bound, "method"),
                rule: text(bound, "threshold_rule"),
                epsilon: estimate.or(bound.get("epsilon_lower")).and_then(Value::as_f64),
                is_estimate: estimate.is_some(),
                confidence: number("confidence").or(number("credibility")),
                credible: bound.get("credibility").is_some(),
                valid_for: text(bound, "valid_for"),
                primary: bound.get("primary") == Some(&Value::Bool(true)),
            }
        })
        .collect()
}

/// A measured number with its ends: `auroc`, `advantage`.
pub(crate) fn measured(audit: &Value, key: &str) -> Option<[f64; 3]> {
    ends(audit.get(key)?)
}

/// The measured power at each false positive rate.
pub(crate) fn powers(audit: &Value) -> Vec<(f64, [f64; 3])> {
    let all = audit.get("tpr").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(|power| Some((power.get("fpr")?.as_f64()?, ends(power)?))).collect()
}

fn ends(value: &Value) -> Option<[f64; 3]> {
    let number = |key: &str| value.get(key).and_then(Value::as_f64);
    Some([number("lower")?, number("value")?, number("upper")?])
}
