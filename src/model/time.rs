//! Time as data, and the one source of time and randomness. Nothing here reads a clock: a [`Source`] is
//! made at the edge of the process, or by a test.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

mod plain;

/// A moment in UTC with microseconds, written as RFC 3339 with six digits and `Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(jiff::Timestamp);

impl Time {
    /// From microseconds since 1970; out of range becomes 1970.
    pub fn from_micros(micros: i64) -> Self {
        Self(jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH))
    }

    /// Microseconds since 1970.
    pub fn micros(self) -> i64 {
        self.0.as_microsecond()
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// This moment and some milliseconds more; stays within jiff's range.
    #[must_use]
    pub fn plus_millis(self, millis: u64) -> Self {
        let micros = i64::try_from(millis).unwrap_or(i64::MAX).saturating_mul(1000);
        let sum = self.micros().saturating_add(micros);
        jiff::Timestamp::from_microsecond(sum).map_or(Self(jiff::Timestamp::MAX), Self)
    }

    /// The timestamp, for showing it in local time.
    pub fn timestamp(self) -> jiff::Timestamp {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match plain::written(self.micros()) {
            Some(text) => f.write_str(std::str::from_utf8(&text).unwrap_or_default()),
            None => write!(f, "{:.6}", self.0),
        }
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(micros) = plain::read(text.as_bytes()) {
            return Ok(Self::from_micros(micros));
        }
        let stamp: jiff::Timestamp =
            text.parse().map_err(|error| format!("not an RFC 3339 time: {error}"))?;
        Ok(Self::from_micros(stamp.as_microsecond()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match plain::written(self.micros()) {
            Some(text) => serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default()),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        super::text::deserialize(deserializer)
    }
}

impl schemars::JsonSchema for Time {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "format": "date-time"})
    }
}

/// Milliseconds of a duration text such as `30m`, `7d`, `1h 30m` or `90s`.
///
/// # Errors
/// What is not a duration, is negative or uses months or years.
pub fn parse_millis(text: &str) -> Result<u64, String> {
    let wrong = || format!("not a duration such as 90s, 30m, 12h or 7d: {text:?}");
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let total = span
        .total((jiff::Unit::Millisecond, jiff::SpanRelativeTo::days_are_24_hours()))
        .map_err(|_| wrong())?;
    if total.is_finite() && (0.0..=9.0e15).contains(&total) { Ok(total as u64) } else { Err(wrong()) }
}

/// One reading of all clocks. Wall time is for people and for leases across reboots; boot time, which
/// counts through sleep, decides expiry on one boot (store contract, "Time and leases").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock.
    pub wall: Time,
    /// Hash of the machine id, 16 hex digits.
    pub machine: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// The time namespace (boot time may be shifted inside one).
    pub namespace: String,
    /// CLOCK_BOOTTIME in milliseconds.
    pub boottime_ms: u64,
}

/// The one source of time and randomness. Made from the system in `main`, or fixed in a testing store.
pub struct Source {
    /// Reads all clocks.
    pub moment: Box<dyn Fn() -> Moment + Send + Sync>,
    /// Fills a buffer with random bytes; `None` where the system gives none.
    pub random: Box<dyn Fn(&mut [u8]) -> Option<()> + Send + Sync>,
}

impl Source {
    /// A fixed moment and bytes that follow from a seed, for tests and testing stores.
    ///
    /// Each call of `random` moves on, so that one process never draws the same bytes twice.
    pub fn fixed(moment: Moment, seed: String) -> Self {
        let drawn = std::sync::atomic::AtomicU64::new(0);
        Self {
            moment: Box::new(move || moment.clone()),
            random: Box::new(move |buffer| {
                for chunk in buffer.chunks_mut(32) {
                    let number = drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let hash = super::hash::Hash::of_parts(&[&seed, &number.to_string()]);
                    chunk.copy_from_slice(&hash.bytes()[..chunk.len()]);
                }
                Some(())
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_with_six_digits() {
        let time: Time = "2026-11-30T22:09:22.123456Z".parse().unwrap();
        assert_eq!(time.to_string(), "2026-11-30T22:09:22.123456Z");
        let whole: Time = "2026-11-30T23:09:22+01:00".parse().unwrap();
        assert_eq!(whole.to_string(), "2026-11-30T22:09:22.000000Z");
        assert_eq!(whole.plus_millis(1500).to_string(), "2026-11-30T22:09:23.500000Z");
        assert_eq!(whole.plus_millis(u64::MAX).to_string(), format!("{:.6}", jiff::Timestamp::MAX));
    }

    #[test]
    fn durations() {
        for (text, millis) in
            [("30m", 1_800_000), ("7d", 604_800_000), ("1h 30m", 5_400_000), ("90s", 90_000)]
        {
            assert_eq!(parse_millis(text), Ok(millis));
        }
        for bad in ["", "soon", "-1m", "1 month", "30"] {
            assert!(parse_millis(bad).is_err(), "{bad}");
        }
    }
}
