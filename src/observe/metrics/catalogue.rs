//! The catalogue of all metrics: name, type, labels and meaning of each.
//!
//! A test makes the documentation from it and compares it with a live scrape. The values of labels
//! are in `labels` and in `conversation::Method` and its like, the buckets of histograms in `buckets`.

use metrics::{Key, Label};

/// What the names of the relay's own metrics begin with.
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

/// The type of a metric.
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
    Gauge "acp_relay_draining" [] "1 once the relay was asked to end, 0 before."
    Gauge "acp_relay_drain_duration_seconds" [] "For how long it has been ending; 0 before."
    Gauge "acp_relay_connections_open" ["side" "transport"] "Connections that carry a conversation now."
    Counter "acp_relay_connections_total" ["side" "transport"] "Connections that have carried a conversation."
    Counter "acp_relay_connections_closed_total" ["side" "transport" "reason"] "Those that are over, by what ended their conversation first: client_left, agent_exited, agent_left, stopped, unrecorded (--record-strict), expelled."
    Histogram "acp_relay_connection_duration_seconds" ["transport"] "How long conversations lasted, by their client's transport."
    Counter "acp_relay_connections_rejected_total" ["transport" "reason"] "Clients that were turned away before they had a conversation; over HTTP, their requests."
    Counter "acp_relay_accept_errors_total" ["transport"] "Times that a listener could not take a client, as when there is no descriptor left."
    Counter "acp_relay_admin_refused_total" ["reason"] "Requests that the admin listener did not answer: those of a web page of others, and those for recordings without their address."
    Gauge "acp_relay_links" ["state"] "Links to clients: attached; detached, whose client is away and waited for (--on-disconnect detach); draining, all of them once the relay was asked to end."
    Counter "acp_relay_link_attach_total" ["outcome"] "Clients that could come back: those that began a conversation (new), and those that came back to theirs (resumed)."
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
    Histogram "acp_relay_update_gap_seconds" ["agent"] "Between two session/update of a turn; what is read at once has no time between."
    Histogram "acp_relay_permission_wait_seconds" ["outcome"] "From session/request_permission to its answer."
    Gauge "acp_relay_sessions_open" ["agent"] "Sessions opened in conversations that go on, and not closed."
    Counter "acp_relay_sessions_total" ["agent" "how"] "Sessions that were opened."
    Counter "acp_relay_tool_calls_total" ["agent" "kind"] "Tool calls that agents announced."
    Counter "acp_relay_tool_call_results_total" ["agent" "status"] "Tool calls that were completed or failed."
    Counter "acp_relay_tokens_total" ["agent" "type"] "Tokens that agents reported with the end of a turn. Reports are taken for totals of their session, until one is less than the one before it."
    Gauge "acp_relay_context_used_ratio" ["agent"] "How full the context is, by usage_update: the fullest of the conversations that go on, each as it was told last."
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
    Gauge "acp_relay_buffer_bytes" ["dir" "where"] "What waits in the relay: for the slower side (outbox), for a client that may come back (return), for the disk (recorder)."
    Gauge "acp_relay_buffer_limit_bytes" ["dir" "where"] "How much may wait there, in all conversations that go on."
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
    Histogram "acp_relay_recording_write_seconds" [] "How long the system took to take lines of recordings; nobody waits for them to be on the disk."
    Counter "acp_relay_recordings_pruned_total" ["reason"] "Recordings that were deleted: nothing was written to them for too long (age, --record-max-age), or all together were too large (total, --record-max-total)."
    Counter "acp_relay_redactions_total" ["rule"] "What was kept out of recordings, and why: its place, a pointer of the user, its shape, that it is text."
    Counter "acp_relay_trace_spans_total" ["outcome"] "Spans that a collector took (exported) or did not (failed), and those that were left out because too many waited (dropped)."
    Counter "acp_relay_log_lines_lost_total" ["reason"] "Lines that are missing in the log: there were too many (flood), or nobody read them in time (unread)."
    Gauge "process_start_time_seconds" [] "When the relay was started, in seconds since 1970."
    Gauge "process_resident_memory_bytes" [] "Memory that the relay occupies; its agents not included. Linux only."
    Counter "process_cpu_seconds_total" [] "Time that the relay has computed."
    Gauge "process_open_fds" [] "Files and sockets that the relay has open. Linux only."
    Gauge "process_max_fds" [] "How many it may have."
    Gauge "process_threads" [] "Its threads. Linux only."
    Gauge "acp_relay_tokio_workers" ["runtime"] "Threads that run tasks: the main one, and those for clients."
    Gauge "acp_relay_tokio_alive_tasks" ["runtime"] "Tasks that have begun and not ended."
    Gauge "acp_relay_tokio_global_queue_depth" ["runtime"] "Tasks that were handed to them and not taken up."
    Counter "acp_relay_tokio_busy_seconds_total" ["runtime"] "Time for which they have worked."
}

impl Type {
    /// Its name in the text format.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// The metric of that name, without the prefix.
    pub(super) fn named(name: &str) -> &'static Self {
        CATALOGUE
            .iter()
            .find(|metric| metric.name.strip_prefix(PREFIX).unwrap_or(metric.name) == name)
            .expect("every metric is in the catalogue")
    }

    /// The identity of a series, with these values of the labels.
    pub(super) fn key(&self, labels: &[&str]) -> Key {
        debug_assert_eq!(self.labels.len(), labels.len(), "{}", self.name);
        let labels = self.labels.iter().zip(labels);
        let labels = labels.map(|(name, value)| Label::new(*name, (*value).to_owned()));
        Key::from_parts(self.name, labels.collect::<Vec<_>>())
    }
}
