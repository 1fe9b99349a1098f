//! Gradient sensitivities along a training, in the form that the attribute bound reads.

use super::{AttributeError, Moment, Probe, Spread};
use accounting::bayes_security::attribute::{GradientPair, Mode, Row, Sensitivities};
use formats::csv::line;
use serde::Deserialize;
use training::Recipe;
use training::data::Dataset;

/// How the diameter of a record's candidate gradients is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Diameter {
    /// Over all pairs, with the pairs' lengths and inner products.
    #[default]
    Full,
    /// Twice the largest distance from the centroid: at least the diameter, at most twice it.
    Approximate,
}

/// Collects rows, one moment after the other.
pub struct Collector {
    mode: Mode,
    diameter: Diameter,
    /// The records that are looked at (in the mode `batch`, those of the batch).
    records: Vec<u32>,
    rows: Vec<(String, Vec<Row>)>,
}

impl Collector {
    /// For the mode `batch` the records are those sampled; for `dataset` and `record` they are
    /// `records`.
    pub fn new(mode: Mode, diameter: Diameter, records: Vec<u32>) -> Self {
        let names = match mode {
            Mode::Record => records.iter().map(ToString::to_string).collect(),
            Mode::Batch | Mode::Dataset => vec![String::new()],
        };
        let rows = names.into_iter().map(|name| (name, Vec::new())).collect();
        Self { mode, diameter, records, rows }
    }

    /// Adds the step that a moment stands before.
    ///
    /// # Errors
    /// A gradient that is not finite.
    pub fn add(
        &mut self,
        probe: &Probe,
        recipe: &Recipe,
        data: &Dataset,
        moment: &Moment<'_>,
    ) -> Result<(), AttributeError> {
        let scale = recipe.noise_deviation(moment.step);
        let records: Vec<u32> = match self.mode {
            Mode::Batch => {
                let real = moment.batch.iter().filter(|record| (**record as usize) < data.len());
                real.copied().collect()
            }
            Mode::Dataset | Mode::Record => self.records.clone(),
        };
        let spreads = match self.mode {
            Mode::Record => probe.look(moment.parameters, data, &records, scale)?,
            _ => vec![probe.worst(moment.parameters, data, &records, scale)?],
        };
        self.add_spreads(moment.step, scale, &spreads);
        Ok(())
    }

    /// Adds what was seen at a step (counted from 0), record by record.
    pub fn add_spreads(&mut self, step: u64, scale: f64, spreads: &[Spread]) {
        let step = step + 1;
        if self.mode == Mode::Record {
            for ((_, rows), spread) in self.rows.iter_mut().zip(spreads) {
                push(rows, step, self.diameter, std::slice::from_ref(spread), scale);
            }
        } else {
            push(&mut self.rows[0].1, step, self.diameter, spreads, scale);
        }
    }

    /// The rows by record (one nameless entry unless the mode is `record`).
    pub fn rows(&self) -> &[(String, Vec<Row>)] {
        &self.rows
    }

    /// What the bound is computed from.
    ///
    /// # Errors
    /// When there is no step.
    pub fn sensitivities(&self) -> Result<Sensitivities, AttributeError> {
        Ok(Sensitivities::new(self.mode, self.rows.clone())?)
    }
}

/// The worst of these records at a step: the pair farthest apart and, where it is another one, the
/// pair that tells the most. A batch may be empty: then nothing is told.
fn push(rows: &mut Vec<Row>, step: u64, diameter: Diameter, spreads: &[Spread], scale: f64) {
    if diameter == Diameter::Approximate {
        let sensitivity = spreads.iter().map(|spread| spread.approximate).fold(0.0, f64::max);
        rows.push(Row { step, sensitivity, pair: None });
        return;
    }
    let most = |pair: fn(&Spread) -> GradientPair, value: &dyn Fn(&GradientPair) -> f64| {
        let none = GradientPair { norm_a: 0.0, norm_b: 0.0, inner: 0.0 };
        spreads.iter().map(pair).max_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(none)
    };
    let farthest = most(|spread| spread.farthest, &GradientPair::distance);
    let telling = most(|spread| spread.most_telling, &|pair| pair.kernel(scale));
    let mut add = |pair: GradientPair| {
        rows.push(Row { step, sensitivity: pair.distance(), pair: Some(pair) });
    };
    add(farthest);
    if telling != farthest {
        add(telling);
    }
}

/// The rows as CSV, as `account --attribute-sensitivity` reads them.
pub fn write_csv(rows: &[(String, Vec<Row>)]) -> String {
    let named = rows.iter().any(|(name, _)| !name.is_empty());
    let pairs = rows.iter().flat_map(|(_, rows)| rows).any(|row| row.pair.is_some());
    let mut header = vec!["step"];
    header.extend(named.then_some("record"));
    header.push("sensitivity");
    header.extend(pairs.then_some(["norm_a", "norm_b", "inner"]).into_iter().flatten());
    let mut text = line(header);
    for (name, rows) in rows {
        for row in rows {
            let mut cells = vec![row.step.to_string()];
            cells.extend(named.then(|| name.clone()));
            cells.push(row.sensitivity.to_string());
            if let Some(GradientPair { norm_a, norm_b, inner }) = row.pair {
                cells.extend([norm_a, norm_b, inner].map(|number| number.to_string()));
            }
            text.push_str(&line(cells));
        }
    }
    text
}
