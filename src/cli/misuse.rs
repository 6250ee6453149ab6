//! Which command a command line names, as far as it can be read before it is parsed, and a wrong one as an
//! error that names the command whose help tells how it is written. Decides nothing and runs nothing.

use std::ffi::OsString;

use clap::error::ErrorKind;

use super::output;
use crate::error::{Error, Kind};

/// What clap adds at the end of each error: the fix says it, and names the command.
const HINT: &str = "For more information, try";

/// Tells what is wrong with a command line, and gives the exit code. Help and version go to stdout and are no
/// failure; all else is usage.
pub fn told(json: bool, error: &clap::Error, line: &clap::Command, arguments: &[OsString]) -> u8 {
    if !error.use_stderr() {
        output::out(&error.render().ansi().to_string());
        return 0;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !json {
        output::say(error.render().ansi().to_string().trim_end());
        return Kind::Usage.exit();
    }
    output::failed(json, false, output::schema_name("usage"), &misused(error, line, arguments))
}

/// A wrong command line as an error of its own.
pub fn misused(error: &clap::Error, line: &clap::Command, arguments: &[OsString]) -> Error {
    let text = error.render().to_string();
    let text = text.trim().trim_start_matches("error: ");
    let (message, cause) = text.split_once('\n').unwrap_or((text, ""));
    let lines = cause.lines().map(str::trim);
    let cause = lines.filter(|line| !line.is_empty() && !line.starts_with(HINT)).collect::<Vec<_>>();
    let error = Error::new(Kind::Usage, message).fix(format!("{} --help", command(line, arguments)));
    if cause.is_empty() { error } else { error.because(cause.join("\n       ")) }
}

/// An error of a command that was used wrongly: where it says no next step of its own, its help is one.
pub fn with_help(error: Error, schema: &str) -> Error {
    if error.kind != Kind::Usage || error.fix.is_some() {
        return error;
    }
    let words = schema.split('/').next().unwrap_or(schema).replace('.', " ");
    error.fix(format!("{words} --help"))
}

/// The command that a command line means, as far as it can be read.
fn command(line: &clap::Command, arguments: &[OsString]) -> String {
    let (mut words, mut here, mut rest) = (vec!["nf"], line, arguments.get(1..).unwrap_or_default());
    while let Some((word, behind)) = first_word(&[here, line], rest) {
        let Some(inner) = here.find_subcommand(word) else { break };
        words.push(inner.get_name());
        (here, rest) = (inner, behind);
    }
    words.join(" ")
}

/// The word that stands where a command belongs, before anything but options of the program itself.
pub fn word<'a>(program: &clap::Command, arguments: &'a [OsString]) -> Option<&'a str> {
    first_word(&[program], arguments.get(1..)?).map(|(word, _)| word)
}

/// The first of these arguments that is no option of the commands and no value of one, and what is behind it.
fn first_word<'a>(of: &[&clap::Command], arguments: &'a [OsString]) -> Option<(&'a str, &'a [OsString])> {
    let mut at = 0;
    loop {
        let argument = arguments.get(at)?.to_str()?;
        at += 1;
        if argument == "--" {
            return None;
        }
        if !argument.starts_with('-') {
            return Some((argument, &arguments[at..]));
        }
        let mut options = of.iter().flat_map(|command| command.get_arguments());
        if options.any(|option| takes_next(option, argument)) {
            at += 1;
        }
    }
}

/// Whether the next argument is the value of an option that this one gives, alone or behind other letters.
fn takes_next(option: &clap::Arg, argument: &str) -> bool {
    let long = option.get_long().is_some_and(|long| argument.strip_prefix("--") == Some(long));
    let short = option.get_short().is_some_and(|short| argument.ends_with(short));
    (long || short && !argument.starts_with("--")) && takes_value(option)
}

/// Whether an option has a value: one that is only there or not has none.
pub fn takes_value(option: &clap::Arg) -> bool {
    let values = option.get_num_args().is_none_or(|values| values.takes_values());
    values && option.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_behind_options_and_their_values() {
        for (text, wanted) in [
            ("", "nf"),
            ("wrok --class a", "nf"),
            ("work --class a", "nf work"),
            ("-C work status", "nf status"),
            ("--json --op start freeze", "nf freeze"),
            ("handoff open --class freeze", "nf handoff open"),
            ("event import github open", "nf event import"),
            ("list packet", "nf list"),
            ("--op=start work", "nf work"),
            ("work -- freeze", "nf work"),
            ("-qC work list", "nf list"),
            ("-nq --lock-timeout 1s handoff claim", "nf handoff claim"),
            ("-Cwork list", "nf list"),
        ] {
            let arguments: Vec<OsString> =
                std::iter::once("nf").chain(text.split_whitespace()).map(OsString::from).collect();
            let line = super::super::command_for(&arguments);
            assert_eq!(command(&line, &arguments), wanted, "{text}");
            let among = super::super::command();
            assert_eq!(command(&among, &arguments), wanted, "among all: {text}");
            // The one command alone reads what all of them together read.
            let read = |mut line: clap::Command| {
                line.try_get_matches_from_mut(&arguments)
                    .map(|matches| super::super::schema_of(&matches))
                    .map_err(|error| error.kind())
            };
            assert_eq!(read(line), read(among), "{text}");
        }
    }
}
