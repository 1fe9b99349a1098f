//! What the trainings show, as tables, figures and sentences.

use crate::{PaperTable, row};
use serde_json::Value;
use tuning::Ranking;
use tuning::regression::Regression;
use tuning::selection::Selection;
use vocabulary::Figure;

#[derive(Default)]
pub(crate) struct Findings {
    spread: Vec<Vec<Value>>,
    verbatim: Vec<Vec<Value>>,
    effects: Vec<Vec<Value>>,
    rules: Vec<Vec<Value>>,
    choices: Vec<Vec<Value>>,
    correlations: Vec<Vec<Value>>,
    figures: Vec<(String, Figure)>,
    sentences: Vec<String>,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        density: &str,
        records: usize,
        ranking: &Ranking,
        regression: &Regression,
        selection: &Selection,
    ) {
        self.spread.extend(spreads(density, ranking));
        // Labels are `low` and `high`, or a model's name before them.
        let model = density.strip_suffix("low").or(density.strip_suffix("high")).unwrap_or("");
        let model = match model.strip_suffix('-') {
            Some(model) => format!("{model}, "),
            None => String::new(),
        };
        for group in &ranking.groups {
            let s = &group.spread;
            self.sentences.push(format!(
                "{model}{records} records per secret, epsilon {}: AIR from {:.3} to {:.3} over {} configurations, spread without seed noise {:.3} (F-test p {})",
                group.epsilon,
                s.smallest,
                s.largest,
                s.configurations,
                s.between.unwrap_or(f64::NAN),
                s.p_value.map_or_else(|| "-".into(), |p| format!("{p:.2e}")),
            ));
            for c in &group.correlations {
                self.correlations.push(row((
                    density,
                    group.epsilon,
                    &c.of,
                    &c.with,
                    c.spearman,
                    c.lower,
                    c.upper,
                    c.p_value,
                )));
            }
        }
        for rule in &ranking.heuristics {
            self.rules.push(row((
                density,
                rule.rule.as_str(),
                rule.pairs,
                rule.accuracy,
                rule.lower,
                rule.upper,
            )));
        }
        for e in regression.coefficients.iter().chain(&regression.contrasts) {
            self.effects.push(row((density, &e.name, e.estimate, e.lower, e.upper, e.p_value)));
        }
        for choice in &selection.average {
            self.choices.push(row((
                density,
                choice.chooser.as_str(),
                choice.normalised,
                choice.excess,
            )));
        }
        self.figures.push((format!("effects-{density}"), tuning::figures::regression(regression)));
        for (index, group) in selection.groups.iter().enumerate() {
            let name = format!("no-free-lunch-{density}-epsilon{}", group.epsilon);
            self.figures.push((name, tuning::figures::selection(selection, index)));
        }
    }

    /// The spread of verbatim memorisation.
    pub(super) fn verbatim(&mut self, density: &str, ranking: &Ranking) {
        self.verbatim.extend(spreads(density, ranking));
    }

    /// How well canaries are told apart, against memorisation and utility: bounds are mostly 0 at
    /// this number of canaries, areas are not. Rows: epsilon, b, T, eta, clip, seed, noise, air,
    /// utility, bound, area.
    pub(super) fn canaries(&mut self, density: &str, rows: &[[f64; 11]]) {
        let mut epsilons: Vec<f64> = rows.iter().map(|row| row[0]).collect();
        epsilons.dedup();
        for epsilon in epsilons {
            let mut keys: Vec<[f64; 4]> = Vec::new();
            let mut sums: Vec<([f64; 3], f64)> = Vec::new();
            for row in rows.iter().filter(|row| row[0] == epsilon) {
                let key = [row[1], row[2], row[3], row[4]];
                let at = keys.iter().position(|known| *known == key).unwrap_or_else(|| {
                    keys.push(key);
                    sums.push(([0.0; 3], 0.0));
                    keys.len() - 1
                });
                for (sum, x) in sums[at].0.iter_mut().zip([row[7], row[8], row[10]]) {
                    *sum += x;
                }
                sums[at].1 += 1.0;
            }
            let column = |i: usize| -> Vec<f64> { sums.iter().map(|(s, n)| s[i] / n).collect() };
            for (i, with) in [(0, "air"), (1, "utility")] {
                let (area, other) = (column(2), column(i));
                let Some(c) = tuning::ranks::correlate("canary_auroc", with, &area, &other, 0.95)
                else {
                    continue;
                };
                self.correlations.push(row((
                    density, epsilon, &c.of, &c.with, c.spearman, c.lower, c.upper, c.p_value,
                )));
            }
        }
    }

    pub(crate) fn finish(self) -> (String, Vec<PaperTable>, Vec<(String, Figure)>) {
        let table = |name: &str, columns: &[&'static str], rows: Vec<Vec<Value>>| {
            let mut table = PaperTable::new(name, columns);
            rows.into_iter().for_each(|row| table.push(row));
            table
        };
        let columns = |mean: &'static str| {
            let (named, spread) = (["density", "epsilon", mean], ["smallest", "largest"]);
            let between = ["seed_noise", "between", "between_lower", "between_upper", "p_value"];
            [&named[..], &spread, &between].concat()
        };
        let mut tables = vec![
            table("spread", &columns("mean_air"), self.spread),
            table(
                "regression",
                &["density", "effect", "estimate", "lower", "upper", "p_value"],
                self.effects,
            ),
            table(
                "heuristics",
                &["density", "rule", "pairs", "accuracy", "lower", "upper"],
                self.rules,
            ),
            table(
                "selection",
                &["density", "chooser", "normalised_risk", "excess_risk"],
                self.choices,
            ),
            table(
                "correlations",
                &["density", "epsilon", "of", "with", "spearman", "lower", "upper", "p_value"],
                self.correlations,
            ),
        ];
        if !self.verbatim.is_empty() {
            tables.insert(1, table("spread-verbatim", &columns("mean_vmr"), self.verbatim));
        }
        (self.sentences.join("; ") + ".", tables, self.figures)
    }
}

/// Lines of the table of spreads.
fn spreads(density: &str, ranking: &Ranking) -> Vec<Vec<Value>> {
    let line = |epsilon: f64, s: &tuning::spread::Spread| {
        row((
            density,
            epsilon,
            s.mean,
            s.smallest,
            s.largest,
            s.seed_noise,
            s.between,
            s.between_lower,
            s.between_upper,
            s.p_value,
        ))
    };
    ranking.groups.iter().map(|group| line(group.epsilon, &group.spread)).collect()
}
