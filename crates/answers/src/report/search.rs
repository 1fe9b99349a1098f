//! Trainings with other settings on the same records, as a section of a report.

use report::{SearchGroup, SearchSection};
use tuning::{TrainingTable, TuningError, groups, rank};
use vocabulary::Figure;

/// The search behind a table of results, by its first score.
pub(super) fn search(
    table: &TrainingTable,
    confidence: f64,
) -> Result<Option<(SearchSection, Figure)>, TuningError> {
    let Some(score) = table.scores.first() else { return Ok(None) };
    let ranking = rank(&groups(table, 0)?, score, confidence)?;
    let figure = tuning::figures::ranking(&ranking);
    let groups = ranking
        .groups
        .iter()
        .map(|group| SearchGroup {
            epsilon: group.epsilon,
            delta: group.delta,
            configurations: group.spread.configurations,
            runs: group.spread.runs,
            smallest: group.spread.smallest,
            largest: group.spread.largest,
            between: group.spread.between,
            seed_noise: group.spread.seed_noise,
            p_value: group.spread.p_value,
            least: group.configurations.first().map(|c| c.name()).unwrap_or_default(),
        })
        .collect();
    Ok(Some((SearchSection { score: ranking.score, groups, statement: ranking.statement }, figure)))
}
