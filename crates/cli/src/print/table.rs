//! Aligned columns.

/// Which end of a column its cells share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A table with a head; `render` aligns it with two spaces between columns.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with these columns.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, Align)>) -> Self {
        Self {
            head: columns.into_iter().map(|(name, align)| (name.into(), align)).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; missing cells stay empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as text of at most `width` columns: what does not fit goes into further tables
    /// below, each of which begins with the first `keys` columns again.
    pub(crate) fn render_within(&self, indent: usize, keys: usize, width: usize) -> String {
        let widths = self.widths();
        let fixed: usize = indent + widths.iter().take(keys).map(|width| width + 2).sum::<usize>();
        let mut blocks: Vec<Vec<usize>> = Vec::new();
        let mut used = width + 1;
        for (column, own) in widths.iter().enumerate().skip(keys) {
            if used + own > width {
                blocks.push((0..keys).collect());
                used = fixed;
            }
            used += own + 2;
            if let Some(block) = blocks.last_mut() {
                block.push(column);
            }
        }
        let part = |columns: &[usize]| {
            let cell = |row: &[String], column: usize| row.get(column).cloned().unwrap_or_default();
            let rows = self.rows.iter();
            let table = Self {
                head: columns.iter().map(|column| self.head[*column].clone()).collect(),
                rows: rows.map(|row| columns.iter().map(|at| cell(row, *at)).collect()).collect(),
            };
            table.render(indent)
        };
        let parts: Vec<String> = blocks.iter().map(|columns| part(columns)).collect();
        parts.join("\n")
    }

    fn widths(&self) -> Vec<usize> {
        let length = |text: &str| text.chars().count();
        let widest = |column: usize| {
            let head = self.head[column].0.split('\n').map(length).max().unwrap_or(0);
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| length(cell)).max().unwrap_or(0).max(head)
        };
        (0..self.head.len()).map(widest).collect()
    }

    /// The table as text, each line indented by `indent` spaces. A line break in a column's
    /// name makes a head of several lines.
    pub fn render(&self, indent: usize) -> String {
        let names: Vec<Vec<&str>> =
            self.head.iter().map(|(name, _)| name.split('\n').collect()).collect();
        let height = names.iter().map(Vec::len).max().unwrap_or(1);
        let mut lines: Vec<Vec<&str>> = (0..height)
            .map(|line| names.iter().map(|name| name.get(line).copied().unwrap_or("")).collect())
            .collect();
        lines.extend(self.rows.iter().map(|row| row.iter().map(String::as_str).collect()));
        let widths = self.widths();
        let mut text = String::new();
        for cells in &lines {
            let mut line = " ".repeat(indent);
            for (column, width) in widths.iter().enumerate() {
                let cell = cells.get(column).copied().unwrap_or("");
                let padding = " ".repeat(width - cell.chars().count());
                if column > 0 {
                    line.push_str("  ");
                }
                match self.head[column].1 {
                    Align::Right => line.extend([padding.as_str(), cell]),
                    Align::Left => line.extend([cell, padding.as_str()]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Text broken at spaces to lines of at most `width` characters, with a hanging indent.
pub fn wrap(text: &str, first: &str, indent: usize, width: usize) -> String {
    let mut lines = String::from(first);
    let mut column = first.chars().count();
    for (index, word) in together(text).iter().enumerate() {
        let length = word.chars().count();
        if index > 0 && column + 1 + length > width {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent;
        } else if index > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines.push('\n');
    lines
}

/// Words that may stand on different lines: a number stays with its sign and with its per cent.
fn together(text: &str) -> Vec<String> {
    let signs = ["<=", ">=", "(<=", "(>=", "~", "="];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let percent = word.starts_with('%');
        match words.last_mut() {
            Some(last) if percent || signs.contains(&last.as_str()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut table = TextTable::new([("lens", Align::Left), ("epsilon", Align::Right)]);
        table.row(["composition".into(), "1.829".into()]);
        table.row(["renyi".into(), "12.1".into()]);
        assert_eq!(
            table.render(2),
            "  lens         epsilon\n  composition    1.829\n  renyi           12.1\n"
        );
    }

    #[test]
    fn a_wide_table_is_cut_between_columns() {
        let mut table = TextTable::new([
            ("lens", Align::Left),
            ("epsilon", Align::Right),
            ("advantage", Align::Right),
        ]);
        table.row(["renyi".into(), "1.829".into(), "0.1".into()]);
        assert_eq!(
            table.render_within(0, 1, 16),
            "lens   epsilon\nrenyi    1.829\n\nlens   advantage\nrenyi        0.1\n"
        );
        assert_eq!(table.render_within(0, 1, 80), table.render(0));
    }

    #[test]
    fn wrapped_lines_hang() {
        assert_eq!(wrap("aa bb cc", "- ", 2, 7), "- aa bb\n  cc\n");
        // A number is not torn from its sign or its per cent.
        assert_eq!(wrap("a <= 3 b", "", 0, 4), "a\n<= 3\nb\n");
        assert_eq!(wrap("aa 10 %, b", "", 0, 6), "aa\n10 %,\nb\n");
    }
}
