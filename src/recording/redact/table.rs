//! Tables of words and names, which stand in `tables`, apart from the code.
//!
//! Not here: what a table is for (its own first lines say so).

use std::sync::LazyLock;

/// The words of a table of one column.
pub(super) type List = LazyLock<Vec<&'static str>>;

/// The rows of a table, each of so many columns with a blank between them, of which the last has
/// what is left of the line. Lines that begin with `#` are comments.
pub(super) fn rows<const N: usize>(table: &'static str) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let mut columns = line.splitn(N, ' ');
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    })
}

/// The words of a table of one column.
pub(super) fn words(table: &'static str) -> Vec<&'static str> {
    rows(table).map(|[word]| word).collect()
}

/// Whether a word is one of those; or, when it is `open` and may go on, how one of them begins.
pub(super) fn has(words: &[&str], word: &[u8], open: bool) -> bool {
    words.iter().any(|known| match open {
        true => known.as_bytes().starts_with(word),
        false => known.as_bytes() == word,
    })
}
