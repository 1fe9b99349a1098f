//! Lower ends of the worst case, and ends far out, for ways to draw batches.

use accounting::curve::{CurveKind, CurvePoint, CurveRequest, curve};
use accounting::{Target, Unknown, calibrate};
use accounting::{directions, patience, schemes};
use vocabulary::{Adjacency, Direction, Drawing, LensName, Permutation, Run, Sampling};

/// The proven lower and upper end of epsilon at delta 1e-5 in shuffled batches, 100 per epoch, at noise 2.
fn shuffled(steps: u64, permutation: Permutation, adjacency: Adjacency) -> (f64, f64) {
    let run = Run::builder()
        .phase(2.0, 0.01, steps)
        .sampling(Sampling::Shuffle)
        .drawing(Drawing { permutation, ..Drawing::default() })
        .adjacency(adjacency)
        .build()
        .unwrap();
    let (below, above) = (schemes::at_least(&run).unwrap(), schemes::pair(&run).unwrap());
    let least = directions::epsilon(below.as_ref(), 1e-5, Direction::Both).unwrap().lower;
    let most = directions::epsilon(above.as_ref(), 1e-5, Direction::Both).unwrap().upper;
    assert!(0.0 < least && least <= most, "{steps} {permutation:?} {adjacency:?}: {least} {most}");
    (least, most)
}

/// A shuffled part of an epoch has a lower end too: not below that of the whole epochs before it.
#[test]
fn parts_of_shuffled_epochs() {
    let ends =
        [50, 100, 150, 200].map(|steps| shuffled(steps, Permutation::Fresh, Adjacency::ZeroOut).0);
    assert!(ends.is_sorted(), "{ends:?}");
}

/// Replaced in shuffled batches, a record moves its batch by 2 where all others are opposed: balls and bins at half the
/// noise, and with one order for all epochs most of the upper end.
#[test]
fn shuffled_and_replaced() {
    // The reference of balls and bins at noise 1: 1.7014984358.
    let (fresh, _) = shuffled(1000, Permutation::Fresh, Adjacency::Substitute);
    assert!(fresh > 1.7 && fresh <= 1.70149844, "{fresh}");
    assert!(fresh > shuffled(1000, Permutation::Fresh, Adjacency::ZeroOut).0);
    // One order for all epochs: mu of 10 epochs at this noise, less what it takes to find the batch of 100.
    let (kept, most) = shuffled(1000, Permutation::Kept, Adjacency::Substitute);
    assert!(kept > most - 100f64.ln() - 0.05, "{kept} of {most}");
}

fn with_replacement(noise: f64) -> Run {
    Run::builder()
        .phase(noise, 0.01, 1000)
        .dataset_size(10_000)
        .sampling(Sampling::FixedSize)
        .drawing(Drawing { replacement: true, ..Drawing::default() })
        .build()
        .unwrap()
}

/// Where one order is so far out that no line is certified, a bound on it is enough: the other one decides.
#[test]
fn far_out_in_one_order() {
    for noise in [2.0, 5.0] {
        let pair = schemes::pair(&with_replacement(noise)).unwrap();
        let delta = directions::delta(pair.as_ref(), 5.0, Direction::Both).unwrap();
        assert!(
            delta.upper <= delta.lower * (1.0 + 1e-3) || delta.upper < 1e-12,
            "{noise}: {delta:?}"
        );
        let added = directions::delta(pair.as_ref(), 5.0, Direction::Add).unwrap();
        assert!(added.upper < 1e-9, "{noise}: {added:?}");
    }
}

/// So that noise is found for it.
#[test]
fn noise_for_draws_with_replacement() {
    let target = Target::Epsilon { epsilon: 5.0, delta: 1e-5 };
    let solved = calibrate(
        &with_replacement(1.0),
        Unknown::NoiseMultiplier,
        &target,
        LensName::Composition,
        &[],
    )
    .unwrap();
    let noise = solved.run.phases()[0].noise_multiplier;
    // 1.4466: epsilon there is 5, by bisection of `account`.
    assert!((1.446..1.447).contains(&noise), "{noise}");
}

fn steps(run: &Run, points: usize) -> accounting::curve::Curve {
    let request = CurveRequest {
        kind: CurveKind::Steps,
        lenses: vec![LensName::Composition],
        direction: Direction::Both,
        delta: Some(1e-5),
        at: Vec::new(),
        first: 1,
        points,
    };
    curve(run, &request).unwrap()
}

/// What is proven for whole epochs alone has a curve over them.
#[test]
fn curves_over_whole_epochs() {
    let run = Run::builder()
        .phase(2.0, 0.05, 200)
        .sampling(Sampling::BallsAndBins)
        .drawing(Drawing { uses_per_epoch: Some(2), ..Drawing::default() })
        .adjacency(Adjacency::ZeroOut)
        .build()
        .unwrap();
    let counts: Vec<u64> = steps(&run, 8)
        .line
        .points
        .iter()
        .map(|point| match point {
            CurvePoint::Steps { steps, .. } => *steps,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(counts.iter().all(|count| count % 20 == 0), "{counts:?}");
    assert!(counts.len() > 2 && counts.is_sorted() && counts.last() == Some(&200), "{counts:?}");
}

/// A limit of time leaves out few steps, which cost most, and says so.
#[test]
fn curves_within_a_limit() {
    let run =
        Run::builder().phase(2.0, 0.01, 1000).adjacency(Adjacency::Substitute).build().unwrap();
    let found = patience::budget(0.05, || steps(&run, 30));
    assert!(found.line.points.len() > 2, "{found:?}");
    assert!(found.warnings.iter().any(|text| text.contains("time limit")), "{:?}", found.warnings);
    let Some(CurvePoint::Steps { steps, .. }) = found.line.points.last() else {
        panic!("{found:?}")
    };
    assert_eq!(*steps, 1000);
}
