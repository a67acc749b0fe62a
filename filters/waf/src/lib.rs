//! The WAF plugin: runs a compiled SecLang rule set over a request and its response
