//! From claims to proofs.
//!
//! To check an end the quantity itself need not be computed. epsilon <= e at delta d means
//! delta(e) <= d in every order; epsilon >= e means delta(e) >= d in one. Delta, advantage and Bayes
//! security are compared directly; powers by lines ([`crate::tradeoff`]).

use crate::arithmetic::Ball;
use crate::deltas::deltas;
use crate::maximum;
use crate::model::{Model, Order};
use crate::mu;
use crate::obstacle::{Limit, Obstacle, within};
use crate::powers::power;
use crate::proof::{Certificate, Enclosure, EndProof, Outcome, Proof};
use std::cell::OnceCell;
use std::time::Duration;
use vocabulary::{Account, Claim, Direction, LensName, Phase, Quantity, Run};

/// Whether a claim is one that carries certified ends of a pair.
pub fn covers(claim: &Claim) -> bool {
    let certified = claim.source.lens().is_some_and(|lens| LensName::CERTIFIED.contains(&lens));
    certified && claim.confidence.is_none()
}

/// Checks both ends of a claim about a run.
///
/// ```
/// use prover::{Outcome, prove};
/// let run = vocabulary::Run::builder().phase(1.0, 1.0, 1).build().unwrap();
/// let claim = serde_json::from_value(serde_json::json!({
///     "lens": "composition", "release": "all-iterates", "secret": "membership",
///     "direction": "both", "adjacency": "add-remove", "quantity": "epsilon", "at": {"delta": 1e-5},
///     "standing": "proven", "side": "upper",
///     "value": 4.377178095681, "lower": 4.377178095681, "upper": 4.377178095682,
///     "assumptions": []
/// })).unwrap();
/// let proof = prove(&run, &claim);
/// assert_eq!(proof.outcome, Outcome::Proven);
/// ```
pub fn prove(run: &Run, claim: &Claim) -> Proof {
    prove_within(run, claim, TIME_LIMIT)
}

/// Time for one claim unless another limit is given.
const TIME_LIMIT: Limit = Limit::Time(Duration::from_secs(60));

/// As [`prove`], with another limit: an end that takes longer stays undecided.
pub fn prove_within(run: &Run, claim: &Claim, limit: Limit) -> Proof {
    within(limit, || prove_both(run, claim))
}

fn prove_both(run: &Run, claim: &Claim) -> Proof {
    let models = Models::new(run, claim, accounted(run, false));
    // Several releases have an irrational noise in all: above it for what leaks at least.
    let less = (!run.releases().is_empty()).then(|| Models::new(run, claim, accounted(run, true)));
    let security = claim.quantity == Quantity::BayesSecurity;
    let ends = [End::Lower, End::Upper].map(|side| {
        let end = if side == End::Lower { claim.interval.lower } else { claim.interval.upper };
        let at_least = (side == End::Lower) != security;
        let models = less.as_ref().filter(|_| at_least).unwrap_or(&models);
        prove_end(models, claim, side, end)
    });
    let [lower, upper] = ends;
    Proof {
        outcome: lower.outcome.and(upper.outcome),
        lens: claim.source.as_str().into(),
        direction: claim.direction,
        quantity: claim.quantity,
        at: claim.at,
        lower,
        upper,
    }
}

/// The phases that have to be accounted for: all steps that the run could have had, and the noise of all releases on
/// a batch together, 1/s^2 = sum of (sensitivity/noise)^2, rounded up or down.
fn accounted(run: &Run, up: bool) -> Vec<Phase> {
    let mut phases = run.phases().to_vec();
    if let (Some(most), Some(last)) = (run.max_steps(), phases.last_mut()) {
        last.steps += most - run.steps();
    }
    if !run.releases().is_empty() {
        for phase in &mut phases {
            let square = |sensitivity: f64, noise: f64| {
                Ball::<2>::from_f64(sensitivity).over(Ball::from_f64(noise)).squared()
            };
            let sum =
                run.releases().iter().fold(square(1.0, phase.noise_multiplier), |sum, release| {
                    sum + square(release.sensitivity, release.noise)
                });
            let (low, high) = sum.root().reciprocal().doubles();
            phase.noise_multiplier = if up { high } else { low };
        }
    }
    phases
}

/// Checks all claims of an account that have certified ends.
pub fn certify(account: &Account) -> Certificate {
    let proofs: Vec<Option<Proof>> = account
        .claims
        .iter()
        .map(|claim| covers(claim).then(|| prove(&account.run, claim)))
        .collect();
    let outcome = proofs.iter().flatten().fold(Outcome::Proven, |all, one| all.and(one.outcome));
    Certificate { schema: Certificate::SCHEMA.into(), run: account.run.clone(), outcome, proofs }
}

/// The pair at several precisions, made when it is needed; its lines serve both ends of a claim.
struct Models<'a> {
    run: &'a Run,
    phases: Vec<Phase>,
    lens: Option<LensName>,
    /// Mass that a window may leave out: 2^-(this + bits), far below the claim's own scale.
    depth: f64,
    /// Bits by which the order of adding magnifies what a window leaves out.
    magnified: f64,
    /// Bits that a wide claim needs.
    few: f64,
    /// For these alone.
    brief: OnceCell<Result<Model<2>, Obstacle>>,
    two: OnceCell<Result<Model<2>, Obstacle>>,
    three: OnceCell<Result<Model<3>, Obstacle>>,
    four: OnceCell<Result<Model<4>, Obstacle>>,
    eight: OnceCell<Result<Model<8>, Obstacle>>,
}

impl<'a> Models<'a> {
    fn new(run: &'a Run, claim: &Claim, phases: Vec<Phase>) -> Self {
        let ends = claim.interval;
        let scales = [claim.at.delta, Some(ends.value), Some(ends.upper)];
        let scale = scales
            .into_iter()
            .flatten()
            .fold(1.0, |scale: f64, x| if x > 0.0 { scale.min(x) } else { scale });
        let depth = 8.0 - scale.log2();
        let epsilon = match claim.quantity {
            Quantity::Epsilon => ends.value,
            Quantity::Mu => mu::end_of_curve(ends.value, claim.at.delta.unwrap_or(0.5)),
            _ => claim.at.epsilon.unwrap_or(0.0),
        };
        let magnified = if epsilon < 30_000.0 { epsilon * std::f64::consts::LOG2_E } else { 0.0 };
        Self {
            run,
            phases,
            lens: claim.source.lens(),
            depth,
            magnified,
            few: (5.0 - ends.relative_width().log2()).clamp(12.0, 56.0),
            brief: OnceCell::new(),
            two: OnceCell::new(),
            three: OnceCell::new(),
            four: OnceCell::new(),
            eight: OnceCell::new(),
        }
    }

    fn make<const N: usize>(&self, bits: f64) -> Result<Model<N>, Obstacle> {
        Model::new(self.run, &self.phases, self.lens, (self.depth + bits) as i64)
    }

    fn brief(&self) -> Result<&Model<2>, Obstacle> {
        self.brief.get_or_init(|| self.make(self.few + 8.0)).as_ref().map_err(Clone::clone)
    }

    fn two(&self) -> Result<&Model<2>, Obstacle> {
        self.two.get_or_init(|| self.make(84.0)).as_ref().map_err(Clone::clone)
    }

    fn three(&self) -> Result<&Model<3>, Obstacle> {
        self.three.get_or_init(|| self.make(120.0)).as_ref().map_err(Clone::clone)
    }

    fn four(&self) -> Result<&Model<4>, Obstacle> {
        let make = || self.make(160.0 + self.magnified);
        self.four.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    fn eight(&self) -> Result<&Model<8>, Obstacle> {
        let make = || self.make(160.0 + self.magnified);
        self.eight.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Lower,
    Upper,
}

/// One attempt's result.
pub(crate) struct Found {
    pub(crate) outcome: Outcome,
    pub(crate) statement: String,
    pub(crate) enclosures: Vec<Enclosure>,
}

fn prove_end(models: &Models<'_>, claim: &Claim, side: End, end: f64) -> EndProof {
    let mut proof = EndProof {
        end: end.is_finite().then_some(end),
        outcome: Outcome::Undecided,
        statement: String::new(),
        enclosures: Vec::new(),
        path: "none needed".into(),
        precision: 0,
    };
    if let Some(statement) = trivial(claim, side, end) {
        proof.outcome = Outcome::Proven;
        proof.statement = statement;
        return proof;
    }
    if let Some(statement) = impossible(claim, side, end) {
        proof.outcome = Outcome::Wrong;
        proof.statement = statement;
        return proof;
    }
    if !covers(claim) {
        proof.statement = "the claim has no certified ends of a pair".into();
        return proof;
    }
    // More digits until both sides are told apart, and longer mantissas where they do not hold them. A wide claim
    // needs few digits.
    let few = models.few;
    let mut brief = few < 46.0;
    let closed = if brief { models.brief() } else { models.two() }.is_ok_and(Model::is_closed);
    let mut ladder = [few, 56.0, 84.0, 120.0, 160.0].into_iter().skip(usize::from(!brief));
    let (Some(mut bits), mut words) = (ladder.next(), 0) else { return proof };
    loop {
        let next = match words {
            0 if brief => settle(models.brief(), claim, side, end, bits, &mut proof),
            0 if bits <= 84.0 => settle(models.two(), claim, side, end, bits, &mut proof),
            1 if bits <= 120.0 => settle(models.three(), claim, side, end, bits, &mut proof),
            0 | 1 => Next::Words,
            2 => settle(models.four(), claim, side, end, bits, &mut proof),
            3 => settle(models.eight(), claim, side, end, bits, &mut proof),
            _ => return proof,
        };
        // What a brief model leaves open, the next one may tell.
        let first = std::mem::take(&mut brief);
        match next {
            Next::Done => return proof,
            Next::Digits if first => bits = ladder.next().unwrap_or(bits),
            Next::Words => words += 1,
            // Bits change nothing in a closed form.
            Next::Digits if closed => words += 1,
            Next::Digits => match ladder.next() {
                Some(more) => bits = more,
                None => words += 1,
            },
        }
    }
}

/// What to do after an attempt.
enum Next {
    Done,
    /// The same with longer mantissas.
    Words,
    /// More digits.
    Digits,
}

/// One attempt.
fn settle<const N: usize>(
    model: Result<&Model<N>, Obstacle>,
    claim: &Claim,
    side: End,
    end: f64,
    bits: f64,
    proof: &mut EndProof,
) -> Next {
    let found = model.and_then(|model| {
        proof.precision = 64 * N as u32;
        let found = check(model, claim, side, end, bits);
        proof.path = model.path();
        found
    });
    match found {
        Ok(found) => {
            proof.outcome = found.outcome;
            proof.statement = found.statement;
            proof.enclosures = found.enclosures;
            if proof.outcome == Outcome::Undecided { Next::Digits } else { Next::Done }
        }
        Err(obstacle) => {
            let next = match obstacle {
                Obstacle::Words(_) => Next::Words,
                Obstacle::Precision(_) => Next::Digits,
                Obstacle::Other(_) => Next::Done,
            };
            proof.statement = obstacle.message();
            next
        }
    }
}

/// Ends that hold whatever the run is.
fn trivial(claim: &Claim, side: End, end: f64) -> Option<String> {
    if end.is_nan() {
        return None;
    }
    let least = match claim.quantity {
        Quantity::Tpr => claim.at.fpr?,
        Quantity::Reconstruction => claim.at.prior?,
        Quantity::AttackAccuracy => 0.5,
        _ => 0.0,
    };
    let most = match claim.quantity {
        Quantity::Epsilon | Quantity::Mu => f64::INFINITY,
        _ => 1.0,
    };
    match side {
        End::Lower if end <= least => Some(format!("the quantity is at least {least}")),
        End::Upper if end >= most => Some(format!("the quantity is at most {most}")),
        _ => None,
    }
}

/// Ends that no run can have. The two distributions have the same null sets, so no test is certain: delta
/// and powers stay below 1, and Bayes security above 0.
fn impossible(claim: &Claim, side: End, end: f64) -> Option<String> {
    let below_one = match claim.quantity {
        Quantity::Delta | Quantity::Advantage => true,
        Quantity::Tpr => claim.at.fpr? < 1.0,
        Quantity::Reconstruction => claim.at.prior? < 1.0,
        Quantity::AttackAccuracy => claim.at.prior? > 0.0 && claim.at.prior? < 1.0,
        _ => false,
    };
    match side {
        End::Lower if below_one && end >= 1.0 => Some("the quantity is below 1".into()),
        // The loss of removing is not bounded; that of adding is.
        End::Upper
            if claim.quantity == Quantity::Delta
                && claim.direction != Direction::Add
                && end <= 0.0 =>
        {
            Some("delta is above 0".into())
        }
        End::Upper if claim.quantity == Quantity::BayesSecurity && end <= 0.0 => {
            Some("Bayes security is above 0".into())
        }
        _ => None,
    }
}

pub(crate) fn enclosure<const N: usize>(of: String, ball: &Ball<N>) -> Enclosure {
    let (lower, upper) = ball.doubles();
    Enclosure {
        of,
        lower: lower.is_finite().then_some(lower),
        upper: upper.is_finite().then_some(upper),
        midpoint: ball.mid.hexadecimal(),
        bits: ball.accuracy().min(64 * N as i64),
    }
}

/// Compares the largest of `balls` with `bound`: is it at most (or at least) that?
pub(crate) fn compare<const N: usize>(
    balls: &[Ball<N>],
    bound: &Ball<N>,
    at_most: bool,
) -> Outcome {
    let (holds, fails) = if at_most {
        (
            balls.iter().all(|ball| ball.is_at_most(bound)),
            balls.iter().any(|ball| bound.is_below(ball)),
        )
    } else {
        (
            balls.iter().any(|ball| bound.is_at_most(ball)),
            balls.iter().all(|ball| ball.is_below(bound)),
        )
    };
    if holds {
        Outcome::Proven
    } else if fails {
        Outcome::Wrong
    } else {
        Outcome::Undecided
    }
}

pub(crate) fn check<const N: usize>(
    model: &Model<N>,
    claim: &Claim,
    side: End,
    end: f64,
    bits: f64,
) -> Result<Found, Obstacle> {
    let missing = || Obstacle::from("the claim does not say where the quantity is taken");
    if !end.is_finite() {
        return Err("the end is not a finite number".into());
    }
    if let Model::Maximum(maximum) = model {
        return maximum::check(maximum, model, claim, side, end, bits);
    }
    match claim.quantity {
        Quantity::Epsilon => {
            let target = claim.at.delta.ok_or_else(missing)?;
            let at = Ball::from_f64(end);
            deltas(
                model,
                claim,
                at,
                end.to_string(),
                Ball::from_f64(target),
                side == End::Upper,
                bits,
            )
        }
        Quantity::Delta => {
            let epsilon = claim.at.epsilon.ok_or_else(missing)?;
            let at = Ball::from_f64(epsilon);
            deltas(
                model,
                claim,
                at,
                epsilon.to_string(),
                Ball::from_f64(end),
                side == End::Upper,
                bits,
            )
        }
        Quantity::Advantage => deltas(
            model,
            claim,
            Ball::ZERO,
            "0".into(),
            Ball::from_f64(end),
            side == End::Upper,
            bits,
        ),
        Quantity::AttackAccuracy => {
            // (1-p) + p delta(ln((1-p)/p)) for the smaller prior p.
            let prior = claim.at.prior.ok_or_else(missing)?;
            let p = Ball::from_f64(prior).minimum(Ball::one() - Ball::from_f64(prior));
            let other = Ball::one() - p;
            let bound = (Ball::from_f64(end) - other).over(p);
            let at = other.over(p).logarithm();
            deltas(
                model,
                claim,
                at,
                format!("ln((1-p)/p), p = {prior}"),
                bound,
                side == End::Upper,
                bits,
            )
        }
        Quantity::BayesSecurity => {
            let bound = Ball::from_f64(end);
            if side == End::Lower
                && let Some(most) = model.sum_of_steps()
                && bound.is_at_most(&(Ball::one() - most))
            {
                let of = "delta(0) of all steps one by one".into();
                return Ok(Found {
                    outcome: Outcome::Proven,
                    statement: sentence("1 - delta(0)", false, Outcome::Proven, &end.to_string()),
                    enclosures: vec![enclosure(of, &most)],
                });
            }
            let found = model.rest(Ball::ZERO, Order::Remove, log_scale(end), bits);
            // One moment may be enough from above.
            let rest = match found {
                Ok(rest) => rest,
                Err(reason) => match model.rest_by_moment(Ball::ZERO, Order::Remove) {
                    Some(most) if most.is_at_most(&bound) => Ball::up_to(most.above()),
                    _ => return Err(reason),
                },
            };
            let outcome = compare(&[rest], &bound, side == End::Upper);
            Ok(Found {
                outcome,
                statement: sentence("1 - delta(0)", side == End::Upper, outcome, &end.to_string()),
                enclosures: vec![enclosure("1 - delta(0)".into(), &rest)],
            })
        }
        Quantity::Tpr => power(model, claim, side, end, claim.at.fpr.ok_or_else(missing)?, bits),
        Quantity::Reconstruction => {
            if claim.assumptions.iter().any(|one| one.contains("candidates")) {
                return Err("a claim about candidates does not carry their priors".into());
            }
            power(model, claim, side, end, claim.at.prior.ok_or_else(missing)?, bits)
        }
        Quantity::Mu => {
            let delta = claim.at.delta.ok_or_else(missing)?;
            let all = model.orders(claim.direction);
            let found = if side == End::Upper {
                mu::covers(model, all, end, delta, bits)?
            } else {
                mu::needs(model, all, end, delta, bits)?
            };
            Ok(Found {
                outcome: found.outcome,
                statement: found.statement,
                enclosures: found
                    .points
                    .iter()
                    .map(|(of, ball)| enclosure(of.clone(), ball))
                    .collect(),
            })
        }
    }
}

pub(crate) fn log_scale(x: f64) -> f64 {
    if x > 0.0 { x.ln() } else { -700.0 }
}

pub(crate) fn sentence(what: &str, at_most: bool, outcome: Outcome, end: &str) -> String {
    let relation = match (outcome, at_most) {
        (Outcome::Undecided, _) => return format!("{what} cannot be told from {end}"),
        (Outcome::Proven, true) | (Outcome::Wrong, false) => "<=",
        (Outcome::Proven, false) | (Outcome::Wrong, true) => ">=",
    };
    format!("{what} {relation} {end}")
}
