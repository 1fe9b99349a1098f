//! Ways to draw batches from few records: every outcome of three steps with its probability.

use super::{KINK, NOISE, QUADRATURE, RECORDS};
use vocabulary::{Adjacency, Drawing, Permutation, Run, Sampling};

/// Copies of each record in a batch.
pub(super) type Batch = [u8; RECORDS];
/// The batches of three steps, with their probability.
pub(super) type Pattern = (f64, [Batch; 3]);

/// A way to draw batches from the first `records` records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Way {
    Poisson,
    Full,
    /// Two batches per epoch; a new order for every epoch, or one for all.
    Shuffle(Permutation),
    /// Two records, without or with replacement.
    FixedSize {
        replacement: bool,
    },
    /// This many batches per epoch, of which each record is in `uses`.
    Thrown {
        batches: u64,
        uses: u64,
    },
    /// At most two records.
    Truncated,
    /// Two groups: the first two records and the others.
    Cyclic,
    /// Two batches per pass.
    InOrder,
}

pub(super) const WAYS: &[Way] = &[
    Way::Poisson,
    Way::Full,
    Way::Shuffle(Permutation::Fresh),
    Way::Shuffle(Permutation::Kept),
    Way::FixedSize { replacement: false },
    Way::FixedSize { replacement: true },
    Way::Thrown { batches: 2, uses: 1 },
    Way::Thrown { batches: 3, uses: 1 },
    Way::Thrown { batches: 3, uses: 2 },
    Way::Truncated,
    Way::Cyclic,
    Way::InOrder,
];

impl Way {
    pub(super) fn run(self, adjacency: Adjacency, steps: u64, group: u32) -> Run {
        let mut drawing = Drawing::default();
        let (sampling, rate) = match self {
            Self::Poisson => (Sampling::Poisson, 0.5),
            Self::Full => (Sampling::Full, 1.0),
            Self::Shuffle(permutation) => {
                drawing.permutation = permutation;
                (Sampling::Shuffle, 0.5)
            }
            Self::FixedSize { replacement } => {
                drawing.replacement = replacement;
                (Sampling::FixedSize, 0.5)
            }
            Self::Thrown { batches, uses } => {
                drawing.uses_per_epoch = (uses > 1).then_some(uses);
                (Sampling::BallsAndBins, 1.0 / batches as f64)
            }
            Self::Truncated => {
                drawing.max_batch_size = Some(2);
                (Sampling::TruncatedPoisson, 0.5)
            }
            Self::Cyclic => {
                drawing.cycle_length = Some(2);
                (Sampling::CyclicPoisson, 0.5)
            }
            Self::InOrder => (Sampling::InOrder, 0.5),
        };
        Run::builder()
            .phase(NOISE, rate, steps)
            .sampling(sampling)
            .adjacency(adjacency)
            .drawing(drawing)
            .group_size(group)
            .dataset_size(RECORDS as u64)
            .build()
            .unwrap()
    }

    /// Every triple of batches of the records from `first` on; the others are not there.
    pub(super) fn patterns(self, first: usize) -> Vec<Pattern> {
        let present: Vec<usize> = (first..RECORDS).collect();
        let all = subsets(&present);
        match self {
            Self::Poisson => {
                independent(&[&coins(&all, &present), &coins(&all, &present)], [0, 1, 0])
            }
            Self::Full => vec![(1.0, [batch(&present); 3])],
            Self::InOrder => {
                let (one, other) = present.split_at(present.len() / 2);
                vec![(1.0, [batch(one), batch(other), batch(one)])]
            }
            Self::Truncated => {
                let one = truncated(&all, &present);
                independent(&[&one], [0, 0, 0])
            }
            Self::FixedSize { replacement } => {
                let one: Vec<(f64, Batch)> = if replacement {
                    let share = 1.0 / (present.len() * present.len()) as f64;
                    let draws = present.iter().flat_map(|a| present.iter().map(move |b| [*a, *b]));
                    draws.map(|pair| (share, batch(&pair))).collect()
                } else {
                    let pairs: Vec<&Vec<usize>> = all.iter().filter(|one| one.len() == 2).collect();
                    pairs.iter().map(|one| (1.0 / pairs.len() as f64, batch(one))).collect()
                };
                independent(&[&merged(one)], [0, 0, 0])
            }
            Self::Cyclic => {
                let group = |of: fn(&usize) -> bool| -> Vec<(f64, Batch)> {
                    let members: Vec<usize> = present.iter().copied().filter(of).collect();
                    coins(&subsets(&members), &members)
                };
                independent(&[&group(|one| *one < 2), &group(|one| *one >= 2)], [0, 1, 0])
            }
            Self::Shuffle(permutation) => {
                let halves: Vec<[Batch; 2]> = all
                    .iter()
                    .filter(|one| 2 * one.len() == present.len())
                    .map(|one| [batch(one), complement(one, &present)])
                    .collect();
                let share = 1.0 / halves.len() as f64;
                let mut found = Vec::new();
                for [one, other] in &halves {
                    match permutation {
                        Permutation::Kept => found.push((share, [*one, *other, *one])),
                        Permutation::Fresh => found.extend(
                            halves.iter().map(|[next, _]| (share * share, [*one, *other, *next])),
                        ),
                    }
                }
                found
            }
            Self::Thrown { batches, uses } => thrown(batches as usize, uses as usize, &present),
        }
    }

    /// What the integral over earlier outputs may err by.
    pub(super) fn quadrature(self) -> [f64; 3] {
        if self == Self::InOrder { KINK } else { QUADRATURE }
    }

    /// Whether the pair is attained by some data set, in every number of steps.
    pub(super) fn exact(self, adjacency: Adjacency) -> bool {
        match self {
            Self::Poisson | Self::Full | Self::Cyclic | Self::InOrder => true,
            Self::Thrown { uses, .. } => uses == 1 && adjacency != Adjacency::Substitute,
            _ => false,
        }
    }
}

fn subsets(of: &[usize]) -> Vec<Vec<usize>> {
    (0..1usize << of.len())
        .map(|bits| {
            of.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, one)| *one).collect()
        })
        .collect()
}

fn batch(records: &[usize]) -> Batch {
    let mut found = [0; RECORDS];
    records.iter().for_each(|one| found[*one] += 1);
    found
}

fn complement(records: &[usize], of: &[usize]) -> Batch {
    batch(&of.iter().copied().filter(|one| !records.contains(one)).collect::<Vec<_>>())
}

/// Every record by its own coin of weight one half.
fn coins(all: &[Vec<usize>], of: &[usize]) -> Vec<(f64, Batch)> {
    let share = 0.5_f64.powi(of.len() as i32);
    all.iter().map(|one| (share, batch(one))).collect()
}

/// By coins, and of more than two records a uniform pair is kept.
fn truncated(all: &[Vec<usize>], of: &[usize]) -> Vec<(f64, Batch)> {
    let share = 0.5_f64.powi(of.len() as i32);
    let mut found = Vec::new();
    for one in all {
        if one.len() <= 2 {
            found.push((share, batch(one)));
            continue;
        }
        let kept: Vec<Vec<usize>> =
            subsets(one).into_iter().filter(|part| part.len() == 2).collect();
        found.extend(kept.iter().map(|part| (share / kept.len() as f64, batch(part))));
    }
    merged(found)
}

fn merged(all: Vec<(f64, Batch)>) -> Vec<(f64, Batch)> {
    let mut found: Vec<(f64, Batch)> = Vec::new();
    for (share, one) in all {
        match found.iter_mut().find(|(_, other)| *other == one) {
            Some((sum, _)) => *sum += share,
            None => found.push((share, one)),
        }
    }
    found
}

/// Steps that are drawn independently, each from one of the tables.
fn independent(tables: &[&Vec<(f64, Batch)>], of: [usize; 3]) -> Vec<Pattern> {
    let mut found = Vec::new();
    for (p, one) in tables[of[0]] {
        for (q, two) in tables[of[1]] {
            for (r, three) in tables[of[2]] {
                found.push((p * q * r, [*one, *two, *three]));
            }
        }
    }
    found
}

/// Every record in `uses` of the batches of an epoch, independently; three steps of it.
fn thrown(batches: usize, uses: usize, present: &[usize]) -> Vec<Pattern> {
    let places: Vec<Vec<usize>> = subsets(&(0..batches).collect::<Vec<_>>())
        .into_iter()
        .filter(|one| one.len() == uses)
        .collect();
    let share = 1.0 / places.len() as f64;
    // An epoch of two batches has its third step in the next one.
    let again = batches == 2;
    let mut found: Vec<Pattern> = vec![(1.0, [[0; RECORDS]; 3])];
    for record in present {
        let mut next = Vec::new();
        for (chance, drawn) in &found {
            for place in &places {
                let mut drawn = *drawn;
                place.iter().for_each(|step| drawn[*step][*record] = 1);
                if !again {
                    next.push((chance * share, drawn));
                    continue;
                }
                for second in &places {
                    let mut drawn = drawn;
                    drawn[2][*record] = u8::from(second[0] == 0);
                    next.push((chance * share * share, drawn));
                }
            }
        }
        found = next;
    }
    found
}
