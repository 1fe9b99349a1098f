//! Goes round all settings with twice the trainings each time (equally many for all, but for whole
//! chunks), until all have theirs or the time is up.

use super::data::{Images, read_all};
use super::settings::{Attack, Model, RECORDS, TRIALS, models, target};
use crate::PaperError;
use crate::trained::TrainedContext;
use attacks::TrainedGame;
use std::sync::atomic::Ordering;

/// Trainings per side of the first round.
const FIRST: u64 = 16;

/// A setting, by the numbers of its parts.
pub(super) struct Played {
    pub(super) data: String,
    pub(super) model: &'static str,
    pub(super) attack: Attack,
    pub(super) steps: u64,
    /// The name of its scores.
    pub(super) name: String,
}

/// Plays these attacks against every model of every data set; all settings, in order.
pub(super) fn play(
    context: &TrainedContext<'_>,
    attacks: &[Attack],
) -> Result<Vec<Played>, PaperError> {
    let mut settings = Vec::new();
    let records = context.records.unwrap_or(RECORDS);
    let mut all = read_all(context.data)?;
    for images in &mut all {
        images.keep(usize::try_from(records).unwrap_or(usize::MAX));
    }
    for (number, images) in all.iter().enumerate() {
        for model in
            models(images.split.train.shape).into_iter().filter(|model| context.wants(model.name))
        {
            for attack in attacks {
                for steps in model.steps(*attack) {
                    settings.push((number, model.clone(), *attack, steps));
                }
            }
        }
    }
    if settings.is_empty() {
        let known = all.iter().flat_map(|images| models(images.split.train.shape));
        let mut known: Vec<&str> = known.map(|model| model.name).collect();
        known.dedup();
        return Err(PaperError::NoModel {
            asked: context.models.join(", "),
            known: known.join(", "),
        });
    }
    let mut round = 0;
    loop {
        let mut finished = true;
        for (number, model, attack, steps) in &settings {
            let name = name(&all[*number].name, model.name, *attack, *steps);
            finished &= carry_on(context, &all[*number], model, (*attack, *steps), &name, round)?;
            if context.is_late() {
                finished = false;
                break;
            }
        }
        if finished {
            break;
        }
        // Sixty doublings are enough for any number, unless another process has a chunk in hand.
        if context.is_late() || round == 60 {
            context.incomplete.store(true, Ordering::Relaxed);
            break;
        }
        round += 1;
    }
    let played = settings.into_iter().map(|(number, model, attack, steps)| {
        let data = all[number].name.clone();
        let name = name(&data, model.name, attack, steps);
        Played { data, model: model.name, attack, steps, name }
    });
    Ok(played.collect())
}

fn name(data: &str, model: &str, attack: Attack, steps: u64) -> String {
    format!("{data}-{model}-{}-steps{steps}", attack.name())
}

/// One setting in one round; whether it has all its trainings.
fn carry_on(
    context: &TrainedContext<'_>,
    images: &Images,
    model: &Model,
    (attack, steps): (Attack, u64),
    name: &str,
    round: u32,
) -> Result<bool, PaperError> {
    let trials = context.trials.unwrap_or(TRIALS);
    let target = target(images, &model.description, steps, context.seed)?;
    let conditions = attack.conditions();
    // Whole chunks: a part of one would have to be computed again.
    let chunk = TrainedGame::chunk_trials(&target, &conditions, &context.device);
    let equal = FIRST.saturating_mul(1u64.checked_shl(round).unwrap_or(u64::MAX)).min(trials);
    let wanted = equal.div_ceil(chunk).saturating_mul(chunk).min(trials);
    if has(context, name, wanted)? {
        return Ok(wanted == trials);
    }
    let game = context.game(&target, &conditions, wanted)?;
    Ok(context.carry_on(name, &game)? && wanted == trials)
}

/// Whether this many trainings are finished already: an earlier command may have got further.
fn has(context: &TrainedContext<'_>, name: &str, trials: u64) -> Result<bool, PaperError> {
    let found = context.scores(name)?;
    Ok(found.is_some_and(|scores| scores.members().len() as u64 >= trials))
}
