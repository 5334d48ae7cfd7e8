// What docs/build runs first: puts the pages of the repository into a folder that mdBook reads, each at its own
// path, so that links between them hold, with equations as MathML. Usage: stage.mjs FOLDER
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const folder = process.argv[2];
const installed = createRequire(path.join(process.env.EBP_BOOK, "package.json"));
const temml = installed("temml");

// Pages in their order, and all that pages link to or show.
const kept = ["README.md", "NOTATION.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-APACHE",
  "LICENSE-MIT", "docs", "models/README.md", "bench", "bindings/python/README.md", "bindings/python/examples",
  "tools/reference"];
const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ...kept])
  .toString().split("\0").filter((file) => file && fs.existsSync(file));
const source = path.join(folder, "src");
const code = /(^ *(`{3,})[^\n]*\n[\s\S]*?^ *\2 *$)|(`+[^`][\s\S]*?`+)/gm;

// `$$…$$` and `$…$` outside of code; a dollar before a digit or a space is money.
const equation = (tex, displayMode) => {
  const out = temml.renderToString(tex.trim(), { displayMode, throwOnError: true });
  // Markdown ends a piece of HTML at an empty line, and reads signs between its tags.
  const signs = (text) => text.replace(/[~*_|`\\[\]]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return out.replace(/\n/g, " ").replace(/>([^<]+)</g, (_, text) => `>${signs(text)}<`);
};
let count = 0;
const typeset = (text, file) => {
  const out = replaced(text);
  const left = out.match(/(?<!\\)\$.*/);
  if (left) throw new Error(`${file}: an equation that does not end, or a dollar that needs a backslash: ${left[0]}`);
  return out;
};
const replaced = (text) => text
  .replace(/\$\$([\s\S]+?)\$\$/g, (_, tex) => (count += 1, `\n${equation(tex, true)}\n`))
  .replace(/(?<![\\\w$])\$([^\s$](?:(?:(?!\n\n)[^$])*?[^\s$\\])?)\$(?![\w$])/g, (_, tex) => (count += 1, equation(tex, false)));

for (const file of listed) {
  const target = path.join(source, file);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  if (!file.endsWith(".md")) {
    fs.copyFileSync(file, target);
    continue;
  }
  const text = fs.readFileSync(file, "utf8");
  // mdBook makes an index of README.md, and leaves links to it as they are.
  const index = (text) => text.replace(/(\]\((?:[^()\s]*\/)?)README\.md(#[^)]*)?\)/g, "$1index.md$2)");
  let out = "", at = 0;
  for (const found of text.matchAll(code)) {
    out += index(typeset(text.slice(at, found.index), file)) + found[0];
    at = found.index + found[0].length;
  }
  out += index(typeset(text.slice(at), file));
  fs.writeFileSync(target, out);
}

// docs/SUMMARY.md links from docs, mdBook from the folder of all pages. A page that is not there is an error.
const summary = fs.readFileSync("docs/SUMMARY.md", "utf8").replace(/\]\(([^)]+)\)/g, (_, link) => {
  const page = path.posix.normalize(path.posix.join("docs", link));
  if (!fs.existsSync(path.join(source, page))) throw new Error(`docs/SUMMARY.md: there is no ${link}`);
  return `](${page})`;
});
fs.writeFileSync(path.join(source, "SUMMARY.md"), summary);
fs.rmSync(path.join(source, "docs/SUMMARY.md"));

// Every page of docs has its place.
const pages = listed.filter((file) => file.startsWith("docs/") && file.endsWith(".md") && file !== "docs/SUMMARY.md");
for (const page of pages) {
  if (!summary.includes(`](${page})`)) throw new Error(`docs/SUMMARY.md has no place for ${page}`);
}

fs.copyFileSync("tools/book/book.toml", path.join(folder, "book.toml"));
fs.copyFileSync("tools/book/book.css", path.join(folder, "book.css"));
const font = installed.resolve("@fontsource/stix-two-math/package.json");
const files = path.join(path.dirname(font), "files");
const math = fs.readdirSync(files).filter((name) => name.endsWith("-400-normal.woff2"));
fs.mkdirSync(path.join(source, "fonts"));
for (const name of math) fs.copyFileSync(path.join(files, name), path.join(source, "fonts", name));
const css = math.map((name) => `@font-face { font-family: "Book Math"; src: url("fonts/${name}"); }`);
fs.appendFileSync(path.join(folder, "book.css"), `\n${css.join("\n")}\n`);
console.log(`${pages.length} pages of docs, ${count} equations`);
