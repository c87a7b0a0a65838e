//! The grammar of addresses: parsing, printing, and error messages.

use acp_relay::transport::{Endpoint, HttpEndpoint, HttpProtocol};
use proptest::prelude::*;

#[test]
fn every_form_is_parsed_and_printed() {
    // given, printed; a printed endpoint is parsed back to the same one (see below)
    let cases = [
        ("stdio:", "stdio:"),
        ("exec:agent", "exec:agent"),
        (
            "exec:'my agent' --flag \"a b\" $HOME *",
            "exec:'my agent' --flag 'a b' '$HOME' '*'",
        ),
        ("tcp://localhost:0", "tcp://localhost:0"),
        ("TCP://[::1]:7", "tcp://[::1]:7"),
        ("unix:/a b/ü", "unix:/a b/ü"),
        ("unix:x?y#z", "unix:x?y#z"),
        ("ws://h", "ws://h/acp"),
        ("ws://h/", "ws://h/"),
        ("wss://h", "wss://h/acp"),
        ("HTTP://h:443/x", "http://h:443/x"),
        ("https://h:443", "https://h/acp"),
        ("elephant+http://h:9000", "elephant+http://h:9000/acp"),
        ("agent-connect+http://h", "agent-connect+http://h/"),
        ("wss://h:80/a/b", "wss://h:80/a/b"),
        ("ws://[::1]", "ws://[::1]/acp"),
        ("ws://[::1]:0", "ws://[::1]:0/acp"),
    ];
    for (given, printed) in cases {
        let read: Endpoint = given.parse().unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(read.to_string(), printed, "{given}");
    }
    let Ok(Endpoint::Http(web)) = "wss://h".parse() else {
        panic!("it is a URL");
    };
    assert_eq!(
        (web.protocol, web.tls, web.port),
        (HttpProtocol::WebSocket, true, 443)
    );
}

#[test]
fn each_parse_error_states_what_is_expected() {
    // input, parts of the message
    let cases: &[(&str, &[&str])] = &[
        ("", &["no scheme", "tcp://HOST:PORT", "unix:PATH"]),
        ("agent", &["no scheme"]),
        ("127.0.0.1:80", &["no scheme", "mean \"ws://127.0.0.1:80\""]),
        ("[::1]:80", &["no scheme", "mean \"ws://[::1]:80\""]),
        ("localhost:80", &["scheme", "mean \"ws://localhost:80\""]),
        ("9000", &["scheme", "mean \"ws://127.0.0.1:9000\""]),
        (":9000", &["scheme", "mean \"ws://127.0.0.1:9000\""]),
        ("wss//h", &["no scheme", "mean \"wss://h\""]),
        ("/run/a.sock", &["no scheme", "mean \"unix:/run/a.sock\""]),
        (
            "tpc://h:1",
            &["\"tpc\" is not known; did you mean \"tcp://h:1\""],
        ),
        ("quux:1x", &["\"quux\"", "expected one of"]),
        ("stdio:x", &["nothing may follow"]),
        ("exec:", &["names no program", "exec:WORDS"]),
        ("exec:a 'b", &["not closed"]),
        ("exec:a\0b", &["NUL"]),
        ("unix:", &["names no path"]),
        ("unix:a\0b", &["NUL"]),
        ("tcp:h:1", &["expected tcp://HOST:PORT"]),
        ("tcp://h", &["port is missing"]),
        ("tcp://:1", &["no host"]),
        ("tcp://h:", &["\"\" is not a port"]),
        ("tcp://h:+1", &["\"+1\" is not a port"]),
        ("tcp://h:65536", &["65536", "0 to 65535"]),
        ("tcp://h:1/x", &["\"/x\" has no meaning"]),
        ("tcp://::1:1", &["brackets"]),
        ("tcp://[::1:1", &["brackets"]),
        ("tcp://[nope]:1", &["IPv6"]),
        ("tcp://[::1]1", &["no host"]),
        ("tcp://u@h:1", &["user name"]),
        ("ws:h", &["expected ws://HOST"]),
        ("ws://", &["no host"]),
        ("ws:///acp", &["no host"]),
        ("ws://u:p@h/acp", &["user name"]),
        ("ws://h/acp?token=1", &["query"]),
        ("ws://h/acp#x", &["fragment"]),
        ("ws://h/a b", &["percent-encoded"]),
        ("ws://h ost", &["no host"]),
    ];
    for (given, words) in cases {
        let fault = given.parse::<Endpoint>().expect_err(given).to_string();
        for word in *words {
            assert!(
                fault.contains(word),
                "{given:?}: {word:?} is not in: {fault}"
            );
        }
        assert!(!fault.contains('\n'), "{fault}");
    }
}

#[test]
fn loopback_addresses_are_recognised() {
    let near = "stdio: exec:a unix:/x tcp://localhost:1 tcp://127.9.9.9:1 ws://[::1]/ wss://LOCALHOST \
                tcp://[::ffff:127.0.0.1]:1";
    let far = "tcp://0.0.0.0:1 tcp://[::]:1 ws://example.org wss://localhost.example.org \
               tcp://10.0.0.1:1 tcp://127.0.0.1.nip.io:1";
    for (list, expected) in [(near, true), (far, false)] {
        for given in list.split(' ') {
            let endpoint: Endpoint = given.parse().expect(given);
            assert_eq!(endpoint.is_loopback(), expected, "{given}");
        }
    }
}

fn host() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9_][a-zA-Z0-9._-]{0,20}",
        any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|address| address.to_string()),
    ]
}

fn endpoint() -> impl Strategy<Value = Endpoint> {
    let word = "[^\0]{0,12}";
    prop_oneof![
        Just(Endpoint::Stdio),
        ("[^\0]{1,12}", prop::collection::vec(word, 0..4)).prop_map(|(program, mut words)| {
            words.insert(0, program);
            Endpoint::Exec(words.into_iter().map(Into::into).collect())
        }),
        (host(), any::<u16>()).prop_map(|(host, port)| Endpoint::Tcp { host, port }),
        "[^\0]{1,40}".prop_map(|path| Endpoint::Unix(path.into())),
        (
            prop::sample::select(&[
                HttpProtocol::WebSocket,
                HttpProtocol::StreamableHttp,
                HttpProtocol::Elephant
            ]),
            any::<bool>(),
            host(),
            any::<u16>(),
            "/[!-\"$->@-~]{0,20}"
        )
            .prop_map(
                |(protocol, tls, host, port, path)| Endpoint::Http(HttpEndpoint {
                    protocol,
                    tls,
                    host,
                    port,
                    path,
                })
            ),
    ]
}

proptest! {
    #[test]
    fn a_printed_endpoint_is_parsed_back(endpoint in endpoint()) {
        prop_assert_eq!(endpoint.to_string().parse::<Endpoint>(), Ok(endpoint));
    }

    #[test]
    fn no_text_panics_the_parser(text in "\\PC{0,40}") {
        let _ = text.parse::<Endpoint>();
    }
}
