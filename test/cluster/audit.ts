import { setTimeout as sleep } from 'node:timers/promises';
import { EIP_CLAIM_KIND } from '../../crd/eip-claim.ts';
import { isInCidr } from '../../crd/ip-text.ts';
import { DIRECT_ENI_RESOURCE, EIP_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import type { KubeObject, ResourceType } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, NODES, PODS, resourceTypeOf } from '../../kube/resource-types.ts';
import { isObject, type JsonObject } from '../../sim/support/netns.ts';
import { auditOnce } from '../system/audit-three-ways.ts';
import type { SeenNec } from '../system/system.ts';
import { exclusiveEnis, findNodeViolations, type SeenSandbox, sandboxesOf } from './node-facts.ts';
import type { RealCluster } from './real-cluster.ts';

/** What may differ from one audit to the next. */
type ClusterAuditOptions = {
  /** Milliseconds until what is found is taken for real; default 60,000. */
  readonly withinMs?: number;
  /** Nodes that are not looked at: switched off, or their agent is gone on purpose. */
  readonly without?: readonly string[];
};

const PAUSE_MS = 500;
/** The same good answer so many times in a row: a call that is just being made would show. */
const QUIET_LOOKS = 2;

/**
 * Compares the cloud, the objects and the kernels of a real cluster once it is quiet: ENIs and addresses of the cloud and
 * of the NodeENIConfigs; VpcIPs and VpcIPClaims and the Pods; each Pod's address, its sandbox, its lease and the inside of
 * its network namespace; what each node says that it has room for; and that no rule, route, map element, veth, lease,
 * network namespace or spooled deletion is there without a Pod. Waits, bounded, until nothing is found; returns what is
 * found at last, one line each. Empty is good. The agents run in compact mode.
 */
export async function auditCluster(
  cluster: RealCluster,
  options: ClusterAuditOptions = {},
): Promise<readonly string[]> {
  const deadline = performance.now() + (options.withinMs ?? 60_000);
  let quiet = 0;
  for (;;) {
    const found = await auditClusterOnce(cluster, options.without).catch((error: unknown) => [
      `cannot be looked at: ${String(error)}`,
    ]);
    quiet = found.length === 0 ? quiet + 1 : 0;
    if (quiet >= QUIET_LOOKS) return [];
    if (quiet === 0 && performance.now() > deadline) return found;
    await sleep(PAUSE_MS);
  }
}

/** Compares once, quiet or not. @throws Error when the API server or a runtime does not answer */
async function auditClusterOnce(cluster: RealCluster, without: readonly string[] = []): Promise<readonly string[]> {
  const types = [PODS, NODES, ...OUR_KINDS.map(resourceTypeOf)];
  const lists = new Map(
    await Promise.all(types.map(async (type) => [type.plural, await listAll(cluster, type)] as const)),
  );
  const objects = (plural: string): readonly KubeObject[] => lists.get(plural) ?? [];
  const addressed = objects(PODS.plural).filter(hasAddress);
  const cidrsOf = (name: string): readonly string[] => podCidrsOf(objects(NODES.plural), name);
  const isOfBlock = (pod: KubeObject): boolean =>
    cidrsOf(String(members(pod['spec'])['nodeName'])).some((cidr) => isInCidr(addressOf(pod), cidr));
  // What the VPC and its objects say is of Pods of ENIs alone.
  const pods = addressed.filter((pod) => !isOfBlock(pod));
  const nodes = cluster.nodes.filter(({ name, machine }) => machine.isUp && !without.includes(name));
  const sandboxes = new Map(
    await Promise.all(nodes.map(async (node) => [node.name, await sandboxesOf(node)] as const)),
  );
  const necOf = (node: string): SeenNec | undefined =>
    objects(NODE_ENI_CONFIGS.plural).find(({ metadata }) => metadata.name === node);
  const found = await auditOnce({
    cloud: cluster.cloud,
    // Pods in their node's network and those that have ended hold no address of ours.
    cluster: { server: { objects: (plural) => (plural === PODS.plural ? pods : objects(plural)) } },
    nodes: nodes.map((node) => ({
      name: node.name,
      pods: pods
        .filter(({ spec }) => members(spec)['nodeName'] === node.name)
        .map((pod) => ({ name: keyOf(pod), ip: addressOf(pod) })),
      violations: () => findNodeViolations(node, cluster.cloud, necOf(node.name), cidrsOf(node.name)),
    })),
  });
  return [
    ...found,
    ...doubles(addressed.filter(isOfBlock)),
    ...nodes.flatMap(({ name }) => [
      ...sandboxFindings(
        name,
        objects(PODS.plural).filter(({ spec }) => members(spec)['nodeName'] === name),
        sandboxes.get(name) ?? [],
      ),
      ...capacityFindings(
        objects(NODES.plural).find(({ metadata }) => metadata.name === name),
        necOf(name),
        (sandboxes.get(name) ?? []).filter(({ ips }) => !ips.some((ip) => cidrsOf(name).some((c) => isInCidr(ip, c)))),
      ),
    ]),
  ];
}

const OUR_KINDS = [NODE_ENI_CONFIG_KIND, VPC_IP_KIND, VPC_IP_CLAIM_KIND, VPC_ENI_KIND, EIP_CLAIM_KIND];

/** Blocks of a Node, from which its GlobalRoute Pods have their addresses. */
function podCidrsOf(nodes: readonly KubeObject[], name: string): readonly string[] {
  const cidrs = members(nodes.find(({ metadata }) => metadata.name === name)?.['spec'])['podCIDRs'];
  return Array.isArray(cidrs) ? cidrs.map(String) : [];
}

function doubles(pods: readonly KubeObject[]): readonly string[] {
  const ips = pods.map(addressOf);
  return ips.filter((ip, index) => ips.indexOf(ip) !== index).map((ip) => `${ip}: two Pods have it`);
}

/** Lists every object of a type in all namespaces. @throws KubeError */
export async function listAll(cluster: RealCluster, type: ResourceType): Promise<readonly KubeObject[]> {
  return (await cluster.admin.listPage(type, {})).items;
}

/** Reports whether a Pod holds an address of its own now. */
export function hasAddress(pod: KubeObject): boolean {
  const hasEnded = ['Succeeded', 'Failed'].includes(String(members(pod['status'])['phase']));
  return members(pod['spec'])['hostNetwork'] !== true && !hasEnded && addressOf(pod) !== '';
}

/** A Pod's address; '' when it has none. */
export function addressOf(pod: KubeObject): string {
  return String(members(pod['status'])['podIP'] ?? '');
}

/** `namespace/name`. */
export function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** Every ready sandbox is of a Pod of the node, and its address is what the Pod's status says. */
function sandboxFindings(
  node: string,
  pods: readonly KubeObject[],
  sandboxes: readonly SeenSandbox[],
): readonly string[] {
  const ready = sandboxes.filter(({ isReady, netns }) => isReady && netns !== '');
  return [
    ...pods
      .filter((pod) => hasAddress(pod))
      .flatMap((pod) => {
        const own = ready.filter(({ podUid }) => podUid === pod.metadata.uid);
        const ips = own.flatMap((sandbox) => sandbox.ips);
        return own.length === 1 && ips.includes(addressOf(pod))
          ? []
          : [`${node}: Pod ${keyOf(pod)} has ${addressOf(pod)}, its ${own.length} ready sandboxes [${ips}]`];
      }),
    ...ready
      .filter(({ podUid }) => !pods.some((pod) => pod.metadata.uid === podUid))
      .map(({ id, pod }) => `${node}: sandbox ${id.slice(0, 12)} is of ${pod}, which is no Pod any more`),
  ];
}

/**
 * A node offers as many addresses as its quota, or as its subnets still give, as many exclusive ENIs as it may have, and
 * never fewer than are in use; and as many EIPs as its instance may bind.
 * @see DeviceSupply
 */
function capacityFindings(
  node: KubeObject | undefined,
  nec: SeenNec | undefined,
  sandboxes: readonly SeenSandbox[],
): readonly string[] {
  if (node === undefined || nec === undefined) return [];
  const { spec = {}, status = {} } = nec;
  const { maxRouteENI = Number.NaN, maxIPPerENI = Number.NaN, maxDirectENI = 0 } = spec;
  const quota = maxRouteENI * maxIPPerENI;
  const whole = exclusiveEnis(nec).map(({ primaryIP = '' }) => primaryIP);
  const running = sandboxes.filter(({ isReady, netns }) => isReady && netns !== '');
  const exclusive = running.filter(({ ips }) => ips.some((ip) => whole.includes(ip))).length;
  const ofEnis = Math.min(maxDirectENI, status.allocatableDirectENIs ?? maxDirectENI);
  const wanted = [
    [ENI_IP_RESOURCE, Math.max(running.length - exclusive, Math.min(quota, status.allocatableRouteENIIPs ?? quota))],
    [DIRECT_ENI_RESOURCE, Math.max(exclusive, ofEnis)],
    [EIP_RESOURCE, status.maxEIPs ?? 0],
  ] as const;
  const seen = members(node['status']);
  return ['capacity', 'allocatable'].flatMap((field) =>
    wanted.flatMap(([resource, count]) => {
      // A resource that the node never had is not there at all.
      const said = Number(members(seen[field])[resource] ?? 0);
      return said === count ? [] : [`${node.metadata.name}: ${field} says ${said} of ${resource}, not ${count}`];
    }),
  );
}

function members(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}
