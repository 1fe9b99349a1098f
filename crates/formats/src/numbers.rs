//! A list of numbers in a file: NumPy's .npy with one dimension, or text with numbers between commas, blanks and
//! line ends; lines that start with # are comments.

use crate::npy::Header;
use std::path::Path;

/// The numbers of a file, all finite.
///
/// # Errors
/// What is wrong with it, with the row, as a fragment for "FILE: …".
pub fn read(path: &Path) -> Result<Vec<f64>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))?;
    let numbers =
        if bytes.starts_with(b"\x93NUMPY") { from_npy(&bytes) } else { from_text(&bytes) }?;
    match numbers.iter().position(|number| !number.is_finite()) {
        Some(place) => Err(format!("number {} is {}, not finite", place + 1, numbers[place])),
        None if numbers.is_empty() => Err("holds no number".into()),
        None => Ok(numbers),
    }
}

fn from_npy(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let header = Header::read(&mut &bytes[..])?;
    if header.shape.len() != 1 {
        return Err(format!("has shape {:?}; one dimension is needed", header.shape));
    }
    let data = bytes.get(header.bytes as usize..).unwrap_or_default();
    if header.data_bytes() != Some(data.len() as u64) {
        return Err("does not hold as many numbers as its header promises".into());
    }
    let mut numbers = Vec::new();
    header.decode(data, |number| numbers.push(number));
    Ok(numbers)
}

fn from_text(bytes: &[u8]) -> Result<Vec<f64>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is neither text nor .npy".to_owned())?;
    let mut numbers = Vec::new();
    for (row, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        for word in line.split([',', ' ', '\t', ';']).filter(|word| !word.is_empty()) {
            let number = word.parse();
            numbers.push(number.map_err(|_| format!("row {}: {word:?} is not a number", row + 1))?);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, bytes: &[u8]) -> Result<Vec<f64>, String> {
        let path = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let found = read(&path);
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn text_and_npy_hold_the_same_numbers() {
        let want = Ok(vec![1.0, 0.5, -0.25]);
        assert_eq!(written("a.csv", b"# first column\n1,0.5\n-2.5e-1\n"), want);
        let file = crate::npy::doubles(&[3], &[1.0, 0.5, -0.25]);
        assert_eq!(written("a.npy", &file), want);
        assert!(written("b.npy", &file[..file.len() - 3]).unwrap_err().contains("as many numbers"));
        assert!(written("b.csv", b"1\nhalf\n").unwrap_err().contains("row 2: \"half\""));
        assert!(written("c.csv", b"1\nnan\n").unwrap_err().contains("number 2"));
    }
}
