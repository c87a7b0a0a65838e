//! Guesses what the parts of a strange message are in ACP, by their names, their members and their
//! values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::deviations::{Group, Section, member};
use super::toml_text::{key, quoted};
use acp::{Shape, ShapeMember};
use jsonrpc::Side;

/// From this likeness on, of 1, a name is taken for another one.
const LIKE: f64 = 0.6;

/// By how much the best guess has to be better than the next.
const MARGIN: f64 = 0.05;

/// Maximum number of members of an object, of objects and their members in all, and of values of a
/// member that are looked at.
const MAX_MEMBERS: usize = 24;
const MAX_OBJECTS: usize = 64;
const MAX_NAMES: usize = 1024;
const MAX_VALUES: usize = 32;

/// Maximum depth of objects and lists.
const MAX_DEPTH: usize = 6;

/// The words of other programs for the names of ACP.
static WORDS: LazyLock<BTreeMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let lines = include_str!("words.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let entries = lines.filter_map(|line| line.rsplit_once(':'));
    entries
        .map(|(name, words)| (name, words.split_whitespace().collect()))
        .collect()
});

/// What a group of messages probably is.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// Its name in ACP; `None` if that is not clear.
    pub(super) is: Option<String>,
    /// Members that are different: their paths, and what the table says of them.
    pub(super) members: Vec<(String, String)>,
    /// What is left to be decided, as lines of the table.
    pub(super) open: Vec<String>,
    /// The names of members and the values that these are about.
    pub(super) unknown: Vec<String>,
}

type Objects<'v> = Vec<&'v Map<String, Value>>;

/// Objects that are compared with a shape.
struct Compared<'g> {
    /// The places at which the messages deviate; `None` if all is strange here.
    places: Option<&'g BTreeSet<String>>,
    guess: Guess,
}

/// The kinds of updates, or the methods, that a group may be.
pub(super) fn candidates(section: Section) -> Vec<(&'static str, Shape)> {
    match section {
        Section::Update => Shape::updates(),
        Section::Method => Shape::methods_of(Side::Agent),
        Section::Answers => Vec::new(),
    }
}

/// What a group probably is, and its members.
pub(super) fn guess(group: &Group) -> Guess {
    let bodies = group.samples.iter();
    let bodies = bodies.filter_map(|one| group.section.members(one).as_object());
    let bodies: Objects<'_> = bodies.collect();
    let candidates = candidates(group.section);
    let known = candidates.iter().find(|(name, _)| *name == group.name);
    let known = match group.section {
        Section::Answers => Shape::of_method(&group.name, true),
        _ => known.map(|(_, shape)| *shape),
    };
    if let Some(shape) = known {
        let (_, mut guess) = compare(&bodies, shape, Some(&group.places), 0);
        guess.is = Some(group.name.clone());
        return guess;
    }
    let mut best: Vec<(f64, &str, Guess)> = Vec::new();
    for (name, shape) in candidates {
        let (score, guess) = compare(&bodies, shape, None, 0);
        // A name alone says too little.
        if score >= LIKE {
            best.push((score + likeness(&group.name, name), name, guess));
        }
    }
    best.sort_by(|one, two| two.0.total_cmp(&one.0));
    let second = best.get(1).map_or(0.0, |other| other.0);
    match best.into_iter().next() {
        Some((score, name, guess)) if score - second >= MARGIN => Guess {
            is: Some(name.to_owned()),
            ..guess
        },
        _ => Guess::default(),
    }
}

/// How well these objects fit a shape, up to 1, and what their members are. `places` are those at
/// which they deviate; without them, all is strange.
fn compare(
    objects: &[&Map<String, Value>],
    shape: Shape,
    places: Option<&BTreeSet<String>>,
    depth: usize,
) -> (f64, Guess) {
    let mut compared = Compared {
        places,
        guess: Guess::default(),
    };
    let score = compared.object(objects, shape, "", depth);
    (score, compared.guess)
}

impl Compared<'_> {
    /// Whether something is different at that place.
    fn is_strange(&self, path: &str) -> bool {
        self.places.is_none_or(|places| places.contains(path))
    }

    fn object(
        &mut self,
        objects: &[&Map<String, Value>],
        shape: Shape,
        path: &str,
        depth: usize,
    ) -> f64 {
        let members = shape.members();
        let mut own: Vec<&str> = Vec::new();
        let names = objects.iter().flat_map(|object| object.keys());
        for name in names.take(MAX_NAMES) {
            let is_own = !matches!(&**name, "sessionUpdate" | "_meta");
            if is_own && own.len() < MAX_MEMBERS && !own.contains(&&**name) {
                own.push(name);
            }
        }
        let values = |name: &str| -> Vec<&Value> {
            let all = objects.iter().filter_map(|object| object.get(name));
            all.filter(|value| !value.is_null()).collect()
        };
        let has = |name: &str| members.iter().any(|member| member.name == name);
        // All pairs that are alike, the best first.
        let mut pairs: Vec<(bool, f64, usize, usize)> = Vec::new();
        for (left, name) in own.iter().enumerate() {
            for (right, member) in members.iter().enumerate() {
                let is_same = *name == member.name;
                if is_same || !(has(name) || own.contains(&member.name)) {
                    let score = alike(name, &values(name), *member, depth);
                    if is_same || score >= LIKE {
                        pairs.push((is_same, score, left, right));
                    }
                }
            }
        }
        pairs.sort_by(|one, two| two.0.cmp(&one.0).then(two.1.total_cmp(&one.1)));
        let (mut left_of, mut right_of) = (vec![None; own.len()], vec![None; members.len()]);
        for (_, score, left, right) in pairs {
            if left_of[left].is_none() && right_of[right].is_none() {
                (left_of[left], right_of[right]) = (Some((score, right)), Some(left));
            }
        }
        let mut total = 0.0;
        for (name, found) in own.iter().zip(&left_of) {
            let place = member(path, name);
            if let (Some((score, right)), Some(place)) = (found, &place) {
                total += score;
                self.member(place, &values(name), members[*right], depth);
            } else if place.as_ref().is_none_or(|place| self.is_strange(place)) {
                let place = place.unwrap_or_else(|| format!("{path}.{name}"));
                let line = format!("{} = \"…\"  # ACP has no such member", quoted(&place));
                self.guess.unknown.push((*name).to_owned());
                self.guess.open.push(line);
            }
        }
        for (member, found) in members.iter().zip(&right_of) {
            let place = self::member(path, member.name).filter(|_| member.required);
            if let Some(place) = place.filter(|place| found.is_none() && self.is_strange(place)) {
                let (place, words) = (quoted(&place), member.shape.words().join(", "));
                let line = format!("{place} = {{ default = \"…\" }}  # ACP requires it: {words}");
                self.guess
                    .open
                    .push(line.trim_end_matches([':', ' ']).to_owned());
            }
        }
        let required = members.iter().filter(|member| member.required).count();
        let paired = left_of.iter().flatten().count();
        let of = own.len() + required.max(paired);
        2.0 * total / (of.max(1)) as f64
    }

    /// What is different in a member that was found.
    fn member(&mut self, path: &str, values: &[&Value], known: ShapeMember, depth: usize) {
        let is_strange = self.is_strange(path);
        let name = path.rsplit('.').next().unwrap_or(path);
        let words = known.shape.words();
        let strange = distinct(values).into_iter().filter(|value| {
            let is_known = words.is_empty() || words.iter().any(|word| word == value);
            is_strange && !is_known
        });
        let mut pairs = Vec::new();
        for value in strange {
            if let Some(word) = word_for(value, &words) {
                pairs.push(format!("{} = {}", key(value), quoted(word)));
                continue;
            }
            self.guess.unknown.push(value.to_owned());
            let (path, value, words) = (quoted(path), key(value), words.join(", "));
            let line = format!("{path} = {{ values = {{ {value} = \"…\" }} }}  # in ACP: {words}");
            self.guess.open.push(line);
        }
        let convert = conversion(values, known.shape);
        let mut parts = Vec::new();
        if name != known.name {
            parts.push(format!("to = {}", quoted(known.name)));
        }
        if !pairs.is_empty() {
            parts.push(format!("values = {{ {} }}", pairs.join(", ")));
        }
        parts.extend(convert.map(|convert| format!("as = {}", quoted(convert))));
        let form = match (pairs.is_empty(), convert) {
            (true, None) => quoted(known.name),
            _ => format!("{{ {} }}", parts.join(", ")),
        };
        if !parts.is_empty() && is_strange {
            self.guess.members.push((path.to_owned(), form));
        }
        // All in a list with another name is strange.
        let outer = self.places;
        if is_strange && name != known.name {
            self.places = None;
        }
        if let Some((inner, shape)) = inner(values, known.shape) {
            self.object(&inner, shape, &format!("{path}[]"), depth + 1);
        }
        self.places = outer;
    }
}

/// The objects in lists of objects, and their shape.
fn inner<'v>(values: &[&'v Value], shape: Shape) -> Option<(Objects<'v>, Shape)> {
    let shape = shape.items().filter(|shape| !shape.members().is_empty())?;
    let items = values.iter().filter_map(|value| value.as_array()).flatten();
    let items = items.filter_map(Value::as_object).take(MAX_OBJECTS);
    let items: Objects<'_> = items.collect();
    (!items.is_empty()).then_some((items, shape))
}

/// How probable it is that a member with these values is that one, up to 1.
fn alike(name: &str, values: &[&Value], known: ShapeMember, depth: usize) -> f64 {
    let shape = known.shape;
    let admitted = values.iter().all(|value| shape.admits(value));
    if values.is_empty() || depth > MAX_DEPTH || !admitted && conversion(values, shape).is_none() {
        return 0.0;
    }
    let by_name = likeness(name, known.name);
    let words = shape.words();
    if !words.is_empty() {
        let all = distinct(values);
        let meant = all.iter().filter(|value| word_for(value, &words).is_some());
        let by_value = meant.count() as f64 / all.len().max(1) as f64;
        return 0.4 * by_name + 0.6 * by_value;
    }
    match inner(values, shape) {
        Some((objects, shape)) => 0.4 * by_name + 0.6 * compare(&objects, shape, None, depth + 1).0,
        // A type alone says little.
        None => by_name.max(0.1),
    }
}

/// How alike two names are, up to 1.
fn likeness(own: &str, known: &str) -> f64 {
    let bare = |name: &str| parts(name).concat();
    let (left, right) = (bare(own), bare(known));
    if left == right {
        return 1.0;
    }
    let own = parts(own);
    let words = WORDS.get(known).map_or(&[][..], Vec::as_slice);
    let is_word = |part: &&String| words.contains(&part.as_str());
    let met = own.iter().filter(is_word).count();
    let common = parts(known);
    let shared = own.iter().filter(|part| common.contains(part)).count();
    let by_words = match (met, shared) {
        (0, 0) => 0.0,
        (0, shared) => 0.7 * shared as f64 / common.len().max(own.len()) as f64,
        (met, shared) => 0.8 + 0.05 * (met + shared).min(4) as f64 - 0.05,
    };
    let by_letters = strsim::normalized_levenshtein(&left, &right);
    by_words.max(if by_letters > 0.7 {
        0.9 * by_letters
    } else {
        0.0
    })
}

/// The word of ACP for a value; a permission is never guessed.
fn word_for<'w>(value: &str, words: &'w [String]) -> Option<&'w str> {
    let mut best: Vec<_> = words
        .iter()
        .map(|word| (likeness(value, word), word))
        .collect();
    best.sort_by(|one, two| two.0.total_cmp(&one.0));
    let second = best.get(1).map_or(0.0, |other| other.0);
    let (score, word) = best.first()?;
    let is_permission = word.starts_with("allow_") || word.starts_with("reject_");
    let is_clear = *score >= LIKE && (score - second >= MARGIN || *score >= 1.0);
    (is_clear && (!is_permission || value == *word)).then_some(word.as_str())
}

/// The words of a name, in lower case: of `toolCall`, `tool_call` and `tool-call` the same.
fn parts(name: &str) -> Vec<String> {
    let (mut spaced, mut is_lower) = (String::new(), false);
    for letter in name.chars().take(64) {
        if letter.is_uppercase() && is_lower {
            spaced.push(' ');
        }
        is_lower = letter.is_lowercase();
        spaced.extend(letter.to_lowercase());
    }
    let words = spaced.split(|letter: char| !letter.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The conversion that makes these values what a shape admits.
fn conversion(values: &[&Value], shape: Shape) -> Option<&'static str> {
    let all = |is: fn(&Value) -> bool| !values.is_empty() && values.iter().all(|value| is(value));
    let element = shape.items().and_then(Shape::name);
    match shape.name() {
        Some("ContentBlock") if all(Value::is_string) => Some("text_block"),
        _ if element == Some("ToolCallContent") && all(Value::is_string) => Some("tool_text"),
        _ if all(Value::is_number) && shape.admits(&Value::String(String::new())) => {
            (!shape.admits(values[0])).then_some("number_text")
        }
        _ => None,
    }
}

/// The different short texts among these values.
fn distinct<'v>(values: &[&'v Value]) -> Vec<&'v str> {
    let mut found: Vec<&str> = Vec::new();
    for text in values.iter().filter_map(|value| value.as_str()) {
        if found.len() < MAX_VALUES && text.len() <= 64 && !found.contains(&text) {
            found.push(text);
        }
    }
    found
}
