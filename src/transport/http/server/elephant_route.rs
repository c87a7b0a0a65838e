//! The paths of elephant.ai's routes.

/// One of elephant.ai's routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Rpc,
    Sse,
}

impl Route {
    /// The route of the rest of a path, after the endpoint's path.
    pub(super) fn of(rest: &str) -> Option<Self> {
        match rest {
            "/rpc" => Some(Self::Rpc),
            "/sse" => Some(Self::Sse),
            _ => None,
        }
    }
}
