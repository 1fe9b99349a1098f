//! ACR, the adversarial compression ratio (Schwarzschild et al. 2024): the length of a text over
//! that of the shortest prompt whose greedy continuation is the text, in tokens. Above 1 the text
//! is called memorised: the model stores it in fewer tokens than it has.
//!
//! A prompt of n tokens is searched for by greedy coordinate gradient (Zou et al. 2023; [`gcg`]):
//! the gradient of the loss with respect to one-hot tokens proposes replacements, and the best of a
//! sample of candidates is taken. Success is exact: every token of the text is the most likely one
//! given the prompt and the text before it, which is what greedy decoding needs.
//!
//! The shortest length is searched for by [`search`]: doubling from a first guess until one
//! succeeds, then bisection between the longest failure and the shortest success, each shorter
//! search starting from the prompt that already worked, less the tokens that are missed least. The reference procedure grows by five and
//! shrinks by one ([`search::Procedure::Linear`]). Since the search is heuristic, the prompt found
//! is an upper bound on the shortest, and the ratio a lower bound. A text for which no prompt was
//! found has no ratio; it is flagged and not given a number.

mod gcg;
mod objective;
mod search;
mod secrets;

pub use gcg::{Attempt, Gcg, Proposals};
pub use objective::{InputGradient, elicits, input_gradient, losses};
pub use search::{Compression, Options, Procedure, Trial, compress};
pub use secrets::{CompressedSecret, Compressions, Share, compress_secrets};
