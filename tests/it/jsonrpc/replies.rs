//! The messages that the relay creates.

use acp_relay::jsonrpc::reply::{self, Delivered, ErrorSource, Reason};
use acp_relay::jsonrpc::{Exit, Frame, FrameError, FrameFault, Id, Kind};
use serde_json::Value;

use super::{frame_error, one};

#[test]
fn errors_have_the_id_as_spelled_and_state_their_source() {
    let mut reason = Reason::new(reply::AGENT_EXITED, "the agent \"x\" has exited");
    reason.source = ErrorSource::Agent;
    reason.delivered = Delivered::Unknown;
    reason.exit = Some(Exit::Code(3));
    reason.stderr_tail = Some("bad\nthing\u{1b}[0m".into());
    reason.retryable = true;
    reason.retry_after = Some(std::time::Duration::from_millis(1500));
    for id in [
        Id::Null,
        Id::Number(b"1.0"),
        Id::Number(b"18446744073709551616"),
        Id::String(br#""\ud83d""#),
    ] {
        let frame = reply::error(id, &reason);
        let envelope = one(&frame);
        assert_eq!((envelope.kind, envelope.id(&frame)), (Kind::Error, id));
        assert!(!frame.as_bytes().contains(&b'\n'));
        let body: Value = serde_json::from_slice(envelope.body(&frame).unwrap()).unwrap();
        let expected = serde_json::json!({
            "code": -32051,
            "message": "the agent \"x\" has exited",
            "data": { "relay": {
                "source": "agent", "reason": "agent_exited", "delivered": "unknown",
                "retryable": true, "retryAfterMs": 1500,
                "exit": { "code": 3 }, "stderrTail": "bad\nthing\u{1b}[0m",
            } },
        });
        assert_eq!(body, expected);
    }
    let frame = reply::error(Id::Absent, &reason);
    assert_eq!(one(&frame).id(&frame), Id::Null);
}

#[test]
fn frame_errors_are_answered_with_the_id_where_it_is_safe() {
    let deep = format!(r#"{{"id":7,"method":"m","params":{}"#, "[".repeat(2000));
    let deep_answer = format!(r#"{{"id":7,"result":{}"#, "[".repeat(2000));
    let cases = [
        (r#"{"id":7,"method":"m","#, -32700, Id::Null),
        ("nonsense", -32700, Id::Null),
        (&deep, -32600, Id::Number(b"7")),
        (&deep_answer, -32600, Id::Null),
        (
            r#"{"id":7,"method":"m","method":"n"}"#,
            -32600,
            Id::Number(b"7"),
        ),
        (r#"{"id":"q","method":1}"#, -32600, Id::String(b"\"q\"")),
        (r#"{"id":7,"result":1,"error":1}"#, -32600, Id::Null),
        ("{}", -32600, Id::Null),
    ];
    for (text, code, id) in cases {
        check_error(&reply::frame_error(&frame_error(text)), code, id);
    }
    let long = FrameError {
        fault: FrameFault::TooLong { limit: 10 },
        ..frame_error(&deep)
    };
    check_error(&reply::frame_error(&long), -32056, Id::Number(b"7"));
    check_error(&reply::batch(), -32600, Id::Null);
}

#[track_caller]
fn check_error(frame: &Frame, code: i64, id: Id<'_>) {
    let envelope = one(frame);
    assert_eq!(
        (envelope.kind, envelope.id(frame)),
        (Kind::Error, id),
        "{frame:?}"
    );
    let body: Value =
        serde_json::from_slice(envelope.body(frame).expect("a body")).expect("it is JSON");
    assert_eq!(body["code"], code, "{frame:?}");
    assert_eq!(body["data"]["relay"]["source"], "relay", "{frame:?}");
}

#[test]
fn the_notice_of_an_exit_is_read_as_it_was_written() {
    for exit in [Exit::Code(0), Exit::Code(-1), Exit::Signal(9)] {
        for tail in ["", "panic\n\"x\""] {
            let frame = reply::agent_exited_notice(exit, tail);
            let envelope = one(&frame);
            assert_eq!(envelope.method(&frame), "_acp-relay/agent_exited");
            let notice = reply::read_notice(&frame, &envelope).expect("a notice");
            assert_eq!((notice.exit, &*notice.stderr_tail), (exit, tail));
        }
    }
    // It comes from another machine and appears in errors and logs.
    let wild = format!("{}é\u{1b}[31m", "x".repeat(10_000));
    let frame = reply::agent_exited_notice(Exit::Code(1), &wild);
    let tail = reply::read_notice(&frame, &one(&frame))
        .expect("a notice")
        .stderr_tail;
    assert!(
        tail.len() <= 4100 && tail.ends_with("é\u{fffd}[31m"),
        "{tail}"
    );
    for text in [
        r#"{"method":"_acp-relay/agent_exited"}"#,
        r#"{"method":"_acp-relay/agent_exited","params":{"exit":{}}}"#,
        r#"{"method":"_acp-relay/agent_exited","params":{"exit":{"code":1,"signal":2}}}"#,
        r#"{"method":"_acp-relay/agent_exited","params":{"exit":{"code":1e99}}}"#,
        r#"{"id":1,"method":"_acp-relay/agent_exited","params":{"exit":{"code":1}}}"#,
        r#"{"method":"other","params":{"exit":{"code":1}}}"#,
    ] {
        let frame = Frame::from(text);
        assert_eq!(reply::read_notice(&frame, &one(&frame)), None, "{text}");
    }
}
