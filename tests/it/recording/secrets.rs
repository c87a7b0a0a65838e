//! Redaction: secrets that are planted in every place they can occur appear nowhere.

use acp_relay::conversation::Note;
use acp_relay::jsonrpc::{Frame, IdBuf, Limits, Side, is_json};
use acp_relay::observe::{Event, Observer};
use acp_relay::recording::redact::{Mode, Redactor};
use acp_relay::recording::{EventKind, patch};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::stage::{RecorderSetup, TestRecording, events};

/// Makes secrets of all shapes, and keeps them.
struct PlantedSecrets {
    count: u32,
    planted: Vec<String>,
}

impl PlantedSecrets {
    /// Random letters and digits, the same each time.
    fn letters(&mut self, length: usize) -> String {
        self.count += 1;
        let mut state = u64::from(self.count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut letters = String::from("C4n");
        while letters.len() < length {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let alphabet = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789";
            letters.push(char::from(
                alphabet[(state >> 20) as usize % alphabet.len()],
            ));
        }
        letters
    }

    /// A secret without a shape: only its place shows that it is one.
    fn plain(&mut self) -> String {
        let secret = self.letters(14);
        self.planted.push(secret.clone());
        secret
    }

    /// A secret with the prefix of a known maker.
    fn shaped(&mut self, before: &str) -> String {
        let secret = self.letters(36);
        self.planted.push(secret.clone());
        format!("{before}{secret}")
    }

    fn all_shapes(&mut self) -> Vec<String> {
        let mut all: Vec<String> = [
            "sk-",
            "sk-ant-api03-",
            "sk-proj-",
            "ghp_",
            "gho_",
            "ghs_",
            "github_pat_",
            "glpat-",
            "AIza",
            "xoxb-",
            "xoxp-",
            "npm_",
            "hf_",
            "sk_live_",
            "rk_test_",
            "whsec_",
            "gsk_",
            "xai-",
            "pplx-",
            "nvapi-",
            "ghr_",
            "xapp-1-",
            "Bearer ",
            "Basic ",
            "api_key=",
            "token: ",
            "password = ",
            "SECRET_KEY=\"",
            "--token=",
            "\"apiKey\": \"",
            "https://user:",
            "AKIA",
            "ya29.",
        ]
        .iter()
        .map(|before| self.shaped(before))
        .collect();
        let at = all
            .iter()
            .position(|text| text.starts_with("https://"))
            .unwrap();
        all[at].push_str("@example.com/path");
        let (a, b, c) = (self.letters(20), self.letters(40), self.letters(30));
        self.planted.extend([b.clone(), c.clone()]);
        all.push(format!("eyJ{a}.{b}.{c}"));
        let (a, b) = (self.letters(60), self.letters(60));
        self.planted.extend([a.clone(), b.clone()]);
        all.push(format!(
            "-----BEGIN PRIVATE KEY-----\n{a}\n{b}\n-----END PRIVATE KEY-----"
        ));
        all
    }
}

/// Messages with a secret in each place.
fn placed(secrets: &mut PlantedSecrets) -> Vec<(Side, Value)> {
    let mut secret = || secrets.plain();
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
    for (number, text) in secrets.all_shapes().iter().enumerate() {
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
    for mode in [Mode::Default, Mode::Structure, Mode::Meta] {
        let mut secrets = PlantedSecrets {
            count: 0,
            planted: Vec::new(),
        };
        let setup = RecorderSetup {
            mode,
            dialect: "goose-v1",
            ..RecorderSetup::default()
        };
        let mut recording = setup.start();
        for _ in 0..3 {
            record_all(&mut recording, &mut secrets);
        }
        let (_, segments) = recording.end();
        let text = String::from_utf8(segments.concat()).unwrap();
        assert!(
            secrets.planted.len() >= 120,
            "{} were planted",
            secrets.planted.len()
        );
        for secret in &secrets.planted {
            if let Some(at) = text.find(&secret[..10]) {
                let start = text[..at].rfind('\n').unwrap_or(0);
                let end = text[at..].find('\n').map_or(text.len(), |end| at + end);
                panic!("{secret} in mode {mode:?}: {}", &text[start..end]);
            }
        }
    }
    // Without redaction they are all in the recording.
    let mut secrets = PlantedSecrets {
        count: 0,
        planted: Vec::new(),
    };
    let mut recording = RecorderSetup {
        mode: Mode::Full,
        ..RecorderSetup::default()
    }
    .start();
    record_all(&mut recording, &mut secrets);
    let text = String::from_utf8(recording.end().1.concat()).unwrap();
    assert!(
        secrets
            .planted
            .iter()
            .all(|secret| text.contains(&secret[..]))
    );
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

#[test]
fn text_that_is_no_secret_is_kept() {
    for text in [
        r#"{"method":"session/update","params":{"sessionId":"sess_0123456789abcdef0123456789abcdef"}}"#,
        r#"{"text":"the key to success is a token of gratitude; keep it secret, use a password"}"#,
        r#"{"uri":"file:///home/user@host/key.pem","u":"https://example.com/a@b"}"#,
        r#"{"text":"risk-averse task-0123456789012345678901","keys":["a","b"],"tokens":1234567890123456}"#,
        r#"{"env":[],"headers":{},"environment":null}"#,
        r#"{"text":"let key = map.get(name); // tokenizer: BasicTokenizer"}"#,
        // Prose and code.
        r#"{"text":"a basic understanding of bearer authentication and Basic operations"}"#,
        r#"{"text":"let token = generateAccessTokenForUser(user2); key = self.keys.borrow_mut()"}"#,
        r#"{"text":"key: src/components/Button2.tsx, keyboard /usr/lib/x86_64-linux-gnu/libkey.so.3"}"#,
        r#"{"text":"const apiKey = process.env.OPENAI_API_KEY2; token=config.auth.accessToken1"}"#,
        r#"{"text":"-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUd1\n-----END CERTIFICATE-----"}"#,
        r#"{"text":"git clone ssh://git@example.com/a/b2.git; postgres://postgres@localhost/x1"}"#,
        r#"{"text":"//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0"}"#,
        r#"{"text":"the monkey 2024-11-21T00:47:12 said: keys: 1234567890123456"}"#,
        // What agents report about themselves.
        r#"{"authMethods":[{"id":"gemini-api-key","_meta":{"api-key":{"provider":"google"}}}]}"#,
        r#"{"id":1,"method":"authenticate","params":{"methodId":"gemini-api-key"}}"#,
        r#"{"options":[{"value":"gemini-api-key","name":"Gemini API key"},{"value":"x","name":"Max tokens"}]}"#,
        r#"{"inputSchema":{"properties":{"api_key":{"type":"string","description":"Your API key"},
           "env":{"type":"object"},"headers":{"type":"array"}}}}"#,
        r#"{"toolKey":"mcp__github__create_issue2","keybinding":"ctrl+shift+alt+F12"}"#,
    ] {
        assert_eq!(redacted(text), None, "{text}");
    }
}

#[test]
fn secrets_in_other_spellings_are_found() {
    const KEY: &str = "abcdefgh0123456789abcdefgh";
    for (text, stays) in [
        // Written in escapes, in whole or in part; the text around it stays.
        (r#"{"text":"say \u0073k-KEY twice"}"#, "twice"),
        (r#"{"text":"say sk-KEY\u0041KEY \u001b[0m twice"}"#, "twice"),
        (r#"{"text":"say sk-KEY\/KEY twice"}"#, "twice"),
        (r#"{"\u0061pi_key":"KEY"}"#, "u0061pi_key"),
        (r#"{"sk-KEY":1,"b":2}"#, "\"b\":2"),
        (
            r#"{"id":1,"method":"x/sk-KEY","params":{}}"#,
            "\"params\":{}",
        ),
        // Behind a terminal's colours.
        (r#"{"text":"\u001b[31msk-KEY\u001b[0m"}"#, "[0m"),
        ("{\"text\":\"[1;31mghp_KEY\"}", "[1;31m"),
        // Base64 of letters alone; a passphrase; a key of lower case.
        (r#"{"text":"Authorization: Basic KEYKEY"}"#, "Basic"),
        (
            r#"{"text":"Authorization: Bearer letmeinplease"}"#,
            "Bearer",
        ),
        (
            r#"{"text":"password: correct-horse-KEY-staple-7"}"#,
            "password",
        ),
        (r#"{"text":"token: k3j9x2mf8v0q1wz7abcKEY"}"#, "token"),
        (
            r#"{"text":"redis://:KEY@localhost:6379 and https://KEY@host/x"}"#,
            "localhost",
        ),
        (r#"{"text":"/acp?api_key=KEY&x=1"}"#, "&x=1"),
        // In a secret place, whatever the member's name.
        (
            r#"{"api_key":{"provider":"google","value":"KEY"}}"#,
            "google",
        ),
        (r#"{"env":{"type":"KEY","title":"KEY"}}"#, "title"),
    ] {
        let text = text.replace("KEY", KEY);
        let (clean, _) = redacted(&text).unwrap_or_else(|| panic!("nothing found in {text}"));
        for secret in [KEY, "letmein", "correct-horse", "k3j9x2"] {
            assert!(!clean.contains(secret), "{clean}");
        }
        assert!(clean.contains(stays), "{clean}");
        assert!(is_json(clean.as_bytes(), &Limits::default()), "{clean}");
    }
}

#[test]
fn secrets_in_json_strings_and_keys_in_base64_are_found() {
    const KEY: &str = "abcdefgh0123456789abcdefgh";
    let encode = |text: &str| data_encoding::BASE64.encode(text.as_bytes());
    let inner = json!({"env": {"A": "hunter2"}, "password": "hunter2", "stays": 1.50});
    let deeper =
        json!({"arguments": inner.to_string(), "headers": [{"name": "X", "value": "hunter2"}]});
    for (message, stays) in [
        (json!({"text": inner.to_string()}), "stays"),
        (json!({"text": format!(" {inner:#}")}), "stays"),
        (json!({"text": json!([inner]).to_string()}), "stays"),
        (json!({"rawInput": {"x": deeper.to_string()}}), "stays"),
        // Escaped again in the middle of a text.
        (
            json!({"text": format!("he said {}", json!(json!({"api_key": KEY}).to_string()))}),
            "he said",
        ),
        (
            json!({"text": format!("cat: {} ok", encode(&format!("sk-{KEY}")))}),
            "ok",
        ),
        (
            json!({"data": {"x": encode(&format!("ghp_{KEY}\n"))}}),
            "data",
        ),
        (
            json!([encode(&format!("-----BEGIN PRIVATE KEY-----\n{KEY}"))]),
            "[",
        ),
        (
            json!({"uri": format!("/x/{}", encode(&format!("AKIA{KEY}")))}),
            "/x/",
        ),
    ] {
        let text = message.to_string();
        let (clean, places) = redacted(&text).unwrap_or_else(|| panic!("nothing in {text}"));
        for secret in [
            "hunter2",
            KEY,
            &encode(KEY)[..8],
            "c2st",
            "Z2hw",
            "LS0t",
            "QUtJ",
        ] {
            assert!(!clean.contains(secret), "{secret} in {clean}");
        }
        assert!(clean.contains(stays), "{clean}");
        assert_eq!(places.len(), 1, "{places:?}");
        let clean: Value = serde_json::from_str(&clean).unwrap();
        for (place, was) in places
            .iter()
            .map(|place| (place, message.pointer(place).unwrap()))
        {
            let is = clean.pointer(place).and_then(Value::as_str).unwrap();
            let was = serde_json::from_str::<Value>(was.as_str().unwrap());
            assert_eq!(
                was.is_ok(),
                serde_json::from_str::<Value>(is).is_ok(),
                "{is}"
            );
        }
    }
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

/// The limits of redaction: see `recording::redact`.
#[test]
fn a_secret_with_neither_a_secret_place_nor_a_known_shape_is_not_found() {
    for text in [
        r#"{"text":"in pieces: sk-abcdef"}"#,
        // Base64 of `x sk-abcdefgh0123456789abcdefgh`, and of `abc: nothing at all in here`.
        r#"{"text":"eCBzay1hYmNkZWZnaDAxMjM0NTY3ODlhYmNkZWZnaA=="}"#,
        r#"{"text":"YWJjOiBub3RoaW5nIGF0IGFsbCBpbiBoZXJl","c2st":"c2stZXRj/c2stZXRjZXRjZXRjZXRjZXRj"}"#,
        // Three strings deep, and in the middle of other text.
        r#"{"text":"\"{\\\"a\\\":\\\"{\\\\\\\"env\\\\\\\":{\\\\\\\"A\\\\\\\":\\\\\\\"hunter2\\\\\\\"}}\\\"}\""}"#,
        r#"{"text":"I say {\"env\":{\"A\":\"hunter2\"}}"}"#,
        r#"{"text":"my cat is called hunter2"}"#,
    ] {
        assert_eq!(redacted(text), None, "{text}");
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
