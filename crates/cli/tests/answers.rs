//! What a person and a script read: whole commands as snapshots, documents by their keys.

use crate::support;

use support::Bench;

const RUN: &str = "--noise-multiplier 1 --sample-rate 0.01 --steps 1000";

#[test]
fn account_fits_on_a_screen() {
    insta::assert_snapshot!(
        Bench::new().show(&format!("account {RUN} --delta 1e-5 --lens composition"))
    );
}

#[test]
fn account_json_is_the_contract() {
    let document = Bench::new().json(&format!("account {RUN} --delta 1e-5 --format json"));
    assert_eq!(document["schema"], "dosimeter.account/1");
    assert_eq!(
        document["run"],
        serde_json::json!({"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 1000,
            "sampling": "poisson", "adjacency": "add-remove", "clip_norm": 1.0})
    );
    let claims = document["claims"].as_array().unwrap();
    let find = |lens: &str, quantity: &str| {
        claims
            .iter()
            .find(|claim| claim["lens"] == lens && claim["quantity"] == quantity)
            .unwrap_or_else(|| panic!("no {quantity} of {lens}"))
    };
    let epsilon = find("composition", "epsilon");
    assert_eq!(epsilon["at"], serde_json::json!({"delta": 1e-5}));
    for (key, value) in [
        ("release", "all-iterates"),
        ("secret", "membership"),
        ("direction", "both"),
        ("standing", "proven"),
        ("side", "upper"),
    ] {
        assert_eq!(epsilon[key], value, "{key}");
    }
    let number = |key: &str| epsilon[key].as_f64().unwrap();
    assert!((number("value") - 1.82823666652).abs() < 1e-10, "{epsilon}");
    assert!(number("lower") <= number("value") && number("value") <= number("upper"));
    assert_eq!(find("composition", "bayes-security")["side"], "lower");
    assert_eq!(find("last-iterate", "epsilon")["standing"], "heuristic");
    assert_eq!(find("gaussian-clt", "epsilon")["side"], "neither");
    assert_eq!(find("composition", "tpr")["at"], serde_json::json!({"fpr": 0.001}));
    let assumptions = epsilon["assumptions"].as_array().unwrap();
    assert!(assumptions.iter().any(|line| line == "sampling poisson (default)"), "{assumptions:?}");
}

#[test]
fn without_a_delta_there_is_a_hint() {
    let (code, stdout, stderr) = Bench::new().run(&format!("account {RUN} --lens full-batch"));
    assert_eq!(code, 0);
    assert!(!stdout.contains("@ delta"), "{stdout}");
    assert!(stderr.contains("hint: give --delta"), "{stderr}");
}

#[test]
fn a_delta_above_one_over_n_is_warned_about() {
    let line = "account --noise-multiplier 1 --dataset-size 50000 --batch-size 500 --steps 100 --delta 1e-4 --lens full-batch";
    let (code, _, stderr) = Bench::new().run(line);
    assert_eq!(code, 0);
    assert!(stderr.contains("above 1/n = 2.00e-5"), "{stderr}");
}

#[test]
fn directions_come_apart_on_request() {
    let document = Bench::new()
        .json(&format!("account {RUN} --delta 1e-5 --directions --lens composition --format json"));
    let epsilon = |direction: &str| {
        let claims = document["claims"].as_array().unwrap();
        let claim = claims
            .iter()
            .find(|claim| claim["quantity"] == "epsilon" && claim["direction"] == direction)
            .unwrap();
        claim["value"].as_f64().unwrap()
    };
    assert!((epsilon("remove") - 1.828236666517).abs() < 1e-9);
    assert!((epsilon("add") - 1.416661948036).abs() < 1e-9);
    assert_eq!(epsilon("both"), epsilon("remove"));
}

#[test]
fn substitution_is_proven() {
    let document = Bench::new().json(&format!(
        "account {RUN} --adjacency substitute --delta 1e-5 --lens composition --format json"
    ));
    let claim = &document["claims"][0];
    assert_eq!((&claim["standing"], &claim["adjacency"]), (&"proven".into(), &"substitute".into()));
    let assumptions = claim["assumptions"].to_string();
    assert!(assumptions.contains("replacing one record"), "{assumptions}");
}

#[test]
fn shuffling_is_not_claimed_but_its_risk_is_shown() {
    let line = "account --noise-multiplier 0.5 --sample-rate 0.01 --steps 100 --sampling shuffle --delta 1e-5";
    let document = Bench::new().json(&format!("{line} --format json"));
    assert_eq!(document["claims"], serde_json::json!([]));
    assert!(document["unsupported"].as_array().unwrap().len() >= 5);
    let asides = document["asides"].as_array().unwrap();
    let number = |name: &str, key: &str| {
        let aside = asides.iter().find(|aside| aside["name"] == name);
        aside.unwrap_or_else(|| panic!("no {name}"))[key].as_f64().unwrap()
    };
    // One epoch at little noise: what is proven for Poisson batches is below what an attack on
    // shuffled ones reaches.
    assert!(number("shuffle-lower-bound", "lower") > number("if-poisson", "upper"));
    let (_, stdout, _) = Bench::new().run(line);
    let flat = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("if the batches had been Poisson"), "{stdout}");
}

/// What would be lost in a list of phases is refused.
#[test]
fn files_that_are_more_than_their_phases_are_not_composed() {
    let plain = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 400\n";
    let banded =
        "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 400\n[run.matrix]\nbands = 4\n";
    let stopped = format!("{plain}stopped = \"on-output\"\nmax_steps = 600\n");
    let bench = Bench::new()
        .file("a.toml", plain)
        .file("banded.toml", banded)
        .file("stopped.toml", &stopped);
    for (files, reason) in [
        ("a.toml banded.toml", "correlated"),
        ("banded.toml a.toml", "correlated"),
        ("a.toml stopped.toml", "outputs decided"),
        ("stopped.toml a.toml", "outputs decided"),
    ] {
        let (code, _, stderr) = bench.run(&format!("account {files} --delta 1e-5"));
        assert!(code == 2 && stderr.contains(reason), "{files}: {stderr}");
    }
}

#[test]
fn files_compose_in_order_and_flags_override() {
    let first = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 400\n";
    let second = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 6e2\n";
    let bench = Bench::new().file("a.toml", first).file("b.toml", second);
    let epsilon = |document: &serde_json::Value| document["claims"][0]["value"].as_f64().unwrap();
    let composed =
        bench.json("account a.toml b.toml --delta 1e-5 --lens composition --format json");
    assert_eq!(composed["run"]["phases"].as_array().unwrap().len(), 2);
    assert!((epsilon(&composed) - 1.82823666652).abs() < 1e-9, "{composed}");
    let overridden =
        bench.json("account a.toml --steps 1000 --delta 1e-5 --lens composition --format json");
    assert!((epsilon(&overridden) - 1.82823666652).abs() < 1e-9);
    let bench =
        bench.file("c.toml", "[run]\nnoise_multiplier = 1.0\nsampling = \"full\"\nsteps = 4\n");
    let (code, _, stderr) = bench.run("account a.toml c.toml");
    assert_eq!(code, 2);
    assert!(stderr.contains("sampling differs (poisson and full)"), "{stderr}");
}

#[test]
fn a_ledger_is_a_run() {
    let ledger = r#"{"schema": "dosimeter.ledger/1", "device": "cpu", "seeds": {"root": 7},
        "run": {"sampling": "poisson", "adjacency": "add-remove", "clip_norm": 1.0, "phases": [
            {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 500},
            {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 500}]}}"#;
    let bench = Bench::new().file("ledger.json", ledger);
    let document = bench.json("account ledger.json --delta 1e-5 --lens composition --format json");
    let value = document["claims"][0]["value"].as_f64().unwrap();
    assert!((value - 1.82823666652).abs() < 1e-9, "{document}");
    // What account printed can be read again.
    let text = serde_json::to_string(&document).unwrap();
    let again = bench
        .file("account.json", &text)
        .json("account account.json --delta 1e-5 --lens composition --format json");
    assert_eq!(again["run"], document["run"]);
}

#[test]
fn calibrate_answers_on_the_safe_side() {
    let line = "calibrate --solve noise-multiplier --target-epsilon 2 --delta 1e-5 --sample-rate 0.01 --steps 1000";
    insta::assert_snapshot!(Bench::new().show(line));
    let document = Bench::new().json(&format!("{line} --format json"));
    assert_eq!(document["schema"], "dosimeter.calibrate/1");
    let noise = document["solution"]["noise_multiplier"].as_f64().unwrap();
    assert!((noise / 0.9591015524135 - 1.0).abs() < 1e-10, "{noise}");
    assert!(document["achieved"]["upper"].as_f64().unwrap() <= 2.0);
    assert!(document["slack"].as_f64().unwrap() >= 0.0);
}

#[test]
fn curves_in_every_format() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.show(&format!("curve tradeoff {RUN} --fpr 0.001,0.01,0.1")));
    let document = bench.json(&format!("curve tradeoff {RUN} --fpr 0.01 --format json"));
    assert_eq!(document["schema"], "dosimeter.curve/1");
    assert_eq!((&document["kind"], &document["lens"]), (&"tradeoff".into(), &"composition".into()));
    let point = &document["points"][0];
    assert_eq!(point["fpr"], 0.01);
    assert!((point["fnr"].as_f64().unwrap() - 0.970860905).abs() < 1e-8, "{point}");
    let (_, csv, _) = bench.run(&format!("curve profile {RUN} --epsilon 0,1 --format csv"));
    assert_eq!(csv.lines().next(), Some("lens,direction,epsilon,delta,lower,upper"));
    assert!(csv.lines().nth(1).unwrap().starts_with("composition,both,0,0.16101761969"), "{csv}");
    let (_, svg, _) = bench.run(&format!(
        "curve steps {RUN} --delta 1e-5 --points 9 --lens last-iterate,full-batch --format svg"
    ));
    assert!(svg.starts_with("<svg ") && svg.contains("last-iterate") && svg.contains("epsilon"));
}

#[test]
fn runs_side_by_side() {
    let bench = Bench::new()
        .file("small.toml", "[run]\nnoise_multiplier = 0.8\nsample_rate = 0.004\nsteps = 5000\n")
        .file("large.toml", "[run]\nnoise_multiplier = 2\nsample_rate = 0.1\nsteps = 1000\n");
    insta::assert_snapshot!(
        bench.show("compare small.toml large.toml --delta 1e-5 --lens composition,last-iterate")
    );
    let (_, csv, _) = bench.run("compare small.toml large.toml --lens full-batch --format csv");
    assert!(csv.lines().nth(1).unwrap().starts_with("small.toml,full-batch,"), "{csv}");
}

#[test]
fn the_map_has_both_ratios() {
    let line =
        "compare --map --noise-multiplier 1 --delta 1e-5 --sample-rates 0.01,1 --steps-list 1e3";
    insta::assert_snapshot!(Bench::new().show(line));
    let document = Bench::new().json(&format!("{line} --format json"));
    let ratio = document["cells"][0]["heuristic_over_standard"].as_f64().unwrap();
    assert!((ratio - 1.27775588784 / 1.82823666652).abs() < 1e-9, "{ratio}");
    let ratio = document["cells"][0]["heuristic_over_full_batch"].as_f64().unwrap();
    assert!((ratio - 1.27775588784 / 1.19936957375).abs() < 1e-9, "{ratio}");
}

#[test]
fn the_same_heuristic_epsilon_for_several_batch_sizes() {
    let line = "compare --batch-sizes 512,4096 --dataset-size 50000 --epochs 60 --heuristic-epsilon 6.34 --delta 1e-5";
    insta::assert_snapshot!(Bench::new().show(line));
}

#[test]
fn check_is_a_gate() {
    let bench = Bench::new().file(
        "run.toml",
        "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 1000\n\
         [policy]\nmax_epsilon = 2\ndelta = 1e-5\nmin_bayes_security = 0.9\n",
    );
    insta::assert_snapshot!(bench.show("check run.toml"));
    assert_eq!(bench.run("check run.toml --min-bayes-security 0.8").0, 0);
    let (code, stdout, _) = bench.run("check run.toml --max-epsilon 1.5 --format json");
    assert_eq!(code, 3);
    let document: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(document["passed"], false);
    let failed: Vec<&str> = document["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|verdict| verdict["passed"] == false)
        .map(|verdict| verdict["limit"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["max_epsilon", "min_bayes_security"]);
}

#[test]
fn help_begins_with_examples() {
    for line in [
        "--help",
        "account --help",
        "calibrate --help",
        "curve --help",
        "compare --help",
        "check --help",
        "schema --help",
        "completions --help",
    ] {
        let (code, stdout, stderr) = Bench::new().run(line);
        assert_eq!((code, stderr.as_str()), (0, ""), "{line}");
        assert!(stdout.starts_with("Examples:\n  dosimeter "), "{line}: {stdout}");
        assert!(!stdout.contains('\u{1b}'), "{line}: colour in a pipe");
    }
}

/// Every document that a command prints or reads.
const SCHEMAS: &[&str] = &[
    "dosimeter.account/1",
    "dosimeter.advice/1",
    "dosimeter.attack/1",
    "dosimeter.audit-commitment/1",
    "dosimeter.audit/1",
    "dosimeter.batch-sizes/1",
    "dosimeter.calibrate/1",
    "dosimeter.calibration-map/1",
    "dosimeter.check/1",
    "dosimeter.compare/1",
    "dosimeter.curve/1",
    "dosimeter.data-description/1",
    "dosimeter.data/1",
    "dosimeter.error/1",
    "dosimeter.figure/1",
    "dosimeter.ledger/1",
    "dosimeter.map/1",
    "dosimeter.membership/1",
    "dosimeter.memorize-acr/1",
    "dosimeter.memorize/1",
    "dosimeter.panel/1",
    "dosimeter.plan/1",
    "dosimeter.policy/1",
    "dosimeter.proof/1",
    "dosimeter.report/1",
    "dosimeter.reproduce/1",
    "dosimeter.run/1",
    "dosimeter.sequential-audit/1",
    "dosimeter.status/1",
    "dosimeter.translate/2",
    "dosimeter.tune-profiles/1",
    "dosimeter.tune-rank/1",
    "dosimeter.tune-regress/1",
    "dosimeter.tune-search/1",
    "dosimeter.tune-select/1",
];

#[test]
fn completions_and_schemas_for_all() {
    let bench = Bench::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (code, stdout, _) = bench.run(&format!("completions {shell}"));
        assert!(code == 0 && stdout.contains("calibrate"), "{shell}");
    }
    let (_, names, _) = bench.run("schema");
    let mut listed: Vec<&str> = names.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, SCHEMAS);
    for name in listed {
        let schema = bench.json(&format!("schema {name}"));
        assert!(schema["$schema"].is_string(), "{name}");
    }
    // The schema's required keys are in the document.
    let schema = bench.json("schema dosimeter.account/1");
    let document = bench.json(&format!("account {RUN} --lens full-batch --format json"));
    for key in schema["required"].as_array().unwrap() {
        assert!(!document[key.as_str().unwrap()].is_null(), "{key}");
    }
    let claim = &schema["$defs"]["Claim"];
    for key in claim["required"].as_array().unwrap() {
        assert!(document["claims"][0].get(key.as_str().unwrap()).is_some(), "{key}");
    }
}
