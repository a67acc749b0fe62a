//! What is known of a plugin.

/// What entities say of one plugin.
#[derive(Debug)]
pub struct Plugin {
    /// The name that filters know it by.
    pub name: &'static str,
    /// Its name in sentences.
    pub title: &'static str,
    /// The other names by which routes and the global chain may call it; the first is the one that messages show.
    pub classes: &'static [&'static str],
    /// The collections that no other part of the suite uses.
    pub collections: &'static [&'static str],
    /// The fields of its configuration that name an entity, or a list of them, with the collection.
    pub references: &'static [(&'static str, &'static str)],
    /// Its fields in the configuration of a preset.
    pub preset: Section,
    /// The categories of events that no other plugin reports.
    pub categories: &'static [&'static str],
}

/// The fields of one plugin in the configuration of a preset.
#[derive(Debug)]
pub struct Section {
    /// The field that switches it on and off.
    pub switch: Option<&'static str>,
    /// The other fields.
    pub fields: &'static [&'static str],
    /// Those of them that name an entity, with the collection.
    pub references: &'static [(&'static str, &'static str)],
}

// === impl Plugin ===

impl Plugin {
    /// What most plugins leave out.
    pub(super) const NONE: Plugin = Plugin {
        name: "",
        title: "",
        classes: &[],
        collections: &[],
        references: &[],
        preset: Section::NONE,
        categories: &[],
    };

    /// Whether this release has it.
    #[must_use]
    pub fn is_active(&self) -> bool {
        preset::REGISTRY.iter().any(|registered| registered.name == self.name)
    }

    /// The name that messages show.
    #[must_use]
    pub fn class(&self) -> &'static str {
        self.classes.first().copied().unwrap_or(self.name)
    }
}

// === impl Section ===

impl Section {
    pub(super) const NONE: Section = Section { switch: None, fields: &[], references: &[] };

    /// All fields, the switch first.
    pub fn all(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.switch.into_iter().chain(self.fields.iter().copied())
    }

    /// Whether a field is one of them.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.all().any(|own| own == field)
    }
}
