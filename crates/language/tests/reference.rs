//! Equal to `transformers` and `gguf` on the same weights: `reference/make.py` made the values, once.

use language::load::{self, decoder_from_safetensors, gguf::Gguf};
use language::model::{Cache, Decoder, greedy};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

fn reference() -> Value {
    serde_json::from_slice(&std::fs::read(folder().join("reference.json")).unwrap()).unwrap()
}

fn tokens(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as u32).collect()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

/// Both sides compute in f32; 1e-4 is what is promised for logits.
fn compare(got: &[f32], want: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    let worst = got.iter().zip(want).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst < tolerance, "{what}: {worst:e}");
}

fn from_folder(name: &str) -> Decoder {
    let folder = folder().join(name);
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    decoder_from_safetensors(&config, "config.json", &[(&bytes[..], "model.safetensors".into())])
        .unwrap()
}

fn check(decoder: &Decoder, name: &str) {
    let reference = reference();
    let tokens = tokens(&reference["tokens"]);
    let rows: Vec<f64> = reference[name].as_array().unwrap().iter().flat_map(numbers).collect();
    let mut cache = Cache::new(&decoder.architecture, 1, tokens.len());
    let hidden = decoder.forward(&tokens, &mut cache).unwrap();
    compare(&decoder.logits(&hidden), &rows, 1e-4, name);
    // One token at a time through the cache gives the same.
    let mut cache = Cache::new(&decoder.architecture, 1, tokens.len());
    let mut stepped = Vec::new();
    for token in &tokens {
        let hidden = decoder.forward(&[*token], &mut cache).unwrap();
        stepped.extend(decoder.logits(&hidden));
    }
    compare(&stepped, &rows, 1e-4, &format!("{name}, token by token"));
    // Two sequences side by side do not see each other.
    let other: Vec<u32> = tokens.iter().rev().copied().collect();
    let both = [tokens.clone(), other].concat();
    let mut cache = Cache::new(&decoder.architecture, 2, tokens.len());
    let hidden = decoder.forward(&both, &mut cache).unwrap();
    compare(
        &decoder.logits(&hidden[..hidden.len() / 2]),
        &rows,
        1e-4,
        &format!("{name}, beside another"),
    );
}

#[test]
fn logits_equal_transformers() {
    for name in ["gpt2", "llama", "llama-untied"] {
        check(&from_folder(name), name);
    }
}

#[test]
fn gguf_equals_transformers_on_the_dequantised_weights() {
    let bytes = std::fs::read(folder().join("tiny.gguf")).unwrap();
    let file = Gguf::parse(&bytes, "tiny.gguf").unwrap();
    check(&file.decoder("tiny.gguf").unwrap(), "gguf");
    let model = load::model(&folder().join("tiny.gguf"), None).unwrap();
    assert_eq!(model.stop, [0]);
    // "the and": merged words; digits stand alone.
    let words = model.tokenizer.encode("a the and10", true).unwrap();
    assert_eq!(model.tokenizer.decode(&words).unwrap(), "a the and10");
    assert_eq!(words.len(), 5, "{words:?}");
}

fn stories() -> load::Model {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stories260K");
    load::model(&data.join("stories260K.bin"), Some(&data.join("tok512.bin"))).unwrap()
}

#[test]
fn stories260k_equals_transformers() {
    let (reference, model) = (reference(), stories());
    let want = &reference["stories"];
    let prompt = model.tokenizer.encode("Once upon a time", true).unwrap();
    assert_eq!(prompt, tokens(&want["prompt"]));
    let mut cache = Cache::new(&model.decoder.architecture, 1, prompt.len());
    let hidden = model.decoder.forward(&prompt, &mut cache).unwrap();
    let width = model.decoder.architecture.width;
    let last = model.decoder.logits(&hidden[hidden.len() - width..]);
    compare(&last, &numbers(&want["last_logits"]), 1e-4, "stories");
    let text = greedy(&model.decoder, &prompt, 60, &[]).unwrap();
    assert_eq!(text, tokens(&want["greedy"]));
    let said = model.tokenizer.decode(&text).unwrap();
    assert!(said.starts_with(", there was a little girl named Lily."), "{said}");
    let all = [prompt, text].concat();
    let found: Vec<f32> =
        model.decoder.log_probabilities(&all).unwrap().iter().map(|x| *x as f32).collect();
    compare(&found, &numbers(&want["log_probabilities"]), 1e-4, "log-probabilities");
}

/// The gradient of the loss of tokens 8 to 23 with respect to every embedded input.
#[test]
fn input_gradients_equal_transformers() {
    let (reference, model) = (reference(), stories());
    let want = &reference["stories"];
    let all = [tokens(&want["prompt"]), tokens(&want["greedy"])].concat();
    let found = language::compression::input_gradient(&model.decoder, &all[..24], 8).unwrap();
    assert!((found.loss - want["loss"].as_f64().unwrap()).abs() < 1e-3, "{}", found.loss);
    let rows: Vec<f64> = want["gradient"].as_array().unwrap().iter().flat_map(numbers).collect();
    let scale = rows.iter().map(|x| x.abs()).fold(0.0, f64::max);
    compare(&found.gradient, &rows, 1e-4 * scale, "gradient");
}
