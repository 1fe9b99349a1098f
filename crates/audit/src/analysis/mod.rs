//! Carries out a [`Plan`] on scores: bounds, attack quality, verdict.

mod many_runs;
mod one_run;
mod reach;

pub(crate) use one_run::objection;

use crate::verdict::verdict;
use crate::{
    Audit, AuditError, Design, Finding, Method, NotValid, Plan, PowerAt, Scores, hash,
    one_run as canaries, quality, rows,
};
use vocabulary::{AtMost, Claim, Hashes, Status};

/// Analyses scores as planned; `claim` is the proven epsilon at the plan's first delta, which the
/// primary bound is compared with.
///
/// # Errors
/// What makes the question unanswerable: scores of another design than the plan's; unfair canaries for a one-run audit that was asked for
/// by name, too few scores for a rule, accounting that cannot answer.
pub fn analyse(scores: &Scores, plan: &Plan, claim: Option<&Claim>) -> Result<Audit, AuditError> {
    let many = scores.members().len().max(scores.nonmembers().len()) >= WORTH_A_THREAD;
    let (analysis, hash) = std::thread::scope(|scope| {
        let hash = many.then(|| scope.spawn(|| hash::scores(scores)));
        let analysis = answer(scores, plan, claim);
        let hash =
            hash.map(|hash| hash.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (analysis, hash)
    });
    let mut analysis = analysis?;
    analysis.hashes.scores = hash.unwrap_or_else(|| hash::scores(scores));
    Ok(analysis)
}

/// Fewer scores are hashed before a second thread is up.
const WORTH_A_THREAD: usize = 1 << 16;

/// All but the hash of the scores.
fn answer(scores: &Scores, plan: &Plan, claim: Option<&Claim>) -> Result<Audit, AuditError> {
    let plan = plan.clone().check()?;
    if scores.design() != plan.design {
        return Err(AuditError::other_design(scores.design(), plan.design));
    }
    let mut not_valid = Vec::new();
    let mut methods = Vec::new();
    for method in plan.methods.iter().copied() {
        match plan.objection(method) {
            Some(reason) => not_valid.push(NotValid { method, reason }),
            None => methods.push(method),
        }
    }
    let mut warnings = Vec::new();
    let (m, n) = (scores.members().len() as u64, scores.nonmembers().len() as u64);
    let bounds = match plan.design {
        Design::Runs => many_runs::bounds(scores, &plan, &methods, &mut not_valid, &mut warnings)?,
        Design::OneRun => match unfair(m, n) {
            Some(reason) if plan.all_methods => {
                not_valid.extend(
                    methods.iter().map(|&method| NotValid { method, reason: reason.clone() }),
                );
                Vec::new()
            }
            Some(reason) => return Err(AuditError::NotValid(reason)),
            None => one_run::bounds(scores, &plan, &methods, &mut not_valid, &mut warnings)?,
        },
    };
    if let Some(times) = rows::copies(scores.members(), scores.nonmembers()) {
        warnings.push(format!(
            "every score occurs {times} times or a multiple of it: rows that were given more than once count as if they were independent, and bounds are too large"
        ));
    }
    let auroc = quality::auroc(scores, plan.confidence);
    if auroc.upper < 0.5 {
        warnings.push(format!(
            "AUROC is {:.3}, below one half: the sign of the scores looks reversed (larger must mean more likely a member)",
            auroc.value
        ));
    } else if auroc.value < 0.5 {
        warnings.push(format!(
            "AUROC is {:.3}, below one half: chance alone can do that here (the interval reaches {:.3}), but if the attack should work, its sign looks reversed (larger must mean more likely a member)",
            auroc.value, auroc.upper
        ));
    }
    if plan.design == Design::OneRun {
        warnings.push(
            "intervals of AUROC, TPR and advantage treat the canaries as independent; the bounds do not need that"
                .to_owned(),
        );
    }
    let tpr = plan
        .fprs
        .iter()
        .map(|&fpr| PowerAt { fpr, measured: quality::tpr_at(scores, fpr, plan.confidence) })
        .collect();
    let bootstrap = (plan.bootstrap > 0).then(|| {
        quality::bootstrap(scores, &plan.fprs, plan.confidence, plan.bootstrap, plan.seed)
    });
    let primary = bounds.iter().find(|bound| bound.primary);
    let stated =
        plan.claim_epsilon.map(|epsilon| Claim::stated(plan.adjacency(), plan.deltas[0], epsilon));
    let verdict = match (claim.or(stated.as_ref()), primary) {
        (Some(claim), Some(primary)) => {
            let (method, delta) = (primary.method(), primary.delta());
            let reach = reach::reach(&plan, method, delta, (m, n), claim.interval.upper)?;
            let verdict = verdict(primary, plan.confidence, claim, reach);
            if verdict.status != Status::Contradiction {
                warnings.extend(above(&bounds, primary, claim.interval.upper));
            }
            Some(verdict)
        }
        _ => None,
    };
    Ok(Audit {
        schema: Audit::SCHEMA.into(),
        design: plan.design,
        members: m,
        nonmembers: n,
        bounds,
        not_valid,
        auroc,
        advantage: quality::advantage(scores, plan.confidence),
        tpr,
        bootstrap,
        verdict,
        joint: plan.joint,
        warnings,
        hashes: Hashes { scores: String::new(), plan: hash::plan(&plan)? },
        plan: plan.document(),
    })
}

/// Methods that do not hold, those with the same reason together, in the order in which they were asked for.
pub fn by_reason(not_valid: &[NotValid]) -> Vec<(&str, Vec<Method>)> {
    let mut found: Vec<(&str, Vec<Method>)> = Vec::new();
    for entry in not_valid {
        match found.iter_mut().find(|(reason, _)| *reason == entry.reason) {
            Some((_, methods)) => methods.push(entry.method),
            None => found.push((&entry.reason, vec![entry.method])),
        }
    }
    found
}

/// What bounds beside the headline say that are above the claim. They hold for some mechanisms only, so the
/// verdict, which holds for any, cannot follow them.
fn above(bounds: &[Finding], primary: &Finding, claimed: f64) -> impl Iterator<Item = String> {
    let beside = |bound: &&Finding| {
        !bound.primary && !bound.method().is_estimate() && bound.delta() == primary.delta()
    };
    let higher = bounds.iter().filter(beside).filter(move |bound| bound.epsilon() > claimed);
    higher.map(move |bound| {
        format!(
            "{} shows epsilon of at least {}, above the claimed {}: this refutes the claim if the training is one of those that the bound holds for ({})",
            bound.method(),
            bound.claim.quoted(),
            AtMost::new(claimed),
            bound.valid_for
        )
    })
}

/// Why these canaries cannot have been included by fair coins, when they cannot.
fn unfair(members: u64, nonmembers: u64) -> Option<String> {
    let p_value = canaries::fair_bits(members, nonmembers);
    (p_value < canaries::FAIRNESS_LEVEL).then(|| {
        let shown = if p_value < 1e-300 { "below 1e-300".to_owned() } else { format!("{p_value:.1e}") };
        format!(
            "{members} of {} canaries are members: fair coins give a count this far from half with probability {shown}, and a one-run audit is only valid when each canary was included with probability 1/2, independently",
            members + nonmembers
        )
    })
}

pub(crate) const ANY_MECHANISM: &str = "any mechanism";
