//! The solver's normal tails (`numerics::special`) in ball arithmetic: the table of Mills' ratio cell by cell, the
//! functions made from it at many numbers, and the error of the series of its differences for every number.
//! The prover itself does not use them.

use numerics::special::{
    LOG_TAIL_ERROR, MILLS_ERROR, SERIES_ERROR, gaussian_kernel, log_normal_sf, mills_ratio,
    mills_table::MILLS_CELLS, normal_sf,
};
use prover::arithmetic::{Ball, Magnitude, normal_tail};

type B = Ball<6>;

/// 2^-53: the unit in which the proofs count.
const UNIT: f64 = f64::EPSILON / 2.0;

fn of(x: f64) -> B {
    B::from_f64(x)
}

fn kernel(x: B) -> B {
    (-x.squared().scaled(-1)).exponential()
}

/// Mills' ratio R(x) = P(N > x)/density(x).
fn mills(x: B) -> B {
    normal_tail(x) * B::pi().scaled(1).root().over(kernel(x))
}

/// Upper end of a ball's absolute value as a double.
fn size(x: B) -> f64 {
    B::exact(prover::arithmetic::Float::from_magnitude(x.above())).doubles().1
}

/// Taylor coefficients of S(u) = R(4/u - 4)/u in t, u = (2j + 1 + t)/128. From R' = xR - 1 follows
/// u^3 S' + (u^2 + 16 - 16u) S = 4, hence a recurrence for the coefficients.
fn taylor<const N: usize>(cell: usize) -> [B; N] {
    let a = B::from_u64(2 * cell as u64 + 1).scaled(-7);
    let b = B::one().scaled(-7);
    let x = B::from_u64(4).over(a) - B::from_u64(4);
    let mut s = [B::ZERO; N];
    s[0] = mills(x).over(a);
    let [a2, b2] = [a.squared(), b.squared()];
    for n in 0..N - 1 {
        let at = |back: usize| if n >= back { s[n - back] } else { B::ZERO };
        let times = |back: usize| B::from_u64(n.saturating_sub(back) as u64);
        let known = at(0) * (a2.times_u64(3) * times(0) + a2 + B::from_u64(16) - a.times_u64(16))
            + at(1) * ((a * b).times_u64(3) * times(1) + (a * b).scaled(1) - b.times_u64(16))
            + at(2) * (b2 * times(2) + b2);
        let right = if n == 0 { B::from_u64(4) } else { B::ZERO };
        s[n + 1] = ((right - known) * b).over(a2 * a).over_u64(n as u64 + 1);
    }
    s
}

fn product(p: &[B], q: &[B]) -> Vec<B> {
    let mut out = vec![B::ZERO; p.len() + q.len() - 1];
    for (i, &x) in p.iter().enumerate() {
        for (j, &y) in q.iter().enumerate() {
            out[i + j] = out[i + j] + x * y;
        }
    }
    out
}

/// The largest |p - S| on a cell where u is small. With e = p - S and r = u^3 p' + (u^2 + 16 - 16u) p - 4,
/// u^3 e' + (u^2 + 16 - 16u) e = r. The factor of e is positive and falls with u: |e| cannot rise where it is above
/// max |r| / min (u^2 + 16 - 16u), so it is nowhere above the larger of that and its value at the left end. (At
/// u = 0 there is none: the factor of e' vanishes there, and e is bounded.)
fn by_equation(cell: usize, row: &[f64; 8]) -> f64 {
    let u = [B::from_u64(2 * cell as u64 + 1).scaled(-7), B::one().scaled(-7)];
    let p: Vec<B> = row.iter().map(|&c| of(c)).collect();
    let slope: Vec<B> = (1..8).map(|k| p[k].times_u64(128 * k as u64)).collect();
    let square = product(&u, &u);
    let sixteen = |p: &[B]| p.iter().map(|c| c.times_u64(16)).collect::<Vec<B>>();
    let mut rest = product(&product(&square, &u), &slope);
    rest[0] = rest[0] - B::from_u64(4);
    for (k, &c) in product(&square, &p).iter().enumerate() {
        rest[k] = rest[k] + c;
    }
    for (k, c) in sixteen(&p).into_iter().enumerate() {
        rest[k] = rest[k] + c;
    }
    for (k, c) in sixteen(&product(&u, &p)).into_iter().enumerate() {
        rest[k] = rest[k] - c;
    }
    let right = (cell + 1) as f64 / 64.0;
    let inside = rest.iter().map(|&c| size(c)).sum::<f64>() / (right * right + 16.0 - 16.0 * right);
    if cell == 0 {
        return inside;
    }
    let left = B::from_u64(cell as u64).scaled(-6);
    let truth = mills(B::from_u64(4).over(left) - B::from_u64(4)).over(left);
    let signs = |k: usize| if k.is_multiple_of(2) { p[k] } else { -p[k] };
    inside.max(size((0..8).fold(-truth, |sum, k| sum + signs(k))))
}

/// The same where u is not small, by the Taylor series in balls. What the series leaves out is bounded by Cauchy's
/// estimate: for Re x >= -1, which is |u - 2/3| <= 2/3, |R(x)| <= R(-1) <= sqrt(2 pi e) < 4.2.
fn by_series(cell: usize, row: &[f64; 8]) -> f64 {
    const TERMS: usize = 32;
    let centre = (2 * cell + 1) as f64 / 128.0;
    let radius = 0.75 * centre.min(4.0 / 3.0 - centre);
    let in_t = 128.0 * radius;
    let rest = 4.2 / (centre - radius) * in_t.powi(-(TERMS as i32)) / (1.0 - 1.0 / in_t);
    let truth = taylor::<TERMS>(cell);
    let apart = |k: usize| size(truth[k] - row.get(k).map_or(B::ZERO, |&c| of(c)));
    rest + (0..TERMS).map(apart).sum::<f64>()
}

#[test]
fn the_table_of_mills_ratio_is_right_on_every_cell() {
    for (cell, row) in MILLS_CELLS.iter().enumerate() {
        let light: f64 = row[1..].iter().map(|c| c.abs()).sum();
        // What `mills_right` counts on: all but the first coefficient weigh little.
        assert!(light <= 0.0175 * row[0], "cell {cell}: {light}");
        let off = if cell < 10 { by_equation(cell, row) } else { by_series(cell, row) };
        let relative = off * (1.0 + 1e-9) / (row[0] - light) / UNIT;
        assert!(relative <= 1.0, "cell {cell}: {relative} u");
    }
}

/// A stream of numbers that is the same everywhere.
fn stream(count: u64) -> impl Iterator<Item = f64> {
    (0..count).map(|i| (i as f64 * 0.618_033_988_749_894_9).fract())
}

#[test]
fn tails_keep_their_promise() {
    let within = |value: f64, truth: B, bound: f64| {
        (of(value) - truth).above() <= truth.below().times(Magnitude::from_f64(bound))
    };
    let edges = (0..64).map(|j| 4.0 * (64.0 / f64::from(j + 1) - 1.0));
    for x in stream(1500).map(|f| 38.0 * f * f).chain(edges).chain([0.0, 1e-300, 0.3, 1.0, 40.0]) {
        let truth = of(x);
        assert!(within(mills_ratio(x), mills(truth), MILLS_ERROR), "R({x})");
        if x > 37.0 {
            continue;
        }
        assert!(within(gaussian_kernel(x), kernel(truth), 3.5 * UNIT), "kernel({x})");
        for x in [x, -x] {
            let tail = normal_tail(of(x));
            assert!(within(normal_sf(x), tail, MILLS_ERROR), "P(N > {x})");
            if x < -20.0 {
                continue; // Nearer to 1 than a ball can tell.
            }
            let log = tail.logarithm();
            let room = LOG_TAIL_ERROR * if x < 0.0 { size(log) } else { size(log).max(1.0) };
            assert!(size(of(log_normal_sf(x)) - log) <= room, "ln P(N > {x})");
        }
    }
}

const MOMENTS: usize = 81;

/// Ends of r_n = c_n / c_{n-1} for n < `start` and all a in [low, high], low >= 1:
/// r_n = 1/(a + (n+1) r_{n+1}) lies between 0 and 1/a.
fn ratios(low: f64, high: f64, start: usize) -> Vec<(f64, f64)> {
    let mut ends = vec![(0.0, 1.0 / low); start + 1];
    for n in (1..start).rev() {
        let (lower, upper) = ends[n + 1];
        let next = (n + 1) as f64;
        ends[n] = ((1.0 - 1e-12) / (high + next * upper), (1.0 + 1e-12) / (low + next * lower));
    }
    ends
}

/// Ends of the scaled derivatives c_n of Mills' ratio at a, with 1e-12 of room and more for roundings.
fn moments(a: f64) -> [(f64, f64); MOMENTS] {
    let at = of(a);
    let mut c = [B::ZERO; MOMENTS];
    c[0] = mills(at);
    let around = |value: B| {
        assert!(value.is_positive() && value.accuracy() > 60, "{a}");
        (value.to_f64() * (1.0 - 1e-12), value.to_f64() * (1.0 + 1e-12))
    };
    if a < 1.0 {
        c[1] = B::one() - at * c[0];
        for n in 1..MOMENTS - 1 {
            c[n + 1] = (c[n - 1] - at * c[n]).over_u64(n as u64 + 1);
        }
        return c.map(around);
    }
    let ends = ratios(a, a, 1000);
    let mut out = [around(c[0]); MOMENTS];
    for n in 1..MOMENTS {
        out[n] = (out[n - 1].0 * ends[n].0, out[n - 1].1 * ends[n].1);
    }
    out
}

/// Bounds on the relative errors of c_0 .. c_25 as `mills_moments::<26>` computes them, in units of 2^-53, for
/// every a in [low, high]; `most` and `least` are the true values at the ends (they fall with a).
fn errors(
    low: f64,
    high: f64,
    most: &[(f64, f64); MOMENTS],
    least: &[(f64, f64); MOMENTS],
) -> [f64; 26] {
    let mut e = [0.0; 26];
    // mills_ratio: 10.6 u, or for a < 0 a quotient of 5.4 u, at most twice the value, less at most the value.
    e[0] = if low < 0.0 { 2.0 * 5.4 + 10.6 + 1.0 } else { 10.6 };
    if high <= 0.0 {
        // Sums of positive terms.
        e[1] = e[0] + 2.0;
        for n in 1..25 {
            e[n + 1] = f64::max(e[n - 1], e[n] + 1.0) + 2.0;
        }
    } else if high <= 1.0 {
        // Differences: absolute errors.
        let mut off = [0.0; 26];
        off[0] = e[0] * most[0].1;
        off[1] = high * (off[0] + most[0].1) + most[1].1;
        for n in 1..25 {
            off[n + 1] =
                (off[n - 1] + high * (off[n] + most[n].1)) / (n + 1) as f64 + 2.0 * most[n + 1].1;
        }
        for n in 1..26 {
            e[n] = off[n] / least[n].0;
        }
    } else {
        // Backwards: r_n = c_n / c_{n-1} = 1/(a + (n+1) r_{n+1}), two roundings each. An error of ln r_{n+1}
        // enters ln r_n with the factor (n+1) r / (a + (n+1) r), at most that at the upper end of r.
        let start = 26 + (440.0 / (high * high)) as usize + 8;
        let ends = ratios(low, high, start);
        // The recurrence starts with c_{start+1} = 0.
        let (lower, upper) = (1.0 / (high + (start + 1) as f64 / low), 1.0 / low);
        let (mut left_out, mut rounding) = ((upper / lower).ln() / UNIT, 2.0);
        let mut each = [0.0; 26];
        for n in (1..start).rev() {
            let weight = (n + 1) as f64 * ends[n + 1].1;
            let passed = weight / (low + weight);
            (left_out, rounding) = (left_out * passed, rounding * passed + 2.0);
            if n < 26 {
                each[n] = left_out + rounding;
            }
        }
        for n in 1..26 {
            e[n] = e[n - 1] + each[n] + if n == 1 { 2.0 } else { 0.0 };
        }
    }
    e
}

/// Sums of c_n h^n from n = 1 on: relative error for all a in [low, high], h up to `reach`, with `last` terms,
/// all of one sign or of alternating signs. The bound grows with h: so do the shares of the later terms.
fn series_error(low: f64, high: f64, reach: f64, last: usize, alternating: bool) -> f64 {
    let (most, least) = (moments(low), moments(high));
    let e = errors(low, high, &most, &least);
    let (mut off, mut sum, mut power) = (0.0, 0.0, 1.0);
    // Factors of an alternating series for a < 0: density and its product.
    let factor = if alternating && low < 0.0 { 3.4 + 3.0 } else { 0.0 };
    for n in 1..MOMENTS {
        power *= reach;
        if n <= last {
            off += most[n].1 * power * (e[n] + factor + 2.0 * n as f64) * UNIT;
            sum += least[n].0 * power;
        } else {
            off += most[n].1 * power;
        }
    }
    // Beyond, the ratio of neighbours only falls.
    let fall = reach * most[MOMENTS - 1].1 / most[MOMENTS - 2].0;
    assert!(fall < 0.9);
    off += most[MOMENTS - 1].1 * power * fall / (1.0 - fall);
    // R is convex: R(a) - R(a + h) >= h c_1(a + h).
    let value = if alternating { reach * moments(high + reach)[1].0 } else { sum };
    off * (1.0 + 1e-9) / value
}

/// `mills_moments` and the three sums made of it (`pairs/gaussian.rs`, `pairs/binomial_gaussian/bracket.rs`).
#[test]
fn differences_of_mills_ratios_are_as_good_as_counted() {
    let cells = |from: f64, to: f64, width: f64| {
        let count = ((to - from) / width).round() as usize;
        (0..count).map(move |i| (from + width * i as f64, from + width * (i + 1) as f64))
    };
    let right =
        || cells(0.0, 2.0, 1.0 / 64.0).chain(cells(2.0, 4.0, 0.125)).chain(cells(4.0, 40.0, 1.0));
    let mut worst = [0.0f64; 4];
    for (low, high) in cells(-4.0, 0.0, 0.125).chain(right()) {
        worst[0] = worst[0].max(series_error(low, high, 0.5, 25, false));
    }
    for (low, high) in right() {
        for (reach, last) in [(0.05, 10), (0.2, 15), (0.5, 24)] {
            worst[1] = worst[1].max(series_error(low, high, reach, last, false));
        }
        for (reach, last) in [(0.05, 10), (0.5, 25)] {
            worst[2] = worst[2].max(series_error(low, high, reach, last, true));
        }
    }
    for (low, high) in cells(-9.0, 0.0, 0.125) {
        let reach = 0.5 / f64::max(1.0, -high);
        worst[3] = worst[3].max(series_error(low, high, reach, 25, true));
    }
    assert!(worst[0].max(worst[1]) <= SERIES_ERROR, "{worst:?}");
    assert!(worst[2].max(worst[3]) <= 2.0 * SERIES_ERROR, "{worst:?}");
    // a > 40: r_n <= 1/a, so an error of a ratio passes with a factor below 27/1600 and stays below 2.1 u; h r_n <=
    // 1/80, so that later terms weigh with 1/80 each: at most 10.6 + 2 + 2.1 + 2 and 8 u per later term.
    const {
        assert!((16.7 + 8.0 / 79.0 * 80.0 / 79.0) / (1.0 - 1.0 / 79.0) * UNIT < SERIES_ERROR);
    }
}
