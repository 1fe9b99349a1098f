//! Long lists of phases: a schedule lies between the runs of its least and its most noise.

use accounting::directions;
use accounting::pairs::Composed;
use vocabulary::{Direction, Run};

#[test]
fn a_thousand_noise_levels_lie_between_their_ends() {
    let run = |noise: &dyn Fn(u32) -> f64, phases: u32, steps: u64| {
        (0..phases)
            .fold(Run::builder(), |run, phase| run.phase(noise(phase), 0.01, steps))
            .build()
            .unwrap()
    };
    let epsilon = |run: &Run| {
        directions::epsilon(&Composed::for_run(run).unwrap(), 1e-5, Direction::Both).unwrap()
    };
    // From 1 to 1 + 1e-6 in a thousand steps, each ten times.
    let schedule = epsilon(&run(&|phase| 1.0 + 1e-9 * f64::from(phase), 1000, 10));
    let [most, least] = [1.0, 1.0 + 1e-6].map(|noise| epsilon(&run(&|_| noise, 1, 10_000)));
    assert!(schedule.lower <= most.upper && least.lower <= schedule.upper, "{schedule:?}");
    assert!(schedule.relative_width() < 1e-9, "{schedule:?}");
}
