//! The operations that tables may name: conversions with `as`, actions with `do`. Both lists are
//! closed; `dialect::convert` and `dialect::action` carry them out. A variant's name is its word in
//! tables, in snake case.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Words of tables that were replaced, and the new ones.
pub(super) const RENAMED: [(&str, &str); 4] = [
    ("plain_commands", "remove_command_slashes"),
    ("plain_envelope", "remove_envelope_type"),
    ("plain_path", "remove_dot_segments"),
    ("tell_permission", "join_permission_title"),
];

/// A named action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// See `action::repair`.
    FindToolCall,
    /// See `action::repair`.
    JoinPermissionTitle,
    /// See `action::repair`.
    RebuildConfigOptions,
    /// See `action::repair`.
    RejectUnsupported,
    /// See `action::repair`.
    StopReasonOfTurn,
    /// See `action::repair`.
    OnlyNewText,
    /// See `action::legacy`.
    NumberToolCall,
    /// See `action::legacy`.
    NumberUpdate,
    /// See `action::confirm`.
    AskConfirmation,
    /// See `action::legacy`.
    OpenSession,
    /// See `action::model`.
    ModelOption,
    /// See `action::mode`.
    ModeOption,
    /// See `action::mode`.
    ChooseMode,
    /// See `action::model`.
    SetModel,
    /// See `action::model`.
    ModelsOfOptions,
    /// See `action::model`.
    ModelsUpdate,
    /// See `action::turn`.
    CancelledTurn,
    /// See `action::turn`.
    FailTurn,
    /// See `action::turn`.
    AnnounceToolCall,
    /// See `action::turn`.
    BeginToolCall,
    /// See `action::turn`.
    DenyWithOption,
    /// See `action::turn`.
    AcceptUnsupported,
    /// See `action::turn`.
    MissingSession,
    /// See `action::normalize`.
    AbsolutePaths,
    /// See `action::normalize`.
    RemoveDotSegments,
    /// See `action::normalize`.
    AuthMethod,
    /// See `action::normalize`.
    SliceLines,
    /// See `action::normalize`.
    RemoveEnvelopeType,
    /// See `action::normalize`.
    IsoTimes,
    /// See `action::normalize`.
    RemoveCommandSlashes,
    /// See `action::todo`.
    MergePlan,
}

/// A conversion by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// A list of names ↔ an object whose members are all `true`.
    Flags,
    /// A list of content types ↔ the booleans of canonical prompt capabilities.
    PromptTypes,
    /// Five booleans, one a method ↔ one boolean that is true when all are.
    AnyFlag,
    /// An integer ↔ its digits in a string.
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
