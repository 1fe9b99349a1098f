//! A short deterministic fuzz of every target, in every test run.

use fuzzing::Pseudorandom;

const CASES: u64 = 3000;

#[test]
fn numerics_hold_their_laws_on_random_runs() {
    let mut words = Pseudorandom::new(1);
    let mut answered = 0;
    for _ in 0..CASES {
        answered += fuzzing::numerics(&words.bytes(96));
    }
    // Half of the cases lie in the domain; a solver that refuses everything must not pass.
    assert!(answered as u64 > CASES, "only {answered} answers in {CASES} cases");
}
