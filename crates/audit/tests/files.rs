//! Score files: every format gives the same scores, and every bad file is refused with its place.

use audit::read::read_npy;
use audit::{Design, Scores, Table};
use std::path::Path;

fn csv(text: &str) -> Result<Table, String> {
    let mut table = Table::default();
    match table.add_csv(text.as_bytes(), Path::new("scores.csv")) {
        Ok(()) => Ok(table),
        Err(error) => Err(error.to_string()),
    }
}

fn jsonl(text: &str) -> Result<Table, String> {
    let mut table = Table::default();
    match table.add_jsonl(text.as_bytes(), Path::new("scores.jsonl")) {
        Ok(()) => Ok(table),
        Err(error) => Err(error.to_string()),
    }
}

fn npy(header: &str, data: &[u8]) -> Result<Vec<f64>, String> {
    let bytes = formats::npy::file(header, data);
    let length = Some(bytes.len() as u64);
    read_npy(bytes.as_slice(), length, Path::new("scores.npy"))
        .map(|values| values.to_vec())
        .map_err(|error| error.to_string())
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Rows that are read sixteen digits at a time among rows that are not, across many buffers: the
/// same scores in the same order as one by one, and the right row in a refusal.
#[test]
fn rows_of_every_shape_are_read_alike() {
    let (mut text, mut members, mut nonmembers) = (String::from("score,member\n"), vec![], vec![]);
    let mut state = 1_u64;
    let rows = 60_000;
    for row in 0..rows {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let score = 8.0 * uniform - 4.0;
        let written = match row % 11 {
            0 => format!("{score:.3}"),
            1 => format!("{score:e}"),
            2 => format!("{:.9}", 100.0 * score),
            3 => format!("{score:.18}"),
            4 => format!("{score:.25}"),
            _ => format!("{score}"),
        };
        let member = state >> 33 & 1;
        let end = if row % 13 == 0 { "\r\n" } else { "\n" };
        text.push_str(&format!("{written},{member}{end}"));
        let side = if member == 1 { &mut members } else { &mut nonmembers };
        side.push(written.parse::<f64>().unwrap());
    }
    let table = csv(&text).unwrap();
    assert_eq!(table.members, members);
    assert_eq!(table.nonmembers, nonmembers);
    text.push_str("nan,1\n0.123456789,1\n");
    let problem = csv(&text).unwrap_err();
    assert!(
        problem.starts_with(&format!("scores.csv, row {}: the score is NaN", rows + 2)),
        "{problem}"
    );
}

#[test]
fn all_formats_read_the_same_scores() {
    let expected =
        Scores::new(Design::Runs, vec![1.5, f64::INFINITY], vec![-2.0, f64::NEG_INFINITY]).unwrap();
    for text in [
        "score,member\n1.5,1\n-2,0\ninf,1\n-inf,0\n",
        "score,member\r\n1.5,1\r\n-2e0,0\r\nInfinity,1\r\n-Inf,0",
        "\u{feff}run,member,note,score\n0,1,\"a,b\",1.5\n1,0,x,-2\n2,1,,inf\n3,0,,-inf\n",
        "# design: runs\n# anything\n\"score\",\"member\"\n1.5,1\n-2,0\n\ninf,true\n-inf,false\n",
    ] {
        assert_eq!(
            csv(text).unwrap().settle().unwrap().into_scores(Design::Runs).unwrap(),
            expected,
            "{text}"
        );
    }
    let lines = "{\"score\":1.5,\"member\":1}\n{\"member\":false,\"score\":-2,\"run\":7}\n\
                 {\"score\":\"inf\",\"member\":true}\n{\"score\":\"-inf\",\"member\":0}\n";
    assert_eq!(
        jsonl(lines).unwrap().settle().unwrap().into_scores(Design::Runs).unwrap(),
        expected
    );
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }       \n";
    assert_eq!(npy(header, &doubles(&[1.5, f64::INFINITY])).unwrap(), [1.5, f64::INFINITY]);
    let big: Vec<u8> = [1.5_f32, -2.0].iter().flat_map(|value| value.to_be_bytes()).collect();
    let header = "{\"descr\": \">f4\", \"shape\": (2, 1), \"fortran_order\": True}\n";
    assert_eq!(npy(header, &big).unwrap(), [1.5, -2.0]);
    let header = "{'descr': '|i1', 'fortran_order': False, 'shape': (3,)}";
    assert_eq!(npy(header, &[1, 255, 0]).unwrap(), [1.0, -1.0, 0.0]);
}

#[test]
fn a_file_states_its_design() {
    assert_eq!(
        csv("# design: one-run\nscore,member\n1,1\n0,0\n").unwrap().design,
        Some(Design::OneRun)
    );
    assert_eq!(csv("score,member\n1,1\n0,0\n").unwrap().design, None);
    let lines = "{\"design\":\"runs\"}\n{\"score\":1,\"member\":1}\n";
    assert_eq!(jsonl(lines).unwrap().design, Some(Design::Runs));
    let mut table = csv("# design: one-run\nscore,member\n1,1\n0,0\n").unwrap();
    let other = table.add_csv("# design: runs\nscore,member\n1,1\n".as_bytes(), Path::new("b.csv"));
    assert!(other.unwrap_err().to_string().contains("an earlier one says one-run"));
}

#[test]
fn bad_text_is_refused_with_its_row() {
    for (text, expected) in [
        ("", "scores.csv: is empty"),
        ("score,member\n", "scores.csv: has a header but no rows"),
        (
            "1.0,1\n2.0,0\n",
            "scores.csv, row 1: the header `1.0,1` does not name `score` and `member`; put a line \
             `score,member` in front",
        ),
        ("score,score,member\n", "names `score` twice"),
        ("score,member\n1,1\nnan,0\n", "scores.csv, row 3: the score is NaN"),
        ("score,member\n1,1\nabc,0\n", "scores.csv, row 3: score `abc` is not a number"),
        ("score,member\n1,1\n,0\n", "row 3: score `` is not a number"),
        ("score,member\n1,2\n", "row 2: member `2` is not 1 or 0"),
        ("score,member\n1\n", "row 2: has fewer columns than the header"),
        ("# design: both\nscore,member\n1,1\n", "row 1: design `both` is not"),
    ] {
        let problem = csv(text).unwrap_err();
        assert!(problem.contains(expected), "{text:?}: {problem}");
    }
    let long = format!("score,member\n{}", "9".repeat(3 << 20));
    assert!(csv(&long).unwrap_err().contains("row 2: the line is longer than a mebibyte"));
    for (text, expected) in [
        ("", "holds no row"),
        ("{\"score\":1}\n", "row 1: there is no `member`"),
        ("{\"member\":1}\n", "row 1: there is no `score`"),
        ("{\"score\":null,\"member\":1}\n", "row 1: there is no `score`, or it is null"),
        ("{\"score\":\"x\",\"member\":1}\n", "row 1: the score is not a number"),
        ("{\"score\":1,\"member\":1}\n[1]\n", "row 2"),
        ("{\"score\":1,\"member\":0.5}\n", "row 1: member is not 1 or 0"),
        ("{\"score\":1,\"member\":0}\n{\"score\":NaN,\"member\":1}\n", "row 2: the score is NaN"),
    ] {
        let problem = jsonl(text).unwrap_err();
        assert!(problem.contains(expected), "{text:?}: {problem}");
    }
}

#[test]
fn one_class_is_refused() {
    let problem = csv("score,member\n1,1\n2,1\n")
        .unwrap()
        .settle()
        .unwrap()
        .into_scores(Design::Runs)
        .unwrap_err()
        .to_string();
    assert!(problem.contains("there is no non-member score"), "{problem}");
}

#[test]
fn hostile_npy_headers_are_refused() {
    let good = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }";
    let data = doubles(&[1.0, 2.0]);
    assert!(npy(good, &data).is_ok());
    let huge = "{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551615,), }";
    for (header, data, expected) in [
        (good, &data[..15], "truncated"),
        (good, &doubles(&[1.0, 2.0, 3.0])[..], "longer than it says"),
        (huge, &data[..], "more scores than can exist"),
        (
            "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,)}",
            &data[..],
            "truncated",
        ),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}", &[][..], "holds no score"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': ()}", &data[..8], "a single number"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}", &data[..], "one-dimensional"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", &data[..], "something else"),
        (
            "{'descr': '<c16', 'fortran_order': False, 'shape': (1,)}",
            &data[..],
            "not a real number",
        ),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", &data[..], "not a real number"),
        ("{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (2,)}", &data[..], "plain"),
        ("{'descr': '<f8', 'descr': '<f4', 'shape': (2,)}", &data[..], "unknown or repeated"),
        ("{'descr': '<f8', 'evil': __import__('os'), 'shape': (2,)}", &data[..], "unknown"),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2,", &data[..], "not a dictionary"),
        ("", &data[..], "not a dictionary"),
        ("{'descr': '', 'fortran_order': False, 'shape': (2,)}", &data[..], "not a real number"),
        ("{'descr': 'é8', 'fortran_order': False, 'shape': (2,)}", &data[..], "not a real number"),
    ] {
        let problem = npy(header, data).unwrap_err();
        assert!(problem.contains(expected), "{header}: {problem}");
    }
    let problem = npy(good, &doubles(&[1.0, f64::NAN])).unwrap_err();
    assert!(problem.contains("row 2: the score is NaN"), "{problem}");
    for bytes in [
        &b""[..],
        b"\x93NUM",
        b"PK\x03\x04aaaa",
        b"\x93NUMPY\x09\x00\x00\x00",
        b"\x93NUMPY\x01\x00\xff\xff{}",
    ] {
        assert!(read_npy(bytes, None, Path::new("x.npy")).is_err());
    }
    let oversized = [&b"\x93NUMPY\x02\x00"[..], &u32::MAX.to_le_bytes()].concat();
    let problem = read_npy(oversized.as_slice(), None, Path::new("x.npy")).unwrap_err().to_string();
    assert!(problem.contains("is refused"), "{problem}");
    // Without a known length the data must end where the header says.
    let bytes = formats::npy::file(good, &doubles(&[1.0, 2.0, 3.0]));
    assert!(read_npy(bytes.as_slice(), None, Path::new("x.npy")).is_err());
}
