//! The catalogue of all metrics: name, type, labels with their values, and meaning of each; of a
//! histogram also the upper bounds of its buckets, in the metric's unit.
//!
//! A test makes the documentation from it and compares it with a live scrape.

use std::sync::Arc;

use metrics::{Counter, Gauge};

use super::buckets::Buckets;
use super::labels::{
    ATTACHED, AUTHENTICATED, AdminRefusal, CODES, Closing, DIRECTIONS, EXITS, FAULTS, FLOWS, KEPT,
    KINDS, LIMITS, OUTCOMES, PolicyEffect, RESULTS, RecordingResult, ReloadOutcome, SIDES, STARTS,
    SessionStart, TRANSLATED, Transport,
};
use super::metric::{Metric, Type};
use super::registry::{Family, Registry};
use auth::{CredentialKind, RejectReason};
use conversation::{Method, Note, PermissionOutcome, StopReason, TokenKind, ToolKind};

type Histogram = Arc<Buckets>;

/// Declares all metrics, and a struct of families for each group of them with a name. Labels
/// without a list of values are those of agents, and of metrics that are set by a scrape.
macro_rules! catalogue {
    (
        $($(#[$doc:meta])* $series:ident {
            $($field:ident: $kind:ident $name:literal
                [$($label:ident $(: $values:expr)?),*] $meaning:literal
                $([$($bound:literal),*])?;)*
        })*
        _ {
            $($set_kind:ident $set_name:literal
                [$($set_label:ident),*] $set_meaning:literal
                $([$($set_bound:literal),*])?;)*
        }
    ) => {
        /// All metrics.
        pub const CATALOGUE: &[Metric] = &[
            $($(Metric {
                name: $name,
                kind: Type::$kind,
                labels: &[$(stringify!($label)),*],
                meaning: $meaning,
                bounds: &[$($($bound),*)?],
            },)*)*
            $(Metric {
                name: $set_name,
                kind: Type::$set_kind,
                labels: &[$(stringify!($set_label)),*],
                meaning: $set_meaning,
                bounds: &[$($($set_bound),*)?],
            },)*
        ];

        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub(super) struct $series {
                $(pub(super) $field: Family<
                    $kind,
                    { <[&str]>::len(&[$($(stringify!($values),)?)*]) },
                >,)*
            }

            impl $series {
                /// `agent` is the value of the label of that name.
                pub(super) fn new(registry: &Arc<Registry>, agent: Option<&str>) -> Self {
                    Self {
                        $($field: Family::new(registry, $name, agent, [$($($values,)?)*]),)*
                    }
                }
            }
        )*
    };
}

catalogue! {
    /// Those of the process.
    ProcessSeries {
        connections: Counter "acp_relay_connections_total" [side: SIDES, transport: Transport::NAMES] "Connections that have carried a conversation.";
        connections_open: Gauge "acp_relay_connections_open" [side: SIDES, transport: Transport::NAMES] "Connections that carry a conversation now.";
        closed: Counter "acp_relay_connections_closed_total" [side: SIDES, transport: Transport::NAMES, reason: Closing::NAMES] "Connections that have ended, by what ended their conversation first: client_left, agent_exited, agent_left, stopped, unrecorded (--record-strict), panicked (a fault of the relay), expelled.";
        lasted: Histogram "acp_relay_connection_duration_seconds" [transport: Transport::NAMES] "Duration of conversations, by the transport of their client."
            [1., 10., 60., 300., 900., 3600., 14_400., 43_200., 86_400.];
        rejected: Counter "acp_relay_connections_rejected_total" [transport: Transport::NAMES, reason: RejectReason::NAMES] "Clients that were rejected before they had a conversation; over HTTP, their requests.";
        accept_errors: Counter "acp_relay_accept_errors_total" [transport: Transport::NAMES] "Clients that a listener could not accept, as when no descriptor is left.";
        admin_refused: Counter "acp_relay_admin_refused_total" [reason: AdminRefusal::NAMES] "Requests that the admin listener refused: from a foreign web page (page), or for recordings without their secret address (recordings).";
        attached: Counter "acp_relay_link_attach_total" [kind: KEPT, outcome: ATTACHED] "Connections of resumable links (link), and clients of --on-disconnect detach (detach): those that began a conversation (new), those that returned to theirs (resumed), and those of links that were refused, by the code of the refusal.";
        downtime: Histogram "acp_relay_link_downtime_seconds" [] "Time from the loss of a resumable link's connection to the next one; of links that did not return, nothing."
            [0.1, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 600., 1800., 3600., 14_400., 86_400.];
        attempts: Counter "acp_relay_auth_attempts_total" [method: CredentialKind::NAMES, outcome: AUTHENTICATED] "Attempts to authenticate: one per client on a byte stream, one per request over HTTP.";
        reloads: Counter "acp_relay_config_reload_total" [outcome: ReloadOutcome::NAMES] "Reloads of the configuration file; after an error the old configuration stays in use.";
        policy: Counter "acp_relay_policy_decisions_total" [method: Method::NAMES, outcome: PolicyEffect::NAMES] "Messages that the policy denied or adjusted: of remote agents, and of clients whose folders are not here.";
        messages: Counter "acp_relay_messages_total" [dir: DIRECTIONS, kind: KINDS, method: Method::NAMES] "Messages that were forwarded, after translation to ACP; an answer has its request's method.";
        sizes: Histogram "acp_relay_message_bytes" [dir: DIRECTIONS, kind: KINDS] "Size of forwarded messages."
            [256., 1024., 4096., 16_384., 65_536., 262_144., 1_048_576., 4_194_304., 16_777_216., 67_108_864.];
        bytes: Counter "acp_relay_bytes_total" [side: SIDES, transport: Transport::NAMES, flow: FLOWS] "Bytes of messages received from a side and sent to it, without their framing.";
        requests: Counter "acp_relay_requests_total" [dir: DIRECTIONS, method: Method::NAMES, outcome: OUTCOMES, code: CODES] "Requests that were answered; proxy_error is an answer of the relay itself.";
        durations: Histogram "acp_relay_request_duration_seconds" [dir: DIRECTIONS, method: Method::NAMES, outcome: OUTCOMES] "From a request to its peer's answer."
            [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 60., 600., 3600.];
        in_flight: Gauge "acp_relay_requests_in_flight" [dir: DIRECTIONS, method: Method::NAMES] "Requests that await their answer.";
        silent: Gauge "acp_relay_silent_requests" [dir: DIRECTIONS, method: Method::NAMES] "Requests that await the answer of a side that has sent nothing for long.";
        processing: Histogram "acp_relay_processing_duration_seconds" [dir: DIRECTIONS, translated: TRANSLATED] "Time from receiving a message until it is ready to be sent to the other side; messages that were read together count with their mean."
            [0.000_001, 0.000_002_5, 0.000_005, 0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.001, 0.005, 0.025, 0.1];
        permissions: Histogram "acp_relay_permission_wait_seconds" [outcome: PermissionOutcome::NAMES] "From session/request_permission to its answer."
            [0.1, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 600., 1800., 3600.];
        faults: Counter "acp_relay_parse_errors_total" [side: SIDES, reason: FAULTS] "Messages of a side that could not be forwarded as they were.";
        limits: Counter "acp_relay_limit_hits_total" [side: SIDES, reason: LIMITS] "Limits that a side has reached.";
        synthesised: Counter "acp_relay_synthesised_errors_total" [side: SIDES, code: CODES] "Requests of a side that the relay answered itself.";
        orphans: Counter "acp_relay_orphan_responses_total" [dir: DIRECTIONS] "Answers to no open request.";
        undeliverable: Counter "acp_relay_undeliverable_messages_total" [dir: DIRECTIONS] "Messages for a side that was gone.";
        notes: Counter "acp_relay_notes_total" [note: &Note::NAMES] "Events other than forwarded messages, by the name of the note; notes of the log about dialects are all counted as dialect.";
        pauses: Counter "acp_relay_pauses_total" [side: SIDES] "Pauses in reading a side that have ended.";
        recordings: Counter "acp_relay_recordings_total" [outcome: RecordingResult::NAMES] "Recordings: begun, finished (kept, or dropped because nothing went wrong), failed.";
    }

    /// Those of an agent.
    AgentSeries {
        starts: Counter "acp_relay_agent_spawns_total" [agent, outcome: STARTS] "Agents that were started or connected to, or could not be.";
        exits: Counter "acp_relay_agent_exits_total" [agent, how: EXITS] "Agents whose process has ended: clean (0), error, signal, or killed because it did not end when asked to.";
        stderr: Counter "acp_relay_agent_stderr_bytes_total" [agent] "Bytes that agents have written to stderr.";
        noise: Counter "acp_relay_agent_stdout_noise_lines_total" [agent] "Lines that agents printed and that are not JSON.";
        sessions: Counter "acp_relay_sessions_total" [agent, how: SessionStart::NAMES] "Sessions that were opened.";
        tool_calls: Counter "acp_relay_tool_calls_total" [agent, kind: ToolKind::NAMES] "Tool calls that agents announced.";
        tool_results: Counter "acp_relay_tool_call_results_total" [agent, status: RESULTS] "Tool calls that were completed or failed.";
        tokens: Counter "acp_relay_tokens_total" [agent, type: TokenKind::NAMES] "Tokens that agents reported at the end of a turn. Reports count as totals of their session, until one is less than the one before it; from then on the reports of that conversation are added.";
        start: Histogram "acp_relay_agent_start_seconds" [agent] "From starting or connecting to an agent to its answer to initialize."
            [0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60.];
        first_update: Histogram "acp_relay_time_to_first_update_seconds" [agent] "From session/prompt to the first session/update of that session."
            [0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120.];
        turns: Histogram "acp_relay_turn_duration_seconds" [agent, stop_reason: StopReason::NAMES] "From session/prompt to the end of the turn."
            [0.5, 1., 2.5, 5., 10., 30., 60., 120., 300., 600., 1800., 3600., 7200.];
        gaps: Histogram "acp_relay_update_gap_seconds" [agent] "Between two session/update of a turn; updates that are read together count as 0."
            [0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 120., 300.];
    }

    _ {
        Gauge "acp_relay_build_info" [version] "1; the labels name the build.";
        Gauge "acp_relay_draining" [] "1 once the relay was asked to end, 0 before.";
        Gauge "acp_relay_drain_duration_seconds" [] "Time since the relay was asked to end; 0 before.";
        Gauge "acp_relay_links" [state] "Links to clients, and resumable links to agents: attached; detached, whose peer is lost and may return (over a resumable link, or with --on-disconnect detach); draining, all of them once the relay was asked to end.";
        Gauge "acp_relay_link_unacked_bytes" [] "Bytes of messages that were sent over resumable links, or wait for a lost peer, and were not acknowledged.";
        Gauge "acp_relay_config_last_reload_success_timestamp_seconds" [] "Time of the last successful reload of the configuration file, in seconds since 1970; 0 before the first.";
        Gauge "acp_relay_cluster_hosts" [state] "Hosts that a gateway knows: those that take conversations (ready), and those that take no new ones (draining).";
        Counter "acp_relay_cluster_placements_total" [outcome] "Conversations that a gateway placed on a host (placed), answers of hosts that did not take one (refused), and conversations that no host took (none).";
        Gauge "acp_relay_cluster_carriers" [] "Connections between gateways and hosts over NATS that are open now.";
        Counter "acp_relay_cluster_renewals_failed_total" [] "Renewals of a host, or of its sessions, that NATS did not take.";
        Counter "acp_relay_cluster_refused_total" [] "Records, names of agents and addresses of hosts that a gateway did not use, at each time it looked.";
        Gauge "acp_relay_turns" [agent] "Turns in progress.";
        Gauge "acp_relay_sessions_open" [agent] "Sessions that were opened in open conversations, and not closed.";
        Gauge "acp_relay_context_used_ratio" [agent] "Used part of the context, by usage_update: the last report of each open conversation, the greatest of them.";
        Counter "acp_relay_translations_total" [dialect, rule, side] "Messages that a rule of a mapping table changed.";
        Counter "acp_relay_dialect_events_total" [dialect, event, side] "Events of the translators of dialects, by kind.";
        Counter "acp_relay_producer_paused_seconds_total" [side] "Time for which a side was not read because the other one, or the recorder, was behind; counted when the pause is over.";
        Gauge "acp_relay_buffer_bytes" [dir, where] "Bytes queued in the relay: for the slower side (outbox), for a client that may reconnect (return), for the disk (recorder).";
        Gauge "acp_relay_buffer_limit_bytes" [dir, where] "Limit of acp_relay_buffer_bytes, for all open conversations.";
        Gauge "acp_relay_agents" [agent] "Agents that serve a conversation now.";
        Counter "acp_relay_recording_bytes_total" [] "Bytes that recorders have written, before compression.";
        Counter "acp_relay_recording_events_total" [] "Events that recorders have written: frames, notes, lines of stderr.";
        Counter "acp_relay_recording_dropped_total" [] "Events that are not recorded, because the writer was behind (--record-policy lossy) or could not write.";
        Histogram "acp_relay_recording_write_seconds" [] "Duration of writes of recordings to the file system, without a sync to the disk."
            [0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.];
        Counter "acp_relay_recordings_pruned_total" [reason] "Recordings that were deleted: nothing was written to them for too long (age, --record-max-age), or all together were too large (total, --record-max-total).";
        Counter "acp_relay_redactions_total" [rule] "Values redacted in recordings, by the rule: the name of their place, a pointer of the user, their shape, or because they are text.";
        Counter "acp_relay_trace_spans_total" [outcome] "Spans that a collector accepted (exported) or not (failed), and those dropped because the queue was full (dropped).";
        Counter "acp_relay_panics_total" [place] "Panics, which are faults of the relay, by what each of them ended: a conversation, a connection or request of a client (connection), a recording, a request of the viewer or of the admin listener. The log has the place in the source.";
        Counter "acp_relay_log_lines_lost_total" [reason] "Lines missing in the log: there were too many (flood), or stderr was not read in time (unread).";
        Gauge "process_start_time_seconds" [] "When the relay was started, in seconds since 1970.";
        Gauge "process_resident_memory_bytes" [] "Resident memory of the relay, without its agents. Linux only.";
        Counter "process_cpu_seconds_total" [] "Processor time of the relay.";
        Gauge "process_open_fds" [] "Open descriptors of the relay. Linux only.";
        Gauge "process_max_fds" [] "Limit of open descriptors.";
        Gauge "process_threads" [] "Threads of the relay. Linux only.";
        Gauge "acp_relay_tokio_workers" [runtime] "Worker threads of the tokio runtime: the main one, and those for clients.";
        Gauge "acp_relay_tokio_alive_tasks" [runtime] "Tasks of the runtime that have begun and not ended.";
        Gauge "acp_relay_tokio_global_queue_depth" [runtime] "Tasks in the runtime's global queue.";
        Counter "acp_relay_tokio_busy_seconds_total" [runtime] "Busy time of the runtime's worker threads.";
    }
}

impl Buckets {
    /// A series without labels; `name` is without its prefix.
    pub(crate) fn single(name: &str) -> Self {
        Self::new(Metric::named(CATALOGUE, name), &[])
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::size_bucket;
    use super::*;

    #[test]
    fn a_size_is_in_the_first_bucket_whose_bound_it_does_not_exceed() {
        let sizes = Metric::named(CATALOGUE, "message_bytes").bounds;
        for bytes in (0..28).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
            #[expect(clippy::cast_precision_loss, reason = "it is small")]
            let expected = sizes.partition_point(|bound| *bound < bytes as f64);
            assert_eq!(size_bucket(bytes), expected, "{bytes}");
        }
        assert_eq!(size_bucket(usize::MAX), sizes.len());
    }
}
