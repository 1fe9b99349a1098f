//! `train` for language models.

use super::train::{TrainArgs, carry_out};
use crate::console::Console;
use crate::failure::Failure;
use language::LanguageError;
use language::finetune::{FinetuneDescription, Finetuning, Place, Start, device};
use std::path::Path;
use training::{PrecisionName, TrainingError};

pub(super) fn run(
    args: &TrainArgs,
    text: &str,
    folder: &Path,
    console: &mut Console,
) -> Result<u8, Failure> {
    let format = args.format()?;
    let described = FinetuneDescription::from_toml_str(text)
        .map_err(|error| bad_input(error).at(args.place()))?;
    let start = Start::open(described, folder).map_err(bad_input)?;
    let (records, cut) = (start.records(), start.texts.cut);
    console.note(&format!("{records} records of {}", start.texts.name));
    if cut > 0 {
        console.warn(&format!("{cut} of them are longer than `length` tokens and lose their end"));
    }
    let target = start.description.privacy.map(|p| (p.target_epsilon, p.delta));
    let delta = args.stated_delta(target);
    let run = args.resolve(&start.description.run, records, target, console)?;
    let scope = start.description.scope();
    let named = |name: &str, precision: PrecisionName| device(name, precision, scope);
    carry_out(args, format, delta, &named, console, &mut |options| {
        let refused = |error: LanguageError| TrainingError::Recipe(error.to_string());
        let place = Place::of(options.device).map_err(refused)?;
        Finetuning::new(&start, run.clone(), start.description.seed, &place)
            .map_err(refused)?
            .carry_out(options)
    })
}

/// Exit 2, with how a run file names what is missing.
pub(super) fn bad_input(error: LanguageError) -> Failure {
    let failure = Failure::bad_input(error.to_string());
    match error {
        LanguageError::NoTokenizer { .. } => {
            failure.hint("add `tokenizer = \"FILE\"` to the table [model]")
        }
        _ => failure,
    }
}
