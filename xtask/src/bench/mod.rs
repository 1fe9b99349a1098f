//! `cargo xtask bench`: Dosimeter and its peers side by side, in one run on one machine, and
//! the page `docs/benchmarks.md` written from what was measured. Peers come from PyPI into a
//! virtual environment under `target/`. `cargo xtask bench audit` (`batches`, `faults`, `server`)
//! measures that part alone and puts it in its place on the page. A peer that cannot be installed, fails or runs too
//! long costs its own row and nothing else.

mod audit;
mod bars;
mod batches;
mod faults;
mod format;
mod games;
mod language;
mod measure;
mod page;
mod python;
mod record_level;
mod recorder;
mod sections;
mod server;
mod slider;
mod tightness;
mod training;

use anyhow::Result;
use std::process::ExitCode;

pub fn run(arguments: &[String]) -> Result<ExitCode> {
    if arguments.first().is_some_and(|part| part == "training") {
        return training::run();
    }
    if arguments.first().is_some_and(|part| part == "language") {
        return language::run();
    }
    if arguments.first().is_some_and(|part| part == "python") {
        let mut page = page::Page::default();
        python::python(&mut page);
        let missed = page.print();
        return Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if arguments.first().is_some_and(|part| part == "recorder") {
        let mut page = page::Page::default();
        recorder::recorder(&mut page, arguments.get(1))?;
        let missed = page.print();
        return Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    if arguments.first().is_some_and(|part| part == "server") {
        let mut page = page::Page::default();
        server::server(&mut page);
        slider::slider(&mut page);
        return written(page.write_part()?);
    }
    if arguments.first().is_some_and(|part| part == "faults") {
        let mut page = page::Page::default();
        faults::faults(&measure::Bench::of_program()?, &mut page)?;
        return written(page.write_part()?);
    }
    let known = ["audit", "batches"];
    if let Some(unknown) = arguments.first().filter(|part| !known.contains(&part.as_str())) {
        anyhow::bail!(
            "unknown argument `{unknown}`: bench takes none, `audit`, `batches`, `faults`, `language`, `python`, \
             `recorder`, `server` or `training`"
        );
    }
    if arguments.first().is_some_and(|part| part == "audit") {
        let mut page = page::Page::default();
        audit::audits(&measure::Bench::of_program()?, &mut page);
        return written(page.write_part()?);
    }
    let bench = measure::Bench::prepare()?;
    let mut page = page::Page::new(&bench);
    if !arguments.is_empty() {
        batches::batches(&bench, &mut page);
        return written(page.write_part()?);
    }
    sections::epsilon(&bench, &mut page);
    sections::growth(&bench, &mut page);
    sections::calibration(&bench, &mut page);
    sections::sweep(&bench, &mut page);
    sections::power(&bench, &mut page);
    sections::heuristic(&bench, &mut page);
    batches::batches(&bench, &mut page);
    record_level::security(&bench, &mut page);
    games::games(&bench, &mut page);
    audit::audits(&bench, &mut page);
    faults::faults(&bench, &mut page)?;
    sections::processes(&bench, &mut page);
    python::python(&mut page);
    server::server(&mut page);
    slider::slider(&mut page);
    let missed = page.write()?;
    println!("wrote docs/benchmarks.md; {missed} bars missed or not measured");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn written(missed: usize) -> Result<ExitCode> {
    println!("wrote a part of docs/benchmarks.md; {missed} of its bars missed or not measured");
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
