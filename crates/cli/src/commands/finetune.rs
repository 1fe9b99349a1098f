//! `train` for language models.

use super::train::{TrainArgs, carry_out};
use crate::console::Console;
use crate::failure::Failure;
use language::finetune::{FinetuneDescription, Finetuning, Start};
use std::path::Path;
use training::{Device, TrainingError};

pub(super) fn run(
    args: &TrainArgs,
    text: &str,
    folder: &Path,
    console: &mut Console,
) -> Result<u8, Failure> {
    let format = args.format()?;
    let wrong = |error: language::LanguageError| Failure::bad_input(error.to_string());
    let described =
        FinetuneDescription::from_toml_str(text).map_err(|error| wrong(error).at(args.place()))?;
    let start = Start::open(described, folder).map_err(wrong)?;
    let (records, cut) = (start.records(), start.texts.cut);
    console.note(&format!("{records} records of {}", start.texts.name));
    if cut > 0 {
        console.warn(&format!("{cut} of them are longer than `length` tokens and lose their end"));
    }
    let target = start.description.privacy.map(|p| (p.target_epsilon, p.delta));
    let run = args.resolve(&start.description.run, records, target, console)?;
    let mut training = Finetuning::new(&start, run, start.description.seed).map_err(wrong)?;
    carry_out(args, format, device, console, &mut |options| training.carry_out(options))
}

/// Language models are trained on the CPU; only naming another device is a contradiction.
pub(super) fn device(name: &str, tf32: bool) -> Result<Device, TrainingError> {
    if name == "auto" && !tf32 { Ok(Device::cpu()) } else { Device::named(name, tf32) }
}
