//! The named actions: a closed list of what tables may call with `do`.
//!
//! Not here: what each one does (see `action`).

/// The named actions: a closed list, documented in `action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// See `action::talk`.
    FindToolCall,
    /// See `action::talk`.
    TellPermission,
    /// See `action::talk`.
    RebuildConfigOptions,
    /// See `action::talk`.
    RejectUnsupported,
    /// See `action::turn`.
    StopReasonOfTurn,
    /// See `action::legacy`.
    NumberToolCall,
    /// See `action::legacy`.
    NumberUpdate,
    /// See `action::legacy`.
    AskConfirmation,
    /// See `action::legacy`.
    OpenSession,
    /// See `action::turn`.
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
    /// See `action::plain`.
    AbsolutePaths,
    /// See `action::plain`.
    PlainPath,
    /// See `action::plain`.
    AuthMethod,
    /// See `action::plain`.
    SliceLines,
    /// See `action::plain`.
    PlainEnvelope,
    /// See `action::plain`.
    IsoTimes,
    /// See `action::plain`.
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
