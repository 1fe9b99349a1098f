//! What kind of decoder, and how large.

use crate::LanguageError;

/// How activations are normalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Norm {
    /// (x - mean) / sqrt(variance + epsilon), with weight and bias.
    Layer { epsilon: f32 },
    /// x / sqrt(mean square + epsilon), with weight.
    Rms { epsilon: f32 },
}

/// Which coordinates of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// 2i and 2i + 1: llama2.c and GGUF.
    Neighbours,
    /// i and i + half: Hugging Face.
    Halves,
}

/// How a token knows its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Position {
    /// A learned vector for each place is added to the embedding.
    Learned,
    /// Queries and keys are rotated by place x base^(-2i/width).
    Rotary { base: f64, pairs: Pairs },
}

/// The non-linearity of the feed-forward part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
    GeluTanh,
    /// gate sigmoid(gate) up.
    SwiGlu,
}

/// A decoder's shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Architecture {
    pub vocabulary: usize,
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    /// Heads of keys and values; each serves heads / key_heads queries.
    pub key_heads: usize,
    pub head_width: usize,
    /// Width of the feed-forward part.
    pub hidden: usize,
    /// The longest sequence.
    pub context: usize,
    pub norm: Norm,
    pub position: Position,
    pub activation: Activation,
}

impl Architecture {
    /// Checks the numbers of a file before anything is allocated by them.
    ///
    /// # Errors
    /// Names the number that makes no sense.
    pub fn check(&self, place: &str) -> Result<(), LanguageError> {
        let refuse = |problem: String| Err(LanguageError::file(place, problem));
        for (name, value, most) in [
            ("vocabulary size", self.vocabulary, 1 << 22),
            ("width", self.width, 1 << 16),
            ("number of layers", self.layers, 1 << 10),
            ("number of heads", self.heads, 1 << 12),
            ("number of key heads", self.key_heads, 1 << 12),
            ("head width", self.head_width, 1 << 12),
            ("hidden width", self.hidden, 1 << 20),
            ("context length", self.context, 1 << 24),
        ] {
            if value == 0 || value > most {
                return refuse(format!("{name} {value} is not between 1 and {most}"));
            }
        }
        if !self.heads.is_multiple_of(self.key_heads) {
            return refuse(format!(
                "{} heads cannot share {} heads of keys evenly",
                self.heads, self.key_heads
            ));
        }
        let epsilon = match self.norm {
            Norm::Layer { epsilon } | Norm::Rms { epsilon } => epsilon,
        };
        if !(epsilon > 0.0 && epsilon < 1.0) {
            return refuse(format!("epsilon {epsilon} of the norm is outside (0, 1)"));
        }
        if let Position::Rotary { base, .. } = self.position {
            if !(base > 1.0 && base.is_finite()) {
                return refuse(format!("rotary base {base} is not a finite number above 1"));
            }
            if !self.head_width.is_multiple_of(2) {
                return refuse(format!(
                    "head width {} is odd and cannot be rotated",
                    self.head_width
                ));
            }
        }
        Ok(())
    }

    /// Width of all queries.
    pub(crate) fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    /// Width of all keys.
    pub fn key_width(&self) -> usize {
        self.key_heads * self.head_width
    }
}
