//! What needs somebody, or is with somebody, in the order in which a person wants to know it.

use crate::rules::waiting::Group;

/// One thing that needs somebody, or is with somebody.
#[derive(Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Matter {
    /// With whom it is.
    pub group: Group,
    /// Its kind: handoff, result, gate or effect.
    pub kind: String,
    /// Its id; the name of a gate.
    pub id: String,
    /// The command that leads on.
    pub command: String,
    #[serde(skip)]
    text: String,
}

impl Matter {
    /// A matter with what a person reads of it.
    pub fn of(group: Group, kind: &str, id: &str, text: String, command: String) -> Self {
        Self { group, kind: kind.to_owned(), id: id.to_owned(), command, text }
    }
}

/// Matters under the headings of their groups, each with its command below it.
pub fn grouped(matters: &[Matter]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut group = None;
    for matter in matters {
        if group.replace(matter.group) != Some(matter.group) {
            lines.push(match matter.group {
                Group::You => "  waits on you:".to_owned(),
                other => format!("  {other}:"),
            });
        }
        lines.push(format!("    {}", matter.text));
        lines.push(format!("      {}", matter.command));
    }
    lines
}
