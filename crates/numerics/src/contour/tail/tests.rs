use super::super::grid::Design;
use super::super::strip::Unmasked;
use super::super::transform;
use super::*;
use crate::mixture::Component;

/// Uniform numbers in [0, 1).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Log-uniform.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }
}

fn pair(random: &mut Uniform) -> MixtureRatio {
    let (scale, near) = (random.between(0.2, 100.0), random.between(1e-7, 1.0));
    let rate = if random.next() < 0.7 { near } else { 1.0 - near };
    let component = |weight: f64, centre: f64| Component { weight, centre };
    match (random.next() * 4.0) as usize {
        0 => MixtureRatio::subsampled(scale, rate),
        1 => MixtureRatio::new(scale, vec![component(rate, 1.0)], vec![component(rate, -1.0)]),
        2 => {
            let once = component(2.0 * rate * (1.0 - rate), 1.0);
            MixtureRatio::new(scale, vec![once, component(rate * rate, 2.0)], Vec::new())
        }
        _ => {
            let of = |sign: f64| {
                (1..=3).map(|j| component(0.3 * rate, sign * f64::from(j))).collect::<Vec<_>>()
            };
            MixtureRatio::new(scale, of(1.0), of(-1.0))
        }
    }
}

/// A tilt, a grid as coarse as the solver's and one seven times finer.
fn place(random: &mut Uniform, pair: &MixtureRatio) -> Option<(f64, Grid, Grid)> {
    let size = (pair.scale() / pair.reach()).max(1.0).powi(2);
    let c = match (random.next() * 3.0) as usize {
        0 => 1.0 + size * random.between(1e-2, 20.0),
        1 => random.next(),
        _ => -size * random.between(1e-2, 20.0),
    };
    let digits = 24.0 + 20.0 * random.next();
    let design = Design { highest: c.max(2.0), lowest: c.min(-1.0), frequency: 0.0, digits };
    let coarse = Grid::coarse(pair, &design).ok()?;
    let step = coarse.x[1] - coarse.x[0];
    let (first, count) = (coarse.x[0] - 40.0 * step, 7 * (coarse.len() + 80));
    let fine = Grid::between(pair, first, step / 7.0, count);
    Some((c, coarse, fine))
}

/// log of the integral of the modulus along a path, on a fine grid.
fn modulus(pair: &MixtureRatio, grid: &Grid, c: f64, (shape, theta): (Shape, f64), u: f64) -> f64 {
    let scale2 = pair.scale() * pair.scale();
    let unit = theta * scale2 / pair.reach();
    let full = pair.reach() * if pair.one_sided() { 1.0 } else { 2.0 };
    let (shares, _) = log_shares(grid, c);
    let sum: f64 = (grid.x.iter().zip(&shares))
        .map(|(&x, share)| {
            let (shift, slope) = pair.posterior_shift(x);
            let (y, slope) = match shape {
                Shape::Constant => (unit, 0.0),
                Shape::Posterior => (unit * shift / full, unit * slope / full),
            };
            let (here, off) = (pair.complex_logs(x, 0.0), pair.complex_logs(x, y));
            let growth = y * y / (2.0 * scale2)
                + 0.5 * ln_1p(slope * slope)
                + c * (off.numerator.0 - here.numerator.0)
                + (1.0 - c) * (off.denominator.0 - here.denominator.0);
            exp(share + growth - u * (off.numerator.1 - off.denominator.1))
        })
        .sum();
    ln(sum)
}

/// Every path's bound lies above the integral it bounds, and above the transform at heights from there on.
#[test]
fn bounds_lie_above_what_they_bound() {
    let mut random = Uniform(20261118);
    let (mut compared, mut useful, mut close) = (0, 0, 0);
    for _ in 0..600 {
        let pair = pair(&mut random);
        let Some((c, coarse, fine)) = place(&mut random, &pair) else { continue };
        let excess = coarse.log_above(&pair, c) - log_shares(&coarse, c).1;
        if !(excess < 0.1) {
            continue;
        }
        let law = Law::new(&pair, &coarse, c, excess);
        let (_, _, variance) = transform::cumulant(&fine, c);
        for depth in [1e-6, 1e-3, 0.1, 1.0, 10.0] {
            let u = (2.0f64 * depth / variance.max(1e-300)).sqrt();
            for shape in [Shape::Constant, Shape::Posterior] {
                let theta = HIGHEST.min(u * random.between(0.03, 3.0) * law.size());
                let bound = law.path(shape, theta, &Unmasked).log_ratio(u);
                // No bound is above 0: the transform itself is not.
                let truth = modulus(&pair, &fine, c, (shape, theta), u).min(0.0);
                // The sum over shares is 1 to some ulps only.
                assert!(
                    bound >= truth - 1e-12,
                    "{pair:?} at {c}, {shape:?} {theta}, {u}: {bound} {truth}"
                );
                compared += 1;
            }
            let path = law.best(u, &Unmasked, false);
            let bound = path.log_ratio(u);
            useful += usize::from(bound < 0.0);
            close += usize::from(bound < -0.4 * depth.min(2.0));
            let heights = transform::along(&fine, c, 0.5 * u, 9);
            for k in 2..9 {
                let fallen = heights.log[k].re - heights.log[0].re;
                let error = heights.error[k] + heights.error[0];
                if error < 1e-9 * bound.abs() {
                    assert!(bound >= fallen - error, "{pair:?} at {c}: {bound} {fallen}");
                    assert!(path.log_ratio(0.5 * u * k as f64) >= fallen - error);
                }
            }
        }
    }
    assert!(compared > 2000 && useful > compared / 3 && close > compared / 5);
}
