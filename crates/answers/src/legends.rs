//! Words about standings that tables of answers need: headings, titles and notes. A front end prints
//! them and has none of its own.

use vocabulary::{Claim, Standing};

/// Of a table of mechanisms: epsilon of all iterates, and of the last one.
pub const MECHANISM_COLUMNS: [&str; 2] =
    ["epsilon of\nall iterates\n(proven)", "epsilon of\nlast iterate\n(heuristic)"];

/// Of a table of batch sizes: epsilon of the last iterate, of all iterates, and of full batches.
pub const BATCH_SIZE_COLUMNS: [&str; 3] =
    ["heuristic\nepsilon", "proven\nepsilon", "full-batch\nepsilon"];

/// Of a table of advice: epsilon of all iterates, and of the last one.
pub const ADVICE_COLUMNS: [&str; 2] = ["\nproven", "\nheuristic"];

/// Of the two maps of ratios.
pub const MAP_TITLES: [&str; 2] = [
    "last-iterate / composition (heuristic / proven)",
    "last-iterate / full-batch (both heuristic)",
];

/// What the numbers beside the noise of a table of batch sizes are.
pub const BATCH_SIZES_ARE: &str = "and what is proven at it";

/// What stands in brackets in a table of ways to draw batches.
pub const BRACKETS_ARE: &str =
    "In brackets: what the worst data set leaks at least, proven as well.";

/// What is known of releasing every model of a search.
pub const ALL_MODELS_ARE: &str = "(proven, composition)";

/// What the bounds on a search are.
pub const SEARCH_IS: &str = "proven bounds";

/// What the epsilons of a game are.
pub const KNOWN_ARE: &str = "certified";

/// What is allowed to an attacker who guesses an attribute.
pub const GUESSES_ARE: &str = "The bounds are for an attacker who sees every step of the training.";

/// What a search for prompts shows.
pub const PROMPTS_ARE: &str = "the search is heuristic: a prompt that was found bounds the ratio from \
    below; none found shows nothing";

/// What the standings of these claims mean, where it has to be said: that of a proven or measured
/// number is in its name.
pub fn standings(claims: &[&Claim]) -> Vec<&'static str> {
    [Standing::Heuristic, Standing::Estimate]
        .into_iter()
        .filter(|standing| claims.iter().any(|claim| claim.standing == *standing))
        .map(vocabulary::words::meaning)
        .collect()
}

/// How a measured number is called, with its confidence.
pub fn measured_with(confidence: f64) -> String {
    format!("{}, {:.0} % confidence", Standing::Measured.as_str(), 100.0 * confidence)
}
