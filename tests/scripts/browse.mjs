// Visits the demo shop in a headless Chromium as a customer would, and records it as HAR.
//
//   node browse.mjs PLAYWRIGHT_FOLDER CHROMIUM SHOP_URL OUT.har
//
// PLAYWRIGHT_FOLDER is an installed `playwright-core`.

import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [folder, program, shop, out] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(join(folder, "index.mjs")))).default ?? {};
const browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const context = await browser.newContext({ recordHar: { path: out, content: "embed" }, locale: "en-GB" });
const page = await context.newPage();
const settled = () => page.waitForLoadState("networkidle");

await page.goto(shop);
await settled();
await page.fill("input[name=q]", "garden chairs & tables");
await page.press("input[name=q]", "Enter");
await settled();
await page.goto(`${shop}/items/2`);
await settled();
await page.click("button[data-item]");
await settled();
await page.goto(`${shop}/login`);
await page.fill("input[name=user]", "ada@example.org");
await page.fill("input[name=password]", "correct horse battery staple");
await page.click("button");
await settled();
await page.fill("input[name=stars]", "5");
await page.fill("textarea[name=text]", "Arrived on time; the \"oak\" looks great — 10/10.\nWould order again, and so would my neighbour's cat.");
await page.click("form[action='/shop/reviews'] button");
await settled();
await page.setInputFiles("input[name=picture]", {
  name: "garden.png",
  mimeType: "image/png",
  buffer: Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"),
});
await page.click("form[action='/shop/pictures'] button");
await settled();
// What somebody tries who is no customer.
await page.goto(`${shop}/search?q=${encodeURIComponent("<script>alert(document.cookie)</script>")}`);
await page.goto(`${shop}/items/1?sort=${encodeURIComponent("1' UNION SELECT name, password FROM users-- -")}`);
await page.goto(`${shop}/nothing-here`);
await settled();
await context.close();
await browser.close();
