//! `acp-relay help`: the help of the program and its subcommands, and the pages of the manual.
//! `command_line` prints them.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};

use super::config::did_you_mean;
use crate::docs::TOPICS;

/// Examples of `help`.
pub(super) const EXAMPLES: &str = "\
Examples:
  acp-relay help remote
      A page of the manual.
  acp-relay help inspect show
      The help of a subcommand, like `acp-relay inspect show --help`.";

/// Arguments of `help`.
#[derive(Debug, Args)]
pub(super) struct Help {
    /// A topic of the manual, or a subcommand, such as `serve` or `inspect show`
    #[arg(value_name = "TOPIC")]
    topic: Vec<String>,
}

/// The list of pages, for `--help`.
pub(super) fn topics() -> String {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max();
    let width = width.unwrap_or(0);
    let mut text = "Manual (acp-relay help TOPIC):".to_owned();
    for topic in TOPICS {
        text.push_str(&format!("\n  {:width$}  {}", topic.name, topic.about));
    }
    text
}

/// Makes the names of topics and subcommands the values that shells complete after `help`.
pub(super) fn with_topics(command: Command) -> Command {
    // clap takes only names that live as long as the program, which ends when the script is printed.
    let subcommands = names(&command).map(|name| &*name.to_owned().leak());
    let subcommands: Vec<&'static str> = subcommands.collect();
    let topics = TOPICS.iter().map(|topic| topic.name);
    let values = PossibleValuesParser::new(subcommands.into_iter().chain(topics));
    command.mut_subcommand("help", |help| {
        help.mut_arg("topic", |topic| topic.value_parser(values))
    })
}

fn names(command: &Command) -> impl Iterator<Item = &str> {
    command.get_subcommands().map(Command::get_name)
}

/// The page that the arguments name.
pub(super) fn page(args: &Help) -> Option<String> {
    let [name] = &args.topic[..] else {
        return None;
    };
    let topic = TOPICS.iter().find(|topic| topic.name == name)?;
    Some(plain(topic.text))
}

/// The command that the arguments name: `command` or one of its subcommands.
///
/// # Errors
/// There is none of that name.
pub(super) fn find<'c>(args: &Help, command: &'c mut Command) -> Result<&'c mut Command, String> {
    command.build();
    let mut found = command;
    for name in &args.topic {
        if found.find_subcommand(name).is_none() {
            return Err(unknown(found, name));
        }
        found = match found.find_subcommand_mut(name) {
            Some(below) => below,
            None => unreachable!("it is there"),
        };
    }
    Ok(found)
}

fn unknown(command: &Command, name: &str) -> String {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let is_root = command.get_bin_name() == Some(command.get_name());
    let known = names(command).chain(topics.filter(|_| is_root));
    let what = if is_root { " or topic" } else { "" };
    let remedy = did_you_mean(name, known, "`acp-relay help` lists them");
    format!("there is no subcommand{what} `{name}`; {remedy}")
}

/// A page for a terminal: without comments, and with other pages named by their command instead of
/// linked.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.lines().filter(|line| !line.starts_with("<!--")) {
        let mut rest = line;
        while let Some((before, label, target, after)) = link(rest) {
            text.push_str(before);
            text.push_str(label);
            match target.split_once(".md") {
                Some((topic, _)) if !topic.contains('/') => {
                    text.push_str(&format!(" (acp-relay help {topic})"));
                }
                _ if target.starts_with("https://") => text.push_str(&format!(" ({target})")),
                _ => {}
            }
            rest = after;
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

/// The first link of a line: what is before it, its label, its target, and what is after it.
fn link(line: &str) -> Option<(&str, &str, &str, &str)> {
    let middle = line.find("](")?;
    let start = line[..middle].rfind('[')?;
    let end = middle + line[middle..].find(')')?;
    Some((
        &line[..start],
        &line[start + 1..middle],
        &line[middle + 2..end],
        &line[end + 1..],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_replaced_by_commands() {
        let page = "<!-- made -->\nSee [tokens](security.md#tokens), [ACP](https://a.example) and [x](#y).\n";
        let expected = "See tokens (acp-relay help security), ACP (https://a.example) and x.\n";
        assert_eq!(plain(page), expected);
    }
}
