//! A window of a recording as the page gets it: lines with facts that depend on other lines.
//!
//! Long lines come without their body, which the page requests when it is shown.

use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::index::{Class, Index, Item, as_json, item_at};
use super::library::OpenRecording;
use crate::recording::filter::Filter;
use crate::recording::rfc3339;
use crate::recording::write::{self, Stamp};
use crate::recording::{EventKind, Header, Parsed, Payload, parse_line};

/// Chunks of a run that are read for its text.
const MAX_CHUNKS: usize = 24;

/// Maximum rows in one answer.
const MAX_ROWS: usize = 500;

/// Bytes of a line beyond which its body is left out.
const MAX_LINE: usize = 8 << 10;

/// Parts of the timeline; also the number of turns up to which it shows each.
const BUCKETS: usize = 240;

/// The query parameters of a request.
#[derive(Debug)]
pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).parse().ok()
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let text = parts.uri.query().unwrap_or_default();
        let parameters = form_urlencoded::parse(text.as_bytes());
        Ok(Self(parameters.into_owned().collect()))
    }
}

/// The state of a recording: what the page shows around the rows.
pub(super) fn state(recording: &OpenRecording) -> Value {
    let index = recording.content.index();
    let progress = recording.content.progress.borrow();
    let [to_agent, to_client, errors, other] = index.buckets(BUCKETS);
    let few = index.turns.len() <= BUCKETS;
    let spans = index.turns.iter().filter(|_| few);
    let spans = spans.map(|turn| json!([turn.t, turn.end.map(|end| end.t)]));
    json!({
        "name": recording.name,
        "header": index.header.as_ref().map(header),
        "revision": progress.revision,
        "bytes": progress.bytes,
        "total": progress.total,
        "error": progress.error,
        "events": index.items.len(),
        "turns": index.turns.len(),
        "errors": index.errors,
        "damaged": index.damaged,
        "ended": index.ended,
        "rotated": index.rotated,
        // Before anything is read, nothing is known.
        "writing": progress.total > 0 && progress.bytes >= progress.total && !progress.complete,
        "path": recording.path.to_string_lossy(),
        "duration": index.length(),
        "lint": {
            "checked": index.findings.checked,
            "total": index.findings.total,
            "rules": index.findings.rules(),
        },
        "spans": spans.collect::<Vec<_>>(),
        "buckets": {"agent": to_agent, "client": to_client, "error": errors, "other": other},
    })
}

/// The rows that the page requests with `from` and `count` and that match `filter`, with `all` (no
/// folding), `t0` and `t1` (microseconds), `i0` and `i1` (items). With `n`, also the place of the
/// event with that number among them.
///
/// # Errors
/// The recording cannot be read.
pub(super) fn rows(
    recording: &OpenRecording,
    query: &Query,
    filter: Option<&Filter>,
) -> io::Result<String> {
    let all = query.text("all") == "1";
    let mut searches = recording.searches();
    let search = match filter {
        None => None,
        Some(filter) => Some(searches.run(&recording.content, filter, all)?),
    };
    let index = recording.content.index();
    let list: &[u64] = match search {
        Some(search) => &search.keys,
        None if all => &index.order,
        None => &index.folded,
    };
    let searched = search.map_or(index.items.len(), |search| search.checked);
    let list = in_range(list, &index, query);
    let from: usize = query.number("from").unwrap_or(0).min(list.len());
    let count = query.number("count").unwrap_or(100).min(MAX_ROWS);
    let window = &list[from..list.len().min(from + count)];
    let place = query
        .number("n")
        .map(|n| list.partition_point(|key| *key < index.key(index.item_of(n))));
    let head = json!({
        "total": list.len(),
        "searched": searched,
        "done": search.is_none_or(|search| search.is_done(&index)),
        "events": index.items.len(),
        "from": from,
        "place": place,
    });
    let folded = search.is_none() && !all;
    let known: Vec<(Item, Value, Vec<Item>)> = (window.iter())
        .map(|key| {
            let at = item_at(*key);
            let mut item = index.items[at];
            if !folded {
                item.run = 1;
            }
            (
                item,
                item_facts(at, &item, &index),
                run_items(at, &item, &index),
            )
        })
        .collect();
    drop(index);
    let rows = known.into_iter().map(|(item, mut facts, run)| {
        if !run.is_empty() {
            facts["text"] = run_text(recording, item.run, &run)?.into();
        }
        row(recording, &item, facts)
    });
    let rows = rows.collect::<io::Result<Vec<_>>>()?.join(",");
    Ok(with_member(&head, "rows", &format!("[{rows}]")))
}

/// The turns from `from`, at most `count`.
pub(super) fn turns(recording: &OpenRecording, query: &Query) -> Value {
    let index = recording.content.index();
    let from: usize = query.number("from").unwrap_or(0).min(index.turns.len());
    let count = query.number("count").unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let turns: Vec<_> = index.turns[from..].iter().take(count).collect();
    json!({"total": index.turns.len(), "from": from, "turns": turns})
}

/// The linter's findings: of the rule `id`, or of all, `count` from `from`.
pub(super) fn findings(recording: &OpenRecording, query: &Query) -> Value {
    let index = recording.content.index();
    let from = query.number("from").unwrap_or(0);
    let count = query.number("count").unwrap_or(100).min(MAX_ROWS);
    let list = index.findings.list(query.text("id"), from, count);
    json!({"from": from, "findings": list})
}

fn in_range<'a>(list: &'a [u64], index: &Index, query: &Query) -> &'a [u64] {
    // An item counts with the time of the item it is listed after.
    let time = |key: &u64| index.items[item_at(*key >> 32)].t;
    let t0 = query.number("t0").unwrap_or(0);
    let t1 = query.number("t1").unwrap_or(u64::MAX);
    let i0 = query.number("i0").map_or(0, |at| index.key(at));
    let i1 = query.number("i1").map_or(u64::MAX, |at| index.key(at));
    let from = list.partition_point(|key| time(key) < t0 || *key < i0);
    let to = list.partition_point(|key| time(key) <= t1 && *key <= i1);
    &list[from.min(to)..to]
}

/// Facts about a line that are not in the line.
fn item_facts(at: usize, item: &Item, index: &Index) -> Value {
    let mut facts = json!({"i": at, "size": item.length});
    if item.class == Class::Broken {
        facts["t"] = item.t.into();
    }
    if item.forwarded {
        facts["forwarded"] = true.into();
    }
    if item.run > 1 {
        facts["run"] = item.run.into();
    }
    let found = index.findings.of_event(item.n);
    if !found.is_empty() && item.class != Class::Broken {
        facts["lint"] = found.iter().map(as_json).collect();
    }
    if let Some(exchange) = index.exchanges.exchange(item.n) {
        facts["request"] = exchange.n.into();
        facts["answer"] = exchange.answer.map(|answer| answer.n).into();
        facts["duration"] = if exchange.n == item.n {
            exchange.duration().into()
        } else {
            item.t.saturating_sub(exchange.requested_at).into()
        };
    }
    facts
}

/// Candidates for the first chunks of the run that an item represents; none if it is no run.
fn run_items(at: usize, head: &Item, index: &Index) -> Vec<Item> {
    if head.run < 2 {
        return Vec::new();
    }
    let after = &index.items[at + 1..];
    let rest = after.iter().take(4 * MAX_CHUNKS);
    let rest = rest.filter(|item| item.run == 0 && item.class == head.class);
    std::iter::once(head)
        .chain(rest)
        .take(MAX_CHUNKS)
        .copied()
        .collect()
}

/// The beginning of the text of a run of `count` chunks. If chunks were recorded as received and as
/// sent, those at the side of the first count.
fn run_text(recording: &OpenRecording, mut count: u32, run: &[Item]) -> io::Result<String> {
    let mut text = String::new();
    let mut edge = None;
    for item in run.iter().filter(|item| item.length as usize <= MAX_LINE) {
        let Parsed::Event(event) = parse_line(&recording.content.span(item, item)?) else {
            continue;
        };
        if let EventKind::Message(message) = &event.kind
            && *edge.get_or_insert(message.edge) == message.edge
            && let Some(tree) = message.body.json()
            && let Some(chunk) = tree.pointer("/params/update/content/text")
        {
            text.push_str(chunk.as_str().unwrap_or_default());
            count -= 1;
        }
        if count == 0 || text.len() > 240 {
            break;
        }
    }
    Ok(text)
}

/// A row: its facts, and its line as it was recorded or why it cannot be shown.
fn row(recording: &OpenRecording, item: &Item, mut facts: Value) -> io::Result<String> {
    let line = recording.content.span(item, item)?;
    let mut text = line.trim_ascii_end();
    let mut short = Vec::new();
    let parsed = parse_line(&line);
    if let Parsed::Event(event) = &parsed
        && line.len() > MAX_LINE
    {
        let mut kind = event.kind.clone();
        if let EventKind::Message(message) = &mut kind {
            message.body = Payload::Omitted(message.body.len());
            message.patch = None;
        } else if let EventKind::Stderr(body) = &mut kind {
            *body = Payload::Omitted(body.len());
        }
        let (n, t, w) = (event.n, event.t, event.w);
        write::event(&mut short, Stamp { n, t, w }, &kind);
        facts["short"] = true.into();
        text = short.trim_ascii_end();
    }
    let line = match &parsed {
        Parsed::Invalid(fault) => Err(fault.to_string()),
        _ if text.len() > MAX_LINE => Err("this line is too long to be shown".to_owned()),
        // A line may have a valid checksum and yet be no JSON, if it was made by hand.
        _ => {
            serde_json::from_slice::<&RawValue>(text).map_err(|_| "this line is no JSON".to_owned())
        }
    };
    Ok(match line {
        Ok(line) => with_member(&facts, "line", line.get()),
        Err(fault) => with_member(&facts, "fault", &json!(fault).to_string()),
    })
}

/// The text of an object that is not empty, with one more member whose value is JSON text.
fn with_member(object: &Value, name: &str, value: &str) -> String {
    let mut text = object.to_string();
    text.pop();
    text + &format!(",\"{name}\":{value}}}")
}

fn header(header: &Header) -> Value {
    json!({
        "id": header.id,
        "began": rfc3339(header.began),
        "by": header.by,
        "client": header.client,
        "agent": header.agent,
        "policy": header.policy,
        "redaction": header.redaction.mode,
    })
}
