//! The lattice bracket against closed forms and reference values.

use crate::support;

use accounting::pairs::{LatticeBracket, LatticeOptions};
use accounting::{Order, Pair};
use support::{generator::Generator, golden, normal, overlap};
use vocabulary::{Adjacency, Interval, Run};

const ORDERS: [Order; 2] = [Order::Remove, Order::Add];

fn bracket(run: &Run, points: usize) -> LatticeBracket {
    LatticeBracket::for_run(run, LatticeOptions { points }).expect("a run the lattice supports")
}

/// T = 1: delta is a difference of normal tails because the loss is monotone.
#[test]
fn one_step_holds_the_closed_form() {
    let mut generator = Generator::new(11);
    let mut useful = 0;
    for case in 0..120 {
        let (sigma, q) = (generator.log_uniform(0.2, 100.0), generator.log_uniform(1e-7, 1.0));
        let order = ORDERS[case % 2];
        let run = Run::builder().phase(sigma, q, 1).build().unwrap();
        // Losses that one step reaches: around x = 1 + z sigma.
        let x = 1.0 + sigma * (8.0 * generator.uniform() - 2.0);
        let loss = (q * ((2.0 * x - 1.0) / (2.0 * sigma * sigma)).exp_m1()).ln_1p();
        let epsilon = if order == Order::Remove { loss } else { -loss };
        let exact = normal::one_step_delta(sigma, q, epsilon, order);
        let Ok(delta) = bracket(&run, 1 << 12).delta(epsilon, order) else { continue };
        assert!(overlap(&delta, &exact), "{sigma} {q} {epsilon} {order:?}: {delta:?} {exact:?}");
        if delta.relative_width() < 1e-2 || delta.upper < 1e-290 {
            useful += 1;
        }
    }
    assert!(useful > 90, "only {useful} of 120 brackets are narrow");
}

/// q = 1: T steps are one Gaussian with mu = sqrt(T)/sigma, in both orders.
#[test]
fn full_batches_hold_the_gaussian_closed_form() {
    let mut generator = Generator::new(12);
    let (mut tried, mut useful) = (0, 0);
    for case in 0..60 {
        let sigma = generator.log_uniform(0.3, 100.0);
        let steps = generator.log_uniform(1.0, 1e9) as u64;
        let mu = (steps as f64).sqrt() / sigma;
        let epsilon = (mu * (generator.uniform() * 8.0 - 1.0) + mu * mu / 2.0).max(0.0);
        let run = Run::builder().phase(sigma, 1.0, steps).build().unwrap();
        let exact = normal::gaussian_delta(mu, epsilon);
        if !(exact.value > 1e-250) || epsilon > 600.0 {
            continue;
        }
        let Ok(delta) = bracket(&run, 1 << 13).delta(epsilon, ORDERS[case % 2]) else { continue };
        assert!(overlap(&delta, &exact), "{sigma} {steps} {epsilon}: {delta:?} {exact:?}");
        tried += 1;
        if delta.relative_width() < 0.1 {
            useful += 1;
        }
    }
    assert!(tried > 20 && useful * 10 >= 9 * tried, "only {useful} of {tried} are narrow");
}

/// Both ends move together as the lattice is refined: with O(h^2) discretisation a lattice eight
/// times as fine must be at least ten times as narrow where round-off does not matter.
#[test]
fn a_finer_lattice_is_narrower() {
    let run = Run::builder().phase(2.0, 0.1, 1000).build().unwrap();
    let coarse = bracket(&run, 1 << 11).delta(3.0, Order::Remove).unwrap();
    let fine = bracket(&run, 1 << 14).delta(3.0, Order::Remove).unwrap();
    assert!(fine.width() * 10.0 < coarse.width(), "{fine:?} {coarse:?}");
    assert!(overlap(&coarse, &fine));
    assert!(fine.relative_width() < 1e-3, "{fine:?}");
}

/// Reference values: the bracket must contain each within its trusted digits.
#[test]
fn reference_values_lie_in_the_bracket() {
    let mut narrow = 0;
    let rows = golden::composition();
    let mut contradictions = Vec::new();
    let mut refused = 0;
    for row in &rows {
        let lattice = bracket(&row.run, 1 << 14);
        let ask = |order: Order| match row.quantity.as_str() {
            "epsilon" => lattice.epsilon(row.at, order),
            "delta" => lattice.delta(row.at, order),
            _ => lattice.fnr(row.at, order),
        };
        let answers: Result<Vec<Interval>, _> =
            row.orders.iter().map(|order| ask(*order)).collect();
        let Ok(answers) = answers else {
            refused += 1;
            continue;
        };
        let both = answers.into_iter().reduce(Interval::max).expect("at least one order");
        if both.lower > row.value + row.tolerance || both.upper < row.value - row.tolerance {
            contradictions.push(format!("{}: {both:?}", row.text));
        }
        if both.relative_width() < 1e-2 {
            narrow += 1;
        } else if std::env::var("DOSIMETER_ROUTE_WIDTHS").is_ok() {
            contradictions.push(format!("wide {}: {both:?}", row.text));
        }
    }
    assert!(contradictions.is_empty(), "{}", contradictions.join("\n"));
    assert!(refused * 20 < rows.len(), "{refused} of {} refused", rows.len());
    assert!(narrow * 10 > rows.len() * 8, "only {narrow} of {} are narrow", rows.len());
}

/// The substitution pair is symmetric, so both orders agree; values of total variation from the
/// published table for sample rate 1e-3 (four digits).
#[test]
fn substitution_pair_is_symmetric_and_holds_the_table() {
    for (sigma, steps, security) in
        [(1.0, 1000, 0.97273), (1.0, 20_000, 0.87835), (2.0, 100_000, 0.87374)]
    {
        let run = Run::builder()
            .phase(sigma, 1e-3, steps)
            .adjacency(Adjacency::Substitute)
            .build()
            .unwrap();
        let lattice = bracket(&run, 1 << 14);
        let (one, other) =
            (lattice.delta(0.0, Order::Remove).unwrap(), lattice.delta(0.0, Order::Add).unwrap());
        assert!(overlap(&one, &other));
        let value = 1.0 - security;
        assert!(
            one.lower <= value + 5e-6 && value - 5e-6 <= one.upper,
            "{sigma} {steps}: {one:?} {value}"
        );
        assert!(one.relative_width() < 0.02, "{one:?}");
    }
}

/// A group of k records at full batches is one Gaussian with mu = k sqrt(T)/sigma; splitting a
/// run into phases must not change it.
#[test]
fn groups_and_phases_agree_with_what_they_are_made_of() {
    let group = Run::builder().phase(10.0, 1.0, 25).group_size(3).build().unwrap();
    let delta = bracket(&group, 1 << 12).delta(2.0, Order::Remove).unwrap();
    assert!(overlap(&delta, &normal::gaussian_delta(1.5, 2.0)), "{delta:?}");
    assert!(delta.relative_width() < 1e-2);
    let whole = Run::builder().phase(1.0, 0.02, 500).build().unwrap();
    let split = Run::builder().phase(1.0, 0.02, 180).phase(1.0, 0.02, 320).build().unwrap();
    for order in ORDERS {
        let (a, b) = (
            bracket(&whole, 1 << 13).delta(1.5, order).unwrap(),
            bracket(&split, 1 << 13).delta(1.5, order).unwrap(),
        );
        assert!(overlap(&a, &b), "{a:?} {b:?}");
        assert!(a.relative_width() < 0.05 && b.relative_width() < 0.05, "{a:?} {b:?}");
    }
}

#[test]
fn impossible_losses_have_delta_zero_and_bad_points_are_refused() {
    let run = Run::builder().phase(1.0, 0.01, 10).build().unwrap();
    let delta = bracket(&run, 256).delta(0.2, Order::Add).unwrap();
    assert_eq!(delta, Interval::exact(0.0));
    assert!(LatticeBracket::for_run(&run, LatticeOptions { points: 1000 }).is_err());
}
