//! The `dosimeter` binary; everything is in the library.

fn main() -> std::process::ExitCode {
    dosimeter_cli::main_with_args(std::env::args_os()).into()
}
