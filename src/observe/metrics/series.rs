//! The families of series whose labels have closed lists of values.

use std::sync::Arc;

use metrics::{Counter, Gauge};

use super::buckets;
use super::labels::{
    AdminRefusal, AttachKind, AuthOutcome, CODES, Closing, CredentialLabel, DIRECTIONS, EXITS,
    FAULTS, FLOWS, HOW, KINDS, LIMITS, OUTCOMES, PolicyEffect, RESULTS, RecordingResult, Rejection,
    ReloadOutcome, SIDES, STARTS, TOKENS, TRANSLATED, Transport,
};
use super::registry::{Family, Registry};
use crate::conversation::{Method, Note, PermissionOutcome, StopReason, ToolKind};

type Buckets = Arc<buckets::Buckets>;

/// Declares a struct of families, each with its handle, its name and the values of its labels.
macro_rules! families {
    ($(#[$doc:meta])* $name:ident {
        $($field:ident: $handle:ident $metric:literal [$($values:expr),*];)*
    }) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name {
            $(pub(super) $field: Family<$handle, { <[&str]>::len(&[$(stringify!($values)),*]) }>,)*
        }

        impl $name {
            /// The name of the agent comes before the other labels, where there is one.
            pub(super) fn new(registry: &Arc<Registry>, agent: Option<&str>) -> Self {
                Self {
                    $($field: Family::new(registry, $metric, agent, [$($values),*]),)*
                }
            }
        }
    };
}

families! {
    /// Those of the process.
    ProcessSeries {
        connections: Counter "connections_total" [SIDES, Transport::NAMES];
        connections_open: Gauge "connections_open" [SIDES, Transport::NAMES];
        closed: Counter "connections_closed_total" [SIDES, Transport::NAMES, Closing::NAMES];
        lasted: Buckets "connection_duration_seconds" [Transport::NAMES];
        rejected: Counter "connections_rejected_total" [Transport::NAMES, Rejection::NAMES];
        accept_errors: Counter "accept_errors_total" [Transport::NAMES];
        admin_refused: Counter "admin_refused_total" [AdminRefusal::NAMES];
        attached: Counter "link_attach_total" [AttachKind::NAMES];
        attempts: Counter "auth_attempts_total" [CredentialLabel::NAMES, AuthOutcome::NAMES];
        reloads: Counter "config_reload_total" [ReloadOutcome::NAMES];
        policy: Counter "policy_decisions_total" [Method::NAMES, PolicyEffect::NAMES];
        messages: Counter "messages_total" [DIRECTIONS, KINDS, Method::NAMES];
        sizes: Buckets "message_bytes" [DIRECTIONS, KINDS];
        bytes: Counter "bytes_total" [SIDES, Transport::NAMES, FLOWS];
        requests: Counter "requests_total" [DIRECTIONS, Method::NAMES, OUTCOMES, CODES];
        durations: Buckets "request_duration_seconds" [DIRECTIONS, Method::NAMES, OUTCOMES];
        in_flight: Gauge "requests_in_flight" [DIRECTIONS, Method::NAMES];
        processing: Buckets "processing_duration_seconds" [DIRECTIONS, TRANSLATED];
        permissions: Buckets "permission_wait_seconds" [PermissionOutcome::NAMES];
        faults: Counter "parse_errors_total" [SIDES, FAULTS];
        limits: Counter "limit_hits_total" [SIDES, LIMITS];
        synthesised: Counter "synthesised_errors_total" [SIDES, CODES];
        orphans: Counter "orphan_responses_total" [DIRECTIONS];
        undeliverable: Counter "undeliverable_messages_total" [DIRECTIONS];
        notes: Counter "notes_total" [&Note::NAMES];
        pauses: Counter "pauses_total" [SIDES];
        recordings: Counter "recordings_total" [RecordingResult::NAMES];
    }
}

families! {
    /// Those of an agent.
    AgentSeries {
        starts: Counter "agent_spawns_total" [STARTS];
        exits: Counter "agent_exits_total" [EXITS];
        stderr: Counter "agent_stderr_bytes_total" [];
        noise: Counter "agent_stdout_noise_lines_total" [];
        sessions: Counter "sessions_total" [HOW];
        tool_calls: Counter "tool_calls_total" [ToolKind::NAMES];
        tool_results: Counter "tool_call_results_total" [RESULTS];
        tokens: Counter "tokens_total" [TOKENS];
        start: Buckets "agent_start_seconds" [];
        first_update: Buckets "time_to_first_update_seconds" [];
        turns: Buckets "turn_duration_seconds" [StopReason::NAMES];
        gaps: Buckets "update_gap_seconds" [];
    }
}
