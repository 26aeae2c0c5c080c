import { globSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { Action } from '../../cloud/tencent/requests.ts';
import { SERVED_ANNOTATIONS as OF_INGRESSES } from '../../cloud-controller-manager/ingresses/served-annotations.ts';
import { SERVED_ANNOTATIONS as OF_SERVICES } from '../../cloud-controller-manager/services/served-annotations.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import { CLOUD_THINGS, FINALIZED_KINDS } from '../../crd/left-behind.ts';
import { API_GROUP } from '../../crd/names.ts';
import { TKE_SERVICE_CONFIG_KIND } from '../../crd/tke-service-config.ts';
import { isObject } from '../../sim/kube-api/object.ts';
import { parseLabelSelector } from '../../sim/kube-api/selector.ts';
import { pageBlocks, shellCommandsOf } from '../cluster/doc-commands.ts';
import { KUBERNETES_FOLDER, readResources } from '../conf/read-manifests.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { OVERLAY } from './installed.ts';

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

/** An API that makes something: none that reads, deletes or changes what is there. */
type Making = Exclude<
  Action,
  | `${'Describe' | 'Delete' | 'Modify' | 'Detach' | 'Disassociate' | 'Release' | 'Unassign' | 'Set' | 'Replace' | 'Migrate' | 'Assume' | 'Attach' | 'Associate'}${string}`
  | 'BatchDeregisterTargets'
  | 'BatchModifyTargetWeight'
>;

/** What each API makes that this system calls. One that is added without a line here does not compile. */
const MADE_BY: Readonly<Record<Making, (typeof CLOUD_THINGS)[number]>> = {
  CreateNetworkInterface: 'ENIs',
  AssignPrivateIpAddresses: 'addresses of ENIs',
  AssignIpv6Addresses: 'addresses of ENIs',
  AllocateAddresses: 'EIPs',
  CreateReserveIpAddresses: 'reserved addresses',
  CreateLoadBalancer: 'load balancers',
  CreateListener: 'listeners, rules, redirects and targets',
  CreateRule: 'listeners, rules, redirects and targets',
  ManualRewrite: 'listeners, rules, redirects and targets',
  BatchRegisterTargets: 'listeners, rules, redirects and targets',
  CreateSecurityGroup: 'security groups for source ranges',
  UploadCertificate: 'certificates',
  CreateGlobalRoutes: 'routes to podCIDRs',
  CreateRoutes: 'routes to podCIDRs',
  CreateClusterRoute: 'routes to podCIDRs',
};

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

test('docs/uninstall.md: deletes the definition of every kind of ours, and no other', (t) => {
  const names = LINES.filter(({ line }) => line.startsWith('kubectl delete crd ')).flatMap(({ line }) =>
    line.split(' ').filter((word) => word.includes('.')),
  );
  const kinds = [...RESOURCE_KINDS, TKE_SERVICE_CONFIG_KIND];
  t.deepEqual(names.toSorted(), kinds.map(({ plural, group = API_GROUP }) => `${plural}.${group}`).toSorted());
});

test('docs/uninstall.md: every kind with a finalizer of ours is deleted, and the page says what to do about one that hangs', (t) => {
  const shortOf = new Map(RESOURCE_KINDS.map(({ plural, shortNames }) => [plural, shortNames]));
  const deletions = LINES.filter(({ line }) => / delete | wait --for=delete /.test(line)).flatMap(({ line }) =>
    line.split(/[ ,]/),
  );
  for (const { plural, finalizer, program } of FINALIZED_KINDS) {
    const names = program === 'ccm' ? ['SERVICE-OR-INGRESS...'] : [plural, ...(shortOf.get(plural) ?? [])];
    t.true(
      deletions.some((word) => names.includes(word)),
      plural,
    );
    t.true(PAGE.includes(`\`${finalizer}\``), finalizer);
  }
  t.true(LINES.some(({ line }) => line.startsWith('kubectl get services,ingresses -A')));
});

test('docs/uninstall.md: names every condition of Nodes that stays', (t) => {
  const folder = join(import.meta.dirname, '../frozen');
  const conditions = ['0.1.0', 'next'].flatMap((release) => {
    const names = JSON.parse(readFileSync(join(folder, release, 'names/kubernetes.json'), 'utf8'));
    return Object.keys(names.conditions?.Node ?? {});
  });
  t.true(conditions.length >= 3, conditions.join(' '));
  t.deepEqual(
    conditions.filter((name) => !PAGE.includes(`\`${name}\``)),
    [],
  );
});

/** Sources of the programs, by path. */
const SOURCES = [
  ...[
    'ipamd',
    'cloud-controller-manager',
    'agent',
    'scheduler',
    'webhook',
    'kube',
    'crd',
    'cli',
    'pod-routes',
    'cloud',
  ],
  ...['runtime', 'observability', 'inspection', 'dataplane'],
]
  .flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: join(DOCS, '..') }))
  .map((path) => ({
    path,
    text: readFileSync(join(DOCS, '..', path), 'utf8').replaceAll(/^\s*(\/\/|\*|\/\*\*).*$/gm, ''),
  }));
/** A name of a domain, that says of what it holds as finalizers do. */
const LIKE_A_FINALIZER =
  /['"`]((?:\$\{\w+\}|(?:[a-z0-9-]+\.)+[a-z]+)\/[a-z0-9-]*(?:clean|final|protect|resources|guard|hold)[a-z0-9-]*)['"`]/g;

/** Of annotations of Services and Ingresses. */
const NO_FINALIZER = /\/(modification|deletion)-protection$/;

test('no other string is like a finalizer', (t) => {
  const found = SOURCES.flatMap(({ text }) =>
    [...text.matchAll(LIKE_A_FINALIZER)].map(([, value = '']) => value.replace(/^\$\{API_GROUP\}/, API_GROUP)),
  );
  const known = FINALIZED_KINDS.map(({ finalizer }) => finalizer);
  t.deepEqual([...new Set(found)].filter((one) => !NO_FINALIZER.test(one)).toSorted(), [...new Set(known)].toSorted());
});

test('no other finalizer is written', (t) => {
  const constants = ['CLOUD_FINALIZER', 'SERVICE_FINALIZER', 'INGRESS_FINALIZER'];
  const written = SOURCES.flatMap(({ path, text }) =>
    [
      ...[...text.matchAll(/\bfinalizers: \[([^\]]*)\]/g)].flatMap(([, list = '']) => list.split(',')),
      ...[...text.matchAll(/\bwithFinalizer\(/g)].map(({ index }) => lastArgument(text.slice(index))),
      ...[...text.matchAll(/\bfinalizer: ([^,;\n}]+)/g)].map(([, value = '']) => value),
    ]
      .map((value) => value.trim())
      .filter((value) => value !== '' && !/^\.\.\.|^string\b|: string$/.test(value))
      .map((value) => ({ path, value })),
  );
  // Passed on by what every finalizer goes through.
  const passes: readonly string[] = ['kube/finalizers.ts', 'cloud-controller-manager/balancers/write-owner.ts'];
  const others = written.filter(
    ({ path, value }) => !constants.includes(value) && !(value === 'finalizer' && passes.includes(path)),
  );
  t.deepEqual(others, []);
  for (const constant of constants)
    t.true(
      written.some(({ value }) => value === constant),
      constant,
    );
});

test('docs/uninstall.md: no finalizer of another program is taken off', (t) => {
  const patches = [...PAGE.matchAll(/kubectl[^`\n]*patch[^`\n]*finalizers[^`\n]*/g)].map(([line]) => line);
  t.true(patches.length > 0);
  for (const line of patches) t.regex(line, /--type=json .*"op": "test".*"op": "remove"/, line);
});

test('docs/uninstall.md: the overlay is deleted by a label that all has but definitions and settings', (t) => {
  const line = LINES.find((one) => one.line.includes(' delete -k YOUR-OVERLAY'))?.line ?? '';
  const isMeant = parseLabelSelector(/ -l (\S+)/.exec(line)?.[1] ?? '');
  const unmeant = OVERLAY.filter((object) => !isMeant(object));
  const isSettings = (name: string): boolean => /-settings-[a-z0-9]+$/.test(name);
  t.deepEqual(
    unmeant.filter(({ kind, metadata }) => kind !== 'CustomResourceDefinition' && !isSettings(metadata.name)),
    [],
  );
  const definitions = OVERLAY.filter(({ kind }) => kind === 'CustomResourceDefinition');
  t.true(definitions.length > 0);
  t.deepEqual(definitions.filter(isMeant), []);
});

test('docs/uninstall.md: what another program may use has a block of its own', (t) => {
  const blocks = shellCommandsOf(PAGE).map(({ lines }) => lines);
  for (const shared of ['tkeserviceconfigs.cloud.tencent.com', 'endpoints/cloud-controller-manager']) {
    const found = blocks.filter((lines) => lines.some((line) => line.split(' ').includes(shared)));
    t.deepEqual(
      found.map((lines) => lines.length),
      [1],
      shared,
    );
  }
});

test('docs/uninstall.md: names what keeps a load balancer in the cloud', (t) => {
  const served = [...Object.values(OF_SERVICES), ...Object.values(OF_INGRESSES)];
  const names = served.flatMap(({ name, means }) => (/ stays when the \w+ goes/.test(means) ? [name] : []));
  t.true(names.length >= 4, names.join());
  for (const name of names) t.true(PAGE.includes(`\`${name.split(/[./]/).at(-1)}`), name);
});

test('docs/uninstall.md: names everything that is made in the cloud, whose it is, and when it goes', (t) => {
  const [, table = ''] = /^### What there is in the cloud\n([\s\S]*?)^## /m.exec(PAGE) ?? [];
  const rows = [...table.matchAll(/^\| (.+) \| (.+) \| (.+) \| (.+) \|$/gm)].map(([, ...cells]) => cells);
  t.deepEqual(
    rows.slice(1).map(([thing]) => thing),
    [...CLOUD_THINGS],
  );
  for (const thing of Object.values(MADE_BY)) t.true(CLOUD_THINGS.includes(thing), thing);
  t.is(new Set(Object.values(MADE_BY)).size, CLOUD_THINGS.length);
});

/** The last argument of a call at the beginning of a text. */
function lastArgument(text: string): string {
  let depth = 0;
  let begin = 0;
  for (let at = 0; at < text.length; at++) {
    const one = text[at] ?? '';
    if ('([{'.includes(one)) depth += 1;
    if (one === ',' && depth === 1 && !/^,\s*\)/.test(text.slice(at))) begin = at + 1;
    if (')]}'.includes(one) && --depth === 0) return text.slice(begin, at).replace(/,\s*$/, '');
  }
  return text;
}

/** Commands of all blocks of a page that are run in a shell. */
function shellsOf(page: string): readonly string[] {
  return pageBlocks(page).flatMap(({ info, lines }) => (info.startsWith('sh') ? lines : []));
}

function readPage(name: string): string {
  return readFileSync(join(DOCS, name), 'utf8');
}
