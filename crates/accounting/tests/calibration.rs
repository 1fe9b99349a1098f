//! Calibration against reference values, and the laws that every answer keeps.
//!
//! `golden/calibration.csv`: noise multipliers computed independently (contour integration in
//! extended precision for composition, binomial sums for the last iterate), with the number of
//! digits that are trusted.

use accounting::lenses::Lens;
use accounting::{AccountingError, Solution, Target, Unknown, calibrate};
use vocabulary::{Adjacency, Direction, Drawing, LensName, Phase, Run, Sampling};

fn run(noise_multiplier: f64, sample_rate: f64, steps: u64) -> Run {
    Run::builder().phase(noise_multiplier, sample_rate, steps).build().unwrap()
}

fn noise(run: &Run, target: Target, lens: LensName) -> (f64, usize) {
    let answer = calibrate(run, Unknown::NoiseMultiplier, &target, lens, &[]).unwrap();
    assert!(answer.slack >= 0.0, "{answer:?}");
    match answer.solution {
        Solution::NoiseMultiplier(noise) => (noise, answer.evaluations),
        other => panic!("{other:?}"),
    }
}

#[test]
fn reference_noise_multipliers_come_out_to_their_digits() {
    let mut rows = 0;
    for line in include_str!("golden/calibration.csv").lines().skip(1) {
        let (head, rest) = line.split_once('"').unwrap();
        let (target, tail) = rest.split_once('"').unwrap();
        let head: Vec<&str> = head.trim_end_matches(',').split(',').collect();
        let tail: Vec<&str> = tail.trim_start_matches(',').split(',').collect();
        let lens = LensName::parse(head[0]).unwrap();
        let (rate, steps) = (head[1].parse().unwrap(), head[2].parse().unwrap());
        let value = |key: &str| -> Option<f64> {
            target
                .split(',')
                .find_map(|part| part.strip_prefix(key))
                .map(|text| text.parse().unwrap())
        };
        let target = match (value("eps="), value("advantage=")) {
            (Some(epsilon), _) => Target::Epsilon { epsilon, delta: value("delta=").unwrap() },
            (_, Some(advantage)) => Target::Advantage { advantage },
            _ => panic!("{target}"),
        };
        let truth: f64 = tail[0].parse().unwrap();
        let digits: i32 = tail[1].parse().unwrap();
        let (found, evaluations) = noise(&run(1.0, rate, steps), target, lens);
        let allowance = 10_f64.powi(1 - digits) * truth;
        assert!((found - truth).abs() <= allowance, "{line}: found {found}");
        // The safe side: never less noise than the truth, up to the reference's own digits.
        assert!(found >= truth - 0.5 * allowance, "{line}: found {found}");
        assert!(evaluations < 12, "{line}: {evaluations} evaluations");
        rows += 1;
    }
    assert_eq!(rows, 22);
}

/// A little less private than the answer breaks the target; the answer itself meets it.
#[test]
fn every_target_is_met_and_not_overshot() {
    let run = run(1.0, 0.01, 1000);
    let targets = [
        Target::Epsilon { epsilon: 2.0, delta: 1e-5 },
        Target::Mu { mu: 0.5, delta: 1e-5 },
        Target::Advantage { advantage: 0.16 },
        Target::BayesSecurity { bayes_security: 0.9 },
        Target::Tpr { tpr: 0.02, fpr: 0.01 },
        Target::AttackAccuracy { accuracy: 0.6, prior: 0.5 },
        Target::AttackAccuracy { accuracy: 0.95, prior: 0.1 },
        Target::Reconstruction { success: 0.12, prior: 0.1 },
    ];
    for lens in
        [LensName::Composition, LensName::LastIterate, LensName::FullBatch, LensName::GaussianClt]
    {
        for target in targets {
            for unknown in [Unknown::NoiseMultiplier, Unknown::SampleRate, Unknown::Steps] {
                let answer = match calibrate(&run, unknown, &target, lens, &[]) {
                    Ok(answer) => answer,
                    // Some targets lie beyond the domain under some lenses.
                    Err(AccountingError::OutsideDomain(_)) => continue,
                    Err(error) => panic!("{lens} {target:?} {unknown:?}: {error}"),
                };
                let interval = answer.achieved.interval;
                let (quoted, wanted) = (
                    if target.quantity().is_leakage() { interval.upper } else { interval.lower },
                    target.value(),
                );
                assert!(answer.slack >= 0.0, "{answer:?}");
                if answer
                    .warnings
                    .iter()
                    .any(|warning| warning.contains("every") || warning.contains("even"))
                {
                    continue; // the end of the domain
                }
                // A whole step more or less moves the number by about 1/(2T).
                let tightness = if let Solution::Steps(steps) = answer.solution {
                    if steps < 20 || steps == 1_000_000_000 { continue } else { 2.0 / steps as f64 }
                } else {
                    1e-6
                };
                assert!(
                    (quoted - wanted).abs() <= tightness * wanted.max(1.0),
                    "{lens} {target:?} {:?}: {quoted}",
                    answer.solution
                );
            }
        }
    }
}

#[test]
fn one_step_more_breaks_the_target() {
    for (lens, epsilon) in [(LensName::Composition, 2.0), (LensName::LastIterate, 1.0)] {
        let target = Target::Epsilon { epsilon, delta: 1e-6 };
        let answer = calibrate(&run(0.7764, 0.01, 1), Unknown::Steps, &target, lens, &[]).unwrap();
        let Solution::Steps(steps) = answer.solution else { panic!("{answer:?}") };
        let epsilon_at = |steps| {
            let view = Lens::named(lens).look(&run(0.7764, 0.01, steps)).unwrap();
            view.epsilon(1e-6, Direction::Both).unwrap()
        };
        assert!(epsilon_at(steps).upper <= epsilon);
        assert!(epsilon_at(steps + 1).lower > epsilon, "{lens}: {steps}");
        assert_eq!(answer.warnings.is_empty(), lens == LensName::Composition);
    }
}

#[test]
fn the_robust_heuristic_holds_for_every_count_up_to_its_answer() {
    let target = Target::Epsilon { epsilon: 1.1, delta: 1e-6 };
    let start = run(0.7764, 0.01, 1);
    let answer = calibrate(&start, Unknown::Steps, &target, LensName::LastIterateMax, &[]).unwrap();
    let Solution::Steps(steps) = answer.solution else { panic!("{answer:?}") };
    let lens = Lens::named(LensName::LastIterate);
    let epsilon_at = |steps| {
        lens.look(&run(0.7764, 0.01, steps)).unwrap().epsilon(1e-6, Direction::Both).unwrap()
    };
    for t in 1..=steps {
        assert!(epsilon_at(t).lower <= 1.1, "{t} of {steps}");
    }
    assert!(epsilon_at(steps + 1).upper > 1.1);
    // One step alone has epsilon 1.0: below that no number of steps is safe.
    let strict = Target::Epsilon { epsilon: 0.9, delta: 1e-6 };
    let refused = calibrate(&start, Unknown::Steps, &strict, LensName::LastIterateMax, &[]);
    assert!(matches!(refused, Err(AccountingError::OutsideDomain(_))), "{refused:?}");
    // The plain heuristic has counts that meet it, after the hump.
    let plain = calibrate(&start, Unknown::Steps, &strict, LensName::LastIterate, &[]).unwrap();
    let Solution::Steps(count) = plain.solution else { panic!("{plain:?}") };
    assert!(count > 100 && epsilon_at(count + 1).lower > 0.9, "{count}");
}

#[test]
fn full_batches_and_substitution_calibrate_too() {
    let target = Target::Epsilon { epsilon: 1.0, delta: 1e-5 };
    let full = Run::builder().phase(1.0, 1.0, 100).sampling(Sampling::Full).build().unwrap();
    let (found, _) = noise(&full, target, LensName::Composition);
    assert!((found / 37.306_316_348_159_34 - 1.0).abs() < 1e-9, "{found}");
    let swapped =
        Run::builder().phase(1.0, 0.01, 1000).adjacency(Adjacency::Substitute).build().unwrap();
    let (more, _) = noise(&swapped, target, LensName::Composition);
    let (less, _) = noise(&run(1.0, 0.01, 1000), target, LensName::Composition);
    assert!(more > 1.2 * less, "{more} {less}");
}

#[test]
fn nonsense_is_named() {
    let run = run(1.0, 0.01, 1000);
    let ask =
        |target| calibrate(&run, Unknown::NoiseMultiplier, &target, LensName::Composition, &[]);
    for (target, part) in [
        (Target::Epsilon { epsilon: -1.0, delta: 1e-5 }, "target epsilon -1"),
        (Target::Epsilon { epsilon: 1.0, delta: 0.0 }, "delta 0"),
        (Target::Tpr { tpr: 0.01, fpr: 0.02 }, "0.01 is not above"),
        (Target::BayesSecurity { bayes_security: 1.0 }, "Bayes security 1"),
        (Target::AttackAccuracy { accuracy: 0.4, prior: 0.5 }, "attack accuracy 0.4"),
    ] {
        let error = ask(target).unwrap_err();
        assert!(matches!(error, AccountingError::InvalidInput(_)), "{error:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = ask(Target::Epsilon { epsilon: 1e-6, delta: 1e-60 }).unwrap_err();
    assert!(matches!(error, AccountingError::OutsideDomain(_)), "{error:?}");
}

/// With sensitivities, the steps sought are the first ones of the training that was measured.
#[test]
fn attribute_steps_are_the_first_ones() {
    use accounting::bayes_security::attribute::{Mode, Sensitivities};
    let distances: Vec<f64> = (0..1000).map(|i| if i < 500 { 0.6 } else { 0.2 }).collect();
    let sensitivities = Sensitivities::of_distances(Mode::Dataset, &distances).unwrap();
    let lens = LensName::ClosedFormCertified;
    let solve = |bayes_security: f64| {
        let target = Target::BayesSecurity { bayes_security };
        let start = run(1.0, 0.02, 1);
        accounting::calibrate_attribute(&start, Unknown::Steps, &target, lens, &[], &sensitivities)
            .unwrap()
    };
    let found = solve(0.9);
    let Solution::Steps(steps) = found.solution else { panic!("{found:?}") };
    let security =
        |steps: u64| sensitivities.first(steps).security(&run(1.0, 0.02, steps)).unwrap().certified;
    assert!(security(steps) >= 0.9 && security(steps + 1) < 0.9, "{steps}");
    let all = solve(0.5);
    assert_eq!(all.solution, Solution::Steps(1000));
    assert!(all.warnings.iter().any(|warning| warning.contains("end after 1000 steps")));
}

/// Every way to draw batches is solved for noise, steps and rate: the answer meets the target, and a
/// little less private does not.
#[test]
fn every_way_to_draw_batches_is_calibrated() {
    let target = Target::Epsilon { epsilon: 4.0, delta: 1e-5 };
    let plain = Drawing::default();
    for (sampling, drawing, noise) in [
        (Sampling::Poisson, plain, 1.0),
        (Sampling::Shuffle, plain, 4.0),
        (Sampling::FixedSize, plain, 2.5),
        (Sampling::BallsAndBins, plain, 1.0),
        (Sampling::BallsAndBins, Drawing { uses_per_epoch: Some(2), ..plain }, 2.0),
        (Sampling::TruncatedPoisson, Drawing { max_batch_size: Some(60), ..plain }, 1.5),
        (Sampling::CyclicPoisson, Drawing { cycle_length: Some(2), ..plain }, 1.0),
        (Sampling::InOrder, plain, 4.0),
    ] {
        let run = Run::builder()
            .phase(noise, 0.05, 400)
            .sampling(sampling)
            .drawing(drawing)
            .adjacency(Adjacency::ZeroOut)
            .dataset_size(1000)
            .build()
            .unwrap();
        let epsilon = |phase: Phase| {
            let run = run.with_phases(vec![phase]).unwrap();
            let view = Lens::named(LensName::Composition).look(&run)?;
            view.epsilon(1e-5, Direction::Both)
        };
        for unknown in [Unknown::NoiseMultiplier, Unknown::Steps, Unknown::SampleRate] {
            let name = format!("{} {unknown:?}", sampling.as_str());
            let found = calibrate(&run, unknown, &target, LensName::Composition, &[]);
            let found = found.unwrap_or_else(|error| panic!("{name}: {error}"));
            let solved = found.run.phases()[0];
            assert!(
                found.slack >= 0.0 && found.achieved.interval.upper <= 4.0,
                "{name}: {found:?}"
            );
            let worse = match found.solution {
                Solution::NoiseMultiplier(noise) => {
                    Phase { noise_multiplier: noise * 0.999, ..solved }
                }
                // Some schemes have whole epochs only.
                Solution::Steps(steps) => Phase { steps: steps + steps.div_ceil(20), ..solved },
                Solution::SampleRate(rate) => Phase { sample_rate: rate * 1.001, ..solved },
                other => panic!("{name}: {other:?}"),
            };
            match epsilon(worse) {
                Ok(worse) => {
                    assert!(worse.lower > 4.0 * (1.0 - 1e-3), "{name}: {found:?} {worse:?}")
                }
                // Between two numbers of batches there is none.
                Err(AccountingError::Unsupported(_)) => {
                    let batches = (1.0 / solved.sample_rate).round();
                    if unknown == Unknown::SampleRate && batches > 1.0 && drawing == plain {
                        let fewer = Phase { sample_rate: 1.0 / (batches - 1.0), ..solved };
                        assert!(epsilon(fewer).unwrap().upper > 4.0, "{name}: {found:?}");
                    }
                }
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

/// Balls and bins need whole numbers of batches: the largest batch size is sought among those that divide the data
/// set, and the next larger one of them misses the target.
#[test]
fn batch_sizes_of_balls_and_bins_divide_the_data_set() {
    let described = |size: u64| {
        let run = Run::builder()
            .phase(4.0, size as f64 / 1000.0, 10_000 / size)
            .sampling(Sampling::BallsAndBins)
            .adjacency(Adjacency::ZeroOut)
            .dataset_size(1000)
            .build();
        Ok((run.unwrap(), Vec::new()))
    };
    let epsilon = |size: u64| {
        let view = Lens::named(LensName::Composition).look(&described(size)?.0)?;
        view.epsilon(1e-5, Direction::Both)
    };
    // Between what 100 and what 125 records per batch leak.
    let most = 0.5 * (epsilon(100).unwrap().upper + epsilon(125).unwrap().lower);
    let target = Target::Epsilon { epsilon: most, delta: 1e-5 };
    let found =
        accounting::calibrate_batch_size(&described, 1000, &target, LensName::Composition).unwrap();
    assert!(matches!(found.solution, Solution::BatchSize(100)), "{found:?}");
    assert!(found.achieved.interval.upper <= most, "{found:?}");
}
