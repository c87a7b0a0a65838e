//! The README and the manual: what they name exists in the program, what the program has is in the
//! reference, and each link has a target.
//!
//! Two parts of the reference are generated from `--help`; with UPDATE_MANUAL set, the test writes
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use acp_relay::docs::TOPICS;
use acp_relay::observe::metrics::CATALOGUE;
use serde_json::Value;

use crate::support::once::relay;

/// Flags of other programs that the pages name.
const FOREIGN_FLAGS: [&str; 4] = ["--acp", "--bench", "--locked", "--path"];

/// The page about secrets quotes the command lines of many programs.
const QUOTES_FLAGS: &str = "secrets.md";

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

fn check(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// A flag, as `--help` describes it.
#[derive(Clone, Debug, PartialEq)]
struct Flag {
    /// `--record DIR`.
    form: String,
    /// Its first paragraph.
    about: String,
    values: Vec<String>,
    variable: Option<String>,
}

impl Flag {
    fn name(&self) -> &str {
        self.form.split([' ', '[']).next().unwrap()
    }
}

/// The flags in a long help text, without those that every subcommand has.
fn flags(help: &str) -> Vec<Flag> {
    let mut found: Vec<Flag> = Vec::new();
    let (mut inside, mut first) = (false, false);
    for line in help.lines() {
        if line.starts_with("Examples") || line.starts_with("Manual (") {
            break;
        }
        let text = line.trim();
        let indent = line.len() - line.trim_start().len();
        let form = text.strip_prefix("-V, ").unwrap_or(text);
        let form = form.strip_prefix("-h, ").unwrap_or(form);
        if (indent == 2 || indent == 6) && form.starts_with("--") {
            let form = form.replace(['<', '>'], "");
            found.push(Flag {
                form,
                about: String::new(),
                values: Vec::new(),
                variable: None,
            });
            (inside, first) = (true, true);
        } else if indent < 10 && !text.is_empty() {
            inside = false;
        } else if inside {
            let flag = found.last_mut().unwrap();
            if let Some(variable) = text.strip_prefix("[env: ") {
                flag.variable = variable.split(['=', ']']).next().map(str::to_owned);
            } else if let Some(value) = text.strip_prefix("- ") {
                let name = value.split(':').next().unwrap();
                flag.values.push(name.to_owned());
            } else if text.starts_with("[default: ") {
                flag.about = format!("{} {text}", flag.about);
            } else if text.is_empty() || text.starts_with("[possible values") {
                first = false;
            } else if first {
                let space = if flag.about.is_empty() { "" } else { " " };
                flag.about = format!("{}{space}{text}", flag.about);
            }
        }
    }
    let common = ["--help", "--log", "--log-format"];
    found.retain(|flag| !common.contains(&flag.name()));
    found
}

/// The help text of every subcommand, by its words.
fn helps() -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(&mut Vec::new(), &mut found);
    assert!(found.len() > 30, "only {} found", found.len());
    found
}

fn walk(words: &mut Vec<String>, found: &mut Vec<(String, String)>) {
    let mut args: Vec<&str> = words.iter().map(String::as_str).collect();
    args.push("--help");
    let help = stdout(&args);
    found.push((words.join(" "), help.clone()));
    let commands = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    for line in commands.lines().take_while(|line| !line.is_empty()) {
        let name = line.strip_prefix("  ").unwrap_or_default();
        if name.starts_with(' ') || name.is_empty() {
            continue;
        }
        let name = name.split(' ').next().unwrap();
        if name != "help" {
            words.push(name.to_owned());
            walk(words, found);
            words.pop();
        }
    }
}

fn known_flags() -> BTreeSet<String> {
    let names = helps();
    let names = names.iter().flat_map(|(_, help)| flags(help));
    let mut names: BTreeSet<String> = names.map(|flag| flag.name().to_owned()).collect();
    names.extend(["--help", "--log", "--log-format"].map(str::to_owned));
    names
}

/// The names, defaults and meanings of limits in `acp-relay --help`.
fn limits() -> Vec<(String, String, String)> {
    let help = stdout(&["--help"]);
    let lines = help
        .lines()
        .skip_while(|line| !line.starts_with("Limits ("));
    let lines = lines.skip_while(|line| !line.starts_with("  "));
    let mut found: Vec<(String, String, String)> = Vec::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        if line.starts_with("   ") {
            let (_, _, about) = found.last_mut().unwrap();
            *about = format!("{about} {}", line.trim());
            continue;
        }
        let (form, about) = line.trim().split_once("  ").unwrap();
        let (name, value) = form.split_once('=').unwrap();
        found.push((name.to_owned(), value.to_owned(), about.trim().to_owned()));
    }
    assert!(found.len() > 40, "only {} found", found.len());
    found
}

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
        .replace('<', "&lt;")
        .replace("*.json", "\\*.json")
}

fn limits_table() -> String {
    let mut table =
        "| limit | default | of what, and what happens at it |\n|---|---|---|\n".to_owned();
    for (name, value, about) in limits() {
        // The largest number means no limit.
        let value = match value.as_str() {
            "1073741824" | "1GiB" => "none",
            value => value,
        };
        table.push_str(&format!("| `{name}` | {value} | {} |\n", cell(&about)));
    }
    table
}

fn flags_tables() -> String {
    let helps = helps();
    let of = |words: &str| {
        let (_, help) = helps.iter().find(|(name, _)| name == words).unwrap();
        flags(help)
    };
    let serve = of("serve");
    let mut text = String::new();
    for (words, help) in &helps {
        let all = flags(help);
        let shared = |flag: &&Flag| words != "serve" && serve.contains(flag);
        let own: Vec<&Flag> = all.iter().filter(|flag| !shared(flag)).collect();
        let names: Vec<String> = all
            .iter()
            .filter(shared)
            .map(|flag| format!("`{}`", flag.name()))
            .collect();
        if all.is_empty() || words.is_empty() {
            continue;
        }
        text.push_str(&format!("### acp-relay {words}\n\n"));
        if !own.is_empty() {
            text.push_str("| flag | meaning |\n|---|---|\n");
            for flag in own {
                let mut about = cell(&flag.about);
                if !flag.values.is_empty() {
                    about = format!("{about}: `{}`", flag.values.join("`, `"));
                }
                if let Some(variable) = &flag.variable {
                    about = format!("{about} (`{variable}`)");
                }
                text.push_str(&format!("| `{}` | {about} |\n", cell(&flag.form)));
            }
            text.push('\n');
        }
        if names.len() == serve.len() {
            text.push_str("All flags of `serve`.\n\n");
        } else if !names.is_empty() {
            text.push_str(&format!("As for `serve`: {}.\n\n", names.join(", ")));
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// The keys of the configuration file, by the JSON Schema that the program prints.
fn keys_tables() -> String {
    let schema: Value = serde_json::from_str(&stdout(&["config", "schema"])).unwrap();
    let mut text = String::new();
    key_table(&mut text, "", &schema);
    text.trim_end().to_owned() + "\n"
}

/// The keys of the table at `path`, and then those of the tables in it.
fn key_table(text: &mut String, path: &str, table: &Value) {
    // The limits have a section of their own.
    if path.ends_with("limits") {
        return;
    }
    let mut nested = Vec::new();
    if !path.is_empty() {
        text.push_str(&format!("### `{path}`\n\n"));
    }
    let about = cell(table["description"].as_str().unwrap_or_default());
    if !about.is_empty() {
        text.push_str(&format!("{about}.\n\n"));
    }
    text.push_str("| key | default | meaning |\n|---|---|---|\n");
    for (key, value) in table["properties"].as_object().unwrap() {
        let path = format!("{path}.{key}");
        let path = path.trim_start_matches('.').to_owned();
        let (each, items) = (&value["additionalProperties"], &value["items"]);
        if value["properties"].is_object() {
            nested.push((path, value.clone()));
        } else if each["properties"].is_object() {
            nested.push((format!("{path}.NAME"), each.clone()));
        } else if items["properties"].is_object() {
            nested.push((path, items.clone()));
        } else {
            let about = cell(value["description"].as_str().unwrap_or_default());
            let usual = match &value["default"] {
                Value::Null => String::new(),
                usual => format!("`{}`", usual.to_string().trim_matches('"')),
            };
            text.push_str(&format!("| `{key}` | {usual} | {about} |\n"));
        }
    }
    text.push('\n');
    for (path, table) in nested {
        key_table(text, &path, &table);
    }
}

/// The reference with what is generated between its two markers replaced.
fn with_generated(page: &str, name: &str, text: &str) -> String {
    let start = format!("<!-- generated: {name} -->\n");
    let (before, rest) = page.split_once(&start).unwrap();
    let (_, after) = rest.split_once("<!-- end -->").unwrap();
    format!("{before}{start}{text}<!-- end -->{after}")
}

#[test]
fn the_generated_parts_of_the_reference_match_the_program() {
    let path = root().join("src/docs/reference.md");
    let page = fs::read_to_string(&path).unwrap();
    let new = with_generated(&page, "limits", &limits_table());
    let new = with_generated(&new, "flags", &flags_tables());
    let new = with_generated(&new, "keys", &keys_tables());
    if std::env::var_os("UPDATE_MANUAL").is_some() {
        fs::write(&path, new).unwrap();
        return;
    }
    for (old, new) in page.lines().zip(new.lines()) {
        assert_eq!(
            old, new,
            "outdated; run UPDATE_MANUAL=1 cargo test --test it -- manual"
        );
    }
    assert_eq!(page.len(), new.len());
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
    for (words, reports) in [
        (
            &["help", "sever"][..],
            "subcommand or topic `sever`; did you mean `serve`?",
        ),
        (&["help", "remotes"], "did you mean `remote`?"),
        (
            &["help", "inspect", "shw"],
            "subcommand `shw`; did you mean `show`?",
        ),
        (&["help", "qqq"], "`acp-relay help` lists them"),
    ] {
        let output = relay(words).output().unwrap();
        assert_eq!(output.status.code(), Some(64), "{words:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(reports), "{stderr}");
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
    check(&faults);
}

/// The words of a text that begin with `start` and continue with characters that `part` accepts.
fn words<'a>(
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

fn kebab(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

#[test]
fn named_flags_exist() {
    let known = known_flags();
    let mut faults = Vec::new();
    for (path, text) in pages() {
        if path.ends_with(QUOTES_FLAGS) {
            continue;
        }
        for flag in words(&text, "--", kebab).filter(|flag| flag.len() > 2) {
            if !known.contains(flag) && !FOREIGN_FLAGS.contains(&flag) {
                faults.push(format!("{}: {flag}: there is no such flag", path.display()));
            }
        }
    }
    check(&faults);
}

#[test]
fn named_limits_exist() {
    let known: BTreeSet<String> = limits().into_iter().map(|(name, _, _)| name).collect();
    let mut faults = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for (at, start) in text.match_indices("--limit ") {
            let rest = &text[at + start.len()..];
            let name = rest.split(|c| !kebab(c)).next().unwrap();
            if !name.is_empty() && !known.contains(name) {
                faults.push(format!(
                    "{}: {name}: there is no such limit",
                    path.display()
                ));
            }
        }
        // Words with the first part of a limit's name.
        for start in ["`http-", "`reconnect-", "`agent-connect-", "`frame-"] {
            for word in words(&text, start, kebab) {
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
    check(&faults);
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

fn capitals(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}

#[test]
fn the_listed_variables_match_the_program() {
    // Set while building, or by the program for itself.
    let internal = ["ACP_RELAY", "ACP_RELAY_COMMIT", "ACP_RELAY_TOKEN"];
    let code = sources(&root().join("src"));
    let code = words(&code, "ACP_RELAY_", capitals).collect::<BTreeSet<_>>();
    let page = read("src/docs/reference.md");
    let (_, page) = page.split_once("## Variables").unwrap();
    let (page, _) = page.split_once("## Exit codes").unwrap();
    let named: BTreeSet<_> = words(page, "ACP_RELAY_", capitals).collect();
    let code: BTreeSet<_> = code
        .into_iter()
        .filter(|name| !internal.contains(name))
        .collect();
    assert_eq!(named, code);
    for (path, text) in pages() {
        for name in words(&text, "ACP_RELAY_", capitals) {
            assert!(code.contains(name), "{}: {name}", path.display());
        }
    }
}

/// The numbers in the first column of a table below a heading.
fn numbers(heading: &str) -> BTreeSet<i64> {
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
    assert_eq!(numbers("Exit codes"), codes);
    let help = stdout(&["-h"]);
    for code in codes {
        let code = code.to_string();
        assert!(help.split_whitespace().any(|word| word == code), "{code}");
    }
    let codes = constants(&sources(&root().join("src/jsonrpc")), ": i32 = ");
    let codes: BTreeSet<i64> = codes.into_iter().filter(|code| *code < -32000).collect();
    assert!(codes.len() > 10, "{codes:?}");
    assert_eq!(numbers("Error codes"), codes);
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
        for name in words(&text, "acp_relay_", part) {
            assert!(known.contains(name), "{}: {name}", path.display());
        }
    }
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

#[test]
fn flags_are_read_from_help_texts() {
    let help = "Options:\n      --to <FORM>\n          The form,\n          of all\n\n          \
                More.\n\n          Possible values:\n          - a: A\n          - b: B\n\n          \
                [env: ACP_RELAY_TO=]\n\n  -h, --help\n          Print help\n\nExamples:\n  \
                acp-relay x --to a\n";
    let expected = Flag {
        form: "--to FORM".to_owned(),
        about: "The form, of all".to_owned(),
        values: vec!["a".to_owned(), "b".to_owned()],
        variable: Some("ACP_RELAY_TO".to_owned()),
    };
    assert_eq!(flags(help), [expected]);
    let by_anchor: BTreeMap<_, _> = [
        ("## A team server", "a-team-server"),
        ("# What, now?", "what-now"),
    ]
    .into();
    for (heading, expected) in by_anchor {
        assert_eq!(anchor(heading), expected);
    }
}
