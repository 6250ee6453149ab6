//! A program of the user's own that reads the packet and prints the answer. Nothing is known of it but how it
//! ended: what it prints goes through intake as it is.

use std::ffi::OsString;

use super::ask::{Ask, Failure, Outcome};
use super::child::{self, Run};
use super::room::House;
use crate::model::witness::Witness;

/// Runs the program for one answer. Its file is the first word of the command.
pub fn ask(command: &[OsString], house: &House<'_>, ask: &Ask<'_>) -> Outcome {
    let mut witness = Witness { model_requested: ask.model.map(str::to_owned), ..Witness::default() };
    let room = match house.room() {
        Ok(room) => room,
        Err(why) => return Outcome { answer: Err(Failure::failed("no_room", true, why)), witness },
    };
    let ended = child::run(&Run {
        command,
        room: &room,
        input: ask.packet.as_bytes(),
        limits: ask.limits,
        stop: ask.stop,
        house,
    });
    witness.invocation = ended.invocation;
    let answer = match ended.end.failure(&ask.limits) {
        Some(failure) => Err(failure),
        None if ended.output.trim_ascii().is_empty() => {
            Err(Failure::failed("empty", true, "it printed nothing"))
        }
        None => Ok(ended.output),
    };
    Outcome { answer, witness }
}
