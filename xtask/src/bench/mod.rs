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
    let mut page = page::Page::default();
    match arguments.first().map(String::as_str) {
        None => return whole(),
        Some("training") => return training::run(),
        Some("language") => return language::run(),
        Some("python") => {
            python::python(&mut page);
            return Ok(judged(page.print()));
        }
        Some("recorder") => {
            recorder::recorder(&mut page, arguments.get(1))?;
            return Ok(judged(page.print()));
        }
        Some("server") => {
            server::server(&mut page);
            slider::slider(&mut page);
        }
        Some("faults") => faults::faults(&measure::Bench::of_program()?, &mut page)?,
        Some("audit") => audit::audits(&measure::Bench::of_program()?, &mut page),
        Some("batches") => {
            let bench = measure::Bench::prepare()?;
            page = page::Page::new(&bench);
            batches::batches(&bench, &mut page);
        }
        Some(unknown) => anyhow::bail!(
            "unknown argument `{unknown}`: bench takes none, `audit`, `batches`, `faults`, `language`, `python`, \
             `recorder`, `server` or `training`"
        ),
    }
    let missed = page.write_part()?;
    println!("wrote a part of docs/benchmarks.md; {missed} of its bars missed or not measured");
    Ok(judged(missed))
}

/// All of `docs/benchmarks.md`.
fn whole() -> Result<ExitCode> {
    let bench = measure::Bench::prepare()?;
    let mut page = page::Page::new(&bench);
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
    Ok(judged(missed))
}

fn judged(missed: usize) -> ExitCode {
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
