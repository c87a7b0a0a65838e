//! Which part of the results of a search is requested.

use serde::Deserialize;

use super::api_error::ApiError;
use super::body::whole;

/// The greatest `offset`. Many JSON readers use doubles, which skip integers beyond it.
pub const MAX_OFFSET: u64 = 8_999_999_999_999_999;

/// Which part of the results is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResultPage {
    /// Number of results, 1 to 1000.
    #[serde(deserialize_with = "whole")]
    limit: u64,
    /// Number of results that are skipped.
    #[serde(deserialize_with = "whole")]
    offset: u64,
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
    /// Builds it from query parameters.
    ///
    /// # Errors
    /// 422, when a parameter is invalid.
    pub fn new(limit: Option<u64>, offset: Option<u64>) -> Result<Self, ApiError> {
        let usual = Self::default();
        let (limit, offset) = (limit.unwrap_or(usual.limit), offset.unwrap_or(usual.offset));
        Self { limit, offset }.check()
    }

    /// Checks the bounds of its numbers.
    ///
    /// # Errors
    /// 422, when one is out of bounds.
    pub fn check(self) -> Result<Self, ApiError> {
        if !(1..=1000).contains(&self.limit) {
            return Err(ApiError::invalid(
                "\"limit\" must be a number from 1 to 1000",
            ));
        }
        if self.offset > MAX_OFFSET {
            return Err(ApiError::invalid(format!(
                "\"offset\" must be a number from 0 to {MAX_OFFSET}"
            )));
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
