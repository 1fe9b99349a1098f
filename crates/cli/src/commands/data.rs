//! `data`: the data sets known by name, where they are to be had and under which licence, with
//! checksums; whether files are the published ones; and the `[data]` table for a CSV file.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::print::{Align, TextTable, WIDTH, wrap};
use answers::{
    Content, DataAnswer, DataDescription, DataDocument, DataQuestion, DatasetEntry,
    DescribedColumn, FileEntry, FileStatus, Refusal,
};
use clap::Args;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter data
  dosimeter data fashion-mnist
  dosimeter data train-images-idx3-ubyte.gz cifar-10-batches-bin
  dosimeter data describe people.csv > training.toml
")]
pub struct DataArgs {
    #[command(flatten)]
    question: DataQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &DataArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let found = answers::data(&args.question)?;
    let code = show(&found, format, console, |found| match found {
        DataAnswer::Known(found) if args.question.what.is_empty() => table(found),
        DataAnswer::Known(found) => {
            let datasets = found.datasets.iter().map(description);
            datasets.chain(found.files.iter().map(sentence)).collect::<Vec<_>>().join("\n")
        }
        DataAnswer::Described(found) => skeleton(found),
    })?;
    if let (DataAnswer::Described(_), Format::Human) = (&found, format) {
        console.hint(
            "the last column is taken as the label. Categories and classes were read from the records: keep what is public knowledge. \
             Means and deviations are yours to state. Add [run], [model] and [optimizer], then \
             `dosimeter train`",
        );
    }
    Ok(code)
}

fn table(known: &DataDocument) -> String {
    let mut table = TextTable::new([
        ("name", Align::Left),
        ("train", Align::Right),
        ("test", Align::Right),
        ("features", Align::Right),
        ("classes", Align::Right),
        ("licence", Align::Left),
    ]);
    for dataset in &known.datasets {
        let short = dataset.licence.split(&[';', ','][..]).next().unwrap_or_default();
        table.row([
            dataset.name.to_owned(),
            dataset.train.to_string(),
            dataset.test.to_string(),
            dataset.features.to_string(),
            dataset.classes.to_string(),
            if dataset.built_in { format!("{short} (built in)") } else { short.to_owned() },
        ]);
    }
    format!(
        "{}\n{}",
        table.render(0),
        wrap(
            "Nothing is fetched. `dosimeter data NAME` says where a data set is, its licence, its \
             citation and its checksums; \
             `dosimeter data PATH` verifies files. Data of your own: `[data] path` with CSV, .npy, \
             Parquet, IDX, CIFAR-10 binary or a folder of images for each class; `dosimeter data \
             describe FILE.csv` begins the table.",
            "",
            0,
            WIDTH,
        )
    )
}

fn description(dataset: &DatasetEntry) -> String {
    let (train, test) = (dataset.train, dataset.test);
    let place = if dataset.built_in {
        "built in; verified just now against the published files".to_owned()
    } else {
        format!("[data] name = \"{}\", path = {}", dataset.name, dataset.layout)
    };
    let mut text = format!(
        "{}: {}\n  {train} training and {test} test records, {} features, {} classes\n",
        dataset.name, dataset.title, dataset.features, dataset.classes,
    );
    for (name, words) in [
        ("licence", dataset.licence),
        ("source", dataset.source),
        ("cite", dataset.citation),
        ("use", &place),
    ] {
        text.push_str(&wrap(words, &format!("  {name:<8}"), 10, WIDTH));
    }
    // A checksum has 64 digits: the file's name does not fit beside it.
    for file in &dataset.files {
        text.push_str(&format!("  {}\n    sha256  {}\n", file.name, file.sha256));
    }
    text
}

fn sentence(file: &FileEntry) -> String {
    let (name, datasets) = (file.file.unwrap_or_default(), file.datasets.join(" or of "));
    let verdict = match file.status {
        FileStatus::Genuine => format!("genuine: {name} of {datasets}"),
        FileStatus::Different => {
            format!("NOT the {name} of {datasets}: damaged, or another version")
        }
        FileStatus::Unknown => "not a file of a data set known here".to_owned(),
    };
    format!("{}: {verdict}\n  {} bytes\n  sha256 {}\n", file.path, file.bytes, file.sha256)
}

/// The table, with what is left to decide as comments.
fn skeleton(sketch: &DataDescription) -> String {
    let mut text = format!(
        "# {}: {} {}, {} {}\n[data]\npath = {}\n",
        sketch.path.replace(['\n', '\r'], " "),
        sketch.rows,
        if sketch.rows == 1 { "row" } else { "rows" },
        sketch.columns.len(),
        if sketch.columns.len() == 1 { "column" } else { "columns" },
        quoted(&sketch.path)
    );
    if !sketch.header {
        text.push_str("header = false\n");
    }
    let Some((label, columns)) = sketch.columns.split_last() else { return text };
    text.push_str(&format!("label = {}\n{}\n", quoted(&label.name), classes(label)));
    text.push_str("column = [\n");
    for column in columns {
        let name = quoted(&column.name);
        text.push_str(&match &column.holds {
            Content::Numbers => format!(
                "  {{ name = {name}, mean = 0, deviation = 1 }},  # public mean and deviation\n"
            ),
            Content::Texts { values } => {
                format!("  {{ name = {name}, categories = {} }},\n", list(values))
            }
            Content::ManyTexts => {
                format!("  # {name} has too many different texts for a list; it is left out\n")
            }
        });
    }
    text.push_str("]\n");
    text
}

fn classes(label: &DescribedColumn) -> String {
    match (&label.holds, label.largest) {
        (Content::Numbers, Some(largest)) if largest < 100 => format!("classes = {}", largest + 1),
        (Content::Numbers, _) => {
            "classes = 2  # the last column holds numbers that are no classes: name another label"
                .into()
        }
        (Content::Texts { values }, _) => format!("classes = {}", list(values)),
        (Content::ManyTexts, _) => {
            "classes = 2  # the last column holds too many texts: name another label".into()
        }
    }
}

fn list(values: &[String]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| self::quoted(value)).collect();
    format!("[{}]", quoted.join(", "))
}

/// A text in TOML: JSON's way to quote is one of TOML's but for DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
