//! Scores of members and of non-members, sorted once; everything downstream counts in them.

use crate::{AuditError, Column, Design};

/// Two sorted samples: what an attack gave to members and to non-members.
///
/// Scores know how they came about: what holds for trainings of their own does not hold for canaries of one
/// training, so there are none without a design, and a plan for the other one is refused.
///
/// Larger means more likely a member. The test at a threshold says "member" when
/// score >= threshold. Infinite scores are ordered like any other; NaN is refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    design: Design,
    members: Column,
    nonmembers: Column,
}

/// The errors a test made: counts on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors {
    /// Non-members that were called members.
    pub false_positives: u64,
    /// All non-members.
    pub nonmembers: u64,
    /// Members that were called non-members.
    pub false_negatives: u64,
    /// All members.
    pub members: u64,
}

impl Errors {
    /// Members that were called members.
    pub fn true_positives(&self) -> u64 {
        self.members - self.false_negatives
    }

    /// Non-members that were called non-members.
    pub(crate) fn true_negatives(&self) -> u64 {
        self.nonmembers - self.false_positives
    }
}

impl Scores {
    /// Sorts both samples.
    ///
    /// # Errors
    /// A side without scores, or a score that is not a number (named by its position).
    ///
    /// ```
    /// use audit::{Design, Scores};
    /// let scores = Scores::new(Design::Runs, vec![2.0, 0.5], vec![0.0, 1.0, f64::NEG_INFINITY])?;
    /// let errors = scores.errors_at(1.0);
    /// assert_eq!((errors.false_positives, errors.false_negatives), (1, 1));
    /// assert!(Scores::new(Design::Runs, vec![f64::NAN], vec![0.0]).is_err());
    /// # Ok::<(), audit::AuditError>(())
    /// ```
    pub fn new(
        design: Design,
        members: Vec<f64>,
        nonmembers: Vec<f64>,
    ) -> Result<Self, AuditError> {
        Self::of_columns(design, members.into(), nonmembers.into())
    }

    /// As [`Scores::new`].
    pub(crate) fn of_columns(
        design: Design,
        mut members: Column,
        mut nonmembers: Column,
    ) -> Result<Self, AuditError> {
        for (side, values) in [("member", &members), ("non-member", &nonmembers)] {
            if values.is_empty() {
                return Err(AuditError::Scores(format!(
                    "there is no {side} score; an audit compares members with non-members"
                )));
            }
        }
        let mut buffer = Column::default();
        let misplaced = crate::sort::sort(&mut members, &mut buffer)
            .map(|place| ("member", place))
            .or_else(|| {
                crate::sort::sort(&mut nonmembers, &mut buffer).map(|place| ("non-member", place))
            });
        if let Some((side, place)) = misplaced {
            return Err(AuditError::Scores(format!(
                "{side} score {} is not a number; remove it or give the attack a rule for it",
                place + 1
            )));
        }
        Ok(Self { design, members, nonmembers })
    }

    /// Some of these scores, sorted (a part of sorted scores is sorted).
    pub(crate) fn part(&self, members: Vec<f64>, nonmembers: Vec<f64>) -> Self {
        Self { design: self.design, members: members.into(), nonmembers: nonmembers.into() }
    }

    /// How the scores came about.
    pub fn design(&self) -> Design {
        self.design
    }

    /// Member scores in ascending order.
    pub fn members(&self) -> &[f64] {
        &self.members
    }

    /// Non-member scores in ascending order.
    pub fn nonmembers(&self) -> &[f64] {
        &self.nonmembers
    }

    /// The errors of the test score >= `threshold`.
    pub fn errors_at(&self, threshold: f64) -> Errors {
        Errors {
            false_positives: at_least(&self.nonmembers, threshold),
            nonmembers: self.nonmembers.len() as u64,
            false_negatives: self.members.len() as u64 - at_least(&self.members, threshold),
            members: self.members.len() as u64,
        }
    }

    /// The (rank+1)-th largest of all scores together, `None` when there are not that many.
    pub(crate) fn kth_largest(&self, rank: u64) -> Option<f64> {
        let (members, nonmembers) = (&self.members, &self.nonmembers);
        let all = members.len() + nonmembers.len();
        let rank = usize::try_from(rank).ok()?;
        if rank >= all {
            return None;
        }
        // Bisect the number taken from the members' upper end.
        let (mut low, mut high) = (rank.saturating_sub(nonmembers.len()), rank.min(members.len()));
        while low < high {
            let taken = (low + high) / 2;
            let others = rank - taken;
            // Taking `taken` members is too few when the next member beats the last other taken.
            let next_member = members[members.len() - 1 - taken];
            if others > 0 && next_member > nonmembers[nonmembers.len() - others] {
                low = taken + 1;
            } else {
                high = taken;
            }
        }
        let others = rank - low;
        let member = members.len().checked_sub(low + 1).map(|place| members[place]);
        let other = nonmembers.len().checked_sub(others + 1).map(|place| nonmembers[place]);
        match (member, other) {
            (Some(member), Some(other)) => Some(member.max(other)),
            (member, other) => member.or(other),
        }
    }
}

/// How many of the sorted values are >= threshold.
pub(crate) fn at_least(sorted: &[f64], threshold: f64) -> u64 {
    (sorted.len() - sorted.partition_point(|&value| value < threshold)) as u64
}
