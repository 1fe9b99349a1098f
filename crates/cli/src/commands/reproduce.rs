//! `reproduce`: a figure or table of the papers, with its data.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::print::{WIDTH, wrap};
use crate::progress::Progress;
use answers::{DoneEntry, ListedEntry, Refusal, ReproduceQuestion, ReproducedWhat};
use clap::Args;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter reproduce --list
  dosimeter reproduce last-iterate-section-4.2 --out figures
  dosimeter reproduce all --out figures
  dosimeter reproduce last-iterate-figure-2 --data data --device cuda:0 \\
      --minutes 8 --out figures
  dosimeter reproduce last-iterate-table-1-trained --data data --device cpu \\
      --out figures
")]
pub struct ReproduceArgs {
    #[command(flatten)]
    question: ReproduceQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &ReproduceArgs, console: &mut Console) -> Result<u8, Refusal> {
    let format = args.output.among(&[Format::Human, Format::Json])?;
    let work = Progress::new(console);
    let found = answers::reproduce(&args.question, &work)?;
    drop(work);
    let code = show(&found, format, console, |found| match &found.what {
        ReproducedWhat::Done { done } => done.iter().map(human).collect(),
        ReproducedWhat::List { entries, trained } => list(entries, trained),
    })?;
    if found.incomplete {
        console.hint("the time was up; the same command adds trainings to these");
    }
    Ok(code)
}

fn human(done: &DoneEntry) -> String {
    let mut text = wrap(done.title, "", 2, WIDTH);
    for (name, words) in [
        ("the paper shows", done.paper_shows),
        ("we get", &done.we_get),
        ("differences", &done.differs),
        ("files", &done.folder),
    ] {
        text.push_str(&wrap(words, &format!("  {name}: "), 4, WIDTH));
    }
    text
}

fn list(entries: &[ListedEntry], trained: &[ListedEntry]) -> String {
    let mut text = String::new();
    let all = || entries.iter().chain(trained);
    let width = all().map(|entry| entry.id.len()).max().unwrap_or(0);
    // The papers, each once.
    let mut papers: Vec<&str> = Vec::new();
    for entry in all() {
        if !papers.contains(&entry.paper) {
            papers.push(entry.paper);
        }
    }
    for paper in papers {
        text.push_str(&wrap(paper, "", 2, WIDTH));
        for entry in all().filter(|entry| entry.paper == paper) {
            let cost = match entry.seconds {
                Some(seconds) => format!("about {seconds} s"),
                None => "trains; needs --data".to_owned(),
            };
            text.push_str(&format!("  {:<width$} {cost}\n", entry.id));
            text.push_str(&wrap(entry.title, "      ", 6, WIDTH));
        }
        text.push('\n');
    }
    text.push_str(
        "Entries that train take minutes on a large GPU; `--minutes` stops them earlier.\n\
         A paper may be named by its number: p1 closed-form, p2 empirical-variance,\n\
         p3 our-loss, p4 last-iterate.\n",
    );
    text
}
