//! Which outages the log tells of: each that lasts, and of a network that flaps one in [`INTERVAL`].

use std::mem;
use std::time::Duration;

use tokio::time::Instant;

/// Between two outages that are told.
const INTERVAL: Duration = Duration::from_secs(10);

/// What was told of the outages of one link.
#[derive(Debug, Default)]
pub(super) struct OutageLog {
    last: Option<Instant>,
    /// The line about the present outage, until it is told.
    untold: Option<String>,
    /// Outages since one was told.
    count: u32,
}

impl OutageLog {
    /// An outage begins, with this line.
    pub(super) fn begin(&mut self, line: String) {
        self.untold = Some(line);
        self.count += 1;
    }

    /// The line to log now, if there is one: also later in an outage that lasts.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now < last + INTERVAL) {
            return None;
        }
        let line = self.untold.take()?;
        self.last = Some(now);
        Some(match mem::take(&mut self.count) {
            0 | 1 => line,
            count => format!(
                "{line} ({} more outages since the last one told)",
                count - 1
            ),
        })
    }

    /// The outage is over. Whether it was told, so that its end is to be told as well.
    pub(super) fn end(&mut self) -> bool {
        self.untold.take().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_outage_in_ten_seconds_is_told_and_one_that_lasts_always() {
        let mut log = OutageLog::default();
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        log.begin("a".to_owned());
        assert_eq!(log.take_due(at(0)).as_deref(), Some("a"));
        assert!(log.end());
        for second in 1..9 {
            log.begin("b".to_owned());
            assert!(log.take_due(at(second)).is_none() && !log.end());
        }
        log.begin("c".to_owned());
        assert_eq!(log.take_due(at(9)), None);
        let told = log.take_due(at(10)).unwrap_or_default();
        assert_eq!(told, "c (8 more outages since the last one told)");
        assert!(log.take_due(at(30)).is_none() && log.end());
    }
}
