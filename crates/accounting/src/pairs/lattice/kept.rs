//! A bracket that answers many questions about one run: compositions are kept with the epsilon
//! they were tilted for, and answer near it. What is answered so depends on what was asked before;
//! sessions share only what was made for the very same epsilon. Where one order of the pair says little, the other
//! order is asked as well: delta_PQ(epsilon) = 1 - e^epsilon + e^epsilon delta_QP(-epsilon).
//!
//! Both matter for few steps of a rarely used record: the contour fails near epsilon 0, where
//! the losses pile up, and a trade-off point or a mu asks dozens of times there.

use super::{Ends, LatticeBracket, Order, bracket, largest_loss, plan};
use crate::AccountingError;
use numerics::elementary::{exp, exp_m1};
use std::sync::{Arc, Mutex};
use vocabulary::Interval;

type Result<T> = std::result::Result<T, AccountingError>;

/// Compositions kept for each order, of about 1 MB each.
const MOST_KEPT: usize = 4;
/// An interval this narrow (relative) is not worth another composition.
const NARROW: f64 = 1e-6;

/// A [`LatticeBracket`] with a memory.
#[derive(Debug)]
pub(crate) struct KeptBracket {
    shared: Arc<Shared>,
    kept: Mutex<Vec<(Order, Arc<Home>)>>,
}

/// The lattice, and compositions by the order and the epsilon they were made for.
#[derive(Debug)]
struct Shared {
    lattice: LatticeBracket,
    made: Mutex<Vec<(Order, f64, Arc<Home>)>>,
}

/// A composition, and how well it answers where it was made for.
#[derive(Debug)]
struct Home {
    ends: Ends,
    width: f64,
}

impl KeptBracket {
    pub(crate) fn new(lattice: LatticeBracket) -> Self {
        Self {
            shared: Arc::new(Shared { lattice, made: Mutex::new(Vec::new()) }),
            kept: Mutex::new(Vec::new()),
        }
    }

    /// The same without a memory of what was asked.
    pub(crate) fn session(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), kept: Mutex::new(Vec::new()) }
    }

    /// The lattice itself, for what is asked once.
    pub(crate) fn lattice(&self) -> &LatticeBracket {
        &self.shared.lattice
    }

    /// As [`super::super::Pair::delta`].
    pub(crate) fn delta(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let own = self.one_order(epsilon, order);
        if own.as_ref().is_ok_and(|own| own.width() <= NARROW * own.upper) {
            return own;
        }
        let mirrored =
            self.one_order(-epsilon, order.reversed()).map(|other| mirror(other, epsilon));
        match (own, mirrored) {
            (Ok(own), Ok(mirrored)) => {
                let (lower, upper) = (own.lower.max(mirrored.lower), own.upper.min(mirrored.upper));
                bracket(lower, upper)
            }
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
            (Err(error), Err(_)) => Err(error),
        }
    }

    fn one_order(&self, epsilon: f64, order: Order) -> Result<Interval> {
        let steps = self.shared.lattice.steps(order);
        if epsilon >= largest_loss(steps) {
            return Ok(Interval::exact(0.0));
        }
        let homes: Vec<Arc<Home>> = self.kept.lock().map_or_else(
            |_| Vec::new(),
            |kept| {
                kept.iter().filter(|(of, _)| *of == order).map(|(_, home)| home.clone()).collect()
            },
        );
        for home in &homes {
            let answer = home.ends.delta(epsilon);
            if let Ok(answer) = answer
                && relative_width(&answer) <= (1.5 * home.width).max(NARROW)
            {
                return Ok(answer);
            }
        }
        let home = self.shared.home(epsilon, order)?;
        let answer = home.ends.delta(epsilon)?;
        if let Ok(mut kept) = self.kept.lock() {
            if homes.len() >= MOST_KEPT
                && let Some(oldest) = kept.iter().position(|(of, _)| *of == order)
            {
                kept.remove(oldest);
            }
            kept.push((order, home));
        }
        Ok(answer)
    }
}

impl Shared {
    /// The composition made for this epsilon.
    fn home(&self, epsilon: f64, order: Order) -> Result<Arc<Home>> {
        let same = |of: Order, at: f64| of == order && at.to_bits() == epsilon.to_bits();
        let known = self.made.lock().ok().and_then(|made| {
            made.iter().find(|(of, at, _)| same(*of, *at)).map(|(_, _, home)| Arc::clone(home))
        });
        if let Some(home) = known {
            return Ok(home);
        }
        crate::patience::look();
        let steps = self.lattice.steps(order);
        let (tilt, log_delta) = plan::tilt_for_epsilon(steps, epsilon);
        let plan = plan::best(steps, tilt, epsilon, log_delta, self.lattice.points);
        let ends = self.lattice.both(&plan)?;
        let width = relative_width(&ends.delta(epsilon)?);
        let home = Arc::new(Home { ends, width });
        if let Ok(mut made) = self.made.lock() {
            if made.len() >= 2 * MOST_KEPT {
                made.remove(0);
            }
            made.push((order, epsilon, Arc::clone(&home)));
        }
        Ok(home)
    }
}

fn relative_width(interval: &Interval) -> f64 {
    interval.width() / interval.upper
}

/// delta of one order at epsilon from that of the other order at -epsilon.
fn mirror(other: Interval, epsilon: f64) -> Interval {
    let (growth, excess) = (exp(epsilon), exp_m1(epsilon));
    // Three roundings of numbers of this size.
    let slack = 4.0 * f64::EPSILON * (excess.abs() + growth * other.upper);
    Interval {
        lower: (growth * other.lower - excess - slack).max(0.0),
        value: (growth * other.value - excess).clamp(0.0, 1.0),
        upper: (growth * other.upper - excess + slack).clamp(0.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LatticeOptions, Pair};
    use super::*;

    /// Answers from kept compositions enclose the truth as fresh ones do, both orders, and are
    /// far narrower near epsilon 0 than one order alone.
    #[test]
    fn kept_compositions_agree_with_fresh_ones() {
        let run = vocabulary::Run::builder().phase(0.3, 1e-4, 3).build().expect("a run");
        let lattice = |points| LatticeBracket::for_run(&run, LatticeOptions { points });
        let kept = KeptBracket::new(lattice(1 << 13).expect("a lattice"));
        let fine = lattice(1 << 16).expect("a lattice");
        for epsilon in [0.0, 1e-5, 5e-5, 1e-4, 1e-3, 0.1, 2.0, 1e-4, 3e-5] {
            for order in [Order::Remove, Order::Add] {
                let (ours, theirs) = (kept.delta(epsilon, order), fine.delta(epsilon, order));
                let (ours, theirs) = (ours.expect("ours"), theirs.expect("theirs"));
                assert!(
                    ours.lower <= theirs.upper && theirs.lower <= ours.upper,
                    "{epsilon} {order:?}: {ours:?} {theirs:?}"
                );
            }
        }
        let (own, both) = (kept.one_order(0.0, Order::Remove), kept.delta(0.0, Order::Remove));
        assert!(both.expect("both").width() <= own.expect("own").width());
    }
}
