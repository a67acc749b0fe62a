//! Variables: what rules look at.

/// Whether a variable has one value or one per key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One value; no key selects from it.
    Scalar,
    /// Any number of names and values.
    Collection,
}

macro_rules! variables {
    ($($(#[$doc:meta])+ $variant:ident = $code:literal, $shape:ident, $name:literal;)+) => {
        /// A variable of SecLang.
        ///
        /// The code of each ([`Variable::code`]) is part of the compiled rule set's format: it never changes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Variable {
            $($(#[$doc])+ $variant = $code,)+
        }

        const ALL: &[(Variable, Shape, &str)] = &[$((Variable::$variant, Shape::$shape, $name),)+];
    };
}

variables! {
    /// `ARGS`: query and body arguments.
    Args = 0, Collection, "ARGS";
    /// `ARGS_NAMES`: names of query and body arguments.
    ArgsNames = 1, Collection, "ARGS_NAMES";
    /// `ARGS_GET`: query arguments.
    ArgsGet = 2, Collection, "ARGS_GET";
    /// `ARGS_GET_NAMES`: names of query arguments.
    ArgsGetNames = 3, Collection, "ARGS_GET_NAMES";
    /// `ARGS_POST`: body arguments.
    ArgsPost = 4, Collection, "ARGS_POST";
    /// `ARGS_POST_NAMES`: names of body arguments.
    ArgsPostNames = 5, Collection, "ARGS_POST_NAMES";
    /// `ARGS_COMBINED_SIZE`: bytes of all names and values of arguments.
    ArgsCombinedSize = 6, Scalar, "ARGS_COMBINED_SIZE";
    /// `AUTH_TYPE`: scheme of the Authorization header.
    AuthType = 7, Scalar, "AUTH_TYPE";
    /// `DURATION`: milliseconds since the transaction began.
    Duration = 8, Scalar, "DURATION";
    /// `ENV`: what `setenv` set: the process environment is not exposed.
    Env = 9, Collection, "ENV";
    /// `FILES`: file names of uploads, by field.
    Files = 10, Collection, "FILES";
    /// `FILES_COMBINED_SIZE`: bytes of all uploads.
    FilesCombinedSize = 11, Scalar, "FILES_COMBINED_SIZE";
    /// `FILES_NAMES`: field names of uploads.
    FilesNames = 12, Collection, "FILES_NAMES";
    /// `FILES_SIZES`: bytes of each upload, by field.
    FilesSizes = 13, Collection, "FILES_SIZES";
    /// `FILES_TMPNAMES`: always empty: uploads are not written to files.
    FilesTmpNames = 14, Collection, "FILES_TMPNAMES";
    /// `FILES_TMP_CONTENT`: content of each upload, by field.
    FilesTmpContent = 15, Collection, "FILES_TMP_CONTENT";
    /// `FULL_REQUEST`: header lines and body of the request.
    FullRequest = 16, Scalar, "FULL_REQUEST";
    /// `FULL_REQUEST_LENGTH`: bytes of FULL_REQUEST.
    FullRequestLength = 17, Scalar, "FULL_REQUEST_LENGTH";
    /// `GEO`: where the address is that `@geoLookup` found last.
    Geo = 18, Collection, "GEO";
    /// `GLOBAL`: persistent collection of the whole service.
    Global = 19, Collection, "GLOBAL";
    /// `HIGHEST_SEVERITY`: gravest severity that matched; 255 if none did.
    HighestSeverity = 20, Scalar, "HIGHEST_SEVERITY";
    /// `INBOUND_DATA_ERROR`: 1 if the request body is longer than what is inspected.
    InboundDataError = 21, Scalar, "INBOUND_DATA_ERROR";
    /// `IP`: persistent collection of a client address.
    Ip = 22, Collection, "IP";
    /// `MATCHED_VAR`: value that matched last.
    MatchedVar = 23, Scalar, "MATCHED_VAR";
    /// `MATCHED_VAR_NAME`: full name of what matched last.
    MatchedVarName = 24, Scalar, "MATCHED_VAR_NAME";
    /// `MATCHED_VARS`: values that matched in this chain.
    MatchedVars = 25, Collection, "MATCHED_VARS";
    /// `MATCHED_VARS_NAMES`: full names of what matched in this chain.
    MatchedVarsNames = 26, Collection, "MATCHED_VARS_NAMES";
    /// `MODSEC_BUILD`: version of the rule engine this one is compatible with.
    ModsecBuild = 27, Scalar, "MODSEC_BUILD";
    /// `MSC_PCRE_ERROR`: 1 if a pattern could not be run.
    MscPcreError = 28, Scalar, "MSC_PCRE_ERROR";
    /// `MSC_PCRE_LIMITS_EXCEEDED`: 1 if a pattern met its limit.
    MscPcreLimitsExceeded = 29, Scalar, "MSC_PCRE_LIMITS_EXCEEDED";
    /// `MULTIPART_BOUNDARY_QUOTED`: 1 if the boundary is quoted.
    MultipartBoundaryQuoted = 30, Scalar, "MULTIPART_BOUNDARY_QUOTED";
    /// `MULTIPART_BOUNDARY_WHITESPACE`: 1 if the boundary holds white space.
    MultipartBoundaryWhitespace = 31, Scalar, "MULTIPART_BOUNDARY_WHITESPACE";
    /// `MULTIPART_CRLF_LF_LINES`: 1 if both line ends occur.
    MultipartCrlfLfLines = 32, Scalar, "MULTIPART_CRLF_LF_LINES";
    /// `MULTIPART_DATA_AFTER`: 1 if data follows the last boundary.
    MultipartDataAfter = 33, Scalar, "MULTIPART_DATA_AFTER";
    /// `MULTIPART_DATA_BEFORE`: 1 if data precedes the first boundary.
    MultipartDataBefore = 34, Scalar, "MULTIPART_DATA_BEFORE";
    /// `MULTIPART_FILE_LIMIT_EXCEEDED`: 1 if there are too many files.
    MultipartFileLimitExceeded = 35, Scalar, "MULTIPART_FILE_LIMIT_EXCEEDED";
    /// `MULTIPART_FILENAME`: file names as the parts state them, by field.
    MultipartFilename = 36, Collection, "MULTIPART_FILENAME";
    /// `MULTIPART_HEADER_FOLDING`: 1 if a part's header is folded.
    MultipartHeaderFolding = 37, Scalar, "MULTIPART_HEADER_FOLDING";
    /// `MULTIPART_INVALID_HEADER_FOLDING`: 1 if a part's header is folded wrongly.
    MultipartInvalidHeaderFolding = 38, Scalar, "MULTIPART_INVALID_HEADER_FOLDING";
    /// `MULTIPART_INVALID_PART`: 1 if a part is malformed.
    MultipartInvalidPart = 39, Scalar, "MULTIPART_INVALID_PART";
    /// `MULTIPART_INVALID_QUOTING`: 1 if quoting is malformed.
    MultipartInvalidQuoting = 40, Scalar, "MULTIPART_INVALID_QUOTING";
    /// `MULTIPART_LF_LINE`: 1 if a line ends in a line feed alone.
    MultipartLfLine = 41, Scalar, "MULTIPART_LF_LINE";
    /// `MULTIPART_MISSING_SEMICOLON`: 1 if the Content-Type lacks a semicolon.
    MultipartMissingSemicolon = 42, Scalar, "MULTIPART_MISSING_SEMICOLON";
    /// `MULTIPART_NAME`: field names as the parts state them.
    MultipartName = 43, Collection, "MULTIPART_NAME";
    /// `MULTIPART_PART_HEADERS`: header lines of each part, by field.
    MultipartPartHeaders = 44, Collection, "MULTIPART_PART_HEADERS";
    /// `MULTIPART_STRICT_ERROR`: 1 if any of the strict checks failed.
    MultipartStrictError = 45, Scalar, "MULTIPART_STRICT_ERROR";
    /// `MULTIPART_UNMATCHED_BOUNDARY`: 1 or 2 if a line looks like another boundary.
    MultipartUnmatchedBoundary = 46, Scalar, "MULTIPART_UNMATCHED_BOUNDARY";
    /// `OUTBOUND_DATA_ERROR`: 1 if the response body is longer than what is inspected.
    OutboundDataError = 47, Scalar, "OUTBOUND_DATA_ERROR";
    /// `PATH_INFO`: path of the request, decoded.
    PathInfo = 48, Scalar, "PATH_INFO";
    /// `QUERY_STRING`: query string, raw.
    QueryString = 49, Scalar, "QUERY_STRING";
    /// `REMOTE_ADDR`: address of the client.
    RemoteAddr = 50, Scalar, "REMOTE_ADDR";
    /// `REMOTE_HOST`: address of the client: names are not looked up.
    RemoteHost = 51, Scalar, "REMOTE_HOST";
    /// `REMOTE_PORT`: port of the client.
    RemotePort = 52, Scalar, "REMOTE_PORT";
    /// `REMOTE_USER`: user of the Authorization header's Basic credentials.
    RemoteUser = 53, Scalar, "REMOTE_USER";
    /// `REQBODY_ERROR`: 1 if the body could not be parsed.
    ReqbodyError = 54, Scalar, "REQBODY_ERROR";
    /// `REQBODY_ERROR_MSG`: why the body could not be parsed.
    ReqbodyErrorMsg = 55, Scalar, "REQBODY_ERROR_MSG";
    /// `REQBODY_PROCESSOR`: URLENCODED, MULTIPART, JSON, XML or nothing.
    ReqbodyProcessor = 56, Scalar, "REQBODY_PROCESSOR";
    /// `REQBODY_PROCESSOR_ERROR`: 1 if the body processor failed.
    ReqbodyProcessorError = 57, Scalar, "REQBODY_PROCESSOR_ERROR";
    /// `REQBODY_PROCESSOR_ERROR_MSG`: why the body processor failed.
    ReqbodyProcessorErrorMsg = 58, Scalar, "REQBODY_PROCESSOR_ERROR_MSG";
    /// `REQUEST_BASENAME`: last segment of the path.
    RequestBasename = 59, Scalar, "REQUEST_BASENAME";
    /// `REQUEST_BODY`: body of the request.
    RequestBody = 60, Scalar, "REQUEST_BODY";
    /// `REQUEST_BODY_LENGTH`: bytes of the body.
    RequestBodyLength = 61, Scalar, "REQUEST_BODY_LENGTH";
    /// `REQUEST_COOKIES`: cookies of the request.
    RequestCookies = 62, Collection, "REQUEST_COOKIES";
    /// `REQUEST_COOKIES_NAMES`: names of the cookies.
    RequestCookiesNames = 63, Collection, "REQUEST_COOKIES_NAMES";
    /// `REQUEST_FILENAME`: path of the request, decoded.
    RequestFilename = 64, Scalar, "REQUEST_FILENAME";
    /// `REQUEST_HEADERS`: headers of the request.
    RequestHeaders = 65, Collection, "REQUEST_HEADERS";
    /// `REQUEST_HEADERS_NAMES`: names of the headers.
    RequestHeadersNames = 66, Collection, "REQUEST_HEADERS_NAMES";
    /// `REQUEST_LINE`: request line.
    RequestLine = 67, Scalar, "REQUEST_LINE";
    /// `REQUEST_METHOD`: method.
    RequestMethod = 68, Scalar, "REQUEST_METHOD";
    /// `REQUEST_PROTOCOL`: protocol, as HTTP/1.1.
    RequestProtocol = 69, Scalar, "REQUEST_PROTOCOL";
    /// `REQUEST_URI`: path and query, decoded, without scheme and host.
    RequestUri = 70, Scalar, "REQUEST_URI";
    /// `REQUEST_URI_RAW`: target as received.
    RequestUriRaw = 71, Scalar, "REQUEST_URI_RAW";
    /// `RESOURCE`: persistent collection of a resource.
    Resource = 72, Collection, "RESOURCE";
    /// `RESPONSE_BODY`: body of the response.
    ResponseBody = 73, Scalar, "RESPONSE_BODY";
    /// `RESPONSE_CONTENT_LENGTH`: bytes of the response body.
    ResponseContentLength = 74, Scalar, "RESPONSE_CONTENT_LENGTH";
    /// `RESPONSE_CONTENT_TYPE`: media type of the response, without parameters.
    ResponseContentType = 75, Scalar, "RESPONSE_CONTENT_TYPE";
    /// `RESPONSE_HEADERS`: headers of the response.
    ResponseHeaders = 76, Collection, "RESPONSE_HEADERS";
    /// `RESPONSE_HEADERS_NAMES`: names of the response headers.
    ResponseHeadersNames = 77, Collection, "RESPONSE_HEADERS_NAMES";
    /// `RESPONSE_PROTOCOL`: protocol of the response.
    ResponseProtocol = 78, Scalar, "RESPONSE_PROTOCOL";
    /// `RESPONSE_STATUS`: status of the response.
    ResponseStatus = 79, Scalar, "RESPONSE_STATUS";
    /// `RULE`: id, msg, severity, rev, ver and logdata of the rule that runs.
    Rule = 80, Collection, "RULE";
    /// `SERVER_ADDR`: address the request came to.
    ServerAddr = 81, Scalar, "SERVER_ADDR";
    /// `SERVER_NAME`: host of the request, without the port.
    ServerName = 82, Scalar, "SERVER_NAME";
    /// `SERVER_PORT`: port the request came to.
    ServerPort = 83, Scalar, "SERVER_PORT";
    /// `SESSION`: persistent collection of a session.
    Session = 84, Collection, "SESSION";
    /// `SESSIONID`: what `setsid` set.
    SessionId = 85, Scalar, "SESSIONID";
    /// `STATUS_LINE`: protocol and status of the response.
    StatusLine = 86, Scalar, "STATUS_LINE";
    /// `TIME`: time of day, HH:MM:SS, UTC.
    Time = 87, Scalar, "TIME";
    /// `TIME_DAY`: day of the month, 1 to 31.
    TimeDay = 88, Scalar, "TIME_DAY";
    /// `TIME_EPOCH`: seconds since 1970.
    TimeEpoch = 89, Scalar, "TIME_EPOCH";
    /// `TIME_HOUR`: hour, 0 to 23.
    TimeHour = 90, Scalar, "TIME_HOUR";
    /// `TIME_MIN`: minute, 0 to 59.
    TimeMin = 91, Scalar, "TIME_MIN";
    /// `TIME_MON`: month, 1 to 12.
    TimeMon = 92, Scalar, "TIME_MON";
    /// `TIME_SEC`: second, 0 to 59.
    TimeSec = 93, Scalar, "TIME_SEC";
    /// `TIME_WDAY`: day of the week, 1 (Monday) to 7.
    TimeWday = 94, Scalar, "TIME_WDAY";
    /// `TIME_YEAR`: year, four digits.
    TimeYear = 95, Scalar, "TIME_YEAR";
    /// `TX`: what rules set for the transaction.
    Tx = 96, Collection, "TX";
    /// `UNIQUE_ID`: id of the request.
    UniqueId = 97, Scalar, "UNIQUE_ID";
    /// `URLENCODED_ERROR`: 1 if a percent-encoding is malformed.
    UrlencodedError = 98, Scalar, "URLENCODED_ERROR";
    /// `USER`: persistent collection of a user.
    User = 99, Collection, "USER";
    /// `USERID`: what `setuid` set.
    UserId = 100, Scalar, "USERID";
    /// `WEBAPPID`: application id.
    WebAppId = 101, Scalar, "WEBAPPID";
    /// `XML`: what a path leads to in an XML body; `/*` all text, `//@*` all attributes.
    Xml = 102, Collection, "XML";
}

/// Other names of variables.
const ALIASES: &[(&str, Variable)] = &[
    ("REQUEST_PATH", Variable::RequestFilename),
    ("STATUS", Variable::ResponseStatus),
    ("CONTENT_LENGTH", Variable::RequestBodyLength),
    ("MULTIPART_INVALID_HEADER_FOLDING_LINE", Variable::MultipartInvalidHeaderFolding),
];

impl Variable {
    /// How many variables there are: codes are less than this.
    pub const COUNT: usize = ALL.len();

    /// The variable of a name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, _, known)| known.eq_ignore_ascii_case(name)).map(|(variable, _, _)| *variable).or_else(
            || {
                let mut aliases = ALIASES.iter();
                aliases.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, variable)| *variable)
            },
        )
    }

    /// The name, in capitals.
    pub fn name(self) -> &'static str {
        ALL.get(usize::from(self.code())).map_or("", |(_, _, name)| name)
    }

    /// One value or many.
    pub fn shape(self) -> Shape {
        ALL.get(usize::from(self.code())).map_or(Shape::Scalar, |(_, shape, _)| *shape)
    }

    /// All names.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ALL.iter().map(|(_, _, name)| *name)
    }

    /// The number that stands for the variable in a compiled rule set.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The variable of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        ALL.get(usize::from(code)).map(|(variable, _, _)| *variable)
    }

    /// Whether `setvar` and its like may write to it.
    pub fn is_writable(self) -> bool {
        matches!(self, Self::Tx | Self::Ip | Self::Global | Self::Session | Self::User | Self::Resource | Self::Env)
    }
}

/// Variables of ModSecurity v2 and of Coraza that are not to be had, and why.
pub(crate) const IMPOSSIBLE: &[(&str, &str)] = &[
    ("SCRIPT_BASENAME", "a gateway runs no scripts"),
    ("SCRIPT_FILENAME", "a gateway runs no scripts"),
    ("SCRIPT_GID", "a gateway runs no scripts"),
    ("SCRIPT_GROUPNAME", "a gateway runs no scripts"),
    ("SCRIPT_MODE", "a gateway runs no scripts"),
    ("SCRIPT_UID", "a gateway runs no scripts"),
    ("SCRIPT_USERNAME", "a gateway runs no scripts"),
    ("PERF_ALL", "how long rules take is not visible to rules"),
    ("PERF_COMBINED", "how long rules take is not visible to rules"),
    ("PERF_RULES", "how long rules take is not visible to rules"),
    ("WEBSERVER_ERROR_LOG", "a gateway has no error log of a web server"),
    ("SDBM_DELETE_ERROR", "there is no database on disk"),
    ("USERAGENT_IP", "REMOTE_ADDR is the address of the client"),
    ("ARGS_PATH", "paths are not taken apart; use REQUEST_FILENAME"),
    ("JSON", "values of JSON bodies are arguments: use ARGS:json.name"),
    ("REQUEST_XML", "use XML"),
    ("RESPONSE_XML", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RESPONSE_ARGS", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RES_BODY_ERROR", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RES_BODY_ERROR_MSG", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RES_BODY_PROCESSOR", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RES_BODY_PROCESSOR_ERROR", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("RES_BODY_PROCESSOR_ERROR_MSG", "bodies of responses are not parsed; use RESPONSE_BODY"),
    ("STREAM_INPUT_BODY", "bodies are not rewritten; use REQUEST_BODY"),
    ("STREAM_OUTPUT_BODY", "bodies are not rewritten; use RESPONSE_BODY"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (at, (variable, _, name)) in ALL.iter().enumerate() {
            assert_eq!(usize::from(variable.code()), at);
            assert_eq!(Variable::from_code(variable.code()), Some(*variable));
            assert_eq!(Variable::from_name(&name.to_lowercase()), Some(*variable));
        }
    }
}
