//! Numbers as the page writes them.

/// Seconds with a unit and three digits.
pub fn seconds(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1.0 => (v, "s"),
        v if v >= 1e-3 => (v * 1e3, "ms"),
        v if v >= 1e-6 => (v * 1e6, "µs"),
        v => (v * 1e9, "ns"),
    };
    format!("{} {unit}", three_digits(scaled))
}

/// How many times faster, with a thousands separator.
pub fn ratio(value: f64) -> String {
    if value < 0.1 {
        return format!("{value:.1e}×");
    }
    if value < 100.0 {
        return format!("{}×", three_digits(value));
    }
    let digits = format!("{value:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{grouped}×")
}

pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// A count as people write it: `1e6`, or `14400`.
pub fn count(value: f64) -> String {
    let power = value.log10();
    if value >= 1e4 && power.fract() == 0.0 { format!("1e{power:.0}") } else { format!("{value}") }
}

/// An answer with ten significant digits.
pub fn answer(value: f64) -> String {
    if value == 0.0 || (1e-3..1e6).contains(&value.abs()) {
        let before = value.abs().max(1.0).log10().floor() as usize;
        format!("{value:.*}", 9usize.saturating_sub(before))
    } else {
        format!("{value:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(seconds(0.5), "500 ms");
        assert_eq!(seconds(1.234e-5), "12.3 µs");
        assert_eq!(ratio(1234567.0), "1,234,567×");
        assert_eq!(ratio(1.5), "1.50×");
        assert_eq!(count(1e6), "1e6");
        assert_eq!(count(14400.0), "14400");
        assert_eq!(answer(1.82823666651), "1.828236667");
        assert_eq!(answer(1.27e-4), "1.270e-4");
    }
}
