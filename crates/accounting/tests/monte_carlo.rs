//! Simulation against the lattice bracket: plain for delta >= 1e-4, importance sampling below.

use crate::support;

use accounting::pairs::{LatticeBracket, LatticeOptions};
use accounting::{Order, Pair};
use support::{overlap, simulation};
use vocabulary::{Adjacency, Run, RunBuilder};

fn check(builder: RunBuilder, order: Order, epsilon: f64, small: bool, seed: u64) {
    let run = builder.build().unwrap();
    let steps = run.steps() as usize;
    let samples = 6_000_000 / steps.max(20);
    let simulated = if small {
        simulation::tilted(&run, order, epsilon, samples, seed)
    } else {
        simulation::plain(&run, order, epsilon, samples, seed)
    };
    let options = LatticeOptions { points: 1 << 14 };
    let bracket = LatticeBracket::for_run(&run, options).unwrap().delta(epsilon, order).unwrap();
    assert!(
        overlap(&simulated, &bracket),
        "{run:?} {order:?} {epsilon}: {simulated:?} {bracket:?}"
    );
    // The comparison must be able to fail: both intervals are narrow, and on the side they claim.
    assert!(simulated.width() < 0.3 * simulated.value, "{run:?} {order:?}: {simulated:?}");
    assert!(bracket.relative_width() < 0.05, "{run:?} {order:?}: {bracket:?}");
    assert_eq!(small, bracket.value < 1e-4, "{bracket:?}");
}

#[test]
fn plain_simulation_of_both_orders() {
    for (i, order) in [Order::Remove, Order::Add].into_iter().enumerate() {
        check(Run::builder().phase(1.0, 0.1, 50), order, 1.0, false, 1 + i as u64);
        check(Run::builder().phase(0.6, 0.05, 100), order, 0.5, false, 11 + i as u64);
        check(Run::builder().phase(3.0, 0.5, 40), order, 0.3, false, 21 + i as u64);
    }
}

#[test]
fn plain_simulation_of_phases_groups_and_substitution() {
    let phases = || Run::builder().phase(1.0, 0.1, 20).phase(2.0, 0.5, 30);
    check(phases(), Order::Remove, 1.0, false, 31);
    check(phases(), Order::Add, 1.0, false, 32);
    check(Run::builder().phase(2.0, 0.05, 60).group_size(3), Order::Remove, 0.5, false, 33);
    check(Run::builder().phase(2.0, 0.05, 60).group_size(3), Order::Add, 0.5, false, 34);
    let substitution = Run::builder().phase(1.0, 0.05, 40).adjacency(Adjacency::Substitute);
    check(substitution, Order::Remove, 0.5, false, 35);
}

#[test]
fn importance_sampling_of_small_deltas() {
    for (i, order) in [Order::Remove, Order::Add].into_iter().enumerate() {
        check(Run::builder().phase(2.0, 0.2, 50), order, 4.0, true, 41 + i as u64);
        check(Run::builder().phase(5.0, 0.5, 80), order, 5.0, true, 51 + i as u64);
        check(
            Run::builder().phase(2.0, 0.3, 20).phase(3.0, 0.6, 20),
            order,
            7.0,
            true,
            61 + i as u64,
        );
        check(Run::builder().phase(4.0, 0.1, 60).group_size(2), order, 3.5, true, 71 + i as u64);
    }
    check(Run::builder().phase(1.0, 0.1, 30), Order::Remove, 6.0, true, 81);
}
