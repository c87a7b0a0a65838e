//! The operations that tables may name: conversions with `as`, actions with `do`. Both lists are
//! closed. A variant is the only declaration of an operation: its name is the word in tables, in
//! snake case, and its first line the description in the JSON Schema. `dialect::convert` and
//! `dialect::action` carry them out, with an arm for each variant.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Words of tables that were replaced, and the new ones.
pub(super) const RENAMED: [(&str, &str); 4] = [
    ("plain_commands", "remove_command_slashes"),
    ("plain_envelope", "remove_envelope_type"),
    ("plain_path", "remove_dot_segments"),
    ("tell_permission", "join_permission_title"),
];

/// A named action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A permission request gets the id of its tool call.
    FindToolCall,
    /// A title and a description become the title of a tool call, and back.
    JoinPermissionTitle,
    /// An empty answer to `session/set_config_option` gets the remembered options.
    RebuildConfigOptions,
    /// Error −32601 to a permission request becomes a refusal.
    RejectUnsupported,
    /// A missing stop reason is `cancelled` when the turn was cancelled, else `end_turn`; written,
    /// a stop reason that the dialect does not have is sent as text.
    StopReasonOfTurn,
    /// Text that was streamed in this turn is not sent again.
    OnlyNewText,
    /// Tool calls get numbers, which the client gives them.
    NumberToolCall,
    /// Updates of tool calls get the numbers of these.
    NumberUpdate,
    /// A confirmation of the original protocol ↔ a permission request.
    AskConfirmation,
    /// A client without sessions gets one, and an agent without sessions has one.
    OpenSession,
    /// `models` ↔ a config option of category `model`.
    ModelOption,
    /// Keeps the current mode and the config option of category `mode` in step.
    ModeOption,
    /// A choice of the bridge's option of category `mode` becomes `session/set_mode`.
    ChooseMode,
    /// `session/set_model` becomes `session/set_config_option`.
    SetModel,
    /// `models` is made from the option of category `model`, for clients that read it.
    ModelsOfOptions,
    /// A vendor's list of models becomes a `config_option_update`.
    ModelsUpdate,
    /// `end_turn` of a turn that was cancelled is `cancelled`.
    CancelledTurn,
    /// A result that reports a failed turn becomes error −32603.
    FailTurn,
    /// An update of a tool call that has not been announced is preceded by a `tool_call`.
    AnnounceToolCall,
    /// The first update of a tool call is its `tool_call`.
    BeginToolCall,
    /// `cancelled` as the answer to a permission request is a reject option that was offered.
    DenyWithOption,
    /// Error −32601 becomes an empty result.
    AcceptUnsupported,
    /// The error of a request for an unknown session contains the session's id.
    MissingSession,
    /// Relative paths of a tool call are relative to the session's working directory.
    AbsolutePaths,
    /// `/a/./b` is `/a/b`.
    RemoveDotSegments,
    /// `authenticate` carries the whole method that was offered.
    AuthMethod,
    /// A file that was read completely although a part was requested is cut.
    SliceLines,
    /// The member `type` beside `jsonrpc` is removed.
    RemoveEnvelopeType,
    /// Numbers of seconds or milliseconds since 1970 become ISO 8601.
    IsoTimes,
    /// Names of commands lose their leading slash.
    RemoveCommandSlashes,
    /// Updates that contain only a part of the todos become the whole plan.
    MergePlan,
    /// Terminals of an earlier run, in the history of a loaded session, are no tool content.
    PastTerminals,
}

/// A conversion by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Converter {
    /// A string that holds a JSON object or array ↔ that value. Other strings stay strings.
    JsonText,
    /// A string ↔ the same string; written, every other value becomes its JSON text.
    PlainText,
    /// A string ↔ a text content block.
    TextBlock,
    /// A string ↔ a list with one text as tool content.
    ToolText,
    /// A text content block ↔ a list with one text as tool content.
    ToolTextBlock,
    /// A value ↔ a list of it alone.
    Singleton,
    /// A list of one value ↔ that value.
    OnlyElement,
    /// `{"k": v}` ↔ `[{"name": "k", …}]`, for objects and, with `value`, for other values. `null`
    /// is not read.
    NamedList,
    /// `[{"name": "k", "value": v}]` ↔ `{"k": v}`; of two with one name the last is read. `null` is
    /// left out.
    NamedMap,
    /// A list of names ↔ an object whose members are all `true`.
    Flags,
    /// A list of content types ↔ the booleans of canonical prompt capabilities.
    PromptTypes,
    /// Five booleans, one a method ↔ one boolean that is true when all are.
    AnyFlag,
    /// A number ↔ its digits in a string.
    NumberText,
    /// An absolute path ↔ a `file` URI.
    FileUri,
    /// A protocol version in any spelling of version 1 → the integer 1.
    ProtocolVersion,
    /// A value ↔ a list of it alone; written, the last of several. `null` is not read.
    LastElement,
    /// An array, or nothing else: a value that is no array is put into one.
    List,
    /// A URI → the name taken from its path.
    Basename,
    /// Base64 data → the media type recognised by its first bytes.
    MediaType,
    /// The name of a tool → the canonical kind of tool.
    ToolKind,
}

impl Action {
    /// Whether it depends on the state of the session: turns, tool calls, text, options.
    #[must_use]
    pub const fn follows_sessions(self) -> bool {
        matches!(
            self,
            Self::FindToolCall
                | Self::RebuildConfigOptions
                | Self::StopReasonOfTurn
                | Self::OnlyNewText
                | Self::NumberToolCall
                | Self::NumberUpdate
                | Self::AskConfirmation
                | Self::OpenSession
                | Self::CancelledTurn
                | Self::DenyWithOption
                | Self::MissingSession
        )
    }
}

impl Converter {
    /// Whether the conversion back gives the same value again, for every value that it applies to.
    #[must_use]
    pub const fn has_inverse(self) -> bool {
        matches!(
            self,
            Self::TextBlock | Self::Singleton | Self::OnlyElement | Self::NumberText
        )
    }
}

impl fmt::Display for Converter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
