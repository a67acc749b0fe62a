//! The threat response: reads the score and acts on it
