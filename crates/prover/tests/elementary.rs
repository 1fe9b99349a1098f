//! Elementary functions against values of 100 digits (tests/elementary.csv, made with mpmath).
//! A reference is cut to a ball of its own, so both balls must meet, and ours must be narrow.

use prover::arithmetic::{Ball, erfc, normal_tail};

/// The ball of a decimal number of 100 digits: mantissa by exact steps, scale by powers of ten.
fn decimal<const N: usize>(text: &str) -> Ball<N> {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let negative = mantissa.starts_with('-');
    let (mut sum, mut scale, mut after_point) = (Ball::<N>::ZERO, 0i64, false);
    for digit in mantissa.trim_start_matches('-').chars() {
        if digit == '.' {
            after_point = true;
            continue;
        }
        sum = sum.times_u64(10) + Ball::from_u64(u64::from(digit.to_digit(10).unwrap()));
        scale -= i64::from(after_point);
    }
    // The last digit is rounded.
    sum = sum.widened(Ball::<N>::one().above());
    let power = exponent.parse::<i64>().unwrap() + scale;
    let factor = Ball::from_u64(10).power(power.unsigned_abs());
    let value = if power < 0 { sum.over(factor) } else { sum * factor };
    if negative { -value } else { value }
}

fn check<const N: usize>(lost_bits: i64) {
    let mut seen = 0;
    for line in include_str!("elementary.csv").lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.split(',');
        let (name, x) = (fields.next().unwrap(), fields.next().unwrap().parse::<f64>().unwrap());
        let truth = decimal::<N>(fields.next().unwrap());
        let argument = Ball::<N>::from_f64(x);
        let ours = match name {
            "exp" => argument.exponential(),
            "expm1" => argument.exponential_minus_one(),
            "cos" => argument.cosine_sine().0,
            "sin" => argument.cosine_sine().1,
            "log" => argument.logarithm(),
            "sqrt" => argument.root(),
            "erfc" => erfc(argument),
            "tail" => normal_tail(argument),
            _ => panic!("{name}"),
        };
        let gap = ours - truth;
        assert!(
            !gap.is_positive() && !gap.is_negative(),
            "{name} {x}: {} {}",
            ours.to_f64(),
            truth.to_f64()
        );
        // Relative accuracy, or absolute for numbers that cross zero far from zero.
        let mut expected = 64 * N as i64 - lost_bits;
        let size = ours.above().order();
        match name {
            "exp" | "expm1" => expected -= (x.abs().log2().ceil() as i64).max(0),
            "cos" | "sin" => expected += size - (x.abs().log2().ceil() as i64).max(0),
            "log" => expected += size.min(0),
            "erfc" | "tail" => expected -= ((x * x * 1.5).min(60.0)) as i64,
            _ => {}
        }
        assert!(
            ours.accuracy() >= expected.min(300),
            "{N}: {name} {x}: {} bits of {expected}",
            ours.accuracy()
        );
        seen += 1;
    }
    assert!(seen > 300, "{seen}");
}

#[test]
fn two_words() {
    check::<2>(22);
}

#[test]
fn four_words() {
    check::<4>(26);
}

#[test]
fn eight_words() {
    check::<8>(32);
}

/// Tabled constants to all bits of the longest mantissas: ln 2 = 2 artanh(1/3), pi = 16 arctan(1/5) - 4 arctan(1/239)
/// (Machin), e = 1 + 1 + 1/2 + 1/6 + ..., each summed term by term.
#[test]
fn constants_of_eight_words() {
    type B = Ball<8>;
    // sum of (sign)^n x^(2n+1)/(2n+1), x = 1/n; less is left than the last term.
    let arc = |n: u64, sign: bool| {
        let (mut power, mut sum) = (B::one().over_u64(n), B::ZERO);
        for k in 0..400u64 {
            let term = power.over_u64(2 * k + 1);
            sum = if sign && k % 2 == 1 { sum - term } else { sum + term };
            power = power.over_u64(n * n);
        }
        sum.widened(power.above())
    };
    let mut term = B::one();
    let mut e = B::one();
    for n in 1..130 {
        term = term.over_u64(n);
        e = e + term;
    }
    let e = e.widened(term.above());
    let pairs = [
        (B::ln_2(), arc(3, false).scaled(1)),
        (B::pi(), arc(5, true).scaled(4) - arc(239, true).scaled(2)),
        (B::one().exponential(), e),
    ];
    for (ours, truth) in pairs {
        let gap = ours - truth;
        assert!(!gap.is_positive() && !gap.is_negative());
        assert!(gap.radius.order() < -480, "{}", gap.radius.order());
    }
}

#[test]
fn wide_balls_contain_their_members() {
    for (x, radius) in [(0.3, 0.2), (2.0, 1.5), (-3.0, 2.0), (5.0, 1e-9), (700.0, 3.0)] {
        let ball = Ball::<2>::from_f64(x).widened(prover::arithmetic::Magnitude::from_f64(radius));
        for part in [-0.999, -0.5, 0.0, 0.7, 0.999] {
            let member = Ball::<2>::from_f64(x + part * radius);
            let inside = |whole: Ball<2>, one: Ball<2>| {
                let gap = whole - one;
                assert!(!gap.is_positive() && !gap.is_negative(), "{x} {radius} {part}");
            };
            inside(ball.exponential(), member.exponential());
            inside(ball.cosine_sine().0, member.cosine_sine().0);
            inside(ball.cosine_sine().1, member.cosine_sine().1);
            inside(erfc(ball), erfc(member));
            inside(ball.squared(), member.squared());
            if x - radius > 0.0 {
                inside(ball.logarithm(), member.logarithm());
                inside(ball.root(), member.root());
                inside(ball.reciprocal(), member.reciprocal());
            }
        }
    }
}
