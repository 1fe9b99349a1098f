//! How many forward passes the search for the shortest prompt takes, by procedure.
//!
//!     cargo run --release -p language --example acr_passes -- MODEL TOKENIZER [STEPS] [TEXTS] [SEED]
//!
//! Texts are what the model itself says (memorised, in effect) and shuffled versions of it (not).

use language::compression::{Gcg, Options, Procedure, Proposals, compress};
use language::model::greedy;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, tokenizer, rest @ ..] = &arguments[..] else {
        return Err("give a model and its tokenizer".into());
    };
    let number = |i: usize, default: usize| rest.get(i).map_or(Ok(default), |text| text.parse());
    let (steps, texts) = (number(0, 200)?, number(1, 4)?);
    let seed = number(2, 42)? as u64;
    let model = language::load::model(Path::new(path), Some(Path::new(tokenizer)))?;
    let begin = model.tokenizer.encode("", true)?;
    let mut allowed = vec![true; model.decoder.architecture.vocabulary];
    allowed[..3].fill(false);
    let starts =
        ["Once upon a time", "The little dog", "Tom and Sue", "One day", "She was", "They had"];
    let mut totals = [0_u64; 3];
    for start in &starts[..texts.min(starts.len())] {
        let prompt = model.tokenizer.encode(start, true)?;
        // The middle of its own story.
        let story = greedy(&model.decoder, &prompt, 24, &model.stop)?;
        let said = story[8..20].to_vec();
        for (column, (procedure, gcg)) in [
            (Procedure::Bisection, Gcg::default()),
            (Procedure::Linear, Gcg::reference()),
            (Procedure::Bisection, Gcg { proposals: Proposals::Random, ..Gcg::default() }),
        ]
        .into_iter()
        .enumerate()
        {
            let gcg = Gcg { steps, seed, ..gcg };
            let options = Options { gcg, procedure, ..Options::default() };
            let clock = std::time::Instant::now();
            let found = compress(&model.decoder, &begin, &said, &allowed, &options)?;
            totals[column] += found.passes;
            let lengths: Vec<String> = found
                .trials
                .iter()
                .map(|t| format!("{}{}", t.length, if t.success { "+" } else { "-" }))
                .collect();
            #[allow(clippy::print_stdout)]
            {
                println!(
                    "{start:18} {procedure:?} {:?}: ratio {:?}, {} passes, {:.1} s, lengths {}",
                    gcg.proposals,
                    found.ratio,
                    found.passes,
                    clock.elapsed().as_secs_f64(),
                    lengths.join(" ")
                );
            }
        }
    }
    #[allow(clippy::print_stdout)]
    {
        println!("passes: bisection {}, reference {}, random {}", totals[0], totals[1], totals[2]);
    }
    Ok(())
}
