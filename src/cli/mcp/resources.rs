//! Results and receipts as resources. They are what `list` and `show` say; nothing else is a resource, and
//! reading one is no verdict of its own.

use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate,
};
use rmcp::service::RequestContext;
use serde_json::Value;

use super::arguments::Line;
use super::call::Document;
use super::handler::Handler;

/// The kinds, in the order of the list, with the letter of their ids and what they are.
const KINDS: &[(&str, char, &str)] = &[
    ("result", 'x', "An answer that came back: its verdict, standing and independence"),
    ("receipt", 't', "The one application of a result or event by a named consumer"),
];
/// Resources on a page.
const PAGE: &str = "50";
const JSON: &str = "application/json";

/// What an address may look like.
pub fn templates() -> ListResourceTemplatesResult {
    let template = |(kind, _, what): &(&str, char, &str)| {
        ResourceTemplate::new(format!("nf://{kind}/{{id}}"), *kind)
            .with_description(*what)
            .with_mime_type(JSON)
    };
    ListResourceTemplatesResult::with_all_items(KINDS.iter().map(template).collect())
}

/// A page of the list: the results, newest first, and after them the receipts. A cursor is the kind and the
/// token of `list`.
///
/// # Errors
/// Invalid params for a cursor that is none; an internal error where the store cannot be read.
pub async fn page(
    handler: &Handler,
    cursor: Option<&str>,
    context: &RequestContext<RoleServer>,
) -> Result<ListResourcesResult, ErrorData> {
    let no_cursor = || ErrorData::invalid_params("Invalid cursor: it was not given by this list", None);
    let (word, token) = cursor
        .unwrap_or(KINDS[0].0)
        .split_once('/')
        .map_or_else(|| (cursor.unwrap_or(KINDS[0].0), None), |(word, token)| (word, Some(token)));
    let at = KINDS.iter().position(|(kind, ..)| *kind == word).ok_or_else(no_cursor)?;
    if token.is_some_and(|token| token.parse::<u64>().is_err()) {
        return Err(no_cursor());
    }
    let (kind, _, what) = KINDS[at];
    let mut words = vec!["list".to_owned(), kind.to_owned(), "--limit".to_owned(), PAGE.to_owned()];
    words.extend(token.map(|token| format!("--after={token}")));
    let data = data(handler.run(reading(words), false, false, context).await?)?;
    let items = data.get("items").and_then(Value::as_array).into_iter().flatten();
    let ids = items.filter_map(|item| item.get("id").and_then(Value::as_str));
    let resource =
        |id: &str| Resource::new(format!("nf://{kind}/{id}"), id).with_description(what).with_mime_type(JSON);
    let mut page = ListResourcesResult::with_all_items(ids.map(resource).collect());
    page.next_cursor = match data.get("next").and_then(Value::as_u64) {
        Some(token) => Some(format!("{kind}/{token}")),
        None => KINDS.get(at + 1).map(|(next, ..)| (*next).to_owned()),
    };
    Ok(page)
}

/// One resource: what `show` says of it.
///
/// # Errors
/// Resource not found, with the command line's own error as data.
pub async fn read(
    handler: &Handler,
    uri: &str,
    context: &RequestContext<RoleServer>,
) -> Result<ReadResourceResponse, ErrorData> {
    let shown: String = uri.chars().take(80).collect();
    let missing = |data| ErrorData::resource_not_found(format!("Resource not found: {shown}"), data);
    let place = uri.strip_prefix("nf://").and_then(|place| place.split_once('/'));
    let known = |(kind, id): &(&str, &str)| {
        KINDS.iter().any(|(word, letter, _)| word == kind && id.strip_prefix(*letter).is_some())
    };
    let (_, id) = place.filter(known).ok_or_else(|| missing(None))?;
    let words = vec!["show".to_owned(), "--".to_owned(), id.to_owned()];
    let document = handler.run(reading(words), false, false, context).await?;
    let kind = document.value.pointer("/error/kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if ["unknown_id", "ambiguous_id", "usage"].contains(&kind.as_str()) {
        return Err(missing(document.value.get("error").cloned()));
    }
    let text = serde_json::to_string_pretty(&data(document)?).unwrap_or_default();
    let contents = ResourceContents::text(text, uri).with_mime_type(JSON);
    Ok(ReadResourceResult::new(vec![contents]).into())
}

fn reading(words: Vec<String>) -> Line {
    let arguments = std::iter::once("nf".to_owned()).chain(words).map(Into::into).collect();
    Line { arguments, ..Line::default() }
}

/// A document's data, or its error as an error of the protocol.
fn data(document: Document) -> Result<Value, ErrorData> {
    let error = document.value.get("error").filter(|_| document.failed);
    match error {
        Some(error) => {
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            Err(ErrorData::internal_error(message, Some(error.clone())))
        }
        None => Ok(document.value.get("data").cloned().unwrap_or_default()),
    }
}
