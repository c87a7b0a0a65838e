//! Redaction: secrets that are planted in every place they can occur appear nowhere.

use acp_relay::conversation::Note;
use acp_relay::jsonrpc::{Frame, IdBuf, Limits, Side, is_json};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::{Mode, Redactor};
use acp_relay::recording::{EventKind, patch};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::planted::PlantedSecrets;
use super::stage::{RecorderSetup, TestRecording, events};

/// Messages with a secret in each place.
fn placed(secrets: &mut PlantedSecrets) -> Vec<(Side, Value)> {
    let mut secret = || secrets.plant();
    use Side::{Agent, Client};
    let server = json!([{
        "name": "x", "command": "y", "args": ["--api-key", secret()],
        "env": [{"name": "PLAIN", "value": secret()}, {"value": secret(), "name": "Z"}],
        "headers": [{"name": "X-Thing", "value": secret()}, {"name": "Cookie", "value": secret()}],
    }, {"env": {"A": secret(), "name": secret()}, "headers": {"B": secret(), "C": [secret()]}}]);
    vec![
        (
            Client,
            json!({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": server}}),
        ),
        (
            Client,
            json!({"id": 2, "method": "session/load", "params": {"mcpServers": server}}),
        ),
        (
            Client,
            json!({"id": 3, "method": "authenticate",
            "params": {"methodId": "key", "key": secret(), "deep": {"er": [secret(), 12345]}}}),
        ),
        (
            Agent,
            json!({"id": 3, "result": {"session": secret(), "deep": [{"er": secret()}]}}),
        ),
        (
            Agent,
            json!({"id": 1, "method": "terminal/create", "params": {"command": "sh",
            "args": ["--password", secret(), "-x"], "env": [{"name": "N", "value": secret()}]}}),
        ),
        (
            Client,
            json!({"id": 4, "method": "_goose/providers", "params": {
            "headers": {"Authorization": secret(), "x": secret()},
            "env": {"deep": {"er": secret()}}, "apiKey": secret(), "password": secret(),
            "client_secret": secret(), "access_token": secret(), "api_key": {"v": secret()}}}),
        ),
        (
            Agent,
            json!({"method": "_x", "params": {"Authorization": secret(), "Set-Cookie": [secret()],
            "list": [{"name": "GITHUB_TOKEN", "value": secret()}, {"value": secret(), "name": "passwd"}]}}),
        ),
        (
            Agent,
            json!({"id": 4, "error": {"code": 1, "message": "no",
            "data": {"environment": {"K": secret()}, "cookie": secret()}}}),
        ),
    ]
}

/// Messages with the text in each place for a text.
fn with_text(text: &str, number: usize) -> Vec<(Side, Value)> {
    use Side::{Agent, Client};
    let id = 100 + number;
    vec![
        (
            Client,
            json!({"id": id, "method": "session/prompt", "params": {"sessionId": "s",
            "prompt": [{"type": "text", "text": format!("use {text} please")}]}}),
        ),
        (
            Agent,
            json!({"method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "tool_call", "rawInput": {"command": format!("curl -H '{text}' x")}}}}),
        ),
        (
            Agent,
            json!({"id": id, "error": {"code": -1, "message": format!("bad:\n{text}\nend")}}),
        ),
        (
            Client,
            json!({"method": "_meta", "params": {"_meta": {text: [text]}}}),
        ),
    ]
}

fn record_all(recording: &mut TestRecording, secrets: &mut PlantedSecrets) {
    for (from, message) in placed(secrets) {
        recording.forward(from, message.to_string().as_bytes());
        recording.forward(from, format!("{message:#}").as_bytes());
    }
    for (number, text) in secrets.shaped().iter().enumerate() {
        for (from, message) in with_text(text, number) {
            recording.forward(from, message.to_string().as_bytes());
            recording.forward(from, format!("{message:#}").as_bytes());
            // As encoders write it that escape more than they must.
            recording.forward(from, message.to_string().replace('/', "\\/").as_bytes());
        }
        recording.forward(Side::Agent, format!("[INFO] {text}").as_bytes());
        recording.forward(Side::Agent, &[text.as_bytes(), b" \xff"].concat());
        recording
            .handle
            .stderr(format!("warn: {text}\n").as_bytes());
        recording.handle.event(EventKind::Mark(text.clone()));
        recording.recorder.on_event(&Event::Note(&Note::Answered {
            to: Side::Client,
            id: IdBuf::Null,
            method: text.clone(),
            code: 1,
        }));
        // A translated message, and the patch between the two.
        let received = Frame::from(json!({"method": "a", "params": {"t": text}}).to_string());
        let sent = Frame::from(json!({"method": "b", "params": {"u": text}}).to_string());
        recording.translate(Side::Agent, &received, &[], &sent);
    }
}

#[test]
fn planted_secrets_appear_nowhere() {
    for mode in [Mode::Full, Mode::Default, Mode::Structure, Mode::Meta] {
        let mut secrets = PlantedSecrets::default();
        let setup = RecorderSetup {
            mode,
            dialect: "goose-v1",
            ..RecorderSetup::default()
        };
        let mut recording = setup.start();
        record_all(&mut recording, &mut secrets);
        let text = recording.end().1.concat();
        assert!(secrets.0.len() > 80, "{} were planted", secrets.0.len());
        if mode != Mode::Full {
            secrets.assert_absent(mode.name(), &text);
            continue;
        }
        // Without redaction they are all in the recording.
        let text = String::from_utf8(text).unwrap();
        assert!(secrets.0.iter().all(|secret| text.contains(&secret[..])));
    }
}

fn redacted(text: &str) -> Option<(String, Vec<String>)> {
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    let found = redactor.json(text.as_bytes(), None)?;
    Some((String::from_utf8(found.text).unwrap(), found.places))
}

#[test]
fn the_bytes_around_a_secret_are_kept_and_its_place_is_reported() {
    let text =
        r#"{ "a" :1e400, "params":{"env":[ {"name":"A/~B","value":"hunter2"} ],"z":"\ud83d"} }"#;
    let (clean, places) = redacted(text).unwrap();
    assert_eq!(places, ["/params/env/0/value"]);
    let mark = &clean[clean.find('‹').unwrap()..clean.find('›').unwrap() + '›'.len_utf8()];
    assert_eq!(clean, text.replace("hunter2", mark));
    let (same, _) = redacted(r#"{"headers":{"x":"hunter2","y":"other"}}"#).unwrap();
    assert_eq!(same.matches(mark).count(), 1);
    let (_, places) = redacted(r#"{"a/b":{"password":"x"}}"#).unwrap();
    assert_eq!(places, ["/a~1b/password"]);
}

/// If each word were searched to the end of the text, this would take hours.
#[test]
fn a_text_of_many_secret_prefixes_takes_linear_time() {
    let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
    for word in [
        "sk-",
        "key=",
        "token: ",
        "-----BEGIN",
        "c2st/",
        "://@",
        "://a",
        "Basic ",
        "eyJ.",
        "Cookie: a=",
        "cookie=",
        "Authorization: ",
        "authorization=",
        "?sig=",
        "&sig=signature=",
        "://u:'@",
        "\\uff1ask-",
    ] {
        let text = word.repeat((256 << 10) / word.len());
        let message = json!({"env": 1, "text": text}).to_string();
        assert!(
            redactor
                .text(text.as_bytes())
                .is_none_or(|clean| clean != text.as_bytes())
        );
        assert!(
            redactor
                .json(message.as_bytes(), None)
                .is_none_or(|clean| clean.text != message.as_bytes())
        );
    }
}

#[test]
fn users_can_add_pointers_of_secret_places() {
    let patterns = vec![
        "/params/_meta/*/pin".parse().unwrap(),
        "/result".parse().unwrap(),
    ];
    let redactor = Redactor::new(Mode::Default, patterns, [1; 32]);
    let text = br#"{"params":{"_meta":{"a":{"pin":1234,"not":"x"}}},"result":{"b":["c",true]}}"#;
    let found = redactor.json(text, None).unwrap();
    assert_eq!(found.places, ["/params/_meta/a/pin", "/result/b/0"]);
    for wrong in ["params", "", "/a~2"] {
        wrong
            .parse::<acp_relay::recording::redact::PointerPattern>()
            .unwrap_err();
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<i32>().prop_map(|number| json!(number)),
        "[a-zA-Z0-9 \\\\\"/é\n-]{0,24}".prop_map(|text| json!(text)),
        Just(json!("sk-abcdefgh0123456789abcdefgh")),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        let name = prop_oneof![
            "[a-z]{1,4}",
            Just("env".to_owned()),
            Just("password".to_owned()),
            Just("value".to_owned()),
            Just("name".to_owned()),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map(name, inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The result is JSON and differs from the message at the reported places only.
    #[test]
    fn only_the_reported_places_are_changed(tree in json_value()) {
        let text = tree.to_string();
        let redactor = Redactor::new(Mode::Default, Vec::new(), [1; 32]);
        if let Some(found) = redactor.json(text.as_bytes(), None) {
            prop_assert!(is_json(&found.text, &Limits::default()));
            let clean: Value = serde_json::from_slice(&found.text).unwrap();
            for step in patch::between(&tree, &clean).as_array().unwrap() {
                let place = step["path"].as_str().unwrap();
                let reported = found.places.iter().any(|one| one == place || one.ends_with("/*"));
                prop_assert!(reported, "{place} is not among {:?}", found.places);
            }
            prop_assert!(!String::from_utf8(found.text).unwrap().contains("sk-abcdefgh0"));
        }
    }
}

#[test]
fn an_answer_with_a_redacted_id_is_recorded_with_its_request() {
    let mut recording = RecorderSetup::default().start();
    recording.forward(
        Side::Client,
        br#"{"id":"sk-abcdefgh0123456789abcdef","method":"a"}"#,
    );
    recording.forward(
        Side::Agent,
        br#"{"id":"sk-abcdefgh0123456789abcdef","result":1}"#,
    );
    let (_, segments) = recording.end();
    let text = String::from_utf8(segments.concat()).unwrap();
    assert!(!text.contains("sk-abcdefgh"), "{text}");
    let all = events(text.into_bytes());
    let EventKind::Message(answer) = &all[1].kind else {
        panic!("{all:?}");
    };
    assert_eq!(
        (answer.answers, answer.method.as_deref()),
        (Some(1), Some("a"))
    );
}
