//! The one form in which this program writes a moment, `2026-11-30T22:09:22.123456Z`, read and written at
//! once: a log has several of them in each event. Leaves every other form and year to the library.

/// Bytes of the form.
const LENGTH: usize = 27;
/// The form; a digit stands for each zero.
const FORM: &[u8; LENGTH] = b"0000-00-00T00:00:00.000000Z";
const DAY: i64 = 86_400;
const MICROS: i64 = 1_000_000;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;

/// Microseconds since 1970 of a text in this form; `None` for any other text, also where it may be a moment.
pub(super) fn read(text: &[u8]) -> Option<i64> {
    let text: &[u8; LENGTH] = text.try_into().ok()?;
    for (at, form) in FORM.iter().enumerate() {
        // A digit less 48 is below 10, and every sign of the form is the same sign.
        let range = if *form == b'0' { 10 } else { 1 };
        if text[at].wrapping_sub(*form) >= range {
            return None;
        }
    }
    let pair = |at: usize| i64::from(text[at] - b'0') * 10 + i64::from(text[at + 1] - b'0');
    let (year, month, day) = (pair(0) * 100 + pair(2), pair(5), pair(8));
    let (hour, minute, second) = (pair(11), pair(14), pair(17));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    if !(1..=last).contains(&day) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(
        (days(year, month, day) * DAY + hour * 3600 + minute * 60 + second) * MICROS
            + (pair(20) * 100 + pair(22)) * 100
            + pair(24),
    )
}

/// A moment in this form; `None` where its year has not four digits.
pub(super) fn written(micros: i64) -> Option<[u8; LENGTH]> {
    let (seconds, micros) = (micros.div_euclid(MICROS), micros.rem_euclid(MICROS));
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    if !(0..=9999).contains(&year) {
        return None;
    }
    let mut text = *FORM;
    let parts = [
        (year, 0..4),
        (month, 5..7),
        (day, 8..10),
        (second / 3600, 11..13),
        (second / 60 % 60, 14..16),
        (second % 60, 17..19),
        (micros, 20..26),
    ];
    for (mut number, place) in parts {
        for digit in text[place].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    Some(text)
}

/// Days since 1970 of a date. Years begin in March here, so that the day which not every year has is last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - EPOCH
}

/// The date of a day since 1970: year, month and day.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (ERA - 1)) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the library says of a text and a moment.
    fn known(text: &str) -> Option<i64> {
        text.parse().ok().map(|stamp: jiff::Timestamp| stamp.as_microsecond())
    }

    fn known_text(micros: i64) -> String {
        format!("{:.6}", jiff::Timestamp::from_microsecond(micros).unwrap())
    }

    #[test]
    fn every_day_of_ten_thousand_years_is_what_the_library_says() {
        let first = known("0000-01-01T00:00:00.000000Z").unwrap();
        let last = known("9999-12-30T00:00:00.000000Z").unwrap();
        for day in (first..=last).step_by(86_400_000_000) {
            let text = written(day).unwrap();
            let (year, month, date) = date(day.div_euclid(MICROS * DAY));
            assert_eq!(text[..10], *format!("{year:04}-{month:02}-{date:02}").as_bytes());
            assert_eq!(read(&text), Some(day));
        }
        for day in (first..=last).step_by(86_400_000_000 * 13) {
            assert_eq!(written(day).unwrap(), *known_text(day).as_bytes());
        }
        assert_eq!(written(first - 1), None);
        // The library ends a day before the year does, for the sake of its time zones.
        let end = known("9999-12-30T22:00:00.999999Z").unwrap() + 26 * 3_600_000_000;
        assert_eq!((written(end - MICROS).is_some(), written(end)), (true, None));
    }

    #[test]
    fn other_forms_are_left_to_the_library() {
        for text in [
            "2026-11-30T22:09:22Z",
            "2026-11-30T22:09:22.12345Z",
            "2026-11-30t22:09:22.123456Z",
            "2026-11-30 22:09:22.123456Z",
            "2026-11-30T22:09:22.123456z",
            "2026-11-30T22:09:22,123456Z",
            "2026-11-31T22:09:22.123456Z",
            "2027-02-29T22:09:22.123456Z",
            "2026-00-30T22:09:22.123456Z",
            "2026-13-30T22:09:22.123456Z",
            "2026-11-00T22:09:22.123456Z",
            "2026-11-30T24:09:22.123456Z",
            "2026-11-30T22:60:22.123456Z",
            "2026-12-31T23:59:60.123456Z",
            "+026-11-30T22:09:22.123456Z",
            "2026-11-30T22:09:22.12345 Z",
            "",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_and_written_is_what_the_library_says(
            micros in -62_167_219_200_000_000i64..253_402_207_200_000_000,
            text in "[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-6][0-9]:[0-6][0-9]\\.[0-9]{6}Z",
        ) {
            let text_of = written(micros).map(|text| String::from_utf8(text.to_vec()).unwrap());
            prop_assert_eq!(text_of, Some(known_text(micros)));
            prop_assert_eq!(read(&written(micros).unwrap()), Some(micros));
            if let Some(read) = read(text.as_bytes()) {
                prop_assert_eq!(Some(read), known(&text));
            }
        }
    }
}
