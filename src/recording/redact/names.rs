//! Names that tell that what they name is a secret.
//!
//! The search for words has to stop at each of them in every spelling that is in use (see `words`);
//! a test here walks all of them. Not here: what a secret looks like (see `shapes`).

use std::ops::Range;

/// Headers that carry credentials. Capitals begin words; however those are put together, it is the
/// same name.
const HEADERS: [&str; 6] = [
    "authorization",
    "proxyAuthorization",
    "cookie",
    "setCookie",
    "secWebSocketProtocol",
    "xApiKey",
];

/// Members that hold a secret, whatever it looks like.
const MEMBERS: [&str; 17] = [
    "apiKey",
    "passWord",
    "passWords",
    "passWd",
    "passPhrase",
    "secret",
    "clientSecret",
    "accessToken",
    "refreshToken",
    "idToken",
    "authToken",
    "apiToken",
    "bearerToken",
    "sessionToken",
    "privateKey",
    "secretKey",
    "secretAccessKey",
];

/// Parts of names that tell, in lower case.
const PARTS: [&str; 6] = [
    "key",
    "token",
    "secret",
    "passw",
    "credential",
    "passphrase",
];

/// Those of them that words begin with, too: `keyboard`, `tokenizer`, `secretary`.
const WHOLE: [&str; 3] = ["key", "token", "secret"];

/// Words that end as a part does, in lower case.
const OTHERS: [&str; 12] = [
    "monkey", "donkey", "turkey", "hockey", "jockey", "whiskey", "hotkey", "turnkey", "lackey",
    "mickey", "smokey", "flunkey",
];

/// A password, or the folder at hand.
const PWD: &str = "pwd";

/// How the names of members end whose lists and members are secrets, in lower case.
const GROUPS: [&str; 7] = [
    "token",
    "tokens",
    "apikeys",
    "api_keys",
    "api-keys",
    "credentials",
    "secrets",
];

/// Whether a name tells that its value is a secret.
pub(super) fn is_telling(name: &str) -> bool {
    if is_one_of(&HEADERS, name) || is(PWD, name) {
        return true;
    }
    let lower = name.to_ascii_lowercase();
    PARTS.iter().any(|part| {
        let mut places = lower.match_indices(part);
        places.any(|(at, _)| !WHOLE.contains(part) || is_word(name, at..at + part.len()))
    })
}

/// Whether what stands there is a word of a name, or ends one that is put together with it.
fn is_word(name: &str, at: Range<usize>) -> bool {
    let lower = name[..at.end].to_ascii_lowercase();
    let is_other = OTHERS.iter().any(|other| lower.ends_with(other));
    ends_part(name, at.end) && (begins_part(name, at.start) || !is_other)
}

/// Whether a word of a name begins there.
fn begins_part(name: &str, at: usize) -> bool {
    let (before, own) = name.as_bytes().split_at(at);
    let small = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    before.last().is_none_or(|byte| !byte.is_ascii_alphabetic())
        || (small(before.last()) && !small(own.first()))
}

/// Whether a word of a name ends there, or but for an s.
fn ends_part(name: &str, at: usize) -> bool {
    let (before, rest) = name.as_bytes().split_at(at);
    let rest = match rest {
        [b's' | b'S', rest @ ..] => rest,
        rest => rest,
    };
    let capital = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_uppercase);
    rest.first().is_none_or(|byte| !byte.is_ascii_alphabetic())
        || (capital(rest.first()) && !capital(before.last()))
}

/// Headers that carry credentials, wherever they stand, and what is named a password.
pub(super) fn is_secret_member(name: &str) -> bool {
    is_one_of(&HEADERS, name) || is_one_of(&MEMBERS, name)
}

/// Whether what stands in the list or object of this name is judged as if it had a telling name.
pub(super) fn is_group(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    GROUPS.iter().any(|group| lower.ends_with(group))
}

/// Whether a name, telling as it is, counts something.
pub(super) fn counts(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.ends_with("tokens") || lower.ends_with("keys")
}

/// Whether this is the folder at hand and no password.
pub(super) fn is_folder(name: &str, inner: &[u8]) -> bool {
    is(PWD, name) && matches!(inner, [b'/' | b'~' | b'.' | b'\\', ..] | [_, b':', ..])
}

/// Whether all that is said in and after a request of this method is secret.
pub(super) fn is_secret_method(method: &[u8]) -> bool {
    method == b"authenticate" || method.ends_with(b"/authenticate")
}

fn is_one_of(known: &[&str], name: &str) -> bool {
    known.iter().any(|known| is(known, name))
}

/// Whether it is that name, however it is spelled.
fn is(known: &str, name: &str) -> bool {
    let letters = name.bytes().filter(|byte| !b"-_".contains(byte));
    letters
        .map(|byte| byte.to_ascii_lowercase())
        .eq(known.bytes().map(|byte| byte.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::redact::{Mode, Redactor};

    /// A text that is random enough.
    const RANDOM: &str = "k3J9x2Mf8v0Q1wz7abcD";

    /// The words of a name whose words begin with capitals.
    fn words(name: &str) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for letter in name.chars() {
            match words.last_mut() {
                Some(word) if letter.is_lowercase() => word.push(letter),
                _ => words.push(letter.to_lowercase().collect()),
            }
        }
        words
    }

    fn capital(word: &str) -> String {
        word[..1].to_uppercase() + &word[1..]
    }

    /// `setCookie`, `SetCookie`.
    fn camel(name: &str) -> [String; 2] {
        [name.to_owned(), capital(name)]
    }

    /// `password`, `PASSWORD`, `Password`.
    fn joined(name: &str) -> [String; 3] {
        let lower = name.to_lowercase();
        [lower.clone(), lower.to_uppercase(), capital(&lower)]
    }

    /// `set-cookie`, `SET-COOKIE`, `Set-Cookie`.
    fn apart(name: &str, by: &str) -> [String; 3] {
        let words = words(name);
        let capitals: Vec<String> = words.iter().map(|word| capital(word)).collect();
        let lower = words.join(by);
        [lower.clone(), lower.to_uppercase(), capitals.join(by)]
    }

    fn redactor() -> Redactor {
        Redactor::new(Mode::Default, Vec::new(), [1; 32])
    }

    /// In a message with nothing else that calls for a look.
    fn is_hidden(message: &str, secret: &str) -> bool {
        let found = redactor().json(message.as_bytes(), None);
        found.is_some_and(|found| !String::from_utf8_lossy(&found.text).contains(secret))
    }

    #[test]
    fn each_name_is_looked_for_in_each_spelling() {
        let mut spelled: Vec<String> = Vec::new();
        for name in HEADERS {
            spelled.extend(camel(name));
            spelled.extend(apart(name, "-"));
        }
        for name in MEMBERS {
            spelled.extend(camel(name));
            spelled.extend(joined(name));
            // Nobody writes `pass_word`.
            if !name.starts_with("pass") {
                spelled.extend(apart(name, "-"));
                spelled.extend(apart(name, "_"));
            }
        }
        let header = ["sec-websocket-protocol", "Sec-WebSocket-Protocol"];
        spelled.extend(header.map(str::to_owned));
        for name in &spelled {
            assert!(is_secret_member(name), "{name}");
            let message = format!(r#"{{"a":{{"{name}":"hunter2"}}}}"#);
            assert!(is_hidden(&message, "hunter2"), "{name}");
        }
        let parts = PARTS.iter().chain([&PWD]).flat_map(|part| joined(part));
        // The name of a variable or of a member ends or begins with it.
        let telling = parts.flat_map(|part| [part.clone(), format!("my_{part}")]);
        let telling = telling.filter(|name| !name.to_lowercase().ends_with("_pwd"));
        for name in telling.chain(camel("passPhrase")).chain(spelled) {
            assert!(is_telling(&name), "{name}");
            let member = format!(r#"{{"a":{{"{name}":"{RANDOM}"}}}}"#);
            assert!(is_hidden(&member, RANDOM), "{name}");
            let pair = format!(r#"{{"a":{{"name":"{name}","value":"hunter2"}}}}"#);
            assert!(is_hidden(&pair, "hunter2"), "{name}");
        }
        for name in GROUPS.iter().flat_map(|group| joined(group)) {
            assert!(is_group(&name), "{name}");
            let list = format!(r#"{{"a":{{"{name}":[{{"b":"{RANDOM}"}}]}}}}"#);
            assert!(is_hidden(&list, RANDOM), "{name}");
        }
        for name in PARTS.iter().flat_map(|part| joined(part)) {
            // The name goes on as names do: `passw` alone is none.
            let text = format!("MY_{name}ORD={RANDOM}");
            assert!(redactor().text(text.as_bytes()).is_some(), "{text}");
        }
    }
}
