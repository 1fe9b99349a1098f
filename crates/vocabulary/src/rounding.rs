//! Rounding for display, always towards the side that a person may quote: upper ends are
//! rounded up, lower ends down. A printed number is therefore as true as the number itself.

use crate::Side;

/// A number without a side, to this number of significant digits.
///
/// ```
/// # use vocabulary::rounding::about;
/// assert_eq!(about(0.98765, 3), "0.988");
/// ```
pub fn about(number: f64, digits: usize) -> String {
    rounded(number, digits, Side::Neither)
}

/// A confidence in per cent, never more than it is.
///
/// ```
/// # use vocabulary::rounding::confidence;
/// assert_eq!(confidence(0.95), "95 %");
/// assert_eq!(confidence(0.99999), "99.99 %");
/// ```
pub fn confidence(level: f64) -> String {
    let text = rounded(100.0 * level, DIGITS, Side::Lower);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `number` with `digits` significant digits, rounded towards `side`.
pub(crate) fn rounded(number: f64, digits: usize, side: Side) -> String {
    if number == 0.0 {
        return "0".into();
    }
    if !number.is_finite() {
        return if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .into();
    }
    let digits = digits.max(1);
    // `{:e}` rounds to nearest, correctly; one unit in the last place repairs the side.
    let nearest = format!("{:.*e}", digits - 1, number);
    let safe = match side {
        Side::Neither => nearest,
        Side::Upper if parse(&nearest) >= number => nearest,
        Side::Lower if parse(&nearest) <= number => nearest,
        Side::Upper => step(&nearest, 1),
        Side::Lower => step(&nearest, -1),
    };
    positional(&safe)
}

/// Significant digits of a number that is shown to a person.
pub const DIGITS: usize = 4;

/// Thousands apart, as in `1,234,567`.
///
/// ```
/// # use vocabulary::rounding::with_commas;
/// assert_eq!(with_commas(999), "999");
/// assert_eq!(with_commas(1_234_567), "1,234,567");
/// ```
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An input as it was given: the shortest text that reads back as the same number.
pub fn plain(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e7).contains(&magnitude) {
        format!("{number:e}")
    } else {
        format!("{number}")
    }
}

/// A sample rate in a sentence: as it was given if that is short, else six digits, rounded up.
///
/// ```
/// # use vocabulary::rounding::rate;
/// assert_eq!(rate(0.01024), "0.01024");
/// assert_eq!(rate(256.0 / 32_561.0), "0.00786217");
/// ```
pub fn rate(number: f64) -> String {
    let given = plain(number);
    let short = rounded(number, 6, Side::Upper);
    if given.len() > short.len() { short } else { given }
}

fn parse(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Adds `units` to the last digit of a number written like `1.828e0`.
fn step(scientific: &str, units: i64) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let decimals = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let (Ok(whole), Ok(exponent)) =
        (mantissa.replace('.', "").parse::<i64>(), exponent.parse::<i64>())
    else {
        return scientific.to_owned();
    };
    // Below a power of ten the last place is ten times finer: 1.000 - 1 unit is 0.9999.
    let shrinks = whole.abs() == 10_i64.pow(decimals as u32) && units.signum() == -whole.signum();
    let (whole, exponent) = if shrinks { (10 * whole, exponent - 1) } else { (whole, exponent) };
    let value = format!("{}e{}", whole + units, exponent - decimals as i64);
    // Normalises 10.00e0 to 1.000e1; exact, because the text has few digits.
    format!("{:.*e}", decimals, parse(&value))
}

/// Turns `1.829e0` into `1.829` and leaves very large and very small numbers scientific.
fn positional(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific.to_owned() };
    if !(-4..=6).contains(&exponent) {
        return scientific.to_owned();
    }
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let point = exponent + 1;
    let text = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else {
        let point = point as usize;
        if digits.len() <= point {
            format!("{digits}{}", "0".repeat(point - digits.len()))
        } else {
            format!("{}.{}", &digits[..point], &digits[point..])
        }
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_printed_number_is_on_its_side() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let exponent = (state >> 58) as i32 - 32;
            let mantissa = 1.0 + (state >> 12) as f64 / (1_u64 << 52) as f64;
            for number in [mantissa * 10_f64.powi(exponent), -mantissa * 10_f64.powi(exponent)] {
                for digits in [1, 3, 5] {
                    let up: f64 = rounded(number, digits, Side::Upper).parse().unwrap();
                    let down: f64 = rounded(number, digits, Side::Lower).parse().unwrap();
                    assert!(down <= number && number <= up, "{down} {number} {up}");
                    let unit = 10_f64.powi(number.abs().log10().floor() as i32 + 1 - digits as i32);
                    assert!(up - down <= 1.001 * unit, "{down} {up} are more than {unit} apart");
                }
            }
        }
    }

    #[test]
    fn carries_and_shapes() {
        assert_eq!(rounded(1.82823, 4, Side::Upper), "1.829");
        assert_eq!(rounded(1.82823, 4, Side::Lower), "1.828");
        assert_eq!(rounded(1.0, 4, Side::Upper), "1.000");
        assert_eq!(rounded(0.999_999_98, 4, Side::Lower), "0.9999");
        assert_eq!(rounded(1.234e-7, 3, Side::Upper), "1.24e-7");
        assert_eq!(rounded(9.9996, 4, Side::Upper), "10.00");
        assert_eq!(rounded(0.000_123_41, 3, Side::Upper), "0.000124");
        assert_eq!(rounded(123_456.7, 3, Side::Upper), "124000");
        assert_eq!(rounded(f64::INFINITY, 3, Side::Upper), "inf");
        assert_eq!(plain(1e-5), "1e-5");
        assert_eq!(plain(0.01), "0.01");
    }
}
