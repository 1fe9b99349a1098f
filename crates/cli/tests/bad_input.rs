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
        &["delta -0.00001"],
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
    // Outside of the domain.
    (
        "account --noise-multiplier 0.1 --sample-rate 0.1 --steps 10",
        5,
        &["noise multiplier 0.1", "[0.2, 100]"],
    ),
    ("account --noise-multiplier 101 --sample-rate 0.1 --steps 10", 5, &["noise multiplier 101"]),
    ("account --noise-multiplier 1 --sample-rate 1e-8 --steps 10", 5, &["sample rate 0.00000001"]),
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
        &["--delta 0.00001 has no meaning"],
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
