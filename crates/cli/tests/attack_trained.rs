//! `attack gradient`, `attack input`, `attack canaries` as a user meets them.
#![cfg(feature = "papers")]

use crate::support;

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;
use support::dosimeter;

/// Two classes that a line separates, and a training on them.
fn prepare(noise: f64, optimizer: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut table = String::from("x,y,class\n");
    for i in 0..60 {
        let (a, b) = ((f64::from(i) * 0.7).sin(), (f64::from(i) * 1.3).cos());
        let class = if a + 0.3 * b > 0.1 { "in" } else { "out" };
        let _ = writeln!(table, "{a:.4},{b:.4},{class}");
    }
    std::fs::write(folder.path().join("points.csv"), &table).unwrap();
    let run = format!(
        "[run]\nnoise_multiplier = {noise}\nsample_rate = 0.25\nsteps = 64\nseed = 4\n\
         [data]\npath = \"points.csv\"\nclasses = [\"in\", \"out\"]\ntest = \"points.csv\"\n\
         [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"{optimizer}\"\nlearning_rate = 0.5\n"
    );
    std::fs::write(folder.path().join("run.toml"), run).unwrap();
    folder
}

const GAME: [&str; 8] =
    ["attack", "gradient", "run.toml", "--device", "cpu", "--trials", "1500", "--out"];

#[test]
fn the_audit_tells_a_broken_training_from_a_healthy_one() {
    let folder = prepare(4.0, "sgd");
    let audit = |scores: &str| {
        dosimeter(
            folder.path(),
            &["audit", scores, "--delta", "0.01", "--claim", &format!("{scores}.run.json")],
        )
    };
    let (code, stdout, stderr) = dosimeter(folder.path(), &[&GAME[..], &["healthy.csv"]].concat());
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("1,500 trainings with the canary and 1,500 without"), "{stdout}");
    let (code, stdout, _) = audit("healthy.csv");
    assert_eq!(code, 0, "{stdout}");
    assert!(stdout.contains("each a training of its own"), "{stdout}");
    for fault in ["half-noise", "no-clipping", "repeated-batch"] {
        let broken = [&GAME[..], &["broken.csv", "--force", "--fault", fault]].concat();
        let (code, _, stderr) = dosimeter(folder.path(), &broken);
        assert!(code == 0 && stderr.contains("a mistake is planted"), "{stderr}");
        let (code, stdout, _) = audit("broken.csv");
        assert_eq!(code, 3, "{fault}: {stdout}");
    }
    // The same name with other conditions is not overwritten by accident.
    let other = [&GAME[..], &["healthy.csv", "--rest", "zero"]].concat();
    let (code, _, stderr) = dosimeter(folder.path(), &other);
    assert!(code == 2 && stderr.contains("others"), "{stderr}");
}

/// The game is played with batches as the run draws them, and its claim is judged for them: what is healthy is not
/// refuted, and gradients that are not clipped are.
#[test]
fn games_are_played_with_every_way_to_draw_batches() {
    for (noise, keys) in [
        (4.0, "sampling = \"poisson\""),
        (16.0, "sampling = \"full\"\nadjacency = \"zero-out\""),
        (4.0, "sampling = \"shuffle\"\nadjacency = \"zero-out\""),
        (4.0, "sampling = \"fixed-size\"\nadjacency = \"substitute\""),
        (4.0, "sampling = \"balls-and-bins\"\nadjacency = \"zero-out\""),
        (4.0, "sampling = \"truncated-poisson\"\nmax_batch_size = 20"),
        (4.0, "sampling = \"cyclic-poisson\"\ncycle_length = 4"),
        (4.0, "sampling = \"in-order\"\nadjacency = \"zero-out\""),
    ] {
        let folder = prepare(noise, "sgd");
        let path = folder.path().join("run.toml");
        let run = std::fs::read_to_string(&path).unwrap();
        let rate = if keys.contains("full") { "" } else { "sample_rate = 0.25\n" };
        std::fs::write(&path, run.replace("sample_rate = 0.25\n", &format!("{rate}{keys}\n")))
            .unwrap();
        for (fault, refuted) in [(&[][..], false), (&["--fault", "no-clipping"][..], true)] {
            let game = [&GAME[..], &["s.csv", "--force"], fault].concat();
            let (code, _, stderr) = dosimeter(folder.path(), &game);
            assert_eq!(code, 0, "{keys}: {stderr}");
            let judged = ["audit", "s.csv", "--delta", "0.01", "--claim", "s.csv.run.json"];
            let (code, stdout, _) = dosimeter(folder.path(), &judged);
            assert_eq!(code, if refuted { 3 } else { 0 }, "{keys} {fault:?}: {stdout}");
        }
    }
}

#[test]
fn kills_threads_and_shards_change_no_byte() {
    let folder = prepare(1.0, "sgd");
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let trials = ["--trials", "3000", "--observe", "all"];
    let play = |name: &str, more: &[&str]| {
        let game = ["attack", "gradient", "run.toml", "--device", "cpu", "--out", name];
        dosimeter(folder.path(), &[&game[..], &trials, more].concat())
    };
    let (code, _, stderr) = play("calm.csv", &["--threads", "2"]);
    assert_eq!(code, 0, "{stderr}");
    for patience in [60, 200, 350] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_dosimeter"))
            .current_dir(folder.path())
            .args(["attack", "gradient", "run.toml", "--device", "cpu", "--threads", "1"])
            .args(trials)
            .args(["--out", "killed.csv"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(patience));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let (code, _, stderr) = play("killed.csv", &["--threads", "1"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(read("killed.csv") == read("calm.csv"));
    assert_eq!(play("parts.csv", &["--shard", "1/2"]).0, 4);
    assert_eq!(play("parts.csv", &["--shard", "2/2"]).0, 0);
    assert!(read("parts.csv") == read("calm.csv"));
}

#[test]
fn records_and_candidates_are_played() {
    let folder = prepare(0.5, "adam");
    let play = |args: &[&str]| {
        let common = ["--device", "cpu", "--trials", "60", "--out", "s.csv", "--force"];
        dosimeter(folder.path(), &[&["attack"], args, &common].concat())
    };
    for canary in ["mislabelled", "blank", "clip-bkd", "natural"] {
        for rest in ["natural", "blank", "zero"] {
            let (code, stdout, stderr) =
                play(&["input", "run.toml", "--canary", canary, "--rest", rest]);
            assert!(code == 0 && stdout.contains("60 trainings"), "{stderr}");
        }
    }
    let (code, stdout, stderr) =
        play(&["input", "run.toml", "--adjacency", "substitute", "--candidates", "5"]);
    assert!(code == 0 && stdout.contains("with another"), "{stderr}");
    let (code, _, stderr) =
        play(&["input", "run.toml", "--start", "pretrained", "--records", "30", "--seed", "9"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, stdout, _) = play(&["input", "run.toml", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &answer["game"], &answer["state"]), (0, &"input".into(), &"complete".into()));
}

#[test]
fn one_run_says_its_design() {
    let folder = prepare(0.5, "sgd");
    let (code, stdout, stderr) = dosimeter(
        folder.path(),
        &[
            "attack",
            "canaries",
            "run.toml",
            "--canary",
            "mislabelled",
            "--canaries",
            "60",
            "--device",
            "cpu",
            "--out",
            "one.csv",
        ],
    );
    assert!(code == 0 && stdout.contains("one training with 60 canaries"), "{stderr}");
    let (code, stdout, _) =
        dosimeter(folder.path(), &["audit", "one.csv", "--delta", "1e-5", "--format", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &answer["design"]), (0, &"one-run".into()));
}

/// Killed once there is a state on the disk, and ended by another command.
#[test]
fn a_long_training_with_many_canaries_goes_on_where_it_was() {
    let folder = prepare(0.5, "adam");
    let play = |out: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dosimeter"));
        command.current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.args(["attack", "canaries", "run.toml", "--device", "cpu", "--steps", "60000"]);
        command.args(["--canary", "mislabelled", "--canaries", "60", "--out", out]);
        command.args(["--checkpoint-every", "0.05"]);
        command
    };
    let state = folder.path().join("killed.csv.work/state");
    let mut child = play("killed.csv").spawn().unwrap();
    let start = std::time::Instant::now();
    while !state.exists() && child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(120), "no state was saved");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if folder.path().join("killed.csv").exists() {
        // A machine this fast finished before the first state; there is nothing to resume.
        return;
    }
    assert!(play("killed.csv").status().unwrap().success());
    assert!(!state.exists());
    assert!(play("calm.csv").status().unwrap().success());
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    assert!(read("killed.csv") == read("calm.csv"));
}

#[test]
fn refusals_name_the_value_and_the_way_out() {
    let folder = prepare(1.0, "adam");
    let refuse = |args: &[&str]| {
        let (code, _, stderr) = dosimeter(folder.path(), &[&["attack"], args].concat());
        assert_eq!(code, 2, "{stderr}");
        stderr
    };
    let game = ["gradient", "run.toml", "--device", "cpu"];
    assert!(refuse(&game).contains("--out"));
    assert!(refuse(&["gradient", "none.toml", "--out", "s.csv"]).contains("none.toml"));
    let with = |more: &[&str]| refuse(&[&game[..], &["--out", "s.csv"], more].concat());
    assert!(with(&["--observe", "all"]).contains("--observe last"));
    assert!(with(&["--coordinate", "6"]).contains("coordinate 6 is not below 6"));
    assert!(with(&["--coordinate", "loud"]).contains("random, quiet"));
    assert!(with(&["--every", "0"]).contains("0"));
    assert!(with(&["--adjacency", "substitute", "--candidates", "1"]).contains("at least 2"));
    let many = ["canaries", "run.toml", "--device", "cpu", "--canaries", "7", "--out", "s.csv"];
    assert!(refuse(&many).contains("only 6 coordinates"));
    let (code, stdout, _) = dosimeter(folder.path(), &["reproduce", "--list"]);
    assert!(code == 0 && stdout.contains("last-iterate-figure-4"), "{stdout}");
    assert!(stdout.contains("The Last Iterate Advantage (Steinke et al."), "{stdout}");
    let (code, _, stderr) =
        dosimeter(folder.path(), &["reproduce", "last-iterate-figure-4", "--out", "r"]);
    assert!(code == 2 && stderr.contains("--data DIR"), "{stderr}");
}
