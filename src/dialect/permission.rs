//! Checks of permissions that hold whatever a table contains.
//!
//! A refusal never becomes an allowance, an allow-once never becomes an allow-always, and an
//! ambiguous answer fails closed: with a reject option that was offered, else with `cancelled`.
//! Both the options shown to the user and the answer are checked here, after translation.

use super::text::{self, JsonType};

/// The options of one permission request, in canonical.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedOptions(pub Vec<OfferedOption>);

/// One option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedOption {
    /// Its id.
    pub id: String,
    /// Its kind: `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    pub kind: String,
}

/// The content of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionAnswer {
    /// This option.
    Selected(String),
    /// None of them.
    Cancelled,
    /// It cannot be read.
    Unclear,
}

/// An answer that was checked, and how it was corrected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedAnswer {
    /// The answer to forward.
    pub answer: PermissionAnswer,
    /// What was corrected, for the log; `None` if nothing was.
    pub correction: Option<String>,
}

impl OfferedOptions {
    /// Reads the options of a canonical request; at most 64 are read.
    #[must_use]
    pub fn read(params: &[u8]) -> Self {
        let options = text::member(params, "options").unwrap_or(b"[]");
        if JsonType::of(options) != JsonType::Array {
            return Self::default();
        }
        let field = |option, name| text::member(option, name).and_then(text::string);
        let offers = text::items(options).take(64).filter_map(|option| {
            let kind = field(option, "kind").unwrap_or_default().into_owned();
            let id = field(option, "optionId")?.into_owned();
            Some(OfferedOption { id, kind })
        });
        Self(offers.collect())
    }

    /// The option with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&OfferedOption> {
        self.0.iter().find(|offer| offer.id == id)
    }

    /// Whether all options with this id mean the same; otherwise the id is ambiguous.
    fn is_unambiguous(&self, id: &str) -> bool {
        let mut kinds = self.0.iter().filter(|offer| offer.id == id);
        let first = kinds.next().map(|offer| &offer.kind);
        kinds.all(|offer| Some(&offer.kind) == first)
    }

    /// The options of this kind whose ids are unambiguous.
    fn of(&self, kind: &str) -> impl Iterator<Item = &OfferedOption> {
        let found = self.0.iter().filter(move |offer| offer.kind == kind);
        found.filter(|offer| self.is_unambiguous(&offer.id))
    }

    /// The first option that refuses.
    fn refusing(&self) -> Option<&OfferedOption> {
        let mut found = self.of("reject_once").chain(self.of("reject_always"));
        found.next()
    }

    /// The answer that allows nothing: a reject option that was offered, else `Cancelled`.
    #[must_use]
    pub fn refusal(&self) -> PermissionAnswer {
        let selected = |offer: &OfferedOption| PermissionAnswer::Selected(offer.id.clone());
        self.refusing()
            .map_or(PermissionAnswer::Cancelled, selected)
    }

    /// An answer that was replaced by one that allows nothing, for this reason.
    fn fail_closed(&self, why: &str) -> CheckedAnswer {
        CheckedAnswer {
            answer: self.refusal(),
            correction: Some(format!("{why}; it failed closed")),
        }
    }

    /// Maps an answer to one of the options: by its id, else by its meaning.
    #[must_use]
    pub fn resolve(&self, answer: &PermissionAnswer) -> CheckedAnswer {
        let id = match answer {
            PermissionAnswer::Selected(id) => id,
            PermissionAnswer::Cancelled => {
                return CheckedAnswer::plain(PermissionAnswer::Cancelled);
            }
            PermissionAnswer::Unclear => {
                return self.fail_closed("the answer could not be read");
            }
        };
        if id.is_empty() {
            return self.fail_closed("the answer names no option");
        }
        if !self.is_unambiguous(id) {
            return self.fail_closed(&format!("several options are called `{id}` and differ"));
        }
        if self.get(id).is_some() || self.0.is_empty() {
            return CheckedAnswer::plain(answer.clone());
        }
        let only = |kind: &str| {
            let mut found = self.of(kind);
            found.next().filter(|_| found.next().is_none())
        };
        let found = if KINDS.contains(&id.as_str()) {
            only(id).or_else(|| self.refusing().filter(|_| refuses(id)))
        } else if refuses(id) {
            self.refusing()
        } else if allows(id) {
            only("allow_once")
        } else {
            None
        };
        let answer = found.map_or_else(
            || self.refusal(),
            |offer| PermissionAnswer::Selected(offer.id.clone()),
        );
        let correction = format!("the option `{id}` was not offered; {}", answer.describe());
        CheckedAnswer {
            answer,
            correction: Some(correction),
        }
    }
}

const KINDS: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

fn allows(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let begins = ["allow", "approve", "proceed", "accept", "alwaysallow"];
    begins.iter().any(|begin| word.starts_with(begin))
        || ["yes", "y", "ok", "true"].contains(&&*word)
}

/// Whether a word clearly allows permanently, as `allow_always` and the words of the original
/// protocol (`alwaysAllow`, `alwaysAllowTool`) do.
fn allows_always(word: &str) -> bool {
    let mut word = word.to_ascii_lowercase();
    word.retain(|c| c != '_' && c != '-');
    word.starts_with("alwaysallow") || word.starts_with("allowalways")
}

/// Whether a word refuses.
fn refuses(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let begins = [
        "reject", "deny", "denied", "declin", "refus", "disallow", "cancel", "abort", "never",
    ];
    begins.iter().any(|begin| word.starts_with(begin)) || ["no", "n", "false"].contains(&&*word)
}

/// Whether a word means more than once.
fn is_lasting(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let parts = ["always", "persist", "session", "forever", "permanent"];
    parts.iter().any(|part| word.contains(part))
}

impl PermissionAnswer {
    /// Reads a canonical result.
    #[must_use]
    pub fn read(result: &[u8]) -> Self {
        let Some(outcome) = text::member(result, "outcome") else {
            return Self::Unclear;
        };
        let field = |name| text::member(outcome, name).and_then(text::string);
        match (field("outcome").as_deref(), field("optionId")) {
            (Some("selected"), Some(id)) => Self::Selected(id.into_owned()),
            (Some("cancelled"), _) => Self::Cancelled,
            _ => Self::Unclear,
        }
    }

    /// The canonical result.
    #[must_use]
    pub fn result(&self) -> Vec<u8> {
        match self {
            Self::Selected(id) => {
                let head = b"{\"outcome\":{\"outcome\":\"selected\",\"optionId\":";
                [&head[..], &text::quote(id), b"}}"].concat()
            }
            _ => b"{\"outcome\":{\"outcome\":\"cancelled\"}}".to_vec(),
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Selected(id) => format!("`{id}` is answered"),
            _ => "cancelled is answered".into(),
        }
    }
}

impl CheckedAnswer {
    fn plain(answer: PermissionAnswer) -> Self {
        Self {
            answer,
            correction: None,
        }
    }
}

/// Checks an answer that was translated from a dialect: an allowance must be supported by the
/// original answer, and nothing in that may be a refusal.
#[must_use]
pub fn check_read(
    original: &[u8],
    offered: &OfferedOptions,
    read: &PermissionAnswer,
) -> CheckedAnswer {
    let checked = offered.resolve(read);
    let PermissionAnswer::Selected(id) = &checked.answer else {
        return checked;
    };
    let Some(offer) = offered
        .get(id)
        .filter(|offer| offer.kind.starts_with("allow"))
    else {
        return checked;
    };
    let mut words = Words::default();
    words.gather(original, 0);
    let is_refusal = |word: &String| match offered.get(word) {
        Some(other) => other.kind.starts_with("reject"),
        None => refuses(word),
    };
    let mut others = words.all.iter().filter(|word| **word != offer.id);
    let refused = words.refused || others.any(is_refusal);
    let mut all = words.all.iter();
    let named = all.any(|word| *word == offer.id || *word == offer.kind);
    // A word that is the id of an option means that option only.
    let always = |word: &str| allows_always(word) && offered.get(word).is_none();
    let only = || offered.of("allow_always").nth(1).is_none();
    let supported = named
        || (offer.kind == "allow_once" && words.all.iter().any(|word| allows(word)))
        || (offer.kind == "allow_always" && only() && words.all.iter().any(|word| always(word)));
    if !refused && supported {
        return checked;
    }
    offered.fail_closed(&format!("the answer does not plainly allow `{}`", offer.id))
}

/// Whether a canonical answer kept its meaning in what is written to a dialect: a refusal may not
/// name an allowing option, nor an allow-once a permanent one.
#[must_use]
pub fn check_write(answer: &PermissionAnswer, offered: &OfferedOptions, written: &[u8]) -> bool {
    let mut words = Words::default();
    words.gather(written, 0);
    let (kind, chosen) = match answer {
        PermissionAnswer::Selected(id) => {
            let kind = offered.get(id).map_or("", |offer| &offer.kind);
            (kind, id.as_str())
        }
        _ => ("", ""),
    };
    words.all.iter().all(|word| {
        if word == chosen {
            return true;
        }
        let fits = |named: &str| match kind {
            "allow_always" => true,
            "allow_once" => !(allows(named) && is_lasting(named)),
            _ => !allows(named),
        };
        let mut named = offered.0.iter().filter(|offer| offer.id == *word);
        match offered.get(word) {
            Some(_) => named.all(|offer| fits(&offer.kind)),
            None => fits(word),
        }
    })
}

/// Whether the options shown mean the same as the options offered: an option may not change between
/// allowing and refusing, or between once and always. All are required, under their ids, or a
/// change could not be detected. A side whose options cannot be read as options is not checked.
#[must_use]
pub fn same_options(before: &[u8], after: &[u8]) -> bool {
    let (before, after) = (OfferedOptions::read(before), OfferedOptions::read(after));
    let same = |one: &OfferedOption, two: &OfferedOption| {
        let lasts = |kind: &str| allows(kind) && is_lasting(kind);
        let meaning = |kind: &str| (allows(kind), refuses(kind), lasts(kind));
        let known = |kind: &str| allows(kind) || refuses(kind);
        one.id == two.id
            && (!known(&one.kind) || !known(&two.kind) || meaning(&one.kind) == meaning(&two.kind))
    };
    let is_original = |offer: &OfferedOption| before.0.iter().any(|original| same(original, offer));
    // None may be missing, or an answer could name an option that was not shown.
    let is_shown = |original: &OfferedOption| after.0.iter().any(|offer| same(original, offer));
    let readable = !before.0.is_empty() && !after.0.is_empty();
    !readable || (after.0.iter().all(is_original) && before.0.iter().all(is_shown))
}

/// All strings of an answer, and whether it contains `cancelled: true` or the like.
#[derive(Debug, Default)]
struct Words {
    all: Vec<String>,
    refused: bool,
}

impl Words {
    fn gather(&mut self, json: &[u8], depth: usize) {
        if depth > 16 || self.all.len() > 256 {
            self.refused = true;
            return;
        }
        match JsonType::of(json) {
            JsonType::String => match text::string(json) {
                Some(word) => self.all.push(word.into_owned()),
                None => self.refused = true,
            },
            JsonType::Array => text::items(json).for_each(|item| self.gather(item, depth + 1)),
            JsonType::Object => {
                for (name, value) in text::members(json) {
                    // The members of `_meta` are not part of the answer.
                    if name == b"_meta" {
                        continue;
                    }
                    let name = text::unescape(name).unwrap_or_default();
                    let refused = refuses(&name) && !matches!(value, b"false" | b"null");
                    let not_allowed = allows(&name) && matches!(value, b"false" | b"null");
                    self.refused |= refused || not_allowed;
                    self.gather(value, depth + 1);
                }
            }
            _ => {}
        }
    }
}
