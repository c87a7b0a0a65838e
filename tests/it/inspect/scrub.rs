//! Copies with the current rules: no secret in any member of a line, no partial copies.
//! `vectors/commands/damage.trycmd` has what remains in the header.

use std::fs;
use std::path::Path;

use acp_relay::jsonrpc::{Kind, Side};
use acp_relay::recording::write::{self, Stamp};
use acp_relay::recording::{EventKind, Header, Message, Payload, VERSION};

use super::answer;

const KEY: &str = "sk-abcdefgh0123456789abcdefgh";

/// A recording in which a secret is a method.
fn recording(folder: &Path, body: Payload) -> String {
    let header = Header {
        version: VERSION,
        id: "00".repeat(16),
        first: 1,
        ..Header::default()
    };
    let message = Message {
        edge: Side::Client,
        to: Side::Agent,
        id: Some("1".to_owned()),
        method: Some(format!("_log/{KEY}")),
        session: None,
        kind: Some(Kind::Request),
        answers: None,
        source: None,
        rules: Vec::new(),
        patch: None,
        redacted: Vec::new(),
        body,
    };
    let mut lines = Vec::new();
    write::header(&mut lines, &header);
    let stamp = Stamp { n: 1, t: 1, w: 1 };
    write::event(&mut lines, stamp, &EventKind::Message(Box::new(message)));
    let file = folder.join("x.acpr");
    fs::write(&file, lines).unwrap();
    file.to_str().unwrap().to_owned()
}

fn body() -> Payload {
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"_log/{KEY}","params":{{"t":"said"}}}}"#);
    Payload::Json(text.into())
}

#[test]
fn a_secret_in_a_method_is_in_no_member_of_the_copy() {
    for body in [body(), Payload::Omitted(97)] {
        for mode in ["default", "structure", "meta"] {
            let folder = tempfile::tempdir().unwrap();
            let file = recording(folder.path(), body.clone());
            let copy = folder.path().join("copy.acpr");
            answer(
                &["scrub", "--redact", mode, &file, copy.to_str().unwrap()],
                0,
            );
            let text = fs::read_to_string(&copy).unwrap();
            assert!(text.contains("\"me\":"), "{text}");
            assert!(!text.contains(KEY), "{mode}: {text}");
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let Payload::Json(message) = body() else {
        unreachable!()
    };
    let message = String::from_utf8(message.to_vec()).unwrap();
    let capture = format!("{{\"dir\":\"c2a\",\"ts\":0,\"msg\":{message}}}\n");
    let file = super::recording(folder.path(), "imported", &capture);
    let text = fs::read_to_string(file).unwrap();
    assert!(!text.contains(KEY), "{text}");
}

#[test]
fn a_copy_is_complete_or_absent() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), body());
    let whole = fs::read_to_string(&file).unwrap();
    let copy = folder.path().join("copy.acpr");
    let copy = copy.to_str().unwrap();
    fs::write(&file, whole.replace("said", "sald")).unwrap();
    answer(&["scrub", &file, copy], 66);
    let names = fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 1, "a part of the copy is left");
    fs::write(&file, &whole).unwrap();
    answer(&["scrub", &file, copy], 0);
    let names = fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 2, "there are other files than the copy");
    let before = fs::read(copy).unwrap();
    answer(&["scrub", &file, copy], 73);
    assert_eq!(fs::read(copy).unwrap(), before);
    // The longest possible name.
    let long = folder.path().join(format!("{}.acpr", "n".repeat(250)));
    answer(&["scrub", &file, long.to_str().unwrap()], 0);
    let names = fs::read_dir(folder.path()).unwrap();
    assert_eq!(names.count(), 3, "there are other files than the copies");
}
