//! `plan`: how many runs or canaries an audit needs.

use super::answer;
use crate::args::{Format, OutputArgs, RunArgs, claimed, real};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{WIDTH, plain, rounded, wrap};
use answers::{NeededRows, PlanQuestion, Planned, PlannedRule};
use audit::{Design, Method};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use vocabulary::{Release, Side};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter plan --target-epsilon 1 --mu 1
  dosimeter plan --target-epsilon 2 --delta 1e-5 --noise-multiplier 0.8 --sample-rate 0.1 --steps 50
  dosimeter plan --claim run.toml --delta 1e-5 --attack-fpr 0.001 --attack-tpr 0.9
  dosimeter plan --claim run.toml --delta 1e-5 --method composition \\
      --noise-multiplier 0.5 --sample-rate 0.1 --steps 50
  dosimeter plan --target-epsilon 1 --mu 1.5 --design one-run

Assume an attack (--mu, --attack-fpr with --attack-tpr, or the best attack on a run), and the
answer is how many scores show the target with the asked power.
")]
pub struct PlanArgs {
    /// Epsilon that the audit should show
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    target_epsilon: Option<f64>,
    /// The claimed run: the target is its proven epsilon unless --target-epsilon is given, and the
    /// DP-SGD families are those of this run
    #[arg(long, value_name = "RUN.toml")]
    claim: Option<PathBuf>,
    /// Delta of the bound
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, default_value = "0")]
    delta: f64,
    /// Confidence of the bound
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// Probability that the audit shows the target
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, default_value = "0.8")]
    power: f64,
    /// `runs` (trainings per side) or `one-run` (canaries)
    #[arg(long, value_name = "DESIGN", default_value = "runs")]
    design: Design,
    /// Threshold rule of the audit
    #[arg(long, value_enum, default_value_t = Rule::Union)]
    threshold: Rule,
    /// Bound of the audit: clopper-pearson, gdp, composition or last-iterate (the DP-SGD families
    /// are those of the claim; without one, of the run that is attacked); one run: one-run
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,
    /// The attack's scores are N(mu, 1) against N(0, 1)
    #[arg(long, value_name = "MU", value_parser = real, allow_hyphen_values = true, help_heading = "The attack")]
    mu: Option<f64>,
    /// False positive rate of the attack's threshold
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, requires = "attack_tpr", help_heading = "The attack")]
    attack_fpr: Option<f64>,
    /// True positive rate there
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, requires = "attack_fpr", help_heading = "The attack")]
    attack_tpr: Option<f64>,
    /// What the best attacker on the run of the flags sees
    #[arg(long, value_enum, default_value_t = Seen::AllIterates, help_heading = "The attack")]
    observe: Seen,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rule {
    Union,
    Holdout,
    KFold,
    Dkw,
    /// Chosen before the scores are seen
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Seen {
    AllIterates,
    LastIterate,
}

pub(super) fn run(args: &PlanArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let question = PlanQuestion {
        target_epsilon: args.target_epsilon,
        claim: claimed(args.claim.as_deref())?,
        delta: Some(args.delta),
        confidence: Some(args.confidence),
        power: Some(args.power),
        design: Some(args.design),
        threshold: Some(match args.threshold {
            Rule::Union => PlannedRule::Union,
            Rule::Holdout => PlannedRule::Holdout,
            Rule::KFold => PlannedRule::KFold,
            Rule::Dkw => PlannedRule::Dkw,
            Rule::Fixed => PlannedRule::Fixed,
        }),
        method: args.method,
        mu: args.mu,
        attack_fpr: args.attack_fpr,
        attack_tpr: args.attack_tpr,
        run: (!args.run.is_empty()).then(|| args.run.description().into()),
        observe: Some(match args.observe {
            Seen::AllIterates => Release::AllIterates,
            Seen::LastIterate => Release::LastIterate,
        }),
    };
    answer(&question, format, console, human)
}

fn human(answer: &Planned) -> String {
    let goal = format!(
        "epsilon >= {} at delta {} with {} confidence",
        rounded(answer.target.epsilon, 4, Side::Lower),
        plain(answer.target.delta),
        plain(answer.confidence)
    );
    let needed = match answer.needed {
        NeededRows::Runs { runs_per_side, .. } => format!(
            "{runs_per_side} trainings with the canary and {runs_per_side} without show {goal}"
        ),
        NeededRows::Canaries { canaries } => format!(
            "{canaries} canaries in one training, each in with probability 1/2, show {goal}"
        ),
    };
    let mut text = wrap(&needed, "", 0, WIDTH);
    let line = format!(
        "with probability {}{}, by {} with threshold {}, if the attack is {} (threshold at FPR {}, TPR {}){}",
        rounded(answer.achieved_power, 3, Side::Lower),
        if answer.power_simulated { " (simulated, less two standard errors)" } else { "" },
        answer.method,
        answer.threshold_rule,
        answer.attack.description,
        rounded(answer.attack.fpr, 3, Side::Neither),
        rounded(answer.attack.tpr, 3, Side::Lower),
        match answer.largest_epsilon {
            Some(largest) if answer.method == Method::ClopperPearson => format!(
                "; any number of scores of this attack shows at most {}",
                rounded(largest, 4, Side::Upper)
            ),
            _ => String::new(),
        }
    );
    text.push_str(&wrap(&line, "  ", 2, WIDTH));
    let note = match answer.method {
        Method::Gdp => Some("holds for mechanisms with a Gaussian trade-off curve only"),
        Method::Composition => Some("holds within DP-SGD with every iterate seen only"),
        Method::LastIterate => Some("holds within the last iterate of linear losses only"),
        Method::OneRun => Some(
            "canaries are assumed not to disturb each other; many of them in a small data set do",
        ),
        _ => None,
    };
    if let Some(note) = note {
        text.push_str(&wrap(note, "  ", 2, WIDTH));
    }
    text
}
