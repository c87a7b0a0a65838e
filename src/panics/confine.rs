//! Confines panics to a place, counts and logs them; any other one ends the process.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;

/// What a confined panic ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A conversation.
    Conversation,
    /// A connection of a client, or a request on it.
    Connection,
    /// What is written of a conversation.
    Recording,
    /// A request of the viewer, or what it reads of a recording.
    Viewer,
    /// A request of the admin listener.
    Admin,
}

thread_local! {
    /// What a panic of this thread ends at present; `None` is the process.
    static PLACE: Cell<Option<Place>> = const { Cell::new(None) };
    /// Where in the source the last confined panic of this thread happened.
    static SOURCE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The panics that ended something other than the process.
static COUNTS: [AtomicU64; Place::NAMES.len()] = [const { AtomicU64::new(0) }; _];

/// Prints why the process ends.
static REPORT: OnceLock<fn(&str)> = OnceLock::new();

impl Place {
    /// The names of all, in the order of [`counts`].
    pub const NAMES: [&str; 5] = ["conversation", "connection", "recording", "viewer", "admin"];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// From now on, a panic outside of what is confined ends the process, after `report` has printed
/// where it happened. For the beginning of `main`.
pub fn install(report: fn(&str)) {
    // The first one stays.
    let _ = REPORT.set(report);
    panic::set_hook(Box::new(|info| {
        let source = info
            .location()
            .map_or_else(String::new, ToString::to_string);
        // A text that is not a literal may quote a message.
        let text = info.payload().downcast_ref::<&str>().unwrap_or(&"");
        let source = format!("panicked at {source}: {text}");
        match PLACE.get() {
            Some(_) => SOURCE.set(source),
            None => abort(&source),
        }
    }));
}

/// Runs `work`; `None` if it panics.
pub fn catch<T>(place: Place, work: impl FnOnce() -> T) -> Option<T> {
    let before = PLACE.replace(Some(place));
    let done = panic::catch_unwind(AssertUnwindSafe(|| {
        panic_point(place.name(), b"");
        work()
    }));
    PLACE.set(before);
    if done.is_err() {
        COUNTS[place as usize].fetch_add(1, Relaxed);
        let (place, source) = (place.name(), last_source());
        tracing::error!(
            place,
            "a fault of this relay ended this {place} alone, please report it: {source}"
        );
    }
    done.ok()
}

/// Runs `task` and drops it; `None` if it panics.
pub fn confine<T>(
    place: Place,
    task: impl Future<Output = T> + Send + Unpin,
) -> impl Future<Output = Option<T>> + Send {
    let mut task = Some(task);
    poll_fn(move |cx| {
        let polled = catch(place, || {
            let polled = task.as_mut().map(|task| Pin::new(task).poll(cx));
            if polled.as_ref().is_none_or(Poll::is_ready) {
                task = None;
            }
            polled
        });
        if polled.is_none() {
            // A second panic, of what it holds, is confined as well.
            catch(place, || task = None);
        }
        polled
            .flatten()
            .map_or(Poll::Ready(None), |polled| polled.map(Some))
    })
}

/// Where the last confined panic of this thread happened: `panicked at src/file.rs:1:2: text`.
pub(super) fn last_source() -> String {
    SOURCE.with_borrow(Clone::clone)
}

/// How often something else than the process was ended, in the order of [`Place::NAMES`].
#[must_use]
pub fn counts() -> [u64; Place::NAMES.len()] {
    COUNTS.each_ref().map(|count| count.load(Relaxed))
}

/// Panics in a debug build that is told so: by the variable `PANIC_POINT`, with the name of a
/// point, or with the name, a space and a text that `at` contains. For tests of what a panic ends.
#[inline]
pub fn panic_point(name: &str, at: &[u8]) {
    #[cfg(debug_assertions)]
    {
        static WANTED: OnceLock<Option<String>> = OnceLock::new();
        let wanted = WANTED.get_or_init(|| std::env::var("PANIC_POINT").ok());
        if let Some(wanted) = wanted
            && PLACE.get().is_some()
            && !std::thread::panicking()
        {
            let (point, text) = wanted.split_once(' ').unwrap_or((wanted, ""));
            let is_here = memchr::memmem::find(at, text.as_bytes()).is_some();
            assert!(point != name || !is_here, "the test wants it");
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = (name, at);
}

/// Prints why, and ends the process.
pub(super) fn abort(why: &str) -> ! {
    if let Some(report) = REPORT.get() {
        report(&format!(
            "a fault of this relay ends it, please report it: {why}"
        ));
    }
    process::abort()
}
