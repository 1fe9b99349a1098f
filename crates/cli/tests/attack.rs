//! `attack`, `status` and `reproduce` as a user meets them.
#![cfg(feature = "papers")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn dosimeter(arguments: &str, folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}

#[test]
fn every_game_writes_scores_that_audit_reads() {
    let folder = tempfile::tempdir().unwrap();
    let run = "--noise-multiplier 0.8 --sample-rate 0.1 --steps 20 --trials 300 --seed 3";
    for game in [
        "linear",
        "zeroing",
        "quadratic --alpha 0.5",
        "shift-register",
        "repeaters --variant printed",
        "repeaters --variant analog",
        "our-loss",
    ] {
        for way in ["--observe last --direction remove", "--observe all --direction add"] {
            let arguments =
                format!("attack {game} {run} {way} --out scores.csv --force --format json");
            let output = dosimeter(&arguments, folder.path());
            assert!(
                output.status.success(),
                "{arguments}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            let document = json(&output);
            assert_eq!(document["schema"], "dosimeter.attack/1");
            assert_eq!(document["state"], "complete");
            let text = fs::read_to_string(folder.path().join("scores.csv")).unwrap();
            assert!(text.starts_with("# design: runs\nscore,member\n"), "{arguments}");
            let mut table = audit::Table::default();
            table.add_file(&folder.path().join("scores.csv")).unwrap();
            assert_eq!((table.members.len(), table.nonmembers.len()), (300, 300));
            // The positive world scores higher on average, whichever it is.
            let mean = |scores: &[f64]| scores.iter().sum::<f64>() / 300.0;
            assert!(mean(&table.members) > mean(&table.nonmembers), "{arguments}");
        }
    }
}

/// `add` is `remove` turned round: the same games, the other world positive.
#[test]
fn add_is_remove_turned_round() {
    let folder = tempfile::tempdir().unwrap();
    let run = "attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 10 --trials 50";
    assert!(dosimeter(&format!("{run} --out a.csv"), folder.path()).status.success());
    assert!(
        dosimeter(&format!("{run} --direction add --out b.csv"), folder.path()).status.success()
    );
    let read = |name: &str| {
        let mut table = audit::Table::default();
        table.add_file(&folder.path().join(name)).unwrap();
        table
    };
    let (remove, add) = (read("a.csv"), read("b.csv"));
    let negated = |scores: &[f64]| scores.iter().map(|x| -x).collect::<Vec<f64>>();
    assert_eq!(add.members, negated(&remove.nonmembers));
    assert_eq!(add.nonmembers, negated(&remove.members));
}

#[test]
fn exact_answers_need_no_playing() {
    let folder = tempfile::tempdir().unwrap();
    let output = dosimeter(
        "attack quadratic --alpha 0.5 --noise-multiplier 1 --sample-rate 0.1 --steps 3 --delta 1e-6 --format json",
        folder.path(),
    );
    let document = json(&output);
    assert_eq!(document["state"], "not played");
    let release = &document["exact"][0];
    assert_eq!(release["name"], "release");
    let (lower, upper) = (release["lower"].as_f64().unwrap(), release["upper"].as_f64().unwrap());
    // 50-digit arithmetic: 2.27487488528.
    assert!(lower <= 2.27487488528 + 5e-12 && upper >= 2.27487488528 - 5e-12, "{release}");
    assert!(upper - lower < 1e-9);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn bad_requests_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, word) in [
        ("attack linear --noise-multiplier 1 --sample-rate 1.5 --steps 3 --out a.csv", 2, "1.5"),
        ("attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 3", 2, "--out"),
        (
            "attack quadratic --alpha 2 --noise-multiplier 1 --sample-rate 0.1 --steps 3 --out a.csv",
            2,
            "alpha 2",
        ),
        (
            "attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 3 --clip-norm 2 --out a.csv",
            2,
            "clip norm",
        ),
        (
            "attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 3 --shard 4/3 --out a.csv",
            2,
            "4/3",
        ),
        (
            "attack our-loss --noise-multiplier 0.5 --sample-rate 0.01 --steps 1024 --dataset-size 1e6 --out a.csv",
            5,
            "records",
        ),
        ("status nowhere.csv", 2, "nowhere.csv"),
        ("reproduce p9-figure-9 --out figures", 2, "p9-figure-9"),
        ("reproduce last-iterate-section-4.2", 2, "--out"),
    ] {
        let output = dosimeter(arguments, folder.path());
        let narration = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments}: {narration}");
        assert!(narration.contains(word), "{arguments}: {narration}");
        assert!(!folder.path().join("a.csv").exists());
    }
}

#[test]
fn status_and_extension() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        "attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 5000 --out s.csv --trials";
    let output = dosimeter(&format!("{run} 5000 --shard 1/2"), folder.path());
    assert_eq!(output.status.code(), Some(4));
    let output = dosimeter("status s.csv --format json", folder.path());
    assert_eq!(output.status.code(), Some(4));
    let document = json(&output);
    assert_eq!(document["schema"], "dosimeter.status/1");
    assert_eq!(document["merged"], false);
    let all = document["chunks"]["all"].as_u64().unwrap();
    assert_eq!(document["chunks"]["done"].as_u64().unwrap(), all.div_ceil(2));
    assert!(dosimeter(&format!("{run} 5000"), folder.path()).status.success());
    let short = fs::read(folder.path().join("s.csv")).unwrap();
    assert!(dosimeter(&format!("{run} 6000"), folder.path()).status.success());
    let long = fs::read(folder.path().join("s.csv")).unwrap();
    assert!(long.starts_with(&short) && long.len() > short.len());
    assert_eq!(dosimeter("status s.csv.work", folder.path()).status.code(), Some(0));
}

#[test]
fn reproduce_writes_data_and_figure() {
    let folder = tempfile::tempdir().unwrap();
    let list = json(&dosimeter("reproduce --list --format json", folder.path()));
    let ids: Vec<&str> =
        list["entries"].as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap()).collect();
    for id in [
        "our-loss-figure-1",
        "our-loss-figure-2",
        "last-iterate-figure-1",
        "last-iterate-figure-3",
        "last-iterate-figure-5",
        "last-iterate-figure-6",
        "last-iterate-section-4.2",
        "last-iterate-table-2",
    ] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    let output = dosimeter("reproduce last-iterate-section-4.2 --out figures", folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["data.json", "README.md", "epsilon.csv", "alpha.svg"] {
        assert!(
            folder.path().join("figures/last-iterate-section-4.2").join(name).exists(),
            "{name}"
        );
    }
    assert!(String::from_utf8_lossy(&output.stdout).contains("2.27487"));
}
