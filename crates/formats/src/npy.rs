//! NumPy's .npy format, versions 1 to 3: arrays of real numbers of any shape.
//!
//! The header is a Python dictionary literal; only the three keys of the format are accepted and
//! nothing is evaluated. The shape is only what the file says: compare it with the bytes that are
//! there before making room for it.

use std::io::Read;

/// NumPy pads headers to a multiple of 64 bytes; real ones are far smaller than this.
const LONGEST_HEADER: usize = 1 << 16;
/// NumPy itself stops at 64 dimensions.
const MOST_DIMENSIONS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Float64,
    Float32,
    Signed(usize),
    Unsigned(usize),
    Boolean,
}

/// What the header of a .npy file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    kind: Kind,
    big_endian: bool,
    /// Whether the first index runs fastest.
    pub fortran_order: bool,
    /// The sizes of the dimensions, as stated.
    pub shape: Vec<u64>,
    /// How many bytes of the file came before the data.
    pub bytes: u64,
}

impl Header {
    /// Reads a header and leaves `source` at the first number.
    ///
    /// # Errors
    /// What is wrong with it, as a fragment for "FILE: …".
    ///
    /// ```
    /// let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    /// let file = formats::npy::file(text, &[]);
    /// let header = formats::npy::Header::read(&mut file.as_slice())?;
    /// assert_eq!((header.shape.as_slice(), header.data_bytes()), ([2, 3].as_slice(), Some(24)));
    /// # Ok::<(), String>(())
    /// ```
    pub fn read(source: &mut impl Read) -> Result<Self, String> {
        let short = |_| "the file ends inside the .npy header".to_owned();
        let mut start = [0_u8; 8];
        source.read_exact(&mut start).map_err(short)?;
        if &start[..6] != b"\x93NUMPY" {
            return Err("is not a .npy file (its first bytes are wrong)".to_owned());
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
            version => return Err(format!(".npy version {version} is not known")),
        };
        if size > LONGEST_HEADER {
            return Err(format!("a .npy header of {size} bytes is refused"));
        }
        let mut text = vec![0_u8; size];
        source.read_exact(&mut text).map_err(short)?;
        std::str::from_utf8(&text)
            .map_err(|_| "the header is not text".to_owned())
            .and_then(|text| Self::parse(text, prefix + size as u64))
            .map_err(|problem| format!("in the .npy header: {problem}"))
    }

    /// Bytes of one number.
    pub fn width(&self) -> usize {
        match self.kind {
            Kind::Float64 => 8,
            Kind::Float32 => 4,
            Kind::Signed(width) | Kind::Unsigned(width) => width,
            Kind::Boolean => 1,
        }
    }

    /// How many numbers the shape means; `None` when that many cannot exist.
    pub fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, &size| product.checked_mul(size))
    }

    /// How many bytes must follow the header; `None` when that many cannot exist.
    pub fn data_bytes(&self) -> Option<u64> {
        self.count()?.checked_mul(self.width() as u64)
    }

    /// Gives the numbers of `bytes` in their order; a rest shorter than one number is left out.
    pub fn decode(&self, bytes: &[u8], mut take: impl FnMut(f64)) {
        // A multiple of every width.
        const PIECE: usize = 1 << 13;
        let mut values = vec![0.0; PIECE];
        for piece in bytes.chunks(PIECE) {
            let count = self.fill(piece, &mut values);
            values[..count].iter().copied().for_each(&mut take);
        }
    }

    /// Writes the numbers of `bytes` to the start of `values`, in their order, as far as there is
    /// room; a rest shorter than one number is left out. Gives how many there were.
    pub fn fill(&self, bytes: &[u8], values: &mut [f64]) -> usize {
        macro_rules! numbers {
            ($number:ty, $width:literal) => {{
                let places = values.iter_mut().zip(bytes.as_chunks::<$width>().0);
                if self.big_endian {
                    places.for_each(|(value, chunk)| {
                        *value = <$number>::from_be_bytes(*chunk) as f64
                    });
                } else {
                    places.for_each(|(value, chunk)| {
                        *value = <$number>::from_le_bytes(*chunk) as f64
                    });
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
        values.len().min(bytes.len() / self.width())
    }

    /// Reads {'descr': '<f8', 'fortran_order': False, 'shape': (100,), }.
    fn parse(text: &str, bytes: u64) -> Result<Self, String> {
        let mut rest = text.trim_end_matches(['\n', ' ', '\0']).trim();
        rest = rest
            .strip_prefix('{')
            .and_then(|inner| inner.strip_suffix('}'))
            .ok_or("it is not a dictionary")?;
        let (mut descr, mut shape, mut order) = (None, None, None);
        loop {
            rest = rest.trim_start_matches([' ', ',']);
            if rest.is_empty() {
                break;
            }
            let (key, after) = quoted(rest).ok_or("a key is not quoted")?;
            rest = after.trim_start().strip_prefix(':').ok_or("a key has no value")?.trim_start();
            match key {
                "descr" if descr.is_none() => {
                    let (value, after) =
                        quoted(rest).ok_or("the type is not a plain one; save as float64")?;
                    descr = Some(value);
                    rest = after;
                }
                "fortran_order" if order.is_none() => {
                    (order, rest) = if let Some(after) = rest.strip_prefix("False") {
                        (Some(false), after)
                    } else if let Some(after) = rest.strip_prefix("True") {
                        (Some(true), after)
                    } else {
                        return Err("fortran_order is neither True nor False".to_owned());
                    };
                }
                "shape" if shape.is_none() => {
                    let inner = rest.strip_prefix('(').ok_or("the shape is not a tuple")?;
                    let close = inner.find(')').ok_or("the shape is not closed")?;
                    shape = Some(sizes_of(&inner[..close])?);
                    rest = &inner[close + 1..];
                }
                other => {
                    return Err(format!("key `{}` is unknown or repeated", other.escape_debug()));
                }
            }
        }
        let descr = descr.ok_or("there is no `descr`")?;
        let shape = shape.ok_or("there is no `shape`")?;
        let (kind, big_endian) = kind_of(descr).ok_or_else(|| {
            format!("type `{}` is not a real number; save as float64", descr.escape_debug())
        })?;
        Ok(Self { kind, big_endian, fortran_order: order.unwrap_or(false), shape, bytes })
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

/// The sizes of a shape `100,` or `100, 1`.
fn sizes_of(shape: &str) -> Result<Vec<u64>, String> {
    let mut sizes = Vec::new();
    for part in shape.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        sizes.push(part.parse::<u64>().map_err(|_| "the shape holds something else than sizes")?);
        if sizes.len() > MOST_DIMENSIONS {
            return Err(format!("more than {MOST_DIMENSIONS} dimensions"));
        }
    }
    Ok(sizes)
}

/// The text between quotes at the start, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
    let inner = &text[1..];
    let close = inner.find(quote)?;
    Some((&inner[..close], &inner[close + 1..]))
}

/// A file of version 1 with this header, which is not looked at, and this data.
pub fn file(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

/// A file of doubles, the last index fastest, as NumPy writes it: the numbers begin at a multiple of 64 bytes.
///
/// ```
/// let file = formats::npy::doubles(&[2, 1], &[0.5, 2.0]);
/// let mut rest = file.as_slice();
/// let header = formats::npy::Header::read(&mut rest)?;
/// assert_eq!((header.shape.as_slice(), header.bytes), ([2, 1].as_slice(), 128));
/// assert_eq!(rest.len(), 16);
/// # Ok::<(), String>(())
/// ```
pub fn doubles(shape: &[usize], values: &[f64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    // Magic, version, length and the end of the line are eleven bytes.
    header.push_str(&" ".repeat((header.len() + 11).next_multiple_of(64) - header.len() - 11));
    header.push('\n');
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    file(&header, &data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_types_and_orders() {
        let text = "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3, 4), }\n";
        let header = Header::read(&mut file(text, &[]).as_slice()).unwrap();
        assert!(header.fortran_order);
        assert_eq!(
            (header.shape.as_slice(), header.data_bytes()),
            ([2, 3, 4].as_slice(), Some(48))
        );
        assert_eq!(header.bytes, 10 + text.len() as u64);
        let mut numbers = Vec::new();
        header.decode(&[0xFF, 0xFE, 0x01, 0x00, 0x07], |number| numbers.push(number));
        assert_eq!(numbers, [-2.0, 256.0]);
    }

    #[test]
    fn a_product_that_overflows_is_no_count() {
        let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }";
        let header = Header::read(&mut file(text, &[]).as_slice()).unwrap();
        assert_eq!((header.count(), header.data_bytes()), (None, None));
    }

    #[test]
    fn hostile_headers_are_refused() {
        let many = format!("{{'descr': '<f8', 'shape': ({}), }}", "1,".repeat(65));
        for (text, problem) in [
            ("{'descr': 'O', 'shape': (1,)}", "not a real number"),
            ("{'descr': [('a', '<f8')], 'shape': (1,)}", "not a plain one"),
            ("{'descr': '<f8', 'shape': (-1,)}", "something else than sizes"),
            ("{'descr': '<f8', 'shape': (1, }", "not closed"),
            ("{'descr': '<f8', 'descr': '<f8', 'shape': (1,)}", "repeated"),
            ("{'descr': '<f8'}", "no `shape`"),
            ("{'descr': '<f8', 'shape': (1,), 'x': __import__('os')}", "unknown"),
            ("['descr']", "not a dictionary"),
            (many.as_str(), "dimensions"),
        ] {
            let found = Header::read(&mut file(text, &[]).as_slice()).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
        let cut = Header::read(&mut &b"\x93NUMPY\x02\x00\xFF\xFF\xFF\x7F"[..]).unwrap_err();
        assert!(cut.contains("refused"), "{cut}");
        let short = Header::read(&mut &b"\x93NUMPY\x01\x00\x40\x00{"[..]).unwrap_err();
        assert!(short.contains("ends inside"), "{short}");
    }
}
