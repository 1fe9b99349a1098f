//! The command line as a library.
