//! The threat gate: refuses callers under a standing ban before anything is parsed
