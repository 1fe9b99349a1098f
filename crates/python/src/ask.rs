//! Questions as documents: the same text in, the same text out as at every other door.

use crate::errors::refused;
use crate::interruptible::{self, AtInterrupt};
use crate::listener::Listener;
use answers::{
    AccountQuestion, Answer, Ask, AttackQuestion, AuditQuestion, Document, Ended,
    MembershipQuestion, MemorizeQuestion, Picture, Question, Refusal, ReportQuestion, TextFile,
    TrainQuestion, TuneQuestion,
};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
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

/// Attacks a matrix of losses; the question names the files. Gives the scores of the target as well,
/// as the text of a file for an audit.
#[pyfunction]
pub(crate) fn membership(py: Python<'_>, question: &str) -> PyResult<(Said, String)> {
    let question = answers::parse::<MembershipQuestion>(question);
    let work = move || -> Result<_, Refusal> {
        let document = answers::membership(&question?)?;
        Ok((said(Answer::of(&document)), document.scores))
    };
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map_err(|refusal| refused(py, &refusal))
}

/// Writes a report; the question names the files. Gives where it is, and the exit code of the command.
///
/// `progress(kind, done, of)` is called for the chunks of the built-in example; Ctrl-C lets those in hand finish.
#[pyfunction]
#[pyo3(signature = (question, progress))]
pub(crate) fn report(
    py: Python<'_>,
    question: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PathBuf, u8)> {
    let question = answers::parse::<ReportQuestion>(question);
    let (out, exit_code) = patient(py, progress, move |work| {
        Ok(match answers::report(&question?, work)? {
            Ended::Stopped(code) => Ended::Stopped(code),
            Ended::Answered(done) => {
                done.write()?;
                Ended::Answered((done.out, done.report.exit_code()))
            }
        })
    })?;
    Ok((out, exit_code))
}

/// Trains; the question names the file. Gives the ledger.
///
/// `progress(kind, done, of)` is called for the steps; Ctrl-C lets the one in hand finish.
#[pyfunction]
#[pyo3(signature = (question, progress))]
pub(crate) fn train(py: Python<'_>, question: &str, progress: Option<Py<PyAny>>) -> PyResult<Said> {
    let question = answers::parse::<TrainQuestion>(question);
    patient(py, progress, move |work| {
        Ok(match answers::train(&question?, work)? {
            Ended::Stopped(code) => Ended::Stopped(code),
            Ended::Answered(done) => Ended::Answered(said(Answer::of(&done))),
        })
    })
}

/// Long work: Ctrl-C lets what is in hand finish, and is then an exception.
fn patient<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Listener) -> Result<Ended<T>, Refusal> + Send + 'static,
) -> PyResult<T> {
    let listener = Listener::new(progress);
    let (stop, reports) = (listener.stop_flag(), listener.clone());
    let ask = || stop.store(true, Ordering::Relaxed);
    let ended = interruptible::run(py, &AtInterrupt::Ask(&ask), move || work(&reports))?;
    listener.raised()?;
    match ended.map_err(|refusal| refused(py, &refusal))? {
        Ended::Answered(answer) => Ok(answer),
        Ended::Stopped(_) => {
            Err(PyKeyboardInterrupt::new_err("stopped; the same call again resumes"))
        }
    }
}

/// Plays a game; the question names the files.
///
/// `progress(kind, done, of)` is called for the chunks; Ctrl-C lets those in hand finish.
#[pyfunction]
#[pyo3(signature = (question, progress))]
pub(crate) fn attack(
    py: Python<'_>,
    question: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<Said> {
    let question = answers::parse::<AttackQuestion>(question);
    patient(py, progress, move |work| {
        Ok(match answers::attack(&question?, work)? {
            Ended::Stopped(code) => Ended::Stopped(code),
            Ended::Answered(found) => Ended::Answered(said(Answer::of(&found))),
        })
    })
}

/// An experiment's output or its work folder: what is done and what is not.
#[pyfunction]
pub(crate) fn status(py: Python<'_>, path: PathBuf) -> PyResult<Said> {
    let work = move || answers::status(&path).map(|found| Answer::of(&found));
    let answer = interruptible::run(py, &AtInterrupt::Abandon, work)?;
    answer.map(said).map_err(|refusal| refused(py, &refusal))
}

/// Checks the ends of an account document, or of one claim with its run, in ball arithmetic.
#[pyfunction]
pub(crate) fn prove(py: Python<'_>, name: String, text: String) -> PyResult<Said> {
    let work = move || answers::prove(&TextFile { name, text }).map(|found| Answer::of(&found));
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
