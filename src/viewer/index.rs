//! The position of every event of a recording, and what the page needs to know without reading it.
//!
//! Lines are added one by one, without their bodies: about 60 bytes per event. A translated message
//! is recorded when it is written; it is listed after the message that it was made of, as its
//! receiver got it. The findings of the linter come later.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use acp::Schema;
use analysis::figures::{Figures, update_kind};
use analysis::lint::{Finding, RULES};
use jsonrpc::{Kind, Side};
use recording::{
    Entry, EventKind, ExchangeAnswer, Exchanges, Message, Parsed, RecordedEvent, Summary, View,
};

/// Maximum distance in items at which a translated message is listed after its original.
const MAX_DISTANCE: usize = 10_000;

/// Maximum number of names of messages; further ones have none.
const MAX_NAMES: u16 = 2_000;

/// All lines read so far, in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) summary: Summary,
    pub(super) items: Vec<Item>,
    /// The keys of all items, in order.
    pub(super) order: Vec<u64>,
    pub(super) turns: Vec<Turn>,
    pub(super) findings: Findings,
    /// Items that changed after they were added, in the order of the changes.
    pub(super) revised: Vec<u32>,
    pub(super) exchanges: Exchanges,
    /// Durations, as the client saw them.
    pub(super) figures: Figures,
    /// The names of messages: the method, or the kind of a `session/update`.
    names: HashMap<Vec<u8>, u16>,
    /// The versions of ACP that `initialize` was answered with at the edges.
    schemas: [Option<Schema>; 2],
    /// The runs of chunks that may continue, by edge and direction.
    runs: HashMap<(Side, Side), OpenRun>,
    /// The place of the last message to each side that is no chunk.
    breaks: [usize; 2],
}

/// One line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    /// The offset in its segment.
    pub(super) at: u64,
    /// The event's number; for a damaged line, that of the event before it.
    pub(super) n: u64,
    /// Microseconds since the recording began.
    pub(super) t: u64,
    pub(super) length: u32,
    /// The number of chunks it represents while runs are folded; 0 if it is folded away.
    pub(super) run: u32,
    pub(super) segment: u16,
    /// The name of a message, by the order in which names came; 0 is none.
    pub(super) name: u16,
    /// The item after which it is listed: for a translated message, its original; for any other
    /// item, itself.
    pub(super) place: u32,
    pub(super) class: Class,
    /// It was forwarded unchanged.
    pub(super) forwarded: bool,
}

/// The kinds of lines that the timeline distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Received from the client, or sent to the agent.
    ToAgent,
    /// Received from the agent, or sent to the client.
    ToClient,
    /// An error response.
    Error,
    /// A note that frames were forwarded.
    Forwarded,
    /// Any other event.
    Other,
    /// A damaged line.
    Broken,
}

/// A prompt and its answer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Turn {
    #[serde(rename = "i")]
    pub(super) item: usize,
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) session: Option<String>,
    pub(super) end: Option<TurnEnd>,
    /// Microseconds from the prompt to the first update.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first: Option<u64>,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TurnEnd {
    #[serde(rename = "i")]
    pub(super) item: usize,
    pub(super) n: u64,
    pub(super) t: u64,
    pub(super) failed: bool,
}

/// The findings so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// By the number of the event.
    by_event: BTreeMap<u64, Vec<Finding>>,
    /// Those that hold only if no event follows; they are also among the others.
    provisional: Vec<Finding>,
    /// Number of items checked.
    pub(super) checked: usize,
}

#[derive(Debug)]
struct OpenRun {
    kind: Vec<u8>,
    session: Option<String>,
    head: usize,
    /// The place of its last chunk.
    last: usize,
}

impl Item {
    /// The sort key of this item, which has the index `at`.
    pub(super) fn key(&self, at: usize) -> u64 {
        u64::from(self.place) << 32 | u64::from(to_u32(at))
    }
}

impl Index {
    /// Adds a line of a segment.
    pub(super) fn add(&mut self, segment: u16, entry: &Entry) {
        self.summary.add(&entry.parsed);
        let (n, class) = match &entry.parsed {
            Parsed::Header(_) => return,
            Parsed::Event(event) => (event.n, class(&event.kind)),
            Parsed::Invalid(_) => (self.items.last().map_or(0, |item| item.n), Class::Broken),
        };
        let at = self.items.len();
        self.items.push(Item {
            at: entry.at,
            n,
            t: self.summary.lasted,
            length: u32::try_from(entry.line.len()).unwrap_or(u32::MAX),
            run: 1,
            segment,
            name: 0,
            place: to_u32(self.place(at, entry)),
            class,
            forwarded: false,
        });
        let key = self.key(at);
        // At or near the end.
        let place = self.order.partition_point(|known| *known < key);
        self.order.insert(place, key);
        if let Parsed::Event(event) = &entry.parsed {
            self.update(at, event);
        }
    }

    /// The place of a translated message's original; for any other line, its own.
    fn place(&self, at: usize, entry: &Entry) -> usize {
        let Parsed::Event(event) = &entry.parsed else {
            return at;
        };
        let of = match &event.kind {
            EventKind::Message(message) if !message.is_received() => message.source,
            _ => None,
        };
        let origin = of.map(|of| (of, self.item_of(of)));
        let is_valid = |(of, origin): &(u64, usize)| {
            *origin < at
                && at - origin < MAX_DISTANCE
                && self.items.get(*origin).is_some_and(|item| item.n == *of)
        };
        origin.filter(is_valid).map_or(at, |(_, origin)| origin)
    }

    /// The keys of the items shown while runs of chunks are folded: without later chunks of a run,
    /// and without the notes that frames were forwarded.
    pub(super) fn folded(&self) -> Vec<u64> {
        let is_shown = |key: &&u64| {
            let item = self.items.get(item_at(**key));
            item.is_some_and(|item| item.run > 0 && item.class != Class::Forwarded)
        };
        self.order.iter().filter(is_shown).copied().collect()
    }

    /// The key of an item; past the end, one greater than all.
    pub(super) fn key(&self, at: usize) -> u64 {
        self.items.get(at).map_or(u64::MAX, |item| item.key(at))
    }

    /// The first item with number `n` or a later one.
    pub(super) fn item_of(&self, n: u64) -> usize {
        self.items.partition_point(|item| item.n < n)
    }

    /// The number of items in each of `count` equal parts of the time: to the agent, to the client,
    /// errors, others.
    pub(super) fn buckets(&self, count: usize) -> [Vec<u32>; 4] {
        let mut buckets = [(); 4].map(|()| vec![0; count]);
        let [to_agent, to_client, errors, others] = &mut buckets;
        let whole = self.summary.lasted.saturating_add(1);
        for item in &self.items {
            let bucket = match item.class {
                Class::ToAgent => &mut *to_agent,
                Class::ToClient => to_client,
                Class::Error => errors,
                Class::Other | Class::Broken => others,
                Class::Forwarded => continue,
            };
            let place = u128::from(item.t) * count as u128 / u128::from(whole);
            // No item is later than the last.
            if let Some(number) = bucket.get_mut(usize::try_from(place).unwrap_or(0)) {
                *number += 1;
            }
        }
        buckets
    }

    /// Adds findings among the first `checked` items, and those that hold if there are no more items
    /// (`provisional`), which replace the previous ones.
    pub(super) fn set_findings(
        &mut self,
        found: Vec<Finding>,
        provisional: Vec<Finding>,
        checked: usize,
    ) {
        let before = std::mem::replace(&mut self.findings.provisional, provisional.clone());
        self.findings.checked = checked;
        for old in before {
            self.change_findings(old.n, |known| known.retain(|known| known.rule != old.rule));
        }
        for new in found.into_iter().chain(provisional) {
            self.change_findings(new.n, |known| {
                if let Some(was) = new.repaired_from
                    && let Some(at) = (known.iter())
                        .position(|old| old.rule == was && new.what.ends_with(&old.what))
                {
                    known.remove(at);
                }
                known.push(new);
            });
        }
    }

    fn change_findings(&mut self, n: u64, change: impl FnOnce(&mut Vec<Finding>)) {
        change(self.findings.by_event.entry(n).or_default());
        let at = self.item_of(n);
        self.revised.push(to_u32(at));
    }

    fn update(&mut self, at: usize, event: &RecordedEvent) {
        match &event.kind {
            EventKind::Passed(forwarded) => {
                let from = self.item_of(forwarded.first);
                let class = match forwarded.to {
                    Side::Agent => Class::ToAgent,
                    Side::Client => Class::ToClient,
                };
                for item in self.items.get_mut(from..at).into_iter().flatten() {
                    let is_error = item.class == Class::Error;
                    if item.n <= forwarded.last && (item.class == class || is_error) {
                        item.forwarded = true;
                    }
                }
            }
            EventKind::Message(message) => {
                let kind = update_kind(message);
                self.track_name(at, message, kind);
                self.track_run(at, message, kind);
                self.track_turn(at, event, message);
                self.track_figures(event, message);
            }
            _ => self.runs.clear(),
        }
    }

    fn track_name(&mut self, at: usize, message: &Message, kind: Option<&[u8]>) {
        let method = message.method.as_deref().unwrap_or_default();
        let name = kind.unwrap_or(method.as_bytes());
        let next = u16::try_from(self.names.len() + 1).unwrap_or(MAX_NAMES);
        let name = match self.names.get(name) {
            Some(known) => *known,
            None if name.is_empty() || next >= MAX_NAMES => 0,
            None => *self.names.entry(name.to_owned()).or_insert(next),
        };
        if let Some(item) = self.items.get_mut(at) {
            item.name = name;
        }
        if method == "initialize"
            && message.kind == Some(Kind::Result)
            && let Some(body) = message.body.json()
        {
            let result = body.get("result").unwrap_or(&Value::Null);
            *message.edge.of_mut(&mut self.schemas) = Some(Schema::of_initialize(result));
        }
    }

    /// A run is ended by an event that is no message, and by another message in its direction.
    fn track_run(&mut self, at: usize, message: &Message, kind: Option<&[u8]>) {
        let place = self.items.get(at).map_or(at, |item| item.place as usize);
        let Some(kind) = kind.filter(|kind| kind.ends_with(b"_chunk")) else {
            self.runs.remove(&(message.edge, message.to));
            *message.to.of_mut(&mut self.breaks) = place;
            return;
        };
        let after = *message.to.of(&self.breaks);
        let edge = (message.edge, message.to);
        match self.runs.get_mut(&edge) {
            // A translated chunk may be listed before what was received in between.
            Some(run)
                if run.kind == kind
                    && run.session == message.session
                    && !(run.last < after && after < place) =>
            {
                run.last = place;
                if let Ok([head, item]) = self.items.get_disjoint_mut([run.head, at]) {
                    head.run = head.run.saturating_add(1);
                    item.run = 0;
                }
            }
            _ => {
                let run = OpenRun {
                    kind: kind.to_owned(),
                    session: message.session.clone(),
                    head: at,
                    last: place,
                };
                self.runs.insert(edge, run);
            }
        }
    }

    fn track_turn(&mut self, at: usize, event: &RecordedEvent, message: &Message) {
        if self.exchanges.add(event).is_none() {
            return;
        }
        // The exchange in the client's view; a translated prompt has another one with the agent.
        let at_client = View::At(Side::Client);
        let Some(exchange) = self.exchanges.exchange_in(at_client, event.n) else {
            return;
        };
        let (request_n, prompt) = (exchange.n, exchange.method == "session/prompt");
        if message.kind.is_some_and(Kind::is_answer) {
            let request = self.items.partition_point(|item| item.n < request_n);
            self.revised.push(to_u32(request));
            let open = self.turns.iter_mut().rev().find(|turn| turn.n == request_n);
            let translated = !message.is_received() && message.source.is_some();
            if let Some(turn) = open.filter(|turn| prompt && (turn.end.is_none() || translated)) {
                turn.end = Some(TurnEnd {
                    item: at,
                    n: event.n,
                    t: event.t,
                    failed: message.kind == Some(Kind::Error),
                });
            }
        } else if prompt && message.edge == Side::Client && message.is_received() {
            self.turns.push(Turn {
                item: at,
                n: event.n,
                t: event.t,
                session: message.session.clone(),
                end: None,
                first: None,
            });
        }
    }

    /// Adds what the client sent or was sent. What the agent sent counts as it was received: whether
    /// it was translated shows later.
    fn track_figures(&mut self, event: &RecordedEvent, message: &Message) {
        let answers = message.kind.is_some_and(Kind::is_answer);
        let at_client = View::At(Side::Client);
        let asked = match answers {
            true => self.exchanges.exchange_in(at_client, event.n),
            false => None,
        };
        let is_first = |answer: &ExchangeAnswer| answer.n == event.n;
        let counts =
            !answers || asked.is_some_and(|asked| asked.answer.as_ref().is_some_and(is_first));
        if counts
            && (message.edge == Side::Client || message.is_received())
            && let Some((n, first)) = self.figures.add(event, message, asked)
            && let Some(turn) = self.turns.iter_mut().rev().find(|turn| turn.n == n)
        {
            turn.first = Some(first);
        }
    }

    /// The version of ACP at an edge.
    pub(super) fn schema(&self, edge: Side) -> Schema {
        let own = *edge.of(&self.schemas);
        own.or_else(|| *Side::Agent.of(&self.schemas))
            .unwrap_or_default()
    }

    /// The places of the names in alphabetical order, by their numbers.
    pub(super) fn name_ranks(&self) -> Vec<u64> {
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_unstable();
        // What has no name stands last.
        let mut ranks = vec![u64::from(MAX_NAMES) + 1; names.len() + 1];
        for (rank, (_, name)) in (0_u64..).zip(names) {
            if let Some(known) = ranks.get_mut(usize::from(*name)) {
                *known = rank;
            }
        }
        ranks
    }
}

impl Findings {
    /// The findings of the event with number `n`.
    pub(super) fn of_event(&self, n: u64) -> &[Finding] {
        self.by_event.get(&n).map_or(&[], Vec::as_slice)
    }

    fn all(&self) -> impl Iterator<Item = &Finding> {
        self.by_event.values().flatten()
    }

    /// The number of items checked, and that of the findings; the rules with findings, the most
    /// severe first, with the number of findings.
    pub(super) fn summary(&self) -> Value {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        self.all()
            .for_each(|finding| *counts.entry(finding.rule.id).or_default() += 1);
        let mut rules: Vec<_> = (RULES.iter())
            .filter(|rule| counts.contains_key(rule.id))
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.severity));
        let rules = rules.into_iter().map(|rule| {
            let mut shown = json!(rule);
            if let (Some(shown), Some(count)) = (shown.as_object_mut(), counts.get(rule.id)) {
                shown.insert("count".to_owned(), (*count).into());
            }
            shown
        });
        json!({
            "checked": self.checked,
            "total": counts.values().sum::<usize>(),
            "rules": rules.collect::<Vec<_>>(),
        })
    }

    /// `count` findings from the `from`th on, of one rule, or of all if `id` is empty.
    pub(super) fn list(&self, id: &str, from: usize, count: usize) -> Value {
        let of = self
            .all()
            .filter(|finding| id.is_empty() || finding.rule.id == id);
        of.skip(from)
            .take(count)
            .map(|finding| json!(finding))
            .collect()
    }
}

fn class(what: &EventKind) -> Class {
    match what {
        EventKind::Message(message) if message.kind == Some(Kind::Error) => Class::Error,
        EventKind::Message(message) => match message.to {
            Side::Agent => Class::ToAgent,
            Side::Client => Class::ToClient,
        },
        EventKind::Passed(_) => Class::Forwarded,
        _ => Class::Other,
    }
}

/// The item of a key.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower half is the item"
)]
pub(super) const fn item_at(key: u64) -> usize {
    key as u32 as usize
}

fn to_u32(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
