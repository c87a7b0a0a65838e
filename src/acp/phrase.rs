//! Describes in words what the schema expects.

use super::schema::{Node, Types};

/// Most names of an enumeration that are listed.
const MAX_LISTED: usize = 16;

/// What `node` expects: `an array of PlanEntry`, `a string (SessionId)`, `"end_turn" or "refusal"`.
pub(super) fn expectation(node: Node) -> String {
    let inner = node.resolve();
    let consts = constants(inner);
    if !consts.is_empty() {
        return choice(&consts);
    }
    if let Some(phrase) = optional(inner) {
        return phrase;
    }
    let types = inner.types();
    if types == Types::ANY {
        return "anything".to_owned();
    }
    let words: Vec<String> = types
        .type_names()
        .into_iter()
        .map(|word| match word {
            "array" => array(inner),
            "null" => "null".to_owned(),
            word => with_article(word),
        })
        .collect();
    match inner.definition() {
        Some(name) => format!("{} ({name})", choice(&words)),
        None => choice(&words),
    }
}

/// A list of alternatives: `"a", "b" or "c"`.
pub(super) fn choice<S: AsRef<str>>(values: &[S]) -> String {
    let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
    match values.as_slice() {
        [] => "nothing".to_owned(),
        [only] => (*only).to_owned(),
        [some @ .., last] if values.len() <= MAX_LISTED => format!("{} or {last}", some.join(", ")),
        many => format!("{}, …", many.get(..MAX_LISTED).unwrap_or(many).join(", ")),
    }
}

/// The constants a node consists of, as JSON; none when it allows anything else, too.
pub(super) fn constants(node: Node) -> Vec<String> {
    let node = node.resolve();
    if let Some(constant) = node.at.get("const") {
        return vec![constant.to_string()];
    }
    let mut all = Vec::new();
    for variant in node.variants() {
        let some = constants(node.within(variant));
        if some.is_empty() {
            return Vec::new();
        }
        all.extend(some);
    }
    all
}

/// `X or null`, which is how the schema allows null for a member.
fn optional(node: Node) -> Option<String> {
    let [one, two] = node.variants() else {
        return None;
    };
    (two["type"] == "null").then(|| format!("{} or null", expectation(node.within(one))))
}

fn array(node: Node) -> String {
    let items = match node.at.get("items") {
        Some(items) => node.within(items),
        None => return "an array".to_owned(),
    };
    let inner = items.resolve();
    match inner.definition() {
        Some(name) => format!("an array of {name}"),
        None => match inner.types().type_names().as_slice() {
            [only] => format!("an array of {only}s"),
            _ => "an array".to_owned(),
        },
    }
}

fn with_article(word: &str) -> String {
    let article = if word.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {word}")
}

/// The name among `known` that `name` probably means: the same but for case and separators.
pub(super) fn similar<'a>(name: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let bare = |name: &str| {
        name.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    let wanted = bare(name);
    known.find(|known| bare(known) == wanted)
}
