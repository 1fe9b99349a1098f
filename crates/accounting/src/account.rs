//! What a run leaks, under every lens that holds for it: the claims of the `account` document.

use crate::bayes_security::attribute;
use crate::lenses::{self, Lens, Subject, View};
use crate::pairs::RenyiBound;
use crate::reconstruction;
use crate::{AccountingError, domain};
use vocabulary::{
    Account, Adjacency, At, Claim, Direction, Interval, LensName, NotCertified, Quantity, Release,
    Run, Secret, Side, Sign, Standing, Unsupported,
};

type Result<T> = std::result::Result<T, AccountingError>;

/// What is asked about a run. The quantities that need no argument are always answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Questions {
    /// Epsilon and mu at each.
    pub deltas: Vec<f64>,
    /// Delta at each.
    pub epsilons: Vec<f64>,
    /// True positive rate at each; 0.001 and 0.01 when empty.
    pub fprs: Vec<f64>,
    /// Reconstruction success at each prior.
    pub priors: Vec<f64>,
    /// Prior probabilities of candidates for the record: how often the right one is named.
    pub candidates: Vec<f64>,
    /// The accuracy of the best attacker at each of these priors of one of two secrets.
    pub attack_priors: Vec<f64>,
    /// Epsilon, delta and TPR of the single directions, too.
    pub directions: bool,
    /// Only these lenses; all when empty.
    pub lenses: Vec<LensName>,
    /// Only these quantities; all when empty. Mu and the true positive rates cost most.
    pub quantities: Vec<Quantity>,
    /// All numbers of the first proven and the first heuristic lens, and the first number of every
    /// other: what a summary shows. Without effect where quantities are named.
    pub brief: bool,
    /// Defaults and derived values behind the run, added to every claim's assumptions.
    pub notes: Vec<String>,
    /// Seconds of processor time that all numbers may take together; 10 unless given.
    pub time_limit: Option<f64>,
}

/// Seconds of processor time that all numbers may take together.
const TIME_LIMIT: f64 = 10.0;

/// False positive rates answered without being asked for.
pub const DEFAULT_FPRS: [f64; 2] = [0.001, 0.01];

impl Questions {
    fn wants(&self, quantity: Quantity) -> bool {
        self.quantities.is_empty() || self.quantities.contains(&quantity)
    }

    /// The question of these that a view answers first: epsilon, else delta, else the advantage.
    fn first(&self, view: &View) -> Self {
        let (quantity, deltas, epsilons) = match (self.deltas.first(), self.epsilons.first()) {
            (Some(delta), _) if view.has_profile() => (Quantity::Epsilon, vec![*delta], vec![]),
            (_, Some(epsilon)) if view.has_profile() => (Quantity::Delta, vec![], vec![*epsilon]),
            _ => (Quantity::Advantage, vec![], vec![]),
        };
        let quantities = vec![quantity];
        Self { quantities, deltas, epsilons, time_limit: self.time_limit, ..Self::default() }
    }

    /// Asks for one number within the limit of time.
    fn limited<T>(&self, what: &str, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        let seconds = self.time_limit.unwrap_or(TIME_LIMIT);
        crate::patience::within(seconds, ask).unwrap_or_else(|| {
            Err(NotCertified::Time { what: what.into(), seconds: Some(seconds) }.into())
        })
    }

    /// The end of an answer about the worst case that it is at least, where there is one within the limit of time.
    fn at_least(
        &self,
        below: Option<&View>,
        ask: impl FnOnce(&View) -> Result<Interval>,
    ) -> Option<f64> {
        let below = below?;
        let answer = self.limited("its lower end", || ask(below)).ok()?;
        Some(answer.lower).filter(|least| least.is_finite())
    }

    /// # Errors
    /// The first number that makes no sense or lies outside of the domain.
    pub fn check(&self) -> Result<()> {
        self.deltas.iter().try_for_each(|delta| domain::check_delta(*delta))?;
        self.epsilons.iter().try_for_each(|epsilon| domain::check_epsilon(*epsilon))?;
        for fpr in &self.fprs {
            domain::check_probability("false positive rate", *fpr)?;
        }
        self.priors.iter().try_for_each(|prior| domain::check_probability("prior", *prior))
    }
}

/// What is known about epsilon or delta of composition where the number itself takes too long.
fn known_so_far(error: AccountingError, run: &Run, bound: Known) -> AccountingError {
    let AccountingError::NotCertified(reason) = &error else { return error };
    // Of the steps as they are: not of further releases, and not where outputs chose.
    let renyi = crate::schemes::only_plain(run).and_then(|()| RenyiBound::for_run(run));
    let known = renyi.and_then(|renyi| match bound {
        Known::Epsilon(delta) => renyi.epsilon(delta).map(|x| (Quantity::Epsilon, x.upper)),
        Known::Delta(epsilon) => renyi.delta(epsilon).map(|x| (Quantity::Delta, x.upper)),
    });
    match known {
        Ok((quantity, most)) if most.is_finite() => {
            NotCertified::KnownSoFar { reason: Box::new(reason.clone()), quantity, most }.into()
        }
        _ => error,
    }
}

enum Known {
    Epsilon(f64),
    Delta(f64),
}

/// Answers all questions about a run.
///
/// A lens asked for by name must hold for the run; otherwise lenses that do not are listed. The
/// composition lens must be able to certify its numbers; another lens that cannot is listed.
///
/// # Errors
/// `Unsupported` for a named lens that does not hold, `OutsideDomain` and `NotCertified` where
/// no number can be given.
pub fn account<'a>(subject: impl Into<Subject<'a>>, questions: &Questions) -> Result<Account> {
    questions.check()?;
    let subject = subject.into();
    // All numbers share one limit: those that are there by then are kept.
    crate::patience::budget(questions.time_limit.unwrap_or(TIME_LIMIT), || all(subject, questions))
}

fn all(subject: Subject<'_>, questions: &Questions) -> Result<Account> {
    let run = subject.run;
    let mut account = Account {
        schema: Account::SCHEMA.into(),
        run: run.clone(),
        sign: None,
        claims: Vec::new(),
        unsupported: Vec::new(),
        asides: Vec::new(),
        warnings: warnings(run, questions),
    };
    let named = !questions.lenses.is_empty();
    let chosen: Vec<&Lens> = if named {
        questions.lenses.iter().map(|name| Lens::named(*name)).collect()
    } else {
        lenses::ALL.iter().collect()
    };
    // Standings of which one lens has been answered in full.
    let mut whole = Vec::new();
    for lens in chosen {
        let what = lens.name.as_str();
        let standing = lens.standing(run);
        let first_only = questions.brief
            && questions.quantities.is_empty()
            && (standing == Standing::Estimate || whole.contains(&standing));
        let answered = questions.limited(what, || lens.look(subject)).and_then(|view| {
            let maker = ClaimMaker::new(lens, &subject, &questions.notes);
            if first_only {
                let first = questions.first(&view);
                return claims((lens, run), &view, &maker, &first, &mut account.warnings);
            }
            let mut all = claims((lens, run), &view, &maker, questions, &mut account.warnings)?;
            if lens.one_pair {
                all.extend(among(&view, &maker, questions)?);
            }
            all.extend(accuracies(&view, &maker, questions, &mut account.warnings));
            Ok(all)
        });
        match answered {
            Ok(claims) => {
                if claims.first().is_some_and(|claim| claim.interval.upper.is_finite()) {
                    whole.push(standing);
                }
                account.claims.extend(claims);
            }
            Err(AccountingError::Unsupported(reason)) if !named => {
                account.unsupported.push(Unsupported::new(lens.name, &reason));
            }
            Err(error) if named || lens.required => return Err(error.of(lens.name)),
            Err(error) => account.unsupported.push(Unsupported::refused(lens.name, &error)),
        }
    }
    if let Some(sensitivities) = subject.attribute {
        account.claims.extend(attribute::claims(run, sensitivities, questions)?);
    }
    // What is beside the numbers may be missing.
    let beside = questions.limited("a comparison", || {
        crate::mismatch::add(run, questions, &mut account);
        Ok(())
    });
    if let Err(error) = beside {
        account
            .warnings
            .push(format!("a comparison with other ways to draw batches is left out: {error}"));
    }
    account.sign = Sign::of(run, &account.claims);
    Ok(account)
}

/// The accuracy of the best attacker who tells two secrets apart.
fn accuracies(
    view: &View,
    maker: &ClaimMaker,
    questions: &Questions,
    warnings: &mut Vec<String>,
) -> Vec<Claim> {
    let mut all = Vec::new();
    let asked = questions.quantities.contains(&Quantity::AttackAccuracy);
    let priors = match questions.attack_priors.as_slice() {
        [] if asked => &[0.5][..],
        given => given,
    };
    for prior in priors {
        match questions.limited("it", || view.attack_accuracy(*prior)) {
            Ok(hits) => {
                let at = At { prior: Some(*prior), ..At::default() };
                all.push(maker.claim(Quantity::AttackAccuracy, at, Direction::Both, hits));
            }
            Err(AccountingError::Unsupported(_)) => {}
            Err(error) => {
                let name = Quantity::AttackAccuracy.as_str();
                warnings.push(format!("{name} of {} is left out: {error}", maker.lens));
            }
        }
    }
    all
}

/// Naming the record among candidates, for lenses that have a pair.
fn among(view: &View, maker: &ClaimMaker, questions: &Questions) -> Result<Option<Claim>> {
    let candidates = &questions.candidates;
    let Some(pair) = view.as_pair().filter(|_| !candidates.is_empty()) else {
        return Ok(None);
    };
    let asked = || reconstruction::among(pair, candidates);
    let found = questions.limited("naming the record", asked)?;
    let largest = candidates.iter().copied().fold(0.0, f64::max);
    let at = At { prior: Some(largest), ..At::default() };
    let mut claim = maker.claim(Quantity::Reconstruction, at, Direction::Both, found);
    claim.assumptions.push(format!(
        "the record is one of {} candidates, the likeliest with prior {largest}; the attacker names \
         one of them",
        candidates.len()
    ));
    Ok(Some(claim))
}

fn warnings(run: &Run, questions: &Questions) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(size) = run.dataset_size() {
        for delta in &questions.deltas {
            if *delta > 1.0 / size as f64 {
                warnings.push(format!(
                    "delta {delta:e} is above 1/n = {:.2e} (n = {size}): a mechanism that \
                     publishes one random record would pass; use a delta well below 1/n",
                    1.0 / size as f64
                ));
            }
        }
    }
    warnings
}

fn claims(
    (lens, run): (&Lens, &Run),
    view: &View,
    maker: &ClaimMaker,
    questions: &Questions,
    warnings: &mut Vec<String>,
) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let below = view.at_least();
    // What leads a person astray least comes first; within a quantity both, then the ways.
    for direction in directions(view, questions) {
        for delta in questions.deltas.iter().filter(|_| questions.wants(Quantity::Epsilon)) {
            let at = At { delta: Some(*delta), ..At::default() };
            let named = format!("epsilon of {}", lens.name);
            let epsilon = match questions.limited(&named, || view.epsilon(*delta, direction)) {
                Ok(epsilon) => epsilon,
                // A lens about other things than epsilon still answers those.
                Err(AccountingError::Unsupported(_)) if !view.has_profile() => {
                    continue;
                }
                Err(error) if lens.required => {
                    return Err(known_so_far(error, run, Known::Epsilon(*delta)));
                }
                Err(error) => return Err(error),
            };
            let mut claim = maker.claim(Quantity::Epsilon, at, direction, epsilon);
            claim.reason = view.vacuous(*delta).or(claim.reason);
            claim.at_least = questions.at_least(below, |below| below.epsilon(*delta, direction));
            claims.push(claim);
        }
        for epsilon in questions
            .epsilons
            .iter()
            .filter(|_| questions.wants(Quantity::Delta) && view.has_profile())
        {
            let at = At { epsilon: Some(*epsilon), ..At::default() };
            let named = format!("delta of {}", lens.name);
            let delta =
                questions.limited(&named, || view.delta(*epsilon, direction)).map_err(|error| {
                    if lens.required {
                        known_so_far(error, run, Known::Delta(*epsilon))
                    } else {
                        error
                    }
                })?;
            let mut claim = maker.claim(Quantity::Delta, at, direction, delta);
            claim.at_least = questions.at_least(below, |below| below.delta(*epsilon, direction));
            claims.push(claim);
        }
    }
    let both = Direction::Both;
    let mut optional =
        |quantity: Quantity, at: At, direction, ask: &dyn Fn(&View) -> Result<Interval>| {
            match questions.limited("it", || ask(view)) {
                Ok(interval) => {
                    let mut claim = maker.claim(quantity, at, direction, interval);
                    // Curves of a lower end cost more than they tell.
                    let below = below.filter(|_| quantity == Quantity::Advantage);
                    claim.at_least = questions.at_least(below, ask);
                    claims.push(claim);
                }
                Err(AccountingError::Unsupported(_)) => {}
                Err(error) => {
                    warnings.push(format!(
                        "{} of {} is left out: {error}",
                        quantity.as_str(),
                        lens.name
                    ));
                }
            }
        };
    if questions.wants(Quantity::Advantage) {
        optional(Quantity::Advantage, At::default(), both, &View::advantage);
    }
    if questions.wants(Quantity::BayesSecurity) {
        optional(Quantity::BayesSecurity, At::default(), both, &View::bayes_security);
    }
    for delta in questions.deltas.iter().filter(|_| questions.wants(Quantity::Mu)) {
        let at = At { delta: Some(*delta), ..At::default() };
        optional(Quantity::Mu, at, both, &|view| view.mu(*delta, both));
    }
    let fprs = if questions.fprs.is_empty() { &DEFAULT_FPRS[..] } else { &questions.fprs };
    for direction in directions(view, questions) {
        for fpr in fprs.iter().filter(|_| questions.wants(Quantity::Tpr)) {
            let at = At { fpr: Some(*fpr), ..At::default() };
            optional(Quantity::Tpr, at, direction, &|view| view.tpr(*fpr, direction));
        }
    }
    for prior in questions.priors.iter().filter(|_| questions.wants(Quantity::Reconstruction)) {
        let at = At { prior: Some(*prior), ..At::default() };
        optional(Quantity::Reconstruction, at, both, &|view| view.tpr(*prior, both));
    }
    Ok(claims)
}

fn directions(view: &View, questions: &Questions) -> Vec<Direction> {
    if questions.directions && view.has_directions() {
        vec![Direction::Both, Direction::Add, Direction::Remove]
    } else {
        vec![Direction::Both]
    }
}

/// Makes claims of one lens about one run.
pub(crate) struct ClaimMaker {
    lens: LensName,
    release: Release,
    adjacency: Adjacency,
    standing: Standing,
    assumptions: Vec<String>,
}

impl ClaimMaker {
    pub(crate) fn new(lens: &Lens, subject: &Subject<'_>, notes: &[String]) -> Self {
        let run = subject.run;
        let mut assumptions = lens.assumptions(run);
        assumptions.extend_from_slice(notes);
        assumptions.extend(lens.trusts(subject));
        Self {
            lens: lens.name,
            release: lens.release,
            adjacency: run.adjacency(),
            standing: lens.standing(run),
            assumptions,
        }
    }

    pub(crate) fn claim(
        &self,
        quantity: Quantity,
        at: At,
        direction: Direction,
        interval: Interval,
    ) -> Claim {
        crate::patience::look();
        Claim {
            source: self.lens.into(),
            release: self.release,
            secret: if quantity == Quantity::Reconstruction {
                Secret::Reconstruction
            } else {
                Secret::Membership
            },
            direction,
            adjacency: self.adjacency,
            quantity,
            at,
            standing: self.standing,
            side: match (self.standing, quantity.is_leakage()) {
                (Standing::Estimate, _) => Side::Neither,
                (_, true) => Side::Upper,
                (_, false) => Side::Lower,
            },
            interval,
            at_least: None,
            confidence: None,
            certificate: None,
            reason: (!interval.upper.is_finite())
                .then(|| "the lens gives no finite number here".into()),
            assumptions: self.assumptions.clone(),
        }
    }
}
