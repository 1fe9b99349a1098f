//! Games against DP-SGD that train real models.
//!
//! Where the simulated games know the released distribution, these train: many replicas of one
//! recipe, with a canary in half of them, and a score read off what an attacker would see.

pub mod attribute;
