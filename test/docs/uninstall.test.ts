import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { isObject } from '../../sim/kube-api/object.ts';
import { pageBlocks, shellCommandsOf } from '../cluster/doc-commands.ts';
import { KUBERNETES_FOLDER, readResources } from '../conf/read-manifests.ts';
import { at } from '../kube-api/contract/contract-case.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const PAGE = readPage('uninstall.md');
const LINES = shellCommandsOf(PAGE).flatMap(({ heading, lines }) => lines.map((line) => ({ heading, line })));

/** Deployments and DaemonSets of all that can be installed: `kind/name`, and the labels of their Pods. */
const WORKLOADS = ['agent', 'ipamd', 'scheduler', 'webhook', 'cloud-controller-manager']
  .flatMap((folder) => readResources(join(KUBERNETES_FOLDER, folder)))
  .filter(({ kind }) => kind === 'Deployment' || kind === 'DaemonSet')
  .map((object) => ({
    name: `${String(object['kind']).toLowerCase()}/${at(object, 'metadata', 'name')}`,
    labels: at(object, 'spec', 'template', 'metadata', 'labels'),
  }));

test('docs/uninstall.md: Pods whose end it waits for are those of workloads that it has deleted before', (t) => {
  const index = LINES.findIndex(({ line }) => /wait --for=delete pod /.test(line));
  const [, label = '', value = ''] = / -l (\S+)=(\S+)/.exec(LINES[index]?.line ?? '') ?? [];
  const awaited = WORKLOADS.filter(({ labels }) => isObject(labels) && labels[label] === value);
  t.is(awaited.length, 5);
  const deleted = LINES.slice(0, index).flatMap(({ line }) => (line.includes(' delete ') ? line.split(' ') : []));
  t.deepEqual(
    awaited.map(({ name }) => name).filter((name) => !deleted.includes(name)),
    [],
  );
});

test('docs/uninstall.md: each deletion can be repeated', (t) => {
  const all = LINES.filter(({ line }) => /^kubectl( -n kube-system)? delete /.test(line));
  t.true(all.length >= 6);
  t.deepEqual(
    all.map(({ line }) => line).filter((line) => !/ --ignore-not-found| --all /.test(line)),
    [],
  );
});

test('docs/uninstall.md: what other pages have people make by hand is deleted', (t) => {
  const pages = readdirSync(DOCS).filter((name) => name.endsWith('.md'));
  const commands = pages.flatMap((page) => shellCommandsOf(readPage(page)).flatMap(({ lines }) => lines));
  const made = commands.flatMap((line) => [
    ...line.matchAll(/ create (serviceaccount|clusterrolebinding|secret) (?:generic )?((?!generic )[a-z][a-z-]+)/g),
  ]);
  const names = new Set(made.map(([, kind, name]) => `${kind}/${name}`));
  const ofFiles = pages.flatMap((page) => [
    ...readPage(page).matchAll(/^kind: (CronJob)\nmetadata:\n {2}name: (\S+)$/gm),
  ]);
  for (const [, kind = '', name] of ofFiles) names.add(`${kind.toLowerCase()}/${name}`);
  t.true(names.size >= 4, [...names].join(' '));
  const deleted = LINES.flatMap(({ line }) => (line.includes(' delete ') ? line.split(' ') : []));
  t.deepEqual(
    [...names].filter((name) => !deleted.includes(name)),
    [],
  );
});

test('docs: a page that waits as kubectl does since 1.31 says so', (t) => {
  const isNew = (line: string): boolean => /--for=create|--for=jsonpath='[^']*'(?!=)/.test(line);
  const pages = readdirSync(DOCS).filter((name) => name.endsWith('.md'));
  const waiting = pages.filter((page) => shellsOf(readPage(page)).some(isNew));
  t.true(waiting.length > 0);
  t.deepEqual(
    waiting.filter((page) => !readPage(page).includes('`kubectl` 1.31 or newer')),
    [],
  );
});

/** Commands of all blocks of a page that are run in a shell. */
function shellsOf(page: string): readonly string[] {
  return pageBlocks(page).flatMap(({ info, lines }) => (info.startsWith('sh') ? lines : []));
}

function readPage(name: string): string {
  return readFileSync(join(DOCS, name), 'utf8');
}
