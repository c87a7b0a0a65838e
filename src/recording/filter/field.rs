//! The fields of the filter language.

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is described by its row in FIELDS")]
pub enum Field {
    Method,
    Session,
    Id,
    Kind,
    Dir,
    From,
    At,
    Update,
    Tool,
    Text,
    Rule,
    Note,
    Lint,
    N,
    Time,
    Dur,
    Size,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    /// A text with `*`.
    Text,
    /// One of these words.
    Word(&'static str),
    /// A number.
    Count,
    /// A number of bytes.
    Bytes,
    /// A number of seconds.
    Seconds,
}

const KINDS: &str = "request notification result error answer message noise passed stderr process \
                     link note gap clock mark resume end other";

/// All fields: the name, an example, and the description.
pub const FIELDS: [(Field, &str, &str, &str); 17] = [
    (
        Field::Method,
        "method",
        "method:session/*",
        "the method; of an answer, that of its request",
    ),
    (
        Field::Session,
        "session",
        "session:ab12",
        "the session's id, or its beginning",
    ),
    (Field::Id, "id", "id:7", "the message's id"),
    (
        Field::Kind,
        "kind",
        "kind:error",
        "request, answer, error, note, stderr, mark, gap, …",
    ),
    (
        Field::Dir,
        "dir",
        "dir:<",
        "< towards the client, > towards the agent",
    ),
    (Field::From, "from", "from:agent", "the side that sent it"),
    (
        Field::At,
        "at",
        "at:client",
        "the side of the relay where it was seen",
    ),
    (
        Field::Update,
        "update",
        "update:tool_call*",
        "the kind of a session/update",
    ),
    (
        Field::Tool,
        "tool",
        "tool:call_1",
        "the tool call's id, or its beginning",
    ),
    (
        Field::Text,
        "text",
        "text:\"foo bar\"",
        "a text anywhere in it, ignoring case; the same as the word alone",
    ),
    (
        Field::Rule,
        "rule",
        "rule:goose/*",
        "a rule that changed it",
    ),
    (Field::Note, "note", "note:answered_*", "the name of a note"),
    (
        Field::Lint,
        "lint",
        "lint:*",
        "the id of a finding about it",
    ),
    (Field::N, "n", "n>=100", "the number of the event"),
    (
        Field::Time,
        "t",
        "t<1m30s",
        "the time since the recording began",
    ),
    (
        Field::Dur,
        "dur",
        "dur>2s",
        "from a request to its answer; both have it",
    ),
    (Field::Size, "size", "size>10k", "the bytes of the message"),
];

impl Field {
    /// The field with that name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let found = FIELDS.iter().find(|(_, known, ..)| *known == name)?;
        Some(found.0)
    }

    pub(super) const fn value_type(self) -> ValueType {
        match self {
            Self::Method | Self::Session | Self::Id | Self::Update | Self::Tool => ValueType::Text,
            Self::Text | Self::Rule | Self::Note | Self::Lint => ValueType::Text,
            Self::Kind => ValueType::Word(KINDS),
            Self::Dir => ValueType::Word("< >"),
            Self::From | Self::At => ValueType::Word("client agent"),
            Self::N => ValueType::Count,
            Self::Size => ValueType::Bytes,
            Self::Time | Self::Dur => ValueType::Seconds,
        }
    }
}
