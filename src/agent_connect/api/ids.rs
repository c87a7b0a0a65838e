//! The ids of agents, threads and runs: UUIDs (RFC 9562).

use uuid::Uuid;

/// The id of the agent of this name: always the same for the same name.
#[must_use]
pub fn agent_id(name: &str) -> Uuid {
    of_url(&format!("acp-relay:agent:{name}"))
}

/// The thread id of an agent's session that was not created as a thread.
#[must_use]
pub fn session_id(agent: Uuid, session: &str) -> Uuid {
    of_url(&format!("acp-relay:session:{agent}:{session}"))
}

/// Parses the form with hyphens; the `uuid` crate reads others as well.
#[must_use]
pub fn parse(text: &str) -> Option<Uuid> {
    let hyphenated = uuid::fmt::Hyphenated::LENGTH;
    Uuid::try_parse(text)
        .ok()
        .filter(|_| text.len() == hyphenated)
}

fn of_url(url: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_URL, url.as_bytes())
}
