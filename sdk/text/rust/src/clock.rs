//! strftime for `strftime_now`, in UTC and the C locale: the library reads neither the time zone nor the
//! locale of the process.

/// Seconds since 1970-01-01 of "YYYY-MM-DD", "YYYY-MM-DDThh:mm" or "YYYY-MM-DDThh:mm:ss" (or a space for the
/// T).
pub fn parse_iso(text: &str) -> Option<i64> {
    let (date, time) = match text.len() {
        10 => (text, "00:00:00"),
        16 | 19 if text.is_char_boundary(10) && matches!(text.as_bytes()[10], b'T' | b' ') => {
            (text.get(..10)?, text.get(11..)?)
        }
        _ => return None,
    };
    let numbers = |text: &str, at: char| -> Option<Vec<i64>> {
        text.split(at)
            .map(|p| p.bytes().all(|b| b.is_ascii_digit()).then(|| p.parse().ok()).flatten())
            .collect()
    };
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let [year, month, day] = date[..] else { return None };
    let (hour, minute, second) = match time[..] {
        [h, m] => (h, m, 0),
        [h, m, s] => (h, m, s),
        _ => return None,
    };
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    Some(days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second)
}

/// Formats `seconds` since 1970; Err with the conversion that is not supported.
pub fn strftime(format: &str, seconds: i64) -> Result<String, String> {
    let days = seconds.div_euclid(86400);
    let second_of_day = seconds.rem_euclid(86400);
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let weekday = (days + 4).rem_euclid(7) as usize; // 1970-01-01 was a Thursday
    let day_of_year = days - days_from_civil(year, 1, 1) + 1;
    let hour12 = (hour + 11) % 12 + 1;
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut conversion = chars.next().ok_or("%")?;
        let plain = conversion == '-'; // glibc's flag: no padding
        if plain {
            conversion = chars.next().ok_or("%-")?;
        }
        let two = |n: i64| if plain { n.to_string() } else { format!("{n:02}") };
        let piece = match conversion {
            'Y' => year.to_string(),
            'y' => two(year.rem_euclid(100)),
            'C' => two(year.div_euclid(100)),
            'm' => two(month),
            'd' => two(day),
            'e' => {
                if plain {
                    day.to_string()
                } else {
                    format!("{day:2}")
                }
            }
            'j' => {
                if plain {
                    day_of_year.to_string()
                } else {
                    format!("{day_of_year:03}")
                }
            }
            'H' => two(hour),
            'I' => two(hour12),
            'M' => two(minute),
            'S' => two(second),
            'f' => "000000".into(),
            'p' => if hour < 12 { "AM" } else { "PM" }.into(),
            'b' | 'h' => MONTHS[month as usize - 1][..3].into(),
            'B' => MONTHS[month as usize - 1].into(),
            'a' => DAYS[weekday][..3].into(),
            'A' => DAYS[weekday].into(),
            'w' => weekday.to_string(),
            'u' => (if weekday == 0 { 7 } else { weekday }).to_string(),
            'F' => format!("{year}-{month:02}-{day:02}"),
            'D' | 'x' => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
            'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'R' => format!("{hour:02}:{minute:02}"),
            'c' => format!(
                "{} {} {day:2} {hour:02}:{minute:02}:{second:02} {year}",
                &DAYS[weekday][..3],
                &MONTHS[month as usize - 1][..3]
            ),
            's' => seconds.to_string(),
            'z' | 'Z' => String::new(), // as for a Python datetime without a zone
            'n' => "\n".into(),
            't' => "\t".into(),
            '%' => "%".into(),
            other => return Err(format!("%{other}")),
        };
        out.push_str(&piece);
    }
    Ok(out)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

fn days_in_month(year: i64, month: i64) -> i64 {
    let next =
        if month == 12 { days_from_civil(year + 1, 1, 1) } else { days_from_civil(year, month + 1, 1) };
    next - days_from_civil(year, month, 1)
}

/// Days since 1970-01-01 in the Gregorian calendar. With years that begin in March the leap day is the last
/// of its year, and 400 years have 146097 days (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468
}

/// The inverse of days_from_civil: (year, month, day).
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719468;
    let era = days.div_euclid(146097);
    let day_of_era = days.rem_euclid(146097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}
