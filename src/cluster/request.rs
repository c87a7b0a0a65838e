//! What a gateway asks a host, and where.

use serde::{Deserialize, Serialize};

use super::ticket::Guest;

/// Between the name of a host and the random part of its id, and of subjects.
pub(super) const DOT: char = '.';

/// What a gateway asks.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) v: u32,
    pub(super) ticket: String,
    /// The random part of the subjects of a carrier; without it, the gateway connects directly, or
    /// asks for something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) carrier: Option<String>,
    /// How many clients it knows of those that it asks for.
    #[serde(default)]
    pub(super) skip: usize,
}

/// What the host answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    /// The carrier is open.
    Open,
    /// A token for one direct connection.
    Pass(String),
    /// The clients, some at a time.
    Guests(Vec<Guest>),
    /// It is done.
    Done,
    /// It is not, for this reason.
    Refused(String),
}

/// The subject of requests to a host.
pub(super) fn subject(host: &str) -> String {
    format!("acp.host.{host}")
}

/// The subjects of a carrier: to the host, and to the gateway.
pub(super) fn carrier_subjects(host: &str, carrier: &str) -> [String; 2] {
    ["h", "g"].map(|end| format!("acp.c.{}.{carrier}.{end}", name_of(host)))
}

/// The name of a host, to which an account of NATS may be limited.
pub(super) fn name_of(host: &str) -> &str {
    host.split_once(DOT).map_or(host, |(name, _)| name)
}

/// Whether it can be the random part of subjects.
pub(super) fn is_random(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A name as a part of subjects and keys.
pub(super) fn name_part(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '-' });
    plain.take(64).collect()
}

/// The host of a link, by the link's name.
pub(super) fn host_of(link: &str) -> Option<&str> {
    let (host, _) = link.rsplit_once(DOT)?;
    let mut parts = host.split(DOT);
    let is_id = |name: &str, random: &str| name_part(name) == name && is_random(random);
    let is_host = parts
        .next()
        .zip(parts.next())
        .is_some_and(|(name, random)| is_id(name, random));
    (is_host && parts.next().is_none()).then_some(host)
}
