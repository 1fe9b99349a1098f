//! The gradient through every kind of layer against finite differences.
//!
//! Central differences at h and h/2, extrapolated, are wrong by the order of h^4 and by the rounding
//! of the logits over h (about 1e-6 / 1e-2): 2e-3 of the gradient's scale covers both for h = 1e-2.

use language::compression::input_gradient;
use language::load::decoder_from_safetensors;
use language::model::Decoder;
use std::path::Path;

fn decoder(name: &str) -> Decoder {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference").join(name);
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    decoder_from_safetensors(&config, "c", &[(&bytes[..], "m".into())]).unwrap()
}

#[test]
fn input_gradients_match_finite_differences() {
    // Layer norm, learned positions, GELU; RMS norm, rotation, grouped keys, SwiGLU; own head.
    for name in ["gpt2", "llama", "llama-untied"] {
        let mut decoder = decoder(name);
        // An embedding of its own for the input, so that the head stays as it is.
        decoder.head = Some(decoder.head().to_vec());
        // Every token once: a row of the embedding is one input.
        let tokens: Vec<u32> = vec![3, 17, 60, 1, 42, 9, 33, 5];
        let found = input_gradient(&decoder, &tokens, 4).unwrap();
        let width = decoder.architecture.width;
        let scale = found.gradient.iter().map(|x| x.abs()).fold(0.0, f32::max);
        let h = 1e-2_f32;
        for (place, token) in tokens.iter().enumerate() {
            for i in (0..width).step_by(5) {
                let at = *token as usize * width + i;
                let mut loss = |change: f32| {
                    let kept = decoder.embedding[at];
                    decoder.embedding[at] = kept + change;
                    let loss = input_gradient(&decoder, &tokens, 4).unwrap().loss;
                    decoder.embedding[at] = kept;
                    loss
                };
                let mut central = |h: f32| (loss(h) - loss(-h)) / f64::from(2.0 * h);
                let slope = (4.0 * central(0.5 * h) - central(h)) / 3.0;
                let got = f64::from(found.gradient[place * width + i]);
                assert!(
                    (got - slope).abs() < 2e-3 * f64::from(scale),
                    "{name}, place {place}, {i}: {got} {slope} of {scale}"
                );
            }
        }
        // The last token is predicted, never read.
        assert!(found.gradient[7 * width..].iter().all(|x| *x == 0.0));
    }
}
