// The reference: routes are found by words and tried.

import { VIEWS, accessible, assert, fits, visit } from "./support.mjs";

const DRAWN = "main[aria-busy=false] details";

async function tried(page, id) {
  const route = page.locator(`[id="${id}"]`);
  await route.locator("summary").first().click();
  await route.locator("details.try > summary").click();
  await route.locator("details.try button").click();
  await page.waitForFunction((place) => /^\d{3} after/.test(document.getElementById(place).querySelector(".try pre").textContent), id);
  return route.locator(".try pre").textContent();
}

async function foundAndTried(page) {
  await page.waitForSelector(DRAWN);
  const count = (of) => page.$$eval(of, (routes) => routes.length);
  const all = await count("#routes > details");
  await page.fill("#search", "prewarm states");
  const left = await count("#routes > details:not([hidden])");
  assert(left > 0 && left < all, `${left} of ${all} routes are found`);
  await page.fill("#search", "");
  const wanted = { "get-/health": /^200 .*"ok": true/s, "post-/v1/prewarm": /^200 .*"ok": true/s,
    "post-/v1/systemone": /^200 .*x-docket-computed-tokens: .*"answers"/s };
  for (const [id, pattern] of Object.entries(wanted)) {
    const told = await tried(page, id);
    assert(pattern.test(told), `${id}: ${told}`);
  }
}

async function looks(page, shots, view) {
  await page.waitForSelector(DRAWN);
  await tried(page, "post-/v1/systemone");
  // One route stands for all: there are dozens, made of the same parts, and the tool takes minutes for them.
  await page.$$eval("#routes > details:not([open])", (routes) => routes.forEach((one) => one.remove()));
  await accessible(page, "the reference");
  await fits(page, "the reference");
  await page.screenshot({ path: `${shots}/${view}-reference.png`, fullPage: true });
}

export async function reference(test, browser, base, shots) {
  const page = { path: "/docs", isPlay: false };
  await test("routes of the reference are found and tried", () => visit(browser, base, page, foundAndTried));
  for (const view of Object.keys(VIEWS)) {
    await test(`the reference is readable, ${view}`, () => visit(browser, base, { ...page, view }, (at) => looks(at, shots, view)));
  }
}
