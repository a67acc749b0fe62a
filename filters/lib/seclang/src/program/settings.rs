//! What the configuration directives set.

use super::wire;

/// `SecRuleEngine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineMode {
    /// Rules run, and may block.
    On,
    /// Rules run; what they would block goes through.
    DetectionOnly,
    /// No rule runs. The default, as in ModSecurity.
    #[default]
    Off,
}

/// What happens to a body longer than its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitAction {
    /// The transaction is refused with 413.
    Reject,
    /// What fits is inspected.
    #[default]
    ProcessPartial,
}

/// `SecParseXmlIntoArgs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum XmlArguments {
    /// XML bodies are seen by XML alone.
    #[default]
    Off,
    /// The text of each element is an argument too.
    On,
    /// The text of each element is an argument; XML is empty.
    Only,
}

/// What the configuration directives set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// `SecRuleEngine`. Default off.
    pub mode: EngineMode,
    /// `SecRequestBodyAccess`. Default true: as in ModSecurity v3, a body is inspected unless that is switched off.
    pub request_body_access: bool,
    /// `SecResponseBodyAccess`. Default false.
    pub response_body_access: bool,
    /// `SecRequestBodyLimit`, bytes. Default 134217728 (128 MiB).
    pub request_body_limit: u64,
    /// `SecRequestBodyLimitAction`. Default partial.
    pub request_body_limit_action: LimitAction,
    /// `SecResponseBodyLimit`, bytes. Default 524288.
    pub response_body_limit: u64,
    /// `SecResponseBodyLimitAction`. Default partial.
    pub response_body_limit_action: LimitAction,
    /// `SecResponseBodyMimeType`: media types in lower case; `text/*` stands for a family. Default text/plain,
    /// text/html.
    pub response_mime_types: Vec<Vec<u8>>,
    /// `SecArgumentSeparator`. Default `&`.
    pub argument_separator: u8,
    /// `SecArgumentsLimit`: arguments inspected, of query and body together. Default 1000.
    pub arguments_limit: u32,
    /// `SecRequestBodyJsonDepthLimit`. Default 512.
    pub json_depth_limit: u32,
    /// `SecUploadFileLimit`: files per body. Default 100.
    pub upload_file_limit: u32,
    /// `SecComponentSignature`: what the rule sets call themselves, separated by commas.
    pub component_signature: String,
    /// `SecWebAppId`. Default `default`.
    pub web_app_id: Vec<u8>,
    /// `SecCollectionTimeout`: how many seconds a record of a persistent collection lives after it was last written.
    /// Default 3600.
    pub collection_timeout: u32,
    /// `SecRequestBodyNoFilesLimit`: bytes of a request body without its files; 0 for no limit. Default 0.
    pub request_body_no_files_limit: u64,
    /// `SecParseXmlIntoArgs`. Default off.
    pub xml_arguments: XmlArguments,
    /// The prefixes that `xmlns` declares, each with its namespace.
    pub namespaces: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: EngineMode::Off,
            request_body_access: true,
            response_body_access: false,
            request_body_limit: 134_217_728,
            request_body_limit_action: LimitAction::ProcessPartial,
            response_body_limit: 524_288,
            response_body_limit_action: LimitAction::ProcessPartial,
            response_mime_types: vec![b"text/plain".to_vec(), b"text/html".to_vec()],
            argument_separator: b'&',
            arguments_limit: 1000,
            json_depth_limit: 512,
            upload_file_limit: 100,
            component_signature: String::new(),
            web_app_id: b"default".to_vec(),
            collection_timeout: COLLECTION_TIMEOUT,
            request_body_no_files_limit: 0,
            xml_arguments: XmlArguments::Off,
            namespaces: Vec::new(),
        }
    }
}

/// `SecCollectionTimeout` where there is none, seconds.
const COLLECTION_TIMEOUT: u32 = 3600;

impl XmlArguments {
    /// `On`, `Off` or `OnlyArgs`, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            "onlyargs" => Some(Self::Only),
            _ => None,
        }
    }

    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    pub(crate) fn from_code(code: u32) -> Self {
        match code {
            1 => Self::On,
            2 => Self::Only,
            _ => Self::Off,
        }
    }
}

impl EngineMode {
    /// `On`, `Off` or `DetectionOnly`, in any case.
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            "detectiononly" => Some(Self::DetectionOnly),
            _ => None,
        }
    }

    pub(crate) fn code(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::DetectionOnly => 1,
            Self::On => 2,
        }
    }

    pub(crate) fn from_code(code: u32) -> Self {
        match code {
            2 => Self::On,
            1 => Self::DetectionOnly,
            _ => Self::Off,
        }
    }
}

impl Settings {
    /// Whether a response of this media type (a `Content-Type` header, with or without parameters) is inspected.
    pub fn inspects_media_type(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|&byte| byte == b';').unwrap_or(content_type.len());
        let wanted = content_type.get(..end).unwrap_or_default().trim_ascii();
        self.response_mime_types.iter().any(|known| match known.strip_suffix(b"*") {
            Some(family) => wanted.get(..family.len()).is_some_and(|head| head.eq_ignore_ascii_case(family)),
            None => wanted.eq_ignore_ascii_case(known) || (wanted.is_empty() && known == b"(null)"),
        })
    }

    pub(crate) fn to_wire(&self) -> wire::Settings {
        wire::Settings {
            mode: self.mode.code(),
            request_body_access: self.request_body_access,
            response_body_access: self.response_body_access,
            request_body_limit: self.request_body_limit,
            request_body_reject: self.request_body_limit_action == LimitAction::Reject,
            response_body_limit: self.response_body_limit,
            response_body_reject: self.response_body_limit_action == LimitAction::Reject,
            response_mime_types: self.response_mime_types.clone(),
            argument_separator: u32::from(self.argument_separator),
            arguments_limit: self.arguments_limit,
            json_depth_limit: self.json_depth_limit,
            component_signature: self.component_signature.clone(),
            upload_file_limit: self.upload_file_limit,
            web_app_id: self.web_app_id.clone(),
            collection_timeout: self.collection_timeout,
            request_body_no_files_limit: self.request_body_no_files_limit,
            xml_arguments: self.xml_arguments.code(),
            namespaces: self.namespaces.iter().flat_map(|(prefix, url)| [prefix.clone(), url.clone()]).collect(),
        }
    }

    pub(crate) fn from_wire(wire: &wire::Settings) -> Self {
        let action = |reject| match reject {
            true => LimitAction::Reject,
            false => LimitAction::ProcessPartial,
        };
        Self {
            mode: EngineMode::from_code(wire.mode),
            request_body_access: wire.request_body_access,
            response_body_access: wire.response_body_access,
            request_body_limit: wire.request_body_limit,
            request_body_limit_action: action(wire.request_body_reject),
            response_body_limit: wire.response_body_limit,
            response_body_limit_action: action(wire.response_body_reject),
            response_mime_types: wire.response_mime_types.clone(),
            argument_separator: u8::try_from(wire.argument_separator).unwrap_or(b'&'),
            arguments_limit: wire.arguments_limit,
            json_depth_limit: wire.json_depth_limit,
            component_signature: wire.component_signature.clone(),
            upload_file_limit: wire.upload_file_limit,
            web_app_id: wire.web_app_id.clone(),
            collection_timeout: match wire.collection_timeout {
                0 => COLLECTION_TIMEOUT,
                seconds => seconds,
            },
            request_body_no_files_limit: wire.request_body_no_files_limit,
            xml_arguments: XmlArguments::from_code(wire.xml_arguments),
            namespaces: wire.namespaces.as_chunks::<2>().0.iter().cloned().map(<(Vec<u8>, Vec<u8>)>::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_what_they_say() {
        let settings = Settings::default();
        assert_eq!(settings.mode, EngineMode::Off);
        assert_eq!((settings.request_body_limit, settings.response_body_limit), (134_217_728, 524_288));
        assert_eq!((settings.arguments_limit, settings.json_depth_limit, settings.upload_file_limit), (1000, 512, 100));
        assert_eq!(Settings::from_wire(&settings.to_wire()), settings);
    }

    #[test]
    fn compares_media_types() {
        let settings = Settings {
            response_mime_types: vec![b"text/*".to_vec(), b"application/json".to_vec()],
            ..Settings::default()
        };
        assert!(settings.inspects_media_type(b"Text/HTML; charset=utf-8"));
        assert!(settings.inspects_media_type(b"application/json"));
        assert!(!settings.inspects_media_type(b"image/png"));
        assert!(!settings.inspects_media_type(b""));
    }
}
