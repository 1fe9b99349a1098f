//! `memorize`: memorisation of secrets by a language model.

use super::show;
use crate::args::{Format, OutputArgs, integer, nonnegative_integer, real, word};
use crate::console::Console;
use crate::failure::Failure;
use crate::print::{Align, Table, csv_line, plain, rounded, wrap};
use answers::{CompressionQuestion, MemorizeQuestion, Memorized, RatioQuestion};
use clap::{Args, Subcommand};
use language::compression::{Compressions, Procedure, Proposals};
use language::memorization::{Memorization, Normalization, Rule};
use std::path::PathBuf;
use vocabulary::Side;

#[derive(Debug, Args)]
#[command(before_help = "\
Examples:
  dosimeter memorize vmr completions.jsonl --base untuned.jsonl
  dosimeter memorize air completions.jsonl --match contains --normalize loose
  dosimeter memorize vmr --model model/ --secrets secrets.jsonl --samples 10
  dosimeter memorize vmr --model model/ --tuned run/ --secrets secrets.jsonl
  dosimeter memorize acr --model model.gguf --secrets secrets.jsonl

Completions: one JSON object per line with prompt, target, completion, and where known secret,
attribute (a text or a list), seed. Secrets: the same without completion.
")]
pub struct MemorizeArgs {
    #[command(subcommand)]
    metric: MetricArgs,
}

#[derive(Debug, Subcommand)]
enum MetricArgs {
    /// Verbatim memorisation ratio: completions that start with the rest of the secret
    Vmr(RatioArgs),
    /// Attribute inference ratio: completions that contain the attribute
    Air(RatioArgs),
    /// Adversarial compression ratio: length of a secret over that of the shortest prompt for it
    Acr(CompressionArgs),
}

#[derive(Clone, Debug, Args)]
struct ModelArgs {
    /// A folder with config.json and safetensors, a .gguf file, or a llama2.c .bin file
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    model: Option<PathBuf>,
    /// The model's tokenizer, where it is not beside it
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    tokenizer: Option<PathBuf>,
    /// What `train` made of the model: its folder, or its model.safetensors
    #[arg(long, value_name = "PATH", help_heading = "The model")]
    tuned: Option<PathBuf>,
    /// Secrets as JSONL: prompt, target, and where known secret, attribute
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    secrets: Option<PathBuf>,
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "42", help_heading = "The model")]
    seed: u64,
}

#[derive(Debug, Args)]
struct RatioArgs {
    /// Completions of the tuned model
    #[arg(value_name = "COMPLETIONS")]
    completions: Option<PathBuf>,
    /// Completions of the un-tuned model on the same secrets
    #[arg(long, value_name = "COMPLETIONS")]
    base: Option<PathBuf>,
    /// When a completion matches; default prefix for vmr, words for air
    #[arg(long = "match", value_parser = word::<Rule>(["prefix", "contains", "words", "exact"]), value_name = "RULE")]
    rule: Option<Rule>,
    /// What is made equal first; default none for vmr, case for air
    #[arg(long, value_parser = word::<Normalization>(["none", "space", "case", "loose"]), value_name = "HOW")]
    normalize: Option<Normalization>,
    #[arg(long, value_name = "C", value_parser = real, default_value = "0.95", allow_hyphen_values = true)]
    confidence: f64,
    #[command(flatten)]
    model: ModelArgs,
    /// Sampled completions per secret; 0: one greedy completion
    #[arg(long, value_name = "N", value_parser = nonnegative_integer, default_value = "0", help_heading = "The model")]
    samples: u64,
    /// The most tokens in a completion
    #[arg(long, value_name = "N", value_parser = integer, default_value = "50", help_heading = "The model")]
    new_tokens: u64,
    #[arg(long, value_name = "T", value_parser = real, default_value = "1", allow_hyphen_values = true, help_heading = "The model")]
    temperature: f64,
    /// Only the K most likely tokens are drawn; 0: all
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, default_value = "50", help_heading = "The model")]
    top_k: u64,
    #[arg(long, value_name = "P", value_parser = real, default_value = "1", allow_hyphen_values = true, help_heading = "The model")]
    top_p: f64,
    /// Where to write the model's completions
    #[arg(long, value_name = "FILE", help_heading = "The model")]
    save_completions: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Debug, Args)]
struct CompressionArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// How lengths are tried
    #[arg(long, value_parser = word::<Procedure>(["bisection", "linear"]), default_value = "bisection")]
    procedure: Procedure,
    /// How replacements are proposed
    #[arg(long, value_parser = word::<Proposals>(["gradient", "random"]), default_value = "gradient")]
    proposals: Proposals,
    /// The most steps for one length of the prompt
    #[arg(long, value_name = "N", value_parser = integer, default_value = "200")]
    steps: u64,
    /// Candidates per step
    #[arg(long, value_name = "N", value_parser = integer, default_value = "100")]
    candidates: u64,
    /// How many tokens are tried in each place
    #[arg(long, value_name = "K", value_parser = nonnegative_integer, default_value = "250")]
    top_k: u64,
    /// Steps without progress after which a length is given up; 0: never; default 15, or 0 for
    /// `--procedure linear`
    #[arg(long, value_name = "N", value_parser = nonnegative_integer)]
    patience: Option<u64>,
    /// The longest prompt; default: as long as the secret
    #[arg(long, value_name = "N", value_parser = integer)]
    longest: Option<u64>,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) fn run(args: &MemorizeArgs, console: &mut Console) -> Result<u8, Failure> {
    let (question, output) = match &args.metric {
        MetricArgs::Vmr(args) => (MemorizeQuestion::Vmr(ratio(args)), &args.output),
        MetricArgs::Air(args) => (MemorizeQuestion::Air(ratio(args)), &args.output),
        MetricArgs::Acr(args) => (MemorizeQuestion::Acr(compression(args)), &args.output),
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

fn ratio(args: &RatioArgs) -> RatioQuestion {
    let model = args.model.clone();
    RatioQuestion {
        completions: args.completions.clone(),
        base: args.base.clone(),
        rule: args.rule,
        normalize: args.normalize,
        confidence: args.confidence,
        model: model.model,
        tokenizer: model.tokenizer,
        tuned: model.tuned,
        secrets: model.secrets,
        seed: model.seed,
        samples: args.samples,
        new_tokens: args.new_tokens,
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: args.top_p,
        save_completions: args.save_completions.clone(),
    }
}

fn compression(args: &CompressionArgs) -> CompressionQuestion {
    let model = args.model.clone();
    CompressionQuestion {
        model: model.model,
        tokenizer: model.tokenizer,
        tuned: model.tuned,
        secrets: model.secrets,
        seed: Some(model.seed),
        procedure: args.procedure,
        proposals: args.proposals,
        steps: Some(args.steps),
        candidates: Some(args.candidates),
        top_k: Some(args.top_k),
        patience: args.patience,
        longest: args.longest,
    }
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
    let about = |value: f64| rounded(value, 3, Side::Neither);
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
    text.push_str(&wrap(&format!("{rule}; {equal}"), "match: ", 7, 96));
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
            96,
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
        text.push_str(&wrap(&line, "base: ", 6, 96));
    }
    text
}

fn human_compression(found: &Compressions) -> String {
    let about = |value: f64| rounded(value, 3, Side::Neither);
    let share = found.share.interval;
    let mut table = Table::new([
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
            c.ratio.map_or_else(
                || "-".into(),
                |ratio| format!(">= {}", rounded(ratio, 3, Side::Lower)),
            ),
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
    text.push_str(&wrap(
        "the search is heuristic: a prompt that was found bounds the ratio from below; none found shows nothing",
        "Note: ",
        6,
        96,
    ));
    text
}
