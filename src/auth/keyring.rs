//! The tokens that are accepted, and the file they are kept in.
//!
//! One key a line, as in ssh's `authorized_keys`: its id, the SHA-256 of the token, its name, and
//! options. An invalid line is an error and not skipped: it may be the one that sets a token's
//! expiry.

use std::fmt::Write as _;

use data_encoding::HEXLOWER;

use super::token::Digest;
use super::{Agents, Grant, Token};

/// The first line of the file.
const HEADING: &str = "# Tokens of acp-relay: id, SHA-256, name, and what each may. \
                       `acp-relay token` writes this file.\n";

/// Longest name of a token, in bytes.
const MAX_NAME: usize = 64;

/// One token, without its text.
#[derive(Clone, Debug)]
pub struct Key {
    /// The id of the token, in hexadecimal digits.
    pub id: String,
    /// The SHA-256 of its text.
    pub digest: Digest,
    /// The name of the principal.
    pub name: String,
    /// When it expires, in seconds since 1970.
    pub expires: Option<u64>,
    /// What it allows.
    pub grant: Grant,
}

/// All tokens, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Vec<Key>);

/// Why a text is not a keyring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct KeyringError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it, as a clause.
    pub what: String,
}

impl Keyring {
    /// Reads the file.
    ///
    /// # Errors
    /// At the first invalid line.
    pub fn read(text: &str) -> Result<Self, KeyringError> {
        let mut ring = Self::default();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let unreadable = |what: String| KeyringError {
                line: index + 1,
                what,
            };
            let key = read_key(line).map_err(unreadable)?;
            ring.add(key).map_err(unreadable)?;
        }
        Ok(ring)
    }

    /// The file's text.
    #[must_use]
    pub fn write(&self) -> String {
        let mut text = HEADING.to_owned();
        for key in self.keys() {
            // Writing to a String does not fail.
            let _ = write!(text, "{} {} {}", key.id, key.digest, key.name);
            if let Some(at) = key.expires {
                let _ = write!(text, " expires={at}");
            }
            if let Agents::These(names) = &key.grant.agents {
                let _ = write!(text, " agents={}", names.join(","));
            }
            if key.grant.admin {
                text.push_str(" admin");
            }
            text.push('\n');
        }
        text
    }

    /// Adds a key.
    ///
    /// # Errors
    /// When there is one of that name or id.
    pub fn add(&mut self, key: Key) -> Result<(), String> {
        if self.keys().any(|other| other.name == key.name) {
            return Err(format!("there is a token called {:?} already", key.name));
        }
        if self.keys().any(|other| other.id == key.id) {
            return Err(format!("the id {} occurs twice", key.id));
        }
        self.0.push(key);
        Ok(())
    }

    /// Removes the key of that name.
    pub fn remove(&mut self, name: &str) -> Option<Key> {
        let at = self.keys().position(|key| key.name == name)?;
        Some(self.0.remove(at))
    }

    /// The key of the token with that digest.
    #[must_use]
    pub fn find(&self, digest: &Digest) -> Option<&Key> {
        self.keys().find(|key| key.digest.is(digest))
    }

    /// All keys.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }
}

impl Key {
    /// The key of a token of our format: for all agents, without expiry.
    #[must_use]
    pub fn of(token: &Token, name: &str) -> Self {
        Self {
            id: token.id().to_owned(),
            digest: token.digest(),
            name: name.to_owned(),
            expires: None,
            grant: Grant::all_agents(false),
        }
    }

    /// Whether it has expired; `now` is in seconds since 1970.
    #[must_use]
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }
}

/// Checks that a text can be the name of a token or of an agent.
///
/// # Errors
/// Says what is allowed.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    let begins = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric());
    if begins && name.len() <= MAX_NAME && name.bytes().all(plain) {
        return Ok(());
    }
    Err(
        "a name has letters, digits and -_.@, begins with a letter or a digit, and has 64 \
         characters at most",
    )
}

fn read_key(line: &str) -> Result<Key, String> {
    let mut words = line.split_ascii_whitespace();
    let mut next = |what| words.next().ok_or_else(|| format!("{what} is missing"));
    let id = next("the id")?;
    if id.len() != 12 || HEXLOWER.decode(id.as_bytes()).is_err() {
        return Err("the id of a token is 12 hexadecimal digits".to_owned());
    }
    let digest = next("the SHA-256")?.parse()?;
    let name = next("the name")?;
    check_name(name)?;
    let mut key = Key {
        id: id.to_owned(),
        digest,
        name: name.to_owned(),
        expires: None,
        grant: Grant::all_agents(false),
    };
    for word in words {
        match word.split_once('=') {
            None if word == "admin" => key.grant.admin = true,
            Some(("expires", at)) => {
                let at = at.parse().map_err(|_| format!("{at:?} is no time"))?;
                key.expires = Some(at);
            }
            Some(("agents", names)) => key.grant.agents = read_agents(names)?,
            _ => return Err(format!("{word:?} is not understood")),
        }
    }
    Ok(key)
}

/// Reads names of agents with commas between them.
///
/// # Errors
/// When one is not a valid name.
pub fn read_agents(text: &str) -> Result<Agents, &'static str> {
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    names.iter().try_for_each(|name| check_name(name))?;
    Ok(Agents::These(names.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8, name: &str) -> Key {
        Key::of(&Token::new([number; 6], [number; 32]), name)
    }

    #[test]
    fn keyring_round_trips() {
        let mut ring = Keyring::default();
        ring.add(key(1, "alice")).expect("new");
        let grant = Grant {
            agents: read_agents("goose,gemini").expect("names"),
            admin: true,
        };
        let bob = Key {
            expires: Some(1_800_000_000),
            grant,
            ..key(2, "bob")
        };
        ring.add(bob).expect("new");
        let read = Keyring::read(&ring.write()).expect("readable");
        assert_eq!(read.write(), ring.write());
        let bob = read.find(&key(2, "bob").digest).expect("bob");
        assert_eq!((bob.name.as_str(), bob.grant.admin), ("bob", true));
        assert!(bob.has_expired(1_800_000_000) && !bob.has_expired(1_799_999_999));
    }

    #[test]
    fn names_are_unique_and_removable() {
        let mut ring = Keyring::default();
        ring.add(key(1, "alice")).expect("new");
        ring.add(key(2, "bob")).expect("new");
        assert!(ring.add(key(3, "bob")).is_err());
        assert!(ring.remove("alice").is_some() && ring.remove("alice").is_none());
        assert_eq!(
            ring.keys().map(|key| &key.name).collect::<Vec<_>>(),
            ["bob"]
        );
    }

    #[test]
    fn invalid_line_is_an_error() {
        let mut good = Keyring::default();
        good.add(key(1, "alice")).expect("new");
        let good = good.write();
        let line = good.lines().nth(1).expect("a line");
        for (text, expected) in [
            (format!("{line} expires=soon"), "line 1: \"soon\""),
            (format!("{line} expired=1"), "not understood"),
            (format!("{line} agents=../x"), "a name has"),
            (format!("#\n\n{line}\n{line}"), "line 4: there is a token"),
            ("x".to_owned(), "12 hexadecimal"),
            (line.replace(" alice", ""), "missing"),
            (line.replace("alice", "-x"), "a name has"),
        ] {
            let fault = Keyring::read(&text).expect_err(&text).to_string();
            assert!(fault.contains(expected), "{fault}");
        }
    }
}
