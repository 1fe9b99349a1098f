//! Ways to draw batches. Each is one file: what it needs, which neighbours its pair covers, how a
//! record takes part in words, its dominating pair, and the best proven lower end where the pair is
//! not exact. The rest of the code asks this table and knows no scheme by name.
//!
//! Units: clip norm 1; a step releases (sum of clipped gradients of the batch) + sigma N(0, I),
//! divided by a **constant**. The attacker sees every step. P is the side with the record. A pair
//! (P, Q) *dominates* if its hockey-stick divergence H_g is at least as large for every g > 0; if
//! every step given any history is dominated by a pair fixed in advance, the transcript is dominated
//! by the product (Zhu, Dong, Wang 2022, Theorem 10).

pub mod balls_and_bins;
mod cyclic_poisson;
mod either_way;
mod few_steps;
mod fixed_size;
mod in_order;
mod law_pair;
mod matrix;
mod mixed;
mod poisson;
mod profile;
mod releases;
pub(crate) mod shuffle;
mod thrown_lattice;
mod triangle;
mod truncated_poisson;

pub use matrix::sensitivity;
pub use releases::effective_noise_multiplier;
pub use truncated_poisson::{Truncation, truncation};

use crate::pairs::by_coins;
use crate::pairs::{FilterBound, RenyiBound};
use crate::{AccountingError, Pair};
use vocabulary::{
    Adjacency, LensName, NotCovered, Phase, RenyiFilter, Run, Sampling, Side, batches_per_pass,
};

type Result<T> = std::result::Result<T, AccountingError>;
type BoxedPair = Box<dyn Pair>;

/// One way to draw batches.
pub struct Scheme {
    pub sampling: Sampling,
    /// How a record takes part, in words.
    words: fn(&Run) -> String,
    /// Whether the pair covers the run; computes no number.
    supports: fn(&Run) -> Result<()>,
    /// The pair that dominates the run.
    pair: fn(&Run) -> Result<BoxedPair>,
    /// A proven lower end of the worst case, where the pair is an upper bound only.
    at_least: fn(&Run) -> Option<BoxedPair>,
    /// Which rates it has, for a run whose rate is sought.
    rates: fn(&Run) -> Rates,
    /// Whether a number takes up to a tenth of a second of processor time: reports draw fewer of them.
    pub costly: bool,
}

/// Rates that a scheme has: any, or one over a number of batches per epoch.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rates {
    Any,
    /// Any whole number of batches.
    WholeBatches,
    /// One of these numbers of batches, rising.
    Batches(Vec<u64>),
}

/// Which rates the scheme of a run has.
pub(crate) fn rates(run: &Run) -> Rates {
    (of(run).rates)(run)
}

/// The table of schemes.
#[rustfmt::skip]
pub const ALL: &[Scheme] = &[
    poisson::SCHEME,
    poisson::FULL,
    shuffle::SCHEME,
    fixed_size::SCHEME,
    balls_and_bins::SCHEME,
    truncated_poisson::SCHEME,
    cyclic_poisson::SCHEME,
    in_order::SCHEME,
];

/// The scheme of a run.
pub fn of(run: &Run) -> &'static Scheme {
    let found = ALL.iter().find(|scheme| scheme.sampling == run.sampling());
    found.expect("every sampling has a line in the table")
}

/// The dominating pair of a run: its scheme's, at the noise of everything that is released on a batch,
/// for the steps that have to be accounted for.
///
/// # Errors
/// `Unsupported` where the scheme does not cover the neighbours, naming what it does cover, and for what
/// outputs chose; `OutsideDomain` beyond the domain.
pub fn pair(run: &Run) -> Result<BoxedPair> {
    chosen_in_advance(run)?;
    supports(run)?;
    let of_run = |run: &Run| match run.matrix() {
        Some(matrix) => matrix::pair(run, matrix),
        None => (of(run).pair)(run),
    };
    let most = of_run(&accounted(run, Side::Upper)?)?;
    if run.releases().is_empty() {
        return Ok(most);
    }
    // The noise of several releases is a root: rounded down for upper ends, up for lower ones.
    Ok(Box::new(releases::Between { least: of_run(&accounted(run, Side::Lower)?)?, most }))
}

/// Whether noise, rate and steps were chosen before the training: otherwise no pair is known that dominates the run.
///
/// # Errors
/// `Unsupported` for a run that a Rényi filter ended.
pub fn chosen_in_advance(run: &Run) -> Result<()> {
    if run.renyi_filter().is_none() {
        return Ok(());
    }
    let why = format!(
        "outputs may have chosen noise, rate and steps of this run, so no pair is known that dominates it; its Rényi filter \
         bounds epsilon and delta alone, by the lens `{}`",
        LensName::SIGNED
    );
    Err(NotCovered::Feature { key: "renyi_filter", why }.into())
}

/// The bound of the Rényi filter that ended a run, if one did.
///
/// # Errors
/// As [`FilterBound::for_run`].
pub(crate) fn filter(run: &Run) -> Result<Option<FilterBound>> {
    let bound = |filter| FilterBound::for_run(&accounted(run, Side::Upper)?, filter);
    run.renyi_filter().map(bound).transpose()
}

/// Whether a scheme covers a run; computes no number.
///
/// # Errors
/// `Unsupported` where the scheme does not cover the neighbours, naming what it does cover;
/// `OutsideDomain` beyond the domain.
pub fn supports(run: &Run) -> Result<()> {
    let run = accounted(run, Side::Upper)?;
    if run.renyi_filter().is_some() {
        if run.matrix().is_some() {
            let why =
                "a Rényi filter adds up steps with independent noise, and this noise is correlated";
            return Err(NotCovered::Feature { key: "matrix", why: why.into() }.into());
        }
        return RenyiBound::for_run(&run).map(drop);
    }
    match run.matrix() {
        Some(matrix) => matrix::supports(&run, matrix),
        None => (of(&run).supports)(&run),
    }
}

/// What the worst data set leaks at least, where the pair is an upper bound only: the lower ends of
/// this pair's epsilon and delta are proven lower ends of the worst case.
pub fn at_least(run: &Run) -> Option<BoxedPair> {
    // What is stopped early or correlated has a worst case of its own.
    if run.max_steps().is_some() || run.renyi_filter().is_some() || run.matrix().is_some() {
        return None;
    }
    let run = accounted(run, Side::Lower).ok()?;
    (of(&run).at_least)(&run)
}

/// How a record takes part, in words, and what is assumed besides.
pub fn words(run: &Run) -> Vec<String> {
    let mut all = vec![(of(run).words)(run)];
    if run.sampling() != Sampling::Full {
        all.push("sums are divided by a constant, not by the size of the batch drawn".into());
    }
    if !run.releases().is_empty() {
        all.push(format!(
            "{} further releases on each batch, with independent noise",
            run.releases().len()
        ));
    }
    if let Some(matrix) = run.matrix() {
        all.push(matrix::words(matrix));
    }
    all
}

/// How the number of steps came about, in words.
pub(crate) fn stopping(run: &Run) -> String {
    if let Some(RenyiFilter { order, budget }) = run.renyi_filter() {
        return format!(
            "a Rényi filter of order {order} and budget {budget}, both fixed before the training: noise, rate \
             and number of later steps may depend on earlier outputs, the training ended before the sum of \
             its steps' divergences could exceed the budget, and the phases are what was spent"
        );
    }
    match run.max_steps() {
        Some(most) => format!(
            "outputs decided when to stop, so all {most} steps that the run could have had count; \
             the noise was fixed in advance"
        ),
        None => FIXED_IN_ADVANCE.into(),
    }
}

/// Of every claim about a run that was not stopped by its outputs.
pub(crate) const FIXED_IN_ADVANCE: &str =
    "the number of steps and the noise were fixed in advance, not chosen from outputs";

/// Every lens but composition is about plain Poisson and full batches.
///
/// # Errors
/// `Unsupported` with the reason otherwise.
pub(crate) fn only_plain(run: &Run) -> Result<()> {
    if let Err(NotCovered::Sampling { what, found, covered, .. }) = by_coins(run, "it holds") {
        let elsewhere = supports(run).is_ok();
        return Err(NotCovered::Sampling { what, found, covered, elsewhere }.into());
    }
    let signed = LensName::SIGNED;
    let (key, why) = if !run.releases().is_empty() {
        (
            "releases",
            format!("it holds for one release per step; the lens `{signed}` covers several"),
        )
    } else if run.matrix().is_some() {
        (
            "matrix",
            format!("it holds for independent noise; the lens `{signed}` covers correlated noise"),
        )
    } else if run.max_steps().is_some() {
        let why = format!(
            "it holds for a number of steps fixed in advance, but outputs decided when this run ended; \
             the lens `{signed}` covers that"
        );
        ("max_steps", why)
    } else if run.renyi_filter().is_some() {
        let elsewhere = match supports(run) {
            Ok(()) => format!("; the lens `{signed}` has the bound of its Rényi filter"),
            Err(_) => String::new(),
        };
        let why = format!(
            "it holds for noise, rate and steps fixed in advance, but outputs may have chosen them in this \
             run{elsewhere}"
        );
        ("renyi_filter", why)
    } else {
        return Ok(());
    };
    Err(NotCovered::Feature { key, why }.into())
}

/// The run with the effective noise of all releases, rounded to the safe side of an end, and the steps that
/// have to be accounted for.
fn accounted(run: &Run, side: Side) -> Result<Run> {
    let mut phases: Vec<Phase> = run.phases().to_vec();
    if let (Some(most), Some(last)) = (run.max_steps(), phases.last_mut()) {
        last.steps += most - run.steps();
    }
    for phase in &mut phases {
        phase.noise_multiplier =
            releases::with_further(phase.noise_multiplier, run.releases(), side);
    }
    let changed = run.with_phases(phases).map_err(AccountingError::invalid)?;
    crate::domain::check_run(&changed)?;
    Ok(changed)
}

/// For batches that a further record would change.
fn same_records(run: &Run) -> Result<()> {
    if run.adjacency() != Adjacency::AddRemove {
        return Ok(());
    }
    Err(NotCovered::MovesOthers(run.sampling()).into())
}

/// The records in a batch and in the data set, where both are known and whole.
fn sizes(run: &Run, rate: f64) -> Option<(u64, u64)> {
    let records = run.dataset_size()?;
    let batch = rate * records as f64;
    let whole = batch.round();
    ((batch - whole).abs() <= 1e-9 * whole.max(1.0)).then_some((whole as u64, records))
}

/// The same batches about other neighbours, with other phases.
fn about(run: &Run, adjacency: Adjacency, group_size: u32, phases: Vec<Phase>) -> Result<Run> {
    let mut builder = Run::builder()
        .phases(phases)
        .sampling(run.sampling())
        .adjacency(adjacency)
        .group_size(group_size)
        .drawing(*run.drawing());
    if let Some(records) = run.dataset_size() {
        builder = builder.dataset_size(records);
    }
    builder.build().map_err(AccountingError::invalid)
}

/// Batches per epoch where every record is in exactly one of them: the lower ends of shuffled batches are
/// about such epochs. A record that is sometimes dropped is hidden better than they say.
pub(crate) fn even_batches(rate: f64) -> Option<u64> {
    let batches = batches_per_pass(rate, true);
    ((batches as f64 * rate - 1.0).abs() <= 1e-9).then_some(batches)
}

fn one_phase<'a>(run: &'a Run, what: &'static str) -> Result<&'a Phase> {
    match run.phases() {
        [phase] => Ok(phase),
        several => Err(NotCovered::Phases { what, found: several.len(), separately: true }.into()),
    }
}
