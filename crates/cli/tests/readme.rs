//! What the README shows is what the program prints: every `console` block is run and compared.
//! `UPDATE_README=1 cargo test --release -p dosimeter --test readme` writes the real output into
//! the page.

use std::path::Path;
use std::process::Command;

#[test]
fn the_examples_print_what_the_readme_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let mut real = String::new();
    let mut commands = 0;
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        real.push_str(line);
        real.push('\n');
        if line != "```console" {
            continue;
        }
        while let Some(line) = lines.next() {
            real.push_str(line);
            real.push('\n');
            if line == "```" {
                break;
            }
            let Some(command) = line.strip_prefix("$ dosimeter ") else { continue };
            let mut command = command.to_owned();
            while command.ends_with('\\') {
                let more = lines.next().expect("a continued line");
                real.push_str(more);
                real.push('\n');
                command.truncate(command.len() - 1);
                command.push_str(more.trim());
            }
            while lines.peek().is_some_and(|next| *next != "```" && !next.starts_with("$ ")) {
                lines.next();
            }
            real.push_str(&output(&command));
            commands += 1;
        }
    }
    assert!(commands >= 2, "the README shows only {commands} commands");
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, &real).unwrap();
        return;
    }
    assert!(real == page, "the README is not what is printed; the real page is:\n{real}");
}

#[test]
fn the_commands_of_the_readme_exist() {
    let page = include_str!("../../../README.md");
    let help = output("--help");
    let named: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `dosimeter ")?.split('`').next())
        .collect();
    assert!(named.len() >= 5, "{named:?}");
    for command in named {
        assert!(help.contains(&format!("\n  {command} ")), "`{command}` is not in the help");
    }
}

fn output(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(command.split_whitespace())
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "`dosimeter {command}` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
