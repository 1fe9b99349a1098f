//! Gradient canaries: records whose clipped gradient is one coordinate of the trained vector each.
//!
//! Canary j has a coordinate of its own, drawn at random, so that the canaries are orthogonal and the
//! noise along them is independent. It is a record like the others: where it is a member (with
//! probability 1/2), the sampler draws it into batches as it draws them, and its gradient there is
//! the whole clip norm along the coordinate. This is the white-box audit in one training of Steinke,
//! Nasr and Jagielski (2023).
//!
//! Scores, larger for members:
//! - **last iterate**: how far the coordinate moved down, in units of one insertion of plain SGD.
//! - **all iterates**: with s_t the noisy sum along the coordinate at step t in clip norms, the sum of
//!   ln(1 - q + q exp((2 s_t - 1) / (2 sigma^2))), the log-likelihood ratio of the subsampled Gaussian.
//!   Who sees every iterate of SGD knows s_t; for Adam it is the attacker who is given the noisy sums,
//!   whom the analysis of all iterates covers too.

use super::layout::Layout;
use crate::LanguageError;
use crate::model::Decoder;
use random::{Purpose, Stream};
use std::collections::BTreeSet;
use training::log_mixture;
use vocabulary::{Observe, Phase};

/// The purpose of the stream that draws coordinates; coins are membership's.
const COORDINATE: Purpose = Purpose(0x4C47);

/// Canaries of one training.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientCanaries {
    /// The coordinate of each.
    pub places: Vec<u32>,
    pub members: Vec<bool>,
    pub observe: Observe,
    /// Where the members' coordinates are, in the order in which they follow the records.
    planted: Vec<u32>,
    /// The coordinates before the training.
    start: Vec<f32>,
}

impl GradientCanaries {
    /// Draws a coordinate and a coin for each.
    ///
    /// # Errors
    /// `InvalidInput` for more canaries than trained numbers.
    pub fn plant(
        decoder: &Decoder,
        layout: &Layout,
        count: usize,
        observe: Observe,
        seed: u64,
    ) -> Result<Self, LanguageError> {
        let invalid = |message: String| Err(LanguageError::InvalidInput(message));
        let size = layout.size;
        if count == 0 || count > 1 << 20 {
            return invalid(format!("[canaries]: count {count} is outside 1 to 2^20"));
        }
        // Half of the numbers at most: the rest shows what the training does.
        if 2 * count > size || u32::try_from(size).is_err() {
            return invalid(format!(
                "[canaries]: {count} gradient canaries need at least {} trained numbers and fewer \
                 than 2^32, and here there are {size}",
                2 * count
            ));
        }
        let draw = Stream::new(seed, COORDINATE, 0);
        let mut seen = BTreeSet::new();
        let places: Vec<u32> = (0_u64..)
            .map(|number| ((u128::from(draw.word(0, number)) * size as u128) >> 64) as u32)
            .filter(|place| seen.insert(*place))
            .take(count)
            .collect();
        let coins = Stream::new(seed, Purpose::MEMBERSHIP, 0);
        let members: Vec<bool> =
            (0..count as u64).map(|number| coins.word(0, number) >> 63 == 1).collect();
        let inside = places.iter().zip(&members).filter(|(_, member)| **member);
        let planted = inside.map(|(place, _)| *place).collect();
        let start = Self::at(&places, &layout.parameters(decoder));
        Ok(Self { places, members, observe, planted, start })
    }

    fn at(places: &[u32], parameters: &[f32]) -> Vec<f32> {
        places.iter().map(|place| parameters[*place as usize]).collect()
    }

    /// How many are in: this many records follow those of the data.
    pub(crate) fn planted(&self) -> usize {
        self.planted.len()
    }

    /// Adds the gradients of those in the batch: `drawn` are numbers of planted canaries.
    pub(crate) fn insert(&self, drawn: impl Iterator<Item = usize>, clip: f64, sum: &mut [f32]) {
        for number in drawn {
            sum[self.planted[number] as usize] += clip as f32;
        }
    }

    /// Where all iterates are observed, adds the evidence of a step to `evidence`; `sum` is without
    /// the noise, which is the stream's.
    pub(crate) fn watch(
        &self,
        sum: &[f32],
        (stream, step): (&Stream, u64),
        phase: &Phase,
        clip: f64,
        evidence: &mut Vec<f64>,
    ) {
        if self.observe == Observe::Last {
            return;
        }
        evidence.resize(self.places.len(), 0.0);
        let sigma = phase.noise_multiplier;
        for (place, evidence) in self.places.iter().zip(evidence) {
            let noise = f64::from(stream.gaussian_f32(step, u64::from(*place)));
            let along = f64::from(sum[*place as usize]) / clip + sigma * noise;
            let ratio = (2.0 * along - 1.0) / (2.0 * sigma * sigma);
            *evidence += log_mixture(phase.sample_rate, ratio);
        }
    }

    /// The score of every canary. `unit` is what one insertion of plain SGD moves a coordinate by.
    pub(crate) fn scores(
        &self,
        decoder: &Decoder,
        layout: &Layout,
        unit: f64,
        evidence: &[f64],
    ) -> Vec<f64> {
        if self.observe == Observe::All {
            return evidence.to_vec();
        }
        let last = Self::at(&self.places, &layout.parameters(decoder));
        let moved = self.start.iter().zip(last).map(|(a, b)| f64::from(*a) - f64::from(b));
        moved.map(|moved| moved / unit).collect()
    }
}
