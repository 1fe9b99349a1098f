use super::*;
use crate::mixture::{Component, MixtureRatio};

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

/// A saddle somewhere in the domain, with grids that cover what its line would ask for.
struct SomeSaddle<'a> {
    zone: Zone,
    coarse: saddle::Coarse<'a>,
    c: f64,
    spread: f64,
    farthest: f64,
    /// The height at which a line would end.
    top: Option<f64>,
}

fn part(random: &mut Uniform) -> Part {
    let (scale, near) = (random.between(0.2, 100.0), random.between(1e-7, 1.0));
    // Mostly small rates and any number of steps, but also rates near 1 and few steps.
    let (rate, most) = if random.next() < 0.7 { (near, 1e9) } else { (1.0 - near, 10.0) };
    let times = random.between(1.0, most).ceil();
    let component = |weight: f64, centre: f64| Component { weight, centre };
    let pair = match (random.next() * 3.0) as usize {
        0 => MixtureRatio::subsampled(scale, rate),
        1 => MixtureRatio::new(scale, vec![component(rate, 1.0)], vec![component(rate, -1.0)]),
        _ => {
            let once = component(2.0 * rate * (1.0 - rate), 1.0);
            MixtureRatio::new(scale, vec![once, component(rate * rate, 2.0)], Vec::new())
        }
    };
    Part { pair, times }
}

fn place<'a>(random: &mut Uniform, parts: &'a [Part]) -> Option<SomeSaddle<'a>> {
    let zones = [Zone::Above, Zone::Above, Zone::Between, Zone::Below];
    let zone = zones[(random.next() * 4.0) as usize];
    let log_target = 0.5f64.ln() - 220.0 * random.next() * random.next();
    let mut coarse = saddle::Coarse::new(parts).ok()?;
    let growth = if zone == Zone::Above { 1.0 } else { 0.0 };
    let at = coarse.at_value(zone, growth, log_target).ok()?;
    let (c, spread) = (at.c, at.spread());
    let (low, high) = zone.ends();
    let farthest = coarse.farthest(&at, at.t, (c + 17.0 / spread).min(high));
    coarse.cover(farthest.max(1.25 * c).min(high)).ok()?;
    coarse.cover((c - 17.0 / spread).max(low)).ok()?;
    let log_size = -((c * (c - 1.0)).abs() * spread * (2.0 * PI).sqrt()).ln();
    let top = height(parts, coarse.grids(), c, at.variance, log_size, 1.0 / spread).ok();
    Some(SomeSaddle { zone, coarse, c, spread, farthest, top: top.map(|top| top.0) })
}

/// The same integrals on a grid five times finer: of A at the tilts that bound aliases, which are bounded without
/// allowance and nearly always closely.
#[test]
fn bounds_of_aliases_hold() {
    let mut random = Uniform(20261116);
    let (mut compared, mut close) = (0, 0);
    for _ in 0..CASES {
        let parts = [part(&mut random)];
        let Some(place) = place(&mut random, &parts) else { continue };
        let Part { pair, times } = &parts[0];
        let grid = &place.coarse.grids()[0];
        let (first, count) = (grid.x[0], 5 * (grid.len() - 1));
        let fine = Grid::between(pair, first, (grid.x[1] - first) / 5.0, count);
        let (low, high) = place.zone.ends();
        for step in -10..=10 {
            let tilt = place.c + 1.7 * f64::from(step) / place.spread;
            if tilt > low && tilt < high && tilt <= place.farthest {
                let bound = times * log_moment_above(&parts[0], grid, tilt);
                let truth = times * transform::cumulant(&fine, tilt).0;
                // The fine sum has roundings of its own.
                let rounded = 1e-12 * times * (1.0 + truth.abs() / times);
                assert!(bound >= truth - rounded, "{pair:?} {times} tilt {tilt}: {bound} {truth}");
                compared += 1;
                close += usize::from(bound <= truth + 2.0 * WASTE);
            }
        }
    }
    assert!(close > compared * 99 / 100, "{close} of {compared}");
}

/// Grids made for few digits, so that their error stands out from round-off.
#[test]
fn grids_err_by_no_more_than_they_say() {
    let mut random = Uniform(20261115);
    let mut compared = 0;
    for _ in 0..CASES {
        let parts = [part(&mut random)];
        let Some(place) = place(&mut random, &parts) else { continue };
        let (Some(frequency), Part { pair, .. }) = (place.top, &parts[0]) else { continue };
        let c = place.c;
        let design = Design { highest: c.max(1.0), lowest: c.min(0.0), frequency, digits: 10.0 };
        let coarse = &place.coarse.grids()[0];
        let Ok(grid) = Grid::economical(pair, &design, c, coarse) else { continue };
        // Finer, and wider.
        let step = (grid.x[1] - grid.x[0]) / 3.37;
        let beyond = 12.0 * pair.scale();
        let wide = grid.x[grid.len() - 1] - grid.x[0] + 2.0 * beyond;
        if wide / step > 2e5 {
            continue;
        }
        let fine = Grid::between(pair, grid.x[0] - beyond, step, (wide / step) as usize);
        let spacing = frequency / 40.0;
        let [found, truth] = [&grid, &fine].map(|grid| transform::along(grid, c, spacing, 41));
        for k in 0..=40 {
            let at = |t: &Transform| {
                let (sin, cos) = t.log[k].im.sin_cos();
                Complex::new(cos, sin).scale((t.log[k].re - truth.log[0].re).exp())
            };
            let difference = (at(&found) + at(&truth).scale(-1.0)).modulus();
            // In units of 1 + |s| + A(c).
            let unit = (1.0 + c.hypot(spacing * k as f64)) * (-truth.log[0].re).exp() + 1.0;
            let said = grid.relative_error * unit + 1e-11;
            assert!(difference <= said, "{pair:?} {c} {frequency} {k}: {difference:e} {said:e}");
        }
        compared += 1;
    }
    assert!(compared > CASES / 2);
}

const CASES: usize = 1500;
