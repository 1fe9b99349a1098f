//! A second, plain implementation in f64: one example at a time, loops instead of products, every
//! per-example gradient formed. Written from the formulas, sharing nothing with the library but
//! the description of the network.
#![allow(dead_code)]

use training::model::{Convolution, GroupNorm, Kind, Network, Pool};

/// All buffers of one example.
pub(crate) fn forward(network: &Network, parameters: &[f64], example: &[f64]) -> Vec<Vec<f64>> {
    let mut buffers = vec![Vec::new(); network.buffers.len()];
    buffers[0] = example.to_vec();
    for operation in &network.operations {
        let x = buffers[operation.input].clone();
        buffers[operation.output] = match operation.kind {
            Kind::Linear(layer) => (0..layer.outputs)
                .map(|o| {
                    let weighted = x
                        .iter()
                        .enumerate()
                        .map(|(i, x)| x * parameters[layer.weight + i * layer.outputs + o]);
                    parameters[layer.bias + o] + weighted.sum::<f64>()
                })
                .collect(),
            Kind::Relu => x.iter().map(|x| x.max(0.0)).collect(),
            Kind::Tanh => x.iter().map(|x| x.tanh()).collect(),
            Kind::Convolution(layer) => {
                convolve(&layer, &weights(&layer, parameters).0, parameters, &x)
            }
            Kind::GroupNorm(layer) => {
                let (z, _) = normalise(&layer, &x);
                z.iter()
                    .enumerate()
                    .map(|(i, z)| {
                        let c = i % layer.image.channels;
                        z * parameters[layer.scale + c] + parameters[layer.shift + c]
                    })
                    .collect()
            }
            Kind::MaxPool(layer) => pool(&layer, |places| {
                places.iter().map(|p| x[*p]).fold(f64::NEG_INFINITY, f64::max)
            }),
            Kind::AveragePool(layer) => pool(&layer, |places| {
                places.iter().map(|p| x[*p]).sum::<f64>() / places.len() as f64
            }),
            Kind::Add { other } => x.iter().zip(&buffers[other]).map(|(a, b)| a + b).collect(),
        };
    }
    buffers
}

/// Cross-entropy of one example.
pub(crate) fn loss(network: &Network, parameters: &[f64], example: &[f64], label: usize) -> f64 {
    let buffers = forward(network, parameters, example);
    let logits = &buffers[network.logits()];
    logits.iter().map(|x| x.exp()).sum::<f64>().ln() - logits[label]
}

/// Gradient of the loss of one example, every parameter.
pub(crate) fn gradient(
    network: &Network,
    parameters: &[f64],
    example: &[f64],
    label: usize,
) -> Vec<f64> {
    let buffers = forward(network, parameters, example);
    let mut deltas: Vec<Vec<f64>> = buffers.iter().map(|b| vec![0.0; b.len()]).collect();
    let logits = &buffers[network.logits()];
    let total: f64 = logits.iter().map(|x| x.exp()).sum();
    for (class, logit) in logits.iter().enumerate() {
        deltas[network.logits()][class] = logit.exp() / total - f64::from(u8::from(class == label));
    }
    let mut gradient = vec![0.0; network.parameters];
    for operation in network.operations.iter().rev() {
        let dy = deltas[operation.output].clone();
        let x = &buffers[operation.input];
        let y = &buffers[operation.output];
        let mut dx = vec![0.0; x.len()];
        match operation.kind {
            Kind::Linear(layer) => {
                for o in 0..layer.outputs {
                    gradient[layer.bias + o] += dy[o];
                    for i in 0..layer.inputs {
                        let place = layer.weight + i * layer.outputs + o;
                        gradient[place] += x[i] * dy[o];
                        dx[i] += parameters[place] * dy[o];
                    }
                }
            }
            Kind::Relu => dx.iter_mut().zip(y).zip(&dy).for_each(|((dx, y), dy)| {
                *dx = if *y > 0.0 { *dy } else { 0.0 };
            }),
            Kind::Tanh => dx.iter_mut().zip(y).zip(&dy).for_each(|((dx, y), dy)| {
                *dx = dy * (1.0 - y * y);
            }),
            Kind::Convolution(layer) => {
                let (used, scales) = weights(&layer, parameters);
                let channels = layer.output.channels;
                let mut own = vec![0.0; layer.weights()];
                taps(&layer, |position, k, place| {
                    for o in 0..channels {
                        own[k * channels + o] += x[place] * dy[position * channels + o];
                        dx[place] += used[k * channels + o] * dy[position * channels + o];
                    }
                });
                for (i, dy) in dy.iter().enumerate() {
                    gradient[layer.bias + i % channels] += dy;
                }
                let rows = layer.patch();
                for o in 0..channels {
                    let column: Vec<f64> = (0..rows).map(|k| own[k * channels + o]).collect();
                    let v: Vec<f64> = (0..rows).map(|k| used[k * channels + o]).collect();
                    let mean = column.iter().sum::<f64>() / rows as f64;
                    let dot: f64 = column.iter().zip(&v).map(|(a, b)| a * b).sum();
                    for k in 0..rows {
                        gradient[layer.weight + k * channels + o] += match scales.as_ref() {
                            Some(scales) => scales[o] * (column[k] - mean - v[k] * dot),
                            None => column[k],
                        };
                    }
                }
            }
            Kind::GroupNorm(layer) => {
                let (z, deviations) = normalise(&layer, x);
                let channels = layer.image.channels;
                let width = channels / layer.groups;
                for (g, deviation) in deviations.iter().enumerate() {
                    let inside: Vec<usize> =
                        (0..x.len()).filter(|i| i % channels / width == g).collect();
                    let dz = |i: usize| dy[i] * parameters[layer.scale + i % channels];
                    let n = inside.len() as f64;
                    let mean = inside.iter().map(|i| dz(*i)).sum::<f64>() / n;
                    let along = inside.iter().map(|i| dz(*i) * z[*i]).sum::<f64>() / n;
                    for &i in &inside {
                        gradient[layer.scale + i % channels] += dy[i] * z[i];
                        gradient[layer.shift + i % channels] += dy[i];
                        dx[i] = (dz(i) - mean - z[i] * along) / deviation;
                    }
                }
            }
            Kind::MaxPool(layer) => windows(&layer, |out, places| {
                let winner = places.iter().copied().reduce(|a, b| if x[b] > x[a] { b } else { a });
                dx[winner.unwrap()] += dy[out];
            }),
            Kind::AveragePool(layer) => windows(&layer, |out, places| {
                for place in places {
                    dx[*place] += dy[out] / places.len() as f64;
                }
            }),
            Kind::Add { other } => {
                dx.copy_from_slice(&dy);
                for (delta, dy) in deltas[other].iter_mut().zip(&dy) {
                    *delta += dy;
                }
            }
        }
        for (delta, dx) in deltas[operation.input].iter_mut().zip(&dx) {
            *delta += dx;
        }
    }
    gradient
}

/// Weights in use, and the scale of each column where they are standardised.
fn weights(layer: &Convolution, parameters: &[f64]) -> (Vec<f64>, Option<Vec<f64>>) {
    let raw = &parameters[layer.weight..layer.weight + layer.weights()];
    if !layer.standardised {
        return (raw.to_vec(), None);
    }
    let (rows, channels) = (layer.patch(), layer.output.channels);
    let mut used = vec![0.0; raw.len()];
    let mut scales = Vec::new();
    for o in 0..channels {
        let column: Vec<f64> = (0..rows).map(|k| raw[k * channels + o]).collect();
        let mean = column.iter().sum::<f64>() / rows as f64;
        let scale = 1.0 / (column.iter().map(|w| (w - mean).powi(2)).sum::<f64>() + 1e-5).sqrt();
        for k in 0..rows {
            used[k * channels + o] = scale * (column[k] - mean);
        }
        scales.push(scale);
    }
    (used, Some(scales))
}

/// Every (output position, place in the patch, place in the image) of a convolution.
fn taps(layer: &Convolution, mut each: impl FnMut(usize, usize, usize)) {
    for oy in 0..layer.output.height {
        for ox in 0..layer.output.width {
            for ky in 0..layer.kernel {
                for kx in 0..layer.kernel {
                    let (y, x) = (oy * layer.stride + ky, ox * layer.stride + kx);
                    if y < layer.padding || x < layer.padding {
                        continue;
                    }
                    let (y, x) = (y - layer.padding, x - layer.padding);
                    if y >= layer.input.height || x >= layer.input.width {
                        continue;
                    }
                    for c in 0..layer.input.channels {
                        each(
                            oy * layer.output.width + ox,
                            (ky * layer.kernel + kx) * layer.input.channels + c,
                            (y * layer.input.width + x) * layer.input.channels + c,
                        );
                    }
                }
            }
        }
    }
}

fn convolve(layer: &Convolution, used: &[f64], parameters: &[f64], x: &[f64]) -> Vec<f64> {
    let channels = layer.output.channels;
    let mut y: Vec<f64> =
        (0..layer.output.len()).map(|i| parameters[layer.bias + i % channels]).collect();
    taps(layer, |position, k, place| {
        for o in 0..channels {
            y[position * channels + o] += used[k * channels + o] * x[place];
        }
    });
    y
}

fn normalise(layer: &GroupNorm, x: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let channels = layer.image.channels;
    let width = channels / layer.groups;
    let mut z = vec![0.0; x.len()];
    let mut deviations = Vec::new();
    for g in 0..layer.groups {
        let inside: Vec<usize> = (0..x.len()).filter(|i| i % channels / width == g).collect();
        let n = inside.len() as f64;
        let mean = inside.iter().map(|i| x[*i]).sum::<f64>() / n;
        let variance = inside.iter().map(|i| (x[*i] - mean).powi(2)).sum::<f64>() / n;
        let deviation = (variance + 1e-5).sqrt();
        for i in inside {
            z[i] = (x[i] - mean) / deviation;
        }
        deviations.push(deviation);
    }
    (z, deviations)
}

/// For every output number, the input places under its window.
fn windows(layer: &Pool, mut each: impl FnMut(usize, &[usize])) {
    let channels = layer.input.channels;
    for out in 0..layer.output.len() {
        let (position, c) = (out / channels, out % channels);
        let (oy, ox) = (position / layer.output.width, position % layer.output.width);
        let mut places = Vec::new();
        for ky in 0..layer.kernel {
            for kx in 0..layer.kernel {
                let (y, x) = (oy * layer.stride + ky, ox * layer.stride + kx);
                places.push((y * layer.input.width + x) * channels + c);
            }
        }
        each(out, &places);
    }
}

fn pool(layer: &Pool, combine: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    let mut y = vec![0.0; layer.output.len()];
    windows(layer, |out, places| y[out] = combine(places));
    y
}

pub(crate) fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

pub(crate) fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|x| f64::from(*x)).collect()
}
