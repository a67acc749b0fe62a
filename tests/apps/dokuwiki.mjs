// A wiki in files: pages with code, drafts, searches, media, its managers.

import { Visitor, everybody } from "./kit.mjs";

export function wikitext(content) {
  const kinds = [
    () => content.text(1, 3),
    () => `====== ${content.title()} ======\n\n${content.text(1, 2)}`,
    () => `  * **${content.sentence()}**\n  * //${content.word()}// ''${content.word()}'' [[notes:${content.number(1, 99)}|${content.word()}]]\n  - [[https://example.org/${content.number(1, 99)}?a=1&b=2|${content.word()}]]`,
    () => { const kind = content.pick(["php", "bash", "sql", "python", "html4strict", "javascript", "c"]); const own = { bash: "shell", html4strict: "html" }[kind] ?? kind; return `<code ${kind} ${content.number(1, 99)}.txt>\n${content.code(own)}\n</code>`; },
    () => `<file - ${content.word("en").replaceAll(/\W/g, "")}.conf>\n${content.code("nginx")}\n</file>`,
    () => `^ ${content.word()} ^ ${content.word()} ^\n| ${content.number(1, 99)} | ${content.sentence()} |`,
    () => `%%${content.code("regex")}%%\n<nowiki>${content.code("html")}</nowiki>`,
    () => `> ${content.sentence()}\n>> ${content.sentence()} ((${content.sentence()}))`,
    () => `{{:wiki:photo-${content.number(1, 99)}.png?${content.number(50, 300)}|${content.word()}}} ~~NOTOC~~`,
    () => `  ${content.code("log").replaceAll("\n", "\n  ")}`,
  ];
  return Array.from({ length: content.number(1, 6) }, () => content.pick(kinds)()).join("\n\n");
}

async function session(visitor, attempt) {
  const { content, person } = visitor;
  const ajax = (form) => visitor.fetch("/lib/exe/ajax.php", {
    method: "POST", body: new URLSearchParams(form).toString(),
    headers: { accept: "*/*", "x-requested-with": "XMLHttpRequest", "content-type": "application/x-www-form-urlencoded; charset=UTF-8" },
  });
  await visitor.go("/doku.php?id=start&do=login");
  await visitor.submit("#dw__login", { u: person.login, p: person.password, r: content.often(0.5) }, { button: "[type=submit]" });
  const pages = ["start"];
  for (let times = 0; times < 11; times++) {
    await attempt("edit", async () => {
      const id = content.often(0.75) || pages.length < 3 ? `notes:${person.login}:${encodeURIComponent(content.word().toLowerCase())}_${content.number(1, 999)}` : content.pick(pages);
      const fields = { wikitext: wikitext(content), summary: content.often(0.7) ? content.sentence() : "" };
      if (content.often(0.3)) await visitor.form(`/doku.php?id=${id}&do=edit`, "#dw__editform", fields, { button: "[name='do[preview]']", navigate: 0.2 });
      await visitor.form(`/doku.php?id=${id}&do=edit`, "#dw__editform", fields, { button: "[name='do[save]']", navigate: 0.2 });
      pages.push(id);
    });
  }
  const token = await visitor.find(/name="sectok" value="([0-9a-f]+)"/) ?? "";
  for (let times = 0; times < 8; times++) {
    await attempt("draft", () => ajax({ call: times % 2 ? "lock" : "draftsave", sectok: token, id: decodeURIComponent(content.pick(pages)), rev: "0", date: "1774000000", prefix: ".", suffix: "", changecheck: "d41d8cd98f00b204e9800998ecf8427e", target: "section", wikitext: wikitext(content), summary: content.sentence() }));
  }
  for (let times = 0; times < 9; times++) await attempt("search", () => visitor.form("/doku.php?id=start", "#dw__search", { q: content.search() }));
  for (let times = 0; times < 6; times++) await attempt("suggestions", () => ajax({ call: content.pick(["qsearch", "linkwiz"]), q: content.search() }));
  for (let times = 0; times < 3; times++) await attempt("index", () => ajax({ call: "index", idx: encodeURIComponent(content.word()), ...(content.often(0.5) ? { call: "medians", ns: content.word() } : {}) }));
  for (let times = 0; times < 3; times++) {
    await attempt("media", () => {
      const file = content.file();
      return visitor.form(`/lib/exe/mediamanager.php?ns=notes&edid=wiki__text`, "#dw__upload", { upload: file, mediaid: content.often(0.5) ? file.name : "", ow: true }, { navigate: 0.3 });
    });
  }
  await attempt("media by script", () => {
    const file = content.picture();
    return visitor.fetch(`/lib/exe/ajax.php?tab_files=files&tab_details=view&do=media&ns=notes&call=mediaupload&qqfile=${encodeURIComponent(file.name)}&mediaid=${encodeURIComponent(file.name)}&ow=checked&sectok=${token}`, {
      method: "POST", headers: { "x-requested-with": "XMLHttpRequest", "x-file-name": encodeURIComponent(file.name), "content-type": "application/octet-stream" }, file: { ...file, raw: true, type: "application/octet-stream" },
    });
  });
  await attempt("profile", () => visitor.form("/doku.php?id=start&do=profile", "#dw__register", { fullname: person.name, email: person.email, oldpass: person.password }, { button: "[type=submit]" }));
  for (const path of [
    `/doku.php?id=${content.pick(pages)}&do=revisions&first=${content.number(0, 40)}`, `/doku.php?id=${content.pick(pages)}&do=diff&difftype=inline`, "/doku.php?id=start&do=recent", `/doku.php?id=${content.pick(pages)}&do=backlink`, "/doku.php?id=start&do=index&idx=notes",
    `/doku.php?id=${content.pick(pages)}&do=export_raw`, `/doku.php?id=${content.pick(pages)}&do=export_xhtmlbody`, `/doku.php?id=start&do=media&ns=notes&q=${encodeURIComponent(content.word())}&sort=natural&view=thumbs&tab_files=search`,
    `/feed.php?type=rss2&num=${content.number(5, 30)}&linkto=diff&content=htmldiff&ns=notes`, `/doku.php?id=start&do=search&sf=1&q=${encodeURIComponent(content.search())}&min=${content.number(1, 400)}+days+ago&srt=mtime`, "/lib/exe/opensearch.php", `/lib/exe/detail.php?id=start&media=wiki:dokuwiki-128.png`,
  ]) {
    await attempt("page", () => (content.often(0.3) && !/export_raw|feed|opensearch/.test(path) ? visitor.go(path, { by: "link" }) : visitor.fetch(path)));
  }
  if (person.number < 8) await administer(visitor, attempt);
}

async function administer(visitor, attempt) {
  const { content } = visitor;
  for (let times = 0; times < 3; times++) {
    await attempt("configuration", () => visitor.form("/doku.php?id=start&do=admin&page=config", "#dw__configform", { "config[title]": `Harbour ${content.word()}`, "config[tagline]": content.sentence() }, { button: "[type=submit]", navigate: 0 }));
    await attempt("new user", () => visitor.form("/doku.php?id=start&do=admin&page=usermanager", "form:has([name='fn[add]'])", {
      userid: `guest${content.number(1, 99999)}`, userpass: `Pa$$'w0rd;--${content.number(1, 99)}`, userpass2: "", username: content.person().name, usermail: "guest@mail.example", usergroups: "user",
    }, { button: "[name='fn[add]']" }));
    await attempt("user filter", () => visitor.fetch(`/doku.php?id=start&do=admin&page=usermanager&fn%5Bsearch%5D%5Bnew%5D=1&username=${encodeURIComponent(content.word())}`));
    await attempt("access", () => visitor.form(`/doku.php?id=start&do=admin&page=acl&current_ns=notes`, "#acl__detail form, form#acl__detail", { acl_w: `@${content.word("en").replaceAll(/\W/g, "")}` }));
    await attempt("revert", () => visitor.form("/doku.php?id=start&do=admin&page=revert", "form:has([name=filter])", { filter: content.search() }));
    await attempt("log", () => visitor.fetch(`/doku.php?id=start&do=admin&page=logviewer&facility=error&time=2026-11-${content.number(10, 26)}`));
  }
}

export async function dokuwiki(browser, plan) {
  await everybody("dokuwiki", plan.visitors, 2, async (person, attempt) => {
    if (person.number % 16 === 3) {
      const full = await Visitor.open(browser, plan, person, plan.hosts.dokuwiki, { full: true });
      await attempt("reader", async () => {
        await full.page.goto(`${full.base}/doku.php?id=start&do=login`, { waitUntil: "load" });
        await full.page.fill("#dw__login [name=u]", person.login);
        await full.page.fill("#dw__login [name=p]", person.password);
        await full.page.click("#dw__login [type=submit]");
        await full.page.waitForLoadState("load");
        await full.page.goto(`${full.base}/doku.php?id=sandbox:${person.login}&do=edit`, { waitUntil: "load" });
        await full.page.locator("#wiki__text").pressSequentially(wikitext(full.content).slice(0, 120), { delay: 10 });
        await full.page.click("#edbtn__preview");
        await full.page.waitForLoadState("load");
        await full.page.locator("#qsearch__in").pressSequentially(full.content.word(), { delay: 80 });
        await full.page.waitForTimeout(900);
      }).finally(() => full.close());
    }
    const visitor = await Visitor.open(browser, plan, person, plan.hosts.dokuwiki);
    await session(visitor, attempt).finally(() => visitor.close());
  });
}
