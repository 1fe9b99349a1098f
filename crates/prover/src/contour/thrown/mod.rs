//! Balls and bins: every record is thrown into one of the S batches of an epoch. Under Q one epoch has
//!
//! ```text
//! W = dP/dQ = (Y_1 + ... + Y_S)/S,   Y = e^(g/sigma - 1/(2 sigma^2)), g standard normal,
//! ```
//!
//! and epochs multiply. Of a last epoch with n < S steps W = (S - n + Y_1 + ... + Y_n)/S is seen. With e^Y of the parent
//! module for the product of all W, M(s) = E W^s is computed by negative powers ([`moment`]), of which those above 0 are made
//! ([`power`]). So a line may stand on either side of both poles, wherever the transform is closest to what is asked for.

mod moment;
mod power;
mod ray;
mod rough;

use super::line::{Line, Site};
use super::plan::{Endless, Search, Zone, aliases, short};
use crate::arithmetic::{Ball, Complex, Magnitude, normal_tail};
use crate::obstacle::{Obstacle, spend};
use moment::{Average, Real, moments, whole_tail};
use power::Power;
use ray::{Ray, end_of_block};
use rough::{Low, Rough};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Epochs of S batches, of which n are seen, and how many of them.
#[derive(Clone, Debug)]
pub struct Factor {
    pub batches: u64,
    pub seen: u64,
    pub times: u64,
}

impl Factor {
    fn is_whole(&self) -> bool {
        self.batches == self.seen
    }
}

/// The product of all epochs of a run.
pub struct Thrown {
    sigma: f64,
    factors: Vec<Factor>,
    rough: Rough,
    /// Places for the tail of a broken epoch.
    lows: Vec<Low>,
    /// Rough tails at (c, u) that were looked at before.
    tails: RefCell<BTreeMap<(u64, u64), (f64, f64)>>,
}

/// Nodes of a line at most.
const MOST_NODES: f64 = 400_000.0;

/// Nodes up to which one ray serves, and the ray of each factor.
type Block = (usize, usize, Vec<Ray>);

impl Thrown {
    pub fn new(sigma: f64, factors: Vec<Factor>) -> Self {
        let rough = Rough::new(sigma);
        let broken = factors.iter().find(|factor| !factor.is_whole());
        let lows = broken.map(|factor| rough.lows(factor)).unwrap_or_default();
        Self { sigma, factors, rough, lows, tails: RefCell::default() }
    }

    /// At least E(W - 1)_+: of one epoch W - 1 is the mean of Y - 1 over its batches, and what is positive of a sum is at most the sum of what is
    /// positive; epochs add up.
    pub fn total_variation<const N: usize>(&self) -> Ball<N> {
        let half = Ball::<N>::from_f64(self.sigma).reciprocal().scaled(-1);
        let one = normal_tail(-half) - normal_tail(half);
        self.factors.iter().fold(Ball::ZERO, |sum, factor| {
            let share = Ball::from_u64(factor.seen).over_u64(factor.batches);
            sum + (share * one).times_u64(factor.times)
        })
    }

    /// The least W, where no epoch is whole: each is at least (S - n)/S.
    pub fn least<const N: usize>(&self) -> Option<Ball<N>> {
        self.factors.iter().try_fold(Ball::one(), |product, factor| {
            let rest = Ball::from_u64(factor.batches - factor.seen).over_u64(factor.batches);
            (!factor.is_whole()).then(|| product * rest.power(factor.times))
        })
    }

    /// sigma, S and n, where there is one epoch alone.
    pub fn alone(&self) -> Option<(f64, u64, u64)> {
        match self.factors.as_slice() {
            [Factor { batches, seen, times: 1 }] => Some((self.sigma, *batches, *seen)),
            _ => None,
        }
    }

    /// sigma, and the batches of the shortest epoch of at least two.
    pub fn narrowest(&self) -> (f64, u64) {
        let several = self.factors.iter().map(|factor| factor.batches).filter(|all| *all > 1);
        (self.sigma, several.min().unwrap_or(2))
    }

    /// ln E W^s of the whole product, in doubles.
    fn log_moment(&self, s: f64) -> f64 {
        let one = |factor: &Factor| factor.times as f64 * self.rough.log_moment(factor, s);
        self.factors.iter().map(one).sum()
    }

    fn times(&self) -> f64 {
        self.factors.iter().map(|factor| factor.times as f64).sum()
    }

    /// ln of the bound on |E W^(s+iu)| beyond u, relative to E W^s, with the angle that shows it.
    fn rough_tail(&self, s: f64, u: f64) -> (f64, f64) {
        let key = (s.to_bits(), u.to_bits());
        if let Some(known) = self.tails.borrow().get(&key) {
            return *known;
        }
        let found = self.new_rough_tail(s, u);
        self.tails.borrow_mut().insert(key, found);
        found
    }

    fn new_rough_tail(&self, s: f64, u: f64) -> (f64, f64) {
        let mut log = 0.0;
        for factor in self.factors.iter().filter(|factor| factor.is_whole()) {
            let each = u * u / (2.0 * factor.batches as f64 * self.sigma * self.sigma);
            log -= factor.times as f64 * each;
        }
        let Some(factor) = self.factors.iter().find(|factor| !factor.is_whole()) else {
            return (log, 0.0);
        };
        let (found, kappa) = self.rough.log_tail(factor, &self.lows, (s, u));
        let found = found - self.rough.log_moment(factor, s);
        if found < 0.0 { (log + found, kappa) } else { (log, 0.0) }
    }

    /// How far the nodes have to reach for what is left out to be `depth` nats below the real point.
    fn reach(&self, s: f64, depth: f64) -> Option<(f64, f64)> {
        let left = |u: f64| self.rough_tail(s, u).0 - u.ln();
        let mut high = 1e-3;
        while left(high) > -depth {
            high *= 2.0;
            if high > 1e13 {
                return None;
            }
        }
        let mut low = 0.5 * high;
        for _ in 0..6 {
            let middle = 0.5 * (low + high);
            if left(middle) > -depth { low = middle } else { high = middle }
        }
        Some((high, self.rough_tail(s, high).1))
    }

    fn ray(&self, factor: &Factor, power: Power, range: (f64, f64), depth: f64) -> Option<Ray> {
        Ray::new(&self.rough, self.sigma, factor, power, range, depth)
    }

    /// Gamma(p) E W^(m-p) of one factor, and Gamma(p).
    fn real<const N: usize>(&self, factor: &Factor, power: Power, depth: f64) -> Option<Real<N>> {
        let ray = self.ray(factor, power, (0.0, 0.0), depth)?;
        spend(ray.work(factor.seen, N)).ok()?;
        Average::new(self.sigma, factor).real(&ray)
    }

    /// E W^s of the whole product; a few digits.
    fn moment<const N: usize>(&self, s: f64) -> Option<Ball<N>> {
        if s == 0.0 || s == 1.0 {
            return Some(Ball::one());
        }
        let mut product = Ball::one();
        for factor in &self.factors {
            let depth = 9.0 + (factor.times as f64).ln();
            let real = self.real::<N>(factor, Power::of(s)?, depth)?;
            product = product * real.moment().power(factor.times);
        }
        Some(product)
    }

    /// A line for the threshold with an error of about e^log_error.
    ///
    /// # Errors
    /// Why there is none.
    pub fn line<const N: usize>(
        &self,
        threshold: f64,
        log_error: f64,
    ) -> Result<Line<N>, Obstacle> {
        let other = |s: f64| self.log_moment(s);
        let search = Search { roughs: &[], gaussian: 0.0, threshold, other: Some(&other) };
        let (line, (far, kappa)) = self
            .shortest(&search, log_error, 64.0 * N as f64)
            .ok_or("no line through the saddle decays")?;
        let power = Power::of(line.tilt).ok_or("no line through the saddle decays")?;
        let nodes = (far / line.spacing).ceil().max(1.0);
        if !(nodes < MOST_NODES) {
            return Err(format!("{nodes:.0} nodes are too many").into());
        }
        let nodes = nodes as usize;
        let depth = self.depth(line.depth);
        let blocks = self.blocks(power, line.spacing, nodes, depth)?;
        let rays = || blocks.iter().flat_map(|block| &block.2);
        let points = rays().map(Ray::points).fold(1.0, f64::max);
        let needed = self.needed_bits(line.depth, rays(), nodes as f64);
        if needed > 64.0 * N as f64 {
            return Err(Obstacle::Words(format!("{needed:.0} bits are needed")));
        }
        let work = |(from, to, rays): &Block| -> f64 {
            let each = rays.iter().zip(&self.factors);
            each.map(|(ray, factor)| {
                ray.work(factor.seen, N) + ray.sums_work((to - from + 1) as f64, N)
            })
            .sum()
        };
        spend(blocks.iter().map(work).sum::<f64>())?;
        let values = self.nodes(&line, power, nodes, &blocks, depth).ok_or("a sum has no bound")?;
        let tail = self
            .tail::<N>(power, line.spacing * nodes as f64, kappa, depth)
            .ok_or("the nodes left out have no bound")?;
        let site = Site {
            zone: line.zone,
            tilt: line.tilt,
            spacing: line.spacing,
            alias_tilts: line.alias_tilts,
        };
        Line::of_values(&site, values, tail, points as usize, &|s| self.moment(s))
            .ok_or_else(|| "a bound could not be computed".into())
    }

    /// E W^m of the whole product for m = 0, 1, ..., `most`.
    pub fn moments<const N: usize>(&self, most: usize) -> Vec<Ball<N>> {
        let mut products = vec![Ball::one(); most + 1];
        for factor in &self.factors {
            let all = moments(self.sigma, factor, most);
            for (product, moment) in products.iter_mut().zip(all) {
                *product = *product * moment.power(factor.times);
            }
        }
        products
    }

    /// Nats of one factor's moments for this many of a line.
    fn depth(&self, depth: f64) -> f64 {
        depth + self.times().ln() + 3.0
    }

    /// Bits that the arithmetic needs, those lost at the ends of a ray among them.
    fn needed_bits<'a>(
        &self,
        depth: f64,
        rays: impl IntoIterator<Item = &'a Ray>,
        nodes: f64,
    ) -> f64 {
        let (points, digits) = rays
            .into_iter()
            .fold((1.0f64, 0.0f64), |(p, d), ray| (p.max(ray.points()), d.max(ray.digits)));
        let nats = (self.depth(depth) + 30.0 + nodes.ln() + points.ln() + 5.5).max(digits + 10.0);
        nats * std::f64::consts::LOG2_E
    }

    /// The cheapest line. Not the one through the saddle: where what is asked for is a small difference, the pole
    /// makes aliases of a line near it fall slowly.
    fn shortest(
        &self,
        search: &Search<'_>,
        log_error: f64,
        bits: f64,
    ) -> Option<(Endless, (f64, f64))> {
        let mut best: Option<(f64, Endless, (f64, f64))> = None;
        for zone in [Zone::Below, Zone::Between, Zone::Above] {
            // The least work in this zone, and for how many tilts it has not become less.
            let (mut v, mut least, mut worse) = (0.1, f64::INFINITY, 0);
            while worse < 6 || (least.is_infinite() && v < 1e3) {
                let tilt = short(match zone {
                    Zone::Below => -v,
                    Zone::Between => 0.05 + 0.45 * v,
                    Zone::Above => 1.0 + v,
                });
                v = if zone == Zone::Between { v + 0.2 } else { v * 1.5 };
                if v > 1e9 || (zone == Zone::Between && v > 2.0) {
                    break;
                }
                worse += 1;
                if let Some(offer) = self.offer(search, zone, tilt, (log_error, bits)) {
                    if offer.0 < least {
                        (least, worse) = (offer.0, 0);
                    }
                    if best.as_ref().is_none_or(|best| offer.0 < best.0) {
                        best = Some(offer);
                    }
                }
            }
        }
        best.map(|(_, line, reach)| (line, reach))
    }

    /// A line at this tilt, its work and how far it goes.
    fn offer(
        &self,
        search: &Search<'_>,
        zone: Zone,
        tilt: f64,
        (log_error, bits): (f64, f64),
    ) -> Option<(f64, Endless, (f64, f64))> {
        let power = Power::of(tilt)?;
        let log = search.log_integrand(tilt);
        let depth = (log - log_error).max(10.0) + 4.0;
        let base = -(tilt * (tilt - 1.0)).abs().ln();
        let (spacing, alias_tilts) = aliases(search, zone, tilt, log_error)?;
        let reach = self.reach(tilt, depth - base)?;
        let nodes = reach.0 / spacing;
        // Far along the line rays are longest.
        let last = (0.7 * reach.0, reach.0);
        let rays: Vec<Ray> = self
            .factors
            .iter()
            .map(|factor| self.ray(factor, power, last, self.depth(depth)))
            .collect::<Option<_>>()?;
        let blocks = 1.0 + (reach.0 / power.p).ln_1p();
        let crowded = self.needed_bits(depth, &rays, nodes) > bits;
        let cost = |(ray, factor): (&Ray, &Factor)| {
            blocks * (ray.work(factor.seen, 2) + ray.sums_work(nodes / blocks, 2))
        };
        let work = rays.iter().zip(&self.factors).map(cost).sum::<f64>();
        let work = work * if crowded { 1e6 * depth } else { 1.0 };
        work.is_finite().then_some((
            work,
            Endless { zone, tilt, spacing, alias_tilts, depth },
            reach,
        ))
    }

    fn blocks(
        &self,
        power: Power,
        spacing: f64,
        nodes: usize,
        depth: f64,
    ) -> Result<Vec<Block>, Obstacle> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut from = 0;
        while from <= nodes {
            let end = end_of_block(power.p, from as f64 * spacing, nodes as f64 * spacing);
            let to = ((end / spacing).floor() as usize).clamp(from, nodes);
            let range = (from as f64 * spacing, to as f64 * spacing);
            spend(0.2)?;
            let rays = self
                .factors
                .iter()
                .map(|factor| self.ray(factor, power, range, depth))
                .collect::<Option<_>>()
                .ok_or("a ray has too many points")?;
            blocks.push((from, to, rays));
            from = to + 1;
        }
        Ok(blocks)
    }

    /// M at the nodes.
    fn nodes<const N: usize>(
        &self,
        line: &Endless,
        power: Power,
        nodes: usize,
        blocks: &[Block],
        depth: f64,
    ) -> Option<Vec<Complex<N>>> {
        let mut values = vec![Complex::<N>::one(); nodes + 1];
        for (index, factor) in self.factors.iter().enumerate() {
            let average = Average::new(self.sigma, factor);
            let real = self.real::<N>(factor, power, depth)?;
            for (from, to, rays) in blocks {
                let found = average.nodes(&rays[index], &real, line.spacing, (*from, *to));
                for (value, one) in values[*from..=*to].iter_mut().zip(found) {
                    // W^(s+iu) is the conjugate of W^(s-iu).
                    *value = *value * one.conjugate().power(factor.times);
                }
            }
        }
        Some(values)
    }

    /// At least |M(s+iu)| for every u >= `from`, divided by pi u.
    fn tail<const N: usize>(
        &self,
        power: Power,
        from: f64,
        kappa: f64,
        depth: f64,
    ) -> Option<Magnitude> {
        let mut product = Ball::<N>::one();
        for factor in &self.factors {
            let few = 9.0 + (factor.times as f64).ln();
            let moment = self.real::<N>(factor, power, few);
            let moment = moment?.moment();
            let bound = if factor.is_whole() {
                moment * whole_tail(self.sigma, factor, from)
            } else if kappa > 0.0 {
                let (log_all, seen) = ((factor.batches as f64).ln(), factor.seen as f64);
                // What is less likely than this does not count, at the least W that there is.
                let rest = 1.0 - seen / factor.batches as f64;
                let least = depth + 25.0 + power.tilt().min(0.0) * rest.ln();
                let lows: Vec<Low> =
                    self.lows.iter().filter(|low| low.log_chance > -least).copied().collect();
                spend(0.5 * lows.len() as f64).ok()?;
                // Far below the mean E e^(-zY) is small, and has to have digits of its own there, as far as they count.
                let fall = |low: &Low| {
                    let most = (depth + low.log_slope.exp() * low.place) / seen + 5.0;
                    self.rough.fall(low.log_slope - log_all).min(most)
                };
                let deepest = lows.iter().map(fall).fold(0.0, f64::max);
                let plain = Power { m: 0, p: 1.0 };
                // Fewer digits make chances far below the mean larger than they are, which may do.
                let ray = [1.0, 0.5, 0.25, 0.1, 0.0]
                    .into_iter()
                    .find_map(|part| self.ray(factor, plain, (0.0, 0.0), depth + part * deepest))?;
                let average = Average::new(self.sigma, factor);
                average.tail((power.tilt(), moment), from, kappa, &lows, &ray)?
            } else {
                moment
            };
            product = product * bound.upper().power(factor.times);
        }
        Some(product.over(Ball::pi() * Ball::from_f64(from)).above())
    }
}

#[cfg(test)]
mod tests;
