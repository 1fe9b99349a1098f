//! Per-example gradients and clipping, layer by layer, against a plain f64 implementation, and
//! that one against finite differences.

mod common;

use common::{norm, wide};
use random::{Purpose, Stream};
use std::sync::Arc;
use training::TrainingError;
use training::cpu::Executor;
use training::data::Shape;
use training::model::{ActivationName, Kind, ModelDescription, Network, NetworkBuilder};

const IMAGE: Shape = Shape::Image { height: 7, width: 6, channels: 4 };

type Build = fn(&mut NetworkBuilder) -> Result<(), TrainingError>;

/// One small network for each kind of layer.
fn networks() -> Vec<(&'static str, Arc<Network>)> {
    let cases: [(&str, Build); 9] = [
        ("softmax", |_| Ok(())),
        ("relu", |n| {
            n.linear("a", 9);
            n.relu();
            Ok(())
        }),
        ("tanh", |n| {
            n.linear("a", 9);
            n.tanh();
            n.linear("b", 5);
            n.tanh();
            Ok(())
        }),
        ("convolution", |n| {
            n.convolution("a", 5, 3, 2, 1, false)?;
            n.relu();
            n.convolution("b", 3, 2, 1, 0, false)
        }),
        ("standardised", |n| {
            n.convolution("a", 5, 3, 1, 1, true)?;
            n.tanh();
            n.convolution("b", 4, 3, 2, 1, true)
        }),
        ("group norm", |n| {
            n.convolution("a", 6, 3, 1, 0, false)?;
            n.group_norm("n", 3)?;
            n.relu();
            Ok(())
        }),
        ("group norm first", |n| n.group_norm("n", 2)),
        ("pooling", |n| {
            n.convolution("a", 5, 2, 1, 0, false)?;
            n.max_pool(2, 1)?;
            n.average_pool(2, 2)
        }),
        ("residual", |n| {
            n.convolution("first", 6, 3, 1, 1, true)?;
            n.residual(
                |b| {
                    b.relu();
                    b.group_norm("n", 3)?;
                    b.convolution("c", 6, 3, 1, 1, true)
                },
                |_| Ok(()),
            )?;
            n.residual(
                |b| {
                    b.relu();
                    b.convolution("d", 4, 3, 2, 1, true)
                },
                |s| s.convolution("e", 4, 1, 2, 0, false),
            )
        }),
    ];
    let mut networks: Vec<_> = cases
        .into_iter()
        .map(|(name, build)| {
            let mut builder = NetworkBuilder::new(IMAGE);
            build(&mut builder).unwrap();
            builder.linear("output", 3);
            (name, Arc::new(builder.finish().unwrap()))
        })
        .collect();
    let image = Shape::Image { height: 28, width: 28, channels: 1 };
    let cnn = ModelDescription::Cnn { activation: ActivationName::Relu, groups: 0 };
    networks.push(("cnn", Arc::new(cnn.network(image, 10).unwrap())));
    let small = Shape::Image { height: 8, width: 8, channels: 3 };
    let resnet = ModelDescription::WideResnet { depth: 10, width: 1, groups: 4 };
    networks.push(("wide residual net", Arc::new(resnet.network(small, 3).unwrap())));
    networks
}

struct Case {
    parameters: Vec<f32>,
    examples: Vec<(Vec<f32>, u32)>,
}

fn case(network: &Network, examples: usize, seed: u64) -> Case {
    let mut parameters = network.initial_parameters(seed, 0);
    // Away from the special values at which normalisations and biases start.
    let shake = Stream::new(seed, Purpose::SHUFFLE, 0);
    for (i, value) in (0u64..).zip(&mut parameters) {
        *value += 0.1 * shake.gaussian_f32(0, i);
    }
    let stream = Stream::new(seed, Purpose::SAMPLING, 0);
    let examples = (0..examples as u64)
        .map(|row| {
            let x = (0..network.inputs() as u64).map(|i| stream.gaussian_f32(row, i)).collect();
            (x, (stream.word(row, 1 << 40) % network.classes as u64) as u32)
        })
        .collect();
    Case { parameters, examples }
}

fn clipped_sum(
    network: &Arc<Network>,
    case: &Case,
    capacity: usize,
    clip_norm: Option<f64>,
) -> (Vec<f32>, Vec<f64>) {
    let mut executor = Executor::new(Arc::clone(network), capacity);
    executor.prepare(&case.parameters);
    let mut sum = vec![0.0; network.parameters];
    let mut norms = Vec::new();
    for part in case.examples.chunks(capacity) {
        for (slot, (x, label)) in part.iter().enumerate() {
            executor.load(slot, x, *label);
        }
        let found =
            executor.add_clipped_gradients(&case.parameters, part.len(), clip_norm, &mut sum);
        norms.extend_from_slice(found.norms);
    }
    executor.finish(&mut sum);
    (sum, norms)
}

/// A new kind of layer has to be named here, and one of the networks has to have it.
#[test]
fn every_kind_of_layer_is_in_a_network() {
    let mut seen = [false; 8];
    for (_, network) in networks() {
        for operation in &network.operations {
            let place = match operation.kind {
                Kind::Linear(_) => 0,
                Kind::Relu => 1,
                Kind::Tanh => 2,
                Kind::Convolution(_) => 3,
                Kind::GroupNorm(_) => 4,
                Kind::MaxPool(_) => 5,
                Kind::AveragePool(_) => 6,
                Kind::Add { .. } => 7,
            };
            seen[place] = true;
        }
    }
    assert_eq!(seen, [true; 8]);
}

#[test]
fn the_reference_agrees_with_finite_differences() {
    for (name, network) in networks() {
        let case = case(&network, 1, 3);
        let (x, label) = &case.examples[0];
        let (x, label) = (wide(x), *label as usize);
        let parameters = wide(&case.parameters);
        let gradient = common::gradient(&network, &parameters, &x, label);
        let pick = Stream::new(9, Purpose::SHUFFLE, 0);
        let mut places: Vec<usize> =
            (0..60).map(|i| (pick.word(0, i) % network.parameters as u64) as usize).collect();
        // At least one of every tensor.
        places.extend(network.tensors.iter().map(|tensor| tensor.offset + tensor.len() / 2));
        for place in places {
            let at = |shift: f64| {
                let mut moved = parameters.clone();
                moved[place] += shift;
                common::loss(&network, &moved, &x, label)
            };
            let h = 1e-5;
            let found = (at(h) - at(-h)) / (2.0 * h);
            // Truncation h^2 f'''/6 and rounding 1e-16/h, both far below.
            assert!(
                (found - gradient[place]).abs() < 2e-8 * (1.0 + gradient[place].abs()),
                "{name}: parameter {place}: {found} and {}",
                gradient[place]
            );
        }
    }
}

#[test]
fn norms_and_clipped_sums_agree_with_the_reference() {
    for (name, network) in networks() {
        let case = case(&network, 7, 5);
        let gradients: Vec<Vec<f64>> = case
            .examples
            .iter()
            .map(|(x, label)| {
                common::gradient(&network, &wide(&case.parameters), &wide(x), *label as usize)
            })
            .collect();
        let lengths: Vec<f64> = gradients.iter().map(|g| norm(g)).collect();
        let middle = {
            let mut sorted = lengths.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[3]
        };
        for (clip_norm, capacity) in [(middle, 7), (middle, 2), (1e-3, 3), (1e9, 4)] {
            let (sum, norms) = clipped_sum(&network, &case, capacity, Some(clip_norm));
            for (found, exact) in norms.iter().zip(&lengths) {
                assert!((found - exact).abs() < 2e-5 * exact, "{name}: norm {found}, {exact}");
            }
            let mut expected = vec![0.0; network.parameters];
            let mut scale = 0.0;
            for (gradient, length) in gradients.iter().zip(&lengths) {
                let factor = (clip_norm / length).min(1.0);
                scale += factor * length;
                expected.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += factor * g);
            }
            let error: Vec<f64> =
                sum.iter().zip(&expected).map(|(s, e)| f64::from(*s) - e).collect();
            // f32 through a few layers: 2^-24 times some hundred roundings.
            assert!(norm(&error) < 2e-5 * scale, "{name}: {} of {scale}", norm(&error));
        }
    }
}

/// The sensitivity of a step: whatever the example, its row is at most C (1 + 2^-20).
#[test]
fn no_clipped_row_exceeds_the_clip_norm() {
    for (name, network) in networks() {
        for seed in 0..12 {
            let mut case = case(&network, 1, 100 + seed);
            // From hardly visible to blinding examples and weights.
            let size = 10f32.powi(seed as i32 % 6 - 2);
            case.examples[0].0.iter_mut().for_each(|x| *x *= size);
            for clip_norm in [1e-6, 0.1, 1.0, 37.0] {
                let (sum, norms) = clipped_sum(&network, &case, 1, Some(clip_norm));
                let length = norm(&wide(&sum));
                assert!(length <= clip_norm * (1.0 + 2f64.powi(-20)), "{name}: {length}");
                // And clipping does not take more than it has to. (A saturated softmax has no
                // gradient at all.)
                if norms[0] == 0.0 {
                    continue;
                }
                let kept = length / norms[0].min(clip_norm);
                assert!(kept > 1.0 - 1e-4, "{name}: {kept} of what may remain");
            }
        }
    }
}

/// One product over the patches in place of kept gradients: a wide layer in a large micro-batch.
#[test]
fn rows_stay_below_the_clip_norm_when_gradients_are_not_kept() {
    for standardised in [false, true] {
        let mut builder = NetworkBuilder::new(Shape::Image { height: 16, width: 16, channels: 32 });
        builder.convolution("a", 128, 3, 1, 1, standardised).unwrap();
        builder.relu();
        builder.average_pool(16, 1).unwrap();
        builder.linear("output", 4);
        let network = Arc::new(builder.finish().unwrap());
        let capacity = 40;
        assert!(128 * 288 * capacity > 1 << 20, "gradients would be kept");
        for seed in 0..3 {
            let case = case(&network, 1, seed);
            let clip_norm = 1e-3;
            let (sum, norms) = clipped_sum(&network, &case, capacity, Some(clip_norm));
            let length = norm(&wide(&sum));
            assert!(norms[0] > clip_norm);
            assert!(length <= clip_norm * (1.0 + 2f64.powi(-20)), "{length}");
            assert!(length > clip_norm * 0.995, "{length}");
            let (x, label) = &case.examples[0];
            let exact =
                common::gradient(&network, &wide(&case.parameters), &wide(x), *label as usize);
            assert!(norms[0] >= norm(&exact) * (1.0 - 1e-6));
        }
    }
}

#[test]
fn micro_batches_change_rounding_only() {
    for (name, network) in networks() {
        let case = case(&network, 13, 8);
        let (whole, _) = clipped_sum(&network, &case, 13, Some(0.3));
        for capacity in [1, 4, 64] {
            let (parts, _) = clipped_sum(&network, &case, capacity, Some(0.3));
            let error: Vec<f64> = whole.iter().zip(&parts).map(|(a, b)| f64::from(a - b)).collect();
            assert!(norm(&error) < 2e-6 * 13.0 * 0.3, "{name}: {}", norm(&error));
        }
    }
}

/// WideResNet-16-4 for CIFAR-10: 13 3x3 and 3 1x1 convolutions with biases, 16 group norms, one
/// linear layer, counted by hand.
#[test]
fn the_wide_residual_net_has_its_parameters() {
    let image = Shape::Image { height: 32, width: 32, channels: 3 };
    let resnet = ModelDescription::WideResnet { depth: 16, width: 4, groups: 16 };
    let network = resnet.network(image, 10).unwrap();
    let convolution = |kernel: usize, from: usize, to: usize| kernel * kernel * from * to + to;
    let mut expected = convolution(3, 3, 16);
    for (from, to) in [(16, 64), (64, 128), (128, 256)] {
        expected +=
            convolution(3, from, to) + 3 * convolution(3, to, to) + convolution(1, from, to);
        // Norms before each convolution: of `from` channels twice (branch, shortcut), of `to` thrice.
        expected += 2 * (2 * from + 3 * to);
    }
    expected += 2 * 256 + 256 * 10 + 10;
    assert_eq!(network.parameters, expected);
    assert_eq!(network.parameters, 2_751_562);
}
