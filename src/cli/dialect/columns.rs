//! Plain text tables.

/// Maximum width of all columns but the last; a wider cell shifts the rest of its line.
const MAX_WIDTH: usize = 52;

/// Aligns the cells of `rows`, two spaces between columns. The last column is not padded.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let fits = cells
            .map(|cell| cell.chars().count())
            .filter(|width| *width <= MAX_WIDTH);
        fits.max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            let free = width.saturating_sub(cell.chars().count());
            line.extend(std::iter::repeat_n(' ', free + 2));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
