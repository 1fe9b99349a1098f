//! `plan`: how many runs or canaries an audit needs.

use crate::args::{Format, OutputArgs, RunArgs, load_file, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{plain, rounded, wrap};
use accounting::{Pair, Questions, pairs};
use audit::planning::{Attack, Needed, Target, canaries_needed, largest_epsilon, runs_needed};
use audit::{AttackDirection, Design, ThresholdRule};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use vocabulary::{LensName, Quantity, Side, Standing};

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter plan --target-epsilon 1 --mu 1
  dosimeter plan --target-epsilon 2 --delta 1e-5 --noise-multiplier 0.8 --sample-rate 0.1 --steps 50
  dosimeter plan --claim run.toml --delta 1e-5 --attack-fpr 0.001 --attack-tpr 0.9
  dosimeter plan --target-epsilon 1 --mu 1.5 --design one-run

Assume an attack (--mu, --attack-fpr with --attack-tpr, or the best attack on a run), and the
answer is how many scores show the target with the asked power.
")]
pub struct PlanArgs {
    /// Epsilon that the audit should show
    #[arg(long, value_name = "E", value_parser = real, allow_hyphen_values = true)]
    target_epsilon: Option<f64>,
    /// In place of --target-epsilon: the proven epsilon of this run, to see it violated
    #[arg(long, value_name = "RUN.toml", conflicts_with = "target_epsilon")]
    claim: Option<PathBuf>,
    /// Delta of the bound
    #[arg(long, value_name = "D", value_parser = real, allow_hyphen_values = true, default_value = "0")]
    delta: f64,
    /// Confidence of the bound
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    confidence: f64,
    /// Probability that the audit shows the target
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, default_value = "0.8")]
    power: f64,
    /// `runs` (trainings a side) or `one-run` (canaries)
    #[arg(long, value_name = "DESIGN", default_value = "runs")]
    design: Design,
    /// Rule of the audit: union, dkw, or fixed
    #[arg(long, value_enum, default_value_t = Rule::Union)]
    threshold: Rule,
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
    Dkw,
    Fixed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Seen {
    AllIterates,
    LastIterate,
}

pub(super) fn run(args: &PlanArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let epsilon = target(args)?;
    if !(args.delta >= 0.0 && args.delta < 1.0) {
        return Err(Failure::bad_input(format!("delta {} is outside [0, 1)", args.delta)));
    }
    if !(args.confidence > 0.0 && args.confidence < 1.0) {
        let message = format!("confidence {} is outside (0, 1)", args.confidence);
        return Err(Failure::bad_input(message));
    }
    let target = Target {
        epsilon,
        delta: args.delta,
        confidence: args.confidence,
        power: args.power,
        direction: AttackDirection::Both,
    };
    let pair = pair(args)?;
    let (attack, words) = attack(args, pair.as_deref())?;
    let rule = match args.threshold {
        Rule::Union => ThresholdRule::Union,
        Rule::Dkw => ThresholdRule::Dkw,
        Rule::Fixed => ThresholdRule::Fixed(0.0),
    };
    let needed = match args.design {
        Design::Runs => runs_needed(&attack, &target, &rule)?,
        Design::OneRun => canaries_needed(&attack, &target)?,
    };
    let largest = largest_epsilon(&attack, &target)?;
    if format == Format::Json {
        console.json(&document(args, &target, &needed, largest, &words))?;
    } else {
        console.answer(&human(args, &target, &needed, largest, &words))?;
    }
    Ok(exit::ANSWERED)
}

fn target(args: &PlanArgs) -> Result<f64, Failure> {
    let epsilon = match (&args.claim, args.target_epsilon) {
        (Some(path), _) => {
            if args.delta <= 0.0 {
                return Err(Failure::bad_input("a claim has no finite epsilon at delta 0")
                    .hint("give the delta of the claim with --delta"));
            }
            let run = load_file(path)?.run.resolve()?.run;
            let questions = Questions {
                deltas: vec![args.delta],
                lenses: vec![LensName::Composition],
                ..Questions::default()
            };
            let account = accounting::account(&run, &questions)?;
            let proven = account.claims.iter().find(|claim| {
                claim.quantity == Quantity::Epsilon && claim.standing == Standing::Proven
            });
            let claim = proven.ok_or_else(|| {
                Failure::bad_input("no proven epsilon is known for the claimed run")
                    .hint("give --target-epsilon instead")
            })?;
            claim.interval.upper
        }
        (None, Some(epsilon)) => epsilon,
        (None, None) => {
            return Err(Failure::bad_input("there is nothing to plan for")
                .hint("give --target-epsilon E, or --claim RUN.toml with --delta"));
        }
    };
    if epsilon > 0.0 && epsilon.is_finite() {
        Ok(epsilon)
    } else {
        Err(Failure::bad_input(format!("target epsilon {epsilon} is not a finite number above 0")))
    }
}

/// The pair of the run in the flags, when they describe one.
fn pair(args: &PlanArgs) -> Result<Option<Box<dyn Pair>>, Failure> {
    if args.run.is_empty() {
        return Ok(None);
    }
    let run = args.run.load(None)?.resolved.run;
    Ok(Some(match args.observe {
        Seen::AllIterates => Box::new(pairs::Composed::for_run(&run)?) as Box<dyn Pair>,
        Seen::LastIterate => Box::new(pairs::BinomialGaussian::for_run(&run)?),
    }))
}

fn attack<'a>(
    args: &PlanArgs,
    pair: Option<&'a dyn Pair>,
) -> Result<(Attack<'a>, String), Failure> {
    let rate = |name: &str, value: f64| {
        if value > 0.0 && value < 1.0 {
            Ok(value)
        } else {
            Err(Failure::bad_input(format!("{name} {value} is outside (0, 1)")))
        }
    };
    match (args.mu, args.attack_fpr.zip(args.attack_tpr), pair) {
        (Some(mu), None, None) if mu > 0.0 && mu.is_finite() => {
            Ok((Attack::Gaussian { mu }, format!("scores N({}, 1) against N(0, 1)", plain(mu))))
        }
        (Some(mu), None, None) => {
            Err(Failure::bad_input(format!("mu {mu} is not a finite number above 0")))
        }
        (None, Some((fpr, tpr)), None) => {
            let (fpr, tpr) =
                (rate("false positive rate", fpr)?, rate("true positive rate", tpr)?);
            let words = format!("one threshold, TPR {} at FPR {}", plain(tpr), plain(fpr));
            Ok((Attack::Rates { fpr, tpr }, words))
        }
        (None, None, Some(pair)) => {
            let seen = match args.observe {
                Seen::AllIterates => "all iterates",
                Seen::LastIterate => "the last iterate",
            };
            Ok((Attack::Pair(pair), format!("the best attack on {seen} of the run")))
        }
        (None, None, None) => Err(Failure::bad_input("no attack is assumed").hint(
            "give --mu, or --attack-fpr and --attack-tpr, or a run (--noise-multiplier, --sample-rate, --steps)",
        )),
        _ => Err(Failure::bad_input("several attacks are assumed")
            .hint("give one of --mu, --attack-fpr with --attack-tpr, and a run")),
    }
}

fn document(
    args: &PlanArgs,
    target: &Target,
    needed: &Needed,
    largest: f64,
    words: &str,
) -> serde_json::Value {
    let counted = match args.design {
        Design::Runs => json!({
            "runs_per_side": needed.count,
            "runs": 2 * needed.count,
        }),
        Design::OneRun => json!({ "canaries": needed.count }),
    };
    json!({
        "schema": "dosimeter.plan/1",
        "design": args.design,
        "threshold_rule": format!("{:?}", args.threshold).to_lowercase(),
        "target": { "epsilon": target.epsilon, "delta": target.delta },
        "confidence": target.confidence,
        "power": target.power,
        "needed": counted,
        "achieved_power": needed.power,
        "attack": { "description": words, "fpr": needed.fpr, "tpr": needed.tpr },
        "largest_epsilon": if largest.is_finite() { json!(largest) } else { json!(null) },
    })
}

fn human(args: &PlanArgs, target: &Target, needed: &Needed, largest: f64, words: &str) -> String {
    let goal = format!(
        "epsilon >= {} at delta {} with {} confidence",
        plain(target.epsilon),
        plain(target.delta),
        plain(target.confidence)
    );
    let mut text = match args.design {
        Design::Runs => format!(
            "{} trainings with the canary and {} without show {goal}\n",
            needed.count, needed.count
        ),
        Design::OneRun => format!(
            "{} canaries in one training, each in with probability 1/2, show {goal}\n",
            needed.count
        ),
    };
    let line = format!(
        "with probability {}, if the attack is {words} (threshold at FPR {}, TPR {}){}",
        rounded(needed.power, 3, Side::Lower),
        rounded(needed.fpr, 3, Side::Neither),
        rounded(needed.tpr, 3, Side::Lower),
        if largest.is_finite() && args.design == Design::Runs {
            format!(
                "; any number of scores of this attack shows at most {}",
                rounded(largest, 4, Side::Upper)
            )
        } else {
            String::new()
        }
    );
    text.push_str(&wrap(&line, "  ", 2, 96));
    if args.design == Design::OneRun {
        let note =
            "canaries are assumed not to disturb each other; many of them in a small data set do";
        text.push_str(&wrap(note, "  ", 2, 96));
    }
    text
}
