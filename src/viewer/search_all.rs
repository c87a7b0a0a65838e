//! The search over all recordings: how many events of each match a filter.
//!
//! The matches are counted and not kept, and the answer is a stream, so that it costs the memory of
//! one line whatever is searched. It ends when its receiver is gone.

use std::io;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bounded::each_line;
use analysis::Annotations;
use analysis::filter::{DerivedFields, Field, Filter};
use recording::{EventKind, Parsed, Recording};

/// Bytes of a recording that are searched.
const MAX_READ: u64 = 256 << 20;

/// Time that one search may take.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Time between two reports of how far it is.
const REPORT: Duration = Duration::from_millis(100);

/// Lines between two looks at the receiver and the clock.
const STEP: u64 = 256;

/// Searches recordings in this order. Sends an object for each with matches (`id`, `count`, and
/// `partial` if there may be more), how many were searched now and then, and at the end; it ends
/// early when nothing more `is_wanted`.
pub(super) fn search(
    recordings: impl Iterator<Item = (usize, Recording)>,
    filter: &Filter,
    is_wanted: impl Fn() -> bool,
    mut send: impl FnMut(Value),
) {
    let begun = Instant::now();
    let goes_on = || begun.elapsed() < MAX_TIME && is_wanted();
    let (mut searched, mut reported, mut complete) = (0, begun, true);
    for (id, recording) in recordings {
        // A recording that cannot be read is a row with its fault.
        let (count, whole) = matches(&recording, filter, &goes_on).unwrap_or((0, true));
        searched += 1;
        if count > 0 {
            send(json!({"id": id, "count": count, "partial": !whole}));
        }
        complete = goes_on();
        if !complete {
            break;
        }
        if reported.elapsed() > REPORT {
            reported = Instant::now();
            send(json!({"searched": searched}));
        }
    }
    send(json!({"searched": searched, "end": true, "complete": complete}));
}

/// The number of events of a recording that match, and whether all were checked.
fn matches(
    recording: &Recording,
    filter: &Filter,
    is_wanted: &impl Fn() -> bool,
) -> io::Result<(u64, bool)> {
    let is_derived = filter.uses(Field::Dur) || filter.uses(Field::Lint);
    let mut annotations = Annotations::for_filter(Some(filter));
    let mut lines = 0_u64;
    let mut goes_on = || {
        lines += 1;
        !lines.is_multiple_of(STEP) || is_wanted()
    };
    if is_derived {
        each_line(recording, MAX_READ, |entry| {
            annotations.add_line(&entry.parsed);
            goes_on()
        })?;
        annotations.end();
    }
    let mut count = 0;
    let whole = each_line(recording, MAX_READ, |entry| {
        if let Parsed::Event(event) = &entry.parsed
            && !matches!(event.kind, EventKind::Passed(_))
        {
            let derived = match is_derived {
                true => annotations.derived(event.n),
                false => DerivedFields::default(),
            };
            count += u64::from(filter.matches(event, derived));
        }
        goes_on()
    })?;
    Ok((count, whole))
}
