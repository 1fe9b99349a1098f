//! A run that a Rényi filter ended, at every door.

use crate::support::Bench;

const FLAGS: &str = "--noise-multiplier 1 --sample-rate 0.1 --steps 50 --stopped renyi-filter --renyi-order 4 --renyi-budget 3";
const FILE: &str = "[run]\nnoise_multiplier = 1\nsample_rate = 0.1\nsteps = 50\nstopped = \"renyi-filter\"\n\
                    renyi_order = 4\nrenyi_budget = 3\n";

#[test]
fn flags_files_and_documents_say_the_same() {
    let bench = Bench::new().file("run.toml", FILE);
    let asked = "--delta 1e-5 --quantity epsilon --format json";
    let flags = bench.json(&format!("account {FLAGS} {asked}"));
    let file = bench.json(&format!("account run.toml {asked}"));
    assert_eq!(flags["claims"][0]["upper"], file["claims"][0]["upper"]);
    assert_eq!(flags["run"], file["run"]);
    assert_eq!(flags["run"]["renyi_order"], 4.0);
    assert_eq!(flags["claims"].as_array().unwrap().len(), 1, "{flags}");
    let bench = bench.file("run.json", &flags["run"].to_string());
    let document = bench.json(&format!("account run.json {asked}"));
    assert_eq!(flags["claims"][0]["upper"], document["claims"][0]["upper"]);
    assert_eq!(flags["run"], document["run"]);
    let (code, stdout, _) = bench.run("account run.toml --delta 1e-5");
    assert!(code == 0 && stdout.starts_with("Sign: epsilon <= 6.088 at delta 1e-5"), "{stdout}");
}

#[test]
fn what_a_filter_cannot_say_is_refused() {
    let bench = Bench::new()
        .file("run.toml", FILE)
        .file("plain.toml", &FILE[..FILE.find("stopped").unwrap()]);
    for (line, words) in [
        ("account run.toml --renyi-budget 0.5 --delta 1e-5", "more than the budget 0.5"),
        (
            "account run.toml --renyi-order 1 --delta 1e-5",
            "renyi_order 1 is not a finite number above 1",
        ),
        (
            "account run.toml --renyi-budget nan --delta 1e-5",
            "renyi_budget NaN is not a finite number above 0",
        ),
        ("account run.toml --max-steps 60 --delta 1e-5", "`max_steps` is for a run"),
        ("account plain.toml --renyi-order 4 --delta 1e-5", "add stopped = \"renyi-filter\""),
        (
            "account plain.toml --stopped renyi-filter --renyi-order 4 --delta 1e-5",
            "the budget of the Rényi filter is missing",
        ),
        (
            "account plain.toml --stopped renyi-filter --renyi-budget 4 --delta 1e-5",
            "the order of the Rényi filter is missing",
        ),
        ("account plain.toml run.toml --delta 1e-5", "outputs decided when one of the runs ended"),
        ("account run.toml --lens renyi --delta 1e-5", "fixed in advance"),
        ("curve steps run.toml --delta 1e-5", "no curve over steps"),
        (
            "calibrate --sample-rate 0.1 --steps 50 --stopped renyi-filter --renyi-order 4 --renyi-budget 3 --target-epsilon 2 --delta 1e-5",
            "nothing to solve for",
        ),
    ] {
        let (code, stdout, stderr) = bench.run(line);
        assert!(code == 2 && stderr.contains(words), "{line}: {code} {stdout}{stderr}");
    }
}

#[test]
fn provers_and_audits_know_that_it_has_no_pair() {
    let bench = Bench::new().file("run.toml", FILE);
    let account = bench.json("account run.toml --delta 1e-5 --quantity epsilon --format json");
    let bench = bench.file("account.json", &account.to_string());
    let (code, stdout, stderr) = bench.run("prove account.json");
    assert!(code == 5 && stdout.contains("undecided: outputs chose"), "{code} {stdout}{stderr}");
    let game =
        "attack linear --noise-multiplier 1 --sample-rate 0.1 --steps 50 --out s.csv --trials=500";
    assert_eq!(bench.run(game).0, 0);
    for method in ["composition", "last-iterate"] {
        let (code, _, stderr) =
            bench.run(&format!("audit s.csv --claim run.toml --delta 1e-5 --method {method}"));
        assert!(code == 2 && stderr.contains("has no pair for the claim"), "{code} {stderr}");
    }
    let (code, stdout, stderr) = bench.run("audit s.csv --claim run.toml --delta 1e-5");
    assert!(code == 0 && stdout.contains("Verdict: "), "{code} {stdout}{stderr}");
}
