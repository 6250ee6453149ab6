//! The words for what the validator and the compiler of schemas find. Decides nothing.

use std::collections::BTreeSet;

use boon::{CompileError, ErrorKind, InstanceLocation, InstanceToken, ValidationError};
use serde_json::Value;

use super::{ADDRESS, Violation};
use crate::model::json::{pointers_of_keys, push_pointer};

/// How long a value or list may be that a message repeats, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// The JSON pointer of a place in an instance.
fn pointer_of(place: &InstanceLocation<'_>) -> String {
    place.tokens.iter().fold(String::new(), |base, token| match token {
        InstanceToken::Prop(name) => push_pointer(&base, name),
        InstanceToken::Item(index) => push_pointer(&base, &index.to_string()),
    })
}

/// The start of a text that is too long for a message.
fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let start: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    if characters.next().is_some() { start + "…" } else { start }
}

/// Adds the violations that an error of the validator stands for. Of alternatives none of which matches,
/// only the whole is named: which one was meant cannot be known.
pub(super) fn collect(error: &ValidationError<'_, '_>, found: &mut BTreeSet<Violation>) {
    let place = pointer_of(&error.instance_location);
    let mut members = |names: &mut dyn Iterator<Item = &str>, message: String| {
        found.extend(names.map(|name| Violation::new(push_pointer(&place, name), message.clone())));
    };
    match &error.kind {
        ErrorKind::Group
        | ErrorKind::Schema { .. }
        | ErrorKind::Reference { .. }
        | ErrorKind::ContentSchema
        | ErrorKind::AllOf => error.causes.iter().for_each(|cause| collect(cause, found)),
        ErrorKind::Required { want } => members(&mut want.iter().copied(), "required".to_owned()),
        ErrorKind::Dependency { prop, missing } | ErrorKind::DependentRequired { prop, missing } => {
            members(&mut missing.iter().copied(), format!("required beside {:?}", shown(prop)));
        }
        ErrorKind::AdditionalProperties { got } => {
            members(&mut got.iter().map(AsRef::as_ref), "not allowed".to_owned());
        }
        ErrorKind::PropertyName { prop } => {
            members(&mut std::iter::once(prop.as_str()), "not an allowed name".to_owned());
        }
        kind => {
            found.insert(Violation::new(place, message(kind)));
        }
    }
}

/// The words for an error at one place.
fn message(kind: &ErrorKind<'_, '_>) -> String {
    match kind {
        ErrorKind::FalseSchema => "not allowed".to_owned(),
        ErrorKind::Type { got, want } => {
            let want: Vec<String> = want.iter().map(|kind| kind.to_string()).collect();
            format!("must be {}, not {got}", want.join(" or "))
        }
        ErrorKind::Enum { want } => {
            let want: Vec<String> = want.iter().map(Value::to_string).collect();
            format!("must be one of {}", shown(&want.join(", ")))
        }
        ErrorKind::Const { want } => format!("must be {}", shown(&want.to_string())),
        ErrorKind::MinProperties { got, want } => format!("must have {want} members or more, not {got}"),
        ErrorKind::MaxProperties { got, want } => format!("must have {want} members at most, not {got}"),
        ErrorKind::MinItems { got, want } => format!("must have {want} items or more, not {got}"),
        ErrorKind::MaxItems { got, want } => format!("must have {want} items at most, not {got}"),
        ErrorKind::AdditionalItems { got } => format!("must not have its last {got} items"),
        ErrorKind::Contains => "must have an item of the kind asked for".to_owned(),
        ErrorKind::MinContains { got, want } => {
            format!("must have {want} items or more of the kind asked for, not {}", got.len())
        }
        ErrorKind::MaxContains { got, want } => {
            format!("must have {want} items at most of the kind asked for, not {}", got.len())
        }
        ErrorKind::UniqueItems { got: [first, second] } => format!("items {first} and {second} are the same"),
        ErrorKind::MinLength { got, want } => format!("must have {want} characters or more, not {got}"),
        ErrorKind::MaxLength { got, want } => format!("must have {want} characters at most, not {got}"),
        ErrorKind::Pattern { want, .. } => format!("must match {}", shown(want)),
        ErrorKind::Format { want, .. } => format!("must be in the form {want}"),
        ErrorKind::Minimum { want, .. } => format!("must be {want} or more"),
        ErrorKind::Maximum { want, .. } => format!("must be {want} at most"),
        ErrorKind::ExclusiveMinimum { want, .. } => format!("must be more than {want}"),
        ErrorKind::ExclusiveMaximum { want, .. } => format!("must be less than {want}"),
        ErrorKind::MultipleOf { want, .. } => format!("must be a multiple of {want}"),
        ErrorKind::Not => "must not be what the schema excludes".to_owned(),
        ErrorKind::AnyOf | ErrorKind::OneOf(None) => "must match one of the alternatives".to_owned(),
        ErrorKind::OneOf(Some((first, second))) => {
            format!("must match one alternative only, not both {first} and {second}")
        }
        ErrorKind::RefCycle { .. } => "the references of the schema go in a circle".to_owned(),
        other => shown(&other.to_string()).to_lowercase(),
    }
}

/// Why a schema does not compile, and where in it.
pub(super) fn not_a_schema(schema: &Value, error: &CompileError) -> Violation {
    match error {
        CompileError::ValidationError { url, src } => {
            let mut found = BTreeSet::new();
            collect(src, &mut found);
            let first = found.into_iter().next().unwrap_or_else(|| Violation::new("", "not allowed"));
            let message = format!("not a 2020-12 schema: {}", first.message);
            Violation::new(inner_pointer(url) + &first.pointer, message)
        }
        CompileError::LoadUrlError { url, .. } | CompileError::UnsupportedUrlScheme { url } => {
            let message = format!("refers to another document, {}", shown(url));
            Violation::new(reference(schema, url), message)
        }
        CompileError::JsonPointerNotFound(place) | CompileError::InvalidJsonPointer(place) => {
            Violation::new(reference(schema, place), format!("refers to nothing: {}", shown(place)))
        }
        CompileError::AnchorNotFound { reference: name, .. } => {
            Violation::new(reference(schema, name), format!("refers to nothing: {}", shown(name)))
        }
        CompileError::ParseUrlError { url, .. } => {
            Violation::new(reference(schema, url), format!("not a reference: {}", shown(url)))
        }
        CompileError::UnsupportedDraft { .. }
        | CompileError::InvalidMetaSchemaUrl { .. }
        | CompileError::MetaSchemaCycle { .. }
        | CompileError::UnsupportedVocabulary { .. } => {
            Violation::new("/$schema", "must be the draft 2020-12, or absent")
        }
        CompileError::DuplicateId { ptr1, ptr2, id, .. } => {
            Violation::new(ptr1.max(ptr2), format!("the $id {} is there twice", shown(id)))
        }
        CompileError::DuplicateAnchor { ptr1, ptr2, anchor, .. } => {
            Violation::new(ptr1.max(ptr2), format!("the anchor {} is there twice", shown(anchor)))
        }
        CompileError::ParseIdError { loc } | CompileError::ParseAnchorError { loc } => {
            Violation::new(inner_pointer(loc), "not an identifier")
        }
        CompileError::InvalidRegex { url, regex, .. } => {
            Violation::new(inner_pointer(url), format!("not a regular expression: {}", shown(regex)))
        }
        CompileError::Bug(cause) => {
            Violation::new("", format!("cannot be used: {}", shown(&cause.to_string())))
        }
    }
}

/// The pointer in an address such as `nf:///schema#/properties/a`.
fn inner_pointer(address: &str) -> String {
    let pointer = address.strip_prefix(ADDRESS).and_then(|rest| rest.strip_prefix('#'));
    pointer.unwrap_or_default().to_owned()
}

/// The pointer of the first reference of a schema that leads to an address or place, as far as its text
/// tells.
fn reference(schema: &Value, target: &str) -> String {
    let keys = ["$ref", "$dynamicRef", "$schema"];
    let pointers = pointers_of_keys(schema, &|key| keys.contains(&key));
    let leads = |pointer: &&String| match schema.pointer(pointer) {
        Some(Value::String(text)) => {
            let document = text.split('#').next().unwrap_or_default();
            target.ends_with(text.as_str()) || !document.is_empty() && target.ends_with(document)
        }
        _ => false,
    };
    pointers.iter().find(leads).cloned().unwrap_or_default()
}
