//! Reads the tables of rules, words and names; the head of each describes it.

use std::sync::LazyLock;

/// The words of a table with one column.
pub(super) type List = LazyLock<Vec<&'static str>>;

/// The rows of a table with `N` columns; the last one takes the rest of the line. Lines that begin
/// with `#` are comments.
pub(super) fn rows<const N: usize>(
    table: &'static str,
    separator: &'static str,
) -> impl Iterator<Item = [&'static str; N]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.map(move |line| {
        let mut columns = line.splitn(N, separator);
        std::array::from_fn(|_| columns.next().unwrap_or_default())
    })
}

/// The words of a table with one column.
pub(super) fn words(table: &'static str) -> Vec<&'static str> {
    rows(table, "\n").map(|[word]| word).collect()
}

/// Whether a word is one of `words`; or, when it is `open` (incomplete), the beginning of one.
pub(super) fn has(words: &[&str], word: &[u8], open: bool) -> bool {
    words.iter().any(|known| match open {
        true => known.as_bytes().starts_with(word),
        false => known.as_bytes() == word,
    })
}
