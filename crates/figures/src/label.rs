//! Numbers as a reader wants them at a tick: 0.25, 10,000, 10⁻⁵, 2×10⁶, 25%.

use crate::text;

/// A number ready to be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) base: String,
    pub(crate) exponent: Option<i32>,
}

impl Label {
    pub(crate) fn plain(base: impl Into<String>) -> Label {
        Label { base: base.into(), exponent: None }
    }

    /// 10 to the power of `exponent`; 1 and 10 are written out.
    pub(crate) fn power_of_ten(exponent: i32) -> Label {
        match exponent {
            0 => Label::plain("1"),
            1 => Label::plain("10"),
            _ => Label { base: "10".into(), exponent: Some(exponent) },
        }
    }

    pub(crate) fn width(&self, size: f64) -> f64 {
        let exponent =
            self.exponent.map_or(0.0, |exponent| text::width(&exponent.to_string(), 0.72 * size));
        text::width(&self.base, size) + exponent
    }

    /// The content of a text element, with the exponent raised.
    pub(crate) fn markup(&self) -> String {
        let base = text::escape(&self.base);
        match self.exponent {
            None => base,
            Some(exponent) => format!(
                r#"{base}<tspan dy="-0.45em" font-size="72%">{}</tspan>"#,
                minus(exponent.to_string())
            ),
        }
    }
}

/// A number with a fixed count of decimals, grouped by thousands.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if !fraction.is_empty() {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    let zero = grouped.chars().all(|c| matches!(c, '0' | '.' | ','));
    if value < 0.0 && !zero {
        grouped.insert(0, '\u{2212}');
    }
    grouped
}

/// A number with up to three significant digits, without zeros at its end.
pub(crate) fn short(value: f64) -> Label {
    let label = three_digits(value);
    if label.exponent.is_some() || !label.base.contains('.') {
        return label;
    }
    Label::plain(label.base.trim_end_matches('0').trim_end_matches('.'))
}

/// A number with three significant digits, for values written beside each other.
pub(crate) fn three_digits(value: f64) -> Label {
    let size = value.abs();
    if size == 0.0 {
        return Label::plain("0");
    }
    if (1e-3..1e6).contains(&size) {
        let exponent = size.log10().floor() as i32;
        let decimals = (2 - exponent).max(0) as usize;
        return Label::plain(fixed(value, decimals));
    }
    let exponent = size.log10().floor() as i32;
    let mantissa = value / 10f64.powi(exponent);
    scientific(mantissa, 1, exponent)
}

/// `mantissa` times ten to the power of `exponent`; a mantissa of 1 is left out.
pub(crate) fn scientific(mantissa: f64, decimals: usize, exponent: i32) -> Label {
    let digits = fixed(mantissa, decimals);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    let base = match digits {
        "1" => "10".to_string(),
        "\u{2212}1" => "\u{2212}10".to_string(),
        _ => format!("{digits}\u{d7}10"),
    };
    Label { base, exponent: Some(exponent) }
}

fn minus(text: String) -> String {
    text.replace('-', "\u{2212}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_signed() {
        assert_eq!(fixed(1234567.0, 0), "1,234,567");
        assert_eq!(fixed(-0.25, 2), "\u{2212}0.25");
        assert_eq!(fixed(-0.0001, 2), "0.00");
        assert_eq!(fixed(999.5, 1), "999.5");
    }

    #[test]
    fn short_numbers_keep_three_digits() {
        assert_eq!(short(0.123456).base, "0.123");
        assert_eq!(short(12.0).base, "12");
        assert_eq!(short(0.5).base, "0.5");
        assert_eq!(short(100.0).base, "100");
        let tiny = short(2.5e-7);
        assert_eq!((tiny.base.as_str(), tiny.exponent), ("2.5\u{d7}10", Some(-7)));
    }

    #[test]
    fn powers_are_raised() {
        assert_eq!(
            Label::power_of_ten(-5).markup(),
            "10<tspan dy=\"-0.45em\" font-size=\"72%\">\u{2212}5</tspan>"
        );
        assert_eq!(Label::power_of_ten(0).markup(), "1");
    }
}
