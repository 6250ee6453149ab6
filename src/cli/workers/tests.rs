//! Settings of workers as tables: what is read, and what is refused with its place.

use super::*;

fn read_text(text: &str) -> Result<Settings> {
    read(Path::new("/home/me/workers.yaml"), text.as_bytes())
}

fn one(text: &str) -> Worker {
    let settings = read_text(&format!("workers: {{w: {text}}}")).unwrap_or_else(|error| panic!("{error:?}"));
    settings.worker("w").unwrap().clone()
}

#[test]
fn an_empty_file_names_nobody() {
    for text in ["", " \n", "# nothing\n", "workers:\n", "workers: {}\ngithub: {}\n", "github:\n"] {
        let settings = read_text(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert!(settings.workers.is_empty() && settings.actors.is_empty(), "{text}");
        assert!(settings.worker("w").unwrap_err().cause.unwrap().contains("name none"));
    }
}

#[test]
fn each_kind_is_taken_for_the_least_that_it_is() {
    for (text, family, cost, locality) in [
        ("{kind: claude}", Family::LocalAgent, Cost::Plan, Locality::Any),
        ("{kind: codex}", Family::LocalAgent, Cost::Plan, Locality::Any),
        ("{kind: command, command: reviewer}", Family::ServiceJob, Cost::Metered, Locality::Any),
        (
            "{kind: command, command: [/usr/bin/env, reviewer], family: mcp_worker, cost: free}",
            Family::McpWorker,
            Cost::Free,
            Locality::Any,
        ),
        ("{kind: openai, url: 'https://example.org'}", Family::ProviderApi, Cost::Metered, Locality::Any),
        ("{kind: openai, url: 'http://localhost:8080/v1'}", Family::LocalModel, Cost::Free, Locality::Local),
        (
            "{kind: openai, url: 'http://10.0.0.2:80', insecure: true, family: local_model, cost: free}",
            Family::LocalModel,
            Cost::Free,
            Locality::Any,
        ),
        (
            "{kind: anthropic, url: 'https://example.org', model: m}",
            Family::ProviderApi,
            Cost::Metered,
            Locality::Any,
        ),
    ] {
        let worker = one(text);
        assert_eq!((worker.family, worker.cost, worker.locality()), (family, cost, locality), "{text}");
        assert!(!worker.isolate && worker.timeout == TIMEOUT, "{text}");
    }
    assert_eq!(one("{kind: codex}").way, Way::Program(vec!["codex".to_owned()]));
    let worker =
        one("{kind: claude, command: /opt/claude, isolate: true, timeout: 90s, key_env: A_KEY, model: m}");
    assert_eq!(worker.way, Way::Program(vec!["/opt/claude".to_owned()]));
    assert_eq!((worker.isolate, worker.timeout), (true, Duration::from_secs(90)));
    assert_eq!((worker.key_env.as_deref(), worker.model.as_deref()), (Some("A_KEY"), Some("m")));
    let Way::Endpoint(endpoint) = one("{kind: openai, url: 'https://example.org', max_tokens: 9}").way else {
        panic!("an endpoint")
    };
    assert_eq!((endpoint.provider.as_str(), endpoint.max_tokens), ("w", Some(9)));
}

#[test]
fn what_makes_no_sense_is_refused_with_its_place_and_never_repeats_a_key() {
    let token = format!("sk-{}", "aB3x".repeat(10));
    let url = "url: 'https://example.org'";
    for (worker, place, word) in [
        ("{}".to_owned(), "/workers/w/kind", "required"),
        ("[]".into(), "/workers/w", "object"),
        ("{kind: clade}".into(), "/workers/w/kind", "did you mean claude?"),
        ("{kind: claude, comand: x}".into(), "/workers/w/comand", "did you mean command?"),
        (format!("{{kind: claude, {url}}}"), "/workers/w/url", "has no url"),
        (format!("{{kind: openai, {url}, command: x}}"), "/workers/w/command", "has no command"),
        (format!("{{kind: openai, {url}, isolate: true}}"), "/workers/w/isolate", "has no isolate"),
        ("{kind: command, command: x, insecure: true}".into(), "/workers/w/insecure", "has no insecure"),
        ("{kind: command}".into(), "/workers/w/command", "required"),
        ("{kind: command, command: ''}".into(), "/workers/w/command", "a program is wanted"),
        ("{kind: command, command: []}".into(), "/workers/w/command", "a program is wanted"),
        ("{kind: command, command: {a: b}}".into(), "/workers/w/command", "not what is wanted"),
        ("{kind: command, command: ./reviewer.sh}".into(), "/workers/w/command", "a path from /"),
        ("{kind: command, command: 'reviewer --fast'}".into(), "/workers/w/command", "in a list"),
        ("{kind: claude, command: [claude, --yolo]}".into(), "/workers/w/command", "its adapter's"),
        ("{kind: claude, family: provider_api}".into(), "/workers/w/family", "none of local_agent"),
        ("{kind: command, command: x, family: human}".into(), "/workers/w/family", "none of"),
        ("{kind: openai}".into(), "/workers/w/url", "required"),
        ("{kind: openai, url: example.org}".into(), "/workers/w/url", "https://"),
        ("{kind: openai, url: 'http://example.org'}".into(), "/workers/w/url", "insecure: true"),
        (format!("{{kind: openai, url: 'https://me:{token}@example.org'}}"), "/workers/w/url", "password"),
        (format!("{{kind: openai, url: 'https://example.org/?key={token}'}}"), "/workers/w/url", "query"),
        (format!("{{kind: openai, {url}, key_env: {token}}}"), "/workers/w/key_env", "never a key"),
        (
            format!("{{kind: openai, {url}, key_env: ghp_{}}}", "a1B2".repeat(9)),
            "/workers/w/key_env",
            "never",
        ),
        (format!("{{kind: openai, {url}, key_env: [A]}}"), "/workers/w/key_env", "never"),
        (format!("{{kind: openai, {url}, model: {token}}}"), "/workers/w/model", "secret"),
        (format!("{{kind: openai, {url}, model: ''}}"), "/workers/w/model", "visible"),
        (format!("{{kind: openai, {url}, max_tokens: 0}}"), "/workers/w/max_tokens", "one token"),
        (format!("{{kind: anthropic, {url}}}"), "/workers/w/model", "wants a model"),
        ("{kind: claude, timeout: soon}".into(), "/workers/w/timeout", "duration"),
        ("{kind: claude, timeout: 2d}".into(), "/workers/w/timeout", "24 hours"),
        ("{kind: claude, timeout: 30}".into(), "/workers/w/timeout", "not what is wanted"),
        ("{kind: claude, cost: cheap}".into(), "/workers/w/cost", "none of free"),
        ("{kind: claude, isolate: 'yes'}".into(), "/workers/w/isolate", "not what is wanted"),
    ] {
        let error =
            read_text(&format!("workers: {{w: {worker}}}")).err().unwrap_or_else(|| panic!("{worker}"));
        let told = format!("{error:?}");
        assert_eq!(error.kind, Kind::BadInput, "{worker}");
        assert_eq!(error.details["pointer"], place, "{worker}: {told}");
        assert!(told.contains(word), "{word} in {told}");
        assert!(!told.contains(&token) && !told.contains("a1B2a1B2"), "{told}");
    }
    for (text, place) in [
        ("[]", ""),
        ("worker: {}", "/worker"),
        ("workers: []", "/workers"),
        ("workers: {'a b': {kind: claude}}", "/workers/a b"),
        ("github: {actor: [a]}", "/github/actor"),
        ("github: {actors: a}", "/github/actors"),
        ("github: {actors: ['a/b']}", "/github/actors"),
    ] {
        let error = read_text(text).err().unwrap_or_else(|| panic!("{text}"));
        assert_eq!(error.details["pointer"], place, "{text}: {error:?}");
    }
    assert_eq!(read_text("workers: {a: {kind: claude}, a: {kind: codex}}").unwrap_err().kind, Kind::BadInput);
}

#[test]
fn actors_are_accounts_whatever_the_case() {
    let settings = read_text("github: {actors: [Jane-Doe, 'a-bot[bot]']}").unwrap();
    for (login, is) in
        [("jane-doe", true), ("JANE-DOE", true), ("a-bot[bot]", true), ("jane", false), ("", false)]
    {
        assert_eq!(settings.is_actor(login), is, "{login}");
    }
}
