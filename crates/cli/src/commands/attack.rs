//! `attack`: play a game and write its scores.

mod attribute;
mod matrix;
#[cfg(feature = "language")]
mod token;

use crate::args::{Format, OutputArgs, RunArgs};
use crate::console::Console;
use crate::print::{WIDTH, with_commas, wrap};
use crate::progress::Progress;
use answers::{
    AttackAnswer, AttackQuestion, Attacked, AttributeQuestion, Document, Ended, GradientCanary,
    Kind, LinearGame, LiraTerms, ManyCanariesQuestion, MembershipQuestion, OneCanaryQuestion,
    OurLossGame, ProgramQuestion, QuadraticGame, RecordCanary, Refusal, RepeatersGame, RmiaTerms,
    ShiftRegisterGame, SimulatedQuestion, ZeroingGame, legends,
};
use audit::sequential::{Decision, SequentialDocument};
use clap::{Args, Subcommand};
use experiments::Outcome;
use games::exact::KnownEpsilon;
use matrix::MatrixArgs;
use std::path::Path;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter attack linear --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      --trials 1e5 --out scores.csv
  dosimeter attack our-loss --noise-multiplier 0.5 --sample-rate 0.01 \\
      --steps 1024 --trials 5000 --out encoded.csv
  dosimeter attack quadratic --alpha 0.5 --noise-multiplier 1 \\
      --sample-rate 0.1 --steps 3 --delta 1e-6
  dosimeter attack gradient adult.toml --trials 2000 --out trained.csv
  dosimeter attack linear --noise-multiplier 0.5 --sample-rate 0.1 --steps 100 \\
      --trials 1e5 --until-decided --claim-epsilon 2 --delta 1e-5 \\
      --out scores.csv
  dosimeter attack lira losses.npy members.npy --out lira.csv
  dosimeter audit scores.csv --delta 1e-5

Run the same command again to resume it, or with more --trials to extend it.
")]
pub struct AttackArgs {
    #[command(subcommand)]
    game: GameArgs,
}

/// The games.
#[derive(Debug, Subcommand)]
enum GameArgs {
    /// Simulate a constant canary gradient, all others zero: here `last-iterate` is exact
    Linear(Asked<SimulatedQuestion<LinearGame>>),
    /// Simulate `linear` with a regulariser that resets the model at each step
    Zeroing(Asked<SimulatedQuestion<ZeroingGame>>),
    /// Simulate `linear` with a quadratic regulariser
    Quadratic(Asked<SimulatedQuestion<QuadraticGame>>),
    /// Simulate a regulariser that moves the value of each step to a separate place
    ShiftRegister(Asked<SimulatedQuestion<ShiftRegisterGame>>),
    /// Simulate a malicious data set whose records rewrite the model
    Repeaters(Asked<SimulatedQuestion<RepeatersGame>>),
    /// Simulate a loss that encodes the likelihood ratio into the model (--dataset-size: its number of records)
    OurLoss(Asked<SimulatedQuestion<OurLossGame>>),
    /// Train with and without a gradient canary; the score is how far the model moved along it
    #[command(before_help = "\
Examples:
  dosimeter attack gradient adult.toml --trials 2000 --out scores.csv
  dosimeter attack gradient adult.toml --rest zero --observe all --trials 5000 \\
      --out worst.csv
  dosimeter attack gradient adult.toml --coordinate quiet --every 10 \\
      --out crafted.csv
  dosimeter audit scores.csv --delta 1e-5 --claim scores.csv.run.json
")]
    Gradient(Box<Asked<OneCanaryQuestion<GradientCanary>>>),
    /// Train with and without a canary record; the score is its loss
    #[command(before_help = "\
Examples:
  dosimeter attack input adult.toml --canary mislabelled --trials 1000 \\
      --out scores.csv
  dosimeter attack input adult.toml --canary clip-bkd --start pretrained \\
      --out worst.csv
  dosimeter attack input adult.toml --canary blank --rest blank --out blank.csv
")]
    Input(Box<Asked<OneCanaryQuestion<RecordCanary>>>),
    /// Train once with many canaries, each included by a coin flip: one-run auditing
    #[command(before_help = "\
Examples:
  dosimeter attack canaries adult.toml --canaries 100 --out one.csv
  dosimeter attack canaries adult.toml --canary mislabelled --canaries 1000 \\
      --out one.csv
  dosimeter attack canaries tune.toml --canaries 1000 --observe all \\
      --out language.csv
  dosimeter audit one.csv --delta 1e-5

One training contains each canary with probability 1/2 and gives one score per
canary.
")]
    Canaries(Box<Asked<ManyCanariesQuestion>>),
    /// Measure how much a training depends on one attribute of a record, or guess the attribute
    #[command(before_help = "\
Examples:
  dosimeter attack attribute adult.toml --attribute age --sensitivity age.csv
  dosimeter attack attribute adult.toml --attribute age --mode batch \\
      --diameter approximate
  dosimeter attack attribute adult.toml --attribute age --record 12 \\
      --secrets 17,90 --observe all --trials 100 --out guesses.csv
  dosimeter attack attribute adult.toml --candidate-records 12,13,14 \\
      --trials 100 --out guesses.csv
  dosimeter account adult.toml --attribute-sensitivity age.csv \\
      --attribute-mode record

Without --out, it trains once and measures the attribute's Bayes security. With
--out, it plays the game: one of the candidates is in the data, and an attacker
guesses which.
")]
    Attribute(Box<Asked<AttributeQuestion>>),
    /// Score members by the losses of many models: likelihood-ratio attack; lists records at risk
    #[command(before_help = "\
Examples:
  dosimeter attack lira losses.npy members.npy --out scores.csv
  dosimeter attack lira losses.npy members.npy --offline --fixed-variance \\
      --target 3 --out scores.csv
  dosimeter audit scores.csv --delta 1e-5

Both files have one row per model and one column per record: the loss -ln p of
the right answer, and 1 where the model was trained on the record, else 0. One
model is attacked; the others are references. The table of records at risk uses
all models.
")]
    Lira(Box<MatrixArgs<LiraTerms>>),
    /// Score members by the losses of many models: relative membership attack; lists records at
    /// risk
    #[command(before_help = "\
Examples:
  dosimeter attack rmia losses.npy members.npy --out scores.csv
  dosimeter attack rmia losses.npy members.npy --offline --a 0.3 --gamma 1 \\
      --out scores.csv

Both files have one row per model and one column per record: the loss -ln p of
the right answer, and 1 where the model was trained on the record, else 0. One
model is attacked; the others are references.
")]
    Rmia(Box<MatrixArgs<RmiaTerms>>),
    /// Run any program that trains once and prints a score: `-- ./train.sh --member {member} --seed
    /// {seed}`
    #[command(before_help = "\
Examples:
  dosimeter attack command --trials 200 --out scores.csv -- ./train.sh \\
      --member {member} --seed {seed}
  dosimeter attack command --trials 200 --threads 4 --out scores.csv \\
      --noise-multiplier 1 --sample-rate 0.01 --steps 1000 \\
      -- python train.py {member} {seed}
  dosimeter attack command --trials 5000 --until-decided --claim-epsilon 3 \\
      --delta 1e-5 --out scores.csv -- ./train.sh {member} {seed}
  dosimeter audit scores.csv --delta 1e-5 --claim scores.csv.run.json

{member} becomes 1 (train with the canary) or 0 (without it); {seed} becomes a
32-bit number, another one for each training. The last line that the program
prints is its score: a JSON number, a list of numbers, or an object with `score`
or `scores`. Flags that describe a run state the claim.
")]
    Command(Box<Asked<ProgramQuestion>>),
    /// Fine-tune a language model once with many token canaries: one-run auditing
    #[cfg(feature = "language")]
    #[command(before_help = "\
Examples:
  dosimeter attack token tune.toml --canaries 1000 --delta 1e-5 \\
      --out canaries.csv
  dosimeter attack token tune.toml --score loss --canaries 2000 \\
      --out canaries.csv
  dosimeter audit canaries.csv --delta 1e-5 --claim canaries.csv.run.json

A canary is a few tokens of the data and then one that the data never uses; each
is included with probability 1/2. One training gives one score per canary. Run
the same command again to resume.
")]
    Token(Box<Asked<answers::CanariesQuestion>>),
    /// Fine-tune a language model once with many token canaries (not part of this build)
    #[cfg(not(feature = "language"))]
    Token(super::absent::AbsentArgs),
}

/// A question with the run's flags, and how its answer is shown.
#[derive(Clone, Debug, Args)]
struct Asked<Q: Args> {
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    question: Q,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &AttackArgs, console: &mut Console) -> Result<u8, Refusal> {
    use AttackQuestion as Q;

    match &args.game {
        GameArgs::Linear(args) => args.ask(Q::Linear, console),
        GameArgs::Zeroing(args) => args.ask(Q::Zeroing, console),
        GameArgs::Quadratic(args) => args.ask(Q::Quadratic, console),
        GameArgs::ShiftRegister(args) => args.ask(Q::ShiftRegister, console),
        GameArgs::Repeaters(args) => args.ask(Q::Repeaters, console),
        GameArgs::OurLoss(args) => args.ask(Q::OurLoss, console),
        GameArgs::Gradient(args) => args.ask(|question| Q::Gradient(question.into()), console),
        GameArgs::Input(args) => args.ask(|question| Q::Input(question.into()), console),
        GameArgs::Canaries(args) => args.ask(|question| Q::Canaries(question.into()), console),
        GameArgs::Attribute(args) => args.ask(|question| Q::Attribute(question.into()), console),
        GameArgs::Command(args) => args.ask(Q::Command, console),
        #[cfg(feature = "language")]
        GameArgs::Token(args) => args.ask(|question| Q::Token(question.into()), console),
        #[cfg(not(feature = "language"))]
        GameArgs::Token(args) => super::absent::run(args, console, "`attack token`", "language"),
        GameArgs::Lira(args) => args.ask(MembershipQuestion::Lira, console),
        GameArgs::Rmia(args) => args.ask(MembershipQuestion::Rmia, console),
    }
}

impl<Q: Args + Clone> Asked<Q> {
    /// Asks, and shows what came out.
    fn ask(
        &self,
        game: impl FnOnce(Q) -> AttackQuestion,
        console: &mut Console,
    ) -> Result<u8, Refusal> {
        let format = self.output.among(&[Format::Human, Format::Json])?;
        let mut question = game(self.question.clone());
        *question.run() = self.run.description().into();
        let ended = answers::attack(&question, &Progress::new(console))?;
        let Ended::Answered(answer) = ended else {
            let sentence = "interrupted; the same command starts over";
            return Err(Refusal::new(Kind::Interrupted, sentence));
        };
        let text = match (format, &answer) {
            (Format::Json, _) => answer.text(),
            (_, AttackAnswer::Game(found)) => human(found),
            (_, AttackAnswer::Attribute(found)) => attribute::human(found),
            #[cfg(feature = "language")]
            (_, AttackAnswer::Canaries(found)) => token::human(found),
        };
        if !text.is_empty() {
            console.answer(&text)?;
        }
        match &answer {
            AttackAnswer::Game(found) => afterwards(found, console),
            AttackAnswer::Attribute(found) => attribute::afterwards(found, console),
            #[cfg(feature = "language")]
            AttackAnswer::Canaries(found) => token::afterwards(found, console),
        }
        Ok(answer.exit_code())
    }
}

fn human(found: &Attacked) -> String {
    let mut text = match &found.known {
        Some((delta, facts)) if !facts.is_empty() => human_facts(*delta, facts),
        _ => String::new(),
    };
    if let (true, Some(out)) = (found.played.is_complete(), &found.out) {
        text.push_str(&format!("{}: {}\n", found.sentence, out.display()));
    }
    text
}

/// What a person may want to do next.
fn afterwards(found: &Attacked, console: &mut Console) {
    let (Some(outcome), Some(out)) = (&found.played.outcome, &found.out) else { return };
    narrate(outcome, out, console);
    if !found.played.is_complete() {
        return;
    }
    suggest_audit(out, 1e-5, found.states_run, console);
    if let Some(decided) = &found.played.decided {
        console.note(&told(decided));
    }
}

/// How an audit of the scores is asked for.
fn suggest_audit(out: &Path, delta: f64, states_run: bool, console: &mut Console) {
    let beside = answers::beside(out, answers::RUN_ENDING);
    let claim = if states_run { format!(" --claim {}", beside.display()) } else { String::new() };
    console.hint(&format!("dosimeter audit {} --delta {delta:e}{claim}", out.display()));
}

/// How a game ended that was played until it was decided.
fn told(document: &SequentialDocument) -> String {
    let claimed = document.claim.as_ref().map_or_else(
        || "the claim".to_owned(),
        |claim| format!("the claimed epsilon {}", claim.quoted()),
    );
    let trials = document.trials;
    let shown = document.bound.claim.quoted();
    match document.decision {
        Some(Decision::Refuted) => format!(
            "{claimed} is refuted after {} trials: epsilon is at least {shown}",
            with_commas(document.refuted_at.unwrap_or(trials))
        ),
        Some(Decision::OutOfReach) => format!(
            "stopped after {trials} trials: the ones that are left refute {claimed} with a probability below {} %; epsilon is at least {shown}",
            100.0 * audit::sequential::HOPELESS
        ),
        _ => format!("all {trials} trials do not refute {claimed}; epsilon is at least {shown}"),
    }
}

pub(in crate::commands) fn narrate(outcome: &Outcome, out: &Path, console: &mut Console) {
    let chunks = |count: u64| format!("{count} chunk{}", if count == 1 { "" } else { "s" });
    match *outcome {
        Outcome::Complete { computed: 0 } => {
            console.note(&format!("nothing was left to compute for {}", out.display()));
        }
        Outcome::Complete { computed } => console.note(&format!("{} computed", chunks(computed))),
        Outcome::Incomplete { computed, missing } => {
            console.note(&format!("{} computed, {missing} missing", chunks(computed)));
            console.hint("run the other shards, then any of them again to write the scores");
        }
        Outcome::Interrupted { computed, missing } => {
            console.note(&format!("interrupted: {} computed, {missing} missing", chunks(computed)));
            console.hint("run the same command again to resume");
        }
    }
}

/// What is known exactly, for a person.
fn human_facts(delta: f64, facts: &[KnownEpsilon]) -> String {
    let mut text = format!("epsilon at delta {delta:e}, {}\n", legends::KNOWN_ARE);
    for fact in facts {
        let row = format!(
            "  {:<15} {:>8} .. {:<8}  ",
            fact.name,
            fact.epsilon.at_least().digits(6),
            fact.epsilon.at_most().digits(6),
        );
        text.push_str(&wrap(&fact.note, &row, row.len(), WIDTH));
    }
    text
}
