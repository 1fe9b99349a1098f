//! Ticks at round numbers: 1, 2, 5 times a power of ten on a linear axis; decades, with the
//! steps between them, on a logarithmic one.

use crate::label::{self, Label};
use crate::scale::{AxisScale, Spread};
use vocabulary::figure::TickFormat;

/// One tick; without a label a minor one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: Option<Label>,
}

/// The ticks of an axis, in ascending order, with about `room` labels and never many more.
pub(crate) fn ticks(scale: &AxisScale, room: usize, format: TickFormat) -> Vec<Tick> {
    let room = room.max(2);
    match scale.spread {
        Spread::Linear => linear(scale.lower, scale.upper, room, format),
        Spread::Log10 => logarithmic(scale.lower, scale.upper, room, format),
        Spread::Probit => quantiles(scale, room, format),
        Spread::Category => Vec::new(),
    }
}

fn linear(lower: f64, upper: f64, room: usize, format: TickFormat) -> Vec<Tick> {
    let (step, power) = round_step((upper - lower) / room as f64);
    let first = (lower / step - 1e-9).ceil();
    let last = (upper / step + 1e-9).floor();
    let largest = lower.abs().max(upper.abs());
    (0..)
        .map(|index| first + index as f64)
        .take_while(|multiple| *multiple <= last)
        .take(10 * room)
        .map(|multiple| {
            let at = multiple * step;
            Tick { at, label: Some(linear_label(at, power, largest, format)) }
        })
        .collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `raw`, and that power.
fn round_step(raw: f64) -> (f64, i32) {
    let power = raw.log10().floor() as i32;
    let unit = 10f64.powi(power);
    for factor in [1.0, 2.0, 5.0] {
        if factor * unit >= raw * (1.0 - 1e-9) {
            return (factor * unit, power);
        }
    }
    (10.0 * unit, power + 1)
}

fn linear_label(at: f64, power: i32, largest: f64, format: TickFormat) -> Label {
    if format == TickFormat::Percent {
        let decimals = (-(power + 2)).clamp(0, 12) as usize;
        return Label::plain(label::fixed(100.0 * at, decimals) + "%");
    }
    let order = largest.log10().floor() as i32;
    let digits = order - power;
    let long = !(-3..6).contains(&order) && digits <= 4;
    if long && at != 0.0 {
        label::scientific(at / 10f64.powi(order), digits.max(0) as usize, order)
    } else {
        let decimals = (-power).clamp(0, 17) as usize;
        Label::plain(label::fixed(at, if at == 0.0 && long { 0 } else { decimals }))
    }
}

fn logarithmic(lower: f64, upper: f64, room: usize, format: TickFormat) -> Vec<Tick> {
    let first = (lower - 1e-9).ceil() as i32;
    let last = (upper + 1e-9).floor() as i32;
    if last <= first {
        // Less than two decades in sight: round numbers of the values themselves.
        return linear(10f64.powf(lower), 10f64.powf(upper), room, format);
    }
    let decades = (last - first + 1) as usize;
    let stride = [1, 2, 3, 5, 10, 20, 50, 100, 200]
        .into_iter()
        .find(|stride| decades.div_ceil(*stride) <= room)
        .unwrap_or(500) as i32;
    let plain = first >= -3 && last <= 4;
    let between = decades * 3 <= room && plain;
    let label_at = |digit: i32, exponent: i32| {
        let labelled = match digit {
            1 => exponent.rem_euclid(stride) == 0,
            2 | 5 => between,
            _ => false,
        };
        labelled.then(|| logarithmic_label(digit, exponent, plain, format))
    };
    let digits = if stride == 1 && decades <= 12 { 9 } else { 1 };
    let mut ticks = Vec::new();
    for exponent in (first - 1)..=last {
        for digit in 1..=digits {
            let place = f64::from(exponent) + f64::from(digit).log10();
            if place < lower - 1e-9 || place > upper + 1e-9 {
                continue;
            }
            ticks.push(Tick {
                at: f64::from(digit) * 10f64.powi(exponent),
                label: label_at(digit, exponent),
            });
        }
    }
    ticks
}

fn logarithmic_label(digit: i32, exponent: i32, plain: bool, format: TickFormat) -> Label {
    let decimals = |exponent: i32| (-exponent).max(0) as usize;
    if format == TickFormat::Percent && exponent >= -6 {
        let value = f64::from(digit) * 10f64.powi(exponent + 2);
        return Label::plain(label::fixed(value, decimals(exponent + 2)) + "%");
    }
    if plain {
        let value = f64::from(digit) * 10f64.powi(exponent);
        return Label::plain(label::fixed(value, decimals(exponent)));
    }
    Label::power_of_ten(exponent)
}

/// 10^-k, 0.5 and 1 - 10^-k with labels, some rates between them without.
fn quantiles(scale: &AxisScale, room: usize, format: TickFormat) -> Vec<Tick> {
    let in_sight =
        |value: f64| scale.unit(value).is_some_and(|unit| (-1e-9..=1.0 + 1e-9).contains(&unit));
    let powers = (1..=15).filter(|k| in_sight(10f64.powi(-k)) || in_sight(1.0 - 10f64.powi(-k)));
    // Quantiles leave more room between the tails than even spacing would.
    let stride = (2 * powers.count() + 1).div_ceil(room + room / 3).max(1) as i32;
    let mut ticks = Vec::new();
    for k in 1..=15 {
        let tail = 10f64.powi(-k);
        let labelled = (k - 1) % stride == 0;
        let below = match format {
            TickFormat::Auto if k > 4 => Label::power_of_ten(-k),
            TickFormat::Auto => Label::plain(label::fixed(tail, k as usize)),
            TickFormat::Percent => {
                Label::plain(label::fixed(100.0 * tail, (k - 2).max(0) as usize) + "%")
            }
        };
        let above = match format {
            TickFormat::Auto => label::fixed(1.0 - tail, k as usize),
            TickFormat::Percent => {
                label::fixed(100.0 * (1.0 - tail), (k - 2).max(0) as usize) + "%"
            }
        };
        ticks.push((tail, labelled.then_some(below)));
        ticks.push((1.0 - tail, labelled.then(|| Label::plain(above))));
    }
    let half = match format {
        TickFormat::Auto => "0.5",
        TickFormat::Percent => "50%",
    };
    ticks.push((0.5, Some(Label::plain(half))));
    for minor in [0.02, 0.05, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.95, 0.98] {
        ticks.push((minor, None));
    }
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks
        .into_iter()
        .filter(|(at, _)| in_sight(*at))
        .map(|(at, label)| Tick { at, label })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(spread: Spread, lower: f64, upper: f64, room: usize) -> Vec<String> {
        let scale = AxisScale {
            spread,
            lower: spread.transform(lower).unwrap(),
            upper: spread.transform(upper).unwrap(),
        };
        ticks(&scale, room, TickFormat::Auto)
            .into_iter()
            .filter_map(|tick| tick.label)
            .map(|label| match label.exponent {
                Some(exponent) => format!("{}^{exponent}", label.base),
                None => label.base,
            })
            .collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(Spread::Linear, 0.0, 1.0, 6), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(Spread::Linear, -3.0, 17.0, 5), ["0", "5", "10", "15"]);
        assert_eq!(
            labels(Spread::Linear, 0.0, 4e6, 4),
            ["0", "10^6", "2\u{d7}10^6", "3\u{d7}10^6", "4\u{d7}10^6"]
        );
    }

    #[test]
    fn decades_are_thinned_to_the_room() {
        assert_eq!(
            labels(Spread::Log10, 1e-6, 1.0, 8),
            ["10^-6", "10^-5", "10^-4", "10^-3", "10^-2", "10^-1", "1"]
        );
        assert_eq!(
            labels(Spread::Log10, 1e-100, 1.0, 6),
            ["10^-100", "10^-80", "10^-60", "10^-40", "10^-20", "1"]
        );
        assert_eq!(labels(Spread::Log10, 0.5, 50.0, 7), ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(Spread::Log10, 2.0, 5.0, 4), ["2", "3", "4", "5"]);
    }

    #[test]
    fn minor_ticks_stand_between_decades() {
        let scale = AxisScale { spread: Spread::Log10, lower: 0.0, upper: 2.0 };
        let ticks = ticks(&scale, 3, TickFormat::Auto);
        assert_eq!(ticks.len(), 19);
        assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn rates_are_symmetric_on_the_probit_axis() {
        assert_eq!(
            labels(Spread::Probit, 0.001, 0.999, 9),
            ["0.001", "0.01", "0.1", "0.5", "0.9", "0.99", "0.999"]
        );
    }
}
