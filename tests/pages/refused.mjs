// What is refused is told so that it can be mended, and keys are asked for and kept nowhere.

import { accessible, ask, assert, equal, fits, visit } from "./support.mjs";

const KEY = "sk-pages-4711";

async function faults(page, shots, view) {
  await page.selectOption("#example", "ticket");
  for (const box of await page.getByLabel("Remove level 1", { exact: true }).all()) await box.click();
  for (let left = 0; left < 2; left += 1) await page.getByLabel("Remove level 1", { exact: true }).click();
  await ask(page);
  const told = await page.textContent(".fault");
  assert(told.includes("anger") && told.includes("criteria") && told.includes("422"), told);
  assert(/\b2\b/.test(told), `the limit is not told: ${told}`);
  equal(await page.getAttribute(".question.blamed", "data-question"), "anger", "the question at fault");
  await fits(page, "a fault");
  await accessible(page, "a fault");
  await page.screenshot({ path: `${shots}/${view}-fault.png`, fullPage: view === "phone" });
}

async function localFaults(page) {
  await page.selectOption("#example", "json");
  await page.fill("#state", "{\"a\": }");
  await page.waitForSelector("#state[aria-invalid=true]");
  await page.click("#ask");
  assert((await page.textContent("#said")).includes("no JSON"), await page.textContent("#said"));
  await accessible(page, "a state that is no JSON");
}

// Everything of a page that could keep a key.
const kept = (page) => page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href,
  document.documentElement.outerHTML, [...document.querySelectorAll("input, textarea")].map((each) => each.value)]));

async function giveKey(page, key) {
  await page.waitForSelector("#key-dialog[open]");
  await page.fill("#key-input", key);
  await page.keyboard.press("Enter");
}

async function asksForKey(page, base, shots, view) {
  await page.click("#ask");
  await page.waitForSelector("#key-dialog[open]");
  await accessible(page, "the dialog");
  await fits(page, "the dialog");
  await page.screenshot({ path: `${shots}/${view}-key.png` });
  await page.click("#key-cancel");
  await page.waitForSelector(".fault");
  assert((await page.textContent(".fault")).includes("401"), await page.textContent(".fault"));
  await page.click("#ask");
  await giveKey(page, "wrong");
  await page.waitForFunction(() => document.getElementById("key-why").textContent.includes("does not know"));
  await giveKey(page, KEY);
  await page.waitForSelector(".answer");
  await page.waitForFunction(() => document.getElementById("server-told").textContent.includes("fake"));
  assert((await page.textContent("#code-curl")).includes("$DOCKET_KEY"), "curl has no place for a key");
  await page.click("#share");
  await page.waitForFunction(() => location.hash.length > 10);
  assert(!(await kept(page)).includes(KEY), "the key is kept somewhere");
  await page.reload();
  await page.waitForSelector("body.ready");
  await page.click("#ask");
  await page.waitForSelector("#key-dialog[open]");
}

export async function refused(test, browser, base, shots) {
  for (const view of ["light", "dark", "phone"]) {
    await test(`a fault names field, value and limit, ${view}`, () =>
      visit(browser, base, { view, statuses: [422] }, (page) => faults(page, shots, view)));
  }
  await test("a state that is no JSON is told of before it is sent", () => visit(browser, base, {}, localFaults));
}

export async function keyed(test, browser, serve, shots) {
  const server = await serve("--api-key", `acme=${KEY}`);
  for (const view of ["light", "phone"]) {
    await test(`a key is asked for, used and kept nowhere, ${view}`, () =>
      visit(browser, server.base, { view, statuses: [401] }, (page) => asksForKey(page, server.base, shots, view)));
  }
  await test("a server that is gone is told of", () => visit(browser, server.base, { statuses: [0, 401] }, async (page) => {
    await server.stop();
    await ask(page);
    assert((await page.textContent(".fault")).includes("could not be reached"), await page.textContent(".fault"));
  }));
}
