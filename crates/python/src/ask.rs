//! Questions as documents: the same text in, the same text out as at every other door.

use crate::errors::refused;
use crate::interruptible::{self, AtInterrupt};
use answers::{
    AccountQuestion, Answer, Ask, AuditQuestion, MemorizeQuestion, Picture, Question, Refusal,
    TuneQuestion,
};
use pyo3::prelude::*;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// The text of an answer, its warnings, and what the command line would have exited with.
type Said = (String, Vec<String>, u8);

fn said(answer: Answer) -> Said {
    (answer.text, answer.warnings, answer.exit_code)
}

/// Asks a question that is a document alone.
#[pyfunction]
pub(crate) fn ask(py: Python<'_>, kind: &str, question: &str) -> PyResult<Said> {
    let question = Question::read(kind, question).map_err(|refusal| refused(py, &refusal))?;
    let answer = match question {
        // Short enough to stay on this thread.
        Question::Account(_) => interruptible::here(py, || question.answer())?,
        _ => interruptible::run(py, &AtInterrupt::Abandon, move || question.answer())?,
    };
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// Audits the scores of files; with a figure's name, the answer is its SVG.
#[pyfunction]
#[pyo3(signature = (question, files, members, nonmembers, figure))]
pub(crate) fn audit(
    py: Python<'_>,
    question: &str,
    files: Vec<PathBuf>,
    members: Vec<PathBuf>,
    nonmembers: Vec<PathBuf>,
    figure: Option<&str>,
) -> PyResult<Said> {
    let picture = match figure {
        None => None,
        Some("histogram") => Some(Picture::Histogram),
        Some("ladder") => Some(Picture::Ladder),
        Some(_) => Some(Picture::Roc),
    };
    let question = answers::parse::<AuditQuestion>(question);
    let work = move || -> Result<Answer, Refusal> {
        let mut question = question?;
        question.made_by.extend(answers::runs_beside(&files)?);
        let table = answers::read_scores(&files, &members, &nonmembers)?;
        if question.sequential {
            return Ok(Answer::of(&answers::sequential(&question, table)?));
        }
        let audited = answers::audit(&question, table)?;
        let mut answer = Answer::of(&audited);
        if let Some(picture) = picture {
            let figure = audited.figure(picture)?;
            answer.text = figures::to_svg(&figure, &figures::Options::default());
        }
        Ok(answer)
    };
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// Asks a table of trainings, which is a file.
#[pyfunction]
pub(crate) fn tune(py: Python<'_>, question: &str, table: PathBuf) -> PyResult<Said> {
    let question = answers::parse::<TuneQuestion>(question);
    let work = move || -> Result<Answer, Refusal> {
        let table = answers::read_trainings(&table)?;
        Ok(Answer::of(&answers::tune(&question?, &table)?))
    };
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// Asks completions, or a language model; the question names the files.
#[pyfunction]
pub(crate) fn memorize(py: Python<'_>, question: &str) -> PyResult<Said> {
    let question = answers::parse::<MemorizeQuestion>(question);
    let work = move || -> Result<Answer, Refusal> {
        Ok(Answer::of(&answers::memorize(&question?, &mut |_| ())?))
    };
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// An experiment's output or its work folder: what is done and what is not.
#[pyfunction]
pub(crate) fn status(py: Python<'_>, path: PathBuf) -> PyResult<Said> {
    let work = move || answers::status(&path).map(|found| Answer::of(&found));
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// Seconds of one account without Python: the median of some, for the benchmark.
#[pyfunction]
pub(crate) fn account_seconds(py: Python<'_>, question: &str, repetitions: usize) -> PyResult<f64> {
    let median = || -> Result<f64, Refusal> {
        let question: AccountQuestion = answers::parse(question)?;
        let mut seconds: Vec<f64> = Vec::new();
        for _ in 0..repetitions {
            let start = Instant::now();
            black_box(black_box(&question).ask()?);
            seconds.push(start.elapsed().as_secs_f64());
        }
        seconds.sort_by(f64::total_cmp);
        Ok(seconds.get(repetitions / 2).copied().unwrap_or(f64::NAN))
    };
    py.detach(median).map_err(|refusal| refused(py, &refusal))
}
