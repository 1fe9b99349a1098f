//! Ends that are known to be wrong are proven wrong, and the truth is proven right.
//!
//! The wrong ends are intervals that version 0.1.0 gave; the truths were computed with ball
//! arithmetic of another library (Arb) or 40-digit quadrature from the exact doubles.

use prover::{Outcome, prove};
use vocabulary::{Adjacency, Claim, Run, Sampling};

type Phases<'a> = &'a [(f64, f64, u64)];

fn run(phases: Phases<'_>, group: u32, adjacency: Adjacency) -> Run {
    let builder = Run::builder().group_size(group).adjacency(adjacency);
    phases.iter().fold(builder, |builder, p| builder.phase(p.0, p.1, p.2)).build().unwrap()
}

fn claim(lens: &str, direction: &str, quantity: &str, at: (&str, f64), ends: (f64, f64)) -> Claim {
    let mut place = serde_json::Map::new();
    if !at.0.is_empty() {
        place.insert(at.0.into(), at.1.into());
    }
    serde_json::from_value(serde_json::json!({
        "lens": lens, "release": "all-iterates", "secret": "membership", "direction": direction,
        "adjacency": "add-remove",
        "quantity": quantity, "at": place, "standing": "proven", "side": "upper",
        "value": 0.5 * (ends.0 + ends.1), "lower": ends.0, "upper": ends.1, "assumptions": []
    }))
    .unwrap()
}

/// (lower end's, upper end's) outcome.
fn outcomes(run: &Run, claim: &Claim) -> (Outcome, Outcome) {
    let proof = prove(run, claim);
    (proof.lower.outcome, proof.upper.outcome)
}

/// Phi(Phi^-1(0.001) + 1), mpmath at 50 digits.
const POWER: f64 = 0.018298468405656598298485690043607350763849602125314;

const RIGHT: (Outcome, Outcome) = (Outcome::Proven, Outcome::Proven);

struct Case<'a> {
    phases: Phases<'a>,
    group: u32,
    direction: &'a str,
    quantity: &'a str,
    at: (&'a str, f64),
    wrong: (f64, f64),
    /// Which ends of `wrong` are wrong: lower, upper.
    which: (bool, bool),
    right: (f64, f64),
}

#[test]
fn wrong_ends_are_found_and_the_truth_is_proven() {
    let none = ("", 0.0);
    let two = [
        (0.5876059344697525, 0.0012095671377026565, 1),
        (2.861670399396739, 0.9999988157265957, 1),
    ];
    let other =
        [(1.4196954105174906, 0.033043115599539465, 1), (2.126400871809939, 0.9999993361458324, 1)];
    let mixed = [(1.9735394612835808, 1.0, 1), (5.642270326355798, 0.2602181242236303, 10)];
    let cases = [
        Case {
            phases: &two,
            group: 1,
            direction: "both",
            quantity: "advantage",
            at: none,
            wrong: (0.1387147342426236, 0.13871473432495468),
            which: (false, true),
            right: (0.13871473432908813, 0.13871473432908818),
        },
        Case {
            phases: &other,
            group: 1,
            direction: "both",
            quantity: "advantage",
            at: none,
            wrong: (0.1861773266778063, 0.18617732667900802),
            which: (false, true),
            right: (0.18617732668296670, 0.18617732668296675),
        },
        Case {
            phases: &mixed,
            group: 1,
            direction: "add",
            quantity: "delta",
            at: ("epsilon", 2.167082233921584),
            wrong: (6.394017618393685e-06, 6.39401761840791e-06),
            which: (false, true),
            right: (6.3940176188747060e-06, 6.3940176188747080e-06),
        },
        Case {
            phases: &[(0.5, 1.0, 1), (1.0, 0.01, 100)],
            group: 1,
            direction: "both",
            quantity: "bayes-security",
            at: none,
            wrong: (0.31631067272, 0.31631067282),
            which: (true, false),
            right: (0.3163106727055, 0.3163106727065),
        },
        Case {
            phases: &[(10.0 / 11.0, 0.999, 5)],
            group: 10,
            direction: "both",
            quantity: "bayes-security",
            at: none,
            wrong: (9.889023e-33, 9.889071e-33),
            which: (true, false),
            right: (9.8868107e-33, 9.8868109e-33),
        },
        Case {
            phases: &[(4.0, 1.0, 1), (5.0, 0.3, 10)],
            group: 1,
            direction: "add",
            quantity: "delta",
            at: ("epsilon", 4.0),
            wrong: (2.628e-46, 2.629e-46),
            which: (false, true),
            right: (4.4765e-42, 4.4766e-42),
        },
        Case {
            phases: &[(1.0, 1.0, 1), (5.0, 0.3, 10)],
            group: 1,
            direction: "add",
            quantity: "delta",
            at: ("epsilon", 10.0),
            wrong: (0.999999, 0.9999999),
            which: (true, false),
            right: (5.188e-22, 5.189e-22),
        },
        Case {
            phases: &[(1.3444905367982425, 0.9124496502840092, 1)],
            group: 20,
            direction: "both",
            quantity: "delta",
            at: ("epsilon", 459.9284863896538),
            wrong: (6.937e-126, 6.938e-126),
            which: (false, true),
            right: (1.0852e-124, 1.0853e-124),
        },
        Case {
            phases: &[(2.0, 1.1e-5, 1_000_000)],
            group: 2,
            direction: "both",
            quantity: "advantage",
            at: none,
            wrong: (4.6774296156e-3, 4.677429615641e-3),
            which: (false, true),
            right: (4.67742961564753e-3, 4.67742961564754e-3),
        },
    ];
    for case in cases {
        let run = run(case.phases, case.group, Adjacency::AddRemove);
        let make = |ends| claim("composition", case.direction, case.quantity, case.at, ends);
        let expected = |wrong: bool| if wrong { Outcome::Wrong } else { Outcome::Proven };
        let found = outcomes(&run, &make(case.wrong));
        assert_eq!(found, (expected(case.which.0), expected(case.which.1)), "{:?}", case.phases);
        assert_eq!(outcomes(&run, &make(case.right)), RIGHT, "{:?}", case.phases);
    }
}

/// epsilon of a run with a full-batch phase, order add: the upper end that was certified is wrong.
#[test]
fn a_wrong_epsilon_is_found() {
    let mixed = [(1.9735394612835808, 1.0, 1), (5.642270326355798, 0.2602181242236303, 10)];
    let run = run(&mixed, 1, Adjacency::AddRemove);
    let at = ("delta", 1.017434494342773e-05);
    let wrong =
        claim("composition", "add", "epsilon", at, (2.1093267531078195, 2.1093267531084874));
    assert_eq!(outcomes(&run, &wrong), (Outcome::Proven, Outcome::Wrong));
}

/// Run, lens, direction, quantity, where it is taken, and ends around the value.
type Value<'a> = (Phases<'a>, &'a str, &'a str, &'a str, (&'a str, f64), (f64, f64));

/// Values with twelve trusted digits and more, found by other routes: quadrature, closed forms and a
/// contour in other precision.
#[test]
fn trusted_values_are_proven() {
    let near = |x: f64, digits: f64| (x * (1.0 - digits), x * (1.0 + digits));
    let cases: [Value<'_>; 8] = [
        (
            &[(1.0, 0.01, 1000)],
            "composition",
            "remove",
            "epsilon",
            ("delta", 1e-3),
            near(1.162512319862151, 1e-12),
        ),
        (
            &[(1.0, 0.01, 1000)],
            "composition",
            "add",
            "epsilon",
            ("delta", 1e-3),
            near(0.973142267470673, 1e-12),
        ),
        (
            &[(1.0, 0.1, 3)],
            "last-iterate",
            "both",
            "epsilon",
            ("delta", 1e-6),
            near(2.222410709182349786, 1e-14),
        ),
        (
            &[(0.5, 1e-3, 100_000)],
            "last-iterate",
            "both",
            "epsilon",
            ("delta", 1e-6),
            near(2.9660831, 3e-8),
        ),
        (
            &[(1.0, 1.0, 1)],
            "composition",
            "both",
            "epsilon",
            ("delta", 1e-5),
            near(4.37717809568122463, 1e-15),
        ),
        (&[(2.0, 1.0, 4)], "full-batch", "both", "mu", ("delta", 1e-5), near(1.0, 1e-12)),
        (&[(1.0, 1.0, 1)], "composition", "both", "tpr", ("fpr", 0.001), near(POWER, 1e-14)),
        (
            &[(1.0, 0.01, 1000)],
            "composition",
            "both",
            "epsilon",
            ("delta", 1e-5),
            near(1.82823666652, 1e-11),
        ),
    ];
    for (phases, lens, direction, quantity, at, ends) in cases {
        let run = run(phases, 1, Adjacency::AddRemove);
        let found = outcomes(&run, &claim(lens, direction, quantity, at, ends));
        assert_eq!(found, RIGHT, "{phases:?} {lens} {quantity}");
    }
    // Substitution: epsilon 1.2052 and a true positive rate of 0.0121, to their digits.
    let replaced = run(&[(2.0, 0.01, 1000)], 1, Adjacency::Substitute);
    let epsilon = claim("composition", "both", "epsilon", ("delta", 1e-5), (1.20519, 1.20521));
    assert_eq!(outcomes(&replaced, &epsilon), RIGHT);
    let rare = run(&[(2.0, 1e-4, 500_000)], 1, Adjacency::Substitute);
    let power = claim("composition", "both", "tpr", ("fpr", 0.01), (0.01205, 0.01215));
    assert_eq!(outcomes(&rare, &power), RIGHT);
}

/// Adding a record has a largest loss; beyond it delta is 0. A sum without bound there once counted as large, so
/// right ends were called wrong.
#[test]
fn beyond_the_largest_loss_of_adding() {
    let run_of = |phases: Phases<'_>| run(phases, 1, Adjacency::AddRemove);
    let strong = run_of(&[(0.23214609518989024, 0.036925350991464156, 2_200_815)]);
    let ends = (478920.7522614408, 478920.7522689711);
    let right = claim("composition", "both", "epsilon", ("delta", 4.568961423582305e-93), ends);
    assert_eq!(outcomes(&strong, &right), RIGHT);
    // And a lower end above the largest loss is not proven by adding alone.
    let add = claim("composition", "add", "epsilon", ("delta", 4.568961423582305e-93), ends);
    assert_ne!(outcomes(&strong, &add).0, Outcome::Proven);
    let weak = run_of(&[
        (11.866163263682997, 1.559378901012459e-6, 2321),
        (10.307895905362317, 0.012386904154750572, 127),
    ]);
    let at = ("epsilon", 1.597232216762015);
    let tiny = claim("composition", "both", "delta", at, (0.0, 2.2250738585072014e-308));
    assert_eq!(outcomes(&weak, &tiny), RIGHT);
}

/// Batches of a fixed size, replaced records: epsilon at 1e-5 and 1e-6 of runs whose values another implementation
/// (40 digits, the loss law of the symmetric profile by quadrature) gives to 14 digits; and truncated batches to four.
#[test]
fn other_ways_to_draw_batches() {
    use vocabulary::{Drawing, Sampling};
    let fixed = |noise: f64, rate: f64, steps: u64| {
        Run::builder()
            .phase(noise, rate, steps)
            .sampling(Sampling::FixedSize)
            .adjacency(Adjacency::Substitute)
            .build()
            .unwrap()
    };
    let cut = |adjacency: Adjacency| {
        Run::builder()
            .phase(2.0, 0.05, 400)
            .sampling(Sampling::TruncatedPoisson)
            .dataset_size(1000)
            .drawing(Drawing { max_batch_size: Some(60), ..Drawing::default() })
            .adjacency(adjacency)
            .build()
            .unwrap()
    };
    let cases = [
        (fixed(2.0, 0.01, 1000), 1e-5, 2.1989099488734976, 1e-12),
        (fixed(4.0, 0.01, 1000), 1e-5, 0.7185710030010795, 1e-12),
        (fixed(3.0, 0.1, 100), 1e-6, 4.4044384840574949, 1e-12),
        (cut(Adjacency::ZeroOut), 1e-5, 3.1197, 5e-5),
        (cut(Adjacency::AddRemove), 1e-5, 2.9965, 5e-5),
    ];
    for (run, delta, epsilon, within) in cases {
        let slack = within * f64::max(1.0, epsilon);
        let around = (epsilon - slack, epsilon + slack);
        let right = claim("composition", "both", "epsilon", ("delta", delta), around);
        assert_eq!(outcomes(&run, &right), RIGHT, "{:?}", prove(&run, &right));
        let too_low = (epsilon - 4.0 * slack, epsilon - 2.0 * slack);
        let wrong = claim("composition", "both", "epsilon", ("delta", delta), too_low);
        assert_eq!(outcomes(&run, &wrong), (Outcome::Proven, Outcome::Wrong));
    }
}

/// A rarely used record with little noise: only a split into low and middle outcomes reaches it. The truth is the
/// solver's, from its masked contour, to 13 digits.
#[test]
fn rarely_used_records() {
    let run = run(&[(0.3107717820489152, 3.753578712959903e-05, 297)], 1, Adjacency::AddRemove);
    let at = ("delta", 2.049040550514036e-63);
    let right = claim("composition", "both", "epsilon", at, (85.45823028236735, 85.45823028237969));
    assert_eq!(outcomes(&run, &right), RIGHT);
    let wrong = claim("composition", "both", "epsilon", at, (85.4582302824, 85.4582302825));
    assert_eq!(outcomes(&run, &wrong), (Outcome::Wrong, Outcome::Proven));
}

/// Two steps far out, where far jumps leave no room for a tilt: the outcomes above the threshold are taken out. Truths by one
/// integral of the closed form of a single step over the outcome of the other, mpmath at 40 digits, two meshes.
#[test]
fn jumps_above_the_threshold() {
    let cases = [
        (0.8, 1e-5, 1.5, Adjacency::AddRemove, 1.065_127_725_095_330_9e-27),
        (0.8, 1e-5, 1.5, Adjacency::Substitute, 1.065_234_975_108_775_3e-27),
    ];
    for (noise, rate, epsilon, adjacency, truth) in cases {
        let run = run(&[(noise, rate, 2)], 1, adjacency);
        let ends = |low: f64, high: f64| {
            let ends = (truth * (1.0 + low), truth * (1.0 + high));
            outcomes(&run, &claim("composition", "remove", "delta", ("epsilon", epsilon), ends))
        };
        assert_eq!(ends(-1e-14, 1e-14), RIGHT, "{adjacency:?}");
        assert_eq!(ends(1e-14, 2e-14), (Outcome::Wrong, Outcome::Proven), "{adjacency:?}");
        assert_eq!(ends(-2e-14, -1e-14), (Outcome::Proven, Outcome::Wrong), "{adjacency:?}");
    }
}

/// Beyond the largest loss of adding a record its delta is 0, of one step, of last iterates and of a part of an epoch.
#[test]
fn no_loss_of_adding_is_that_large() {
    let run = run(&[(2.0, 0.25, 1)], 1, Adjacency::AddRemove);
    for lens in ["composition", "last-iterate", "last-iterate-max"] {
        let ends = |epsilon: f64| {
            outcomes(&run, &claim(lens, "add", "delta", ("epsilon", epsilon), (0.0, 0.0))).1
        };
        // ln(4/3) = 0.28768.
        assert_eq!(ends(0.2877), Outcome::Proven, "{lens}");
        assert_ne!(ends(0.2876), Outcome::Proven, "{lens}");
    }
}

/// The profile of a replaced record is the same in both orders, on lines at c and at 1 - c.
#[test]
fn both_orders_of_a_symmetric_profile() {
    use prover::arithmetic::Ball;
    use prover::model::{Model, Order};
    use vocabulary::{LensName, Sampling};
    for (noise, rate, steps, epsilon) in
        [(0.7078705278612508, 0.39169271996426974, 2398, 3000.0), (2.0, 0.01, 1000, 1.5)]
    {
        let run = Run::builder()
            .phase(noise, rate, steps)
            .sampling(Sampling::FixedSize)
            .adjacency(Adjacency::Substitute)
            .build()
            .unwrap();
        let lens = Some(LensName::Composition);
        let model = Model::<2>::new(&run, run.phases(), lens, 120).unwrap();
        let at = Ball::from_f64(epsilon);
        let [one, two] =
            [Order::Remove, Order::Add].map(|order| model.delta(at, order, 0.0, 60.0).unwrap());
        assert!(!one.is_below(&two) && !two.is_below(&one), "{one:?} {two:?}");
        assert!(one.accuracy() > 50 && two.accuracy() > 50);
    }
}

/// A count with some three thousand values, of which every 45th or so is summed. Values by mpmath at 40 digits, over
/// all values within 15 deviations.
#[test]
fn long_last_iterates() {
    let run = run(&[(2.0, 0.01, 1_000_000)], 1, Adjacency::AddRemove);
    let truths = [
        ("remove", "delta", ("epsilon", 30.0), 0.000_135_146_780_288_315_28),
        ("remove", "tpr", ("fpr", 0.001), 0.971_766_194_755_842_2),
        ("add", "tpr", ("fpr", 0.001), 0.971_671_498_933_991),
    ];
    // The last stopping time is the worst here: the maximum over them has the same values.
    for lens in ["last-iterate", "last-iterate-max"] {
        for (direction, quantity, at, truth) in truths {
            let ends = |low: f64, high: f64| {
                let ends = (truth * (1.0 + low), truth * (1.0 + high));
                outcomes(&run, &claim(lens, direction, quantity, at, ends))
            };
            let what = format!("{lens} {direction} {quantity}");
            assert_eq!(ends(-3e-15, 3e-15), RIGHT, "{what}");
            assert_eq!(ends(3e-15, 6e-15), (Outcome::Wrong, Outcome::Proven), "{what}");
            assert_eq!(ends(-6e-15, -3e-15), (Outcome::Proven, Outcome::Wrong), "{what}");
        }
    }
}

/// One epoch and a part of the next: which of two bounds on a moment is smaller was once asked in doubles, and the larger one taken. The ends are the
/// solver's.
#[test]
fn a_broken_epoch() {
    let run = Run::builder()
        .phase(1.4416041208259447, 0.0003718854592785422, 4294)
        .sampling(vocabulary::Sampling::BallsAndBins)
        .build()
        .unwrap();
    let ends = |lower: f64, upper: f64| {
        outcomes(&run, &claim("composition", "remove", "epsilon", ("delta", 3e-4), (lower, upper)))
    };
    assert_eq!(ends(0.03405927051120446, 0.034060896830496346), RIGHT);
    assert_eq!(ends(0.0341, 0.0342), (Outcome::Wrong, Outcome::Proven));
    assert_eq!(ends(0.0339, 0.034), (Outcome::Proven, Outcome::Wrong));
}

/// The largest power of both orders is that of the hull over all stopping times: 0.18967567040722690, where the first step and
/// the third have the same line (mpmath at 30 digits). No stopping time alone has more than 0.1896750215.
#[test]
fn stopping_times_together_have_more_power_than_each() {
    let run = run(&[(0.2201483234849659, 0.2240510108861696, 3)], 1, Adjacency::AddRemove);
    let ends = |lower: f64, upper: f64| {
        let at = ("prior", 0.00016404545345526586);
        let claim = claim("last-iterate-max", "both", "reconstruction", at, (lower, upper));
        outcomes(&run, &claim)
    };
    let (lower, upper) = ends(0.18967567040715827, 0.18967567058648785);
    assert!(lower != Outcome::Wrong && upper != Outcome::Wrong);
    assert_ne!(ends(0.189675, 0.18967567040722).1, Outcome::Proven);
    assert_ne!(ends(0.18967567040723, 0.19).0, Outcome::Proven);
    assert_eq!(ends(0.189675, 0.1898), RIGHT);
    assert_eq!(ends(0.1898, 0.19).0, Outcome::Wrong);
}

/// No epsilon counts where delta(0) is below the delta of the claim: mu is 0 then, and not where it is above.
#[test]
fn a_mu_of_nothing() {
    let run = run(&[(2.0, 0.001, 10)], 1, Adjacency::AddRemove);
    let ends = |delta: f64| {
        outcomes(&run, &claim("composition", "both", "mu", ("delta", delta), (0.0, 0.0)))
    };
    assert_eq!(ends(0.01), RIGHT);
    assert_eq!(ends(1e-5), (Outcome::Proven, Outcome::Wrong));
}

/// A lower end may be as far below as it likes.
#[test]
fn a_lower_end_far_below() {
    let run = run(&[(2.0, 0.001, 10)], 1, Adjacency::AddRemove);
    let claim = claim("composition", "both", "advantage", ("", 0.0), (1e-200, 0.5));
    assert_eq!(outcomes(&run, &claim), RIGHT);
}

/// One step of a replaced record: its rate and its power are both those of mixtures. power - rate = q (tail((x-1)/s) - tail((x+1)/s))
/// where (1-q) tail(x/s) + q tail((x+1)/s) is the rate: 2.70164e-11; with a normal quantile for x it would be 1.53081e-11.
#[test]
fn one_step_of_a_replaced_record() {
    let one = run(&[(15.408355913574521, 2.631562484471857e-6, 1)], 1, Adjacency::Substitute);
    let rate = 1.7971936375050446e-05;
    for quantity in [("tpr", "fpr"), ("reconstruction", "prior")] {
        let at = |low: f64, high: f64| {
            let ends = (rate + low, rate + high);
            outcomes(&one, &claim("composition", "both", quantity.0, (quantity.1, rate), ends))
        };
        assert_eq!(at(2.7015e-11, 2.7018e-11), RIGHT);
        assert_ne!(at(1.52e-11, 1.54e-11).1, Outcome::Proven);
        assert_ne!(at(2.71e-11, 2.72e-11).0, Outcome::Proven);
    }
}

/// Ends of a survey that stayed undecided at any number of digits: paths were summed where the bound beside them has its peak, and E e^(-zY)
/// of balls and bins to digits of its own peak alone.
#[test]
fn digits_where_they_are_needed() {
    let phases = [
        (16.557069948059066, 0.29372127594212816, 2),
        (0.6943630854437427, 0.05712426037315577, 32),
        (4.170652207001307, 3.437784764770709e-6, 63),
    ];
    let added = run(&phases, 1, Adjacency::AddRemove);
    let ends = (2.0472150333639023, 2.047215033363999);
    let at = ("delta", 2.908147037437154e-57);
    assert_eq!(outcomes(&added, &claim("composition", "add", "epsilon", at, ends)), RIGHT);
    let rare = [
        (3.152247455313876, 1.5906344733326974e-5, 331),
        (0.2912171253737879, 8.284833152165002e-7, 98),
    ];
    let rare = run(&rare, 1, Adjacency::AddRemove);
    let ends = (6.42976328476623e-5, 6.429763285160091e-5);
    assert_eq!(outcomes(&rare, &claim("composition", "both", "advantage", ("", 0.0), ends)), RIGHT);
    let thrown = |noise: f64, rate: f64, steps: u64| {
        Run::builder()
            .sampling(Sampling::BallsAndBins)
            .adjacency(Adjacency::ZeroOut)
            .phase(noise, rate, steps)
            .build()
            .unwrap()
    };
    let ends = (1.8404168199357538, 1.84041681993651);
    let few = claim("composition", "both", "epsilon", ("delta", 6.424859863306724e-13), ends);
    assert_eq!(outcomes(&thrown(2.8098379591848204, 0.5, 2), &few), RIGHT);
    let ends = (1.4588170963302583e-5, 1.4588232904575158e-5);
    let at = ("prior", 1.4041686869268096e-5);
    let broken = claim("composition", "both", "reconstruction", at, ends);
    assert_eq!(outcomes(&thrown(12.80136388617122, 0.02631578947368421, 17), &broken), RIGHT);
}

/// Balls and bins where a line at negative powers alone would need more digits or points than there are: a delta near 1, a small one
/// of whole epochs, two batches of an epoch, and a delta that one batch in the place of three shows to be nothing. The ends are the solver's.
#[test]
fn powers_of_either_sign() {
    let thrown = |noise: f64, batches: u32, steps: u64| {
        Run::builder()
            .sampling(Sampling::BallsAndBins)
            .adjacency(Adjacency::ZeroOut)
            .phase(noise, 1.0 / f64::from(batches), steps)
            .build()
            .unwrap()
    };
    let ends = |run: &Run, quantity: &str, at: (&str, f64), ends: (f64, f64)| {
        outcomes(run, &claim("composition", "both", quantity, at, ends))
    };
    let long = thrown(1.204782313235327, 6, 28138);
    let at = ("prior", 0.0013070766080013438);
    assert_eq!(ends(&long, "attack-accuracy", at, (0.9999999955722512, 1.0)), RIGHT);
    let whole = thrown(4.440114688951117, 3, 223);
    let at = ("delta", 9.90451800666314e-52);
    assert_eq!(ends(&whole, "epsilon", at, (17.4800679876785, 17.602363410995093)), RIGHT);
    assert_eq!(ends(&whole, "epsilon", at, (17.7, 17.8)), (Outcome::Wrong, Outcome::Proven));
    assert_eq!(ends(&whole, "epsilon", at, (17.2, 17.4)), (Outcome::Proven, Outcome::Wrong));
    let two = thrown(13.548903578101507, 18, 2);
    let at = ("delta", 7.861873340883303e-9);
    assert_eq!(ends(&two, "epsilon", at, (0.02819978284703247, 0.028202406158066823)), RIGHT);
    assert_eq!(ends(&two, "epsilon", at, (0.02821, 0.02822)), (Outcome::Wrong, Outcome::Proven));
    assert_eq!(ends(&two, "epsilon", at, (0.02818, 0.02819)), (Outcome::Proven, Outcome::Wrong));
    let three = thrown(17.024789999552812, 462, 3);
    let at = ("epsilon", 0.17828885664735225);
    assert_eq!(ends(&three, "delta", at, (0.0, 1e-290)), RIGHT);
    assert_ne!(ends(&three, "delta", at, (1e-290, 1.0)).0, Outcome::Proven);
}
