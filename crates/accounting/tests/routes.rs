//! Independent routes to one number must agree: closed forms, the lattice bracket, simulation and
//! the composed pair. Each gives an interval that claims to hold the truth, so any two of one
//! question must share a point. Seeds are fixed; `DOSIMETER_ROUTE_CASES` runs more cases.

use crate::support;

use accounting::pairs::{Composed, LatticeBracket, LatticeOptions};
use accounting::{AccountingError, Order, Pair};
use support::{cases, generator::Generator, golden, normal, overlap, runs, simulation};
use vocabulary::{Adjacency, Interval, Run};

type Answer = Result<Interval, AccountingError>;

/// All routes that answer delta(epsilon) for a run.
fn routes(run: &Run, epsilon: f64, order: Order, seed: u64) -> Vec<(&'static str, Answer)> {
    let options = LatticeOptions { points: 1 << 11 };
    let lattice = LatticeBracket::for_run(run, options).and_then(|pair| pair.delta(epsilon, order));
    let composed = Composed::for_run(run).and_then(|pair| pair.delta(epsilon, order));
    let mut answers = vec![("lattice", lattice), ("composed", composed)];
    let single = run.phases().len() == 1 && run.adjacency() == Adjacency::AddRemove;
    let phase = run.phases()[0];
    if single && phase.sample_rate == 1.0 && epsilon.abs() < 600.0 {
        let mu = f64::from(run.group_size()) * (phase.steps as f64).sqrt() / phase.noise_multiplier;
        answers.push(("gaussian", Ok(normal::gaussian_delta(mu, epsilon))));
    }
    if single && phase.steps == 1 && run.group_size() == 1 {
        let exact =
            normal::one_step_delta(phase.noise_multiplier, phase.sample_rate, epsilon, order);
        answers.push(("one step", Ok(exact)));
    }
    if run.steps() <= 30 {
        answers.push(("simulation", Ok(simulation::plain(run, order, epsilon, 2000, seed))));
    }
    answers
}

/// Asserts that all answers about one question overlap; returns how many there were.
fn agree(run: &Run, question: &str, answers: &[(&'static str, Answer)]) -> usize {
    let given: Vec<(&str, Interval)> =
        answers.iter().filter_map(|(name, answer)| Some((*name, *answer.as_ref().ok()?))).collect();
    for (name, interval) in &given {
        assert!(
            interval.lower <= interval.upper && !interval.value.is_nan(),
            "{name}: {interval:?} for {question} of {run:?}"
        );
    }
    for (i, (one, a)) in given.iter().enumerate() {
        for (other, b) in &given[i + 1..] {
            assert!(overlap(a, b), "{one} {a:?} and {other} {b:?} differ: {question} of {run:?}");
        }
    }
    given.len()
}

/// Random runs of the whole domain. Refusals are allowed, silence is not: most questions must be
/// answered by the lattice.
#[test]
fn all_routes_overlap_on_random_runs() {
    let mut generator = Generator::new(2026);
    let total = cases(120);
    let (mut by_lattice, mut by_two) = (0, 0);
    for case in 0..total {
        let run = runs::any(&mut generator);
        let order = if generator.uniform() < 0.5 { Order::Remove } else { Order::Add };
        let target = generator.log_uniform(1e-30, 0.5);
        // An epsilon that matters: where the lattice believes delta to be about the target.
        let options = LatticeOptions { points: 1 << 10 };
        let guess =
            LatticeBracket::for_run(&run, options).and_then(|pair| pair.epsilon(target, order));
        let epsilon = match guess {
            Ok(guess) if guess.upper.is_finite() => 0.5 * (guess.lower + guess.upper),
            _ => generator.log_uniform(1e-6, 50.0),
        };
        let answers = routes(&run, epsilon, order, case as u64);
        let question = format!("delta({epsilon}) {order:?}");
        by_two += usize::from(agree(&run, &question, &answers) >= 2);
        by_lattice += usize::from(answers[0].1.is_ok());
    }
    assert!(by_lattice * 10 >= total * 7, "the lattice answered {by_lattice} of {total}");
    assert!(by_two * 10 >= total, "only {by_two} of {total} questions had two answers");
}

/// One step in its hard region (near-atomic losses): closed form, lattice and composed pair.
#[test]
fn all_routes_overlap_on_single_steps() {
    let mut generator = Generator::new(7);
    for case in 0..cases(60) {
        let run = Run::builder()
            .phase(generator.log_uniform(0.2, 100.0), generator.log_uniform(1e-7, 1.0), 1)
            .build()
            .unwrap();
        let order = if case % 2 == 0 { Order::Remove } else { Order::Add };
        let phase = run.phases()[0];
        let x = 1.0 + phase.noise_multiplier * (7.0 * generator.uniform() - 2.0);
        let exponent = (2.0 * x - 1.0) / (2.0 * phase.noise_multiplier.powi(2));
        let loss = (phase.sample_rate * exponent.exp_m1()).ln_1p();
        let epsilon = if order == Order::Remove { loss } else { -loss };
        let answers = routes(&run, epsilon, order, case as u64);
        let given = agree(&run, &format!("delta({epsilon}) {order:?}"), &answers);
        assert!(given >= 2, "{run:?} {epsilon}: {answers:?}");
    }
}

/// epsilon, delta and the trade-off of the two pairs on ordinary runs.
#[test]
fn all_quantities_overlap_on_ordinary_runs() {
    let mut generator = Generator::new(99);
    for _ in 0..cases(16) {
        let run = Run::builder()
            .phase(
                generator.log_uniform(0.6, 5.0),
                generator.log_uniform(1e-3, 0.5),
                generator.log_uniform(100.0, 1e5) as u64,
            )
            .build()
            .unwrap();
        let lattice = LatticeBracket::for_run(&run, LatticeOptions { points: 1 << 12 }).unwrap();
        let composed = Composed::for_run(&run).unwrap();
        let delta = generator.log_uniform(1e-12, 0.1);
        let fpr = generator.log_uniform(1e-5, 0.5);
        for order in [Order::Remove, Order::Add] {
            let epsilon = [
                ("lattice", lattice.epsilon(delta, order)),
                ("composed", composed.epsilon(delta, order)),
            ];
            agree(&run, &format!("epsilon({delta}) {order:?}"), &epsilon);
            let fnr =
                [("lattice", lattice.fnr(fpr, order)), ("composed", composed.fnr(fpr, order))];
            agree(&run, &format!("fnr({fpr}) {order:?}"), &fnr);
        }
    }
}

/// Reference values: an answer of the composed pair must hold them to their digits.
#[test]
fn the_composed_pair_holds_the_reference_values_to_their_digits() {
    let mut wrong = Vec::new();
    for row in golden::composition() {
        let composed = Composed::for_run(&row.run).unwrap();
        let ask = |order: Order| match row.quantity.as_str() {
            "epsilon" => composed.epsilon(row.at, order),
            "delta" => composed.delta(row.at, order),
            _ => composed.fnr(row.at, order),
        };
        let answers: Result<Vec<Interval>, _> =
            row.orders.iter().map(|order| ask(*order)).collect();
        let Ok(answers) = answers else { continue };
        let both = answers.into_iter().reduce(Interval::max).expect("at least one order");
        let near = |x: f64| (x - row.value).abs() <= row.tolerance + (both.upper - both.lower);
        let holds =
            both.lower <= row.value + row.tolerance && row.value - row.tolerance <= both.upper;
        if !holds || !near(both.value) {
            wrong.push(format!("line {}: {}: {both:?}", row.line, row.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
