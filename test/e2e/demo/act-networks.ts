import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODES, PODS } from '../../../kube/resource-types.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { POD_NAMESPACE } from '../../system/cluster.ts';
import { filesOf } from '../../system/system.ts';
import type { DemoPod } from './demo-node.ts';
import { heading, table, wrapText } from './format.ts';
import { bridgePodObject } from './pods.ts';
import { awaitPods, podsOf } from './scene.ts';
import type { Stage } from './stage.ts';

const NAME = 'gr-0';
const PORT = 8_081;
/** Answers with the address that a request came from. */
const WHO = '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n%s" "$REMOTE_ADDR"\n';

/** Something that asks, or is asked. */
type Party = {
  readonly name: string;
  readonly ip: string;
  readonly ask: (url: string) => Promise<string>;
};

/**
 * A Pod that chose the bridge runs beside one of an ENI: which address each has, and which address is seen at the other, at
 * the node, and outside.
 */
export async function compareNetworks(stage: Stage, eni: DemoPod): Promise<void> {
  const { system, progress, print, fault } = stage;
  const { vpc } = system.cloud;
  const { admin } = system.cluster;
  const { node } = eni;
  print(heading('Two networks on one node: a podCIDR beside ENIs'));
  await admin.create(PODS, bridgePodObject(NAME, node.name));
  const [bridged] = await awaitPods(system, [NAME]);
  if (bridged === undefined) throw new Error(`the demo has no Pod ${NAME}`);
  node.hasBridge = true;
  const block = await awaitRoute(stage, node.name);
  progress(`${NAME} runs on the bridge of ${node.name} beside ${eni.name} of an ENI`);
  const story = `${NAME} has the annotation tke.cloud.tencent.com/networks: tke-bridge. ipamd gave ${node.name} the podCIDR ${block} and made the route of the VPC to it.`;
  const place = (pod: DemoPod, of: string) => [pod.name, pod.ip, of];
  const places = table([
    ['POD', 'ADDRESS', 'OF'],
    place(bridged, `podCIDR ${block} of ${node.name}, on cbr0`),
    place(eni, `${vpc.eniOf(eni.ip)}, by its table`),
  ]);
  print(`${wrapText(story, '  ')}\n\n${places}\n`);

  const other = vpc.nodeNames.find((name) => name !== node.name) ?? node.name;
  const [first, second] = [partyOf(bridged), partyOf(eni)];
  const own = hostParty(stage, node.name);
  const outside: Party = {
    ...{ name: 'outside', ip: vpc.outside.ip },
    ask: async (url) => (await vpc.outside.netns.tryRun(wget(url), LIMIT)).stdout,
  };
  const stop = await serveAll(stage, [bridged, eni], node.name);
  try {
    const rows = await Promise.all(
      [first, second, own, hostParty(stage, other)].map(async (from) => [
        from.name,
        ...(await Promise.all([first, second, own, outside].map((to) => seenAt(from, to)))),
      ]),
    );
    print('  The source address that is seen:\n');
    print(table([['from \\ at', first.name, second.name, own.name, outside.name], ...rows]));
    const seen = (from: Party, column: number) => rows.find(([name]) => name === from.name)?.[column];
    const wanted = [
      [first, 2, first.ip],
      [first, 4, own.ip],
      [second, 1, second.ip],
      [second, 4, second.ip],
    ] as const;
    for (const [from, column, address] of wanted) {
      if (seen(from, column) !== address) fault(`${from.name}: seen as ${seen(from, column)}, not as ${address}`);
    }
    if (rows.flat().includes(LOST)) fault(`between two networks: ${JSON.stringify(rows)}`);
    const masquerade = `To the outside ${NAME} has the address of ${node.name}, because no machine beyond the VPC has a route to podCIDRs; ${eni.name} keeps its own.`;
    print(`\n${wrapText(masquerade, '  ')}`);
  } finally {
    await stop();
  }
  await admin.delete(PODS, { namespace: POD_NAMESPACE, name: NAME });
  await waitUntil(() => podsOf(system).every((pod) => pod.name !== NAME), {
    what: `the end of ${NAME}`,
    timeoutMs: 30_000,
    everyMs: 50,
  });
}

const LOST = 'LOST';
/** A request that is lost would be repeated for minutes. */
const LIMIT = { timeoutMs: 5_000 } as const;

async function seenAt(from: Party, to: Party): Promise<string> {
  if (from.name === to.name) return '.';
  const answer = (await from.ask(`http://${to.ip}:${PORT}/cgi-bin/who`)).trim().replace(/^\[::ffff:(.*)\]$/, '$1');
  return answer === '' ? LOST : answer;
}

function partyOf(pod: DemoPod): Party {
  const ask = async (url: string) => (await pod.node.containerd.execInPod(pod, wget(url), 5)).stdout;
  return { name: pod.name, ip: pod.ip, ask };
}

function hostParty({ system }: Stage, name: string): Party {
  const { netns, primary } = system.cloud.vpc.node(name);
  return { name, ip: primary.primaryIp, ask: async (url) => (await netns.tryRun(wget(url), LIMIT)).stdout };
}

function wget(url: string): readonly string[] {
  return ['busybox', 'wget', '-q', '-O', '-', url];
}

/** Serves in the Pods, on the node and outside. Returns the function that ends what runs outside of Pods. */
async function serveAll({ system }: Stage, pods: readonly DemoPod[], nodeName: string): Promise<() => Promise<void>> {
  const { vpc } = system.cloud;
  const folder = join(filesOf(vpc.prefix), 'who');
  mkdirSync(join(folder, 'cgi-bin'), { recursive: true });
  writeFileSync(join(folder, 'cgi-bin', 'who'), WHO);
  chmodSync(join(folder, 'cgi-bin', 'who'), 0o755);
  const hosts = [vpc.node(nodeName).netns, vpc.outside.netns];
  const servers = hosts.map((netns) => netns.start(['busybox', 'httpd', '-f', '-p', String(PORT), '-h', folder]));
  const script =
    'busybox mkdir -p /tmp/who/cgi-bin && printf %s "$0" >/tmp/who/cgi-bin/who && busybox chmod 755 /tmp/who/cgi-bin/who && exec httpd -p "$1" -h /tmp/who';
  const stop = async (): Promise<void> => void (await Promise.all(servers.map((server) => server.stop())));
  try {
    await Promise.all(pods.map((pod) => pod.node.containerd.execInPod(pod, ['sh', '-c', script, WHO, String(PORT)])));
    const isServing = async (ip: string) =>
      (await vpc.outside.netns.tryRun(wget(`http://${ip}:${PORT}/cgi-bin/who`), LIMIT)).code === 0;
    const ips = [...pods.map(({ ip }) => ip), vpc.node(nodeName).primary.primaryIp, vpc.outside.ip];
    await waitUntil(async () => (await Promise.all(ips.map(isServing))).every(Boolean), {
      what: 'answers at the Pods, the node and outside',
      timeoutMs: 20_000,
      everyMs: 100,
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

/** Waits until the VPC leads to the podCIDR of a node, and returns that. */
function awaitRoute({ system }: Stage, name: string): Promise<string> {
  return waitUntil(
    async () => {
      const node = await system.cluster.admin.get(NODES, { name });
      const { podCIDR } = isObject(node?.['spec']) ? node['spec'] : {};
      const conditions: unknown = isObject(node?.['status']) ? node['status']['conditions'] : [];
      const isRouted = Array.isArray(conditions) && conditions.some(isRouteCreated);
      return isRouted && typeof podCIDR === 'string' && podCIDR;
    },
    { what: `the route to the podCIDR of ${name}`, timeoutMs: 30_000, everyMs: 50 },
  );
}

function isRouteCreated(condition: unknown): boolean {
  return isObject(condition) && condition['type'] === 'NetworkUnavailable' && condition['status'] === 'False';
}
