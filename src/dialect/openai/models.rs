//! The list of models in `OpenAI`'s form.

use serde_json::{Value as Wire, json};

use crate::service::ModelEntry;

/// The body of `GET /v1/models`.
pub(in crate::dialect) fn models(entries: &[ModelEntry]) -> String {
    let entry = |entry: &ModelEntry| {
        json!({
            "id": entry.name,
            "object": "model",
            "created": created(&entry.release_date).unwrap_or_default(),
            "owned_by": "docket",
        })
    };
    let data: Vec<Wire> = entries.iter().map(entry).collect();
    json!({"object": "list", "data": data}).to_string()
}

/// The beginning of the day `YYYY-MM-DD` in seconds since 1970.
///
/// Source of the calendar: years that begin in March have their leap day last, and 400 of them have
/// 146,097 days.
fn created(date: &str) -> Option<i64> {
    let parts: Vec<i64> = date.split('-').filter_map(|part| part.parse().ok()).collect();
    let [year, month, day] = parts[..] else { return None };
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    Some((365 * year + leap_days + day_of_year - 719_468) * 86_400)
}

#[cfg(test)]
mod tests {
    use super::created;

    #[test]
    fn every_month_begins_where_the_last_one_ended() {
        let mut day = 19_358;
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, length) in lengths.into_iter().enumerate() {
            let date = format!("2023-{:02}-01", month + 1);
            assert_eq!(created(&date), Some(day * 86_400), "{date}");
            day += length;
        }
        assert_eq!(created("2024-01-01"), Some(day * 86_400));
    }

    #[test]
    fn a_day_is_told_in_seconds() {
        for (date, seconds) in [
            ("1970-01-01", 0),
            ("2000-02-29", 951_782_400),
            ("2024-09-18", 1_726_617_600),
            ("2026-11-30", 1_795_996_800),
        ] {
            assert_eq!(created(date), Some(seconds), "{date}");
        }
        assert_eq!(created(""), None);
        assert_eq!(created("soon"), None);
    }
}
