//! What a rule could have shown with scores of these sizes, and how many scores would be enough to
//! refute a claim: both for a perfect attack, every member above every non-member.

use super::{many_runs, one_run};
use crate::rule::FamilyPoints;
use crate::verdict::Reach;
use crate::violation::{Certain, From};
use crate::{AuditError, Design, Family, Method, Plan};

/// Numbers of scores are searched up to this one, and up to a smaller one where each takes a while ([`one_run::most`]).
const MOST: u64 = 1 << 50;

/// What the rule could have shown with these numbers of members and non-members, and from how many
/// scores in the same proportion it could have refuted the claim.
pub(super) fn reach(
    plan: &Plan,
    method: Method,
    delta: f64,
    sizes: (u64, u64),
    claimed: f64,
) -> Result<Reach, AuditError> {
    if method.is_of_family()
        && let Some(family) = plan.family(method)
        && claimed < f64::INFINITY
        && delta > 0.0
    {
        return of_family(plan, &family, delta, sizes, claimed);
    }
    let all = sizes.0 + sizes.1;
    let at = |rows: u64| match plan.design {
        Design::Runs => {
            let (members, nonmembers) = parts(sizes, rows);
            many_runs::reach(plan, method, members, nonmembers, delta)
        }
        Design::OneRun => Ok(one_run::reach(plan, method, rows, delta)),
    };
    let could_show = at(all)?;
    if could_show > claimed || claimed == f64::INFINITY {
        return Ok(Reach { could_show, scores_needed: None, searched: all });
    }
    let most = one_run::most(method, delta).unwrap_or(MOST);
    let (scores_needed, searched) = fewest(all, most, |rows| Ok(at(rows)? > claimed))?;
    Ok(Reach { could_show, scores_needed, searched })
}

/// This many scores in the same proportion.
fn parts(sizes: (u64, u64), rows: u64) -> (u64, u64) {
    let all = u128::from(sizes.0 + sizes.1);
    let part = |side: u64| ((u128::from(rows) * u128::from(side) / all) as u64).max(1);
    (part(sizes.0), part(sizes.1))
}

/// About the smallest number above `all` that is enough, and the largest that was looked at.
fn fewest(
    all: u64,
    most: u64,
    is_enough: impl Fn(u64) -> Result<bool, AuditError>,
) -> Result<(Option<u64>, u64), AuditError> {
    let (mut few, mut enough) = (all, 2 * all);
    while !is_enough(enough)? {
        if 2 * enough > most {
            return Ok((None, enough));
        }
        (few, enough) = (enough, 2 * enough);
    }
    let searched = enough;
    while enough - few > (enough / 100).max(1) {
        let middle = few + (enough - few) / 2;
        if is_enough(middle)? { enough = middle } else { few = middle }
    }
    Ok((Some(enough), searched))
}

/// How far below the claim's noise a family is searched: what could have been shown beyond that is not
/// of interest, and little noise takes long to account for.
const BELOW: f64 = 1.2;
/// Slopes at which numbers of scores are tried, e^-SLOPES to e^SLOPES.
const SLOPES: i32 = 12;

/// Within a family the claim is a noise: what is violated at it is refuted. The curve at that noise is
/// computed once, so that numbers of scores cost nothing.
fn of_family(
    plan: &Plan,
    family: &Family,
    delta: f64,
    sizes: (u64, u64),
    claimed: f64,
) -> Result<Reach, AuditError> {
    let all = sizes.0 + sizes.1;
    let points = |rows: u64| {
        let (members, nonmembers) = parts(sizes, rows);
        let errors = many_runs::without_errors(plan, members, nonmembers);
        FamilyPoints::of_counts(&plan.threshold, &errors, plan.level())
    };
    let Some(noise) = family.noise_above(claimed, delta)? else {
        // The family has no member with so large an epsilon.
        let epsilon = many_runs::family_reach(family, &points(all), delta)?;
        return Ok(Reach { could_show: epsilon, scores_needed: None, searched: all });
    };
    let near = From { family, least: noise / BELOW };
    let could_show = match points(all).least_violated(&near)? {
        Some(violated) => family.epsilon(violated.noise, delta)?,
        None => 0.0,
    };
    if could_show > claimed {
        return Ok(Reach { could_show, scores_needed: None, searched: all });
    }
    let pair = family.pair(noise)?;
    let certain = Certain::at(pair.as_ref(), (-SLOPES..=SLOPES).map(f64::from))?;
    let (scores_needed, searched) = fewest(all, MOST, |rows| Ok(points(rows).violates(&certain)))?;
    Ok(Reach { could_show, scores_needed, searched })
}
