//! Hugging Face folders: `config.json`, `*.safetensors`, `tokenizer.json`.

use super::{Model, checked, read, read_tensor};
use crate::LanguageError;
use crate::error::shown;
use crate::model::{
    Activation, Architecture, Decoder, Layer, Linear, Norm, NormWeights, Pairs, Position,
};
use crate::text::Tokenizer;
use safetensors::SafeTensors;
use serde_json::Value;
use std::path::Path;

/// Which names and layouts the weights have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Gpt2,
    Llama,
}

pub(super) fn folder(path: &Path, tokenizer: Option<&Path>) -> Result<Model, LanguageError> {
    let place = path.join("config.json");
    let config = String::from_utf8_lossy(&read(&place)?).into_owned();
    let mut files: Vec<_> = std::fs::read_dir(path)
        .map_err(|source| LanguageError::Read { place: path.display().to_string(), source })?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "safetensors"))
        .collect();
    files.sort();
    if files.is_empty() {
        let problem = "holds no .safetensors file; weights in other formats are not read";
        return Err(LanguageError::file(path.display(), problem));
    }
    let bytes = files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    let parts: Vec<(&[u8], String)> = bytes
        .iter()
        .zip(&files)
        .map(|(bytes, file)| (&bytes[..], file.display().to_string()))
        .collect();
    let decoder = decoder_from_safetensors(&config, &place.display().to_string(), &parts)?;
    let beside = path.join("tokenizer.json");
    let tokenizer = Tokenizer::huggingface(tokenizer.unwrap_or(&beside))?;
    let stop = stop_tokens(&config);
    checked(Model { decoder, tokenizer, stop }, &path.display().to_string())
}

fn stop_tokens(config: &str) -> Vec<u32> {
    let config: Value = serde_json::from_str(config).unwrap_or(Value::Null);
    let one = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
    match &config["eos_token_id"] {
        Value::Array(all) => all.iter().filter_map(one).collect(),
        value => one(value).into_iter().collect(),
    }
}

/// The architecture that a `config.json` describes.
///
/// # Errors
/// Names the key that is missing, wrong or asks for something that is not known here.
pub fn read_config(config: &str, place: &str) -> Result<Architecture, LanguageError> {
    Ok(parse(config, place)?.1)
}

fn parse(config: &str, place: &str) -> Result<(Family, Architecture), LanguageError> {
    let refuse = |problem: String| LanguageError::file(place, problem);
    let config: Value =
        serde_json::from_str(config).map_err(|error| refuse(format!("is not JSON: {error}")))?;
    let integer = |key: &str| {
        config[key]
            .as_u64()
            .and_then(|value| usize::try_from(value).ok())
            .ok_or_else(|| refuse(format!("`{key}` is missing or not a whole number")))
    };
    let real = |key: &str, default: f64| match &config[key] {
        Value::Null => Ok(default),
        value => value.as_f64().ok_or_else(|| refuse(format!("`{key}` is not a number"))),
    };
    let expect = |key: &str, wanted: &Value| {
        let value = &config[key];
        if value.is_null() || value == wanted {
            Ok(())
        } else {
            Err(refuse(format!("`{key}` is {}; only {wanted} is known", shown(&value.to_string()))))
        }
    };
    let kind = config["model_type"].as_str().unwrap_or("");
    let (family, architecture) = match kind {
        "gpt2" => {
            expect("activation_function", &Value::from("gelu_new"))?;
            expect("scale_attn_weights", &Value::from(true))?;
            expect("scale_attn_by_inverse_layer_idx", &Value::from(false))?;
            expect("add_cross_attention", &Value::from(false))?;
            let (width, heads) = (integer("n_embd")?, integer("n_head")?);
            if heads == 0 || width % heads != 0 {
                return Err(refuse(format!("width {width} is not a multiple of {heads} heads")));
            }
            let hidden = if config["n_inner"].is_null() { 4 * width } else { integer("n_inner")? };
            let epsilon = real("layer_norm_epsilon", 1e-5)? as f32;
            (
                Family::Gpt2,
                Architecture {
                    vocabulary: integer("vocab_size")?,
                    width,
                    layers: integer("n_layer")?,
                    heads,
                    key_heads: heads,
                    head_width: width / heads,
                    hidden,
                    context: integer("n_positions")?,
                    norm: Norm::Layer { epsilon },
                    position: Position::Learned,
                    activation: Activation::GeluTanh,
                },
            )
        }
        "llama" => {
            expect("hidden_act", &Value::from("silu"))?;
            expect("rope_scaling", &Value::Null)?;
            let rope = &config["rope_parameters"];
            if !(rope["rope_type"].is_null() || rope["rope_type"] == "default") {
                let kind = shown(&rope["rope_type"].to_string());
                return Err(refuse(format!("rotary positions of type {kind} are not known")));
            }
            let base = match rope["rope_theta"].as_f64() {
                Some(base) => base,
                None => real("rope_theta", 10_000.0)?,
            };
            let (width, heads) = (integer("hidden_size")?, integer("num_attention_heads")?);
            let head_width = match &config["head_dim"] {
                Value::Null if heads > 0 && width % heads == 0 => width / heads,
                _ => integer("head_dim")?,
            };
            let key_heads = match &config["num_key_value_heads"] {
                Value::Null => heads,
                _ => integer("num_key_value_heads")?,
            };
            (
                Family::Llama,
                Architecture {
                    vocabulary: integer("vocab_size")?,
                    width,
                    layers: integer("num_hidden_layers")?,
                    heads,
                    key_heads,
                    head_width,
                    hidden: integer("intermediate_size")?,
                    context: integer("max_position_embeddings")?,
                    norm: Norm::Rms { epsilon: real("rms_norm_eps", 1e-6)? as f32 },
                    position: Position::Rotary { base, pairs: Pairs::Halves },
                    activation: Activation::SwiGlu,
                },
            )
        }
        other => {
            return Err(refuse(format!(
                "model type `{}` is not known; `gpt2` and `llama` are",
                shown(other)
            )));
        }
    };
    architecture.check(place)?;
    Ok((family, architecture))
}

/// A decoder from a configuration and the bytes of safetensors files with their names.
///
/// # Errors
/// Names the file, and the tensor that is missing or has another shape.
pub fn decoder_from_safetensors(
    config: &str,
    place: &str,
    parts: &[(&[u8], String)],
) -> Result<Decoder, LanguageError> {
    let (family, architecture) = parse(config, place)?;
    let mut files = Vec::new();
    for (bytes, name) in parts {
        let file = SafeTensors::deserialize(bytes)
            .map_err(|error| LanguageError::file(name, format!("is not safetensors: {error}")))?;
        files.push(file);
    }
    let weights = Weights { files, place: parts.first().map_or("", |part| part.1.as_str()) };
    match family {
        Family::Gpt2 => gpt2(architecture, &weights),
        Family::Llama => llama(architecture, &weights),
    }
}

struct Weights<'a> {
    files: Vec<SafeTensors<'a>>,
    place: &'a str,
}

impl Weights<'_> {
    fn has(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.tensor(name).is_ok())
    }

    fn get(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LanguageError> {
        let missing = || LanguageError::file(self.place, format!("there is no tensor `{name}`"));
        let file = self.files.iter().find(|file| file.tensor(name).is_ok()).ok_or_else(missing)?;
        read_tensor(file, name, shape, self.place)
    }
}

fn llama(a: Architecture, weights: &Weights<'_>) -> Result<Decoder, LanguageError> {
    let norm = |name: String| {
        Ok::<_, LanguageError>(NormWeights { weight: weights.get(&name, &[a.width])?, bias: None })
    };
    let mut layers = Vec::new();
    for i in 0..a.layers {
        let linear = |name: &str, outputs: usize, inputs: usize| {
            let name = format!("model.layers.{i}.{name}");
            let bias = format!("{name}.bias");
            Ok::<_, LanguageError>(Linear {
                weight: weights.get(&format!("{name}.weight"), &[outputs, inputs])?,
                bias: weights.has(&bias).then(|| weights.get(&bias, &[outputs])).transpose()?,
                inputs,
                outputs,
                adapter: None,
            })
        };
        layers.push(Layer {
            attention_norm: norm(format!("model.layers.{i}.input_layernorm.weight"))?,
            query: linear("self_attn.q_proj", a.query_width(), a.width)?,
            key: linear("self_attn.k_proj", a.key_width(), a.width)?,
            value: linear("self_attn.v_proj", a.key_width(), a.width)?,
            output: linear("self_attn.o_proj", a.width, a.query_width())?,
            feed_norm: norm(format!("model.layers.{i}.post_attention_layernorm.weight"))?,
            gate: Some(linear("mlp.gate_proj", a.hidden, a.width)?),
            up: linear("mlp.up_proj", a.hidden, a.width)?,
            down: linear("mlp.down_proj", a.width, a.hidden)?,
        });
    }
    let head = match weights.has("lm_head.weight") {
        true => Some(weights.get("lm_head.weight", &[a.vocabulary, a.width])?),
        false => None,
    };
    Ok(Decoder {
        embedding: weights.get("model.embed_tokens.weight", &[a.vocabulary, a.width])?,
        positions: None,
        layers,
        final_norm: norm("model.norm.weight".into())?,
        head,
        architecture: a,
    })
}

fn gpt2(a: Architecture, weights: &Weights<'_>) -> Result<Decoder, LanguageError> {
    let prefix = if weights.has("transformer.wte.weight") { "transformer." } else { "" };
    let get = |name: &str, shape: &[usize]| weights.get(&format!("{prefix}{name}"), shape);
    let norm = |name: String| {
        Ok::<_, LanguageError>(NormWeights {
            weight: get(&format!("{name}.weight"), &[a.width])?,
            bias: Some(get(&format!("{name}.bias"), &[a.width])?),
        })
    };
    // GPT-2 stores inputs x outputs.
    let linear = |name: String, outputs: usize, inputs: usize| {
        let stored = get(&format!("{name}.weight"), &[inputs, outputs])?;
        Ok::<_, LanguageError>(Linear {
            weight: transposed(&stored, inputs, outputs),
            bias: Some(get(&format!("{name}.bias"), &[outputs])?),
            inputs,
            outputs,
            adapter: None,
        })
    };
    let mut layers = Vec::new();
    for i in 0..a.layers {
        let all = linear(format!("h.{i}.attn.c_attn"), 3 * a.width, a.width)?;
        let part = |n: usize| Linear {
            weight: all.weight[n * a.width * a.width..(n + 1) * a.width * a.width].to_vec(),
            bias: all.bias.as_ref().map(|bias| bias[n * a.width..(n + 1) * a.width].to_vec()),
            inputs: a.width,
            outputs: a.width,
            adapter: None,
        };
        layers.push(Layer {
            attention_norm: norm(format!("h.{i}.ln_1"))?,
            query: part(0),
            key: part(1),
            value: part(2),
            output: linear(format!("h.{i}.attn.c_proj"), a.width, a.width)?,
            feed_norm: norm(format!("h.{i}.ln_2"))?,
            gate: None,
            up: linear(format!("h.{i}.mlp.c_fc"), a.hidden, a.width)?,
            down: linear(format!("h.{i}.mlp.c_proj"), a.width, a.hidden)?,
        });
    }
    let head = match weights.has("lm_head.weight") {
        true => Some(weights.get("lm_head.weight", &[a.vocabulary, a.width])?),
        false => None,
    };
    Ok(Decoder {
        embedding: get("wte.weight", &[a.vocabulary, a.width])?,
        positions: Some(get("wpe.weight", &[a.context, a.width])?),
        layers,
        final_norm: norm("ln_f".into())?,
        head,
        architecture: a,
    })
}

fn transposed(stored: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut out = vec![0.0; stored.len()];
    for (i, row) in stored.chunks_exact(columns).enumerate() {
        for (j, x) in row.iter().enumerate() {
            out[j * rows + i] = *x;
        }
    }
    out
}
