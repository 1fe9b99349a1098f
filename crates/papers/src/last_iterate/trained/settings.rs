//! The trainings that are attacked.

use super::data::Images;
use crate::PaperError;
use crate::tools::noise_for;
use attacks::{CanaryKind, Conditions, Coordinate, InputCanary, Others, Target};
use training::OptimizerDescription;
use training::data::Shape;
use training::model::ModelDescription;
use vocabulary::Run;

pub(super) const DELTA: f64 = 1e-5;
/// The standard epsilon that the noise is chosen for, as in the paper.
pub(super) const STANDARD: f64 = 8.0;
pub(super) const SAMPLE_RATE: f64 = 0.1;
pub(super) const RECORDS: u64 = 2560;
/// Trainings per side, as in the paper's section 3.1.
pub(super) const TRIALS: u64 = 512;
pub(super) const LEARNING_RATE: f64 = 0.5;

/// A model with the numbers of steps it is attacked at.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) description: ModelDescription,
    pub(super) steps: &'static [u64],
    /// Those that are played among natural records only.
    pub(super) natural: &'static [u64],
}

impl Model {
    pub(super) fn steps(&self, attack: Attack) -> impl Iterator<Item = u64> {
        let natural = matches!(attack, Attack::GradientNatural | Attack::InputNatural);
        let more: &[u64] = if natural { self.natural } else { &[] };
        self.steps.iter().chain(more).copied()
    }
}

/// Small enough for a thousand trainings in minutes, and the paper's wide residual net 16-4, which
/// costs about as much per training as a hundred of 10-1.
pub(super) fn models(shape: Shape) -> Vec<Model> {
    let mlp = ModelDescription::Mlp { hidden: vec![64], activation: Default::default() };
    let cnn = ModelDescription::Cnn { activation: Default::default(), groups: 0 };
    let resnet = ModelDescription::WideResnet { depth: 10, width: 1, groups: 8 };
    let paper = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
    let mut all = vec![
        Model { name: "mlp", description: mlp, steps: &[16, 64, 256], natural: &[] },
        Model { name: "cnn", description: cnn, steps: &[16, 64, 256], natural: &[] },
    ];
    if matches!(shape, Shape::Image { channels: 3, .. }) {
        let (small, large) = ("wrn-10-1", "wrn-16-4");
        all.push(Model { name: small, description: resnet, steps: &[16, 64], natural: &[] });
        all.push(Model { name: large, description: paper, steps: &[16], natural: &[64] });
    }
    all
}

/// An attack of the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    GradientNatural,
    GradientZero,
    InputNatural,
    InputBlank,
}

impl Attack {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::GradientNatural => "gradient-natural",
            Self::GradientZero => "gradient-zero",
            Self::InputNatural => "input-natural",
            Self::InputBlank => "input-blank",
        }
    }

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::GradientNatural => "gradient canary, natural data",
            Self::GradientZero => "gradient canary, others zero",
            Self::InputNatural => "mislabelled canary, natural data",
            Self::InputBlank => "mislabelled canary, others blank",
        }
    }

    pub(super) fn conditions(self) -> Conditions {
        let gradient = CanaryKind::Gradient { coordinate: Coordinate::Random, every: 1 };
        let input = CanaryKind::Input(InputCanary::Mislabelled);
        let (canary, others) = match self {
            Self::GradientNatural => (gradient, Others::Natural),
            Self::GradientZero => (gradient, Others::Zero),
            Self::InputNatural => (input, Others::Natural),
            Self::InputBlank => (input, Others::Blank),
        };
        Conditions { others, ..Conditions::new(canary) }
    }
}

/// The noise at which the standard epsilon is met.
pub(super) fn noise(steps: u64) -> Result<f64, PaperError> {
    noise_for(STANDARD, DELTA, SAMPLE_RATE, steps)
}

/// The training of a model for this many steps.
pub(super) fn target(
    images: &Images,
    model: &ModelDescription,
    steps: u64,
    seed: u64,
) -> Result<Target, PaperError> {
    let run = Run::builder().phase(noise(steps)?, SAMPLE_RATE, steps).build()?;
    let optimizer = OptimizerDescription::sgd(LEARNING_RATE);
    let split = images.split.clone();
    Ok(Target::new(model.clone(), optimizer, run, split, None, seed)?)
}
