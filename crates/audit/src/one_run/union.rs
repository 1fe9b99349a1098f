//! Several strategies in one statement: the `union` rule for canaries of one run.
//!
//! **Proof.** Let W_k be the right guesses of strategy k among r_k. Given the scores and the bits of the
//! canaries before it, under (epsilon, 0)-DP a guess is right with probability at most
//! p = e^epsilon / (1 + e^epsilon), in any order of the canaries, so the indicators of right guesses are dominated
//! by independent Bernoulli(p), all of them together (sequential coupling). The sets of a chain are
//! nested, so (W_1, …, W_K) is dominated by the partial sums B_k of such indicators over the first r_k.
//!
//! Let L be a fixed function of the counts: the largest bound of a single strategy k at error c_k, of which
//! one strategy has nearly all ([`Shares`]). The counts with a larger L than those seen are S = union of {W_k >= v_k},
//! where v_k is the smallest count with a bound of at least L(seen); an increasing set. So
//! P(S) <= P(some B_k >= v_k), which a dynamic programme over the nested sizes gives exactly,
//! summed over the chains; it rises with epsilon, S does not depend on epsilon and the S are nested, so
//! the largest epsilon with P(S) <= level is a lower bound with that error (Buehler 1957). Beyond
//! [`EXACT`] canaries, and at delta > 0, the sum over the strategies of P(W_k >= v_k) takes the place of the programme; at
//! delta > 0 each term is that of [`super::one_run_p_value`] with its own delta term. QED.
//!
//! At delta 0 all of this holds given the scores with their membership left out, so which strategy is favoured may
//! depend on them.
//!
//! At delta > 0 it may too, at a price. Given the scores y, W_k is dominated by B_k + F(y) with E F <= 2 m delta
//! (Steinke et al. 2023, Theorem 5.2), so the error of a rule that looks for ties is at most
//! E[tail(y) + F(y) average(y)], where tail is the sum of P(B_k >= v_k) and average that of
//! max_i P(v_k - i <= B_k < v_k) / i, over the strategies with the counts that scores with or without ties ask
//! for. It is at most the larger tail of the two plus 2 m delta times the larger average; and that is what the level
//! pays. S is then the union over both.
//!
//! Beyond the most that half of the canaries can show, all canaries are the only strategy, with the whole level: where L is larger than that
//! most, it is the larger of that and of the bound of all canaries. That is an increasing function of the counts, too, and the same for scores with and
//! without ties. So a perfect attack is read off all canaries as if there were no other strategy.
//!
//! A strategy that cannot reach L at error c_k has no v_k and costs nothing: at delta 0, too, a perfect attack is read off
//! the full set of guesses as if it were the only strategy.

use super::epsilon_delta::{is_rejected, one_run_terms};
use super::one_run_epsilon;
use super::strategies::{Guesses, Strategy, chains};
use crate::AttackDirection;
use crate::exact::window;
use numerics::beta::binomial_log_at_least;
use numerics::special::inverse_normal_cdf;

/// More canaries are summed over strategies.
const EXACT: u64 = 20_000;

/// What the strategies together show, and which of them shows most on its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Together {
    pub(super) epsilon: f64,
    pub(super) chain: usize,
    pub(super) place: usize,
}

/// How the error is shared among strategies. Half of the canaries guessed, a quarter at each end, is the favourite: it is
/// good for attacks of every strength. Where ties leave most of its guesses out, that is all canaries. All canaries keep enough for
/// a perfect attack to be read off them alone.
#[derive(Clone, Copy)]
struct Shares {
    favourite: Option<u64>,
    /// The favourite's part.
    part: f64,
    level: f64,
    /// Beyond this epsilon all canaries are the only strategy.
    reach: f64,
}

const FAVOURITE: f64 = 0.92;
/// The favourite's part among ties at delta > 0: so little that the larger of both errors is mostly that without ties.
const TIED: f64 = 0.6;
const ALL: f64 = 0.05;
const OTHER: f64 = 0.015;

impl Shares {
    /// Those that the scores ask for, and at delta > 0 those that other scores would have asked for.
    fn new(chains: &[Vec<Guesses>], level: f64, delta: f64) -> (Self, Option<Self>) {
        let first = || chains.iter().take(1).flatten();
        let half = |one: &&Guesses| one.planned == 2 * (one.canaries / 4) && one.planned > 0;
        let half = first().find(half);
        let all = first().find(|one| one.planned == one.canaries).map(|one| one.planned);
        let made = |one: &Guesses| 10 * one.total() >= 9 * one.planned;
        let (favourite, reach) = (half.map(|one| one.planned), f64::INFINITY);
        let plain = Self { favourite, part: FAVOURITE, level, reach };
        let tied = Self { favourite: all, ..plain };
        match (half, all) {
            (Some(one), Some(_)) if delta > 0.0 => {
                // What half of the canaries can show at most.
                let counted = one.counted(delta);
                let most = FAVOURITE * level;
                let reach = one_run_epsilon(one.canaries, counted, counted, most, delta);
                let (plain, tied) = (Self { reach, ..plain }, Self { reach, part: TIED, ..tied });
                if made(one) { (plain, Some(tied)) } else { (tied, Some(plain)) }
            }
            (Some(one), _) if delta > 0.0 || made(one) => (plain, None),
            _ => (tied, None),
        }
    }

    /// The error at which a strategy's own bound is taken.
    fn of(&self, chain: usize, one: &Guesses, order: f64) -> f64 {
        let share = match self.favourite {
            None => 1.0 / 3.0,
            _ if order > self.reach && one.planned == one.canaries => 1.0,
            Some(planned) if chain == 0 && one.planned == planned => self.part,
            Some(_) if one.planned == one.canaries => ALL,
            Some(_) => OTHER,
        };
        share * self.level
    }
}

/// L: the largest bound of a single strategy with the shares that hold for an epsilon of `order`.
fn largest(chains: &[Vec<Guesses>], shares: &Shares, order: f64, delta: f64) -> Together {
    let mut best = Together { epsilon: -1.0, chain: 0, place: 0 };
    for (chain, guesses) in chains.iter().enumerate() {
        for (place, one) in guesses.iter().enumerate() {
            let single = shares.of(chain, one, order);
            let is_rejected = |epsilon: f64| {
                is_rejected(one.canaries, one.counted(delta), one.right, epsilon, delta, single)
            };
            if best.epsilon < 0.0 || (one.right > 0 && is_rejected(best.epsilon)) {
                let epsilon =
                    one_run_epsilon(one.canaries, one.counted(delta), one.right, single, delta);
                if epsilon > best.epsilon {
                    best = Together { epsilon, chain, place };
                }
            }
        }
    }
    best
}

/// The bound of chains of guesses at `level`.
pub(super) fn together(chains: &[Vec<Guesses>], level: f64, delta: f64) -> Together {
    let (shares, other) = Shares::new(chains, level, delta);
    let mut best = largest(chains, &shares, 0.0, delta);
    if best.epsilon >= shares.reach {
        let beyond = largest(chains, &shares, f64::INFINITY, delta);
        let reached = Together { epsilon: shares.reach, ..best };
        best = if beyond.epsilon > shares.reach { beyond } else { reached };
    }
    if best.epsilon <= 0.0 {
        return closest(chains, delta);
    }
    let critical = counts_with(chains, best.epsilon, &shares, delta);
    let elsewhere = other.map(|other| counts_with(chains, best.epsilon, &other, delta));
    let error =
        |epsilon: f64| larger_error(chains, [Some(&critical), elsewhere.as_ref()], epsilon, delta);
    let (mut shown, mut beyond) = (best.epsilon, best.epsilon * 1.05 + 0.01);
    if error(shown) > level {
        (shown, beyond) = (0.0, shown);
        if error(0.0) > level {
            return Together { epsilon: 0.0, ..best };
        }
    } else {
        while error(beyond) <= level {
            shown = beyond;
            beyond = 1.2 * beyond + 0.05;
            if beyond > 1e3 {
                return Together { epsilon: shown, ..best };
            }
        }
    }
    // False position on the logarithm of the error, with halved weights (Illinois).
    let excess = |error: f64| (error.max(f64::MIN_POSITIVE) / level).ln();
    let (mut below, mut above) = (excess(error(shown)), excess(error(beyond)));
    let mut last = None;
    while beyond - shown > 1e-7 * (1.0 + beyond) {
        let (gap, margin) = (beyond - shown, 3e-8 * (1.0 + beyond));
        let guess = shown + gap * below / (below - above);
        let place = if guess.is_finite() { guess } else { shown + 0.5 * gap };
        let place = place.clamp(shown + margin, beyond - margin);
        let here = error(place);
        let shows = here <= level;
        let weight = if last == Some(shows) { 0.5 } else { 1.0 };
        if shows {
            (shown, below, above) = (place, excess(here), weight * above);
        } else {
            (beyond, above, below) = (place, excess(here), weight * below);
        }
        last = Some(shows);
    }
    Together { epsilon: shown, ..best }
}

/// The strategy that comes closest to showing anything.
fn closest(chains: &[Vec<Guesses>], delta: f64) -> Together {
    let mut best = (f64::INFINITY, Together { epsilon: 0.0, chain: 0, place: 0 });
    for (chain, guesses) in chains.iter().enumerate() {
        for (place, one) in guesses.iter().enumerate() {
            let counted = one.counted(delta);
            let (tail, second) = one_run_terms(one.canaries, counted, one.right, 0.0, delta);
            if counted > 0 && tail + second < best.0 {
                best = (tail + second, Together { epsilon: 0.0, chain, place });
            }
        }
    }
    best.1
}

/// The v_k of outcomes whose L is at least `order`, where a strategy has one.
fn counts_with(
    chains: &[Vec<Guesses>],
    order: f64,
    shares: &Shares,
    delta: f64,
) -> Vec<Vec<Option<u64>>> {
    let of = |chain: usize, one: &Guesses| {
        least_right(one.canaries, one.counted(delta), order, shares.of(chain, one, order), delta)
    };
    let of_chain = |(chain, guesses): (usize, &Vec<Guesses>)| {
        guesses.iter().map(|one| of(chain, one)).collect()
    };
    chains.iter().enumerate().map(of_chain).collect()
}

/// The v_k of all chains.
type Counts = Vec<Vec<Option<u64>>>;

/// The larger tail and the larger term of delta of the counts that different scores ask for.
fn larger_error(
    chains: &[Vec<Guesses>],
    critical: [Option<&Counts>; 2],
    epsilon: f64,
    delta: f64,
) -> f64 {
    let (mut tail, mut second) = (0.0_f64, 0.0_f64);
    for critical in critical.into_iter().flatten() {
        let (mut own_tail, mut own_second) = (0.0, 0.0);
        for (guesses, critical) in chains.iter().zip(critical) {
            let terms = error_of_chain(guesses, critical, epsilon, delta);
            own_tail += terms.0;
            own_second += terms.1;
        }
        (tail, second) = (tail.max(own_tail), second.max(own_second));
    }
    tail + second
}

/// The smallest counts of right guesses with which the rule shows `epsilon`, for planning; `None` when no
/// counts do.
pub(crate) fn critical_counts(
    chains: &[Vec<Guesses>],
    level: f64,
    delta: f64,
    epsilon: f64,
) -> Option<Vec<Vec<Option<u64>>>> {
    let (shares, other) = Shares::new(chains, level, delta);
    let at = |order: f64| counts_with(chains, order, &shares, delta);
    let shows = |critical: &Counts, order: f64| {
        let elsewhere = other.map(|other| counts_with(chains, order, &other, delta));
        critical.iter().flatten().any(Option::is_some)
            && larger_error(chains, [Some(critical), elsewhere.as_ref()], epsilon, delta) <= level
    };
    // Outcomes with a smaller L are more, and their error is larger.
    let (mut not, mut does) = (0.5 * epsilon, epsilon);
    let mut found = at(does);
    while !shows(&found, does) {
        if !found.iter().flatten().any(Option::is_some) {
            return None;
        }
        (not, does) = (does, does * 1.05 + 0.02);
        found = at(does);
    }
    for _ in 0..14 {
        let middle = 0.5 * (not + does);
        let critical = at(middle);
        if shows(&critical, middle) { (does, found) = (middle, critical) } else { not = middle }
    }
    Some(found)
}

/// The bound of guesses that are all right.
pub(super) fn perfect(canaries: u64, direction: AttackDirection, level: f64, delta: f64) -> f64 {
    let all_right = |strategy: &Strategy| {
        let planned = strategy.planned(canaries);
        Guesses { canaries, guessed_in: planned, guessed_out: 0, right: planned, planned }
    };
    let guesses: Vec<Vec<Guesses>> = chains(canaries, direction)
        .iter()
        .map(|chain| chain.iter().map(all_right).collect())
        .collect();
    together(&guesses, level, delta).epsilon
}

/// The smallest number of right guesses whose p-value at epsilon is at most `level`.
fn least_right(canaries: u64, guesses: u64, epsilon: f64, level: f64, delta: f64) -> Option<u64> {
    let rejects = |right: u64| {
        let level = level * (1.0 + 1e-9);
        right > 0 && is_rejected(canaries, guesses, right, epsilon, delta, level)
    };
    if guesses == 0 || !rejects(guesses) {
        return None;
    }
    let (mut not, mut does) = (0, guesses);
    // From where a normal law has it, in growing steps.
    let rate = 1.0 / (1.0 + (-epsilon).exp());
    let deviation = (guesses as f64 * rate * (1.0 - rate)).sqrt();
    let likely = guesses as f64 * rate - deviation * inverse_normal_cdf(level.clamp(1e-300, 0.5));
    let mut place = (likely as u64).clamp(1, guesses);
    let mut step = (0.02 * deviation).max(1.0) as u64;
    while does - not > 1 && place > not && place < does {
        if rejects(place) {
            does = place;
            if not > 0 {
                break;
            }
            place = place.saturating_sub(step);
        } else {
            not = place;
            if does < guesses {
                break;
            }
            place += step;
        }
        step *= 4;
    }
    while does - not > 1 {
        let middle = not + (does - not) / 2;
        if rejects(middle) { does = middle } else { not = middle }
    }
    Some(does)
}

/// P(some strategy of the chain reaches its count), from above, without the terms of delta and these.
fn error_of_chain(
    guesses: &[Guesses],
    critical: &[Option<u64>],
    epsilon: f64,
    delta: f64,
) -> (f64, f64) {
    let canaries = guesses.first().map_or(0, |one| one.canaries);
    let live = guesses.iter().zip(critical).filter_map(|(one, least)| least.map(|v| (one, v)));
    if delta > 0.0 || canaries > EXACT {
        return live
            .map(|(one, least)| {
                one_run_terms(one.canaries, one.counted(delta), least, epsilon, delta)
            })
            .fold((0.0, 0.0), |sum, terms| (sum.0 + terms.0, sum.1 + terms.1));
    }
    let steps: Vec<(u64, u64)> = live.map(|(one, least)| (one.total(), least)).collect();
    (nested_error(&steps, 1.0 / (1.0 + (-epsilon).exp())), 0.0)
}

/// P(B_k >= v_k for some k) for the partial sums B_k of independent Bernoulli(p) over sizes r_k that
/// rise; `steps` are the (r_k, v_k). What the sums leave out is added.
fn nested_error(steps: &[(u64, u64)], p: f64) -> f64 {
    let mut error = 0.0;
    // P(B = first + i, nothing reached so far).
    let (mut first, mut alive): (u64, Vec<f64>) = (0, vec![1.0]);
    let mut size = 0;
    let live = steps.iter().filter(|(_, critical)| *critical > 0).count();
    if live == 1 {
        let (guesses, critical) = steps[0];
        return binomial_log_at_least(critical, guesses, p).exp();
    }
    for &(guesses, critical) in steps {
        let (start, masses) = window(guesses - size, p);
        size = guesses;
        let mut next = vec![0.0; alive.len() + masses.len() - 1];
        for (i, &mass) in alive.iter().enumerate() {
            if mass > 0.0 {
                for (sum, &other) in next[i..].iter_mut().zip(&masses) {
                    *sum += mass * other;
                }
            }
        }
        first += start;
        let keep = critical.saturating_sub(first).min(next.len() as u64) as usize;
        error += next[keep..].iter().sum::<f64>() + 1e-13;
        next.truncate(keep);
        // What is next to impossible counts as reached.
        let negligible = next.iter().take_while(|mass| **mass < 1e-17).count();
        error += next[..negligible].iter().sum::<f64>();
        next.drain(..negligible);
        first += negligible as u64;
        if next.is_empty() {
            return error.min(1.0);
        }
        alive = next;
    }
    error.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against all outcomes of twelve coins.
    #[test]
    fn the_programme_is_the_law_of_the_partial_sums() {
        let steps = [(3, 3), (6, 5), (12, 9)];
        for p in [0.5, 0.7, 0.9_f64] {
            let mut expected = 0.0;
            for outcome in 0..1_u32 << 12 {
                let among = |size: u32| (outcome & ((1 << size) - 1)).count_ones();
                let reached =
                    steps.iter().any(|&(size, least)| u64::from(among(size as u32)) >= least);
                if reached {
                    let ones = outcome.count_ones() as i32;
                    expected += p.powi(ones) * (1.0 - p).powi(12 - ones);
                }
            }
            assert!((nested_error(&steps, p) - expected).abs() < 1e-11, "{p}");
        }
    }
}
