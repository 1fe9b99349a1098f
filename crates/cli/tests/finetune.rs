//! `train` and `tune grid` for language models, as a user meets them.
#![cfg(feature = "language")]

use assert_cmd::Command;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn dosimeter(folder: &Path) -> Command {
    let mut command = Command::cargo_bin("dosimeter").unwrap();
    command.current_dir(folder);
    command
}

fn stories(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../language/tests/data/stories260K").join(name)
}

/// Texts about people who do not exist, secrets among them, and a run file.
fn prepare(folder: &Path, model: &str, steps: u64, rest: &str) {
    let colours = ["red", "blue", "green", "black"];
    let (mut texts, mut secrets) = (String::new(), String::new());
    for i in 0..32 {
        let (name, colour) = (["Tom", "Ann", "Sue", "Ben"][i % 4], colours[i % 4]);
        let again = "again ".repeat(i / 4);
        let _ = writeln!(
            texts,
            "{{\"question\":\"What does {name} like {again}?\",\"answer\":\" {name} likes {colour}.\"}}"
        );
        if i < 4 {
            let _ = writeln!(
                secrets,
                "{{\"prompt\":\"What does {name} like ?\",\"target\":\" {name} likes {colour}\",\"attribute\":\"{colour}\"}}"
            );
        }
    }
    std::fs::write(folder.join("texts.jsonl"), texts).unwrap();
    std::fs::write(folder.join("secrets.jsonl"), secrets).unwrap();
    let run = format!(
        "[run]\nbatch_size = 8\nsteps = {steps}\nclip_norm = 0.5\nseed = 3\n{rest}\
         [data]\npath = \"texts.jsonl\"\ntest = \"texts.jsonl\"\nprompt = \"question\"\ncompletion = \"answer\"\n\
         [model]\nkind = \"language\"\npath = '{}'\ntokenizer = '{}'\nlength = 40\n{model}\
         [optimizer]\nkind = \"adam\"\nlearning_rate = 1e-2\n",
        stories("stories260K.bin").display(),
        stories("tok512.bin").display()
    );
    std::fs::write(folder.join("tune.toml"), run).unwrap();
}

fn answer(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let output = dosimeter(folder).args(arguments).args(["--format", "json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// `train` has no flag for a tokenizer: the file has a key.
#[test]
fn a_missing_tokenizer_is_asked_for_where_it_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let run = "[run]\nnoise_multiplier = 1\nbatch_size = 1\nsteps = 1\n[data]\npath = \"texts.jsonl\"\n\
               [optimizer]\nkind = \"sgd\"\nlearning_rate = 0.1\n[model]\nkind = \"language\"\n";
    let alone = format!("{run}path = \"model.bin\"\n");
    std::fs::copy(stories("stories260K.bin"), folder.path().join("model.bin")).unwrap();
    std::fs::write(folder.path().join("texts.jsonl"), "{\"text\":\"one day\"}\n").unwrap();
    std::fs::write(folder.path().join("run.toml"), alone).unwrap();
    let output = dosimeter(folder.path()).args(["train", "run.toml"]).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("tokenizer = \"FILE\"") && !told.contains("--tokenizer"), "{told}");
}

#[test]
fn from_text_to_ledger_memorisation_and_audit() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepare(here, "rank = 4\nembedding = true\n", 25, "[canaries]\ncount = 60\nprefix = 4\n");
    let ledger = answer(here, &["train", "tune.toml", "--target-epsilon", "8", "--out", "tuned"]);
    assert_eq!(ledger["schema"], "dosimeter.ledger/1");
    assert_eq!(ledger["model"]["kind"], "language");
    assert_eq!((&ledger["run"]["steps"], &ledger["complete"]), (&25.into(), &true.into()));
    assert!(ledger["not_private"]["test_loss"].as_f64().unwrap() > 0.0, "{ledger}");
    // The noise was calibrated to (8, 32^-1.1), on the safe side.
    let delta = (32f64).powf(-1.1).to_string();
    let account = answer(here, &["account", "tuned/ledger.json", "--delta", &delta]);
    let claims = account["claims"].as_array().unwrap();
    let claim = claims
        .iter()
        .find(|c| c["lens"] == "composition" && c["quantity"] == "epsilon")
        .unwrap_or_else(|| panic!("{account}"));
    let epsilon = claim["upper"].as_f64().unwrap();
    assert!(epsilon <= 8.0 && epsilon > 7.99, "{epsilon}");
    // Canaries are a one-run design.
    let audit = answer(here, &["audit", "tuned/canaries.csv", "--delta", "1e-3"]);
    assert_eq!(audit["design"], "one-run");
    let table = std::fs::read_to_string(here.join("tuned/canaries.csv")).unwrap();
    assert_eq!(table.lines().count(), 62, "{table}");
    // What was trained is what is asked.
    let (model, tokenizer) = (stories("stories260K.bin"), stories("tok512.bin"));
    let base = ["memorize", "air", "--model", model.to_str().unwrap(), "--tokenizer"];
    let base = [&base[..], &[tokenizer.to_str().unwrap(), "--secrets", "secrets.jsonl"]].concat();
    let plain = answer(here, &base);
    let tuned = answer(here, &[&base[..], &["--tuned", "tuned"]].concat());
    assert_eq!(plain["secrets"], tuned["secrets"]);
    // A second time there is nothing to do; another training does not overwrite it.
    let again = dosimeter(here)
        .args(["train", "tune.toml", "--target-epsilon", "8", "--out", "tuned"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("was finished already"));
    let other = dosimeter(here)
        .args(["train", "tune.toml", "--noise-multiplier", "3", "--out", "tuned"])
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&other.stderr).contains("holds another training"));
}

#[test]
fn killed_and_resumed_it_ends_in_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    for (name, model) in [("lora", "rank = 2\n"), ("full", "train = \"full\"\n")] {
        prepare(here, model, 120, "");
        let train = |out: &str, threads: &str| {
            let mut command = dosimeter(here);
            command.args(["train", "tune.toml", "--noise-multiplier", "1", "--checkpoint-every"]);
            command.args(["0.05", "--out", out, "--threads", threads]);
            command
        };
        let whole = format!("{name}-whole");
        assert!(train(&whole, "1").output().unwrap().status.success());
        let cut = format!("{name}-cut");
        let program = assert_cmd::cargo::cargo_bin("dosimeter");
        let mut child = std::process::Command::new(program)
            .current_dir(here)
            .args(["train", "tune.toml", "--noise-multiplier", "1", "--checkpoint-every", "0.05"])
            .args(["--out", &cut, "--threads", "2"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        let checkpoint = here.join(&cut).join("checkpoint.safetensors");
        while !checkpoint.exists() && begin.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(100));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(checkpoint.exists(), "{name}: it was finished before it was killed");
        let output = train(&cut, "1").output().unwrap();
        let narration = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && narration.contains("resumed after step"), "{narration}");
        let bytes = |out: &str| std::fs::read(here.join(out).join("model.safetensors")).unwrap();
        assert!(bytes(&whole) == bytes(&cut), "{name}: other weights");
    }
}

#[test]
fn a_grid_fills_the_table_in_shards_and_tune_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepare(here, "rank = 2\nembedding = true\n", 1, "");
    let text = std::fs::read_to_string(here.join("tune.toml")).unwrap();
    let tables = text.split_once("[data]").unwrap().1.replace("learning_rate = 1e-2\n", "");
    let grid = format!(
        "[data]{tables}[canaries]\ncount = 40\n\
         [grid]\nbatch_size = [4, 8]\nsteps = [2, 4]\nlearning_rate = [0.01, 0.02]\n\
         epsilon = [8.0]\nseed = [1, 2]\n\
         [measure]\nsecrets = \"secrets.jsonl\"\nsamples = 2\nnew_tokens = 6\n"
    );
    std::fs::write(here.join("grid.toml"), grid).unwrap();
    let plan = dosimeter(here).args(["tune", "grid", "grid.toml", "--dry-run"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&plan.stdout).lines().count(), 17, "{plan:?}");
    // The noise is that of the batches that are drawn and of the neighbours that are meant.
    let noise = |lines: &str| {
        let text = std::fs::read_to_string(here.join("grid.toml")).unwrap();
        std::fs::write(here.join("other.toml"), format!("[run]\n{lines}{text}")).unwrap();
        let plan =
            dosimeter(here).args(["tune", "grid", "other.toml", "--dry-run"]).output().unwrap();
        assert!(plan.status.success(), "{plan:?}");
        let text = String::from_utf8_lossy(&plan.stdout).into_owned();
        assert!(text.lines().next().unwrap().ends_with("noise_multiplier"), "{text}");
        let row = text.lines().nth(1).unwrap();
        row.rsplit(',').next().unwrap().parse::<f64>().unwrap()
    };
    let poisson = noise("");
    assert!(noise("sampling = \"shuffle\"\nadjacency = \"zero-out\"\n") > 1.1 * poisson);
    // At an epsilon of 8 replacing a record needs hardly more noise than removing one.
    assert!(noise("adjacency = \"substitute\"\n") > poisson);
    let run = |arguments: &[&str]| {
        dosimeter(here).args(["tune", "grid", "grid.toml"]).args(arguments).output().unwrap()
    };
    let half = run(&["--out", "parts.csv", "--shard", "1/2"]);
    assert_eq!(half.status.code(), Some(4), "{}", String::from_utf8_lossy(&half.stderr));
    assert!(run(&["--out", "parts.csv", "--shard", "2/2", "--threads", "1"]).status.success());
    assert!(run(&["--out", "whole.csv", "--threads", "2"]).status.success());
    let table = std::fs::read_to_string(here.join("parts.csv")).unwrap();
    assert_eq!(table, std::fs::read_to_string(here.join("whole.csv")).unwrap());
    assert!(
        table.starts_with(
            "batch_size,steps,learning_rate,clip_norm,epsilon,delta,seed,noise_multiplier,\
             score_vmr,score_air,utility,audit_epsilon,canary_auroc\n"
        ),
        "{table}"
    );
    assert_eq!(table.lines().count(), 17);
    let ranked = answer(here, &["tune", "rank", "parts.csv", "--score", "air"]);
    assert_eq!(ranked["groups"][0]["spread"]["configurations"], 8);
    // The epsilon of the search is another one, and it is said.
    let said = String::from_utf8_lossy(&run(&["--out", "whole.csv"]).stdout).into_owned();
    assert!(said.contains("not of the search"), "{said}");
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let fails = |arguments: &[&str], words: &str| {
        let output = dosimeter(here).args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    let train = ["train", "tune.toml", "--noise-multiplier", "1"];
    prepare(here, "projections = [\"querry\"]\n", 1, "");
    fails(&train, "projection `querry` is none of query");
    prepare(here, "rank = 1000\n", 1, "");
    fails(&train, "rank 1000 is outside 1 to");
    prepare(here, "ranks = 4\n", 1, "");
    fails(&train, "ranks");
    prepare(here, "", 1, "[canaries]\ncount = 5\nscore = \"embedding\"\n");
    fails(&train, "needs a trained embedding");
    prepare(here, "", 1, "");
    fails(&["train", "tune.toml"], "noise");
    fails(&[&train[..], &["--device", "cuda:0", "--noise", "secure"]].concat(), "");
    fails(&[&train[..], &["--noise", "secure"]].concat(), "secure noise is not available");
    let bf16 = ["--device", "cpu", "--precision", "bf16"];
    fails(&[&train[..], &bf16].concat(), "BF16 needs an NVIDIA device");
    fails(&[&train[..], &["--device", "cuda:99"]].concat(), "cuda:99");
    fails(&[&train[..], &["--target-epsilon", "8"]].concat(), "both given");
    std::fs::write(here.join("texts.jsonl"), "{\"question\":\"a\"}\n").unwrap();
    fails(&train, "texts.jsonl, row 1: has neither a text");
    std::fs::write(here.join("texts.jsonl"), [0xff, 0xfe]).unwrap();
    fails(&train, "is not UTF-8");
    let (model, tokenizer) = (stories("stories260K.bin"), stories("tok512.bin"));
    std::fs::write(here.join("broken.safetensors"), b"\x10\0\0\0\0\0\0\0{\"a\":").unwrap();
    let ask = ["memorize", "vmr", "--model", model.to_str().unwrap(), "--tokenizer"];
    let ask = [&ask[..], &[tokenizer.to_str().unwrap(), "--secrets", "secrets.jsonl"]].concat();
    fails(&[&ask[..], &["--tuned", "broken.safetensors"]].concat(), "is not safetensors");
    fails(&[&ask[..], &["--tuned", "nothing"]].concat(), "cannot read nothing");
}

#[test]
fn token_canaries_are_played_from_one_training_and_audited() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepare(here, "rank = 4\nalpha = 1.0\nembedding = true\n", 20, "");
    let game = ["attack", "token", "tune.toml", "--canaries", "60", "--prefix", "1"];
    let game = [&game[..], &["--noise-multiplier", "0.3", "--delta", "1e-5", "--out"]].concat();
    let played = answer(here, &[&game[..], &["scores.csv", "--threads", "2"]].concat());
    assert_eq!((&played["game"], &played["state"]), (&"token".into(), &"complete".into()));
    assert_eq!(played["parameters"]["score"], "embedding");
    let table = std::fs::read_to_string(here.join("scores.csv")).unwrap();
    assert!(table.starts_with("# design: one-run\nscore,member,canary\n"), "{table}");
    assert_eq!(table.lines().count(), 62);
    // With next to no noise the canaries show a good deal, and never more than is proven.
    let bounds = played["audit"]["bounds"].as_array().unwrap();
    assert_eq!(
        (&bounds[0]["method"], &bounds[1]["method"]),
        (&"one-run".into(), &"one-run-gdp".into())
    );
    let shown = bounds[0]["epsilon_lower"].as_f64().unwrap();
    assert!(shown > 0.5, "{played}");
    let audit = ["audit", "scores.csv", "--delta", "1e-5", "--claim", "scores.csv.run.json"];
    let audit = answer(here, &audit);
    assert_eq!(audit["design"], "one-run");
    assert_eq!(audit["bounds"][0]["epsilon_lower"], shown);
    assert_ne!(audit["verdict"]["status"], "contradiction");
    // The same scores at another number of threads; the state of the training is gone.
    answer(here, &[&game[..], &["again.csv", "--threads", "1"]].concat());
    assert_eq!(table, std::fs::read_to_string(here.join("again.csv")).unwrap());
    assert!(!here.join("again.csv.work/state").exists());
    let fails = |arguments: &[&str], words: &str| {
        let output = dosimeter(here).args(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    };
    fails(&[&game[..], &["scores.csv", "--score", "loss"]].concat(), "belongs to another plan");
    fails(&game[..game.len() - 1], "add --out");
    std::fs::write(here.join("other.toml"), "[model]\nkind = \"softmax\"\n").unwrap();
    fails(&["attack", "token", "other.toml", "--out", "x.csv"], "need a language model");
    prepare(here, "rank = 4\n", 20, "");
    let loss = [&game[..], &["loss.csv", "--score", "embedding"]].concat();
    fails(&loss, "needs a trained embedding");
}

#[test]
fn gradient_canaries_of_a_language_model_show_more_to_who_sees_every_iterate() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    prepare(here, "rank = 4\n", 20, "");
    let game = ["attack", "canaries", "tune.toml", "--canaries", "1000", "--noise-multiplier"];
    let game = [&game[..], &["0.5", "--out"]].concat();
    let shown = |out: &str, more: &[&str]| {
        let played = answer(here, &[&game[..], &[out], more].concat());
        assert_eq!(played["state"], "complete", "{played}");
        let claim = format!("{out}.run.json");
        let audit = ["audit", out, "--delta", "1e-5", "--method", "one-run", "--claim", &claim];
        let audit = answer(here, &audit);
        assert_eq!(audit["design"], "one-run");
        assert_ne!(audit["verdict"]["status"], "contradiction", "{audit}");
        audit["bounds"][0]["epsilon_lower"].as_f64().unwrap()
    };
    let last = shown("last.csv", &["--threads", "2"]);
    let all = shown("all.csv", &["--observe", "all"]);
    assert!(last > 1.0 && all > 1.5 * last, "{last} {all}");
    // The same scores at another number of threads.
    shown("again.csv", &["--threads", "1"]);
    let read = |name: &str| std::fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(read("last.csv"), read("again.csv"));
    for (flags, words) in [
        (vec!["--canary", "mislabelled"], "these canaries are gradients"),
        (vec!["--fault", "half-noise"], "--fault is not available for language models"),
        (vec!["--canaries", "1e6"], "trained numbers"),
    ] {
        let game =
            ["attack", "canaries", "tune.toml", "--noise-multiplier", "0.5", "--out", "x.csv"];
        let output = dosimeter(here).args(game).args(&flags).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(words), "{flags:?}: {errors}");
    }
}
