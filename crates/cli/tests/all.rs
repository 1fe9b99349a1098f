//! All tests of this crate in one program: it links once, not once per file.

mod answers;
mod attack;
mod attack_trained;
mod attribute;
mod audit;
mod audit_output;
mod audit_questions;
mod bad_input;
mod data;
mod documents;
mod filter;
mod finetune;
mod first_hour;
mod interruptions;
mod memorize;
mod newcomer;
mod prove;
mod readme;
mod record_level;
mod report;
mod same_bits;
mod serve;
mod small;
mod support;
mod train;
mod tune;
