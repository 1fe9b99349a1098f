//! `attack`: a game is played many times, or once with many canaries, and its scores are written.

mod attribute;
#[cfg(feature = "language")]
mod canaries;
mod decided;
mod played;
mod program;
mod simulated;
mod trained;

pub use attribute::{AttributeAnswer, AttributeGuessed, AttributeMeasured, AttributeQuestion};
#[cfg(feature = "language")]
pub use canaries::{CanariesPlayed, CanariesQuestion};
use decided::UntilDecided;
pub use played::{ATTACK_SCHEMA, Played, attack_schema};
pub use program::ProgramQuestion;
pub use simulated::{
    LinearGame, OurLossGame, QuadraticGame, RepeatersGame, ShiftRegisterGame, SimulatedQuestion,
    ZeroingGame,
};
pub use trained::{GradientCanary, ManyCanariesQuestion, OneCanaryQuestion, RecordCanary};

use crate::{Described, Document, Ended, Refusal, Work};
use experiments::{Experiment, Outcome};
use games::exact::KnownEpsilon;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;

/// The question of `attack`: which game, and its terms.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "game", rename_all = "kebab-case")]
pub enum AttackQuestion {
    Linear(SimulatedQuestion<LinearGame>),
    Zeroing(SimulatedQuestion<ZeroingGame>),
    Quadratic(SimulatedQuestion<QuadraticGame>),
    ShiftRegister(SimulatedQuestion<ShiftRegisterGame>),
    Repeaters(SimulatedQuestion<RepeatersGame>),
    OurLoss(SimulatedQuestion<OurLossGame>),
    Gradient(Box<OneCanaryQuestion<GradientCanary>>),
    Input(Box<OneCanaryQuestion<RecordCanary>>),
    Canaries(Box<ManyCanariesQuestion>),
    Attribute(Box<AttributeQuestion>),
    /// Canaries of tokens.
    #[cfg(feature = "language")]
    Token(Box<CanariesQuestion>),
    /// Any program that trains once and prints a score.
    Command(ProgramQuestion),
}

impl AttackQuestion {
    /// The keys of the run that the question has, beside those of its file.
    pub fn run(&mut self) -> &mut Described {
        match self {
            Self::Linear(question) => &mut question.terms.run,
            Self::Zeroing(question) => &mut question.terms.run,
            Self::Quadratic(question) => &mut question.terms.run,
            Self::ShiftRegister(question) => &mut question.terms.run,
            Self::Repeaters(question) => &mut question.terms.run,
            Self::OurLoss(question) => &mut question.terms.run,
            Self::Gradient(question) => &mut question.training.run,
            Self::Input(question) => &mut question.training.run,
            Self::Canaries(question) => &mut question.training.run,
            Self::Attribute(question) => &mut question.run,
            #[cfg(feature = "language")]
            Self::Token(question) => &mut question.run,
            Self::Command(question) => &mut question.run,
        }
    }
}

/// What is answered. The document is `dosimeter.attack/1`.
#[derive(Clone, Debug)]
pub enum AttackAnswer {
    Game(Box<Attacked>),
    Attribute(AttributeAnswer),
    #[cfg(feature = "language")]
    Canaries(Box<CanariesPlayed>),
}

/// A game that was played, with what a person is told.
#[derive(Clone, Debug)]
pub struct Attacked {
    pub played: Played,
    /// What was done, once it is complete.
    pub sentence: String,
    /// Where the scores go; nothing where the game was only described.
    pub out: Option<PathBuf>,
    /// Epsilons at this delta that are known exactly.
    pub known: Option<(f64, Vec<KnownEpsilon>)>,
    /// Whether the run that the scores are about lies beside them, for an audit to claim.
    pub states_run: bool,
}

impl Serialize for AttackAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Game(found) => found.played.serialize(serializer),
            Self::Attribute(found) => found.serialize(serializer),
            #[cfg(feature = "language")]
            Self::Canaries(found) => found.serialize(serializer),
        }
    }
}

impl Document for AttackAnswer {
    fn warnings(&self) -> Vec<String> {
        match self {
            Self::Game(found) => found.played.warnings(),
            Self::Attribute(found) => found.warnings(),
            #[cfg(feature = "language")]
            Self::Canaries(found) => found.warnings(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Game(found) => found.played.exit_code(),
            Self::Attribute(found) => found.exit_code(),
            #[cfg(feature = "language")]
            Self::Canaries(found) => found.exit_code(),
        }
    }
}

/// Plays the game, or goes on where an earlier call was stopped.
///
/// # Errors
/// What is wrong with the question, a file or the data, and those of the experiment.
pub fn attack(question: &AttackQuestion, work: &dyn Work) -> Result<Ended<AttackAnswer>, Refusal> {
    use AttackQuestion as Q;

    let game = match question {
        Q::Linear(question) => simulated::play(question, work)?,
        Q::Zeroing(question) => simulated::play(question, work)?,
        Q::Quadratic(question) => simulated::play(question, work)?,
        Q::ShiftRegister(question) => simulated::play(question, work)?,
        Q::Repeaters(question) => simulated::play(question, work)?,
        Q::OurLoss(question) => simulated::play(question, work)?,
        Q::Gradient(question) => trained::one(question, work)?,
        Q::Input(question) => trained::one(question, work)?,
        Q::Canaries(question) => {
            #[cfg(feature = "language")]
            if let Some(question) = question.on_a_language_model()? {
                return on_a_language_model(&question, work);
            }
            trained::many(question, work)?
        }
        Q::Attribute(question) => {
            return Ok(match attribute::attribute(question, work)? {
                Ended::Answered(found) => Ended::Answered(AttackAnswer::Attribute(found)),
                Ended::Stopped(code) => Ended::Stopped(code),
            });
        }
        #[cfg(feature = "language")]
        Q::Token(question) => return on_a_language_model(question, work),
        Q::Command(question) => program::play(question, work)?,
    };
    Ok(Ended::Answered(AttackAnswer::Game(Box::new(game))))
}

#[cfg(feature = "language")]
fn on_a_language_model(
    question: &CanariesQuestion,
    work: &dyn Work,
) -> Result<Ended<AttackAnswer>, Refusal> {
    let found = canaries::canaries(question, work)?;
    Ok(Ended::Answered(AttackAnswer::Canaries(Box::new(found))))
}

impl Attacked {
    fn new(game: &dyn Experiment, out: Option<PathBuf>, outcome: Option<Outcome>) -> Self {
        let played = Played::new(game, out.as_deref(), outcome);
        Self { played, sentence: String::new(), out, known: None, states_run: true }
    }
}

/// What is left of a question once all of its parts have taken their keys: nothing. A key that no part knows is an
/// error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NothingElse;

impl<'de> Deserialize<'de> for NothingElse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Rest;

        impl<'de> Visitor<'de> for Rest {
            type Value = NothingElse;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("no further key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NothingElse, A::Error> {
                match map.next_key::<String>()? {
                    None => Ok(NothingElse),
                    Some(key) => Err(serde::de::Error::custom(format!("unknown field `{key}`"))),
                }
            }
        }

        deserializer.deserialize_map(Rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_read_whole_and_nothing_else() {
        let text = r#"{"game": "quadratic", "alpha": 0.5, "trials": 100, "claim_epsilon": 2.0,
            "until_decided": true, "out": "s.csv", "shard": "1/2", "run": {"steps": 3}}"#;
        let AttackQuestion::Quadratic(found) = crate::parse(text).unwrap() else { panic!() };
        assert_eq!((found.game.alpha, found.terms.trials, found.terms.seed), (0.5, 100, 0));
        assert_eq!((found.decided.claim_epsilon, found.decided.confidence), (Some(2.0), 0.95));
        assert_eq!(found.play.shard.as_deref(), Some("1/2"));
        let refused = |text: &str| crate::parse::<AttackQuestion>(text).unwrap_err().to_string();
        let unknown = refused(r#"{"game": "linear", "alpha": 0.5}"#);
        assert!(unknown.contains("unknown field `alpha`"), "{unknown}");
        assert!(refused(r#"{"game": "quadratic"}"#).contains("missing field `alpha`"));
        assert!(refused(r#"{"game": "chess"}"#).contains("unknown variant `chess`"));
    }
}
