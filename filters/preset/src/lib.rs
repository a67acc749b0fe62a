//! The composite: the registry of all plugins, and the expansion of a preset configuration
