import { API_VERSION, ENI_IP_RESOURCE, POD_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { readSchedulerConfig, type SchedulerConfig } from '../../scheduler/config/options.ts';

/** What a NodeENIConfig says; two ENIs of nine addresses by default, in one subnet. */
type NecWords = {
  readonly name: string;
  readonly zone?: string;
  readonly isStatic?: boolean;
  readonly maxRouteENI?: number;
  readonly maxIPPerENI?: number;
  readonly allocatable?: number;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly enis?: readonly EniWords[];
};

/** What an ENI says. */
export type EniWords = {
  readonly eniID: string;
  readonly subnetID?: string;
  readonly cidr?: string;
  readonly state?: 'Attaching' | 'Attached' | 'Detaching';
  readonly mode?: 'route-eni' | 'direct-eni';
  readonly ips?: readonly string[];
  /** Address -> key of the claim that it is kept for. */
  readonly kept?: Readonly<Record<string, string>>;
  /** Key of the claim that it is kept for as a whole. */
  readonly claim?: string;
};

/** Makes a NodeENIConfig as ipamd writes it. */
export function necOf(words: NecWords): KubeObject {
  const { name, zone = 'ap-guangzhou-3', isStatic = true, maxRouteENI = 2, maxIPPerENI = 9, allocatable } = words;
  return {
    apiVersion: API_VERSION,
    kind: 'NodeENIConfig',
    metadata: { name },
    spec: { enableStaticIP: isStatic, maxRouteENI, maxIPPerENI, ...words.spec },
    status: {
      zone,
      eniInfos: (words.enis ?? []).map(eniOf),
      ...(allocatable === undefined ? {} : { allocatableRouteENIIPs: allocatable }),
      ...words.status,
    },
  };
}

function eniOf(eni: EniWords, index: number) {
  const { eniID, subnetID = 'subnet-a', cidr = '10.1.0.0/20', state = 'Attached', mode = 'route-eni', kept = {} } = eni;
  const plain = (eni.ips ?? []).map((ip) => ({ ip, assignmentID: `as-${ip}`, state: 'Assigned' }));
  const marked = Object.entries(kept).map(([ip, key]) => ({
    ...{ ip, assignmentID: `as-${ip}`, state: 'Assigned' },
    claim: markOf(key),
  }));
  return {
    ...{ eniID, mac: `20:90:6f:00:00:${(index + 16).toString(16)}`, subnetID, subnetCIDR: cidr, state, mode },
    ...(eni.claim === undefined ? {} : { claim: markOf(eni.claim) }),
    addresses: [...plain, ...marked],
  };
}

function markOf(key: string) {
  const [namespace = '', name = ''] = key.split('/');
  return { namespace, name };
}

/** What a Pod says. */
export type PodWords = {
  readonly name: string;
  readonly uid?: string;
  readonly nodeName?: string;
  readonly isStatic?: boolean;
  readonly priority?: number;
  readonly resources?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ip?: string;
  readonly phase?: string;
};

/** Makes a Pod in namespace default that asks for one address, or for `resources`. */
export function podOf({ name, uid = `uid-${name}`, nodeName, isStatic = false, ...words }: PodWords): KubeObject {
  const { resources = { [ENI_IP_RESOURCE]: '1' }, annotations = {}, ip, phase, priority } = words;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid,
      annotations: { ...(isStatic ? { [POD_ANNOTATION.deletePolicy]: 'Never' } : {}), ...annotations },
    },
    spec: {
      containers: [{ name: 'main', image: 'none', resources: { requests: resources, limits: resources } }],
      ...(nodeName === undefined ? {} : { nodeName }),
      ...(priority === undefined ? {} : { priority }),
    },
    status: { ...(phase === undefined ? {} : { phase }), ...(ip === undefined ? {} : { podIPs: [{ ip }] }) },
  };
}

/** What a claim says. */
type ClaimWords = {
  readonly name: string;
  readonly ip?: string;
  readonly nodeName?: string;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly reservedAt?: string;
};

/** Makes a VpcIPClaim in namespace default. */
export function claimOf({ name, ip, nodeName, spec = {}, reservedAt }: ClaimWords): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'VpcIPClaim',
    metadata: {
      name,
      namespace: 'default',
      ...(reservedAt === undefined ? {} : { annotations: { 'tke.cloud.tencent.com/reserved-at': reservedAt } }),
    },
    spec: { mode: 'route-eni', deletePolicy: 'Never', ...spec },
    status: {
      ...(ip === undefined ? {} : { phase: 'Retained', ips: [ip], vpcIPs: [ip] }),
      ...(nodeName === undefined ? {} : { nodeName }),
    },
  };
}

/** Makes the VpcIP of a claim in namespace default. */
export function vipOf(ip: string, claim: string, subnetID = 'subnet-a'): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'VpcIP',
    metadata: { name: ip },
    spec: { type: 'Pod', ip, subnetID, claimRef: { namespace: 'default', name: claim } },
    status: { phase: 'Kept' },
  };
}

/** Settings of a scheduler extender that listens on any free port of this machine; later flags win. */
export function schedulerConfig(...flags: readonly string[]): SchedulerConfig {
  const argv = ['--metrics-address=', '--listen-address=127.0.0.1:61690', '--allow-anonymous-loopback', ...flags];
  const last = new Map(argv.map((flag) => [flag.split('=')[0], flag]));
  const outcome = readSchedulerConfig({ argv: [...last.values()], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`got ${outcome.kind}`);
  // No flag takes port 0: people want to know the port.
  return { ...outcome.config, listenAddress: '127.0.0.1:0' };
}
