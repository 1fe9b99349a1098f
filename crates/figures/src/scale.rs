//! From coordinates to the unit interval.

use vocabulary::figure::Scale;

/// Coordinates beyond this are treated as infinite, so that spans of two of them are not.
const LARGEST: f64 = 1e300;

/// The spreading function of an axis, without its domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Spread {
    Linear,
    Log10,
    Probit,
    Category,
}

impl Spread {
    pub(crate) fn of(scale: &Scale) -> Spread {
        match scale {
            Scale::Linear => Spread::Linear,
            Scale::Log10 => Spread::Log10,
            Scale::Probit => Spread::Probit,
            Scale::Category(_) => Spread::Category,
        }
    }

    /// Where a coordinate lies in the space in which the axis is even; `None` if nowhere.
    pub(crate) fn transform(self, value: f64) -> Option<f64> {
        if value.is_nan() || value.abs() > LARGEST {
            return None;
        }
        match self {
            Spread::Linear | Spread::Category => Some(value),
            Spread::Log10 => (value > 0.0).then(|| value.log10()),
            Spread::Probit => (value > 0.0 && value < 1.0).then(|| normal_quantile(value)),
        }
    }

    /// The inverse of `transform`.
    pub(crate) fn restore(self, place: f64) -> f64 {
        match self {
            Spread::Linear | Spread::Category => place,
            Spread::Log10 => 10f64.powf(place),
            Spread::Probit => normal_distribution(place),
        }
    }
}

/// An axis with its domain, in transformed space; `lower < upper`, both finite.
#[derive(Clone, Debug)]
pub(crate) struct AxisScale {
    pub(crate) spread: Spread,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
}

impl AxisScale {
    /// 0 at the lower end, 1 at the upper; outside of [0, 1] beyond them.
    pub(crate) fn unit(&self, value: f64) -> Option<f64> {
        let place = self.spread.transform(value)?;
        Some((place - self.lower) / (self.upper - self.lower))
    }

    /// Like `unit`, for the ends of areas: a coordinate beyond every place on the axis goes
    /// far to its side, so that a band down to 0 reaches the floor of a logarithmic axis.
    pub(crate) fn unit_or_far(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        Some(self.unit(value).unwrap_or(match self.spread {
            Spread::Probit if value >= 1.0 => 10.0,
            _ if value > 1.0 => 10.0,
            _ => -10.0,
        }))
    }
}

/// Acklam's rational approximation of the normal quantile, relative error 1.2e-9: far below
/// what a drawing shows.
fn normal_quantile(probability: f64) -> f64 {
    const CENTRE: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.383_577_518_672_69e2,
        -3.066479806614716e1,
        2.506628277459239e0,
    ];
    const CENTRE_BELOW: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const TAIL: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838e0,
        -2.549732539343734e0,
        4.374664141464968e0,
        2.938163982698783e0,
    ];
    const TAIL_BELOW: [f64; 4] =
        [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996e0, 3.754408661907416e0];
    let horner =
        |coefficients: &[f64], at: f64| coefficients.iter().fold(0.0, |sum, c| sum * at + c);
    let tail = |mass: f64| {
        let r = (-2.0 * mass.ln()).sqrt();
        horner(&TAIL, r) / (horner(&TAIL_BELOW, r) * r + 1.0)
    };
    if probability < 0.02425 {
        tail(probability)
    } else if probability > 1.0 - 0.02425 {
        -tail(1.0 - probability)
    } else {
        let r = probability - 0.5;
        let square = r * r;
        horner(&CENTRE, square) * r / (horner(&CENTRE_BELOW, square) * square + 1.0)
    }
}

/// The normal distribution function by bisection of its inverse; only ticks need it.
fn normal_distribution(quantile: f64) -> f64 {
    let (mut lower, mut upper) = (f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
    for _ in 0..200 {
        let middle = 0.5 * (lower + upper);
        if normal_quantile(middle) < quantile {
            lower = middle;
        } else {
            upper = middle;
        }
    }
    0.5 * (lower + upper)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_agrees_with_tabulated_values() {
        // Abramowitz and Stegun, table 26.5, and symmetry.
        for (probability, quantile) in
            [(0.5, 0.0), (0.975, 1.959963984540), (0.99, 2.326347874041), (0.001, -3.090232306168)]
        {
            let got = normal_quantile(probability);
            assert!((got - quantile).abs() < 1e-8, "{probability}: {got}");
        }
        assert!((normal_distribution(1.959963984540) - 0.975).abs() < 1e-9);
    }

    #[test]
    fn each_spread_maps_its_domain_onto_the_unit_interval() {
        for (spread, lower, middle, upper) in [
            (Spread::Linear, -1.0, 1.0, 3.0),
            (Spread::Log10, 1e-4, 1e-2, 1.0),
            (Spread::Probit, 0.01, 0.5, 0.99),
        ] {
            let scale = AxisScale {
                spread,
                lower: spread.transform(lower).unwrap(),
                upper: spread.transform(upper).unwrap(),
            };
            for (value, unit) in [(lower, 0.0), (middle, 0.5), (upper, 1.0)] {
                assert!((scale.unit(value).unwrap() - unit).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn what_has_no_place_is_none_and_areas_go_to_their_side() {
        assert_eq!(Spread::Log10.transform(0.0), None);
        assert_eq!(Spread::Log10.transform(-1.0), None);
        assert_eq!(Spread::Linear.transform(f64::INFINITY), None);
        assert_eq!(Spread::Probit.transform(1.0), None);
        let scale = AxisScale { spread: Spread::Log10, lower: -3.0, upper: 0.0 };
        assert_eq!(scale.unit_or_far(0.0), Some(-10.0));
        assert_eq!(scale.unit_or_far(f64::INFINITY), Some(10.0));
        assert_eq!(scale.unit_or_far(f64::NAN), None);
    }
}
