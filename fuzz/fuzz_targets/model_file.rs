#![no_main]

//! Files of language models: read, or refused in a sentence.

use language::load::{decoder_from_safetensors, gguf::Gguf, llama2c, read_config};

const CONFIG: &str = r#"{"model_type":"llama","hidden_act":"silu","vocab_size":8,"hidden_size":4,
"intermediate_size":4,"num_hidden_layers":1,"num_attention_heads":2,"max_position_embeddings":8}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    match kind % 5 {
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
        _ => drop(read_config(&String::from_utf8_lossy(bytes), "c")),
    }
});
