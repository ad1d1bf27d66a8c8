// The live view moves under load, wants an operator's key, and has no text of a state.

import { accessible, assert, fits, visit } from "./support.mjs";

const KEY = "sk-live-815";
const SECRET = "unmistakable-state-text";

// Asks for a while, so that there is something to look at; returns how to stop.
function load(base, key) {
  let isOn = true;
  const headers = { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
  const questions = { a: { type: "noul", instructions: "Is it so?" }, b: { type: "choice", criteria: ["x", "y", "z"] } };
  const one = async (client) => {
    for (let number = 0; isOn; number += 1) {
      const body = JSON.stringify({ state: `${SECRET} ${client} ${Math.floor(number / 3)}`, questions, priority: client % 2 ? "urgent" : "batch" });
      const response = await fetch(`${base}/v1/systemone`, { method: "POST", headers, body }).catch(() => null);
      if (response) await response.arrayBuffer();
    }
  };
  const clients = Promise.all(Array.from({ length: 8 }, (_, client) => one(client)));
  return async () => {
    isOn = false;
    await clients;
  };
}

const number = (page, name) => page.evaluate((wanted) => {
  const found = [...document.querySelectorAll("dt")].find((each) => each.textContent === wanted);
  return Number(found.parentElement.querySelector("dd").textContent.replace(/[^\d.]/g, ""));
}, name);

async function moves(page, base, key, shots, view) {
  const stop = load(base, key);
  try {
    const before = await number(page, "done");
    await page.waitForFunction((least) => {
      const found = [...document.querySelectorAll("dt")].find((each) => each.textContent === "done");
      return Number(found.parentElement.querySelector("dd").textContent.replaceAll(",", "")) > least + 20;
    }, before);
    await page.waitForTimeout(1500);
    assert(await number(page, "reads a second") > 0, "nothing is read");
    assert((await page.$$("#steps .tick")).length > 5, "no steps are shown");
    await page.waitForFunction(() => document.querySelector("#parts tbody tr"));
    assert((await page.$$("#map .cell")).length > 8, "nothing is shown as held");
    await page.click("#map-rows summary");
    await page.waitForFunction(() => document.querySelector("#runs tbody tr"));
    const latency = await page.textContent("#latency");
    assert(/urgent\s*[1-9]/.test(latency), latency);
    await fits(page, "live");
    await accessible(page, "live");
    await page.screenshot({ path: `${shots}/${view}-live.png`, fullPage: true });
    assert(!(await page.content()).includes(SECRET), "the text of a state is shown");
    await page.click("#pause");
    const paused = await number(page, "done");
    await page.waitForTimeout(1200);
    assert(await number(page, "done") === paused, "it moves while paused");
  } finally {
    await stop();
  }
}

export async function live(test, browser, base, shots) {
  for (const view of ["light", "dark", "phone"]) {
    await test(`the live view moves under load, ${view}`, () =>
      visit(browser, base, { view, path: "/live" }, (page) => moves(page, base, "", shots, view)));
  }
}

export async function keyedLive(test, browser, serve) {
  const server = await serve("--api-key", `acme=${KEY}`);
  await test("the live view asks for an operator's key", () =>
    visit(browser, server.base, { path: "/live", isPlay: false, statuses: [401] }, async (page) => {
      await page.waitForSelector("#key-dialog[open]");
      await accessible(page, "the dialog");
      await page.fill("#key-input", KEY);
      await page.keyboard.press("Enter");
      await page.waitForSelector("body.ready");
      assert((await page.textContent("#server-told")) === "live", await page.textContent("#server-told"));
    }));
  await test("what is told live has no text of a state", async () => {
    const stop = load(server.base, KEY);
    await new Promise((resolve) => { setTimeout(resolve, 1500); });
    const headers = { authorization: `Bearer ${KEY}` };
    const look = await (await fetch(`${server.base}/v1/live`, { headers })).text();
    await stop();
    assert(look.includes("\"steps\":[{") && !look.includes(SECRET), look.slice(0, 300));
  });
  await server.stop();
}
