//! The operations that tables may name: conversions with `as`, actions with `do`. Both lists are
//! closed; `dialect::convert` and `dialect::action` carry them out.

use super::way::Way;

/// A named action, documented in `dialect::action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// See `action::repair`.
    FindToolCall,
    /// See `action::repair`.
    TellPermission,
    /// See `action::repair`.
    RebuildConfigOptions,
    /// See `action::repair`.
    RejectUnsupported,
    /// See `action::repair`.
    StopReasonOfTurn,
    /// See `action::legacy`.
    NumberToolCall,
    /// See `action::legacy`.
    NumberUpdate,
    /// See `action::confirm`.
    AskConfirmation,
    /// See `action::legacy`.
    OpenSession,
    /// See `action::repair`.
    OnlyNewText,
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
    PlainPath,
    /// See `action::normalize`.
    AuthMethod,
    /// See `action::normalize`.
    SliceLines,
    /// See `action::normalize`.
    PlainEnvelope,
    /// See `action::normalize`.
    IsoTimes,
    /// See `action::normalize`.
    PlainCommands,
    /// See `action::todo`.
    MergePlan,
}

/// A conversion by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    TerminalMethods,
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

/// The ways in which an action works.
const BOTH: Option<Way> = None;
const READ: Option<Way> = Some(Way::Read);
const WRITE: Option<Way> = Some(Way::Write);

impl Action {
    /// The names in tables, and the only way in which each works, if not both.
    const ALL: [(&'static str, Self, Option<Way>); 31] = [
        ("find_tool_call", Self::FindToolCall, BOTH),
        ("tell_permission", Self::TellPermission, BOTH),
        ("rebuild_config_options", Self::RebuildConfigOptions, BOTH),
        ("reject_unsupported", Self::RejectUnsupported, BOTH),
        ("stop_reason_of_turn", Self::StopReasonOfTurn, BOTH),
        ("only_new_text", Self::OnlyNewText, BOTH),
        ("number_tool_call", Self::NumberToolCall, BOTH),
        ("number_update", Self::NumberUpdate, WRITE),
        ("ask_confirmation", Self::AskConfirmation, BOTH),
        ("open_session", Self::OpenSession, BOTH),
        ("model_option", Self::ModelOption, BOTH),
        ("mode_option", Self::ModeOption, READ),
        ("choose_mode", Self::ChooseMode, WRITE),
        ("set_model", Self::SetModel, READ),
        ("models_of_options", Self::ModelsOfOptions, WRITE),
        ("models_update", Self::ModelsUpdate, READ),
        ("cancelled_turn", Self::CancelledTurn, READ),
        ("fail_turn", Self::FailTurn, READ),
        ("announce_tool_call", Self::AnnounceToolCall, BOTH),
        ("begin_tool_call", Self::BeginToolCall, READ),
        ("deny_with_option", Self::DenyWithOption, READ),
        ("accept_unsupported", Self::AcceptUnsupported, READ),
        ("missing_session", Self::MissingSession, READ),
        ("absolute_paths", Self::AbsolutePaths, BOTH),
        ("plain_path", Self::PlainPath, READ),
        ("auth_method", Self::AuthMethod, BOTH),
        ("slice_lines", Self::SliceLines, READ),
        ("plain_envelope", Self::PlainEnvelope, READ),
        ("iso_times", Self::IsoTimes, READ),
        ("plain_commands", Self::PlainCommands, READ),
        ("merge_plan", Self::MergePlan, READ),
    ];

    /// The names in tables.
    pub(super) fn words() -> [(&'static str, Self); 31] {
        Self::ALL.map(|(name, action, _)| (name, action))
    }

    /// Whether it works in that way.
    pub(in crate::dialect) fn works(self, way: Way) -> bool {
        let mut all = Self::ALL.iter();
        let only = all
            .find(|(_, known, _)| *known == self)
            .and_then(|found| found.2);
        only.is_none_or(|only| only == way)
    }
}

impl Converter {
    /// The names in tables.
    pub const ALL: [(&'static str, Self); 19] = [
        ("json_text", Self::JsonText),
        ("plain_text", Self::PlainText),
        ("text_block", Self::TextBlock),
        ("tool_text", Self::ToolText),
        ("tool_text_block", Self::ToolTextBlock),
        ("singleton", Self::Singleton),
        ("only_element", Self::OnlyElement),
        ("named_list", Self::NamedList),
        ("flags", Self::Flags),
        ("prompt_types", Self::PromptTypes),
        ("any_flag", Self::TerminalMethods),
        ("number_text", Self::NumberText),
        ("file_uri", Self::FileUri),
        ("protocol_version", Self::ProtocolVersion),
        ("last_element", Self::LastElement),
        ("list", Self::List),
        ("basename", Self::Basename),
        ("media_type", Self::MediaType),
        ("tool_kind", Self::ToolKind),
    ];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, known)| *known == self);
        found.map_or("", |(name, _)| name)
    }

    /// Whether the conversion back gives the same value again, for every value that it applies to.
    #[must_use]
    pub const fn has_inverse(self) -> bool {
        !matches!(
            self,
            Self::JsonText
                | Self::PlainText
                | Self::NamedList
                | Self::FileUri
                | Self::Flags
                | Self::PromptTypes
                | Self::TerminalMethods
                | Self::ToolText
                | Self::ToolTextBlock
                | Self::ProtocolVersion
                | Self::List
                | Self::LastElement
                | Self::Basename
                | Self::MediaType
                | Self::ToolKind
        )
    }
}
