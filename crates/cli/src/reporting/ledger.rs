//! What a training's ledger (`dosimeter.ledger/1`) says: who vouches for what, what was done,
//! and, for those who may see it, how it went.
//!
//! Read as a document and not as the trainer's own type: a ledger of another program, or of
//! another version, gives what it has.

use crate::print::{plain, rounded};
use report::{Fact, Origin, Training, with_commas};
use serde_json::Value;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::{Run, Side};

/// Adds to `origin` what the ledger vouches for.
pub(crate) fn vouched(ledger: &Value, origin: &mut Origin) {
    let normaliser = ledger.pointer("/clipping/normalised_by").and_then(Value::as_str);
    origin.public_normaliser = origin.ledger && normaliser.is_some();
    origin.secure_noise =
        if origin.ledger { ledger.pointer("/noise/secure").and_then(Value::as_bool) } else { None };
}

/// The ledger as sections of a report; `public` leaves out what is computed from records.
pub(super) fn training(ledger: &Value, public: bool) -> Training {
    let mut facts = Vec::new();
    let text = |pointer: &str| {
        let value = ledger.pointer(pointer)?;
        value.as_str().map(str::to_owned).or_else(|| value.as_f64().map(plain))
    };
    let mut words = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| Fact::words(name, value)));
    };
    words(
        "model",
        text("/model/kind").map(|kind| {
            match text("/model/parameters").and_then(|count| count.parse().ok()) {
                Some(count) => format!("{kind}, {} parameters", with_commas(count)),
                None => kind,
            }
        }),
    );
    words(
        "data",
        text("/data/name").map(|name| {
            match text("/data/records").and_then(|count| count.parse().ok()) {
                Some(count) => format!("{name}, {} records", with_commas(count)),
                None => name,
            }
        }),
    );
    words(
        "optimiser",
        text("/optimizer/kind").map(|kind| {
            let rate = text("/optimizer/learning_rate");
            rate.map_or_else(|| kind.clone(), |rate| format!("{kind}, learning rate {rate}"))
        }),
    );
    words("noise", text("/noise/generator"));
    words("precaution", text("/noise/precaution"));
    words("normalised by", text("/clipping/normalised_by"));
    words("clipped", text("/clipping/unit"));
    words("device", text("/device/kind"));
    let sessions = ledger.pointer("/sessions").and_then(Value::as_array);
    words(
        "started",
        sessions.map(|all| match all.len() {
            1 => "once".to_owned(),
            count => format!("{count} times; all steps are accounted for"),
        }),
    );
    if ledger.pointer("/complete").and_then(Value::as_bool) == Some(false) {
        words("complete", Some("no: the claims are about the steps done so far".into()));
    }
    Training { facts, health: if public { Vec::new() } else { health(ledger) } }
}

fn health(ledger: &Value) -> Vec<Fact> {
    let number = |pointer: &str| ledger.pointer(pointer).and_then(Value::as_f64);
    let share = |value: f64| format!("{} %", rounded(100.0 * value, 3, Side::Neither));
    let mut facts = Vec::new();
    for (name, key) in [
        ("accuracy on test data", "test_accuracy"),
        ("accuracy on training data", "train_accuracy"),
    ] {
        if let Some(value) = number(&format!("/not_private/{key}")) {
            facts.push(Fact::number(name, value, share(value)));
        }
    }
    let statistics = "/not_private/statistics";
    if let Some(value) = number(&format!("{statistics}/fraction_clipped")) {
        let note = match value {
            v if v > 0.95 => {
                Some("almost every gradient is clipped: the update is a mean of directions")
            }
            v if v < 0.05 => {
                Some("hardly any gradient is clipped: a lower clip norm would need less noise")
            }
            _ => None,
        };
        let fact = Fact::number("gradients clipped", value, share(value));
        facts.push(match note {
            Some(note) => fact.note(note),
            None => fact,
        });
    }
    if let Some(mean) = number(&format!("{statistics}/batch_sizes/mean")) {
        let mut fact = Fact::number("mean batch", mean, rounded(mean, 5, Side::Neither));
        let ends =
            ["smallest", "largest"].map(|end| number(&format!("{statistics}/batch_sizes/{end}")));
        if let [Some(least), Some(most)] = ends {
            fact = fact.note(format!("from {} to {} records", plain(least), plain(most)));
        }
        facts.push(fact);
    }
    if let Some(empty) =
        number(&format!("{statistics}/batch_sizes/empty")).filter(|empty| *empty > 0.0)
    {
        facts.push(
            Fact::number("empty batches", empty, plain(empty)).note("they get noise as any other"),
        );
    }
    facts
}

/// Norms of gradients before clipping, against the clip norm.
pub(super) fn norms(ledger: &Value, run: &Run) -> Option<Figure> {
    let all = ledger.pointer("/not_private/statistics/gradient_norm_quantiles")?.as_array()?;
    let points: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|entry| Some((entry.get("level")?.as_f64()?, entry.get("norm")?.as_f64()?)))
        .filter(|(_, norm)| *norm > 0.0)
        .collect();
    let median = points.iter().find(|(level, _)| *level == 0.5)?.1;
    let clip = run.clip_norm();
    let number = |value: f64| rounded(value, 3, Side::Neither);
    let title = if median > clip {
        format!(
            "Half of the gradients are longer than {}; they are clipped to {}",
            number(median),
            plain(clip)
        )
    } else {
        format!(
            "Half of the gradients are shorter than {}, below the clip norm {}",
            number(median),
            plain(clip)
        )
    };
    Some(
        Figure::new(title, "Quantiles of the norms of single records' gradients before clipping; what lies above the line is cut down to it.")
            .x(Axis::linear("share of the gradients").percent())
            .y(Axis::log("norm before clipping"))
            .with(Series::line("gradient norms", points).hue(Hue::Green).stroke(Stroke::Solid))
            .with(Series::horizontal_rule("clip norm", clip).hue(Hue::Ink)),
    )
}

/// Loss over the training.
pub(super) fn loss(ledger: &Value) -> Option<Figure> {
    let all = ledger.pointer("/not_private/statistics/history")?.as_array()?;
    let points: Vec<(f64, f64)> = all
        .iter()
        .filter_map(|entry| Some((entry.get("step")?.as_f64()?, entry.get("loss")?.as_f64()?)))
        .collect();
    let (first, last) = (points.first()?, points.last()?);
    if points.len() < 2 {
        return None;
    }
    let number = |value: f64| rounded(value, 3, Side::Neither);
    let title = format!(
        "The loss of a batch goes from {} to {} in {} steps",
        number(first.1),
        number(last.1),
        with_commas(last.0 as u64 + 1)
    );
    Some(
        Figure::new(title, "Mean loss of the records of a batch before its update; the noise of small batches shows in it.")
            .x(Axis::linear("step"))
            .y(Axis::linear("loss"))
            .with(Series::line("batch loss", points).hue(Hue::Green).stroke(Stroke::Solid)),
    )
}
