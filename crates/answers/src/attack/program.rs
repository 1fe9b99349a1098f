//! `attack command`: any program that trains once, with or without the canary, and prints a
//! score, becomes a resumable experiment. One chunk is one training, so a finished training is
//! never repeated.

use super::{Attacked, NothingElse, UntilDecided};
use crate::flags::{integer, nonnegative_integer, real};
use crate::play::write_run;
use crate::{Described, Kind, Play, Refusal, Work};
use clap::Args;
use experiments::{Experiment, Outcome, Plan, training_seed};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::{Display, Write as _};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use vocabulary::rounding::with_commas;
use vocabulary::{Run, RunDescription};

/// The question of `attack command`; keys of a run state the claim.
#[derive(Clone, Debug, Deserialize, Args)]
pub struct ProgramQuestion {
    /// The run that is claimed, where keys describe one.
    #[arg(skip)]
    #[serde(default)]
    pub run: Described,
    #[command(flatten)]
    #[serde(flatten)]
    pub terms: ProgramTerms,
    #[command(flatten)]
    #[serde(flatten)]
    pub decided: UntilDecided,
    #[command(flatten)]
    #[serde(flatten)]
    pub play: Play,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND", help_heading = Option::<&str>::None)]
    pub command: Vec<String>,
    #[arg(skip)]
    #[serde(flatten)]
    _rest: NothingElse,
}

/// How often the program is run, and what it prints.
#[derive(Clone, Debug, Deserialize, Args)]
#[serde(default)]
pub struct ProgramTerms {
    /// Number of trainings with the canary; as many are done without it
    #[arg(long, value_name = "N", value_parser = integer, default_value_t = Self::default().trials, help_heading = "The game")]
    pub trials: u64,
    /// How many scores each training prints; the first one is audited
    #[arg(long, value_name = "K", value_parser = integer, default_value_t = Self::default().scores, help_heading = "The game")]
    pub scores: u64,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value_t = Self::default().seed, help_heading = "The game")]
    pub seed: u64,
    /// With --until-decided: the delta of the claim
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, requires = "until_decided", help_heading = "Until decided")]
    pub delta: Option<f64>,
}

impl Default for ProgramTerms {
    fn default() -> Self {
        Self { trials: 100, scores: 1, seed: 0, delta: None }
    }
}

pub(super) fn play(question: &ProgramQuestion, work: &dyn Work) -> Result<Attacked, Refusal> {
    let ProgramQuestion { terms, decided, .. } = question;
    let Some(out) = &question.play.out else {
        return Err(Refusal::bad_input("no output file was given").hint("add --out scores.csv"));
    };
    let run = question.claim()?;
    // One training at a time unless told otherwise: a training uses the cores by itself.
    let play = Play { threads: question.play.threads.or(Some(1)), ..question.play.clone() };
    let decided = decided.play(run.as_ref(), terms.delta, terms.trials, Some(out), |trials| {
        train(&Trainings::new(question, run.as_ref(), trials)?, out, &play, work)
    })?;
    let count = decided.as_ref().map_or(terms.trials, |decided| decided.trials);
    let game = Trainings::new(question, run.as_ref(), count)?;
    let outcome = train(&game, out, &play, work)?;
    let mut found = Attacked::new(&game, Some(out.clone()), Some(outcome));
    if let (true, Some(run)) = (found.played.is_complete(), &run) {
        write_run(out, run)?;
    }
    found.played.decided = decided.map(|decided| decided.document);
    found.states_run = run.is_some();
    found.sentence = format!("{0} trainings with the canary and {0} without", with_commas(count));
    Ok(found)
}

/// Carries the trainings out. Where one fails, the program that was given failed, not this one.
fn train(game: &Trainings, out: &Path, play: &Play, work: &dyn Work) -> Result<Outcome, Refusal> {
    play.carry_out(game, out, work).map_err(|failure| match failure.kind {
        Kind::Bug => Refusal::bad_input(failure.message)
            .hint("mend the program; the same command then goes on where it stopped"),
        _ => failure,
    })
}

impl ProgramQuestion {
    /// The claimed run, when keys describe one.
    fn claim(&self) -> Result<Option<Run>, Refusal> {
        match self.run.description()? {
            nothing if nothing == RunDescription::default() => Ok(None),
            described => Ok(Some(described.resolve()?.run)),
        }
    }
}

/// The experiment: training 2i has the canary, training 2i + 1 has not.
struct Trainings {
    command: Vec<String>,
    scores: usize,
    plan: Plan,
}

impl Trainings {
    fn new(question: &ProgramQuestion, run: Option<&Run>, trials: u64) -> Result<Self, Refusal> {
        for place in ["{member}", "{seed}"] {
            if !question.command.iter().any(|word| word.contains(place)) {
                return Err(Refusal::bad_input(format!("the command has no {place}")).hint(
                    "write -- ./train.sh --member {member} --seed {seed}: every training needs both",
                ));
            }
        }
        let trainings = trials.saturating_mul(2);
        if trials == 0 || trainings > u64::from(u32::MAX) {
            return Err(Refusal::bad_input(format!(
                "{trials} trials are not between 1 and {}",
                u32::MAX / 2
            )));
        }
        if !(1..=10_000).contains(&question.terms.scores) {
            return Err(Refusal::bad_input(format!(
                "{} scores per training are not between 1 and 10000",
                question.terms.scores
            )));
        }
        let mut header = "# design: runs\nscore,member,run,seed".to_owned();
        for extra in 2..=question.terms.scores {
            let _ = write!(header, ",score_{extra}");
        }
        let parameters = json!({
            "design": "runs", "command": question.command, "scores": question.terms.scores, "run": run,
        });
        let plan =
            Plan::new("attack command", parameters, question.terms.seed, header, 1, trainings);
        Ok(Self { command: question.command.clone(), scores: question.terms.scores as usize, plan })
    }

    fn train(&self, training: u32) -> Result<Vec<f64>, String> {
        let member = if training.is_multiple_of(2) { "1" } else { "0" };
        let seed = training_seed(self.plan.seed, training).to_string();
        let mut words = self
            .command
            .iter()
            .map(|word| word.replace("{member}", member).replace("{seed}", &seed));
        let program = words.next().unwrap_or_default();
        let mut command = Command::new(&program);
        command.args(words).stdin(Stdio::null());
        // Ctrl-C is for the driver, which lets the trainings in hand finish.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let done =
            command.output().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        if !done.status.success() {
            let told = String::from_utf8_lossy(&done.stderr);
            let last: Vec<&str> = told.lines().rev().take(5).collect();
            let last: Vec<&str> = last.into_iter().rev().collect();
            let how = done.status;
            return Err(format!("training {training} ended with {how}: {}", last.join("; ")));
        }
        let text = String::from_utf8_lossy(&done.stdout);
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
        self.read(line).map_err(|reason| {
            let shown: String =
                line.chars().filter(|letter| !letter.is_control()).take(80).collect();
            format!("training {training} printed `{shown}`: {reason}")
        })
    }

    fn read(&self, line: &str) -> Result<Vec<f64>, String> {
        let value: Value = serde_json::from_str(line.trim()).map_err(|_| {
            "its last line is not JSON, such as 0.25 or {\"score\": 0.25}".to_owned()
        })?;
        let inner = value.get("scores").or_else(|| value.get("score")).unwrap_or(&value);
        let numbers: Option<Vec<f64>> = match inner {
            Value::Array(items) => items.iter().map(Value::as_f64).collect(),
            one => one.as_f64().map(|number| vec![number]),
        };
        let numbers = numbers.ok_or("there is no number in it")?;
        if numbers.len() != self.scores {
            return Err(format!("{} scores instead of {}", numbers.len(), self.scores));
        }
        Ok(numbers)
    }
}

impl Experiment for Trainings {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        for training in trials {
            let index = u32::try_from(training).map_err(|error| error.to_string())?;
            let scores = self.train(index)?;
            let member = u8::from(index.is_multiple_of(2));
            let seed = training_seed(self.plan.seed, index);
            let scores: Vec<String> = scores.iter().map(|score| format!("{score:?}")).collect();
            let mut cells: Vec<&dyn Display> = vec![&scores[0], &member, &training, &seed];
            cells.extend(scores[1..].iter().map(|score| score as &dyn Display));
            formats::csv::row(table, &cells);
        }
        Ok(())
    }
}
