// A browser without a window that draws WebGL2 by the processor: $CHROMIUM, or the one of npm in $EBP_BROWSER.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const installed = createRequire(path.join(process.env.EBP_BROWSER, "package.json"));
const { chromium } = installed("playwright-core");

const fromNpm = async () => {
  const { default: packed } = await import(pathToFileURL(installed.resolve("@sparticuz/chromium")));
  return packed.default ? packed.default.executablePath() : packed.executablePath();
};

const options = async () => ({
  executablePath: process.env.CHROMIUM || (await fromNpm()),
  args: ["--no-sandbox", "--headless=shell", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
});

export const launch = async () => chromium.launch(await options());

// The same and its process, for those who kill it.
export const launchProcess = async () => {
  const server = await chromium.launchServer(await options());
  return { browser: await chromium.connect(server.wsEndpoint()), kill: () => server.process().kill("SIGKILL") };
};
