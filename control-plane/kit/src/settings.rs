//! Settings that a plugin has for all gateways, in `security` of `global-config`.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{FieldProblem, parse};

/// The settings of one plugin: an object of `security` that refuses unknown fields and has a default for each. They lie in the
/// plugin's folder; the comments of their fields are the descriptions that people read.
pub trait Settings:
    Serialize + DeserializeOwned + JsonSchema + Default + Clone + PartialEq + Debug + Send + Sync + 'static
{
    /// The field of `security`.
    const FIELD: &'static str;

    /// What is wrong with them; pointers are relative to them.
    fn check(&self) -> Vec<FieldProblem>;
}

/// [`Settings`] whose type is not known.
pub trait AnySettings: Any + Debug + Send + Sync {
    /// The whole object.
    fn shown(&self) -> Value;
    /// See [`Settings::check`].
    fn check(&self) -> Vec<FieldProblem>;
    /// Nothing of them was changed.
    fn is_default(&self) -> bool;
    /// For the way back to the type.
    fn as_any(&self) -> &dyn Any;
}

/// The settings of a plugin, their type forgotten.
#[derive(Debug, Clone, Copy)]
pub struct SettingsKind {
    /// The field of `security`.
    pub field: &'static str,
    /// The description of the field.
    pub description: &'static str,
    /// The part of the suite that this release lacks, so that nothing reads them.
    pub lacking: Option<&'static str>,
    default: fn() -> Arc<dyn AnySettings>,
    read: fn(Value) -> Result<Arc<dyn AnySettings>, serde_json::Error>,
    schema: fn(&mut SchemaGenerator) -> Schema,
}

/// The settings of all plugins, by their fields.
#[derive(Debug, Clone, Default)]
pub struct PluginSettings(BTreeMap<&'static str, Arc<dyn AnySettings>>);

// === impl SettingsKind ===

impl SettingsKind {
    /// The settings of a type.
    #[must_use]
    pub const fn of<T: Settings>(description: &'static str) -> SettingsKind {
        SettingsKind {
            field: T::FIELD,
            description,
            lacking: None,
            default: || Arc::new(T::default()),
            read: |value| Ok(Arc::new(parse::nested::<T, serde_json::Error>(T::FIELD, value)?)),
            schema: |generator| generator.subschema_for::<T>(),
        }
    }

    /// The same where nothing reads them yet; the part of the suite that they are for.
    #[must_use]
    pub const fn without(self, part: &'static str) -> SettingsKind {
        SettingsKind { lacking: Some(part), ..self }
    }

    /// The defaults.
    #[must_use]
    pub fn defaults(&self) -> Arc<dyn AnySettings> {
        (self.default)()
    }

    /// Reads the object.
    ///
    /// # Errors
    /// It is not what the type has; within [`typed`](crate::typed) the problem names the field.
    pub fn read(&self, value: Value) -> Result<Arc<dyn AnySettings>, serde_json::Error> {
        (self.read)(value)
    }

    /// The schema of the object.
    pub fn schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.schema)(generator)
    }
}

// === impl AnySettings ===

impl<T: Settings> AnySettings for T {
    fn shown(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn check(&self) -> Vec<FieldProblem> {
        Settings::check(self)
    }

    fn is_default(&self) -> bool {
        *self == T::default()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

// === impl PluginSettings ===

impl PluginSettings {
    /// Puts the settings of one plugin in the place of those there.
    pub fn insert(&mut self, field: &'static str, settings: Arc<dyn AnySettings>) {
        self.0.insert(field, settings);
    }

    /// The settings in a field.
    #[must_use]
    pub fn field(&self, field: &str) -> Option<&dyn AnySettings> {
        self.0.get(field).map(|settings| &**settings)
    }

    /// The settings of a type; without any, its defaults.
    #[must_use]
    pub fn get<T: Settings>(&self) -> T {
        self.field(T::FIELD).and_then(|settings| settings.as_any().downcast_ref::<T>()).cloned().unwrap_or_default()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &dyn AnySettings)> {
        self.0.iter().map(|(field, settings)| (*field, &**settings))
    }
}

impl PartialEq for PluginSettings {
    fn eq(&self, other: &PluginSettings) -> bool {
        self.0.len() == other.0.len()
            && self.iter().zip(other.iter()).all(|(one, two)| one.0 == two.0 && one.1.shown() == two.1.shown())
    }
}
