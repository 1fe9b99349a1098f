//! `calibrate`: which noise, steps, rate, batch size or epochs meets a target.

use super::answer;
use crate::args::{AttributeArgs, Format, OutputArgs, RunArgs, integer, lens, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{Align, Table, WIDTH, claims, describe, plain, rounded, wrap};
use accounting::{Advice, Calibration, Solution, Target};
use answers::{AdviceQuestion, CalibrateQuestion};
use clap::{Args, ValueEnum};
use vocabulary::{LensName, Run, Side};

/// What can be solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solve {
    NoiseMultiplier,
    Steps,
    SampleRate,
    /// The largest one, for --dataset-size and --epochs (or --steps)
    BatchSize,
    /// The most, for a batch size and a data-set size, or a sample rate
    Epochs,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter calibrate --target-epsilon 2 --delta 1e-5 --sample-rate 0.01 --steps 1000
  dosimeter calibrate --target-epsilon 3 --delta 1e-6 --dataset-size 100000 --epochs 20 \\
      --batch-sizes 256,512,1024,2048
  dosimeter calibrate --solve steps --target-tpr 0.05 --fpr 0.01 \\
      --noise-multiplier 1 --sample-rate 0.01
  dosimeter calibrate --solve sample-rate --target-bayes-security 0.9 \\
      --noise-multiplier 0.8 --steps 5000
  dosimeter calibrate --solve noise-multiplier --target-attack-accuracy 0.55 \\
      --attribute-sensitivity age.csv --sample-rate 0.01 --steps 1000
")]
pub struct CalibrateArgs {
    /// What to solve for [default: noise-multiplier]
    #[arg(long, value_enum, value_name = "UNKNOWN", conflicts_with = "batch_sizes")]
    solve: Option<Solve>,
    /// A table: the noise for each of these batch sizes, and the size to begin with [without a
    /// value: powers of two]
    #[arg(long, value_name = "B,B,…", value_parser = integer, value_delimiter = ',', num_args = 0..)]
    batch_sizes: Option<Vec<u64>>,
    #[command(flatten)]
    target: TargetArgs,
    /// The lens under which the target is met
    #[arg(long, value_name = "LENS", value_parser = lens, default_value = "composition")]
    lens: LensName,
    #[command(flatten)]
    attribute: AttributeArgs,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The target (exactly one)")]
struct TargetArgs {
    /// Epsilon at --delta is at most this
    #[arg(long, alias = "epsilon", value_name = "E", value_parser = real, allow_hyphen_values = true)]
    target_epsilon: Option<f64>,
    /// The covering Gaussian's mu down to --delta is at most this
    #[arg(long, value_name = "M", value_parser = real, allow_hyphen_values = true)]
    target_mu: Option<f64>,
    /// Bayes security is at least this
    #[arg(long, value_name = "B", value_parser = real, allow_hyphen_values = true)]
    target_bayes_security: Option<f64>,
    /// The membership advantage TPR - FPR is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    target_advantage: Option<f64>,
    /// The true positive rate at --fpr is at most this
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true)]
    target_tpr: Option<f64>,
    /// The best attacker's accuracy at --prior (default 0.5) is at most this
    #[arg(long, value_name = "A", value_parser = real, allow_hyphen_values = true)]
    target_attack_accuracy: Option<f64>,
    /// Reconstruction success at --prior is at most this
    #[arg(long, value_name = "R", value_parser = real, allow_hyphen_values = true)]
    target_reconstruction: Option<f64>,
    /// Delta of --target-epsilon and --target-mu
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// False positive rate of --target-tpr
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Prior of --target-attack-accuracy and --target-reconstruction
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true)]
    prior: Option<f64>,
}

impl CalibrateArgs {
    fn question(&self, solve: Solve) -> Result<CalibrateQuestion, Failure> {
        let target = &self.target;
        Ok(CalibrateQuestion {
            solve: match solve {
                Solve::NoiseMultiplier => answers::Solve::NoiseMultiplier,
                Solve::Steps => answers::Solve::Steps,
                Solve::SampleRate => answers::Solve::SampleRate,
                Solve::BatchSize => answers::Solve::BatchSize,
                Solve::Epochs => answers::Solve::Epochs,
            },
            run: self.run.description().into(),
            target_epsilon: target.target_epsilon,
            target_mu: target.target_mu,
            target_bayes_security: target.target_bayes_security,
            target_advantage: target.target_advantage,
            target_tpr: target.target_tpr,
            target_attack_accuracy: target.target_attack_accuracy,
            target_reconstruction: target.target_reconstruction,
            delta: target.delta,
            fpr: target.fpr,
            prior: target.prior,
            lens: Some(self.lens),
            attribute_sensitivity: self.attribute.file()?,
            attribute_mode: self.attribute.attribute_mode,
        })
    }

    fn advice(&self, sizes: &[u64]) -> AdviceQuestion {
        let target = &self.target;
        AdviceQuestion {
            batch_sizes: sizes.to_vec().into(),
            run: self.run.description().into(),
            target_epsilon: target.target_epsilon,
            target_mu: target.target_mu,
            target_bayes_security: target.target_bayes_security,
            target_advantage: target.target_advantage,
            target_tpr: target.target_tpr,
            target_attack_accuracy: target.target_attack_accuracy,
            target_reconstruction: target.target_reconstruction,
            delta: target.delta,
            fpr: target.fpr,
            prior: target.prior,
            lens: Some(self.lens),
        }
    }
}

pub(super) fn run(args: &CalibrateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    if let Some(sizes) = &args.batch_sizes {
        return answer(&args.advice(sizes), format, console, advised);
    }
    let solve = args.solve.unwrap_or(Solve::NoiseMultiplier);
    answer(&args.question(solve)?, format, console, human)
}

fn advised(advice: &Advice) -> String {
    let mut table = Table::new([
        ("", Align::Left),
        ("batch\nsize", Align::Right),
        ("\nsteps", Align::Right),
        ("noise\nmultiplier", Align::Right),
        ("noise per record\nin a step", Align::Right),
        ("\nin all", Align::Right),
        ("\nproven", Align::Right),
        ("\nheuristic", Align::Right),
    ]);
    let number = |value: Option<f64>| match value {
        Some(value) => rounded(value, 3, Side::Upper),
        None => "-".into(),
    };
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".into());
    for row in &advice.rows {
        let mark = if advice.recommended == Some(row.batch_size) { "*" } else { "" };
        table.row([
            mark.to_owned(),
            row.batch_size.to_string(),
            row.steps.to_string(),
            text(&row.noise_shown),
            number(row.noise_per_record),
            number(row.noise_of_training),
            text(&row.proven),
            text(&row.heuristic),
        ]);
    }
    let mut shown = format!("{}, lens {}\n\n", wanted(&advice.target), advice.lens);
    shown.push_str(&table.render_within(0, 2, WIDTH));
    shown.push('\n');
    shown.push_str(&wrap(&format!("{}.", advice.reason), "* ", 2, WIDTH));
    for row in &advice.rows {
        if let Some(reason) = &row.reason {
            shown.push_str(&wrap(reason, &format!("size {}: ", row.batch_size), 2, WIDTH));
        }
    }
    shown
}

/// The target as a sentence without a verb.
fn wanted(target: &Target) -> String {
    let sign = if target.quantity().is_leakage() { "<=" } else { ">=" };
    format!("{} {sign} {}", claims::title(target.quantity(), target.at()), plain(target.value()))
}

/// The run with the solution as it is printed, i.e. rounded to the safe side.
fn as_printed(answer: &Calibration) -> Run {
    let mut phases = answer.run.phases().to_vec();
    let read = |exact: f64| answer.solution_shown.parse().unwrap_or(exact);
    for phase in &mut phases {
        match answer.solution {
            Solution::NoiseMultiplier(noise) => phase.noise_multiplier = read(noise),
            Solution::SampleRate(rate) => phase.sample_rate = read(rate),
            Solution::Steps(_) | Solution::BatchSize(_) | Solution::Epochs(_) => {}
        }
    }
    answer.run.with_phases(phases).unwrap_or_else(|_| answer.run.clone())
}

fn human(answer: &Calibration) -> String {
    let shown = &answer.solution_shown;
    let solution = match answer.solution {
        Solution::NoiseMultiplier(_) => format!("noise multiplier {shown}"),
        Solution::Steps(_) => format!("steps {shown}"),
        Solution::BatchSize(_) => format!("batch size {shown}"),
        Solution::Epochs(_) => format!("epochs {shown}"),
        Solution::SampleRate(rate) => {
            let mut text = format!("sample rate {shown}");
            if let Some(size) = answer.run.dataset_size() {
                text.push_str(&format!(
                    " (expected batch size {} of {size})",
                    (rate * size as f64).floor()
                ));
            }
            text
        }
    };
    let claim = &answer.achieved;
    let wanted = wanted(&answer.target);
    let mut text = format!("{solution}\n\n");
    text.push_str(&format!("meets     {wanted}\n"));
    // The last digits of a tiny slack are rounding, not information.
    let slack = if answer.slack <= 1e-9 * answer.target.value() {
        "slack below 1e-9 of it".to_owned()
    } else {
        format!("slack {}", rounded(answer.slack, 2, Side::Lower))
    };
    text.push_str(&format!(
        "achieved  {} ({}, lens {}), {slack}\n",
        claims::number(claim),
        claim.standing.as_str(),
        claim.source,
    ));
    text.push_str(&wrap(&describe::run(&as_printed(answer)), "run       ", 10, WIDTH));
    text.push_str(&claims::footer(std::slice::from_ref(claim), &[]));
    text
}
