//! Writes a table in TOML: short forms for what could be guessed, and comments for what a person has to
//! decide.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::deviations::{Deviations, Group, Section};
use super::guess::{Guess, candidates, guess};
use super::toml_text::{comment, key, literal, quoted};
use crate::acp::Checker;
use crate::cli::console::counted;
use crate::cli::dialect::TranslatorPair;
use crate::conversation::DialectChoice;
use crate::dialect::{Library, TableFaults};
use crate::jsonrpc::{Frame, Side, printable};

/// Longest text, list and object in an example, and longest example, in bytes.
const MAX_TEXT: usize = 60;
const MAX_ITEMS: usize = 4;
const MAX_NAMES: usize = 16;
const MAX_EXAMPLE: usize = 2 << 10;

/// What a table is drafted for.
#[derive(Debug)]
pub(super) struct Draft<'d> {
    /// The table's name.
    pub(super) name: &'d str,
    /// Its file.
    pub(super) file: &'d str,
    /// The `name` in the `agentInfo` of the agent, if it is known.
    pub(super) agent: Option<&'d str>,
    pub(super) title: String,
    /// The recording, and what was found in it.
    pub(super) from: Option<(&'d str, Deviations)>,
}

/// A drafted table.
#[derive(Debug)]
pub(super) struct Drafted {
    pub(super) text: String,
    pub(super) rules: usize,
    /// How many places need a decision.
    pub(super) open: usize,
}

/// A rule: its messages, what they are, and an example in both columns.
struct Rule {
    group: Group,
    guess: Guess,
    example: Option<[String; 2]>,
    /// Whether the example is for reading alone.
    reads: bool,
}

impl Draft<'_> {
    /// The text of the table, which has no faults.
    ///
    /// # Errors
    /// It has faults all the same.
    pub(super) fn write(&mut self, library: &Library) -> Result<Drafted, TableFaults> {
        let groups = self
            .from
            .as_mut()
            .map(|(_, found)| std::mem::take(&mut found.groups));
        let rule = |group: Group| Rule {
            guess: guess(&group),
            group,
            example: None,
            reads: false,
        };
        let mut rules: Vec<Rule> = groups.unwrap_or_default().into_iter().map(rule).collect();
        rules.sort_by_key(|rule| rule.group.section.key() != "update");
        let (known, _) = self.settle(&mut rules, library)?;
        let known = Arc::new(known);
        for rule in &mut rules {
            rule.add_example(&known, self.name);
        }
        self.settle(&mut rules, library).map(|(_, drafted)| drafted)
    }

    /// Weakens the rules that have faults until there are none.
    fn settle(
        &self,
        rules: &mut [Rule],
        library: &Library,
    ) -> Result<(Library, Drafted), TableFaults> {
        loop {
            let drafted = self.text(rules);
            let mut known = library.clone();
            let added = known.add(self.file, &drafted.text).and_then(|_| {
                let own = known.source(self.name);
                own.map_or(Ok(()), |own| known.check_examples(own))
            });
            let Err(faults) = added else {
                return Ok((known, drafted));
            };
            let mut is_weaker = false;
            for rule in rules.iter_mut() {
                let name = jsonptr::Token::new(&rule.group.name).encoded().to_owned();
                let place = format!("/{}/{name}", rule.group.section.key());
                let is_faulty = faults.0.iter().any(|fault| {
                    let inside = fault.pointer.strip_prefix(&place);
                    inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                });
                is_weaker |= is_faulty && rule.weaken();
            }
            if !is_weaker {
                return Err(faults);
            }
        }
    }

    fn text(&self, rules: &[Rule]) -> Drafted {
        let (origin, dialect) = match &self.from {
            Some((from, found)) => (format!("Drafted from {from}."), &*found.dialect),
            None => (
                "The table of an agent that was not recorded.".to_owned(),
                "loose-v1",
            ),
        };
        let (origin, file) = (
            printable(origin.as_bytes()),
            printable(self.file.as_bytes()),
        );
        let extends = match dialect {
            "canonical" => String::new(),
            name => format!("extends = [{}]\n", quoted(name)),
        };
        let (detect, open) = match self.agent.map(quoted) {
            Some(agent) => (format!("[[detect]]\nagentInfo = {{ name = {agent} }}\n"), 0),
            None => (NAMELESS.to_owned(), 1),
        };
        let (name, title) = (quoted(self.name), quoted(&self.title));
        let text = format!(
            "# {origin}\n# A line with … needs your decision. Then:\n\
             #   acp-relay dialect check {file}\n\
             #   acp-relay connect --table {file} -- AGENT\n\
             format = 1\ndialect = {name}\ntitle = {title}\nspeaker = \"agent\"\n{extends}\n\
             # How the relay recognises the agent: its answer to `initialize`.\n{detect}"
        );
        let mut drafted = Drafted {
            text,
            rules: 0,
            open,
        };
        if self.from.is_none() {
            drafted.text.push_str(TEMPLATE);
        }
        for rule in rules {
            let from = self.from.as_ref().map_or("", |(from, _)| from);
            rule.write(from, &mut drafted);
        }
        if let Some((_, found)) = self.from.as_ref().filter(|(_, found)| found.others > 0) {
            let others = found.others;
            drafted.text.push('\n');
            let what = format!("{others} more messages deviate in a way that has no short form.");
            comment(&mut drafted.text, &what);
        }
        drafted
    }
}

/// The clue to an agent without a name.
const NAMELESS: &str = "# It states no name, so choose the dialect with `--agent-dialect`.
# [[detect]]
# agentInfo = { name = \"…\" }
";

/// What a table without a recording says.
const TEMPLATE: &str = r#"
# A kind of update that has another name:
# [update]
# reply = "agent_message_chunk"
#
# One with other members and values; the place in ACP is relative to the element of a list:
# [update.steps]
# is = "plan"
# [update.steps.members]
# "steps" = "entries"
# "steps[].text" = "content"
# "steps[].state" = { to = "status", values = { todo = "pending", done = "completed" } }
#
# The same for methods that the agent calls, and for results:
# [answers."session/prompt".members]
# "stopReason" = { values = { done = "end_turn" } }
"#;

impl Rule {
    /// Where the messages are.
    fn why(&self, from: &str) -> String {
        let (count, line) = (counted(self.group.count, "message"), self.group.line);
        format!("{count} in {from}, the first in line {line}.")
    }

    fn write(&self, from: &str, to: &mut Drafted) {
        let text = &mut to.text;
        let (group, guess) = (&self.group, &self.guess);
        let (section, name) = (group.section.key(), key(&group.name));
        text.push('\n');
        let is_same = guess.is.as_ref() == Some(&group.name);
        if guess.is.is_none() || is_same && guess.members.is_empty() {
            comment(text, &self.why(from));
            if let Some(sample) = group.samples.first() {
                let members = group.section.members(sample);
                comment(
                    text,
                    &format!("such as {}", short(&shortened(members, &[]).to_string())),
                );
            }
            comment(text, &format!("[{section}.{name}]"));
            if guess.is.is_none() {
                let known: Vec<&str> = candidates(group.section)
                    .iter()
                    .map(|(name, _)| *name)
                    .collect();
                comment(text, &format!("is = \"…\"  # one of {}", known.join(", ")));
                comment(text, "drop = \"…\"  # or: why it may be left out");
                to.open += 1;
            } else if !guess.open.is_empty() {
                comment(text, &format!("[{section}.{name}.members]"));
            }
            return self.write_open(to);
        }
        to.rules += 1;
        let _ = writeln!(text, "[{section}.{name}]");
        if let Some(is) = guess.is.as_ref().filter(|_| !is_same) {
            let _ = writeln!(text, "is = {}", quoted(is));
        }
        let _ = writeln!(text, "why = {}", quoted(&self.why(from)));
        if !guess.members.is_empty() || !guess.open.is_empty() {
            let _ = writeln!(text, "[{section}.{name}.members]");
        }
        for (path, form) in &guess.members {
            let _ = writeln!(text, "{} = {form}", quoted(path));
        }
        self.write_open(to);
        let text = &mut to.text;
        if let Some([dialect, canonical]) = &self.example {
            let _ = writeln!(text, "[[{section}.{name}.examples]]");
            if self.reads {
                text.push_str("way = \"read\"\n");
            }
            let (dialect, canonical) = (literal(dialect), literal(canonical));
            let _ = writeln!(text, "dialect = {dialect}\ncanonical = {canonical}");
        }
    }

    /// What needs a decision, a comment each.
    fn write_open(&self, to: &mut Drafted) {
        to.open += self.guess.open.len();
        for line in &self.guess.open {
            comment(&mut to.text, line);
        }
    }

    /// Gives up a part of a rule that has faults; `false` if nothing is left.
    fn weaken(&mut self) -> bool {
        match (&self.example, self.reads, &self.guess.is) {
            (Some(_), false, _) => self.reads = true,
            (Some(_), true, _) => self.example = None,
            (None, _, Some(_)) => self.guess = Guess::default(),
            (None, _, None) => return false,
        }
        true
    }

    /// Cuts an example out of the recording, without what needs a decision: a message, and what the
    /// rule makes of it, which is ACP.
    fn add_example(&mut self, library: &Arc<Library>, name: &str) {
        let (section, Some(is)) = (self.group.section, &self.guess.is) else {
            return;
        };
        let method = (section == Section::Answers).then_some(&**is);
        let own = format!("{name}/{}-{}", section.key(), self.group.name);
        let named = DialectChoice::Named(name.to_owned());
        self.example = self.group.samples.iter().find_map(|sample| {
            let dialect = shortened(sample, &self.guess.unknown).to_string();
            let pair = TranslatorPair::new(library, &DialectChoice::Canonical, &named);
            let mut pair = pair.ok()?;
            if let Some(method) = method {
                let request = json!({"jsonrpc": "2.0", "id": sample["id"], "method": method});
                let request = Frame::from(request.to_string());
                pair.read(Side::Client, &request);
                pair.write(Side::Agent, &request);
            }
            let stage = pair.read(Side::Agent, &Frame::from(dialect.clone()));
            let mut fired = stage.outcome.fired.iter();
            let ([made], true) = (&stage.after[..], fired.any(|rule| rule.to_string() == own))
            else {
                return None;
            };
            let verdict = Checker::new(true).check_as(Some(Side::Agent), made, method);
            let deviates = verdict
                .violations
                .iter()
                .any(|one| one.kind.is_of_dialect());
            let canonical = String::from_utf8_lossy(made.as_bytes()).into_owned();
            let fits = dialect.len().max(canonical.len()) <= MAX_EXAMPLE;
            (fits && !deviates).then_some([dialect, canonical])
        });
    }
}

/// A part of a message with its long texts, lists and objects cut, and without members of these names
/// and elements with these values.
fn shortened(value: &Value, without: &[String]) -> Value {
    let is_out = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| without.iter().any(|one| one == text))
    };
    match value {
        Value::String(text) => short(text).into(),
        Value::Array(items) => {
            let has_one =
                |item: &&Value| item.as_object().is_some_and(|all| all.values().any(is_out));
            let items = items.iter().filter(|item| !has_one(item)).take(MAX_ITEMS);
            items.map(|item| shortened(item, without)).collect()
        }
        Value::Object(members) => {
            let some = members.iter().filter(|(name, _)| !without.contains(name));
            let some = some.take(MAX_NAMES);
            let some = some.map(|(name, value)| (name.clone(), shortened(value, without)));
            Value::Object(some.collect())
        }
        value => value.clone(),
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
