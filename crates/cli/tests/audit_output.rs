//! What a person and a program read from `audit` and `plan`, whole: arguments, exit code, both
//! streams, the JSON document, the figures.

use crate::support;

use std::fmt::Write as _;
use support::Bench;

const RUN: &str = "[run]\nnoise_multiplier = 4.0\nsample_rate = 0.01\nsteps = 100\n";

/// Scores without randomness: the same on every machine.
fn bench() -> Bench {
    let mut rows = String::from("score,member\n");
    for i in 0..500 {
        writeln!(rows, "{i},0\n{},1", i + 350).unwrap();
    }
    let reversed = rows.replace(",0\n", ",x\n").replace(",1\n", ",0\n").replace(",x\n", ",1\n");
    Bench::new()
        .file("scores.csv", &format!("# design: runs\n{rows}"))
        .file("one.csv", &format!("# design: one-run\n{rows}"))
        .file("reversed.csv", &format!("# design: runs\n{reversed}"))
        .file("run.toml", RUN)
}

#[test]
fn audits_of_trainings() {
    let bench = bench();
    insta::assert_snapshot!("runs", bench.show("audit scores.csv --delta 1e-5"));
    let fixed = "audit scores.csv --delta 1e-5 --claim run.toml --threshold fixed:400";
    insta::assert_snapshot!("contradiction", bench.show(fixed));
    let all = "audit scores.csv --delta 1e-3 --method all --sample-rate 1 --steps 4 --joint";
    insta::assert_snapshot!("all_methods", bench.show(all));
    insta::assert_snapshot!(
        "reversed",
        bench.show("audit reversed.csv --claim run.toml --delta 1e-5")
    );
}

#[test]
fn audits_of_one_training() {
    let bench = bench();
    insta::assert_snapshot!("one_run", bench.show("audit one.csv --delta 1e-5 --method all"));
    insta::assert_snapshot!("one_run_zero", bench.show("audit one.csv --delta 1e-2"));
    // The table shows every number as the document does, estimates too.
    let all = "audit one.csv --delta 1e-5 --method all";
    let (text, document) = (bench.run(all).1, bench.json(&format!("{all} --format json")));
    for bound in document["bounds"].as_array().unwrap() {
        let (method, shown) = (bound["method"].as_str().unwrap(), bound["shown"].as_str().unwrap());
        let row = text.lines().find(|line| line.trim().starts_with(&format!("{method} ")));
        assert!(row.is_some_and(|row| row.contains(&format!(" {shown}"))), "{method}: {row:?}");
    }
}

#[test]
fn plans() {
    let bench = bench();
    insta::assert_snapshot!("commitment", bench.show("audit --plan-only --delta 1e-5"));
    insta::assert_snapshot!("plan", bench.show("plan --target-epsilon 1 --mu 1"));
    let one_run = "plan --target-epsilon 1 --mu 1.5 --design one-run";
    insta::assert_snapshot!("plan_one_run", bench.show(one_run));
}

/// Numbers with nine digits: the last ones may differ between processors.
#[test]
fn the_document() {
    let bench = bench();
    let all = "audit scores.csv --delta 1e-3 --method all --sample-rate 1 --steps 4 --format json";
    let mut document = bench.json(all);
    round(&mut document);
    insta::assert_snapshot!("document", serde_json::to_string_pretty(&document).unwrap());
    let mut document = bench.json("audit one.csv --delta 1e-5 --method all --format json");
    round(&mut document);
    insta::assert_snapshot!("document_one_run", serde_json::to_string_pretty(&document).unwrap());
}

#[test]
fn figures() {
    let bench = bench();
    for figure in ["roc", "histogram", "ladder"] {
        // A ladder of one rung shows little; its slowest rung takes half of the usual limit.
        let methods = if figure == "ladder" { " --method all --time-limit 100" } else { "" };
        let line = format!(
            "audit scores.csv --delta 1e-5 --claim run.toml{methods} --format svg --figure {figure}"
        );
        insta::assert_snapshot!(format!("figure_{figure}"), unnamed(&bench.show(&line)));
    }
}

/// Without the figure's identifier, a hash of all digits of its data: the last ones may differ
/// between processors, and the drawing rounds them away.
fn unnamed(svg: &str) -> String {
    let mut parts = svg.split("figure-");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hash = part.get(..8).is_some_and(|id| id.bytes().all(|b| b.is_ascii_hexdigit()));
        out += "figure-";
        out += if hash { &part[8..] } else { part };
    }
    out
}

fn round(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Number(number) if number.is_f64() => {
            let text = format!("{:.8e}", number.as_f64().unwrap_or(f64::NAN));
            *value = serde_json::json!(text.parse::<f64>().unwrap_or(f64::NAN));
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(round),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(round),
        _ => {}
    }
}
