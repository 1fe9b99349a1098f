//! ACR on stories260K: what is found is true, bisection costs less than the reference procedure
//! at equal success, and failure is a flag and not a number.

use language::compression::{Gcg, Options, Procedure, Proposals, compress, elicits};
use language::load::Model;
use language::model::greedy;
use std::path::Path;

fn stories() -> Model {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/stories260K");
    language::load::model(&data.join("stories260K.bin"), Some(&data.join("tok512.bin"))).unwrap()
}

fn allowed(model: &Model) -> Vec<bool> {
    let mut allowed = vec![true; model.decoder.architecture.vocabulary];
    allowed[..3].fill(false);
    allowed
}

#[test]
fn the_prompt_found_elicits_the_text() {
    let model = stories();
    let prompt = model.tokenizer.encode("The little dog", true).unwrap();
    let text = greedy(&model.decoder, &prompt, 16, &[]).unwrap();
    let gcg = Gcg { steps: 40, ..Gcg::default() };
    let mut passes = Vec::new();
    let mut ratios = Vec::new();
    for (procedure, gcg) in [
        (Procedure::Bisection, gcg),
        (Procedure::Linear, Gcg { steps: 40, ..Gcg::reference() }),
        (Procedure::Bisection, Gcg { proposals: Proposals::Random, ..gcg }),
    ] {
        let options = Options { gcg, procedure, ..Options::default() };
        let found = compress(&model.decoder, &[1], &text, &allowed(&model), &options).unwrap();
        let prompt = found.prompt.clone().unwrap();
        assert!(elicits(&model.decoder, &[1], &prompt, &text).unwrap());
        // Greedy decoding from the prompt really gives the text.
        let said = greedy(&model.decoder, &[&[1], &prompt[..]].concat(), 16, &[]).unwrap();
        assert_eq!(said, text);
        assert_eq!(found.ratio, Some(16.0 / prompt.len() as f64));
        assert!(found.memorized && prompt.iter().all(|token| *token >= 3));
        passes.push(found.passes);
        ratios.push(found.ratio.unwrap());
        // The same again.
        let again = compress(&model.decoder, &[1], &text, &allowed(&model), &options).unwrap();
        assert_eq!(again, found);
    }
    assert!(ratios[0] >= ratios[1], "{ratios:?}");
    assert!(passes[0] < passes[1], "{passes:?}");
}

#[test]
fn failure_is_flagged() {
    let model = stories();
    // Tokens that never follow each other.
    let text: Vec<u32> = (0..8).map(|i| 300 + 23 * i).collect();
    let gcg = Gcg { steps: 3, candidates: 8, ..Gcg::default() };
    let options = Options { gcg, longest: 2, ..Options::default() };
    let found = compress(&model.decoder, &[1], &text, &allowed(&model), &options).unwrap();
    assert_eq!((found.ratio, found.prompt, found.memorized), (None, None, false));
    assert!(found.trials.iter().all(|trial| !trial.success) && found.passes > 0);
    assert!(compress(&model.decoder, &[1], &[], &allowed(&model), &options).is_err());
    assert!(compress(&model.decoder, &[1], &text, &[true; 3], &options).is_err());
}
