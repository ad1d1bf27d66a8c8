// The pages in a browser: what a person does, what is drawn, what is asked of whom.
// browse.mjs --open URL --keyed URL --key KEY [--shots FOLDER]

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values } = parseArgs({ options: { open: { type: "string" }, keyed: { type: "string" }, key: { type: "string" }, shots: { type: "string" } } });
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDE = { width: 1280, height: 900 };
const PHONE = { width: 360, height: 740 };
const SERIOUS = ["serious", "critical"];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });
let passed = 0;
let failed = 0;

/** Runs one check on a page of its own; console errors and requests to others fail it. */
async function check(name, base, act, { viewport = WIDE, scheme = "light", expected = [], at = "/", ready = "body[data-ready]" } = {}) {
  const began = performance.now();
  const context = await browser.newContext({ viewport, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (said) => {
    if (said.type() === "error" && !expected.some((words) => said.text().includes(words))) faults.push(`console: ${said.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("request", (sent) => {
    if (!sent.url().startsWith(`${base}/`) && !sent.url().startsWith("data:")) faults.push(`request to ${sent.url()}`);
  });
  try {
    await page.goto(base + at);
    await page.waitForSelector(ready);
    await act(page);
    assert.deepEqual(faults, []);
    passed += 1;
    console.log(`ok   ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message.slice(0, 1200)} ${faults.join("; ")}`);
  }
  await context.close();
}

async function answered(page) {
  await page.click("#send");
  await page.waitForFunction(() => !document.getElementById("send").disabled);
}

async function examples(page) {
  return page.$$eval("#example option", (options) => options.map((option) => [option.value, option.textContent]));
}

/** No serious fault for who uses a keyboard or a screen reader, and nothing beyond the right edge. */
async function accessible(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run(document));
  const found = violations.filter(({ impact }) => SERIOUS.includes(impact));
  assert.deepEqual(found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ").slice(0, 300)}`), []);
  const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.equal(over, 0, "scrolls sideways");
}

async function shot(page, name) {
  if (values.shots) await page.screenshot({ path: path.join(values.shots, `${name}.png`), fullPage: true });
}

await check("every example is answered and drawn", values.open, async (page) => {
  const found = await examples(page);
  assert.ok(found.length >= 12);
  for (const [place, name] of found) {
    await page.selectOption("#example", place);
    await answered(page);
    const asked = await page.$$eval(".question .head input", (inputs) => inputs.map((input) => input.value));
    const drawn = await page.$$eval("#told .answer[data-id]", (answers) => answers.map((answer) => answer.dataset.id));
    assert.deepEqual(drawn.sort(), asked.sort(), name);
    assert.equal(await page.$$eval("#told .fault", (faults) => faults.length), 0, name);
    assert.match(await page.textContent("#told .times"), /engine .* ms/, name);
    assert.match(await page.textContent("#told .cost"), /computed/, name);
  }
});

await check("bars are as long as what they stand for", values.open, async (page) => {
  await answered(page);
  const bars = await page.$$eval("#told .answer[data-id=team] .bars", ([list]) => [...list.querySelectorAll(".track")].map((track) => ({
    share: Number.parseFloat(track.parentElement.nextElementSibling.textContent),
    width: (100 * track.firstElementChild.getBoundingClientRect().width) / track.getBoundingClientRect().width,
  })));
  assert.equal(bars.length, 3);
  for (const { share, width } of bars) assert.ok(Math.abs(share - width) < 1, `${share} ${width}`);
  assert.ok(Math.abs(bars.reduce((sum, { share }) => sum + share, 0) - 100) < 0.5);
  assert.match(await page.textContent("#told .answer[data-id=team] .facts"), /confidence .*label mass .*order consistency/);
});

await check("a prewarm is told, and the next question finds the state", values.open, async (page) => {
  await page.fill("#state", `A state of its own. ${"It has some words more. ".repeat(20)}${Date.now()}`);
  await page.click("#prewarm");
  await page.waitForFunction(() => document.getElementById("resident").textContent.includes("is resident now"));
  await answered(page);
  const found = Number(/(\d+) found resident/.exec(await page.textContent("#told .cost"))[1]);
  assert.ok(found > 400, `${found}`);
  await page.click("#prewarm");
  await page.waitForFunction(() => document.getElementById("resident").textContent.includes("resident already"));
});

await check("a refusal names the field and the limit", values.open, async (page) => {
  await page.fill(".question .head input >> nth=0", "");
  await page.fill("#state", "x");
  await page.evaluate(() => { document.getElementById("options").open = true; });
  await page.fill("#settings input[placeholder='auto, or 1, 2, ...']", "0");
  await answered(page);
  const told = await page.textContent("#told .fault");
  assert.match(told, /422.*samples/s);
}, { expected: ["422"] });

await check("what is no JSON is told before it is sent", values.open, async (page) => {
  await page.selectOption("#state-kind-choice", "json");
  await page.fill("#state", "{\"a\": }");
  await answered(page);
  assert.match(await page.textContent("#told .fault"), /the state is no JSON/);
});

await check("a question of each type can be built and asked", values.open, async (page) => {
  while (await page.$(".question")) await page.click(".question .plain >> nth=0");
  for (const kind of ["noul", "choice", "score", "number", "excerpt"]) await page.selectOption("#add", kind);
  await page.fill("#state", "Two lamps at 39.50 each. The parcel is late.");
  await answered(page);
  const types = await page.$$eval("#told .answer[data-id]", (answers) => answers.map((answer) => answer.dataset.type));
  assert.deepEqual(types, ["noul", "choice", "score", "number", "excerpt"]);
});

await check("an estimate is drawn", values.open, async (page) => {
  await page.click("#estimate");
  await page.waitForSelector("#told .estimate");
  assert.match(await page.textContent("#told .estimate"), /it would be let in/);
});

await check("the code is the request, in each language", values.open, async (page) => {
  await page.evaluate(() => { document.getElementById("code").open = true; });
  const wanted = { curl: /curl 'http.*-d '/s, "Python (SDK)": /client\.system_one\(/, JavaScript: /await fetch\(/ };
  for (const [name, pattern] of Object.entries(wanted)) {
    await page.click(`.tabs button:text-is("${name}")`);
    assert.match(await page.textContent("#snippet"), pattern);
  }
});

await check("a link brings the draft back, and never a key", values.keyed, async (page) => {
  await page.fill("#key", values.key);
  await page.fill("#state", "Grüße, 日本 and \"quotes\"");
  await page.click("#share");
  const address = page.url();
  assert.ok(address.includes("#d=") && !address.includes(values.key) && !atob(address.split("#d=")[1].replaceAll("-", "+").replaceAll("_", "/")).includes(values.key));
  const other = await page.context().newPage();
  await other.goto(address);
  await other.waitForSelector("body[data-ready]");
  assert.equal(await other.inputValue("#state"), "Grüße, 日本 and \"quotes\"");
  assert.equal(await other.inputValue("#key"), "");
  await other.goto(`${values.keyed}/#d=bm9uc2Vuc2U`);
  await other.reload();
  await other.waitForSelector("body[data-ready]");
  assert.match(await other.inputValue("#state"), /Charged twice/);
});

await check("a key is asked for, and used once it is given", values.keyed, async (page) => {
  await answered(page);
  assert.match(await page.textContent("#told .fault"), /401/);
  assert.equal(await page.evaluate(() => document.activeElement.id), "key");
  await page.fill("#key", values.key);
  await answered(page);
  assert.equal(await page.$$eval("#told .answer[data-id]", (answers) => answers.length), 3);
  const kept = await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie]);
  assert.deepEqual(kept, [0, 0, ""]);
}, { expected: ["401"] });

await check("all of it goes by keyboard", values.open, async (page) => {
  await page.focus("#state");
  await page.keyboard.press("Control+Enter");
  await page.waitForSelector("#told .answer[data-id]");
});

const REFERENCE = { at: "/docs", ready: "main[aria-busy=false] details" };

async function tried(page, id) {
  const route = page.locator(`[id="${id}"]`);
  await route.locator("summary").first().click();
  await route.locator("details.try > summary").click();
  await route.locator("details.try button").click();
  await page.waitForFunction((place) => /^\d{3} after/.test(document.getElementById(place).querySelector(".try pre").textContent), id);
  return route.locator(".try pre").textContent();
}

await check("routes of the reference are found and tried", values.open, async (page) => {
  const all = await page.$$eval("#routes > details", (routes) => routes.length);
  await page.fill("#search", "prewarm states");
  const left = await page.$$eval("#routes > details:not([hidden])", (routes) => routes.length);
  assert.ok(left > 0 && left < all, `${left} of ${all}`);
  await page.fill("#search", "");
  assert.match(await tried(page, "get-/health"), /^200 .*"ok": true/s);
  assert.match(await tried(page, "post-/v1/systemone"), /^200 .*x-docket-computed-tokens: .*"answers"/s);
  assert.match(await tried(page, "post-/v1/prewarm"), /^200 .*"ok": true/s);
}, REFERENCE);

await check("a route is tried with a key", values.keyed, async (page) => {
  await page.fill("#key", values.key);
  assert.match(await tried(page, "get-/v1/models"), /^200 /);
}, REFERENCE);

for (const [name, scheme, viewport] of [["dark", "dark", WIDE], ["phone", "light", PHONE]]) {
  await check(`no serious fault of accessibility: reference, ${name}`, values.open, async (page) => {
    await tried(page, "post-/v1/systemone");
    // One route stands for all: there are dozens, made of the same parts, and the tool takes minutes for them.
    await page.evaluate(() => { for (const one of document.querySelectorAll("#routes > details:not([open])")) one.remove(); });
    await accessible(page);
    await shot(page, `reference-${name}`);
  }, { ...REFERENCE, scheme, viewport });
}

for (const [name, scheme, viewport] of [["light", "light", WIDE], ["dark", "dark", WIDE], ["phone", "light", PHONE], ["phone-dark", "dark", PHONE]]) {
  await check(`no serious fault of accessibility: ${name}`, values.open, async (page) => {
    await accessible(page);
    await answered(page);
    await page.evaluate(() => { for (const one of document.querySelectorAll("details")) one.open = true; });
    await accessible(page);
    await page.evaluate(() => { for (const one of document.querySelectorAll("details")) one.open = false; });
    await shot(page, name);
  }, { scheme, viewport });
}

await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
