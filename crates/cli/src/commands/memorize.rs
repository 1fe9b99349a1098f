//! `memorize`: memorisation of secrets by a language model.

use super::show;
use crate::args::{Format, OutputArgs};
use crate::console::Console;
use crate::print::{self, Align, TextTable, WIDTH, csv_line, plain, wrap};
use answers::{CompressionQuestion, MemorizeQuestion, Memorized, RatioQuestion};
use answers::{Refusal, legends};
use clap::{Args, Subcommand};
use language::compression::Compressions;
use language::memorization::{Memorization, Normalization, Rule};
use vocabulary::AtLeast;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter memorize vmr completions.jsonl --base untuned.jsonl
  dosimeter memorize air completions.jsonl --match contains --normalize loose
  dosimeter memorize vmr --model model/ --secrets secrets.jsonl --samples 10
  dosimeter memorize vmr --model model/ --tuned run/ --secrets secrets.jsonl
  dosimeter memorize acr --model model.gguf --secrets secrets.jsonl

A file of completions has one JSON object per line with prompt, target and
completion; secret, attribute (a text or a list) and seed are optional. A file
of secrets has the same without completion.
")]
pub struct MemorizeArgs {
    #[command(subcommand)]
    metric: MetricArgs,
}

#[derive(Debug, Subcommand)]
enum MetricArgs {
    /// Verbatim memorisation ratio: the share of completions that start with the rest of the secret
    Vmr(RatioArgs),
    /// Attribute inference ratio: the share of completions that contain the attribute
    Air(RatioArgs),
    /// Adversarial compression ratio: length of a secret divided by the shortest prompt that yields
    /// it
    Acr(CompressionArgs),
}

#[derive(Debug, Args)]
struct RatioArgs {
    #[command(flatten)]
    question: RatioQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct CompressionArgs {
    #[command(flatten)]
    question: CompressionQuestion,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &MemorizeArgs, console: &mut Console) -> Result<u8, Refusal> {
    let (question, output) = match &args.metric {
        MetricArgs::Vmr(args) => (MemorizeQuestion::Vmr(args.question.clone()), &args.output),
        MetricArgs::Air(args) => (MemorizeQuestion::Air(args.question.clone()), &args.output),
        MetricArgs::Acr(args) => (MemorizeQuestion::Acr(args.question.clone()), &args.output),
    };
    let format = output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let found = answers::memorize(&question, &mut |line| console.note(line))?;
    show(&found, format, console, |found| match (found, format) {
        (Memorized::Ratio(found), Format::Csv) => csv(found),
        (Memorized::Ratio(found), _) => human(found),
        (Memorized::Compression(found), Format::Csv) => csv_compression(found),
        (Memorized::Compression(found), _) => human_compression(found),
    })
}

fn csv(found: &Memorization) -> String {
    let mut text = csv_line(["secret", "completions", "matches", "rate", "base_rate"]);
    for s in &found.per_secret {
        text.push_str(&csv_line([
            s.secret.clone(),
            s.completions.to_string(),
            s.matches.to_string(),
            s.rate.to_string(),
            s.base_rate.map_or_else(String::new, |rate| rate.to_string()),
        ]));
    }
    text
}

fn csv_compression(found: &Compressions) -> String {
    let mut text = csv_line(["secret", "tokens", "prompt_tokens", "ratio", "memorized", "passes"]);
    for one in &found.results {
        let c = &one.result;
        text.push_str(&csv_line([
            one.secret.clone(),
            c.target_length.to_string(),
            c.prompt.as_ref().map_or_else(String::new, |p| p.len().to_string()),
            c.ratio.map_or_else(String::new, |r| r.to_string()),
            c.memorized.to_string(),
            c.passes.to_string(),
        ]));
    }
    text
}

fn human(found: &Memorization) -> String {
    let about = |value: f64| print::about(value, 3);
    let percent = plain(100.0 * found.confidence);
    let mut text = format!(
        "{} {} over {} secrets, {} completions ({percent} %: {} to {})\n\n",
        found.metric.as_str().to_uppercase(),
        about(found.score.value),
        found.secrets,
        found.completions,
        about(found.score.lower),
        about(found.score.upper)
    );
    let rule = match found.matching.rule {
        Rule::Prefix => "the completion starts with the target",
        Rule::Contains => "the completion contains the text",
        Rule::Words => "the completion contains the text as whole words",
        Rule::Exact => "the completion is the text",
    };
    let equal = match found.matching.normalization {
        Normalization::None => "every character counts",
        Normalization::Space => "white space is made equal",
        Normalization::Case => "white space and case are made equal",
        Normalization::Loose => "only letters and digits count, whatever their case",
    };
    text.push_str(&wrap(&format!("{rule}; {equal}"), "match: ", 7, WIDTH));
    if let Some(over) = &found.over_seeds {
        text.push_str(&wrap(
            &format!(
                "{} trainings, {} to {}",
                found.seeds.len(),
                about(over.lower),
                about(over.upper)
            ),
            "over seeds: ",
            12,
            WIDTH,
        ));
    }
    if let Some(base) = &found.base {
        let line = format!(
            "{} ({} to {}); more than the base by {} ({} to {}): more often on {} secrets, less often on {}, sign test p {}",
            about(base.score.value),
            about(base.score.lower),
            about(base.score.upper),
            about(base.difference.value),
            about(base.difference.lower),
            about(base.difference.upper),
            base.more,
            base.less,
            about(base.p_value)
        );
        text.push_str(&wrap(&line, "base: ", 6, WIDTH));
    }
    text
}

fn human_compression(found: &Compressions) -> String {
    let about = |value: f64| print::about(value, 3);
    let share = found.share.interval;
    let mut table = TextTable::new([
        ("secret", Align::Left),
        ("tokens", Align::Right),
        ("shortest prompt", Align::Right),
        ("ratio", Align::Right),
        ("memorised", Align::Left),
    ]);
    for one in &found.results {
        let c = &one.result;
        let short: String =
            one.secret.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
        table.row([
            short,
            c.target_length.to_string(),
            c.prompt.as_ref().map_or_else(|| "none found".into(), |p| p.len().to_string()),
            c.ratio_at_least().map_or_else(|| "-".into(), AtLeast::shown),
            if c.memorized { "yes".into() } else { "not shown".to_owned() },
        ]);
    }
    let mut text = format!(
        "{} of {} secrets are memorised (ratio above 1): {} ({} %: {} to {})\n\n",
        found.memorized,
        found.secrets,
        about(share.value),
        plain(100.0 * found.share.confidence),
        about(share.lower),
        about(share.upper)
    );
    text.push_str(&table.render(0));
    text.push('\n');
    text.push_str(&wrap(legends::PROMPTS_ARE, "Note: ", 6, WIDTH));
    text
}
