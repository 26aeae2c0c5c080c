import { existsSync, readdirSync } from 'node:fs';
import type { NodeEniInfo } from '../../crd/node-eni-config-fields.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { openCriClient } from '../support/cri-client.ts';
import { findViolations } from '../support/invariants.ts';
import { type JournalFacts, readJournalFacts } from '../support/journal-facts.ts';
import type { SeenNec } from '../system/system.ts';
import type { VpcCloud } from '../system/vpc-cloud.ts';
import { type ClusterNode, CONTAINERD_SOCKET } from './cluster-node.ts';

/** A sandbox as containerd has it. */
export type SeenSandbox = {
  readonly id: string;
  readonly pod: string;
  readonly podUid: string;
  readonly isReady: boolean;
  /** Empty for a Pod in the node's network. */
  readonly netns: string;
  /** Empty until the plugin has given one. */
  readonly ips: readonly string[];
};

const STATE_DIR = '/run/tke-eni';

/** Lists the sandboxes of a node's runtime. @throws Error of gRPC while containerd is away */
export async function sandboxesOf(node: ClusterNode): Promise<readonly SeenSandbox[]> {
  const cri = openCriClient(node.machine.insidePath(CONTAINERD_SOCKET));
  try {
    const { items } = await cri.call('ListPodSandbox');
    const ids = listOf(items).map(({ id }) => String(id));
    const seen = await Promise.all(
      // One that goes meanwhile is no sandbox any more.
      ids.map((podSandboxId) => cri.call('PodSandboxStatus', { podSandboxId, verbose: true }).catch(() => undefined)),
    );
    return seen.flatMap((answer) => (answer === undefined ? [] : [decodeSandbox(answer)]));
  } finally {
    cri.close();
  }
}

/** Stops a sandbox behind kubelet's back, which makes the Pod's next one then. @throws Error of gRPC */
export async function stopSandbox(node: ClusterNode, podSandboxId: string): Promise<void> {
  const cri = openCriClient(node.machine.insidePath(CONTAINERD_SOCKET));
  try {
    await cri.call('StopPodSandbox', { podSandboxId });
  } finally {
    cri.close();
  }
}

/** Reads a node's journal. @throws Error when it has none */
export function journalOf(node: ClusterNode): JournalFacts {
  return readJournalFacts(`${node.machine.insidePath(STATE_DIR)}/journal.db`);
}

/**
 * Says what is wrong on a node at a quiet moment: journal, kernel, runtime and the insides of its Pods agree; no network
 * namespace, no veth and no spooled deletion is left over. Each line begins with the node's name; empty is good.
 * @param nec The node's object: it says which ENIs are for Pods as a whole.
 * @param podCidrs of the Node; with one, its agent makes a bridge.
 */
export async function findNodeViolations(
  node: ClusterNode,
  cloud: VpcCloud,
  nec: SeenNec | undefined,
  podCidrs: readonly string[] = [],
): Promise<readonly string[]> {
  const whole = new Set(exclusiveEnis(nec).map(({ eniID }) => eniID));
  const ids = cloud.vpc.enisOf(node.name);
  const enis = await Promise.all(ids.filter((eniId) => !whole.has(eniId)).map((eniId) => cloud.vpc.eni(eniId)));
  const directEnis = ids.filter((eniId) => whole.has(eniId)).map((eniId) => cloud.vpc.directEni(eniId));
  const sandboxes = (await sandboxesOf(node)).filter(({ netns, isReady }) => netns !== '' && isReady);
  const resolveNetns = (path: string): string => node.machine.insidePath(path);
  const found = await findViolations({
    netns: node.ns,
    ruleMode: 'compact',
    enis,
    directEnis,
    stateDir: node.machine.insidePath(STATE_DIR),
    sandboxes,
    resolveNetns,
    podCidrs,
    ...(podCidrs.length === 0 ? {} : { grWiring: 'bridge' }),
  });
  return [
    ...found,
    ...(await veths(node, [cloud.vpc.node(node.name).primary.mac, ...[...enis, ...directEnis].map(({ mac }) => mac)])),
    ...namespaces(
      node,
      sandboxes.map(({ netns }) => netns),
    ),
    ...filesOf(node, `${STATE_DIR}/deletions`).map((name) => `agent: deletion ${name} is still spooled`),
  ].map((line) => `${node.name}: ${line}`);
}

/** ENIs that Pods of a node get as a whole, by its object. */
export function exclusiveEnis(nec: SeenNec | undefined): readonly NodeEniInfo[] {
  return (nec?.status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
}

/** Names of the network namespaces that containerd made on a node, below /run/netns. */
export function namespacesOf(node: ClusterNode): readonly string[] {
  return filesOf(node, '/run/netns').filter((name) => name.startsWith('cni-'));
}

/** NICs are veths too in the test VPC; every other one is a Pod's. */
async function veths(node: ClusterNode, nics: readonly string[]): Promise<readonly string[]> {
  const links = await node.ns.ipJson('-d', 'link', 'show', 'type', 'veth');
  return links
    .filter((link) => !nics.includes(String(link['address'])) && !String(link['ifalias'] ?? '').startsWith('tke-eni/'))
    .map((link) => `kernel: veth ${String(link['ifname'])} is of no Pod and no ENI`);
}

function namespaces(node: ClusterNode, wanted: readonly string[]): readonly string[] {
  const names = wanted.map((path) => path.slice(path.lastIndexOf('/') + 1));
  return namespacesOf(node)
    .filter((name) => !names.includes(name))
    .map((name) => `kernel: network namespace ${name} is of no sandbox`);
}

function filesOf(node: ClusterNode, path: string): readonly string[] {
  const folder = node.machine.insidePath(path);
  return existsSync(folder) ? readdirSync(folder) : [];
}

function decodeSandbox(answer: JsonObject): SeenSandbox {
  const status = members(answer['status']);
  const [metadata, network] = [members(status['metadata']), members(status['network'])];
  const ip = String(network['ip'] ?? '');
  const more = listOf(network['additionalIps']).map((one) => String(one['ip']));
  const info: unknown = JSON.parse(String(members(answer['info'])['info'] ?? '{}'));
  const { linux } = members(members(info)['runtimeSpec']);
  const netns = listOf(members(linux)['namespaces']).find(({ type }) => type === 'network');
  return {
    id: String(status['id']),
    pod: `${String(metadata['namespace'])}/${String(metadata['name'])}`,
    podUid: String(metadata['uid']),
    // The first value of the enumeration; protobufjs may leave it out.
    isReady: [undefined, 0, 'SANDBOX_READY'].includes(status['state'] as number | string | undefined),
    netns: String(netns?.['path'] ?? ''),
    ips: ip === '' ? [] : [ip, ...more],
  };
}

function listOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function members(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
