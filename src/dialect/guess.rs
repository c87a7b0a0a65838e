//! Names, media types and kinds that one message omits and another requires. Each is a fixed list;
//! tables request them with `derive`.

use std::borrow::Cow;

use data_encoding::BASE64_NOPAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// What is encoded in a segment of a URI's path (RFC 3986, section 3.3).
pub const PATH_SEGMENT: AsciiSet = {
    let plain = b"-._~!$&'()*+,;=:@";
    let mut set = NON_ALPHANUMERIC.remove(plain[0]);
    let mut at = 1;
    while at < plain.len() {
        set = set.remove(plain[at]);
        at += 1;
    }
    set
};

/// The last name in a URI's path, percent-decoded; the URI itself when it has none.
pub(super) fn basename(uri: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or(uri);
    let path = path.trim_end_matches('/');
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    if name.is_empty() {
        return uri.to_owned();
    }
    decoded(name)
}

/// A path as a `file` URI (RFC 8089).
pub(super) fn file_uri(path: &str) -> String {
    let names = path.split('/');
    let names: Vec<String> = names
        .map(|name| utf8_percent_encode(name, &PATH_SEGMENT).to_string())
        .collect();
    format!("file://{}", names.join("/"))
}

/// The path of a `file` URI, without query and fragment; `None` when it is another URI.
pub(super) fn file_path(uri: &str) -> Option<String> {
    let path = uri.strip_prefix("file://")?;
    let path = path.strip_prefix("localhost").unwrap_or(path);
    let path = path.split(['?', '#']).next().unwrap_or(path);
    path.starts_with('/').then(|| decoded(path))
}

fn decoded(text: &str) -> String {
    let plain = percent_decode_str(text).decode_utf8();
    plain.map_or_else(|_| text.to_owned(), Cow::into_owned)
}

/// The media type of base64 data, recognised by its first bytes.
pub(super) fn media_type(data: &str) -> &'static str {
    const KNOWN: [(&[u8], &str); 10] = [
        (b"\x89PNG", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"BM", "image/bmp"),
        (b"<svg", "image/svg+xml"),
        (b"ID3", "audio/mpeg"),
        (b"\xff\xfb", "audio/mpeg"),
        (b"OggS", "audio/ogg"),
        (b"fLaC", "audio/flac"),
        (b"%PDF-", "application/pdf"),
    ];
    let head = first_bytes(data);
    if head.starts_with(b"RIFF") {
        return match head.get(8..12) {
            Some(b"WEBP") => "image/webp",
            Some(b"AVI ") => "video/x-msvideo",
            _ => "audio/wav",
        };
    }
    let found = KNOWN.iter().find(|(magic, _)| head.starts_with(magic));
    found.map_or("application/octet-stream", |(_, kind)| kind)
}

/// The first twelve bytes of base64 data, in either alphabet.
fn first_bytes(data: &str) -> Vec<u8> {
    let letters = data.bytes().take(16).map(|letter| match letter {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    });
    let is_plain = |letter: &u8| letter.is_ascii_alphanumeric() || matches!(letter, b'+' | b'/');
    let letters: Vec<u8> = letters.take_while(is_plain).collect();
    BASE64_NOPAD.decode(&letters).unwrap_or_default()
}

/// The kind of tool that a tool's name indicates.
pub(super) fn tool_kind(name: &str) -> &'static str {
    const WORDS: [(&str, &[&str]); 8] = [
        ("read", &["read", "cat", "open", "view"]),
        (
            "edit",
            &[
                "write", "edit", "patch", "create", "append", "replace", "apply",
            ],
        ),
        ("delete", &["delete", "remove", "rm", "unlink"]),
        ("move", &["move", "rename", "mv"]),
        ("search", &["search", "grep", "find", "glob", "list", "ls"]),
        (
            "execute",
            &[
                "run", "exec", "shell", "bash", "command", "terminal", "test",
            ],
        ),
        ("think", &["think", "plan", "reason"]),
        (
            "fetch",
            &["fetch", "http", "web", "url", "download", "curl"],
        ),
    ];
    let mut words = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    for letter in name.chars().take(256) {
        // A capital after a lower-case letter begins a word, as in `readFile`.
        if !letter.is_alphanumeric() || (letter.is_uppercase() && lower) {
            words.push(std::mem::take(&mut word));
        }
        lower = letter.is_lowercase() || letter.is_numeric();
        word.extend(
            letter
                .to_lowercase()
                .filter(|letter| letter.is_alphanumeric()),
        );
    }
    words.push(word);
    let found = WORDS
        .iter()
        .find(|(_, known)| words.iter().any(|word| known.contains(&word.as_str())));
    found.map_or("other", |(kind, _)| kind)
}
