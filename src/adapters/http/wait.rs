//! How long an endpoint asks to wait. A date is read against the endpoint's own clock, which it sends along.

use std::time::Duration;

use ureq::http::HeaderMap;

/// The longest wait that is believed.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// What `Retry-After` asks for: seconds, or a date against the response's own `Date`. None where it is not
/// there or cannot be read; a date that has passed asks for nothing.
pub fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let asked = text("retry-after")?;
    let wait = match asked.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let (then, now) = (seconds(asked)?, seconds(text("date")?)?);
            Duration::from_secs(u64::try_from(then.saturating_sub(now)).unwrap_or(0))
        }
    };
    Some(wait.min(LONGEST))
}

/// The seconds of an HTTP date in the one form that is still to be sent.
fn seconds(date: &str) -> Option<i64> {
    let parsed =
        jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(date).ok()?;
    Some(parsed.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read() {
        let now = "Tue, 15 Nov 1994 08:12:31 GMT";
        for (asked_for, date, want) in [
            ("120", "", Some(120)),
            (" 0 ", "", Some(0)),
            ("99999999999", "", Some(86_400)),
            ("Tue, 15 Nov 1994 08:13:01 GMT", now, Some(30)),
            ("Tue, 15 Nov 1994 08:12:01 GMT", now, Some(0)),
            ("Wed, 15 Nov 2094 08:12:01 GMT", now, Some(86_400)),
            ("Tue, 15 Nov 1994 08:13:01 GMT", "", None),
            ("Tue, 15 Nov 1994 08:13:01 GMT", "yesterday", None),
            ("-1", now, None),
            ("1.5", now, None),
            ("soon", now, None),
            ("", now, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("retry-after", asked_for.parse().unwrap());
            if !date.is_empty() {
                headers.insert("date", date.parse().unwrap());
            }
            assert_eq!(asked(&headers), want.map(Duration::from_secs), "{asked_for} {date}");
        }
        assert_eq!(asked(&HeaderMap::new()), None);
    }
}
