//! Several recordings on one command line: what is written into files. `vectors/commands/reports.trycmd`
//! has what is printed.

use std::fs;

use super::{CAPTURES, answer, capture, import, inspect};

#[test]
fn each_recording_is_a_suite_of_the_junit_report() {
    let folder = tempfile::tempdir().unwrap();
    let sound = import(folder.path(), &capture(CAPTURES[4]), "sound");
    let broken = import(folder.path(), &capture(CAPTURES[0]), "broken");
    let report = folder.path().join("report.xml");
    let suites = |files: [&str; 2], code: i32| {
        let args = [&["lint", "--junit", report.to_str().unwrap()], &files[..]].concat();
        assert_eq!(inspect(&args).status.code(), Some(code));
        let xml = fs::read_to_string(&report).unwrap();
        let suites = xml.split("<testsuite ").skip(1);
        suites.map(str::to_owned).collect::<Vec<_>>()
    };
    let found = suites([&sound, &broken], 1);
    assert_eq!(found.len(), 2);
    assert!(found[0].contains("failures=\"0\""), "{found:?}");
    assert!(!found[1].contains("failures=\"0\""), "{found:?}");
    assert!(
        found[1].contains("\">\n      <failure message=\""),
        "{found:?}"
    );
    let found = suites(["/none.acpr", &broken], 66);
    assert!(found[0].contains("errors=\"1\""), "{found:?}");
}

#[test]
fn several_copies_keep_the_names_of_their_recordings() {
    let folder = tempfile::tempdir().unwrap();
    let files = ["one", "two"].map(|name| import(folder.path(), &capture(CAPTURES[4]), name));
    let copies = tempfile::tempdir().unwrap();
    let to = copies.path().to_str().unwrap();
    let reported = answer(&["scrub", "--json", &files[0], &files[1], to], 0);
    for ((line, name), file) in reported.lines().zip(["one", "two"]).zip(&files) {
        let copy = format!("{to}/{name}.acpr");
        assert!(line.contains(&copy), "{line}");
        answer(&["verify", &copy], 0);
        answer(&["diff", file, &copy], 0);
    }
    assert_eq!(reported.lines().count(), 2);
    assert_eq!(answer(&["ls", to, &files[0]], 0).lines().count(), 4);
}
