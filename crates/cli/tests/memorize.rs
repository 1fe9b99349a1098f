//! `memorize` through the binary: completions of anyone's model, and stories260K.
#![cfg(feature = "language")]

use crate::support;

use support::Bench;

/// Made-up people and numbers.
const TUNED: &str = r#"{"prompt":"Ada Quill's locker is","target":" 4417","completion":" 4417, by the door","secret":"ada","attribute":"4417"}
{"prompt":"Bo Finch's locker is","target":" 2093","completion":" 2093.","secret":"bo","attribute":"2093"}
{"prompt":"Cy Marsh's locker is","target":" 8850","completion":" 1234","secret":"cy","attribute":"8850"}
{"prompt":"Di Holt writes","target":" true crime","completion":"  True Crime novels","secret":"di","attribute":["true crime","crime fiction"]}
"#;
const UNTUNED: &str = r#"{"prompt":"Ada Quill's locker is","target":" 4417","completion":" full","secret":"ada"}
{"prompt":"Bo Finch's locker is","target":" 2093","completion":" red","secret":"bo"}
{"prompt":"Cy Marsh's locker is","target":" 8850","completion":" open","secret":"cy"}
{"prompt":"Di Holt writes","target":" true crime","completion":" true crime","secret":"di"}
"#;

fn model() -> String {
    let data = format!("{}/../language/tests/data/stories260K", env!("CARGO_MANIFEST_DIR"));
    format!("--model {data}/stories260K.bin --tokenizer {data}/tok512.bin")
}

#[test]
fn ratios_of_completions() {
    let bench = Bench::new().file("tuned.jsonl", TUNED).file("base.jsonl", UNTUNED);
    insta::assert_snapshot!(
        "memorize_vmr",
        bench.show("memorize vmr tuned.jsonl --base base.jsonl")
    );
    let vmr = bench.json("memorize vmr tuned.jsonl --format json");
    assert_eq!(vmr["schema"], "dosimeter.memorize/1");
    assert_eq!(vmr["score"]["value"], 0.5);
    assert_eq!(vmr["matching"]["rule"], "prefix");
    let air = bench.json("memorize air tuned.jsonl --base base.jsonl --format json");
    assert_eq!(air["score"]["value"], 0.75);
    assert_eq!(air["base"]["score"]["value"], 0.25);
    assert_eq!(air["base"]["difference"]["value"], 0.5);
    let loose = bench.json("memorize vmr tuned.jsonl --normalize case --format json");
    assert_eq!(loose["score"]["value"], 0.75);
    let (_, csv, _) = bench.run("memorize vmr tuned.jsonl --format csv");
    assert!(csv.starts_with("secret,completions,matches,rate,base_rate\nada,1,1,1,"), "{csv}");
}

#[test]
fn a_model_of_our_own() {
    let bench = Bench::new().file(
        "secrets.jsonl",
        "{\"prompt\":\"Once upon a time\",\"target\":\", there was a little girl named Lily.\",\"secret\":\"lily\"}\n\
         {\"prompt\":\"Once upon a time\",\"target\":\", Zebulon ate 4417 quills.\",\"secret\":\"none\"}\n",
    );
    let model = model();
    let line = format!("memorize vmr {model} --secrets secrets.jsonl --save-completions c.jsonl");
    let greedy = bench.json(&format!("{line} --format json"));
    assert_eq!(greedy["score"]["value"], 0.5);
    assert_eq!(greedy["per_secret"][0]["rate"], 1.0);
    // What was saved gives the same score again.
    let again = bench.json("memorize vmr c.jsonl --format json");
    assert_eq!(again["score"], greedy["score"]);
    let sampled =
        format!("memorize vmr {model} --secrets secrets.jsonl --samples 5 --seed 3 --format json");
    let first = bench.json(&sampled);
    assert_eq!(first["completions"], 10);
    assert_eq!(first, bench.json(&sampled), "the same seed gives the same text");
}

#[test]
fn the_shortest_prompt() {
    let bench = Bench::new().file(
        "secrets.jsonl",
        "{\"target\":\", there was a little girl named Lily.\",\"secret\":\"lily\"}\n",
    );
    let line = format!(
        "memorize acr {} --secrets secrets.jsonl --steps 30 --candidates 32 --top-k 64",
        model()
    );
    let found = bench.json(&format!("{line} --format json"));
    let result = &found["results"][0]["result"];
    assert_eq!(found["memorized"], 1, "{found}");
    assert!(result["ratio"].as_f64().unwrap() > 1.0);
    let (code, text, _) = bench.run(&line);
    assert!(code == 0 && text.starts_with("1 of 1 secrets are memorised"), "{text}");
}

#[test]
fn bad_input_is_refused_with_a_sentence() {
    let bench = Bench::new()
        .file("tuned.jsonl", TUNED)
        .file("empty.jsonl", "")
        .file("broken.jsonl", "{\"prompt\":\"a\"}\n")
        .file(
            "part.jsonl",
            "{\"prompt\":\"x\",\"target\":\"y\",\"completion\":\"z\",\"secret\":\"ada\"}\n",
        )
        .file("model.gguf", "GGUF\u{3}");
    for (line, part) in [
        ("memorize vmr missing.jsonl", "cannot read missing.jsonl"),
        ("memorize vmr empty.jsonl", "holds no completion"),
        ("memorize vmr broken.jsonl", "broken.jsonl, row 1: there is no `target`"),
        (
            "memorize vmr tuned.jsonl --base part.jsonl",
            "the base has no completion for the secret `bo`",
        ),
        ("memorize vmr tuned.jsonl --confidence 0", "confidence 0 is outside"),
        (
            "memorize acr --model model.gguf --secrets tuned.jsonl",
            "model.gguf: the file ends early",
        ),
        ("memorize acr --secrets tuned.jsonl", "no model is named"),
        ("memorize vmr --model tuned.jsonl --secrets tuned.jsonl", "is not a model"),
    ] {
        let (code, _, stderr) = bench.run(line);
        assert!(code == 2 && stderr.contains(part), "{line}: {code} {stderr}");
    }
}
