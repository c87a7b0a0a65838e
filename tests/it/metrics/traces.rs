//! Traces: the spans of a conversation, their parents, and what happens without a collector.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use acp_relay::jsonrpc::Side;
use acp_relay::observe::traces::{ConversationInfo, SpanFactory, SpanSender, Tracer};
use opentelemetry_sdk::trace::SpanData;
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::stage::{Observed, PATIENCE, Relay, wait};
use crate::support::http_server::Server;
use crate::support::program::relay;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A conversation without links, traced.
struct Traced {
    conversation: Observed<Tracer>,
    spans: Receiver<SpanData>,
}

impl Traced {
    fn new(room: usize, insert: bool) -> Self {
        let (sender, spans) = SpanSender::new(room);
        let about = ConversationInfo {
            client: "test".to_owned(),
            agent: Some("goose".to_owned()),
            transport: "tcp",
            ..ConversationInfo::default()
        };
        let factory = Arc::new(SpanFactory::new("test"));
        let tracer = Tracer::begin(sender, factory, about, Instant::now());
        let marker = insert.then(|| Box::new(tracer.marker()) as Box<_>);
        let conversation = Observed::new(tracer, marker);
        Self {
            conversation,
            spans,
        }
    }

    /// What the other side receives.
    fn send(&mut self, from: Side, text: &str) -> Vec<String> {
        self.conversation.send(from, text, Instant::now())
    }

    /// A whole turn, whose prompt has these further members.
    fn turn(&mut self, meta: &str) {
        let (client, agent) = (Side::Client, Side::Agent);
        self.send(client, r#"{"jsonrpc":"2.0","id":0,"method":"session/new"}"#);
        self.send(
            agent,
            r#"{"jsonrpc":"2.0","id":0,"result":{"sessionId":"s"}}"#,
        );
        let prompt = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{{"sessionId":"s","prompt":[{{"text":"hunter2"}}]{meta}}}}}"#
        );
        self.send(client, &prompt);
        for update in [
            r#"{"sessionUpdate":"agent_message_chunk","content":{"text":"hunter2"}}"#,
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"hunter2","kind":"edit"}"#,
        ] {
            self.send(agent, &update_of(update));
        }
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s"}}"#;
        self.send(agent, ask);
        let outcome = r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"a"}}}"#;
        self.send(client, outcome);
        let done = r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}"#;
        self.send(agent, &update_of(done));
        let end = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;
        self.send(agent, end);
    }

    /// The spans, by name, at the end.
    fn finish(self) -> BTreeMap<String, SpanData> {
        let Self {
            conversation,
            spans,
        } = self;
        drop(conversation);
        let mut all = BTreeMap::new();
        while let Ok(span) = spans.try_recv() {
            all.insert(span.name.to_string(), span);
        }
        all
    }
}

fn update_of(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

fn has(span: &SpanData, name: &str) -> Option<String> {
    let mut own = span.attributes.iter();
    let own = own.find(|own| own.key.as_str() == name);
    own.map(|own| own.value.as_str().into_owned())
}

/// The span has this parent, in the same trace.
fn has_parent(all: &BTreeMap<String, SpanData>, child: &str, parent: &str) {
    let (child, parent) = (&all[child], &all[parent]);
    let above = parent.span_context.span_id();
    assert_eq!(
        child.parent_span_id, above,
        "{} of {}",
        child.name, parent.name
    );
    let trace = parent.span_context.trace_id();
    assert_eq!(child.span_context.trace_id(), trace, "{}", child.name);
}

#[test]
fn a_turn_without_a_trace_context_is_a_child_of_its_session() {
    let mut traced = Traced::new(100, false);
    traced.turn("");
    let all = traced.finish();
    let names: Vec<_> = all.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "connection",
            "execute_tool",
            "session",
            "session/new",
            "session/prompt",
            "session/request_permission"
        ]
    );
    has_parent(&all, "session", "connection");
    has_parent(&all, "session/new", "connection");
    has_parent(&all, "session/prompt", "session");
    has_parent(&all, "session/request_permission", "session/prompt");
    has_parent(&all, "execute_tool", "session/prompt");
    let turn = &all["session/prompt"];
    for (name, value) in [
        ("rpc.system.name", "jsonrpc"),
        ("rpc.method", "session/prompt"),
        ("jsonrpc.request.id", "1"),
        ("gen_ai.operation.name", "invoke_agent"),
        ("gen_ai.conversation.id", "s"),
        ("gen_ai.agent.name", "goose"),
        ("acp.stop_reason", "end_turn"),
    ] {
        assert_eq!(has(turn, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(turn.events.len(), 1);
    assert_eq!(turn.events[0].name, "first_update");
    assert!(!format!("{all:?}").contains("hunter2"), "a body");
}

#[test]
fn a_turn_with_a_trace_context_keeps_it_and_links_to_its_session() {
    let mut traced = Traced::new(100, true);
    traced.turn(&format!(
        r#","_meta":{{"traceparent":"{PARENT}","tracestate":"vendor=1"}}"#
    ));
    let all = traced.finish();
    let turn = &all["session/prompt"];
    assert_eq!(turn.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(turn.parent_span_is_remote);
    let trace = turn.span_context.trace_id().to_string();
    assert_eq!(trace, "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(turn.span_context.trace_state().header(), "vendor=1");
    let linked = turn.links[0].span_context.span_id();
    assert_eq!(linked, all["session"].span_context.span_id());
    has_parent(&all, "session/request_permission", "session/prompt");
    has_parent(&all, "execute_tool", "session/prompt");
}

#[test]
fn a_turn_with_an_invalid_trace_context_is_a_child_of_its_session() {
    for bad in [
        "",
        "00",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
    ] {
        let mut traced = Traced::new(100, false);
        traced.turn(&format!(r#","_meta":{{"traceparent":"{bad}"}}"#));
        has_parent(&traced.finish(), "session/prompt", "session");
    }
}

#[test]
fn a_trace_context_is_inserted_only_if_set_and_never_replaced() {
    let bare = r#"{"jsonrpc":"2.0","id":5,"method":"session/prompt","params":{"sessionId":"s"}}"#;
    assert_eq!(Traced::new(9, false).send(Side::Client, bare), [bare]);
    let own = bare.replace("}}", r#","_meta":{"traceparent":"mine"}}}"#);
    let mut traced = Traced::new(9, true);
    assert_eq!(
        traced.send(Side::Client, &own.replace('5', "6")),
        [own.replace('5', "6")]
    );
    let marked = traced.send(Side::Client, bare).remove(0);
    let note = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    assert_eq!(traced.send(Side::Client, note), [note]);
    let answer = r#"{"jsonrpc":"2.0","id":5,"result":{"stopReason":"end_turn"}}"#;
    traced.send(Side::Agent, answer);
    let marked: Value = serde_json::from_str(&marked).unwrap();
    let mark = marked["params"]["_meta"]["traceparent"].as_str().unwrap();
    let span = traced.spans.try_recv().unwrap();
    let (trace, id) = (span.span_context.trace_id(), span.span_context.span_id());
    assert_eq!(mark, format!("00-{trace}-{id}-01"));
}

#[test]
fn failed_and_unanswered_requests_end_as_error_spans() {
    let mut traced = Traced::new(9, false);
    let ask = |id, method| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    traced.send(Side::Client, &ask(1, "session/list"));
    traced.send(Side::Client, &ask(2, "session/load"));
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"hunter2"}}"#;
    traced.send(Side::Agent, failed);
    let all = traced.finish();
    let failed = &all["session/list"];
    assert_eq!(has(failed, "error.type").as_deref(), Some("-32602"));
    for name in ["session/list", "session/load"] {
        let status = format!("{:?}", all[name].status);
        assert!(status.starts_with("Error"), "{name}: {status}");
        assert!(!status.contains("hunter2"), "a peer's words");
    }
}

#[test]
fn spans_beyond_the_queue_are_dropped_and_counted() {
    let (sender, _kept) = SpanSender::new(2);
    let tally = sender.stats();
    let factory = Arc::new(SpanFactory::new("test"));
    for _ in 0..5 {
        let (sender, factory) = (sender.clone(), Arc::clone(&factory));
        drop(Tracer::begin(
            sender,
            factory,
            ConversationInfo::default(),
            Instant::now(),
        ));
    }
    assert_eq!(tally.read(), [0, 0, 3]);
}

/// A collector that receives one batch after the other, as JSON; returns its address.
fn collector() -> (String, Receiver<(String, Value)>) {
    let (notify, batches) = sync_channel(64);
    let host = wait(Server::answering(move |asked| {
        let key = asked.header("x-key").unwrap_or_default();
        let head = format!("{} {} {key}", asked.method, asked.uri);
        let body = serde_json::from_str(&asked.body).unwrap();
        // The test may have read enough.
        let _ = notify.send((head, body));
        Some((200, Vec::new(), "{}".to_owned()))
    }));
    (format!("http://{host}"), batches)
}

#[test]
fn spans_reach_the_collector_of_the_otel_variables_and_a_failure_is_logged_once() {
    let (address, batches) = collector();
    let vars = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", address.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret"),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test"),
    ];
    let listen = ["--listen", "tcp://127.0.0.1:0"];
    let mut relay = Relay::serve(TempDir::new().unwrap(), &listen, &vars);
    relay.client().live();
    let mut names = Vec::new();
    while !names.contains(&"connection".to_owned()) {
        let (head, body) = batches.recv_timeout(PATIENCE).unwrap();
        assert_eq!(head, "POST /v1/traces s3cret");
        let resource = body["resourceSpans"][0]["resource"].to_string();
        assert!(resource.contains("acp-relay"), "{resource}");
        assert!(resource.contains("deployment.environment"), "{resource}");
        let spans = &body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let spans = spans.as_array().unwrap().iter();
        names.extend(spans.map(|span| span["name"].as_str().unwrap().to_owned()));
    }
    assert!(names.contains(&"session/prompt".to_owned()), "{names:?}");
    let name = "acp_relay_trace_spans_total";
    let scrape = relay.scrape_for(name, &[("outcome", "exported")]);
    assert_eq!(scrape.value(name, &[("outcome", "failed")]), 0.);
    relay.signal(Signal::TERM);
    relay.wait();

    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", closed.local_addr().unwrap());
    let vars = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", closed.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "300"),
        ("OTEL_BSP_SCHEDULE_DELAY", "20"),
    ];
    let mut relay = Relay::serve(TempDir::new().unwrap(), &listen, &vars);
    for spans in [1., 14.] {
        relay.client().live();
        while relay.scrape().value(name, &[("outcome", "failed")]) < spans {}
    }
    relay.signal(Signal::TERM);
    let mut reported = 0;
    loop {
        let line = relay.complaint();
        if line.is_empty() {
            break;
        }
        reported += usize::from(line.contains("traces are lost"));
    }
    assert_eq!(reported, 1, "once, not with each batch");
}

#[test]
fn invalid_trace_settings_are_refused_with_the_name_of_the_variable() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    let connect_with = |args: &[&str], vars: &[(&str, &str)]| {
        let mut command = relay(&[&["connect"], args, &["--", "true"]].concat());
        let output = command.envs(vars.iter().copied()).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let reported = connect_with(&["--trace-context", "insert"], &[]);
    assert!(reported.contains("--otlp-endpoint"), "{reported}");
    let connect = |vars: &[(&str, &str)]| connect_with(&[], vars);
    for odd in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "many"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0"),
    ] {
        let reported = connect(&[endpoint, odd]);
        assert!(reported.contains(odd.0), "{odd:?}: {reported}");
        // Without a collector, or with traces off, nothing is read.
        for off in [
            &[odd][..],
            &[endpoint, odd, ("OTEL_SDK_DISABLED", "true")],
            &[endpoint, odd, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            let reported = connect(off);
            assert!(!reported.contains("OTEL_"), "{off:?}: {reported}");
        }
        // Each of these names a collector.
        for named in [
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9/x"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
        ] {
            let reported = connect(&[named, odd]);
            assert!(reported.contains(odd.0), "{named:?}: {reported}");
        }
    }
}
