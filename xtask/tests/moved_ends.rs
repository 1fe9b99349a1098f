//! The prover does not say "proven" of a wrong end: every kind of claim with an end moved to the wrong side.
//!
//! The solver's interval [l, u] is proven first. Then u is moved below l, and l above u, by three widths: the truth lies
//! between them, so both are wrong, however little. They must not be proven; moved by a fifth they must be found wrong.

use accounting::{Questions, account};
use prover::{Limit, Outcome, prove_within};
use vocabulary::{
    Adjacency, Claim, Direction, Drawing, Interval, LensName, Matrix, Quantity, Run, RunBuilder,
    Sampling,
};

const LIMIT: Limit = Limit::Work(4000.0);

fn built(builder: RunBuilder) -> Run {
    builder.build().unwrap()
}

fn with(claim: &Claim, lower: f64, upper: f64) -> Claim {
    let mut moved = claim.clone();
    moved.interval = Interval { lower, value: claim.interval.value, upper };
    moved
}

/// Claims of one lens, each with its ends moved, the value says where to look and stays; and how the ends were proven.
fn check(name: &str, run: &Run, lens: LensName, quantities: &[Quantity]) -> String {
    check_at(name, run, lens, quantities, 0.02)
}

/// The same with powers at another rate.
fn check_at(name: &str, run: &Run, lens: LensName, quantities: &[Quantity], fpr: f64) -> String {
    let mut routes = String::new();
    let questions = Questions {
        lenses: vec![lens],
        quantities: quantities.to_vec(),
        deltas: vec![1e-6],
        epsilons: vec![0.7],
        fprs: vec![fpr],
        priors: vec![0.05],
        attack_priors: vec![0.3],
        directions: true,
        ..Questions::default()
    };
    let answer = account(run, &questions).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!answer.claims.is_empty(), "{name}");
    for claim in &answer.claims {
        let label =
            format!("{name} {} {:?} {:?}", claim.quantity.as_str(), claim.direction, claim.at);
        let ends = claim.interval;
        let proof = prove_within(run, claim, LIMIT);
        assert_eq!(proof.outcome, Outcome::Proven, "{label}: {proof:?}");
        for end in [&proof.lower, &proof.upper] {
            routes.push_str(&format!("{}; {}\n", end.statement, end.path));
        }
        let width = (ends.upper - ends.lower).max(8.0 * f64::EPSILON * ends.upper);
        if ends.upper == 0.0 {
            // No outcome leaks that much: 0 is the truth.
            continue;
        }
        let ask = |lower: f64, upper: f64| prove_within(run, &with(claim, lower, upper), LIMIT);
        let (low, high) = (ends.lower - 3.0 * width, ends.upper + 3.0 * width);
        let upper = ask(low - width, low).upper;
        assert_ne!(upper.outcome, Outcome::Proven, "{label}, upper end {low}: {upper:?}");
        let lower = ask(high, high + width).lower;
        assert_ne!(lower.outcome, Outcome::Proven, "{label}, lower end {high}: {lower:?}");
        let (low, high) = (0.8 * ends.lower, 1.25 * ends.upper);
        if low > 0.0 {
            let upper = ask(0.5 * low, low).upper;
            // That no line is above all stopping times is not shown.
            let lines = lens == LensName::LastIterateMax
                && matches!(claim.quantity, Quantity::Tpr | Quantity::Reconstruction)
                && claim.direction == Direction::Both;
            let expected = if lines { Outcome::Undecided } else { Outcome::Wrong };
            assert_eq!(upper.outcome, expected, "{label}, upper end {low}: {upper:?}");
        }
        let lower = ask(high, 2.0 * high).lower;
        assert_eq!(lower.outcome, Outcome::Wrong, "{label}, lower end {high}: {lower:?}");
    }
    routes
}

const PLAIN: [Quantity; 5] = [
    Quantity::Epsilon,
    Quantity::Delta,
    Quantity::Advantage,
    Quantity::BayesSecurity,
    Quantity::AttackAccuracy,
];
const ALL: [Quantity; 8] = [
    Quantity::Epsilon,
    Quantity::Delta,
    Quantity::Advantage,
    Quantity::BayesSecurity,
    Quantity::AttackAccuracy,
    Quantity::Tpr,
    Quantity::Reconstruction,
    Quantity::Mu,
];

#[test]
fn coins_and_gaussians() {
    let poisson = built(Run::builder().phase(1.1, 0.02, 300));
    check("Poisson", &poisson, LensName::Composition, &ALL);
    let routes = check("last iterate", &poisson, LensName::LastIterate, &ALL);
    assert!(routes.contains("shifts of one normal law"), "{routes}");
    check("full batch", &poisson, LensName::FullBatch, &ALL);
    let phases = built(Run::builder().phase(2.0, 1.0, 3).phase(1.5, 0.05, 100).group_size(2));
    check("phases of a group", &phases, LensName::Composition, &PLAIN);
    let replaced = built(Run::builder().phase(1.3, 0.03, 200).adjacency(Adjacency::Substitute));
    check("replaced", &replaced, LensName::Composition, &ALL);
    let one = built(Run::builder().phase(0.9, 0.1, 1));
    check("one step", &one, LensName::Composition, &ALL);
    let one = built(Run::builder().phase(0.9, 0.1, 1).adjacency(Adjacency::Substitute));
    check("one step, replaced", &one, LensName::Composition, &ALL);
}

#[test]
fn stopping_times() {
    let run = built(Run::builder().phase(3.0, 0.1, 400));
    check("maximum", &run, LensName::LastIterateMax, &PLAIN);
    let routes = check("mu of the maximum", &run, LensName::LastIterateMax, &[Quantity::Mu]);
    assert!(routes.contains("shifts of one normal law"), "{routes}");
    // No stopping time alone has the power of all of them.
    let run = built(Run::builder().phase(0.22, 0.224, 3));
    let routes = check_at("hull", &run, LensName::LastIterateMax, &[Quantity::Tpr], 1.6e-4);
    assert!(routes.contains("of every stopping time together"), "{routes}");
}

#[test]
fn few_steps_with_an_atom() {
    let fixed = Run::builder().sampling(Sampling::FixedSize).dataset_size(1000);
    let fixed = fixed.adjacency(Adjacency::Substitute).phase(9.0, 0.02, 2);
    let quantities = [Quantity::Advantage, Quantity::BayesSecurity];
    let routes = check("few steps", &built(fixed), LensName::Composition, &quantities);
    assert!(routes.contains("runs of few steps beside the atom"), "{routes}");
}

#[test]
fn powers_of_chains() {
    let powers = [Quantity::Tpr, Quantity::Reconstruction];
    let chain = |adjacency: Adjacency, group: u32| {
        let run = Run::builder().sampling(Sampling::BallsAndBins).adjacency(adjacency);
        let run = built(run.group_size(group).phase(1.5, 0.05, 1));
        check("powers of a chain", &run, LensName::Composition, &powers)
    };
    for routes in [chain(Adjacency::Substitute, 1), chain(Adjacency::ZeroOut, 3)] {
        assert!(routes.contains("by every slope"), "{routes}");
    }
}

#[test]
fn batches_as_people_draw_them() {
    let drawn = |sampling: Sampling, adjacency: Adjacency| {
        Run::builder().sampling(sampling).adjacency(adjacency)
    };
    let shuffled = built(drawn(Sampling::Shuffle, Adjacency::ZeroOut).phase(2.0, 0.01, 230));
    check("shuffled", &shuffled, LensName::Composition, &ALL);
    for (adjacency, quantities) in
        [(Adjacency::AddRemove, &ALL[..]), (Adjacency::Substitute, &PLAIN[..])]
    {
        let fixed = drawn(Sampling::FixedSize, adjacency).dataset_size(10_000);
        let fixed = built(fixed.phase(3.0, 0.05, 800));
        check("fixed size", &fixed, LensName::Composition, quantities);
        let drawing = Drawing { max_batch_size: Some(60), ..Drawing::default() };
        let cut = drawn(Sampling::TruncatedPoisson, adjacency).dataset_size(1000);
        let cut = built(cut.drawing(drawing).phase(3.0, 0.05, 800));
        check("truncated", &cut, LensName::Composition, &PLAIN);
    }
    let matrix = Matrix {
        toeplitz: vec![1.0, 0.5, 0.2],
        uses: Some(4),
        separation: Some(5),
        ..Matrix::default()
    };
    let correlated = Run::builder().sampling(Sampling::Full).matrix(matrix).phase(3.0, 1.0, 40);
    check("correlated", &built(correlated), LensName::Composition, &ALL);
}

#[test]
fn balls_and_bins() {
    let thrown = |adjacency: Adjacency, steps: u64| {
        let run = Run::builder().sampling(Sampling::BallsAndBins).adjacency(adjacency);
        built(run.phase(1.5, 0.05, steps))
    };
    // Whole epochs, a broken one, less than one; and a chain of two links.
    check("whole epochs", &thrown(Adjacency::AddRemove, 60), LensName::Composition, &PLAIN);
    check("broken epochs", &thrown(Adjacency::ZeroOut, 47), LensName::Composition, &PLAIN);
    check("part of an epoch", &thrown(Adjacency::AddRemove, 17), LensName::Composition, &PLAIN);
    check("replaced", &thrown(Adjacency::Substitute, 60), LensName::Composition, &PLAIN);
}
