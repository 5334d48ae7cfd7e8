// What docs/build runs last: every page, picture and anchor that a page of the book names is in the book, and
// nothing is fetched from elsewhere. Usage: look.mjs FOLDER
import fs from "node:fs";
import path from "node:path";

const folder = process.argv[2];
const files = fs.readdirSync(folder, { recursive: true }).map(String);
const pages = files.filter((file) => file.endsWith(".html") && !["print.html", "404.html", "toc.html"].includes(file));
const text = new Map(pages.map((page) => [page, fs.readFileSync(path.join(folder, page), "utf8")]));
const ids = new Map([...text].map(([page, html]) => [page, new Set([...html.matchAll(/\bid="([^"]+)"/g)].map((m) => m[1]))]));
const faults = [];
let count = 0;
for (const [page, html] of text) {
  const body = html.slice(html.indexOf("<main>"), html.indexOf("</main>"));
  for (const [, kind, link] of body.matchAll(/\b(href|src)="([^"]*)"/g)) {
    if (kind === "href" && /^(https?|mailto):/.test(link)) continue;
    count += 1;
    const [file, anchor] = decodeURI(link.replaceAll("&amp;", "&")).split("#");
    const target = file ? path.posix.normalize(path.posix.join(path.posix.dirname(page), file)) : page;
    if (/^https?:/.test(link)) faults.push(`${page}: fetches ${link}`);
    else if (!fs.existsSync(path.join(folder, target))) faults.push(`${page}: there is no ${link}`);
    else if (anchor && ids.has(target) && !ids.get(target).has(anchor)) faults.push(`${page}: nothing is called ${link}`);
  }
  for (const [, link] of html.matchAll(/<(?:script|link|img|iframe)[^>]*\b(?:src|href)="(https?:[^"]*)"/g)) {
    faults.push(`${page}: fetches ${link}`);
  }
}
for (const sheet of files.filter((file) => /\.(css|js)$/.test(file))) {
  if (/(@import|url\()\s*["']?https?:/.test(fs.readFileSync(path.join(folder, sheet), "utf8"))) faults.push(`${sheet}: fetches`);
}
if (faults.length > 0) throw new Error(`the book has faults:\n${faults.join("\n")}`);
console.log(`${pages.length} pages, ${count} links, nothing from the network`);
