//! The envelope of a message, and JSON that is refused.

use acp_relay::jsonrpc::{
    Frame, FrameFault, Id, IdBuf, Kind, Limits, Role, Scanned, scan, scan_head,
};

use super::{frame_error, limits, number, one};

#[test]
fn the_kind_the_id_and_the_body_of_a_message_are_found() {
    let cases: &[(&str, Kind, Id<'_>, Option<&str>)] = &[
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#,
            Kind::Request,
            Id::Number(b"1"),
            Some(r#"{"a":1}"#),
        ),
        (r#"{"method":"m","id":null}"#, Kind::Request, Id::Null, None),
        (r#"{"method":"m"}"#, Kind::Notification, Id::Absent, None),
        (
            r#"{"method":"m","params":3}"#,
            Kind::Notification,
            Id::Absent,
            Some("3"),
        ),
        (
            r#"{"id":"a","result":null}"#,
            Kind::Result,
            Id::String(b"\"a\""),
            Some("null"),
        ),
        (
            r#"{"id":-0,"result":{}}"#,
            Kind::Result,
            Id::Number(b"-0"),
            Some("{}"),
        ),
        (
            r#"{"id":1.50e+2,"result":[]}"#,
            Kind::Result,
            Id::Number(b"1.50e+2"),
            Some("[]"),
        ),
        (
            r#"{"id":2,"error":{"code":1}}"#,
            Kind::Error,
            Id::Number(b"2"),
            Some(r#"{"code":1}"#),
        ),
        (
            r#"{"id":2,"result":7,"error":null}"#,
            Kind::Result,
            Id::Number(b"2"),
            Some("7"),
        ),
        (
            r#"{"id":2,"error":7,"result":null}"#,
            Kind::Error,
            Id::Number(b"2"),
            Some("7"),
        ),
        (
            r#"{"id":2,"error":null,"result":null}"#,
            Kind::Result,
            Id::Number(b"2"),
            Some("null"),
        ),
        (
            r#"{"jsonrpc":"2.0","error":{}}"#,
            Kind::Error,
            Id::Absent,
            Some("{}"),
        ),
        (r#"{"result":1}"#, Kind::Result, Id::Absent, Some("1")),
        (
            r#"{"\u0069d":5,"m\u0065thod":"m"}"#,
            Kind::Request,
            Id::Number(b"5"),
            None,
        ),
        (
            r#"{"jsonrpc":7,"method":"m","i\\d":1,"ID":2}"#,
            Kind::Notification,
            Id::Absent,
            None,
        ),
        (
            "\r\n\t {\n \"method\" :\r\"m\" }\n",
            Kind::Notification,
            Id::Absent,
            None,
        ),
    ];
    for (text, kind, id, body) in cases {
        let frame = Frame::from(*text);
        let envelope = one(&frame);
        assert_eq!(envelope.kind, *kind, "{text}");
        assert_eq!(envelope.id(&frame), *id, "{text}");
        assert_eq!(envelope.body(&frame), body.map(str::as_bytes), "{text}");
        let method = matches!(kind, Kind::Request | Kind::Notification);
        assert_eq!(
            envelope.method(&frame),
            if method { "m" } else { "" },
            "{text}"
        );
    }
}

#[test]
fn an_escaped_method_is_unescaped() {
    let cases = [
        (r"session\/prompt", "session/prompt"),
        (r"\u0073ession/prompt", "session/prompt"),
        (r"\ud800", r"\ud800"),
        ("", ""),
        ("ü", "ü"),
    ];
    for (spelled, method) in cases {
        let frame = Frame::from(format!(r#"{{"method":"{spelled}","id":1}}"#));
        assert_eq!(one(&frame).method(&frame), method);
    }
}

#[test]
fn text_that_is_no_message_is_refused_with_its_id_and_role() {
    use Role::{Answer, Call};
    let not = |why| FrameFault::NotAMessage { why };
    let twice = |member| FrameFault::Duplicate { member };
    let json = |expected| FrameFault::Malformed { expected };
    let none = IdBuf::Absent;
    let cases: Vec<(&str, FrameFault, IdBuf, Option<Role>)> = vec![
        (
            "{}",
            not("it has neither method, result nor error"),
            none.clone(),
            None,
        ),
        (
            r#"{"id":1}"#,
            not("it has neither method, result nor error"),
            number("1"),
            Some(Answer),
        ),
        (
            r#"{"id":1,"params":{}}"#,
            not("it has neither method, result nor error"),
            number("1"),
            None,
        ),
        ("7", not("it is not an object"), none.clone(), None),
        (r#""{""#, not("it is not an object"), none.clone(), None),
        (
            r#"{"method":5,"id":7}"#,
            not("its method is not a string"),
            number("7"),
            Some(Call),
        ),
        (
            r#"{"method":"m","id":{}}"#,
            not("its id is neither a string, a number nor null"),
            none.clone(),
            Some(Call),
        ),
        (
            r#"{"method":"m","id":true}"#,
            not("its id is neither a string, a number nor null"),
            none.clone(),
            Some(Call),
        ),
        (
            r#"{"id":1,"result":1,"error":2}"#,
            not("it has both a result and an error"),
            number("1"),
            Some(Answer),
        ),
        (
            r#"{"id":1,"method":"m","result":null}"#,
            not("it has both a method and a result or an error"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":1,"method":"m","id":2}"#,
            twice("id"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":1,"method":"m","\u0069\u0064":2}"#,
            twice("id"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":1,"method":"m","metho\u0064":"n"}"#,
            twice("method"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"params":1,"params":1,"method":"m","id":3}"#,
            twice("params"),
            number("3"),
            Some(Call),
        ),
        (
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"m"}"#,
            twice("jsonrpc"),
            none.clone(),
            Some(Call),
        ),
        (
            r#"{"id":1,"result":1,"result":1}"#,
            twice("result"),
            number("1"),
            Some(Answer),
        ),
        (
            r#"{"id":1,"error":1,"error":1}"#,
            twice("error"),
            number("1"),
            Some(Answer),
        ),
        (
            r#"{"id":1,"method":"m","params":{"sessionId":"a","x":[{}],"session\u0049d":"b"}}"#,
            twice("sessionId"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":1,"result":{"sessionId":"a","sessionId":"a"}}"#,
            twice("sessionId"),
            number("1"),
            Some(Answer),
        ),
        ("", json("a value"), none.clone(), None),
        (" \n", json("a value"), none.clone(), None),
        ("\u{feff}{}", json("a value"), none.clone(), None),
        ("npm warn", json("a value"), none.clone(), None),
        (
            r#"{"id":1,"method":"m""#,
            json("a comma or a closing brace"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":1,"method":"m"} x"#,
            json("the end of the message"),
            number("1"),
            Some(Call),
        ),
        (
            r#"{"id":4,"result":[1,]}"#,
            json("a value"),
            number("4"),
            Some(Answer),
        ),
        (
            r#"{"id":12"#,
            json("a comma or a closing brace"),
            none.clone(),
            None,
        ),
        (
            "[1,2",
            json("a comma or a closing bracket"),
            none.clone(),
            None,
        ),
        // Invalid JSON takes precedence over other errors.
        (
            r#"{"id":1,"id":2,"method":"m",}"#,
            json("a member name in quotes"),
            number("1"),
            Some(Call),
        ),
        (
            "{\"id\":1,\"method\":\"a\tb\"}",
            json("no raw control character in a string"),
            number("1"),
            Some(Call),
        ),
    ];
    for (text, fault, id, role) in cases {
        let error = frame_error(text);
        let like = matches!(
            text.trim_start_matches('\u{feff}')
                .trim()
                .as_bytes()
                .first(),
            Some(b'{' | b'[')
        );
        assert_eq!(
            (error.fault, error.id, error.role),
            (fault, id, role),
            "{text}"
        );
        assert_eq!(error.json_like, like, "{text}");
        assert!(error.at <= text.len(), "{text}");
    }
}

#[test]
fn a_session_id_may_occur_twice_where_it_is_not_used() {
    for text in [
        r#"{"method":"m","params":{"sessionId":"a","x":{"sessionId":"b"}}}"#,
        r#"{"method":"m","params":[{"sessionId":"a"},{"sessionId":"b"}]}"#,
        r#"{"method":"m","params":{"a":1,"a":2}}"#,
        r#"{"id":1,"error":{"sessionId":1,"sessionId":1}}"#,
        r#"{"method":"m","x":1,"x":2}"#,
    ] {
        one(&Frame::from(text));
    }
}

#[test]
fn ids_and_methods_have_limits() {
    let limits = Limits {
        id: 6,
        method: 4,
        ..limits()
    };
    let cases = [
        (r#""abcd""#, "abcd", None),
        ("123456", "", None),
        (r#""abcde""#, "m", Some("its id is too long")),
        ("1234567", "m", Some("its id is too long")),
        ("1", "abcde", Some("its method is too long")),
    ];
    for (id, method, why) in cases {
        let text = format!(r#"{{"id":{id},"method":"{method}"}}"#);
        match (scan(&Frame::from(text), &limits), why) {
            (Scanned::Message(_), None) => {}
            (Scanned::Invalid(error), Some(why)) => {
                assert_eq!(error.fault, FrameFault::NotAMessage { why })
            }
            (shape, _) => panic!("{id} {method}: {shape:?}"),
        }
    }
}

#[test]
fn the_head_of_a_cut_message_gives_its_id_and_role() {
    let text = br#" {"jsonrpc":"2.0","id":"a-1","method":"session/prompt","params":{"prompt":[{"text":"xx"#;
    let id = Id::String(b"\"a-1\"").to_owned();
    for cut in 0..text.len() {
        let (seen, role) = scan_head(&text[..cut], &limits());
        let known = cut > text.iter().position(|&b| b == b'-').unwrap() + 3;
        assert_eq!(
            seen,
            if known { id.clone() } else { IdBuf::Absent },
            "{cut}"
        );
        let method = text.windows(9).position(|w| w == b"\"method\":").unwrap();
        let known = cut >= method + 9;
        assert_eq!(role, known.then_some(Role::Call), "{cut}");
    }
    assert_eq!(scan_head(b"{\"id\":12", &limits()).0, IdBuf::Absent);
    assert_eq!(scan_head(b"{\"id\":12,", &limits()).0, number("12"));
    assert_eq!(scan_head(b"[{\"id\":12,", &limits()), (IdBuf::Absent, None));
    assert_eq!(
        scan_head(b"{\"id\":3,\"result\":\"\xff", &limits()),
        (number("3"), Some(Role::Answer))
    );
}
