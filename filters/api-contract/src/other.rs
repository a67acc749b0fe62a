//! Requests that name another method beside their own.

use std::borrow::Cow;

use contract::{BodyCheck, Contract, Forms, Found, Head, Matched, Mismatch, Violation};
use exchange::{Exchange, Host, Request};

use crate::{ApiContract, content_length, joined};

impl ApiContract {
    pub(crate) fn head<'r>(&self, request: &'r Request, header: &'r dyn Fn(&str) -> Option<Cow<'r, [u8]>>) -> Head<'r> {
        Head { query: request.query(), header, reject_unknown: self.step.reject_unknown_query_params }
    }

    /// What is wrong with a request as one of other operations of its path, and the schemas that its body has to match then.
    pub(crate) fn as_others(
        &self,
        contract: &Contract,
        (matched, others): (&Matched<'_>, &[u32]),
        request: &Request,
        has_body: bool,
    ) -> (Vec<Violation>, Vec<u32>) {
        let header = |name: &str| joined(&request.headers, name);
        let (mut found, mut schemas) = (Vec::new(), Vec::new());
        for operation in others {
            found.extend(contract.check_parameters(&matched.of(*operation), &self.head(request, &header)));
            match contract.request_body(*operation, header("content-type").as_deref(), has_body) {
                BodyCheck::Json(schema) | BodyCheck::Required(Some(schema)) => schemas.push(schema),
                BodyCheck::Wrong(violation) => found.push(violation),
                BodyCheck::Required(None) | BodyCheck::None => {}
            }
        }
        (found, schemas)
    }

    /// What the body names beside the method of the request: the methods of the path, if it does not have that one; and what is wrong with
    /// the request as one of other operations, `also` the schemas of those that the head names.
    pub(crate) fn named_in_body(
        &self,
        contract: &Contract,
        (operation, forms, also): (u32, Forms, Vec<u32>),
        bytes: &[u8],
        exchange: &Exchange,
        host: &dyn Host,
    ) -> (Option<String>, Vec<Violation>) {
        let request = &exchange.request;
        let others = contract.named_in_body(operation, request.path_only(), forms, bytes);
        let (mut found, mut schemas) = (Vec::new(), also);
        if !others.operations.is_empty()
            && let Found::Operation(matched) = contract.find(&request.method, request.path_only(), false)
        {
            let (wrong, more) = self.as_others(contract, (&matched, &others.operations), request, true);
            found.extend(wrong);
            schemas.extend(more);
        }
        found.extend(schemas.iter().flat_map(|schema| self.judge(contract, *schema, bytes, false, host)));
        (others.allow, found)
    }
}

/// Whether a request is a preflight of CORS without a body. A body without a length may turn out to be empty.
pub(crate) fn is_preflight(request: &Request, has_body: bool) -> bool {
    let length = content_length(&request.headers);
    let is_open = !request.streaming && length.is_none_or(|length| length == 0);
    (!has_body || is_open) && contract::is_preflight(&request.method, |name| request.headers.get(name).is_some())
}

/// Whether a body of these forms is read as a whole for the method that it may name. A longer upload or JSON that the operation declares
/// is read as far as the limit goes, and so is what only says that it is a form, where the operation declares a range (`*/*`).
pub(crate) fn is_read_whole(contract: &Contract, operation: u32, forms: Forms) -> bool {
    let is_declared_form = forms.typed_pairs() && contract.declares_form(operation);
    !forms.is_none() && (is_declared_form || !contract.declares_body(operation))
}

pub(crate) fn other_method(allow: &str) -> Violation {
    let detail = format!("the request names another one beside it: expected one of {allow}");
    Violation::new(Mismatch::MethodNotAllowed, "method", detail)
}
