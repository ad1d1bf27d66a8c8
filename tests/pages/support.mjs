// A browser, servers that are stopped by pid, and what is true of every page in every test: nothing is
// asked of any other host, and nothing is logged as an error.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const START_MS = 60_000;

export const VIEWS = {
  light: { viewport: { width: 1360, height: 900 }, colorScheme: "light" },
  dark: { viewport: { width: 1360, height: 900 }, colorScheme: "dark" },
  phone: { viewport: { width: 360, height: 740 }, colorScheme: "light", hasTouch: true },
};

export function assert(is, message) {
  if (!is) throw new Error(message);
}

export function equal(found, wanted, message) {
  assert(found === wanted, `${message}: ${JSON.stringify(found)}, not ${JSON.stringify(wanted)}`);
}

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
}

const running = new Set();

// A server of the binary on a free port: { base, stop }.
export function serve(binary, ...args) {
  const child = spawn(binary, ["serve", "--engine", "fake", "--port", "0", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  running.add(child);
  const gone = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGTERM");
    await gone;
    running.delete(child);
  };
  return new Promise((resolve, reject) => {
    let log = "";
    const late = setTimeout(() => reject(new Error(`the server did not start: ${log}`)), START_MS);
    const read = (bytes) => {
      log += bytes;
      const found = /listening on (https?:\/\/[^\s"]+)/.exec(log);
      if (!found) return;
      clearTimeout(late);
      resolve({ base: found[1].replace(/\/$/, ""), stop });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    gone.then(() => reject(new Error(`the server ended: ${log}`)));
  });
}

export function stopAll() {
  for (const child of running) child.kill("SIGTERM");
}

// Opens a page, runs `use`, and judges what the page logged and asked for. `statuses` are those of
// refusals that the test brings about: the browser logs each.
export async function visit(browser, base, { view = "light", hash = "", path = "/", statuses = [], isPlay = true }, use) {
  const context = await browser.newContext({ ...VIEWS[view], reducedMotion: "reduce", permissions: [] });
  const faults = [];
  const page = await context.newPage();
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message) => {
    const isExpected = statuses.some((status) => message.text().includes(`status of ${status}`))
      || (statuses.includes(0) && message.text().includes("ERR_CONNECTION"));
    if (["error", "warning"].includes(message.type()) && !isExpected) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${base}/`) && !url.startsWith("data:")) faults.push(`asked ${url}`);
  });
  try {
    await page.goto(`${base}${path}${hash}`);
    if (isPlay) await page.waitForSelector("body.ready");
    const found = await use(page);
    assert(faults.length === 0, faults.join("; "));
    return found;
  } finally {
    await context.close();
  }
}

// Nothing that axe calls serious or critical.
export async function accessible(page, what) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  const grave = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = grave.map((one) => `${one.id} (${one.nodes.map((node) => node.target.join(" ")).slice(0, 3).join(", ")})`);
  assert(told.length === 0, `${what}: ${told.join("; ")}`);
}

// No sideways scroll.
export async function fits(page, what) {
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(over <= 0, `${what}: ${over} pixels too wide`);
}

// Asks, and waits for what comes back: { texts of answers, fault }.
export async function ask(page) {
  await page.evaluate(() => document.querySelectorAll("#answers > *").forEach((each) => each.remove()));
  await page.click("#ask");
  await page.waitForSelector("#answers .answer, #answers .fault");
}
