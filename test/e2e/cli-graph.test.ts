import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { buildExecutables } from '../../tools/build.ts';
import { findBrowser, NO_BROWSER, openBrowser, openWatchedPage } from '../support/browser.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { readFaultScene } from './support/fault-scene.ts';
import { placeOf } from './support/fault-trial.ts';
import { NODE_FAULTS } from './support/node-faults.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// The packaged executable draws a real node: as it should be, and with faults, each in red where it is.

let trial: Trial | undefined;
let pod: AttachedPod | undefined;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact' });
  pod = await trial.addPod({ namespace: 'shop', name: 'web-0' });
  await trial.addPod({ namespace: 'shop', name: 'web-1' });
  await trial.killAgent();
});

test.after.always(() => trial?.close());

function theNode(): { readonly trial: Trial; readonly pod: AttachedPod } {
  if (trial === undefined || pod === undefined) throw new Error('there is no node');
  return { trial, pod };
}

/** Kinds of the boxes that the first path in a direction passes, each once in a row. */
function kindsOn(graph: JsonObject, direction: string): readonly string[] {
  const kinds = new Map(listOf(graph, 'nodes').map((node) => [node['id'], String(node['kind'])]));
  const path = listOf(graph, 'paths').find((one) => one['direction'] === direction);
  const steps = Array.isArray(path?.['steps']) ? path['steps'].filter(isObject) : [];
  const found = steps.flatMap((step) => kinds.get(step['node']) ?? []);
  return found.filter((kind, index) => kind !== found[index - 1] && kind !== 'settings');
}

function redNodes(graph: JsonObject): readonly JsonObject[] {
  return listOf(graph, 'nodes').filter(({ state }) => state === 'broken' || state === 'missing');
}

shortTest.serial('tke-eni graph: draws a node that is as it should be, nothing in red', async (t) => {
  const { trial, pod } = theNode();
  const { code, document } = await askCli(placeOf(trial), 'graph', 'shop/web-0');
  t.is(code, 0);
  t.deepEqual(redNodes(document), []);
  t.deepEqual(document['findings'], []);
  const pods = listOf(document, 'nodes').filter(({ kind }) => kind === 'pod');
  t.deepEqual(
    pods.map(({ title }) => title),
    ['shop/web-0', 'shop/web-1'],
  );
  t.true(JSON.stringify(pods[0]).includes(pod.ip));
  const out = kindsOn(document, 'from-pod');
  t.deepEqual(out.slice(0, 5), ['pod', 'veth', 'mark', 'rule', 'table']);
  t.true(out.includes('eni') && out.at(-1) === 'gateway', out.join());
  const back = kindsOn(document, 'to-pod');
  t.deepEqual([back.at(-2), back.at(-1)], ['veth', 'pod'], back.join());
});

/** Where each fault must show: kind of a red box. */
const SHOWN = {
  'missing rule: the mark of the ENI': 'rule',
  'wrong table in a rule': 'rule',
  'foreign rule above ours': 'rule',
  'missing route: to the Pod': 'table',
  'blackhole route in the place of the route to the Pod': 'table',
  'nft flush ruleset': 'mark',
  'ip_forward 0': 'settings',
  'ENI down': 'eni',
  "the Pod's host interface down": 'veth',
  'wrong neighbour MAC in the Pod': 'pod',
} as const;

for (const [name, kind] of partOf(Object.entries(SHOWN), ([, kind]) => kind === 'mark' || kind === 'pod')) {
  test.serial(`tke-eni graph: ${name}: in red (${kind})`, async (t) => {
    t.timeout(60_000);
    const { trial, pod } = theNode();
    const fault = NODE_FAULTS.find((one) => one.name === name);
    if (fault === undefined) throw new Error(`there is no fault "${name}"`);
    const scene = await readFaultScene(trial, pod);
    await fault.inject(scene);
    try {
      const { code, document } = await askCli(placeOf(trial), 'graph', pod.ip);
      t.is(code, 1);
      const red = redNodes(document);
      t.true(
        red.some((node) => node['kind'] === kind),
        JSON.stringify(red.map(({ id, state }) => ({ id, state }))),
      );
      t.true(
        listOf(document, 'findings').some(
          ({ fix, severity }) => severity === 'error' && Array.isArray(fix) && fix.length > 0,
        ),
      );
    } finally {
      await fault.undo?.(scene);
      await runCli(placeOf(trial), 'repair');
    }
    t.is((await askCli(placeOf(trial), 'graph')).code, 0, 'nothing is red after repair');
  });
}

const browserPath = findBrowser();
const browserTest = browserPath === undefined ? shortTest.serial.skip : shortTest.serial;

browserTest(
  `tke-eni graph: the page that the executable writes works in a browser${browserPath === undefined ? ` (${NO_BROWSER})` : ''}`,
  async (t) => {
    const { trial } = theNode();
    const file = join(trial.dir.path, 'node.html');
    const { code, stderr } = await runCli(placeOf(trial), 'graph', 'shop/web-0', '--to', '10.0.2.200', '--file', file);
    t.is(code, 0, stderr);
    const browser = await openBrowser(browserPath ?? '');
    try {
      const { page, troubles, requests } = await openWatchedPage(browser, pathToFileURL(file).href);
      const panel = await page.$eval('#panel', (one) => one.textContent ?? '');
      t.regex(panel, /shop\/web-0.*Path out to 10\.0\.2\.200/s);
      t.true((await page.$$('#paths path.from-pod')).length >= 5);
      t.deepEqual([...troubles, ...requests], []);
    } finally {
      await browser.close();
    }
  },
);

shortTest.serial('tke-eni graph: makes what the file is named after, and refuses what it cannot do', async (t) => {
  const { trial } = theNode();
  const place = placeOf(trial);
  t.regex((await runCli(place, 'graph')).stdout, /^<\?xml .*<\/svg>\n$/s);
  const former = await runCli(place, 'graph', '-o', 'mermaid');
  t.is(former.code, 64);
  t.regex(former.stderr, /--output takes "mermaid" no longer: take svg/);
  const lost = await runCli(place, 'graph', '--file', '/nowhere/at/all.svg');
  t.is(lost.code, 2);
  t.regex(lost.stderr, /\/nowhere\/at\/all\.svg cannot be written: ENOENT/);
  t.is((await runCli(place, 'graph', '--to', '10.0.0.1')).code, 64);
  t.is((await runCli(place, 'graph', 'no/such')).code, 2);
});
