//! `attack attribute` as a user meets it: the bound straight from a training and through a file,
//! and the game.

use crate::support;

use support::Bench;

const RUN: &str = "\
[run]
noise_multiplier = 1.0
sample_rate = 0.002
steps = 8
seed = 3
[data]
name = \"adult\"
[model]
kind = \"mlp\"
hidden = [8]
activation = \"tanh\"
[optimizer]
kind = \"sgd\"
learning_rate = 0.5
";

fn bench() -> Bench {
    Bench::new().file("adult.toml", RUN)
}

fn claims(document: &serde_json::Value) -> Vec<(String, String, f64)> {
    let claims = document["claims"].as_array().unwrap().iter();
    let claims = claims.filter(|claim| claim["secret"] == "attribute");
    let text = |claim: &serde_json::Value, key: &str| claim[key].as_str().unwrap().to_owned();
    claims
        .map(|claim| {
            (text(claim, "lens"), text(claim, "quantity"), claim["value"].as_f64().unwrap())
        })
        .collect()
}

/// The same numbers from the training and from the file it wrote, in every mode.
#[test]
fn straight_from_a_training_and_through_a_file() {
    let bench = bench();
    for (mode, more) in [
        ("batch", "--diameter full"),
        ("batch", "--diameter approximate"),
        ("dataset", "--records 8"),
        ("record", "--records 5"),
    ] {
        let direct = bench.json(&format!(
            "attack attribute adult.toml --attribute age --mode {mode} {more} \
             --sensitivity age.csv --format json"
        ));
        assert_eq!(direct["game"], "attribute");
        assert_eq!(direct["values"].as_array().unwrap().len(), 74);
        assert_eq!(direct["worst_record"].is_string(), mode == "record");
        let assumptions = direct["claims"][0]["assumptions"].to_string();
        assert!(assumptions.contains("can reveal who is in the data"), "{assumptions}");
        let read = bench.json(&format!(
            "account adult.toml --dataset-size 32561 --attribute-sensitivity age.csv \
             --attribute-mode {mode} --format json"
        ));
        let (direct, read) = (claims(&direct), claims(&read));
        assert_eq!(direct.len(), read.len(), "{direct:?} {read:?}");
        for (a, b) in direct.iter().zip(&read) {
            assert_eq!((&a.0, &a.1), (&b.0, &b.1), "{mode}");
            assert!((a.2 - b.2).abs() < 1e-12, "{mode}: {a:?} {b:?}");
        }
        // Less than the worst that clipping allows.
        let beta = direct.iter().find(|claim| claim.1 == "bayes-security").unwrap().2;
        assert!(beta > 0.98 && beta < 1.0, "{beta}");
    }
}

#[test]
fn a_game_is_played_resumed_and_audited() {
    let bench = bench();
    let game = "attack attribute adult.toml --attribute age --record 7 --secrets 17,90 \
                --observe all --trials 6 --out guesses.csv --format json";
    let played = bench.json(game);
    assert_eq!(played["state"], "complete");
    assert_eq!(played["accuracy"]["guesses"], 12);
    assert_eq!(played["allowed"].as_array().unwrap().len(), 3);
    let first = std::fs::read_to_string(bench.path().join("guesses.csv")).unwrap();
    assert!(first.starts_with("# design: runs\nscore,member,secret,guess\n"), "{first}");
    assert_eq!(bench.json(game)["accuracy"], played["accuracy"]);
    let audited = bench.json("audit guesses.csv --delta 1e-5 --format json");
    assert_eq!(audited["design"], "runs");
    let records = bench.json(
        "attack attribute adult.toml --candidate-records 1,2,3 --trials 2 --out records.csv \
         --format json",
    );
    assert_eq!(records["accuracy"]["guesses"], 6);
    assert_eq!(records["accuracy"]["blind"], 1.0 / 3.0);
    assert_eq!(records["allowed"][0]["lens"], "composition");
}

#[test]
fn mistakes_are_named() {
    let bench = bench();
    for (arguments, words) in [
        ("--attribute height", "`height`"),
        ("--attribute age --values 90..17", "`90..17`"),
        ("--attribute sex --values Male,Other", "`Other`"),
        ("--attribute age --records few", "`few`"),
        ("--attribute age --secrets 16,90 --out x.csv", "`16`"),
        ("--attribute age --record 40000 --out x.csv", "records are 0 to 32560"),
    ] {
        let (code, _, message) = bench.run(&format!("attack attribute adult.toml {arguments}"));
        assert_eq!(code, 2, "{arguments}: {message}");
        assert!(message.contains(words), "{arguments}: {message}");
    }
    let (code, _, message) =
        bench.run("attack attribute adult.toml --attribute age --sampling shuffle");
    assert_eq!(code, 5, "{message}");
}
