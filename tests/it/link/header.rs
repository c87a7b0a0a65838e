//! Headers on the wire: what is written is read again, and what is wrong is refused.

use acp_relay::link::{
    End, Header, HeaderError, Hello, MAX_HEADER, Refusal, RefusalCode, ResumeKey, Welcome, longest,
};
use proptest::prelude::*;

/// Whether an error is the right one.
type IsRight = fn(&HeaderError) -> bool;

fn written(header: &Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes
}

#[test]
fn every_header_is_read_as_it_was_written() {
    let all = [
        Header::Data { seq: 1, ack: 0 },
        Header::Data {
            seq: u64::MAX - 1,
            ack: u64::MAX - 2,
        },
        Header::Ack { ack: 7, window: 9 },
        Header::Ping(3),
        Header::Pong(u64::MAX),
        Header::Hello(Box::new(Hello {
            v: vec![1],
            link: Some("l".to_owned()),
            epoch: Some("e".to_owned()),
            generation: 2,
            rx: 5,
            key: Some(ResumeKey("k".to_owned())),
            window: 1 << 20,
            max: Some(1 << 24),
        })),
        Header::Welcome(Box::new(Welcome {
            v: 1,
            link: "l".to_owned(),
            key: ResumeKey("k".to_owned()),
            resumed: true,
            max: Some(u64::MAX),
            direct: true,
            ..Welcome::default()
        })),
        Header::Refuse(Box::new(Refusal {
            code: RefusalCode::UnknownLink,
            rx: 4,
            retry_after_ms: Some(10),
            detail: "gone".to_owned(),
        })),
        Header::End(Box::new(End {
            code: 1011,
            reason: "the other side failed".to_owned(),
        })),
    ];
    for header in all {
        let bytes = written(&header);
        assert_eq!(Header::read(&bytes), Ok((header, bytes.len())));
    }
}

#[test]
fn a_key_is_not_shown() {
    let key = ResumeKey("secret".to_owned());
    assert_eq!(format!("{key:?}"), "ResumeKey(…)");
}

#[test]
fn other_forms_of_json_mean_the_same() {
    let data = Ok((Header::Data { seq: 4, ack: 3 }, 32));
    assert_eq!(
        Header::read(b"{ \"a\":3, \"s\":4, \"t\":\"d\", \"z\":0}\nx"),
        data
    );
    let (header, begin) = Header::read(b"{\"t\":\"d\",\"s\":4,\"a\":3}\n{\"id\":1}").unwrap();
    assert_eq!((header, begin), (Header::Data { seq: 4, ack: 3 }, 22));
    assert_eq!(
        Header::read(b"{\"t\":\"later\",\"q\":1}\nx").unwrap().0,
        Header::Unknown
    );
    let code = Header::read(b"{\"t\":\"refuse\",\"code\":\"later\"}\n")
        .unwrap()
        .0;
    assert!(matches!(code, Header::Refuse(refusal) if refusal.code == RefusalCode::Other));
}

#[test]
fn wrong_headers_are_refused() {
    let long = format!(
        "{{\"t\":\"p\",\"n\":1,\"x\":\"{}\"}}\n",
        "x".repeat(MAX_HEADER)
    );
    let deep = format!("{{\"t\":\"p\",\"n\":{}\n", "[".repeat(3000));
    let cases: [(&str, IsRight); 14] = [
        ("", |error| *error == HeaderError::NoLine),
        ("{\"t\":\"p\",\"n\":1}", |error| {
            *error == HeaderError::NoLine
        }),
        (&long, |error| *error == HeaderError::NoLine),
        ("\n", |error| matches!(error, HeaderError::Invalid(_))),
        ("[]\n", |error| matches!(error, HeaderError::Invalid(_))),
        ("{}\n", |error| matches!(error, HeaderError::Invalid(_))),
        (&deep, |error| matches!(error, HeaderError::Invalid(_))),
        ("{\"t\":\"d\"}\nx", |error| {
            matches!(error, HeaderError::Invalid(_))
        }),
        ("{\"t\":\"d\",\"s\":-1}\nx", |error| {
            matches!(error, HeaderError::Invalid(_))
        }),
        ("{\"t\":\"d\",\"s\":18446744073709551616}\nx", |error| {
            matches!(error, HeaderError::Invalid(_))
        }),
        ("{\"t\":\"d\",\"s\":0}\nx", |error| {
            *error == HeaderError::Number(0)
        }),
        ("{\"t\":\"d\",\"s\":18446744073709551615}\nx", |error| {
            *error == HeaderError::Number(u64::MAX)
        }),
        ("{\"t\":\"must!\"}\n", |error| {
            matches!(error, HeaderError::Unsupported(_))
        }),
        ("{\"t\":\"p\",\"n\":1}\nx", |error| {
            *error == HeaderError::Body
        }),
    ];
    for (text, is_right) in cases {
        let error = Header::read(text.as_bytes()).unwrap_err();
        assert!(is_right(&error), "{text:?}: {error:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Header::read(&bytes);
    }

    /// The short way of reading data agrees with the JSON parser.
    #[test]
    fn data_is_read_alike_with_and_without_the_parser(seq in 1..u64::MAX, ack: u64, body in ".{0,40}") {
        let usual = format!("{{\"t\":\"d\",\"s\":{seq},\"a\":{ack}}}\n{body}");
        let other = format!("{{\"t\": \"d\",\"s\":{seq},\"a\":{ack}}}\n{body}");
        let (header, begin) = Header::read(usual.as_bytes()).unwrap();
        let (same, at) = Header::read(other.as_bytes()).unwrap();
        prop_assert_eq!(&header, &same);
        prop_assert_eq!(&usual[begin..], &*body);
        prop_assert_eq!(&other[at..], &*body);
    }
}

#[test]
fn an_absurd_limit_of_a_peer_is_bounded() {
    for (announced, most) in [
        (None, usize::MAX),
        (Some(0), 1024),
        (Some(50_000), 50_000),
        (Some(u64::MAX), usize::MAX),
    ] {
        assert_eq!(longest(announced), most, "{announced:?}");
    }
}
