// The snippets are the request: run as they are shown, they get the answers that the page got.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { assert, equal, visit } from "./support.mjs";

const run = promisify(execFile);
const CASES = ["ticket", "json", "extract", "lane", "self", "decisio", "vllm", "gmlx", "openai"];

async function answersOf(response) {
  return JSON.stringify((await response.json()).answers);
}

async function asShown(page, name, folder) {
  await page.selectOption("#example", name);
  await page.fill("#state", `${await page.inputValue("#state")} `);
  await page.waitForFunction(() => document.getElementById("code-curl").textContent !== "");
  const answered = page.waitForResponse((response) => response.request().method() === "POST");
  await page.click("#ask");
  const wanted = await answersOf(await answered);
  const text = (language) => page.textContent(`#code-${language}`);
  const curl = await run("bash", ["-c", (await text("curl")).replace("curl ", "curl -sS ")]);
  equal(JSON.stringify(JSON.parse(curl.stdout).answers), wanted, `${name}: curl`);
  const script = join(folder, "ask.mjs");
  writeFileSync(script, (await text("JavaScript")).replace("console.log(answer.answers)", "console.log(JSON.stringify(answer.answers))"));
  equal((await run("node", [script])).stdout.trim(), wanted, `${name}: JavaScript`);
  const python = process.env.PAGES_PYTHON;
  // OpenAI's client is in another place.
  if (!python || name === "openai") return;
  const program = join(folder, "ask.py");
  writeFileSync(program, await text("Python"));
  const { stdout } = await run(python, [program]);
  const ids = Object.keys(JSON.parse(wanted));
  assert(ids.every((id) => stdout.includes(id)), `${name}: Python: ${stdout}`);
}

export async function snippets(test, browser, base) {
  const folder = mkdtempSync(join(tmpdir(), "pages-"));
  for (const name of CASES) {
    await test(`curl, Python and JavaScript ask the same: ${name}`, () => visit(browser, base, {}, (page) => asShown(page, name, folder)));
  }
  rmSync(folder, { recursive: true });
}
