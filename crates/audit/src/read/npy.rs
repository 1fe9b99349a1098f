//! NumPy's .npy format, versions 1 to 3, one dimension of real numbers.
//!
//! The header is a Python dictionary literal; only the three keys of the format are accepted,
//! nothing is evaluated, and no length in it is believed before the bytes are there.

use super::refuse;
use crate::AuditError;
use std::io::Read;
use std::path::Path;

/// NumPy pads headers to a multiple of 64 bytes; real ones are far smaller than this.
const LONGEST_HEADER: usize = 1 << 16;
const CHUNK: usize = 1 << 18;

#[derive(Clone, Copy)]
enum Kind {
    Float64,
    Float32,
    Signed(usize),
    Unsigned(usize),
    Boolean,
}

struct Layout {
    kind: Kind,
    big_endian: bool,
    count: u64,
}

pub(super) fn read(
    values: &mut Vec<f64>,
    mut source: impl Read,
    length: Option<u64>,
    path: &Path,
) -> Result<(), AuditError> {
    let (layout, header_bytes) = header(&mut source, path)?;
    let width = layout.kind.width();
    let data_bytes = layout
        .count
        .checked_mul(width as u64)
        .ok_or_else(|| refuse(path, None, "the header promises more scores than can exist"))?;
    if let Some(length) = length {
        let there = length.saturating_sub(header_bytes);
        if there != data_bytes {
            let problem = format!(
                "the header promises {} scores ({data_bytes} bytes) but {there} bytes follow; the file is {}",
                layout.count,
                if there < data_bytes { "truncated" } else { "longer than it says" }
            );
            return Err(refuse(path, None, &problem));
        }
    }
    if layout.count == 0 {
        return Err(refuse(path, None, "holds no score"));
    }
    // Room for what the header says only when the file's length confirms it.
    if length.is_some() {
        values.reserve_exact(usize::try_from(layout.count).unwrap_or(0));
    }
    let mut buffer = vec![0_u8; CHUNK - CHUNK % width];
    let (mut row, mut left) = (0_u64, data_bytes);
    while left > 0 {
        let take = left.min(buffer.len() as u64) as usize;
        source.read_exact(&mut buffer[..take]).map_err(|_| {
            refuse(path, Some(row + 1), "the file ends before the scores that its header promises")
        })?;
        layout.decode(&buffer[..take], values);
        let added = take / width;
        let fresh = &values[values.len() - added..];
        if let Some(place) = fresh.iter().position(|score| score.is_nan()) {
            let problem = "the score is NaN; an audit needs ordered scores";
            return Err(refuse(path, Some(row + 1 + place as u64), problem));
        }
        row += added as u64;
        left -= take as u64;
    }
    let mut more = [0_u8; 1];
    if length.is_none() && matches!(source.read(&mut more), Ok(1)) {
        return Err(refuse(path, None, "the file is longer than its header says"));
    }
    Ok(())
}

fn header(source: &mut impl Read, path: &Path) -> Result<(Layout, u64), AuditError> {
    let short = |_| refuse(path, None, "the file ends inside the .npy header");
    let mut start = [0_u8; 8];
    source.read_exact(&mut start).map_err(short)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(refuse(path, None, "is not a .npy file (its first bytes are wrong)"));
    }
    let (size, prefix) = match start[6] {
        1 => {
            let mut bytes = [0_u8; 2];
            source.read_exact(&mut bytes).map_err(short)?;
            (usize::from(u16::from_le_bytes(bytes)), 10)
        }
        2 | 3 => {
            let mut bytes = [0_u8; 4];
            source.read_exact(&mut bytes).map_err(short)?;
            (u32::from_le_bytes(bytes) as usize, 12)
        }
        version => {
            return Err(refuse(path, None, &format!(".npy version {version} is not known")));
        }
    };
    if size > LONGEST_HEADER {
        return Err(refuse(path, None, &format!("a .npy header of {size} bytes is refused")));
    }
    let mut text = vec![0_u8; size];
    source.read_exact(&mut text).map_err(short)?;
    let layout = std::str::from_utf8(&text)
        .map_err(|_| "the header is not text".to_owned())
        .and_then(Layout::parse)
        .map_err(|problem| refuse(path, None, &format!("in the .npy header: {problem}")))?;
    Ok((layout, prefix + size as u64))
}

impl Kind {
    fn width(self) -> usize {
        match self {
            Self::Float64 => 8,
            Self::Float32 => 4,
            Self::Signed(width) | Self::Unsigned(width) => width,
            Self::Boolean => 1,
        }
    }
}

impl Layout {
    /// Reads {'descr': '<f8', 'fortran_order': False, 'shape': (100,), }.
    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.trim_end_matches(['\n', ' ', '\0']).trim();
        rest = rest
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'))
            .ok_or("it is not a dictionary")?;
        let (mut descr, mut shape, mut order) = (None, None, false);
        loop {
            rest = rest.trim_start_matches([' ', ',']);
            if rest.is_empty() {
                break;
            }
            let (key, after) = quoted(rest).ok_or("a key is not quoted")?;
            rest = after.trim_start().strip_prefix(':').ok_or("a key has no value")?.trim_start();
            match key {
                "descr" if descr.is_none() => {
                    let (value, after) = quoted(rest)
                        .ok_or("the type is not a plain one; save scores as float64")?;
                    descr = Some(value);
                    rest = after;
                }
                "fortran_order" if !order => {
                    order = true;
                    rest = rest
                        .strip_prefix("False")
                        .or_else(|| rest.strip_prefix("True"))
                        .ok_or("fortran_order is neither True nor False")?;
                }
                "shape" if shape.is_none() => {
                    let inner = rest.strip_prefix('(').ok_or("the shape is not a tuple")?;
                    let close = inner.find(')').ok_or("the shape is not closed")?;
                    shape = Some(count_of(&inner[..close])?);
                    rest = &inner[close + 1..];
                }
                other => {
                    return Err(format!("key `{}` is unknown or repeated", other.escape_debug()));
                }
            }
        }
        let descr = descr.ok_or("there is no `descr`")?;
        let count = shape.ok_or("there is no `shape`")?;
        let (kind, big_endian) = kind_of(descr).ok_or_else(|| {
            format!("type `{}` is not a real number; save scores as float64", descr.escape_debug())
        })?;
        Ok(Self { kind, big_endian, count })
    }

    fn decode(&self, bytes: &[u8], values: &mut Vec<f64>) {
        macro_rules! numbers {
            ($number:ty, $width:literal) => {{
                let chunks = bytes.as_chunks::<$width>().0.iter();
                if self.big_endian {
                    values.extend(chunks.map(|chunk| <$number>::from_be_bytes(*chunk) as f64));
                } else {
                    values.extend(chunks.map(|chunk| <$number>::from_le_bytes(*chunk) as f64));
                }
            }};
        }
        match self.kind {
            Kind::Float64 => numbers!(f64, 8),
            Kind::Float32 => numbers!(f32, 4),
            Kind::Signed(1) => numbers!(i8, 1),
            Kind::Signed(2) => numbers!(i16, 2),
            Kind::Signed(4) => numbers!(i32, 4),
            Kind::Signed(_) => numbers!(i64, 8),
            Kind::Boolean | Kind::Unsigned(1) => numbers!(u8, 1),
            Kind::Unsigned(2) => numbers!(u16, 2),
            Kind::Unsigned(4) => numbers!(u32, 4),
            Kind::Unsigned(_) => numbers!(u64, 8),
        }
    }
}

fn kind_of(descr: &str) -> Option<(Kind, bool)> {
    let (order, name) = descr.split_at_checked(1)?;
    let big_endian = match order {
        "<" | "|" | "=" => false,
        ">" => true,
        _ => return None,
    };
    let kind = match name {
        "f8" => Kind::Float64,
        "f4" => Kind::Float32,
        "b1" => Kind::Boolean,
        "i1" => Kind::Signed(1),
        "i2" => Kind::Signed(2),
        "i4" => Kind::Signed(4),
        "i8" => Kind::Signed(8),
        "u1" => Kind::Unsigned(1),
        "u2" => Kind::Unsigned(2),
        "u4" => Kind::Unsigned(4),
        "u8" => Kind::Unsigned(8),
        _ => return None,
    };
    Some((kind, big_endian))
}

/// The number of scores of a shape `100,` or `100, 1`.
fn count_of(shape: &str) -> Result<u64, String> {
    let mut sizes = Vec::new();
    for part in shape.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        sizes.push(part.parse::<u64>().map_err(|_| "the shape holds something else than sizes")?);
    }
    let long: Vec<u64> = sizes.iter().copied().filter(|&size| size != 1).collect();
    match (sizes.len(), long.as_slice()) {
        (0, _) => Err("a single number is not a list of scores".to_owned()),
        (_, []) => Ok(1),
        (_, [size]) => Ok(*size),
        _ => Err(format!("the shape ({shape}) is not one-dimensional")),
    }
}

/// The text between quotes at the start, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
    let inner = &text[1..];
    let close = inner.find(quote)?;
    Some((&inner[..close], &inner[close + 1..]))
}
