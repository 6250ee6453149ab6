//! What `list` shows of each kind: a heading and where in the object its cells stand.

use super::named;

/// A heading, and the pointer of its cells.
pub type Column = (&'static str, &'static str);

/// The columns of each kind.
const COLUMNS: &[(&str, &[Column])] = &[
    (
        "session",
        &[
            ("ID", "/id"),
            ("STATUS", "/status"),
            ("ROLE", "/role"),
            ("RESOURCE", "/resource"),
            ("TASK", "/task_mode"),
            ("UPDATED", "/updated_at"),
        ],
    ),
    (
        "run",
        &[
            ("ID", "/id"),
            ("STATUS", "/status"),
            ("SESSION", "/session"),
            ("CURSOR", "/cursor"),
            ("STARTED", "/started_at"),
        ],
    ),
    (
        "checkpoint",
        &[
            ("ID", "/id"),
            ("BOUNDARY", "/boundary"),
            ("SESSION", "/session"),
            ("CURSOR", "/cursor"),
            ("AT", "/at"),
        ],
    ),
    (
        "job",
        &[
            ("ID", "/id"),
            ("KIND", "/kind"),
            ("SUBJECT", "/subject"),
            ("BYTES", "/bytes"),
            ("FROZEN", "/frozen_at"),
        ],
    ),
    (
        "handoff",
        &[("ID", "/id"), ("STATE", "/stands"), ("JOB", "/job"), ("GATE", "/gate"), ("OPENED", "/opened_at")],
    ),
    (
        "attempt",
        &[
            ("ID", "/id"),
            ("STATE", "/state"),
            ("NUMBER", "/number"),
            ("HANDOFF", "/handoff"),
            ("TRANSPORT", "/transport"),
            ("CLAIMED", "/claimed_at"),
        ],
    ),
    (
        "result",
        &[
            ("ID", "/id"),
            ("STANDING", "/checked/standing"),
            ("VERDICT", "/checked/verdict/value"),
            ("JOB", "/job"),
            ("STORED", "/stored_at"),
        ],
    ),
    (named::CAPABILITY, named::COLUMNS),
    (
        "event",
        &[
            ("ID", "/id"),
            ("TYPE", "/type"),
            ("KEY", "/key"),
            ("RESOURCE", "/resource"),
            ("RECEIVED", "/received_at"),
        ],
    ),
    (
        "receipt",
        &[
            ("ID", "/id"),
            ("CONSUMER", "/consumer"),
            ("SOURCE", "/source"),
            ("OUTCOME", "/outcome/value"),
            ("AT", "/at"),
        ],
    ),
    (
        "effect",
        &[("ID", "/id"), ("STATE", "/state"), ("KEY", "/key"), ("PATH", "/path"), ("PLANNED", "/planned_at")],
    ),
];

/// The columns of a kind.
pub fn columns(kind: &str) -> &'static [Column] {
    COLUMNS.iter().find(|(known, _)| *known == kind).map_or(&[("ID", "/id")], |(_, columns)| columns)
}
