//! Audits that may be looked at after every trial and stopped at any time.
//!
//! Trials come one after another; each is a training of its own with a score. At every moment there is a
//! lower bound on epsilon that holds at any stopping time: the probability that it is *ever* above the truth is at most 1 - confidence.
//!
//! **Proof.** Fix a threshold t that does not depend on the trials that are counted. Bits {score >= t}
//! are independent with rate p1 for members and p0 for non-members. For k of n bits and the Jeffreys prior, the
//! ratio R(p) = int q^k (1-q)^(n-k) dPi(q) / (p^k (1-p)^(n-k)) is a martingale in n at the true p with
//! expectation 1, and so is the product R0(p0) R1(p1) over both samples in the order in which
//! trials come, as long as the order does not look at bits that are still to come. Under
//! H(epsilon): p1 <= e^epsilon p0 + delta the product at the true rates is at least its infimum over
//! all rates that H allows, E(t) = marginal likelihood / largest likelihood under H. The mirrored inequality
//! at t is another E. A weighted mean of such E is bounded by a martingale with expectation at most
//! 1, so by Ville's inequality P(it ever reaches 1/level) <= level (universal inference: Wasserman,
//! Ramdas and Balakrishnan 2020). Thresholds are quantiles of the trials seen before: at the trials
//! number 32, 128, 512, … a new set of thresholds is taken and counts from there on; set j is a
//! martingale that is 1 until it starts, with weight 1/((j+1)(j+2)), and the weight of sets that have not
//! started yet counts as evidence 1. So the mean is a mean of martingales from the first trial on. QED.
//!
//! The evidence falls with epsilon, so the bound is a root. The likelihood under H is concave along the line p1 = e^epsilon p0 + delta; its
//! maximum is bracketed, and 1e-9 is taken off the logarithm of the evidence for it.
//!
//! (Sequential privacy audits: arXiv 2509.07055 and 2602.06518.) Cost: a trial costs a few comparisons for each set; a look at one epsilon
//! costs some ten microseconds for each set.

use crate::{AttackDirection, AuditError, Finding, Method, rows};
use numerics::special::ln_gamma;
use schemars::JsonSchema;
use serde::Serialize;
use vocabulary::{Adjacency, AtLeast, AtMost, Claim, Problem, Verdict};

/// An audit in progress.
#[derive(Clone, Debug)]
pub struct Sequential {
    delta: f64,
    direction: AttackDirection,
    level: f64,
    /// All scores so far, for the next thresholds.
    seen: Vec<f64>,
    trials: u64,
    sets: Vec<Set>,
    next: u64,
}

/// Thresholds that were taken at one moment, and the counts since then.
#[derive(Clone, Debug)]
struct Set {
    thresholds: Vec<f64>,
    nonmembers: u64,
    members: u64,
    /// Scores at or above each threshold.
    false_positives: Vec<u64>,
    true_positives: Vec<u64>,
}

/// The first set of thresholds.
const FIRST: u64 = 32;
/// The next ones, by this factor.
const FACTOR: u64 = 4;
/// The power below which more trials are not worth their cost.
pub const HOPELESS: f64 = 0.01;
/// Standard deviations of [`rows::trend`] from which on rows are not in the order of independent trials: chance does
/// that once in a million tables.
const TREND: f64 = 5.0;
/// Thresholds in a set, at most.
const THRESHOLDS: usize = 16;

impl Sequential {
    /// An audit at `delta` whose bounds hold at any stopping time with this confidence.
    ///
    /// # Errors
    /// A delta or a confidence out of range.
    pub fn new(
        delta: f64,
        direction: AttackDirection,
        confidence: f64,
    ) -> Result<Self, AuditError> {
        if !(0.0..1.0).contains(&delta) {
            let problem = Problem::outside("delta", delta, "[0, 1)").and("give e.g. 1e-5, or 0");
            return Err(AuditError::invalid(problem));
        }
        if !(confidence > 0.0 && confidence < 1.0) {
            let problem =
                Problem::outside("confidence", confidence, "(0, 1)").and("give e.g. 0.95");
            return Err(AuditError::invalid(problem));
        }
        Ok(Self {
            delta,
            direction,
            level: 1.0 - confidence,
            seen: Vec::new(),
            trials: 0,
            sets: Vec::new(),
            next: FIRST,
        })
    }

    /// The next trial.
    ///
    /// # Errors
    /// A score that is not a number.
    pub fn add(&mut self, score: f64, member: bool) -> Result<(), AuditError> {
        if score.is_nan() {
            return Err(AuditError::Scores(format!(
                "the score of trial {} is not a number",
                self.trials + 1
            )));
        }
        for set in &mut self.sets {
            set.count(score, member);
        }
        self.seen.push(score);
        self.trials += 1;
        if self.trials == self.next {
            self.sets.push(Set::from_scores(&self.seen));
            self.next *= FACTOR;
        }
        Ok(())
    }

    /// Trials so far.
    pub fn trials(&self) -> u64 {
        self.trials
    }

    /// ln of the evidence against (epsilon, delta)-privacy: a claim is refuted once it is at least
    /// ln(1/(1 - confidence)).
    pub fn evidence(&self, epsilon: f64) -> f64 {
        // Sets that count nothing yet have evidence 1, those to come as well. The sum of 1/((j+1)(j+2)) from j on is 1/(j+1).
        let counting = self.sets.iter().filter(|set| set.nonmembers + set.members > 0).count();
        if counting == 0 {
            return 0.0;
        }
        let mut terms = vec![-(counting as f64 + 1.0).ln()];
        for (place, set) in self.sets[..counting].iter().enumerate() {
            let j = place as f64;
            terms.push(
                set.evidence(epsilon, self.delta, self.direction) - ((j + 1.0) * (j + 2.0)).ln(),
            );
        }
        ln_sum(&terms)
    }

    /// Whether (epsilon, delta)-privacy is refuted now.
    pub fn refutes(&self, epsilon: f64) -> bool {
        self.evidence(epsilon) >= self.bar()
    }

    /// ln(1/(1 - confidence)).
    pub fn bar(&self) -> f64 {
        -self.level.ln()
    }

    /// Whether this many more trials refute the claim with a power below [`HOPELESS`]: they would not even if, at the threshold that promises
    /// most, both rates were by three standard deviations worse for the claim than they look now. That is an estimate, which a test
    /// holds by playing such audits to their end. It only says when to stop: the bound holds whenever one stops.
    pub fn hopeless(&self, epsilon: f64, more: u64) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        let best = self
            .sets
            .iter()
            .map(|set| set.promised(epsilon, self.delta, self.direction, more))
            .fold(f64::NEG_INFINITY, f64::max);
        best < self.bar()
    }

    /// Epsilon is at least this, now.
    pub fn epsilon(&self) -> f64 {
        crate::joint::largest_where(|epsilon| self.refutes(epsilon))
    }
}

impl Set {
    /// Quantiles of what was seen, closer together towards both ends.
    fn from_scores(seen: &[f64]) -> Self {
        let mut sorted = seen.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let spread = (n - 1.0).ln();
        let mut thresholds: Vec<f64> = (0..THRESHOLDS)
            .map(|step| {
                let log_odds = spread * (2.0 * step as f64 / (THRESHOLDS - 1) as f64 - 1.0);
                let share = 1.0 / (1.0 + (-log_odds).exp());
                sorted[((share * n) as usize).min(sorted.len() - 1)]
            })
            .collect();
        thresholds.dedup();
        let counts = vec![0; thresholds.len()];
        Self {
            thresholds,
            nonmembers: 0,
            members: 0,
            false_positives: counts.clone(),
            true_positives: counts,
        }
    }

    fn count(&mut self, score: f64, member: bool) {
        let (all, beyond) = if member {
            (&mut self.members, &mut self.true_positives)
        } else {
            (&mut self.nonmembers, &mut self.false_positives)
        };
        *all += 1;
        // Thresholds rise.
        let reached = self.thresholds.partition_point(|threshold| *threshold <= score);
        for count in &mut beyond[..reached] {
            *count += 1;
        }
    }

    /// The largest ln-evidence that a threshold would have after this many more trials (half on each side) at
    /// optimistic rates; without weights, which only lower it.
    fn promised(&self, epsilon: f64, delta: f64, direction: AttackDirection, more: u64) -> f64 {
        let optimist = |count: u64, all: u64, sign: f64| {
            let rate = (count as f64 + 0.5) / (all as f64 + 1.0);
            let spread = (rate * (1.0 - rate) / (all as f64 + 1.0)).sqrt();
            let rate = (rate + sign * 3.0 * spread).clamp(0.0, 1.0);
            let total = all + more / 2;
            ((count as f64 + rate * (total - all) as f64).round() as u64, total)
        };
        let mut best = f64::NEG_INFINITY;
        for (&fp, &tp) in self.false_positives.iter().zip(&self.true_positives) {
            let (n0, n1) = (self.nonmembers, self.members);
            let first = optimist(fp, n0, -1.0);
            let second = optimist(tp, n1, 1.0);
            let marginal = ln_marginal(first.0, first.1) + ln_marginal(second.0, second.1);
            if direction != AttackDirection::Mirror {
                best = best.max(marginal - largest_likelihood(first, second, epsilon, delta));
            }
            if direction != AttackDirection::Forward {
                let flipped = ((second.1 - second.0, second.1), (first.1 - first.0, first.1));
                best =
                    best.max(marginal - largest_likelihood(flipped.0, flipped.1, epsilon, delta));
            }
        }
        best
    }

    /// ln of the mean evidence over thresholds and directions.
    fn evidence(&self, epsilon: f64, delta: f64, direction: AttackDirection) -> f64 {
        let mut terms = Vec::with_capacity(2 * self.thresholds.len());
        for (&fp, &tp) in self.false_positives.iter().zip(&self.true_positives) {
            let (n0, n1) = (self.nonmembers, self.members);
            let marginal = ln_marginal(fp, n0) + ln_marginal(tp, n1);
            if direction != AttackDirection::Mirror {
                terms.push(marginal - largest_likelihood((fp, n0), (tp, n1), epsilon, delta));
            }
            if direction != AttackDirection::Forward {
                let flipped = ((n1 - tp, n1), (n0 - fp, n0));
                terms.push(marginal - largest_likelihood(flipped.0, flipped.1, epsilon, delta));
            }
        }
        ln_sum(&terms) - (terms.len() as f64).ln() - 1e-9
    }
}

/// ln of the integral of q^k (1-q)^(n-k) under Jeffreys' prior.
fn ln_marginal(k: u64, n: u64) -> f64 {
    let (k, n) = (k as f64, n as f64);
    ln_gamma(k + 0.5) + ln_gamma(n - k + 0.5) - ln_gamma(n + 1.0) - std::f64::consts::PI.ln()
}

/// The largest ln-likelihood with p1 <= e^epsilon p0 + delta, from above up to rounding.
fn largest_likelihood((x0, n0): (u64, u64), (x1, n1): (u64, u64), epsilon: f64, delta: f64) -> f64 {
    let (x0, n0, x1, n1) = (x0 as f64, n0 as f64, x1 as f64, n1 as f64);
    let term = |x: f64, rate: f64| if x > 0.0 { x * rate.max(1e-300).ln() } else { 0.0 };
    let likelihood = |p: f64, b: f64| {
        term(x0, p) + term(n0 - x0, 1.0 - p) + term(x1, b) + term(n1 - x1, 1.0 - b)
    };
    let growth = epsilon.exp();
    let rate = |x: f64, n: f64| if n > 0.0 { x / n } else { 0.0 };
    let (p, b) = (rate(x0, n0), rate(x1, n1));
    if n0 == 0.0 || n1 == 0.0 || b <= growth * p + delta {
        // Without bits on a side nothing is excluded.
        return likelihood(p, b);
    }
    // On the line, between the two observed rates: the score falls in p.
    let (mut low, mut high) = (p, ((b - delta) / growth).min(((1.0 - delta) / growth).min(1.0)));
    let part = |x: f64, rate: f64| if x > 0.0 { x / rate.max(1e-300) } else { 0.0 };
    let score = |p: f64| {
        let b = growth * p + delta;
        part(x0, p) - part(n0 - x0, 1.0 - p) + growth * (part(x1, b) - part(n1 - x1, 1.0 - b))
    };
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if score(middle) > 0.0 {
            low = middle
        } else {
            high = middle
        }
        if high - low <= 1e-15 * high {
            break;
        }
    }
    likelihood(high, (growth * high + delta).min(1.0))
        .max(likelihood(low, (growth * low + delta).min(1.0)))
}

fn ln_sum(terms: &[f64]) -> f64 {
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}

/// What is asked about trials, before the first of them.
#[derive(Clone, Debug)]
pub struct Question {
    pub delta: f64,
    pub direction: AttackDirection,
    pub confidence: f64,
    /// Which data sets the trials tell apart.
    pub adjacency: Adjacency,
    /// What the trials may refute.
    pub claim: Option<Claim>,
    /// The trials on both sides that can be made in all.
    pub budget: Option<u64>,
}

/// How an audit in progress went.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "Document")]
pub struct SequentialDocument {
    /// Trials on both sides that were used.
    pub trials: u64,
    /// Holds at any stopping time, for any mechanism: the largest over all looks.
    pub bound: Finding,
    pub claim: Option<Claim>,
    /// What the trials say about the claim.
    pub verdict: Option<Verdict>,
    /// The logarithm of evidence from which on a claim is refuted: ln(1/(1 - confidence)).
    pub evidence_needed: f64,
    /// The trial from which on the claim was refuted.
    pub refuted_at: Option<u64>,
    /// Where trials can still be made: whether it is worth it.
    pub decision: Option<Decision>,
    /// The bound over time.
    pub looks: Vec<Look>,
    pub warnings: Vec<String>,
}

/// The keys of the document.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SequentialDocument")]
struct Document {
    /// `dosimeter.sequential-audit/1`
    schema: &'static str,
    delta: f64,
    confidence: f64,
    /// Trials on both sides that were used.
    trials: u64,
    /// Epsilon is at least this at any stopping time, for any mechanism: the largest over all looks.
    epsilon_lower: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    claimed_epsilon: Option<f64>,
    /// The logarithm of evidence from which on a claim is refuted: ln(1/(1 - confidence)).
    evidence_needed: f64,
    /// The trial from which on the claim was refuted.
    #[serde(skip_serializing_if = "Option::is_none")]
    refuted_at: Option<u64>,
    /// Where trials can still be made: whether it is worth it.
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<Decision>,
    /// The bound as a claim.
    bound: Finding,
    /// What is claimed: a run's proven epsilon, or a number that was stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<Claim>,
    /// Only with a claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    /// The bound over time.
    looks: Vec<Look>,
    warnings: Vec<String>,
}

impl From<SequentialDocument> for Document {
    fn from(audit: SequentialDocument) -> Self {
        Self {
            schema: SequentialDocument::SCHEMA,
            delta: audit.delta(),
            confidence: audit.confidence(),
            trials: audit.trials,
            epsilon_lower: audit.epsilon(),
            claimed_epsilon: audit.claimed_epsilon(),
            evidence_needed: audit.evidence_needed,
            refuted_at: audit.refuted_at,
            decision: audit.decision,
            bound: audit.bound,
            claim: audit.claim,
            verdict: audit.verdict,
            looks: audit.looks,
            warnings: audit.warnings,
        }
    }
}

impl JsonSchema for SequentialDocument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Document::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Document::json_schema(generator)
    }
}

/// The state after this many trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Look {
    pub trials: u64,
    pub epsilon_lower: f64,
    /// ln of the evidence against the claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<f64>,
}

impl Look {
    /// What the trials so far show.
    pub fn epsilon_at_least(&self) -> AtLeast {
        AtLeast::new(self.epsilon_lower)
    }

    /// The evidence against the claim.
    pub fn evidence_at_least(&self) -> Option<AtLeast> {
        self.evidence.map(AtLeast::new)
    }
}

/// Whether more trials are worth their cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// The claim is refuted.
    Refuted,
    /// The trials that are left refute it with a power below 1 % ([`HOPELESS`]), by what was seen so far.
    OutOfReach,
    /// All trials are made.
    BudgetSpent,
    /// More trials may refute it.
    Open,
}

impl SequentialDocument {
    pub const SCHEMA: &'static str = "dosimeter.sequential-audit/1";

    pub fn delta(&self) -> f64 {
        self.bound.delta()
    }

    pub fn confidence(&self) -> f64 {
        self.bound.level().unwrap_or(0.0)
    }

    /// Epsilon is at least this, whenever one stops.
    pub fn epsilon(&self) -> f64 {
        self.bound.epsilon()
    }

    /// The epsilon that the claim allows.
    pub fn claimed_epsilon(&self) -> Option<f64> {
        self.claim.as_ref().map(|claim| claim.interval.upper)
    }

    /// The evidence that is enough to refute the claim.
    pub fn enough_evidence(&self) -> AtMost {
        AtMost::new(self.evidence_needed)
    }
}

/// Plays trials in the order of their rows, members and non-members in turn (by their shares, where one side has more), looks at the claim after every
/// trial (beyond two hundred after half a per cent more) and some dozen times at the bound. `members` and `nonmembers` are in the order in which the trials
/// were made. A claim that bounds nothing is no claim.
///
/// # Errors
/// Those of [`Sequential::new`] and [`Sequential::add`]; scores that rise or fall from row to row, as those of
/// a sorted table do: the proof needs the order of the trials, and two sorted columns would show leakage
/// where there is none.
///
/// ```
/// use audit::AttackDirection;
/// use audit::sequential::{self, Question};
/// use audit::vocabulary::Adjacency;
///
/// let members: Vec<f64> = (0..400).map(|i| f64::from(i % 7) + 4.0).collect();
/// let nonmembers: Vec<f64> = (0..400).map(|i| f64::from(i % 7)).collect();
/// let question = Question {
///     delta: 0.0,
///     direction: AttackDirection::Both,
///     confidence: 0.95,
///     adjacency: Adjacency::AddRemove,
///     claim: None,
///     budget: None,
/// };
/// let audit = sequential::play(&members, &nonmembers, &question)?;
/// assert!(audit.bound.claim.shown().starts_with(">=") && audit.epsilon() > 0.2);
/// # Ok::<(), audit::AuditError>(())
/// ```
pub fn play(
    members: &[f64],
    nonmembers: &[f64],
    question: &Question,
) -> Result<SequentialDocument, AuditError> {
    let mut audit = Sequential::new(question.delta, question.direction, question.confidence)?;
    let claim = question.claim.clone().filter(|claim| claim.interval.upper.is_finite());
    let claimed = claim.as_ref().map(|claim| claim.interval.upper);
    for (side, column) in [("members", members), ("non-members", nonmembers)] {
        let trend = rows::trend(column);
        if trend.abs() > TREND {
            let way = if trend > 0.0 { "rise" } else { "fall" };
            return Err(AuditError::NotValid(format!(
                "scores of {side} {way} from row to row (Kendall's trend is {trend:.1} standard deviations), as those of a sorted table do; a sequential audit needs rows in the order of the trials. Without --sequential the order does not matter"
            )));
        }
    }
    let all = (members.len() + nonmembers.len()) as u64;
    let mut looks = Vec::new();
    let mut refuted_at = None;
    let (mut next_look, mut next_test) = (FIRST, 1);
    for (score, is_member) in in_turn(members, nonmembers) {
        audit.add(score, is_member)?;
        let trials = audit.trials();
        if trials >= next_test
            && refuted_at.is_none()
            && claimed.is_some_and(|claim| audit.refutes(claim))
        {
            refuted_at = Some(trials);
            look(&mut looks, &audit, claimed);
        }
        // After every trial at first, then after half a per cent more.
        if trials >= next_test {
            next_test = trials + (trials / 200).max(1);
        }
        if trials >= next_look && !is_member || trials == all {
            next_look = trials + (trials / 5).max(2);
            look(&mut looks, &audit, claimed);
        }
    }
    let decision = question.budget.zip(claimed).map(|(budget, claim)| {
        let left = budget.saturating_sub(audit.trials());
        if refuted_at.is_some() {
            Decision::Refuted
        } else if left == 0 {
            Decision::BudgetSpent
        } else if audit.hopeless(claim, left) {
            Decision::OutOfReach
        } else {
            Decision::Open
        }
    });
    let shown = looks.last().map_or(0.0, |look| look.epsilon_lower);
    let (adjacency, delta) = (question.adjacency, question.delta);
    let bound = Finding {
        primary: true,
        ..Finding::new(
            Method::Sequential,
            adjacency,
            delta,
            shown,
            question.confidence,
            crate::analysis::ANY_MECHANISM,
        )
    };
    Ok(SequentialDocument {
        trials: all,
        verdict: claim.as_ref().map(|claim| crate::verdict::of_trials(claim, refuted_at)),
        bound,
        claim,
        evidence_needed: audit.bar(),
        refuted_at,
        decision,
        looks,
        warnings: Vec::new(),
    })
}

/// Both columns in their order, as one: a member first, then from the side of which the smaller share has come. The order follows from the
/// lengths alone, which the proof allows.
fn in_turn(members: &[f64], nonmembers: &[f64]) -> impl Iterator<Item = (f64, bool)> {
    let (mut of_members, mut of_nonmembers) = (0, 0);
    std::iter::from_fn(move || {
        let (m, n) = (members.len() as u128, nonmembers.len() as u128);
        let is_member = of_members < members.len()
            && (of_nonmembers == nonmembers.len()
                || of_members as u128 * n <= of_nonmembers as u128 * m);
        let (column, next) =
            if is_member { (members, &mut of_members) } else { (nonmembers, &mut of_nonmembers) };
        let score = *column.get(*next)?;
        *next += 1;
        Some((score, is_member))
    })
}

/// Looks at the bound now. Where the claim is refuted, it is a bound itself: the evidence against it and
/// all that is smaller has reached the bar.
fn look(looks: &mut Vec<Look>, audit: &Sequential, claimed: Option<f64>) {
    let trials = audit.trials();
    let before = looks.last().copied();
    if before.is_some_and(|look| look.trials == trials) {
        return;
    }
    let refuted = claimed.filter(|claim| audit.refutes(*claim)).unwrap_or(0.0);
    let before = before.map_or(0.0, |look| look.epsilon_lower);
    looks.push(Look {
        trials,
        epsilon_lower: before.max(audit.epsilon()).max(refuted),
        evidence: claimed.map(|claim| audit.evidence(claim)),
    });
}
