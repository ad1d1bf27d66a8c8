// What is asked is answered and drawn: each example in each view, drafts made by hand, links.

import { VIEWS, accessible, ask, assert, equal, fits, visit } from "./support.mjs";

const sent = (page) => page.waitForRequest((request) => request.method() === "POST");

// Every question of the draft has an answer, and every distribution sums to 1.
async function isDrawn(page, what) {
  const asked = await page.$$eval("#questions > li", (cards) => cards.map((card) => card.dataset.question));
  const drawn = await page.$$eval(".answer", (all) => all.map((each) => ({
    id: each.dataset.question,
    isSkipped: each.querySelector(".skipped") !== null,
    headline: (each.querySelector(".headline, blockquote") || {}).textContent || "",
    kind: each.querySelector(".kind").textContent,
    shares: [...each.querySelectorAll(".bar .value")].map((value) => parseFloat(value.textContent.replace(/[<>]/, ""))),
    isMore: each.querySelector(".bars + button") !== null,
  })));
  equal(drawn.map((each) => each.id).join(), asked.join(), `${what}: answers`);
  for (const each of drawn.filter((one) => !one.isSkipped)) {
    assert(each.headline !== "", `${what}: ${each.id} has no headline`);
    const sum = each.shares.reduce((whole, share) => whole + share, 0);
    // An excerpt shows itself and "not stated"; other passages have the rest.
    const isWhole = each.isMore || each.kind === "excerpt" || Math.abs(sum - 100) < 1;
    assert(each.shares.length > 0 && isWhole, `${what}: ${each.id} sums to ${sum} %`);
  }
}

async function isMeasured(page, what) {
  const steps = await page.$$eval(".waterfall .name", (names) => names.map((name) => name.textContent));
  equal(steps.join(), "queue,state,engine wait,engine,readout,network", `${what}: waterfall`);
  const tokens = await page.$$eval("[data-tokens]", (all) => all.map((each) => Number(each.textContent.replaceAll(",", ""))));
  assert(tokens.length === 2 && tokens[0] + tokens[1] > 0, `${what}: tokens ${tokens}`);
}

async function examplesIn(test, browser, base, shots, view) {
  await test(`each example is answered and drawn, ${view}`, () => visit(browser, base, { view }, async (page) => {
    await accessible(page, "before anything is asked");
    await page.screenshot({ path: `${shots}/${view}-start.png` });
    const names = await page.$$eval("#example option", (all) => all.map((each) => each.value).filter(Boolean));
    assert(names.length >= 10, `examples: ${names}`);
    for (const name of names) {
      await page.selectOption("#example", name);
      await ask(page);
      assert(!await page.$(".fault"), `${name}: ${await page.$eval("#answers", (each) => each.textContent)}`);
      assert(!await page.$("#answers .note"), `${name}: ${await page.$eval("#answers", (each) => each.textContent)}`);
      await isDrawn(page, name);
      await isMeasured(page, name);
      await fits(page, name);
      await accessible(page, name);
      await page.screenshot({ path: `${shots}/${view}-${name}.png`, fullPage: view === "phone" });
      await page.$$eval("details", (all) => all.forEach((each) => { each.open = true; }));
      await fits(page, `${name}, opened`);
      if (name === "stages") await accessible(page, `${name}, opened`);
      if (["stages", "extract"].includes(name)) await page.screenshot({ path: `${shots}/${view}-${name}-opened.png`, fullPage: true });
    }
  }));
}

async function prewarmed(page) {
  await page.selectOption("#example", "prewarm");
  await page.fill("#state", `A state that nobody has read yet, ${Date.now()}. ${await page.inputValue("#state")}`);
  await page.click("#prewarm");
  await page.waitForSelector(".residency.resident");
  const told = await page.textContent("#residency");
  const tokens = Number(/([\d,]+) tokens/.exec(told)[1].replace(",", ""));
  assert(tokens > 50 && told.includes("read just now") && told.includes("kept until"), told);
  await ask(page);
  const [cached, computed] = await page.$$eval("[data-tokens]", (all) => all.map((each) => Number(each.textContent.replaceAll(",", ""))));
  assert(cached >= tokens && computed > 0, `cached ${cached}, computed ${computed}, prewarmed ${tokens}`);
  await page.click("#estimate");
  await page.waitForFunction(() => document.getElementById("residency").textContent.includes("are resident"));
  const all = /(\d+) of (\d+) tokens/.exec(await page.textContent("#residency"));
  equal(all[1], all[2], "resident by the estimate");
  await page.locator("#state").press("End");
  await page.locator("#state").pressSequentially(" More.");
  await page.waitForSelector(".residency.old");
  await page.click("#residency button");
  await page.waitForFunction(() => document.getElementById("residency").textContent.includes("given up"));
}

// A draft made with the keyboard: a question of each type that there is.
async function built(page) {
  await page.selectOption("#example", "");
  await page.fill("#state", "{\"a\": 1.0, \"10\": 2e1, \"2\": \"é\"}");
  await page.locator("#kind-json").focus();
  await page.keyboard.press("Space");
  const type = async (text) => page.keyboard.type(text);
  for (const name of ["noul", "choice", "score", "number", "excerpt"]) {
    await page.locator("#adders button", { hasText: name }).focus();
    await page.keyboard.press("Enter");
    await type(`What of ${name}?`);
    if (name === "choice") {
      for (const text of ["red", "a colour", "", "blue"]) {
        await page.keyboard.press("Tab");
        await type(text);
        if (text === "a colour") continue;
      }
    }
    if (name === "score") {
      for (const text of ["low", "", "high", "", "top"]) {
        await page.keyboard.press("Tab");
        await type(text);
      }
    }
  }
  const request = sent(page);
  await page.keyboard.press("Control+Enter");
  const body = (await request).postData();
  await page.waitForSelector("#answers .answer, #answers .fault");
  assert(body.includes("{\"a\": 1.0, \"10\": 2e1, \"2\": \"é\"}"), `the state was written anew: ${body}`);
  const { questions } = JSON.parse(body);
  equal(JSON.stringify(Object.values(questions).map((each) => [each.type, each.criteria ?? null])), JSON.stringify([
    ["noul", null], ["choice", { red: "a colour", blue: null }], ["score", ["low", "high", "top"]], ["number", null], ["excerpt", null],
  ]), "questions");
  await isDrawn(page, "by keyboard");
}

// Everything that the page offers is taken, in every dialect: nothing is refused, nothing ignored.
async function allFields(page) {
  const dialects = await page.$$eval("#dialect option", (all) => all.map((each) => each.value));
  assert(dialects.length >= 6, `dialects: ${dialects}`);
  for (const dialect of dialects) {
    await page.selectOption("#example", "ticket");
    await page.selectOption("#dialect", dialect);
    for (const type of ["number", "excerpt"]) {
      const adder = page.locator("#adders button", { hasText: type });
      if (!await adder.count()) continue;
      await adder.click();
      await page.keyboard.type("Which number or passage?");
    }
    await page.$$eval("details", (all) => all.forEach((each) => { each.open = true; }));
    await page.selectOption("#how select", "batch");
    const fill = async (label, text) => {
      for (const field of await page.getByLabel(label, { exact: true }).all()) await field.fill(text);
    };
    for (const [label, text] of [["Time limit in ms", "5000"], ["Orders to read", "2"], ["One more order above", "0.2"],
      ["At most orders", "3"], ["Context", "Be strict."], ["Instructions", "Be kind."], ["Yes means", "it is so"]]) await fill(label, text);
    for (const label of ["Diagnostics", "Show earlier answers", "State as the model read it", "Cite"]) {
      for (const box of await page.getByLabel(label, { exact: true }).all()) await box.check();
    }
    await ask(page);
    const text = await page.textContent("#answers");
    assert(!await page.$(".fault") && !await page.$("#answers .note"), `${dialect}: ${text}`);
    await isDrawn(page, dialect);
    assert(text.includes("lane batch"), `${dialect}: the lane was not taken: ${text}`);
    await page.click("#prewarm");
    await page.waitForSelector(".residency.resident");
    await page.click("#estimate");
    await page.waitForFunction(() => document.getElementById("residency").textContent.includes("are resident"));
    assert(!await page.$(".fault"), `${dialect}: ${await page.textContent("#answers")}`);
  }
}

async function linked(browser, base) {
  const draft = (page) => page.textContent("#code-curl");
  const made = await visit(browser, base, {}, async (page) => {
    await page.selectOption("#example", "stages");
    await page.fill("#state", "Žluťoučký kůň 🐎 \"quoted\" </script>");
    await page.waitForFunction(() => document.getElementById("code-curl").textContent.includes("🐎"));
    await page.click("#share");
    await page.waitForFunction(() => location.hash.length > 10);
    return { hash: new URL(page.url()).hash, draft: await draft(page) };
  });
  await visit(browser, base, { hash: made.hash }, async (page) => {
    equal(await draft(page), made.draft, "the draft of the link");
    assert(!await page.$(".answer"), "a link asks by itself");
  });
  for (const hash of ["#ask=", "#ask=AAAA", `#ask=${"x".repeat(99)}`]) {
    await visit(browser, base, { hash }, async (page) => {
      assert((await page.textContent("#said")).includes("cannot be read"), `${hash}: ${await page.textContent("#said")}`);
      assert((await page.$$("#questions > li")).length > 0, `${hash}: no draft`);
    });
  }
}

async function painted(page) {
  const ms = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  // Told, and judged by nobody here: a machine's figures are in docs/BENCHMARKS.md.
  console.log(`        first paint after ${Math.round(ms)} ms`);
  assert(ms > 0, "nothing was painted");
}

export async function playground(test, browser, base, shots) {
  for (const view of Object.keys(VIEWS)) await examplesIn(test, browser, base, shots, view);
  await test("a prewarm, and the next answer shows the hit", () => visit(browser, base, {}, prewarmed));
  await test("a draft is made with the keyboard alone", () => visit(browser, base, {}, built));
  await test("every field that is offered is taken, in every dialect", () => visit(browser, base, {}, allFields));
  await test("a link has the draft in it, and asks nothing by itself", () => linked(browser, base));
  await test("something is painted", () => visit(browser, base, {}, painted));
  await test("the reference is sound", () => visit(browser, base, { path: "/docs", isPlay: false }, async (page) => {
    await page.waitForSelector("#routes > details");
    // Judging all routes at once takes minutes.
    await page.fill("#search", "/v1/usage");
    await accessible(page, "reference");
  }));
}
