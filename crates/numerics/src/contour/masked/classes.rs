//! One part of the run cut into classes: grids for real tilts, for the nodes, and shifted paths.

use super::masks::{Class, Edge, Masks};
use crate::contour::Part;
use crate::contour::grid::{Deficit, Grid, MOST_POINTS};
use crate::contour::line::{LOG_TOLERANCE, Obstacle};
use crate::contour::strip::{self, Strip};
use crate::contour::tail::{HIGHEST, Law, Path, Shape};
use crate::elementary::{exp, hypot, ln, powi};
use crate::mixture::MixtureRatio;
use crate::special::normal_cdf;
use crate::sum::Sum;
use std::f64::consts::PI;

/// -log of the error permitted to sums at real tilts, in units of 1/T.
const WANTED: f64 = 45.0;

/// One part with its masks and what is computed once for them.
pub(super) struct Masked<'a> {
    pub(super) part: &'a Part,
    pub(super) masks: Masks,
    /// b and the three classes, on a grid fine enough for real tilts.
    pub(super) keep: Grid,
    pub(super) low: Grid,
    pub(super) middle: Grid,
    /// Where class 2 is asked for.
    pub(super) high: Option<Grid>,
    /// Shifted paths for b, and for class 1 where there is one.
    pub(super) paths: Vec<(Option<Path>, Option<Path>)>,
}

impl<'a> Masked<'a> {
    pub(super) fn new(part: &'a Part, masks: Masks) -> Result<Self, Obstacle> {
        Self::refined(part, masks, 1.0)
    }

    /// With this many times as many points.
    pub(super) fn refined(part: &'a Part, masks: Masks, times: f64) -> Result<Self, Obstacle> {
        let pair = &part.pair;
        let scale = pair.scale();
        // What is cut off at the left end must be light enough for a strip to end before it.
        let spare = if pair.one_sided() { 0.0 } else { 11.0 };
        let span = scale * (2.0 * (WANTED + spare + ln(part.times))).sqrt();
        let mut step = (0.25 * scale).min(0.2 * scale * scale / pair.reach());
        for edge in masks.uppers.iter().chain(&masks.lower) {
            step = step.min(0.3 * edge.width);
        }
        step /= times;
        let low = if pair.infimum().is_finite() { -span } else { -span - 2.0 * pair.reach() };
        let top = masks
            .uppers
            .iter()
            .map(|edge| edge.centre + 18.0 * edge.width)
            .reduce(f64::min)
            .map_or(span + 60.0 * pair.reach(), |end| end.max(span));
        let count = ((top.max(span + pair.reach()) - low) / step).ceil();
        if count > MOST_POINTS / 4.0 {
            return Err(Obstacle::TooFine);
        }
        let whole = Grid::between(pair, low, step, count as usize);
        let keep = whole.masked(
            |x| masks.keep_with_log(x),
            |x| masks.of(Class::Keep).slip(x),
            deficit(pair, &masks, &whole),
        );
        let several = masks.uppers.len() > 1;
        let middle = whole.masked(
            |x| masks.middle_with_log(x),
            |x| masks.of(Class::Middle).slip(x),
            Deficit::default(),
        );
        let low = whole.masked(
            |x| masks.low_with_log(x),
            |x| masks.of(Class::Low).slip(x),
            Deficit::default(),
        );
        let high = (!several).then(|| {
            whole.masked(
                |x| masks.high_with_log(x),
                |x| masks.of(Class::High).slip(x),
                Deficit::default(),
            )
        });
        let masked = Self { part, masks, keep, low, middle, high, paths: Vec::new() };
        // The mass above several edges is a sum over this grid, at tilts 0 and 1.
        if several && ![0.0, 1.0].iter().all(|&tilt| masked.certain(Class::Keep, tilt)) {
            return Err(Obstacle::TooFine);
        }
        Ok(masked)
    }

    /// Whether the sum over a class at a real tilt is its integral to e^-45 / T, relative, but for the
    /// ends of the grid (`covers`).
    ///
    /// The rule errs by 2 M / (e^{2 pi d/h} - 1), M the integral of the modulus at distance d from
    /// the axis (module `grid`). With 2 pi d/h = 1.5 times the digits wanted, M may be 0.45 of them.
    /// Positive powers of P and Q do not grow off the axis; negative ones by at most
    /// e^{theta^2/7} each, theta = d reach/s^2 <= pi/2, and far less where the tilt has
    /// emptied the region in which P turns: then M is added up.
    pub(super) fn certain(&self, class: Class, tilt: f64) -> bool {
        let pair = &self.part.pair;
        let negative = if pair.one_sided() { -tilt } else { (-tilt).max(tilt - 1.0) }.max(0.0);
        let Some(grid) = self.class(class) else { return false };
        let wanted = WANTED + ln(self.part.times);
        let distance = 1.5 * wanted * (grid.x[1] - grid.x[0]) / (2.0 * PI);
        let scale2 = pair.scale() * pair.scale();
        let theta = distance * pair.reach() / scale2;
        let turned = |edge: &Edge| 0.5 * powi(distance / edge.width, 2);
        let masks = self.masks.uppers.iter().chain(&self.masks.lower).map(turned).sum::<f64>();
        let general = 0.5 * distance * distance / scale2 + negative * theta * theta / 7.0 + masks;
        if theta <= 0.5 * PI && general <= 0.45 * wanted {
            return true;
        }
        if theta >= 0.9 * PI {
            return false;
        }
        // Edges apart from one another do not turn at the same place.
        let mask = self.masks.of(class);
        Strip::new(pair, grid, tilt, wanted, &mask)
            .is_some_and(|strip| strip.log_size(distance, 0.0, &mask) <= 0.45 * wanted)
    }

    fn class(&self, class: Class) -> Option<&Grid> {
        match class {
            Class::Keep => Some(&self.keep),
            Class::Low => Some(&self.low),
            Class::Middle => Some(&self.middle),
            Class::High => self.high.as_ref(),
        }
    }

    /// Candidate paths at tilt c.
    pub(super) fn with_paths(mut self, c: f64) -> Self {
        let pair = &self.part.pair;
        let masks = self.masks.clone();
        let law = |class: Class, grid: &Grid| {
            // What is certain is so to e^-45, and e^-30 may be cut off at the ends.
            self.certain(class, c).then(|| Law::new(pair, grid, c, 1e-9))
        };
        let keep = law(Class::Keep, &self.keep);
        let middle = if masks.lower.is_some() { law(Class::Middle, &self.middle) } else { None };
        let (of_keep, of_middle) = (masks.of(Class::Keep), masks.of(Class::Middle));
        let mut paths = Vec::new();
        for index in 0..8 {
            let theta = HIGHEST * powi(0.45f64, index);
            for shape in [Shape::Constant, Shape::Posterior] {
                let keep = keep.as_ref().map(|law| law.path(shape, theta, &of_keep));
                let middle = middle.as_ref().map(|law| law.path(shape, theta, &of_middle));
                paths.push((keep, middle));
            }
        }
        self.paths = paths;
        self
    }

    /// Grids for the nodes: fine enough for frequencies up to `top`.
    pub(super) fn fine(&self, c: f64, top: f64) -> Result<(Grid, Option<Grid>), Obstacle> {
        let pair = &self.part.pair;
        let digits = LOG_TOLERANCE + 4.0 + ln(self.part.times * (3.0 + top + c));
        // b is summed less its first two terms, which are b at tilts 0 and 1 without frequencies.
        let strip = |class: Class, grid: &Grid, tilt: f64| {
            Strip::new(pair, grid, tilt, digits, &self.masks.of(class)).ok_or(Obstacle::TooFine)
        };
        let mut strips = vec![
            (Class::Keep, top, strip(Class::Keep, &self.keep, c)?),
            (Class::Keep, 0.0, strip(Class::Keep, &self.keep, 0.0)?),
            (Class::Keep, 0.0, strip(Class::Keep, &self.keep, 1.0)?),
        ];
        if self.masks.lower.is_some() {
            strips.push((Class::Middle, top, strip(Class::Middle, &self.middle, c)?));
        }
        let (mut step, mut last) = (0.0f64, 0.0);
        for d in strip::heights(pair, digits) {
            let mut allowed = f64::INFINITY;
            for (class, top, strip) in &strips {
                if allowed > step {
                    allowed = allowed.min(strip.step(d, *top, &self.masks.of(*class)));
                }
            }
            step = step.max(allowed);
            // There is one best height: sizes are convex in it.
            if allowed < last {
                break;
            }
            last = allowed;
        }
        // Ends: where every tilted integrand has fallen below e^-digits of its top.
        // Class 1 by its own measure: it may be e^-50 of the bulk and still be the whole answer.
        let (mut first, mut last) = support(&self.keep, c, digits);
        if self.masks.lower.is_some() {
            let (low, high) = support(&self.middle, c, digits);
            (first, last) = (first.min(low), last.max(high));
        }
        let count = ((last - first) / step).ceil();
        if !(count <= MOST_POINTS) {
            return Err(Obstacle::TooFine);
        }
        let mut whole = Grid::between(pair, first, step, count as usize);
        whole.relative_error = 8.0 * exp(-digits);
        let masks = &self.masks;
        let middle = masks.lower.is_some().then(|| {
            whole.masked(
                |x| masks.middle_with_log(x),
                |x| masks.of(Class::Middle).slip(x),
                Deficit::default(),
            )
        });
        // The mass that the masks take reaches farther than the points that count here.
        let keep = whole.into_masked(
            |x| masks.keep_with_log(x),
            |x| masks.of(Class::Keep).slip(x),
            self.keep.deficit,
        );
        Ok((keep, middle))
    }
}

/// Q mass of class 2, and P mass minus it, with absolute errors. For one edge normal probabilities,
/// since both mask and mixture are; for several, sums over the grid, whose error the grid's own
/// covers.
fn deficit(pair: &MixtureRatio, masks: &Masks, grid: &Grid) -> Deficit {
    match masks.uppers.as_slice() {
        [] => Deficit::default(),
        [edge] => {
            let [p, q] = high_step(pair, edge);
            Deficit {
                mass: q.value,
                slope: p.value - q.value,
                mass_error: q.error * q.value,
                slope_error: p.error * p.value + q.error * q.value,
            }
        }
        _ => {
            let (mut mass, mut slope, mut out) =
                (Sum::default(), Sum::default(), Deficit::default());
            for (j, &x) in grid.x.iter().enumerate() {
                let high = masks.high(x);
                let (light, lifted) = (grid.weight[j] * high, grid.lifted(j) * high);
                mass.add(light);
                slope.add(lifted);
                let slip = f64::EPSILON * (masks.high_slip(x) + grid.weight_slip[j] + 8.0);
                let moved = f64::EPSILON * grid.ratio_slip[j] * (light + lifted.abs());
                out.mass_error += slip * light;
                out.slope_error += slip * lifted.abs() + moved;
            }
            Deficit { mass: mass.total(), slope: slope.total(), ..out }
        }
    }
}

/// A positive number and its relative error.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) value: f64,
    pub(super) error: f64,
}

/// P and Q probability of class 2 in one step: normal tails, whose arguments have four roundings,
/// magnified by z^2.
pub(super) fn high_step(pair: &MixtureRatio, edge: &Edge) -> [Known; 2] {
    let spread = hypot(pair.scale(), edge.width);
    let mass = |of_p: bool| {
        let (mut value, mut error) = (0.0, 0.0);
        for c in pair.with_zero(of_p) {
            let z = (c.centre - edge.centre) / spread;
            let part = c.weight * normal_cdf(z);
            value += part;
            // The difference of the centres is rounded relative to itself.
            let slope = if z < 0.0 { z * z + 1.0 } else { 1.0 };
            error += part * f64::EPSILON * (16.0 + 4.0 * slope);
        }
        let error = if value > 0.0 { error / value } else { 0.0 };
        let parts = pair.numerator().len().max(pair.denominator().len()) as f64;
        Known { value, error: error + pair.weight_error() + f64::EPSILON * parts }
    };
    [mass(true), mass(false)]
}

/// First and last x at which some tilt between 0 and c still counts.
pub(super) fn support(grid: &Grid, c: f64, digits: f64) -> (f64, f64) {
    let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
    for tilt in [0.0, 1.0, c] {
        let at = |j: usize| grid.log_weight[j] + tilt * grid.log_ratio[j];
        let top = (0..grid.len()).map(at).fold(f64::NEG_INFINITY, f64::max);
        for j in 0..grid.len() {
            if at(j) > top - digits - 6.0 {
                first = first.min(grid.x[j]);
                last = last.max(grid.x[j]);
            }
        }
    }
    (first, last)
}
