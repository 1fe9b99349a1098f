//! Values to colours. The sequential ramp darkens all the way, so that it also orders cells
//! in a grey print; the diverging one meets in near-white at its centre.

use vocabulary::figure::{ColourScale, Heat, Ramp};

const SEQUENTIAL: [[f64; 3]; 8] = [
    [252.0, 250.0, 218.0],
    [223.0, 241.0, 197.0],
    [170.0, 221.0, 190.0],
    [110.0, 196.0, 190.0],
    [60.0, 162.0, 188.0],
    [38.0, 120.0, 176.0],
    [38.0, 76.0, 148.0],
    [22.0, 34.0, 92.0],
];

const DIVERGING: [[f64; 3]; 7] = [
    [5.0, 72.0, 128.0],
    [68.0, 143.0, 194.0],
    [168.0, 207.0, 230.0],
    [247.0, 247.0, 245.0],
    [250.0, 201.0, 150.0],
    [224.0, 130.0, 60.0],
    [150.0, 65.0, 10.0],
];

/// Colours in steps this fine cannot be told apart, and runs of them can be one rectangle.
const STEPS: f64 = 96.0;

/// A colour scale with its ends settled.
#[derive(Clone, Debug)]
pub(crate) struct Colouring {
    lower: f64,
    upper: f64,
    log: bool,
    ramp: Ramp,
}

impl Colouring {
    pub(crate) fn of(heat: &Heat) -> Colouring {
        let ColourScale { log, ramp, domain, .. } = heat.colours;
        let place = |value: f64| place(value, log);
        let asked = domain.and_then(|range| Some((place(range.lower)?, place(range.upper)?)));
        let mut extent = None;
        for place in heat.values.iter().flatten().flatten().filter_map(|v| place(*v)) {
            let (lower, upper) = extent.unwrap_or((place, place));
            extent = Some((place.min(lower), place.max(upper)));
        }
        let (lower, upper) =
            asked.map(|(a, b)| (a.min(b), a.max(b))).or(extent).unwrap_or((0.0, 1.0));
        let least = 1e-9 * lower.abs().max(upper.abs()).max(1e-9);
        let (lower, upper) = if upper - lower > least {
            (lower, upper)
        } else {
            (lower - 0.5 * (1.0 + lower.abs()), upper + 0.5 * (1.0 + upper.abs()))
        };
        Colouring { lower, upper, log, ramp }
    }

    /// The scale along the colour bar, as an axis.
    pub(crate) fn axis(&self) -> crate::scale::AxisScale {
        crate::scale::AxisScale {
            spread: if self.log {
                crate::scale::Spread::Log10
            } else {
                crate::scale::Spread::Linear
            },
            lower: self.lower,
            upper: self.upper,
        }
    }

    /// Where a value lies on the ramp, in steps; `None` if the value has no colour.
    pub(crate) fn step(&self, value: f64) -> Option<u32> {
        let place = place(value, self.log)?;
        let unit = match self.ramp {
            Ramp::Sequential => (place - self.lower) / (self.upper - self.lower),
            Ramp::Diverging { centre } => {
                let centre =
                    crate::ramp::place(centre, self.log).unwrap_or(0.5 * (self.lower + self.upper));
                let reach = (self.upper - centre).abs().max((self.lower - centre).abs());
                0.5 + 0.5 * (place - centre) / reach.max(f64::MIN_POSITIVE)
            }
        };
        Some((unit.clamp(0.0, 1.0) * STEPS).round() as u32)
    }

    pub(crate) fn colour(&self, step: u32) -> [u8; 3] {
        let stops: &[[f64; 3]] = match self.ramp {
            Ramp::Sequential => &SEQUENTIAL,
            Ramp::Diverging { .. } => &DIVERGING,
        };
        let along = f64::from(step) / STEPS * (stops.len() - 1) as f64;
        let index = (along.floor() as usize).min(stops.len() - 2);
        let part = along - index as f64;
        let mix = |channel: usize| {
            let (from, to) = (stops[index][channel], stops[index + 1][channel]);
            (from + part * (to - from)).round() as u8
        };
        [mix(0), mix(1), mix(2)]
    }

    /// Steps of the ramp from the lower to the upper end, for the colour bar.
    pub(crate) fn bar(&self, cells: usize) -> Vec<u32> {
        let axis = self.axis();
        (0..cells)
            .filter_map(|index| {
                let unit = (index as f64 + 0.5) / cells as f64;
                let place = axis.lower + unit * (axis.upper - axis.lower);
                self.step(axis.spread.restore(place))
            })
            .collect()
    }
}

fn place(value: f64, log: bool) -> Option<f64> {
    let spread = if log { crate::scale::Spread::Log10 } else { crate::scale::Spread::Linear };
    spread.transform(value)
}

pub(crate) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Whether white text has more contrast on a colour than black text (WCAG 2 luminance).
pub(crate) fn is_dark(colour: [u8; 3]) -> bool {
    let linear = colour.map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.03928 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    });
    let luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    // The luminance at which both contrasts are equal, for ink of luminance 0.009.
    luminance + 0.05 < (1.05f64 * 0.059).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heat(values: Vec<Option<f64>>, colours: ColourScale) -> Heat {
        Heat {
            x_edges: vec![0.0, 1.0, 2.0, 3.0],
            y_edges: vec![0.0, 1.0],
            values: vec![values],
            colours,
            contours: vec![],
            print_values: false,
        }
    }

    #[test]
    fn the_sequential_ramp_darkens() {
        let colouring = Colouring::of(&heat(vec![Some(0.0), Some(1.0)], ColourScale::default()));
        let grey = |step: u32| {
            let [r, g, b] = colouring.colour(step).map(f64::from);
            0.299 * r + 0.587 * g + 0.114 * b
        };
        assert!((1..=96).all(|step| grey(step) < grey(step - 1)));
    }

    #[test]
    fn the_centre_of_a_diverging_ramp_is_pale() {
        let colours = ColourScale {
            ramp: Ramp::Diverging { centre: 1.0 },
            log: true,
            ..ColourScale::default()
        };
        let colouring = Colouring::of(&heat(vec![Some(0.1), None, Some(2.0)], colours));
        assert_eq!(colouring.step(1.0), Some(48));
        assert_eq!(colouring.step(0.1), Some(0));
        assert_eq!(colouring.step(0.0), None);
        assert!(colouring.colour(48).iter().all(|channel| *channel > 240));
    }
}
