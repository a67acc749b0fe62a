//! The node link: `/palisade.v1.NodeLink/Stream`, by which workers report, ask, and are told of bans.
//!
//! `node_link.proto` beside this file describes the messages for people and other languages; the Rust ones are in the
//! crate `snapshot`, because filters use them too.

mod answers;
mod bodies;
mod challenges;
mod counts;
mod hub;
mod pace;
mod reports;
mod server;
mod service;
mod tables;

pub use self::counts::{start_counts, sweep_counts};
pub use answers::{AnswerLimits, Answerer, Answering, Answers, BodyAnswerer, EncodedAnswer, EncodedBodyAnswer};
pub use bodies::{BodyLost, QuestionBody};
pub use hub::LinkHub;
pub use reports::{ReportKinds, ReportReceiver, Reports};
pub use server::{NodePort, serve, serve_with};
pub use service::{NodeLinkServer, service};
