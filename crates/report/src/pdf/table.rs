//! Tables: columns as wide as their words ask for, rows that stay whole, the head again on
//! every page.

use super::flow::{Flow, LEADING, baseline};
use super::font::clean;
use super::sheet::{AssumptionMark, INK, MARGIN, RULE, Type, WIDTH};
use krilla::tagging::{TableHeaderScope, Tag};

const PADDING: (f32, f32) = (4.0, 2.5);
/// Sizes to try until the longest words fit.
const SIZES: [f32; 4] = [8.5, 7.8, 7.0, 6.2];

/// Adds a table.
pub(super) fn table(flow: &mut Flow<'_>, columns: &[String], rows: &[Vec<String>]) {
    let columns: Vec<String> = columns.iter().map(|text| clean(text)).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| clean(text)).collect()).collect();
    let (size, widths) = layout(flow, &columns, &rows);
    let head = Type { size, bold: true, colour: INK };
    let body = Type { size, bold: false, colour: INK };
    let numeric: Vec<bool> = (0..columns.len()).map(|column| is_numeric(&rows, column)).collect();
    let table = flow.sheets.element(None, Tag::Table);
    let head_element = flow.sheets.element(Some(table), Tag::THead);
    let body_element = flow.sheets.element(Some(table), Tag::TBody);
    let head_lines = broken(flow, &columns, head, &widths);
    let head_height = height(&head_lines, size);
    let first = rows.first().map_or(0.0, |row| height(&broken(flow, row, body, &widths), size));
    flow.need(head_height + first);
    let row = flow.sheets.element(Some(head_element), Tag::TR);
    flow.band(head_height);
    let cells: Vec<Option<usize>> = columns
        .iter()
        .map(|_| Some(flow.sheets.element(Some(row), Tag::TH(TableHeaderScope::Column))))
        .collect();
    draw(flow, &cells, &head_lines, head, &widths, &numeric);
    flow.y += head_height;
    for words in &rows {
        let lines = broken(flow, words, body, &widths);
        let tall = height(&lines, size);
        if tall > flow.room() {
            flow.turn();
            // On a further page the head is decoration: screen readers read it once.
            flow.band(head_height);
            let none = vec![None; columns.len()];
            draw(flow, &none, &head_lines, head, &widths, &numeric);
            flow.y += head_height;
        }
        let row = flow.sheets.element(Some(body_element), Tag::TR);
        let cells: Vec<Option<usize>> = (0..words.len())
            .map(|column| {
                Some(if column == 0 {
                    flow.sheets.element(Some(row), Tag::TH(TableHeaderScope::Row))
                } else {
                    flow.sheets.element(Some(row), Tag::TD)
                })
            })
            .collect();
        draw(flow, &cells, &lines, body, &widths, &numeric);
        flow.y += tall;
        let place = (MARGIN.0, flow.y - 0.3, WIDTH, 0.4);
        flow.sheets.place(None, AssumptionMark::Rectangle { place, colour: RULE });
    }
}

/// A size at which no word has to be cut, if there is one, and the widths of the columns.
fn layout(flow: &Flow<'_>, columns: &[String], rows: &[Vec<String>]) -> (f32, Vec<f32>) {
    let room = WIDTH - 2.0 * PADDING.0 * columns.len() as f32;
    let mut best = (SIZES[SIZES.len() - 1], Vec::new());
    for size in SIZES {
        let (mut least, mut wished) = (Vec::new(), Vec::new());
        for (column, name) in columns.iter().enumerate() {
            let cells = || rows.iter().filter_map(|row| row.get(column));
            let widest = |bold: f32, of: &dyn Fn(&str) -> f32| {
                cells().map(|text| of(text)).fold(bold, f32::max)
            };
            let (regular, bold) = (&flow.faces.regular, &flow.faces.bold);
            // Hashes and the like may be cut anywhere.
            let limit = 0.4 * room;
            least.push(
                widest(bold.widest_word(name, size), &|text| regular.widest_word(text, size))
                    .min(limit),
            );
            wished.push(widest(bold.width(name, size), &|text| regular.width(text, size)));
        }
        let (sum_least, sum_wished) = (least.iter().sum::<f32>(), wished.iter().sum::<f32>());
        let widths = if sum_wished <= room {
            let spare = (room - sum_wished) / columns.len().max(1) as f32;
            wished.iter().map(|width| width + spare).collect()
        } else if sum_least <= room {
            let share = (room - sum_least) / (sum_wished - sum_least).max(1e-3);
            least.iter().zip(&wished).map(|(least, wish)| least + share * (wish - least)).collect()
        } else {
            least.iter().map(|width| width * room / sum_least).collect::<Vec<f32>>()
        };
        best = (size, widths);
        if sum_least <= room {
            break;
        }
    }
    best
}

type Lines = Vec<Vec<String>>;

fn broken(flow: &Flow<'_>, words: &[String], look: Type, widths: &[f32]) -> Lines {
    // A hair wider than measured, so that rounding does not cut a word that fits.
    let face = flow.faces.face(look.bold);
    words
        .iter()
        .zip(widths)
        .map(|(text, width)| face.lines(text, look.size, width + 0.05))
        .collect()
}

fn height(lines: &Lines, size: f32) -> f32 {
    let most = lines.iter().map(Vec::len).max().unwrap_or(0).max(1);
    most as f32 * size * LEADING + 2.0 * PADDING.1
}

/// Whether every cell of a column is a number or its absence, so that it stands at the right.
fn is_numeric(rows: &[Vec<String>], column: usize) -> bool {
    let mut any = false;
    let all = rows.iter().filter_map(|row| row.get(column)).all(|text| {
        let number = text.trim_start_matches(['\u{2264}', '\u{2265}', '\u{2248}', '\u{d7}', ' ']);
        any |= number.starts_with(|letter: char| letter.is_ascii_digit());
        number.starts_with(|letter: char| letter.is_ascii_digit())
            || ["\u{2013}", "unbounded", ""].contains(&number)
    });
    any && all && column > 0
}

fn draw(
    flow: &mut Flow<'_>,
    cells: &[Option<usize>],
    lines: &Lines,
    look: Type,
    widths: &[f32],
    numeric: &[bool],
) {
    let mut left = MARGIN.0;
    for (((cell, lines), width), numeric) in cells.iter().zip(lines).zip(widths).zip(numeric) {
        let mut y = flow.y + PADDING.1 + baseline(look);
        // A cell without words still counts as one.
        let blank = [String::from(" ")];
        let lines = if lines.is_empty() { &blank[..] } else { &lines[..] };
        for (place, line) in lines.iter().enumerate() {
            let wide = flow.faces.face(look.bold).width(line, look.size);
            let x = if *numeric { left + PADDING.0 + width - wide } else { left + PADDING.0 };
            let mut text = line.clone();
            if place + 1 < lines.len() {
                text.push(' ');
            }
            flow.sheets.place(*cell, AssumptionMark::Text { at: (x, y), text, look });
            y += look.size * LEADING;
        }
        left += width + 2.0 * PADDING.0;
    }
}
