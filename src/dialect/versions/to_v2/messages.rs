//! The ids of messages: v2 requires one on each chunk, v1 does not.

use hashlink::LinkedHashMap;

use super::parts::MAX_ID;

/// How many ids of a session are remembered.
const MAX_IDS: usize = 4096;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Speaker {
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
    given: LinkedHashMap<Box<str>, Speaker>,
    /// The ids that stand for those that the agent uses twice.
    renamed: LinkedHashMap<(Speaker, Box<str>), String>,
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
    /// An id that no other message of the session has.
    pub(super) fn mint(&mut self) -> String {
        loop {
            self.minted = self.minted.wrapping_add(1);
            let id = format!("acpb-{}", self.minted);
            if !self.given.contains_key(&*id) {
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
        if given.len() > MAX_ID {
            return given.to_owned();
        }
        match self.given.get(given) {
            Some(known) if *known == speaker => return given.to_owned(),
            None if !self.is_minted(given) => {
                self.given.insert(given.into(), speaker);
                if self.given.len() > MAX_IDS {
                    self.given.pop_front();
                }
                return given.to_owned();
            }
            _ => {}
        }
        let key = (speaker, Box::from(given));
        if let Some(id) = self.renamed.get(&key) {
            return id.clone();
        }
        let id = self.mint();
        self.renamed.insert(key, id.clone());
        if self.renamed.len() > MAX_IDS {
            self.renamed.pop_front();
        }
        id
    }

    /// Whether an id was made up here.
    fn is_minted(&self, id: &str) -> bool {
        let number = id.strip_prefix("acpb-").and_then(|text| text.parse().ok());
        number.is_some_and(|number: u32| number <= self.minted)
    }
}
