// A blog: posts, pages and comments with HTML and code, its editor, its REST interface as the editor calls it, media, admin pages.

import { Visitor, everybody } from "./kit.mjs";
import { escape } from "./content.mjs";

const block = (name, html, attributes = "") => `<!-- wp:${name}${attributes} -->\n${html}\n<!-- /wp:${name} -->`;

// A post as the block editor writes it.
function blocks(content) {
  const kinds = [
    () => block("paragraph", `<p>${escape(content.text(1, 3))}</p>`),
    () => block("paragraph", `<p><strong>${escape(content.sentence())}</strong> <a href="https://example.org/${content.number(1, 99)}?a=1&amp;b=2">${escape(content.word())}</a></p>`),
    () => block("heading", `<h2>${escape(content.title())}</h2>`),
    () => block("code", `<pre class="wp-block-code"><code>${escape(content.code())}</code></pre>`),
    () => block("html", content.html(1, 3)),
    () => block("list", `<ul>${block("list-item", `<li>${escape(content.sentence())}</li>`)}\n\n${block("list-item", `<li>${escape(content.word())}</li>`)}</ul>`),
    () => block("quote", `<blockquote class="wp-block-quote">${block("paragraph", `<p>${escape(content.sentence())}</p>`)}<cite>${escape(content.person().name)}</cite></blockquote>`),
    () => block("table", `<figure class="wp-block-table"><table><tbody><tr><td>${escape(content.word())}</td><td>${content.number(1, 99)}</td></tr></tbody></table></figure>`),
    () => block("image", `<figure class="wp-block-image"><img src="https://blog.example/images/${content.number(1, 99)}.png" alt="${escape(content.word())}"/></figure>`, ` {"id":${content.number(10, 99)}}`),
  ];
  return Array.from({ length: content.number(2, 7) }, () => content.pick(kinds)()).join("\n\n");
}

// What `wp.apiFetch` sends.
const api = (nonce, method = "POST") => ({
  method: method === "PUT" || method === "DELETE" ? "POST" : method,
  headers: {
    accept: "application/json, */*;q=0.1", "content-type": "application/json", "x-wp-nonce": nonce,
    ...(method === "PUT" || method === "DELETE" ? { "x-http-method-override": method } : {}),
  },
});

async function write(visitor, nonce) {
  const { content } = visitor;
  const call = (path, method, value) => visitor.fetch(path, { ...api(nonce, method), body: value && JSON.stringify(value) });
  const made = JSON.parse((await call("/wp-json/wp/v2/posts?_locale=user", "POST", { title: content.title(), content: blocks(content), status: "draft" })).text);
  if (!made.id) throw new Error(`no post: ${JSON.stringify(made).slice(0, 120)}`);
  const path = `/wp-json/wp/v2/posts/${made.id}`;
  for (let times = content.number(0, 2); times > 0; times--) {
    await call(`${path}/autosaves?_locale=user`, "POST", { id: made.id, title: content.title(), content: blocks(content), excerpt: "" });
  }
  await call(`${path}?_locale=user`, "PUT", {
    id: made.id, title: content.title(), content: blocks(content), excerpt: content.often(0.3) ? content.sentence() : "", status: "publish",
    slug: `note-${content.number(1, 99999)}`, ...(content.often(0.3) ? { comment_status: "open", sticky: content.often(0.1) } : {}),
  });
  return made.id;
}

async function session(visitor, attempt) {
  const { content, person, page } = visitor;
  await attempt("front", () => visitor.go("/"));
  await visitor.go("/wp-login.php");
  await visitor.submit("#loginform", { log: person.login, pwd: person.password, rememberme: content.often(0.5) }, { button: "#wp-submit" });
  // The new-post page has the nonce of the REST interface in its source.
  await visitor.go("/wp-admin/post-new.php");
  const nonce = await visitor.find(/createNonceMiddleware\(\s*"([0-9a-f]+)"/) ?? await visitor.find(/"nonce":"([0-9a-f]{10})"/);
  const call = (path, method, value) => visitor.fetch(path, { ...api(nonce, method), body: value && JSON.stringify(value) });
  const posts = [];
  for (let times = 0; times < 5; times++) posts.push(await attempt("write", () => write(visitor, nonce)));
  await attempt("terms", async () => {
    await call("/wp-json/wp/v2/tags?_locale=user", "POST", { name: content.title() });
    await call("/wp-json/wp/v2/categories?_locale=user", "POST", { name: content.title(), description: content.sentence() });
    await call(`/wp-json/wp/v2/tags?per_page=20&orderby=count&order=desc&_fields=id%2Cname%2Ccount&search=${encodeURIComponent(content.word())}&_locale=user`, "GET");
  });
  await attempt("block render", () => call("/wp-json/wp/v2/block-renderer/core/latest-posts?context=edit&_locale=user", "POST", { attributes: { postsToShow: content.number(1, 9), displayPostDate: true } }));
  await attempt("reusable block", () => call("/wp-json/wp/v2/blocks?_locale=user", "POST", { title: content.title(), content: blocks(content), status: "publish" }));
  await attempt("link search", () => call(`/wp-json/wp/v2/search?search=${encodeURIComponent(content.search())}&per_page=20&type=post&_locale=user`, "GET"));
  for (let times = 0; times < 2; times++) {
    await attempt("media", async () => {
      const file = content.file();
      const answer = await visitor.fetch("/wp-json/wp/v2/media?_locale=user", { method: "POST", headers: { accept: "application/json, */*;q=0.1", "x-wp-nonce": nonce }, file: { ...file, field: "file" } });
      const { id } = JSON.parse(answer.text);
      if (id) await call(`/wp-json/wp/v2/media/${id}?_locale=user`, "PUT", { alt_text: content.sentence(), caption: content.sentence(), description: content.html(1, 2) });
    });
  }
  const known = posts.filter(Boolean);
  for (let times = 0; times < 7; times++) {
    await attempt("comment", async () => {
      await visitor.form(`/?p=${content.pick(known)}`, "#commentform", { comment: content.often(0.25) ? `${content.sentence()}\n<code>${content.code()}</code>` : content.text(1, 4) }, { button: "#submit" });
    });
  }
  for (let times = 0; times < 9; times++) {
    await attempt("search", () => visitor.form("/", "form[role=search]", { s: content.search() }));
  }
  await attempt("heartbeat", async () => {
    await visitor.go("/wp-admin/edit.php", { by: "link" });
    for (let times = 0; times < 3; times++) {
      const form = { "data[wp-refresh-post-lock][post_id]": String(content.pick(known)), "data[wp-check-locked-posts][]": `post-${content.pick(known)}`, interval: "60", _nonce: nonce, action: "heartbeat", screen_id: "edit-post", has_focus: String(content.often(0.5)) };
      await visitor.fetch("/wp-admin/admin-ajax.php", { method: "POST", form, headers: { accept: "application/json, text/javascript, */*; q=0.01", "x-requested-with": "XMLHttpRequest" } });
    }
  });
  await attempt("quick draft", async () => {
    await visitor.form("/wp-admin/", "#quick-press", { post_title: content.title(), content: content.text() }, { button: "#save-post" });
  });
  for (let times = 0; times < 2; times++) {
    await attempt("term form", async () => {
      await visitor.form(`/wp-admin/edit-tags.php?taxonomy=${content.pick(["category", "post_tag"])}`, "#addtag", { "tag-name": content.title(), slug: "", description: content.often(0.5) ? content.html(1, 1) : content.sentence() }, { button: "#submit" });
    });
  }
  await attempt("edit comment", async () => {
    await visitor.go(`/wp-admin/edit-comments.php?s=${encodeURIComponent(content.word())}&comment_status=all`);
    await visitor.go("/wp-admin/edit-comments.php");
    const id = await visitor.find(/comment\.php\?action=editcomment&amp;c=(\d+)/);
    await visitor.form(`/wp-admin/comment.php?action=editcomment&c=${id}`, "#post", { content: content.text(1, 3) }, { button: "#save" });
  });
  await attempt("profile", async () => {
    await visitor.form("/wp-admin/profile.php", "#your-profile", { first_name: person.name.split(" ")[0], last_name: person.name.split(" ").at(-1), description: content.text(1, 4), url: `https://example.org/~${person.login}/?lang=${person.language}` }, { button: "#submit" });
  });
  await attempt("list", async () => {
    await visitor.form("/wp-admin/edit.php", "#posts-filter", { s: content.search(), action: "-1" }, { button: "#search-submit" });
    await visitor.form("/wp-admin/edit.php?author=0&orderby=date&order=desc", "#posts-filter", { "post[]": String(known.at(-1)), action: "trash" }, { button: "#doaction" });
  });
  if (person.number < 8) await administer(visitor, attempt);
  await visitor.go("/wp-admin/");
  await attempt("sign out", async () => visitor.page.goto(await visitor.page.evaluate(() => document.querySelector("#wp-admin-bar-logout a").href), { waitUntil: "domcontentloaded" }));
  return page.url();
}

// What administrators do: settings, users, themes' styles, menus, files of plugins.
async function administer(visitor, attempt) {
  const { content } = visitor;
  const option = (page, fields) => attempt(`settings ${page}`, async () => {
    await visitor.form(`/wp-admin/options-${page}.php`, "form[action='options.php']", fields, { button: "#submit" });
  });
  await option("general", { blogname: `Harbour Notes ${content.number(1, 99)}`, blogdescription: content.sentence(), date_format: "Y-m-d" });
  await option("reading", { posts_per_page: String(content.number(5, 20)) });
  await option("discussion", { moderation_keys: "casino\npoker\n<script", disallowed_keys: "spam@example.org\n10.0.0." });
  await option("writing", { mailserver_url: "mail.example.com" });
  await option("media", { thumbnail_size_w: String(content.number(100, 200)) });
  await attempt("permalinks", () => visitor.form("/wp-admin/options-permalink.php", "form[name=form]", { tag_base: content.pick(["tag", "topic"]) }, { button: "#submit" }));
  for (let times = 0; times < 6; times++) {
    await attempt("new user", async () => {
      const login = `guest${content.number(1, 999999)}`;
      await visitor.form("/wp-admin/user-new.php", "#createuser", { user_login: login, email: `${login}@mail.example`, first_name: content.word(), last_name: content.person().name, url: "", pass1: `Pa$$'w0rd;--${content.number(1, 999)}`, pass2: "", send_user_notification: false }, { button: "#createusersub" });
    });
  }
  for (const path of ["/wp-admin/themes.php", "/wp-admin/plugins.php", "/wp-admin/plugins.php?plugin_status=inactive&s=", "/wp-admin/tools.php", "/wp-admin/import.php", "/wp-admin/export.php",
    "/wp-admin/site-health.php", "/wp-admin/users.php?role=editor", "/wp-admin/update-core.php", "/wp-admin/upload.php?mode=list", "/wp-admin/nav-menus.php", "/wp-admin/widgets.php",
    "/wp-admin/theme-editor.php", "/wp-admin/plugin-editor.php?file=akismet%2Fakismet.php&plugin=akismet%2Fakismet.php", "/wp-admin/export.php?download=true&content=posts&cat=0&post_author=0&post_start_date=0&post_end_date=0&post_status=0&submit=Download+Export+File"]) {
    await attempt("admin page", () => (path.includes("download=") || content.often(0.5) ? visitor.fetch(path) : visitor.go(path, { by: "link" })));
  }
  await attempt("plugin file", async () => {
    await visitor.go("/wp-admin/theme-editor.php?file=style.css&theme=twentytwentytwo");
    const nonce = await visitor.find(/name="nonce" value="([0-9a-f]+)"/);
    const form = { nonce, _wp_http_referer: "/wp-admin/theme-editor.php?file=style.css&theme=twentytwentytwo", newcontent: content.code("css"), action: "edit-theme-plugin-file", file: "style.css", theme: "twentytwentytwo", "docs-list": "" };
    await visitor.fetch("/wp-admin/admin-ajax.php", { method: "POST", form, headers: { "x-requested-with": "XMLHttpRequest" } });
  });
}

// The editor itself with all its scripts: it saves by itself, asks for embeds, and loads what it needs.
async function editor(visitor) {
  const { content, person, page } = visitor;
  await visitor.go("/wp-login.php");
  await page.fill("#user_login", person.login);
  await page.fill("#user_pass", person.password);
  await page.click("#wp-submit");
  await page.waitForLoadState("domcontentloaded");
  for (let times = 0; times < 4; times++) {
    await page.goto(`${visitor.base}/wp-admin/post-new.php`, { waitUntil: "load" });
    await page.waitForFunction(() => window.wp?.data?.select("core/editor")?.getCurrentPostId(), null, { timeout: 60_000 });
    await page.evaluate(async ({ title, text }) => {
      const { dispatch } = window.wp.data;
      dispatch("core/editor").editPost({ title });
      dispatch("core/block-editor").resetBlocks(window.wp.blocks.parse(text));
      await dispatch("core/editor").autosave();
      dispatch("core/editor").editPost({ status: "publish" });
      await dispatch("core/editor").savePost();
    }, { title: content.title(), text: blocks(content) });
    await page.waitForTimeout(1500);
  }
  for (const path of ["/wp-admin/index.php", "/wp-admin/upload.php", "/wp-admin/customize.php", "/wp-admin/site-editor.php"]) {
    await page.goto(visitor.base + path, { waitUntil: "load" }).catch(() => {});
    await page.waitForTimeout(1500);
  }
}

export async function wordpress(browser, plan) {
  const host = plan.hosts.wordpress;
  await everybody("wordpress", plan.visitors, 2, async (person, attempt) => {
    if (person.number % 16 === 3) {
      const full = await Visitor.open(browser, plan, person, host, { full: true });
      await attempt("editor", () => editor(full)).finally(() => full.close());
    }
    const visitor = await Visitor.open(browser, plan, person, host);
    await session(visitor, attempt).finally(() => visitor.close());
  });
}
