//! Sixty random runs, their ends proven in ball arithmetic: none may be wrong.

use serde_json::Value;
use std::process::Command;

#[test]
fn no_end_of_random_runs_is_wrong() {
    let runs = std::env::var("DOSIMETER_PROVE_RUNS").unwrap_or_else(|_| "60".into());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("prove");
    // What an earlier build proved says nothing about this one.
    let _ = std::fs::remove_dir_all(&folder);
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([
            "prove",
            "--runs",
            &runs,
            "--seed",
            "3",
            "--work",
            "1000",
            "--seconds",
            "0.5",
            "--out",
        ])
        .arg(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(folder.join("seed-3/part-1-of-1.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let count = |outcome: &str| lines.iter().filter(|line| line["outcome"] == outcome).count();
    assert_eq!(lines.len().to_string(), runs);
    // Undecided is an answer; the limit of work makes some.
    assert!(count("proven") >= lines.len() / 3, "{} proven of {}", count("proven"), lines.len());
}
