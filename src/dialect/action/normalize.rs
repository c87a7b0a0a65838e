//! Actions that convert values of single peers to their canonical form.
//!
//! - `absolute_paths`: relative paths of a tool call are relative to the session's working
//!   directory.
//! - `remove_dot_segments`: `/a/./b` is `/a/b`. Nothing is resolved that a symbolic link could change.
//! - `auth_method`: `authenticate` carries the whole method that was offered.
//! - `slice_lines`: a file that was read completely although a part was requested is cut.
//! - `remove_envelope_type`: the member `type` beside `jsonrpc` is removed.
//! - `iso_times`: numbers of seconds or milliseconds since 1970 become ISO 8601.
//! - `remove_command_slashes`: names of commands lose their leading slash.

use time::OffsetDateTime;

use crate::message::Message;
use crate::pointer::own_pointer;
use crate::step::Step;
use crate::table::Way;
use crate::text::{self, JsonType};
use crate::translator::Translator;
use crate::tree::Node;
use jsonrpc::Kind;

/// The slot that holds the working directory of a session that is being opened.
const CWD: &str = "acp-relay.cwd";

/// From here on a time is in milliseconds: in seconds it would be the year 5138.
const MILLISECONDS: f64 = 1e11;

impl Translator {
    pub(super) fn absolute_paths(&mut self, message: &mut Message<'_>, step: &mut Step<'_, '_>) {
        let pending = &mut *step.pending;
        match (step.way, message.kind) {
            (Way::Write, Kind::Request) => {
                let Some(cwd) = message.text_at("/cwd") else {
                    return;
                };
                match message.session() {
                    Some(session) => self.sessions.see(&session).cwd = Some(cwd),
                    None => pending.slots.push((CWD.into(), cwd.into_bytes().into())),
                }
            }
            (Way::Read, Kind::Result) => {
                let cwd = pending.slot(CWD);
                let cwd = cwd.and_then(|cwd| String::from_utf8(cwd.to_vec()).ok());
                if let (Some(session), Some(cwd)) = (message.session(), cwd) {
                    self.sessions.see(&session).cwd = Some(cwd);
                }
            }
            (Way::Read, Kind::Request | Kind::Notification) => {
                let session = message.session().unwrap_or_default();
                let known = self.sessions.get(&session);
                let Some(cwd) = known.and_then(|session| session.cwd.clone()) else {
                    return;
                };
                for list in [
                    "/update/locations",
                    "/update/content",
                    "/toolCall/locations",
                    "/toolCall/content",
                ] {
                    map_strings(message, list, "/path", |path| join_path(&cwd, path));
                }
            }
            _ => {}
        }
    }

    pub(super) fn auth_method(&mut self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        match (step.way, message.kind) {
            (Way::Read, Kind::Result) => {
                let methods = message.get("/authMethods");
                if let Some(methods) = methods.filter(|methods| methods.kind() == JsonType::Array) {
                    let methods = methods.json();
                    if methods.len() <= 64 << 10 {
                        self.actions.auth_methods = methods.into_owned();
                    }
                }
            }
            (Way::Write, Kind::Request) => {
                let Some(id) = message.json_at("/methodId") else {
                    return;
                };
                if JsonType::of(&self.actions.auth_methods) != JsonType::Array {
                    return;
                }
                let same = |method: &&[u8]| {
                    text::member(method, "id").is_some_and(|own| text::same(own, &id))
                };
                let offered = text::items(&self.actions.auth_methods).find(same);
                if let Some(offered) = offered {
                    let offered = Node::owned(offered.to_vec());
                    message.set("/authMethod", offered);
                }
            }
            _ => {}
        }
    }

    pub(super) fn slice_lines(&self, message: &mut Message<'_>, step: &Step<'_, '_>) {
        let number = |name: &str| {
            let value = step.pending.slot(name)?;
            text::integer(value)?.parse::<usize>().ok()
        };
        let content = message.text_at("/content");
        let (Some(content), Some(limit)) = (content, number("limit")) else {
            return;
        };
        // There are more lines than requested: the client has ignored both numbers.
        if message.kind != Kind::Result || content.split_inclusive('\n').count() <= limit {
            return;
        }
        let before = number("line").map_or(0, |line| line.saturating_sub(1));
        let part: String = content
            .split_inclusive('\n')
            .skip(before)
            .take(limit)
            .collect();
        message.set_text("/content", &part);
    }
}

pub(super) fn remove_dot_segments(message: &mut Message<'_>) {
    let Some(path) = message.text_at("/path") else {
        return;
    };
    let mut plain = path.clone();
    while plain.contains("/./") {
        plain = plain.replace("/./", "/");
    }
    if plain != path {
        message.set_text("/path", &plain);
    }
}

pub(super) fn remove_envelope_type(message: &mut Message<'_>) {
    let before = message.extras.len();
    message
        .extras
        .retain(|(name, _)| !text::same_name(name, "type"));
    message.changed |= message.extras.len() < before;
}

pub(super) fn remove_command_slashes(message: &mut Message<'_>) {
    map_strings(message, "/update/availableCommands", "/name", |name| {
        name.strip_prefix('/').map(str::to_owned)
    });
}

pub(super) fn iso_times(message: &mut Message<'_>) {
    let at = own_pointer("/updatedAt");
    let Some(list) = message.body.get_mut(own_pointer("/sessions").names()) else {
        return;
    };
    for session in list.items().into_iter().flatten() {
        let number = session
            .get(&at)
            .filter(|look| look.kind() == JsonType::Number)
            .and_then(|look| std::str::from_utf8(&look.json()).ok()?.parse().ok());
        if let Some(iso) = number.and_then(iso) {
            // A session is an object, so `put` cannot be blocked.
            let _ = session.put(at.names(), Node::string(&iso));
            message.changed = true;
        }
    }
}

/// Changes a string in every element of a list.
fn map_strings(
    message: &mut Message<'_>,
    list: &str,
    at: &str,
    change: impl Fn(&str) -> Option<String>,
) {
    let at = own_pointer(at);
    let found = message.get(list).map(|look| look.kind());
    if found != Some(JsonType::Array) {
        return;
    }
    let mut any = false;
    for item in message.items(list).into_iter().flatten() {
        let changed = item.text_at(&at).and_then(|text| change(&text));
        if let Some(changed) = changed {
            // The string was found there, so `put` cannot be blocked.
            let _ = item.put(at.names(), Node::string(&changed));
            any = true;
        }
    }
    message.changed |= any;
}

/// A relative path under a directory; `None` for every other path.
fn join_path(cwd: &str, path: &str) -> Option<String> {
    let drive = path.as_bytes().get(1) == Some(&b':');
    if path.is_empty() || path.starts_with(['/', '\\', '~']) || drive || path.contains("://") {
        return None;
    }
    let slash = if cwd.contains('\\') { '\\' } else { '/' };
    let base = cwd.trim_end_matches(['/', '\\']);
    let rest = path.strip_prefix("./").unwrap_or(path);
    Some(format!("{base}{slash}{rest}"))
}

/// Seconds or milliseconds since 1970 as ISO 8601 in UTC; `None` outside the years 1970 to 9999.
fn iso(number: f64) -> Option<String> {
    let millis = if number.abs() < MILLISECONDS {
        number * 1e3
    } else {
        number
    };
    if !(0.0..253_402_300_800_000.0).contains(&millis) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the range has been checked"
    )]
    let millis = millis as i64;
    let at = OffsetDateTime::from_unix_timestamp(millis / 1000).ok()?;
    let (year, month, day) = at.to_calendar_date();
    let month = u8::from(month);
    let (hour, minute, second) = at.to_hms();
    let fraction = millis % 1000;
    let fraction = if fraction == 0 {
        String::new()
    } else {
        format!(".{fraction:03}")
    };
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z"
    ))
}
