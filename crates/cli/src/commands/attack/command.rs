//! `attack command`: any program that trains once, with or without the canary, and prints a
//! score, becomes a resumable experiment. One chunk is one training, so a finished training is
//! never repeated.

use super::decided::DecidedArgs;
use super::{WorkArgs, carry_out, exit_code, narrate};
use crate::args::{Format, OutputArgs, RunArgs, integer, nonnegative_integer, real};
use crate::console::Console;
use crate::print::with_commas;
use answers::{Kind, Played, Refusal, beside, write_run};
use clap::Args;
use experiments::{Experiment, Outcome, Plan, training_seed};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use vocabulary::RunDescription;

#[derive(Clone, Debug, Args)]
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
pub(super) struct CommandArgs {
    #[command(flatten)]
    run: RunArgs,
    /// Number of trainings with the canary; as many are done without it
    #[arg(long, value_name = "N", value_parser = integer, default_value = "100", help_heading = "The game")]
    trials: u64,
    /// How many scores each training prints; the first one is audited
    #[arg(long, value_name = "K", value_parser = integer, default_value = "1", help_heading = "The game")]
    scores: u64,
    /// Seed of all randomness
    #[arg(long, value_name = "SEED", value_parser = nonnegative_integer, default_value = "0", help_heading = "The game")]
    seed: u64,
    /// With --until-decided: the delta of the claim
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true, requires = "until_decided", help_heading = "Until decided")]
    delta: Option<f64>,
    #[command(flatten)]
    decided: DecidedArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// The program and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "COMMAND", help_heading = Option::<&str>::None)]
    command: Vec<String>,
}

pub(super) fn run(args: &CommandArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let Some(out) = &args.work.out else {
        return Err(Refusal::bad_input("no output file was given").hint("add --out scores.csv"));
    };
    let claim = claim(&args.run)?;
    // One training at a time unless told otherwise: a training uses the cores by itself.
    let work = WorkArgs { threads: args.work.threads.or(Some(1)), ..args.work.clone() };
    let stated = claim.as_ref().map(|_| args.run.run()).transpose()?;
    let decided = args.decided.play(
        stated.as_ref(),
        args.delta,
        args.trials,
        Some(out),
        console,
        |trials, console| {
            train(&Trainings::new(args, claim.as_ref(), trials)?, out, &work, console)
        },
    )?;
    let count = decided.as_ref().map_or(args.trials, |decided| decided.trials);
    let game = Trainings::new(args, claim.as_ref(), count)?;
    let outcome = train(&game, out, &work, console)?;
    let complete = matches!(outcome, Outcome::Complete { .. });
    let beside = beside(out, answers::RUN_ENDING);
    if let (true, Some(run)) = (complete, &claim) {
        write_run(out, run)?;
    }
    if format == Format::Json {
        let decided = decided.as_ref().map(|decided| &decided.document);
        console.json(&Played::new(&game, Some(out), Some(outcome)).decided(decided))?;
    } else if complete {
        console.answer(&format!(
            "{0} trainings with the canary and {0} without: {1}\n",
            with_commas(count),
            out.display()
        ))?;
    }
    narrate(&outcome, out, console);
    if complete {
        let claim = claim.map(|_| format!(" --claim {}", beside.display())).unwrap_or_default();
        console.hint(&format!("dosimeter audit {} --delta 1e-5{claim}", out.display()));
    }
    match decided {
        Some(decided) if complete => {
            decided.narrate(console);
            Ok(decided.exit_code())
        }
        _ => Ok(exit_code(&outcome)),
    }
}

/// Carries the trainings out. Where one fails, the program that was given failed, not this one.
fn train(
    game: &Trainings,
    out: &Path,
    work: &WorkArgs,
    console: &mut Console,
) -> Result<Outcome, Refusal> {
    carry_out(game, out, work, console).map_err(|failure| match failure.kind {
        Kind::Bug => Refusal::bad_input(failure.message)
            .hint("mend the program; the same command then goes on where it stopped"),
        _ => failure,
    })
}

/// The claimed run, when flags describe one.
fn claim(args: &RunArgs) -> Result<Option<Value>, Refusal> {
    if args.description() == RunDescription::default() {
        return Ok(None);
    }
    let run = args.run()?;
    let text = serde_json::to_value(&run).map_err(|error| Refusal::bad_input(error.to_string()))?;
    Ok(Some(text))
}

/// The experiment: training 2i has the canary, training 2i + 1 has not.
struct Trainings {
    command: Vec<String>,
    scores: usize,
    plan: Plan,
}

impl Trainings {
    fn new(args: &CommandArgs, run: Option<&Value>, trials: u64) -> Result<Self, Refusal> {
        for place in ["{member}", "{seed}"] {
            if !args.command.iter().any(|word| word.contains(place)) {
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
        if !(1..=10_000).contains(&args.scores) {
            return Err(Refusal::bad_input(format!(
                "{} scores per training are not between 1 and 10000",
                args.scores
            )));
        }
        let mut header = "# design: runs\nscore,member,run,seed".to_owned();
        for extra in 2..=args.scores {
            let _ = write!(header, ",score_{extra}");
        }
        let parameters = json!({
            "design": "runs", "command": args.command, "scores": args.scores, "run": run,
        });
        let plan = Plan::new("attack command", parameters, args.seed, header, 1, trainings);
        Ok(Self { command: args.command.clone(), scores: args.scores as usize, plan })
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
            let _ = write!(table, "{:?},{member},{training},{seed}", scores[0]);
            for score in &scores[1..] {
                let _ = write!(table, ",{score:?}");
            }
            table.push('\n');
        }
        Ok(())
    }
}
