//! What every lens and every pair promises, whichever it is. A new lens or pair is in these tests
//! as soon as it is in its table.

use crate::support::pair_laws::{self, ordered, overlap};
use accounting::curve::{CurveKind, CurveRequest, curve};
use accounting::hidden_state::Loss;
use accounting::lenses::{self, Lens, View};
use accounting::pairs::{
    BinomialGaussian, Composed, Gaussian, LastIterateMax, LatticeBracket, LatticeOptions, TwoPoint,
};
use accounting::{
    AccountingError, Order, Pair, Questions, Subject, Target, Unknown, account, calibrate,
    directions, schemes,
};
use vocabulary::{
    Adjacency, Direction, Drawing, FurtherRelease, Interval, LensName, Matrix, Phase, Release, Run,
    RunBuilder, Sampling, Standing,
};

const DELTA: f64 = 1e-5;

fn drawn(sampling: Sampling, adjacency: Adjacency) -> RunBuilder {
    Run::builder().phase(2.0, 0.05, 60).sampling(sampling).adjacency(adjacency).dataset_size(1000)
}

/// One run of each kind: every scheme, every relation, groups, phases.
fn runs() -> Vec<(&'static str, Run)> {
    use Adjacency::{AddRemove, Substitute, ZeroOut};
    let poisson = |adjacency| drawn(Sampling::Poisson, adjacency);
    let full = || Run::builder().phase(4.0, 1.0, 20).sampling(Sampling::Full);
    let largest = Drawing { max_batch_size: Some(70), ..Drawing::default() };
    let cycle = Drawing { cycle_length: Some(5), ..Drawing::default() };
    let further = FurtherRelease { noise: 8.0, sensitivity: 1.0 };
    let bands = Matrix { bands: Some(5), ..Matrix::default() };
    vec![
        ("poisson", poisson(AddRemove)),
        ("zeroed out", poisson(ZeroOut)),
        ("replaced", poisson(Substitute)),
        ("group", poisson(AddRemove).group_size(2)),
        ("two phases", poisson(AddRemove).phase(1.5, 0.02, 30)),
        ("one step", Run::builder().phase(0.8, 0.1, 1)),
        ("little noise", Run::builder().phase(0.31, 0.9, 40)),
        ("full", full()),
        ("full, replaced", full().adjacency(Substitute)),
        ("shuffled", drawn(Sampling::Shuffle, ZeroOut)),
        ("shuffled, added", drawn(Sampling::Shuffle, AddRemove)),
        ("fixed size", drawn(Sampling::FixedSize, Substitute)),
        ("fixed size, removed", drawn(Sampling::FixedSize, AddRemove)),
        ("fixed size, one step", Run::builder().phase(1.0, 0.1, 1).sampling(Sampling::FixedSize)),
        ("balls and bins", drawn(Sampling::BallsAndBins, AddRemove)),
        (
            "balls and bins, a part of an epoch",
            Run::builder()
                .phase(2.0, 0.05, 50)
                .sampling(Sampling::BallsAndBins)
                .adjacency(Substitute),
        ),
        ("truncated", drawn(Sampling::TruncatedPoisson, AddRemove).drawing(largest)),
        ("cyclic", drawn(Sampling::CyclicPoisson, AddRemove).drawing(cycle)),
        ("in order", drawn(Sampling::InOrder, ZeroOut)),
        ("two releases per step", poisson(AddRemove).releases([further])),
        (
            "correlated noise",
            drawn(Sampling::CyclicPoisson, AddRemove).drawing(cycle).matrix(bands),
        ),
    ]
    .into_iter()
    .map(|(name, builder)| (name, builder.build().unwrap()))
    .collect()
}

fn losses() -> Vec<Option<Loss>> {
    let loss = |strong_convexity, diameter| Loss {
        learning_rate: 0.1,
        smoothness: 5.0,
        strong_convexity,
        diameter,
    };
    vec![None, Some(loss(1.0, None)), Some(loss(0.0, None)), Some(loss(0.0, Some(2.0)))]
}

/// Every lens that holds, with what it sees.
fn views() -> Vec<(String, &'static Lens, Run, View)> {
    let loss = losses()[1];
    let mut all = Vec::new();
    for (name, run) in runs() {
        for lens in lenses::ALL {
            let subject = Subject { loss: loss.as_ref(), ..Subject::from(&run) };
            if let Ok(view) = lens.look(subject) {
                all.push((format!("{} of {name}", lens.name), lens, run.clone(), view));
            }
        }
    }
    assert!(all.len() > 80, "only {} views", all.len());
    all
}

/// Every pair, with its name. Those of schemes, by the runs whose pair or lower end they are: `FromProfile` (shuffled),
/// `Part` and `EitherWay` (balls and bins with a part of an epoch, replaced), `OneStep` and `Larger` (fixed size),
/// `Between` (two releases per step), `LowerEnds` (shuffled, from below). `Session` is what both orders of `Composed` share.
/// Those of games are in that crate's suite: `ShiftedGaussians`, `QuadraticPair`.
fn pairs() -> Vec<(String, Box<dyn Pair>)> {
    let run = &runs()[0].1;
    let mut all: Vec<(String, Box<dyn Pair>)> = vec![
        ("composed".into(), Box::new(Composed::for_run(run).unwrap())),
        ("last iterate".into(), Box::new(BinomialGaussian::for_run(run).unwrap())),
        ("largest last iterate".into(), Box::new(LastIterateMax::for_run(run).unwrap())),
        ("gaussian".into(), Box::new(Gaussian::new(0.8).unwrap())),
        ("two points".into(), Box::new(TwoPoint::new(1.0, 1e-6).unwrap())),
        (
            "lattice".into(),
            Box::new(LatticeBracket::for_run(run, LatticeOptions::default()).unwrap()),
        ),
    ];
    for (name, run) in runs() {
        if let Ok(pair) = schemes::pair(&run) {
            all.push((format!("the scheme's pair, {name}"), pair));
        }
        if let Some(pair) = schemes::at_least(&run) {
            all.push((format!("the scheme's lower end, {name}"), pair));
        }
    }
    all
}

#[test]
fn a_lens_says_that_it_holds_exactly_when_it_does() {
    for (name, run) in runs() {
        for loss in losses() {
            let subject = Subject { loss: loss.as_ref(), ..Subject::from(&run) };
            for lens in lenses::ALL {
                let refused = match lens.look(subject) {
                    Err(AccountingError::Unsupported(reason)) => Some(reason),
                    _ => None,
                };
                let said = lens.supports(subject).err();
                assert_eq!(said, refused, "{} of {name}, {loss:?}", lens.name);
            }
        }
    }
}

#[test]
fn ends_enclose_the_value() {
    for (name, _, _, view) in views() {
        for found in [
            view.epsilon(DELTA, Direction::Both),
            view.delta(0.5, Direction::Both),
            view.advantage(),
            view.bayes_security(),
            view.tpr(0.01, Direction::Both),
        ] {
            match found {
                Ok(found) => ordered(&name, &found),
                Err(AccountingError::Unsupported(_)) => {}
                Err(error) => panic!("{name}: {error}"),
            }
        }
    }
}

/// The answer for both orders is the larger of the two.
#[test]
fn both_orders_are_the_worse_one() {
    for (name, _, _, view) in views().into_iter().filter(|(.., view)| view.has_directions()) {
        let ask = |direction| view.epsilon(DELTA, direction).unwrap();
        let (add, remove) = (ask(Direction::Add), ask(Direction::Remove));
        overlap(&name, &ask(Direction::Both), &add.max(remove));
    }
}

/// A pair whose orders have changed their names. Of most pairs removing leaks more; of these adding does.
struct Renamed<'a>(&'a dyn Pair);

impl Renamed<'_> {
    fn ask<T>(&self, order: Order, ask: impl FnOnce(&dyn Pair, Order) -> T) -> T {
        ask(self.0, if order == Order::Add { Order::Remove } else { Order::Add })
    }
}

type Found = Result<Interval, AccountingError>;

impl Pair for Renamed<'_> {
    fn delta(&self, epsilon: f64, order: Order) -> Found {
        self.ask(order, |pair, order| pair.delta(epsilon, order))
    }
    fn one_minus_delta(&self, epsilon: f64, order: Order) -> Found {
        self.ask(order, |pair, order| pair.one_minus_delta(epsilon, order))
    }
    fn epsilon(&self, delta: f64, order: Order) -> Found {
        self.ask(order, |pair, order| pair.epsilon(delta, order))
    }
    fn tpr(&self, fpr: f64, order: Order) -> Found {
        self.ask(order, |pair, order| pair.tpr(fpr, order))
    }
    fn fnr(&self, fpr: f64, order: Order) -> Found {
        self.ask(order, |pair, order| pair.fnr(fpr, order))
    }
}

#[test]
fn both_orders_have_no_first() {
    let both = Direction::Both;
    for (name, pair) in pairs() {
        let (pair, renamed) = (pair.as_ref(), &Renamed(pair.as_ref()));
        let epsilon = directions::epsilon(pair, DELTA, both).unwrap();
        overlap(&name, &epsilon, &directions::epsilon(renamed, DELTA, both).unwrap());
        let delta = directions::delta(pair, 0.5, both).unwrap();
        overlap(&name, &delta, &directions::delta(renamed, 0.5, both).unwrap());
    }
}

#[test]
fn pairs_keep_their_promises() {
    for scheme in schemes::ALL {
        let drawn = runs().iter().any(|(_, run)| run.sampling() == scheme.sampling);
        assert!(drawn, "{}: no run of these suites is drawn so", scheme.sampling.words());
    }
    for (name, pair) in pairs() {
        pair_laws::all(&name, pair.as_ref());
    }
}

/// Delta at a lens's epsilon is on the right side of what was asked, and epsilon at its delta; whatever the lens makes of
/// the run. The laws of pairs are closer, and bounds and enclosures are no pairs.
#[test]
fn epsilon_and_delta_of_a_lens_invert_each_other() {
    for (name, _, _, view) in views() {
        for direction in [Direction::Both, Direction::Add, Direction::Remove] {
            if direction != Direction::Both && !view.has_directions() {
                continue;
            }
            let epsilon = match view.epsilon(DELTA, direction) {
                Err(AccountingError::Unsupported(_)) => continue,
                found => found.unwrap(),
            };
            if epsilon.upper.is_finite() {
                let delta = view.delta(epsilon.upper, direction).unwrap();
                let most = DELTA * (1.0 + 1e-9);
                assert!(delta.lower <= most, "{name}, {direction:?}: {epsilon:?} {delta:?}");
                // A bound says nothing from below, but both of its ends come from one profile.
                let bound = matches!(view, View::Bound(_));
                assert!(
                    !bound || delta.upper <= 1.000_001 * DELTA,
                    "{name}: {epsilon:?} {delta:?}"
                );
            }
            if epsilon.lower > 0.0 {
                let delta = view.delta(epsilon.lower, direction).unwrap();
                let least = DELTA * (1.0 - 1e-9);
                assert!(delta.upper >= least, "{name}, {direction:?}: {epsilon:?} {delta:?}");
            }
        }
    }
}

/// What is proven about all iterates is never below what they leak at least, whichever lens proves it.
#[test]
fn what_is_proven_encloses_the_worst_case() {
    let mut compared = 0;
    for (name, lens, run, view) in views() {
        let proven =
            lens.standing(&run) == Standing::Proven && lens.release == Release::AllIterates;
        if !proven || lens.name == LensName::SIGNED {
            continue;
        }
        let signed = Lens::named(LensName::SIGNED).look(&run).unwrap();
        let truth = signed.at_least().unwrap_or(&signed);
        let mut above = |what: &str, ask: &dyn Fn(&View) -> Result<Interval, AccountingError>| {
            let Ok(found) = ask(&view) else { return };
            compared += 1;
            let least = ask(truth).unwrap();
            assert!(found.upper >= least.lower, "{what}, {name}: {found:?} below {least:?}");
        };
        above("epsilon", &|view| view.epsilon(DELTA, Direction::Both));
        above("delta", &|view| view.delta(0.5, Direction::Both));
        above("advantage", &View::advantage);
        for fpr in [0.01, 0.21] {
            above("power", &|view| view.tpr(fpr, Direction::Both));
        }
    }
    assert!(compared > 30, "only {compared}");
}

/// The curve of a lens falls, is convex and never above guessing.
#[test]
fn the_trade_off_of_a_lens_is_convex() {
    let mut curves = 0;
    for (name, _, _, view) in views() {
        let at = |fpr: f64| match view.fnr(fpr, Direction::Both) {
            Err(AccountingError::Unsupported(_)) => None,
            found => Some(found.unwrap_or_else(|error| panic!("{name} at {fpr}: {error}"))),
        };
        let (Some(left), Some(middle), Some(right)) = (at(0.02), at(0.21), at(0.4)) else {
            continue;
        };
        curves += 1;
        let line = 0.5 * (left.upper + right.upper);
        assert!(middle.lower <= line + 1e-12, "{name}: {middle:?} above {line}");
        assert!(right.lower <= middle.upper && middle.lower <= left.upper, "{name} rises");
        assert!(middle.lower <= 0.79 + 1e-12, "{name}: worse than guessing");
        let power = view.tpr(0.21, Direction::Both).unwrap().map_decreasing(|tpr| 1.0 - tpr);
        let slack = 8.0 * f64::EPSILON;
        let (lower, upper) = (power.lower - slack, power.upper + slack);
        overlap(&name, &middle, &Interval { lower, upper, ..power });
    }
    assert!(curves > 60, "only {curves} curves");
}

/// More noise never leaks more, nor do fewer steps; of the last iterate alone fewer steps may.
#[test]
fn more_noise_and_fewer_steps_leak_less() {
    for (name, run) in runs() {
        let [phase] = run.phases() else { continue };
        let changed = |noise: f64, steps: u64| {
            let mut phase = *phase;
            (phase.noise_multiplier, phase.steps) = (phase.noise_multiplier * noise, steps);
            run.with_phases(vec![phase]).unwrap()
        };
        let louder = changed(1.3, phase.steps);
        let shorter = changed(1.0, (phase.steps / 3).max(1));
        for lens in lenses::ALL {
            let leak = |run: &Run| {
                let view = lens.look(run).ok()?;
                match view.epsilon(DELTA, Direction::Both) {
                    Err(AccountingError::Unsupported(_)) => view.advantage().ok(),
                    found => Some(found.unwrap()),
                }
            };
            let Some(base) = leak(&run) else { continue };
            let less = |what: &str, run: &Run| {
                let Some(found) = leak(run) else { return };
                let (lower, upper) = (found.lower, base.upper * (1.0 + 1e-12));
                assert!(
                    lower <= upper,
                    "{what} leaks more: {} of {name}: {found:?} {base:?}",
                    lens.name
                );
                if found.value.is_finite() && base.value.is_finite() {
                    let slack = 1e-6 * base.value.abs() + 1e-12;
                    assert!(found.value <= base.value + slack, "{what}: {} of {name}", lens.name);
                }
            };
            less("more noise", &louder);
            if lens.name != LensName::LastIterate {
                less("fewer steps", &shorter);
            }
        }
    }
}

/// A run that may stop at any step leaks at least what it leaks at each of them.
#[test]
fn the_largest_last_iterate_is_at_least_that_of_every_stop() {
    let run = Run::builder().phase(0.7764, 0.01, 20).build().unwrap();
    let largest = Lens::named(LensName::LastIterateMax).look(&run).unwrap();
    let largest = largest.epsilon(1e-6, Direction::Both).unwrap();
    for steps in 1..=20 {
        let run = run.with_phases(vec![Phase { steps, ..run.phases()[0] }]).unwrap();
        let stopped = Lens::named(LensName::LastIterate).look(&run).unwrap();
        let stopped = stopped.epsilon(1e-6, Direction::Both).unwrap();
        assert!(stopped.lower <= largest.upper, "{steps}: {stopped:?} above {largest:?}");
    }
}

/// A lens that does not hold says so, with the same reason, wherever it is asked.
#[test]
fn a_refusal_is_a_refusal_everywhere() {
    let mut refusals = 0;
    for (name, run) in runs() {
        let questions = Questions {
            deltas: vec![DELTA],
            quantities: vec![vocabulary::Quantity::Epsilon],
            ..Questions::default()
        };
        let everything = account(&run, &questions);
        for lens in lenses::ALL {
            let Err(reason) = lens.supports(&run) else { continue };
            refusals += 1;
            let told = |error: AccountingError| match error {
                AccountingError::Unsupported(text) => {
                    assert_eq!(
                        text,
                        reason.clone().of(lens.name),
                        "{} of {name}: {text}",
                        lens.name
                    );
                }
                other => panic!("{} of {name}: {other}", lens.name),
            };
            if let Ok(everything) = &everything {
                let listed = everything.unsupported.iter().find(|entry| entry.lens == lens.name);
                let listed = listed.map(|entry| entry.reason.clone());
                assert_eq!(listed, Some(reason.to_string()), "{name}");
                assert!(!everything.claims.iter().any(|claim| claim.source == lens.name));
            }
            let only = Questions { lenses: vec![lens.name], ..questions.clone() };
            told(account(&run, &only).unwrap_err());
            let request = CurveRequest {
                kind: CurveKind::Profile,
                lenses: vec![lens.name],
                direction: Direction::Both,
                delta: None,
                at: vec![1.0],
                first: 1,
                points: 2,
            };
            told(curve(&run, &request).unwrap_err());
            // What is solved for may be the very reason.
            let other = run.phases().iter().map(|phase| Phase { noise_multiplier: 50.0, ..*phase });
            let other = run.with_phases(other.collect()).unwrap();
            if run.phases().len() == 1 && lens.supports(&other).is_err() {
                let target = Target::Epsilon { epsilon: 1.0, delta: DELTA };
                let noise = Unknown::NoiseMultiplier;
                told(calibrate(&run, noise, &target, lens.name, &[]).unwrap_err());
            }
        }
    }
    assert!(refusals > 40, "only {refusals}");
}
