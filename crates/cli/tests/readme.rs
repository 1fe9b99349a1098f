//! What the pages show is what the program prints: every `console` block of the README and of the
//! guides is run and compared, each page in a folder of its own with the files that it shows
//! (```` ```toml run.toml ````). `UPDATE_README=1 cargo test --release -p dosimeter --features full
//! --test all readme` writes the real output into the pages. Blocks marked ```` ```sh run ```` are run by
//! a shell and have to succeed; every other block with commands says in a comment what they cost, and
//! is read by the parser of the command line.

use clap::Parser;
use dosimeter_cli::Cli;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut all = vec![root().join("README.md"), root().join("python/README.md")];
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "md") {
            all.push(path);
        }
    }
    all.sort();
    all
}

#[test]
fn the_examples_print_what_the_pages_say() {
    let mut commands = 0;
    for path in pages() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let page = std::fs::read_to_string(&path).unwrap();
        // Elsewhere there may be no shell to make the files that later blocks read.
        if cfg!(not(unix)) && page.contains("```sh run") {
            continue;
        }
        let (real, run) = played(&page);
        commands += run;
        if std::env::var_os("UPDATE_README").is_some() {
            std::fs::write(&path, &real).unwrap();
            continue;
        }
        assert!(real == page, "{name} is not what is printed; the real page is:\n{real}");
    }
    assert!(commands >= 6, "the pages show only {commands} commands");
}

/// The picture of all ways to draw batches is what the command beside it draws.
#[test]
fn the_picture_of_the_batches_is_drawn_by_its_command() {
    let docs = root().join("docs");
    let page = std::fs::read_to_string(docs.join("batches.md")).unwrap();
    let start = page.find("dosimeter compare --every-sampling --noise-multipliers").unwrap();
    let command = page[start..].split(" > batches.svg").next().unwrap().replace("\\\n", " ");
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(command.split_whitespace().skip(1))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = docs.join("figures/batches.svg");
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&picture, &output.stdout).unwrap();
    }
    assert!(std::fs::read(&picture).unwrap() == output.stdout, "UPDATE_README=1 draws it anew");
}

/// The page with what its console blocks really print, and how many commands there were.
fn played(page: &str) -> (String, usize) {
    let folder = tempfile::tempdir().unwrap();
    let (mut real, mut commands) = (String::new(), 0);
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        real.push_str(line);
        real.push('\n');
        let Some(block) = line.strip_prefix("```").filter(|info| !info.is_empty()) else {
            continue;
        };
        let file = block.split_whitespace().nth(1).filter(|name| name.contains('.'));
        let mut text = String::new();
        while let Some(line) = lines.next() {
            real.push_str(line);
            real.push('\n');
            if line == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
            let Some(command) = line.strip_prefix("$ dosimeter ").filter(|_| block == "console")
            else {
                continue;
            };
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
            // `| head -3`: a page may show the first lines only.
            let (command, most) = match command.split_once(" | head -") {
                Some((command, count)) => (command, count.trim().parse().unwrap()),
                None => (command.as_str(), usize::MAX),
            };
            let printed = output(command, folder.path());
            printed.split_inclusive('\n').take(most).for_each(|line| real.push_str(line));
            commands += 1;
        }
        if let Some(file) = file {
            std::fs::write(folder.path().join(file), &text).unwrap();
        }
        if block == "sh run" {
            carried_out(&text, folder.path());
            commands += text.matches("dosimeter ").count();
        }
    }
    (real, commands)
}

/// Runs a block as a shell script with this program first on the path.
fn carried_out(script: &str, folder: &Path) {
    let program = Path::new(env!("CARGO_BIN_EXE_dosimeter")).parent().unwrap();
    let others = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-e", "-c", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{others}", program.display()))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {errors}");
}

/// The blocks of a page: what follows the fence, and the lines.
fn blocks(page: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = page.lines().map(str::trim_start);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned);
        found.push((info.to_owned(), block.collect()));
    }
    found
}

/// Every block is run by a test, or says what it costs.
#[test]
fn every_command_is_run_or_says_what_it_costs() {
    let costs = ["second", "minute", "hour", "no time", "until Ctrl-C"];
    let (mut marked, mut faults) = (0, Vec::new());
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        for (info, block) in blocks(&page) {
            let comments = block.iter().filter_map(|line| Some(line.split_once('#')?.1));
            let told = comments.fold(String::new(), |all, comment| all + comment);
            let kind = info.split_whitespace().next().unwrap_or("");
            let held = match kind {
                // `the_examples_print_what_the_pages_say`; nothing but our commands is in them.
                "console" => block
                    .iter()
                    .all(|line| !line.starts_with("$ ") || line.starts_with("$ dosimeter ")),
                "sh" if info == "sh run" => true,
                "sh" => {
                    marked += 1;
                    costs.iter().any(|cost| told.contains(cost))
                }
                // `descriptions_of_the_pages_are_read`, and what runs of the same page read.
                "toml" => true,
                "csv" => true,
                // python/tests: test_guides.py, test_package.py, test_reference.py, bridges.
                "python" | "pycon" => true,
                // What the clinic's tests print.
                "text" => name == "gallery.md",
                _ => false,
            };
            if !held {
                faults.push(format!("{name}: ```{info} {}", block.join(" / ")));
            }
        }
    }
    assert!(marked > 10, "only {marked} blocks were found");
    assert!(faults.is_empty(), "run these, or say what they cost:\n{}", faults.join("\n"));
}

/// The TOML of the pages has no key that the program does not know: a run is accounted; what
/// describes a training fails at most for a file that is not there.
#[test]
fn descriptions_of_the_pages_are_read() {
    let mut read = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for (_, block) in blocks(&page).into_iter().filter(|(info, _)| info.starts_with("toml")) {
            let text = block.join("\n");
            let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}: {text}"));
            // A part of a description stands in a whole one.
            let mut whole: toml::Table =
                "[run]\nnoise_multiplier = 1\nsample_rate = 0.01\nsteps = 1\n\
                [data]\nname = \"adult\"\n[model]\nkind = \"softmax\"\n\
                [optimizer]\nkind = \"sgd\"\nlearning_rate = 1\n"
                    .parse()
                    .unwrap();
            if table.contains_key("canaries") {
                whole["data"] = toml::from_str("path = \"texts.jsonl\"").unwrap();
                whole["model"] =
                    toml::from_str("kind = \"language\"\npath = \"model.gguf\"").unwrap();
            }
            let alone = table.len() == 1 && table.contains_key("run");
            whole.extend(table);
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("page.toml");
            std::fs::write(&file, whole.to_string()).unwrap();
            let language =
                whole["model"].get("kind").and_then(|kind| kind.as_str()) == Some("language");
            let words: &[&str] = match (alone, language) {
                (true, _) => &["account"],
                (false, true) => &["train"],
                (false, false) => &["train", "--explain"],
            };
            let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
                .args(words)
                .arg(&file)
                .current_dir(folder.path())
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let absent = !alone && told.contains("there is no such file");
            let name = path.display();
            assert!(output.status.success() || absent, "{name}: {told}\n{whole}");
            read += 1;
        }
    }
    assert!(read >= 8, "only {read} descriptions were found");
}

/// A stranger follows the tutorial from its first line to its last: nothing in it is left out.
#[test]
fn the_tutorial_is_run_as_a_whole() {
    let page = std::fs::read_to_string(root().join("docs/tutorial.md")).unwrap();
    let mut lines = page.lines();
    let (mut run, mut faults) = (Vec::new(), Vec::new());
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else { continue };
        for line in lines.by_ref().take_while(|line| *line != "```") {
            let line = line.trim_start_matches("$ ");
            match line.strip_prefix("dosimeter ").and_then(|rest| rest.split(' ').next()) {
                Some(command) if info == "console" || info == "sh run" => run.push(command),
                Some(_) => faults.push(line),
                None => {}
            }
        }
    }
    assert!(faults.is_empty(), "not run: {faults:?}");
    for step in ["data", "calibrate", "account", "check", "train", "attack", "audit", "report"] {
        assert!(run.contains(&step), "the tutorial has no `dosimeter {step}`: {run:?}");
    }
}

/// Every command of every page is one that the program understands.
#[test]
fn commands_of_the_pages_are_understood() {
    let (mut read, mut faults) = (0, Vec::new());
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap().replace("\\\n", " ");
        let mut inside = false;
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                inside = !inside;
                continue;
            }
            let line = line.trim().trim_start_matches("$ ").trim_start_matches("! ");
            let Some(command) = line.strip_prefix("dosimeter ").filter(|_| inside) else {
                continue;
            };
            // A shell's own marks, and what stands for something else.
            let command = command.split(['|', '>', '#', ';', '&']).next().unwrap_or("");
            if command.contains(['…', '<', '*', '$', '{']) {
                continue;
            }
            read += 1;
            let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
            if let Err(error) = Cli::try_parse_from(std::iter::once("dosimeter").chain(words))
                && error.use_stderr()
            {
                let text = error.to_string();
                faults.push(format!(
                    "{}: `dosimeter {command}`: {}",
                    path.display(),
                    text.lines().next().unwrap_or("")
                ));
            }
        }
    }
    assert!(read >= 20, "only {read} commands were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// So is every command with flags that stands within a sentence or a table.
#[test]
fn commands_within_sentences_are_understood() {
    let (mut read, mut faults) = (0, Vec::new());
    // The reference names flags without their values.
    for path in pages().iter().filter(|path| !path.ends_with("python-reference.md")) {
        let page = std::fs::read_to_string(path).unwrap();
        let mut inside = false;
        let mut text = String::new();
        for line in page.lines() {
            if line.trim_start().starts_with("```") {
                inside = !inside;
            } else if !inside {
                text.push_str(line);
                text.push(' ');
            }
        }
        for command in text.split('`').skip(1).step_by(2) {
            let words = words(&command.replace('\'', "\""));
            let flags = words.iter().any(|word| word.starts_with('-'));
            // What stands for something else; `COMMAND` stands for any.
            let meant = command.contains('…') || command.contains("COMMAND");
            if words.first().is_none_or(|word| word != "dosimeter") || !flags || meant {
                continue;
            }
            read += 1;
            if let Err(error) = Cli::try_parse_from(&words)
                && error.use_stderr()
            {
                faults.push(format!("{}: `{command}`: {error}", path.display()));
            }
        }
    }
    assert!(read >= 15, "only {read} commands were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_commands_of_the_readme_exist() {
    let page = include_str!("../../../README.md");
    let help = output("--help", &root());
    let named: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `dosimeter ")?.split('`').next())
        .collect();
    assert!(named.len() >= 5, "{named:?}");
    for command in &named {
        assert!(help.contains(&format!("\n  {command} ")), "`{command}` is not in the help");
    }
    // The same order in both, so that a reader finds a command again.
    let place = |command: &&str| help.find(&format!("\n  {command} "));
    assert!(named.is_sorted_by_key(place), "{named:?}");
}

/// Every paper that can be computed again is named, by its number at arXiv.
#[cfg(feature = "papers")]
#[test]
fn the_readme_names_the_papers() {
    let page = include_str!("../../../README.md");
    let list = output("reproduce --list", &root());
    let flat = list.split_whitespace().collect::<Vec<_>>().join(" ");
    let papers: Vec<&str> =
        flat.split("arXiv ").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert_eq!(papers.len(), 4, "{papers:?}");
    for paper in papers {
        assert!(page.contains(&format!("arXiv {paper}")), "{paper}");
    }
}

fn output(command: &str, folder: &Path) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_dosimeter"))
        .args(words(command))
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .output()
        .unwrap();
    assert!(
        output.status.success() || output.status.code() == Some(3),
        "`dosimeter {command}` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Words of a command; those in double quotes hold spaces.
fn words(command: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (place, part) in command.split('"').enumerate() {
        if place % 2 == 1 {
            all.push(part.to_owned());
        } else {
            all.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    all
}
