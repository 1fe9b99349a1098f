//! Every document fits the schema of its name. `Bench::json` holds this for whatever a test asks; here
//! every schema is met at least once.
#![cfg(all(feature = "language", feature = "papers"))]

use crate::support;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use support::{Bench, schema};

const RUN: &str = "-s 1 -q 0.01 -T 100";
const TRAINING: &str = "[run]\nnoise_multiplier = 1\nbatch_size = 2\nsteps = 3\nseed = 1\n\
    [data]\npath = \"people.csv\"\nclasses = [\"low\", \"high\"]\n\
    [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n";
const COMPLETIONS: &str = r#"{"prompt":"Ada's locker is","target":" 44","completion":" 44","secret":"a","seed":1}
{"prompt":"Bo's locker is","target":" 20","completion":" full","secret":"b","seed":2}
"#;

/// What only the server says, and what is written by people.
const ELSEWHERE: &[&str] = &[
    "dosimeter.calibration-map/1",
    "dosimeter.error/1",
    "dosimeter.figure/1",
    "dosimeter.panel/1",
    "dosimeter.policy/1",
];

fn bench() -> Bench {
    let rows: String =
        (0..120).map(|place| format!("{},{}\n", f64::from(place % 17) * 0.1, place % 2)).collect();
    let people: String = (0..40)
        .map(|place| format!("{},{}\n", 20 + place, if place % 3 == 0 { "low" } else { "high" }))
        .collect();
    Bench::new()
        .file("scores.csv", &format!("score,member\n{rows}"))
        .file("people.csv", &format!("age,income\n{people}"))
        .file("training.toml", TRAINING)
        .file(
            "adult.toml",
            &TRAINING.replace(
                "path = \"people.csv\"\nclasses = [\"low\", \"high\"]",
                "name = \"adult\"",
            ),
        )
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 100\n")
        .file("results.csv", include_str!("../../tuning/tests/reference/table.csv"))
        .file("completions.jsonl", COMPLETIONS)
        .file("secrets.jsonl", "{\"prompt\":\"Once\",\"target\":\" upon\",\"secret\":\"s\"}\n")
}

/// What a file holds, held to its schema.
fn file(bench: &Bench, name: &str) -> String {
    let text = std::fs::read_to_string(bench.path().join(name)).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let schema = document["schema"].as_str().unwrap();
    let faults = schema::faults(&document, &bench.schema(schema));
    assert!(faults.is_empty(), "{name}:\n{}", faults.join("\n"));
    schema.to_owned()
}

#[test]
fn every_document_fits_its_schema() {
    let bench = bench();
    let data = format!("{}/../language/tests/data/stories260K", env!("CARGO_MANIFEST_DIR"));
    let model = format!("--model {data}/stories260K.bin --tokenizer {data}/tok512.bin");
    let target = "--target-epsilon 3 --delta 1e-6 --dataset-size 100000 --epochs 20";
    let game = format!("attack linear {RUN} -d 1e-5 --trials 64 --out game.csv");
    let lines = [
        format!("account {RUN} -d 1e-5 --fpr 0.1 --prior 0.1"),
        format!("account {RUN} -d 1e-5 --sampling shuffle"),
        format!("calibrate {target} --batch-size 512"),
        format!("calibrate {target} --batch-sizes 256,512"),
        "curve tradeoff run.toml --points 5".into(),
        "curve profile run.toml --points 5".into(),
        "curve steps run.toml --delta 1e-5 --points 3".into(),
        "compare run.toml run.toml --delta 1e-5".into(),
        "compare --map -s 1 -d 1e-5 --sample-rates 0.01 --steps-list 10,100".into(),
        "compare --batch-sizes 256 --dataset-size 50000 --epochs 2 --heuristic-epsilon 6 -d 1e-5"
            .into(),
        "check run.toml --max-epsilon 8 --delta 1e-5".into(),
        "audit scores.csv --delta 1e-5 --method all --claim run.toml --bootstrap 5".into(),
        "audit scores.csv --design one-run --method all".into(),
        "audit scores.csv --delta 1e-5 --sequential".into(),
        "audit --plan-only".into(),
        "plan --target-epsilon 1 --mu 1".into(),
        "plan --target-epsilon 1 --mu 1.5 --design one-run".into(),
        "tune regress results.csv".into(),
        "tune rank results.csv --epsilon 8".into(),
        "tune select results.csv --epsilon 8".into(),
        "translate --epsilon 2 --delta 1e-5".into(),
        format!("translate {RUN} --epsilon 2 --delta 1e-5"),
        game.clone(),
        "status game.csv".into(),
        format!("{game} --until-decided --claim-epsilon 0.1 --force"),
        "attack gradient training.toml --trials 2 --out trained.csv".into(),
        "attack attribute adult.toml --attribute age --records 2".into(),
        "attack attribute adult.toml --candidate-records 1,2 --trials 1 --out guesses.csv".into(),
        "data".into(),
        "data adult people.csv".into(),
        "data describe people.csv".into(),
        "memorize vmr completions.jsonl --base completions.jsonl".into(),
        format!("memorize acr {model} --secrets secrets.jsonl --steps 1 --longest 1"),
        "reproduce --list".into(),
        "reproduce closed-form-figure-2 --out figures".into(),
    ];
    let mut met: BTreeSet<String> = ELSEWHERE.iter().map(|name| (*name).to_owned()).collect();
    let mut faults = Vec::new();
    for line in &lines {
        let (code, text, stderr) = bench.run(&format!("{line} --format json"));
        assert!(matches!(code, 0 | 3), "{line}: {stderr}");
        let document: Value = serde_json::from_str(&text).unwrap();
        let name = document["schema"].as_str().unwrap();
        for fault in schema::faults(&document, &bench.schema(name)) {
            faults.push(format!("{line}: {name}: {fault}"));
        }
        met.insert(name.to_owned());
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // What is written into files.
    assert_eq!(bench.run("train training.toml").0, 0);
    met.insert(file(&bench, "training/ledger.json"));
    for name in ["game.csv.run.json", "trained.csv.run.json"] {
        met.insert(file(&bench, name));
    }
    let (code, page, _) = bench.run("report scores.csv run.toml -d 1e-5 --out -");
    assert_eq!(code, 0);
    let embedded = page.split("id=\"dosimeter\">").nth(1).unwrap();
    let embedded = embedded.split("</script>").next().unwrap();
    std::fs::write(bench.path().join("report.json"), embedded).unwrap();
    met.insert(file(&bench, "report.json"));
    // Held to their schemas where they are made: proofs, membership, and what solves for noise.
    for name in ["proof", "membership", "tune-profiles", "tune-search"] {
        met.insert(format!("dosimeter.{name}/1"));
    }
    let (_, names, _) = bench.run("schema");
    let missed: Vec<&str> = names.lines().filter(|name| !met.contains(*name)).collect();
    assert!(missed.is_empty(), "no document of {missed:?} was looked at");
}

/// The checker finds what is wrong.
#[test]
fn documents_that_do_not_fit_are_found() {
    let bench = Bench::new();
    let schema = bench.schema("dosimeter.data-description/1");
    let good = json!({
        "schema": "dosimeter.data-description/1", "path": "a.csv", "header": true, "rows": 3,
        "columns": [{"name": "age", "holds": "numbers"},
                    {"name": "job", "holds": "texts", "values": ["a"]}],
    });
    assert_eq!(schema::faults(&good, &schema), Vec::<String>::new());
    for (pointer, wrong) in [
        ("/schema", json!("dosimeter.data/1")),
        ("/rows", json!(-1)),
        ("/rows", json!(1.5)),
        ("/header", json!("yes")),
        ("/columns/0", json!({"name": "age"})),
        ("/columns/0", json!({"name": "age", "holds": "numbers", "values": []})),
        ("/columns/0", json!({"name": "age", "holds": "numbers", "colour": 1})),
        ("/columns/1", json!({"name": "job", "holds": "texts", "values": [1]})),
        ("/columns/1", json!({"name": "job", "holds": "texts"})),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap() = wrong.clone();
        assert!(!schema::faults(&document, &schema).is_empty(), "{pointer} {wrong}");
    }
}
