//! `plan`: how many runs or canaries an audit needs.

use crate::args::{Format, OutputArgs, RunArgs, load_file, real};
use crate::console::Console;
use crate::exit;
use crate::failure::Failure;
use crate::print::{plain, rounded, wrap};
use accounting::{Pair, Questions, pairs};
use audit::planning::{Attack, Goal, Needed, Target, canaries_needed, runs_needed};
use audit::{Design, Family, Method, ThresholdRule};
use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::PathBuf;
use vocabulary::{LensName, Quantity, Run, Side, Standing};

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
    /// Threshold rule of the audit
    #[arg(long, value_enum, default_value_t = Rule::Union)]
    threshold: Rule,
    /// Bound of the audit: clopper-pearson, gdp, composition or last-iterate (the DP-SGD families
    /// take sample rate and steps from the run, or from the claim); one run: one-run
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

impl Rule {
    fn rule(self) -> ThresholdRule {
        match self {
            Self::Union => ThresholdRule::Union,
            Self::Holdout => ThresholdRule::Holdout,
            Self::KFold => ThresholdRule::KFold,
            Self::Dkw => ThresholdRule::Dkw,
            // Where the threshold lies is the planned attack's business.
            Self::Fixed => ThresholdRule::Fixed(0.0),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Union => "union",
            Self::Holdout => "holdout",
            Self::KFold => "k-fold",
            Self::Dkw => "dkw",
            Self::Fixed => "fixed",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Seen {
    AllIterates,
    LastIterate,
}

/// How many rows an audit needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct PlanAnswer {
    /// `dosimeter.plan/1`
    schema: &'static str,
    design: Design,
    method: Method,
    threshold_rule: &'static str,
    target: TargetAnswer,
    confidence: f64,
    /// The power that was asked for.
    power: f64,
    needed: NeededAnswer,
    achieved_power: f64,
    /// Whether the power was simulated (and lowered by two standard errors).
    power_simulated: bool,
    attack: AttackAnswer,
    /// No number of scores of this attack shows more to a bound that holds for any mechanism;
    /// `null` is infinity.
    largest_epsilon: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct TargetAnswer {
    epsilon: f64,
    delta: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum NeededAnswer {
    Runs { runs_per_side: u64, runs: u64 },
    Canaries { canaries: u64 },
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
struct AttackAnswer {
    description: String,
    /// The threshold's true rates.
    fpr: f64,
    tpr: f64,
}

impl PlanAnswer {
    pub(super) const SCHEMA: &'static str = "dosimeter.plan/1";
}

pub(super) fn run(args: &PlanArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    if !(args.delta >= 0.0 && args.delta < 1.0) {
        return Err(Failure::bad_input(format!("delta {} is outside [0, 1)", args.delta)));
    }
    if !(args.confidence > 0.0 && args.confidence < 1.0) {
        let message = format!("confidence {} is outside (0, 1)", args.confidence);
        return Err(Failure::bad_input(message));
    }
    let claimed = match &args.claim {
        Some(path) => Some(load_file(path)?.run.resolve()?.run),
        None => None,
    };
    let epsilon = target(args, claimed.as_ref())?;
    let (delta, confidence, power) = (args.delta, args.confidence, args.power);
    let target = Target { epsilon, delta, confidence, power };
    let described =
        if args.run.is_empty() { None } else { Some(args.run.load(None)?.resolved.run) };
    let pair = described.as_ref().map(|run| pair(args, run)).transpose()?;
    let (attack, words) = attack(args, pair.as_deref())?;
    let method = method(args)?;
    let rule = args.threshold.rule();
    let needed = match args.design {
        Design::Runs => {
            let goal = goal(method, &target, described.as_ref().or(claimed.as_ref()))?;
            runs_needed(&attack, &goal, &target, &rule)?
        }
        Design::OneRun => canaries_needed(&attack, &target, &rule)?,
    };
    let largest = attack.largest_epsilon(target.delta)?;
    let answer = PlanAnswer {
        schema: PlanAnswer::SCHEMA,
        design: args.design,
        method,
        threshold_rule: args.threshold.name(),
        target: TargetAnswer { epsilon, delta },
        confidence,
        power,
        needed: match args.design {
            Design::Runs => {
                NeededAnswer::Runs { runs_per_side: needed.count, runs: 2 * needed.count }
            }
            Design::OneRun => NeededAnswer::Canaries { canaries: needed.count },
        },
        achieved_power: needed.power,
        power_simulated: needed.simulated,
        attack: AttackAnswer { description: words.clone(), fpr: needed.fpr, tpr: needed.tpr },
        largest_epsilon: largest.is_finite().then_some(largest),
    };
    if format == Format::Json {
        console.json(&answer)?;
    } else {
        console.answer(&human(&answer, &needed))?;
    }
    Ok(exit::ANSWERED)
}

fn method(args: &PlanArgs) -> Result<Method, Failure> {
    let method = args.method.unwrap_or(Method::distribution_free(args.design));
    let known: &[Method] = match args.design {
        Design::Runs => {
            &[Method::ClopperPearson, Method::Gdp, Method::Composition, Method::LastIterate]
        }
        Design::OneRun => &[Method::OneRun],
    };
    if known.contains(&method) {
        return Ok(method);
    }
    let names: Vec<&str> = known.iter().map(|method| method.name()).collect();
    Err(Failure::bad_input(format!(
        "plan does not know {method} for design {}: {}",
        args.design,
        names.join(", ")
    )))
}

fn goal(method: Method, target: &Target, run: Option<&Run>) -> Result<Goal, Failure> {
    let training = || match run.map(Run::phases) {
        Some([phase]) => Ok((phase.sample_rate, phase.steps)),
        Some(_) => Err(Failure::bad_input(format!("{method} needs a run of one phase"))),
        None => Err(Failure::bad_input(format!("{method} needs the sample rate and the steps"))
            .hint("give the run that is attacked (--noise-multiplier, --sample-rate, --steps)")),
    };
    let (epsilon, delta) = (target.epsilon, target.delta);
    Ok(match method {
        Method::Gdp => Goal::gaussian(epsilon, delta)?,
        Method::Composition => {
            let (sample_rate, steps) = training()?;
            Goal::family(Family::Composition { sample_rate, steps }, epsilon, delta)?
        }
        Method::LastIterate => {
            let (sample_rate, steps) = training()?;
            Goal::family(Family::LastIterate { sample_rate, steps }, epsilon, delta)?
        }
        _ => Goal::clopper_pearson(epsilon, delta),
    })
}

fn target(args: &PlanArgs, claimed: Option<&Run>) -> Result<f64, Failure> {
    let epsilon = match (claimed, args.target_epsilon) {
        (Some(run), _) => {
            if args.delta <= 0.0 {
                return Err(Failure::bad_input("a claim has no finite epsilon at delta 0")
                    .hint("give the delta of the claim with --delta"));
            }
            let questions = Questions {
                deltas: vec![args.delta],
                lenses: vec![LensName::Composition],
                ..Questions::default()
            };
            let account = accounting::account(run, &questions)?;
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

/// What the attacker on the run of the flags sees.
fn pair(args: &PlanArgs, run: &Run) -> Result<Box<dyn Pair>, Failure> {
    Ok(match args.observe {
        Seen::AllIterates => Box::new(pairs::Composed::for_run(run)?) as Box<dyn Pair>,
        Seen::LastIterate => Box::new(pairs::BinomialGaussian::for_run(run)?),
    })
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

fn human(answer: &PlanAnswer, needed: &Needed) -> String {
    let goal = format!(
        "epsilon >= {} at delta {} with {} confidence",
        plain(answer.target.epsilon),
        plain(answer.target.delta),
        plain(answer.confidence)
    );
    let mut text = match answer.needed {
        NeededAnswer::Runs { runs_per_side, .. } => format!(
            "{runs_per_side} trainings with the canary and {runs_per_side} without show {goal}\n"
        ),
        NeededAnswer::Canaries { canaries } => format!(
            "{canaries} canaries in one training, each in with probability 1/2, show {goal}\n"
        ),
    };
    let line = format!(
        "with probability {}{}, by {} with threshold {}, if the attack is {} (threshold at FPR {}, TPR {}){}",
        rounded(needed.power, 3, Side::Lower),
        if needed.simulated { " (simulated, less two standard errors)" } else { "" },
        answer.method,
        answer.threshold_rule,
        answer.attack.description,
        rounded(needed.fpr, 3, Side::Neither),
        rounded(needed.tpr, 3, Side::Lower),
        match answer.largest_epsilon {
            Some(largest) if answer.method == Method::ClopperPearson => format!(
                "; any number of scores of this attack shows at most {}",
                rounded(largest, 4, Side::Upper)
            ),
            _ => String::new(),
        }
    );
    text.push_str(&wrap(&line, "  ", 2, 96));
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
        text.push_str(&wrap(note, "  ", 2, 96));
    }
    text
}
