//! `train` as a user meets it.

use assert_cmd::Command;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

fn dosimeter(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("dosimeter").unwrap();
    command.current_dir(folder);
    command
}

/// A run file and a table of two classes that a line separates.
fn prepare(folder: &Path, steps: u64) {
    let mut table = String::from("x,y,class\n");
    for i in 0..500 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        let class = if a + 0.3 * b > 0.1 { "in" } else { "out" };
        let _ = writeln!(table, "{a:.4},{b:.4},{class}");
    }
    std::fs::write(folder.join("points.csv"), &table).unwrap();
    let run = format!(
        "[run]\nnoise_multiplier = 1.0\nbatch_size = 50\nsteps = {steps}\nseed = 4\n\
         [data]\npath = \"points.csv\"\nclasses = [\"in\", \"out\"]\ntest = \"points.csv\"\n\
         [model]\nkind = \"mlp\"\nhidden = [16]\n\
         [optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\nmomentum = 0.5\n"
    );
    std::fs::write(folder.join("points.toml"), run).unwrap();
}

#[test]
fn explains_how_layers_are_clipped_and_trains_nothing() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), 200);
    let explain = |more: &[&str]| {
        let mut command = dosimeter(folder.path());
        let output = command
            .args(["train", "points.toml", "--device", "cpu", "--explain"])
            .args(more)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = explain(&[]);
    for words in ["linear 2 to 16", "linear 16 to 2", "ghost", "estimate", "records worked on"] {
        assert!(text.contains(words), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let found: serde_json::Value = serde_json::from_str(&explain(&["--format", "json"])).unwrap();
    assert_eq!(found["layers"][0]["route"], "ghost");
    assert_eq!(found["layers"].as_array().unwrap().len(), 2);
    assert_eq!(found["parameters"], 2 * 16 + 16 + 16 * 2 + 2);
    assert!(!folder.path().join("points").exists());
}

#[test]
fn trains_and_account_reads_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), 200);
    let output = dosimeter(folder.path())
        .args(["train", "points.toml", "--device", "cpu"])
        .output()
        .unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for words in ["test accuracy", "batches", "clipped", "gradient norms", "not private"] {
        assert!(answer.contains(words), "{answer}");
    }
    assert!(answer.lines().all(|line| line.chars().count() <= 80), "{answer}");
    assert!(folder.path().join("points/model.safetensors").exists());
    let ledger = std::fs::read_to_string(folder.path().join("points/ledger.json")).unwrap();
    let ledger: serde_json::Value = serde_json::from_str(&ledger).unwrap();
    assert_eq!(ledger["schema"], "dosimeter.ledger/1");
    assert_eq!(ledger["complete"], true);
    assert_eq!(ledger["noise"]["seed"], 4);
    assert!(ledger["not_private"]["test_accuracy"].as_f64().unwrap() > 0.85, "{ledger}");
    // Its schema names every key of it, and no key that is missing.
    let schema = dosimeter(folder.path()).args(["schema", "ledger"]).output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).unwrap();
    for key in ledger.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    for key in schema["required"].as_array().unwrap() {
        assert!(ledger.get(key.as_str().unwrap()).is_some(), "{key}");
    }
    // What the ledger says is what the same numbers by flags say.
    let account = |arguments: &[&str]| -> serde_json::Value {
        let output = dosimeter(folder.path())
            .args(["account", "--delta", "1e-5", "--format", "json"])
            .args(arguments)
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let flags = [
        "--noise-multiplier",
        "1",
        "--dataset-size",
        "500",
        "--batch-size",
        "50",
        "--steps",
        "200",
    ];
    let (from_ledger, by_flags) = (account(&["points/ledger.json"]), account(&flags));
    assert_eq!(from_ledger["claims"][0]["value"], by_flags["claims"][0]["value"]);
    // Again: found. Changed: refused, unless forced.
    let again = dosimeter(folder.path()).args(["train", "points.toml", "--device", "cpu"]).output();
    assert!(String::from_utf8_lossy(&again.unwrap().stderr).contains("finished already"));
    let changed =
        ["train", "points.toml", "--device", "cpu", "--noise-multiplier", "2", "--steps", "20"];
    let output = dosimeter(folder.path()).args(changed).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another training"));
    dosimeter(folder.path()).args(changed).arg("--force").assert().code(0);
}

/// kill -9 in the middle, several times: the model has the same bytes as without.
#[cfg(unix)]
#[test]
fn killed_trainings_resume_bit_exactly() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), 40_000);
    let arguments = ["train", "points.toml", "--device", "cpu", "--checkpoint-every", "0.05"];
    dosimeter(folder.path()).args(arguments).args(["--out", "whole"]).assert().code(0);
    let checkpoint = folder.path().join("parts/checkpoint.safetensors");
    let mut kills = 0;
    for _ in 0..3 {
        let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("dosimeter"))
            .current_dir(folder.path())
            .args(arguments)
            .args(["--out", "parts"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let written = || std::fs::metadata(&checkpoint).and_then(|file| file.modified()).ok();
        let (before, start) = (written(), Instant::now());
        while written() == before && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(2));
        }
        kills += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "the training was too short to be killed");
    let output =
        dosimeter(folder.path()).args(arguments).args(["--out", "parts"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("steps found"));
    let bytes = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("whole/model.safetensors") == bytes("parts/model.safetensors"));
    let ledger = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&bytes(&format!("{name}/ledger.json"))).unwrap()
    };
    let (whole, parts) = (ledger("whole"), ledger("parts"));
    for part in ["run", "not_private", "sampling", "noise", "plan"] {
        assert_eq!(whole[part], parts[part]);
    }
    assert!(parts["sessions"].as_array().unwrap().len() > 1);
}

#[test]
fn secure_noise_keeps_no_seed() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), 30);
    let output = dosimeter(folder.path())
        .args(["train", "points.toml", "--noise", "secure", "--format", "json"])
        .output()
        .unwrap();
    let ledger: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(ledger["noise"]["secure"], true);
    assert!(ledger["noise"]["seed"].is_null() && ledger["sampling"]["seed"].is_null());
    assert!(!folder.path().join("points/checkpoint.safetensors").exists());
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    prepare(folder.path(), 10);
    let good = std::fs::read_to_string(folder.path().join("points.toml")).unwrap();
    for (from, to, words) in [
        ("learning_rate = 0.5", "learning_rat = 0.5", "learning_rat"),
        ("momentum = 0.5", "momentum = 1.5", "momentum 1.5"),
        ("kind = \"mlp\"", "kind = \"mpl\"", "mlp"),
        ("hidden = [16]", "hidden = [0]", "a hidden layer of 0 numbers"),
        ("batch_size = 50", "batch_size = 5000", "larger than the data set"),
        ("batch_size = 50", "batch_size = 50\ndataset_size = 499", "500 records"),
        ("seed = 4", "seed = -4", "seed -4"),
        ("points.csv\"\nclasses", "nowhere.csv\"\nclasses", "nowhere.csv"),
        ("[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\nmomentum = 0.5\n", "", "[optimizer]"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good, "{from}");
        std::fs::write(folder.path().join("bad.toml"), text).unwrap();
        let output = dosimeter(folder.path())
            .args(["train", "bad.toml", "--device", "cpu"])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{to}: {error}");
        assert!(error.contains(words), "{to}: {error}");
    }
    let output = dosimeter(folder.path())
        .args(["train", "points.toml", "--device", "tpu"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("auto, cpu, cuda:N"));
}
