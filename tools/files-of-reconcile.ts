/**
 * Counts which files ipamd runs code of while a node gets addresses that its agent asked for: a cluster on the virtual clock, a
 * node at rest, a higher `desiredRouteENIIP`, and all until the node is at rest again. Prints first those on the way of the reconcile.
 * Only functions that were called count, not what runs as a file is loaded.
 */
import { readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NodeEniConfig } from '../crd/node-eni-config.ts';
import { NODE_ENI_CONFIGS } from '../kube/resource-types.ts';
import { shellScene } from '../test/ipamd/shell/shell-scene.ts';
import { loadedBy } from './check-layers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const NODE = 'n1';
const DEMAND = 14;
const REST_MS = 60_000;

type Status = NonNullable<NodeEniConfig['status']>;

const scene = await shellScene();
const ipamd = await scene.start();
// Checked against its schema by the server.
const statusOf = () => (scene.nec(NODE)?.['status'] ?? {}) as Status;
const isAtRest = (addresses: number): boolean => {
  const { eniInfos = [], intents = [], conditions = [] } = statusOf();
  const found = eniInfos.flatMap((eni) => eni.addresses ?? []);
  const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  return intents.length === 0 && isReady && found.length >= addresses;
};
await scene.join(NODE);
await scene.until(() => isAtRest(1));
await scene.clock.advance(REST_MS);

const session = new Session();
session.connect();
await session.post('Profiler.enable');
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
const body = { spec: { desiredRouteENIIP: DEMAND } };
await scene.clock.run(scene.kube.patch(NODE_ENI_CONFIGS, { name: NODE }, { kind: 'merge', body }));
await scene.until(() => isAtRest(DEMAND));
const { result } = await session.post('Profiler.takePreciseCoverage');
session.disconnect();
await scene.clock.run(ipamd.close());

const ran = new Set(
  result
    .filter(({ functions }) => functions.some((one) => one.functionName !== '' && (one.ranges[0]?.count ?? 0) > 0))
    .map(({ url }) => (url.startsWith('file:') ? relative(ROOT, fileURLToPath(url)) : ''))
    .filter((path) => path.startsWith('ipamd/')),
);
/** Files that the reconcile of a node and its facts load; the caches behind its ports, and other controllers, are not among them. */
const way = new Set<string>();
const load = (path: string): void => {
  if (way.has(path) || !path.startsWith('ipamd/')) return;
  way.add(path);
  for (const next of loadedBy({ path, text: readFileSync(join(ROOT, path), 'utf8') })) load(next);
};
for (const path of ['ipamd/cache/decode-nec.ts', 'ipamd/nodes/node-facts.ts', 'ipamd/calls/reconcile-node.ts'])
  load(path);

print('on the way', [...ran].filter((path) => way.has(path)).sort());
print('behind ports, and meanwhile', [...ran].filter((path) => !way.has(path)).sort());

function print(what: string, paths: readonly string[]): void {
  const folders = Map.groupBy(paths, (path) => dirname(path));
  for (const [folder, its] of folders)
    console.log(`${String(its.length).padStart(3)} ${folder}: ${its.map((path) => basename(path)).join(' ')}`);
  console.log(`figure: ${paths.length} files ${what}`);
}
