//! Expands macros.

use super::arena::Value;
use super::build::Engine;
use super::limits::EXPANSION_LENGTH;
use super::rules::{KeySelector, Macro, MacroPiece};
use super::transaction::{Transaction, UNSET};
use crate::vocabulary::Variable;

impl Transaction {
    /// The text of a macro.
    pub(super) fn expanded(&mut self, engine: &Engine, text: &Macro) -> Vec<u8> {
        let mut out = Vec::new();
        self.expand(engine, text, &mut out);
        out
    }

    /// Appends the text of a macro to an empty buffer; `false` if it is cut at [`EXPANSION_LENGTH`].
    pub(super) fn expand(&mut self, engine: &Engine, text: &Macro, out: &mut Vec<u8>) -> bool {
        let mut whole = true;
        for piece in &text.0 {
            let value = match piece {
                MacroPiece::Text(text) => {
                    out.extend_from_slice(text);
                    continue;
                }
                MacroPiece::Slot(slot) => self.tx.get(*slot),
                MacroPiece::Value(variable, key) => self.first_value(engine, *variable, key.as_deref()),
                MacroPiece::Selected(variable, key) => self.first_selected(engine, *variable, key),
            };
            let bytes = value.map(|value| self.arena.get(value)).unwrap_or_default();
            let room = EXPANSION_LENGTH.saturating_sub(out.len());
            whole &= bytes.len() <= room;
            out.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
        self.arena.budget.charge_copy(out.len());
        whole
    }

    /// The first value of a variable, or of a name of it.
    pub(super) fn first_value(&mut self, engine: &Engine, variable: Variable, key: Option<&[u8]>) -> Option<Value> {
        let key = match (variable, key) {
            (_, None) => KeySelector::All,
            (Variable::Tx, Some(name)) => match engine.names.slot(name) {
                Some(slot) => KeySelector::Slot(slot),
                None => KeySelector::Name(name.into()),
            },
            (_, Some(name)) => KeySelector::Name(name.into()),
        };
        self.first_selected(engine, variable, &key)
    }

    fn first_selected(&mut self, engine: &Engine, variable: Variable, key: &KeySelector) -> Option<Value> {
        // `%{RULE.logdata}` within logdata would never end.
        if variable == Variable::Rule && self.in_rule_fields {
            return None;
        }
        self.in_rule_fields = variable == Variable::Rule;
        let mut items = Vec::new();
        self.collect_values(engine, variable, key, &mut items);
        self.in_rule_fields = false;
        items.first().map(|item| item.value).filter(|value| *value != UNSET)
    }
}
