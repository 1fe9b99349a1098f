//! The solver's elementary functions (`numerics::elementary`) in ball arithmetic: every row of their
//! tables, and their stated error at random numbers, numbers next to where a case begins, and numbers that are
//! hard to reduce. The prover itself does not use them.

use numerics::elementary::tables::{ARCTANGENTS, LOGARITHMS, POWERS, TWO_OVER_PI};
use numerics::elementary::{atan2, cos, exp, exp_m1, hypot, ln, ln_1p, powi, sin, sinh};
use prover::arithmetic::{Ball, Complex, Magnitude};

type B = Ball<6>;

fn of(x: f64) -> B {
    B::from_f64(x)
}

/// |value - truth| is at most `bound` u |truth|.
fn holds(value: f64, truth: B, bound: f64) -> bool {
    let off = (of(value) - truth).above();
    let room = truth.below().times(Magnitude::from_f64(bound)).scaled(-53);
    // Magnitudes round up, by at most 2^-30; the bounds have more room than that.
    off <= room
}

/// |a - b| < 2^power.
fn close(a: B, b: B, power: i64) -> bool {
    (a - b).above() < Magnitude::power_of_two(power)
}

/// A stream of numbers that is the same everywhere (splitmix64).
struct Stream(u64);

impl Stream {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [low, high).
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * (self.word() >> 11) as f64 * 2f64.powi(-53)
    }

    /// Either sign, powers of two from `low` to `high` alike.
    fn sizes(&mut self, low: i32, high: i32) -> f64 {
        let power = low + (self.word() % (high - low) as u64) as i32;
        let size = self.between(1.0, 2.0) * 2f64.powi(power);
        if self.word().is_multiple_of(2) { size } else { -size }
    }

    /// Numbers next to a place, a few last digits away from it.
    fn near(&mut self, place: f64) -> f64 {
        f64::from_bits((place.to_bits() as i64 + (self.word() % 9) as i64 - 4) as u64)
    }
}

fn check(name: &str, bound: f64, points: &[f64], value: fn(f64) -> f64, truth: fn(f64) -> B) {
    for &x in points {
        assert!(holds(value(x), truth(x), bound), "{name}({x:e}) = {:e}", value(x));
    }
}

#[test]
fn every_row_of_the_tables_is_what_it_says() {
    for (j, &(high, low)) in POWERS.iter().enumerate() {
        let truth = (B::ln_2().times_u64(j as u64).over_u64(128)).exponential();
        assert!(close(of(high) + of(low), truth, -105), "power {j}");
        assert!(low.abs() <= high * f64::EPSILON / 2.0, "power {j}");
    }
    for (row, &(c, log, rest)) in LOGARITHMS.iter().enumerate() {
        let i = row as f64 - 38.0;
        assert!((c * 512.0).fract() == 0.0 && (log * 2f64.powi(42)).fract() == 0.0, "row {row}");
        assert!(close(of(log) + of(rest), -of(c).logarithm(), -95), "row {row}");
        // The largest r of the row, in exact arithmetic; it is below half of the table's logarithm.
        for edge in [i - 0.5, i + 0.5] {
            let r = (1.0 + edge / 128.0) * c - 1.0;
            assert!(
                r.abs() < 0.00593 && (log == 0.0 || r.abs() <= 0.52 * log.abs()),
                "row {row}: {r}"
            );
        }
        assert_eq!(c == 1.0, log == 0.0, "row {row}");
    }
    for (i, &(high, low)) in ARCTANGENTS.iter().enumerate() {
        let truth = Complex::new(of(64.0), of(i as f64)).logarithm().im;
        assert!(close(of(high) + of(low), truth, -105), "angle {i}");
    }
    let two_over_pi =
        TWO_OVER_PI.iter().rev().fold(B::ZERO, |sum, &word| (sum + B::from_u64(word)).scaled(-64));
    assert!(close(two_over_pi * B::pi(), of(2.0), -253));
}

#[test]
fn exponentials_err_by_what_is_stated() {
    let mut stream = Stream(1);
    let step = std::f64::consts::LN_2 / 128.0;
    let mut points: Vec<f64> = (0..4_000).map(|_| stream.between(-707.0, 709.0)).collect();
    points.extend((0..2_000).map(|_| stream.sizes(-60, 6)));
    // Half-way between rows, where r is largest.
    points.extend((-300..300).map(|k| stream.near((f64::from(k) + 0.5) * step)));
    check("exp", 1.1, &points, exp, |x| of(x).exponential());
    points.retain(|x| *x < 709.0);
    points.extend((0..400).map(|k| stream.near(if k % 2 == 0 { 0.25 } else { -0.25 })));
    points.extend((0..2_000).map(|_| stream.between(-0.3, 0.3)));
    check("exp_m1", 1.5, &points, exp_m1, |x| of(x).exponential_minus_one());
    points.retain(|x| x.abs() > 1e-3 && x.abs() < 700.0);
    check("sinh", 5.0, &points, sinh, |x| (of(x).exponential() - of(-x).exponential()).scaled(-1));
    assert_eq!((exp(f64::NEG_INFINITY), exp(-746.0), exp(0.0)), (0.0, 0.0, 1.0));
    assert_eq!((exp(710.0), exp(f64::INFINITY)), (f64::INFINITY, f64::INFINITY));
    assert!(exp(f64::NAN).is_nan() && exp_m1(f64::NAN).is_nan());
    assert_eq!((exp_m1(-1e300), exp_m1(0.0), exp_m1(1e300)), (-1.0, 0.0, f64::INFINITY));
    // Below the normal numbers the last place is 2^-1074.
    for x in [-708.5, -720.0, -740.0, -745.1] {
        assert!(close(of(exp(x)), of(x).exponential(), -1073), "{x}");
    }
}

#[test]
fn logarithms_err_by_what_is_stated() {
    let mut stream = Stream(2);
    let mut points: Vec<f64> = (0..3_000).map(|_| stream.sizes(-1074, 1023).abs()).collect();
    points.extend((0..4_000).map(|_| stream.between(0.7, 1.45)));
    points.extend((0..1_000).map(|_| 1.0 + stream.sizes(-52, -5)));
    // Between rows, and where the power of two changes.
    points.extend((-38..54).map(|i| stream.near(1.0 + (f64::from(i) + 0.5) / 128.0)));
    points.extend((0..20).map(|_| stream.near(std::f64::consts::FRAC_1_SQRT_2)));
    points.retain(|x| *x != 1.0 && *x > 0.0);
    check("ln", 1.1, &points, ln, |x| of(x).logarithm());
    points.retain(|x| *x > 1e-60);
    let mut more: Vec<f64> = points.iter().flat_map(|x| [*x, -x]).filter(|x| *x > -1.0).collect();
    more.extend((0..4_000).map(|_| stream.sizes(-60, 0)).filter(|x| *x > -1.0));
    more.extend((0..400).map(|k| stream.near(if k % 2 == 0 { 1.0 / 256.0 } else { -1.0 / 256.0 })));
    check("ln_1p", 1.1, &more, ln_1p, |x| (of(1.0) + of(x)).logarithm());
    assert_eq!((ln(0.0), ln(1.0), ln(f64::INFINITY)), (f64::NEG_INFINITY, 0.0, f64::INFINITY));
    assert!(
        ln(-1.0).is_nan()
            && ln(f64::NAN).is_nan()
            && ln_1p(-1.5).is_nan()
            && ln_1p(f64::NAN).is_nan()
    );
    assert_eq!((ln_1p(-1.0), ln_1p(0.0)), (f64::NEG_INFINITY, 0.0));
    assert_eq!((ln_1p(f64::INFINITY), ln_1p(1e-300)), (f64::INFINITY, 1e-300));
    assert!(holds(ln_1p(f64::MAX), of(f64::MAX).logarithm(), 1.1));
}

#[test]
fn angles_err_by_what_is_stated() {
    let mut stream = Stream(3);
    let mut points: Vec<f64> = (0..3_000).map(|_| stream.sizes(-40, 54)).collect();
    points.extend((0..3_000).map(|_| stream.between(-7.0, 7.0)));
    // Next to multiples of a quarter turn, where one of the two is small, and of an eighth.
    points.extend((0..2_000).map(|_| {
        let turns = (stream.word() % (1 << 22)) as f64;
        stream.near(turns * std::f64::consts::FRAC_PI_4)
    }));
    // Whole numbers that come closest to multiples of pi/2: numerators of its convergents.
    points.extend([
        344.0,
        355.0,
        51819.0,
        52174.0,
        260515.0,
        573204.0,
        4846147.0,
        5419351.0,
        37362253.0,
        42781604.0,
        122925461.0,
        411557987.0,
        534483448.0,
        2549491779.0,
        3083975227.0,
        17969367914.0,
        21053343141.0,
        881156436695.0,
        902209779836.0,
        2685575996367.0,
        8958937768937.0,
        65398140378926.0,
        74357078147863.0,
        139755218526789.0,
        214112296674652.0,
        5920787228742393.0,
        6134899525417045.0,
    ]);
    // Beyond 2^48 the prover's own reduction gives up now and then.
    let narrow =
        |x: &f64| of(*x).cosine_sine().0.accuracy().min(of(*x).cosine_sine().1.accuracy()) > 64;
    let drawn = points.len();
    points.retain(|x| *x != 0.0 && narrow(x));
    assert!(points.len() > drawn * 9 / 10, "{} of {drawn}", points.len());
    check("sin", 1.7, &points, sin, |x| of(x).cosine_sine().1);
    check("cos", 1.7, &points, cos, |x| of(x).cosine_sine().0);
    assert!(sin(2e16).is_nan() && cos(f64::INFINITY).is_nan() && sin(f64::NAN).is_nan());
    assert_eq!((sin(0.0), cos(0.0)), (0.0, 1.0));

    for _ in 0..6_000 {
        let (y, x) = (stream.sizes(-40, 40), stream.sizes(-12, 12));
        angle(y, x);
        let (f, large) = (stream.between(0.0, 1.1), stream.sizes(-900, 900));
        angle(f * large, large);
        angle(large, f * large);
    }
    for i in 0..64 {
        let f = stream.near((f64::from(i) + 0.5) / 64.0);
        angle(f, 1.0);
        angle(f, -1.0);
    }
    use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};
    assert_eq!((atan2(0.0, 1.0), atan2(0.0, -1.0), atan2(-0.0, -1.0)), (0.0, PI, -PI));
    assert_eq!(
        (atan2(1.0, 0.0), atan2(-2.0, 0.0), atan2(3.0, 3.0)),
        (FRAC_PI_2, -FRAC_PI_2, FRAC_PI_4)
    );
    let infinite = f64::INFINITY;
    assert_eq!((atan2(infinite, infinite), atan2(1.0, -infinite)), (FRAC_PI_4, PI));
    assert!(atan2(f64::NAN, 1.0).is_nan() && atan2(1.0, f64::NAN).is_nan());
}

fn angle(y: f64, x: f64) {
    // To the right of the imaginary axis by quarter turns.
    let quarter = B::pi().scaled(-1);
    let truth = if x.abs() >= y.abs() {
        let near = Complex::new(of(x.abs()), of(y.abs())).logarithm().im;
        if x > 0.0 { near } else { B::pi() - near }
    } else {
        let near = Complex::new(of(y.abs()), of(x.abs())).logarithm().im;
        if x > 0.0 { quarter - near } else { quarter + near }
    };
    let truth = if y > 0.0 { truth } else { -truth };
    assert!(holds(atan2(y, x), truth, 1.8), "atan2({y:e}, {x:e}) = {:e}", atan2(y, x));
}

#[test]
fn lengths_and_powers_err_by_what_is_stated() {
    let mut stream = Stream(4);
    for _ in 0..6_000 {
        let (x, y) = (stream.sizes(-20, 20), stream.sizes(-20, 20));
        for scale in [1.0, 2f64.powi(900), 2f64.powi(-900)] {
            let (x, y) = (x * scale, y * scale);
            let truth = (of(x).squared() + of(y).squared()).root();
            assert!(holds(hypot(x, y), truth, 1.1), "hypot({x:e}, {y:e})");
        }
        let n = (stream.word() % 40) as i32 + 1;
        let truth = of(x).power(n as u64);
        assert!(holds(powi(x, n), truth, 1.01 * f64::from(n)), "{x:e}^{n}");
        assert!(holds(powi(x, -n), truth.reciprocal(), 1.01 * f64::from(n) + 2.0), "{x:e}^-{n}");
    }
    assert_eq!((hypot(0.0, 0.0), hypot(-3.0, 4.0), powi(3.0, 0)), (0.0, 5.0, 1.0));
    assert_eq!(hypot(f64::NEG_INFINITY, f64::NAN), f64::INFINITY);
    assert!(hypot(f64::NAN, 1.0).is_nan());
}
