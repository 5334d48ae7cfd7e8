// What `tools/browser/check --pictures DIR` does: the pictures of docs/view.md, of models/chairs and of runs of
// the presets `shapes` and `sines` with their own settings.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const into = process.env.PICTURES;
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), "ebp-view-"));
const run = (...words) => execFileSync(process.env.EBP, words, { cwd: scratch, stdio: ["ignore", "pipe", "inherit"] });
run("view", path.resolve("models/chairs"), "-q", "-o", "chairs.html");
for (const preset of ["shapes", "sines"]) {
  run("train", preset, "-q", "--out", preset);
  run("view", preset, "-q", "-o", `${preset}.html`);
}

const browser = await launch();
const photograph = async (name, page, { act, ...options }) => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 }, ...options });
  const view = await context.newPage();
  await view.goto(`${pathToFileURL(path.join(scratch, page))}#still`);
  await view.waitForTimeout(1500);
  await act?.(view);
  await view.waitForTimeout(1500);
  await view.screenshot({ path: path.join(into, `${name}.png`) });
  await context.close();
};
const dark = { colorScheme: "dark" };
await photograph("view_light", "chairs.html", { act: (view) => view.selectOption("#colouring", "log density") });
await photograph("view_dark", "shapes.html", { ...dark, act: (view) => view.keyboard.press("v") });
await photograph("view_densities", "sines.html", {
  viewport: { width: 1200, height: 700 },
  act: (view) => view.getByRole("button", { name: "Curve 2" }).click(),
});
await photograph("view_narrow", "shapes.html", {
  viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true,
  act: async (view) => { for (let i = 0; i < 3; i++) await view.keyboard.press("v"); await view.locator("#steps").fill("6"); },
});
await browser.close();
fs.rmSync(scratch, { recursive: true });
