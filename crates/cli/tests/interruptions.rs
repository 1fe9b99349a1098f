//! The real binary, killed at random moments: the files end up the same as undisturbed, and what
//! was finished is not done again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GAME: [&str; 13] = [
    "attack",
    "linear",
    "--noise-multiplier",
    "1",
    "--sample-rate",
    "0.05",
    "--steps",
    "2000",
    "--trials",
    "60000",
    "--seed",
    "11",
    "--threads",
];

fn attack(folder: &Path, threads: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dosimeter"));
    command.args(GAME).arg(threads).arg("--out").arg(folder.join("scores.csv"));
    command
}

fn files(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn chunks(folder: &Path) -> usize {
    let all = fs::read_dir(folder.join("scores.csv.work/chunks"));
    all.map_or(0, |entries| {
        let names = entries.map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|extension| extension == "csv")).count()
    })
}

#[test]
fn twenty_kills_change_nothing() {
    let calm = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = attack(calm.path(), "2").output().unwrap();
    let undisturbed = start.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = files(calm.path());
    let total = chunks(calm.path());
    assert!(total >= 12, "{total} chunks are too few for this test");

    let stormy = tempfile::tempdir().unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut kills = 0;
    while kills < 20 {
        // Up to a sixth of the whole, so that the twenty lives together do not suffice.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let patience = undisturbed.mul_f64((state >> 40) as f64 / (1u64 << 24) as f64 / 6.0);
        let before = chunks(stormy.path());
        let mut child =
            attack(stormy.path(), "2").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(patience.max(Duration::from_millis(1)));
        let finished = child.try_wait().unwrap().is_some();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(chunks(stormy.path()) >= before, "a finished chunk was lost");
        kills += 1;
        if finished || chunks(stormy.path()) + 2 >= total {
            // Begin anew part of the way, so that every kill meets work in progress.
            for index in 0..total / 2 {
                let chunk = format!("scores.csv.work/chunks/{index:08}.csv");
                let _ = fs::remove_file(stormy.path().join(chunk));
            }
            let _ = fs::remove_file(stormy.path().join("scores.csv"));
            let _ = fs::remove_file(stormy.path().join("scores.csv.meta.json"));
        }
    }
    let missing = total - chunks(stormy.path());
    assert!(missing > 0);
    let output = attack(stormy.path(), "1").output().unwrap();
    let narration = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{narration}");
    assert!(narration.contains(&format!("{missing} chunk")), "{missing}: {narration}");
    assert_eq!(files(stormy.path()), expected);
}

#[test]
fn shards_together_make_the_same_file() {
    let calm = tempfile::tempdir().unwrap();
    assert!(attack(calm.path(), "2").output().unwrap().status.success());
    let sharded = tempfile::tempdir().unwrap();
    for part in 1..=3 {
        let shard = format!("{part}/3");
        let output = attack(sharded.path(), "1").args(["--shard", &shard]).output().unwrap();
        let expected = if part == 3 { 0 } else { 4 };
        assert_eq!(
            output.status.code(),
            Some(expected),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(files(sharded.path()), files(calm.path()));
}

/// Ctrl-C: exit 130, resumable. `kill -INT` is what the terminal sends.
#[cfg(unix)]
#[test]
fn an_interrupt_is_resumable() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = attack(folder.path(), "1").stderr(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while chunks(folder.path()) == 0 && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .arg("status")
        .arg(folder.path().join("scores.csv"))
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&status.stdout).contains("missing"));
    assert!(attack(folder.path(), "2").output().unwrap().status.success());
}

/// A figure that trains for minutes ends at Ctrl-C, not after the training in hand.
#[cfg(all(unix, feature = "papers"))]
#[test]
fn a_figure_that_trains_is_interrupted_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(["reproduce", "closed-form-figure-1", "--out"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let work = folder.path().join("closed-form-figure-1/scores");
    let start = Instant::now();
    while !work.exists() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(300));
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let asked = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // A step of the training and what is measured along it take a fraction of a second.
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
}

/// A limit on file sizes stands for a full disk.
#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_is_a_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("scores.csv");
    let script = format!(
        "trap '' XFSZ; ulimit -f 8; exec \"$0\" {} 1 --out '{}'",
        GAME.join(" "),
        out.display()
    );
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_dosimeter"))
        .output()
        .unwrap();
    let narration = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{narration}");
    assert!(narration.contains("cannot write") && narration.contains("resume"), "{narration}");
    assert!(!out.exists() && chunks(folder.path()) == 0);
    assert!(attack(folder.path(), "2").output().unwrap().status.success());
}
