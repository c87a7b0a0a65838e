//! Every metric there is: its name, its type, its labels, and what it means.
//!
//! The documentation is made from this list, and a test holds it against what a run shows, both
//! ways. Not here: the values of labels (see `words`, `core::Method` and its like).

use std::fmt::Write as _;

/// What all names begin with.
pub const PREFIX: &str = "acp_relay_";

/// A metric, or rather a family of series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, as scraped.
    pub name: &'static str,
    /// What it is.
    pub kind: Type,
    /// The names of its labels, in their order.
    pub labels: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often something was how large.
    Histogram,
}

macro_rules! catalogue {
    ($($kind:ident $name:literal [$($label:literal)*] $meaning:literal)*) => {
        /// All metrics.
        pub const CATALOGUE: &[Metric] = &[$(Metric {
            name: $name,
            kind: Type::$kind,
            labels: &[$($label),*],
            meaning: $meaning,
        },)*];
    };
}

catalogue! {
    Gauge "acp_relay_build_info" ["version"] "1; which build this is."
    Gauge "acp_relay_start_time_seconds" [] "When the relay was started, in seconds since 1970."
    Gauge "acp_relay_draining" [] "1 once the relay was asked to end, 0 before."
    Gauge "acp_relay_connections_open" ["side" "transport"] "Connections that carry a conversation now."
    Counter "acp_relay_connections_total" ["side" "transport"] "Connections that have carried a conversation."
    Counter "acp_relay_connections_closed_total" ["side" "transport" "reason"] "Those that are over, by what ended their conversation first."
    Histogram "acp_relay_connection_duration_seconds" ["transport"] "How long conversations lasted, by their client's transport."
    Counter "acp_relay_connections_rejected_total" ["transport" "reason"] "Clients that were turned away before they had a conversation; over HTTP, their requests."
    Counter "acp_relay_auth_attempts_total" ["method" "outcome"] "Claims that were judged: each client on a byte stream, each request over HTTP."
    Counter "acp_relay_policy_decisions_total" ["method" "outcome"] "Messages that the border between two machines denied or adjusted; those it let pass are among the messages."
    Counter "acp_relay_config_reload_total" ["outcome"] "Times that the configuration file was to be read again; error left all as it was."
    Gauge "acp_relay_config_last_reload_success_timestamp_seconds" [] "When that last succeeded, in seconds since 1970; 0 while it never did."
    Counter "acp_relay_messages_total" ["dir" "kind" "method"] "Messages that were passed on, in ACP's words; an answer has its request's method."
    Histogram "acp_relay_message_bytes" ["dir" "kind"] "How long those messages were."
    Counter "acp_relay_bytes_total" ["side" "transport" "flow"] "Bytes of messages received from a side and sent to it, without their framing."
    Counter "acp_relay_requests_total" ["dir" "method" "outcome" "code"] "Requests that were answered; proxy_error is an answer of the relay itself."
    Histogram "acp_relay_request_duration_seconds" ["dir" "method" "outcome"] "From a request to its peer's answer."
    Gauge "acp_relay_requests_in_flight" ["dir" "method"] "Requests that await their answer."
    Histogram "acp_relay_turn_duration_seconds" ["agent" "stop_reason"] "From session/prompt to the end of the turn."
    Histogram "acp_relay_processing_duration_seconds" ["dir" "translated"] "Time that the relay itself took over a message, from having heard it to having it ready for the other side; the mean of those that were read at once."
    Gauge "acp_relay_turns" ["agent"] "Turns that go on now."
    Histogram "acp_relay_time_to_first_update_seconds" ["agent"] "From session/prompt to the first session/update of that session."
    Histogram "acp_relay_permission_wait_seconds" ["outcome"] "From session/request_permission to its answer."
    Gauge "acp_relay_sessions_open" ["agent"] "Sessions opened in conversations that go on, and not closed."
    Counter "acp_relay_sessions_total" ["agent" "how"] "Sessions that were opened."
    Counter "acp_relay_tool_calls_total" ["agent" "kind"] "Tool calls that agents announced."
    Counter "acp_relay_tool_call_results_total" ["agent" "status"] "Tool calls that were completed or failed."
    Counter "acp_relay_translations_total" ["dialect" "rule" "side"] "Messages that a rule of a mapping table changed."
    Counter "acp_relay_dialect_events_total" ["dialect" "event" "side"] "What translators left out, held, answered, repaired, could not place or did not know."
    Counter "acp_relay_parse_errors_total" ["side" "reason"] "Messages of a side that could not be passed on as they were."
    Counter "acp_relay_limit_hits_total" ["side" "reason"] "Bounds that a side ran into."
    Counter "acp_relay_synthesised_errors_total" ["side" "code"] "Requests of a side that the relay answered itself."
    Counter "acp_relay_orphan_responses_total" ["dir"] "Answers that nobody waited for."
    Counter "acp_relay_undeliverable_messages_total" ["dir"] "Messages for a side that was gone."
    Counter "acp_relay_notes_total" ["note"] "Everything that is not simply a message passed on, under its name in the log."
    Counter "acp_relay_producer_paused_seconds_total" ["side"] "Time for which a side was not read because the other one, or the recorder, was behind; counted when the pause is over."
    Counter "acp_relay_pauses_total" ["side"] "Such pauses that are over."
    Gauge "acp_relay_agents" ["agent"] "Agents that serve a conversation now."
    Counter "acp_relay_agent_spawns_total" ["agent" "outcome"] "Agents that were started or connected to, or could not be."
    Counter "acp_relay_agent_exits_total" ["agent" "how"] "Agents whose process has ended: clean (0), error, signal, or killed because it did not end when told."
    Histogram "acp_relay_agent_start_seconds" ["agent"] "From starting or connecting to an agent to its answer to initialize."
    Counter "acp_relay_agent_stderr_bytes_total" ["agent"] "What agents wrote to stderr."
    Counter "acp_relay_agent_stdout_noise_lines_total" ["agent"] "Lines that agents printed and that are not JSON."
    Counter "acp_relay_recordings_total" ["outcome"] "Recordings: begun, finished (kept, or dropped because nothing went wrong), failed."
    Counter "acp_relay_recording_bytes_total" [] "Bytes that recorders have written, before they are packed."
    Counter "acp_relay_recording_events_total" [] "Events that recorders have written: frames, notes, lines of stderr."
    Counter "acp_relay_recording_dropped_total" [] "Events that are not recorded, because the writer was behind (--record-policy lossy) or could not write."
    Counter "acp_relay_trace_spans_total" ["outcome"] "Spans that a collector took (exported) or did not (failed), and those that were left out because too many waited (dropped)."
    Gauge "acp_relay_process_resident_memory_bytes" [] "Memory that the relay occupies; its agents not included. Linux only."
    Counter "acp_relay_process_cpu_seconds_total" [] "Time that the relay has computed."
    Gauge "acp_relay_process_open_fds" [] "Files and sockets that the relay has open. Linux only."
    Gauge "acp_relay_process_max_fds" [] "How many it may have."
    Gauge "acp_relay_process_threads" [] "Its threads. Linux only."
}

impl Metric {
    /// The metric of that name, without the prefix.
    pub(super) fn named(name: &str) -> &'static Self {
        CATALOGUE
            .iter()
            .find(|metric| metric.name.strip_prefix(PREFIX) == Some(name))
            .expect("every metric is in the catalogue")
    }

    /// The page of the documentation that lists all metrics.
    #[must_use]
    pub fn page() -> String {
        let mut page = String::from(
            "# Metrics\n\nMade from `src/tap/metrics/catalogue.rs`; a test holds the two together.\n\n\
             | name | type | labels | meaning |\n|---|---|---|---|\n",
        );
        for metric in CATALOGUE {
            let labels: Vec<_> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let kind = match metric.kind {
                Type::Counter => "counter",
                Type::Gauge => "gauge",
                Type::Histogram => "histogram",
            };
            // Writing to a string does not fail.
            let _ = writeln!(
                page,
                "| `{}` | {kind} | {} | {} |",
                metric.name,
                labels.join(", "),
                metric.meaning
            );
        }
        page
    }
}
