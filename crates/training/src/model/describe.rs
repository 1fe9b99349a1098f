//! Models by name: `softmax`, `mlp`, `cnn`, `wide-resnet`.

use super::{Network, NetworkBuilder};
use crate::TrainingError;
use crate::data::Shape;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActivationName {
    #[default]
    Relu,
    Tanh,
}

/// The `[model]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ModelDescription {
    /// Multinomial logistic regression.
    Softmax {},
    /// Linear layers of these widths, with an activation between them.
    Mlp {
        #[serde(default = "default_hidden")]
        hidden: Vec<usize>,
        #[serde(default)]
        activation: ActivationName,
    },
    /// The convolutional net of Opacus' MNIST example: 16 kernels 8x8 stride 2 padding 3, pooling,
    /// 32 kernels 4x4 stride 2, pooling, 32 hidden units; optionally group norm after each
    /// convolution.
    Cnn {
        #[serde(default)]
        activation: ActivationName,
        /// Groups of the normalisation; 0 for none.
        #[serde(default)]
        groups: usize,
    },
    /// Wide residual net with group norm and weight standardisation (De et al., "Unlocking
    /// high-accuracy differentially private image classification through scale", 2022).
    WideResnet {
        #[serde(default = "default_depth")]
        depth: usize,
        #[serde(default = "default_width")]
        width: usize,
        #[serde(default = "default_groups")]
        groups: usize,
    },
    /// A decoder of text, fine-tuned; the crate `language` trains it.
    Language(LanguageDescription),
}

/// A decoder from a file, and which of its numbers are trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LanguageDescription {
    /// A folder with config.json and safetensors, a .gguf file, or a llama2.c .bin file; relative
    /// to the file that describes the training.
    pub path: std::path::PathBuf,
    /// Where the tokenizer is not beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokenizer: Option<std::path::PathBuf>,
    /// Adapters of low rank, or every weight.
    #[serde(default)]
    pub train: TrainedWeights,
    /// Of the adapters.
    #[serde(default = "default_rank")]
    pub rank: usize,
    /// The adapters' change is multiplied by alpha / rank.
    #[serde(default = "default_alpha")]
    pub alpha: f64,
    /// Which maps have adapters.
    #[serde(default = "default_projections")]
    pub projections: Vec<String>,
    /// Whether the embedding of tokens is trained beside the adapters.
    #[serde(default)]
    pub embedding: bool,
    /// Tokens of an example at most; what is beyond is cut off.
    #[serde(default = "default_length")]
    pub length: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TrainedWeights {
    #[default]
    Lora,
    Full,
}

fn default_rank() -> usize {
    4
}

fn default_alpha() -> f64 {
    32.0
}

fn default_projections() -> Vec<String> {
    vec!["query".into(), "value".into()]
}

fn default_length() -> usize {
    128
}

/// Of a hidden layer. Products of two widths can be counted.
const WIDEST: usize = 10_000_000;

fn default_hidden() -> Vec<usize> {
    vec![64]
}

fn default_depth() -> usize {
    16
}

fn default_width() -> usize {
    4
}

fn default_groups() -> usize {
    16
}

impl ModelDescription {
    /// The name in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Softmax {} => "softmax",
            Self::Mlp { .. } => "mlp",
            Self::Cnn { .. } => "cnn",
            Self::WideResnet { .. } => "wide-resnet",
            Self::Language(_) => "language",
        }
    }

    /// The network for rows of this shape.
    ///
    /// ```
    /// use training::data::Shape;
    /// use training::model::ModelDescription;
    /// let image = Shape::Image { height: 28, width: 28, channels: 1 };
    /// let cnn = ModelDescription::Cnn { activation: Default::default(), groups: 0 };
    /// assert_eq!(cnn.network(image, 10)?.parameters, 26_010);
    /// # Ok::<(), training::TrainingError>(())
    /// ```
    ///
    /// # Errors
    /// When the model does not fit the shape.
    pub fn network(&self, input: Shape, classes: usize) -> Result<Network, TrainingError> {
        let mut network = NetworkBuilder::new(input);
        match self {
            Self::Softmax {} => {}
            Self::Mlp { hidden, activation } => {
                for (number, &width) in hidden.iter().enumerate() {
                    if !(1..=WIDEST).contains(&width) {
                        return Err(TrainingError::Model(format!(
                            "a hidden layer of {width} numbers is not between 1 and {WIDEST}"
                        )));
                    }
                    network.linear(&format!("hidden.{number}"), width);
                    activate(&mut network, *activation);
                }
            }
            Self::Cnn { activation, groups } => {
                for (number, (channels, kernel, padding)) in
                    [(16, 8, 3), (32, 4, 0)].into_iter().enumerate()
                {
                    let name = format!("convolution.{number}");
                    network.convolution(&name, channels, kernel, 2, padding, false)?;
                    if *groups > 0 {
                        network.group_norm(&format!("norm.{number}"), *groups)?;
                    }
                    activate(&mut network, *activation);
                    network.max_pool(2, 1)?;
                }
                network.linear("hidden", 32);
                activate(&mut network, *activation);
            }
            Self::WideResnet { depth, width, groups } => {
                wide_resnet(&mut network, *depth, *width, *groups)?;
            }
            Self::Language(_) => {
                return Err(TrainingError::Model(
                    "a language model reads text, not rows of numbers".into(),
                ));
            }
        }
        network.linear("output", classes);
        network.finish()
    }
}

fn activate(network: &mut NetworkBuilder, activation: ActivationName) {
    match activation {
        ActivationName::Relu => network.relu(),
        ActivationName::Tanh => network.tanh(),
    }
}

/// First convolution, three stages of (depth - 4) / 6 blocks, each stage halving the image and
/// doubling the channels; activation, normalisation and a standardised convolution in this order
/// within a block; global average.
fn wide_resnet(
    network: &mut NetworkBuilder,
    depth: usize,
    width: usize,
    groups: usize,
) -> Result<(), TrainingError> {
    if depth < 10 || !(depth - 4).is_multiple_of(6) || width == 0 {
        return Err(TrainingError::Model(format!(
            "a wide residual net has depth 6 n + 4 with n >= 1 and width >= 1, not depth {depth} \
             and width {width}"
        )));
    }
    network.convolution("first", 16, 3, 1, 1, true)?;
    for (stage, channels) in [16 * width, 32 * width, 64 * width].into_iter().enumerate() {
        for block in 0..(depth - 4) / 6 {
            let name = format!("stage.{stage}.block.{block}");
            let stride = if block == 0 && stage > 0 { 2 } else { 1 };
            network.residual(
                |branch| {
                    for (number, stride) in [stride, 1].into_iter().enumerate() {
                        branch.relu();
                        branch.group_norm(&format!("{name}.norm.{number}"), groups)?;
                        let name = format!("{name}.convolution.{number}");
                        branch.convolution(&name, channels, 3, stride, 1, true)?;
                    }
                    Ok(())
                },
                |shortcut| {
                    if block == 0 {
                        shortcut.relu();
                        shortcut.group_norm(&format!("{name}.shortcut.norm"), groups)?;
                        let name = format!("{name}.shortcut.convolution");
                        shortcut.convolution(&name, channels, 1, stride, 0, true)?;
                    }
                    Ok(())
                },
            )?;
        }
    }
    network.relu();
    network.group_norm("final.norm", groups)?;
    if let Shape::Image { height, width, .. } = network.shape() {
        if height != width {
            return Err(TrainingError::Model("a wide residual net needs square images".into()));
        }
        network.average_pool(height, 1)?;
    }
    Ok(())
}
