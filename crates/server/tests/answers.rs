//! What is answered equals what the core says.

mod support;

use accounting::Questions;
use accounting::curve::{CurveKind, CurveRequest};
use serde_json::{Value, json};
use support::Server;
use vocabulary::{Direction, LensName, Run};

fn run() -> (Run, Value) {
    let run = Run::builder().phase(1.0, 0.01, 1000).build().unwrap();
    (
        run,
        json!({"noise_multiplier": 1, "sample_rate": 0.01, "steps": 1000, "sampling": "poisson", "adjacency": "add-remove", "clip_norm": 1}),
    )
}

#[test]
fn accounts_are_those_of_the_core_to_the_last_digit() {
    let server = Server::plain();
    let (run, described) = run();
    let answer = server.ask("/api/account", &json!({"run": described, "delta": [1e-5, 1e-6], "fpr": 0.05, "lens": ["composition", "last-iterate"]}));
    let questions = Questions {
        deltas: vec![1e-5, 1e-6],
        fprs: vec![0.05],
        lenses: vec![LensName::Composition, LensName::LastIterate],
        ..Questions::default()
    };
    let expected = serde_json::to_value(accounting::account(&run, &questions).unwrap()).unwrap();
    assert_eq!(answer.json(), expected);
}

/// Questions that name files of this machine (tune, memorize, report, status) have no address. The page
/// needs none: every address that it names is a question, an upload of scores, or an experiment of the
/// served folder.
#[test]
fn the_page_asks_only_what_has_an_address() {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src");
    let mut folders = vec![source];
    let mut asked = std::collections::BTreeSet::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            for address in text.split("/api/").skip(1) {
                let end = address.find(|c: char| !c.is_ascii_lowercase() && c != '-');
                asked.insert(address[..end.unwrap_or(address.len())].to_owned());
            }
        }
    }
    let others = ["audit", "experiments", "version"];
    for name in &asked {
        let kinds = answers::Question::KINDS;
        assert!(kinds.contains(&name.as_str()) || others.contains(&name.as_str()), "{name}");
    }
    for name in ["account", "calibrate", "compare", "curve", "panel", "map", "audit"] {
        assert!(asked.contains(name), "{name}: {asked:?}");
    }
}

#[test]
fn calibrations_and_curves_are_those_of_the_core() {
    let server = Server::plain();
    let (run, described) = run();
    let question = json!({
        "run": {"sample_rate": 0.01, "steps": 1000, "sampling": "poisson", "adjacency": "add-remove", "clip_norm": 1},
        "solve": "noise-multiplier", "target_epsilon": 2, "delta": 1e-5,
    });
    let target = accounting::Target::Epsilon { epsilon: 2.0, delta: 1e-5 };
    let expected = accounting::calibrate(
        &run,
        accounting::Unknown::NoiseMultiplier,
        &target,
        LensName::Composition,
        &[],
    )
    .unwrap();
    assert_eq!(
        server.ask("/api/calibrate", &question).json(),
        serde_json::to_value(expected).unwrap()
    );
    let given = server.ask(
        "/api/calibrate",
        &json!({"run": described, "solve": "noise-multiplier", "target_advantage": 0.1}),
    );
    assert_eq!(given.status, 400, "the unknown was given");

    let request = CurveRequest {
        kind: CurveKind::Profile,
        lenses: vec![LensName::Composition],
        direction: Direction::Both,
        delta: None,
        at: vec![0.5, 1.0],
        first: 1,
        points: 65,
    };
    let expected = accounting::curve::curve(&run, &request).unwrap();
    let question = json!({"kind": "profile", "run": described, "epsilon": [0.5, 1.0]});
    assert_eq!(server.ask("/api/curve", &question).json(), serde_json::to_value(expected).unwrap());
}

#[test]
fn the_drawn_curves_are_on_the_safe_side_of_the_exact_ones() {
    let server = Server::plain();
    let (run, described) = run();
    let panel = server.ask("/api/panel", &json!({"run": described, "points": 64})).json();
    let fpr: Vec<f64> = serde_json::from_value(panel["fpr"].clone()).unwrap();
    for line in panel["lines"].as_array().unwrap() {
        let lens = LensName::parse(line["lens"].as_str().unwrap()).unwrap();
        let view = accounting::lenses::Lens::named(lens).look(&run).unwrap();
        let tpr: Vec<f64> = serde_json::from_value(line["tpr"].clone()).unwrap();
        for (fpr, drawn) in fpr.iter().zip(&tpr).step_by(5) {
            let exact =
                if *fpr < 1.0 { view.tpr(*fpr, Direction::Both).unwrap().lower } else { 1.0 };
            assert!(
                *drawn >= exact && *drawn <= 1.02 * exact,
                "{lens} at {fpr}: {drawn} for {exact}"
            );
        }
    }
    let map = server
        .ask("/api/map", &json!({"run": described, "delta": 1e-5, "columns": 5, "rows": 3}))
        .json();
    let noise: Vec<f64> = serde_json::from_value(map["noise_multiplier"].clone()).unwrap();
    let cell = map["epsilon"][1][2].as_f64().unwrap();
    let steps = map["steps"][1].as_u64().unwrap();
    let run = Run::builder().phase(noise[2], 0.01, steps).build().unwrap();
    let view = accounting::lenses::Lens::named(LensName::Composition).look(&run).unwrap();
    assert_eq!(cell, view.epsilon(1e-5, Direction::Both).unwrap().upper);
}

#[test]
fn a_page_may_ask_for_refusals_as_answers() {
    let server = Server::plain();
    let body = br#"{"run":{"noise_multiplier":-1,"sample_rate":0.1,"steps":1}}"#;
    let json = ("Content-Type", "application/json");
    let prefer = ("Prefer", "status=200");
    let soft = server.request("POST", "/api/account", &[json, prefer], body);
    assert_eq!((soft.status, soft.json()["schema"].as_str()), (200, Some("dosimeter.error/1")));
    assert_eq!(server.request("POST", "/api/account", &[json], body).status, 400);
    // What the guard refuses stays refused.
    let foreign = ("Origin", "http://evil.example");
    assert_eq!(server.request("POST", "/api/account", &[json, prefer, foreign], body).status, 403);
}

#[test]
fn a_dropped_file_is_audited_in_memory() {
    let server = Server::plain();
    let (_, described) = run();
    let mut csv = String::from("score,member\n");
    for number in 0..2000 {
        csv.push_str(&format!("{},1\n{},0\n", f64::from(number) + 300.0, number));
    }
    let question = json!({"delta": 1e-5, "claim": described}).to_string();
    let encoded: String = question.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let path = format!("/api/audit?question={encoded}");
    let answer = server.request("POST", &path, &[("Content-Type", "text/csv")], csv.as_bytes());
    let document = answer.json();
    assert_eq!(answer.status, 200, "{document}");
    assert_eq!(document["audit"]["schema"], "dosimeter.audit/1");
    assert_eq!(document["audit"]["members"], 2000);
    assert_eq!(document["audit"]["verdict"]["status"], "contradiction");
    assert!(document["figures"]["roc"]["series"].as_array().unwrap().len() >= 2);
}

#[test]
fn rows_of_one_training_are_not_audited_as_trainings_of_their_own() {
    let server = Server::plain();
    let ask = |question: &str, rows: &dyn Fn(usize) -> String| {
        let mut csv = String::from("score,member,run\n");
        for row in 0..200 {
            csv.push_str(&format!("{},{},{}\n", row % 17, row % 2, rows(row)));
        }
        let path = format!("/api/audit?question={question}");
        server.request("POST", &path, &[("Content-Type", "text/csv")], csv.as_bytes())
    };
    let one = ask("%7B%7D", &|_| "seed 1".into()).json();
    assert_eq!(one["audit"]["design"], "one-run");
    assert_eq!(one["audit"]["bounds"][0]["method"], "one-run");
    let own = ask("%7B%7D", &|row| row.to_string()).json();
    assert_eq!(own["audit"]["design"], "runs");
    // Asked for as independent trainings, or neither one training nor many: refused.
    let insisted = ask("%7B%22design%22%3A%22runs%22%7D", &|_| "seed 1".into());
    assert_eq!(insisted.status, 400);
    let mixed = ask("%7B%7D", &|row| (row / 4).to_string());
    assert_eq!(mixed.status, 400);
    assert!(mixed.json()["error"].as_str().unwrap().contains("column `run`"));
}

/// One dimension of doubles.
fn npy(values: &[f64]) -> Vec<u8> {
    formats::npy::doubles(&[values.len()], values)
}

#[test]
fn two_numpy_files_are_the_two_sides() {
    let server = Server::plain();
    let values = |shift: f64| (0..2000).map(|number| f64::from(number) + shift).collect::<Vec<_>>();
    let (members, nonmembers) = (npy(&values(300.0)), npy(&values(0.0)));
    let both = [members.clone(), nonmembers].concat();
    let ask = |question: serde_json::Value, body: &[u8]| {
        let encoded: String = question.to_string().bytes().map(|b| format!("%{b:02x}")).collect();
        let path = format!("/api/audit?question={encoded}");
        server.request("POST", &path, &[("Content-Type", "application/x-npy")], body)
    };
    let answer = ask(json!({"delta": 1e-5, "members_bytes": members.len()}), &both);
    let document = answer.json();
    assert_eq!(answer.status, 200, "{document}");
    let mut csv = String::from("score,member\n");
    for number in 0..2000 {
        csv.push_str(&format!("{},1\n{},0\n", f64::from(number) + 300.0, number));
    }
    let path = "/api/audit?question=%7B%22delta%22%3A1e-5%7D";
    let same = server.request("POST", path, &[("Content-Type", "text/csv")], csv.as_bytes());
    assert_eq!(document, same.json(), "the same scores, hashes included");
    for (members_bytes, body, words) in [
        (json!(null), both.as_slice(), "`members_bytes`"),
        (json!(both.len() + 1), &both, "`members_bytes`"),
        (json!(members.len() - 8), &both, "the members' file: the header promises 2000"),
        (
            json!(members.len()),
            &both[..both.len() - 8],
            "the non-members' file: the header promises",
        ),
        (json!(members.len()), &members, "the non-members' file"),
        (json!(0), &both, "the members' file"),
    ] {
        let refused = ask(json!({"delta": 1e-5, "members_bytes": members_bytes}), body);
        let document = refused.json();
        assert_eq!(refused.status, 400, "{document}");
        assert!(document["error"].as_str().unwrap().contains(words), "{document}");
    }
}

#[test]
fn scores_of_an_experiment_are_compared_with_the_run_that_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("scores.csv.work");
    std::fs::create_dir_all(work.join("chunks")).unwrap();
    // A trained game keeps its run within its parameters.
    let run = json!({"noise_multiplier": 1.0, "dataset_size": 50000, "batch_size": 500, "steps": 500,
        "sampling": "fixed-size", "adjacency": "substitute"});
    let plan =
        experiments::Plan::new("attack gradient", json!({"run": run}), 7, "score,member\n", 10, 30);
    std::fs::write(work.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
    let mut csv = String::from("score,member\n");
    for number in 0..500 {
        csv.push_str(&format!("{},1\n{},0\n", f64::from(number) + 60.0, number));
    }
    std::fs::write(folder.path().join("scores.csv"), csv).unwrap();
    let beside = folder.path().join("scores.csv.run.json");
    let server = Server::of_folder(folder.path().to_owned());
    let list = server.request("GET", "/api/experiments", &[], b"").json();
    let id = list["experiments"][0]["id"].as_str().unwrap().to_owned();
    let ask = |question: serde_json::Value| {
        let encoded: String = question.to_string().bytes().map(|b| format!("%{b:02x}")).collect();
        let path = format!("/api/experiments/{id}/audit?question={encoded}");
        server.request("POST", &path, &[("Content-Type", "application/json")], b"{}")
    };
    let plain = json!({"delta": 1e-5});
    // Nobody says which run made them: no claim.
    let alone = ask(plain.clone());
    let document = alone.json();
    assert_eq!(alone.status, 200, "{document}");
    assert!(document["audit"]["verdict"].is_null(), "{document}");
    std::fs::write(&beside, json!({"run": run}).to_string()).unwrap();
    let made = ask(plain.clone()).json()["audit"].clone();
    assert_eq!(made["plan"]["claim"]["sampling"], "fixed-size");
    assert_eq!(made["bounds"][0]["adjacency"], "substitute");
    // The same as if the run had been claimed by name, figures included.
    let named = ask(json!({"delta": 1e-5, "claim": run}));
    assert_eq!(ask(plain.clone()).json(), named.json());
    assert!(named.json()["figures"]["roc"]["series"].as_array().unwrap().len() >= 3);
    assert!(made["verdict"]["claimed_epsilon"].as_f64().unwrap() > 0.0);
    // Another run is refused, without a word on where the folder lies.
    let other = ask(
        json!({"delta": 1e-5, "claim": {"noise_multiplier": 2, "sample_rate": 0.01, "steps": 500}}),
    );
    let refused = other.json().to_string();
    assert!(other.status == 400 && refused.contains("another run"), "{refused}");
    assert!(refused.contains("scores.csv.run.json"), "{refused}");
    assert!(!refused.contains(folder.path().to_str().unwrap()), "{refused}");
    // Nothing is proven about shuffled batches and a record more: no claim.
    let shuffled = json!({"run": {"noise_multiplier": 1.0, "sample_rate": 0.01, "steps": 500,
        "sampling": "shuffle"}});
    std::fs::write(&beside, shuffled.to_string()).unwrap();
    let unproven = ask(plain);
    let document = unproven.json();
    assert_eq!(unproven.status, 200, "{document}");
    assert!(document["audit"]["verdict"].is_null() && document["figures"]["roc"].is_object());
}

#[test]
fn experiments_are_listed_by_name_and_found_by_id() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("inner/scores.csv.work");
    std::fs::create_dir_all(work.join("chunks")).unwrap();
    let plan =
        experiments::Plan::new("attack linear", json!({"steps": 10}), 7, "score,member\n", 10, 30);
    std::fs::write(work.join("plan.json"), serde_json::to_string(&plan).unwrap()).unwrap();
    std::fs::write(work.join("chunks/00000001.failed"), "out of memory").unwrap();
    let server = Server::of_folder(folder.path().to_owned());
    let list = server.request("GET", "/api/experiments", &[], b"").json();
    let only = &list["experiments"][0];
    assert_eq!(only["name"], "inner/scores.csv");
    assert_eq!(
        only["chunks"],
        json!({"all": 3, "done": 0, "missing": 2, "failed": 1, "unusable": 0})
    );
    assert!(only["problems"][0].as_str().unwrap().contains("out of memory"));
    let id = only["id"].as_str().unwrap();
    let one = server.request("GET", &format!("/api/experiments/{id}"), &[], b"").json();
    assert_eq!(one["states"], "mfm");
    assert_eq!(server.request("GET", "/api/experiments/0000000000000000", &[], b"").status, 404);
    let json = [("Content-Type", "application/json")];
    let audit = server.request("POST", &format!("/api/experiments/{id}/audit"), &json, b"{}");
    assert_eq!(audit.status, 404, "there is no output yet");
    assert_eq!(Server::plain().request("GET", "/api/experiments", &[], b"").status, 404);
}
