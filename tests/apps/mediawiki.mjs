// A wiki: pages with code and tables, previews, differences, searches, uploads, moves, preferences, and what its scripts ask the API.

import { Visitor, everybody } from "./kit.mjs";
import { CODE } from "./content.mjs";

export function wikitext(content) {
  const kinds = [
    () => content.text(1, 3),
    () => `== ${content.title()} ==\n${content.text(1, 2)}`,
    () => `* '''${content.sentence()}'''\n* ''${content.word()}'' [[${content.title()}|${content.word()}]]\n# [https://example.org/${content.number(1, 99)}?a=1&b=2 ${content.word()}]`,
    () => `<pre>\n${content.code()}\n</pre>`,
    () => `<nowiki>${content.code("html")}</nowiki>`,
    () => `<code>${content.code(content.pick(CODE)).split("\n")[0]}</code>`,
    () => `{| class="wikitable sortable" style="width: ${content.number(40, 100)}%"\n|+ ${content.word()}\n! ${content.word()} !! ${content.word()}\n|-\n| ${content.number(1, 99)} || ${content.sentence()}\n|}`,
    () => `${content.sentence()}<ref name="r${content.number(1, 9)}">${content.person().name}, ''${content.title()}'', p. ${content.number(1, 300)}</ref>\n<references />`,
    () => `{{#if: {{{${content.number(1, 3)}|}}} | ${content.word()} | {{#expr: ${content.number(1, 9)} * (2 + 3)}} }} {{DEFAULTSORT:${content.word()}}}`,
    () => `<div style="float:right; border:1px solid #aaa"><span class="note">${content.sentence()}</span></div>\n<!-- ${content.sentence("en")} -->`,
    () => `[[File:Photo-${content.number(1, 99)}.png|thumb|${content.number(100, 300)}px|${content.sentence()}]]`,
    () => `: ${content.sentence()} ~~~~`,
    () => `[[Category:${content.word()}]]`,
    () => ` ${content.code("shell").replaceAll("\n", "\n ")}`,
  ];
  return Array.from({ length: content.number(1, 6) }, () => content.pick(kinds)()).join("\n\n");
}

const address = (title, rest = "") => `/index.php?title=${encodeURIComponent(title.replaceAll(" ", "_"))}${rest}`;
// Characters that titles of pages cannot have.
const title = (content) => content.title().replaceAll(/[#<>[\]|{}:/?&+%\\"'.~_]/g, "").trim() || "Page";

async function session(visitor, attempt) {
  const { content, person } = visitor;
  await visitor.go(address("Special:UserLogin", "&returnto=Main+Page"));
  await visitor.submit("form[name=userlogin]", { wpName: person.login, wpPassword: person.password, wpRemember: content.often(0.5) }, { button: "#wpLoginAttempt" });
  const pages = ["Main Page"];
  const edit = "#editform";
  for (let times = 0; times < 9; times++) {
    await attempt("edit", async () => {
      const name = content.often(0.7) || pages.length < 3 ? title(content) : content.pick(pages);
      const fields = { wpTextbox1: wikitext(content), wpSummary: content.often(0.7) ? content.sentence().slice(0, 200) : "" };
      if (content.often(0.35)) await visitor.form(address(name, "&action=edit"), edit, fields, { button: content.pick(["#wpPreview", "#wpDiff"]) });
      await visitor.form(address(name, "&action=edit"), edit, fields, { button: "#wpSave" });
      pages.push(name);
    });
  }
  for (let times = 0; times < 3; times++) {
    await attempt("talk", () => visitor.form(address(`Talk:${content.pick(pages)}`, "&action=edit&section=new"), edit, { wpSummary: content.title(), wpTextbox1: `${content.text()} ~~~~` }, { button: "#wpSave" }));
  }
  await attempt("user page", () => visitor.form(address(`User:${person.login}`, "&action=edit"), edit, { wpTextbox1: wikitext(content), wpSummary: "" }, { button: "#wpSave" }));
  await attempt("sandbox template", () => visitor.form(address(`Template:${title(content)}`, "&action=edit"), edit, {
    wpTextbox1: `<includeonly>{{{1|${content.word()}}}}</includeonly><noinclude>${content.sentence()}<templatedata>{"params": {"1": {"type": "string"}}}</templatedata></noinclude>`,
  }, { button: "#wpSave" }));
  for (let times = 0; times < 8; times++) {
    await attempt("search", () => visitor.form("/index.php?title=Special:Search", "#search, #powersearch", { search: content.search() }));
  }
  // What the search box and the editor's toolbar ask as people type.
  for (let times = 0; times < 4; times++) {
    await attempt("suggestions", async () => {
      const term = content.search();
      for (const length of [2, Math.ceil(term.length / 2), term.length]) {
        await visitor.fetch(`/rest.php/v1/search/title?q=${encodeURIComponent(term.slice(0, length))}&limit=10`, { headers: { accept: "application/json" } });
      }
      await visitor.fetch(`/api.php?action=opensearch&format=json&formatversion=2&search=${encodeURIComponent(term)}&namespace=0&limit=10`, { headers: { "x-requested-with": "XMLHttpRequest" } });
    });
  }
  const ajax = { accept: "application/json, text/javascript, */*; q=0.01", "x-requested-with": "XMLHttpRequest", "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
  const post = (form) => visitor.fetch("/api.php", { method: "POST", headers: ajax, body: new URLSearchParams(form).toString() });
  for (let times = 0; times < 6; times++) {
    await attempt("live preview", () => post({
      action: "parse", format: "json", formatversion: "2", pst: "1", preview: "true", disableeditsection: "true", title: content.pick(pages), summary: content.sentence().slice(0, 150),
      text: wikitext(content), prop: "text|indicators|displaytitle|modules|jsconfigvars|categorieshtml|templates|langlinks|limitreporthtml|parsewarningshtml", uselang: person.language, useskin: "vector",
    }));
  }
  await attempt("watch", async () => {
    const token = JSON.parse((await visitor.fetch("/api.php?action=query&meta=tokens&type=watch|csrf|patrol&format=json&formatversion=2")).text).query.tokens;
    for (let times = 0; times < 4; times++) await post({ action: "watch", titles: content.pick(pages), formatversion: "2", format: "json", token: token.watchtoken, ...(content.often(0.3) ? { unwatch: "1" } : {}) });
    for (let times = 0; times < 2; times++) await post({ action: "options", change: `userjs-note=${content.word()}|language=${person.language}`, format: "json", token: token.csrftoken });
    for (let times = 0; times < 2; times++) await post({ action: "stashedit", title: content.pick(pages), section: "", sectiontitle: "", text: wikitext(content), summary: content.sentence(), contentmodel: "wikitext", contentformat: "text/x-wiki", baserevid: "1", token: token.csrftoken, format: "json" });
  });
  for (let times = 0; times < 2; times++) {
    await attempt("upload", () => {
      const file = content.file();
      return visitor.form(address("Special:Upload"), "#mw-upload-form", { wpUploadFile: file, wpDestFile: file.name, wpUploadDescription: content.text(1, 2), wpIgnoreWarning: true }, { button: "[name=wpUpload]", navigate: 0.5 });
    });
  }
  await attempt("move", () => visitor.form(address(`Special:MovePage/${pages.at(-1)}`), "#movepage", { wpNewTitleMain: title(content), wpReason: content.sentence() }, { button: "[name=wpMove]" }));
  await attempt("preferences", () => visitor.form(address("Special:Preferences"), "#mw-prefs-form", { wprealname: person.name, wpnickname: `[[User:${person.login}|${content.word()}]]`, wpfancysig: true }, { button: "#prefcontrol" }));
  for (const path of [
    address(content.pick(pages), "&action=history"), address(content.pick(pages), "&action=raw&ctype=text/x-wiki"), address(content.pick(pages), "&action=info"), address("Special:RecentChanges", `&limit=${content.number(10, 99)}&days=7&hidebots=1`),
    address("Special:WhatLinksHere", `&target=${encodeURIComponent(content.pick(pages))}&namespace=&limit=50`), address("Special:AllPages", `&from=${encodeURIComponent(content.word())}&to=&namespace=0`), address("Special:PrefixIndex", `&prefix=${encodeURIComponent(content.word())}&namespace=0&stripprefix=1`),
    address("Special:Contributions", `&target=${person.login}&start=2026-01-01&end=2026-12-31&tagfilter=`), address("Special:ListFiles", `&ilsearch=${encodeURIComponent(content.word())}&user=`), address("Special:LinkSearch", `&target=${encodeURIComponent("*.example.org")}`),
    address("Special:ExpandTemplates"), address("Special:Log", `&type=upload&user=${person.login}&page=&wpdate=2026-11-30&tagfilter=`), `/index.php?diff=prev&oldid=${content.number(5, 400)}`, "/index.php?title=Special:RecentChanges&feed=atom",
  ]) {
    await attempt("page", () => (content.often(0.5) ? visitor.go(path, { by: "link" }) : visitor.fetch(path)));
  }
  await attempt("expand", () => visitor.form(address("Special:ExpandTemplates"), "form[action*=ExpandTemplates], #mw-content-text form", { wpInput: wikitext(content), wpContextTitle: content.pick(pages) }));
  await attempt("export", () => visitor.form(address("Special:Export"), "#mw-content-text form", { pages: pages.slice(0, 5).join("\n"), curonly: true }, { navigate: 0 }));
  if (person.number < 12) await administer(visitor, attempt, pages);
  await attempt("sign out", () => visitor.form(address("Special:UserLogout"), "#mw-content-text form", {}));
}

async function administer(visitor, attempt, pages) {
  const { content } = visitor;
  await attempt("site style", () => visitor.form(address("MediaWiki:Sidebar", "&action=edit"), "#editform", { wpTextbox1: `* navigation\n** mainpage|mainpage-description\n** https://example.org/?a=1&b=2|${content.word()}` }, { button: "#wpSave" }));
  for (let times = 0; times < 3; times++) {
    await attempt("protect", () => visitor.form(address(content.pick(pages), "&action=protect"), "#mw-Protect-Form", { "mwProtect-reason": content.sentence(), "mwProtect-level-edit": "sysop" }, { button: "#mw-Protect-submit, [type=submit]" }));
    await attempt("delete", () => visitor.form(address(content.pick(pages.slice(1)), "&action=delete"), "#deleteconfirm", { wpReason: content.sentence() }, { button: "[type=submit]" }));
    await attempt("block", () => visitor.form(address("Special:Block"), "#mw-content-text form", { wpTarget: `203.0.113.${content.number(100, 200)}`, "wpReason-other": content.sentence(), "wpExpiry": "1 week" }));
    await attempt("replace text", () => visitor.form(address("Special:ReplaceText"), "#powersearch, #mw-content-text form", { target: content.word(), replacement: `<b>${content.word()}</b>`, edit_pages: true }));
  }
}

// With all scripts: suggestions while typing, the toolbar, a page read without an account.
async function reader(visitor) {
  const { content, page } = visitor;
  await page.goto(`${visitor.base}/index.php?title=Main_Page`, { waitUntil: "load" });
  for (let times = 0; times < 3; times++) {
    const box = page.locator("input[name=search]:visible").first();
    await box.click();
    await box.pressSequentially(content.search().slice(0, 16), { delay: 60 });
    await page.waitForTimeout(500);
    await box.press("Enter");
    await page.waitForLoadState("load");
  }
  await page.goto(`${visitor.base}/index.php?title=${encodeURIComponent(content.word())}&action=edit`, { waitUntil: "load" });
  await page.fill("#wpTextbox1", wikitext(content));
  await page.click("#wpPreview");
  await page.waitForLoadState("load");
}

export async function mediawiki(browser, plan) {
  await everybody("mediawiki", plan.visitors, 2, async (person, attempt) => {
    if (person.number % 16 === 1) {
      const full = await Visitor.open(browser, plan, person, plan.hosts.mediawiki, { full: true });
      await attempt("reader", () => reader(full)).finally(() => full.close());
    }
    const visitor = await Visitor.open(browser, plan, person, plan.hosts.mediawiki);
    await session(visitor, attempt).finally(() => visitor.close());
  });
}
