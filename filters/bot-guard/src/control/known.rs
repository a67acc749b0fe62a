//! The bots that a new policy knows.

use super::signature::{BotCategory, BotSignature, KeyDirectoryType};

/// The lists of addresses that owners publish, by the name of the bot.
const RANGES: [(&str, &[&str]); 9] = [
    ("googlebot", &["https://developers.google.com/static/crawling/ipranges/common-crawlers.json"]),
    ("bingbot", &["https://www.bing.com/toolbox/bingbot.json"]),
    ("duckduckbot", &["https://duckduckgo.com/duckduckbot.json", "https://duckduckgo.com/duckassistbot.json"]),
    ("applebot", &["https://search.developer.apple.com/applebot.json"]),
    ("gptbot", &["https://openai.com/gptbot.json"]),
    ("oai-searchbot", &["https://openai.com/searchbot.json"]),
    ("chatgpt-user", &["https://openai.com/chatgpt-user.json"]),
    (
        "perplexitybot",
        &["https://www.perplexity.com/perplexitybot.json", "https://www.perplexity.com/perplexity-user.json"],
    ),
    ("ccbot", &["https://index.commoncrawl.org/ccbot.json"]),
];

/// The origins of the key directories that owners publish, by the name of the bot.
const KEYS: [(&str, &str); 1] = [("chatgpt-user", "https://chatgpt.com")];

/// Name, category, tokens of the user agent, suffixes of the names that its addresses resolve to, homepage.
type Known = (&'static str, BotCategory, &'static [&'static str], &'static [&'static str], &'static str);

const KNOWN: [Known; 27] = [
    (
        "googlebot",
        BotCategory::Search,
        &["googlebot"],
        &[".googlebot.com", ".google.com"],
        "https://developers.google.com/search/docs/crawling-indexing/googlebot",
    ),
    (
        "bingbot",
        BotCategory::Search,
        &["bingbot", "adidxbot", "msnbot"],
        &[".search.msn.com"],
        "https://www.bing.com/webmasters/help/which-crawlers-does-bing-use-8c184ec0",
    ),
    (
        "duckduckbot",
        BotCategory::Search,
        &["duckduckbot", "duckassistbot"],
        &[".duckduckgo.com"],
        "https://duckduckgo.com/duckduckbot",
    ),
    (
        "yandexbot",
        BotCategory::Search,
        &["yandexbot"],
        &[".yandex.ru", ".yandex.net", ".yandex.com"],
        "https://yandex.com/bots",
    ),
    (
        "baiduspider",
        BotCategory::Search,
        &["baiduspider"],
        &[".baidu.com", ".baidu.jp"],
        "https://www.baidu.com/search/spider.html",
    ),
    ("applebot", BotCategory::Search, &["applebot"], &[".applebot.apple.com"], "https://support.apple.com/119829"),
    ("gptbot", BotCategory::Ai, &["gptbot"], &[], "https://platform.openai.com/docs/bots"),
    ("oai-searchbot", BotCategory::Ai, &["oai-searchbot"], &[], "https://platform.openai.com/docs/bots"),
    ("chatgpt-user", BotCategory::Ai, &["chatgpt-user"], &[], "https://platform.openai.com/docs/bots"),
    (
        "claudebot",
        BotCategory::Ai,
        &["claudebot", "claude-web", "claude-searchbot", "claude-user"],
        &[],
        "https://www.anthropic.com",
    ),
    (
        "perplexitybot",
        BotCategory::Ai,
        &["perplexitybot", "perplexity-user"],
        &[],
        "https://docs.perplexity.ai/guides/bots",
    ),
    ("ccbot", BotCategory::Ai, &["ccbot"], &[], "https://commoncrawl.org/ccbot"),
    ("bytespider", BotCategory::Ai, &["bytespider"], &[], "https://www.bytedance.com"),
    ("amazonbot", BotCategory::Ai, &["amazonbot"], &[], "https://developer.amazon.com/amazonbot"),
    (
        "meta-externalagent",
        BotCategory::Ai,
        &["meta-externalagent", "facebookbot"],
        &[],
        "https://developers.facebook.com/docs/sharing/webmasters/web-crawlers",
    ),
    (
        "google-extended",
        BotCategory::Ai,
        &["google-extended"],
        &[],
        "https://developers.google.com/search/docs/crawling-indexing/google-common-crawlers",
    ),
    ("applebot-extended", BotCategory::Ai, &["applebot-extended"], &[], "https://support.apple.com/119829"),
    ("cohere-ai", BotCategory::Ai, &["cohere-ai", "cohere-training-data-crawler"], &[], "https://cohere.com"),
    ("diffbot", BotCategory::Ai, &["diffbot"], &[], "https://www.diffbot.com"),
    ("timpibot", BotCategory::Ai, &["timpibot"], &[], "https://www.timpi.io"),
    ("omgili", BotCategory::Ai, &["omgili", "omgilibot"], &[], "https://webz.io"),
    ("ahrefsbot", BotCategory::Seo, &["ahrefsbot"], &[".ahrefs.com"], "https://ahrefs.com/robot"),
    ("semrushbot", BotCategory::Seo, &["semrushbot"], &[], "https://www.semrush.com/bot"),
    ("mj12bot", BotCategory::Seo, &["mj12bot"], &[], "https://mj12bot.com"),
    ("dotbot", BotCategory::Seo, &["dotbot"], &[], "https://moz.com"),
    ("uptimerobot", BotCategory::Monitoring, &["uptimerobot"], &[], "https://uptimerobot.com"),
    ("pingdom", BotCategory::Monitoring, &["pingdom"], &[], "https://www.pingdom.com"),
];

/// The signatures of a new policy: 6 search engines, 15 of AI, 4 of SEO tools, 2 of monitoring.
pub(super) fn known() -> Vec<BotSignature> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let signatures = KNOWN.iter().map(|(name, category, ua_contains, rdns_suffixes, homepage)| BotSignature {
        name: (*name).to_owned(),
        category: *category,
        ua_contains: owned(ua_contains),
        rdns_suffixes: owned(rdns_suffixes),
        homepage: (*homepage).to_owned(),
        verifiable: !rdns_suffixes.is_empty(),
        key_directory: KEYS.iter().find(|(bot, _)| bot == name).map(|(_, url)| (*url).to_owned()).unwrap_or_default(),
        key_directory_type: KeyDirectoryType::Directory,
        ip_ranges: RANGES.iter().find(|(bot, _)| bot == name).map(|(_, lists)| owned(lists)).unwrap_or_default(),
    });
    signatures.collect()
}
