//! Why there is no number: what is not covered, and what could not be certified.
//!
//! A reason is data. Its sentence is composed here, once; what is particular to one theorem comes from the file of that
//! theorem. Programs read the field, its value and what is covered from [`NotCovered::field`].

use crate::rounding::plain;
use crate::{Adjacency, AtMost, BadField, LensName, Problem, Quantity, Sampling};

/// What a lens, a way to draw batches or a question does not cover.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotCovered {
    /// `what` has its verb: "it holds".
    #[error("{what} for {} batches, and sampling is {}{}", labels(covered), found.as_str(), proven(*elsewhere))]
    Sampling {
        what: &'static str,
        found: Sampling,
        covered: &'static [Sampling],
        /// Whether the lens that is signed has a number for it.
        elsewhere: bool,
    },
    #[error("{why}")]
    Adjacency { found: Adjacency, covered: &'static [Adjacency], why: &'static str },
    /// A record more or less changes the batches of the others.
    #[error(
        "adding or removing a record changes every {}batch after it, and perhaps the number of steps; choose \
         --adjacency zero-out (the record stays, its gradients are zero) or substitute, for which composition is \
         proven",
        if *.0 == Sampling::Shuffle { "shuffled " } else { "" }
    )]
    MovesOthers(Sampling),
    #[error(
        "{what} for one phase, and the run has {found}{}",
        if *separately { "; account for the phases separately and add epsilons and deltas" } else { "" }
    )]
    Phases { what: &'static str, found: usize, separately: bool },
    #[error("{what} for one record, not for a group")]
    Group { what: &'static str, found: u32 },
    /// Something of the run that plain DP-SGD does not have.
    #[error("{why}")]
    Feature { key: &'static str, why: String },
    /// A value that is needed and not given.
    #[error("{why}")]
    Missing { key: &'static str, why: &'static str },
    /// A value to which the theorem does not apply.
    #[error("{0}")]
    Value(Problem),
    /// These quantities do not follow from what is known.
    #[error("{why}")]
    Quantities { asked: &'static [Quantity], why: &'static str },
    #[error("the lens `{lens}` has no number for an attribute; choose {}", names(known))]
    NoAttribute { lens: LensName, known: Vec<LensName> },
    #[error("the lens `{lens}` does not hold for this run: {reason}")]
    Lens { lens: LensName, reason: Box<NotCovered> },
    #[error("no proven epsilon is known for the claimed run, so there is nothing to compare with")]
    NothingProven,
}

impl NotCovered {
    /// The same of a lens that was asked for by its name.
    #[must_use]
    pub fn of(self, lens: LensName) -> Self {
        Self::Lens { lens, reason: Box::new(self) }
    }

    /// The field of the run or of the question that it is about, where it is about one.
    ///
    /// ```
    /// use vocabulary::{NotCovered, Sampling};
    /// let covered = &[Sampling::Poisson, Sampling::Full];
    /// let found = Sampling::Shuffle;
    /// let reason = NotCovered::Sampling { what: "it holds", found, covered, elsewhere: false };
    /// assert_eq!(reason.to_string(), "it holds for Poisson and full batches, and sampling is shuffle");
    /// let field = reason.field().unwrap();
    /// assert_eq!((field.field.as_str(), field.value.unwrap()), ("sampling", "shuffle".into()));
    /// assert_eq!(field.expected.unwrap(), "poisson or full");
    /// ```
    pub fn field(&self) -> Option<BadField> {
        let field = |key: &str, value: serde_json::Value, expected: &str| BadField {
            field: key.into(),
            value: Some(value),
            expected: (!expected.is_empty()).then(|| expected.into()),
        };
        Some(match self {
            Self::Sampling { found, covered, .. } => {
                let covered: Vec<&str> = covered.iter().map(|one| one.as_str()).collect();
                field("sampling", found.as_str().into(), &listed(&covered, "or"))
            }
            Self::Adjacency { found, covered, .. } => {
                let covered: Vec<&str> = covered.iter().map(|one| one.as_str()).collect();
                field("adjacency", found.as_str().into(), &listed(&covered, "or"))
            }
            Self::MovesOthers(_) => {
                field("adjacency", Adjacency::AddRemove.as_str().into(), "zero-out or substitute")
            }
            Self::Phases { found, .. } => field("phases", (*found).into(), "1"),
            Self::Group { found, .. } => field("group_size", (*found).into(), "1"),
            Self::Feature { key, .. } | Self::Missing { key, .. } => {
                BadField { field: (*key).into(), value: None, expected: None }
            }
            Self::Value(problem) => return problem.field().cloned(),
            Self::Quantities { asked, .. } => {
                let names: Vec<&str> = asked.iter().map(|one| one.as_str()).collect();
                field("quantity", names.into(), "")
            }
            Self::NoAttribute { lens, known } => field("lens", lens.as_str().into(), &names(known)),
            Self::Lens { reason, .. } => return reason.field(),
            Self::NothingProven => return None,
        })
    }
}

/// Why an answer that exists could not be certified to a useful width.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotCertified {
    /// It takes longer than it may. The seconds are known where a number has a limit of its own.
    #[error(
        "{what} takes more than what is left of {} (a larger --time-limit lets it go on)",
        seconds.map_or_else(|| "the time limit".into(), |seconds| format!("{seconds} s of processor time"))
    )]
    Time { what: String, seconds: Option<f64> },
    /// With what is known all the same.
    #[error(
        "{reason}; known so far, by Rényi moments: {} <= {}",
        quantity.as_str(),
        AtMost::new(*most)
    )]
    KnownSoFar { reason: Box<NotCertified>, quantity: Quantity, most: f64 },
    #[error("{} could not be certified: {difficulty}", quantity.as_str())]
    Difficulty { quantity: Quantity, difficulty: Difficulty },
    /// Of a way to draw batches that has no second route.
    #[error("{0}")]
    OneRoute(Difficulty),
    #[error("{what}: no point could be certified on both sides of the answer")]
    NotEnclosed { what: String },
    #[error("no epsilon up to {} reaches delta {}", plain(*most), plain(*delta))]
    Unreached { most: f64, delta: f64 },
    #[error("going from one record to the next is not certified beyond epsilon {}", plain(*most))]
    Beyond { most: f64 },
    #[error("the ends {lower} and {upper} are inverted")]
    Inverted { lower: f64, upper: f64 },
    #[error("one step spreads over {points:.0} lattice points, more than fit")]
    Spread { points: f64 },
    #[error("a block keeps {mass:.3e} of its mass on the lattice")]
    LostMass { mass: f64 },
    #[error(
        "what the steps spend at order {order} cannot be bounded, so the budget cannot be checked; a smaller order \
         can be"
    )]
    Spent { order: f64 },
    #[error("no Gaussian curve could be enclosed near mu {mu}")]
    CurveNear { mu: f64 },
    #[error("no Gaussian curve could be certified to cover the profile down to delta {delta}")]
    CurveDownTo { delta: f64 },
    #[error("no Gaussian curve reaches delta {} at epsilon {}", plain(*delta), plain(*epsilon))]
    CurveThrough { epsilon: f64, delta: f64 },
    #[error(
        "a solution was found, but {} at it could not be certified to be on the safe side of {target}",
        quantity.as_str()
    )]
    Solution { quantity: Quantity, target: f64 },
    #[error("batch size {size} could not be certified to meet the target")]
    BatchSize { size: u64 },
}

/// What stands between a computation and its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difficulty {
    #[error("the privacy loss is too close to a lattice of atoms for the contour to converge")]
    SlowDecay,
    #[error("the likelihood ratio would need too fine a quadrature")]
    TooFine,
    #[error("two routes disagree, so neither is shown")]
    Contradiction,
    #[error("delta is not known well enough to meet it")]
    VagueDelta,
    #[error(
        "the loss of so few steps is too uneven for the contour, and no other route is certified for this way to draw \
         batches; give more steps, or account for one"
    )]
    FewSteps,
    #[error("the transform of the loss would need too many points to be certified")]
    LongTransform,
    #[error("the lattice of the loss would need too many points")]
    LongLattice,
    #[error("the losses do not fit on a lattice")]
    NoLattice,
    #[error("no tilt fits the losses")]
    NoTilt,
    #[error("the probability of a full batch is unknown")]
    FullBatch,
}

/// `a, b and c`.
fn listed(names: &[&str], last: &str) -> String {
    match names {
        [first @ .., end] if !first.is_empty() => format!("{} {last} {end}", first.join(", ")),
        _ => names.concat(),
    }
}

fn labels(schemes: &[Sampling]) -> String {
    let labels: Vec<&str> = schemes.iter().map(|scheme| scheme.label()).collect();
    listed(&labels, "and")
}

fn names(lenses: &[LensName]) -> String {
    let names: Vec<&str> = lenses.iter().map(|lens| lens.as_str()).collect();
    listed(&names, "or")
}

fn proven(elsewhere: bool) -> String {
    if elsewhere {
        format!("; the lens `{}` has a proven number for it", LensName::SIGNED)
    } else {
        String::new()
    }
}
