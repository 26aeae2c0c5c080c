import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import type { Browser, Page } from 'puppeteer-core';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import { findBrowser, NO_BROWSER, openBrowser, openWatchedPage, type WatchedPage } from '../../../support/browser.ts';
import { createTempDir, type TempDir } from '../../../support/temp-dir.ts';
import { brokenNode, HOSTILE_NAMES, pageOf, svgOf } from './drawing-fixture.ts';
import { nodeFixture } from './node-fixture.ts';

// The page in a real browser: what a person does with it.

const path = findBrowser();
const browserTest = path === undefined ? test.skip : test;
const title = (text: string) => (path === undefined ? `${text} (${NO_BROWSER})` : text);

let browser: Browser | undefined;
let dir: TempDir | undefined;

test.before(async () => {
  dir = createTempDir('graph');
  if (path !== undefined) browser = await openBrowser(path);
});

test.after.always(async () => {
  await browser?.close();
  dir?.close();
});

async function open(name: string, text: string): Promise<WatchedPage & { readonly bytes: number }> {
  if (browser === undefined || dir === undefined) throw new Error('no browser was started');
  const file = dir.join(name);
  writeFileSync(file, text);
  return { ...(await openWatchedPage(browser, pathToFileURL(file).href)), bytes: statSync(file).size };
}

/** Puppeteer focuses HTML only. */
function focus(page: Page, selector: string): Promise<unknown> {
  return page.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
}

/** Text of the panel, one space between words. */
function panelOf(page: Page): Promise<string> {
  return page.$eval('#panel', (panel) => (panel.textContent ?? '').replace(/\s+/g, ' '));
}

function classesOf(page: Page, selector: string): Promise<readonly string[]> {
  return page.$$eval(selector, (found) => found.map((one) => one.getAttribute('class') ?? ''));
}

function scaleOf(page: Page): Promise<number> {
  return page.$eval('#view', (view) => Number(/scale\(([\d.]+)\)/.exec(view.getAttribute('transform') ?? '')?.[1]));
}

function isQuiet(t: ExecutionContext, { troubles, requests }: WatchedPage): void {
  t.deepEqual(troubles, [], 'no error, no warning, nothing that the policy stopped');
  t.deepEqual(requests, [], 'nothing was asked of anybody');
}

browserTest(
  title('the page: tells what is broken, finds a Pod, draws its path and the broken hop with its cure'),
  async (t) => {
    const watched = await open('broken.html', pageOf(brokenNode()));
    const { page } = watched;
    t.regex(await panelOf(page), /1 broken, 0 to look at.*rule 1536 for mark 0x10000/);

    await page.keyboard.press('/');
    await page.keyboard.type('web-2');
    t.is((await classesOf(page, '.node.is-found')).length > 0, true);
    t.regex(await page.$eval('#results', (results) => results.textContent ?? ''), /default\/web-2/);
    await page.keyboard.press('Enter');

    const panel = await panelOf(page);
    t.regex(panel, /default\/web-2 ?Pod · broken/);
    t.regex(panel, /10\.0\.1\.12/);
    t.regex(panel, /Path out to 10\.0\.9\.9 — broken/);
    t.regex(panel, /rule 1536 for mark 0x10000 of .* is not there.*Cure:tke-eni repair/);
    t.regex(panel, /Path in from 10\.0\.9\.9/);
    t.regex(panel, /Inside the Pod.*default via 169\.254\.1\.1 dev eth0/);
    const lines = await classesOf(page, '#paths path');
    t.is(lines.filter((line) => line === 'path from-pod broken').length, 1, lines.join());
    t.true(
      lines.includes('path from-pod ok') && lines.includes('path from-pod after') && lines.includes('path to-pod ok'),
    );
    t.is((await classesOf(page, '.node.missing.is-on-path')).length, 1, 'the rule that is not there is on the path');
    isQuiet(t, watched);
  },
);

browserTest(title('the page: zooms by wheel, buttons and keys, pans, and shows all again'), async (t) => {
  const watched = await open('zoom.html', pageOf(brokenNode()));
  const { page } = watched;
  const whole = await scaleOf(page);
  await page.click('#zoom-in');
  const nearer = await scaleOf(page);
  t.true(nearer > whole);
  await page.mouse.move(500, 500);
  await page.mouse.wheel({ deltaY: -400 });
  await page.waitForFunction(
    `Number(/scale\\(([\\d.]+)\\)/.exec(document.querySelector('#view').getAttribute('transform'))[1]) > ${nearer}`,
  );
  const before = await page.$eval('#view', (view) => view.getAttribute('transform'));
  await page.mouse.down();
  await page.mouse.move(560, 540, { steps: 4 });
  await page.mouse.up();
  t.not(await page.$eval('#view', (view) => view.getAttribute('transform')), before, 'dragging moves it');
  t.regex(await panelOf(page), /What is wrong/, 'and selects nothing');
  await page.keyboard.press('0');
  t.is(await scaleOf(page), whole);
  isQuiet(t, watched);
});

browserTest(title('the page: is used by keyboard alone'), async (t) => {
  const watched = await open('keys.html', pageOf(brokenNode()));
  const { page } = watched;
  await focus(page, '.node.pod');
  await page.keyboard.press('Enter');
  t.regex(await panelOf(page), /default\/web-0/);
  await focus(page, '#drawing .node.table');
  await page.keyboard.press('Escape');
  t.regex(await panelOf(page), /What is wrong/);
  const before = await page.$eval('#view', (view) => view.getAttribute('transform'));
  await page.keyboard.press('/');
  await page.keyboard.type('web-');
  for (const key of ['ArrowDown', 'ArrowDown'] as const) await page.keyboard.press(key);
  t.is(
    await page.$eval('#view', (view) => view.getAttribute('transform')),
    before,
    'going through results moves nothing',
  );
  await page.keyboard.press('Enter');
  t.regex(await panelOf(page), /default\/web-1/, 'the second of the results');
  await page.keyboard.press('Escape');
  await focus(page, '.band-header[tabindex]');
  await page.keyboard.press(' ');
  t.is(await page.$eval('.band-header[tabindex]', (header) => header.getAttribute('aria-expanded')), 'false');
  const unnamed = await page.$$eval(
    '[role=button], button, input',
    (all) => all.filter((one) => (one.getAttribute('aria-label') ?? one.textContent ?? '').trim() === '').length,
  );
  t.is(unnamed, 0, 'everything that can be used has a name');
  isQuiet(t, watched);
});

/** Labels that overlap, or stick out of their box. */
async function findCollisions(page: Page): Promise<readonly string[]> {
  const found: unknown = await page.evaluate(readFileSync(new URL('find-collisions.js', import.meta.url), 'utf8'));
  return Array.isArray(found) ? found.map(String) : ['the measurement failed'];
}

browserTest(
  title('the page: 200 Pods on 8 ENIs: no label overlaps another, folded or not, below 2 MB, and a Pod is found'),
  async (t) => {
    t.timeout(120_000);
    const watched = await open(
      'large.html',
      pageOf(nodeFixture({ enis: 8, podsPerEni: 25, podName: (index) => `checkout-service-7d9f8b6c5-${index}wwwwm` })),
    );
    const { page, bytes } = watched;
    t.true(bytes < 2_000_000, `${bytes} bytes`);
    t.deepEqual(await findCollisions(page), [], 'as it opens');
    await page.click('#fold');
    t.is((await classesOf(page, '.node.pod')).length, 200);
    t.deepEqual(await findCollisions(page), [], 'all unfolded');
    await page.click('#fold');
    await page.focus('#search');
    await page.keyboard.type('10.0.8.190');
    await page.keyboard.press('Enter');
    t.regex(await panelOf(page), /Path out/);
    t.is((await classesOf(page, '.band:not(.is-folded) .node.pod.is-selected')).length, 1, 'its band is unfolded');
    t.deepEqual(await findCollisions(page), [], 'one unfolded');
    isQuiet(t, watched);
  },
);

browserTest(title('the page: hostile names stay text'), async (t) => {
  const facts: NodeFacts = nodeFixture({
    enis: 1,
    podsPerEni: HOSTILE_NAMES.length,
    podName: (index) => HOSTILE_NAMES[index] ?? '',
  });
  const watched = await open('hostile.html', pageOf(facts));
  const { page } = watched;
  const pods = await page.$$('.node.pod');
  for (const pod of pods) await pod.click();
  t.is(pods.length, HOSTILE_NAMES.length);
  t.is(await page.evaluate('window.hacked'), undefined);
  t.is(await page.$$eval('script', (scripts) => scripts.length), 2, 'the data and the script of the page');
  t.is(await page.$$eval('img, iframe, object, a', (found) => found.length), 0);
  isQuiet(t, watched);
});

browserTest(title('the page: the policy stops what it does not name'), async (t) => {
  const { page, troubles } = await open('policy.html', pageOf(brokenNode()));
  await page.evaluate(`
    const script = document.createElement('script');
    script.textContent = 'window.hacked = true';
    const image = document.createElement('img');
    image.src = 'http://127.0.0.1:9/x.png';
    document.body.append(script, image);
  `);
  t.is(await page.evaluate('window.hacked'), undefined);
  t.true(
    troubles.some((trouble) => /Content Security Policy/.test(trouble)),
    troubles.join('\n'),
  );
});

browserTest(title('the picture: is well-formed XML, light and dark, and loads nothing'), async (t) => {
  const hostile = nodeFixture({
    enis: 1,
    podsPerEni: HOSTILE_NAMES.length,
    podName: (index) => HOSTILE_NAMES[index] ?? '',
  });
  for (const [name, svg] of [
    ['broken.svg', svgOf(brokenNode())],
    ['hostile.svg', svgOf(hostile)],
  ] as const) {
    const watched = await open(name, svg);
    t.is(await watched.page.evaluate('document.documentElement.nodeName'), 'svg', name);
    t.is(await watched.page.evaluate("document.querySelectorAll('parsererror, script').length"), 0, name);
    const ground = () => watched.page.evaluate("getComputedStyle(document.querySelector('.ground')).fill");
    const light = await ground();
    await watched.page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
    t.not(await ground(), light);
    isQuiet(t, watched);
  }
});
