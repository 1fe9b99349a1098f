//! What every audit method promises under every threshold rule. A new method or rule is in these
//! tests as soon as it is in its list.

use crate::common;

use accounting::{Order, Pair, pairs};
use audit::{
    Audit, AuditError, Design, Method, Plan, Scores, Statistic, ThresholdRule, analyse,
    gaussian_epsilon,
};
use common::{Mechanism, Rng, allowed, summary};
use vocabulary::Run;

const DELTA: f64 = 1e-2;

fn rules() -> [ThresholdRule; 5] {
    [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(0.8),
    ]
}

/// The default plan (and seed) with one more method.
fn plan(design: Design, method: Method, rule: ThresholdRule, confidence: f64) -> Plan {
    let mut plan = Plan::new(design);
    plan.methods = vec![method];
    plan.deltas = vec![DELTA];
    plan.threshold = rule;
    plan.confidence = confidence;
    if method.needs_training() {
        plan.training = Some((0.5, 4));
    }
    plan
}

fn scores(mechanism: Mechanism, design: Design, seed: u64) -> Scores {
    let mut rng = Rng::new(seed);
    match design {
        Design::Runs => mechanism.scores(100, &mut rng),
        Design::OneRun => mechanism.canaries(100, &mut rng),
    }
}

/// What a method shows; nothing where the rule is not one of the method's, or the scores are too few.
fn shown(method: Method, found: Result<Audit, AuditError>) -> Option<f64> {
    let found = found.ok()?;
    found.bounds.iter().find(|bound| bound.method() == method).map(|bound| bound.epsilon())
}

fn methods(design: Design) -> impl Iterator<Item = Method> {
    Method::ALL.into_iter().filter(move |method| method.objection(design).is_none())
}

/// A mechanism whose leakage a method shows best, and its epsilon: at the edge of what the method holds for.
fn edge(method: Method) -> (Mechanism, f64) {
    if method == Method::Composition {
        // What shows a whole composition best is more than a score of one number here; a lesser one takes a second.
        (Mechanism::Null, 0.0)
    } else if method.needs_training() {
        let run = Run::builder().phase(1.0, 0.5, 4).build().unwrap();
        let pair = pairs::BinomialGaussian::for_run(&run).unwrap();
        let epsilon = |order| pair.epsilon(DELTA, order).unwrap().upper;
        let mechanism =
            Mechanism::LastIterate { sample_rate: 0.5, noise_multiplier: 1.0, steps: 4 };
        (mechanism, epsilon(Order::Remove).max(epsilon(Order::Add)))
    } else if method.is_distribution_free() {
        // delta(epsilon) = p - e^epsilon (1 - p) with the truth told with probability p.
        let truthful = 1.0 / (1.0 + (-2.0f64).exp());
        let epsilon = ((truthful - DELTA) / (1.0 - truthful)).ln();
        (Mechanism::RandomisedResponse { epsilon: 2.0 }, epsilon)
    } else {
        (Mechanism::Gaussian { mu: 2.0 }, gaussian_epsilon(2.0, DELTA))
    }
}

/// A bound is above the truth in at most one in twenty audits, but for four standard errors: without leakage, and of a
/// mechanism at the method's edge. The rules' own seed is the default one.
#[test]
fn hardly_any_bound_is_above_the_truth() {
    let mut answered = 0;
    for design in [Design::Runs, Design::OneRun] {
        for method in methods(design).filter(|method| method.is_confidence_bound()) {
            for (mechanism, truth) in [(Mechanism::Null, 0.0), edge(method)] {
                for rule in rules() {
                    let bounds: Vec<f64> = (0..24)
                        .filter_map(|seed| {
                            let plan = plan(design, method, rule, 0.95);
                            shown(method, analyse(&scores(mechanism, design, seed), &plan, None))
                        })
                        .collect();
                    answered += usize::from(!bounds.is_empty());
                    if !bounds.is_empty() {
                        let (share, _) = summary(&bounds, truth);
                        assert!(share <= allowed(24), "{method}, {rule}, {mechanism:?}: {share}");
                    }
                }
            }
        }
    }
    assert!(answered >= 50, "only {answered} combinations answered");
}

/// What chose a threshold does not measure at it: then the bound would be above the truth far more often, and in few
/// scores most of all. Of the parts, those that measure are a half, and four fifths.
#[test]
fn what_chooses_does_not_measure() {
    let statistic = Statistic::GaussianMu;
    for (rule, measuring) in [(ThresholdRule::Holdout, 10), (ThresholdRule::KFold, 16)] {
        let bounds: Vec<f64> = (0..400)
            .map(|seed| {
                let scores = Mechanism::Gaussian { mu: 1.0 }.scores(20, &mut Rng::new(seed));
                let found = rule.lower_bound(&scores, &statistic, 0.05, 0).unwrap();
                assert!(found.measurements.iter().all(|one| one.errors.members == measuring));
                found.value
            })
            .collect();
        let (share, _) = summary(&bounds, 1.0);
        assert!(share <= allowed(400), "{rule}: {share}");
    }
}

/// Whoever asks for more confidence is never told more: every rule, at the default seed, on scores of
/// several mechanisms.
#[test]
fn more_confidence_never_shows_more() {
    let design = Design::Runs;
    let mechanisms = [
        Mechanism::Gaussian { mu: 2.5 },
        Mechanism::Gaussian { mu: 1.0 },
        Mechanism::Laplace { epsilon: 1.0 },
        Mechanism::RandomisedResponse { epsilon: 2.0 },
    ];
    let mut above = 0;
    for (place, mechanism) in mechanisms.into_iter().enumerate() {
        for seed in 11..14 {
            let scores = scores(mechanism, design, seed + 100 * place as u64);
            for method in [Method::ClopperPearson, Method::Gdp, Method::Bayes] {
                // A credible interval takes a while; other thresholds than a fixed one are the same code.
                let bayes = method == Method::Bayes;
                for rule in rules().into_iter().skip(if bayes { 4 } else { 0 }) {
                    let at = |confidence: f64| {
                        let found = analyse(&scores, &plan(design, method, rule, confidence), None);
                        shown(method, found).unwrap()
                    };
                    let found = [0.6, 0.8, 0.9, 0.949, 0.95, 0.951, 0.995].map(at);
                    above += usize::from(found[0] > 0.0);
                    for pair in found.windows(2) {
                        assert!(
                            pair[1] <= pair[0] * (1.0 + 1e-9),
                            "{method}, {rule}, {mechanism:?}, {seed}: {found:?}"
                        );
                    }
                }
            }
        }
    }
    assert!(above >= 90, "only {above} of 132 showed anything");
}

/// The same of the canaries of one training, for every method and rule that bounds them.
#[test]
fn more_confidence_in_one_run_never_shows_more() {
    let design = Design::OneRun;
    let (mut above, mut answered) = (0, 0);
    for seed in 21..24 {
        let scores = scores(Mechanism::Gaussian { mu: 3.0 }, design, seed);
        for method in methods(design).filter(|method| method.is_confidence_bound()) {
            for rule in rules() {
                let at = |confidence: f64| {
                    shown(method, analyse(&scores, &plan(design, method, rule, confidence), None))
                };
                let found: Vec<f64> =
                    [0.6, 0.8, 0.9, 0.949, 0.95, 0.951, 0.995].into_iter().filter_map(at).collect();
                answered += usize::from(!found.is_empty());
                above += usize::from(found.first().is_some_and(|found| *found > 0.0));
                for pair in found.windows(2) {
                    assert!(
                        pair[1] <= pair[0] * (1.0 + 1e-9),
                        "{method}, {rule}, {seed}: {found:?}"
                    );
                }
            }
        }
    }
    assert!(answered >= 18 && above >= 9, "{above} of {answered} showed anything");
}

/// Every finding is a claim in the method's own name: measured with a confidence, or an estimate.
#[test]
fn every_method_makes_claims_in_its_own_name() {
    for design in [Design::Runs, Design::OneRun] {
        let scores = scores(Mechanism::Gaussian { mu: 2.0 }, design, 3);
        for method in methods(design) {
            let mut plan = plan(design, method, ThresholdRule::Union, 0.95);
            plan.min_count = 2;
            if method == Method::Bayes {
                plan.threshold = ThresholdRule::Fixed(0.8);
            }
            let audit = analyse(&scores, &plan, None).unwrap();
            let found = audit.bounds.iter().find(|bound| bound.method() == method).unwrap();
            assert_eq!(found.claim.source.as_str(), method.as_str());
            assert_eq!(found.claim.confidence.is_some(), method.is_confidence_bound());
            assert_eq!(found.level().is_none(), method.is_estimate());
            // And survives its document.
            let text = serde_json::to_string(&audit).unwrap();
            let back: Audit = serde_json::from_str(&text).unwrap();
            assert_eq!(back, audit, "{method}");
        }
    }
}
