//! All tests of this crate in one program: it links once, not once per file.

mod bayes;
mod claimed_families;
mod common;
mod contract;
mod coverage;
mod coverage_edges;
mod coverage_table;
mod every_seed;
mod faults;
mod files;
mod golden;
mod independent;
mod membership;
mod parquet;
mod planning;
mod results;
mod sequential;
mod verdict;
mod worked_example;
