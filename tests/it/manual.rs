//! The README and the manual: what they name exists in the program, what the program has is in the
//! reference, and each link has a target.

pub(crate) mod help;
mod names;
mod reference;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use acp_relay::docs::TOPICS;
use serde_json::Value;

use crate::support::program::relay;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The README and all pages, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let mut pages = vec![(PathBuf::from("README.md"), read("README.md"))];
    for topic in TOPICS {
        let path = Path::new("src/docs").join(format!("{}.md", topic.name));
        pages.push((path, topic.text.to_owned()));
    }
    pages
}

fn stdout(args: &[&str]) -> String {
    let output = relay(args).env("COLUMNS", "100").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn every_topic_is_listed_and_shown() {
    let help = stdout(&["help"]);
    assert_eq!(help, stdout(&["--help"]));
    let short = stdout(&["-h"]);
    let files: BTreeSet<String> = fs::read_dir(root().join("src/docs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .collect();
    let topics: BTreeSet<String> = TOPICS.iter().map(|topic| topic.name.to_owned()).collect();
    assert_eq!(files, topics);
    for topic in TOPICS {
        let line = format!("  {} ", topic.name);
        assert!(
            help.contains(&line) && short.contains(&line),
            "{}",
            topic.name
        );
        let page = stdout(&["help", topic.name]);
        let title = topic.text.lines().next().unwrap();
        assert!(
            title.starts_with("# ") && page.starts_with(title),
            "{}",
            topic.name
        );
        assert!(
            !page.contains("<!--") && !page.contains(".md)"),
            "{}",
            topic.name
        );
    }
}

#[test]
fn help_prints_the_page_of_the_subcommand() {
    for words in [&["serve"][..], &["inspect", "show"], &["dialect"]] {
        let help = [&["help"], words].concat();
        let flag = [words, &["--help"]].concat();
        assert_eq!(stdout(&help), stdout(&flag), "{words:?}");
    }
}

#[test]
fn short_help_fits_on_two_screens_and_names_the_long_one() {
    for name in ["serve", "connect", "try"] {
        let (short, long) = (stdout(&[name, "-h"]), stdout(&[name, "--help"]));
        let lines = short.lines().count();
        assert!(lines <= 48, "{lines} lines:\n{short}");
        let last = short.lines().last().unwrap();
        assert!(last.ends_with("`--help` shows all options."), "{last}");
        assert!(!short.contains("elephant+http"), "{short}");
        for option in ["--record-strict", "--log-format"] {
            assert!(!short.contains(option) && long.contains(option), "{option}");
        }
        for option in ["--agent-dialect", "--record [<DIR>]", "--log <LEVEL>"] {
            assert!(short.contains(option), "{name} -h: {option}");
        }
    }
}

#[test]
fn the_readme_is_short_and_links_to_every_page() {
    let readme = read("README.md");
    let length = readme.chars().count();
    assert!(length <= 10_000, "{length} characters");
    for topic in TOPICS {
        let link = format!("](src/docs/{}.md", topic.name);
        assert!(
            readme.contains(&link),
            "README.md has no link to {}",
            topic.name
        );
    }
}

/// The targets of links and pictures.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().chars();
    let kept = kept.filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[test]
fn every_link_has_a_target() {
    let mut faults = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for target in links(&text).filter(|target| !target.starts_with("https://")) {
            count += 1;
            let (file, section) = target.split_once('#').unwrap_or((target, ""));
            let to = match file {
                "" => root().join(&path),
                file => root().join(path.parent().unwrap()).join(file),
            };
            if !to.exists() {
                faults.push(format!(
                    "{}: {target}: there is no such file",
                    path.display()
                ));
                continue;
            }
            if section.is_empty() {
                continue;
            }
            let page = fs::read_to_string(&to).unwrap();
            let mut headings = page.lines().filter(|line| line.starts_with('#'));
            if !headings.any(|line| anchor(line) == section) {
                faults.push(format!(
                    "{}: {target}: there is no such section",
                    path.display()
                ));
            }
        }
    }
    assert!(count > 50, "only {count} links found");
    assert_none(&faults);
}

#[test]
fn the_configuration_of_the_manual_is_valid() {
    let page = read("src/docs/operations.md");
    let blocks: Vec<&str> = page
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let (agents, _) = blocks[0].split_once("[[listeners]]").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.toml");
    for text in [blocks[0].to_owned(), format!("{agents}{}", blocks[1])] {
        fs::write(&file, text).unwrap();
        stdout(&["config", "check", "--other-machine", file.to_str().unwrap()]);
    }
    for (path, text) in pages() {
        for block in text.split("```json\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let json: Result<Value, _> = serde_json::from_str(block);
            assert!(json.is_ok(), "{}: {block}", path.display());
        }
    }
}
