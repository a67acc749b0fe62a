//! Entities from a folder of files, for gateways without a running control plane and for checks in a repository.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use super::{AnyEntity, EntitySet, FieldProblem, Kind, registry};

/// Folders below the given one that are looked into, at most.
const MAX_DEPTH: usize = 8;
/// What the names of files of entities end in.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// Something wrong with a file of entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file, or the folder where that is what cannot be read.
    pub file: PathBuf,
    /// What is wrong; its pointer is relative to the document.
    pub problem: FieldProblem,
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.problem)
    }
}

impl EntitySet {
    /// Reads and checks the entities of a folder: one in each `.yaml`, `.yml` or `.json` file. The document's `kind`
    /// says which collection it belongs to, else the name of the nearest folder does. A document without an id gets its
    /// file's name without the extension. Names that begin with a dot are left out.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn from_dir(folder: &Path) -> Result<EntitySet, Vec<FileProblem>> {
        let mut set = EntitySet::empty();
        let mut origin: BTreeMap<(&str, String), PathBuf> = BTreeMap::new();
        let (entities, mut problems) = read_all(folder);
        for FileEntity { file, kind, entity } in entities {
            origin.insert((kind.collection, entity.head().id.clone()), file);
            set.insert(kind, entity, 0);
        }
        for (collection, id, problem) in set.check() {
            let file = origin.get(&(collection, id)).cloned().unwrap_or_else(|| folder.to_owned());
            problems.push(FileProblem { file, problem });
        }
        if problems.is_empty() { Ok(set) } else { Err(problems) }
    }
}

/// An entity of a file.
#[derive(Clone)]
pub struct FileEntity {
    /// The file.
    pub file: PathBuf,
    /// Its collection.
    pub kind: &'static Kind,
    /// The entity.
    pub entity: Arc<dyn AnyEntity>,
}

impl FileEntity {
    /// Reads the entities of a folder as [`EntitySet::from_dir`] does, without asking whether what they name exists: it
    /// may be elsewhere. In the order of the files' names.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn read_dir(folder: &Path) -> Result<Vec<FileEntity>, Vec<FileProblem>> {
        let (entities, problems) = read_all(folder);
        if problems.is_empty() { Ok(entities) } else { Err(problems) }
    }

    /// Files of a folder that are not read, and whose names look as if they were meant to be: `.YAML` in place of `.yaml`. In the
    /// order of their names; none where the folder cannot be read.
    #[must_use]
    pub fn passed_over(folder: &Path) -> Vec<PathBuf> {
        let mut found = Found::default();
        walk(folder, MAX_DEPTH, &mut found);
        found.passed_over.sort();
        found.passed_over
    }
}

/// What is in a folder.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    passed_over: Vec<PathBuf>,
    problems: Vec<FileProblem>,
}

fn read_all(folder: &Path) -> (Vec<FileEntity>, Vec<FileProblem>) {
    let mut found = Found::default();
    walk(folder, MAX_DEPTH, &mut found);
    let Found { mut files, mut problems, .. } = found;
    files.sort();
    let mut entities: Vec<FileEntity> = Vec::new();
    let mut origin: BTreeMap<(&str, String), PathBuf> = BTreeMap::new();
    for file in files {
        let (kind, entity) = match read(&file, folder) {
            Ok(read) => read,
            Err(found) => {
                problems.extend(found.into_iter().map(|problem| FileProblem { file: file.clone(), problem }));
                continue;
            }
        };
        let id = entity.head().id.clone();
        if let Some(first) = origin.get(&(kind.collection, id.clone())) {
            let message = format!("the id `{id}` of {} is taken by {}", kind.collection, first.display());
            problems.push(FileProblem { file, problem: FieldProblem::new("/id", message) });
            continue;
        }
        origin.insert((kind.collection, id), file.clone());
        entities.push(FileEntity { file, kind, entity });
    }
    (entities, problems)
}

fn walk(folder: &Path, depth: usize, found: &mut Found) {
    let entries = std::fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            let problem = FieldProblem::new("", format!("cannot be read: {error}"));
            return found.problems.push(FileProblem { file: folder.to_owned(), problem });
        }
    };
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            if depth == 0 {
                let problem = FieldProblem::new("", format!("lies more than {MAX_DEPTH} folders deep"));
                found.problems.push(FileProblem { file: path, problem });
            } else {
                walk(&path, depth - 1, found);
            }
            continue;
        }
        let Some(extension) = path.extension() else { continue };
        if EXTENSIONS.iter().any(|ours| extension == *ours) {
            found.files.push(path);
        } else if EXTENSIONS.iter().any(|ours| extension.eq_ignore_ascii_case(ours)) {
            found.passed_over.push(path);
        }
    }
}

type Read = (&'static Kind, Arc<dyn AnyEntity>);

fn read(file: &Path, root: &Path) -> Result<Read, Vec<FieldProblem>> {
    let one = |message: String| vec![FieldProblem::new("", message)];
    let text = std::fs::read_to_string(file).map_err(|error| one(format!("cannot be read: {error}")))?;
    let mut document: Value = if file.extension().is_some_and(|extension| extension == "json") {
        serde_json::from_str(&text).map_err(|error| one(format!("not JSON: {error}")))?
    } else {
        // Without the lines around the error: there may be secrets in them.
        serde_saphyr::from_str(&text).map_err(|error| one(format!("not YAML: {}", error.without_snippet())))?
    };
    let kind = kind_of(&document, file, root).map_err(|problem| vec![problem])?;
    if let Some(fields) = document.as_object_mut() {
        // A `kind` of the collection's own says more than which collection it is.
        if fields.get("kind").and_then(Value::as_str).is_none_or(|name| !kind.own_kinds.contains(&name)) {
            fields.insert("kind".to_owned(), Value::from(kind.kind));
        }
        if !fields.contains_key("id") {
            let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            fields.insert("id".to_owned(), Value::from(kind.singleton.map(ToOwned::to_owned).or(name)));
        }
    }
    let entity = kit::with_masks(|| kind.read(document))?;
    match kind.singleton {
        Some(id) if entity.head().id != id => Err(vec![
            FieldProblem::new("/id", format!("there is one {} only", kind.kind))
                .expected(format!("`{id}`, or no `id`")),
        ]),
        _ => Ok((kind, entity)),
    }
}

/// The collection that a document says it belongs to, else the nearest folder that is called like one.
fn kind_of(document: &Value, file: &Path, root: &Path) -> Result<&'static Kind, FieldProblem> {
    if let Some(name) = document.get("kind") {
        let known = || registry::KINDS.iter().map(|kind| kind.kind).collect::<Vec<_>>().join("`, `");
        let found = name.as_str().and_then(registry::by_kind);
        return found.ok_or_else(|| {
            FieldProblem::new("/kind", format!("{name} is not a kind of entity"))
                .expected(format!("one of `{}`", known()))
        });
    }
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != root).chain([root]);
    let mut names = folders.filter_map(|folder| folder.file_name()).filter_map(|name| name.to_str());
    names.find_map(registry::by_collection).ok_or_else(|| {
        let message = "the kind of this entity is unknown";
        FieldProblem::new("/kind", message)
            .expected("a field `kind`, or a folder named after the collection, such as `waf-configs`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Route;
    use policies::ThreatPolicy;
    use waf::control::WafConfig;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn reads_yaml_and_json_by_kind_and_by_folder() {
        let folder = folder(&[
            (
                "waf-configs/main.yaml",
                "name: Main\nrules:\n  - |\n    SecRuleEngine On\n  - '@import_preset crs'\ncrs: {paranoia_level: 2}\n",
            ),
            ("policy.json", r#"{"kind": "threat-policy", "id": "p", "tiers": [{"min_score": 40}]}"#),
            (
                "deep/er/shop.yml",
                "kind: routes\nhosts: [shop.example]\nplugins:\n- {plugin: SvcWaf, plugin_index: 1, config: {ref: main}}\n",
            ),
            ("global-config/any.yaml", "gateway: {port: 8080}\n"),
            ("notes.txt", "not an entity"),
            ("old/LOUD.YAML", "]["),
            ("Old.Json", "]["),
            (".hidden.yaml", "]["),
        ]);
        let set = EntitySet::from_dir(folder.path()).unwrap();
        assert_eq!(set.get::<WafConfig>("main").unwrap().rules, ["SecRuleEngine On\n", "@import_preset crs"]);
        assert_eq!(set.get::<ThreatPolicy>("p").unwrap().tiers.len(), 1);
        let loud = ["Old.Json", "old/LOUD.YAML"].map(|name| folder.path().join(name));
        assert_eq!(FileEntity::passed_over(folder.path()), loud);
        assert_eq!(FileEntity::passed_over(&folder.path().join("gone")), Vec::<PathBuf>::new());
        let routes: Vec<_> = set.all::<Route>().map(|route| route.envoy_route_name(&route.head)).collect();
        assert_eq!(routes, ["shop"]);
        assert_eq!(set.global().gateway.port, 8080);
        assert_eq!(set.revision(), 0);
    }

    #[test]
    fn problems_name_file_and_field() {
        let folder = folder(&[
            ("waf-configs/a.yaml", "enabled: maybe\n"),
            ("waf-configs/b.yaml", "rulesets: [gone]\n"),
            ("waf-configs/c.json", "{\n  \"rules\": [\n}"),
            ("waf-configs/d.yaml", "id: b\n"),
            ("waf-configs/e.yaml", "rules: [\n"),
            ("x.yaml", "kind: waf-confg\n"),
            ("y.yaml", "{}\n"),
        ]);
        let problems = EntitySet::from_dir(folder.path()).unwrap_err();
        let texts: Vec<_> = problems
            .iter()
            .map(|problem| problem.to_string().replace(&format!("{}/", folder.path().display()), ""))
            .collect();
        let begins =
            |start: &str| assert!(texts.iter().any(|text| text.starts_with(start)), "{start} not in {texts:#?}");
        begins("waf-configs/a.yaml: /enabled: invalid type: string \"maybe\" (expected a boolean)");
        begins("waf-configs/b.yaml: /rulesets/0: there is no entity `gone` in waf-rulesets");
        begins("waf-configs/c.json: not JSON: expected value at line 3 column 1");
        begins("waf-configs/d.yaml: /id: the id `b` of waf-configs is taken by ");
        begins("waf-configs/e.yaml: not YAML: ");
        begins("x.yaml: /kind: ");
        begins("y.yaml: /kind: ");
        assert_eq!(texts.len(), 7, "{texts:#?}");
    }
}
