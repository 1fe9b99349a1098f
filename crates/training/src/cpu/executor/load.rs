//! Puts examples into their places. Records of a batch lie anywhere in the data set, mostly outside
//! of the caches; a linear first layer reads them where they are, in place of a copy.

use super::{Example, Executor, MicroBatch};
use crate::cpu::{elementwise, linear, tiles};
use crate::model::Kind;
use std::sync::Arc;

impl Executor {
    /// Puts example number `slot` into its place.
    pub fn load(&mut self, slot: usize, features: &[f32], label: u32) {
        self.place(slot, (features, label, None));
    }

    fn place(&mut self, slot: usize, example: Example<'_>) {
        self.note(slot, example);
        let length = self.network.inputs();
        self.activations[0][slot * length..(slot + 1) * length].copy_from_slice(example.0);
    }

    /// Label and squared norm of an example.
    fn note(&mut self, slot: usize, (features, label, square): Example<'_>) {
        self.example_squares[slot] = match square {
            Some(square) => square,
            None if self.needs_squares => elementwise::squared_norm(features),
            None => 0.0,
        };
        self.labels[slot] = label;
    }

    /// As [`Executor::add_clipped_gradients`] after loading these examples.
    pub(crate) fn add_clipped_gradients_of(
        &mut self,
        parameters: &[f32],
        examples: &[Example<'_>],
        clip_norm: Option<f64>,
        sum: &mut [f32],
    ) -> MicroBatch<'_> {
        let network = Arc::clone(&self.network);
        let mut readers = network.operations.iter().filter(|operation| {
            operation.input == 0 || matches!(operation.kind, Kind::Add { other: 0 })
        });
        let first = match (readers.next(), readers.next()) {
            (Some(only), None) => match &only.kind {
                Kind::Linear(layer) if tiles::suit(layer.outputs) => Some((layer, only.output)),
                _ => None,
            },
            _ => None,
        };
        let Some((layer, output)) = first else {
            for (slot, example) in examples.iter().enumerate() {
                self.place(slot, *example);
            }
            return self.add_clipped_gradients(parameters, examples.len(), clip_norm, sum);
        };
        for (slot, example) in examples.iter().enumerate() {
            self.note(slot, *example);
        }
        let rows: Vec<&[f32]> = examples.iter().map(|(features, ..)| *features).collect();
        let y = &mut self.activations[output][..rows.len() * layer.outputs];
        linear::forward_rows(layer, parameters, &rows, y);
        self.forward_from(1, parameters, rows.len());
        self.clip_and_sum(parameters, rows.len(), clip_norm, Some(&rows), sum)
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::Executor;
    use crate::data::Shape;
    use crate::model::ModelDescription;
    use random::{Purpose, Stream};
    use std::sync::Arc;

    /// Read where they are or copied: the same bits, for a first layer that is cut into tiles and
    /// for one that is not.
    #[test]
    fn examples_need_no_copy() {
        for hidden in [64, 10] {
            let text = format!("kind = \"mlp\"\nhidden = [{hidden}]");
            let model: ModelDescription = toml::from_str(&text).unwrap();
            let network = Arc::new(model.network(Shape::Flat(21), 3).unwrap());
            let parameters = network.initial_parameters(5, 0);
            let mut rows = vec![0.0; 17 * 21];
            Stream::new(1, Purpose::NOISE, 0).fill_gaussians_f32(0, 0, &mut rows);
            let label = |number: usize| (number % 3) as u32;
            let mut executor = Executor::new(Arc::clone(&network), 17);
            let mut copied = vec![0.0; network.parameters];
            for (number, row) in rows.chunks_exact(21).enumerate() {
                executor.load(number, row, label(number));
            }
            executor.add_clipped_gradients(&parameters, 17, Some(0.5), &mut copied);
            let examples = rows.chunks_exact(21).enumerate();
            let examples: Vec<_> =
                examples.map(|(number, row)| (row, label(number), None)).collect();
            let mut found = vec![0.0; network.parameters];
            executor.add_clipped_gradients_of(&parameters, &examples, Some(0.5), &mut found);
            assert_eq!(found, copied);
            assert!(found.iter().any(|x| *x != 0.0));
        }
    }
}
