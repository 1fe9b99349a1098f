//! `prove` and `account --certify`: exit 0, 3 and 5, and the seal on claims.

use crate::support;

use support::Bench;

/// One claim with its run. Epsilon of a Gaussian with mu = 1 at delta 1e-5 is 4.37717809568122463.
fn document(lens: &str, direction: &str, quantity: &str, at: &str, ends: (f64, f64)) -> String {
    format!(
        r#"{{"run": {{"noise_multiplier": 1.0, "sample_rate": 1.0, "steps": 1, "sampling": "full",
            "adjacency": "add-remove", "clip_norm": 1.0}},
          "claim": {{"lens": "{lens}", "release": "all-iterates", "secret": "membership",
            "direction": "{direction}", "quantity": "{quantity}", "at": {at}, "standing": "proven",
            "side": "upper", "value": {}, "lower": {}, "upper": {}, "assumptions": []}}}}"#,
        ends.0, ends.0, ends.1
    )
}

#[test]
fn right_ends_are_proven() {
    let text = document("composition", "both", "epsilon", r#"{"delta": 1e-5}"#, (4.37717, 4.37718));
    let bench = Bench::new().file("claim.json", &text);
    let (code, stdout, stderr) = bench.run("prove claim.json");
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("proven: delta(4.37718) <= "), "{stdout}");
    assert!(stderr.contains("1 of 1 claims proven in ball arithmetic"), "{stderr}");
    let proof = bench.json("prove claim.json --format json");
    assert_eq!(proof["schema"], "dosimeter.proof/1");
    assert_eq!(proof["proofs"][0]["upper"]["enclosures"][0]["of"], "delta(4.37718), remove");
}

/// What is proven is the run: a claim about other neighbours would get its seal.
#[test]
fn a_claim_is_about_the_neighbours_of_its_run() {
    let text = document("composition", "both", "epsilon", r#"{"delta": 1e-5}"#, (4.37717, 4.37718));
    let other =
        text.replace(r#""direction": "both""#, r#""direction": "both", "adjacency": "substitute""#);
    let (code, stdout, stderr) = Bench::new().file("claim.json", &other).run("prove claim.json");
    assert_eq!(code, 2, "{stdout}{stderr}");
    assert!(
        stderr.contains("a claim is about substitute, and its run about add-remove"),
        "{stderr}"
    );
}

#[test]
fn a_wrong_end_is_a_failed_check() {
    let text = document("composition", "both", "epsilon", r#"{"delta": 1e-5}"#, (4.3, 4.377));
    let (code, _, stderr) = Bench::new().file("claim.json", &text).run("prove claim.json");
    assert_eq!(code, 3, "{stderr}");
    assert!(stderr.contains("a certified end is wrong; please report it"), "{stderr}");
}

#[test]
fn an_undecided_end_is_a_refusal() {
    // The upper end of a mu of four records in balls and bins has no proof in balls.
    let text = document("composition", "both", "mu", r#"{"delta": 1e-5}"#, (0.5, 90.0)).replace(
        r#""sample_rate": 1.0, "steps": 1, "sampling": "full""#,
        r#""sample_rate": 0.1, "steps": 10, "sampling": "balls-and-bins", "group_size": 4"#,
    );
    let (code, _, stderr) = Bench::new().file("claim.json", &text).run("prove claim.json");
    assert_eq!(code, 5, "{stderr}");
    assert!(stderr.contains("undecided"), "{stderr}");
}

#[test]
fn certified_claims_carry_a_seal() {
    let run = "account --noise-multiplier 2 --sample-rate 0.01 --steps 100 --epsilon 0.1";
    let document = Bench::new().json(&format!("{run} --lens full-batch --certify --format json"));
    for claim in document["claims"].as_array().unwrap() {
        assert_eq!(claim["certificate"], "balls", "{claim}");
    }
    assert_eq!(document["certificate"]["schema"], "dosimeter.proof/1");
}
