//! Roles: what an operator may do in the console.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an operator may do. Each role may do what the ones before it may; the console says which of its endpoints needs which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Read everything but secrets.
    Viewer,
    /// Also decide on incidents and bans, and try changes out.
    Analyst,
    /// Also change entities, operators and admin keys.
    Admin,
}

/// A word that names no role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleError(String);

// === impl Role ===

impl Role {
    /// All roles, the least first.
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Analyst, Role::Admin];

    /// The word for it on the command line, in the API and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Analyst => "analyst",
            Role::Admin => "admin",
        }
    }

    /// Reads [`Role::as_str`] from the store. A word of a newer release is the least role, which only takes rights away.
    #[must_use]
    pub fn from_store(word: &str) -> Role {
        word.parse().unwrap_or(Role::Viewer)
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(word: &str) -> Result<Role, RoleError> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| RoleError(word.to_owned()))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl RoleError ===

impl fmt::Display for RoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a role: use viewer, analyst or admin", self.0.escape_debug())
    }
}

impl std::error::Error for RoleError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_includes_those_before_it_and_an_unknown_one_is_the_least() {
        assert!(Role::ALL.is_sorted());
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
            assert_eq!(Role::from_store(role.as_str()), role);
        }
        assert_eq!(Role::from_store("owner"), Role::Viewer);
        assert!("Admin".parse::<Role>().is_err());
    }
}
