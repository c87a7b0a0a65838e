//! The conversions that a row may name with `as`, each with its inverse.
//!
//! A conversion takes a value and makes another one, or leaves it unchanged when it does not apply.
//! `mappings/README.md` documents each for authors of tables; the examples of the tables and the
//! golden vectors run them both ways.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::guess;
use super::object::object;
use super::table::{Converter, Way};
use super::text::{self, JsonType};
use super::tree::Node;
use jsonrpc::{Limits, is_json};

/// The members of a terminal capability, in dialects that list them separately.
const TERMINAL: [&str; 5] = ["create", "output", "waitForExit", "kill", "release"];

/// The content types that canonical prompt capabilities have a boolean for.
const PROMPT: [&str; 3] = ["image", "audio", "embeddedContext"];

impl Converter {
    /// Converts a value; `Err` returns one to which the conversion does not apply, unchanged.
    pub(super) fn convert(self, way: Way, mut value: Node<'_>) -> Result<Node<'_>, Node<'_>> {
        let made = match (self, way) {
            (Self::JsonText, Way::Read) => parse_text(&value),
            (Self::JsonText | Self::PlainText, Way::Write) => stringify(&value),
            (Self::TextBlock, Way::Read) => string(&value).map(|text| text_block(&text)),
            (Self::TextBlock, Way::Write) => block_text(&value).map(|text| Node::string(&text)),
            (Self::ToolText, Way::Read) => string(&value).map(|text| tool_text(&text)),
            (Self::ToolText, Way::Write) => joined(&value).map(|text| Node::string(&text)),
            (Self::ToolTextBlock, Way::Read) => block_text(&value).map(|text| tool_text(&text)),
            (Self::ToolTextBlock, Way::Write) => joined(&value).map(|text| text_block(&text)),
            (Self::Singleton, Way::Read) | (Self::OnlyElement, Way::Write) => {
                return Ok(Node::Array(vec![value]));
            }
            (Self::Singleton, Way::Write) | (Self::OnlyElement, Way::Read) => match value.items() {
                Some(items) if items.len() == 1 => return Ok(items.remove(0)),
                _ => None,
            },
            (Self::LastElement, Way::Read) => {
                return Ok(match value.kind() {
                    None | Some(JsonType::Null) => Node::Absent,
                    Some(_) => Node::Array(vec![value]),
                });
            }
            (Self::LastElement, Way::Write) => match value.items() {
                Some(items) => return Ok(items.pop().unwrap_or(Node::Absent)),
                None => None,
            },
            (Self::List, Way::Read) if value.kind() != Some(JsonType::Array) => {
                return Ok(Node::Array(vec![value]));
            }
            (Self::NamedList, Way::Read) if value.kind() == Some(JsonType::Null) => {
                return Ok(Node::Absent);
            }
            (Self::NamedList, Way::Read) => return named_list(value),
            (Self::NamedList, Way::Write) => return unnamed_list(value),
            (Self::NamedMap, _) if value.kind() == Some(JsonType::Null) => {
                return Ok(Node::Absent);
            }
            (Self::NamedMap, Way::Read) => named_map(&value),
            (Self::NamedMap, Way::Write) => return named_list(value),
            (Self::Flags, Way::Read) => flags(&value),
            (Self::Flags, Way::Write) => names(&value),
            (Self::PromptTypes, Way::Read) => prompt_flags(&value),
            (Self::PromptTypes, Way::Write) => prompt_types(&value),
            (Self::AnyFlag, Way::Read) => terminal_flag(&value),
            (Self::AnyFlag, Way::Write) => terminal_methods(&value),
            (Self::NumberText, Way::Read) => number_text(&value).map(|text| Node::string(&text)),
            (Self::NumberText, Way::Write) => string(&value)
                .filter(|text| is_plain_number(text))
                .map(|text| Node::owned(text.into_bytes())),
            (Self::FileUri, Way::Read) => string(&value)
                .filter(|path| path.starts_with('/'))
                .map(|path| Node::string(&guess::file_uri(&path))),
            (Self::FileUri, Way::Write) => string(&value)
                .and_then(|uri| guess::file_path(&uri))
                .map(|path| Node::string(&path)),
            (Self::ProtocolVersion, Way::Read) => match value.kind() {
                Some(JsonType::String | JsonType::Boolean) => Some(Node::raw(b"1")),
                _ => None,
            },
            (Self::Basename, Way::Read) => {
                string(&value).map(|uri| Node::string(&guess::basename(&uri)))
            }
            (Self::MediaType, Way::Read) => {
                string(&value).map(|data| Node::string(guess::media_type(&data)))
            }
            (Self::ToolKind, Way::Read) => {
                string(&value).map(|name| Node::string(guess::tool_kind(&name)))
            }
            // Some work in one way only.
            _ => None,
        };
        made.ok_or(value)
    }
}

/// The text of a string.
pub(super) fn string(value: &Node<'_>) -> Option<String> {
    text::string(&value.json()).map(Cow::into_owned)
}

/// The text of a value of that type.
fn of_type<'v>(value: &'v Node<'_>, kind: JsonType) -> Option<Cow<'v, [u8]>> {
    Some(value.json()).filter(|json| JsonType::of(json) == kind)
}

fn flag(on: bool) -> Node<'static> {
    Node::raw(if on { b"true" } else { b"false" })
}

fn number_text(value: &Node<'_>) -> Option<String> {
    let json = value.json();
    let spelled = std::str::from_utf8(&json).ok()?;
    if value.kind() == Some(JsonType::Number) && is_plain_number(spelled) {
        return Some(spelled.to_owned());
    }
    text::integer(&json)
}

/// Whether it is the canonical spelling of a number without an exponent; only that is restored from
/// text. Fractions are those of times: JavaScript reports a file's milliseconds with one.
fn is_plain_number(text: &str) -> bool {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "1"));
    let number: Option<i64> = whole.parse().ok();
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let same = number.is_some_and(|number| number.to_string() == whole);
    same && digits && fraction.len() <= 9 && !fraction.ends_with('0')
}

fn parse_text(value: &Node<'_>) -> Option<Node<'static>> {
    let text = string(value)?;
    let json = text.trim_ascii();
    let container = matches!(
        JsonType::of(json.as_bytes()),
        JsonType::Object | JsonType::Array
    );
    (container && is_json(json.as_bytes(), &Limits::default()))
        .then(|| Node::owned(json.as_bytes().to_vec()))
}

fn stringify(value: &Node<'_>) -> Option<Node<'static>> {
    if value.kind() == Some(JsonType::String) {
        return None;
    }
    let json = text::compact(&value.json());
    Some(Node::string(std::str::from_utf8(&json).ok()?))
}

/// A text content block.
pub(super) fn text_block(text: &str) -> Node<'static> {
    object! { "type": "text", "text": text }
}

fn block_text(value: &Node<'_>) -> Option<String> {
    let json = value.json();
    if text::member(&json, "type") != Some(b"\"text\"") || text::members(&json).count() != 2 {
        return None;
    }
    text::string(text::member(&json, "text")?).map(Cow::into_owned)
}

fn tool_text(text: &str) -> Node<'static> {
    Node::Array(vec![
        object! { "type": "content", "content": text_block(text) },
    ])
}

/// All texts of tool content, one per line.
fn joined(value: &Node<'_>) -> Option<String> {
    let json = of_type(value, JsonType::Array)?;
    let texts: Vec<_> = text::items(&json)
        .filter_map(|item| text::member(text::member(item, "content")?, "text"))
        .filter_map(text::string)
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn named_list(mut value: Node<'_>) -> Result<Node<'_>, Node<'_>> {
    let Some(members) = value.members() else {
        return Err(value);
    };
    let named = members.drain(..).map(|(name, mut inner)| {
        let name = Node::owned([b"\"", &*name, b"\""].concat());
        match inner.members() {
            Some(members) => {
                members.retain(|(raw, _)| !text::same_name(raw, "name"));
                members.insert(0, (Cow::Borrowed(b"name"), name));
                inner
            }
            None => object! { "name": name, "value": inner },
        }
    });
    Ok(Node::Array(named.collect()))
}

fn unnamed_list(mut value: Node<'_>) -> Result<Node<'_>, Node<'_>> {
    let json = value.json();
    let has_name = |item| text::member(item, "name").and_then(text::string).is_some();
    let fits = JsonType::of(&json) == JsonType::Array && text::items(&json).all(has_name);
    drop(json);
    let Some(items) = value.items().filter(|_| fits) else {
        return Err(value);
    };
    let mut taken = HashSet::new();
    let mut members = Vec::with_capacity(items.len());
    for mut item in items.drain(..) {
        let Some(name) = item.take(&["name".into()]) else {
            continue;
        };
        let raw = name.json();
        let base = &raw[1..raw.len() - 1];
        let mut name = base.to_vec();
        let mut number = 1;
        while !taken.insert(name.clone()) {
            number += 1;
            name = [base, format!("-{number}").as_bytes()].concat();
        }
        let value = match item.members().map(Vec::as_mut_slice) {
            Some([(raw, value)]) if text::same_name(raw, "value") => {
                std::mem::replace(value, Node::Absent)
            }
            _ => item,
        };
        members.push((Cow::Owned(name), value));
    }
    Ok(Node::Object(members))
}

fn named_map(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Array)?;
    let mut places = HashMap::new();
    let mut members: Vec<(Cow<'static, [u8]>, Node<'static>)> = Vec::new();
    for item in text::items(&json) {
        let name = text::member(item, "name")?;
        let value = Node::owned(text::member(item, "value")?.to_vec());
        let at = *places.entry(text::string(name)?).or_insert(members.len());
        match members.get_mut(at) {
            Some((_, earlier)) => *earlier = value,
            None => members.push((Cow::Owned(name[1..name.len() - 1].to_vec()), value)),
        }
    }
    Some(Node::Object(members))
}

fn flags(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Array)?;
    let mut members: Vec<(Cow<'static, [u8]>, Node<'static>)> = Vec::new();
    for item in text::items(&json) {
        let raw = item.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if !members.iter().any(|(name, _)| **name == *raw) {
            members.push((Cow::Owned(raw.to_vec()), Node::raw(b"true")));
        }
        if members.len() > 256 {
            return None;
        }
    }
    Some(Node::Object(members))
}

fn names(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Object)?;
    if text::members(&json).any(|(_, on)| on != b"true") {
        return None;
    }
    let quoted = |(name, _): (&[u8], _)| Node::owned([b"\"", name, b"\""].concat());
    Some(Node::Array(text::members(&json).map(quoted).collect()))
}

fn prompt_flags(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Array)?;
    let listed: Vec<_> = text::items(&json)
        .take(64)
        .filter_map(text::string)
        .collect();
    let has = |name: &str| listed.iter().any(|listed| listed == name);
    let flags = PROMPT.map(|name| (name, flag(has(name))));
    Some(Node::object(flags))
}

fn prompt_types(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Object)?;
    let on = PROMPT.into_iter().filter(|name| is_on(&json, name));
    let listed = std::iter::once("text").chain(on).map(Node::string);
    Some(Node::Array(listed.collect()))
}

fn terminal_flag(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Object)?;
    Some(flag(TERMINAL.iter().all(|name| is_on(&json, name))))
}

fn terminal_methods(value: &Node<'_>) -> Option<Node<'static>> {
    let json = of_type(value, JsonType::Boolean)?;
    Some(Node::object(
        TERMINAL.map(|name| (name, flag(&*json == b"true"))),
    ))
}

/// Whether a member is `true`.
fn is_on(object: &[u8], name: &str) -> bool {
    text::member(object, name) == Some(b"true")
}
