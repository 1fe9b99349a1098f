//! Gathers a report: claims from the accounting, evidence from the audit, figures from both.
//! What it looks like is the `report` crate's business; what it says is decided here.

mod accuracy;
mod changes;
mod curves;
pub(crate) mod example;
pub(crate) mod ledger;
mod map;
mod measured;
mod search;
mod verdict;

use crate::failure::Failure;
use accounting::{AccountingError, Questions};
use audit::verdict::ClaimedEpsilon;
use audit::{Analysis, AuditError, Design, Plan, Scores, analyse};
use report::{Origin, Provenance, Report, Shown, Status};
use vocabulary::{
    Account, Claim, Direction, Figure, LensName, Quantity, Resolved, Run, Sampling, Standing,
};

/// What a report is about.
pub struct Subject {
    pub run: Option<(Resolved, Origin)>,
    pub scores: Option<(Scores, Design)>,
    /// The ledger of the training, as it was read.
    pub ledger: Option<serde_json::Value>,
    /// Results of trainings with other settings.
    pub results: Option<tuning::Table>,
    pub delta: f64,
    pub confidence: f64,
    /// Leave out everything computed from records.
    pub public: bool,
    pub provenance: Provenance,
}

/// Makes the report.
///
/// # Errors
/// What the accounting or the audit cannot answer, where the report would be empty without it.
pub fn assemble(subject: Subject) -> Result<Report, Failure> {
    let Subject { run, scores, ledger, results, delta, confidence, public, provenance } = subject;
    let scores = if public { None } else { scores };
    let account = match &run {
        Some((resolved, _)) => Some(account(resolved, delta)?),
        None => None,
    };
    let analysis = match &scores {
        Some((scores, design)) => {
            let run = run.as_ref().map(|(resolved, _)| &resolved.run);
            Some(audit(scores, *design, run, account.as_ref(), delta, confidence)?)
        }
        None => None,
    };
    let evidence = scores.as_ref().map(|(scores, _)| scores).zip(analysis.as_ref());
    let verdict = verdict::verdict(account.as_ref(), analysis.as_ref(), delta, public);
    let mut report = Report::new(env!("CARGO_PKG_VERSION"), delta, verdict, provenance);
    report.public = public;
    let mut gathered = Gathered::default();
    let questioned = run.as_ref().zip(account.as_ref());
    gathered.add("tradeoff", evidence.is_some(), curves::tradeoff(account.as_ref(), evidence));
    if let Some(((resolved, origin), account)) = questioned {
        let run = &resolved.run;
        report.assumptions = report::assumptions(run, *origin);
        report.statement = match report.verdict.status {
            // Nobody should paste what has just been refuted.
            Status::Contradiction => vec![format!(
                "No privacy guarantee is stated. {}. {}",
                report.verdict.headline, report.verdict.reason
            )],
            _ => report::statement(account, delta),
        };
        if epsilon(account, LensName::Composition).is_some() {
            report.attack_accuracy = accuracy::claims(run, account);
            gathered.add("accuracy", false, accuracy::figure(run, &report.attack_accuracy));
            gathered.add("profile", false, curves::profile(account, delta));
            gathered.add("steps", false, curves::steps(account, delta));
        }
        report.changes = changes::changes(account, delta);
        gathered.add("changes", false, Ok(changes::figure(account, &report.changes, delta)));
        gathered.add("map", false, map::figure(account, delta));
    }
    if let Some((scores, analysis)) = evidence {
        gathered.add("ladder", true, Ok(Some(measured::ladder(account.as_ref(), analysis, delta))));
        gathered.add("scores", true, Ok(Some(measured::histogram(scores, analysis))));
        for entry in &analysis.not_valid {
            gathered.left_out.push(format!("audit method {}: {}", entry.method, entry.reason));
        }
    }
    if let Some(ledger) = &ledger {
        report.training = Some(ledger::training(ledger, public));
        if let (Some((resolved, _)), false) = (&run, public) {
            gathered.add("norms", true, Ok(ledger::norms(ledger, &resolved.run)));
            gathered.add("loss", true, Ok(ledger::loss(ledger)));
        }
    }
    if let (Some(table), false) = (&results, public) {
        let found = search::search(table, confidence)
            .map_err(|error| Failure::bad_input(error.to_string()))?;
        match found {
            Some((search, figure)) => {
                report.search = Some(search);
                gathered.add("search", true, Ok(Some(figure)));
            }
            None => {
                gathered.left_out.push("the results have no column `score_…` to compare".into())
            }
        }
    }
    if public {
        gathered.left_out.push(
            "the public edition leaves out whatever is computed from records without privacy: \
             canary scores and the audit, statistics of gradients, accuracy, results of a search"
                .into(),
        );
    }
    report.run = run.map(|(resolved, _)| resolved.run);
    report.account = account;
    report.audit = analysis.map(|analysis| analysis.to_json());
    report.figures = gathered.figures;
    report.left_out = gathered.left_out;
    Ok(report)
}

/// Figures as they come; one that cannot be drawn is listed with its reason.
#[derive(Default)]
struct Gathered {
    figures: Vec<Shown>,
    left_out: Vec<String>,
}

impl Gathered {
    fn add(
        &mut self,
        id: &str,
        not_private: bool,
        figure: Result<Option<Figure>, AccountingError>,
    ) {
        match figure {
            Ok(Some(figure)) => {
                self.figures.push(Shown { id: id.into(), not_private, figure });
            }
            Ok(None) => {}
            Err(error) => self.left_out.push(format!("the figure `{id}`: {error}")),
        }
    }
}

fn account(resolved: &Resolved, delta: f64) -> Result<Account, AccountingError> {
    let questions =
        Questions { deltas: vec![delta], notes: resolved.notes.clone(), ..Questions::default() };
    accounting::account(&resolved.run, &questions)
}

fn audit(
    scores: &Scores,
    design: Design,
    run: Option<&Run>,
    account: Option<&Account>,
    delta: f64,
    confidence: f64,
) -> Result<Analysis, Failure> {
    let mut plan = Plan::new(design);
    plan.all_methods = true;
    plan.deltas = vec![delta];
    plan.confidence = confidence;
    plan.training = run.and_then(|run| match (run.phases(), run.sampling()) {
        ([phase], Sampling::Poisson) => Some((phase.sample_rate, phase.steps)),
        _ => None,
    });
    let claimed = account
        .and_then(|account| epsilon(account, LensName::Composition))
        .filter(|claim| claim.standing == Standing::Proven)
        .map(|claim| ClaimedEpsilon { lower: claim.interval.lower, upper: claim.interval.upper });
    let proven = |_: f64| -> Result<ClaimedEpsilon, AuditError> {
        Ok(claimed.unwrap_or(ClaimedEpsilon { lower: 0.0, upper: f64::INFINITY }))
    };
    let claims: Option<audit::Claims<'_>> = if claimed.is_some() { Some(&proven) } else { None };
    Ok(analyse(scores, &plan, claims)?)
}

/// The claim of a lens about one quantity; a report asks at one delta only.
fn find(account: &Account, lens: LensName, quantity: Quantity) -> Option<&Claim> {
    account.claims.iter().find(|claim| {
        claim.source == lens && claim.quantity == quantity && claim.direction == Direction::Both
    })
}

fn epsilon(account: &Account, lens: LensName) -> Option<&Claim> {
    find(account, lens, Quantity::Epsilon)
}

/// Words before a sentence that is true only if an unproven argument is.
fn hedged(standing: Standing, sentence: &str) -> String {
    if standing == Standing::Proven {
        return sentence.to_owned();
    }
    let mut letters = sentence.chars();
    let first: String = letters.next().map(|c| c.to_lowercase().collect()).unwrap_or_default();
    format!("By an unproven argument, {first}{}", letters.as_str())
}

/// A lens with its standing, as a label.
fn label(lens: LensName, standing: Standing) -> String {
    format!("{} ({})", lens.label(), standing.as_str())
}
