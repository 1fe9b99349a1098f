//! Score files: any bytes in any format are scores or a refusal in one sentence, and any scores
//! can be audited.

use crate::{Bytes, Pseudorandom};
use audit::read::read_npy;
use audit::{AuditError, Design, Method, Plan, Scores, Table, ThresholdRule, analyse, hash};
use std::path::Path;

/// Reads a file whose first byte names the format, and audits what was read. Gives the number of
/// scores.
///
/// # Panics
/// When a law is broken.
pub fn score_file(data: &[u8]) -> usize {
    let Some((format, content)) = data.split_first() else { return 0 };
    let mut table = Table::default();
    let read = match format % 6 {
        0 => table.add_csv(content, Path::new("scores.csv")),
        1 => table.add_jsonl(content, Path::new("scores.jsonl")),
        // A pipe has no length, a file has one.
        2 => npy(&mut table, content, None),
        3 => npy(&mut table, content, Some(content.len() as u64)),
        4 => table.add_csv(Trickle(content), Path::new("scores.csv")),
        _ => table.add_jsonl(Trickle(content), Path::new("scores.jsonl")),
    };
    if let Err(error) = read {
        refused(&error);
        return 0;
    }
    let rows = table.members.len() + table.nonmembers.len();
    assert!(rows > 0, "a file without scores was read");
    assert!(table.members.iter().chain(&table.nonmembers).all(|score| !score.is_nan()));
    // What cannot have been there was not read.
    assert!(rows <= content.len(), "{rows} scores from {} bytes", content.len());
    let table = match table.settle() {
        Ok(table) => table,
        Err(error) => {
            refused(&error);
            return 0;
        }
    };
    let design = table.design().unwrap_or(Design::Runs);
    match table.into_scores(design) {
        Err(error) => refused(&error),
        Ok(scores) => {
            written_and_read_again(&scores);
            audited(&scores, design);
        }
    }
    rows
}

/// Audits scores whose bits are the input: infinities, ties, subnormal numbers, few or many.
///
/// # Panics
/// When a law is broken.
pub fn any_scores(data: &[u8]) -> usize {
    let mut bytes = Bytes::new(data);
    let design = if bytes.byte().is_multiple_of(2) { Design::Runs } else { Design::OneRun };
    let (members, nonmembers) = (1 + bytes.byte() % 40, 1 + bytes.byte() % 40);
    let mut score = |_| match bytes.byte() % 4 {
        0 => f64::from(bytes.byte() % 4),
        1 => f64::from_bits(bytes.word()),
        2 => [f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0][usize::from(bytes.byte() % 4)],
        _ => bytes.fraction(),
    };
    let members: Vec<f64> = (0..members).map(&mut score).collect();
    let nonmembers: Vec<f64> = (0..nonmembers).map(&mut score).collect();
    let broken = members.iter().chain(&nonmembers).any(|score| score.is_nan());
    match Scores::new(design, members, nonmembers) {
        Err(error) => {
            assert!(broken, "{error}");
            refused(&error);
            0
        }
        Ok(scores) => {
            assert!(!broken, "a NaN was taken for a score");
            written_and_read_again(&scores);
            audited(&scores, design)
        }
    }
}

fn npy(table: &mut Table, content: &[u8], length: Option<u64>) -> Result<(), AuditError> {
    table.members = read_npy(content, length, Path::new("members.npy"))?;
    Ok(())
}

/// A reader that gives a few bytes at a time, so that lines lie across reads.
struct Trickle<'a>(&'a [u8]);

impl std::io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let take = self.0.len().min(buffer.len()).min(7);
        let (now, later) = self.0.split_at(take);
        buffer[..take].copy_from_slice(now);
        self.0 = later;
        Ok(take)
    }
}

fn refused(error: &AuditError) {
    let message = error.to_string();
    assert!(
        !message.is_empty() && !message.contains(char::is_control) && message.len() < 2000,
        "not a sentence: {message:?}"
    );
}

/// The same scores have the same hash from any format and in any order.
fn written_and_read_again(scores: &Scores) {
    let mut text = String::from("member,score\n");
    for (side, member) in [(scores.members(), 1), (scores.nonmembers(), 0)] {
        for score in side.iter().rev() {
            text.push_str(&format!("{member},{score:?}\n"));
        }
    }
    let mut table = Table::default();
    let again = table
        .add_csv(text.as_bytes(), Path::new("again.csv"))
        .and_then(|()| table.settle()?.into_scores(scores.design()))
        .unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(hash::scores(scores), hash::scores(&again), "{text}");
}

/// Every method and rule answers, within its range, or says why not.
fn audited(scores: &Scores, design: Design) -> usize {
    let mut answers = 0;
    for threshold in [
        ThresholdRule::Union,
        ThresholdRule::Dkw,
        ThresholdRule::Holdout,
        ThresholdRule::KFold,
        ThresholdRule::Fixed(0.5),
    ] {
        let mut plan = Plan::new(design);
        // The credible interval takes a hundred times longer than all others together.
        plan.all_methods = threshold == ThresholdRule::Holdout || design == Design::OneRun;
        if !plan.all_methods {
            plan.methods = vec![Method::ClopperPearson, Method::Gdp];
        }
        plan.deltas = vec![1e-3, 0.0];
        plan.threshold = threshold;
        let analysis = match analyse(scores, &plan, None) {
            Ok(analysis) => analysis,
            Err(error) => {
                refused(&error);
                continue;
            }
        };
        for bound in &analysis.bounds {
            assert!(bound.epsilon() >= 0.0, "{threshold}: {bound:?}");
            assert!(bound.epsilon().is_finite() || bound.reason().is_some(), "{bound:?}");
            if let Some(upper) = bound.epsilon_upper
                && !bound.method().is_credible()
            {
                assert!(upper >= bound.epsilon(), "{threshold}: {bound:?}");
            }
        }
        let qualities = [analysis.auroc, analysis.advantage].into_iter();
        for measured in qualities.chain(analysis.tpr.iter().map(|power| power.measured)) {
            assert!(
                0.0 <= measured.lower
                    && measured.lower <= measured.value
                    && measured.value <= measured.upper
                    && measured.upper <= 1.0,
                "{measured:?}"
            );
        }
        let written = serde_json::to_string(&analysis).expect("an audit is always JSON");
        assert!(!written.contains("NaN"), "{written}");
        answers += analysis.bounds.len();
    }
    answers
}

/// A score file that is right more often than chance would have it, and then spoilt a little.
pub fn some_score_file(words: &mut Pseudorandom) -> Vec<u8> {
    let format = (words.word() % 6) as u8;
    let number = |words: &mut Pseudorandom| match words.word() % 60 {
        0 => "inf".to_owned(),
        1 => "-inf".to_owned(),
        2 => "1e400".to_owned(),
        3 => "nan".to_owned(),
        4..20 => format!("{}", words.word() % 3),
        _ => format!("{}", words.word() as f64 / 2f64.powi(62)),
    };
    let rows = 2 + words.word() % 30;
    let mut content = match format {
        2 | 3 => {
            let descr = ["<f8", "<f8", ">f4", "|i1", "<u8", "|O"][(words.word() % 6) as usize];
            let promised = if words.word().is_multiple_of(4) { words.word() } else { rows };
            let header = format!(
                "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({promised},), }}\n"
            );
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            let width = [8, 8, 4, 1, 8, 8][["<f8", "", ">f4", "|i1", "<u8", "|O"]
                .iter()
                .position(|d| *d == descr)
                .unwrap_or(0)];
            bytes.extend(words.bytes(rows as usize * width));
            bytes
        }
        1 | 5 => (0..rows)
            .map(|row| {
                let score = number(words);
                let score = if score.contains(['n', 'i']) { format!("\"{score}\"") } else { score };
                format!("{{\"score\": {score}, \"member\": {}, \"run\": {row}}}\n", row % 2)
            })
            .collect::<String>()
            .into_bytes(),
        _ => {
            let head =
                ["score,member\n", "# design: one-run\nscore,member\n", "run,score,member\n"]
                    [(words.word() % 3) as usize];
            let mut text = head.to_owned();
            for row in 0..rows {
                if head.starts_with("run") {
                    text.push_str(&format!("{row},"));
                }
                text.push_str(&format!("{},{}\n", number(words), row % 2));
            }
            text.into_bytes()
        }
    };
    if words.word().is_multiple_of(3) {
        let index = (words.word() % content.len() as u64) as usize;
        content[index] = words.word() as u8;
    }
    if words.word().is_multiple_of(5) {
        let keep = (words.word() % content.len() as u64) as usize;
        content.truncate(keep);
    }
    content.insert(0, format);
    content
}
