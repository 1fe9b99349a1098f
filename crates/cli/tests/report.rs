//! `report` from the command line: the example, files of every kind, the public edition, and
//! what is refused.

use crate::support;

use serde_json::Value;
use std::path::Path;
use support::dosimeter;

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn embedded(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"dosimeter\">";
    let json = page.split_once(start).unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(json).unwrap()
}

/// Scores with a shift that a Gaussian of mu 1 has, without any randomness: quantiles.
fn scores(folder: &Path, name: &str, count: usize, shift: f64) {
    let mut text = String::from("score,member\n");
    for i in 0..count {
        // A logistic quantile is enough: the file only has to be plausible.
        let p = (i as f64 + 0.5) / count as f64;
        let score = (p / (1.0 - p)).ln();
        text.push_str(&format!("{},1\n{score},0\n", score + shift));
    }
    std::fs::write(folder.join(name), text).unwrap();
}

/// The same in an order that has nothing to do with the scores: trials as they come.
fn trials(folder: &Path, name: &str, count: usize, shift: f64) {
    let mut text = String::from("score,member\n");
    for i in 0..count {
        let p = ((i * 617 % count) as f64 + 0.5) / count as f64;
        let q = ((i * 421 % count) as f64 + 0.5) / count as f64;
        let logit = |p: f64| (p / (1.0 - p)).ln();
        text.push_str(&format!("{},1\n{},0\n", logit(p) + shift, logit(q)));
    }
    std::fs::write(folder.join(name), text).unwrap();
}

const RUN: &str = "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 500\n";

fn with_run() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.toml"), RUN).unwrap();
    folder
}

/// Fewer trainings than the example has by itself, and enough to test its claim.
#[test]
fn the_example_trains_and_ends_with_its_verdict_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = dosimeter(folder.path(), &["report", "--trials", "800"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.starts_with("Consistent. The claim stands: epsilon is at most 4.736"),
        "{stdout}"
    );
    assert!(stdout.trim_end().ends_with("report: dosimeter-report.html"), "{stdout}");
    // The README quotes the verdict.
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    assert!(readme.contains(stdout.lines().next().unwrap()), "{stdout}");
    let page = read(folder.path(), "dosimeter-report.html");
    assert!(page.len() < 400_000, "{} bytes", page.len());
    let json = embedded(&page);
    assert_eq!(json["schema"], "dosimeter.report/1");
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(json["verdict"]["status"], "consistent");
    let ids: Vec<&str> =
        json["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "tradeoff", "accuracy", "profile", "steps", "changes", "map", "ladder", "scores",
            "norms", "loss"
        ]
    );
    // What was shown is below the proof, and is more than nothing.
    let epsilon = |claim: &str| json["verdict"][claim]["upper"].as_f64().unwrap();
    let shown = json["verdict"]["measured"]["epsilon_lower"].as_f64().unwrap();
    assert!(0.8 < shown && shown < epsilon("heuristic") && epsilon("heuristic") < epsilon("claim"));
    // The ledger vouches for noise, sampling and clipping, and shows how the training went.
    let verified = |words: &str| {
        let all = json["assumptions"].as_array().unwrap().iter();
        all.filter(|entry| entry["text"].as_str().unwrap().contains(words))
            .any(|entry| entry["mark"] == "verified")
    };
    assert!(verified("Gaussian noise") && verified("Poisson batches") && verified("clipped"));
    let health = json["training"]["health"].as_array().unwrap();
    let accuracy = health.iter().find(|fact| fact["name"] == "accuracy on test data").unwrap();
    assert!(accuracy["value"].as_f64().unwrap() > 0.8, "{accuracy}");
    let hash = json["provenance"]["inputs"][0]["sha256"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
}

#[test]
fn the_example_is_found_again_and_gives_the_same_bytes_elsewhere() {
    let small = ["report", "--trials", "40"];
    let folder = tempfile::tempdir().unwrap();
    let (code, stdout, stderr) = dosimeter(folder.path(), &small);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("Inconclusive"), "{stdout}");
    let page = read(folder.path(), "dosimeter-report.html");
    let (_, _, stderr) = dosimeter(folder.path(), &small);
    assert!(!stderr.contains("chunks"), "{stderr}");
    assert_eq!(read(folder.path(), "dosimeter-report.html"), page);
    // Elsewhere, killed in the middle of it.
    let other = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .current_dir(other.path())
        .args(small)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(400));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(dosimeter(other.path(), &small).0, 0);
    assert!(read(other.path(), "dosimeter-report.html") == page, "other bytes in another folder");
    let wrong = with_run();
    let (code, _, stderr) =
        dosimeter(wrong.path(), &["report", "run.toml", "--delta", "1e-5", "--trials", "40"]);
    assert!(code == 2 && stderr.contains("built-in example"), "{stderr}");
}

#[test]
fn the_claims_are_those_of_account() {
    let folder = with_run();
    let (code, _, stderr) = dosimeter(folder.path(), &["report", "run.toml", "--delta", "1e-6"]);
    assert_eq!(code, 0, "{stderr}");
    let report = embedded(&read(folder.path(), "dosimeter-report.html"));
    let (_, stdout, _) =
        dosimeter(folder.path(), &["account", "run.toml", "--delta", "1e-6", "--format", "json"]);
    let account: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["account"], account);
    assert_eq!(report["verdict"]["status"], "claim-only");
    assert!(report["audit"].is_null());
}

#[test]
fn the_public_edition_leaks_no_scores() {
    let folder = with_run();
    scores(folder.path(), "scores.csv", 500, 1.5);
    let full = ["report", "run.toml", "scores.csv", "--delta", "1e-5", "--out", "full.html"];
    assert_eq!(dosimeter(folder.path(), &full).0, 0);
    let with = embedded(&read(folder.path(), "full.html"));
    assert!(with["audit"]["bounds"].is_array());
    let public =
        ["report", "run.toml", "scores.csv", "--delta", "1e-5", "--out", "public.html", "--public"];
    let (code, _, stderr) = dosimeter(folder.path(), &public);
    assert_eq!(code, 0, "{stderr}");
    let page = read(folder.path(), "public.html");
    let json = embedded(&page);
    assert!(json["audit"].is_null() && json["verdict"]["measured"].is_null());
    for figure in json["figures"].as_array().unwrap() {
        assert_eq!(figure["not_private"], false, "{}", figure["id"]);
        assert!(!["ladder", "scores"].contains(&figure["id"].as_str().unwrap()));
    }
    assert!(!page.contains("not private") && !page.contains("measured attack"));
    // The same bytes whatever the scores are: nothing of them can be in it.
    scores(folder.path(), "scores.csv", 700, 3.0);
    assert_eq!(dosimeter(folder.path(), &public).0, 0);
    assert_eq!(read(folder.path(), "public.html"), page);
}

#[test]
fn scores_above_the_claim_are_a_contradiction_with_exit_3() {
    let folder = with_run();
    scores(folder.path(), "scores.csv", 2000, 2.5);
    let (code, stdout, _) =
        dosimeter(folder.path(), &["report", "run.toml", "scores.csv", "--delta", "1e-5"]);
    assert_eq!(code, 3, "{stdout}");
    assert!(stdout.starts_with("Contradiction."), "{stdout}");
    let page = read(folder.path(), "dosimeter-report.html");
    assert!(page.contains("class=\"box contradiction\""));
    // What was refuted must not be there to be pasted.
    let statement = embedded(&page)["statement"].to_string();
    assert!(statement.contains("No privacy guarantee") && !statement.contains("(epsilon, delta)"));
}

#[test]
fn scores_alone_are_reported_without_a_claim() {
    let folder = tempfile::tempdir().unwrap();
    scores(folder.path(), "scores.csv", 500, 2.0);
    let (code, stdout, stderr) =
        dosimeter(folder.path(), &["report", "scores.csv", "--delta", "1e-5"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("Measured only."), "{stdout}");
    let json = embedded(&read(folder.path(), "dosimeter-report.html"));
    assert!(json["run"].is_null() && json["account"].is_null());
}

const SUBSTITUTE: &str =
    "[run]\nnoise_multiplier = 1.0\nsample_rate = 0.01\nsteps = 500\nadjacency = \"substitute\"\n";

#[test]
fn the_bounds_are_those_of_audit() {
    let cyclic =
        format!("{RUN}sampling = \"cyclic-poisson\"\ncycle_length = 4\nadjacency = \"zero-out\"\n");
    let group = format!("{RUN}group_size = 3\n");
    for (run, adjacency) in [
        (RUN, "add-remove"),
        (SUBSTITUTE, "substitute"),
        (&cyclic, "zero-out"),
        (&group, "add-remove"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("run.toml"), run).unwrap();
        scores(folder.path(), "scores.csv", 300, 1.0);
        let report = ["report", "run.toml", "scores.csv", "--delta", "1e-5"];
        let (code, _, stderr) = dosimeter(folder.path(), &report);
        assert_eq!(code, 0, "{stderr}");
        let found = embedded(&read(folder.path(), "dosimeter-report.html"));
        let audit = ["audit", "scores.csv", "--claim", "run.toml", "--delta", "1e-5"];
        let all = [&audit[..], &["--method", "all", "--format", "json"]].concat();
        let (_, stdout, stderr) = dosimeter(folder.path(), &all);
        let asked: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stderr}"));
        assert_eq!(found["audit"], asked, "{run}");
        let bounds = asked["bounds"].as_array().unwrap();
        assert!(bounds.len() > 3 && bounds.iter().all(|one| one["adjacency"] == adjacency));
        // How scores were made is taken where nobody states it, and the reader learns that.
        let taken = "each row is taken as a separate training";
        assert!(found["left_out"].to_string().contains(taken), "{run}");
        let stated = [&report[..], &["--design", "runs"]].concat();
        assert_eq!(dosimeter(folder.path(), &stated).0, 0);
        let found = embedded(&read(folder.path(), "dosimeter-report.html"));
        assert!(!found["left_out"].to_string().contains(taken), "{run}");
    }
}

#[test]
fn scores_of_another_run_get_no_verdict() {
    let folder = with_run();
    trials(folder.path(), "scores.csv", 300, 1.0);
    let beside = r#"{"run":{"noise_multiplier":2.0,"sample_rate":0.01,"steps":500}}"#;
    std::fs::write(folder.path().join("scores.csv.run.json"), beside).unwrap();
    let asked = ["report", "run.toml", "scores.csv", "--delta", "1e-5"];
    for more in [&[][..], &["--sequential"]] {
        let asked = [&asked[..], more].concat();
        let (code, _, stderr) = dosimeter(folder.path(), &asked);
        assert_eq!(code, 2, "{stderr}");
        for words in ["noise multiplier 2, claimed 1", "scores.csv.run.json", "--other-run"] {
            assert!(stderr.contains(words), "{stderr}");
        }
        assert!(!folder.path().join("dosimeter-report.html").exists());
        let (code, _, stderr) = dosimeter(
            folder.path(),
            &[&asked[..], &["--other-run", "--out", "meant.html"]].concat(),
        );
        assert_eq!(code, 0, "{stderr}");
        assert!(read(folder.path(), "meant.html").contains("--other-run"));
    }
    // The run that made them is not another one.
    let (code, _, stderr) = dosimeter(
        folder.path(),
        &["report", "scores.csv.run.json", "scores.csv", "--delta", "1e-5"],
    );
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn where_nothing_is_proven_there_is_no_claim() {
    let folder = tempfile::tempdir().unwrap();
    let run = format!("{RUN}sampling = \"shuffle\"\n");
    std::fs::write(folder.path().join("run.toml"), run).unwrap();
    trials(folder.path(), "scores.csv", 300, 1.0);
    for more in [&[][..], &["--sequential"]] {
        let asked = ["report", "run.toml", "scores.csv", "--delta", "1e-5"];
        let (code, _, stderr) = dosimeter(folder.path(), &[&asked[..], more].concat());
        assert_eq!(code, 0, "{stderr}");
        let json = embedded(&read(folder.path(), "dosimeter-report.html"));
        assert_eq!(json["verdict"]["status"], "measured-only");
        assert!(json["audit"]["verdict"].is_null());
    }
}

#[test]
fn a_ledger_verifies_what_flags_only_declare() {
    let folder = with_run();
    let ledger = r#"{"schema":"dosimeter.ledger/1","run":{"noise_multiplier":1.0,
        "sample_rate":0.01,"steps":500,"sampling":"poisson","adjacency":"add-remove",
        "clip_norm":1.0},"device":"cpu"}"#;
    std::fs::write(folder.path().join("ledger.json"), ledger).unwrap();
    let marks = |args: &[&str]| -> Vec<String> {
        let (code, _, stderr) = dosimeter(folder.path(), args);
        assert_eq!(code, 0, "{stderr}");
        let json = embedded(&read(folder.path(), "dosimeter-report.html"));
        let all = json["assumptions"].as_array().unwrap().iter();
        all.take(4).map(|one| one["mark"].as_str().unwrap().to_owned()).collect()
    };
    let verified = marks(&["report", "ledger.json", "--delta", "1e-5"]);
    assert_eq!(verified, ["verified", "verified", "verified", "declared"]);
    // A flag on top of a ledger is a person's word again.
    let changed = marks(&["report", "ledger.json", "--steps", "600", "--delta", "1e-5"]);
    assert_eq!(changed, ["declared", "declared", "declared", "declared"]);
    // Defaults that nobody stated are unknown.
    let written = marks(&["report", "run.toml", "--delta", "1e-5"]);
    assert_eq!(written, ["declared", "unknown", "unknown", "declared"]);
}

/// A ledger as training writes it, shortened.
const LEDGER: &str = r#"{"schema":"dosimeter.ledger/1","version":"0.1.0","complete":true,
    "run":{"noise_multiplier":1.0,"sample_rate":0.01,"steps":500,"sampling":"poisson",
           "adjacency":"add-remove","clip_norm":1.0},
    "clipping":{"norm":1.0,"unit":"one record","normalised_by":"the public expected batch size"},
    "noise":{"generator":"ChaCha20","secure":true,"precaution":"sums of four draws"},
    "model":{"kind":"mlp","parameters":12345},"data":{"name":"adult","records":32561},
    "optimizer":{"kind":"sgd","learning_rate":0.5},"sessions":[{"from_step":0,"to_step":500}],
    "not_private":{"note":"…","test_accuracy":0.8412,"statistics":{
        "batch_sizes":{"smallest":271,"mean":325.5,"largest":389,"empty":0},
        "fraction_clipped":0.973,
        "gradient_norm_quantiles":[{"level":0.05,"norm":0.9},{"level":0.5,"norm":3.1},
                                   {"level":0.95,"norm":8.25}],
        "history":[{"step":0,"loss":0.693,"accuracy":0.5},{"step":250,"loss":0.41,"accuracy":0.8},
                   {"step":499,"loss":0.37,"accuracy":0.83}]}}}"#;

#[test]
fn a_ledger_gives_its_record_its_health_and_its_word() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ledger.json"), LEDGER).unwrap();
    let args = ["report", "ledger.json", "--delta", "1e-6"];
    let (code, _, stderr) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    let page = read(folder.path(), "dosimeter-report.html");
    let json = embedded(&page);
    let marks: Vec<&str> = json["assumptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a["mark"].as_str().unwrap())
        .collect();
    // Noise, sampling, clipping, neighbours; people, normaliser, search, generator.
    assert_eq!(
        marks,
        [
            "verified", "verified", "verified", "declared", "unknown", "verified", "unknown",
            "verified"
        ]
    );
    // Noise from a seed is not unknown: the ledger says that it is not safe.
    let seeded = LEDGER.replace("\"secure\":true", "\"secure\":false");
    std::fs::write(folder.path().join("seeded.json"), seeded).unwrap();
    let asked = ["report", "seeded.json", "--delta", "1e-6", "--format", "md", "--out", "-"];
    let (_, text, _) = dosimeter(folder.path(), &asked);
    let line = text.lines().find(|line| line.contains("sound generator")).unwrap();
    assert!(line.contains("not so, by the ledger") && !line.contains("unknown"), "{line}");
    assert!(page.contains("97.3 %") && page.contains("mlp, 12,345 parameters"));
    let ids: Vec<&str> =
        json["figures"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert!(ids.contains(&"norms") && ids.contains(&"loss"), "{ids:?}");
    assert!(page.contains("id=\"health-heading\">Training health<span class=\"tag\">not private"));

    // The public edition keeps the record and drops the health.
    let public = [&args[..], &["--public", "--out", "public.html"]].concat();
    assert_eq!(dosimeter(folder.path(), &public).0, 0);
    let page = read(folder.path(), "public.html");
    assert!(page.contains("mlp, 12,345 parameters"));
    for secret in ["97.3", "0.973", "325.5", "84.1", "0.8412", "8.25", "not private"] {
        let inside = page.contains(&format!(">{secret}")) || page.contains(&format!(":{secret}"));
        assert!(!inside, "{secret} is in the public edition");
    }
    assert!(embedded(&page)["training"]["health"].is_null());

    // Noise from a seed is said to be unfit for release.
    let seeded = LEDGER.replace("\"secure\":true", "\"secure\":false");
    std::fs::write(folder.path().join("ledger.json"), seeded).unwrap();
    assert_eq!(dosimeter(folder.path(), &args).0, 0);
    let json = embedded(&read(folder.path(), "dosimeter-report.html"));
    assert_eq!(json["assumptions"][7]["mark"], "broken");
    assert!(json["assumptions"][7]["note"].as_str().unwrap().contains("not for a model"));
}

#[test]
fn results_of_other_settings_are_a_section_that_is_not_public() {
    let folder = with_run();
    let mut text =
        String::from("batch_size,steps,learning_rate,epsilon,delta,seed,score_acr,utility\n");
    for (batch, steps, score) in [(256, 2000, 1.5), (1024, 500, 0.9), (4096, 125, 0.5)] {
        for seed in 0..3 {
            let score = score + 0.02 * f64::from(seed);
            text.push_str(&format!("{batch},{steps},0.001,4,1e-5,{seed},{score},0.8\n"));
        }
    }
    std::fs::write(folder.path().join("results.csv"), text).unwrap();
    let args = ["report", "run.toml", "results.csv", "--delta", "1e-5"];
    let (code, _, stderr) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    let page = read(folder.path(), "dosimeter-report.html");
    let group = &embedded(&page)["search"]["groups"][0];
    assert_eq!((group["configurations"].as_u64(), group["runs"].as_u64()), (Some(3), Some(9)));
    assert!(group["p_value"].as_f64().unwrap() < 1e-6, "{group}");
    assert!(page.contains("not the epsilon of the search"));
    let public = [&args[..], &["--public", "--out", "public.html"]].concat();
    assert_eq!(dosimeter(folder.path(), &public).0, 0);
    let page = read(folder.path(), "public.html");
    assert!(embedded(&page)["search"].is_null() && !page.contains("results.csv,"));
    assert!(!page.contains("not private"));
}

#[test]
fn markdown_to_stdout() {
    let folder = with_run();
    let args = ["report", "run.toml", "--delta", "1e-5", "--format", "md", "--out", "-"];
    let (code, stdout, _) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("## Privacy\n"), "{stdout}");
    assert!(stdout.contains("| composition | proven |") && stdout.contains("### Provenance"));
    assert!(!folder.path().join("dosimeter-report.md").exists());
}

/// What would change the answer is asked about the same batches: with replacement, stopped early, with a count.
#[test]
fn changes_keep_everything_else_of_the_run() {
    let sizes = "[run]\ndataset_size = 1000\nbatch_size = 50\nsteps = 100\nnoise_multiplier = 2\n";
    for (details, adjacency, other) in [
        ("sampling = \"fixed-size\"\nreplacement = true\n", "substitute", "zero-out"),
        ("sampling = \"shuffle\"\npermutation = \"kept\"\n", "zero-out", "substitute"),
        ("stopped = \"on-output\"\nmax_steps = 400\n", "add-remove", "substitute"),
        ("count_noise = 3.0\n", "add-remove", "substitute"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let run = format!("{sizes}{details}");
        std::fs::write(folder.path().join("run.toml"), run).unwrap();
        let ask = |command: &str, more: &[&str]| {
            let fixed = [command, "run.toml", "--delta", "1e-5"];
            let (code, stdout, stderr) = dosimeter(folder.path(), &[&fixed, more].concat());
            assert_eq!(code, 0, "{details}: {stderr}");
            stdout
        };
        ask("report", &["--adjacency", adjacency]);
        let report = embedded(&read(folder.path(), "dosimeter-report.html"));
        let changes = report["changes"].as_array().unwrap();
        let upper = |more: &[&str]| {
            let fixed = ["--lens", "composition", "--quantity", "epsilon", "--format", "json"];
            let account: Value =
                serde_json::from_str(&ask("account", &[&fixed, more].concat())).unwrap();
            account["claims"][0]["upper"].clone()
        };
        let row = |start: &str| {
            let rows =
                changes.iter().filter(|change| change["name"].as_str().unwrap().starts_with(start));
            let rows: Vec<_> = rows.map(|change| change["epsilon"]["upper"].clone()).collect();
            assert_eq!(rows.len(), 1, "{start}: {changes:?}");
            rows[0].clone()
        };
        assert_eq!(row("a group of 2"), upper(&["--adjacency", adjacency, "--group-size", "2"]));
        assert_eq!(row("a record is"), upper(&["--adjacency", other]));
        let claimed = report["verdict"]["claim"]["upper"].as_f64().unwrap();
        let more = row("twice the steps").as_f64().unwrap();
        assert!(more >= claimed, "{details}: {more} {claimed}");
    }
}

#[test]
fn shuffled_batches_are_reported_without_a_claim() {
    let folder = with_run();
    let args = ["report", "run.toml", "--sampling", "shuffle", "--delta", "1e-5"];
    let (code, stdout, stderr) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("Nothing claimed."), "{stdout}");
    let json = embedded(&read(folder.path(), "dosimeter-report.html"));
    assert!(json["verdict"]["claim"].is_null());
    assert!(json["statement"][1].as_str().unwrap().starts_with("No privacy guarantee is stated"));
}

#[test]
fn substitution_is_proven() {
    let folder = with_run();
    let args = ["report", "run.toml", "--adjacency", "substitute", "--delta", "1e-5"];
    let (code, stdout, stderr) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("Epsilon is at most"), "{stdout}");
    let json = embedded(&read(folder.path(), "dosimeter-report.html"));
    assert_eq!(json["verdict"]["claim"]["standing"], "proven");
}

#[test]
fn bad_input_is_exit_2_and_leaves_nothing_behind() {
    let folder = with_run();
    let path = folder.path();
    std::fs::write(path.join("bad.csv"), "score,member\n1.0,1\nnan,0\n").unwrap();
    std::fs::write(path.join("bad.toml"), "[run]\nnoise = 1\n").unwrap();
    std::fs::write(path.join("thing.txt"), "hello").unwrap();
    scores(path, "scores.csv", 50, 1.0);
    let cases: [(&[&str], &str); 10] = [
        (&["report", "run.toml"], "needs a delta"),
        (&["report", "run.toml", "--delta", "-1"], "-1"),
        (&["report", "missing.toml", "--delta", "1e-5"], "missing.toml"),
        (&["report", "missing.csv", "--delta", "1e-5"], "missing.csv"),
        (&["report", "bad.csv", "--delta", "1e-5"], "bad.csv, row 3"),
        (&["report", "bad.toml", "--delta", "1e-5"], "noise"),
        (&["report", "thing.txt", "--delta", "1e-5"], "neither a run"),
        (&["report", "scores.csv", "--delta", "1e-5", "--confidence", "2"], "confidence 2"),
        (
            &["report", "run.toml", "--delta", "1e-5", "--out", "run.toml"],
            "no kind of report has the extension .toml",
        ),
        (&["report", "run.toml", "--delta", "1e-5", "--out", "no/such/place.html"], "cannot write"),
    ];
    for (args, part) in cases {
        let (code, stdout, stderr) = dosimeter(path, args);
        assert_eq!(code, 2, "{args:?}: {stdout}{stderr}");
        assert!(stderr.contains(part), "{args:?}: {stderr}");
    }
    let (code, _, stderr) =
        dosimeter(path, &["report", "scores.csv", "--delta", "1e-5", "--public"]);
    assert!(code == 2 && stderr.contains("nothing would be left"), "{stderr}");
    assert!(!path.join("dosimeter-report.html").exists());
    assert_eq!(read(path, "run.toml"), RUN);
}

#[test]
fn the_ending_of_out_says_the_format() {
    let folder = with_run();
    let report = |more: &[&str]| {
        let args = [&["report", "run.toml", "--delta", "1e-5"], more].concat();
        dosimeter(folder.path(), &args)
    };
    let signed = ["--title", "Model 7", "--owner", "Team B", "--date", "2026-11-16"];
    for (out, beginning) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.md", "# Model 7\n\nTeam B, 2026-11-16\n"),
        ("r.yaml", "url_slug: \"model-7-2026\""),
    ] {
        let (code, _, stderr) = report(&[&["--out", out][..], &signed].concat());
        assert_eq!(code, 0, "{out}: {stderr}");
        assert!(read(folder.path(), out).starts_with(beginning), "{}", read(folder.path(), out));
    }
    assert!(read(folder.path(), "r.yaml").contains("TO BE FILLED IN"));
    let (code, card, stderr) = report(&["--format", "card", "--out", "-"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(card.starts_with("---\ntags:\n") && card.contains("differentially private"), "{card}");
    for (more, part) in [
        (&["--out", "r.docx"][..], "no kind of report has the extension .docx"),
        (&["--out", "report"], "has no extension"),
        (&["--out", "r.pdf", "--format", "html"], "does not end in .html"),
        (&["--out", "r.yaml"], "needs a title"),
        (&["--out", "r.html", "--date", "2026-02-30"], "not a day"),
    ] {
        let (code, stdout, stderr) = report(more);
        assert_eq!(code, 2, "{more:?}: {stdout}{stderr}");
        assert!(stderr.contains(part), "{more:?}: {stderr}");
    }
    assert!(!folder.path().join("r.docx").exists() && !folder.path().join("report").exists());
}

#[cfg(feature = "pdf")]
#[test]
fn a_report_as_pdf() {
    let folder = with_run();
    let args = ["report", "run.toml", "--delta", "1e-5", "--out", "r.pdf", "--title", "Model 7"];
    let (code, stdout, stderr) = dosimeter(folder.path(), &args);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let bytes = std::fs::read(folder.path().join("r.pdf")).unwrap();
    assert!(bytes.starts_with(b"%PDF-1.7") && bytes.len() < 500_000, "{}", bytes.len());
}

/// Trials that may be stopped at any time: the verdict and the figures are those of the sequential audit.
#[test]
fn the_evidence_is_drawn_over_time() {
    let folder = with_run();
    trials(folder.path(), "far.csv", 500, 6.0);
    trials(folder.path(), "near.csv", 500, 0.5);
    let report = |scores: &str| {
        let line = ["report", "run.toml", scores, "--delta", "1e-5", "--sequential"];
        let (code, stdout, stderr) = dosimeter(folder.path(), &line);
        (code, stdout, stderr, read(folder.path(), "dosimeter-report.html"))
    };
    let (code, stdout, stderr, page) = report("far.csv");
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.contains("is refuted"), "{stdout}");
    let json = embedded(&page);
    assert_eq!(json["verdict"]["status"], "contradiction");
    let ids: Vec<&str> = json["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|figure| figure["id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"evidence") && ids.contains(&"bound"), "{ids:?}");
    assert!(!ids.contains(&"ladder"), "{ids:?}");
    assert!(page.contains("Evidence over time") && page.contains("--sequential"));
    let (code, stdout, _, page) = report("near.csv");
    assert_eq!(code, 0, "{stdout}");
    assert!(page.contains("1000 trials do not refute the claim"), "{stdout}");
    // The same figure from `audit`.
    let line = ["audit", "far.csv", "--sequential", "--delta", "1e-5", "--claim", "run.toml"];
    let (code, svg, _) = dosimeter(folder.path(), &[&line[..], &["--format", "svg"]].concat());
    assert!(code == 3 && svg.starts_with("<svg") && svg.contains("evidence"), "{code}");
    let (code, _, stderr) =
        dosimeter(folder.path(), &["report", "run.toml", "--delta", "1e-5", "--sequential"]);
    assert!(code == 2 && stderr.contains("none were given"), "{stderr}");
}
