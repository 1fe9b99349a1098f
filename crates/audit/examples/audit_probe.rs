//! Times the estimators on synthetic scores and prints one JSON object:
//! `cargo run --release -p audit --example audit_probe -- 1000000`.
#![allow(clippy::print_stdout)]

use audit::one_run::{OneRunStatistic, one_run_bound};
use audit::{
    AttackDirection, Family, Scores, Statistic, ThresholdRule, bayes, family_points, grid, hash,
    quality,
};
use std::time::Instant;

/// Quantiles of N(mean, 1) at jittered ranks: sorted input would flatter the sort.
fn normals(count: usize, mean: f64, seed: u64) -> Vec<f64> {
    let mut state = seed;
    (0..count)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            mean + numerics::special::inverse_normal_cdf(uniform)
        })
        .collect()
}

fn main() -> Result<(), audit::AuditError> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let (members, nonmembers) = (normals(count, 1.0, 1), normals(count, 0.0, 2));
    let mut seconds = serde_json::Map::new();
    let mut timed = |name: &str, work: &mut dyn FnMut() -> Result<(), audit::AuditError>| {
        let start = Instant::now();
        work()?;
        seconds.insert(name.to_owned(), start.elapsed().as_secs_f64().into());
        Ok::<(), audit::AuditError>(())
    };
    let mut scores = None;
    timed("sort", &mut || {
        scores = Some(Scores::new(members.clone(), nonmembers.clone())?);
        Ok(())
    })?;
    let Some(scores) = scores else { return Ok(()) };
    let epsilon = Statistic::Epsilon { delta: 1e-5, direction: AttackDirection::Both };
    for rule in [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(1.0),
    ] {
        timed(&format!("clopper-pearson {rule}"), &mut || {
            rule.lower_bound(&scores, &epsilon, 0.05, 0).map(drop)
        })?;
    }
    let union = ThresholdRule::Union;
    timed("gdp", &mut || union.lower_bound(&scores, &Statistic::GaussianMu, 0.05, 0).map(drop))?;
    let composition = Family::Composition { sample_rate: 0.1, steps: 50 };
    let last_iterate = Family::LastIterate { sample_rate: 0.1, steps: 50 };
    for (name, family) in [("composition", composition), ("last-iterate", last_iterate)] {
        timed(name, &mut || {
            let points = family_points(&union, &scores, 0.05, 0)?;
            if let Some(noise) = family.least_violated_noise(&points)? {
                family.epsilon(noise, 1e-5)?;
            }
            Ok(())
        })?;
    }
    timed("grid", &mut || grid::grid_estimate(&scores, &composition, 1e-5, 10).map(drop))?;
    let errors = scores.errors_at(1.0);
    timed("bayes", &mut || {
        bayes::credible_epsilon(&errors, 1e-5, 0.95, AttackDirection::Both);
        Ok(())
    })?;
    for (name, statistic) in [
        ("one-run", OneRunStatistic::Epsilon { delta: 1e-5 }),
        ("one-run-gdp", OneRunStatistic::GaussianMu),
    ] {
        timed(name, &mut || one_run_bound(&scores, &union, &statistic, 0.05, 0).map(drop))?;
    }
    timed("quality", &mut || {
        quality::auroc(&scores, 0.95);
        quality::advantage(&scores, 0.95);
        quality::tpr_at(&scores, 0.001, 0.95);
        Ok(())
    })?;
    timed("hash", &mut || {
        hash::scores(&scores);
        Ok(())
    })?;
    let total: f64 = seconds.values().filter_map(serde_json::Value::as_f64).sum();
    println!(
        "{}",
        serde_json::json!({ "scores_per_side": count, "total": total, "seconds": seconds })
    );
    Ok(())
}
