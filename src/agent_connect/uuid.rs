//! UUIDs (RFC 9562): the ids of agents, threads and runs.

use std::fmt;

use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};

/// The namespace for agents: RFC 9562's for URLs, of which `acp-relay:agent:NAME` is one.
const URL_NAMESPACE: [u8; 16] = [
    0x6b, 0xa7, 0xb8, 0x11, 0x9d, 0xad, 0x11, 0xd1, 0x80, 0xb4, 0x00, 0xc0, 0x4f, 0xd4, 0x30, 0xc8,
];

/// A UUID.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid([u8; 16]);

impl Uuid {
    /// The UUID of these random bytes (version 4).
    #[must_use]
    pub const fn random(bytes: [u8; 16]) -> Self {
        Self::with_version(bytes, 0x40)
    }

    /// The UUID of an agent's name (version 5): always the same for the same name.
    #[must_use]
    pub fn of_agent(name: &str) -> Self {
        Self::of_url(&format!("acp-relay:agent:{name}"))
    }

    /// The UUID of an agent's session that was not created as a thread.
    #[must_use]
    pub fn of_session(agent: Self, session: &str) -> Self {
        Self::of_url(&format!("acp-relay:session:{agent}:{session}"))
    }

    fn of_url(url: &str) -> Self {
        let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        digest.update(&URL_NAMESPACE);
        digest.update(url.as_bytes());
        let digest = digest.finish();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.as_ref()[..16]);
        Self::with_version(bytes, 0x50)
    }

    /// Parses 32 hexadecimal digits with hyphens in the standard places.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.as_bytes();
        if text.len() != 36 {
            return None;
        }
        let mut bytes = [0; 16];
        let mut digits = 0;
        for (at, byte) in text.iter().enumerate() {
            if [8, 13, 18, 23].contains(&at) {
                if *byte != b'-' {
                    return None;
                }
                continue;
            }
            let digit = u8::try_from((*byte as char).to_digit(16)?).ok()?;
            bytes[digits / 2] = bytes[digits / 2] << 4 | digit;
            digits += 1;
        }
        Some(Self(bytes))
    }

    const fn with_version(mut bytes: [u8; 16], version: u8) -> Self {
        bytes[6] = bytes[6] & 0x0f | version;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if [4, 6, 8, 10].contains(&at) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_round_trip() {
        let text = "b7a9f2d4-6c1e-4a0b-9c55-000000000201";
        assert_eq!(Uuid::parse(text).expect("a UUID").to_string(), text);
        for bad in [
            "",
            "b7a9f2d4-6c1e-4a0b-9c55-00000000020",
            "x7a9f2d4-6c1e-4a0b-9c55-000000000201",
            "b7a9f2d4f6c1e-4a0b-9c55-000000000201",
        ] {
            assert_eq!(Uuid::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn uuids_have_their_version() {
        assert_eq!(
            Uuid::random([0xff; 16]).to_string(),
            "ffffffff-ffff-4fff-bfff-ffffffffffff"
        );
        let agent = Uuid::of_agent("goose").to_string();
        assert_eq!(&agent[14..15], "5");
        assert_eq!(agent, Uuid::of_agent("goose").to_string());
    }
}
