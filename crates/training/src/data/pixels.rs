//! From pixel bytes to numbers: x / 255, then minus a mean and over a deviation for each channel.
//! The constants are public: published with the data set, or chosen without looking at it.

use super::{Constants, Dataset, Preprocessing, Provenance, Shape};
use serde::{Deserialize, Serialize};

/// How pixel bytes become numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pixels {
    /// Subtracted from a pixel in [0, 1]: one for all channels or one for each; nothing is 0.
    #[serde(default)]
    pub mean: Vec<f32>,
    /// Then divided by: one for all channels or one for each; nothing is 1.
    #[serde(default)]
    pub deviation: Vec<f32>,
}

impl Pixels {
    /// Pixels in [0, 1].
    pub const UNIT: Self = Self { mean: Vec::new(), deviation: Vec::new() };

    /// The mean and deviation over MNIST's training pixels, as published with countless examples.
    pub fn mnist() -> Self {
        Self { mean: vec![0.1307], deviation: vec![0.3081] }
    }

    /// The same of Fashion-MNIST.
    pub(crate) fn fashion_mnist() -> Self {
        Self { mean: vec![0.2860], deviation: vec![0.3530] }
    }

    /// The same of CIFAR-10, for red, green and blue.
    pub fn cifar10() -> Self {
        Self { mean: vec![0.4914, 0.4822, 0.4465], deviation: vec![0.2470, 0.2435, 0.2616] }
    }

    /// Checks the constants against the number of channels.
    ///
    /// # Errors
    /// A fragment that says what is wrong.
    pub(super) fn for_channels(&self, channels: usize) -> Result<Vec<(f32, f32)>, String> {
        let pick = |values: &[f32], channel: usize, missing: f32| match values {
            [] => missing,
            [one] => *one,
            many => many[channel],
        };
        for (name, values) in [("mean", &self.mean), ("deviation", &self.deviation)] {
            if values.len() > 1 && values.len() != channels {
                return Err(format!("{} values of {name} for {channels} channels", values.len()));
            }
        }
        (0..channels)
            .map(|channel| {
                let mean = pick(&self.mean, channel, 0.0);
                let deviation = pick(&self.deviation, channel, 1.0);
                if !(mean.is_finite() && deviation > 0.0 && deviation.is_finite()) {
                    return Err(format!(
                        "mean {mean} and deviation {deviation} are not a usable \
                                        scale"
                    ));
                }
                Ok((mean, deviation))
            })
            .collect()
    }

    /// Rows of bytes, the channel running fastest, as a data set.
    pub(super) fn dataset(
        &self,
        bytes: &[u8],
        labels: Vec<u32>,
        classes: usize,
        [height, width, channels]: [usize; 3],
        mut provenance: Provenance,
    ) -> Result<Dataset, String> {
        let constants = self.for_channels(channels)?;
        // Every value a byte can take, for each channel: the image is then a table look-up.
        let table: Vec<[f32; 256]> = constants
            .iter()
            .map(|(mean, deviation)| {
                std::array::from_fn(|byte| (byte as f32 / 255.0 - mean) / deviation)
            })
            .collect();
        let features = match table.as_slice() {
            [one] => bytes.iter().map(|&byte| one[usize::from(byte)]).collect(),
            many => bytes
                .chunks_exact(channels)
                .flat_map(|pixel| pixel.iter().zip(many).map(|(&byte, t)| t[usize::from(byte)]))
                .collect(),
        };
        provenance.preprocessing.push(self.described(&constants));
        let shape = Shape::Image { height, width, channels };
        Ok(Dataset { features, labels, classes, shape, columns: Vec::new(), provenance })
    }

    fn described(&self, constants: &[(f32, f32)]) -> Preprocessing {
        let step = if self.mean.is_empty() && self.deviation.is_empty() {
            "pixels divided by 255".to_owned()
        } else {
            let scales: Vec<String> = constants
                .iter()
                .map(|(mean, deviation)| format!("mean {mean}, deviation {deviation}"))
                .collect();
            format!("pixels divided by 255, standardised ({})", scales.join("; "))
        };
        Preprocessing { step, constants: Constants::Public }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_has_its_scale() {
        let pixels = Pixels { mean: vec![0.0, 0.5], deviation: vec![2.0] };
        let provenance = Provenance::default();
        let data = pixels.dataset(&[255, 0, 51, 255], vec![0], 1, [1, 2, 2], provenance).unwrap();
        assert_eq!(data.features, [0.5, -0.25, 0.1, 0.25]);
        assert_eq!(data.provenance.preprocessing[0].constants, Constants::Public);
    }

    #[test]
    fn constants_that_are_no_scale() {
        for (mean, deviation) in
            [(vec![], vec![0.0]), (vec![f32::NAN], vec![]), (vec![0.1; 2], vec![])]
        {
            assert!(Pixels { mean, deviation }.for_channels(3).is_err());
        }
    }
}
