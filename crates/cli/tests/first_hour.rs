//! What a stranger types in the first hour: the line to sign, 80 columns, short flags, hints,
//! translations, choosing a batch size, and errors that advise what exists.

use crate::support;

use serde_json::Value;
use support::Bench;

const RUN: &str = "--noise-multiplier 1 --sample-rate 0.01 --steps 1000 --delta 1e-5";

fn entry<'a>(document: &'a Value, assumes: &str, quantity: &str) -> &'a Value {
    let readings = document["readings"].as_array().unwrap();
    let reading = readings.iter().find(|one| one["assumes"] == assumes).unwrap();
    let entries = reading["entries"].as_array().unwrap();
    entries.iter().find(|one| one["quantity"] == quantity).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_first_line_is_what_may_be_signed() {
    let bench = Bench::new();
    let (code, text, _) = bench.run(&format!("account {RUN}"));
    assert_eq!(code, 0);
    assert!(
        text.starts_with(
            "Sign: epsilon <= 1.829 at delta 1e-5, for adding or removing one record.\n\
             An attack that wrongly accuses 1 of 1,000 records outside the data finds at most\n\
             5 of 1,000 in it.\n"
        ),
        "{text}"
    );
    let proven = text.find("composition").unwrap();
    let heuristic = text.find("last-iterate").unwrap();
    let others = text.find("Other lenses").unwrap();
    assert!(proven < heuristic && heuristic < others, "{text}");
    // The whole table is there for who asks, and the document has every lens always.
    let (_, whole, _) = bench.run(&format!("account {RUN} --lens all"));
    assert!(whole.contains("gaussian-clt") && whole.contains("Do not apply"), "{whole}");
    let document = bench.json(&format!("account {RUN} --format json"));
    let mut lenses: Vec<&str> =
        document["claims"].as_array().unwrap().iter().filter_map(|c| c["lens"].as_str()).collect();
    lenses.dedup();
    assert!(lenses.len() >= 7, "{lenses:?}");
    assert_eq!(document["sign"]["lens"], "composition");
    // Without a proven number there is nothing to sign.
    let (_, none, _) = bench.run(&format!("account {RUN} --lens last-iterate"));
    assert!(none.starts_with("Sign: nothing"), "{none}");
}

#[test]
fn nothing_is_wider_than_a_screen() {
    let rows: String = (0..60)
        .map(|place| format!("{},{}\n", f64::from(place) * 0.1, u8::from(place % 3 == 0)))
        .collect();
    let table = include_str!("../../tuning/tests/reference/table.csv");
    let few = table.lines().take(3).collect::<Vec<_>>().join("\n");
    let bench = Bench::new()
        .file("scores.csv", &format!("score,member\n{rows}"))
        .file("results.csv", table)
        .file("few.csv", &few)
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1000\n");
    let mut faults = Vec::new();
    for line in [
        format!("account {RUN}"),
        format!("account {RUN} --lens all --directions"),
        format!("account {RUN} --sampling shuffle"),
        "check run.toml --max-epsilon 1 --delta 1e-5 --min-bayes-security 0.5".into(),
        "audit scores.csv --delta 1e-5".into(),
        "audit scores.csv --delta 1e-5 --claim run.toml --method all".into(),
        "audit scores.csv --design one-run --method all --delta 1e-5".into(),
        "plan --target-epsilon 1 --mu 1".into(),
        "plan --target-epsilon 1 --mu 1.5 --design one-run".into(),
        "translate --epsilon 2 --delta 1e-5".into(),
        "calibrate --target-epsilon 3 --delta 1e-6 --dataset-size 100000 --epochs 20 \
         --batch-sizes 256,1024"
            .into(),
        "compare run.toml run.toml run.toml run.toml run.toml run.toml --delta 1e-5".into(),
        format!("compare {RUN} --every-sampling --dataset-size 50000"),
        "compare --batch-sizes 256,4096 --dataset-size 50000 --epochs 6 --heuristic-epsilon 6 -d 1e-5".into(),
        "curve tradeoff run.toml --points 5".into(),
        "curve profile run.toml --points 5".into(),
        "curve steps run.toml --delta 1e-5 --points 3".into(),
        "data".into(),
        "data adult mnist fashion-mnist cifar-10 location".into(),
        "data scores.csv".into(),
        "data describe scores.csv".into(),
        "schema".into(),
        "attack linear -s 1 -q 0.1 -T 9 --delta 1e-5 --trials 50 --out game.csv".into(),
        "status game.csv".into(),
        "report scores.csv run.toml --delta 1e-5 --out report.html".into(),
        "tune regress results.csv".into(),
        "tune rank results.csv".into(),
        "tune select results.csv --epsilon 8".into(),
        "tune profiles few.csv --epsilon 2 --dataset-size 33508".into(),
        #[cfg(feature = "papers")]
        "reproduce --list".into(),
    ] {
        let (_, text, stderr) = bench.run(&line);
        assert!(!text.is_empty(), "{line}: {stderr}");
        let wide = text.lines().filter(|line| line.chars().count() > 80);
        faults.extend(wide.map(|wide| format!("{line}: {wide}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn translations_are_exact_and_both_ways_round() {
    let bench = Bench::new();
    let one = bench.json("translate --mu 1 --delta 1e-5 --format json");
    assert_eq!(one["schema"], "dosimeter.translate/2");
    let epsilon = entry(&one, "gaussian-curve", "epsilon");
    assert!((number(&epsilon["value"]) - 4.377_178_095_681).abs() < 1e-9);
    assert_eq!(epsilon["shown"], "<= 4.378");
    let power = entry(&one, "gaussian-curve", "tpr");
    assert!((number(&power["value"]) - 0.092_362_248).abs() < 1e-8);
    // (epsilon, delta) allows e^2 x 0.01 + 1e-5, and mu is an output.
    let two = bench.json("translate --epsilon 2 --delta 1e-5 --fpr 0.01 --format json");
    let power = number(&entry(&two, "any-mechanism", "tpr")["value"]);
    assert!((power - (2_f64.exp() * 0.01 + 1e-5)).abs() < 1e-12, "{power}");
    let mu = number(&entry(&two, "gaussian-curve", "mu")["value"]);
    let back = bench.json(&format!("translate --mu {mu} --delta 1e-5 --format json"));
    assert!((number(&entry(&back, "gaussian-curve", "epsilon")["value"]) - 2.0).abs() < 1e-9);
    // A secret that is told with probability 0.1 has no finite epsilon, and the answer says why.
    let told = bench.json("translate --advantage 0.1 --delta 1e-5 --format json");
    let epsilon = entry(&told, "any-mechanism", "epsilon");
    assert!(epsilon["value"].is_null() && epsilon["reason"].is_string(), "{epsilon}");
    // Decimals stay decimals: no bit of a binary fraction is rounded up into a digit.
    let tidy = bench.json("translate --bayes-security 0.95 --format json");
    assert_eq!(entry(&tidy, "any-mechanism", "advantage")["upper"], 0.05);
    // What is enough for a target.
    let target = bench.json("translate --tpr 0.1 --fpr 0.01 --delta 1e-5 --format json");
    assert_eq!(target["enough"].as_array().unwrap().len(), 3);
    // A run is read by itself: the numbers of `account`.
    let run = bench.json(&format!("translate {RUN} --epsilon 8 --format json"));
    let account = bench.json(&format!("account {RUN} --lens composition --format json"));
    assert_eq!(entry(&run, "run", "epsilon")["upper"], account["claims"][0]["upper"]);
    let (code, _, stderr) = bench.run("translate --attack-accuracy 0.4");
    assert!(code == 2 && stderr.contains("guessing"), "{stderr}");
    let (code, _, stderr) = bench.run("translate");
    assert!(code == 2 && stderr.contains("--epsilon"), "{stderr}");
}

#[test]
fn short_flags_mean_the_long_ones() {
    let bench = Bench::new();
    let long = bench.json(&format!("account {RUN} --format json"));
    assert_eq!(long, bench.json("account -s 1 -q 0.01 -T 1000 -d 1e-5 --format json"));
    assert_eq!(long, bench.json("account --sigma 1 -q 0.01 -T 1000 -d 1e-5 --format json"));
    let check = bench.json("check -s 1 -q 0.01 -T 1000 -d 1e-5 --max-epsilon 8 --format json");
    assert_eq!(check["passed"], true);
}

/// A record is used once per pass, whatever the size of the last batch: 50,000 records in batches of 512.
#[test]
fn passes_with_a_short_batch_use_no_record_twice() {
    let bench = Bench::new();
    let epsilon = |line: &str| {
        let line = format!("account {line} --adjacency zero-out -d 1e-5 --format json");
        let document = bench.json(&line);
        document["claims"][0]["upper"].as_f64().unwrap()
    };
    let short = "--dataset-size 50000 --batch-size 512";
    for sampling in ["shuffle", "shuffle --permutation kept", "in-order"] {
        for epochs in [1, 3] {
            let sigma = format!("-s 2 --sampling {sampling} --epochs {epochs}");
            let even = epsilon(&format!("{sigma} -q 0.01"));
            assert_eq!(epsilon(&format!("{sigma} {short}")), even, "{sigma}");
            // Steps are what is counted where they are given: a loader that drops the short batch has begun another pass.
            let steps = 98 * epochs;
            let begun = epsilon(&format!("-s 2 --sampling {sampling} -T {steps} {short}"));
            assert!(begun > even, "{sigma}: {begun} {even}");
        }
    }
    let solve = "calibrate --solve epochs --sampling shuffle --adjacency zero-out -s 5 --target-epsilon 2 -d 1e-5";
    let found = bench.json(&format!("{solve} {short} --format json"));
    let epochs = found["solution"]["epochs"].as_f64().unwrap();
    assert!(epochs >= 1.0, "{found}");
    assert!(epsilon(&format!("-s 5 --sampling shuffle --epochs {epochs} {short}")) <= 2.0);
}

#[test]
fn another_convention_of_sigma_is_recognised() {
    let sizes = "--dataset-size 50000 --batch-size 512 --epochs 60 --delta 1e-5";
    let (code, _, stderr) = Bench::new().run(&format!("account -s 0.00215 {sizes}"));
    assert!(code == 5 && stderr.contains("mean of a batch"), "{stderr}");
    assert!(stderr.contains("x 512 = 1.1008"), "{stderr}");
    let (code, _, stderr) = Bench::new().run(&format!("account -s 563 {sizes}"));
    assert!(code == 5 && stderr.contains("standard deviation"), "{stderr}");
    assert!(stderr.contains("/ 512 = 1.0996"), "{stderr}");
}

#[test]
fn the_unit_of_privacy_is_carried_along() {
    let bench = Bench::new().file(
        "run.toml",
        "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1000\n\
         unit = \"one user's 1024-token sequence\"\n",
    );
    let unit = "one user's 1024-token sequence";
    let (_, text, _) = bench.run("account run.toml --delta 1e-5");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(flat.matches(unit).count(), 3, "sign, run and assumption:\n{text}");
    let document = bench.json("account run.toml --delta 1e-5 --format json");
    assert_eq!(document["run"]["unit"], unit);
    let cover = "--title T --owner O --date 2026-11-16";
    for format in ["md", "card", "registry"] {
        let (code, text, stderr) =
            bench.run(&format!("report run.toml --delta 1e-5 --format {format} {cover} --out -"));
        assert_eq!(code, 0, "{stderr}");
        assert!(text.contains(unit), "{format}:\n{text}");
    }
    let bad = Bench::new()
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 1\nsteps = 1\nunit = \"\"\n");
    let (code, _, stderr) = bad.run("account run.toml");
    assert!(code == 2 && stderr.contains("unit"), "{stderr}");
}

#[test]
fn a_batch_size_is_advised_with_its_reason() {
    let bench = Bench::new();
    let target = "--target-epsilon 3 --delta 1e-6 --dataset-size 100000 --epochs 20";
    let advice = bench.json(&format!("calibrate {target} --batch-sizes --format json"));
    assert_eq!(advice["schema"], "dosimeter.advice/1");
    let rows = advice["rows"].as_array().unwrap();
    assert!(rows.len() > 5);
    for row in rows {
        assert_eq!(row["proven"], "<= 3.000", "{row}");
        let again = bench.json(&format!(
            "account --dataset-size 100000 --epochs 20 --delta 1e-6 --lens composition \
             --quantity epsilon --batch-size {} --noise-multiplier {} --format json",
            row["batch_size"],
            row["noise_shown"].as_str().unwrap()
        ));
        assert!(number(&again["claims"][0]["upper"]) <= 3.0, "{row}");
    }
    // The recommended size is the smallest that does not pay for being small.
    let noise = |row: &Value| number(&row["noise_of_training"]);
    let least = rows.iter().map(noise).fold(f64::INFINITY, f64::min);
    let chosen = rows.iter().find(|row| noise(row) <= 1.1 * least).unwrap();
    assert_eq!(advice["recommended"], chosen["batch_size"]);
    assert!(advice["reason"].as_str().unwrap().contains("whole training"));
    // The largest batch size at one noise, and the most epochs.
    let size = bench.json(&format!("calibrate --solve batch-size {target} -s 1 --format json"));
    let found = number(&size["solution"]["batch_size"]);
    for (batch, meets) in [(found, true), (found + 1.0, false)] {
        let account = bench.json(&format!(
            "account -s 1 --dataset-size 100000 --epochs 20 --batch-size {batch} -d 1e-6 \
             --lens composition --quantity epsilon --format json"
        ));
        assert_eq!(number(&account["claims"][0]["upper"]) <= 3.0, meets, "{batch}");
    }
    let epochs = bench.json(
        "calibrate --solve epochs --target-epsilon 3 -d 1e-6 -s 1 --dataset-size 100000 \
         --batch-size 512 --format json",
    );
    let shown = epochs["solution_shown"].as_str().unwrap();
    let account = bench.json(&format!(
        "account -s 1 --dataset-size 100000 --batch-size 512 --epochs {shown} -d 1e-6 \
         --lens composition --quantity epsilon --format json"
    ));
    let epsilon = number(&account["claims"][0]["upper"]);
    assert!(epsilon <= 3.0 && epsilon > 2.99, "{epsilon}");
    let (code, _, stderr) =
        bench.run("calibrate --solve batch-size --target-epsilon 3 -d 1e-6 -s 1 -T 10");
    assert!(code == 2 && stderr.contains("--dataset-size"), "{stderr}");
}

/// No number is left out where it is at most 1.
#[test]
fn full_batches_of_much_leakage_have_true_positive_rates() {
    let (code, text, stderr) =
        Bench::new().run("account --noise-multiplier 1 --sampling full --steps 1000 --delta 1e-5");
    assert_eq!(code, 0);
    assert!(!stderr.contains("left out"), "{stderr}");
    assert!(text.contains("TPR @ FPR 0.001") && text.contains("<= 1.000"), "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("may find all 1,000 in it"), "{text}");
}

#[test]
fn errors_advise_what_exists() {
    let bench = Bench::new().file("scores.csv", "score,member\n1,1\n0,0\n");
    let (code, _, stderr) = bench.run("audit scores.csv --claim missing.toml");
    assert!(code == 2 && !stderr.contains("flags"), "{stderr}");
    let (code, _, stderr) = bench.run("account --sigmas 1");
    assert!(code == 2 && !stderr.contains("-- --sigma"), "{stderr}");
    assert!(stderr.contains("--sigma"), "{stderr}");
    let (code, _, stderr) = bench.run("audit nowhere.csv");
    assert!(code == 2 && stderr.contains("cannot read nowhere.csv"), "{stderr}");
    let tabs = Bench::new().file("tabs.csv", "score\tmember\n1\t1\n");
    let (code, _, stderr) = tabs.run("audit tabs.csv");
    assert!(code == 2 && stderr.contains("`score\\tmember`"), "{stderr}");
    assert!(stderr.contains("by commas, not by tabs"), "{stderr}");
    // A program, a picture, a compressed file: its bytes are not shown.
    let binary = Bench::new().file("scores.csv", "\u{7f}ELF\u{2}\u{0}\u{0}\t\u{1}\n\u{0}\n");
    let (code, _, stderr) = binary.run("audit scores.csv");
    assert_eq!(code, 2);
    assert_eq!(
        stderr,
        "error: scores.csv: is not text in UTF-8; give a CSV with the header `score,member`\n"
    );
    let batches =
        "account -s 1 --dataset-size 50000 --batch-size 512 -T 1000 -d 1e-5 --lens composition";
    let (code, _, stderr) = bench.run(&format!("{batches} --sampling balls-and-bins"));
    assert!(code != 0 && stderr.contains("1/sample rate = 97.65625 is not"), "{stderr}");
}

/// The words of `audit` and of `plan` are the same.
#[test]
fn an_epsilon_that_is_claimed_is_planned_for() {
    let bench = Bench::new();
    let (code, planned, stderr) = bench.run("plan --claim-epsilon 1 --mu 2");
    assert_eq!((code, planned), (0, bench.run("plan --target-epsilon 1 --mu 2").1), "{stderr}");
}

/// One rule: what may be quoted has four digits, whoever prints it.
#[test]
fn every_view_quotes_the_same_digits() {
    let bench = Bench::new().file(
        "run.toml",
        "[run]\nnoise_multiplier = 1.1\ndataset_size = 50000\nbatch_size = 512\nepochs = 60\n\
         sampling = \"shuffle\"\nadjacency = \"zero-out\"\n",
    );
    for line in [
        "account run.toml -d 1e-5",
        "check run.toml -d 1e-5 --max-epsilon 60",
        "report run.toml -d 1e-5 --format md --out -",
        "report run.toml -d 1e-5 --format html --out -",
        "report run.toml -d 1e-5 --format card --out -",
        "compare run.toml --every-sampling -d 1e-5",
        "curve steps run.toml -d 1e-5 --points 3",
    ] {
        let (code, text, stderr) = bench.run(line);
        assert_eq!(code, 0, "{line}: {stderr}");
        assert!(text.contains("54.05"), "{line}: {text}");
        // Coordinates of figures may have these digits.
        for sign in ["most ", "= ", "\u{2264} ", "\u{2264}\u{a0}"] {
            assert!(!text.contains(&format!("{sign}54.1")), "{line}: {text}");
        }
    }
}

/// Numbers that are stated have few digits and one sign.
#[test]
fn gates_and_plans_are_said_plainly() {
    let bench = Bench::new()
        .file("run.toml", "[run]\nnoise_multiplier = 1.1\nsample_rate = 0.01\nsteps = 1000\n");
    let (code, text, _) = bench.run("check run.toml --max-epsilon 1.5 --delta 1e-5");
    assert_eq!(code, 3.min(code));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("; the limit is at most 1.5"), "{text}");
    assert!(!text.contains("<= 1.5:"), "{text}");
    let (code, text, stderr) = bench.run("plan --claim run.toml --delta 1e-5 --mu 4");
    assert!(code == 0 || code == 5, "{stderr}");
    let digits = |word: &str| word.chars().filter(char::is_ascii_digit).count();
    assert!(text.split_whitespace().all(|word| digits(word) < 9), "{text}");
}

/// Plans that took forever.
#[test]
fn a_plan_answers_within_seconds() {
    for line in [
        "plan --target-epsilon 3.5 --mu 2 --design one-run --delta 1e-5",
        "plan --target-epsilon 3.5 --mu 2 --design one-run --delta 0",
    ] {
        let begun = std::time::Instant::now();
        let (code, text, stderr) = Bench::new().run(line);
        assert!(begun.elapsed().as_secs() < 60, "{line}");
        let refused = stderr.contains("more than 1,048,576 rows would be needed");
        assert!(matches!(code, 0 | 5) || refused, "{line}: {text}{stderr}");
    }
}

#[test]
fn scores_of_another_run_are_not_audited_silently() {
    let game = "-s 1 -q 0.01 -T 100 --trials 200";
    let bench = Bench::new()
        .file("other.toml", "[run]\nnoise_multiplier = 2\nsample_rate = 0.01\nsteps = 100\n");
    let (code, _, stderr) = bench.run(&format!("attack linear {game} --out scores.csv"));
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("--claim scores.csv.run.json"), "{stderr}");
    let (code, text, stderr) = bench.run("audit scores.csv -d 1e-5 --claim scores.csv.run.json");
    assert_eq!(code, 0, "{text}{stderr}");
    let (code, _, stderr) = bench.run("audit scores.csv -d 1e-5 --claim other.toml");
    assert_eq!(code, 2);
    assert!(stderr.contains("another run") && stderr.contains("--other-run"), "{stderr}");
    let (code, _, stderr) = bench.run("audit scores.csv -d 1e-5 --claim other.toml --other-run");
    assert!(matches!(code, 0 | 3), "{stderr}");
}

/// What `--help` and `-h` print is text, not Rust, and fits a screen.
#[test]
fn help_is_plain_text() {
    fn look(command: &mut clap::Command, path: &str, seen: &mut usize) {
        *seen += 1;
        for help in [command.render_help(), command.render_long_help()] {
            let help = help.to_string();
            assert!(!help.contains("\\\""), "{path}:\n{help}");
            assert!(help.contains("Usage:"), "{path}:\n{help}");
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
        }
        for inner in command.get_subcommands_mut() {
            let path = format!("{path} {}", inner.get_name());
            look(inner, &path, seen);
        }
    }
    let mut command = dosimeter_cli::command();
    command.build();
    let mut seen = 0;
    look(&mut command, "dosimeter", &mut seen);
    assert!(seen > 30, "only {seen} commands were seen");
}

/// One way to count: a row is a line of the file, the header the first.
#[test]
fn every_command_counts_rows_as_an_editor_does() {
    let people = "age,hours,income\n39,40,low\n\n50,x,low\n";
    let run = "[run]\nnoise_multiplier = 1\nbatch_size = 2\nsteps = 3\n\
               [data]\npath = \"people.csv\"\nclasses = [\"low\", \"high\"]\n\
               [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n";
    let results = "batch_size,steps,learning_rate,epsilon,delta,score_a\n1,1,1,8,1e-5,1\n\n";
    let bench = Bench::new()
        .file("people.csv", people)
        .file("run.toml", run)
        .file("ragged.csv", "a,b\n1,2\n\n3\n")
        .file("scores.csv", "score,member\n1,1\n\nx,0\n")
        .file("sensitivity.csv", "sensitivity\n0.1\n\nx\n")
        .file("results.csv", &format!("{results}1,1,1,8,1e-5,x\n"));
    for line in [
        "train run.toml".to_owned(),
        "data describe ragged.csv".to_owned(),
        "audit scores.csv".to_owned(),
        "tune rank results.csv --score a".to_owned(),
        format!("account {RUN} --attribute-sensitivity sensitivity.csv"),
    ] {
        let (code, _, stderr) = bench.run(&line);
        assert_eq!(code, 2, "{line}: {stderr}");
        assert!(stderr.contains("row 4"), "{line}: {stderr}");
    }
}

#[test]
fn columns_that_nobody_lists_are_named() {
    let people = "age,hours,id,income\n39,40,1,low\n50,13,2,low\n38,41,3,high\n";
    let run = "[run]\nnoise_multiplier = 1\nbatch_size = 2\nsteps = 3\n\
               [data]\npath = \"people.csv\"\nclasses = [\"low\", \"high\"]\n\
               column = [{ name = \"age\", mean = 40, deviation = 15 }]\n\
               [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n";
    let bench = Bench::new().file("people.csv", people).file("run.toml", run);
    let (code, _, stderr) = bench.run("train run.toml");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("[data] does not list are not used: hours, id\n"), "{stderr}");
    let ledger = std::fs::read_to_string(bench.path().join("run/ledger.json")).unwrap();
    let ledger: Value = serde_json::from_str(&ledger).unwrap();
    assert_eq!(ledger["data"]["unused"], serde_json::json!(["hours", "id"]));
    // A target's delta is the one of the next step.
    let target = "[run]\nbatch_size = 2\nsteps = 3\n";
    let again = run.replace("[run]\nnoise_multiplier = 1\nbatch_size = 2\nsteps = 3\n", target);
    let bench = bench.file("again.toml", &again);
    let (code, _, stderr) = bench.run("train again.toml --target-epsilon 8 --delta 0.0003");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("again/ledger.json --delta 3e-4\n"), "{stderr}");
}

/// What a program reads is one document or none, whatever the exit code.
#[test]
fn there_is_never_a_second_document() {
    let rows: String =
        (0..400).map(|place| format!("{},{}\n", 9 * (place % 2), place % 2)).collect();
    let bench = Bench::new()
        .file("scores.csv", &format!("score,member\n{rows}"))
        .file("run.toml", "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1000\n");
    for (line, wanted) in [
        ("account run.toml --delta 2", 2),
        ("account run.toml --delta 1e-5 --lens renyi --sampling shuffle", 2),
        ("check run.toml --max-epsilon 1 --delta 1e-5", 3),
        ("audit scores.csv --claim run.toml --delta 1e-5", 3),
        ("audit scores.csv --method one-run", 2),
        ("calibrate --target-epsilon 1 --delta 1e-5 -q 0.01 -T 0", 2),
        ("attack linear -s 1 -q 0.1 -T 4 --trials 4e4 --shard 1/2 --out half.csv", 4),
        ("translate --epsilon -1 --delta 1e-5", 2),
        ("plan --target-epsilon 90 --mu 1", 2),
        ("status nowhere", 2),
    ] {
        let (code, text, stderr) = bench.run(&format!("{line} --format json"));
        assert_eq!(code, wanted, "{line}: {text}{stderr}");
        let documents: Vec<Result<Value, _>> =
            serde_json::Deserializer::from_str(&text).into_iter().collect();
        assert!(documents.len() <= 1 && documents.iter().all(Result::is_ok), "{line}: {text}");
        assert!(!stderr.trim_start().starts_with('{'), "{line}: {stderr}");
    }
}

/// A target in the file is met at the file's delta, which the next step names.
#[test]
fn a_target_in_the_file_keeps_its_delta() {
    let people: String = (0..40).map(|place| format!("{},{}\n", place, place % 2)).collect();
    let run = "[run]\nbatch_size = 4\nsteps = 3\n[privacy]\ntarget_epsilon = 8\ndelta = 0.0003\n\
               [data]\npath = \"people.csv\"\nclasses = 2\n\
               [model]\nkind = \"softmax\"\n[optimizer]\nkind = \"sgd\"\nlearning_rate = 0.5\n";
    let bench =
        Bench::new().file("people.csv", &format!("age,label\n{people}")).file("run.toml", run);
    let (code, _, stderr) = bench.run("train run.toml");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("run/ledger.json --delta 3e-4\n"), "{stderr}");
    let line = stderr.lines().find(|line| line.contains(" for epsilon 8 at delta 0.0003"));
    let noise = line.unwrap().split_whitespace().nth(2).unwrap();
    assert!(noise.chars().filter(char::is_ascii_digit).count() <= 7, "{stderr}");
    // So is the delta of a promise, where no noise was asked for.
    let promised = run
        .replace("[privacy]\ntarget_epsilon = 8\ndelta = 0.0003", "noise_multiplier = 2")
        + "[policy]\nmax_epsilon = 8\ndelta = 0.0002\n";
    let bench = bench.file("promised.toml", &promised);
    let (code, _, stderr) = bench.run("train promised.toml");
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("promised/ledger.json --delta 2e-4\n"), "{stderr}");
    let account =
        bench.json("account run/ledger.json --delta 3e-4 --lens composition --format json");
    let epsilon = number(&account["claims"][0]["upper"]);
    assert!(epsilon <= 8.0 && epsilon > 7.9, "{epsilon}");
}

/// Names are listed side by side, and go into CSV.
#[test]
fn names_of_lenses_have_no_commas() {
    for lens in vocabulary::LensName::ALL {
        for name in [lens.as_str(), lens.label()] {
            assert!(!name.is_empty() && !name.contains(','), "{name}");
        }
    }
}

/// Help says what a command does before it goes into details, and `-d` is a delta everywhere.
#[test]
fn help_goes_from_the_summary_to_the_details() {
    fn look(command: &clap::Command, path: &str, told: &mut usize) {
        let deltas = command.get_arguments().filter(|flag| flag.get_long() == Some("delta"));
        for flag in deltas {
            assert_eq!(flag.get_short(), Some('d'), "{path} --delta");
        }
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let long = command.get_long_about().map(ToString::to_string);
        let before = command.get_before_help().map(ToString::to_string).unwrap_or_default();
        assert!(!before.contains("\n\n"), "{path}: only examples come first:\n{before}");
        if let Some(long) = long.filter(|_| path != "dosimeter") {
            assert!(long.starts_with(&format!("{about}\n\n")), "{path}: {long}");
            *told += 1;
        }
        for flag in command.get_arguments().filter(|flag| !flag.is_hide_set()) {
            assert!(flag.get_help().is_some(), "{path}: {} has no help", flag.get_id());
        }
        for inner in command.get_subcommands() {
            look(inner, &format!("{path} {}", inner.get_name()), told);
        }
    }
    let mut told = 0;
    look(&dosimeter_cli::command(), "dosimeter", &mut told);
    assert!(told >= 10, "only {told} commands have details");
}

/// What the system says about a file is said in words, without its numbers.
#[cfg(unix)]
#[test]
fn files_that_cannot_be_read_are_said_in_words() {
    let run = "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 100\n";
    let bench = Bench::new().file("run.toml", run).file("empty.json", "");
    std::fs::create_dir(bench.path().join("folder")).unwrap();
    for (line, part) in [
        ("account missing.toml", "cannot read missing.toml: there is no such file or folder"),
        ("account folder", "cannot read folder: it is a folder"),
        ("account empty.json", "empty.json: line 1 is not valid JSON: it ends too early"),
        ("prove missing.json", "cannot read missing.json: there is no such file or folder"),
        ("prove empty.json", "empty.json is not an account document: it ends too early"),
        ("prove run.toml", "run.toml is not an account document: line 1 is not valid JSON"),
        ("audit missing.csv", "cannot read missing.csv: there is no such file or folder"),
        ("audit folder", "folder: is a folder; give the file itself"),
        ("data describe missing.csv", "there is no such file or folder"),
        ("train missing.toml", "cannot read missing.toml: there is no such file or folder"),
        ("tune rank missing.csv", "cannot read missing.csv: there is no such file or folder"),
        ("account run.toml --toeplitz missing.npy", "there is no such file or folder"),
        ("report run.toml -d 1e-5 --out nowhere/a.html", "there is no such file or folder"),
        ("train run.toml", "[data]: the table is missing; add it, for example"),
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert_eq!((code, stdout.as_str()), (2, ""), "{line}: {stderr}");
        assert!(stderr.contains(part), "{line}: {stderr}");
        assert!(!stderr.contains("os error"), "{line}: {stderr}");
    }
    for line in ["account missing.toml", "train missing.toml", "report missing.toml -d 1e-5"] {
        let (_, _, stderr) = bench.run(line);
        assert!(stderr.contains("\nhint: "), "{line}: {stderr}");
    }
    // A file that is not there is not told to be another format.
    let (_, _, stderr) = bench.run("data describe missing.csv");
    assert!(!stderr.contains("other formats"), "{stderr}");
}

/// Every command has a man page, with its examples as they are typed.
#[test]
fn man_pages_have_examples() {
    let bench = Bench::new();
    let (code, _, stderr) = bench.run("completions --man pages");
    assert_eq!(code, 0, "{stderr}");
    let read = |name: &str| std::fs::read_to_string(bench.path().join("pages").join(name)).unwrap();
    for inner in dosimeter_cli::command().get_subcommands() {
        let page = read(&format!("dosimeter-{}.1", inner.get_name()));
        assert!(page.contains(".SH NAME"), "{page}");
        let lines = inner.get_before_help().map(ToString::to_string).unwrap_or_default();
        for line in lines.lines().filter(|line| line.starts_with("  dosimeter")) {
            let typed = line.replace('\\', "\\e").replace('-', "\\-");
            assert!(page.contains(&format!("\n{typed}\n")), "{line}:\n{page}");
        }
    }
    assert!(read("dosimeter.1").contains(".SH EXAMPLES\n.nf\n  dosimeter account "));
    assert!(read("dosimeter-attack-gradient.1").contains("\\-\\-coordinate quiet"));
}

/// A reader of all bounds learns which of them are above the claim, and when that counts.
#[test]
fn bounds_of_families_above_the_claim_are_named() {
    let mut rows = String::from("score,member\n");
    for place in 0..1000_u32 {
        // A ramp of width 4, members half a unit to the right; coins by the bits of a mixed count.
        let member = (place.wrapping_mul(2_654_435_761) >> 16) % 2;
        let ramp = f64::from(place.wrapping_mul(7_919) % 1000) / 250.0;
        rows.push_str(&format!("{},{member}\n", ramp + 0.5 * f64::from(member)));
    }
    let bench = Bench::new().file("canaries.csv", &rows);
    let line = "audit canaries.csv --design one-run --delta 1e-5 --method all --claim-epsilon 3";
    let audit = bench.json(&format!("{line} --format json"));
    assert_eq!(audit["verdict"]["status"], "consistent");
    let warned: Vec<&str> = audit["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|warning| warning.as_str())
        .filter(|words| words.contains("above the claimed 3.000"))
        .collect();
    assert_eq!(warned.len(), 2, "{audit}");
    assert!(warned[0].starts_with("one-run-gdp shows epsilon of at least 4.3"), "{audit}");
    assert!(warned[0].ends_with("(mechanisms with a Gaussian trade-off curve)"), "{audit}");
    let (_, text, _) = bench.run(line);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // So does the report, whose headline is about any mechanism.
    let report = "report canaries.csv --noise-multiplier 1 -q 0.01 -T 3000 --design one-run -d 1e-5 --format html --out -";
    let (code, page, stderr) = bench.run(report);
    assert_eq!(code, 0, "{stderr}");
    assert!(!page.contains("contradicts nothing"), "{page}");
    assert!(page.contains("bounds within families are above it"), "{page}");
    let together = "clopper-pearson, gdp, composition, last-iterate, bayes, grid: needs";
    assert!(flat.contains(together), "{text}");
}
