import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NODE_ENI_CONFIG_ANNOTATION } from '../../../crd/names.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { cleanupStale } from '../../../sim/support/run-names.ts';
import { removeStaleNode } from '../../support/containerd-node.ts';
import { busyboxImage, imageTar } from '../../support/image-tar.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { countAssigned, createSystemOf, filesOf, type System } from '../../system/system.ts';
import { type DemoNode, type DemoPod, startDemoNode } from './demo-node.ts';
import { IMAGE, podObject, SLEEP } from './pods.ts';

/** Start of every name that the demo gives on this machine. */
const PREFIX = 'tke-demo-';

/** The whole: cloud, API server, two replicas of ipamd, two nodes with containerd and agent. */
export type DemoSystem = System<DemoNode>;

/** A small subnet: thirteen usable addresses. */
export const SUBNET_A = { subnetId: 'subnet-small000', cidr: '10.0.1.0/28', usable: 13 } as const;
/** What there is besides, once people say so. */
export const SUBNET_B = { subnetId: 'subnet-spare000', cidr: '10.0.2.0/24' } as const;

/** The nodes: eight cores may have five more ENIs. */
export const NODES = ['n1', 'n2'] as const;
const CORES = 8;

/** Pod addresses of one ENI: two only, so that there is more than one ENI to look at. */
const IPS_PER_ENI = 2;

/** Seconds instead of tens of seconds, so that a takeover can be watched. */
const IPAMD_FLAGS = {
  'ip-min-warm-target': '1',
  'ip-max-warm-target': '1',
  'leader-elect-lease': '5s',
  'leader-elect-renew': '1s',
  'cloud-timeout': '5s',
  'enable-static-ip': 'true',
  // As of a cluster that began with podCIDRs: a /20 whose last /22 is that of the Services.
  'allocate-node-cidrs': 'true',
  'cluster-cidr': '192.168.0.0/20',
  'service-cluster-ip-range': '192.168.12.0/22',
  'max-pods-per-node': '64',
  'gr-routes': 'ipamd',
} as const;
const AGENT_FLAGS = { 'add-wait': '2s', 'ip-cooldown': '1s' } as const;

/** Longest that anything may take that the demo waits for. */
const PATIENCE_MS = 60_000;

/** Removes what killed runs left: processes, namespaces, mounts, files. Returns how many namespaces there were. */
export async function removeLeftovers(): Promise<number> {
  const dirs = new Set<string>();
  const stale = await cleanupStale(PREFIX, async (netns) => {
    const dir = filesOf(netns);
    dirs.add(dir);
    await removeStaleNode(netns, join(dir, netns.split('-').slice(3).join('-')));
  });
  for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  return stale.length;
}

/** Brings everything up but the nodes' joining. `onMade` makes it the caller's to close, also when this fails. */
export function startDemoSystem(
  onMade: (system: DemoSystem) => void,
  onNode: (name: string) => void,
): Promise<DemoSystem> {
  let image: string | undefined;
  return createSystemOf<DemoNode>(
    {
      prefix: PREFIX,
      nodes: NODES.map((name) => ({ name, cores: CORES })),
      subnets: [SUBNET_A, SUBNET_B],
      ipamdProgram: 'packaged',
      ipamdFlags: IPAMD_FLAGS,
      agentFlags: AGENT_FLAGS,
      joinsAll: false,
    },
    {
      onMade,
      makeNode: async (parts) => {
        image ??= writeImage(filesOf(parts.cloud.vpc.prefix));
        const node = await startDemoNode(parts, image);
        onNode(parts.name);
        return node;
      },
    },
  );
}

/** Lets a node join, and says how many addresses its ENIs may have as soon as there is something to say it on. */
export async function joinNode(system: DemoSystem, name: string): Promise<void> {
  await system.join(name);
  await system.awaitNec(name, 'its NodeENIConfig', () => true, PATIENCE_MS);
  const annotations = { [NODE_ENI_CONFIG_ANNOTATION.maxIpPerEni]: String(IPS_PER_ENI) };
  await system.patchNec(name, { metadata: { annotations } });
  await system.node(name).awaitReady();
}

/** Creates the objects of Pods on a node. */
export async function createPods(system: DemoSystem, nodeName: string, names: readonly string[]): Promise<void> {
  for (const name of names) await system.cluster.admin.create(PODS, podObject(name, nodeName));
}

/** All Pods that run. */
export function podsOf(system: DemoSystem): readonly DemoPod[] {
  return system.nodes.flatMap((node) => node.pods).toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Waits until named Pods run, and returns them. */
export async function awaitPods(system: DemoSystem, names: readonly string[]): Promise<readonly DemoPod[]> {
  const running = () => podsOf(system).filter((pod) => names.includes(pod.name));
  await waitUntil(() => running().length === names.length, {
    what: `Pods ${names.join(', ')}`,
    timeoutMs: PATIENCE_MS,
    everyMs: 50,
  });
  return running();
}

/** Waits until each node has an address to spare, which comes after the Pods' own, and no call is under way for it. */
export async function awaitSpare(system: DemoSystem): Promise<void> {
  for (const node of system.nodes) {
    await system.awaitNec(
      node.name,
      'one address to spare',
      (nec) => countAssigned(nec) > node.pods.length && (nec.status?.intents ?? []).length === 0,
      PATIENCE_MS,
    );
  }
}

/** ENIs of the cloud, primary ones left out; of one node by the tag that ipamd gives them. */
export function enisOf(system: DemoSystem, node?: string): readonly string[] {
  const enis = [...system.cloud.host.model.state.enis.values()].filter((eni) => !eni.isPrimary);
  return enis.filter((eni) => node === undefined || eni.tags['tke-node'] === node).map((eni) => eni.eniId);
}

/** Writes the container image into a folder. @throws Error when the machine's busybox cannot run alone in a container */
function writeImage(dir: string): string {
  const path = ['/bin/busybox', '/usr/bin/busybox'].find((candidate) => existsSync(candidate));
  if (path === undefined) throw new Error('no busybox: install the Debian package busybox-static');
  const busybox = readFileSync(path);
  if (busybox.includes('/ld-linux')) throw new Error(`${path} needs libraries: install busybox-static`);
  const image = join(dir, 'image.tar');
  writeFileSync(image, imageTar(busyboxImage(IMAGE, busybox, SLEEP)));
  return image;
}
