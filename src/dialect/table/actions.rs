//! The names of actions: a closed list that tables may call with `do`.

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

impl Action {
    /// The names in tables.
    pub const ALL: [(&'static str, Self); 31] = [
        ("find_tool_call", Self::FindToolCall),
        ("tell_permission", Self::TellPermission),
        ("rebuild_config_options", Self::RebuildConfigOptions),
        ("reject_unsupported", Self::RejectUnsupported),
        ("stop_reason_of_turn", Self::StopReasonOfTurn),
        ("only_new_text", Self::OnlyNewText),
        ("number_tool_call", Self::NumberToolCall),
        ("number_update", Self::NumberUpdate),
        ("ask_confirmation", Self::AskConfirmation),
        ("open_session", Self::OpenSession),
        ("model_option", Self::ModelOption),
        ("mode_option", Self::ModeOption),
        ("choose_mode", Self::ChooseMode),
        ("set_model", Self::SetModel),
        ("models_of_options", Self::ModelsOfOptions),
        ("models_update", Self::ModelsUpdate),
        ("cancelled_turn", Self::CancelledTurn),
        ("fail_turn", Self::FailTurn),
        ("announce_tool_call", Self::AnnounceToolCall),
        ("begin_tool_call", Self::BeginToolCall),
        ("deny_with_option", Self::DenyWithOption),
        ("accept_unsupported", Self::AcceptUnsupported),
        ("missing_session", Self::MissingSession),
        ("absolute_paths", Self::AbsolutePaths),
        ("plain_path", Self::PlainPath),
        ("auth_method", Self::AuthMethod),
        ("slice_lines", Self::SliceLines),
        ("plain_envelope", Self::PlainEnvelope),
        ("iso_times", Self::IsoTimes),
        ("plain_commands", Self::PlainCommands),
        ("merge_plan", Self::MergePlan),
    ];
}
