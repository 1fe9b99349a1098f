//! Bad input: exit 2 with a sentence that names the value and the fix; exit 5 outside of the
//! domain. Nothing on stdout, whatever the format.

use crate::support;

use support::Bench;

/// Every line is a command, the exit code and parts that stderr must contain.
const REFUSED: &[(&str, i32, &[&str])] = &[
    (
        "account --noise-multiplier 1 --sample-rate 1.3 --steps 10",
        2,
        &["sample rate 1.3", "(0, 1]"],
    ),
    ("account --noise-multiplier 1 --sample-rate 0 --steps 10", 2, &["sample rate 0 "]),
    ("account --noise-multiplier 1 --sample-rate -0.1 --steps 10", 2, &["sample rate -0.1"]),
    ("account --noise-multiplier 1 --sample-rate nan --steps 10", 2, &["sample rate NaN"]),
    ("account --noise-multiplier 0 --sample-rate 0.1 --steps 10", 2, &["noise multiplier 0 "]),
    ("account --noise-multiplier -1 --sample-rate 0.1 --steps 10", 2, &["noise multiplier -1"]),
    ("account --noise-multiplier inf --sample-rate 0.1 --steps 10", 2, &["noise multiplier inf"]),
    ("account --noise-multiplier x --sample-rate 0.1 --steps 10", 2, &["`x` is not a number"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 0", 2, &["steps 0", "at least 1"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 1.5", 2, &["`1.5`", "whole number"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps -5", 2, &["`-5` is negative"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 1e30", 2, &["`1e30`"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta 0", 2, &["delta 0 "]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta 1", 2, &["delta 1 "]),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta -1e-5",
        2,
        &["delta -1e-5"],
    ),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta nan", 2, &["delta NaN"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --epsilon -1", 2, &["epsilon -1"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --fpr 2", 2, &["rate 2 "]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --prior 0", 2, &["prior 0 "]),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --clip-norm -1",
        2,
        &["clip norm -1"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --group-size 0",
        2,
        &["group size 0"],
    ),
    (
        "account --sample-rate 0.1 --steps 10",
        2,
        &["noise multiplier is missing", "--noise-multiplier"],
    ),
    ("account --noise-multiplier 1 --steps 10", 2, &["sample rate is missing", "--sample-rate"]),
    ("account --noise-multiplier 1 --sample-rate 0.1", 2, &["steps is missing", "--steps"]),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --batch-size 5 --steps 10",
        2,
        &["sample rate 0.1 and batch size 5", "drop one"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --epochs 3",
        2,
        &["steps 10 and epochs 3", "drop one"],
    ),
    (
        "account --noise-multiplier 1 --batch-size 5 --steps 10",
        2,
        &["batch size 5", "--dataset-size"],
    ),
    (
        "account --noise-multiplier 1 --dataset-size 10 --batch-size 50 --steps 10",
        2,
        &["batch size 50 is larger", "10 records"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.5 --sampling full --steps 10",
        2,
        &["full batches mean sample rate 1", "0.5"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --sampling poison",
        2,
        &["poisson"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --lens compositon",
        2,
        &["did you mean `composition`?"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --lens hidden-state",
        2,
        &["hidden-state", "--smoothness"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --sampling shuffle --lens composition",
        2,
        &["composition", "shuffled"],
    ),
    (
        "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --format svg",
        2,
        &["--format svg"],
    ),
    ("account missing.toml", 2, &["missing.toml", "hint:"]),
    ("account --bogus 3", 2, &["--bogus"]),
    ("nonsense", 2, &["nonsense"]),
    // Numbers are named as they were typed.
    ("account -s 1 -q 1e300 -T 10", 2, &["sample rate 1e300 is outside (0, 1]"]),
    ("translate --epsilon 1e308 -d 1e-5", 5, &["reaches delta 1e-5 at epsilon 1e308"]),
    ("translate --mu 1e308 -d 1e-5", 5, &["mu 1e308, above 1e7"]),
    ("translate --attack-accuracy 1e308", 2, &["attack accuracy 1e308 at prior 0.5"]),
    ("check -s 1 -q 0.1 -T 10 --min-bayes-security 1e308", 2, &["min_bayes_security 1e308 "]),
    ("plan --target-epsilon 1 --mu 1 --confidence 1e308", 2, &["confidence 1e308 is outside"]),
    ("plan --target-epsilon 1 --mu 1 -d 1e308", 2, &["delta 1e308 is outside"]),
    ("attack quadratic --alpha 1e308 -s 1 -q 1 -T 9 --trials 9 --out x.csv", 2, &["alpha 1e308 "]),
    (
        "attack our-loss --resolution 0 -s 1 -q 1 -T 9 --trials 9 --out x.csv",
        2,
        &["--resolution 0 "],
    ),
    // More files than can be looked for, and a number that is 0 only by rounding.
    (
        "attack linear -s 1 -q 0.1 -T 3 --trials 1e15 --shard 1/99999999 --out x.csv",
        2,
        &["1000000000000000 trials", "ask for fewer"],
    ),
    (
        "attack linear -s 1 -q 0.1 -T 3 --trials 9 --seed 1e-400 --out x.csv",
        2,
        &["`1e-400` is not"],
    ),
    ("account -s 1 -q 0.1 -T 10 --delta 1e-400", 2, &["`1e-400` is closer to 0"]),
    ("account -s 1 -q 0.1 -T 10 --group-size 0", 2, &["not between 1 and 1000"]),
    // Constants that cannot be, even where the lens that needs them was not asked for.
    (
        "account -s 1 -q 0.1 -T 10 --learning-rate 0.1 --smoothness nan",
        2,
        &["smoothness NaN is not a finite number above 0"],
    ),
    ("account -s 1 -q 0.1 -T 10 --learning-rate -1 --smoothness 1", 2, &["learning rate -1"]),
    // A negative number is a value, wherever it stands.
    ("attack linear -s 1 -q 0.1 -T 10 --trials -3 --out x.csv", 2, &["`-3` is negative"]),
    ("attack linear -s 1 -q 0.1 -T 10 --seed -1 --out x.csv", 2, &["`-1` is negative"]),
    ("serve --port -1", 2, &["-1"]),
    ("serve --port x", 2, &["`x` is not a port; give a number from 0 to 65535"]),
    ("serve --port 70000", 2, &["`70000` is not a port"]),
    ("serve --listen x", 2, &["`x` is not an address", "192.168.0.7:8710"]),
    // A program that fails is the user's, not ours.
    ("attack command --trials 1 --out x.csv -- ./none {member} {seed}", 2, &["./none", "hint:"]),
    (
        "attack command --trials 1 --out y.csv -- echo {member} {seed} words",
        2,
        &["is not JSON", "mend the program"],
    ),
    // Outside of the domain.
    ("account -s 1e300 -q 0.1 -T 10", 5, &["noise multiplier 1e300 is outside"]),
    (
        "account --noise-multiplier 0.1 --sample-rate 0.1 --steps 10",
        5,
        &["noise multiplier 0.1", "[0.2, 100]"],
    ),
    ("account --noise-multiplier 101 --sample-rate 0.1 --steps 10", 5, &["noise multiplier 101"]),
    ("account --noise-multiplier 1 --sample-rate 1e-8 --steps 10", 5, &["sample rate 1e-8"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 2e9", 5, &["2000000000 steps"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta 0.7", 5, &["delta 0.7"]),
    ("account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --delta 1e-120", 5, &["delta"]),
    // Calibration.
    (
        "calibrate --solve steps --noise-multiplier 1 --sample-rate 0.1",
        2,
        &["no target", "--target-epsilon"],
    ),
    (
        "calibrate --solve steps --noise-multiplier 1 --sample-rate 0.1 --target-epsilon 1",
        2,
        &["--target-epsilon needs a delta"],
    ),
    (
        "calibrate --solve steps --steps 5 --noise-multiplier 1 --sample-rate 0.1 --target-advantage 0.1",
        2,
        &["--steps was given"],
    ),
    (
        "calibrate --solve noise-multiplier --steps 5 --sample-rate 0.1 --target-advantage 0.1 --target-epsilon 1 --delta 1e-5",
        2,
        &["--target-epsilon and --target-advantage", "keep one"],
    ),
    (
        "calibrate --solve noise-multiplier --steps 5 --sample-rate 0.1 --target-advantage 0.1 --delta 1e-5",
        2,
        &["--delta 1e-5 has no meaning"],
    ),
    (
        "calibrate --solve noise-multiplier --steps 5 --sample-rate 0.1 --target-epsilon -2 --delta 1e-5",
        2,
        &["target epsilon -2"],
    ),
    (
        "calibrate --solve sample-rate --sampling full --steps 5 --noise-multiplier 1 --target-advantage 0.1",
        2,
        &["full batches"],
    ),
    (
        "calibrate --solve noise-multiplier --steps 1e9 --sample-rate 1 --target-epsilon 0.01 --delta 1e-9",
        5,
        &["not even noise multiplier 100"],
    ),
    (
        "curve tradeoff --noise-multiplier 1 --sample-rate 0.1 --steps 9 --points 1",
        2,
        &["1 points"],
    ),
    ("curve steps --noise-multiplier 1 --sample-rate 0.1 --steps 9", 2, &["--delta"]),
    (
        "curve profile --noise-multiplier 1 --sample-rate 0.1 --steps 9 --fpr 0.1",
        2,
        &["--fpr belongs"],
    ),
    ("compare --map --delta 1e-5", 2, &["--map needs the noise"]),
    (
        "compare --batch-sizes 5 --delta 1e-5 --epochs 3 --heuristic-epsilon 1",
        2,
        &["--dataset-size"],
    ),
    ("check --noise-multiplier 1 --sample-rate 0.1 --steps 10", 2, &["no policy"]),
    ("check --noise-multiplier 1 --sample-rate 0.1 --steps 10 --max-epsilon 3", 2, &["--delta"]),
    (
        "check --noise-multiplier 1 --sample-rate 0.1 --steps 10 --min-bayes-security 3",
        2,
        &["min_bayes_security 3"],
    ),
    ("schema dosimeter.nothing/1", 2, &["dosimeter.nothing/1"]),
];

#[test]
fn every_refusal_names_the_value_and_the_fix() {
    let bench = Bench::new();
    for (line, wanted, parts) in REFUSED {
        let mut lines = vec![(*line).to_owned()];
        if !line.contains("--format") && line.starts_with("account --") {
            lines.push(format!("{line} --format json"));
        }
        for line in lines {
            let (code, stdout, stderr) = bench.run(&line);
            assert_eq!(code, *wanted, "{line}: {stderr}");
            assert_eq!(stdout, "", "{line}");
            assert!(stderr.starts_with("error: "), "{line}: {stderr}");
            for part in *parts {
                assert!(stderr.contains(part), "{line}: `{part}` is not in {stderr}");
            }
            assert!(!stderr.contains("panicked"), "{line}: {stderr}");
        }
    }
}

/// Without a command the help is shown, and it is not an answer.
#[test]
fn without_a_command_the_help_is_shown() {
    let (code, stdout, stderr) = Bench::new().run("");
    assert_eq!((code, stdout.as_str()), (2, ""));
    for part in ["Examples:", "  account ", "Exit codes"] {
        assert!(stderr.contains(part), "{stderr}");
    }
}

/// A full disk is not a bug of ours.
#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_says_so() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(["account", "-s", "1", "-q", "0.01", "-T", "10", "-d", "1e-5"])
        .stdout(full)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert_eq!(stderr, "error: cannot write the answer: the disk is full\n");
}

/// Every file is refused with a message that contains all parts.
#[test]
fn files_are_read_strictly() {
    let good = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 100\n";
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.toml",
            "[run]\nnoise_multipler = 1.0\n",
            &["`noise_multipler`", "did you mean `noise_multiplier`?"],
        ),
        ("b.toml", "noise_multiplier = 1.0\n", &["outside of the [run] table"]),
        ("c.toml", "[runs]\nsteps = 1\n", &["`runs`", "did you mean `run`?"]),
        ("d.toml", "[run]\nsteps = \"many\"\n", &["`steps` must be a whole number", "`many`"]),
        ("e.toml", "[run]\nsteps = = 3\n", &["line 2", "TOML"]),
        ("f.toml", "[data]\nname = \"adult\"\n", &["no [run] table"]),
        ("g.toml", "[run]\nsampling = \"shuffled\"\n", &["`shuffled`", "shuffle"]),
        ("h.json", "{\"schema\": \"dosimeter.audit/1\", \"run\": {}}", &["dosimeter.audit/1"]),
        ("i.json", "{", &["line 1", "JSON"]),
        (
            "j.toml",
            "[run]\nsample_rate = nan\nnoise_multiplier = 1.0\nsteps = 5\n",
            &["sample rate NaN"],
        ),
        ("k.toml", "[run]\n[[run.phase]]\nsigma = 1.0\n", &["`sigma`", "[[run.phase]]"]),
        ("l.toml", &format!("{good}[policy]\nmax_epsilom = 8\n"), &["did you mean `max_epsilon`?"]),
    ];
    for (name, text, parts) in cases {
        let bench = Bench::new().file(name, text);
        let (code, stdout, stderr) = bench.run(&format!("account {name}"));
        assert_eq!((code, stdout.as_str()), (2, ""), "{name}: {stderr}");
        assert!(stderr.contains(name), "{stderr}");
        for part in *parts {
            assert!(stderr.contains(part), "{name}: `{part}` is not in {stderr}");
        }
    }
    let bench = Bench::new().file("run.toml", good);
    assert_eq!(bench.run("account run.toml").0, 0);
}

/// Descriptions of trainings that cannot be: a sentence, and neither a type of Rust nor an abort.
#[test]
fn trainings_that_cannot_be_are_refused() {
    let good = "[run]\nnoise_multiplier = 1\nbatch_size = 2\nsteps = 3\n\
                [data]\npath = \"people.csv\"\nclasses = [\"low\", \"high\"]\n\
                [model]\nkind = \"mlp\"\nhidden = [4]\n\
                [optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n";
    let bench = Bench::new().file("people.csv", "age,income\n39,low\n50,high\n");
    for (from, to, part) in [
        ("[4]", "[1000000000000]", "1000000000000 numbers is not between 1 and 10000000"),
        ("[4]", "[10000000, 10000000]", "parameters, more than 2000000000"),
        ("[4]", "[0]", "hidden layer of 0 numbers"),
        ("[4]", "[-3]", "`-3`, expected a whole number of at least 0"),
        ("[\"low\", \"high\"]", "-1", "`classes` is a whole number of classes or a list"),
        ("people.csv", "", "`path` is empty"),
        ("0.5", "nan", "learning_rate NaN is outside"),
    ] {
        let bench = Bench::new()
            .file("people.csv", "age,income\n39,low\n50,high\n")
            .file("run.toml", &good.replacen(from, to, 1));
        let (code, stdout, stderr) = bench.run("train run.toml");
        assert_eq!((code, stdout.as_str()), (2, ""), "{to}: {stderr}");
        assert!(stderr.starts_with("error: ") && stderr.contains(part), "{to}: {stderr}");
    }
    let bench = bench.file("run.toml", good);
    assert_eq!(bench.run("train run.toml").0, 0);
}

/// JSON that is no document: no command takes it for one, and none panics.
#[test]
fn json_without_a_run_is_refused() {
    for text in ["[]", "null", "7", "\"run\"", "{\"schema\": \"dosimeter.ledger/1\"}"] {
        let bench = Bench::new().file("a.json", text);
        for command in ["account a.json", "check a.json --max-epsilon 8 -d 1e-5", "prove a.json"] {
            let (code, stdout, stderr) = bench.run(command);
            assert_eq!((code, stdout.as_str()), (2, ""), "{command} {text}: {stderr}");
            let told = ["the document has no `run`", "is not an account document"];
            assert!(told.iter().any(|part| stderr.contains(part)), "{command} {text}: {stderr}");
        }
    }
}

/// A value that a flag gave is the flag's mistake, not that of the file it overrides.
#[test]
fn a_flag_over_a_file_is_blamed_itself() {
    let good = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.1\nsteps = 5\n";
    let bad = good.replace("0.1", "1.7");
    let bench = Bench::new().file("run.toml", good).file("bad.toml", &bad);
    for (line, start) in [
        ("account run.toml --sample-rate 1.3", "error: --sample-rate: sample rate 1.3 is outside"),
        ("account run.toml --sigma 0", "error: --noise-multiplier: noise multiplier 0 "),
        ("account run.toml --steps 0", "error: --steps: steps 0 "),
        ("check run.toml --max-epsilon 8 --delta 1e-5 --group-size 0", "error: --group-size: "),
        ("account bad.toml --steps 7", "error: bad.toml: sample rate 1.7 is outside"),
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.starts_with(start), "{line}: {stderr}");
    }
}

#[test]
fn a_closed_pipe_is_quiet() {
    use std::process::{Command, Stdio};
    let binary = assert_cmd::cargo::cargo_bin!("dosimeter");
    let mut child = Command::new(binary)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
