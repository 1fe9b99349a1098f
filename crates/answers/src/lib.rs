//! One typed question and one typed answer for each thing that can be asked.
//!
//! A front end (the command line, the page, Python) turns its input into a [`Question`], asks,
//! and shows the answer; it decides nothing. A question is read by serde from the body of a
//! request or from a Python call, and made from flags by the command line; unknown keys are
//! refused. An answer is a [`Document`] (`dosimeter.account/1` and so on); its text is the same
//! at every door, to the byte. A [`Refusal`] is a document as well.
//!
//! Some questions come with more than a document: an audit with a table of scores
//! ([`audit`](fn@audit)), which must have a settled design, a table of trainings
//! ([`tune`](fn@tune)), and the status of a folder ([`status`](fn@status)). A report
//! ([`report`](fn@report)), `memorize`, [`membership`](fn@membership), `grid`, `reproduce` and
//! [`data`](fn@data) name their files. What takes long tells [`Work`] how far it is.
//!
//! ```
//! use answers::{AccountQuestion, Ask};
//!
//! let question: AccountQuestion = answers::parse(
//!     r#"{"run": {"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000}, "delta": 1e-5,
//!         "lens": "composition", "quantity": "epsilon"}"#,
//! )?;
//! assert_eq!(question.ask()?.claims[0].shown(), "<= 1.829");
//! # Ok::<(), answers::Refusal>(())
//! ```

mod account;
mod attack;
mod audit;
mod calibrate;
mod calibration_map;
mod certified;
mod check;
mod claimed;
mod compare;
mod curve;
mod data;
mod documents;
mod every_way;
pub mod flags;
#[cfg(feature = "language")]
mod grid;
pub mod legends;
mod limit;
mod membership;
#[cfg(feature = "language")]
mod memorize;
mod origin;
mod panel;
mod plan;
mod play;
mod refusal;
mod report;
#[cfg(feature = "papers")]
mod reproduce;
mod run;
mod sequential;
mod several;
mod status;
mod train;
mod translate;
mod tune;
mod work;

pub use account::AccountQuestion;
pub use attack::{
    ATTACK_SCHEMA, AttackAnswer, AttackQuestion, Attacked, AttributeAnswer, AttributeGuessed,
    AttributeMeasured, AttributeQuestion, GradientCanary, LinearGame, ManyCanariesQuestion,
    OneCanaryQuestion, OurLossGame, Played, ProgramQuestion, QuadraticGame, RecordCanary,
    RepeatersGame, ShiftRegisterGame, SimulatedQuestion, ZeroingGame, attack, attack_schema,
};
#[cfg(feature = "language")]
pub use attack::{CanariesPlayed, CanariesQuestion};
pub use audit::{
    AuditQuestion, Audited, Commitment, PageAudit, Picture, audit, commit, read_scores,
};
pub use calibrate::{AdviceQuestion, CalibrateQuestion, Solve};
pub use calibration_map::{CalibrationMap, CalibrationMapQuestion};
pub use certified::{Certified, certified, prove};
pub use check::{Check, CheckQuestion, LimitVerdict};
pub use claimed::epsilon as claimed_epsilon;
pub use compare::{
    BatchSizesQuestion, CompareQuestion, Comparison, LeftOut, MapQuestion, NamedAccount, NamedRun,
};
pub use curve::{CurveQuestion, POINTS};
pub use data::{
    Content, DataAnswer, DataDescription, DataDocument, DataQuestion, DatasetEntry,
    DescribedColumn, FileEntry, FileStatus, data,
};
pub use every_way::noise_figure;
#[cfg(feature = "language")]
pub use grid::{GridQuestion, Gridded, grid};
pub use membership::{
    LiraTerms, MatrixQuestion, MembershipDocument, MembershipQuestion, PowerOfAttack, RecordAtRisk,
    RmiaTerms, membership,
};
#[cfg(feature = "language")]
pub use memorize::{CompressionQuestion, MemorizeQuestion, Memorized, RatioQuestion, memorize};
pub use origin::{RUN_ENDING, runs_beside};
pub use panel::{Panel, PanelLine, PanelQuestion};
pub use plan::{NeededRows, PlanQuestion, Planned, PlannedAttack, PlannedRule, PlannedTarget};
pub use play::{Play, RunDocument, beside, exit_of};
pub use refusal::{Kind, Refusal, RefusalDocument, exit, plainly};
pub use report::{ReportFormat, ReportQuestion, Reported, report};
#[cfg(feature = "papers")]
pub use reproduce::{
    DoneEntry, ListedEntry, ReproduceQuestion, Reproduced, ReproducedWhat, reproduce,
};
pub use run::{Described, Loaded, TextFile, load};
pub use sequential::{over_time, sequential};
pub use status::{Chunks, ExperimentStatus, status};
#[cfg(feature = "language")]
pub(crate) use train::bad_language;
pub use train::{PRECISIONS, TrainQuestion, Trained, checkpoints, explain_training, train};
pub use translate::{Assumed, TranslateQuestion, TranslatedNumber, TranslatedReading, Translation};
pub use tune::{
    ProfilesQuestion, RankQuestion, RegressQuestion, SearchQuestion, SelectQuestion, TuneQuestion,
    Tuned, read_trainings, tune,
};
pub use work::{Ended, Work};

use accounting::compare::{BatchSizes, Map};
use accounting::curve::Curve;
use accounting::{Advice, Calibration};
use serde::Serialize;
use vocabulary::{Account, Problem};

/// A question that has one kind of answer.
pub trait Ask {
    type Answer: Document;

    /// Answers it.
    ///
    /// # Errors
    /// Why there is no answer.
    fn ask(&self) -> Result<Self::Answer, Refusal>;
}

/// What is answered: a document, with what a front end shows beside it.
pub trait Document: Serialize {
    /// What to know before quoting anything.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the command line exits with.
    fn exit_code(&self) -> u8 {
        exit::ANSWERED
    }

    /// The document's text: the same at every door.
    fn text(&self) -> String {
        text(self)
    }
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:literal $variant:ident($question:ty) => $answer:ty, $ask:path;)*) => {
        /// Everything that can be asked with a document alone.
        #[derive(Clone, Debug)]
        pub enum Question {
            $($(#[$doc])* $variant($question),)*
        }

        $(impl Ask for $question {
            type Answer = $answer;

            fn ask(&self) -> Result<$answer, Refusal> {
                limit::asked(self.time_limit, || $ask(self))
            }
        })*

        impl Question {
            /// The kinds of questions, by the names in addresses and calls.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// Reads a question from JSON text.
            ///
            /// # Errors
            /// An unknown kind, and what is wrong with the text.
            pub fn read(kind: &str, text: &str) -> Result<Self, Refusal> {
                match kind {
                    $($name => parse(text).map(Self::$variant),)*
                    _ => Err(Refusal::bad_input(format!(
                        "there is no question `{kind}`; the questions are {}",
                        Self::KINDS.join(", ")
                    ))),
                }
            }

            /// Answers it, as text.
            ///
            /// # Errors
            /// Why there is no answer.
            pub fn answer(&self) -> Result<Answer, Refusal> {
                match self {
                    $(Self::$variant(question) => question.ask().map(|found| Answer::of(&found)),)*
                }
            }
        }
    };
}

questions! {
    /// What a run leaks, under every lens.
    "account" Account(AccountQuestion) => Account, account::ask;
    /// Which noise, steps or rate meets a target.
    "calibrate" Calibrate(CalibrateQuestion) => Calibration, calibrate::ask;
    /// The noise for several batch sizes, and the size to begin with.
    "advice" Advice(AdviceQuestion) => Advice, calibrate::advise;
    /// The curves behind the numbers.
    "curve" Curve(CurveQuestion) => Curve, curve::ask;
    /// Several runs side by side.
    "compare" Compare(CompareQuestion) => Comparison, compare::ask;
    /// The heuristic against the proven number over sample rates and steps.
    "compare-map" Map(MapQuestion) => Map, compare::map;
    /// One heuristic epsilon for several batch sizes.
    "batch-sizes" BatchSizes(BatchSizesQuestion) => BatchSizes, compare::batch_sizes;
    /// One number in other terms.
    "translate" Translate(TranslateQuestion) => Translation, translate::ask;
    /// Does the run keep its policy?
    "check" Check(CheckQuestion) => Check, check::ask;
    /// How many rows an audit needs.
    "plan" Plan(PlanQuestion) => Planned, plan::ask;
    /// The profile and the trade-off curve, fast enough to follow a slider.
    "panel" Panel(PanelQuestion) => Panel, panel::ask;
    /// Epsilon over noise and steps around a run.
    "map" CalibrationMap(CalibrationMapQuestion) => CalibrationMap, calibration_map::ask;
}

/// An answer for a front end without types.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub text: String,
    pub warnings: Vec<String>,
    pub exit_code: u8,
}

impl Answer {
    /// What a document says.
    pub fn of(document: &impl Document) -> Self {
        Self {
            text: document.text(),
            warnings: document.warnings(),
            exit_code: document.exit_code(),
        }
    }
}

/// Reads one document of any type that can be asked.
///
/// # Errors
/// What is wrong with the text.
pub fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Refusal> {
    let mut read = serde_json::Deserializer::from_str(text);
    let found = serde_path_to_error::deserialize(&mut read).map_err(|error| {
        let (path, error) = (error.path().to_string(), error.into_inner());
        let problem = Problem::from(format!("the question cannot be read: {error}"));
        match path.as_str() {
            "." => problem,
            path => Problem::missing(problem.to_string(), path),
        }
    })?;
    let unread = |error| Refusal::bad_input(format!("the question cannot be read: {error}"));
    read.end().map_err(unread)?;
    Ok(found)
}

/// The text of a document.
pub fn text<T: Serialize + ?Sized>(document: &T) -> String {
    // Documents are numbers, texts and lists of them: there is nothing that can fail.
    let mut text = serde_json::to_string_pretty(document).unwrap_or_default();
    text.push('\n');
    text
}
