//! `train` for language models.

use super::train::{TrainArgs, carry_out};
use crate::console::Console;
use crate::failure::Failure;
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
        .map_err(|error| Failure::from(error).at(args.place()))?;
    let start = Start::open(described, folder)?;
    let (records, cut) = (start.records(), start.texts.cut);
    console.note(&format!("{records} records of {}", start.texts.name));
    if cut > 0 {
        console.warn(&format!("{cut} of them are longer than `length` tokens and lose their end"));
    }
    let target = start.description.privacy.map(|p| (p.target_epsilon, p.delta));
    let run = args.resolve(&start.description.run, records, target, console)?;
    let scope = start.description.scope();
    let named = |name: &str, precision: PrecisionName| device(name, precision, scope);
    carry_out(args, format, &named, console, &mut |options| {
        let refused = |error: language::LanguageError| TrainingError::Recipe(error.to_string());
        let place = Place::of(options.device).map_err(refused)?;
        Finetuning::new(&start, run.clone(), start.description.seed, &place)
            .map_err(refused)?
            .carry_out(options)
    })
}
