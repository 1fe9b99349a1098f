//! How many forward passes the search for the shortest prompt takes, ours beside the reference
//! procedure, at equal success: where the reference found a shorter prompt, ours is run again with
//! another seed, and what that costs is added, until its prompt is as short.
//!
//!     cargo run --release -p probes --example acr_passes -- MODEL TOKENIZER [STEPS] [TEXTS] [SEEDS]
//!
//! Texts are what the model itself says (memorised, in effect). Prints one line per search and then,
//! a JSON object with the sums.

use language::Decoder;
use language::compression::{Compression, Gcg, Options, Procedure, compress};
use language::model::greedy;
use std::path::Path;

/// Attempts of ours at most.
const ATTEMPTS: u64 = 6;

struct Text<'a> {
    decoder: &'a Decoder,
    begin: &'a [u32],
    said: &'a [u32],
    allowed: &'a [bool],
}

impl Text<'_> {
    fn search(
        &self,
        procedure: Procedure,
        gcg: Gcg,
    ) -> Result<Compression, language::LanguageError> {
        let options = Options { gcg, procedure, ..Options::default() };
        compress(self.decoder, self.begin, self.said, self.allowed, &options)
    }
}

fn length(found: &Compression) -> usize {
    found.prompt.as_ref().map_or(usize::MAX, Vec::len)
}

#[allow(clippy::print_stdout)] // a program
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, tokenizer, rest @ ..] = &arguments[..] else {
        return Err("give a model and its tokenizer".into());
    };
    let number = |i: usize, default: usize| rest.get(i).map_or(Ok(default), |text| text.parse());
    let (steps, texts, seeds) = (number(0, 200)?, number(1, 4)?, number(2, 2)?);
    let model = language::load::model(Path::new(path), Some(Path::new(tokenizer)))?;
    let begin = model.tokenizer.encode("", true)?;
    let mut allowed = vec![true; model.decoder.architecture.vocabulary];
    allowed[..3].fill(false);
    let starts =
        ["Once upon a time", "The little dog", "Tom and Sue", "One day", "She was", "They had"];
    let (mut ours, mut reference, mut first) = (0, 0, 0);
    let (mut cases, mut again, mut longer, mut shorter) = (0, 0, 0, 0);
    for start in &starts[..texts.min(starts.len())] {
        let prompt = model.tokenizer.encode(start, true)?;
        // The middle of its own story.
        let story = greedy(&model.decoder, &prompt, 24, &model.stop)?;
        let said = story[8..20].to_vec();
        let text = Text { decoder: &model.decoder, begin: &begin, said: &said, allowed: &allowed };
        for seed in (0..seeds as u64).map(|number| 42 + 7 * number) {
            let theirs = text.search(Procedure::Linear, Gcg { steps, seed, ..Gcg::reference() })?;
            let (mut best, mut passes, mut attempts) = (usize::MAX, 0, 0);
            while attempts < ATTEMPTS && (attempts == 0 || best > length(&theirs)) {
                let seed = seed + 1000 * attempts;
                let found =
                    text.search(Procedure::Bisection, Gcg { steps, seed, ..Gcg::default() })?;
                best = best.min(length(&found));
                passes += found.passes;
                attempts += 1;
                first += if attempts == 1 { found.passes } else { 0 };
            }
            println!(
                "{start:18} seed {seed}: ours {best} tokens, {passes} passes in {attempts} \
                 searches; reference {} tokens, {} passes",
                length(&theirs),
                theirs.passes
            );
            ours += passes;
            reference += theirs.passes;
            cases += 1;
            again += attempts - 1;
            longer += u64::from(best > length(&theirs));
            shorter += u64::from(best < length(&theirs));
        }
    }
    println!(
        "{{\"ours\":{ours},\"first\":{first},\"reference\":{reference},\"cases\":{cases},\
         \"again\":{again},\"longer\":{longer},\"shorter\":{shorter}}}"
    );
    Ok(())
}
