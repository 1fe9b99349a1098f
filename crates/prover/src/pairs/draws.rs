//! How often the records of a group are in one batch, by the definition of the way to draw batches: exact
//! integers and doubles in, balls out.

use super::count::Count;
use super::step::binomial;
use crate::arithmetic::{Ball, Magnitude};
use crate::obstacle::Obstacle;
use vocabulary::{Adjacency, Phase, Run, Sampling};

/// The law of the number of uses in one step.
#[derive(Clone)]
pub enum Draws<const N: usize> {
    /// Always this many.
    Certain(u64),
    /// b_0, b_1, ...; up to `lost` of mass further out is counted in b_0 instead.
    Shares { weights: Vec<Ball<N>>, lost: Magnitude },
    /// p_1, p_2, ... of the symmetric profile of a replaced record; up to `lost` of mass is further out.
    Folded { shares: Vec<Ball<N>>, lost: Magnitude },
    /// With probability `tau` the batch is cut and holds the record with probability `kept`, else with `rate`.
    Cut { tau: Ball<N>, kept: Ball<N>, rate: Ball<N> },
}

/// One phase as the pair sees it.
pub struct Drawn<const N: usize> {
    pub noise: f64,
    pub times: u64,
    pub draws: Draws<N>,
}

/// The phases of a run whose steps are Gaussian mixtures against N(0, s^2) or against their mirror image.
///
/// - Poisson: Binomial(k, q) uses of k records. Cyclic Poisson: the same, ceil(T/c) times.
/// - Fixed size, adding or removing: the shift of j drawn records is 2j, that is j at half the noise. Without
///   replacement hypergeometric, with it Binomial(b, k/n).
///
/// # Errors
/// The reason why the run has no such steps.
pub fn drawn<const N: usize>(
    run: &Run,
    phases: &[Phase],
    depth: i64,
) -> Result<Vec<Drawn<N>>, Obstacle> {
    phases.iter().map(|phase| one(run, phase, depth)).collect()
}

/// One record of truncated batches, after `removed` others of its group are gone.
///
/// # Errors
/// As [`drawn`].
pub fn drawn_alone<const N: usize>(
    run: &Run,
    phases: &[Phase],
    removed: u64,
    depth: i64,
) -> Result<Vec<Drawn<N>>, Obstacle> {
    let records = run.dataset_size().ok_or("the number of records is not given")?;
    let records = records.checked_sub(removed).ok_or("the group is larger than the data set")?;
    let each = |phase: &Phase| truncated(run, phase, records, depth, coins(phase, 1, phase.steps));
    phases.iter().map(each).collect()
}

/// Each of `records` takes part with the phase's rate.
fn coins<const N: usize>(phase: &Phase, records: u64, times: u64) -> Drawn<N> {
    let draws = if phase.sample_rate == 1.0 {
        Draws::Certain(records)
    } else {
        let weights = binomial(records, Ball::from_f64(phase.sample_rate), records);
        Draws::Shares { weights, lost: Magnitude::ZERO }
    };
    Drawn { noise: phase.noise_multiplier, times, draws }
}

fn one<const N: usize>(run: &Run, phase: &Phase, depth: i64) -> Result<Drawn<N>, Obstacle> {
    let records = u64::from(run.group_size());
    let coins = |times: u64| coins(phase, records, times);
    match run.sampling() {
        Sampling::Poisson | Sampling::Full => Ok(coins(phase.steps)),
        Sampling::CyclicPoisson => {
            Ok(coins(phase.steps.div_ceil(run.drawing().cycle_length.unwrap_or(1).max(1))))
        }
        Sampling::FixedSize => {
            let draws = if records == 1 && !run.drawing().replacement {
                coins(phase.steps).draws
            } else {
                sized(run, phase, depth)?
            };
            let draws = match draws {
                Draws::Shares { weights, lost } if run.adjacency() != Adjacency::AddRemove => {
                    folded(&weights, lost)
                }
                other => other,
            };
            Ok(Drawn { noise: 0.5 * phase.noise_multiplier, times: phase.steps, draws })
        }
        Sampling::TruncatedPoisson => {
            let all = run.dataset_size().ok_or("the number of records is not given")?;
            truncated(run, phase, all, depth, coins(phase.steps))
        }
        other => Err(format!(
            "{} with {} are not proven so far",
            other.words(),
            run.adjacency().as_str()
        )
        .into()),
    }
}

/// The symmetric profile h rises with every share, so leaving shares out bounds it from below. From above: given
/// that none of them is drawn, the others are larger by a part of at most twice `lost`; and the event itself adds
/// `lost` for every step.
fn folded<const N: usize>(weights: &[Ball<N>], lost: Magnitude) -> Draws<N> {
    let more = |share: &Ball<N>| share.widened(share.above().times(lost).scaled(1));
    Draws::Folded { shares: weights[1..].iter().map(more).collect(), lost }
}

/// tau = Pr[Bin(n-1, q) >= B], kept = (B/n) Pr[Bin(n, q) > B] / tau.
fn truncated<const N: usize>(
    run: &Run,
    phase: &Phase,
    records: u64,
    depth: i64,
    coins: Drawn<N>,
) -> Result<Drawn<N>, Obstacle> {
    let most = run.drawing().max_batch_size.ok_or("the largest batch is not given")?;
    if most >= records {
        return Ok(coins);
    }
    let q = phase.sample_rate;
    let share = Ball::from_u64(most).over(Ball::from_u64(records));
    let draws = if q == 1.0 {
        Draws::Cut { tau: Ball::one(), kept: share, rate: Ball::one() }
    } else {
        let tail = |n: u64, from: u64| -> Result<Ball<N>, Obstacle> {
            let law = Count::<N>::binomial(n, q, depth + 80)
                .ok_or("the law of the size of a batch has too many values")?;
            let first = law.first;
            let inside = law.weights.iter().enumerate();
            let sum = inside
                .filter(|(index, _)| first + *index as u64 >= from)
                .fold(Ball::ZERO, |sum, (_, weight)| sum + *weight);
            Ok(sum + Ball::up_to(law.outside))
        };
        let (tau, more) = (tail(records - 1, most)?, tail(records, most + 1)?);
        Draws::Cut { tau, kept: (share * more).over(tau), rate: Ball::from_f64(q) }
    };
    Ok(Drawn { draws, ..coins })
}

/// Batches of a whole size out of a known number of records.
fn sized<const N: usize>(run: &Run, phase: &Phase, depth: i64) -> Result<Draws<N>, Obstacle> {
    let targets = u64::from(run.group_size());
    let records = run.dataset_size().ok_or("the number of records is not given")?;
    let batch = phase.sample_rate * records as f64;
    let whole = batch.round();
    if (batch - whole).abs() > 1e-9 * whole.max(1.0) || targets > records {
        return Err("the batch has no whole size".into());
    }
    let batch = whole as u64;
    if run.drawing().replacement {
        if targets == records {
            return Ok(Draws::Certain(batch));
        }
        let rate = Ball::from_u64(targets).over(Ball::from_u64(records));
        // Far beyond the mean weights fall at least by half each.
        let mean = batch as f64 * targets as f64 / records as f64;
        let mut most = (4.0 * mean + 8.0).min(batch as f64) as u64;
        loop {
            let weights = binomial(batch, rate, most);
            let last = weights.last().map_or(Magnitude::ZERO, Ball::above);
            if most == batch {
                return Ok(Draws::Shares { weights, lost: Magnitude::ZERO });
            }
            // (b-j) q / ((j+1)(1-q)) < 1/2 from here on: what follows is at most the last one.
            let falls = Ball::<N>::from_u64(2 * (batch - most)) * rate;
            let slowly = Ball::from_u64(most + 1) * (Ball::one() - rate);
            if falls.is_at_most(&slowly) && last < Magnitude::power_of_two(-depth) {
                return Ok(Draws::Shares { weights: moved(weights, last), lost: last });
            }
            most = (most + 2).min(batch);
            if most > 400 {
                return Err("a record may be drawn too many times into one batch".into());
            }
        }
    }
    if batch == records {
        return Ok(Draws::Certain(targets));
    }
    // C(k, j) [b]_j [n-b]_{k-j} / [n]_k.
    let falling = |from: u64, count: u64| -> Ball<N> {
        (0..count).fold(Ball::one(), |product, i| product.times_u64(from.saturating_sub(i)))
    };
    let all = falling(records, targets);
    let mut choose = Ball::one();
    // No more of them than the batch holds.
    let weights: Vec<Ball<N>> = (0..=targets.min(batch))
        .map(|j| {
            if j > 0 {
                choose = choose.times_u64(targets - j + 1).over_u64(j);
            }
            (choose * falling(batch, j) * falling(records - batch, targets - j)).over(all)
        })
        .collect();
    if weights.iter().any(|weight| !weight.is_positive()) {
        return Err("some numbers of drawn records are impossible".into());
    }
    Ok(Draws::Shares { weights, lost: Magnitude::ZERO })
}

/// The weights with up to `lost` more at 0, so that they add up to 1.
fn moved<const N: usize>(mut weights: Vec<Ball<N>>, lost: Magnitude) -> Vec<Ball<N>> {
    weights[0] = weights[0] + Ball::up_to(lost);
    weights
}
