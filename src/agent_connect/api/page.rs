//! The part of the results that a request asks for.

use serde::Deserialize;

use super::body::whole;
use super::error::{ApiError, ApiResult};

/// The greatest `offset`. Many JSON readers use doubles, which skip integers beyond it.
pub const MAX_OFFSET: u64 = 8_999_999_999_999_999;

/// The length of results that are sent at once, in bytes. One result may be longer; those that follow
/// are left out.
pub const MAX_BYTES: usize = 16 << 20;

/// Which part of the results is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResultPage {
    /// Number of results, 1 to 1000.
    #[serde(deserialize_with = "whole")]
    pub limit: u64,
    /// Number of results that are skipped.
    #[serde(deserialize_with = "whole")]
    pub offset: u64,
}

impl Default for ResultPage {
    fn default() -> Self {
        Self {
            limit: 10,
            offset: 0,
        }
    }
}

impl ResultPage {
    /// Checks the bounds of its numbers.
    ///
    /// # Errors
    /// 422, when one is out of bounds.
    pub fn check(self) -> ApiResult<Self> {
        if !(1..=1000).contains(&self.limit) {
            let what = "\"limit\" must be a number from 1 to 1000";
            return Err(ApiError::invalid(what));
        }
        if self.offset > MAX_OFFSET {
            let what = format!("\"offset\" must be a number from 0 to {MAX_OFFSET}");
            return Err(ApiError::invalid(what));
        }
        Ok(self)
    }

    /// Cuts this part out of all results.
    pub fn slice<I: IntoIterator>(self, all: I) -> impl Iterator<Item = I::Item> {
        let [limit, offset] =
            [self.limit, self.offset].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        all.into_iter().skip(offset).take(limit)
    }
}
