//! A number that takes too long is refused, and nothing else changes.

use accounting::{AccountingError, Questions, account};
use vocabulary::{Adjacency, LensName, Quantity, Run};

#[test]
fn a_number_that_takes_too_long_is_refused() {
    // A lattice of tens of thousands of points stands in for a contour that does not converge.
    let run = Run::builder()
        .phase(1.0378075257928554, 2.0860390971130003e-5, 822)
        .adjacency(Adjacency::Substitute)
        .build()
        .unwrap();
    let questions = Questions {
        epsilons: vec![0.3],
        lenses: vec![LensName::Composition],
        quantities: vec![Quantity::Delta],
        ..Questions::default()
    };
    let limited = Questions { time_limit: Some(0.02), ..questions.clone() };
    let refused = account(&run, &limited).unwrap_err();
    let AccountingError::NotCertified(reason) = refused else { panic!("{refused:?}") };
    assert!(reason.to_string().contains("0.02 s of processor time"), "{reason}");
}

#[test]
fn a_limit_changes_no_number() {
    let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
    let questions = Questions { deltas: vec![1e-5], ..Questions::default() };
    let ask = |time_limit| {
        let limited = Questions { time_limit, ..questions.clone() };
        account(&run, &limited).unwrap().claims
    };
    assert_eq!(ask(None), ask(Some(1e6)));
}
