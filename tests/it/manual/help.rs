//! Reads what `--help` prints.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::stdout;

/// Flags that every subcommand has.
const COMMON_FLAGS: [&str; 3] = ["--help", "--log", "--log-format"];

/// The help text of every subcommand, by its command line.
pub(super) static HELPS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let mut found = Vec::new();
    collect_helps(&mut Vec::new(), &mut found);
    assert!(found.len() > 30, "only {} found", found.len());
    found
});

/// A flag, as `--help` describes it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Flag {
    /// `--record DIR`.
    pub(super) form: String,
    /// Its first paragraph.
    pub(super) about: String,
    pub(super) values: Vec<String>,
    pub(super) variable: Option<String>,
}

impl Flag {
    pub(super) fn name(&self) -> &str {
        self.form.split([' ', '[']).next().unwrap()
    }
}

/// The flags in a long help text, without those that every subcommand has.
pub(super) fn flags(help: &str) -> Vec<Flag> {
    let mut found: Vec<Flag> = Vec::new();
    let (mut in_flag, mut in_first_paragraph) = (false, false);
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
            (in_flag, in_first_paragraph) = (true, true);
        } else if indent < 10 && !text.is_empty() {
            in_flag = false;
        } else if in_flag {
            let flag = found.last_mut().unwrap();
            if let Some(variable) = text.strip_prefix("[env: ") {
                flag.variable = variable.split(['=', ']']).next().map(str::to_owned);
            } else if let Some(value) = text.strip_prefix("- ") {
                let name = value.split(':').next().unwrap();
                flag.values.push(name.to_owned());
            } else if text.starts_with("[default: ") {
                flag.about = format!("{} {text}", flag.about);
            } else if text.is_empty() || text.starts_with("[possible values") {
                in_first_paragraph = false;
            } else if in_first_paragraph {
                let space = if flag.about.is_empty() { "" } else { " " };
                flag.about = format!("{}{space}{text}", flag.about);
            }
        }
    }
    found.retain(|flag| !COMMON_FLAGS.contains(&flag.name()));
    found
}

fn collect_helps(words: &mut Vec<String>, found: &mut Vec<(String, String)>) {
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
            collect_helps(words, found);
            words.pop();
        }
    }
}

pub(super) fn known_flags() -> BTreeSet<String> {
    let names = HELPS.iter().flat_map(|(_, help)| flags(help));
    let mut names: BTreeSet<String> = names.map(|flag| flag.name().to_owned()).collect();
    names.extend(COMMON_FLAGS.map(str::to_owned));
    names
}

/// The names, defaults and meanings of limits in `acp-relay --help`.
pub(super) fn limits() -> Vec<(String, String, String)> {
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
