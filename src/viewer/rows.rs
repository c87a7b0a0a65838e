//! A window of a recording as the page gets it: lines with facts that depend on other lines.
//!
//! Long lines come without their body, which the page requests when it is shown.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::index::{Class, Index, Item, item_at};
use super::library::OpenRecording;
use analysis::filter::Filter;
use analysis::lint::Finding;
use jsonrpc::Side;
use recording::rfc3339;
use recording::write;
use recording::{EventKind, Exchange, Header, Parsed, Payload, parse_line};

/// Chunks of a run that are read for its text.
const MAX_CHUNKS: usize = 24;

/// Maximum rows in one answer.
const MAX_ROWS: usize = 500;

/// Bytes of a line beyond which its body is left out.
const MAX_LINE: usize = 8 << 10;

/// Parts of the timeline; also the number of turns up to which it shows each, and that of outages.
const BUCKETS: usize = 240;

/// Maximum rows that are sorted; more stay in the order of time.
const MAX_SORTED: usize = 200_000;

/// Microseconds without an event that count as silence.
const SILENCE: u64 = 1_000_000;

/// Maximum turns whose first updates are listed.
const MAX_FIRSTS: usize = 200;

/// Some rows of a recording.
#[derive(Serialize)]
struct Window {
    total: usize,
    /// Items searched so far, and whether that is all.
    searched: usize,
    done: bool,
    events: usize,
    from: usize,
    place: Option<usize>,
    /// Whether they are in the order that was asked for, if one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    sorted: Option<bool>,
    rows: Vec<Row>,
}

/// A line, and facts about it that are not in the line.
#[derive(Default, Serialize)]
struct Row {
    /// The index of its item.
    i: usize,
    size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forwarded: bool,
    /// The number of chunks it represents, and the beginning of their text.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lint: Vec<Finding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<u64>,
    /// The answer to this request is an error.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failed: bool,
    /// Microseconds without any event before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    silence: Option<u64>,
    /// The line is without its body.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    short: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// The query parameters of a request.
#[derive(Debug)]
pub(super) struct Query(HashMap<String, String>);

impl Query {
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
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
    let summary = &index.summary;
    // The longest.
    let mut outages = summary.outages.clone();
    outages.sort_by_key(|(from, to, _)| Reverse(to.unwrap_or(summary.lasted) - from));
    outages.truncate(BUCKETS);
    json!({
        "name": recording.name,
        "header": summary.header.as_ref().map(header),
        "revision": progress.revision,
        "bytes": progress.bytes,
        "total": progress.total,
        "error": progress.error,
        "events": index.items.len(),
        "turns": index.turns.len(),
        "errors": summary.errors,
        "damaged": summary.damaged,
        "ended": summary.has_ended(),
        "rotated": summary.rotated == Some(true),
        "versions": {"client": index.schema(Side::Client).version(), "agent": index.schema(Side::Agent).version()},
        // Before anything is read, nothing is known.
        "writing": progress.total > 0 && progress.bytes >= progress.total && !progress.complete,
        "path": recording.path.to_string_lossy(),
        "duration": summary.lasted,
        "lint": index.findings.summary(),
        "spans": spans.collect::<Vec<_>>(),
        "outages": outages,
        "buckets": {"agent": to_agent, "client": to_client, "error": errors, "other": other},
    })
}

/// The rows that the page requests with `from` and `count` and that match `filter`, with `all` (no
/// folding), `t0` and `t1` (microseconds), `i0` and `i1` (items), in the order of the column `sort`
/// (with a minus, the largest first). With `n`, also the place of the event with that number among
/// them.
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
    let folded = search.is_none() && !all;
    let list = match search {
        Some(search) => Cow::Borrowed(&search.keys),
        None if all => Cow::Borrowed(&index.order),
        None => Cow::Owned(index.folded()),
    };
    let list = in_range(&list, &index, query);
    let order = Some(query.text("sort")).filter(|sort| !sort.is_empty());
    let sorted = order.map(|_| list.len() <= MAX_SORTED);
    let order = order.filter(|_| sorted == Some(true));
    let list = match order {
        Some(order) => Cow::Owned(in_order(list, &index, order)),
        None => Cow::Borrowed(list),
    };
    let from: usize = query.number("from").unwrap_or(0).min(list.len());
    let count = query.number("count").unwrap_or(100).min(MAX_ROWS);
    let place = query.number("n").map(|n| {
        let key = index.key(index.item_of(n));
        match order {
            Some(_) => list.iter().position(|known| *known == key),
            None => Some(list.partition_point(|known| *known < key)),
        }
        .unwrap_or(list.len())
    });
    let rows = list.iter().skip(from).take(count).map(|key| {
        let at = item_at(*key);
        Row::read(recording, &index, at, folded)
    });
    let window = Window {
        total: list.len(),
        searched: search.map_or(index.items.len(), |search| search.checked),
        done: search.is_none_or(|search| search.is_done(&index)),
        events: index.items.len(),
        from,
        place,
        sorted,
        rows: rows.collect::<io::Result<_>>()?,
    };
    Ok(serde_json::to_string(&window)?)
}

/// The turns from `from`, at most `count`.
pub(super) fn turns(recording: &OpenRecording, query: &Query) -> Value {
    let index = recording.content.index();
    let from: usize = query.number("from").unwrap_or(0).min(index.turns.len());
    let count = query.number("count").unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let turns: Vec<_> = index.turns.iter().skip(from).take(count).collect();
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
    let time = |key: &u64| Some(index.items.get(item_at(*key >> 32))?.t);
    let t0 = query.number("t0").unwrap_or(0);
    let t1 = query.number("t1").unwrap_or(u64::MAX);
    let i0 = query.number("i0").map_or(0, |at| index.key(at));
    let i1 = query.number("i1").map_or(u64::MAX, |at| index.key(at));
    let from = list.partition_point(|key| time(key) < Some(t0) || *key < i0);
    let to = list.partition_point(|key| time(key) <= Some(t1) && *key <= i1);
    list.get(from..to).unwrap_or_default()
}

/// The items in the order of a column; those that are equal in it stay in the order of time.
fn in_order(list: &[u64], index: &Index, order: &str) -> Vec<u64> {
    let (column, descending) = match order.strip_prefix('-') {
        Some(column) => (column, true),
        None => (order, false),
    };
    let ranks = index.name_ranks();
    // What has no value stands last.
    let none = if descending { 0 } else { u64::MAX };
    let value = |key: &u64| {
        let Some(item) = index.items.get(item_at(*key)) else {
            return none;
        };
        let exchange = || index.exchanges.exchange(item.n);
        match column {
            "time" => item.t,
            "side" => item.class as u64,
            "method" => ranks.get(usize::from(item.name)).copied().unwrap_or(none),
            "size" => item.length.into(),
            "duration" => exchange()
                .and_then(|exchange| duration_of(item, exchange))
                .unwrap_or(none),
            // Errors, requests that failed, those without an answer, those with one, answers, others.
            "status" if item.class == Class::Error => 0,
            "status" => match exchange().map(|exchange| (exchange.n == item.n, exchange.answer)) {
                Some((true, Some(answer))) if answer.failed => 1,
                Some((true, None)) => 2,
                Some((true, Some(_))) => 3,
                Some((false, _)) => 4,
                None => 5,
            },
            _ => 0,
        }
    };
    let mut list = list.to_vec();
    list.sort_by_cached_key(|key| match descending {
        true => u64::MAX - value(key),
        false => value(key),
    });
    list
}

/// From the request to the answer; both have it.
fn duration_of(item: &Item, exchange: &Exchange) -> Option<u64> {
    match exchange.n == item.n {
        true => exchange.duration(),
        false => Some(item.t.saturating_sub(exchange.requested_at)),
    }
}

/// Durations of the whole recording, as the client saw them.
pub(super) fn figures(recording: &OpenRecording) -> Value {
    let index = recording.content.index();
    let figures = &index.figures;
    let answered = figures
        .methods
        .iter()
        .filter(|(_, own)| own.took.count() > 0);
    let methods = answered.map(|((from, method), own)| {
        json!({"from": from, "method": method, "took": own.took.json(Value::from)})
    });
    let turns = index.turns.iter().zip(1..);
    let turns = turns.filter_map(|(turn, number): (_, usize)| Some((turn.first?, turn.n, number)));
    let mut firsts: Vec<_> = turns.collect();
    firsts.sort_by_key(|(first, ..)| Reverse(*first));
    let firsts = firsts.iter().take(MAX_FIRSTS);
    let firsts = firsts.map(|(first, n, turn)| json!({"turn": turn, "n": n, "first": first}));
    json!({
        "turns": figures.turns.json(Value::from),
        "first_update": figures.first_updates.json(Value::from),
        "methods": methods.collect::<Vec<_>>(),
        "firsts": firsts.collect::<Vec<_>>(),
        "slowest": figures.slowest,
    })
}

impl Row {
    /// The row of an item: a run if it represents one and runs are folded.
    fn read(recording: &OpenRecording, index: &Index, at: usize, folded: bool) -> io::Result<Self> {
        let item = index.items.get(at).ok_or(io::ErrorKind::NotFound)?;
        let is_broken = item.class == Class::Broken;
        let mut row = Self {
            i: at,
            size: item.length,
            t: is_broken.then_some(item.t),
            forwarded: item.forwarded,
            ..Self::default()
        };
        if !is_broken {
            row.lint = index.findings.of_event(item.n).to_vec();
        }
        if let Some(exchange) = index.exchanges.exchange(item.n) {
            row.request = Some(exchange.n);
            row.answer = exchange.answer.map(|answer| answer.n);
            row.duration = duration_of(item, exchange);
            row.failed =
                exchange.n == item.n && exchange.answer.is_some_and(|answer| answer.failed);
        }
        let before = at.checked_sub(1).and_then(|before| index.items.get(before));
        let silence = before.map(|before| item.t.saturating_sub(before.t));
        row.silence = silence.filter(|silence| *silence >= SILENCE);
        if folded && item.run > 1 {
            row.run = Some(item.run);
            row.text = Some(run_text(recording, index, at)?);
        }
        let line = recording.content.span(item, item)?;
        match row.shown(&line) {
            Ok(line) => row.line = Some(line),
            Err(fault) => row.fault = Some(fault),
        }
        Ok(row)
    }

    /// The line as it was recorded, a long one without its body; or why it cannot be shown.
    fn shown(&mut self, line: &Bytes) -> Result<Box<RawValue>, String> {
        let mut text = line.trim_ascii_end();
        let mut short = Vec::new();
        match parse_line(line) {
            Parsed::Invalid(fault) => return Err(fault.to_string()),
            Parsed::Event(mut event) if line.len() > MAX_LINE => {
                match &mut event.kind {
                    EventKind::Message(message) => {
                        message.body = Payload::Omitted(message.body.len());
                        message.patch = None;
                    }
                    EventKind::Stderr(body) => *body = Payload::Omitted(body.len()),
                    _ => {}
                }
                write::event(&mut short, event.stamp(), &event.kind);
                self.short = true;
                text = short.trim_ascii_end();
            }
            _ => {}
        }
        if text.len() > MAX_LINE {
            return Err("this line is too long to be shown".to_owned());
        }
        // A line may have a valid checksum and yet be no JSON, if it was made by hand.
        serde_json::from_slice(text).map_err(|_| "this line is no JSON".to_owned())
    }
}

/// The beginning of the text of the run that begins with the item `at`. If chunks were recorded as
/// received and as sent, those at the side of the first count.
fn run_text(recording: &OpenRecording, index: &Index, at: usize) -> io::Result<String> {
    let mut rest = index.items.iter().skip(at);
    let head = rest.next().ok_or(io::ErrorKind::NotFound)?;
    let rest = rest.take(4 * MAX_CHUNKS);
    let rest = rest.filter(|item| item.run == 0 && item.class == head.class);
    let chunks = std::iter::once(head).chain(rest).take(MAX_CHUNKS);
    let (mut text, mut edge, mut count) = (String::new(), None, head.run);
    for item in chunks.filter(|item| item.length as usize <= MAX_LINE) {
        if let Parsed::Event(event) = parse_line(&recording.content.span(item, item)?)
            && let EventKind::Message(message) = &event.kind
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
