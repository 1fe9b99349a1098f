//! What a newcomer types by mistake, and what comes back: one sentence that names the mistake and the way out.

use crate::support::Bench;

const RUN: &str = "--noise-multiplier 1 --sample-rate 0.01 --steps 100";

#[test]
fn files_of_another_kind_are_named() {
    let bench = Bench::new()
        .file("scores.csv", "score,member\n1,1\n0,0\n")
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 100\n");
    std::fs::write(bench.path().join("picture.csv"), b"\x89PNG\r\n\x1a\n").unwrap();
    std::fs::create_dir(bench.path().join("folder")).unwrap();
    std::fs::write(bench.path().join("folder/kept"), "").unwrap();
    for (line, part) in [
        ("account scores.csv", "scores.csv does not describe a run\n\nhint: give a RUN.toml"),
        ("audit scores.csv --claim scores.csv", "scores.csv does not describe a run"),
        ("audit picture.csv", "is not text in UTF-8; give a CSV"),
        ("data describe run.toml", "has one column; a label and another column"),
        ("report missing -d 1e-5", "cannot read missing: there is no such file or folder"),
        ("report folder -d 1e-5", "cannot read folder: it is a folder"),
        ("status missing", "there is no `missing`; give the output of an attack"),
        ("status scores.csv", "no experiment wrote `scores.csv`"),
        ("calibrate run.toml --target-epsilon 3", "hint: this command reads no file of a run"),
        ("account run.toml/run.toml", "a part of the path is a file and not a folder"),
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.contains(part), "{line}: {stderr}");
        assert!(!stderr.contains("os error"), "{line}: {stderr}");
    }
    // A folder is never replaced, not even by force.
    let (code, _, stderr) =
        bench.run(&format!("attack linear {RUN} --trials 10 --out folder --force"));
    assert_eq!(
        (code, stderr.as_str()),
        (2, "error: `folder` is a folder; choose another output\n")
    );
    assert!(bench.path().join("folder/kept").exists());
}

#[test]
fn numbers_in_the_wrong_place_are_named() {
    let bench = Bench::new().file("scores.csv", "score,member\n1,1\n0,0\n");
    for (line, part) in [
        (
            "account -s 1 -q 512 -T 10",
            "sample rate 512 is outside (0, 1]; give the probability that a record is in a batch, or batch size and data set size",
        ),
        ("account -s 1 --batch-size 9 --dataset-size 0 -T 10", "data set size 0 is not at least 1"),
        ("compare", "error: the noise multiplier is missing"),
        ("audit scores.csv --figure roc", "--figure says what --format svg prints"),
        (
            "plan --target-epsilon 1 --attack-fpr 0.1 --attack-tpr 0.05",
            "true positive rate 0.05 is not above",
        ),
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.contains(part), "{line}: {stderr}");
    }
    let sigma = Bench::new().file("run.toml", "[run]\nsigma = 1\nq = 0.01\nT = 100\n");
    let (code, _, stderr) = sigma.run("account run.toml");
    assert_eq!(code, 2);
    assert!(stderr.contains("unknown key `") && stderr.contains("did you mean `"), "{stderr}");
    let most = "plan --target-epsilon 3 --attack-fpr 0.1 --attack-tpr 0.2";
    let (_, _, stderr) = bench.run(most);
    // ln 2 = 0.69314…, rounded up.
    assert!(stderr.contains("its true rates show at most 0.6932;"), "{stderr}");
}

/// A rate of 256 of 32,561 has sixteen digits, and a reader needs six.
#[test]
fn sentences_have_no_sixteen_digits() {
    let bench = Bench::new();
    let run = "-s 1 --dataset-size 32561 --batch-size 256 -T 100 -d 1e-5";
    for line in [format!("account {run}"), format!("report {run} --format md --out -")] {
        let (code, text, stderr) = bench.run(&line);
        assert_eq!(code, 0, "{stderr}");
        assert!(text.contains("sample rate 0.00786217, 100 steps"), "{text}");
    }
    // Where a number is looked up, it has them all.
    let document = bench.json(&format!("account {run} --format json"));
    assert_eq!(document["run"]["sample_rate"], 256.0 / 32_561.0);
}

/// What is given without a flag stands under its own heading.
#[test]
fn arguments_without_flags_are_listed_first() {
    fn look(command: &clap::Command, path: &str) {
        for argument in command.get_positionals() {
            assert_eq!(argument.get_help_heading(), None, "{path} {}", argument.get_id());
        }
        for inner in command.get_subcommands() {
            look(inner, &format!("{path} {}", inner.get_name()));
        }
    }
    look(&dosimeter_cli::command(), "dosimeter");
}

/// Where nothing may be signed, the page has no hole.
#[test]
fn empty_lines_come_alone() {
    let bench = Bench::new();
    for line in [
        format!("account {RUN} -d 1e-5 --sampling shuffle"),
        format!("account {RUN} -d 1e-5 --sampling shuffle --lens all"),
        format!("account {RUN} -d 1e-5"),
    ] {
        let (_, text, stderr) = bench.run(&line);
        assert!(!text.contains("\n\n\n") && text.starts_with("Sign: "), "{text}{stderr}");
    }
}
