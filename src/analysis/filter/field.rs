//! The fields of the filter language.

use strum::{EnumMessage, IntoStaticStr, VariantArray};

use jsonrpc::Choice as _;

/// A field of an event. The description of each begins with an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[derive(EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Field {
    /// `method:session/*`: the method; of an answer, that of its request
    Method,
    /// `session:ab12`: the session's id, or its beginning
    Session,
    /// `id:7`: the message's id
    Id,
    /// `kind:error`: request, answer, error, note, stderr, mark, gap, …
    Kind,
    /// `dir:<`: < towards the client, > towards the agent
    Dir,
    /// `from:agent`: the side that sent it
    From,
    /// `at:client`: the side of the relay where it was seen
    At,
    /// `update:tool_call*`: the kind of a session/update
    Update,
    /// `tool:call_1`: the tool call's id, or its beginning
    Tool,
    /// `text:"foo bar"`: a text anywhere in it, ignoring case; the same as the word alone
    Text,
    /// `rule:goose/*`: a rule that changed it
    Rule,
    /// `note:answered_*`: the name of a note
    Note,
    /// `lint:*`: the id of a finding about it
    Lint,
    /// `n>=100`: the number of the event
    N,
    /// `t<1m30s`: the time since the recording began
    #[strum(serialize = "t")]
    Time,
    /// `dur>2s`: from a request to its answer; both have it
    Dur,
    /// `size>10k`: the bytes of the message
    Size,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ValueType {
    /// A text with `*`.
    Text,
    /// One of these words.
    Word(&'static str),
    /// A number with one of these units and an example of it.
    Number(&'static [(&'static str, f64)], &'static str),
}

const KINDS: &str = "request notification result error answer message noise passed stderr process \
                     link note gap clock mark resume end other";

const SIZES: &[(&str, f64)] = &[("", 1.0), ("b", 1.0), ("k", 1024.0), ("m", 1_048_576.0)];

const TIMES: &[(&str, f64)] = &[
    ("us", 1.0),
    ("µs", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("", 1e6),
    ("m", 6e7),
    ("h", 3.6e9),
];

impl Field {
    /// An example, and what the field is.
    #[must_use]
    pub fn description(self) -> (String, String) {
        let help = self.about();
        let (example, what) = help.split_once("`: ").unwrap_or_default();
        (example.trim_start_matches('`').to_owned(), what.to_owned())
    }

    pub(super) const fn value_type(self) -> ValueType {
        match self {
            Self::Method | Self::Session | Self::Id | Self::Update | Self::Tool => ValueType::Text,
            Self::Text | Self::Rule | Self::Note | Self::Lint => ValueType::Text,
            Self::Kind => ValueType::Word(KINDS),
            Self::Dir => ValueType::Word("< >"),
            Self::From | Self::At => ValueType::Word("client agent"),
            Self::N => ValueType::Number(&[("", 1.0)], "42"),
            Self::Size => ValueType::Number(SIZES, "10k"),
            Self::Time | Self::Dur => ValueType::Number(TIMES, "2s, 150ms or 1m30s"),
        }
    }
}
