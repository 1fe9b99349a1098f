//! `calibrate`: which noise, steps or rate meets a target.

use super::answer;
use crate::args::{AttributeArgs, Format, OutputArgs, RunArgs, lens, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{claims, describe, plain, rounded};
use accounting::{Calibration, Solution, Unknown};
use answers::CalibrateQuestion;
use clap::{Args, ValueEnum};
use vocabulary::{LensName, Run, Side};

/// What can be solved for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Solve {
    NoiseMultiplier,
    Steps,
    SampleRate,
}

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter calibrate --solve noise-multiplier --target-epsilon 2 --delta 1e-5 \\
      --sample-rate 0.01 --steps 1000
  dosimeter calibrate --solve steps --target-tpr 0.05 --fpr 0.01 \\
      --noise-multiplier 1 --sample-rate 0.01
  dosimeter calibrate --solve sample-rate --target-bayes-security 0.9 \\
      --noise-multiplier 0.8 --steps 5000
  dosimeter calibrate --solve noise-multiplier --target-attack-accuracy 0.55 \\
      --attribute-sensitivity age.csv --sample-rate 0.01 --steps 1000
")]
pub struct CalibrateArgs {
    /// What to solve for
    #[arg(long, value_enum, value_name = "UNKNOWN")]
    solve: Solve,
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
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
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
    #[arg(long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    delta: Option<f64>,
    /// False positive rate of --target-tpr
    #[arg(long, value_name = "FPR", value_parser = real, allow_hyphen_values = true)]
    fpr: Option<f64>,
    /// Prior of --target-attack-accuracy and --target-reconstruction
    #[arg(long, value_name = "PRIOR", value_parser = real, allow_hyphen_values = true)]
    prior: Option<f64>,
}

impl CalibrateArgs {
    fn question(&self) -> Result<CalibrateQuestion, Failure> {
        let target = &self.target;
        Ok(CalibrateQuestion {
            solve: match self.solve {
                Solve::NoiseMultiplier => Unknown::NoiseMultiplier,
                Solve::Steps => Unknown::Steps,
                Solve::SampleRate => Unknown::SampleRate,
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
}

pub(super) fn run(args: &CalibrateArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    answer(&args.question()?, format, console, human)
}

/// The run with the solution as it is printed, i.e. rounded to the safe side.
fn as_printed(answer: &Calibration) -> Run {
    let mut phases = answer.run.phases().to_vec();
    let read = |exact: f64| answer.solution_shown.parse().unwrap_or(exact);
    for phase in &mut phases {
        match answer.solution {
            Solution::NoiseMultiplier(noise) => phase.noise_multiplier = read(noise),
            Solution::SampleRate(rate) => phase.sample_rate = read(rate),
            Solution::Steps(_) => {}
        }
    }
    answer.run.with_phases(phases).unwrap_or_else(|_| answer.run.clone())
}

fn human(answer: &Calibration) -> String {
    let shown = &answer.solution_shown;
    let solution = match answer.solution {
        Solution::NoiseMultiplier(_) => format!("noise multiplier {shown}"),
        Solution::Steps(_) => format!("steps {shown}"),
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
    let wanted = format!(
        "{} {} {}",
        claims::title(answer.target.quantity(), answer.target.at()),
        if answer.target.quantity().is_leakage() { "<=" } else { ">=" },
        plain(answer.target.value()),
    );
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
    text.push_str(&format!("run       {}", describe::run(&as_printed(answer))));
    text.push_str(&claims::footer(std::slice::from_ref(claim), &[]));
    text
}
