/**
 * Takes the pictures of docs/images that show `tke-eni`'s pages: of a real node (agent, test VPC, Pods in namespaces) whose
 * routing another program has disturbed, and of a made-up one that is full. Needs root and Chromium
 * (tools/require-packages.sh browser). Pictures differ a little each time, by names and MACs.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'puppeteer-core';
import { pageOf } from '../test/cli/commands/graph/drawing-fixture.ts';
import { nodeFixture } from '../test/cli/commands/graph/node-fixture.ts';
import { readFaultScene } from '../test/e2e/support/fault-scene.ts';
import { placeOf } from '../test/e2e/support/fault-trial.ts';
import { NODE_FAULTS } from '../test/e2e/support/node-faults.ts';
import { runCli } from '../test/e2e/support/run-cli.ts';
import { openTrial, type Trial } from '../test/e2e/support/trial.ts';
import { findBrowser, NO_BROWSER, openBrowser, openWatchedPage } from '../test/support/browser.ts';
import { createTempDir, type TempDir } from '../test/support/temp-dir.ts';
import { buildExecutables } from './build.ts';

const IMAGES = 'docs/images';
const SIZE = { width: 1600, height: 1000 };
const PODS = ['web-0', 'web-1', 'web-2', 'cart-0', 'cart-1', 'search-0', 'search-1', 'mail-0'];
const FAULT = 'wrong table in a rule';

if (import.meta.main) {
  const path = findBrowser();
  if (path === undefined) throw new Error(NO_BROWSER);
  mkdirSync(IMAGES, { recursive: true });
  await buildExecutables(['tke-eni']);
  const dir = createTempDir('screenshots');
  const browser = await openBrowser(path);
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 5 });
  try {
    await takePicture(browser, await drawDisturbedNode(trial), 'graph.png');
    await takePicture(browser, drawFullNode(dir), 'graph-200-pods.png', '10.0.3.71');
  } finally {
    await browser.close();
    await trial.close();
    dir.close();
  }
}

async function drawDisturbedNode(trial: Trial): Promise<string> {
  const pods = [];
  for (const name of PODS) pods.push(await trial.addPod({ namespace: 'shop', name }));
  // It would mend the fault within milliseconds.
  await trial.killAgent();
  const [pod] = pods;
  const fault = NODE_FAULTS.find(({ name }) => name === FAULT);
  if (pod === undefined || fault === undefined) throw new Error(`no fault "${FAULT}"`);
  await fault.inject(await readFaultScene(trial, pod));
  const file = join(trial.dir.path, 'node.html');
  const { code, stderr } = await runCli(placeOf(trial), 'graph', 'shop/web-0', '--file', file);
  if (code !== 1) throw new Error(`tke-eni graph ended with ${code}: ${stderr}`);
  return file;
}

function drawFullNode(dir: TempDir): string {
  const file = dir.join('full.html');
  writeFileSync(file, pageOf(nodeFixture({ enis: 8, podsPerEni: 25 })));
  return file;
}

async function takePicture(browser: Browser, file: string, name: string, search?: string): Promise<void> {
  const { page } = await openWatchedPage(browser, pathToFileURL(file).href, SIZE);
  if (search !== undefined) {
    await page.type('#search', search);
    await page.keyboard.press('Enter');
  }
  const path = join(IMAGES, name);
  writeFileSync(path, await page.screenshot());
  await page.close();
  console.log(`wrote ${path}`);
}
