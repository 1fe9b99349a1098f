//! Choosing masks: a short list from cheap to expensive, the first that certifies is taken.

use super::Part;
use super::line::Obstacle;
use super::masked::{Edge, Masks};
use super::windows::Windows;
use crate::elementary::{exp, ln, powi};
use crate::mixture::MixtureRatio;

/// How the masks are placed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Choice {
    /// One pair: the lower edge at the threshold's room divided by `share` (none for 0), and edges
    /// as soft as this part of the losses they stand at.
    Pair { share: f64, softness: f64 },
    /// Windows as wide as this many standard deviations of the small losses.
    Even { deviations: f64 },
    /// Windows from one loss to this many times that loss, for losses without a scale of their own;
    /// edges as soft as for a pair.
    Geometric { ratio: f64, softness: f64 },
    /// No lower edge, and the upper one where losses are too rare to matter, however small they are:
    /// many small losses make the sum, and beyond them the transform would explode.
    Rare { softness: f64 },
}

/// A value this accurate from the masks that worked last is not worth others.
const ACCURATE: f64 = 1e-9;
/// A value this accurate ends the search among all masks.
const ACCEPTABLE: f64 = 1e-8;
/// Smoothing is for what is still less accurate than this.
const WORTH_SMOOTHING: f64 = 5e-7;
/// A value less accurate than this is no answer.
const USEFUL: f64 = 1e-4;
/// Windows that are tried.
const WINDOWS: [Choice; 6] = [
    Choice::Rare { softness: 0.06 },
    Choice::Rare { softness: 0.03 },
    Choice::Even { deviations: 6.0 },
    Choice::Even { deviations: 3.0 },
    Choice::Geometric { ratio: 1.6, softness: 0.015 },
    Choice::Geometric { ratio: 1.6, softness: 0.03 },
];
/// More windows than this are not tried.
const MOST_WINDOWS: usize = 24;

/// The best masked line for a threshold.
///
/// `hint` holds what worked last time, which is tried first: neighbouring thresholds want the
/// same masks.
pub(crate) fn line(parts: &[Part], t: f64, hint: Option<Choice>) -> Result<Windows, Obstacle> {
    let floors: Vec<f64> = parts.iter().map(|part| floor(&part.pair)).collect();
    let bottom: f64 = parts.iter().zip(&floors).map(|(part, floor)| part.times * floor).sum();
    let steps: f64 = parts.iter().map(|part| part.times).sum();
    let bounded = parts.iter().all(|part| part.pair.infimum().is_finite());
    let bulk = bulk_spread(parts, t.abs().max(t - bottom));
    // How far the sum has to climb: from its bottom, or from seven deviations below zero.
    let room = if bounded { t - bottom } else { t.max(0.0) + 7.0 * bulk };
    if !(room > 0.0) {
        return Err(Obstacle::SlowDecay);
    }
    // How many class-0 steps of full size would be needed to reach the threshold.
    let mut shares = vec![0.0];
    let mut share = 2.0;
    while share < 1.4 * steps {
        shares.push(share);
        share *= 2.5;
    }
    shares.push(1.4 * steps);
    shares.truncate(9);
    let choices: Vec<Choice> = shares
        .iter()
        .flat_map(|&share| [0.06, 0.03].map(|softness| Choice::Pair { share, softness }))
        .collect();
    let build = |choice: Choice, may_smooth: bool| {
        let (share, softness) = match choice {
            Choice::Pair { share, softness } => (share, softness),
            Choice::Rare { softness } => (0.0, softness),
            _ => return Windows::cascade(parts, &cascade(parts, &floors, t, choice)?, t),
        };
        // Standard deviations beyond which all steps together are e^-45 of what a Gaussian bulk leaves.
        let rare = (powi(t / bulk, 2) + 2.0 * (45.0 + ln(steps))).sqrt();
        let masks = (parts.iter().zip(&floors))
            .map(|(part, &floor)| {
                // A jump of this size puts the sum above t whatever the other steps do, or
                // but for a deviation of seven standard deviations of the rest.
                let reach = if let Choice::Rare { .. } = choice {
                    part.pair.log_ratio(rare * part.pair.scale()) - floor
                } else {
                    (room.min(t.max(0.0) + 7.0 * bulk) - floor) / (1.0 - 7.0 * softness)
                };
                let upper = edge(&part.pair, floor, reach, softness);
                let lower = (share > 0.0).then(|| edge(&part.pair, floor, room / share, softness));
                Masks { uppers: vec![upper], lower }
            })
            .collect();
        Windows::single(parts, masks, t, may_smooth)
    };
    let mut best: Option<(f64, Choice, Windows)> = None;
    // What worked at a neighbouring threshold, then all pairs, then windows, then all pairs with an
    // average over neighbouring thresholds; each list ends as soon as more work would not be
    // worth it.
    let hinted: Vec<Choice> = hint.iter().copied().collect();
    for (list, may_smooth, enough) in [
        (&hinted[..], false, ACCURATE),
        (&choices, false, ACCEPTABLE),
        (&WINDOWS, false, ACCEPTABLE),
        (&choices, true, WORTH_SMOOTHING),
    ] {
        for &choice in list {
            if best.as_ref().is_some_and(|(error, ..)| *error <= enough) {
                break;
            }
            let Ok(line) = build(choice, may_smooth) else { continue };
            let error = line.error();
            if best.as_ref().is_none_or(|(known, ..)| error < *known) {
                best = Some((error, choice, line));
            }
        }
    }
    match best {
        Some((error, choice, line)) if error <= USEFUL => Ok(line.chosen(choice)),
        _ => Err(Obstacle::SlowDecay),
    }
}

/// A threshold near the one whose delta is e^log_target: the larger of what one large jump and
/// what a Gaussian bulk would give.
pub(crate) fn guess(parts: &[Part], log_target: f64) -> f64 {
    let jump = |t: f64| -> f64 {
        ln(parts
            .iter()
            .map(|part| {
                let x = part.pair.inverse(t);
                let (p, q) = above(&part.pair, x);
                part.times * (p - exp(t) * q).max(0.0)
            })
            .sum::<f64>())
    };
    let bulk = |t: f64| -> f64 {
        let spread = bulk_spread(parts, t);
        let (a, b) = (t / spread - 0.5 * spread, t / spread + 0.5 * spread);
        crate::special::log_sub_exp(
            crate::special::log_normal_cdf(-a),
            (t + crate::special::log_normal_cdf(-b)).min(crate::special::log_normal_cdf(-a)),
        )
    };
    let solve = |f: &dyn Fn(f64) -> f64| {
        let (mut low, mut high) = (-40.0f64, 12.0f64);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if f(exp(middle)) > log_target {
                low = middle;
            } else {
                high = middle;
            }
        }
        exp(low)
    };
    solve(&jump).max(solve(&bulk))
}

/// Whether many steps share the loss, so that the saddle of the whole is a better guess.
pub(crate) fn many_jumps(parts: &[Part]) -> bool {
    let jumps: f64 = parts
        .iter()
        .map(|part| part.times * part.pair.numerator().iter().map(|c| c.weight).sum::<f64>())
        .sum();
    jumps >= 1.0 && parts.iter().all(|part| part.pair.scale() < 0.6 * part.pair.reach())
}

/// P and Q mass above x.
fn above(pair: &MixtureRatio, x: f64) -> (f64, f64) {
    let tail = |of_p: bool| {
        let sf = |centre: f64| crate::special::normal_sf((x - centre) / pair.scale());
        pair.with_zero(of_p).map(|c| c.weight * sf(c.centre)).sum::<f64>()
    };
    (tail(true), tail(false))
}

/// The level from which sizes of losses are measured: the infimum, or 0 where there is none.
fn floor(pair: &MixtureRatio) -> f64 {
    let infimum = pair.infimum();
    if infimum.is_finite() { infimum } else { 0.0 }
}

/// An edge at loss floor + size, with a width of about `softness` of that size.
fn edge(pair: &MixtureRatio, floor: f64, size: f64, softness: f64) -> Edge {
    let centre = pair.inverse(floor + size);
    let slope = pair.posterior_shift(centre).0 / (pair.scale() * pair.scale());
    Edge { centre, width: (softness * size / slope.max(1e-300)).min(pair.scale()) }
}

/// Edges of windows, from the highest down, one for each part.
fn cascade(
    parts: &[Part],
    floors: &[f64],
    t: f64,
    choice: Choice,
) -> Result<Vec<Vec<Edge>>, Obstacle> {
    // Small is what many steps do: losses beyond five deviations of all of them are not.
    let mut small = bulk_spread(parts, t.max(0.0));
    for _ in 0..12 {
        small = bulk_spread(parts, 5.0 * small);
    }
    let top = t.max(0.0) + 7.0 * small;
    // Sizes of losses at the edges, with the distance to the next.
    let mut sizes = Vec::new();
    let mut size = top;
    while sizes.len() <= MOST_WINDOWS {
        let width = match choice {
            Choice::Even { deviations } => deviations * small,
            Choice::Geometric { ratio, .. } => (size * (1.0 - 1.0 / ratio)).max(6.0 * small),
            Choice::Pair { .. } | Choice::Rare { .. } => size,
        };
        if !(size >= width) {
            break;
        }
        sizes.push((size, width));
        size -= width;
    }
    if sizes.is_empty() || sizes.len() > MOST_WINDOWS {
        return Err(Obstacle::SlowDecay);
    }
    Ok((sizes.iter().enumerate())
        .map(|(k, &(size, width))| {
            let softest =
                if let Choice::Geometric { softness, .. } = choice { softness } else { 0.06 };
            let softness = (0.15 * width / size).min(softest);
            let reach = if k == 0 { size / (1.0 - 7.0 * softness) } else { size };
            (parts.iter().zip(floors))
                .map(|(part, &floor)| edge(&part.pair, floor, reach - floor, softness))
                .collect()
        })
        .collect())
}

/// Standard deviation of the sum of losses cut at `cap`.
fn bulk_spread(parts: &[Part], cap: f64) -> f64 {
    parts
        .iter()
        .map(|part| {
            let scale = part.pair.scale();
            let step = 0.1 * scale;
            let mut sum = 0.0;
            for index in -100..=100 {
                let x = step * f64::from(index);
                let density = exp(part.pair.log_denominator(x) - 0.5 * powi(x / scale, 2)) * 0.1
                    / (2.0 * std::f64::consts::PI).sqrt();
                sum += density * powi(part.pair.log_ratio(x).abs().min(cap), 2);
            }
            part.times * sum
        })
        .sum::<f64>()
        .sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts at different places are different sums: they must enclose the same number, and one
    /// without windows where that still says something.
    #[test]
    fn windows_of_any_width_agree() {
        for (scale, rate, times, t) in [
            (6.058640130857923, 1.6085230243978237e-7, 22.0, 4.389677066279331e-6),
            (9.387090103088324, 4.225067508038981e-4, 5.0, 2.9488692370942832e-3),
            (1.7376129928935984, 1.4960222054197616e-4, 7515.0, 0.0787449442244196),
            (0.7543184768107827, 8.758968199829369e-7, 594443937.0, 0.33107716823664524),
            (3.8274403484191124, 0.012991300267348554, 476.0, 1.4890284161766054),
        ] {
            let parts = [Part { pair: MixtureRatio::subsampled(scale, rate), times }];
            let floors = [floor(&parts[0].pair)];
            let mut known: Option<(f64, f64, f64)> = None;
            for choice in [
                Choice::Even { deviations: 6.0 },
                Choice::Even { deviations: 4.5 },
                Choice::Even { deviations: 7.0 },
            ] {
                let edges = cascade(&parts, &floors, t, choice).unwrap();
                let windows = Windows::cascade(&parts, &edges, t).unwrap();
                let value = windows.value(t);
                assert!(value.relative_error() < 1e-6, "{scale} {choice:?} {value:?}");
                let unit = (value.log_scale - known.map_or(value.log_scale, |k| k.0)).exp();
                let ends =
                    (unit * (value.mantissa - value.below), unit * (value.mantissa + value.above));
                let slack = 1e-12 * ends.1;
                let (scale_log, lower, upper) = known.unwrap_or((value.log_scale, ends.0, ends.1));
                assert!(
                    lower <= ends.1 + slack && ends.0 <= upper + slack,
                    "{scale} {choice:?}: {ends:?} {known:?}"
                );
                known = Some((scale_log, lower.max(ends.0), upper.min(ends.1)));
            }
        }
    }
}
