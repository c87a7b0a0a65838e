//! "Did you mean": the known word that is most similar to an unknown one.

/// Longest beginning of an unknown word that is compared, in characters. No known word is longer.
const MAX_CHARS: usize = 64;

/// The word of `known` that was probably meant: the one with the smallest edit distance, if that is
/// at most two letters or a third of the word, or else the shortest that contains the word. Case,
/// `_` and `-` make no difference.
#[must_use]
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let plain = |text: &str| text.to_ascii_lowercase().replace('_', "-");
    let word = plain(&word.chars().take(MAX_CHARS).collect::<String>());
    let known: Vec<&str> = known.into_iter().collect();
    let alike = known
        .iter()
        .map(|known| (strsim::levenshtein(&word, &plain(known)), *known));
    let (distance, best) = alike.min()?;
    if distance <= 2.max(word.len() / 3) && distance < best.len() {
        return Some(best);
    }
    let longer = known
        .into_iter()
        .filter(|known| plain(known).contains(&word));
    longer
        .min_by_key(|known| known.len())
        .filter(|_| word.len() > 2)
}

/// The remedy for an unknown word: the one of `known` that was probably meant, or else `otherwise`.
#[must_use]
pub fn did_you_mean<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str>,
    otherwise: &str,
) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => otherwise.to_owned(),
    }
}
