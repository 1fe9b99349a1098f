//! The engine on a toy experiment: same bytes in every way of running it, and nothing overwritten
//! when something is wrong.

use experiments::{
    ChunkState, Event, Experiment, ExperimentError, Metadata, Outcome, Plan, Reporter, Settings,
    Shard, Silent, run, status,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

struct Squares {
    plan: Plan,
    computed: AtomicU64,
    fail_at: Option<u64>,
}

impl Squares {
    fn new(trials: u64) -> Self {
        Self::with_seed(trials, 1)
    }

    fn with_seed(trials: u64, seed: u64) -> Self {
        let parameters = serde_json::json!({"power": 2, "offset": 0.5});
        let plan = Plan::new("test squares", parameters, seed, "trial,square", 10, trials);
        Self { plan, computed: AtomicU64::new(0), fail_at: None }
    }
}

impl Experiment for Squares {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn rows(&self, trials: Range<u64>, table: &mut String) -> Result<(), String> {
        if self.fail_at.is_some_and(|trial| trials.contains(&trial)) {
            return Err("the sky is falling".to_owned());
        }
        self.computed.fetch_add(trials.end - trials.start, Ordering::Relaxed);
        for trial in trials {
            table.push_str(&format!("{trial},{}\n", trial * trial + self.plan.seed));
        }
        Ok(())
    }
}

fn go(
    experiment: &Squares,
    output: &Path,
    threads: usize,
    shard: &str,
) -> Result<Outcome, ExperimentError> {
    let stop = AtomicBool::new(false);
    let shard = shard.parse().unwrap();
    let settings = Settings { threads, shard, force: false, reporter: &Silent, stop: &stop };
    run(experiment, output, &settings)
}

/// Every file below a folder with its bytes.
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

fn reference(trials: u64) -> BTreeMap<PathBuf, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let outcome = go(&Squares::new(trials), &folder.path().join("out.csv"), 1, "1/1").unwrap();
    assert_eq!(outcome, Outcome::Complete { computed: trials.div_ceil(10) });
    files(folder.path())
}

#[test]
fn same_files_for_any_threads_and_shards() {
    let expected = reference(95);
    let table = String::from_utf8(expected[Path::new("out.csv")].clone()).unwrap();
    assert!(table.starts_with("trial,square\n0,1\n1,2\n2,5\n") && table.lines().count() == 96);
    for threads in [2, 7] {
        let folder = tempfile::tempdir().unwrap();
        go(&Squares::new(95), &folder.path().join("out.csv"), threads, "1/1").unwrap();
        assert_eq!(files(folder.path()), expected);
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    for part in (1..=7).rev() {
        let outcome = go(&Squares::new(95), &output, 1, &format!("{part}/7")).unwrap();
        if part == 1 {
            assert_eq!(outcome, Outcome::Complete { computed: 2 });
        } else {
            assert!(matches!(outcome, Outcome::Incomplete { .. }) && !output.exists());
        }
    }
    assert_eq!(files(folder.path()), expected);
}

/// A job array starts everywhere at once, on the same folder: nobody fails, and the files are those
/// of one quiet run.
#[test]
fn several_at_once_do_not_disturb_each_other() {
    let expected = reference(95);
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.csv");
        std::thread::scope(|scope| {
            for part in 1..=4 {
                let output = &output;
                // Twice the same shard is allowed too.
                let shard = format!("{}/3", part.min(3));
                scope.spawn(move || go(&Squares::new(95), output, 2, &shard).unwrap());
            }
        });
        go(&Squares::new(95), &output, 2, "1/1").unwrap();
        assert_eq!(files(folder.path()), expected);
    }
}

#[test]
fn finished_work_is_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    go(&Squares::new(95), &output, 2, "1/1").unwrap();
    let again = Squares::new(95);
    assert_eq!(go(&again, &output, 2, "1/1").unwrap(), Outcome::Complete { computed: 0 });
    assert_eq!(again.computed.load(Ordering::Relaxed), 0);
    fs::remove_file(folder.path().join("out.csv.work/chunks/00000003.csv")).unwrap();
    fs::remove_file(&output).unwrap();
    assert_eq!(go(&again, &output, 2, "1/1").unwrap(), Outcome::Complete { computed: 1 });
    assert_eq!(again.computed.load(Ordering::Relaxed), 10);
    assert_eq!(files(folder.path()), reference(95));
}

#[test]
fn more_trials_extend() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    go(&Squares::new(37), &output, 2, "1/1").unwrap();
    let short = fs::read(&output).unwrap();
    let longer = Squares::new(95);
    // The short last chunk is computed again; the three whole ones are kept.
    assert_eq!(go(&longer, &output, 2, "1/1").unwrap(), Outcome::Complete { computed: 7 });
    assert_eq!(longer.computed.load(Ordering::Relaxed), 65);
    assert!(fs::read(&output).unwrap().starts_with(&short));
    assert_eq!(files(folder.path()), reference(95));
    let error = go(&Squares::new(50), &output, 1, "1/1").unwrap_err();
    assert!(matches!(error, ExperimentError::FewerTrials { found: 95, asked: 50, .. }), "{error}");
}

#[test]
fn a_stop_is_resumable() {
    struct StopAfter<'a>(u64, AtomicU64, &'a AtomicBool);
    impl Reporter for StopAfter<'_> {
        fn event(&self, event: &Event) {
            if matches!(event, Event::ChunkDone { .. })
                && self.1.fetch_add(1, Ordering::Relaxed) + 1 >= self.0
            {
                self.2.store(true, Ordering::Relaxed);
            }
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    let stop = AtomicBool::new(false);
    let reporter = StopAfter(3, AtomicU64::new(0), &stop);
    let settings =
        Settings { threads: 1, shard: Shard::ALL, force: false, reporter: &reporter, stop: &stop };
    let outcome = run(&Squares::new(95), &output, &settings).unwrap();
    assert_eq!(outcome, Outcome::Interrupted { computed: 3, missing: 7 });
    let seen = status(&output).unwrap();
    assert_eq!(seen.count(|state| *state == ChunkState::Done), 3);
    assert_eq!(seen.count(|state| *state == ChunkState::Missing), 7);
    assert!(!seen.merged && seen.time_left.is_some());
    assert_eq!(
        go(&Squares::new(95), &output, 2, "1/1").unwrap(),
        Outcome::Complete { computed: 7 }
    );
    assert_eq!(files(folder.path()), reference(95));
    assert!(status(&folder.path().join("out.csv.work")).unwrap().merged);
}

/// A damaged, a truncated, an empty and a foreign chunk: an error that names the file, all files
/// as they were.
#[test]
fn unusable_chunks_are_reported_and_kept() {
    type Edit = fn(Vec<u8>) -> Vec<u8>;
    let edits: [(&str, Edit); 5] = [
        ("damaged", |mut bytes| {
            let last = bytes.len() - 2;
            bytes[last] ^= 1;
            bytes
        }),
        ("damaged", |bytes| bytes[..bytes.len() / 2 + 60].to_vec()),
        ("damaged", |_| Vec::new()),
        ("not a chunk", |_| b"score,member\n1,2\n".to_vec()),
        ("not a chunk", |bytes| {
            String::from_utf8(bytes).unwrap().replace("chunk=2", "chunk=1").into_bytes()
        }),
    ];
    for (word, edit) in edits {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.csv");
        go(&Squares::new(95), &output, 1, "1/1").unwrap();
        fs::remove_file(&output).unwrap();
        let path = folder.path().join("out.csv.work/chunks/00000002.csv");
        fs::write(&path, edit(fs::read(&path).unwrap())).unwrap();
        let before = files(folder.path());
        let error = go(&Squares::new(95), &output, 2, "1/1").unwrap_err().to_string();
        assert!(error.contains("00000002.csv") && error.contains(word), "{error}");
        assert_eq!(files(folder.path()), before);
        let seen = status(&output).unwrap();
        assert_eq!(seen.count(|state| matches!(state, ChunkState::Unusable(_))), 1);
    }
}

#[test]
fn other_plans_and_foreign_outputs_are_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    fs::write(&output, "precious").unwrap();
    let error = go(&Squares::new(20), &output, 1, "1/1").unwrap_err();
    assert!(matches!(error, ExperimentError::ForeignOutput { .. }), "{error}");
    assert_eq!(fs::read(&output).unwrap(), b"precious");

    let output = folder.path().join("second.csv");
    go(&Squares::new(20), &output, 1, "1/1").unwrap();
    let before = files(folder.path());
    let error = go(&Squares::with_seed(20, 2), &output, 1, "1/1").unwrap_err().to_string();
    assert!(error.contains("seed 1 instead of 2"), "{error}");
    assert_eq!(files(folder.path()), before);

    // The same when only the output and its metadata were kept.
    fs::remove_dir_all(folder.path().join("second.csv.work")).unwrap();
    let error = go(&Squares::with_seed(20, 2), &output, 1, "1/1").unwrap_err();
    assert!(matches!(error, ExperimentError::OtherPlan { .. }), "{error}");
    assert_eq!(
        go(&Squares::new(20), &output, 1, "1/1").unwrap(),
        Outcome::Complete { computed: 0 }
    );

    let stop = AtomicBool::new(false);
    let settings =
        Settings { threads: 1, shard: Shard::ALL, force: true, reporter: &Silent, stop: &stop };
    let outcome = run(&Squares::with_seed(20, 2), &output, &settings).unwrap();
    assert_eq!(outcome, Outcome::Complete { computed: 2 });
    assert_eq!(Metadata::beside(&output).unwrap().unwrap().seed, 2);
}

#[test]
fn an_edited_output_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    go(&Squares::new(20), &output, 1, "1/1").unwrap();
    fs::write(&output, "trial,square\n0,77\n").unwrap();
    let error = go(&Squares::new(20), &output, 1, "1/1").unwrap_err();
    assert!(matches!(error, ExperimentError::ForeignOutput { .. }), "{error}");
    assert_eq!(fs::read(&output).unwrap(), b"trial,square\n0,77\n");
}

#[test]
fn a_failed_chunk_is_remembered_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    let mut broken = Squares::new(95);
    broken.fail_at = Some(41);
    let error = go(&broken, &output, 1, "1/1").unwrap_err().to_string();
    assert!(error.contains("chunk 4 failed: the sky is falling"), "{error}");
    let seen = status(&output).unwrap();
    assert_eq!(seen.chunks[4], ChunkState::Failed("the sky is falling".to_owned()));
    assert_eq!(
        go(&Squares::new(95), &output, 1, "1/1").unwrap(),
        Outcome::Complete { computed: 6 }
    );
    assert_eq!(files(folder.path()), reference(95));
}

/// A device that is always full stands for a full disk.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_resumable() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.csv");
    go(&Squares::new(95), &output, 1, "2/10").unwrap();
    let partial = folder.path().join("out.csv.work/chunks/00000003.csv.partial");
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let error = go(&Squares::new(95), &output, 1, "1/1").unwrap_err().to_string();
    assert!(error.contains("cannot write") && error.contains("No space left"), "{error}");
    fs::remove_file(&partial).unwrap();
    assert_eq!(
        go(&Squares::new(95), &output, 1, "1/1").unwrap(),
        Outcome::Complete { computed: 7 }
    );
    assert_eq!(files(folder.path()), reference(95));
}

#[test]
fn a_place_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let error = go(&Squares::new(20), &folder.path().join("file/out.csv"), 1, "1/1").unwrap_err();
    assert!(error.to_string().contains("free space and permissions"), "{error}");
    let error = status(&folder.path().join("nothing")).unwrap_err();
    assert!(matches!(error, ExperimentError::NoExperiment(_)), "{error}");
}
