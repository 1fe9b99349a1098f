//! What a training's ledger (`dosimeter.ledger/1`) says: who vouches for what, what was done,
//! and, for those who may see it, how it went.
//!
//! Not the trainer's own type: a ledger of another program, or of another version, gives what it
//! has, and a key that cannot be read is a key that is not there.

use report::{Fact, Origin, Training};
use serde::de::{DeserializeOwned, Deserializer};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vocabulary::Run;
use vocabulary::figure::{Axis, Figure, Hue, Series, Stroke};
use vocabulary::rounding::{about, plain, with_commas};

macro_rules! lenient {
    ($($name:ident { $($field:ident: $kind:ty,)* })*) => {$(
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub(crate) struct $name {
            $(#[serde(deserialize_with = "readable")] $field: Option<$kind>,)*
        }
    )*};
}

lenient! {
    Ledger {
        schema: String,
        model: Model,
        data: Data,
        optimizer: Optimizer,
        noise: Noise,
        clipping: Clipping,
        device: Device,
        sessions: Vec<Value>,
        complete: bool,
        not_private: NotPrivate,
    }
    Model { kind: String, parameters: u64, }
    Data { name: String, records: u64, }
    Optimizer { kind: String, learning_rate: f64, }
    Noise { generator: String, precaution: String, secure: bool, }
    Clipping { normalised_by: String, unit: String, }
    Device { kind: String, }
    NotPrivate { test_accuracy: f64, train_accuracy: f64, statistics: Statistics, }
    Statistics {
        fraction_clipped: f64,
        batch_sizes: BatchSizes,
        gradient_norm_quantiles: Vec<Quantile>,
        history: Vec<Moment>,
    }
    BatchSizes { mean: f64, smallest: f64, largest: f64, empty: f64, }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Quantile {
    level: f64,
    norm: f64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Moment {
    step: f64,
    loss: f64,
}

fn readable<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

impl Ledger {
    /// The ledger in a text, if it is one.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let ledger: Self = serde_json::from_str(text).ok()?;
        (ledger.schema.as_deref() == Some("dosimeter.ledger/1")).then_some(ledger)
    }

    /// Adds to `origin` what the ledger vouches for.
    pub(super) fn vouch(&self, origin: &mut Origin) {
        let normaliser = self.clipping.as_ref().and_then(|part| part.normalised_by.as_ref());
        origin.public_normaliser = origin.ledger && normaliser.is_some();
        origin.secure_noise = self.noise.as_ref().and_then(|part| part.secure);
        origin.secure_noise = origin.secure_noise.filter(|_| origin.ledger);
    }

    /// The ledger as sections of a report; `public` leaves out what is computed from records.
    pub(super) fn training(self, public: bool) -> Training {
        let health = if public { Vec::new() } else { self.health() };
        let mut facts = Vec::new();
        let mut words = |name: &str, value: Option<String>| {
            facts.extend(value.map(|value| Fact::words(name, value)));
        };
        let counted = |name: Option<String>, count: Option<u64>, what: &str| match count {
            Some(count) => name.map(|name| format!("{name}, {} {what}", with_commas(count))),
            None => name,
        };
        let Model { kind, parameters } = self.model.unwrap_or_default();
        words("model", counted(kind, parameters, "parameters"));
        let Data { name, records } = self.data.unwrap_or_default();
        words("data", counted(name, records, "records"));
        let Optimizer { kind, learning_rate } = self.optimizer.unwrap_or_default();
        words(
            "optimiser",
            kind.map(|kind| match learning_rate {
                Some(rate) => format!("{kind}, learning rate {}", plain(rate)),
                None => kind,
            }),
        );
        let noise = self.noise.unwrap_or_default();
        words("noise", noise.generator);
        words("precaution", noise.precaution);
        let clipping = self.clipping.unwrap_or_default();
        words("normalised by", clipping.normalised_by);
        words("clipped", clipping.unit);
        words("device", self.device.unwrap_or_default().kind);
        words(
            "started",
            self.sessions.map(|all| match all.len() {
                1 => "once".to_owned(),
                count => format!("{count} times; all steps are accounted for"),
            }),
        );
        if self.complete == Some(false) {
            words("complete", Some("no: the claims cover the steps done so far".into()));
        }
        Training { facts, health }
    }

    fn statistics(&self) -> Option<&Statistics> {
        self.not_private.as_ref()?.statistics.as_ref()
    }

    fn health(&self) -> Vec<Fact> {
        let share = |value: f64| format!("{} %", about(100.0 * value, 3));
        let mut facts = Vec::new();
        let seen = self.not_private.as_ref();
        for (name, accuracy) in [
            ("accuracy on test data", seen.and_then(|seen| seen.test_accuracy)),
            ("accuracy on training data", seen.and_then(|seen| seen.train_accuracy)),
        ] {
            facts.extend(accuracy.map(|value| Fact::number(name, value, share(value))));
        }
        let Some(statistics) = self.statistics() else { return facts };
        if let Some(value) = statistics.fraction_clipped {
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
        let Some(sizes) = &statistics.batch_sizes else { return facts };
        if let Some(mean) = sizes.mean {
            let mut fact = Fact::number("mean batch", mean, about(mean, 5));
            if let (Some(least), Some(most)) = (sizes.smallest, sizes.largest) {
                fact = fact.note(format!("from {} to {} records", plain(least), plain(most)));
            }
            facts.push(fact);
        }
        if let Some(empty) = sizes.empty.filter(|empty| *empty > 0.0) {
            let fact = Fact::number("empty batches", empty, plain(empty));
            facts.push(fact.note("they get noise as any other"));
        }
        facts
    }

    /// Norms of gradients before clipping, against the clip norm.
    pub(super) fn norms(&self, run: &Run) -> Option<Figure> {
        let all = self.statistics()?.gradient_norm_quantiles.as_ref()?;
        let points: Vec<(f64, f64)> =
            all.iter().filter(|at| at.norm > 0.0).map(|at| (at.level, at.norm)).collect();
        let median = points.iter().find(|(level, _)| *level == 0.5)?.1;
        let clip = run.clip_norm();
        let number = |value: f64| about(value, 3);
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
    pub(super) fn loss(&self) -> Option<Figure> {
        let all = self.statistics()?.history.as_ref()?;
        let points: Vec<(f64, f64)> = all.iter().map(|at| (at.step, at.loss)).collect();
        let (first, last) = (points.first()?, points.last()?);
        if points.len() < 2 {
            return None;
        }
        let number = |value: f64| about(value, 3);
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
}
