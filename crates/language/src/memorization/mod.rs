//! VMR and AIR: how often completions contain what should have stayed private.
//!
//! - **VMR**, verbatim memorisation ratio (Hu et al. 2025): a secret is cut into prompt and target;
//!   the completion of the prompt starts with the target.
//! - **AIR**, attribute inference ratio: the completion of a question contains the attribute.
//!
//! A secret's rate is the share of its completions that match; the score is the mean over
//! secrets. The matching rule is part of the answer ([`Matching`]).
//!
//! The interval over secrets treats them as a sample of secrets like these: Clopper and Pearson
//! for as many independent secrets as have the observed variance (Korn and Graubard 1998), which
//! for one completion per secret is the plain one. With several seeds (trainings) there is also
//! the t-interval over the seeds' scores. A base (the un-tuned model's completions of the same
//! prompts) is shown and subtracted secret by secret; whether the difference is real is an exact
//! sign test over secrets.

mod ask;
mod completions;
mod matching;
mod score;

pub(crate) use ask::ask_with;
pub use ask::{Asking, Questions, ask, read_secrets};
pub use completions::{Completion, Completions};
pub use matching::{Matching, Normalization, Rule};
pub use score::{Base, Memorization, Metric, RateInterval, SecretRate, SeedScore, measure, share};
