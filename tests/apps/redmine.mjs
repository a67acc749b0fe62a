// A tracker: issues with code, notes, files, wiki pages, news, times, searches and filters, settings.

import { Visitor, everybody } from "./kit.mjs";

export function markdown(content) {
  const kinds = [
    () => content.text(1, 3),
    () => `## ${content.title()}\n\n${content.text(1, 2)}`,
    () => `* **${content.sentence()}**\n* _${content.word()}_ [${content.word()}](https://example.org/${content.number(1, 99)}?a=1&b=2)`,
    () => { const kind = content.pick(["python", "php", "javascript", "sql", "shell", "java", "c", "rust", "yaml", "json", "xml", "html"]); return `\`\`\`${kind}\n${content.code(kind)}\n\`\`\``; },
    () => `Steps:\n1. \`${content.code("shell").split("\n")[0]}\`\n2. ${content.sentence()}\n\nExpected: ${content.sentence()}`,
    () => `> ${content.sentence()}\n\n${content.sentence()} #${content.number(1, 99)} @${content.person().login}`,
    () => `<pre><code>${content.code("log")}</code></pre>`,
    () => `| ${content.word()} | ${content.word()} |\n|---|---|\n| ${content.number(1, 99)} | ${content.sentence()} |`,
    () => `{{collapse(${content.word()})\n${content.sentence()}\n}}`,
  ];
  return Array.from({ length: content.number(1, 5) }, () => content.pick(kinds)()).join("\n\n");
}

const PROJECTS = ["boats", "harbour", "website", "warehouse"];

async function session(visitor, attempt) {
  const { content, person } = visitor;
  await visitor.go("/login");
  await visitor.submit("#login-form form", { username: person.login, password: person.password }, { button: "[name=login]" });
  const crossed = async () => visitor.find(/name="csrf-token" content="([^"]+)"/);
  const project = () => content.pick(PROJECTS);
  const issues = [];
  for (let times = 0; times < 7; times++) {
    await attempt("new issue", async () => {
      const text = await visitor.form(`/projects/${project()}/issues/new`, "#issue-form", {
        "issue[subject]": content.title(), "issue[description]": markdown(content), "issue[priority_id]": String(content.number(1, 5)), "issue[done_ratio]": String(content.number(0, 10) * 10),
        "issue[start_date]": `2026-11-${content.number(10, 28)}`, "issue[estimated_hours]": content.often(0.3) ? `${content.number(1, 9)}.5` : "",
      }, { button: "[name=commit]" });
      const id = text.match(/\/issues\/(\d+)\/edit|data-issue-id="(\d+)"|action="\/issues\/(\d+)"/);
      if (id) issues.push(id.slice(1).find(Boolean));
    });
  }
  const issue = () => (issues.length ? content.pick(issues) : "1");
  for (let times = 0; times < 9; times++) {
    await attempt("note", () => visitor.form(`/issues/${issue()}`, "#issue-form", { "issue[notes]": markdown(content), "issue[status_id]": String(content.number(1, 4)) }, { button: "[name=commit]" }));
  }
  const token = await (await visitor.go("/my/page"), crossed());
  const ajax = { "x-csrf-token": token, "x-requested-with": "XMLHttpRequest", accept: "*/*;q=0.5, text/javascript, application/javascript", "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
  for (let times = 0; times < 5; times++) {
    await attempt("preview", () => visitor.fetch(`/issues/preview?issue_id=${issue()}&project_id=boats`, { method: "POST", headers: ajax, body: new URLSearchParams({ text: markdown(content) }).toString() }));
  }
  for (let times = 0; times < 3; times++) {
    await attempt("upload", () => {
      const file = content.file();
      return visitor.fetch(`/uploads.js?attachment_id=${content.number(1, 9)}&filename=${encodeURIComponent(file.name)}&content_type=${encodeURIComponent(file.type)}`, { method: "POST", headers: { ...ajax, "content-type": "application/octet-stream" }, file: { ...file, raw: true } });
    });
  }
  for (let times = 0; times < 4; times++) {
    await attempt("wiki", () => {
      const name = `${content.word("en").replaceAll(/\W/g, "")}_${content.number(1, 99)}`;
      return visitor.form(`/projects/${project()}/wiki/${name[0].toUpperCase()}${name.slice(1)}/edit`, "#wiki_form", { "content[text]": `# ${content.title()}\n\n${markdown(content)}`, "content[comments]": content.sentence() }, { button: "[name=commit], [type=submit]" });
    });
  }
  await attempt("news", () => visitor.form(`/projects/${project()}/news/new`, "#news-form", { "news[title]": content.title().slice(0, 60), "news[summary]": content.sentence().slice(0, 200), "news[description]": markdown(content) }, { button: "[name=commit]" }));
  for (let times = 0; times < 2; times++) {
    await attempt("time", () => visitor.form(`/issues/${issue()}/time_entries/new`, "#new_time_entry", { "time_entry[hours]": `${content.number(0, 7)}:${content.number(10, 59)}`, "time_entry[comments]": content.sentence().slice(0, 200), "time_entry[activity_id]": "8" }, { button: "[name=commit]" }));
  }
  await attempt("version", () => visitor.form(`/projects/${project()}/versions/new`, "#new_version", { "version[name]": `${content.word()} ${content.number(1, 9999)}`.slice(0, 55), "version[description]": content.sentence().slice(0, 200) }, { button: "[name=commit]" }));
  await attempt("category", () => visitor.form(`/projects/${project()}/issue_categories/new`, "form.tabular", { "issue_category[name]": `${content.word()} ${content.number(1, 9999)}`.slice(0, 55) }, { button: "[name=commit]" }));
  await attempt("document", () => visitor.form(`/projects/${project()}/documents/new`, "form.tabular", { "document[title]": content.title().slice(0, 200), "document[description]": markdown(content) }, { button: "[name=commit]" }));
  await attempt("file", () => visitor.form(`/projects/${project()}/files/new`, "form.tabular", {}, { button: "[name=commit], [type=submit]" }));
  for (let times = 0; times < 8; times++) await attempt("search", () => visitor.form("/search", "#search-form", { q: content.search(), titles_only: content.often(0.2) }));
  for (let times = 0; times < 5; times++) await attempt("suggestions", () => visitor.fetch(`/issues/auto_complete?project_id=${project()}&q=${encodeURIComponent(content.search())}`, { headers: { "x-requested-with": "XMLHttpRequest", accept: "application/json" } }));
  for (let times = 0; times < 8; times++) {
    await attempt("filter", () => {
      const query = new URLSearchParams([
        ["utf8", "✓"], ["set_filter", "1"], ["sort", `${content.pick(["id", "subject", "updated_on"])}:desc`], ["f[]", "status_id"], ["op[status_id]", "o"], ["f[]", "subject"], ["op[subject]", content.pick(["~", "!~", "^", "$"])], ["v[subject][]", content.search()],
        ["f[]", "created_on"], ["op[created_on]", ">t-"], ["v[created_on][]", String(content.number(1, 90))], ["f[]", ""], ["c[]", "tracker"], ["c[]", "subject"], ["c[]", "cf_1"], ["group_by", content.pick(["", "status", "author"])], ["t[]", ""],
      ]);
      return visitor.fetch(`/projects/${project()}/issues${content.often(0.2) ? ".csv" : ""}?${query}`);
    });
  }
  await attempt("saved query", () => visitor.form(`/projects/${project()}/queries/new`, "#query-form", { "query[name]": content.title().slice(0, 200) }, { button: "[name=commit], [type=submit]", extra: { "f[]": "subject", "op[subject]": "~", "v[subject][]": content.search() } }));
  await attempt("bulk", () => visitor.form(`/issues/bulk_edit?ids%5B%5D=${issue()}&ids%5B%5D=${issue()}`, "#bulk_edit_form", { notes: markdown(content) }, { button: "[name=commit]" }));
  await attempt("watch", () => visitor.fetch(`/watchers/watch?object_id=${issue()}&object_type=issue`, { method: "POST", headers: ajax, body: "" }));
  await attempt("account", () => visitor.form("/my/account", "#my_account_form", { "user[firstname]": person.name.split(" ")[0] }, { button: "[name=commit], [type=submit]" }));
  for (const path of ["/activity?show_issues=1&show_wiki_edits=1", `/projects/${project()}/issues/gantt?months=6&year=2026`, `/projects/${project()}/issues/calendar?year=2026&month=11`, `/projects/${project()}/time_entries/report?criteria%5B%5D=user&columns=month`, `/issues/${issue()}.pdf`, `/projects/${project()}/activity.atom`, `/users/${content.number(5, 40)}`, "/projects.json?limit=100", `/projects/${project()}/wiki/index`, `/projects/${project()}/roadmap`]) {
    await attempt("page", () => (content.often(0.3) && !path.includes(".") ? visitor.go(path, { by: "link" }) : visitor.fetch(path)));
  }
  if (person.number < 8) await administer(visitor, attempt);
}

async function administer(visitor, attempt) {
  const { content } = visitor;
  const settings = { general: { "settings[welcome_text]": `**${content.sentence()}**` }, display: {}, notifications: { "settings[emails_footer]": `${content.sentence()}\n<https://tracker.example/my/account>` }, repositories: {}, projects: {} };
  for (const [tab, fields] of Object.entries(settings)) await attempt("settings", () => visitor.form(`/settings?tab=${tab}`, `#tab-content-${tab} form`, fields, { button: "[name=commit], [type=submit]" }));
  for (let times = 0; times < 3; times++) {
    const login = `guest${content.number(1, 99999)}`;
    await attempt("new user", () => visitor.form("/users/new", "#new_user", { "user[login]": login, "user[firstname]": content.word(), "user[lastname]": "O'Brien", "user[mail]": `${login}@mail.example`, "user[password]": "Pa$$'w0rd;--", "user[password_confirmation]": "Pa$$'w0rd;--" }, { button: "[name=commit]" }));
    await attempt("new project", () => visitor.form("/projects/new", "#new_project", { "project[name]": content.title().slice(0, 200), "project[description]": markdown(content), "project[identifier]": `p-${content.number(1, 999999)}` }, { button: "[name=commit]" }));
    await attempt("custom field", () => visitor.form("/custom_fields/new?type=IssueCustomField", "#custom_field_form", { "custom_field[name]": `${content.word()} ${content.number(1, 999)}`.slice(0, 29), "custom_field[regexp]": "^[A-Z]{2}\\d+$" }, { button: "[name=commit], [type=submit]" }));
  }
}

export async function redmine(browser, plan) {
  await everybody("redmine", plan.visitors, 2, async (person, attempt) => {
    if (person.number % 16 === 1) {
      const full = await Visitor.open(browser, plan, person, plan.hosts.redmine, { full: true });
      await attempt("reader", async () => {
        for (const path of ["/", "/projects", "/login", "/projects/boats/issues", "/projects/boats/wiki", "/search?q=a"]) await full.page.goto(full.base + path, { waitUntil: "load" });
      }).finally(() => full.close());
    }
    const visitor = await Visitor.open(browser, plan, person, plan.hosts.redmine);
    await session(visitor, attempt).finally(() => visitor.close());
  });
}
