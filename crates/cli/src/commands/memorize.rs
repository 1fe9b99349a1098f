//! `memorize`: memorisation of secrets by a language model.

use crate::args::{Format, OutputArgs, integer, nonnegative_integer, real};
use crate::console::{Console, write_file};
use crate::exit;
use crate::failure::Failure;
use crate::print::{Align, Table, csv_line, plain, rounded, wrap};
use clap::{Args, Subcommand, ValueEnum};
use language::LanguageError;
use language::compression::{Compression, Gcg, Options, Procedure, Proposals, compress};
use language::finetune::weights::lay_over;
use language::load::Model;
use language::memorization::{
    Asking, Completion, Completions, Matching, Memorization, Metric, Normalization, Rule, ask,
    measure, read_secrets,
};
use language::model::Sampling;
use serde_json::{Value, json};
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

#[derive(Debug, Args)]
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
    #[arg(value_name = "COMPLETIONS", required_unless_present = "model", conflicts_with = "model")]
    completions: Option<PathBuf>,
    /// Completions of the un-tuned model on the same secrets
    #[arg(long, value_name = "COMPLETIONS")]
    base: Option<PathBuf>,
    /// When a completion matches; default prefix for vmr, words for air
    #[arg(long = "match", value_enum, value_name = "RULE")]
    rule: Option<RuleName>,
    /// What is made equal first; default none for vmr, case for air
    #[arg(long, value_enum, value_name = "HOW")]
    normalize: Option<NormalizationName>,
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
    #[arg(long, value_enum, default_value_t = ProcedureName::Bisection)]
    procedure: ProcedureName,
    /// How replacements are proposed
    #[arg(long, value_enum, default_value_t = ProposalsName::Gradient)]
    proposals: ProposalsName,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RuleName {
    Prefix,
    Contains,
    Words,
    Exact,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormalizationName {
    None,
    Space,
    Case,
    Loose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ProcedureName {
    Bisection,
    Linear,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProposalsName {
    Gradient,
    Random,
}

pub(super) fn run(args: &MemorizeArgs, console: &mut Console) -> Result<u8, Failure> {
    match &args.metric {
        MetricArgs::Vmr(args) => ratio(Metric::Vmr, args, console),
        MetricArgs::Air(args) => ratio(Metric::Air, args, console),
        MetricArgs::Acr(args) => compression(args, console),
    }
}

fn ratio(metric: Metric, args: &RatioArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let completions = match &args.completions {
        Some(path) => Completions::read(path).map_err(failure)?,
        None => generate(metric, args, console)?,
    };
    let base = match &args.base {
        Some(path) => Some(Completions::read(path).map_err(failure)?),
        None => None,
    };
    let default = metric.matching();
    let matching = Matching {
        rule: args.rule.map_or(default.rule, |rule| match rule {
            RuleName::Prefix => Rule::Prefix,
            RuleName::Contains => Rule::Contains,
            RuleName::Words => Rule::Words,
            RuleName::Exact => Rule::Exact,
        }),
        normalization: args.normalize.map_or(default.normalization, |how| match how {
            NormalizationName::None => Normalization::None,
            NormalizationName::Space => Normalization::Space,
            NormalizationName::Case => Normalization::Case,
            NormalizationName::Loose => Normalization::Loose,
        }),
    };
    let found =
        measure(metric, matching, &completions, base.as_ref(), args.confidence).map_err(failure)?;
    match format {
        Format::Json => console.json(&found)?,
        Format::Csv => {
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
            console.answer(&text)?;
        }
        _ => console.answer(&human(&found))?,
    }
    for warning in &found.warnings {
        console.warn(warning);
    }
    Ok(exit::ANSWERED)
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

/// Lets the model complete every secret's prompt.
fn generate(
    metric: Metric,
    args: &RatioArgs,
    console: &mut Console,
) -> Result<Completions, Failure> {
    let (model, secrets) = load(&args.model)?;
    let asking = Asking {
        samples: args.samples,
        new_tokens: usize::try_from(args.new_tokens).unwrap_or(usize::MAX).min(1 << 20),
        sampling: Sampling {
            temperature: args.temperature,
            top_k: usize::try_from(args.top_k).unwrap_or(usize::MAX),
            top_p: args.top_p,
        },
        seed: args.model.seed,
    };
    let (count, name) = (secrets.len(), metric.as_str());
    let mut done = |number: usize| {
        if number.is_multiple_of(50) {
            console.note(&format!("{number} of {count} secrets completed ({name})"));
        }
    };
    let all = ask(&model.decoder, &model.tokenizer, &model.stop, &secrets, &asking, &mut done)
        .map_err(failure)?;
    if let Some(path) = &args.save_completions {
        write_file(path, all.to_jsonl())?;
    }
    Ok(all)
}

fn load(args: &ModelArgs) -> Result<(Model, Vec<Completion>), Failure> {
    let path = args.model.as_ref().ok_or_else(|| {
        Failure::bad_input("no model is named")
            .hint("give one with --model, and secrets with --secrets")
    })?;
    let secrets = args.secrets.as_ref().ok_or_else(|| {
        Failure::bad_input("no secrets are given")
            .hint("give a JSONL file of prompt and target with --secrets")
    })?;
    let mut model = language::load::model(path, args.tokenizer.as_deref()).map_err(failure)?;
    if let Some(tuned) = &args.tuned {
        lay_over(&mut model.decoder, tuned).map_err(failure)?;
    }
    Ok((model, read_secrets(secrets).map_err(failure)?))
}

fn compression(args: &CompressionArgs, console: &mut Console) -> Result<u8, Failure> {
    let format = args.output.among(&[Format::Human, Format::Json, Format::Csv])?;
    let (model, secrets) = load(&args.model)?;
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX).min(1 << 20);
    let linear = args.procedure == ProcedureName::Linear;
    let defaults = if linear { Gcg::reference() } else { Gcg::default() };
    let options = Options {
        gcg: Gcg {
            steps: size(args.steps),
            candidates: size(args.candidates),
            top_k: size(args.top_k),
            seed: args.model.seed,
            patience: args.patience.map_or(defaults.patience, size),
            proposals: match args.proposals {
                ProposalsName::Gradient => Proposals::Gradient,
                ProposalsName::Random => Proposals::Random,
            },
            ..defaults
        },
        procedure: if linear { Procedure::Linear } else { Procedure::Bisection },
        longest: args.longest.map_or(0, size),
        ..Options::default()
    };
    let begin = model.tokenizer.encode("", true).map_err(failure)?;
    let mut allowed = vec![true; model.decoder.architecture.vocabulary];
    for token in begin.iter().chain(&model.stop) {
        if let Some(flag) = allowed.get_mut(*token as usize) {
            *flag = false;
        }
    }
    let mut found: Vec<(String, Compression, Option<String>)> = Vec::new();
    for (index, secret) in secrets.iter().enumerate() {
        let text = format!("{}{}", secret.prompt, secret.target);
        let target = model.tokenizer.encode(&text, false).map_err(failure)?;
        let result =
            compress(&model.decoder, &begin, &target, &allowed, &options).map_err(failure)?;
        let prompt = match &result.prompt {
            Some(prompt) => Some(model.tokenizer.decode(prompt).map_err(failure)?),
            None => None,
        };
        console.note(&format!(
            "{} of {}: {} in {} passes",
            index + 1,
            secrets.len(),
            result.ratio.map_or_else(|| "no prompt found".into(), |r| format!("ratio {r:.2}")),
            result.passes
        ));
        found.push((secret.secret.clone(), result, prompt));
    }
    let memorized = found.iter().filter(|(_, c, _)| c.memorized).count();
    let share = interval(memorized, found.len());
    match format {
        Format::Json => {
            let rows: Vec<Value> = found
                .iter()
                .map(|(secret, c, prompt)| {
                    json!({"secret": secret, "prompt_text": prompt, "result": c})
                })
                .collect();
            console.json(&json!({
                "schema": "dosimeter.memorize-acr/1",
                "secrets": found.len(),
                "memorized": memorized,
                "share": {"value": share.0, "lower": share.1, "upper": share.2, "confidence": 0.95},
                "failed": found.iter().filter(|(_, c, _)| c.ratio.is_none()).count(),
                "passes": found.iter().map(|(_, c, _)| c.passes).sum::<u64>(),
                "results": rows,
            }))?;
        }
        Format::Csv => {
            let mut text =
                csv_line(["secret", "tokens", "prompt_tokens", "ratio", "memorized", "passes"]);
            for (secret, c, _) in &found {
                text.push_str(&csv_line([
                    secret.clone(),
                    c.target_length.to_string(),
                    c.prompt.as_ref().map_or_else(String::new, |p| p.len().to_string()),
                    c.ratio.map_or_else(String::new, |r| r.to_string()),
                    c.memorized.to_string(),
                    c.passes.to_string(),
                ]));
            }
            console.answer(&text)?;
        }
        _ => console.answer(&human_compression(&found, memorized, share))?,
    }
    Ok(exit::ANSWERED)
}

/// The share with its 95 % interval (Clopper and Pearson, with one completion per secret).
fn interval(right: usize, of: usize) -> (f64, f64, f64) {
    let row = |i: usize| Completion {
        prompt: String::new(),
        target: "x".into(),
        completion: if i < right { "x".into() } else { String::new() },
        secret: i.to_string(),
        attributes: vec!["x".into()],
        seed: None,
    };
    let rows = Completions { rows: (0..of).map(row).collect() };
    match measure(Metric::Vmr, Matching::VERBATIM, &rows, None, 0.95) {
        Ok(found) => (found.score.value, found.score.lower, found.score.upper),
        Err(_) => (f64::NAN, 0.0, 1.0),
    }
}

fn human_compression(
    found: &[(String, Compression, Option<String>)],
    memorized: usize,
    share: (f64, f64, f64),
) -> String {
    let about = |value: f64| rounded(value, 3, Side::Neither);
    let mut table = Table::new([
        ("secret", Align::Left),
        ("tokens", Align::Right),
        ("shortest prompt", Align::Right),
        ("ratio", Align::Right),
        ("memorised", Align::Left),
    ]);
    for (secret, c, _) in found {
        let short: String =
            secret.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
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
        "{memorized} of {} secrets are memorised (ratio above 1): {} (95 %: {} to {})\n\n",
        found.len(),
        about(share.0),
        about(share.1),
        about(share.2)
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

fn failure(error: LanguageError) -> Failure {
    let failure = Failure::bad_input(error.to_string());
    match error {
        LanguageError::NoTokenizer { .. } => failure.hint("name it with --tokenizer"),
        _ => failure,
    }
}
