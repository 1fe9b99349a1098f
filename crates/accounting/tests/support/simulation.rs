//! Monte Carlo estimates of delta with an interval that misses the truth less than once in a
//! million cases: plain simulation for large delta, importance sampling for small ones.

use super::generator::Generator;
use accounting::Order;
use vocabulary::{Adjacency, Interval, Run};

/// Means and weights of both laws of one step, and its loss; written apart from the library.
pub(crate) struct Step {
    sigma: f64,
    first: Vec<(f64, f64)>,
    second: Vec<(f64, f64)>,
    steps: u64,
}

impl Step {
    pub(crate) fn of_run(run: &Run, order: Order) -> Vec<Self> {
        let k = run.group_size();
        let of_phase = |phase: &vocabulary::Phase| {
            let q = phase.sample_rate;
            let mut choose = 1.0;
            let mut weights = Vec::new();
            for j in 0..=k {
                weights.push(choose * q.powi(j as i32) * (1.0 - q).powi((k - j) as i32));
                choose *= f64::from(k - j) / f64::from(j + 1);
            }
            let mixture = |sign: f64| -> Vec<(f64, f64)> {
                weights
                    .iter()
                    .enumerate()
                    .map(|(j, w)| (sign * j as f64, *w))
                    .filter(|c| c.1 > 0.0)
                    .collect()
            };
            let (first, second) = match (run.adjacency(), order) {
                (Adjacency::Substitute, Order::Remove) => (mixture(1.0), mixture(-1.0)),
                (Adjacency::Substitute, Order::Add) => (mixture(-1.0), mixture(1.0)),
                (_, Order::Remove) => (mixture(1.0), vec![(0.0, 1.0)]),
                (_, Order::Add) => (vec![(0.0, 1.0)], mixture(1.0)),
            };
            Self { sigma: phase.noise_multiplier, first, second, steps: phase.steps }
        };
        run.phases().iter().map(of_phase).collect()
    }

    fn log_density(&self, mixture: &[(f64, f64)], x: f64) -> f64 {
        let log = |c: &(f64, f64)| c.1.ln() - 0.5 * ((x - c.0) / self.sigma).powi(2);
        let top = mixture.iter().map(log).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = mixture.iter().map(|c| (log(c) - top).exp()).sum();
        top + sum.ln() - self.sigma.ln() - 0.5 * std::f64::consts::TAU.ln()
    }

    fn loss(&self, x: f64) -> f64 {
        self.log_density(&self.first, x) - self.log_density(&self.second, x)
    }

    fn draw(&self, generator: &mut Generator) -> f64 {
        let mut u = generator.uniform();
        let mut mean = self.first[self.first.len() - 1].0;
        for (m, weight) in &self.first {
            if u < *weight {
                mean = *m;
                break;
            }
            u -= weight;
        }
        mean + self.sigma * generator.normal()
    }
}

fn interval(sum: f64, squares: f64, samples: usize, largest: f64) -> Interval {
    let n = samples as f64;
    let mean = sum / n;
    let deviation = ((squares / n - mean * mean).max(0.0) / n).sqrt();
    // Five standard errors, and Bernstein's term for the largest value seen or possible.
    Interval::around(mean, 5.0 * deviation + 15.0 * largest / n)
}

/// Plain simulation: the mean of (1 - e^{epsilon - Y})_+ under the first law.
pub(crate) fn plain(run: &Run, order: Order, epsilon: f64, samples: usize, seed: u64) -> Interval {
    let steps = Step::of_run(run, order);
    let mut generator = Generator::new(seed);
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..samples {
        let mut loss = 0.0;
        for step in &steps {
            for _ in 0..step.steps {
                loss += step.loss(step.draw(&mut generator));
            }
        }
        let payoff = (-(epsilon - loss).exp_m1()).max(0.0);
        sum += payoff;
        squares += payoff * payoff;
    }
    interval(sum, squares, samples, 1.0)
}

/// A step drawn from a piecewise constant density close to p e^{c l}: the weight p/g is known
/// exactly, so the estimate is unbiased whatever the tilt; the range holds all but 1e-30.
struct Tilted {
    low: f64,
    width: f64,
    cumulative: Vec<f64>,
    /// log g in each cell.
    log_density: Vec<f64>,
    mean_loss: f64,
    log_norm: f64,
}

impl Tilted {
    fn new(step: &Step, c: f64) -> Self {
        let means: Vec<f64> = step.first.iter().chain(&step.second).map(|c| c.0).collect();
        let (smallest, largest) =
            (means.iter().copied().fold(0.0, f64::min), means.iter().copied().fold(0.0, f64::max));
        let pull = c * (largest - smallest);
        let (low, high) = (smallest - pull - 12.0 * step.sigma, largest + pull + 12.0 * step.sigma);
        let count = 6000;
        let width = (high - low) / count as f64;
        let at = |i: usize| low + (i as f64 + 0.5) * width;
        let logs: Vec<f64> = (0..count)
            .map(|i| step.log_density(&step.first, at(i)) + c * step.loss(at(i)))
            .collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // A floor keeps every cell reachable, so that the weights stay bounded.
        let weights: Vec<f64> = logs.iter().map(|log| (log - top).exp().max(1e-40)).collect();
        let total: f64 = weights.iter().sum();
        let mut cumulative = Vec::with_capacity(count);
        let (mut sum, mut mean_loss) = (0.0, 0.0);
        for (i, weight) in weights.iter().enumerate() {
            sum += weight / total;
            cumulative.push(sum);
            mean_loss += weight / total * step.loss(at(i));
        }
        let log_density = weights.iter().map(|w| (w / total / width).ln()).collect();
        Self {
            low,
            width,
            cumulative,
            log_density,
            mean_loss,
            log_norm: top + (total * width).ln(),
        }
    }

    fn draw(&self, generator: &mut Generator) -> (f64, f64) {
        let u = generator.uniform() * self.cumulative[self.cumulative.len() - 1];
        let cell = self.cumulative.partition_point(|sum| *sum < u).min(self.cumulative.len() - 1);
        (self.low + (cell as f64 + generator.uniform()) * self.width, self.log_density[cell])
    }
}

/// Importance sampling at the tilt where the mean loss is epsilon.
pub(crate) fn tilted(run: &Run, order: Order, epsilon: f64, samples: usize, seed: u64) -> Interval {
    let steps = Step::of_run(run, order);
    let (mut low, mut high) = (0.0, 60.0);
    for _ in 0..24 {
        let c = 0.5 * (low + high);
        let mean: f64 = steps.iter().map(|s| s.steps as f64 * Tilted::new(s, c).mean_loss).sum();
        if mean < epsilon { low = c } else { high = c }
    }
    let laws: Vec<Tilted> = steps.iter().map(|step| Tilted::new(step, high)).collect();
    let log_scale: f64 =
        steps.iter().zip(&laws).map(|(s, t)| s.steps as f64 * t.log_norm).sum::<f64>()
            - high * epsilon;
    let mut generator = Generator::new(seed);
    let (mut sum, mut squares, mut largest) = (0.0, 0.0, 0.0_f64);
    for _ in 0..samples {
        let (mut loss, mut log_weight) = (0.0, 0.0);
        for (step, law) in steps.iter().zip(&laws) {
            for _ in 0..step.steps {
                let (x, log_density) = law.draw(&mut generator);
                loss += step.loss(x);
                log_weight += step.log_density(&step.first, x) - log_density;
            }
        }
        let value = (log_weight - log_scale).exp() * (-(epsilon - loss).exp_m1()).max(0.0);
        sum += value;
        squares += value * value;
        largest = largest.max(value);
    }
    let mean = interval(sum, squares, samples, largest);
    mean.map_increasing(|x| x.max(0.0) * log_scale.exp())
}
