//! What is remembered of the message before saves work, and changes nothing: in whatever messages
//! begin alike, and wherever they part, the same is found as without a memory.

use acp_relay::recording::redact::{Mode, PrefixCache, Redactor};
use proptest::prelude::*;
use serde_json::json;

const KEY: &str = "abcdefgh0123456789abcdefgh";

/// What stands before a key that makes it a secret, and what has to stand behind it.
const SHAPES: [(&str, &str); 39] = [
    ("sk-", ""),
    ("github_pat_", ""),
    ("sk_live_", ""),
    ("xoxb-", ""),
    ("AIza", "abcdefgh0123456789"),
    ("ya29.", ""),
    ("AKIA", ""),
    ("eyJ", ".eyJzdWI.0123456789"),
    ("Authorization: Bearer ", ""),
    ("Basic ", ""),
    ("api_key=", ""),
    ("token: ", ""),
    ("the password = ", ""),
    ("--client-secret=", ""),
    ("MY_CREDENTIALS ", ""),
    ("https://user:", "@example.com/x"),
    ("see https://", "@example.com/x"),
    ("c2stYWJjZGVmZ2gwMTIzNDU2Nzg5YWJjZGVmZ2g", ""),
    ("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t", ""),
    (
        "-----BEGIN PRIVATE KEY-----\n",
        "\n-----END PRIVATE KEY-----",
    ),
    ("{\"apiKey\": \"", "\"}"),
    ("Cookie-Secret: ", ""),
    ("\u{1b}[31msk-", "\u{1b}[0m"),
    ("密钥：sk-", ""),
    ("“ghp_", "”"),
    ("🔑Bearer ", ""),
    ("api_key：", ""),
    ("hvs.", ""),
    ("SG.", "abcdefgh.abcdefgh0123456789"),
    ("tskey-auth-", ""),
    ("GPG_PASSPHRASE=", ""),
    ("Cookie: a=b; session=", "; path=/"),
    ("Authorization: ", ""),
    ("Bearer\t", ""),
    ("see https://x/?sig=", "&x=1"),
    ("see https://x/?X-Amz-Signature=", ""),
    ("postgres://u:p'", "@host/db"),
    ("postgres://u:#", "@host/db"),
    ("PGPASSWORD=", ""),
];

fn redactors() -> [Redactor; 2] {
    [Mode::Default, Mode::Meta].map(|mode| Redactor::new(mode, Vec::new(), [1; 32]))
}

fn update(text: &str) -> String {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "text": text}})
        .to_string()
}

/// As encoders spell it that write nothing but ASCII.
fn in_ascii(message: &str) -> String {
    let spelled = message.chars().map(|letter| match letter.is_ascii() {
        true => letter.to_string(),
        false => {
            let units = letter.encode_utf16(&mut [0; 2]).to_vec();
            units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
    });
    spelled.collect()
}

/// The same is found in each of a stream of messages, also when they are spelled in ASCII; in how
/// many something is, at least.
fn same(redactor: &Redactor, messages: &[String]) -> usize {
    let ascii: Vec<String> = messages.iter().map(|message| in_ascii(message)).collect();
    same_as_spelled(redactor, messages).min(same_as_spelled(redactor, &ascii))
}

fn same_as_spelled(redactor: &Redactor, messages: &[String]) -> usize {
    let mut memory = PrefixCache::default();
    let found = messages.iter().filter(|message| {
        let text = message.as_bytes();
        let alone = redactor.json(text, None);
        let after = redactor.json_cached(&mut memory, text, None);
        assert_eq!(after, alone, "{message} in {messages:#?}");
        alone.is_some()
    });
    found.count()
}

/// The first message goes as far as somewhere in a secret, and the next one has all of it.
#[test]
fn a_secret_across_the_border_of_what_is_known_is_found() {
    let redactors = redactors();
    let [redactor, _] = &redactors;
    for (before, behind) in SHAPES {
        let secret = format!("{before}{KEY}{behind}");
        for pad in 0..16 {
            let pad = format!("{} ", &"long before it, words ".repeat(2)[..20 + pad]);
            for cut in (0..=secret.len()).filter(|cut| secret.is_char_boundary(*cut)) {
                let begins = update(&format!("{pad}{} and on", &secret[..cut]));
                let whole = update(&format!("{pad}{secret} and on"));
                let messages = [begins.clone(), whole.clone(), begins, whole];
                assert!(same(redactor, &messages) >= 2, "{messages:#?}");
            }
        }
    }
}

/// Or the first of them has a name that makes no secret of what it names, and the next one does.
#[test]
fn a_place_across_the_border_of_what_is_known_is_found() {
    let message = |name: &str, value: &str| {
        let value = json!({"A": value, "b": [value]});
        format!(r#"{{"jsonrpc":"2.0","a":"words before it","{name}":{value},"text":"and on"}}"#)
    };
    let names = [
        "api_key",
        "environment",
        "headers",
        "Authorization",
        "set-cookie",
        "password",
        "passWord",
        "PASSPHRASE",
        "Sec-WebSocket-Protocol",
    ];
    for (name, redactor) in names.iter().flat_map(|name| [(name, 0), (name, 1)]) {
        for cut in 0..=name.len() {
            let messages = [message(&name[..cut], "no"), message(name, "hunter2")];
            assert!(same(&redactors()[redactor], &messages) >= 1, "{messages:?}");
        }
    }
}

/// Parts of texts: secrets, parts of them, and what is none.
fn part() -> impl Strategy<Value = String> {
    let shape = prop::sample::select(&SHAPES[..]);
    prop_oneof![
        3 => (shape.clone(), 0..30_usize).prop_map(|((before, _), at)| {
            before.chars().take(at).collect()
        }),
        1 => shape.prop_map(|(before, behind)| format!("{before}{KEY}{behind}")),
        1 => Just(KEY.to_owned()),
        1 => prop::sample::select(&["@", "://", "key", "\"", "-", "_", "\\u0073", ";base64,", "m", "'", "#", "?sig=", "“"][..])
            .prop_map(str::to_owned),
        3 => "[a-zA-Z0-9 .,:=\n\"é-]{0,40}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]
    /// Each message goes along a text for a while, and then goes on in another way, or as before.
    #[test]
    fn a_memory_changes_nothing(
        along in prop::collection::vec(part(), 1..8),
        names in prop::collection::vec(part(), 2),
        steps in prop::collection::vec((0.0..1.0, part(), prop::bool::ANY), 2..10),
    ) {
        let along: Vec<char> = along.concat().chars().collect();
        let messages: Vec<String> = steps.into_iter().map(|(share, other, on)| {
            let cut = (along.len() as f64 * share) as usize;
            let rest: &[char] = if on { &along[cut..] } else { &[] };
            let text: String = along[..cut].iter().chain(rest).copied().chain(other.chars()).collect();
            let (one, two) = (json!(names[0]), json!(names[1]));
            format!(r#"{{"jsonrpc":"2.0","params":{{{one}:{},{two}:{{"c":"d"}}}}}}"#, json!(text))
        }).collect();
        for redactor in &redactors() {
            same(redactor, &messages);
        }
    }
}
