//! `acp-relay help`: the help of the program and its subcommands, and the pages of the manual.
//! `command_line` prints them.

use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use regex_lite::{Captures, Regex};

use crate::docs::TOPICS;
use jsonrpc::did_you_mean;

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
    pub(super) topic: Vec<String>,
}

/// The list of pages, for `--help`.
pub(super) fn topics() -> String {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max();
    let width = width.unwrap_or(0);
    let topics = TOPICS.iter();
    let topics = topics.map(|topic| format!("\n  {:width$}  {}", topic.name, topic.about));
    format!(
        "Manual (acp-relay help TOPIC):{}",
        topics.collect::<String>()
    )
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

/// The command with these names: `command` or one of its subcommands.
///
/// # Errors
/// There is none of that name.
pub(super) fn find<'c>(
    names: &[String],
    command: &'c mut Command,
) -> Result<&'c mut Command, String> {
    command.build();
    let mut found = command;
    for name in names {
        let fault = unknown(found, name);
        found = found.find_subcommand_mut(name).ok_or(fault)?;
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
    let link = Regex::new(r"\[([^\]]*)\]\(([^)]*)\)").expect("it is a pattern");
    let replace = |found: &Captures<'_>| {
        let (_, [label, target]) = found.extract();
        match target.split_once(".md") {
            Some((topic, _)) if !topic.contains('/') => {
                format!("{label} (acp-relay help {topic})")
            }
            _ if target.starts_with("https://") => format!("{label} ({target})"),
            _ => label.to_owned(),
        }
    };
    let lines = page.lines().filter(|line| !line.starts_with("<!--"));
    lines
        .map(|line| link.replace_all(line, replace) + "\n")
        .collect()
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
