import { existsSync } from 'node:fs';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';

/** Where Debian, and others, put a Chromium that needs no display. */
const PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
] as const;

/** The browser of this machine; undefined where there is none. BROWSER_PATH names another one. */
export function findBrowser(): string | undefined {
  return [process.env['BROWSER_PATH'], ...PLACES].find((path) => path !== undefined && path !== '' && existsSync(path));
}

/** Why browser tests are skipped, for their titles. */
export const NO_BROWSER = 'no Chromium here: tools/require-packages.sh browser';

/** A page, and what went wrong on it or was asked of the network, as it happens. */
export type WatchedPage = {
  readonly page: Page;
  readonly troubles: readonly string[];
  readonly requests: readonly string[];
};

/** Starts the browser. The caller closes it. Offline: what a page asks of the network fails, and is noted. */
export async function openBrowser(executablePath: string): Promise<Browser> {
  // As root, which netns tests are, Chromium has no sandbox. The pages are our own.
  return puppeteer.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
}

/** Opens a page that is watched: console errors, exceptions, policy violations, and every request but those for files. */
export async function openWatchedPage(
  browser: Browser,
  url: string,
  size = { width: 1600, height: 900 },
): Promise<WatchedPage> {
  const page = await browser.newPage();
  const troubles: string[] = [];
  const requests: string[] = [];
  await page.setViewport(size);
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') troubles.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => troubles.push(`exception: ${String(error)}`));
  page.on('request', (request) => {
    if (request.url() !== url) requests.push(request.url());
  });
  await page.goto(url);
  return { page, troubles, requests };
}
