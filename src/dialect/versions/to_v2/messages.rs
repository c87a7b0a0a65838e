//! The ids of messages: v2 requires one on each chunk, v1 does not.

use crate::recent::Recent;

/// The ids of messages, each with something about it.
type Ids<T> = Recent<T, 4096, { 1 << 20 }>;

/// The kind of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Speaker {
    #[default]
    User,
    Agent,
    Thought,
}

/// The messages of a session.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The number of the last id that was made up.
    minted: u32,
    /// The message that a chunk without an id continues.
    current: Option<(Speaker, String)>,
    /// The ids of the agent.
    given: Ids<Speaker>,
    /// The ids that stand for those that the agent uses twice, by speaker and id.
    renamed: Ids<String>,
}

impl Speaker {
    /// The speaker of a chunk.
    pub(super) fn of(update: &str) -> Option<Self> {
        Some(match update {
            "user_message_chunk" => Self::User,
            "agent_message_chunk" => Self::Agent,
            "agent_thought_chunk" => Self::Thought,
            _ => return None,
        })
    }
}

impl Messages {
    /// The memory behind them, in bytes.
    pub(super) const fn weight(&self) -> usize {
        self.given.bytes + self.renamed.bytes
    }

    /// Forgets the ids; the agent's next chunks may begin new messages.
    pub(super) fn forget(&mut self) {
        (self.given, self.renamed) = Default::default();
    }

    /// An id that no other message of the session has.
    pub(super) fn mint(&mut self) -> String {
        loop {
            self.minted = self.minted.wrapping_add(1);
            let id = format!("acpb-{}", self.minted);
            if self.given.get(&id).is_none() {
                return id;
            }
        }
    }

    /// The next chunk without an id begins a message.
    pub(super) fn split(&mut self) {
        self.current = None;
    }

    /// The id of a chunk, which the agent may have given one.
    pub(super) fn id(&mut self, speaker: Speaker, given: Option<&str>) -> String {
        let Some(given) = given else {
            if let Some((last, id)) = &self.current
                && *last == speaker
            {
                return id.clone();
            }
            let id = self.mint();
            self.current = Some((speaker, id.clone()));
            return id;
        };
        self.split();
        match self.given.get(given) {
            Some(known) if *known == speaker => return given.to_owned(),
            None if !self.is_minted(given) => {
                self.given.insert(given, speaker, 0);
                return given.to_owned();
            }
            _ => {}
        }
        let key = format!("{speaker:?} {given}");
        if let Some(id) = self.renamed.get(&key) {
            return id.clone();
        }
        let id = self.mint();
        self.renamed.insert(&key, id.clone(), id.len());
        id
    }

    /// Whether an id was made up here.
    fn is_minted(&self, id: &str) -> bool {
        let number = id.strip_prefix("acpb-").and_then(|text| text.parse().ok());
        number.is_some_and(|number: u32| number <= self.minted)
    }
}
