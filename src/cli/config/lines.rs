//! The lines of the keys of a file.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The lines of all keys in a file.
pub(super) fn lines(text: &str) -> BTreeMap<String, usize> {
    let (tree, _) = DeTable::parse_recoverable(text);
    let mut lines = BTreeMap::new();
    walk(text, "", tree.get_ref(), &mut lines);
    lines
}

fn walk(text: &str, above: &str, table: &DeTable<'_>, lines: &mut BTreeMap<String, usize>) {
    for (key, value) in table {
        let path = format!("{above}{}", key.get_ref());
        lines.insert(path.clone(), line(text, key.span().start));
        match value.get_ref() {
            DeValue::Table(table) => walk(text, &format!("{path}."), table, lines),
            DeValue::Array(items) => {
                let tables = items.iter().map(Spanned::get_ref).enumerate();
                for (index, item) in tables {
                    if let DeValue::Table(table) = item {
                        walk(text, &format!("{path}.{index}."), table, lines);
                    }
                }
            }
            _ => {}
        }
    }
}

fn line(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or(text);
    before.matches('\n').count() + 1
}
