//! Who has access to the control plane: admin keys with their scopes, and the operators of the console with their passwords
//! and sessions. The store keeps them.

mod admin_key;
mod operator;
mod password;
mod session;

pub use admin_key::{AdminKey, IssuedKey, Refusal, Scope, ScopeError};
pub use operator::{InvalidOperator, Operator, normal_name};
pub use password::{
    Checked, HashFailed, MAX_PASSWORD_BYTES, MIN_PASSWORD_CHARS, Passwords, hash_password, password_problem,
};
pub use session::{Session, SessionLimits};
