import { setTimeout as sleep } from 'node:timers/promises';
import { RECORD_LABEL } from '../../crd/names.ts';
import { VPC_ENI_KIND } from '../../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../../crd/vpc-ip-claim.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { NODE_ENI_CONFIGS, PODS } from '../../kube/resource-types.ts';
import { isObject } from '../../sim/support/netns.ts';
import type { ModelEni } from '../../sim/vpc/api/model/types.ts';
import { EIP_CLAIMS, findEipFaults } from './audit-eips.ts';
import type { SeenNec } from './system.ts';
import type { SystemMember } from './system-member.ts';
import type { VpcCloud } from './vpc-cloud.ts';

/** What is audited: a system, whatever its nodes run Pods by and whoever keeps its objects. */
type Audited = {
  readonly cloud: VpcCloud;
  readonly cluster: { readonly server: { objects(plural: string, group?: string): readonly KubeObject[] } };
  readonly nodes: readonly Pick<SystemMember, 'name' | 'pods' | 'violations'>[];
};

/** What may differ from one audit to the next. */
type AuditOptions = {
  /** Milliseconds until what is found is taken for real; default 60,000. */
  readonly withinMs?: number;
  /** Nodes whose agent is down on purpose: their kernel is not compared. */
  readonly withoutAgent?: readonly string[];
  /** Default true: each Pod with an address has its VpcIP, and its VpcIPClaim where Pods have claims, and nobody else. */
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
  const necs = system.cluster.server.objects(NODE_ENI_CONFIGS.plural, NODE_ENI_CONFIGS.group) as readonly SeenNec[];
  const vpcEnis = system.cluster.server.objects(VPC_ENI_KIND.plural, NODE_ENI_CONFIGS.group).map(seenVpcEni);
  const { withoutAgent = [], records = true } = options;
  const audited = system.nodes.filter((node) => !withoutAgent.includes(node.name));
  const ofKernels = await Promise.all(audited.map(violationsOf));
  return [
    ...[...state.tasks.values()]
      .filter((task) => task.status === 'RUNNING')
      .map((task) => `cloud: task ${task.taskId} runs`),
    ...enis.flatMap((eni) => (isOnItsOwn(eni, vpcEnis) ? [] : eniFindings(system, eni, necs))),
    ...vpcEniFindings(system, vpcEnis, necs),
    ...necs.flatMap((nec) => necFindings(system, nec, state.enis)),
    ...doubles(enis),
    ...podFindings(system, necs),
    ...(records ? recordFindings(system) : []),
    ...findEipFaults({
      eips: [...state.eips.values()],
      claims: system.cluster.server.objects(EIP_CLAIMS, NODE_ENI_CONFIGS.group),
      podIps: new Map(podsOf(system).map(({ key, ip }) => [key, ip])),
    }),
    ...ofKernels.flat(),
  ];
}

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

/** What a VpcENI says, as the store has it. */
type SeenVpcEni = {
  readonly name: string;
  readonly nodeName: string | undefined;
  readonly claim: string | undefined;
  readonly status: Readonly<Record<string, unknown>>;
};

function seenVpcEni({ metadata, spec, status }: KubeObject): SeenVpcEni {
  const { nodeName, claimRef } = isObject(spec) ? spec : {};
  return {
    name: metadata.name,
    nodeName: typeof nodeName === 'string' ? nodeName : undefined,
    claim: isObject(claimRef) ? `${String(claimRef['namespace'])}/${String(claimRef['name'])}` : undefined,
    status: isObject(status) ? status : {},
  };
}

/** Kept for a name of which no Pod runs: on no instance, and in no node's object. */
function isOnItsOwn(eni: ModelEni, vpcEnis: readonly SeenVpcEni[]): boolean {
  const isKept = vpcEnis.some(({ status }) => status['eniID'] === eni.eniId && status['phase'] === 'Available');
  return isKept && eni.attachment === undefined && eni.state === 'AVAILABLE';
}

/** Each exclusive ENI has one VpcENI that says where it is and whose, and no VpcENI is without its ENI. */
function vpcEniFindings(system: Audited, vpcEnis: readonly SeenVpcEni[], necs: readonly SeenNec[]): readonly string[] {
  const whole = necs.flatMap((nec) => {
    const infos = (nec.status?.eniInfos ?? []).filter(({ mode }) => mode === 'direct-eni');
    return infos.map((info) => ({ info, node: nec.metadata.name }));
  });
  const { enis } = system.cloud.host.model.state;
  return [
    ...whole.flatMap(({ info, node }) => {
      const { eniID, claim, primaryIP = '' } = info;
      const [own, ...more] = vpcEnis.filter(({ status }) => status['eniID'] === eniID);
      if (own === undefined || more.length > 0)
        return [`ENI ${eniID} of ${node}: ${more.length} VpcENIs too many, or none`];
      const key = claim === undefined ? undefined : `${claim.namespace}/${claim.name}`;
      const wanted = [
        ['node', own.nodeName, node],
        ['phase', own.status['phase'], 'Attached'],
        ['claim', own.claim, key],
        ['MAC', own.status['mac'], info.mac],
        ['primary address', own.status['primaryIP'], primaryIP],
        ['way of packets', system.cloud.vpc.eniOf(primaryIP), eniID],
      ] as const;
      return wanted
        .filter(([, has, wants]) => has !== wants)
        .map(([what, has, wants]) => `VpcENI ${own.name}: ${what} is ${String(has)}, not ${String(wants)}`);
    }),
    ...vpcEnis
      .filter(({ status }) => !whole.some(({ info }) => info.eniID === status['eniID']))
      .filter(({ status }) => status['phase'] !== 'Available' || !enis.has(String(status['eniID'])))
      .map(
        ({ name, status }) =>
          `VpcENI ${name}: no node has ${String(status['eniID'])}, it is ${String(status['phase'])}`,
      ),
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
    const infos = nec?.status?.eniInfos ?? [];
    const whole = infos.filter((info) => info.mode === 'direct-eni').map((info) => ({ ip: info.primaryIP }));
    const addresses = [...whole, ...infos.flatMap((info) => info.addresses ?? [])];
    const others = pods.filter((other) => other.ip === ip && other.name !== name);
    return [
      ...(addresses.some((address) => address.ip === ip) ? [] : [`Pod ${name}: ${ip} is no address of ${node}`]),
      ...others.map((other) => `Pod ${name}: ${ip} is Pod ${other.name}'s too`),
    ];
  });
}

/** Pods with an address, by the API server. */
function podsOf({ cluster }: Audited): readonly { readonly key: string; readonly ip: string }[] {
  return cluster.server.objects(PODS.plural).flatMap(({ metadata, status }) => {
    const ip = isObject(status) ? status['podIP'] : undefined;
    return typeof ip === 'string' ? [{ key: `${metadata.namespace}/${metadata.name}`, ip }] : [];
  });
}

function recordFindings(system: Audited): readonly string[] {
  const server = system.cluster.server;
  const pods = podsOf(system);
  const claims = server.objects(VPC_IP_CLAIM_KIND.plural, NODE_ENI_CONFIGS.group).map((claim) => {
    return { key: `${claim.metadata.namespace}/${claim.metadata.name}`, isKept: isKept(claim) };
  });
  const vips = server.objects(VPC_IP_KIND.plural, NODE_ENI_CONFIGS.group).map(({ spec }) => {
    const { ip, claimRef } = isObject(spec) ? spec : {};
    const ref = isObject(claimRef) ? claimRef : {};
    return { ip: String(ip), key: `${String(ref['namespace'])}/${String(ref['name'])}` };
  });
  // A kept ENI is on record as a whole.
  const ofEnis = server.objects(VPC_ENI_KIND.plural, NODE_ENI_CONFIGS.group).map(seenVpcEni);
  const hasEni = ({ key, ip }: { readonly key: string; readonly ip: string }): boolean =>
    ofEnis.some(({ claim, status }) => claim === key && status['primaryIP'] === ip);
  // What is kept outlives its Pod, as long as its claim is there.
  const kept = new Set(claims.filter((claim) => claim.isKept).map((claim) => claim.key));
  // With --pod-records=addresses, the default, no Pod has a claim for its record.
  const haveClaims = claims.some((claim) => !claim.isKept);
  return [
    ...pods
      .filter((pod) => !vips.some((vip) => vip.ip === pod.ip) && !hasEni(pod))
      .map(({ key, ip }) => `Pod ${key}: no VpcIP for ${ip}`),
    ...vips
      .filter((vip) => !kept.has(vip.key) && !pods.some((pod) => pod.ip === vip.ip))
      .map(({ ip }) => `VpcIP ${ip}: no Pod has it`),
    ...pods
      .filter(({ key }) => haveClaims && !claims.some((claim) => claim.key === key))
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
