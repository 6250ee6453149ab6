//! The edge of the process: argv, environment, clock, randomness and exit code. Nothing else reads them.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::OnceLock;

use nf::cli::{Edge, env};
use nf::model::hash::Hash;
use nf::model::time::{Moment, Source, Time};

fn main() -> ExitCode {
    let variables = env::VARIABLES.iter().filter_map(|(name, _)| Some(((*name).to_owned(), text_of(name)?)));
    let edge = Edge {
        arguments: std::env::args_os().collect(),
        variables: variables.collect::<BTreeMap<_, _>>(),
        folder: std::env::current_dir().unwrap_or_default(),
        executable: std::env::current_exe().ok(),
        lookup: text_of,
        source: Source { moment: Box::new(moment), random: Box::new(|bytes| getrandom::fill(bytes).ok()) },
        config,
    };
    ExitCode::from(nf::cli::run(edge))
}

/// A variable's text; one that is not UTF-8 is taken as it can be read, so that it is refused by its rule.
fn text_of(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Where the platform keeps the user's settings of this program.
fn config() -> Option<std::path::PathBuf> {
    use etcetera::BaseStrategy;
    etcetera::choose_base_strategy().ok().map(|strategy| strategy.config_dir().join("nf"))
}

/// One reading of all clocks of this machine.
fn moment() -> Moment {
    let wall = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |passed| i64::try_from(passed.as_micros()).unwrap_or(i64::MAX));
    let boottime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let boottime_ms = (boottime.tv_sec as u64) * 1000 + (boottime.tv_nsec as u64) / 1_000_000;
    let [machine, boot_id, namespace] = PLACE.get_or_init(place).clone();
    Moment { wall: Time::from_micros(wall), machine, boot_id, namespace, boottime_ms }
}

/// Machine, boot and time namespace: they stay the same as long as the process lives.
static PLACE: OnceLock<[String; 3]> = OnceLock::new();

fn place() -> [String; 3] {
    let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    [
        Hash::of(&machine).hex()[..16].to_owned(),
        boot_id.trim().to_owned(),
        namespace.to_string_lossy().into_owned(),
    ]
}
