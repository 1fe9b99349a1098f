//! Entries that train, on a handful of tiny pictures.

use experiments::Silent;
use papers::{PaperError, TrainedContext, trained_entries, write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use training::Device;

/// IDX files: pictures of 28 x 28 with a bright row that tells the class.
fn pictures(folder: &Path) {
    let part = |count: u32, images: &str, labels: &str| {
        let mut pixels = [0x803_u32, count, 28, 28].map(u32::to_be_bytes).concat();
        let mut classes = [0x801_u32, count].map(u32::to_be_bytes).concat();
        for number in 0..count {
            let class = number % 10;
            classes.push(class as u8);
            for pixel in 0..784 {
                let bright = pixel / 56 == class;
                pixels.push(if bright { 200 } else { (number * 31 + pixel * 17) as u8 % 60 });
            }
        }
        std::fs::write(folder.join(images), pixels).unwrap();
        std::fs::write(folder.join(labels), classes).unwrap();
    };
    part(60, "train-images-idx3-ubyte", "train-labels-idx1-ubyte");
    part(30, "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte");
}

struct Sandbox {
    _root: tempfile::TempDir,
    data: Option<PathBuf>,
    folder: PathBuf,
    stop: AtomicBool,
    incomplete: AtomicBool,
}

impl Sandbox {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir_all(data.join("fashion-mnist")).unwrap();
        pictures(&data.join("fashion-mnist"));
        // Weights of the right form, for the entry that fine-tunes.
        let tiny =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../language/tests/reference/tiny.gguf");
        std::fs::copy(tiny, data.join("smollm2.gguf")).unwrap();
        std::fs::create_dir_all(data.join("synthetic-persona-chat")).unwrap();
        conversations(&data.join("synthetic-persona-chat"));
        let folder = root.path().join("out");
        let (stop, incomplete) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { _root: root, data: Some(data), folder, stop, incomplete }
    }

    fn context(&self, trials: u64, deadline: Option<Instant>) -> TrainedContext<'_> {
        TrainedContext {
            folder: &self.folder,
            data: self.data.as_deref(),
            model: None,
            device: Arc::new(Device::cpu()),
            models: &[],
            trials: Some(trials),
            records: Some(40),
            seed: 3,
            deadline,
            reporter: &Silent,
            stop: &self.stop,
            incomplete: &self.incomplete,
        }
    }
}

#[test]
fn a_figure_is_played_audited_and_extended() {
    let place = Sandbox::new();
    let figure = trained_entries()[0];
    assert_eq!(figure.entry.id, "last-iterate-figure-2");
    let found = figure.reproduce(&place.context(2, None)).unwrap();
    assert!(!place.incomplete.load(Ordering::Relaxed));
    // Two models, two attacks, three numbers of steps.
    assert_eq!(found.tables[0].rows.len(), 12);
    assert!(found.we_get.contains("(2 trainings per side)"), "{}", found.we_get);
    let files = write(&figure.entry, &found, &place.folder).unwrap();
    assert!(files.iter().any(|name| name == "fashion-mnist-mlp.svg"), "{files:?}");
    // More trainings extend: the first two rows of each side stay what they were.
    let scores = place.folder.join("scores/fashion-mnist-mlp-gradient-zero-steps16.csv");
    let before = std::fs::read_to_string(&scores).unwrap();
    figure.reproduce(&place.context(3, None)).unwrap();
    let after = std::fs::read_to_string(&scores).unwrap();
    assert!(after.len() > before.len() && after.starts_with(&before), "{before}\n{after}");
    // One model alone, from the same scores; a name that is unknown is refused with those there are.
    let (one, none) = (["mlp".to_owned()], ["resnet".to_owned()]);
    let context = TrainedContext { models: &one, ..place.context(3, None) };
    let table = &figure.reproduce(&context).unwrap().tables[0];
    assert_eq!(table.rows.len(), 6);
    let context = TrainedContext { models: &none, ..place.context(3, None) };
    let refused = figure.reproduce(&context).unwrap_err().to_string();
    assert!(refused.contains("`resnet`") && refused.contains("mlp, cnn"), "{refused}");
    // What was trained elsewhere is drawn here, under the name of the device that trained.
    for entry in std::fs::read_dir(place.folder.join("scores")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".meta.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            value["parameters"]["device"]["instructions"] = "another device".into();
            std::fs::write(&path, value.to_string()).unwrap();
        }
    }
    let drawn = figure.reproduce(&place.context(3, Some(Instant::now()))).unwrap();
    assert_eq!(drawn.parameters["device"], "another device");
    assert_eq!(drawn.tables[0].rows.len(), 12);
}

#[test]
fn time_that_is_up_is_said_and_what_is_missing_is_not_invented() {
    let place = Sandbox::new();
    let late = Some(Instant::now());
    for trained in trained_entries() {
        place.incomplete.store(false, Ordering::Relaxed);
        let found = trained.reproduce(&place.context(2, late)).unwrap();
        assert!(place.incomplete.load(Ordering::Relaxed), "{}", trained.entry.id);
        assert!(found.tables[0].rows.is_empty(), "{}", trained.entry.id);
    }
    place.stop.store(true, Ordering::Relaxed);
    let stopped = trained_entries()[1].reproduce(&place.context(2, None));
    assert!(matches!(stopped, Err(PaperError::Interrupted)));
}

#[test]
fn three_batch_sizes_are_trained() {
    let place = Sandbox::new();
    let table = trained_entries()[2];
    let found = table.reproduce(&place.context(2, None)).unwrap();
    let rows = &found.tables[0].rows;
    assert_eq!(rows.len(), 3);
    for row in rows {
        let accuracy = row[7].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&accuracy) && row[9] == 2, "{row:?}");
    }
}

#[test]
fn missing_data_are_named() {
    let mut place = Sandbox::new();
    place.data = Some(PathBuf::from("nowhere"));
    let error = trained_entries()[0].reproduce(&place.context(1, None)).unwrap_err();
    assert!(error.to_string().contains("no folder nowhere"), "{error}");
    place.data = None;
    let error = trained_entries()[2].reproduce(&place.context(1, None)).unwrap_err();
    assert!(matches!(error, PaperError::NeedsData));
}

/// Conversations of nobody, in the published form.
fn conversations(folder: &Path) {
    for (part, count) in [("valid", 6), ("test", 2)] {
        let mut text =
            String::from("user 1 personas,user 2 personas,Best Generated Conversation\n");
        for i in 0..count {
            let lines: String = (0..8)
                .map(|j| {
                    let what = ["the sun", "a dog, a cat", "red", "the park"][(i + j) % 4];
                    format!("User 1: Do you like {what}?\nUser 2: I like {what} \"\"{j}\"\".\n")
                })
                .collect();
            text.push_str(&format!("\"I like red.\nI run.\",\"I am old.\",\"{lines}\"\n"));
        }
        let name = format!("Synthetic-Persona-Chat_{part}.csv");
        std::fs::write(folder.join(name), text).unwrap();
    }
}

#[cfg(feature = "language")]
#[test]
fn a_language_model_is_trained_in_parts_and_audited() {
    let mut place = Sandbox::new();
    let entry = trained_entries()
        .into_iter()
        .find(|e| e.entry.id == "last-iterate-table-1-trained")
        .unwrap();
    let data = place.data.replace(PathBuf::from("nowhere"));
    let Err(error) = entry.reproduce(&place.context(1, None)) else { panic!("without data") };
    assert!(error.to_string().contains("Synthetic-Persona-Chat_train.csv"), "{error}");
    place.data = data;
    // No time: nothing is trained, and it is said.
    let found = entry.reproduce(&place.context(1, Some(Instant::now()))).unwrap();
    assert!(place.incomplete.swap(false, Ordering::Relaxed));
    assert!(found.we_get.contains("no training is finished"), "{}", found.we_get);
    let found = entry.reproduce(&place.context(1, None)).unwrap();
    assert!(!place.incomplete.load(Ordering::Relaxed));
    let [batches, trainings] = &found.tables[..] else { panic!("two tables") };
    assert_eq!((batches.rows.len(), trainings.rows.len()), (3, 3));
    let number = |row: usize, name: &str| {
        let column = batches.columns.iter().position(|c| *c == name).unwrap();
        batches.rows[row][column].as_f64().unwrap()
    };
    for row in 0..3 {
        // The heuristic is met from below in every row; smaller batches have larger standard epsilon.
        let heuristic = number(row, "heuristic");
        assert!(heuristic <= 6.5 && heuristic > 6.4, "{heuristic}");
        assert!(number(row, "standard") >= heuristic);
        assert!(number(row, "perplexity") > 1.0);
    }
    assert!(number(0, "standard") < number(2, "standard"));
    // What is there is found again.
    let again = entry.reproduce(&place.context(1, None)).unwrap();
    assert_eq!(again.tables[1].rows, trainings.rows);
    // The scores of each training's canaries are kept, and are what the table is drawn from.
    let scores = place.folder.join("scores");
    let column = |name: &str| trainings.columns.iter().position(|c| *c == name).unwrap();
    for row in &trainings.rows {
        let of = |name: &str| row[column(name)].as_f64().unwrap();
        let kept = scores.join(format!("batch{}-seed{}.csv", of("batch_size"), of("seed")));
        let mut table = audit::Table::default();
        table.add_file(&kept).unwrap();
        let kept = table.settle().unwrap().into_scores(audit::Design::OneRun).unwrap();
        assert_eq!(kept.members().len() + kept.nonmembers().len(), 40);
        let plan = audit::Plan::new(audit::Design::OneRun);
        let shown = audit::analyse(&kept, &plan, None).unwrap();
        assert_eq!(shown.auroc.value, of("canary_auroc"));
    }
    let first = trainings.rows[0][column("batch_size")].as_f64().unwrap();
    let changed = scores.join(format!("batch{first}-seed3.csv"));
    let perfect = (0..40).map(|i| format!("{},{}\n", i, u8::from(i >= 20))).collect::<String>();
    std::fs::write(&changed, format!("# design: one-run\nscore,member\n{perfect}")).unwrap();
    let again = entry.reproduce(&place.context(1, None)).unwrap();
    assert_eq!(again.tables[1].rows[0][column("canary_auroc")], 1.0);
    assert!(again.tables[1].rows[0][column("audit_any")].as_f64().unwrap() > 0.0);
    assert_eq!(again.tables[1].rows[1..], trainings.rows[1..]);
    std::fs::remove_file(&changed).unwrap();
    assert!(entry.reproduce(&place.context(1, None)).is_err());
    std::fs::write(&changed, format!("# design: one-run\nscore,member\n{perfect}")).unwrap();
    // What was trained on another device is drawn here, under its name, and not continued.
    let about = scores.join("trainings.csv.meta.json");
    let text = std::fs::read_to_string(&about).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["parameters"]["device"]["instructions"] = "another device".into();
    value["plan"] = "of another device".into();
    std::fs::write(&about, value.to_string()).unwrap();
    std::fs::remove_dir_all(scores.join("trainings.csv.work")).unwrap();
    assert!(entry.reproduce(&place.context(1, None)).is_err());
    let drawn = entry.reproduce(&place.context(1, Some(Instant::now()))).unwrap();
    assert_eq!(drawn.parameters["device"], "another device");
    assert_eq!(drawn.tables[1].rows, again.tables[1].rows);
    assert!(!place.incomplete.swap(false, Ordering::Relaxed));
    entry.reproduce(&place.context(2, Some(Instant::now()))).unwrap();
    assert!(place.incomplete.load(Ordering::Relaxed));
}
