//! The trained numbers as one vector: which pieces of the decoder they are, and where each begins.

use crate::model::{Decoder, Linear, NormPlace, NormWeights, Projection};

/// One trained tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Down(usize, Projection),
    Up(usize, Projection),
    Weight(usize, Projection),
    Bias(usize, Projection),
    NormWeight(NormPlace),
    NormBias(NormPlace),
    /// With a tied head this is the head too.
    Embedding,
    Positions,
    Head,
}

/// Which numbers of a decoder are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The adapters that are there, and perhaps the embedding (and a head of its own).
    Adapters { embedding: bool },
    /// Every weight, adapters left out.
    Full,
}

/// The pieces in order, with the place of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    pub scope: Scope,
    pub pieces: Vec<(Piece, usize)>,
    pub size: usize,
}

impl Layout {
    pub fn new(decoder: &Decoder, scope: Scope) -> Self {
        let mut layout = Self { scope, pieces: Vec::new(), size: 0 };
        let full = scope == Scope::Full;
        if full || scope == (Scope::Adapters { embedding: true }) {
            layout.push(decoder, Piece::Embedding);
            layout.push(decoder, Piece::Head);
        }
        if full {
            layout.push(decoder, Piece::Positions);
        }
        for (index, layer) in decoder.layers.iter().enumerate() {
            for projection in Projection::ALL.into_iter().filter(|p| layer.linear(*p).is_some()) {
                if full {
                    layout.push(decoder, Piece::Weight(index, projection));
                    layout.push(decoder, Piece::Bias(index, projection));
                } else {
                    layout.push(decoder, Piece::Down(index, projection));
                    layout.push(decoder, Piece::Up(index, projection));
                }
            }
            if full {
                for place in [NormPlace::Attention(index), NormPlace::Feed(index)] {
                    layout.push(decoder, Piece::NormWeight(place));
                    layout.push(decoder, Piece::NormBias(place));
                }
            }
        }
        if full {
            layout.push(decoder, Piece::NormWeight(NormPlace::Final));
            layout.push(decoder, Piece::NormBias(NormPlace::Final));
        }
        layout
    }

    /// Appends a piece that the decoder has.
    fn push(&mut self, decoder: &Decoder, piece: Piece) {
        if let Some(numbers) = piece.of(decoder) {
            self.pieces.push((piece, self.size));
            self.size += numbers.len();
        }
    }

    /// Where a piece begins.
    pub fn place(&self, piece: Piece) -> Option<usize> {
        self.pieces.iter().find(|(found, _)| *found == piece).map(|(_, place)| *place)
    }

    /// All trained numbers.
    pub fn parameters(&self, decoder: &Decoder) -> Vec<f32> {
        let mut all = Vec::with_capacity(self.size);
        for (piece, _) in &self.pieces {
            all.extend_from_slice(piece.of(decoder).expect("the layout is this decoder's"));
        }
        all
    }

    /// Puts them back.
    ///
    /// # Panics
    /// If there are not as many as [`Layout::parameters`] gives.
    pub fn set(&self, decoder: &mut Decoder, values: &[f32]) {
        assert_eq!(values.len(), self.size, "numbers for another decoder");
        for (piece, place) in &self.pieces {
            let numbers = piece.of_mut(decoder).expect("the layout is this decoder's");
            let len = numbers.len();
            numbers.copy_from_slice(&values[*place..place + len]);
        }
    }
}

impl Piece {
    /// The numbers of the piece, where the decoder has it.
    pub fn of(self, decoder: &Decoder) -> Option<&Vec<f32>> {
        let linear = |layer: usize, p: Projection| decoder.layers[layer].linear(p);
        match self {
            Self::Down(layer, p) => linear(layer, p)?.adapter.as_ref().map(|a| &a.down),
            Self::Up(layer, p) => linear(layer, p)?.adapter.as_ref().map(|a| &a.up),
            Self::Weight(layer, p) => linear(layer, p).map(|linear| &linear.weight),
            Self::Bias(layer, p) => linear(layer, p)?.bias.as_ref(),
            Self::NormWeight(place) => Some(&norm(decoder, place).weight),
            Self::NormBias(place) => norm(decoder, place).bias.as_ref(),
            Self::Embedding => Some(&decoder.embedding),
            Self::Positions => decoder.positions.as_ref(),
            Self::Head => decoder.head.as_ref(),
        }
    }

    pub(crate) fn of_mut(self, decoder: &mut Decoder) -> Option<&mut Vec<f32>> {
        fn linear(decoder: &mut Decoder, layer: usize, p: Projection) -> Option<&mut Linear> {
            decoder.layers.get_mut(layer)?.linear_mut(p)
        }
        match self {
            Self::Down(layer, p) => {
                linear(decoder, layer, p)?.adapter.as_mut().map(|a| &mut a.down)
            }
            Self::Up(layer, p) => linear(decoder, layer, p)?.adapter.as_mut().map(|a| &mut a.up),
            Self::Weight(layer, p) => linear(decoder, layer, p).map(|linear| &mut linear.weight),
            Self::Bias(layer, p) => linear(decoder, layer, p)?.bias.as_mut(),
            Self::NormWeight(place) => Some(&mut norm_mut(decoder, place)?.weight),
            Self::NormBias(place) => norm_mut(decoder, place)?.bias.as_mut(),
            Self::Embedding => Some(&mut decoder.embedding),
            Self::Positions => decoder.positions.as_mut(),
            Self::Head => decoder.head.as_mut(),
        }
    }

    /// The name in files.
    pub fn name(self) -> String {
        let norm = |place: NormPlace| match place {
            NormPlace::Attention(layer) => format!("layers.{layer}.attention_norm"),
            NormPlace::Feed(layer) => format!("layers.{layer}.feed_norm"),
            NormPlace::Final => "final_norm".into(),
        };
        match self {
            Self::Down(layer, p) => format!("layers.{layer}.{}.lora_down", p.name()),
            Self::Up(layer, p) => format!("layers.{layer}.{}.lora_up", p.name()),
            Self::Weight(layer, p) => format!("layers.{layer}.{}.weight", p.name()),
            Self::Bias(layer, p) => format!("layers.{layer}.{}.bias", p.name()),
            Self::NormWeight(place) => format!("{}.weight", norm(place)),
            Self::NormBias(place) => format!("{}.bias", norm(place)),
            Self::Embedding => "embedding".into(),
            Self::Positions => "positions".into(),
            Self::Head => "head".into(),
        }
    }

    /// Rows and columns; vectors have one row.
    pub fn shape(self, decoder: &Decoder) -> Option<(usize, usize)> {
        let len = self.of(decoder)?.len();
        let rows = match self {
            Self::Down(layer, p) => decoder.layers[layer].linear(p)?.adapter.as_ref()?.rank,
            Self::Up(layer, p) | Self::Weight(layer, p) => decoder.layers[layer].linear(p)?.outputs,
            Self::Bias(..) | Self::NormWeight(_) | Self::NormBias(_) => 1,
            Self::Embedding | Self::Head | Self::Positions => len / decoder.architecture.width,
        };
        Some((rows, len / rows.max(1)))
    }
}

fn norm(decoder: &Decoder, place: NormPlace) -> &NormWeights {
    match place {
        NormPlace::Attention(layer) => &decoder.layers[layer].attention_norm,
        NormPlace::Feed(layer) => &decoder.layers[layer].feed_norm,
        NormPlace::Final => &decoder.final_norm,
    }
}

fn norm_mut(decoder: &mut Decoder, place: NormPlace) -> Option<&mut NormWeights> {
    Some(match place {
        NormPlace::Attention(layer) => &mut decoder.layers.get_mut(layer)?.attention_norm,
        NormPlace::Feed(layer) => &mut decoder.layers.get_mut(layer)?.feed_norm,
        NormPlace::Final => &mut decoder.final_norm,
    })
}
