//! Routing: what a method and a path request, in both generations of Agent Connect.

use super::fault::Fault;
use super::uuid::Uuid;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Search agents.
    SearchAgents,
    /// One agent.
    Agent(Named),
    /// The descriptor of an agent; its manifest, in the older generation.
    Descriptor(Named),
    /// Create a thread.
    MakeThread,
    /// Search threads.
    SearchThreads,
    /// Get a thread.
    Thread(Uuid),
    /// Change a thread's metadata.
    PatchThread(Uuid),
    /// Delete a thread.
    DeleteThread(Uuid),
    /// A thread's state, in the form of the older generation.
    State(Uuid),
    /// A thread's past states.
    History(Uuid),
    /// Copy a thread.
    Copy(Uuid),
    /// The runs of a thread.
    ThreadRuns(Uuid),
    /// Search runs.
    SearchRuns,
    /// Start a run, on this thread if there is one.
    Start(Option<Uuid>, Then),
    /// An action on a run, on this thread if one is named.
    Run(Option<Uuid>, Uuid, Deed),
    /// The OpenAPI document.
    Document,
}

/// How a path names an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// By its id.
    Id(Uuid),
    /// By its configured name.
    Name(String),
}

/// What is answered when a run is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The run itself.
    Show,
    /// The run's output, once it has ended.
    Wait,
    /// The run's events.
    Stream,
}

/// An action on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Get it.
    Show,
    /// Answer its open interrupt.
    Resume,
    /// Delete it, and cancel it if it has not ended.
    Delete,
    /// Wait for its end.
    Wait,
    /// Wait for its end; answered in the form of the older generation.
    Output,
    /// Stream its events.
    Stream,
    /// Cancel it.
    Cancel,
    /// Get the state of its thread, in the form of the older generation.
    State,
}

/// Why no route was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The path is not served, or names something that cannot exist.
    Unknown(Fault),
    /// The path takes only these methods.
    Method(&'static str),
}

impl Lost {
    /// Nothing is served at this path.
    #[must_use]
    pub const fn nowhere() -> Self {
        Self::Unknown(Fault::unknown("nothing is served at this path"))
    }
}

impl Named {
    fn read(text: &str) -> Self {
        Uuid::read(text).map_or_else(|| Self::Name(text.to_owned()), Self::Id)
    }
}

/// Finds the route of a request. `path` is the part after the path of the listener.
///
/// # Errors
/// When nothing is served there.
pub fn find(method: &str, path: &str) -> Result<Route, Lost> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let uuid = |text: &str, what: &'static str| {
        Uuid::read(text).ok_or_else(|| Lost::Unknown(Fault::unknown(what)))
    };
    let thread = |text| uuid(text, "there is no such thread");
    let run = |text| uuid(text, "there is no such run");
    let only = |wanted: &'static str, route: Route| {
        if method == wanted || (wanted == "GET" && method == "HEAD") {
            Ok(route)
        } else {
            Err(Lost::Method(wanted))
        }
    };
    match parts.as_slice() {
        ["openapi.json"] => only("GET", Route::Document),
        ["agents", "search"] => only("POST", Route::SearchAgents),
        ["agents", "agent", id, "manifest"] | ["agents", id, "manifest" | "descriptor"] => {
            only("GET", Route::Descriptor(Named::read(id)))
        }
        ["agents", id] => only("GET", Route::Agent(Named::read(id))),
        ["threads"] => only("POST", Route::MakeThread),
        ["threads", "search"] => only("POST", Route::SearchThreads),
        ["threads", id] => match method {
            "GET" | "HEAD" => Ok(Route::Thread(thread(id)?)),
            "PATCH" => Ok(Route::PatchThread(thread(id)?)),
            "DELETE" => Ok(Route::DeleteThread(thread(id)?)),
            _ => Err(Lost::Method("GET, PATCH, DELETE")),
        },
        ["threads", id, "state"] => only("GET", Route::State(thread(id)?)),
        ["threads", id, "history"] => only("GET", Route::History(thread(id)?)),
        ["threads", id, "copy"] => only("POST", Route::Copy(thread(id)?)),
        ["threads", id, "runs"] => match method {
            "GET" | "HEAD" => Ok(Route::ThreadRuns(thread(id)?)),
            "POST" => Ok(Route::Start(Some(thread(id)?), Then::Show)),
            _ => Err(Lost::Method("GET, POST")),
        },
        ["threads", id, "runs", "wait"] => {
            only("POST", Route::Start(Some(thread(id)?), Then::Wait))
        }
        ["threads", id, "runs", "stream"] => {
            only("POST", Route::Start(Some(thread(id)?), Then::Stream))
        }
        ["threads", id, "runs", one, rest @ ..] => {
            let (thread, run) = (Some(thread(id)?), run(one)?);
            deed(method, rest).map(|deed| Route::Run(thread, run, deed))
        }
        ["runs"] => only("POST", Route::Start(None, Then::Show)),
        ["runs", "wait"] => only("POST", Route::Start(None, Then::Wait)),
        ["runs", "stream"] => only("POST", Route::Start(None, Then::Stream)),
        ["runs", "search"] => only("POST", Route::SearchRuns),
        ["runs", one, rest @ ..] => {
            let run = run(one)?;
            deed(method, rest).map(|deed| Route::Run(None, run, deed))
        }
        _ => Err(Lost::nowhere()),
    }
}

/// The action on a run for the rest of a path.
fn deed(method: &str, rest: &[&str]) -> Result<Deed, Lost> {
    let reads = matches!(method, "GET" | "HEAD");
    let read = |deed| {
        if reads {
            Ok(deed)
        } else {
            Err(Lost::Method("GET"))
        }
    };
    match rest {
        [] => match method {
            _ if reads => Ok(Deed::Show),
            "POST" => Ok(Deed::Resume),
            "DELETE" => Ok(Deed::Delete),
            _ => Err(Lost::Method("GET, POST, DELETE")),
        },
        ["wait"] => read(Deed::Wait),
        ["output"] => read(Deed::Output),
        ["stream"] => read(Deed::Stream),
        ["threadstate"] => read(Deed::State),
        ["cancel"] if method == "POST" => Ok(Deed::Cancel),
        ["cancel"] => Err(Lost::Method("POST")),
        _ => Err(Lost::nowhere()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_generations_find_what_they_want() {
        let id = "7f3c1c9e-0d5b-4a55-9b6e-0a2f1f6f0001";
        let uuid = Uuid::read(id).expect("a UUID");
        for (method, path, route) in [
            ("POST", "/agents/search".to_owned(), Route::SearchAgents),
            (
                "GET",
                format!("/agents/agent/{id}/manifest"),
                Route::Descriptor(Named::Id(uuid)),
            ),
            (
                "GET",
                format!("/agents/{id}/manifest"),
                Route::Descriptor(Named::Id(uuid)),
            ),
            (
                "GET",
                format!("/agents/{id}/descriptor"),
                Route::Descriptor(Named::Id(uuid)),
            ),
            (
                "GET",
                "/agents/goose".to_owned(),
                Route::Agent(Named::Name("goose".to_owned())),
            ),
            ("POST", "/runs".to_owned(), Route::Start(None, Then::Show)),
            (
                "POST",
                format!("/runs/{id}"),
                Route::Run(None, uuid, Deed::Resume),
            ),
            (
                "GET",
                format!("/runs/{id}/output"),
                Route::Run(None, uuid, Deed::Output),
            ),
            (
                "POST",
                format!("/threads/{id}/runs/{id}/cancel"),
                Route::Run(Some(uuid), uuid, Deed::Cancel),
            ),
            ("GET", format!("/threads/{id}/state"), Route::State(uuid)),
        ] {
            assert_eq!(find(method, &path), Ok(route), "{method} {path}");
        }
        assert_eq!(find("PUT", "/runs"), Err(Lost::Method("POST")));
        for path in ["/", "/agents/x/y", "/runs/x/y/z", "/nothing"] {
            assert!(matches!(find("GET", path), Err(Lost::Unknown(_))), "{path}");
        }
    }
}
