//! Names that mark their value as a secret: each is found in each spelling.
//!
//! The word search must stop at each of them; its list of words must contain a part of each.

use acp_relay::recording::redact::{Mode, Redactor};

const HEADERS: &str = include_str!("../../../src/recording/redact/tables/headers.txt");
const MEMBERS: &str = include_str!("../../../src/recording/redact/tables/members.txt");
const PARTS: &str = include_str!("../../../src/recording/redact/tables/parts.txt");
const GROUPS: &str = include_str!("../../../src/recording/redact/tables/groups.txt");

/// A password, or the current directory.
const PWD: &str = "pwd";

/// A text that is random enough.
const RANDOM: &str = "k3J9x2Mf8v0Q1wz7abcD";

/// The rows of a table.
fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter(|line| !line.starts_with('#'))
}

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

/// Whether `secret` is removed from `message`, which has nothing else to find.
fn is_redacted(message: &str, secret: &str) -> bool {
    let found = redactor().json(message.as_bytes(), None);
    found.is_some_and(|found| !String::from_utf8_lossy(&found.text).contains(secret))
}

#[test]
fn each_name_of_a_secret_is_found_in_each_spelling() {
    let mut spelled: Vec<String> = Vec::new();
    for name in rows(HEADERS) {
        spelled.extend(camel(name));
        spelled.extend(apart(name, "-"));
    }
    for name in rows(MEMBERS) {
        spelled.extend(camel(name));
        spelled.extend(joined(name));
        // `pass_word` is not a common spelling.
        if !name.starts_with("pass") {
            spelled.extend(apart(name, "-"));
            spelled.extend(apart(name, "_"));
        }
    }
    let header = ["sec-websocket-protocol", "Sec-WebSocket-Protocol"];
    spelled.extend(header.map(str::to_owned));
    for name in &spelled {
        let message = format!(r#"{{"a":{{"{name}":"hunter2"}}}}"#);
        assert!(is_redacted(&message, "hunter2"), "{name}");
    }
    let parts = rows(PARTS).chain([PWD]).flat_map(joined);
    // The name of a variable or of a member ends or begins with it.
    let names = parts.flat_map(|part| [part.clone(), format!("my_{part}")]);
    let names = names.filter(|name| !name.to_lowercase().ends_with("_pwd"));
    for name in names.chain(camel("passPhrase")).chain(spelled) {
        let member = format!(r#"{{"a":{{"{name}":"{RANDOM}"}}}}"#);
        assert!(is_redacted(&member, RANDOM), "{name}");
        let pair = format!(r#"{{"a":{{"name":"{name}","value":"hunter2"}}}}"#);
        assert!(is_redacted(&pair, "hunter2"), "{name}");
    }
    for name in rows(GROUPS).flat_map(joined) {
        let list = format!(r#"{{"a":{{"{name}":[{{"b":"{RANDOM}"}}]}}}}"#);
        assert!(is_redacted(&list, RANDOM), "{name}");
    }
    for name in rows(PARTS).flat_map(joined) {
        // A longer name: `passw` alone is none.
        let text = format!("MY_{name}ORD={RANDOM}");
        assert!(redactor().text(text.as_bytes()).is_some(), "{text}");
    }
}
