//! The checks of resume: each binding against what is there now (session-runtime contract, 07). A check
//! never stops at the first failure.

use std::collections::BTreeMap;

use super::capability::lack;
use super::effect;
use super::resume::{Resume, Seen};
use crate::model::check::Check;
use crate::model::checkpoint::{BindingKind, BoundArtifact, Checkpoint};
use crate::model::effect::Effect;
use crate::model::hash::Hash;
use crate::model::id::Name;
use crate::model::time::Time;

/// All eleven checks, in the contract's order.
pub fn checks(resume: &Resume, checkpoint: &Checkpoint, now: Time) -> Vec<Check> {
    let run = resume.run.as_ref();
    let same_run = run.is_some_and(|run| run.id == checkpoint.run);
    let context = context_faults(resume);
    vec![
        Check::new(
            "session",
            true,
            "idle, awaiting or failed, and not forbidden",
            resume.session.status.word(),
        ),
        Check::new(
            "checkpoint",
            same_run,
            format!("of this session and run {}", run.map_or_else(String::new, |run| run.id.to_string())),
            format!("{} of run {}", checkpoint.id, checkpoint.run),
        ),
        compared(
            "compatibility",
            resume
                .bindings
                .compatibility
                .iter()
                .map(|bound| (&bound.name, path_of(&bound.path, bound.pointer.as_deref()), bound.hash)),
            &resume.observed.compatibility,
        ),
        compared(
            "authority",
            resume.bindings.authority.iter().map(|bound| (&bound.name, bound.path.clone(), bound.hash)),
            &resume.observed.authority,
        ),
        Check::new(
            "context",
            context.is_empty(),
            "every file of the context can be read",
            or(&context, "all read"),
        ),
        artifacts_check(resume),
        approvals_check(resume, now),
        effects_check(resume),
        capabilities_check(resume, now),
        pending_check(resume),
        consumed_check(resume),
    ]
}

/// What the bindings name must have current evidence while work is out; work that came back needs none.
fn capabilities_check(resume: &Resume, now: Time) -> Check {
    let names = &resume.bindings.capabilities;
    let want = "current evidence for what outstanding work needs";
    if resume.outstanding.is_empty() {
        return Check::new("capabilities", true, want, "no outstanding work");
    }
    let told = |name: &Name| Some(format!("{name}: {}", lack(resume.evidence.get(name), now)?));
    let lacks: Vec<String> = names.iter().filter_map(told).collect();
    let held = match names.len() {
        0 => "none needed".to_owned(),
        count => format!("{count} with current evidence"),
    };
    Check::new("capabilities", lacks.is_empty(), want, or(&lacks, &held))
}

fn or(list: &[String], otherwise: &str) -> String {
    if list.is_empty() { otherwise.to_owned() } else { list.join("; ") }
}

fn path_of(path: &str, pointer: Option<&str>) -> String {
    pointer.map_or_else(|| path.to_owned(), |pointer| format!("{path}#{pointer}"))
}

fn compared<'a>(
    check: &str,
    bound: impl Iterator<Item = (&'a Name, String, Hash)>,
    seen: &BTreeMap<Name, Seen>,
) -> Check {
    let mut faults = Vec::new();
    let mut count = 0;
    for (name, path, want) in bound {
        count += 1;
        match seen.get(name) {
            Some(Ok(got)) if *got == want => {}
            Some(Ok(got)) => {
                faults.push(format!("{name} ({path}): want {}, got {}", want.short(), got.short()))
            }
            Some(Err(why)) => faults.push(format!("{name} ({path}): {why}")),
            None => faults.push(format!("{name} ({path}): not read")),
        }
    }
    Check::new(
        check,
        faults.is_empty(),
        format!("{count} as recorded"),
        or(&faults, &format!("{count} as recorded")),
    )
}

fn artifact_fault(resume: &Resume, artifact: &BoundArtifact) -> Option<String> {
    let (seen, difference) = resume.observed.artifacts.get(&artifact.place())?;
    let got = seen.as_ref().ok()?;
    (*got != artifact.hash).then(|| {
        let how = difference.map_or("", super::resume::Difference::words);
        format!(
            "{} ({}): want {}, got {}{how}",
            artifact.name,
            artifact.path,
            artifact.hash.short(),
            got.short()
        )
    })
}

fn artifacts_check(resume: &Resume) -> Check {
    let exact = resume.bindings.artifacts.iter().filter(|artifact| artifact.binding == BindingKind::Exact);
    let faults: Vec<String> = exact.clone().filter_map(|artifact| artifact_fault(resume, artifact)).collect();
    let count = exact.count();
    let held = format!("{count} exact as recorded");
    Check::new("artifacts", faults.is_empty(), held.clone(), or(&faults, &held))
}

fn context_faults(resume: &Resume) -> Vec<String> {
    let unreadable = |artifact: &BoundArtifact| match resume.observed.artifacts.get(&artifact.place()) {
        Some((Ok(_), _)) => None,
        Some((Err(why), _)) => Some(format!("{} ({}): {why}", artifact.name, artifact.path)),
        None => Some(format!("{} ({}): not read", artifact.name, artifact.path)),
    };
    resume.bindings.artifacts.iter().filter_map(unreadable).collect()
}

fn approvals_check(resume: &Resume, now: Time) -> Check {
    let bound = resume.bindings.approvals.iter();
    let files = compared(
        "approvals",
        bound.clone().map(|bound| (&bound.reference, bound.path.clone(), bound.hash)),
        &resume.observed.approvals,
    );
    let expired: Vec<String> = bound
        .filter_map(|approval| Some((approval, approval.expires_at.filter(|end| *end <= now)?)))
        .map(|(approval, end)| format!("{} ({}): expired at {end}", approval.reference, approval.path))
        .collect();
    if expired.is_empty() {
        return files;
    }
    let got = if files.ok { expired.join("; ") } else { format!("{}; {}", files.got, expired.join("; ")) };
    Check::new("approvals", false, format!("{}, none expired", files.want), got)
}

fn effects_check(resume: &Resume) -> Check {
    let want = "each planned effect untouched or applied";
    if resume.effects.is_empty() {
        return Check::new("effects", true, want, "none planned");
    }
    let fault = |(effect, now): &(Effect, effect::Seen)| {
        let error = effect::unproved(effect, now)?;
        Some(format!("{}; {}", error.message, error.next_step()))
    };
    let faults: Vec<String> = resume.effects.iter().filter_map(fault).collect();
    let proved = resume
        .effects
        .iter()
        .map(|(effect, now)| format!("{} ({}) {}", effect.id, effect.key, effect::status(effect, now)));
    let proved: Vec<String> = proved.collect();
    Check::new("effects", faults.is_empty(), want, or(&faults, &proved.join(", ")))
}

fn pending_check(resume: &Resume) -> Check {
    let unbound: Vec<String> = resume
        .returned
        .iter()
        .filter(|returned| !returned.failed.is_empty())
        .map(|returned| format!("result {} no longer binds: {}", returned.result, returned.failed.join(", ")))
        .collect();
    if !unbound.is_empty() {
        return Check::new("pending", false, "a returned result binds from its bytes", unbound.join("; "));
    }
    let out: Vec<String> = resume.outstanding.iter().map(|(handoff, _)| handoff.id.to_string()).collect();
    Check::new(
        "pending",
        out.is_empty(),
        "nothing outstanding",
        if out.is_empty() {
            format!("{} returned and bound again", resume.returned.len())
        } else {
            format!("outstanding: {}", out.join(", "))
        },
    )
}

fn consumed_check(resume: &Resume) -> Check {
    let done = resume.returned.iter().filter(|returned| returned.consumed).count();
    Check::new(
        "consumed",
        true,
        "a consumed result is not offered again",
        format!("{done} of {} consumed", resume.returned.len()),
    )
}
