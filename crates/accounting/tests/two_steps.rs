//! Composition of two steps against one integral of a closed form, in 34-digit arithmetic: an
//! independent route that keeps its digits at any delta, where lattices say nothing.

use accounting::pairs::Composed;
use accounting::{Order, Pair};
use vocabulary::Run;

#[test]
fn two_steps_come_out_to_their_digits_at_any_delta() {
    let mut narrow = 0;
    let mut rows = 0;
    let mut smallest = 1.0f64;
    let table = include_str!("golden/two_steps.csv");
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.starts_with("sigma")) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [sigma, rate, steps, epsilon, truth] = cells[..] else { panic!("{line}") };
        let run = Run::builder().phase(sigma, rate, steps as u64).build().unwrap();
        rows += 1;
        let found = Composed::for_run(&run).unwrap().delta(epsilon, Order::Remove);
        let found = found.unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(found.relative_width() <= 0.02, "{line}: {found:?}");
        // The reference is rounded to double precision.
        let slack = 4e-16 * truth;
        assert!(found.lower <= truth + slack && truth - slack <= found.upper, "{line}: {found:?}");
        // Wider answers come from the lattice and promise their ends only.
        if found.relative_width() <= 1e-8 {
            narrow += 1;
            smallest = smallest.min(truth);
            let off = (found.value / truth - 1.0).abs();
            assert!(off <= 1e-9, "{line}: {found:?} off by {off:e}");
        }
    }
    assert!(rows >= 90 && smallest < 1e-85, "{rows} {smallest:e}");
    // A wide answer is honest, but not to be the rule.
    assert!(narrow >= 70, "{narrow} of {rows} within 1e-8");
}

/// One record replaced: at large rates and deltas below 1e-40 the integrand of a tilt lies beyond what
/// either of the two mixtures alone would suggest.
#[test]
fn two_steps_of_a_replaced_record_come_out_to_their_digits() {
    let table = include_str!("golden/two_steps_substituted.csv");
    let mut rows = 0;
    for line in table.lines().filter(|line| !line.starts_with('#') && !line.starts_with("sigma")) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [sigma, rate, epsilon, truth] = cells[..] else { panic!("{line}") };
        let run = Run::builder()
            .phase(sigma, rate, 2)
            .adjacency(vocabulary::Adjacency::Substitute)
            .build()
            .unwrap();
        for order in [Order::Remove, Order::Add] {
            let found = Composed::for_run(&run).unwrap().delta(epsilon, order);
            let found = found.unwrap_or_else(|error| panic!("{line}: {error}"));
            let slack = 4e-16 * truth;
            assert!(
                found.lower <= truth + slack && truth - slack <= found.upper,
                "{line} {order:?}: {found:?}"
            );
            assert!((found.value / truth - 1.0).abs() <= 1e-9, "{line} {order:?}: {found:?}");
            rows += 1;
        }
    }
    assert!(rows >= 48, "{rows}");
}
