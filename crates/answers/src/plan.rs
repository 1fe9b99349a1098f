//! How many runs or canaries an audit needs.

use crate::audit::parsed;
use crate::flags::{real, word};
use crate::run::Described;
use crate::{Refusal, claimed};
use accounting::{Pair, pairs, schemes};
use audit::planning::{self, Attack, Goal, Needed, Target, canaries_needed, runs_needed};
use audit::{Design, Family, Method, ThresholdRule};
use clap::Args;
use clap::builder::PossibleValue;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vocabulary::rounding::plain;
use vocabulary::{AtLeast, AtMost, Problem, Release, Run, Sampling};

/// The question of `plan`.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct PlanQuestion {
    /// Epsilon that the audit should show
    #[arg(long, visible_alias = "claim-epsilon", value_name = "E", value_parser = real, allow_hyphen_values = true)]
    pub target_epsilon: Option<f64>,
    /// The run that is claimed: its proven epsilon is the target where none is given, and the DP-SGD families are
    /// those of this run.
    #[arg(skip)]
    pub claim: Option<Described>,
    /// Delta of the bound
    #[arg(short = 'd', long, value_name = "D", value_parser = real, allow_hyphen_values = true, default_value = "0")]
    pub delta: Option<f64>,
    /// Confidence of the bound
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    pub confidence: Option<f64>,
    /// Probability that the audit shows the target
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, default_value = "0.8")]
    pub power: Option<f64>,
    /// `runs` (trainings per side) or `one-run` (canaries)
    #[arg(long, value_name = "DESIGN", default_value = "runs")]
    #[serde(deserialize_with = "parsed")]
    pub design: Option<Design>,
    /// Threshold rule of the audit
    #[arg(long, value_parser = word::<PlannedRule>(PlannedRule::words()), default_value = "union")]
    pub threshold: Option<PlannedRule>,
    /// The audit's method: clopper-pearson, gdp, composition or last-iterate; for one run one-run.
    /// composition and last-iterate take the claimed run, or without a claim the attacked one
    #[arg(long, value_name = "METHOD")]
    #[serde(deserialize_with = "parsed")]
    pub method: Option<Method>,
    /// The attack's scores are N(mu, 1) against N(0, 1)
    #[arg(long, value_name = "MU", value_parser = real, allow_hyphen_values = true, help_heading = "The attack")]
    pub mu: Option<f64>,
    /// False positive rate of the attack's threshold
    #[arg(long, value_name = "F", value_parser = real, allow_hyphen_values = true, requires = "attack_tpr", help_heading = "The attack")]
    pub attack_fpr: Option<f64>,
    /// True positive rate at that threshold
    #[arg(long, value_name = "P", value_parser = real, allow_hyphen_values = true, requires = "attack_fpr", help_heading = "The attack")]
    pub attack_tpr: Option<f64>,
    /// The run whose best attack is assumed, and what it sees.
    #[arg(skip)]
    pub run: Option<Described>,
    /// What the best attacker on the described run sees
    #[arg(long, value_parser = word::<Release>(["all-iterates", "last-iterate"]), default_value = "all-iterates", help_heading = "The attack")]
    pub observe: Option<Release>,
    /// Seconds of processor time that the answer may take [default: 1.8].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

/// A threshold rule without its threshold, which is the planned attack's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlannedRule {
    #[default]
    Union,
    Holdout,
    KFold,
    Dkw,
    Fixed,
}

impl PlannedRule {
    const ALL: [Self; 5] = [Self::Union, Self::Holdout, Self::KFold, Self::Dkw, Self::Fixed];

    fn words() -> [PossibleValue; 5] {
        Self::ALL.map(|rule| match rule {
            Self::Fixed => PossibleValue::new("fixed").help("Chosen before the scores are seen"),
            _ => PossibleValue::new(rule.name()),
        })
    }

    fn rule(self) -> ThresholdRule {
        match self {
            Self::Union => ThresholdRule::Union,
            Self::Holdout => ThresholdRule::Holdout,
            Self::KFold => ThresholdRule::KFold,
            Self::Dkw => ThresholdRule::Dkw,
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

/// How many rows an audit needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Planned {
    /// `dosimeter.plan/1`
    pub schema: &'static str,
    pub design: Design,
    pub method: Method,
    pub threshold_rule: &'static str,
    pub target: PlannedTarget,
    pub confidence: f64,
    /// The power that was asked for.
    pub power: f64,
    pub needed: NeededRows,
    pub achieved_power: f64,
    /// Whether the power was simulated (and lowered by two standard errors).
    pub power_simulated: bool,
    pub attack: PlannedAttack,
    /// No number of scores of this attack shows more to a bound that holds for any mechanism;
    /// `null` is infinity.
    pub largest_epsilon: Option<f64>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlannedTarget {
    pub epsilon: f64,
    pub delta: f64,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NeededRows {
    Runs { runs_per_side: u64, runs: u64 },
    Canaries { canaries: u64 },
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PlannedAttack {
    pub description: String,
    /// The true rates at the threshold that shows the target most often; left out where the rule was played on drawn scores
    /// without a look at which one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpr: Option<f64>,
}

impl PlannedAttack {
    /// The true positive rate of the attack at its threshold.
    pub fn tpr_at_least(&self) -> Option<AtLeast> {
        self.tpr.map(AtLeast::new)
    }
}

impl Planned {
    pub const SCHEMA: &'static str = "dosimeter.plan/1";

    /// What the scores would show.
    pub fn target_at_least(&self) -> AtLeast {
        AtLeast::new(self.target.epsilon)
    }

    /// The probability with which they show it.
    pub fn power_at_least(&self) -> AtLeast {
        AtLeast::new(self.achieved_power)
    }

    /// What any number of scores of this attack can show, where that is known and finite.
    pub fn largest_at_most(&self) -> Option<AtMost> {
        self.largest_epsilon.map(AtMost::new)
    }
}

/// An answer or a refusal within [`planning::SECONDS`] of processor time, the accounting of the claim included, where
/// the question states no limit.
pub(crate) fn ask(question: &PlanQuestion) -> Result<Planned, Refusal> {
    match question.time_limit {
        Some(_) => answer(question),
        None => planning::in_seconds(|| answer(question))?,
    }
}

fn answer(question: &PlanQuestion) -> Result<Planned, Refusal> {
    let (delta, confidence) = (question.delta.unwrap_or(0.0), question.confidence.unwrap_or(0.95));
    let (design, rule) =
        (question.design.unwrap_or(Design::Runs), question.threshold.unwrap_or_default());
    if !(0.0..1.0).contains(&delta) {
        return Err(Problem::outside("delta", delta, "[0, 1)").and("give e.g. 1e-5, or 0").into());
    }
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(Problem::outside("confidence", confidence, "(0, 1)")
            .and("give e.g. 0.95")
            .into());
    }
    let claimed = question.claim.as_ref().map(Described::run).transpose()?;
    let epsilon = target(question, delta, claimed.as_ref())?;
    let power = question.power.unwrap_or(0.8);
    let target = Target { epsilon, delta, confidence, power };
    let described = question.run.as_ref().map(Described::run).transpose()?;
    if let (Some(claimed), Some(attacked)) = (&claimed, &described) {
        same_groups(claimed, attacked)?;
    }
    let seen = question.observe.unwrap_or(Release::AllIterates);
    let pair = described.as_ref().map(|run| pair(seen, run)).transpose()?;
    let by_coins = described
        .as_ref()
        .is_none_or(|run| matches!(run.sampling(), Sampling::Poisson | Sampling::Full));
    // Other pairs may only bound what an attack can do.
    let best =
        if by_coins { "the best attack" } else { "the best attack that the accounting allows" };
    let (attack, words) = attack(question, best, seen, pair.as_deref())?;
    let method = method(question.method, design)?;
    let threshold = rule.rule();
    let goal = goal(method, &target, claimed.as_ref(), described.as_ref())?;
    let needed = match design {
        Design::Runs => runs_needed(&attack, &goal, &target, &threshold)?,
        Design::OneRun if method.reads_canaries_as_trainings() => {
            // Half of them on each side.
            let needed = runs_needed(&attack, &goal, &target, &threshold)?;
            Needed { count: 2 * needed.count, ..needed }
        }
        Design::OneRun => canaries_needed(&attack, &goal, &target, &threshold)?,
    };
    let largest = attack.largest_epsilon(target.delta)?;
    Ok(Planned {
        schema: Planned::SCHEMA,
        design,
        method,
        threshold_rule: rule.name(),
        target: PlannedTarget { epsilon, delta },
        confidence,
        power,
        needed: match design {
            Design::Runs => {
                NeededRows::Runs { runs_per_side: needed.count, runs: 2 * needed.count }
            }
            Design::OneRun => NeededRows::Canaries { canaries: needed.count },
        },
        achieved_power: needed.power,
        power_simulated: needed.simulated,
        attack: PlannedAttack {
            description: words,
            fpr: needed.threshold.map(|(fpr, _)| fpr),
            tpr: needed.threshold.map(|(_, tpr)| tpr),
        },
        largest_epsilon: largest.is_finite().then_some(largest),
    })
}

fn method(asked: Option<Method>, design: Design) -> Result<Method, Refusal> {
    let method = asked.unwrap_or(Method::distribution_free(design));
    let known =
        |method: &Method| method.is_confidence_bound() && method.objection(design).is_none();
    if known(&method) {
        return Ok(method);
    }
    let names: Vec<&str> =
        Method::ALL.iter().filter(|method| known(method)).map(|method| method.as_str()).collect();
    Err(Refusal::bad_input(format!(
        "plan does not know {method} for design {design}: {}",
        names.join(", ")
    )))
}

/// What the audit has to show. Its family is that of what is seen and what is claimed, as in `audit --claim`: the
/// attacked run only says how strong the attack is, and names the family where nothing is claimed.
fn goal(
    method: Method,
    target: &Target,
    claimed: Option<&Run>,
    attacked: Option<&Run>,
) -> Result<Goal, Refusal> {
    let (epsilon, delta) = (target.epsilon, target.delta);
    let Some(seen) = method.family_sees() else {
        return Ok(if method.is_distribution_free() {
            Goal::clopper_pearson(epsilon, delta)
        } else {
            Goal::gaussian(epsilon, delta)?
        });
    };
    let Some(run) = claimed.or(attacked) else {
        return Err(Refusal::bad_input(format!("{method} needs the sample rate and the steps"))
            .hint("give the claimed run (--claim), or the run that is attacked (--noise-multiplier, --sample-rate, --steps)"));
    };
    let family = Family::of_run(seen, run);
    // A pair is quick to make; what has none says why.
    if let Err(error) = family.pair(run.phases()[0].noise_multiplier) {
        let whose = if claimed.is_some() { "claim" } else { "run" };
        let message = format!("{method} has no pair for the {whose}: {error}");
        return Err(Refusal { message, ..Refusal::from(error) });
    }
    Ok(Goal::family(family, epsilon, delta)?)
}

/// The claim and the attack are about as many records.
fn same_groups(claimed: &Run, attacked: &Run) -> Result<(), Refusal> {
    let (claim, attack) = (claimed.group_size(), attacked.group_size());
    if claim == attack {
        return Ok(());
    }
    let message = format!(
        "the claim is about groups of {claim} records and the attacked run about groups of {attack}"
    );
    Err(Refusal::bad_input(message)
        .hint(format!("give --group-size {claim}: as many records are in or out together")))
}

fn target(question: &PlanQuestion, delta: f64, claimed: Option<&Run>) -> Result<f64, Refusal> {
    let epsilon = match (claimed, question.target_epsilon) {
        (_, Some(epsilon)) => epsilon,
        (Some(_), None) if delta <= 0.0 => {
            return Err(Refusal::bad_input("a claim has no finite epsilon at delta 0")
                .hint("give the delta of the claim with --delta"));
        }
        (Some(run), None) => claimed::epsilon(run, delta)?.interval.upper,
        (None, None) => {
            return Err(Refusal::bad_input("there is nothing to plan for")
                .hint("give --target-epsilon E, or --claim RUN.toml with --delta"));
        }
    };
    if epsilon > 0.0 && epsilon.is_finite() {
        Ok(epsilon)
    } else {
        Err(Refusal::bad_input(format!(
            "target epsilon {epsilon} is not a finite number above 0; give e.g. 1"
        )))
    }
}

/// What the attacker on the run of the flags sees.
fn pair(seen: Release, run: &Run) -> Result<Box<dyn Pair>, Refusal> {
    schemes::chosen_in_advance(run)?;
    Ok(match seen {
        Release::AllIterates => schemes::pair(run)?,
        Release::LastIterate => Box::new(pairs::BinomialGaussian::for_run(run)?),
    })
}

fn attack<'a>(
    question: &PlanQuestion,
    best: &str,
    seen: Release,
    pair: Option<&'a dyn Pair>,
) -> Result<(Attack<'a>, String), Refusal> {
    let rate = |name: &str, value: f64| {
        if value > 0.0 && value < 1.0 {
            Ok(value)
        } else {
            Err(Refusal::bad_input(format!(
                "{name} {value} is outside (0, 1); give a probability such as 0.01"
            )))
        }
    };
    match (question.mu, question.attack_fpr.zip(question.attack_tpr), pair) {
        (Some(mu), None, None) if mu > 0.0 && mu.is_finite() => {
            Ok((Attack::Gaussian { mu }, format!("scores N({}, 1) against N(0, 1)", plain(mu))))
        }
        (Some(mu), None, None) => {
            Err(Refusal::bad_input(format!(
                "mu {mu} is not a finite number above 0; give e.g. 1"
            )))
        }
        (None, Some((fpr, tpr)), None) => {
            let (fpr, tpr) =
                (rate("false positive rate", fpr)?, rate("true positive rate", tpr)?);
            if tpr <= fpr {
                return Err(Refusal::bad_input(format!(
                    "true positive rate {tpr} is not above the false positive rate {fpr}, which guessing reaches; give a \
                     larger one"
                )));
            }
            let words = format!("one threshold, TPR {} at FPR {}", plain(tpr), plain(fpr));
            Ok((Attack::Rates { fpr, tpr }, words))
        }
        (None, None, Some(pair)) => {
            let seen = match seen {
                Release::AllIterates => "all iterates",
                Release::LastIterate => "the last iterate",
            };
            Ok((Attack::Pair(pair), format!("{best} on {seen} of the run")))
        }
        (None, None, None) => Err(Refusal::bad_input("no attack is assumed").hint(
            "give --mu, or --attack-fpr and --attack-tpr, or a run (--noise-multiplier, --sample-rate, --steps)",
        )),
        _ => Err(Refusal::bad_input("several attacks are assumed")
            .hint("give one of --mu, --attack-fpr with --attack-tpr, and a run")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn run(noise: f64, steps: u64, more: Value) -> Value {
        let mut run = json!({"noise_multiplier": noise, "sample_rate": 0.1, "steps": steps});
        let keys = run.as_object_mut().unwrap();
        keys.extend(more.as_object().unwrap().clone());
        run
    }

    fn asked(claim: &Value, attacked: &Value, more: Value) -> Result<u64, Refusal> {
        let mut question = json!({"claim": claim, "run": attacked, "delta": 1e-5});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let question: PlanQuestion = serde_json::from_value(question).unwrap();
        match ask(&question)?.needed {
            NeededRows::Runs { runs_per_side, .. } => Ok(runs_per_side),
            NeededRows::Canaries { canaries } => Ok(canaries),
        }
    }

    /// A claim is tested against its own family, as `audit --claim` does, not against that of the attacked run: the
    /// row "twice the steps" of docs/auditing.md, within what a search to a few per cent leaves.
    #[test]
    fn twice_the_steps_are_planned_for_the_claimed_steps() {
        let method = json!({"method": "last-iterate", "observe": "last-iterate", "power": 0.99, "target_epsilon": 5.396});
        let (claim, attacked) = (run(0.8, 50, json!({})), run(0.8, 100, json!({})));
        let twice = asked(&claim, &attacked, method).unwrap();
        assert!((650..730).contains(&twice), "{twice}");
    }

    /// A claim about two records has the family of two. Against the curves of one record, whose noise would have to
    /// be far smaller, half the noise would look like health.
    #[test]
    fn groups_are_planned_with_their_own_pair() {
        let method = json!({"method": "composition"});
        let (plain, two) = (json!({}), json!({"group_size": 2}));
        let of_one =
            asked(&run(0.8, 50, plain.clone()), &run(0.4, 50, plain.clone()), method.clone());
        let of_two = asked(&run(0.8, 50, two.clone()), &run(0.4, 50, two.clone()), method.clone());
        let (of_one, of_two) = (of_one.unwrap(), of_two.unwrap());
        assert!(of_two < 3 * of_one && of_one < 3 * of_two, "{of_one} {of_two}");
        let refused = asked(&run(0.8, 50, two), &run(0.4, 50, plain), method).unwrap_err();
        assert!(refused.hint.unwrap().contains("--group-size 2"), "{}", refused.message);
    }

    /// Shuffled batches have their own pair, and none for the last iterate.
    #[test]
    fn shuffled_claims_are_planned_with_their_own_pair_or_refused() {
        let shuffled = run(0.8, 50, json!({"sampling": "shuffle", "adjacency": "zero-out"}));
        let (poisson, attacked) = (run(0.8, 50, json!({})), run(0.4, 50, json!({})));
        let target = json!({"method": "composition", "target_epsilon": 10.0});
        let of_poisson = asked(&poisson, &attacked, target.clone()).unwrap();
        let of_shuffled = asked(&shuffled, &attacked, target).unwrap();
        // At one epsilon the curves differ, so do the plans.
        assert!(of_shuffled > 2 * of_poisson, "{of_shuffled} {of_poisson}");
        let refused = asked(&shuffled, &attacked, json!({"method": "last-iterate"})).unwrap_err();
        assert!(refused.message.contains("no pair for the claim"), "{}", refused.message);
    }
}
