#![no_main]

//! Files of language models: read, or refused in a sentence.

use language::finetune::weights::lay_over_bytes;
use language::load::{decoder_from_safetensors, gguf::Gguf, llama2c, read_config};

const CONFIG: &str = r#"{"model_type":"llama","hidden_act":"silu","vocab_size":8,"hidden_size":4,
"intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":2,"max_position_embeddings":8}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 6 {
        0 => {
            let file = [&b"GGUF"[..], bytes].concat();
            if let Ok(file) = Gguf::parse(&file, "x") {
                let _ = file.decoder("x");
                let _ = file.tokenizer("x");
            }
        }
        1 => drop(llama2c::decoder(bytes, "x")),
        2 => drop(llama2c::tokenizer(bytes, 300, "x")),
        3 => drop(decoder_from_safetensors(CONFIG, "c", &[(bytes, "m".to_owned())])),
        4 => {
            // A llama2.c file of zeros: shapes are all that matters.
            let header: Vec<u8> =
                [4i32, 4, 1, 2, 2, 8, 8].iter().flat_map(|x| x.to_le_bytes()).collect();
            if let Ok(mut decoder) = llama2c::decoder(&[header, vec![0; 4096]].concat(), "m") {
                let _ = lay_over_bytes(&mut decoder, bytes, "x");
            }
        }
        _ => drop(read_config(&String::from_utf8_lossy(bytes), "c")),
    }
});
