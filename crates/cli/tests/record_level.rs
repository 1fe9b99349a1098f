//! Record-level inference as a user asks for it: closed forms, attributes, candidates, hidden state,
//! translations.

use crate::support;

use support::Bench;

const SIZES: &str = "--noise-multiplier 1 --sample-rate 0.001 --steps 100000";
const RUN: &str = "--noise-multiplier 1 --sample-rate 0.001 --steps 100000 --adjacency substitute";

fn claim<'a>(
    document: &'a serde_json::Value,
    lens: &str,
    secret: &str,
    quantity: &str,
) -> &'a serde_json::Value {
    document["claims"]
        .as_array()
        .unwrap()
        .iter()
        .find(|claim| {
            claim["lens"] == lens && claim["secret"] == secret && claim["quantity"] == quantity
        })
        .unwrap_or_else(|| panic!("no {quantity} of {lens} about {secret}"))
}

#[test]
fn closed_forms_stand_beside_composition() {
    let document = Bench::new().json(&format!(
        "account {RUN} --lens composition,closed-form,closed-form-clt,closed-form-certified --format json"
    ));
    let beta = |lens: &str| {
        let claim = claim(&document, lens, "membership", "bayes-security");
        (claim["value"].as_f64().unwrap(), claim["standing"].clone(), claim["side"].clone())
    };
    let exact = beta("composition").0;
    assert!((exact - 0.73215).abs() < 1e-5, "{exact}");
    let (paper, standing, side) = beta("closed-form");
    assert!((paper - 0.7518).abs() < 5e-5 && standing == "estimate" && side == "neither");
    assert!((beta("closed-form-clt").0 - 0.7317).abs() < 5e-5);
    let (certified, standing, side) = beta("closed-form-certified");
    assert!(certified < exact && certified > 0.65 && standing == "proven" && side == "lower");
}

/// The page's table has the standing that the program gives composition, for both relations.
#[test]
fn the_page_gives_composition_its_standing() {
    let page = include_str!("../../../docs/record-level.md");
    let row = page.lines().find(|line| line.starts_with("| `composition` |")).unwrap();
    let said = row.split('|').nth(3).unwrap().trim();
    for adjacency in ["substitute", "add-remove"] {
        let document = Bench::new().json(&format!(
            "account {SIZES} --adjacency {adjacency} --lens composition --format json"
        ));
        let claim = claim(&document, "composition", "membership", "bayes-security");
        assert_eq!(claim["standing"], "proven", "{adjacency}");
    }
    assert!(said.starts_with("proven, for both") && !said.contains("heuristic"), "{said}");
}

#[test]
fn an_attribute_from_a_file() {
    let mut text = String::from("step,sensitivity\n");
    for step in 1..=1000 {
        text.push_str(&format!("{step},{}\n", if step % 2 == 0 { 0.5 } else { 0.25 }));
    }
    let bench = Bench::new().file("age.csv", &text);
    let run = "--sample-rate 0.01 --steps 1000";
    let line = format!(
        "account --noise-multiplier 1 {run} --lens closed-form,closed-form-certified \
         --attribute-sensitivity age.csv --format json"
    );
    let document = bench.json(&line);
    let membership = claim(&document, "closed-form-certified", "membership", "bayes-security");
    let attribute = claim(&document, "closed-form-certified", "attribute", "bayes-security");
    assert!(attribute["lower"].as_f64() > membership["lower"].as_f64());
    assert_eq!(attribute["standing"], "heuristic");
    let accuracy = claim(&document, "closed-form", "attribute", "attack-accuracy");
    // p |R| = .01 sqrt(1000 (.25 + .0625)/2) = .125: accuracy 1 - beta/2 = Phi(.125/2).
    assert!((accuracy["value"].as_f64().unwrap() - 0.524918).abs() < 1e-6, "{accuracy}");
    let (code, stdout, _) = bench.run(&line.replace("--format json", ""));
    assert!(code == 0 && stdout.contains("closed-form/attribute"), "{stdout}");

    // At most 55 % attack accuracy on the attribute: noise that the claim then confirms.
    let target = format!(
        "calibrate --solve noise-multiplier --target-attack-accuracy 0.55 {run} \
         --attribute-sensitivity age.csv --format json"
    );
    let found = bench.json(&target);
    assert_eq!(found["achieved"]["lens"], "closed-form-certified");
    assert_eq!(found["achieved"]["secret"], "attribute");
    assert!(found["achieved"]["upper"].as_f64().unwrap() <= 0.55);
    // A file with rows of several records says how many they are.
    let rows = (1..=2000).map(|row| format!("{},{},0.5\n", 1 + row % 1000, row / 1001));
    let bench =
        bench.file("two.csv", &format!("step,record,sensitivity\n{}", rows.collect::<String>()));
    let two = line.replace("age.csv", "two.csv --attribute-mode record");
    let (code, stdout, stderr) = bench.run(&two.replace("--format json", ""));
    let flat = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        code == 0 && flat.contains("the worst of the 2 that were looked at is shown"),
        "{stdout}{stderr}"
    );
    // Steps are the first ones of the training that was measured.
    let steps = bench.json(
        &target
            .replace("noise-multiplier", "steps")
            .replace("--steps 1000", "--noise-multiplier 0.5"),
    );
    let found = steps["solution"]["steps"].as_u64().unwrap();
    assert!((1..1000).contains(&found), "{found}");
    assert!(steps["achieved"]["upper"].as_f64().unwrap() <= 0.55);
}

#[test]
fn wrong_sensitivities_are_named() {
    for (text, part) in [
        ("sensitivity\n0.1\nx\n", "row 3"),
        ("distance\n1\n", "`distance`"),
        ("sensitivity\n0.1\n", "1 steps, but the run has 10"),
        ("norm_a,norm_b,inner\n1,1,2\n", "inner product 2"),
    ] {
        let (code, _, stderr) = Bench::new().file("r.csv", text).run(
            "account --noise-multiplier 1 --sample-rate 0.1 --steps 10 --lens closed-form \
             --attribute-sensitivity r.csv",
        );
        assert!(code == 2 && stderr.contains(part), "{text}: {stderr}");
    }
}

#[test]
fn candidates_and_priors() {
    let ask = |flags: &str| {
        let line = format!(
            "account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --lens composition {flags} \
             --format json"
        );
        let document = Bench::new().json(&line);
        claim(&document, "composition", "reconstruction", "reconstruction")["upper"]
            .as_f64()
            .unwrap()
    };
    let (ten, prior) = (ask("--candidates 10"), ask("--prior 0.1"));
    assert!((ten / prior - 1.0).abs() < 0.02 && ten > 0.1 && ten < 0.2, "{ten} {prior}");
    let document = Bench::new().json(
        "account --noise-multiplier 1 --sample-rate 0.01 --steps 1000 --lens composition,closed-form-certified --attack-prior 0.5,0.1 --format json",
    );
    let accuracy = claim(&document, "composition", "membership", "attack-accuracy");
    let half = accuracy["upper"].as_f64().unwrap();
    assert!((half - 0.5 - 0.161_017_62 / 2.0).abs() < 1e-7, "{accuracy}");
    let uneven = ask("--candidate-priors 0.9,0.05,0.05");
    assert!(uneven > 0.9 && uneven < 0.925, "{uneven}");
    let (code, _, stderr) = Bench::new().run(
        "account --noise-multiplier 1 --sample-rate 0.01 --steps 10 --candidate-priors 0.9,0.9",
    );
    assert!(code == 2 && stderr.contains("1.8"), "{stderr}");
}

#[test]
fn hidden_state_asks_for_constants() {
    let run = "account --noise-multiplier 5 --sampling full --steps 10000 --delta 1e-5";
    let (code, _, stderr) = Bench::new().run(&format!("{run} --lens hidden-state"));
    assert!(code == 2 && stderr.contains("--smoothness"), "{stderr}");
    let document = Bench::new().json(&format!(
        "{run} --lens hidden-state,composition --learning-rate 0.1 --smoothness 5 \
         --strong-convexity 1 --format json"
    ));
    let epsilon = |lens: &str| claim(&document, lens, "membership", "epsilon")["upper"].as_f64();
    assert!(epsilon("hidden-state") < epsilon("composition"));
}

#[test]
fn translations_are_labelled_by_what_is_assumed() {
    insta::assert_snapshot!(
        Bench::new().show("translate --bayes-security 0.9 --fpr 0.01 --delta 1e-5")
    );
}
