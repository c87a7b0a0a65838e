//! "Did you mean": the known word that is most similar to an unknown one.

/// Lowest similarity of two words for one to be suggested for the other.
const MIN_SIMILARITY: f64 = 0.8;

/// The word of `known` that was probably meant.
pub(in crate::cli) fn nearest<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
) -> Option<&'k str> {
    let word = word.to_ascii_lowercase().replace('_', "-");
    let alike = known
        .into_iter()
        .map(|near| (strsim::jaro(&word, near), near));
    let best = alike.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(alike, _)| *alike >= MIN_SIMILARITY)
        .map(|(_, near)| near)
}

/// The remedy for an unknown word: the one of `known` that was probably meant, or else `otherwise`.
pub(in crate::cli) fn did_you_mean<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    otherwise: &str,
) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}
