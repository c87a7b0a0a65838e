//! What the pages name: flags, limits, variables, codes and metrics of the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use acp_relay::observe::metrics::CATALOGUE;
use acp_relay::transport::Endpoint;

use super::help::{COMMANDS, known_flags, limits};
use super::{assert_none, pages, read, root, stdout};

/// Flags of other programs that the pages name.
const FOREIGN_FLAGS: [&str; 8] = [
    "--acp",
    "--all-features",
    "--bench",
    "--features",
    "--jetstream",
    "--locked",
    "--no-default-features",
    "--path",
];

/// The page about what only builds with the feature `cluster` have.
const PAGE_OF_CLUSTER: &str = "cluster.md";

/// The page about secrets quotes the command lines of many programs.
const PAGE_WITH_FOREIGN_FLAGS: &str = "secrets.md";

/// The words of a text that begin with `start` and continue with characters that `part` accepts.
fn words_with_prefix<'a>(
    text: &'a str,
    start: &'a str,
    part: fn(char) -> bool,
) -> impl Iterator<Item = &'a str> {
    text.match_indices(start).filter_map(move |(at, _)| {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| part(c) || c == '-') {
            return None;
        }
        let rest = &text[at + start.len()..];
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        Some(text[at..at + start.len() + end].trim_end_matches(['-', '_']))
    })
}

fn is_flag_char(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

#[test]
fn named_flags_exist() {
    let known = known_flags();
    let mut faults = Vec::new();
    for (path, text) in pages() {
        let is_unknown = !cfg!(feature = "cluster") && path.ends_with(PAGE_OF_CLUSTER);
        if path.ends_with(PAGE_WITH_FOREIGN_FLAGS) || is_unknown {
            continue;
        }
        for flag in words_with_prefix(&text, "--", is_flag_char).filter(|flag| flag.len() > 2) {
            if !known.contains(flag) && !FOREIGN_FLAGS.contains(&flag) {
                faults.push(format!("{}: {flag}: there is no such flag", path.display()));
            }
        }
    }
    assert_none(&faults);
}

#[test]
fn named_limits_exist() {
    let known: BTreeSet<&str> = limits().map(|(name, _, _)| name).collect();
    let mut faults = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for (at, start) in text.match_indices("--limit ") {
            let rest = &text[at + start.len()..];
            let name = rest.split(|c| !is_flag_char(c)).next().unwrap();
            if !name.is_empty() && !known.contains(name) {
                faults.push(format!(
                    "{}: {name}: there is no such limit",
                    path.display()
                ));
            }
        }
        // Words with the first part of a limit's name.
        for start in ["`http-", "`reconnect-", "`agent-connect-", "`frame-"] {
            for word in words_with_prefix(&text, start, is_flag_char) {
                count += 1;
                let name = word.trim_start_matches('`');
                if !known.contains(name) {
                    faults.push(format!(
                        "{}: {name}: there is no such limit",
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(count > 10, "only {count} found");
    assert_none(&faults);
}

/// The texts of the Rust files below a folder.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
    text
}

fn is_variable_char(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}

#[test]
fn the_listed_variables_match_the_program() {
    // Set while building, or by the program for itself.
    let internal = [
        "ACP_RELAY",
        "ACP_RELAY_ALLOCATOR",
        "ACP_RELAY_COMMIT",
        "ACP_RELAY_TOKEN",
    ];
    let code = sources(&root().join("src"));
    let code = words_with_prefix(&code, "ACP_RELAY_", is_variable_char).collect::<BTreeSet<_>>();
    let page = read("src/docs/reference.md");
    let (_, page) = page.split_once("## Variables").unwrap();
    let (page, _) = page.split_once("## Exit codes").unwrap();
    let named: BTreeSet<_> = words_with_prefix(page, "ACP_RELAY_", is_variable_char).collect();
    let code: BTreeSet<_> = code
        .into_iter()
        .filter(|name| !internal.contains(name))
        .collect();
    assert_eq!(named, code);
    for (path, text) in pages() {
        for name in words_with_prefix(&text, "ACP_RELAY_", is_variable_char) {
            assert!(code.contains(name), "{}: {name}", path.display());
        }
    }
}

/// The numbers in the first column of a table below a heading.
fn codes_in_table(heading: &str) -> BTreeSet<i64> {
    let page = read("src/docs/reference.md");
    let (_, section) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| "));
    let cells = cells.filter_map(|line| line.split(" |").next());
    cells
        .filter_map(|cell| cell.replace('−', "-").parse().ok())
        .collect()
}

/// The values of constants of this type in a text.
fn constants(text: &str, of: &str) -> BTreeSet<i64> {
    let lines = text.lines().filter(|line| line.contains("const "));
    let values = lines.filter_map(|line| line.split_once(of));
    values
        .filter_map(|(_, value)| value.trim_end_matches(';').parse().ok())
        .collect()
}

#[test]
fn the_listed_exit_and_error_codes_match_the_program() {
    let codes = constants(&read("src/cli/exit.rs"), ": u8 = ");
    assert!(codes.len() > 10, "{codes:?}");
    assert_eq!(codes_in_table("Exit codes"), codes);
    let help = stdout(&["-h"]);
    for code in codes {
        let code = code.to_string();
        assert!(help.split_whitespace().any(|word| word == code), "{code}");
    }
    let codes = constants(&sources(&root().join("src/jsonrpc")), ": i32 = ");
    let codes: BTreeSet<i64> = codes.into_iter().filter(|code| *code < -32000).collect();
    assert!(codes.len() > 10, "{codes:?}");
    assert_eq!(codes_in_table("Error codes"), codes);
    let known = codes;
    for (path, text) in pages() {
        for (at, minus) in text.match_indices('−') {
            let digits = text[at + minus.len()..]
                .split(|c: char| !c.is_ascii_digit())
                .next();
            let Some(Ok(code)) = digits.map(str::parse::<i64>) else {
                continue;
            };
            assert!(known.contains(&-code), "{}: −{code}", path.display());
        }
    }
}

#[test]
fn named_metrics_exist() {
    let known: BTreeSet<&str> = CATALOGUE.iter().map(|metric| metric.name).collect();
    let part = |c: char| c.is_ascii_lowercase() || c == '_';
    for (path, text) in pages() {
        for name in words_with_prefix(&text, "acp_relay_", part) {
            assert!(known.contains(name), "{}: {name}", path.display());
        }
    }
}

/// Parses a command line without its redirections and pipes, as the program does.
fn parse(line: &str) {
    let line = line
        .split(" | ")
        .next()
        .unwrap()
        .split(" > ")
        .next()
        .unwrap();
    let Ok(Endpoint::Exec(words)) = format!("exec:{line}").parse() else {
        panic!("{line}");
    };
    let parsed = acp_relay::cli::command().try_get_matches_from(words);
    // clap reports help and versions as errors.
    assert!(!parsed.is_err_and(|error| error.use_stderr()), "{line}");
}

#[test]
fn every_subcommand_has_examples_that_parse() {
    let mut count = 0;
    for (path, command) in COMMANDS.iter() {
        let texts = [command.get_after_help(), command.get_after_long_help()];
        let help: String = texts
            .iter()
            .flatten()
            .map(|text| format!("{text}\n"))
            .collect();
        assert!(path.contains(' ') || help.contains("Examples"), "{path}");
        let lines = help.lines().filter_map(|line| line.strip_prefix("  "));
        let lines = lines.filter(|line| line.starts_with("acp-relay "));
        count += lines.inspect(|line| parse(line)).count();
    }
    assert!(count > 50, "{count}");
}

#[test]
fn the_commands_of_the_readme_and_the_manual_parse() {
    let mut count = 0;
    for (_, page) in pages() {
        for block in page.split("```sh\n").skip(1) {
            let block = block.split("```").next().unwrap().replace("\\\n", " ");
            for line in block
                .lines()
                .map(str::trim)
                .filter(|line| line.starts_with("acp-relay "))
            {
                let line = line.split(" #").next().unwrap().trim();
                // A command substitution yields a hash.
                match (line.find("\"$("), line.find(")\"")) {
                    (Some(from), Some(to)) => {
                        parse(&format!(
                            "{}{}{}",
                            &line[..from],
                            "0".repeat(64),
                            &line[to + 2..]
                        ));
                    }
                    _ => parse(line),
                }
                count += 1;
            }
        }
    }
    assert!(count > 60, "{count}");
}
