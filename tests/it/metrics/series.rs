//! Counting: the list of metrics against a live scrape, both ways, and no series named by a peer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_relay::conversation::{Cause, DialectEvent, FiredRule, Method, Note};
use acp_relay::jsonrpc::Side;
use acp_relay::link::{Attach, LinkEvents as _, RefusalCode};
use acp_relay::observe::metrics::{
    AdminRefusal, CATALOGUE, ConversationMetrics, GaugeSource, Metrics, Parties, ReloadOutcome,
    RuntimeStats, Transport, Type,
};
use acp_relay::observe::traces::SpanSender;
use acp_relay::observe::{Event, Observer as _};

use super::stage::{ALLOW, Observed, Relay, Scrape};

/// Metrics of events that [`Relay`] and its client do not cause.
pub(crate) const RARE: [&str; 21] = [
    "acp_relay_connections_closed_total",
    "acp_relay_connection_duration_seconds",
    "acp_relay_accept_errors_total",
    "acp_relay_admin_refused_total",
    "acp_relay_link_attach_total",
    "acp_relay_link_downtime_seconds",
    "acp_relay_log_lines_lost_total",
    "acp_relay_panics_total",
    "acp_relay_translations_total",
    "acp_relay_dialect_events_total",
    "acp_relay_undeliverable_messages_total",
    "acp_relay_producer_paused_seconds_total",
    "acp_relay_pauses_total",
    "acp_relay_policy_decisions_total",
    "acp_relay_config_reload_total",
    "acp_relay_trace_spans_total",
    "acp_relay_silent_requests",
    // Only with the feature `cluster`.
    "acp_relay_cluster_hosts",
    "acp_relay_cluster_placements_total",
    "acp_relay_cluster_carriers",
    "acp_relay_cluster_renewals_failed_total",
];

#[test]
fn a_live_scrape_matches_the_list_of_metrics() {
    let relay = Relay::start(&["--record", "tapes", "--limit", "connections=1"]);
    let mut client = relay.client();
    client.live();
    let mut second = relay.client();
    second.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
    second.receive_until("-32053");
    client.send(r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s-1","password":"C4nary0"}}"#);
    client.receive_until("request_permission");
    let during = relay.scrape();
    assert_eq!(during.value("acp_relay_turns", &[]), 1.);
    assert_eq!(
        during.value("acp_relay_requests_in_flight", &[("dir", "to_agent")]),
        1.
    );
    assert_eq!(during.value("acp_relay_context_used_ratio", &[]), 0.5);
    // Recorders write with a delay.
    relay.scrape_until("acp_relay_redactions_total");
    client.send(ALLOW);
    client.receive_until("end_turn");
    client.send(r#"{"jsonrpc":"2.0","id":8,"method":"die"}"#);
    client.receive_until("error");
    let scrape = relay.scrape_until("acp_relay_agent_exits_total");

    let listed: BTreeSet<_> = CATALOGUE
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    for (name, kind) in scrape.types.iter().chain(&during.types) {
        let metric = CATALOGUE.iter().find(|metric| metric.name == name);
        let metric = metric.unwrap_or_else(|| panic!("{name} is not in the catalogue"));
        assert_eq!(format!("{:?}", metric.kind).to_lowercase(), *kind, "{name}");
    }
    let mut shown = scrape.families();
    // A closed conversation has no context.
    shown.extend(during.families());
    let rare: BTreeSet<_> = RARE.map(str::to_owned).into();
    let missing: Vec<_> = listed
        .difference(&shown)
        .filter(|name| !rare.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:?} show nothing");
    for (name, samples) in &scrape.samples {
        let family = scrape.family(name);
        let metric = CATALOGUE
            .iter()
            .find(|metric| metric.name == family)
            .unwrap();
        let mut labels: BTreeSet<_> = metric.labels.iter().copied().collect();
        if name.ends_with("_bucket") {
            labels.insert("le");
        }
        for (own, _) in samples {
            assert_eq!(labels, own.keys().map(String::as_str).collect(), "{name}");
        }
    }

    let of =
        |name: &str, labels: &[(&str, &str)]| scrape.value(&format!("acp_relay_{name}"), labels);
    // Four updates in each of two turns; the same report of tokens twice is a total that has not
    // grown.
    scrape.check(
        "messages_total{kind=notification,method=session/update} 8
        update_gap_seconds_count{agent=default} 6
        tokens_total{type=input} 100
        tokens_total{type=output} 20
        redactions_total{rule=place} 1
        requests_total{method=_ext,outcome=error,code=-32601} 1
        requests_total{outcome=proxy_error} 1
        turn_duration_seconds_count{stop_reason=end_turn} 2
        time_to_first_update_seconds_count{agent=default} 2
        tool_calls_total{kind=edit} 2
        tool_call_results_total{status=completed} 2
        sessions_total{how=new} 1
        permission_wait_seconds_count{outcome=selected} 2
        agent_exits_total{how=error} 1
        agent_stderr_bytes_total 5
        agent_stdout_noise_lines_total 1
        parse_errors_total{side=client} 2
        limit_hits_total{reason=nesting} 1
        connections_rejected_total{reason=limit,transport=tcp} 1",
    );
    assert!(of("tokio_workers", &[("runtime", "clients")]) >= 2.);
    assert!(of("tokio_busy_seconds_total", &[("runtime", "clients")]) > 0.);
    let mine = [("method", "peercred"), ("outcome", "ok")];
    // The system does not know the user of a socket that is closed by then.
    assert!(of("auth_attempts_total", &mine) >= 1.);
    let worked = of("processing_duration_seconds_count", &[("dir", "to_client")]);
    assert!(worked >= 9., "{worked} messages of the agent");
    // Recorders write with a delay.
    let scrape = relay.scrape_when("ten events", |scrape| {
        scrape.value("acp_relay_recording_events_total", &[]) >= 10.
    });
    let recorded = scrape.value("acp_relay_recording_bytes_total", &[]);
    assert!(recorded > 1000., "{recorded} bytes of recordings");
}

#[test]
fn no_counter_and_gauge_share_a_name() {
    let names: BTreeSet<_> = CATALOGUE.iter().map(|metric| metric.name).collect();
    assert_eq!(names.len(), CATALOGUE.len());
    for metric in CATALOGUE {
        let family = metric.name.strip_suffix("_total");
        assert_eq!(
            family.is_some(),
            metric.kind == Type::Counter,
            "{}",
            metric.name
        );
        assert!(
            !family.is_some_and(|family| names.contains(family)),
            "{}",
            metric.name
        );
    }
}

/// A conversation without links, counted.
pub(super) struct Counted {
    conversation: Observed<ConversationMetrics>,
    pub(super) metrics: Arc<Metrics>,
}

impl Counted {
    pub(super) fn new() -> Self {
        Self::of(&Arc::new(Metrics::new("test", Instant::now())))
    }

    fn of(metrics: &Arc<Metrics>) -> Self {
        let observer = metrics.begin(Parties {
            client: "test".to_owned(),
            transports: [Transport::Tcp, Transport::Process],
            agent: metrics.agent("test"),
            since: Instant::now(),
            room: 1 << 20,
        });
        Self {
            conversation: Observed::new(observer, None),
            metrics: Arc::clone(metrics),
        }
    }

    pub(super) fn send(&mut self, from: Side, text: String) {
        self.send_at(from, text, Instant::now());
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers make the message in place"
    )]
    pub(super) fn send_at(&mut self, from: Side, text: String, now: Instant) {
        self.conversation.send(from, &text, now);
    }

    fn series(&self) -> usize {
        self.metrics
            .scrape(Instant::now())
            .lines()
            .filter(|line| !line.starts_with('#'))
            .count()
    }
}

#[test]
fn ten_thousand_methods_of_a_peer_add_no_series() {
    let mut counted = Counted::new();
    let mut number = 0_u64;
    let mut play = |counted: &mut Counted, times: usize| {
        for at in 0..times {
            number = number
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let name = format!("{}{number:x}/x", ["", "_", "session/"][at % 3]);
            counted.send(
                Side::Client,
                format!(
                    r#"{{"jsonrpc":"2.0","method":"{name}","params":{{"sessionId":"{number}"}}}}"#
                ),
            );
            counted.send(
                Side::Client,
                format!(r#"{{"jsonrpc":"2.0","id":{at},"method":"{name}"}}"#),
            );
            counted.send(
                Side::Agent,
                format!(r#"{{"jsonrpc":"2.0","id":{at},"error":{{"code":-{at},"message":""}}}}"#),
            );
        }
    };
    // The first of them add `other` and `_ext`, with and without the code `other`, and the buckets
    // of their durations.
    play(&mut counted, 6);
    let before = counted.series();
    play(&mut counted, 10_000);
    assert_eq!(counted.series(), before);
}

/// A program whose log has no reader.
#[derive(Debug)]
struct Noisy;

impl GaugeSource for Noisy {
    fn runtimes(&self) -> Vec<RuntimeStats> {
        vec![RuntimeStats {
            name: "main",
            tasks: 5,
            ..RuntimeStats::default()
        }]
    }

    fn lost_lines(&self) -> [u64; 2] {
        [0, 3]
    }

    fn cluster(&self) -> Vec<(&'static str, Option<&'static str>, u64)> {
        vec![
            ("cluster_carriers", None, 4),
            ("cluster_hosts", Some("ready"), 2),
            ("cluster_placements_total", Some("none"), 1),
            ("cluster_renewals_failed_total", None, 7),
        ]
    }
}

#[test]
fn rare_events_are_counted_and_stay_after_a_conversation() {
    let mut counted = Counted::new();
    counted.send(
        Side::Client,
        r#"{"jsonrpc":"2.0","method":"session/cancel"}"#.to_owned(),
    );
    let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt"}"#;
    counted.send(Side::Client, prompt.to_owned());
    let later = Instant::now() + Duration::from_secs(300);
    counted.conversation.wait(Side::Client, later);
    let Counted {
        conversation,
        metrics,
    } = counted;
    let mut observer = conversation.observer;
    let rules = vec![FiredRule {
        dialect: "legacy".into(),
        rule: "turn".into(),
    }]
    .into();
    for note in [
        Note::Translated {
            side: Side::Agent,
            method: "session/prompt".into(),
            rules,
        },
        Note::Dialect {
            side: Side::Agent,
            what: DialectEvent::Dropped,
            dialect: "legacy".to_owned(),
            rule: None,
            detail: String::new(),
        },
        Note::Undeliverable { to: Side::Agent },
        Note::Denied {
            from: Side::Agent,
            method: "terminal/create".to_owned(),
            why: String::new(),
        },
    ] {
        observer.on_event(&Event::Note(&note));
    }
    observer.on_event(&Event::Paused(Side::Agent, Duration::from_millis(1500)));
    observer.on_event(&Event::Ended(&Cause::AgentLeft, Instant::now()));
    drop(observer);
    metrics.config_reload(ReloadOutcome::Refused);
    let (sender, _spans) = SpanSender::new(1);
    sender.stats().add_export(3, false);
    metrics.set_spans(sender.stats());
    metrics.accept_failed(Transport::Tcp);
    metrics.admin_refused(AdminRefusal::Page);
    metrics.attached(true);
    for how in [
        Attach::New,
        Attach::Resumed(Duration::from_secs(3)),
        Attach::Refused(RefusalCode::UnknownLink),
    ] {
        metrics.on_attach(how);
    }
    metrics.set_program(Arc::new(Noisy));
    let scrape = Scrape::read(&metrics.scrape(Instant::now()));
    for name in RARE {
        assert!(scrape.families().contains(name), "{name}");
    }
    scrape.check(
        "translations_total{dialect=legacy,rule=turn,side=agent} 1
        producer_paused_seconds_total{side=agent} 1.5
        connections_closed_total{reason=agent_left} 2
        policy_decisions_total{method=terminal/create,outcome=denied} 1
        config_reload_total{outcome=error} 1
        trace_spans_total{outcome=failed} 3
        accept_errors_total{transport=tcp} 1
        admin_refused_total{reason=page} 1
        link_attach_total{kind=detach,outcome=resumed} 1
        link_attach_total{kind=link,outcome=resumed} 1
        link_attach_total{kind=link,outcome=new} 1
        link_attach_total{kind=link,outcome=refused_unknown_link} 1
        link_downtime_seconds_sum 3
        link_downtime_seconds_bucket{le=2.5} 0
        log_lines_lost_total{reason=unread} 3
        tokio_alive_tasks{runtime=main} 5
        cluster_carriers 4
        cluster_hosts{state=ready} 2
        cluster_placements_total{outcome=none} 1
        cluster_renewals_failed_total 7
        connections_open 0
        messages_total{method=session/cancel,dir=to_agent} 1",
    );
}

#[test]
fn every_refusal_of_a_link_is_counted_by_its_code() {
    for code in [
        RefusalCode::Auth,
        RefusalCode::UnknownLink,
        RefusalCode::EpochChanged,
        RefusalCode::Gap,
        RefusalCode::Busy,
        RefusalCode::Version,
        RefusalCode::Draining,
        RefusalCode::Limit,
        RefusalCode::Other,
    ] {
        let metrics = Metrics::new("test", Instant::now());
        metrics.on_attach(Attach::Refused(code));
        let name = serde_json::to_value(code).unwrap();
        let name = format!("refused_{}", name.as_str().unwrap());
        let scrape = Scrape::read(&metrics.scrape(Instant::now()));
        let labels = [("kind", "link"), ("outcome", &*name)];
        let count = scrape.value("acp_relay_link_attach_total", &labels);
        assert_eq!(count, 1., "{name}");
    }
}

#[test]
fn a_silent_request_and_a_turn_that_the_relay_ends_are_seen() {
    let mut counted = Counted::new();
    let gauges = |counted: &Counted| {
        let scrape = Scrape::read(&counted.metrics.scrape(Instant::now()));
        let silent = scrape.value("acp_relay_silent_requests", &[]);
        let method = [("method", "session/prompt")];
        let open = scrape.value("acp_relay_requests_in_flight", &method);
        [silent, open, scrape.value("acp_relay_turns", &[])]
    };
    let begin = Instant::now();
    let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s"}}"#;
    counted.send_at(Side::Client, prompt.to_owned(), begin);
    let after = |seconds| begin + Duration::from_secs(seconds);
    counted.conversation.wait(Side::Client, after(299));
    assert_eq!(gauges(&counted), [0., 1., 1.]);
    counted.conversation.wait(Side::Client, after(300));
    assert_eq!(gauges(&counted), [1., 1., 1.]);
    let open = counted.metrics.open(after(300));
    let silent = (Side::Agent, Method::SessionPrompt, Duration::from_secs(300));
    assert_eq!(open[0].silent, [silent]);
    let cancel = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    counted.send_at(Side::Client, cancel.to_owned(), after(301));
    let ended = counted.conversation.wait(Side::Client, after(331));
    assert!(ended.concat().contains("cancelled"), "{ended:?}");
    assert_eq!(gauges(&counted), [0., 0., 0.]);
}

#[test]
fn gauges_of_conversations_are_right_when_one_ends() {
    let metrics = Arc::new(Metrics::new("test", Instant::now()));
    let [first, second] = [(); 2].map(|()| {
        let mut counted = Counted::of(&metrics);
        let ask = |id, method| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"sessionId":"s"}}}}"#
            )
        };
        counted.send(Side::Client, ask(1, "session/new"));
        counted.send(
            Side::Agent,
            r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#.to_owned(),
        );
        counted.send(Side::Client, ask(2, "session/prompt"));
        counted.send(Side::Agent, ask(3, "fs/read_text_file"));
        let usage = r#"{"sessionUpdate":"usage_update","used":1,"size":4}"#;
        counted.send(
            Side::Agent,
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{usage}}}}}"#
            ),
        );
        let observer = &mut counted.conversation.observer;
        observer.on_event(&Event::Queued([30, 12]));
        observer.flush();
        counted
    });
    let gauges = |metrics: &Metrics| {
        let scrape = Scrape::read(&metrics.scrape(Instant::now()));
        let of = |name: &str, labels: &[(&str, &str)]| {
            scrape.value(&format!("acp_relay_{name}"), labels)
        };
        let to_agent = [("dir", "to_agent"), ("where", "outbox")];
        [
            of("connections_open", &[("side", "client")]),
            of("agents", &[]),
            of("turns", &[]),
            of("sessions_open", &[]),
            of("requests_in_flight", &[("method", "session/prompt")]),
            of("requests_in_flight", &[("method", "fs/read_text_file")]),
            of("requests_in_flight", &[("method", "session/new")]),
            of("buffer_bytes", &to_agent) / 12.,
            of("buffer_limit_bytes", &to_agent) / f64::from(1 << 20),
            of("context_used_ratio", &[]) * 4.,
        ]
    };
    // The context ratio is the highest.
    assert_eq!(gauges(&metrics), [2., 2., 2., 2., 2., 2., 0., 2., 2., 1.]);
    assert_eq!(metrics.open(Instant::now()).len(), 2);
    drop(first);
    assert_eq!(gauges(&metrics), [1., 1., 1., 1., 1., 1., 0., 1., 1., 1.]);
    let open = metrics.open(Instant::now());
    assert_eq!((open[0].number, open[0].turns), (2, 1));
    assert_eq!((open[0].sessions, open[0].in_flight), (1, [1, 1]));
    drop(second);
    assert_eq!(gauges(&metrics).map(f64::abs), [0.; 10]);
    assert!(metrics.open(Instant::now()).is_empty());
    assert_eq!(metrics.conversations(), 2);
    let page = metrics.scrape(Instant::now());
    assert!(!page.contains("context_used_ratio"), "{page}");
}

#[test]
fn scrapes_are_sorted_and_registries_share_no_counter() {
    let mut counted = Counted::new();
    let other = Counted::new();
    let note = r#"{"jsonrpc":"2.0","method":"session/cancel"}"#;
    counted.send(Side::Client, note.to_owned());
    let page = counted.metrics.scrape(Instant::now());
    let names = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    assert!(names.is_sorted(), "{page}");
    for histogram in page
        .split("# HELP ")
        .filter(|one| one.contains(" histogram\n"))
    {
        let counts = histogram.lines().filter(|line| line.contains("_bucket{"));
        let counts = counts.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
        assert!(counts.is_sorted(), "{histogram}");
    }
    let messages = |of: &Counted| {
        let scrape = Scrape::read(&of.metrics.scrape(Instant::now()));
        scrape.value("acp_relay_messages_total", &[])
    };
    assert_eq!((messages(&counted), messages(&other).abs()), (1., 0.));
}
