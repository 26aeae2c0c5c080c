import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { VPC_IP_KIND } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import { RECORD_LABEL } from '../../ipamd/records/record-facts.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { PODS, resourceTypeOf } from '../../kube/resource-types.ts';
import { isObject } from '../support/netns.ts';
import type { ModelEni } from '../vpc/api/model/types.ts';
import type { SeenNec } from './system.ts';
import type { SystemMember } from './system-member.ts';
import type { VpcCloud } from './vpc-cloud.ts';

/** What is audited: a system, whatever its nodes run Pods by and whoever keeps its objects. */
export type Audited = {
  readonly cloud: VpcCloud;
  readonly cluster: { readonly server: { objects(plural: string, group?: string): readonly KubeObject[] } };
  readonly nodes: readonly Pick<SystemMember, 'name' | 'pods' | 'violations'>[];
};

/** What may differ from one audit to the next. */
export type AuditOptions = {
  /** Milliseconds until what is found is taken for real; default 60,000. */
  readonly withinMs?: number;
  /** Nodes whose agent is down on purpose: their kernel is not compared. */
  readonly withoutAgent?: readonly string[];
  /** Default true: each Pod with an address has its VpcIP and VpcIPClaim, and nobody else. */
  readonly records?: boolean;
};

const PAUSE_MS = 250;
/** The same good answer so many times in a row: a call that is just being made would show. */
const QUIET_LOOKS = 3;

/**
 * Compares the cloud, the objects and the kernels once the system is quiet: every ENI of the cloud is in the object of
 * the node that it is on, and the other way round; every address is where both say; no address is on two nodes; every
 * Pod's address is one that the cloud leads to its node; no call is under way. Waits, bounded, until nothing is found
 * three times in a row; returns what is found at last. Empty is good.
 */
export async function auditThreeWays(system: Audited, options: AuditOptions = {}): Promise<readonly string[]> {
  const deadline = performance.now() + (options.withinMs ?? 60_000);
  let quiet = 0;
  for (;;) {
    const found = await auditOnce(system, options);
    quiet = found.length === 0 ? quiet + 1 : 0;
    if (quiet >= QUIET_LOOKS) return [];
    if (quiet === 0 && performance.now() > deadline) return found;
    await sleep(PAUSE_MS);
  }
}

/** Compares once, quiet or not. */
export async function auditOnce(system: Audited, options: AuditOptions = {}): Promise<readonly string[]> {
  await system.cloud.host.catchUp();
  const { state } = system.cloud.host.model;
  const enis = [...state.enis.values()].filter((eni) => !eni.isPrimary);
  const necs = system.cluster.server.objects(NECS.plural, NECS.group) as readonly SeenNec[];
  const { withoutAgent = [], records = true } = options;
  const audited = system.nodes.filter((node) => !withoutAgent.includes(node.name));
  const ofKernels = await Promise.all(audited.map(violationsOf));
  return [
    ...[...state.tasks.values()]
      .filter((task) => task.status === 'RUNNING')
      .map((task) => `cloud: task ${task.taskId} runs`),
    ...enis.flatMap((eni) => eniFindings(system, eni, necs)),
    ...necs.flatMap((nec) => necFindings(system, nec, state.enis)),
    ...doubles(enis),
    ...podFindings(system, necs),
    ...(records ? recordFindings(system) : []),
    ...ofKernels.flat(),
  ];
}

const NECS = resourceTypeOf(NODE_ENI_CONFIG_KIND);

async function violationsOf(node: Audited['nodes'][number]): Promise<readonly string[]> {
  try {
    return await node.violations();
  } catch (error) {
    // An ENI may go while it is looked at: then the next look is the judge.
    return [`${node.name}: cannot be looked at: ${String(error)}`];
  }
}

function eniFindings(system: Audited, eni: ModelEni, necs: readonly SeenNec[]): readonly string[] {
  const holders = necs.filter((nec) => nec.status?.eniInfos?.some((info) => info.eniID === eni.eniId));
  const [holder] = holders;
  if (holder === undefined || holders.length > 1) {
    const names = holders.map((nec) => nec.metadata.name).join(' and ') || 'no NodeENIConfig';
    return [
      `cloud: ENI ${eni.eniId} (${eni.name}, ${eni.state}, on ${eni.attachment?.instanceId ?? 'nothing'}) is in ${names}`,
    ];
  }
  const instance = system.cloud.instanceOf(holder.metadata.name);
  return [
    ...(eni.state === 'AVAILABLE' ? [] : [`cloud: ENI ${eni.eniId} is ${eni.state}`]),
    ...(eni.attachment?.instanceId === instance
      ? []
      : [`cloud: ENI ${eni.eniId} of ${holder.metadata.name} is on ${eni.attachment?.instanceId ?? 'nothing'}`]),
    ...[...eni.ips.values()].flatMap(({ ip, state }) => (state === 'AVAILABLE' ? [] : [`cloud: ${ip} is ${state}`])),
  ];
}

function necFindings(system: Audited, nec: SeenNec, enis: ReadonlyMap<string, ModelEni>): readonly string[] {
  const { name } = nec.metadata;
  const { status = {}, spec = {} } = nec;
  const infos = status.eniInfos ?? [];
  const seenEpoch = spec.observedSupplyEpoch ?? 0;
  return [
    ...(status.intents ?? []).map((intent) => `nec ${name}: ${intent.action} ${intent.id} is ${intent.phase}`),
    ...(nec.metadata.deletionTimestamp === undefined ? [] : [`nec ${name}: is being deleted`]),
    ...(seenEpoch > (status.supplyEpoch ?? 0)
      ? [`nec ${name}: the agent saw epoch ${seenEpoch}, the object has ${status.supplyEpoch ?? 0}`]
      : []),
    ...infos.flatMap((info) => {
      const eni = enis.get(info.eniID);
      if (eni === undefined) return [`nec ${name}: the cloud has no ENI ${info.eniID}`];
      const secondary = [...eni.ips.values()].filter((ip) => !ip.isPrimary).map(({ ip }) => ip);
      const addresses = info.addresses ?? [];
      const known = addresses.map(({ ip }) => ip);
      return [
        ...(info.state === 'Attached' ? [] : [`nec ${name}: ENI ${info.eniID} is ${info.state}`]),
        ...(info.draining === true ? [`nec ${name}: ENI ${info.eniID} drains`] : []),
        ...(info.mac === eni.mac
          ? []
          : [`nec ${name}: ENI ${info.eniID} has MAC ${info.mac}, in the cloud ${eni.mac}`]),
        ...addresses
          .filter(({ state }) => state !== 'Assigned')
          .map(({ ip, state }) => `nec ${name}: ${ip} is ${state}`),
        ...known
          .filter((ip) => !secondary.includes(ip))
          .map((ip) => `nec ${name}: the cloud has no ${ip} on ${info.eniID}`),
        ...secondary
          .filter((ip) => !known.includes(ip))
          .map((ip) => `cloud: ${ip} of ${info.eniID} is not in nec ${name}`),
        ...secondary
          .filter((ip) => system.cloud.vpc.eniOf(ip) !== info.eniID)
          .map((ip) => `packets: ${ip} is led to ${system.cloud.vpc.eniOf(ip) ?? 'nowhere'}, not ${info.eniID}`),
      ];
    }),
  ];
}

function doubles(enis: readonly ModelEni[]): readonly string[] {
  const all = enis.flatMap((eni) => [...eni.ips.keys()]);
  return all.filter((ip, index) => all.indexOf(ip) !== index).map((ip) => `cloud: ${ip} is on two ENIs`);
}

/** Every address of a Pod is one that its node has, and nobody else's. */
function podFindings(system: Audited, necs: readonly SeenNec[]): readonly string[] {
  const pods = system.nodes.flatMap((node) =>
    node.pods.map((pod) => ({ name: pod.name, ip: pod.ip, node: node.name })),
  );
  return pods.flatMap(({ node, name, ip }) => {
    const nec = necs.find((one) => one.metadata.name === node);
    const addresses = (nec?.status?.eniInfos ?? []).flatMap((info) => info.addresses ?? []);
    const others = pods.filter((other) => other.ip === ip && other.name !== name);
    return [
      ...(addresses.some((address) => address.ip === ip) ? [] : [`Pod ${name}: ${ip} is no address of ${node}`]),
      ...others.map((other) => `Pod ${name}: ${ip} is Pod ${other.name}'s too`),
    ];
  });
}

function recordFindings(system: Audited): readonly string[] {
  const server = system.cluster.server;
  const pods = server.objects(PODS.plural).flatMap(({ metadata, status }) => {
    const ip = isObject(status) ? status['podIP'] : undefined;
    return typeof ip === 'string' ? [{ key: `${metadata.namespace}/${metadata.name}`, ip }] : [];
  });
  const claims = server.objects(VPC_IP_CLAIM_KIND.plural, NECS.group).map((claim) => {
    return { key: `${claim.metadata.namespace}/${claim.metadata.name}`, isKept: isKept(claim) };
  });
  const vips = server.objects(VPC_IP_KIND.plural, NECS.group).map(({ spec }) => {
    const { ip, claimRef } = isObject(spec) ? spec : {};
    const ref = isObject(claimRef) ? claimRef : {};
    return { ip: String(ip), key: `${String(ref['namespace'])}/${String(ref['name'])}` };
  });
  // What is kept outlives its Pod, as long as its claim is there.
  const kept = new Set(claims.filter((claim) => claim.isKept).map((claim) => claim.key));
  return [
    ...pods
      .filter(({ ip }) => !vips.some((vip) => vip.ip === ip))
      .map(({ key, ip }) => `Pod ${key}: no VpcIP for ${ip}`),
    ...vips
      .filter((vip) => !kept.has(vip.key) && !pods.some((pod) => pod.ip === vip.ip))
      .map(({ ip }) => `VpcIP ${ip}: no Pod has it`),
    ...pods
      .filter(({ key }) => !claims.some((claim) => claim.key === key))
      .map(({ key }) => `Pod ${key}: no VpcIPClaim`),
    ...claims
      .filter((claim) => !claim.isKept && !pods.some((pod) => pod.key === claim.key))
      .map(({ key }) => `VpcIPClaim ${key}: no such Pod`),
  ];
}

/** A claim of static mode: no record of a Pod. */
function isKept({ metadata }: KubeObject): boolean {
  return metadata.labels?.[RECORD_LABEL.key] === undefined;
}
