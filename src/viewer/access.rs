//! Which requests the viewer admits.
//!
//! The viewer listens on loopback, which every program of this machine and every web page in its
//! browsers can reach. So an address holds a token that is new for each run, the `Host` must be
//! ours, and a request caused by another page is refused.

use axum::http::StatusCode;
use axum::http::header::HeaderMap;

use crate::auth::origin::OriginPolicy;

/// Bytes of a token.
const TOKEN: usize = 16;

/// What a request must show.
#[derive(Clone, Debug)]
pub struct ViewerAccess {
    token: String,
    origins: OriginPolicy,
}

impl ViewerAccess {
    /// Access with a token made of these random bytes, for a listener at `port` of loopback.
    #[must_use]
    pub fn new(port: u16, random: [u8; TOKEN]) -> Self {
        Self {
            token: data_encoding::BASE64URL_NOPAD.encode(&random),
            origins: OriginPolicy::own_pages(port),
        }
    }

    /// The path of the page.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// Whether a request with this token in its path is admitted.
    ///
    /// # Errors
    /// The status to refuse it with.
    pub(super) fn admit(&self, token: &str, headers: &HeaderMap) -> Result<(), StatusCode> {
        if !self.origins.admits(headers) {
            return Err(StatusCode::FORBIDDEN);
        }
        // Hashes are compared, so that the time it takes does not depend on the token.
        if blake3::hash(token.as_bytes()) == blake3::hash(self.token.as_bytes()) {
            Ok(())
        } else {
            Err(StatusCode::NOT_FOUND)
        }
    }
}
