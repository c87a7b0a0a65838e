//! Files that are no recordings or incomplete ones.

use std::fs;

use super::{CAPTURES, answer, capture, import, inspect};
use crate::support::program::run_on;

/// The message of each subcommand for an unreadable file: one line with the file and the remedy.
#[test]
fn a_file_that_is_no_recording_is_reported_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = fs::read(&good).unwrap();
    fs::create_dir(path("folder")).unwrap();
    fs::write(path("empty.acpr"), "").unwrap();
    fs::write(path("torn.acpr"), &whole[..200]).unwrap();
    fs::write(path("foreign.acpr"), "hello\nworld\n").unwrap();
    fs::write(path("bytes.acpr"), [0xff; 300]).unwrap();
    let packed = zstd::encode_all(&whole[..], 1).unwrap();
    fs::write(path("packed.acpr.zst"), &packed[..60]).unwrap();
    fs::write(path("packed"), &packed[..60]).unwrap();
    fs::write(path("newer.acpr"), newer(&whole)).unwrap();
    for (name, reports) in [
        ("missing.acpr", "no such file"),
        ("folder", "inspect ls"),
        ("empty.acpr", "it is empty"),
        ("torn.acpr", "it is empty"),
        ("foreign.acpr", "inspect import"),
        ("bytes.acpr", "inspect import"),
        ("packed.acpr.zst", "zstd -d"),
        ("packed", "zstd -d"),
        ("newer.acpr", "use a newer acp-relay"),
    ] {
        let file = path(name);
        let copy = path("copy.acpr");
        for args in [
            vec!["show", &file],
            vec!["stats", &file],
            vec!["lint", &file],
            vec!["grep", "x", &file],
            vec!["export", &file, "--to", "md"],
            vec!["diff", &good, &file],
            vec!["mark", &file, "here"],
            vec!["scrub", &file, &copy],
        ] {
            let before = fs::read(&file).ok();
            let output = inspect(&args);
            let reported = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(66), "{args:?}: {reported}");
            assert_eq!(reported.lines().count(), 1, "{args:?}: {reported}");
            assert!(
                reported.contains(reports) && reported.contains(&file),
                "{args:?}: {reported}"
            );
            assert_eq!(output.stdout, b"", "{args:?}");
            assert_eq!(fs::read(&file).ok(), before, "{args:?} has changed it");
            let _ = fs::remove_file(&copy);
        }
    }
}

/// A second read of a pipe gets only the rest, which was once shown as the whole.
#[test]
fn a_pipe_is_refused_where_it_would_be_read_twice() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    let whole = fs::read(&good).unwrap();
    let bare = fs::read(capture(CAPTURES[4])).unwrap();
    let pipe = "/dev/stdin";
    for args in [
        &["inspect", "show", pipe][..],
        &["inspect", "follow", pipe],
        &["inspect", "stats", pipe],
        &["inspect", "lint", pipe],
        &["inspect", "verify", pipe],
        &["inspect", "grep", "x", pipe],
        &["inspect", "export", pipe, "--to", "md"],
        &["inspect", "diff", &good, pipe],
        &["replay", "client", pipe, "--", "true"],
        &["bisect", pipe, "--", "true"],
        &["replay", "agent", pipe],
    ] {
        for text in [&whole, &bare] {
            let output = run_on(args, text);
            let reported = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(66), "{args:?}: {reported}");
            assert!(reported.contains("is a pipe"), "{args:?}: {reported}");
        }
    }
    // A file that is read once may be a pipe.
    let to = folder.path().join("piped.acpr");
    let to = to.to_str().unwrap();
    let output = run_on(&["inspect", "import", "-", to], &bare);
    assert_eq!(output.status.code(), Some(0));
    answer(&["diff", &good, to], 0);
}

/// The recording with a header of a later version, whose checksum is right.
fn newer(whole: &[u8]) -> Vec<u8> {
    let text = std::str::from_utf8(whole).unwrap();
    let (header, rest) = text.split_once('\n').unwrap();
    let (content, _) = header.rsplit_once(",\"crc\"").unwrap();
    let content = content.replacen("\"acpr\":1", "\"acpr\":2", 1);
    let sum = crc32c::crc32c(content.as_bytes());
    format!("{content},\"crc\":\"{sum:08x}\"}}\n{rest}").into_bytes()
}
