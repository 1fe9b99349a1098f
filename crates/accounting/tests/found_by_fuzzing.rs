//! Runs on which the fuzzed laws, or the agreement of routes, once broke.

use accounting::pairs::{Composed, LatticeBracket, LatticeOptions};
use accounting::{Order, Pair};
use vocabulary::{Adjacency, Interval, Run};

fn composed(noise_multiplier: f64, sample_rate: f64, steps: u64, adjacency: Adjacency) -> Composed {
    let run = Run::builder()
        .phase(noise_multiplier, sample_rate, steps)
        .adjacency(adjacency)
        .build()
        .unwrap();
    Composed::for_run(&run).unwrap()
}

/// Two numbers whose sum is 1, each certified.
fn add_up(one: Interval, other: Interval) {
    let low = one.lower + other.lower;
    let high = one.upper + other.upper;
    assert!(low <= 1.0 + 1e-14 && high >= 1.0 - 1e-14, "{one:?} and {other:?}");
}

/// delta was 0.0325 and its complement 0.9604.
#[test]
fn delta_and_its_complement_add_up_for_a_nearly_atomic_substitution() {
    let pair =
        composed(0.404_102_059_468_228, 7.859_681_549_832_328e-5, 8267, Adjacency::Substitute);
    for order in [Order::Remove, Order::Add] {
        let epsilon = 0.043_284_217_242_482_236;
        let (delta, rest) = (pair.delta(epsilon, order), pair.one_minus_delta(epsilon, order));
        if let (Ok(delta), Ok(rest)) = (delta, rest) {
            add_up(delta, rest);
        }
    }
}

/// The value was half of the upper end, and below the lower one.
#[test]
fn the_best_estimate_lies_between_its_ends() {
    let cases = [
        (0.495_408_686_810_744_7, 3.967_215_853_993_709e-7, 91, 6.556_283_558_726_191e-11),
        (1.728_976_077_519_068_3, 2.863_766_058_293_075_4e-6, 22, 2.226_708_035_730_163e-41),
        (1.994_855_579_025_476, 6.366_258_021_614_698e-5, 3, 2.085_742_152_838_148e-44),
    ];
    for (noise_multiplier, sample_rate, steps, delta) in cases {
        let pair = composed(noise_multiplier, sample_rate, steps, Adjacency::AddRemove);
        for order in [Order::Remove, Order::Add] {
            if let Ok(Interval { lower, value, upper }) = pair.epsilon(delta, order) {
                assert!(lower <= value && value <= upper, "{lower} {value} {upper}");
            }
        }
    }
}

/// The loss of the pair in this direction is at most -ln(1 - q) a step, so no test can have more
/// power than fpr (1 - q)^-T; the lower end was 1.3e-5 above that.
#[test]
fn power_obeys_the_largest_loss_of_the_add_direction() {
    let (rate, steps) = (1e-7, 1);
    let run = Run::builder()
        .phase(1.793_112_857_114_891, rate, steps)
        .phase(0.2, rate, steps)
        .build()
        .unwrap();
    let fpr = 1e-12;
    if let Ok(power) = Composed::for_run(&run).unwrap().tpr(fpr, Order::Add) {
        let most = fpr * (-2.0 * (-rate).ln_1p()).exp();
        assert!(power.lower <= most * (1.0 + 1e-14), "{power:?} is above {most:e}");
    }
}

/// A tail twenty standard deviations out magnifies the rounding of its argument 400 times: the
/// lower end of epsilon was above the truth by 1e-15 of it.
#[test]
fn a_single_step_far_out_counts_the_rounding_of_its_threshold() {
    let pair = composed(0.200_000_005_810_502_15, 1e-7, 1, Adjacency::AddRemove);
    let delta = 1e-100;
    let epsilon = pair.epsilon(delta, Order::Remove).unwrap();
    assert!(pair.delta(epsilon.lower, Order::Remove).unwrap().upper >= delta, "{epsilon:?}");
    assert!(pair.delta(epsilon.upper, Order::Remove).unwrap().lower <= delta, "{epsilon:?}");
    assert!(epsilon.relative_width() < 1e-11, "{epsilon:?}");
}

/// Two steps, where the addition of a record all but reaches the most it can leak: far off the axis
/// points count that are nothing on it. The reference is one integral with 40 digits.
#[test]
fn addition_close_to_its_supremum() {
    let run =
        Run::builder().phase(2.57661652874401, 0.11859328302714196, 2).build().expect("a run");
    let pair = Composed::for_run(&run).unwrap();
    let delta = pair.delta(0.22709985391636753, Order::Add).unwrap();
    let truth = 2.1162464479124169e-20;
    assert!(delta.lower <= truth && truth <= delta.upper, "{delta:?}");
    assert!(delta.relative_width() <= 1e-9, "{delta:?}");
}

/// False negatives far below a millionth, whose supporting line is flatter than that.
#[test]
fn false_negatives_that_hardly_exist() {
    let run = Run::builder()
        .phase(0.7514368390098702, 0.035506992384185226, 10613)
        .build()
        .expect("a run");
    let pair = Composed::for_run(&run).unwrap();
    let found = pair.fnr(0.16951757146638122, Order::Remove).unwrap();
    let lattice = LatticeBracket::for_run(&run, LatticeOptions { points: 1 << 17 })
        .unwrap()
        .fnr(0.16951757146638122, Order::Remove)
        .unwrap();
    assert!(found.lower > 0.0 && found.relative_width() <= 1e-6, "{found:?}");
    assert!(lattice.lower <= found.upper && found.lower <= lattice.upper, "{found:?} {lattice:?}");
}

/// A rate that is no number panicked in the search for the best slope.
#[test]
fn a_rate_that_is_no_number_is_refused() {
    let pair = composed(1.0, 0.01, 100, Adjacency::AddRemove);
    for order in [Order::Remove, Order::Add] {
        for rate in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert!(pair.tpr(rate, order).is_err() && pair.fnr(rate, order).is_err(), "{rate}");
        }
    }
}

/// Trade-off points of a rarely used record took minutes and ended in a refusal, because delta near
/// epsilon 0 did; the total variation by a 34-digit integral is in `golden/two_steps.csv`.
#[test]
fn few_steps_with_little_noise_have_a_trade_off_curve() {
    let total_variation = 1.199_496_886_078_942e-5;
    let pair = composed(0.5, 1e-5, 2, Adjacency::AddRemove);
    for fpr in [1e-3, 0.1] {
        let tpr = accounting::directions::tpr(&pair, fpr, vocabulary::Direction::Both).unwrap();
        assert!(fpr <= tpr.lower && tpr.width() <= 0.05 * (tpr.value - fpr), "{tpr:?}");
        assert!(tpr.lower <= fpr + total_variation * (1.0 + 1e-6), "{tpr:?}");
    }
    // No test of the other order gains more than the largest loss allows.
    let tpr = pair.tpr(1e-12, Order::Add).unwrap();
    assert!(tpr.lower >= 1e-12 && tpr.upper <= 1.0001e-12, "{tpr:?}");
}

/// e^epsilon overflows, the mass it multiplies underflows: neither is a number of its own.
#[test]
fn one_step_at_an_epsilon_beyond_the_largest_double() {
    for (noise, rate, group, epsilon) in [
        (0.2, 1e-7, 1, 922.239),
        (0.289, 1e-7, 1, 2.5e93),
        (0.289, 1e-7, 1, 1e303),
        (0.2049, 0.999, 90, 922.35),
        (0.2049, 0.999, 90, 117_000.0),
        (0.2, 1e-7, 105, 800.0),
    ] {
        let run =
            vocabulary::Run::builder().phase(noise, rate, 1).group_size(group).build().unwrap();
        let pair = Composed::for_run(&run).unwrap();
        for order in [Order::Remove, Order::Add] {
            let delta = pair.delta(epsilon, order).unwrap();
            let rest = pair.one_minus_delta(epsilon, order).unwrap();
            for ends in [delta, rest] {
                assert!(
                    0.0 <= ends.lower && ends.lower <= ends.value && ends.value <= ends.upper,
                    "{noise} {rate} {group} {epsilon} {order:?}: {ends:?}"
                );
            }
            add_up(delta, rest);
        }
    }
    // 40 records that are all used, but for one part in 25,000: the loss of the sum of 40 shifts is
    // normal, with a mean of half its variance 40^2/sigma^2.
    let run =
        |group| vocabulary::Run::builder().phase(0.2049, 0.999999, 1).group_size(group).build();
    let pair = Composed::for_run(&run(40).unwrap()).unwrap();
    let at_the_mean = 40f64.powi(2) / (2.0 * 0.2049f64.powi(2));
    let delta = pair.delta(at_the_mean, Order::Remove).unwrap();
    assert!((delta.value - 0.5).abs() < 0.01 && delta.relative_width() < 1e-6, "{delta:?}");
    // Adding them loses at most -40 ln(1 - q).
    let most = -40.0 * (-0.999999f64).ln_1p();
    assert!(pair.delta(0.95 * most, Order::Add).unwrap().lower > 0.9);
    assert!(pair.delta(1.01 * most, Order::Add).unwrap().upper < 1e-300);
    // Of 97 that bound is not a number any more.
    assert!(Composed::for_run(&run(97).unwrap()).is_err());
}

/// A power within 1e-12 of 1: rounded values on a plateau say nothing of what lies below it.
#[test]
fn power_close_to_one_is_what_is_not_missed() {
    let pair = composed(0.2, 1e-7, 999_999_997, Adjacency::AddRemove);
    for order in [Order::Remove, Order::Add] {
        let (tpr, fnr) = (pair.tpr(0.8977, order).unwrap(), pair.fnr(0.8977, order).unwrap());
        assert!(tpr.lower + fnr.lower <= 1.0 + 1e-15, "{tpr:?} {fnr:?}");
        assert!(tpr.upper + fnr.upper >= 1.0 - 1e-15, "{tpr:?} {fnr:?}");
    }
}
