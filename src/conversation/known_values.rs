//! Enums of the values that peers send in some places, with one variant for all others.
//!
//! What a peer sends becomes one of a few fixed values.

use jsonrpc::names;

/// Makes an enum of known values, with one variant for all others.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        names! {
            $(#[$doc])*
            $name {
                $($variant = $text,)*
                /// Anything else.
                Other = "other",
            }
        }

        impl $name {
            /// The variant for `text`.
            #[must_use]
            pub fn of(text: &[u8]) -> Self {
                $(if text == $text.as_bytes() {
                    return Self::$variant;
                })*
                Self::Other
            }
        }
    };
}

words! {
    /// A method of ACP v1. The most frequent ones come first, because the list is searched.
    Method {
        SessionUpdate = "session/update",
        SessionPrompt = "session/prompt",
        FsReadTextFile = "fs/read_text_file",
        FsWriteTextFile = "fs/write_text_file",
        TerminalOutput = "terminal/output",
        SessionRequestPermission = "session/request_permission",
        TerminalCreate = "terminal/create",
        TerminalKill = "terminal/kill",
        TerminalRelease = "terminal/release",
        TerminalWaitForExit = "terminal/wait_for_exit",
        SessionCancel = "session/cancel",
        CancelRequest = "$/cancel_request",
        Initialize = "initialize",
        Authenticate = "authenticate",
        Logout = "logout",
        SessionNew = "session/new",
        SessionLoad = "session/load",
        SessionResume = "session/resume",
        SessionClose = "session/close",
        SessionDelete = "session/delete",
        SessionList = "session/list",
        SessionSetMode = "session/set_mode",
        SessionSetConfigOption = "session/set_config_option",
        ElicitationCreate = "elicitation/create",
        ElicitationComplete = "elicitation/complete",
        // A peer that really sends this method is counted with the other extensions.
        Extension = "_ext",
    }
}

words! {
    /// Why a turn ended.
    StopReason {
        EndTurn = "end_turn",
        Cancelled = "cancelled",
        MaxTokens = "max_tokens",
        MaxTurnRequests = "max_turn_requests",
        Refusal = "refusal",
    }
}

words! {
    /// What a tool does.
    ToolKind {
        Read = "read",
        Edit = "edit",
        Delete = "delete",
        Move = "move",
        Search = "search",
        Execute = "execute",
        Think = "think",
        Fetch = "fetch",
        SwitchMode = "switch_mode",
    }
}

words! {
    /// The status of a tool call.
    ToolStatus {
        Pending = "pending",
        InProgress = "in_progress",
        Completed = "completed",
        Failed = "failed",
    }
}

words! {
    /// A user's answer to a permission request.
    PermissionOutcome {
        Selected = "selected",
        Cancelled = "cancelled",
    }
}

impl Method {
    /// The method of that name, as it is spelled between its quotes.
    #[must_use]
    pub fn named(name: &[u8]) -> Self {
        match name.first() {
            Some(b'_') => Self::Extension,
            _ => Self::of(name),
        }
    }
}
