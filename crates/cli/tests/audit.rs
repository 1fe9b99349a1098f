//! `audit` and `plan` through the binary: exit codes, the JSON of the interface, refusals.

use assert_cmd::Command;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use tempfile::TempDir;

fn dosimeter(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("dosimeter").unwrap().args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Scores i/n for non-members, shifted for members: no randomness, known errors.
fn write_scores(folder: &TempDir, name: &str, n: u32, shift: u32, head: &str) -> String {
    let mut text = format!("{head}score,member\n");
    for i in 0..n {
        writeln!(text, "{i},0\n{},1", i + shift).unwrap();
    }
    let path: PathBuf = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn json(arguments: &[&str]) -> (i32, Value) {
    let (code, stdout, stderr) = dosimeter(&[arguments, &["--format", "json"]].concat());
    let value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    (code, value)
}

#[test]
fn the_document_of_the_interface() {
    let folder = TempDir::new().unwrap();
    let scores = write_scores(&folder, "s.csv", 1000, 600, "");
    let (code, document) = json(&["audit", &scores, "--delta", "1e-5"]);
    assert_eq!(code, 0);
    assert_eq!(document["schema"], "dosimeter.audit/1");
    assert_eq!(document["design"], "runs");
    let bound = &document["bounds"][0];
    assert_eq!(bound["method"], "clopper-pearson");
    assert_eq!(bound["threshold_rule"], "union");
    assert_eq!(bound["delta"], 1e-5);
    assert_eq!(bound["confidence"], 0.95);
    assert_eq!(bound["valid_for"], "any mechanism");
    assert_eq!(bound["primary"], true);
    // 600 of 1000 members above all non-members: TPR at least about 0.54 at FPR at most 0.007.
    let epsilon = bound["epsilon_lower"].as_f64().unwrap();
    assert!(epsilon > 4.0 && epsilon < 5.0, "{epsilon}");
    for key in ["value", "lower", "upper"] {
        assert!(document["auroc"][key].is_number(), "{key}");
        assert!(document["tpr"][0][key].is_number(), "{key}");
    }
    assert_eq!(document["tpr"][0]["fpr"], 0.001);
    assert!(document["hashes"]["scores"].as_str().unwrap().starts_with("sha256:"));
    assert!(document["warnings"].as_array().unwrap().is_empty());
    // The same scores from another format have the same hash; another plan has another one.
    let (_, again) = json(&["audit", &scores, "--delta", "1e-5", "--confidence", "0.99"]);
    assert_eq!(again["hashes"]["scores"], document["hashes"]["scores"]);
    assert_ne!(again["hashes"]["plan"], document["hashes"]["plan"]);
}

#[test]
fn every_method_is_labelled() {
    let folder = TempDir::new().unwrap();
    let scores = write_scores(&folder, "s.csv", 300, 30, "");
    let (code, document) = json(&[
        "audit",
        &scores,
        "--delta",
        "1e-5",
        "--method",
        "all",
        "--sample-rate",
        "0.2",
        "--steps",
        "10",
    ]);
    assert_eq!(code, 0);
    let bounds = document["bounds"].as_array().unwrap();
    let find = |name: &str| bounds.iter().find(|bound| bound["method"] == name).unwrap();
    assert!(find("bayes")["credibility"].is_number() && find("bayes")["confidence"].is_null());
    assert!(
        find("grid")["epsilon_estimate"].is_number() && find("grid")["epsilon_lower"].is_null()
    );
    assert!(find("gdp")["valid_for"].as_str().unwrap().contains("Gaussian"));
    assert!(find("composition")["noise_multiplier_upper"].as_f64().unwrap() > 0.2);
    assert_eq!(bounds.iter().filter(|bound| bound["primary"] == true).count(), 1);
    let not_valid: Vec<&str> = document["not_valid"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["method"].as_str().unwrap())
        .collect();
    assert_eq!(not_valid, ["one-run", "one-run-gdp", "one-run-independent", "gaussian-pair"]);
}

#[test]
fn a_claim_is_judged() {
    let folder = TempDir::new().unwrap();
    let run = folder.path().join("run.toml");
    std::fs::write(&run, "[run]\nnoise_multiplier = 4.0\nsample_rate = 0.01\nsteps = 100\n")
        .unwrap();
    let run = run.to_str().unwrap();
    let judged = |scores: &str| json(&["audit", scores, "--delta", "1e-5", "--claim", run]);
    let (code, document) = judged(&write_scores(&folder, "leaks.csv", 1000, 900, ""));
    assert_eq!((code, &document["verdict"]["status"]), (3, &Value::from("contradiction")));
    let (code, document) = judged(&write_scores(&folder, "nothing.csv", 1000, 0, ""));
    assert_eq!((code, &document["verdict"]["status"]), (0, &Value::from("inconclusive")));
    let (code, document) = judged(&write_scores(&folder, "few.csv", 3, 3, ""));
    assert_eq!((code, &document["verdict"]["status"]), (0, &Value::from("inconclusive")));
    assert!(document["verdict"]["reason"].as_str().unwrap().contains("even a perfect attack"));
    std::fs::write(run, "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.1\nsteps = 100\n").unwrap();
    // Epsilon about 6.3; 4000 rows per side could show 6.4, and show about 3.
    let (code, document) = judged(&write_scores(&folder, "some.csv", 20_000, 3_000, ""));
    assert_eq!(
        (code, &document["verdict"]["status"]),
        (0, &Value::from("consistent")),
        "{document}"
    );
}

/// A claim about any way to draw batches is refuted by scores that leak more than it allows, with the bound of any
/// mechanism and within its own family, and not by scores that leak nothing.
#[test]
fn claims_about_every_way_to_draw_batches_are_judged() {
    let folder = TempDir::new().unwrap();
    let leaking = write_scores(&folder, "leaks.csv", 1000, 900, "");
    let healthy = write_scores(&folder, "nothing.csv", 1000, 0, "");
    let common = "-d 1e-5 -s 8 --dataset-size 1000 --batch-size 100 -T 100";
    let schemes = [
        "--sampling poisson",
        "--sampling poisson --adjacency substitute",
        "--sampling shuffle --adjacency zero-out",
        "--sampling shuffle --adjacency substitute --permutation kept",
        "--sampling fixed-size",
        "--sampling fixed-size --adjacency substitute",
        "--sampling fixed-size --adjacency zero-out --replacement",
        "--sampling balls-and-bins",
        "--sampling balls-and-bins --adjacency substitute",
        "--sampling balls-and-bins --adjacency zero-out --uses-per-epoch 2",
        "--sampling truncated-poisson --max-batch-size 110",
        "--sampling truncated-poisson --adjacency substitute --max-batch-size 110",
        "--sampling cyclic-poisson --cycle-length 5",
        "--sampling in-order --adjacency zero-out",
    ];
    let judged = |scheme: &str| {
        for primary in ["clopper-pearson", "composition"] {
            for (scores, refuted) in [(&leaking, true), (&healthy, false)] {
                // With replacement the family takes about 10 s, which is the usual limit.
                let words = format!(
                    "audit {scores} {common} {scheme} --primary {primary} --time-limit 100"
                );
                let (code, document) = json(&words.split_whitespace().collect::<Vec<_>>());
                assert_eq!(code, if refuted { 3 } else { 0 }, "{words}: {document}");
                let told = document["verdict"]["status"] == "contradiction";
                assert_eq!(told, refuted, "{words}: {document}");
            }
        }
    };
    // A few of them take most of the time: side by side.
    std::thread::scope(|scope| {
        for scheme in schemes {
            scope.spawn(move || judged(scheme));
        }
    });
}

#[test]
fn one_run_needs_fair_coins() {
    let folder = TempDir::new().unwrap();
    let fair = write_scores(&folder, "fair.csv", 200, 120, "# design: one-run\n");
    let (code, document) = json(&["audit", &fair, "--delta", "0", "--method", "all"]);
    assert_eq!((code, &document["design"]), (0, &Value::from("one-run")));
    assert_eq!(document["bounds"][0]["method"], "one-run");
    assert!(document["bounds"][0]["epsilon_lower"].as_f64().unwrap() > 1.0);
    let mut text = String::from("score,member\n");
    for i in 0..2200 {
        writeln!(text, "{i},{}", u8::from(i % 11 != 0)).unwrap();
    }
    let unfair = folder.path().join("unfair.csv");
    std::fs::write(&unfair, text).unwrap();
    let unfair = unfair.to_str().unwrap();
    let (code, _, stderr) =
        dosimeter(&["audit", unfair, "--design", "one-run", "--method", "one-run"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("2000 of 2200 canaries are members"), "{stderr}");
    let (code, document) = json(&["audit", unfair, "--design", "one-run", "--method", "all"]);
    assert_eq!(code, 0);
    assert!(document["bounds"].as_array().unwrap().is_empty());
    assert_eq!(document["not_valid"].as_array().unwrap().len(), 10);
}

#[test]
fn refusals_name_the_place() {
    let folder = TempDir::new().unwrap();
    let good = write_scores(&folder, "good.csv", 10, 2, "");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let nan = file("nan.csv", "score,member\n1,1\nNaN,0\n");
    let one_class = file("one.csv", "score,member\n1,1\n2,1\n");
    let headless = file("headless.csv", "1,1\n2,0\n");
    for (arguments, expected) in [
        (vec!["audit"], "there are no scores"),
        (vec!["audit", "/no/such/file.csv"], "/no/such/file.csv"),
        (vec!["audit", &nan], "nan.csv, row 3: the score is NaN"),
        (vec!["audit", &one_class], "one.csv: there is no non-member score"),
        (vec!["audit", &headless], "row 1: the header `1,1` does not name"),
        (
            vec!["audit", &good, "--method", "one-run"],
            "method one-run needs canaries of one training",
        ),
        (vec!["audit", &good, "--method", "composition"], "needs --sample-rate and --steps"),
        (vec!["audit", &good, "--method", "magic"], "method `magic` is not one of"),
        (vec!["audit", &good, "--threshold", "best"], "threshold rule `best`"),
        (vec!["audit", &good, "--primary", "grid"], "cannot be primary"),
        (vec!["audit", &good, "--delta", "-1"], "delta -1 is outside [0, 1); give e.g. 1e-5, or 0"),
        (
            vec!["audit", &good, "--confidence", "95"],
            "confidence 95 is outside (0, 1); give e.g. 0.95",
        ),
        (vec!["plan"], "nothing to plan for"),
        (vec!["plan", "--target-epsilon", "1"], "no attack is assumed"),
        (vec!["plan", "--target-epsilon", "9", "--delta", "1e-5", "--mu", "1"], "cannot be shown"),
    ] {
        let (code, stdout, stderr) = dosimeter(&arguments);
        assert_eq!(code, 2, "{arguments:?}: {stderr}");
        assert!(stdout.is_empty() && stderr.contains(expected), "{arguments:?}: {stderr}");
    }
}

/// The hash that was published beforehand is the one that the audit prints.
#[test]
fn a_published_plan_is_recognised() {
    let folder = TempDir::new().unwrap();
    let scores = write_scores(&folder, "s.csv", 100, 30, "");
    let options = ["--delta", "1e-5", "--confidence", "0.9", "--primary", "gdp"];
    let (_, before) = json(&[&["audit", "--plan-only"], &options[..]].concat());
    assert_eq!(before["schema"], "dosimeter.audit-commitment/1");
    let (_, after) = json(&[&["audit", &scores], &options[..]].concat());
    assert_eq!(before["hash"], after["hashes"]["plan"]);
    assert_eq!(before["plan"], after["plan"]);
    let (_, other) = json(&["audit", &scores, "--delta", "1e-5"]);
    assert_ne!(before["hash"], other["hashes"]["plan"]);
}

/// The column `run` tells the design, and shows when no bound is valid.
#[test]
fn rows_of_one_training_are_not_taken_for_trainings() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, run: &dyn Fn(u32) -> u32| {
        let mut text = String::from("run,score,member\n");
        for i in 0..200 {
            writeln!(text, "{},{i},{}", run(i), u8::from(i % 2 == 0)).unwrap();
        }
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (code, document) = json(&["audit", &write("runs.csv", &|i| i)]);
    assert_eq!((code, &document["design"]), (0, &Value::from("runs")));
    let (code, document) = json(&["audit", &write("one.csv", &|_| 7)]);
    assert_eq!((code, &document["design"]), (0, &Value::from("one-run")));
    for extra in [&[][..], &["--design", "runs"], &["--design", "one-run"]] {
        let mixed = write("mixed.csv", &|i| i / 10);
        let (code, _, stderr) = dosimeter(&[&["audit", &mixed], extra].concat());
        assert_eq!(code, 2);
        assert!(stderr.contains("some rows share an entry of the column `run`"), "{stderr}");
    }
    let (code, _, stderr) = dosimeter(&["audit", &write("one.csv", &|_| 7), "--design", "runs"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("the file says that the design is one-run"), "{stderr}");
}

#[test]
fn figures_are_svg() {
    let folder = TempDir::new().unwrap();
    let scores = write_scores(&folder, "s.csv", 200, 100, "");
    for figure in ["roc", "histogram", "ladder"] {
        let (code, stdout, stderr) =
            dosimeter(&["audit", &scores, "--figure", figure, "--format", "svg"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stdout.starts_with("<svg") || stdout.starts_with("<?xml"), "{figure}");
    }
}

/// The planned number of runs suffices, and far fewer do not.
#[test]
fn a_plan_is_enough_and_not_far_too_much() {
    let (code, document) = json(&["plan", "--target-epsilon", "1", "--mu", "1", "--power", "0.8"]);
    assert_eq!(code, 0);
    assert_eq!(document["schema"], "dosimeter.plan/1");
    let runs = document["needed"]["runs_per_side"].as_u64().unwrap();
    assert!((100..600).contains(&runs), "{runs}");
    assert!(document["achieved_power"].as_f64().unwrap() >= 0.8);
    let (_, fixed) = json(&["plan", "--target-epsilon", "1", "--mu", "1", "--threshold", "fixed"]);
    assert!((300..1500).contains(&fixed["needed"]["runs_per_side"].as_u64().unwrap()));
    for rule in ["holdout", "k-fold", "dkw"] {
        let (code, other) =
            json(&["plan", "--target-epsilon", "1", "--mu", "1", "--threshold", rule]);
        assert_eq!((code, &other["power_simulated"]), (0, &Value::from(true)));
        assert!(
            (500..5000).contains(&other["needed"]["runs_per_side"].as_u64().unwrap()),
            "{rule}"
        );
    }
    let (_, canaries) =
        json(&["plan", "--target-epsilon", "1", "--mu", "1.5", "--design", "one-run"]);
    assert!((30..200).contains(&canaries["needed"]["canaries"].as_u64().unwrap()));
}
