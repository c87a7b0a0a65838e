//! Files that are no recordings, or no whole ones.

use std::fs;

use super::{CAPTURES, answer, capture, import, inspect};

/// What each subcommand says of a file it cannot read: one line that names the file and says what
/// to do.
#[test]
fn what_is_no_recording_is_told_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = fs::read(&good).unwrap();
    fs::create_dir(path("folder")).unwrap();
    fs::write(path("empty.acpr"), "").unwrap();
    fs::write(path("torn.acpr"), &whole[..200]).unwrap();
    fs::write(path("foreign.acpr"), "hello\nworld\n").unwrap();
    fs::write(path("bytes.acpr"), [0xff; 300]).unwrap();
    fs::write(
        path("packed.acpr.zst"),
        zstd::encode_all(&whole[..], 1).unwrap(),
    )
    .unwrap();
    fs::write(path("packed"), zstd::encode_all(&whole[..], 1).unwrap()).unwrap();
    fs::write(path("newer.acpr"), newer(&whole)).unwrap();
    for (name, says) in [
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
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(66), "{args:?}: {said}");
            assert_eq!(said.lines().count(), 1, "{args:?}: {said}");
            assert!(
                said.contains(says) && said.contains(&file),
                "{args:?}: {said}"
            );
            assert_eq!(output.stdout, b"", "{args:?}");
            assert_eq!(fs::read(&file).ok(), before, "{args:?} has changed it");
            let _ = fs::remove_file(&copy);
        }
    }
}

/// `verify` tells damage, and of what never was a recording what all others tell.
#[test]
fn what_never_was_a_recording_is_no_damaged_one() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    let whole = fs::read(&good).unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("foreign.acpr"), "hello\nworld\n").unwrap();
    fs::write(path("bytes.acpr"), [0xff; 300]).unwrap();
    fs::write(path("newer.acpr"), newer(&whole)).unwrap();
    for (name, says) in [
        ("foreign.acpr", "inspect import"),
        ("bytes.acpr", "inspect import"),
        ("newer.acpr", "use a newer acp-relay"),
        ("missing.acpr", "no such file"),
    ] {
        let output = inspect(&["verify", &path(name), &good]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(66), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.contains(says), "{name}: {said}");
        // The other one is looked at all the same.
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(
            said.contains("intact") && said.lines().count() == 1,
            "{said}"
        );
    }
    // Damage at the very beginning is damage.
    for change in [&b"x"[..], b"\n"] {
        let damaged = [&whole[..20], change, &whole[20 + change.len()..]].concat();
        fs::write(path("damaged.acpr"), damaged).unwrap();
        let output = inspect(&["verify", &path("damaged.acpr")]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
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

#[test]
fn one_that_was_cut_off_is_shown_as_far_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    let torn = folder.path().join("torn.acpr");
    let whole = fs::read(&good).unwrap();
    fs::write(&torn, &whole[..whole.len() / 2]).unwrap();
    let output = inspect(&["show", torn.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("was cut off"), "{said}");
    assert!(output.stdout.len() > 1_000);
}

#[test]
fn one_recording_is_listed_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let good = import(folder.path(), &capture(CAPTURES[4]), "good");
    import(folder.path(), &capture(CAPTURES[3]), "other");
    let all = answer(&["ls", folder.path().to_str().unwrap()], 0);
    let one = answer(&["ls", &good], 0);
    assert_eq!((all.lines().count(), one.lines().count()), (3, 2));
    for line in one.lines() {
        assert!(all.contains(line) && line.chars().count() <= 80, "{line}");
    }
}
