//! The page that lists every field, `docs/entities.md`, and what the code knows.

use crate::entities_samples;

use std::collections::{BTreeMap, BTreeSet};

use entities::registry;
use entities::{MASK, plugins, unused};
use serde_json::Value;

/// Fields that every entity has, which the page lists once.
const HEAD: [&str; 5] = ["id", "name", "description", "tags", "metadata"];
/// Objects whose fields are named by whoever writes them.
const FREE: [&str; 2] = ["headers", "config"];

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/entities.md");
/// What the table of plugins stands between.
const TABLE: [&str; 2] = ["<!-- plugins -->\n", "<!-- end of plugins -->\n"];
/// What marks a collection that nothing uses; see [`unused::collection_note`].
const MARK: &str = "**Not active yet: ";

/// A row of the page.
#[derive(Debug)]
struct Row {
    kind: String,
    default: String,
}

/// The rows of each collection, by field.
fn page() -> BTreeMap<String, BTreeMap<String, Row>> {
    let mut page: BTreeMap<String, BTreeMap<String, Row>> = BTreeMap::new();
    let mut section = String::new();
    for line in std::fs::read_to_string(PAGE).unwrap().lines() {
        if let Some(title) = line.strip_prefix("## ") {
            section = title.trim_matches('`').to_owned();
        } else if let Some(row) = line.strip_prefix("| `")
            && (registry::by_collection(&section).is_some() || section == "Every entity")
        {
            let cells: Vec<&str> = row.trim_end_matches('|').split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 5, "{line}");
            assert!(!cells[4].is_empty(), "a field without a meaning: {line}");
            let row = Row { kind: cells[1].to_owned(), default: cells[2].to_owned() };
            let twice = page.entry(section.clone()).or_default().insert(cells[0].trim_matches('`').to_owned(), row);
            assert!(twice.is_none(), "{line}");
        }
    }
    page
}

/// The names of all fields in a document, as the page writes them.
fn fields(value: &Value, name: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object)
            if !FREE.iter().any(|free| {
                name == *free || name.ends_with(&format!(".{free}")) || name.ends_with(&format!("].{free}"))
            }) =>
        {
            for (field, value) in object.iter().filter(|(field, _)| !name.is_empty() || !HEAD.contains(&field.as_str()))
            {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                found.insert(name.clone());
                fields(value, &name, found);
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| fields(entry, &format!("{name}[]"), found)),
        _ => {}
    }
}

#[test]
fn every_field_is_on_the_page_and_no_other() {
    let page = page();
    let known: BTreeSet<&str> = registry::documented().map(|kind| kind.collection).chain(["Every entity"]).collect();
    assert_eq!(page.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
    for kind in registry::documented() {
        let mut found = BTreeSet::new();
        fields(&kind.template(), "", &mut found);
        for (_, sample) in entities_samples::all().iter().filter(|(of, _)| of.collection == kind.collection) {
            fields(sample, "", &mut found);
        }
        if kind.own_kinds.is_empty() {
            found.remove("kind");
        }
        let listed: BTreeSet<String> = page[kind.collection].keys().cloned().collect();
        assert_eq!(listed, found, "{}", kind.collection);
    }
    let head: BTreeSet<&str> = page["Every entity"].keys().map(String::as_str).collect();
    assert_eq!(head, HEAD.into_iter().chain(["kind"]).collect());
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_code() {
    let mut compared = 0;
    for (collection, rows) in page().iter().filter(|(section, _)| *section != "Every entity") {
        let kind = registry::by_collection(collection).unwrap();
        let template = kind.template();
        for (field, row) in rows {
            let Some(default) = row.default.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')) else { continue };
            let Ok(default) = serde_json::from_str::<Value>(default) else { continue };
            if let Some(found) = template.pointer(&format!("/{}", field.replace('.', "/"))) {
                assert_eq!(*found, default, "{collection} {field}");
                compared += 1;
            }
        }
    }
    assert!(compared > 120, "{compared} defaults");
}

#[test]
fn the_secrets_on_the_page_are_those_that_are_hidden() {
    let page = page();
    let mut hidden = BTreeSet::new();
    for (kind, stored) in entities_samples::all() {
        let shown = kind.read(stored).unwrap().shown();
        let mut all = BTreeSet::new();
        fields(&shown, "", &mut all);
        for field in all {
            let value = shown.pointer(&format!("/{}", field.replace('.', "/")));
            // An object of secrets is masked in its entries.
            let free = FREE.contains(&field.rsplit('.').next().unwrap());
            let in_map = |value: &Value| value.as_object().is_some_and(|map| map.values().any(|entry| entry == MASK));
            if value.is_some_and(|value| value == MASK || (free && in_map(value))) {
                hidden.insert((kind.collection.to_owned(), field));
            }
        }
    }
    let mut listed = BTreeSet::new();
    for (collection, rows) in page {
        let secret = rows.into_iter().filter(|(_, row)| row.kind.contains("secret"));
        listed.extend(secret.map(|(field, _)| (collection.clone(), field)));
    }
    assert_eq!(listed, hidden);
}

/// The table of plugins, and which of them this release does not have.
fn table() -> String {
    let words = |words: &mut dyn Iterator<Item = &'static str>| {
        words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    let row = |plugin: &plugins::Plugin| {
        let note = if plugin.is_active() { "" } else { "not active yet" };
        let (classes, fields) = (words(&mut plugin.classes.iter().copied()), words(&mut plugin.preset.all()));
        format!("| {} | {classes} | {fields} | {note} |\n", plugin.title)
    };
    let rows: String = plugins::ALL.iter().copied().filter(|plugin| !plugin.example).map(row).collect();
    format!("| Plugin | Classes | Fields of a preset | |\n|---|---|---|---|\n{rows}")
}

/// The row of a plugin's settings as it should be: it says whether anything reads them.
fn row(line: &str) -> Option<String> {
    let field = line.strip_prefix("| `security.")?.split('`').next()?;
    let schema = registry::schema(registry::by_collection("global-config")?);
    let about = schema.pointer(&format!("/$defs/SecuritySettings/properties/{field}/description"))?.as_str()?;
    let bare =
        line.strip_suffix(" |")?.strip_suffix(" (not active yet)").map_or(line.to_owned(), |rest| format!("{rest} |"));
    match about.contains("Not active yet") {
        true => Some(format!("{} (not active yet) |", bare.strip_suffix(" |")?)),
        false => Some(bare),
    }
}

/// The page as the table of plugins would have it.
fn marked(page: &str) -> String {
    let (before, rest) = page.split_once(TABLE[0]).unwrap();
    let (_, after) = rest.split_once(TABLE[1]).unwrap();
    let mut marked = String::new();
    let text = format!("{before}{}{}{}{after}", TABLE[0], table(), TABLE[1]);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        marked.push_str(&row(line).unwrap_or_else(|| line.to_owned()));
        marked.push('\n');
        let Some(collection) = line.strip_prefix("## `").and_then(|rest| rest.strip_suffix('`')) else { continue };
        if lines.peek() == Some(&"") && lines.clone().nth(1).is_some_and(|line| line.starts_with(MARK)) {
            lines.nth(1);
        }
        if let Some(note) = unused::collection_note(collection) {
            let note = note.replacen("not active yet: ", MARK, 1);
            marked.push_str(&format!("\n{note}.**\n"));
        }
    }
    marked
}

#[test]
fn the_page_says_what_is_not_active_yet() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(PAGE, marked(&page)).unwrap();
    } else {
        assert!(marked(&page) == page, "docs/entities.md is behind the plugins: UPDATE_FIXTURES=1 mends it");
    }
}

/// docs/plugins.md is made of what plugins say of themselves.
#[test]
fn the_page_of_plugins_is_what_they_say() {
    const PLUGINS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/plugins.md");
    let mut page =
        "# Plugins\n\nThe plugins of this release, in the order of a full preset, with their configuration in a route \
                    or in the global chain.\nTheir fields in a preset are in [entities.md](entities.md#plugins).\n"
            .to_owned();
    for plugin in plugins::active().filter(|plugin| !plugin.example) {
        assert!(!plugin.documentation.is_empty(), "{} has no documentation", plugin.name);
        page.push_str(&format!(
            "\n## {}\n\n`{}`\n\n{}",
            plugin.title,
            plugin.classes.join("`, `"),
            plugin.documentation
        ));
    }
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(PLUGINS, &page).unwrap();
    }
    let there = std::fs::read_to_string(PLUGINS).unwrap_or_default();
    assert!(there == page, "docs/plugins.md is behind the plugins: UPDATE_FIXTURES=1 mends it");
}
