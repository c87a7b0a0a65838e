//! Redaction: what is replaced, and what is recorded beside it.

use acp_relay::jsonrpc::{Frame, Kind, Limits, Side, is_json};
use acp_relay::recording::redact::{Mode, RedactState, Redactor};
use acp_relay::recording::{EventKind, patch};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::stage::{RecorderSetup, events};

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
        "PASSWORD=",
        "--password=x",
        "PASSWORD=a.",
        "PASS=",
        "_auth=",
        "API_KEY=",
        "t-protocol",
        "\"-----BEGIN ",
    ] {
        let text = word.repeat((256 << 10) / word.len());
        let message = json!({"env": 1, "text": text}).to_string();
        let _ = redactor.text(text.as_bytes());
        let _ = redactor.json(message.as_bytes(), None);
        let (mut flow, kind) = (RedactState::default(), Some(Kind::Notification));
        let _ = redactor.json_streamed(&mut flow, message.as_bytes(), kind, None);
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
            .parse::<recording::redact::PointerPattern>()
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

#[test]
fn neither_a_translation_nor_its_patch_has_the_secret() {
    for mode in [Mode::Default, Mode::Structure, Mode::Meta] {
        let setup = RecorderSetup {
            mode,
            dialect: "goose-v1",
            ..RecorderSetup::default()
        };
        let mut recording = setup.start();
        let message = |name: &str| {
            let params =
                json!({"text": "it is sk-abcdefgh0123456789abcdef", "env": {"A": "hunter2"}});
            Frame::from(json!({"method": name, "params": {name: params}}).to_string())
        };
        recording.translate(Side::Agent, &message("a"), &[], &message("b"));
        recording
            .handle
            .event(EventKind::Mark("sk-abcdefgh0123456789abcdef".to_owned()));
        let text = String::from_utf8(recording.end().1.concat()).unwrap();
        assert!(
            !text.contains("abcdefgh") && !text.contains("hunter2"),
            "{text}"
        );
    }
}
