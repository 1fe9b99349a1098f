//! All tests of this crate in one program: it links once, not once per file.

// Tests may compare with the platform's functions.
#![allow(clippy::disallowed_methods)]

mod batches;
mod brute_force;
mod calibration;
mod closed_form_laws;
mod closed_forms;
mod contract;
mod directions;
mod found_by_fuzzing;
mod lattice;
mod lower_ends;
mod monte_carlo;
mod one_question;
mod pitfalls;
mod record_level;
mod routes;
mod schedules;
mod support;
mod time_limit;
mod tradeoff;
mod two_steps;
mod wrong_ends;
