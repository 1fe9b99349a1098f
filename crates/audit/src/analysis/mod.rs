//! Carries out a [`Plan`] on scores: bounds, attack quality, verdict.

mod document;
mod json;
mod many_runs;
mod one_run;
mod reach;

pub use document::{Analysis, Bound, Counts, Hashes, NotValid, PowerAt, TestAt};
pub use json::AuditDocument;

use crate::verdict::{ClaimedEpsilon, verdict};
use crate::{AuditError, Design, Plan, Scores, hash, one_run as canaries, quality};

/// A claim to compare with: the proven epsilon at each delta it was evaluated at.
pub type Claims<'a> = &'a dyn Fn(f64) -> Result<ClaimedEpsilon, AuditError>;

/// Analyses scores as planned; `claim` gives the proven epsilon at a delta.
///
/// # Errors
/// What makes the question unanswerable: unfair canaries for a one-run audit that was asked for
/// by name, too few scores for a rule, accounting that cannot answer.
pub fn analyse(
    scores: &Scores,
    plan: &Plan,
    claim: Option<Claims<'_>>,
) -> Result<Analysis, AuditError> {
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
fn answer(scores: &Scores, plan: &Plan, claim: Option<Claims<'_>>) -> Result<Analysis, AuditError> {
    let plan = plan.clone().check()?;
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
    let number = plan.claim_epsilon;
    let as_number =
        |_: f64| Ok(number.map_or(NOTHING, |value| ClaimedEpsilon { lower: value, upper: value }));
    let claim = claim.or_else(|| number.is_some().then_some(&as_number as Claims<'_>));
    let verdict = match (claim, primary) {
        (Some(claim), Some(primary)) => {
            let claimed = claim(primary.delta)?;
            let reach = reach::reach(&plan, primary.method, primary.delta, (m, n), claimed.upper)?;
            let family = (primary.valid_for != ANY_MECHANISM).then_some(primary.valid_for.as_str());
            Some(verdict(primary.epsilon, plan.confidence, primary.delta, claimed, reach, family))
        }
        _ => None,
    };
    Ok(Analysis {
        design: plan.design,
        counts: Counts { members: m, nonmembers: n },
        bounds,
        not_valid,
        auroc,
        advantage: quality::advantage(scores, plan.confidence),
        tpr,
        bootstrap,
        verdict,
        warnings,
        hashes: Hashes { scores: String::new(), plan: hash::plan(&plan)? },
        plan,
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

/// No claim at all.
const NOTHING: ClaimedEpsilon = ClaimedEpsilon { lower: 0.0, upper: f64::INFINITY };

pub(crate) const ANY_MECHANISM: &str = "any mechanism";
