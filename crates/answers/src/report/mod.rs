//! A report: claims from the accounting, findings from the audit, figures from both.
//! What it looks like is the `report` crate's business; what it says is decided here.

mod accuracy;
mod changes;
mod command;
mod curves;
mod example;
mod format;
mod inputs;
mod ledger;
mod map;
mod measured;
mod search;
mod verdict;

pub use format::ReportFormat;

use crate::audit::{Audited, parsed};
use crate::flags::{integer, real, word};
use crate::run::{Described, load};
use crate::{AuditQuestion, Ended, Refusal, Work, exit, limit};
use accounting::{AccountingError, Questions};
use audit::sequential::SequentialDocument;
use audit::{Design, SettledTable, Table};
use clap::Args;
use inputs::Inputs;
use ledger::Ledger;
use report::{Cover, Origin, Provenance, Report, Shown, calendar_day};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use vocabulary::{
    Account, Claim, Direction, Figure, LensName, Problem, Quantity, Resolved, Run, RunDescription,
    Standing, Status,
};

/// The question of `report`. Without files and without a run it is about the built-in example.
#[derive(Clone, Debug, Default, Deserialize, Args)]
#[serde(deny_unknown_fields, default)]
pub struct ReportQuestion {
    /// Runs (TOML), ledgers (JSON; several are composed in order), scores and results of other
    /// settings (CSV, JSONL, Parquet; told apart by their columns)
    #[arg(value_name = "RUN|LEDGER|SCORES|RESULTS")]
    pub files: Vec<PathBuf>,
    #[arg(skip)]
    pub run: Described,
    /// The delta of every epsilon; well below 1/n [default of the example: 1e-5]
    #[arg(short = 'd', long, value_name = "DELTA", value_parser = real, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Confidence of what is measured
    #[arg(long, value_name = "C", value_parser = real, allow_hyphen_values = true, default_value = "0.95")]
    pub confidence: Option<f64>,
    /// How the scores were made: `runs` or `one-run` [default: what the file says, else runs]
    #[arg(long, value_name = "DESIGN")]
    #[serde(deserialize_with = "parsed")]
    pub design: Option<Design>,
    /// Take the scores as trials in their order; the report draws the evidence over time
    #[arg(long)]
    pub sequential: bool,
    /// Accept scores that come from another run than the described one
    #[arg(long)]
    pub other_run: bool,
    /// Leave out everything that was computed from records without privacy protection
    #[arg(long)]
    pub public: bool,
    /// The title on the first page: what the report is about
    #[arg(long, value_name = "TEXT", help_heading = "Output")]
    pub title: Option<String>,
    /// The person or team that answers for the training
    #[arg(long, value_name = "NAME", help_heading = "Output")]
    pub owner: Option<String>,
    /// The date on the first page [default: none, so that the same inputs give the same bytes]
    #[arg(long, value_name = "YYYY-MM-DD", help_heading = "Output")]
    pub date: Option<String>,
    /// Number of trainings with the canary in the built-in example; as many are done without
    /// [default: 4000]
    #[arg(long, value_name = "N", value_parser = integer)]
    pub trials: Option<u64>,
    /// The kind of document [default: from the extension of --out, else html]
    #[arg(long, value_parser = word::<ReportFormat>(ReportFormat::words()), value_name = "FORMAT", help_heading = "Output")]
    pub format: Option<ReportFormat>,
    /// Output file; `-` is stdout [default: dosimeter-report.html, .md, .pdf or .yaml]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Files in this folder are gone when the report is read: they were in memory, and no command makes it again.
    #[arg(skip)]
    pub scratch: Option<PathBuf>,
    /// Seconds of processor time that the answer may take [default: 60].
    #[arg(skip)]
    pub time_limit: Option<f64>,
}

/// A report and the document that it became.
#[derive(Clone, Debug)]
pub struct Reported {
    pub report: Report,
    pub bytes: Vec<u8>,
    /// Where it goes; `-` is stdout.
    pub out: PathBuf,
}

impl Reported {
    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self) -> Result<(), Refusal> {
        formats::files::write(&self.out, &self.bytes)
            .map_err(|error| Refusal::unwritable(&self.out, &error))
    }
}

impl crate::Document for Report {
    fn exit_code(&self) -> u8 {
        match self.verdict.status {
            Status::Contradiction => exit::CHECK_FAILED,
            _ => exit::ANSWERED,
        }
    }
}

impl ReportQuestion {
    /// Title, owner and date.
    ///
    /// # Errors
    /// A date that is not in the calendar.
    fn cover(&self) -> Result<Cover, Refusal> {
        if let Some(date) = &self.date
            && calendar_day(date).is_none()
        {
            let message = format!("--date {date} is not a day of the calendar");
            let problem =
                Problem::from(message).about("date", date.as_str(), "a day of the calendar");
            return Err(Refusal::from(problem).hint("write it as year, month and day: 2026-11-16"));
        }
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let (title, owner) = (filled(&self.title), filled(&self.owner));
        Ok(Cover { title, owner, date: self.date.clone() })
    }
}

/// Seconds of processor time for a report: it holds dozens of answers.
const SECONDS: f64 = 60.0;

/// Reads the files, or plays the built-in example, and makes the report's document.
///
/// # Errors
/// What is wrong with the question or a file, and what the accounting or the audit cannot answer,
/// where the report would be empty without it.
pub fn report(question: &ReportQuestion, work: &dyn Work) -> Result<Ended<Reported>, Refusal> {
    let (format, out) = ReportFormat::settled(question.format, question.out.as_deref())?;
    question.cover()?;
    let is_example =
        question.files.is_empty() && question.run.description()? == RunDescription::default();
    let (delta, inputs) = if is_example {
        match example::play(question.trials, work)? {
            Ended::Answered(inputs) => (question.delta.or(Some(example::DELTA)), inputs),
            Ended::Stopped(code) => return Ok(Ended::Stopped(code)),
        }
    } else if question.trials.is_some() {
        return Err(Refusal::bad_input("--trials is for the built-in example only")
            .hint("leave it out, or leave out the files and the run"));
    } else {
        (question.delta, given(question, &out)?)
    };
    if inputs.scores() > 0 && !question.public {
        work.note(&format!("auditing {} scores and drawing the curves", inputs.scores()));
    }
    let limit = question.time_limit.or(Some(SECONDS));
    let report = limit::asked(limit, || about(question, delta, inputs))?;
    let bytes = format.bytes(&report)?;
    if format == ReportFormat::Registry {
        work.note("fill in the lines that say TO BE FILLED IN before you hand it over");
    }
    Ok(Ended::Answered(Reported { report, bytes, out }))
}

/// What files hold; none of them is overwritten.
fn given(question: &ReportQuestion, out: &Path) -> Result<Inputs, Refusal> {
    let same = |path: &Path| match (path.canonicalize(), out.canonicalize()) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    };
    let mut inputs = Inputs::default();
    for path in &question.files {
        if same(path) {
            return Err(Refusal::bad_input(format!(
                "{} is an input and would be overwritten; choose another --out",
                path.display()
            )));
        }
        let gone = question.scratch.as_ref().is_some_and(|folder| path.starts_with(folder));
        let shown = if gone { "in memory".to_owned() } else { path.display().to_string() };
        inputs.add(path, &shown)?;
    }
    Ok(inputs)
}

fn about(question: &ReportQuestion, delta: Option<f64>, inputs: Inputs) -> Result<Report, Refusal> {
    let cover = question.cover()?;
    let public = question.public;
    let run = resolve(question, &inputs)?;
    let Inputs { mut ledgers, scores, made_by, results, mut files, mut seeds, mut notes, .. } =
        inputs;
    let scores = scores.map(Table::settle).transpose()?;
    if question.sequential && scores.is_none() {
        return Err(Refusal::bad_input("--sequential needs scores, and none were given"));
    }
    if public && run.is_none() {
        return Err(Refusal::bad_input(
            "a public report leaves out what is computed from scores, so nothing would be left",
        )
        .hint("describe the run as well: RUN.toml, LEDGER.json, or flags"));
    }
    let Some(delta) = delta else {
        return Err(Refusal::from(Problem::missing("a report needs a delta", "delta"))
            .hint("give --delta, well below one over the number of records, e.g. 1e-6"));
    };
    if public {
        files.retain(|input| !matches!(input.role.as_str(), "scores" | "results"));
        seeds.clear();
        notes.clear();
    }
    // What was in memory, and coefficients that a flag read from a file, no command can name.
    let unnamed =
        question.scratch.is_some() || question.run.description()?.batches.matrix.is_some();
    let commands = if unnamed { Vec::new() } else { vec![question.command()?] };
    let confidence = question.confidence.unwrap_or(0.95);
    let asked = AuditQuestion {
        design: question.design,
        delta: vec![delta],
        confidence: Some(confidence),
        // Trials in their order have one method.
        all_methods: !question.sequential,
        made_by,
        other_run: question.other_run,
        sequential: question.sequential,
        ..AuditQuestion::default()
    };
    let subject = Subject {
        run,
        measured: scores.filter(|_| !public).map(|table| (asked, table)),
        // Of several trainings composed, the record of one would be mistaken for all.
        ledger: if ledgers.len() == 1 { ledgers.pop() } else { None },
        results: results.filter(|_| !public),
        delta,
        confidence,
        public,
        provenance: Provenance { commands, inputs: files, seeds, notes },
    };
    let mut report = subject.assemble()?;
    report.cover = cover;
    Ok(report)
}

/// The run, if one is described, and who says what about it.
fn resolve(
    question: &ReportQuestion,
    inputs: &Inputs,
) -> Result<Option<(Resolved, Origin)>, Refusal> {
    let keys = question.run.description()?;
    let no_keys = keys == RunDescription::default();
    if inputs.runs.is_empty() && no_keys {
        return Ok(None);
    }
    let loaded = load(&inputs.runs, &question.run)?;
    let mut written = vec![keys];
    for file in &inputs.runs {
        written.push(file.document()?.run);
    }
    let stated = |told: fn(&RunDescription) -> bool| written.iter().any(told);
    let ledgers = &inputs.ledgers;
    let mut origin = Origin {
        ledger: !ledgers.is_empty() && ledgers.len() == inputs.runs.len() && no_keys,
        sampling_stated: stated(|run| run.sampling.is_some()),
        clip_stated: stated(|run| run.clip_norm.is_some()),
        adjacency_stated: stated(|run| run.adjacency.is_some()),
        ..Origin::default()
    };
    // One ledger verifies what it records. Of several, none verifies the whole.
    if let [only] = ledgers.as_slice() {
        only.vouch(&mut origin);
    }
    Ok(Some((loaded.resolved, origin)))
}

/// Everything that is read, before anything is computed.
struct Subject {
    run: Option<(Resolved, Origin)>,
    /// The scores, and what is asked about them.
    measured: Option<(AuditQuestion, SettledTable)>,
    ledger: Option<Ledger>,
    results: Option<tuning::TrainingTable>,
    delta: f64,
    confidence: f64,
    public: bool,
    provenance: Provenance,
}

impl Subject {
    fn assemble(self) -> Result<Report, Refusal> {
        let Subject { run, measured, ledger, results, delta, confidence, public, provenance } =
            self;
        let account = match &run {
            Some((resolved, _)) => Some(account(resolved, delta)?),
            None => None,
        };
        let found =
            audited(measured, run.as_ref().map(|(resolved, _)| &resolved.run), account.as_ref())?;
        let (fixed, trials) = match &found {
            Some(Measured::Scores(audited)) => (Some(audited), None),
            Some(Measured::Trials(trials)) => (None, Some(trials)),
            None => (None, None),
        };
        let analysis = fixed.map(|audited| &audited.analysis);
        let evidence = fixed.map(|audited| (&audited.scores, &audited.analysis));
        let mut verdict = verdict::verdict(account.as_ref(), analysis, delta, public);
        if let Some(trials) = trials {
            verdict = verdict::of_trials(verdict, trials);
        }
        let mut report = Report::new(env!("CARGO_PKG_VERSION"), delta, verdict, provenance);
        report.public = public;
        let mut gathered = Gathered::default();
        let questioned = run.as_ref().zip(account.as_ref());
        let tradeoff = limit::beside(|| curves::tradeoff(account.as_ref(), evidence));
        gathered.add("tradeoff", evidence.is_some(), tradeoff);
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
            if epsilon(account, LensName::SIGNED).is_some() {
                match limit::beside(|| Ok(accuracy::claims(run, account))) {
                    Ok(claims) => report.attack_accuracy = claims,
                    Err(error) => gathered.left_out.push(format!("accuracies of attacks: {error}")),
                }
                gathered.add("accuracy", false, accuracy::figure(run, &report.attack_accuracy));
                gathered.add("profile", false, limit::beside(|| curves::profile(account, delta)));
                gathered.add("steps", false, limit::beside(|| curves::steps(account, delta)));
            }
            match limit::beside(|| Ok(changes::changes(account, delta))) {
                Ok(changes) => report.changes = changes,
                Err(error) => gathered.left_out.push(format!("what changes would do: {error}")),
            }
            gathered.add("changes", false, Ok(changes::figure(account, &report.changes, delta)));
            gathered.add("map", false, limit::beside(|| map::figure(account, delta)));
        }
        if let Some((scores, analysis)) = evidence {
            gathered.add(
                "ladder",
                true,
                Ok(Some(measured::ladder(account.as_ref(), analysis, delta))),
            );
            gathered.add("scores", true, Ok(Some(measured::histogram(scores, analysis))));
            // How scores were made is taken, not known: the reader has to learn it.
            if let Some(hint) = fixed.and_then(|audited| audited.hint) {
                gathered.left_out.push(format!("audit: {hint}"));
            }
            for (reason, methods) in audit::by_reason(&analysis.not_valid) {
                let s = if methods.len() == 1 { "" } else { "s" };
                let names = methods.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                gathered.left_out.push(format!("audit method{s} {names}: {reason}"));
            }
        }
        if let Some(trials) = trials {
            gathered.add("evidence", true, Ok(audit::figures::evidence(trials)));
            gathered.add("bound", true, Ok(Some(audit::figures::bound_over_trials(trials))));
            gathered.left_out.push(
                "bounds of an audit of fixed size: they would not hold, because trials that may be \
                 stopped by looking have no size fixed before"
                    .into(),
            );
            gathered.left_out.extend(trials.warnings.iter().cloned());
        }
        if let Some(ledger) = ledger {
            if let (Some((resolved, _)), false) = (&run, public) {
                gathered.add("norms", true, Ok(ledger.norms(&resolved.run)));
                gathered.add("loss", true, Ok(ledger.loss()));
            }
            report.training = Some(ledger.training(public));
        }
        if let Some(table) = &results {
            let found = search::search(table, confidence)
                .map_err(|error| Refusal::bad_input(error.to_string()))?;
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
        report.audit = analysis.cloned();
        report.figures = gathered.figures;
        report.left_out = gathered.left_out;
        Ok(report)
    }
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

/// What the scores show.
enum Measured {
    /// Of a size that was fixed before.
    Scores(Box<Audited>),
    /// In their order, stopped at any time.
    Trials(Box<SequentialDocument>),
}

/// Asks about the scores as `audit` does. Where nothing is proven about the run there is no claim.
fn audited(
    measured: Option<(AuditQuestion, SettledTable)>,
    run: Option<&Run>,
    account: Option<&Account>,
) -> Result<Option<Measured>, Refusal> {
    let Some((question, table)) = measured else { return Ok(None) };
    let claim = account
        .and_then(|account| epsilon(account, LensName::SIGNED))
        .filter(|claim| claim.standing == Standing::Proven);
    let proven = |_: &Run, _: f64| Ok(claim.cloned());
    Ok(Some(if question.sequential {
        let trials = crate::sequential::about(&question, table, run.cloned(), proven)?;
        Measured::Trials(Box::new(trials))
    } else {
        let audited = crate::audit::about(&question, table, run.cloned(), proven)?;
        Measured::Scores(Box::new(audited))
    }))
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
