//! Files that are wrong, by accident or on purpose: a sentence, never a panic, never memory by a
//! number in the file.

use language::finetune::{Layout, Lora, Scope, attach, weights};
use language::load::{decoder_from_safetensors, gguf::Gguf, llama2c, model, read_config};
use std::path::{Path, PathBuf};

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

struct Noise(u64);

impl Noise {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.word() % n as u64) as usize
    }

    /// A copy with a few bytes of its first `head` changed, and sometimes cut.
    fn spoiled(&mut self, bytes: &[u8], head: usize) -> Vec<u8> {
        let mut copy = bytes.to_vec();
        for _ in 0..1 + self.below(4) {
            let place = self.below(head.min(copy.len()));
            match self.below(3) {
                0 => copy[place] = self.word() as u8,
                1 => copy[place] = [0, 0xFF, 0x7F, 0x80][self.below(4)],
                _ => {
                    let end = (place + 8).min(copy.len());
                    copy[place..end].fill([0, 0xFF][self.below(2)]);
                }
            }
        }
        if self.below(4) == 0 {
            copy.truncate(self.below(copy.len()));
        }
        copy
    }
}

#[test]
fn spoiled_gguf_is_refused_or_read_and_never_panics() {
    let bytes = std::fs::read(tests().join("reference/tiny.gguf")).unwrap();
    let mut noise = Noise(1);
    let mut refused = 0;
    for _ in 0..4000 {
        let copy = noise.spoiled(&bytes, 4000);
        match Gguf::parse(&copy, "x.gguf") {
            Err(error) => {
                refused += 1;
                assert!(error.to_string().starts_with("x.gguf: "), "{error}");
            }
            Ok(file) => {
                let _ = file.decoder("x.gguf");
                let _ = file.tokenizer("x.gguf");
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn spoiled_safetensors_and_checkpoints_never_panic() {
    let folder = tests().join("reference/llama");
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    let bytes = std::fs::read(folder.join("model.safetensors")).unwrap();
    let stories = std::fs::read(tests().join("data/stories260K/stories260K.bin")).unwrap();
    let tokens = std::fs::read(tests().join("data/stories260K/tok512.bin")).unwrap();
    let mut noise = Noise(2);
    let mut refused = [0; 4];
    for _ in 0..1500 {
        let copy = noise.spoiled(&bytes, 2400);
        let found = decoder_from_safetensors(&config, "c", &[(&copy[..], "m".into())]);
        refused[0] += u32::from(found.is_err());
        let copy = noise.spoiled(config.as_bytes(), config.len());
        refused[1] += u32::from(read_config(&String::from_utf8_lossy(&copy), "c").is_err());
        let copy = noise.spoiled(&stories[..2000], 28);
        refused[2] += u32::from(llama2c::decoder(&copy, "b").is_err());
        let copy = noise.spoiled(&tokens, tokens.len());
        refused[3] += u32::from(llama2c::tokenizer(&copy, 512, "t").is_err());
    }
    assert_eq!(refused[2], 1500, "a cut checkpoint is always refused");
    assert!(refused.iter().all(|count| *count > 200), "{refused:?}");
}

#[test]
fn sizes_in_headers_are_not_believed() {
    // 2^60 tensors, and a text of 2^62 bytes.
    let mut header = b"GGUF\x03\0\0\0".to_vec();
    header.extend_from_slice(&(1_u64 << 60).to_le_bytes());
    header.extend_from_slice(&0_u64.to_le_bytes());
    assert!(Gguf::parse(&header, "x").err().unwrap().to_string().contains("ends early"));
    let mut header = b"GGUF\x03\0\0\0".to_vec();
    header.extend_from_slice(&0_u64.to_le_bytes());
    header.extend_from_slice(&1_u64.to_le_bytes());
    header.extend_from_slice(&(1_u64 << 62).to_le_bytes());
    assert!(Gguf::parse(&header, "x").err().unwrap().to_string().contains("ends early"));
    // Seven large integers.
    let header: Vec<u8> = std::iter::repeat_n(i32::MAX.to_le_bytes(), 7).flatten().collect();
    assert!(llama2c::decoder(&header, "x").is_err());
    // A safetensors header longer than the file.
    let config = std::fs::read_to_string(tests().join("reference/llama/config.json")).unwrap();
    let bytes = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    let error = decoder_from_safetensors(&config, "c", &[(&bytes[..], "m".into())]).unwrap_err();
    assert!(error.to_string().contains("m: is not safetensors"), "{error}");
}

#[test]
fn unknown_things_are_named() {
    let config = std::fs::read_to_string(tests().join("reference/llama/config.json")).unwrap();
    for (from, to, part) in [
        ("\"llama\"", "\"mamba\"", "model type `mamba` is not known"),
        ("\"silu\"", "\"relu\"", "`hidden_act` is \"relu\""),
        ("\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "cannot share"),
        ("\"hidden_size\": 32", "\"hidden_size\": -1", "`hidden_size` is missing"),
        ("\"vocab_size\": 64", "\"vocab_size\": 99999999999", "vocabulary size"),
    ] {
        assert!(config.contains(from), "{from}");
        let error = read_config(&config.replace(from, to), "config.json").unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let bytes = std::fs::read(tests().join("reference/llama/model.safetensors")).unwrap();
    let wider = config.replace("\"intermediate_size\": 64", "\"intermediate_size\": 65");
    let error = decoder_from_safetensors(&wider, "c", &[(&bytes[..], "m".into())]).unwrap_err();
    assert!(error.to_string().contains("the configuration says [65, 32]"), "{error}");
    let error = model(Path::new("/nowhere/at/all.gguf"), None).err().unwrap();
    assert!(error.to_string().contains("cannot read"), "{error}");
}

#[test]
fn a_sequence_beyond_the_context_is_refused() {
    let data = tests().join("data/stories260K");
    let model = model(&data.join("stories260K.bin"), Some(&data.join("tok512.bin"))).unwrap();
    let long = vec![5; 513];
    let error = model.decoder.log_probabilities(&long).unwrap_err().to_string();
    assert!(error.contains("513 tokens do not fit into a context of 512"), "{error}");
    let error = model.decoder.log_probabilities(&[1, 512]).unwrap_err().to_string();
    assert!(error.contains("token 512 is outside the vocabulary"), "{error}");
    // Generation stops at the context's end and not with an error.
    let most = language::model::greedy(&model.decoder, &[1], 2000, &[]).unwrap();
    assert_eq!(most.len(), 512);
}

#[test]
fn spoiled_trained_tensors_are_refused_or_read_and_never_panic() {
    let bytes = std::fs::read(tests().join("data/stories260K/stories260K.bin")).unwrap();
    let plain = llama2c::decoder(&bytes, "stories").unwrap();
    let mut tuned = plain.clone();
    attach(&mut tuned, &Lora { rank: 2, ..Lora::default() }, 1).unwrap();
    let layout = Layout::new(&tuned, Scope::Adapters { embedding: true });
    let file = weights::to_safetensors(&tuned, &layout, plain.architecture.vocabulary);
    weights::lay_over_bytes(&mut plain.clone(), &file, "tuned").unwrap();
    let mut noise = Noise(7);
    let mut refused = 0;
    for _ in 0..600 {
        let copy = noise.spoiled(&file, 2000);
        if let Err(error) = weights::lay_over_bytes(&mut plain.clone(), &copy, "tuned") {
            refused += 1;
            assert!(error.to_string().starts_with("tuned: "), "{error}");
        }
    }
    assert!(refused > 300, "{refused}");
    // Cut short, and of another model.
    assert!(weights::lay_over_bytes(&mut plain.clone(), &file[..file.len() - 1], "tuned").is_err());
    let mut wide = plain.clone();
    wide.embedding.extend(vec![0.0; wide.architecture.width]);
    wide.architecture.vocabulary += 1;
    let error = weights::lay_over_bytes(&mut wide, &file, "tuned").unwrap_err().to_string();
    assert!(error.contains("tensor `embedding` has shape [512, 64]"), "{error}");
}
