// A webmail client: mails with HTML and code, answers, searches, folders, contacts, identities, settings.

import { Visitor, everybody } from "./kit.mjs";

const signature = (content) => `<p>--<br /><strong>${content.person().name}</strong><br /><a href="https://example.org/?p=${content.number(1, 99)}&amp;q=1">${content.word()}</a></p>`;

async function session(visitor, attempt) {
  const { content, person } = visitor;
  await visitor.go("/");
  await visitor.submit("#login-form", { _user: person.login, _pass: person.password }, { button: "[type=submit]" });
  const token = await visitor.find(/"request_token":"([^"]+)"/);
  const remote = () => ({ "x-requested-with": "XMLHttpRequest", "x-roundcube-request": token, accept: "application/json, text/javascript, */*; q=0.01" });
  const stamp = () => String(Date.now());
  const get = (query) => visitor.fetch(`/?_task=${query}&_remote=1&_unlock=loading${stamp()}&_=${stamp()}`, { headers: remote() });
  const post = (query, form) => visitor.fetch(`/?_task=${query}`, {
    method: "POST", headers: { ...remote(), "content-type": "application/x-www-form-urlencoded; charset=UTF-8" }, body: new URLSearchParams({ ...form, _remote: "1", _unlock: `loading${stamp()}` }).toString(),
  });
  await attempt("folders", async () => {
    for (const name of [content.word(), "Projects & more"]) await visitor.form("/?_task=settings&_action=edit-folder&_path=&_framed=1", "form[name=form]", { _name: name }, { navigate: 0 });
  });
  for (let times = 0; times < 13; times++) {
    await attempt("mail", async () => {
      const html = content.often(0.5);
      const to = Array.from({ length: content.number(1, 2) }, () => content.person()).map((one) => `${one.name.includes(",") ? one.login : one.name} <${one.email}>`).join(", ");
      const page = await visitor.fetch(`/?_task=mail&_action=compose${content.often(0.3) ? `&_to=${encodeURIComponent(content.person().email)}` : ""}`);
      const id = page.text.match(/"compose_id":"([^"]+)"/)[1];
      const compose = `/?_task=mail&_action=compose&_id=${id}`;
      for (let letters = content.number(0, 2); letters > 0; letters--) await post("mail&_action=autocomplete", { _search: content.word().slice(0, 4), _source: "", _reqid: stamp() });
      if (content.often(0.3)) {
        const file = content.file();
        await visitor.fetch(`/?_task=mail&_remote=1&_from=compose&_id=${id}&_uploadid=upload${stamp()}&_unlock=loading${stamp()}&_action=upload`, { method: "POST", headers: remote(), form: { _token: token }, file: { ...file, field: "_attachments[]" } });
      }
      const text = html ? `<html><head><meta http-equiv="Content-Type" content="text/html; charset=UTF-8" /></head><body style='font-size: 10pt; font-family: Verdana,Geneva,sans-serif'>\n${content.html(1, 5)}\n${content.often(0.4) ? signature(content) : ""}</body></html>`
        : `${content.text(1, 4)}\n\n${content.often(0.3) ? content.code() : ""}\n-- \n${person.name}`;
      const fields = { _to: to, _cc: content.often(0.2) ? content.person().email : "", _subject: content.often(0.3) ? content.sentence().slice(0, 90) : content.title(), _message: text };
      if (content.often(0.25)) await visitor.form(compose, "form[name=form]", fields, { extra: { _is_html: html ? "1" : "0", _draft: "1", _framed: "1" }, action: `/?_task=mail&_unlock=loading${stamp()}&_framed=1&_lang=${person.language}&_action=send` });
      await visitor.form(compose, "form[name=form]", fields, { extra: { _is_html: html ? "1" : "0", _framed: "1" }, action: `/?_task=mail&_unlock=loading${stamp()}&_framed=1&_lang=${person.language}&_action=send` });
    });
  }
  await attempt("list", () => get(`mail&_action=list&_layout=widescreen&_mbox=INBOX&_page=&_refresh=1`));
  for (let times = 0; times < 10; times++) await attempt("search", () => get(`mail&_action=search&_interval=&_q=${encodeURIComponent(content.search())}&_headers=${content.pick(["subject%2Cfrom", "subject%2Cfrom%2Cto", "text"])}&_layout=widescreen&_filter=${content.pick(["ALL", "UNSEEN", "HEADER%20CONTENT-TYPE%20multipart%2Fm"])}&_scope=${content.pick(["base", "all"])}&_mbox=INBOX`));
  for (let times = 0; times < 4; times++) {
    const uid = content.number(1, 9);
    await attempt("read", () => visitor.fetch(`/?_task=mail&_caps=pdf%3D1%2Cflash%3D0%2Ctiff%3D0%2Cwebp%3D1%2Cpgpmime%3D0&_uid=${uid}&_mbox=INBOX&_framed=1&_action=preview`));
    await attempt("answer", async () => {
      const page = await visitor.fetch(`/?_task=mail&_action=compose&_reply_uid=${uid}&_mbox=INBOX${content.often(0.3) ? "&_all=all" : ""}`);
      const id = page.text.match(/"compose_id":"([^"]+)"/)[1];
      await visitor.form(`/?_task=mail&_action=compose&_id=${id}`, "form[name=form]", { _message: `On 2026-11-${content.number(10, 28)} 10:${content.number(10, 59)}, ${content.person().name} wrote:\n> ${content.text(1, 2).replaceAll("\n", "\n> ")}\n\n${content.text(1, 2)}` }, { extra: { _framed: "1", _is_html: "0" }, action: `/?_task=mail&_unlock=loading${stamp()}&_framed=1&_lang=${person.language}&_action=send` });
    });
    await attempt("mark", () => post("mail&_action=mark", { _uid: String(uid), _mbox: "INBOX", _flag: content.pick(["flagged", "read", "unread", "unflagged"]) }));
    await attempt("poll", () => post("mail&_action=refresh", { _mbox: "INBOX", _last: String(Math.floor(Date.now() / 1000)), _list: "1", _quota: "1", _folderlist: "1", _search: "", "_params[_layout]": "widescreen", _uids: String(uid) }));
  }
  await attempt("move", () => post("mail&_action=move", { _uid: "1", _mbox: "INBOX", _target_mbox: "Projects &- more" }));
  for (let times = 0; times < 7; times++) {
    await attempt("contact", () => {
      const one = content.person();
      const [first, last] = [one.name.split(" ")[0], one.name.split(" ").at(-1)];
      return visitor.form("/?_task=addressbook&_action=show&_source=0&_framed=1&_action=add", "form[name=form], form", { _firstname: first, _surname: last }, {
        navigate: 0, extra: { _name: one.name, "_email_home[]": one.email, "_phone_home[]": `+44 (0)20 7946 0${content.number(100, 999)}`, "_notes": content.text(1, 2), "_website_homepage[]": `https://example.org/~${one.login}?a=1&b=2`, "_street_home[]": `${content.word()} ${content.number(1, 99)}/2`, "_locality_home[]": content.word() }, action: "/?_task=addressbook&_framed=1&_action=save",
      });
    });
  }
  for (let times = 0; times < 4; times++) await attempt("contacts", () => get(`addressbook&_action=search&_q=${encodeURIComponent(content.often(0.5) ? content.word() : content.search())}&_headers=name%2Cfirstname%2Csurname%2Cemail&_source=0&_gid=`));
  await attempt("contact file", () => {
    const cards = Array.from({ length: 4 }, () => content.person()).map((one) => `BEGIN:VCARD\r\nVERSION:3.0\r\nFN:${one.name}\r\nN:${one.name.split(" ").reverse().join(";")};;;\r\nEMAIL;TYPE=HOME:${one.email}\r\nNOTE:${content.sentence().replaceAll(/[;,\n]/g, " ")}\r\nEND:VCARD\r\n`).join("");
    return visitor.form("/?_task=addressbook&_action=import&_framed=1", "#rcmImportForm, form[name=form], form", { "_file[]": { name: "people.vcf", type: "text/vcard", base64: Buffer.from(cards).toString("base64") } }, { navigate: 0 });
  });
  for (let times = 0; times < 3; times++) {
    await attempt("response", () => visitor.form("/?_task=settings&_action=add-response&_framed=1", "form[name=form], form", { _name: content.title() }, { navigate: 0, extra: { _text: content.often(0.5) ? content.html(1, 2) : content.text(1, 2), _is_html: content.often(0.5) ? "1" : "0" } }));
  }
  await attempt("identity", async () => visitor.form(`/?_task=settings&_action=edit-identity&_iid=${(await visitor.fetch("/?_task=settings&_action=identities")).text.match(/rcmrow(\d+)/)?.[1] ?? 1}&_framed=1`, "form[name=form], form", { _name: person.name, _organization: content.title(), _signature: signature(content), _html_signature: true }, { navigate: 0 }));
  await attempt("settings", async () => {
    for (const section of ["general", "mailbox", "mailview", "compose", "addressbook", "folders", "server"]) await visitor.form(`/?_task=settings&_action=edit-prefs&_section=${section}&_framed=1`, "form[name=form], form", {}, { navigate: 0 });
  });
  for (const path of ["/?_task=mail&_mbox=Sent", "/?_task=addressbook", "/?_task=settings", "/?_task=settings&_action=about&_framed=1", "/?_task=mail&_mbox=INBOX&_uid=1&_action=viewsource", "/?_task=mail&_mbox=INBOX&_uid=1&_action=headers", `/?_task=addressbook&_action=export&_source=0&_token=${token}`]) await attempt("page", () => visitor.fetch(path));
  await attempt("sign out", () => visitor.go(`/?_task=logout&_token=${token}`));
}

// With all scripts and the HTML editor.
async function full(visitor) {
  const { content, person, page } = visitor;
  await page.goto(visitor.base, { waitUntil: "load" });
  await page.fill("#rcmloginuser", person.login);
  await page.fill("#rcmloginpwd", person.password);
  await page.click("#rcmloginsubmit");
  await page.waitForLoadState("load");
  for (let times = 0; times < 3; times++) {
    await page.goto(`${visitor.base}/?_task=mail&_action=compose&_html=1&_to=${encodeURIComponent(content.person().email)}`, { waitUntil: "load" });
    await page.waitForFunction(() => window.tinymce?.activeEditor?.initialized, null, { timeout: 30_000 });
    await page.fill("#compose-subject", content.title());
    await page.evaluate((html) => window.tinymce.activeEditor.setContent(html), content.html(2, 6));
    await page.evaluate(() => window.rcmail.command("savedraft", {}));
    await page.waitForTimeout(1200);
    await page.evaluate(() => window.rcmail.command("send", {}));
    await page.waitForTimeout(2000);
  }
  await page.goto(`${visitor.base}/?_task=mail`, { waitUntil: "load" });
  await page.waitForTimeout(1500);
}

export async function roundcube(browser, plan) {
  await everybody("roundcube", plan.visitors, 2, async (person, attempt) => {
    const visitor = await Visitor.open(browser, plan, person, plan.hosts.roundcube);
    await session(visitor, attempt).finally(() => visitor.close());
    if (person.number % 16 === 1) {
      const again = await Visitor.open(browser, plan, person, plan.hosts.roundcube, { full: true });
      await attempt("editor", () => full(again)).finally(() => again.close());
    }
  });
}
