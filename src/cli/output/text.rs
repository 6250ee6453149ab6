//! Answers as tables and lists of lines.

use std::path::Path;

use super::visible;

/// Rows in columns, without rules.
pub fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)).collect::<Vec<_>>());
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Checks as a person reads them: one a line, with want and got where they failed.
pub fn checks(checks: &[crate::model::check::Check]) -> Vec<String> {
    checks
        .iter()
        .map(|check| {
            let mark = if check.ok { "ok  " } else { "FAIL" };
            match (check.ok, check.got == "not asked") {
                (true, true) => format!("  {mark} {:<13} not asked", check.check),
                (true, false) => format!("  {mark} {:<13} {}", check.check, check.got),
                (false, _) => format!("  {mark} {:<13} want {}, got {}", check.check, check.want, check.got),
            }
        })
        .collect()
}

/// What a command prints that writes a text to a file or hands it out: the text, or where it lies.
pub fn text_or_path(text: Option<&String>, path: Option<&Path>) -> String {
    match (text, path) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => format!("{}\n", path.display()),
        (None, None) => String::new(),
    }
}
