//! Routing: what a method and a path request, in both generations of Agent Connect.

use super::api_error::ApiError;
use super::uuid::Uuid;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Search agents.
    SearchAgents,
    /// One agent.
    Agent(AgentRef),
    /// The descriptor of an agent; its manifest, in the older generation.
    Descriptor(AgentRef),
    /// Create a thread.
    CreateThread,
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
    CopyThread(Uuid),
    /// The runs of a thread.
    ThreadRuns(Uuid),
    /// Search runs.
    SearchRuns,
    /// Start a run, on this thread if there is one.
    Start(Option<Uuid>, StartReply),
    /// An action on a run, on this thread if one is named.
    Run(Option<Uuid>, Uuid, RunAction),
    /// The OpenAPI document.
    OpenApi,
}

/// How a path names an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRef {
    /// By its id.
    Id(Uuid),
    /// By its configured name.
    Name(String),
}

/// What is answered when a run is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartReply {
    /// The run itself.
    Show,
    /// The run's output, once it has ended.
    Wait,
    /// The run's events.
    Stream,
}

/// An action on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAction {
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
pub enum RouteError {
    /// The path is not served, or names something that cannot exist.
    NotFound(ApiError),
    /// The path takes only these methods.
    WrongMethod(&'static str),
}

impl RouteError {
    /// Nothing is served at this path.
    #[must_use]
    pub const fn not_found() -> Self {
        Self::NotFound(ApiError::not_found("nothing is served at this path"))
    }
}

impl AgentRef {
    fn read(text: &str) -> Self {
        Uuid::parse(text).map_or_else(|| Self::Name(text.to_owned()), Self::Id)
    }
}

/// Finds the route of a request. `path` is the part after the path of the listener.
///
/// # Errors
/// When nothing is served there.
pub fn find(method: &str, path: &str) -> Result<Route, RouteError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let uuid = |text: &str, what: &'static str| {
        Uuid::parse(text).ok_or_else(|| RouteError::NotFound(ApiError::not_found(what)))
    };
    let thread = |text| uuid(text, "there is no such thread");
    let run = |text| uuid(text, "there is no such run");
    let require = |wanted: &'static str, route: Route| {
        if method == wanted || (wanted == "GET" && method == "HEAD") {
            Ok(route)
        } else {
            Err(RouteError::WrongMethod(wanted))
        }
    };
    match parts.as_slice() {
        ["openapi.json"] => require("GET", Route::OpenApi),
        ["agents", "search"] => require("POST", Route::SearchAgents),
        ["agents", "agent", id, "manifest"] | ["agents", id, "manifest" | "descriptor"] => {
            require("GET", Route::Descriptor(AgentRef::read(id)))
        }
        ["agents", id] => require("GET", Route::Agent(AgentRef::read(id))),
        ["threads"] => require("POST", Route::CreateThread),
        ["threads", "search"] => require("POST", Route::SearchThreads),
        ["threads", id] => match method {
            "GET" | "HEAD" => Ok(Route::Thread(thread(id)?)),
            "PATCH" => Ok(Route::PatchThread(thread(id)?)),
            "DELETE" => Ok(Route::DeleteThread(thread(id)?)),
            _ => Err(RouteError::WrongMethod("GET, PATCH, DELETE")),
        },
        ["threads", id, "state"] => require("GET", Route::State(thread(id)?)),
        ["threads", id, "history"] => require("GET", Route::History(thread(id)?)),
        ["threads", id, "copy"] => require("POST", Route::CopyThread(thread(id)?)),
        ["threads", id, "runs"] => match method {
            "GET" | "HEAD" => Ok(Route::ThreadRuns(thread(id)?)),
            "POST" => Ok(Route::Start(Some(thread(id)?), StartReply::Show)),
            _ => Err(RouteError::WrongMethod("GET, POST")),
        },
        ["threads", id, "runs", "wait"] => {
            require("POST", Route::Start(Some(thread(id)?), StartReply::Wait))
        }
        ["threads", id, "runs", "stream"] => {
            require("POST", Route::Start(Some(thread(id)?), StartReply::Stream))
        }
        ["threads", id, "runs", one, rest @ ..] => {
            let (thread, run) = (Some(thread(id)?), run(one)?);
            run_action(method, rest).map(|action| Route::Run(thread, run, action))
        }
        ["runs"] => require("POST", Route::Start(None, StartReply::Show)),
        ["runs", "wait"] => require("POST", Route::Start(None, StartReply::Wait)),
        ["runs", "stream"] => require("POST", Route::Start(None, StartReply::Stream)),
        ["runs", "search"] => require("POST", Route::SearchRuns),
        ["runs", one, rest @ ..] => {
            let run = run(one)?;
            run_action(method, rest).map(|action| Route::Run(None, run, action))
        }
        _ => Err(RouteError::not_found()),
    }
}

/// The action on a run for the rest of a path.
fn run_action(method: &str, rest: &[&str]) -> Result<RunAction, RouteError> {
    let reads = matches!(method, "GET" | "HEAD");
    let read = |action| {
        if reads {
            Ok(action)
        } else {
            Err(RouteError::WrongMethod("GET"))
        }
    };
    match rest {
        [] => match method {
            _ if reads => Ok(RunAction::Show),
            "POST" => Ok(RunAction::Resume),
            "DELETE" => Ok(RunAction::Delete),
            _ => Err(RouteError::WrongMethod("GET, POST, DELETE")),
        },
        ["wait"] => read(RunAction::Wait),
        ["output"] => read(RunAction::Output),
        ["stream"] => read(RunAction::Stream),
        ["threadstate"] => read(RunAction::State),
        ["cancel"] if method == "POST" => Ok(RunAction::Cancel),
        ["cancel"] => Err(RouteError::WrongMethod("POST")),
        _ => Err(RouteError::not_found()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_of_both_api_versions_are_parsed() {
        let id = "7f3c1c9e-0d5b-4a55-9b6e-0a2f1f6f0001";
        let uuid = Uuid::parse(id).expect("a UUID");
        for (method, path, route) in [
            ("POST", "/agents/search".to_owned(), Route::SearchAgents),
            (
                "GET",
                format!("/agents/agent/{id}/manifest"),
                Route::Descriptor(AgentRef::Id(uuid)),
            ),
            (
                "GET",
                format!("/agents/{id}/manifest"),
                Route::Descriptor(AgentRef::Id(uuid)),
            ),
            (
                "GET",
                format!("/agents/{id}/descriptor"),
                Route::Descriptor(AgentRef::Id(uuid)),
            ),
            (
                "GET",
                "/agents/goose".to_owned(),
                Route::Agent(AgentRef::Name("goose".to_owned())),
            ),
            (
                "POST",
                "/runs".to_owned(),
                Route::Start(None, StartReply::Show),
            ),
            (
                "POST",
                format!("/runs/{id}"),
                Route::Run(None, uuid, RunAction::Resume),
            ),
            (
                "GET",
                format!("/runs/{id}/output"),
                Route::Run(None, uuid, RunAction::Output),
            ),
            (
                "POST",
                format!("/threads/{id}/runs/{id}/cancel"),
                Route::Run(Some(uuid), uuid, RunAction::Cancel),
            ),
            ("GET", format!("/threads/{id}/state"), Route::State(uuid)),
        ] {
            assert_eq!(find(method, &path), Ok(route), "{method} {path}");
        }
        assert_eq!(find("PUT", "/runs"), Err(RouteError::WrongMethod("POST")));
        for path in ["/", "/agents/x/y", "/runs/x/y/z", "/nothing"] {
            assert!(
                matches!(find("GET", path), Err(RouteError::NotFound(_))),
                "{path}"
            );
        }
    }
}
