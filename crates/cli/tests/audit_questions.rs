//! Further questions of `audit` and `attack`: a claim in flags, scores that know their run, audits in the
//! order of their trials, attacks on a matrix of losses.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn dosimeter(folder: &TempDir, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("dosimeter")
        .unwrap()
        .current_dir(folder.path())
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(folder: &TempDir, arguments: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = dosimeter(folder, &[arguments, &["--format", "json"]].concat());
    let value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    (code, value)
}

const GAME: [&str; 11] = [
    "attack",
    "linear",
    "--noise-multiplier",
    "1",
    "--sample-rate",
    "0.1",
    "--steps",
    "50",
    "--out",
    "s.csv",
    "--trials=2000",
];

#[test]
fn a_claim_in_flags_is_the_claim_of_a_file() {
    let folder = TempDir::new().unwrap();
    assert_eq!(dosimeter(&folder, &GAME).0, 0);
    let file = ["audit", "s.csv", "--delta", "1e-5", "--claim", "s.csv.run.json"];
    let flags = [
        "audit",
        "s.csv",
        "--delta",
        "1e-5",
        "--noise-multiplier",
        "1",
        "--sample-rate",
        "0.1",
        "--steps",
        "50",
    ];
    let (one, other) = (json(&folder, &file), json(&folder, &flags));
    assert_eq!(one.0, 0);
    assert_eq!(one.1["verdict"], other.1["verdict"]);
    assert_eq!(one.1["verdict"]["claimed_epsilon"], other.1["verdict"]["claimed_epsilon"]);
    // Rate and steps alone claim nothing; they are for the families.
    let (code, document) = json(
        &folder,
        &[
            "audit",
            "s.csv",
            "--delta",
            "1e-5",
            "--sample-rate",
            "0.1",
            "--steps",
            "50",
            "--method",
            "composition",
        ],
    );
    assert_eq!(code, 0);
    assert!(document["verdict"].is_null());
    assert_eq!(document["bounds"][1]["method"], "composition");
    // A flag that is neither is refused.
    let (code, _, stderr) = dosimeter(
        &folder,
        &["audit", "s.csv", "--sample-rate", "0.1", "--steps", "5", "--sampling", "shuffle"],
    );
    assert_eq!(code, 2);
    assert!(stderr.contains("--noise-multiplier"), "{stderr}");
}

#[test]
fn scores_of_another_run_are_refused_with_the_difference() {
    let folder = TempDir::new().unwrap();
    assert_eq!(dosimeter(&folder, &GAME).0, 0);
    let other = [
        "audit",
        "s.csv",
        "--delta",
        "1e-5",
        "--noise-multiplier",
        "2",
        "--sample-rate",
        "0.1",
        "--steps",
        "50",
    ];
    let (code, _, stderr) = dosimeter(&folder, &other);
    assert_eq!(code, 2);
    assert!(stderr.contains("noise multiplier 1, claimed 2"), "{stderr}");
    assert!(stderr.contains("--other-run"), "{stderr}");
    let (code, document) = json(&folder, &[&other[..], &["--other-run"]].concat());
    assert!(code == 0 || code == 3);
    assert!(document["verdict"]["status"].is_string());
    // A number claims nothing about the run.
    assert_eq!(json(&folder, &["audit", "s.csv", "--delta", "1e-5", "--claim-epsilon", "9"]).0, 0);
}

#[test]
fn an_audit_in_the_order_of_its_trials() {
    let folder = TempDir::new().unwrap();
    assert_eq!(dosimeter(&folder, &GAME).0, 0);
    let ask = |claim: &str| {
        json(
            &folder,
            &["audit", "s.csv", "--sequential", "--delta", "0.01", "--claim-epsilon", claim],
        )
    };
    let (code, document) = ask("0.05");
    assert_eq!(code, 3, "{document}");
    assert_eq!(document["schema"], "dosimeter.sequential-audit/1");
    let refuted = document["refuted_at"].as_u64().unwrap();
    assert!(refuted > 32 && refuted < 4000, "{refuted}");
    assert!(document["epsilon_lower"].as_f64().unwrap() > 0.05);
    // What is shown is a claim as any other, and so is what it is compared with.
    let bound = &document["bound"];
    assert_eq!((&bound["method"], &bound["standing"]), (&"sequential".into(), &"measured".into()));
    assert_eq!((&bound["side"], &bound["confidence"]), (&"lower".into(), &0.95.into()));
    assert_eq!(bound["value"], document["epsilon_lower"]);
    assert!(bound["shown"].as_str().unwrap().starts_with(">= "));
    assert_eq!(document["claim"]["upper"], 0.05);
    assert_eq!(document["verdict"]["status"], "contradiction");
    let (code, document) = ask("6");
    assert_eq!(code, 0);
    assert!(document["refuted_at"].is_null());
    assert_eq!(document["verdict"]["status"], "inconclusive");
    let (code, _, stderr) =
        dosimeter(&folder, &["audit", "s.csv", "--sequential", "--method", "gdp"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("one method"), "{stderr}");
    // Rows of unknown origin may be canaries of one training, whose bound this is not.
    let table = std::fs::read_to_string(folder.path().join("s.csv")).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| !line.starts_with('#')).collect();
    std::fs::write(folder.path().join("plain.csv"), rows.join("\n")).unwrap();
    for (file, told) in [("s.csv", false), ("plain.csv", true)] {
        let (_, _, stderr) = dosimeter(&folder, &["audit", file, "--sequential"]);
        assert_eq!(stderr.contains("taken as a separate training"), told, "{file}: {stderr}");
    }
}

#[test]
fn trials_are_added_until_it_is_decided() {
    let folder = TempDir::new().unwrap();
    let game = |claim: &str, out: &str| {
        json(
            &folder,
            &[
                "attack",
                "linear",
                "--noise-multiplier",
                "0.5",
                "--sample-rate",
                "0.1",
                "--steps",
                "50",
                "--trials",
                "20000",
                "--until-decided",
                "--claim-epsilon",
                claim,
                "--delta",
                "1e-5",
                "--out",
                out,
            ],
        )
    };
    let (code, document) = game("0.2", "few.csv");
    assert_eq!(code, 3, "{document}");
    assert_eq!(document["decided"]["decision"], "refuted");
    assert!(document["trials"].as_u64().unwrap() < 20_000);
    // No number of trials refutes this one; that is said long before all are made.
    let (code, document) = game("30", "stopped.csv");
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["decided"]["decision"], "out-of-reach");
    assert!(document["trials"].as_u64().unwrap() < 20_000);
    let (code, _, stderr) = dosimeter(
        &folder,
        &[
            "attack",
            "linear",
            "--noise-multiplier",
            "0.5",
            "--sample-rate",
            "0.1",
            "--steps",
            "50",
            "--until-decided",
            "--out",
            "x.csv",
        ],
    );
    assert_eq!(code, 2);
    assert!(stderr.contains("delta"), "{stderr}");
}

/// A .npy file of doubles.
fn write_npy(path: &Path, rows: usize, columns: usize, values: &[f64]) {
    std::fs::write(path, formats::npy::doubles(&[rows, columns], values)).unwrap();
}

#[test]
fn a_matrix_of_losses_is_attacked() {
    let folder = TempDir::new().unwrap();
    let (models, records) = (60, 50);
    let mut state = 1_u64;
    let mut coin = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let members: Vec<f64> =
        (0..models * records).map(|_| f64::from(u8::from(coin() < 0.5))).collect();
    // Record 7 is remembered, the others hardly.
    let losses: Vec<f64> = members
        .iter()
        .enumerate()
        .map(|(place, member)| {
            let strength = if place % records == 7 { 6.0 } else { 1.0 };
            2.0 * coin() + if *member == 1.0 { 0.1 } else { strength * 0.3 + 0.1 }
        })
        .collect();
    write_npy(&folder.path().join("losses.npy"), models, records, &losses);
    write_npy(&folder.path().join("members.npy"), models, records, &members);
    for attack in [
        &["lira"][..],
        &["lira", "--offline", "--fixed-variance"],
        &["rmia"],
        &["rmia", "--offline"],
    ] {
        let (name, flags) = attack.split_first().unwrap();
        let arguments =
            [&["attack", name, "losses.npy", "members.npy", "--out", "out.csv"][..], flags]
                .concat();
        let (code, document) = json(&folder, &arguments);
        assert_eq!(code, 0);
        assert_eq!(document["schema"], "dosimeter.membership/1");
        assert_eq!(document["records"], 50);
        assert_eq!(document["at_risk"][0]["record"], 7, "{document}");
        // The others leak too, hardly.
        let shown = |row: usize| document["at_risk"][row]["epsilon_lower"].as_f64().unwrap();
        assert!(shown(0) > 0.0 && shown(1) < 0.5 * shown(0), "{document}");
        // What is shown is never above what was found.
        for row in document["at_risk"].as_array().unwrap() {
            let text = row["shown"].as_str().and_then(|text| text.strip_prefix(">= ")).unwrap();
            let (found, quoted) = (row["epsilon_lower"].as_f64().unwrap(), text.parse().unwrap());
            assert!((0.999 * found..=found).contains(&quoted), "{row}");
        }
        let (code, audited) = json(&folder, &["audit", "out.csv"]);
        assert_eq!((code, &audited["design"]), (0, &Value::from("one-run")));
    }
    let (code, _, stderr) = dosimeter(&folder, &["attack", "lira", "losses.npy", "losses.npy"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("not 1"), "{stderr}");
    let (code, text, _) = dosimeter(&folder, &["attack", "lira", "losses.npy", "members.npy"]);
    assert_eq!(code, 0);
    assert!(text.contains("Records most at risk"), "{text}");
}

#[test]
fn figures_and_plans_know_every_way_to_draw_batches() {
    let folder = TempDir::new().unwrap();
    let mut csv = String::from("score,member\n");
    for number in 0..200 {
        csv.push_str(&format!("{},1\n{number},0\n", number + 5));
    }
    std::fs::write(folder.path().join("scores.csv"), csv).unwrap();
    let run = "--noise-multiplier 4 --dataset-size 1000 --batch-size 100 --steps 200";
    for scheme in [
        "--sampling fixed-size --adjacency substitute",
        "--sampling shuffle --adjacency zero-out",
        "--sampling balls-and-bins --adjacency zero-out",
        "--sampling cyclic-poisson --cycle-length 2",
    ] {
        let drawn = format!("audit scores.csv --delta 1e-5 --format svg {run} {scheme}");
        let words: Vec<&str> = drawn.split_whitespace().collect();
        let (code, svg, stderr) = dosimeter(&folder, &words);
        assert_eq!(code, 0, "{scheme}: {stderr}");
        assert!(svg.contains("most that the claimed run allows"), "{scheme}");
        let planned = format!("plan --target-epsilon 0.1 --delta 1e-5 {run} {scheme}");
        let words: Vec<&str> = planned.split_whitespace().collect();
        let (code, document) = json(&folder, &words);
        assert_eq!(code, 0, "{scheme}: {document}");
        assert!(document["needed"]["runs"].as_u64().unwrap() > 10, "{scheme}: {document}");
    }
}
