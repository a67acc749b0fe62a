// The administration of a database: statements in its own forms, tables made and changed, rows, searches, imports and exports.

import { Visitor, everybody } from "./kit.mjs";

async function session(visitor, attempt) {
  const { content, person } = visitor;
  const db = `shop_${person.login}`;
  const at = (route, table = null, rest = "") => `/index.php?route=${route}&db=${db}${table ? `&table=${table}` : ""}${rest}`;
  await visitor.go("/");
  await visitor.submit("#login_form", { pma_username: person.login, pma_password: person.password }, { button: "[type=submit]" });
  const token = await visitor.find(/name="token" value="([^"]+)"/) ?? await visitor.find(/token:"([^"]+)"/);
  // What its scripts add to a form that they send.
  const script = () => ({ ajax_request: "true", ajax_page_request: "true", _nocache: `${Date.now()}${content.number(100000, 999999)}` });
  const headers = { "x-requested-with": "XMLHttpRequest", accept: "*/*", "content-type": "application/x-www-form-urlencoded; charset=UTF-8" };
  const ajax = (route, form) => visitor.fetch(`/index.php?route=${route}`, { method: "POST", headers, body: new URLSearchParams({ ...form, ajax_request: "true", server: "1", token }).toString() });
  const sql = (statement, table = null) => visitor.form(
    table ? at("/table/sql", table) : at("/database/sql"), "#sqlqueryform", { sql_query: statement, sql_delimiter: ";" },
    { button: "#button_submit_query", navigate: 0, extra: { is_js_confirmed: "0", ...script() }, action: "/index.php?route=/import", headers });
  const tables = ["customers", "orders"];
  await attempt("tables", () => sql(tables.map((name) => `CREATE TABLE \`${name}\` (\n  \`id\` int NOT NULL AUTO_INCREMENT,\n  \`name\` varchar(200) DEFAULT NULL,\n  \`city\` varchar(200) DEFAULT '',\n  \`note\` text,\n  \`price\` decimal(10,2) DEFAULT '0.00',\n  \`created_at\` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,\n  PRIMARY KEY (\`id\`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;`).join("\n")));
  const table = () => content.pick(tables);
  for (let times = 0; times < 26; times++) {
    await attempt("statement", () => {
      const name = table();
      const own = content.often(0.4) ? name : null;
      const statements = Array.from({ length: content.often(0.2) ? content.number(2, 4) : 1 }, () => content.sql(name, content.pick(["name", "city", "note"])));
      return sql(statements.join(";\n"), own);
    });
  }
  for (let times = 0; times < 8; times++) {
    // As people type, the editor has the text looked at, and asks for names.
    await attempt("typing", () => ajax("/lint", { sql_query: content.sql(table(), "name").slice(0, content.number(20, 200)), options: '{"history_query":null}' }));
  }
  await attempt("names", () => ajax("/database/sql/autocomplete", { db }));
  for (let times = 0; times < 3; times++) {
    await attempt("navigation", () => ajax("/navigation", { aPath: "cm9vdA==", vPath: "cm9vdA==", pos: "0", pos2_name: "", pos2_value: "", searchClause: content.word(), searchClause2: content.word(), _nocache: script()._nocache }));
  }
  for (let times = 0; times < 9; times++) {
    await attempt("insert", async () => {
      const name = table();
      const page = await visitor.fetch(at("/table/change", name));
      const keys = [...page.text.matchAll(/name="fields_name\[multi_edit\]\[0\]\[([0-9a-f]+)\]"[^>]*value="([^"]+)"/g)];
      const values = { name: content.title(), city: content.word(), note: content.often(0.4) ? content.html(1, 3) : content.text(1, 3), price: `${content.number(1, 999)}.50` };
      const fields = Object.fromEntries(keys.filter(([, , column]) => values[column]).map(([, key, column]) => [`fields[multi_edit][0][${key}]`, values[column]]));
      await visitor.form(at("/table/change", name), "#insertForm", fields, { navigate: 0, extra: script(), headers: {} });
    });
  }
  for (let times = 0; times < 6; times++) {
    await attempt("search rows", () => {
      const name = table();
      return visitor.form(at("/table/search", name), "#tbl_search_form", { "criteriaValues[1]": content.word(), "criteriaColumnOperators[1]": content.pick(["LIKE %...%", "=", "!=", "LIKE", "REGEXP"]), "criteriaValues[3]": content.often(0.5) ? content.search() : "" }, { navigate: 0, extra: { submit: "Go", ...script() } });
    });
    await attempt("search database", () => visitor.form(at("/database/search"), "#db_search_form", { criteriaSearchString: content.search(), criteriaSearchType: String(content.number(1, 5)), "criteriaTables[]": tables }, { navigate: 0.2 }));
  }
  for (let times = 0; times < 2; times++) {
    await attempt("where in search", () => visitor.form(at("/table/search", table()), "#tbl_search_form", { customWhereClause: `\`price\` > ${content.number(1, 50)} AND \`name\` LIKE '%${content.word("en").replaceAll("'", "''")}%' OR 1=1` }, { navigate: 0, extra: { submit: "Go", ...script() } }));
  }
  const made = `t_${content.identifier()}`;
  await attempt("new table", () => ajax("/table/create", {
    db, table: made, orig_num_fields: "2", "field_name[0]": "id", "field_type[0]": "INT", "field_length[0]": "", "field_default_type[0]": "NONE", "field_default_value[0]": "", "field_collation[0]": "", "field_attribute[0]": "UNSIGNED", "field_key[0]": "primary_0",
    "field_extra[0]": "AUTO_INCREMENT", "field_comments[0]": content.sentence(), "field_name[1]": content.pick(["select", "order", "título", "group by", "name"]), "field_type[1]": "VARCHAR", "field_length[1]": String(content.number(10, 200)), "field_default_type[1]": "USER_DEFINED",
    "field_default_value[1]": content.word(), "field_collation[1]": "utf8mb4_general_ci", "field_attribute[1]": "", "field_comments[1]": content.sentence(), primary_indexes: '[{"Key_name":"PRIMARY","Non_unique":"0","Packed":"0","Index_choice":"PRIMARY","Key_block_size":"","Parser":"","Index_type":"","Index_comment":"","columns":[{"col_index":"0","size":""}]}]',
    unique_indexes: "[]", indexes: "[]", fulltext_indexes: "[]", spatial_indexes: "[]", comment: content.sentence(), tbl_collation: "utf8mb4_general_ci", tbl_storage_engine: "InnoDB", do_save_data: "1",
  }));
  await attempt("new column", () => ajax("/table/add-field", { db, table: made, orig_num_fields: "1", orig_after_field: "id", field_where: "after", after_field: "id", num_fields: "1", "field_name[0]": `c${content.number(1, 99)}`, "field_type[0]": "TEXT", "field_length[0]": "", "field_default_type[0]": "NULL", "field_null[0]": "YES", "field_comments[0]": content.sentence(), do_save_data: "1", primary_indexes: "[]", unique_indexes: "[]", indexes: "[]", fulltext_indexes: "[]", spatial_indexes: "[]" }));
  for (const route of ["/table/structure", "/table/operations", "/table/tracking", "/table/relation", "/table/indexes", "/table/export", "/table/import"]) {
    const path = at(route, table(), `&server=1&ajax_request=true&ajax_page_request=true&_nocache=${script()._nocache}`);
    await attempt("page", () => visitor.fetch(path, { headers: { "x-requested-with": "XMLHttpRequest" } }));
  }
  for (const route of ["/database/structure", "/database/operations", "/database/designer", "/database/routines", "/database/events", "/database/triggers", "/database/qbe", "/server/databases", "/server/status", "/server/variables", "/server/collations", "/preferences/manage"]) {
    await attempt("page", () => (content.often(0.3) ? visitor.go(at(route), { by: "link" }) : visitor.fetch(at(route))));
  }
  for (let times = 0; times < 3; times++) {
    await attempt("browse", () => ajax("/sql", { db, table: table(), sql_query: `SELECT * FROM \`${table()}\` ORDER BY \`${content.pick(["name", "city", "price"])}\` ${content.pick(["ASC", "DESC"])}`, session_max_rows: String(content.pick([25, 50, 100, 250])), pos: String(content.number(0, 3) * 25), is_browse_distinct: "0", goto: "index.php?route=/table/sql" }));
  }
  for (let times = 0; times < 2; times++) {
    await attempt("export", () => visitor.form(at("/database/export"), "form[name=dump]", { what: content.pick(["sql", "csv", "json", "xml"]) }, { navigate: 0 }));
    await attempt("import", () => {
      const rows = Array.from({ length: content.number(2, 9) }, () => `INSERT INTO \`customers\` (\`name\`, \`city\`, \`note\`) VALUES ('${content.word().replaceAll("'", "''")}', '${content.word().replaceAll("'", "''")}', '${content.sentence().replaceAll("'", "''").replaceAll("\\", "\\\\")}');`);
      const file = { name: `backup-${content.number(1, 999)}.sql`, type: "application/sql", base64: Buffer.from(`-- ${content.sentence("en")}\nSET NAMES utf8mb4;\n${rows.join("\n")}\n`).toString("base64") };
      return visitor.form(at("/database/import"), "#import_file_form", { import_file: file, format: "sql" }, { navigate: 0 });
    });
  }
  await attempt("comment", () => visitor.form(at("/table/operations", table()), "#tableOptionsForm, form[name=tableOptionsForm]", { comment: content.sentence() }, { navigate: 0.3 }));
  await attempt("routine", () => ajax("/database/routines", { db, add_item: "1", editor_process_add: "1", item_name: `p_${content.identifier()}`, item_type: "PROCEDURE", item_param_dir: "IN", item_definition: `BEGIN\n  SELECT * FROM customers WHERE name = '${content.word("en").replaceAll("'", "''")}';\nEND`, item_isdeterministic: "ON", item_definer: "", item_securitytype: "DEFINER", item_sqldataaccess: "READS SQL DATA", item_comment: content.word() }));
  await attempt("preferences", () => visitor.form("/index.php?route=/preferences/forms&form=Sql", "#page_content form[method=post], form.config-form", {}, { navigate: 0, extra: { submit_save: "Sql", "Console-Height": String(content.number(50, 200)) } }));
  await attempt("theme", () => ajax("/themes/set", { set_theme: content.pick(["pmahomme", "original", "metro"]) }));
}

// With all scripts: the editor of statements, and its own messages while people type.
async function full(visitor) {
  const { content, person, page } = visitor;
  await page.goto(`${visitor.base}/`, { waitUntil: "load" });
  await page.fill("#input_username", person.login);
  await page.fill("#input_password", person.password);
  await page.click("#input_go");
  await page.waitForLoadState("load");
  for (let times = 0; times < 4; times++) {
    await page.goto(`${visitor.base}/index.php?route=/database/sql&db=shop_${person.login}`, { waitUntil: "load" });
    await page.waitForFunction(() => document.querySelector("#sqlqueryform .CodeMirror")?.CodeMirror, null, { timeout: 15_000 });
    await page.locator("#sqlqueryform .CodeMirror").click();
    await page.keyboard.type(content.sql("customers", "name").replaceAll("\n", " "), { delay: 5 });
    await page.waitForTimeout(600);
    await page.click("#button_submit_query");
    await page.waitForTimeout(1500);
  }
  await page.goto(`${visitor.base}/index.php?route=/sql&db=shop_${person.login}&table=customers&pos=0`, { waitUntil: "load" });
  await page.waitForTimeout(1000);
}

export async function phpmyadmin(browser, plan) {
  await everybody("phpmyadmin", plan.visitors, 2, async (person, attempt) => {
    const visitor = await Visitor.open(browser, plan, person, plan.hosts.phpmyadmin);
    await session(visitor, attempt).finally(() => visitor.close());
    if (person.number % 16 === 2) {
      const again = await Visitor.open(browser, plan, person, plan.hosts.phpmyadmin, { full: true });
      await attempt("editor", () => full(again)).finally(() => again.close());
    }
  });
}
